"""What a module costs to run: operations and bytes, counted on the graph.

Keys follow XLA's: `flops` (an element-wise op is one per element, a product and its sum are two), `transcendentals`,
and `bytes accessed`: what kernels read and write, as `traffic` counts it. Scalars that are made from scalars stay in
registers. Bodies of loops are counted once per trip where the number of trips is known (a counter against a constant,
or what the compiler that wrote a dump found out), else once; `unknown trip counts` says how many.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass

from xlapy.hlo.attributes import (
    ConvolutionDimensionNumbers,
    DotDimensionNumbers,
    Window,
    WindowDimension,
)
from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.kernel_plan import SCALAR_RENAMING, fusion_roots, is_cumulative
from xlapy.hlo.leaves import is_renaming, origin_of_leaf
from xlapy.hlo.loop_counter import mean_trips, recorded_trip_count, trip_count
from xlapy.hlo.ops import OPS, Trait
from xlapy.hlo.views import is_name_or_part
from xlapy.support.registry import Registry

_ROUNDED_FUNCTIONS = """acos acosh asin asinh atan atanh atan2 cbrt cosh cosine erf exponential exponential-minus-one
    log log-plus-one logistic power rsqrt sine sinh sqrt tan tanh"""
TRANSCENDENTAL = frozenset(_ROUNDED_FUNCTIONS.split())


@dataclass(slots=True)
class Cost:
    """Totals; costs add up."""

    flops: float = 0.0
    transcendentals: float = 0.0
    bytes: float = 0.0
    unknown_trips: int = 0
    kernels: float = 0.0  # that are called

    def add(self, other: Cost, times: float = 1) -> None:
        self.flops += other.flops * times
        self.transcendentals += other.transcendentals * times
        self.bytes += other.bytes * times
        self.unknown_trips += other.unknown_trips
        self.kernels += other.kernels * times


def cost_analysis(module: HloModule) -> dict[str, float]:
    """The cost of one run of a module."""
    cost = program_cost(module.entry)
    return {
        "flops": cost.flops,
        "transcendentals": cost.transcendentals,
        "bytes accessed": cost.bytes,
        "unknown trip counts": float(cost.unknown_trips),
    }


def program_cost(computation: Computation, in_place: Callable[[Instruction], bool] | None = None) -> Cost:
    """The cost of a computation that runs as a sequence of kernels and control flow.

    `in_place` says of a kernel that updates a part of an array whether the rest stays where it is. By default it does
    where the array is neither a constant nor a parameter of the computation, which is not its own to write to."""
    borrowed = frozenset(computation.parameters)
    return _sequence_cost(computation, in_place or (lambda kernel: _may_update_in_place(kernel, borrowed)))


def _sequence_cost(
    computation: Computation, in_place: Callable[[Instruction], bool], around: Instruction | None = None
) -> Cost:
    """The cost of a computation, which is the body of the loop `around` it, if there is one."""
    total = Cost()
    for instruction in computation.post_order():
        if instruction.opcode == "while":
            condition, body = (_sequence_cost(called, in_place, instruction) for called in instruction.called)
            trips = known_trips(instruction, around)
            total.add(condition, (trips or 0) + 1)
            total.add(body, 1 if trips is None else trips)
            total.unknown_trips += trips is None
        elif Trait.CONTROL in instruction.spec.traits:
            costs = [_sequence_cost(called, in_place) for called in instruction.called]
            total.add(max(costs, key=lambda cost: cost.bytes))
        elif Trait.STRUCTURE not in instruction.spec.traits and not is_name_or_part(instruction):
            total.add(arithmetic_cost(instruction))
            if not _is_in_register(instruction):
                moved = traffic(instruction, in_place=in_place(instruction))
                total.bytes += moved.read + moved.written
                total.kernels += 1
    return total


def known_trips(loop: Instruction, around: Instruction | None = None) -> float | None:
    """How often the body of a while runs, as far as the graph or the dump that it comes from says: on average over the
    iterations of the loop `around` it."""
    counted: float | None = trip_count(loop)
    if counted is None:
        counted = recorded_trip_count(loop)
    return mean_trips(loop, around) if counted is None and around is not None else counted


def _is_in_register(instruction: Instruction) -> bool:
    """A scalar made from scalars, which needs no kernel."""
    if not instruction.shape.is_scalar or not all(operand.shape.is_scalar for operand in instruction.operands):
        return False
    return Trait.ELEMENTWISE in instruction.spec.traits or instruction.opcode in _MOVES_REGISTERS


_MOVES_REGISTERS = SCALAR_RENAMING | {"copy"}


ARITHMETIC: Registry[Callable[[Instruction], Cost]] = Registry("cost", OPS)


def arithmetic_cost(instruction: Instruction) -> Cost:
    """Operations of one instruction, or of a fusion; bytes are its kernel's."""
    counted = ARITHMETIC.get(instruction.opcode)
    if counted is not None:
        return counted(instruction)
    if Trait.ELEMENTWISE not in instruction.spec.traits:
        return Cost()
    if instruction.opcode in TRANSCENDENTAL:
        return Cost(transcendentals=instruction.shape.size)
    return Cost(flops=instruction.shape.size)


@ARITHMETIC.register("fusion")
def _fusion(instruction: Instruction) -> Cost:
    total = Cost()
    for inside in instruction.called[0]:
        total.add(arithmetic_cost(inside))
    return total


@ARITHMETIC.register("map")
def _map(instruction: Instruction) -> Cost:
    return _repeated(instruction.called[0], instruction.shape.size)


@ARITHMETIC.register("reduce")
def _reduce(instruction: Instruction) -> Cost:
    return _repeated(instruction.called[0], instruction.operands[0].shape.size)


def _repeated(region: Computation, times: int) -> Cost:
    """A region applied so often. What it has of memory stays in registers or in a cache."""
    once = program_cost(region)
    return Cost(once.flops * times, once.transcendentals * times, unknown_trips=once.unknown_trips)


def _flops_of_product(instruction: Instruction) -> int:
    """A product and its sum; of complex numbers four products and sums of real ones."""
    return 8 if instruction.shape.type.is_complex else 2


@ARITHMETIC.register("dot")
def _dot(instruction: Instruction) -> Cost:
    numbers: DotDimensionNumbers = instruction.attributes["dimension_numbers"]
    lhs = instruction.operands[0].shape
    depth = math.prod(lhs.dims[dim] for dim in numbers.lhs_contracting)
    return Cost(flops=_flops_of_product(instruction) * instruction.shape.size * depth)


@ARITHMETIC.register("cholesky")
def _cholesky(instruction: Instruction) -> Cost:
    """A third of the cube of the rows, in products and sums together."""
    rows = instruction.shape.dims[-1]
    return Cost(flops=_flops_of_product(instruction) * instruction.shape.size * rows / 6)


@ARITHMETIC.register("eigh")
def _eigh(instruction: Instruction) -> Cost:
    """Six sweeps of rotations, each of which changes two rows of a matrix, and two vectors: eight operations for two
    numbers of either."""
    a = instruction.operands[0]
    rows = a.shape.dims[-1]
    return Cost(flops=6 * a.shape.size * max(rows - 1, 0) / 2 * 16)


@ARITHMETIC.register("householder-product", "qr-decomposition")
def _reflections(instruction: Instruction) -> Cost:
    """Each reflection takes two products for each element that is left, in rows and columns from its own on."""
    a = instruction.operands[0]
    *_, rows, columns = a.shape.dims
    steps = instruction.operands[-1].shape.dims[-1] if len(instruction.operands) > 1 else min(rows, columns)
    left = sum((rows - step) * (columns - step) for step in range(steps))
    return Cost(flops=2 * _flops_of_product(a) * math.prod(a.shape.dims[:-2]) * left)


@ARITHMETIC.register("svd")
def _svd(instruction: Instruction) -> Cost:
    """Six sweeps over pairs of columns: three sums of products of these, and rotations of them and of vectors."""
    *batch, rows, columns = instruction.operands[0].shape.dims
    less, more = sorted((rows, columns))
    pairs = math.prod(batch) * less * max(less - 1, 0) / 2
    return Cost(flops=6 * pairs * (6 * more + 8 * (more + less)))


@ARITHMETIC.register("lu")
def _lu(instruction: Instruction) -> Cost:
    """The smaller side of a matrix is eliminated from all that is left: two thirds of the cube, if it is square."""
    a = instruction.operands[0]
    less, more = sorted(a.shape.dims[-2:])
    each = less * (more - less / 3) / 2 / max(more, 1)  # products for each element
    return Cost(flops=_flops_of_product(a) * a.shape.size * each)


@ARITHMETIC.register("triangular-solve")
def _triangular_solve(instruction: Instruction) -> Cost:
    """Each unknown takes part in half as many products as there are rows."""
    rows = instruction.operands[0].shape.dims[-1]
    return Cost(flops=_flops_of_product(instruction) * instruction.shape.size * rows / 2)


@ARITHMETIC.register("fft")
def _fft(instruction: Instruction) -> Cost:
    """5 n log n of complex numbers, as is the custom; half of that if one side is real."""
    operand, result = instruction.operands[0].shape, instruction.shape
    lengths = instruction.attributes["fft_length"]
    batch = math.prod(result.dims[: -len(lengths)])
    points = math.prod(lengths)
    whole = 5 * batch * points * math.log2(max(points, 1))
    return Cost(flops=whole if operand.type is result.type else whole / 2)


@ARITHMETIC.register("convolution")
def _convolution(instruction: Instruction) -> Cost:
    """Products where the window lies on an element; padding costs nothing."""
    numbers: ConvolutionDimensionNumbers = instruction.attributes["dimension_numbers"]
    window: Window = instruction.attributes["window"]
    lhs, rhs = (operand.shape for operand in instruction.operands)
    result = instruction.shape
    count = result.dims[numbers.output_batch] * result.dims[numbers.output_feature]
    count *= rhs.dims[numbers.kernel_input_feature]
    for part, dim in zip(window.dimensions, numbers.input_spatial, strict=True):
        count *= _products(part, lhs.dims[dim])
    return Cost(flops=_flops_of_product(instruction) * count)


def _products(part: WindowDimension, size: int) -> int:
    """How many pairs of a position and a place of the window lie on an element."""
    offsets = (place * part.window_dilation - part.padding_low for place in range(part.size))
    return sum(_positions_on_elements(part, size, offset) for offset in offsets)


def _positions_on_elements(part: WindowDimension, size: int, offset: int) -> int:
    """At how many positions of the window that lies on an element which is `offset` behind its start."""
    first = max(0, -(offset // part.stride))
    end = min(part.positions(size), -((offset - size * part.base_dilation) // part.stride))
    apart = part.base_dilation // math.gcd(part.stride, part.base_dilation)
    for position in range(first, min(first + apart, end)):
        if (position * part.stride + offset) % part.base_dilation == 0:
            return len(range(position, end, apart))
    return 0


@ARITHMETIC.register("reduce-window")
def _reduce_window(instruction: Instruction) -> Cost:
    """Each window anew, but for those that reach from each element to an end: they continue one another."""
    window: Window = instruction.attributes["window"]
    positions = instruction.shape.leaves()[0].size
    folded = 1 if is_cumulative(instruction) else math.prod(part.size for part in window.dimensions)
    return _repeated(instruction.called[0], positions * folded)


@ARITHMETIC.register("select-and-scatter")
def _select_and_scatter(instruction: Instruction) -> Cost:
    window: Window = instruction.attributes["window"]
    positions = instruction.operands[1].shape.size
    select, scatter = instruction.called
    total = _repeated(select, positions * (math.prod(part.size for part in window.dimensions) - 1))
    total.add(_repeated(scatter, positions))
    return total


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that one kernel reads and writes."""

    read: int
    written: int


_READS_PARTS = frozenset({"dynamic-slice", "gather", "slice"})
_UPDATES: dict[str, Callable[[Instruction], Sequence[Instruction]]] = {
    "dynamic-update-slice": lambda instruction: instruction.operands[1:2],
    "scatter": lambda instruction: instruction.operands[len(instruction.operands) // 2 + 1 :],
}
"""Ops that change a part of their first operands, and what they put there."""


def _may_update_in_place(instruction: Instruction, borrowed: Set[Instruction]) -> bool:
    """Everything that the kernel updates lies in memory that is neither a constant's nor that of a `borrowed` value."""
    updated = [_updated(instruction, root) for root in _roots(instruction) if root.opcode in _UPDATES]
    return bool(updated) and all(
        value is not None and value.opcode != "constant" and value not in borrowed for value in updated
    )


def _updated(instruction: Instruction, root: Instruction) -> Instruction | None:
    """Whose memory a root of the kernel updates; None if the kernel makes the rest, too."""
    value, _ = origin_of_leaf(root.operands[0], 0)
    if instruction is root:
        return value
    if value.opcode != "parameter":
        return None
    return origin_of_leaf(instruction.operands[value.attributes["number"]], 0)[0]


def _roots(instruction: Instruction) -> Sequence[Instruction]:
    return fusion_roots(instruction.called[0]) if instruction.opcode == "fusion" else (instruction,)


def traffic(instruction: Instruction, *, in_place: bool = False) -> Traffic:
    """What the kernel of an instruction moves: each operand and each result once, but of an operand only the parts that
    are picked out of it, and of a result that updates an operand `in_place` only the updates. Scalar constants are in
    the code."""
    if instruction.opcode == "fusion":
        fused = instruction.called[0]
        sources = [*instruction.operands]
        readers = [(parameter, [*parameter.users]) for parameter in fused.parameters]
    else:
        sources = list(dict.fromkeys(instruction.operands))
        readers = [(operand, [instruction]) for operand in sources]
    return Traffic(
        sum(
            _bytes_read(value, users, in_place=in_place)
            for source, (value, users) in zip(sources, readers, strict=True)
            if source.opcode != "constant" or not source.shape.is_scalar
        ),
        sum(_bytes_written(root, in_place=in_place) for root in _roots(instruction)),
    )


def _bytes_read(value: Instruction, users: Sequence[Instruction], *, in_place: bool) -> int:
    """What is read of a value, whatever it is called on the way."""
    if not value.shape.is_array:
        return value.shape.bytes
    read = 0
    for user in users:
        if in_place and user.opcode in _UPDATES and value is user.operands[0]:
            continue
        if user.opcode in _READS_PARTS and value not in user.operands[1:]:
            read += user.shape.size * value.shape.type.bytes
        elif is_renaming(user) and user.users:
            read += _bytes_read(user, [*user.users], in_place=in_place)
        else:
            read += value.shape.bytes
    return min(read, value.shape.bytes)


def _bytes_written(root: Instruction, *, in_place: bool) -> int:
    if in_place and root.opcode in _UPDATES:
        return sum(update.shape.bytes for update in _UPDATES[root.opcode](root))
    return root.shape.bytes
