"""Packing for loops: a matrix that every step of a loop multiplies by is brought into strips once, in front of it.

    b { ...  w = f32[512,2048] get-tuple-element(s), index=1
        p = f32[4,2048] dot(h, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}  ... }

becomes

    b { ...  r = f32[512,32,64] reshape(w)  v = f32[32,512,64] transpose(r), dimensions={1,0,2}
        q = f32[4,32,64] dot(h, v), lhs_contracting_dims={1}, rhs_contracting_dims={1}
        p = f32[4,2048] reshape(q)  ... }

where v is one more element of the state, made in front of the loop, that never changes. A strip of some columns lies in
one piece, as the tiles of a product read it; else each step would copy the strips of a large matrix, or turn round one
that is stored by columns.

It pays where steps are many and have few rows, and where the library would not find the matrix as good as packed: rows
of one that the second-level cache holds are. The memory it takes is the price, as much as the matrix has.

Those of a caller's array, unless each vector of them may lie across two cache lines: there such a matrix is copied as
it is, to where lines begin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import ClassVar

from xlapy.hlo.attributes import DotDimensionNumbers
from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.loop_counter import mean_trips, state_index, trip_count
from xlapy.hlo.matrix_products import KINDS_IN_MEMORY, library_product
from xlapy.passes import new
from xlapy.passes.base import Pass, Record, pinned, program_computations
from xlapy.passes.loop_invariants import carry, is_rewritable, unchanged_elements
from xlapy.passes.new import Value

LEAST_STEPS = 8
"""Packing takes about as long as one step saves."""

UNKNOWN_STEPS = 2
"""Of a loop that does not say how many it has."""

LEAST_STEPS_OF_COPY = 16
"""A copy of what lies well already is little then."""

MOST_BYTES_OF_COPY = 1 << 17
"""Of a matrix that is only moved: the memory of larger ones is felt beside what else a loop needs."""

STRIP_BYTES = 256
"""Of a row of a strip: as wide as the widest tiles."""

NEAR_BYTES = 1 << 20
"""What a second-level cache holds; rows of a larger matrix are copied, or read again from further away."""

FEW_ROWS = 8
"""Of a step: with more, what it takes to copy rows of a large matrix is little beside the product, and not worth the
memory. With no more, a large matrix by columns is read as it is, unless it is in strips."""

MOST_ROWS = 128
"""Of a step: with more, rows of a matrix by columns that is turned round are as good as strips, each of which would be
multiplied by all of them."""

MOST_BYTES = 32 << 20
"""Of one matrix, that may take memory twice."""


@dataclass
class LoopPacking(Pass):
    name: ClassVar[str] = "pack-for-loops"
    ops: ClassVar[Set[str]] = frozenset({"while"})

    def run(self, module: HloModule) -> bool:
        computations = program_computations(module)
        bodies = {loop.called[1] for computation in computations for loop in _loops(computation)}
        packed = [self._pack(computation) for computation in computations if computation not in bodies]
        return any(packed)

    def _pack(self, computation: Computation, around: Sequence[Instruction] = ()) -> list[Instruction]:
        """Packs for the loops of a computation, which is the body of the last of those `around` it, the inner ones
        first; the packed matrices that it makes now."""
        made: list[Instruction] = []
        fixed = pinned(computation)
        for loop in _loops(computation):
            of_inner_loops = self._pack(loop.called[1], [*around, loop])
            if loop in fixed or not is_rewritable(loop):
                made += of_inner_loops
                continue
            packed = [matrix for matrix in of_inner_loops if _never_changes(_source(matrix), loop)]
            packed += self._packed_by(loop, around)
            if packed:
                made += carry(loop, packed)
        return made

    def _packed_by(self, loop: Instruction, around: Sequence[Instruction]) -> list[Instruction]:
        """Makes products of the body read packed matrices, which are made there for now; what they are."""
        body = loop.called[1]
        fixed = pinned(body)
        packed: dict[tuple[Instruction, int], Instruction] = {}
        for dot in body.post_order():
            if dot.opcode != "dot" or dot in fixed or not _never_changes(dot.operands[1], loop):
                continue
            width, steps = _width_of_strips(dot), _steps(dot.operands[1], [*around, loop])
            is_copied = width is None and steps >= LEAST_STEPS_OF_COPY and _may_be_split(dot, [*around, loop])
            if not is_copied and (width is None or steps < LEAST_STEPS):
                continue
            matrix, depth = dot.operands[1], _contracted(dot)
            if (matrix, depth) not in packed:
                better = new.copy(matrix) if width is None else _in_strips(matrix, depth, width)
                packed[matrix, depth], _ = new.materialize(better, body, dot)
            replacement, _ = new.materialize(_product(dot, packed[matrix, depth]), body, dot)
            verb = "copied" if is_copied else "packed"
            reason = f"{matrix.shape} is {verb} once for {steps} steps, which takes {matrix.shape.bytes:,} bytes"
            self.records.append(Record.of(dot, True, reason))
            body.replace(dot, replacement)
            body.remove([dot])
        return list(packed.values())


def _loops(computation: Computation) -> list[Instruction]:
    return [instruction for instruction in computation.post_order() if instruction.opcode == "while"]


def _never_changes(matrix: Instruction, loop: Instruction) -> bool:
    """Whether this is an element of the loop's state that its body hands on."""
    return state_index(matrix, loop.called[1]) in unchanged_elements(loop)


def _steps(matrix: Instruction, loops: Sequence[Instruction]) -> int:
    """How often, about, the body of the last of nested loops runs while `matrix`, which it reads, stays as it is."""
    *around, loop = loops
    trips, index = trip_count(loop), state_index(matrix, loop.called[1])
    assert index is not None
    if trips is None and around:
        trips = int(mean_trips(loop, around[-1]) or UNKNOWN_STEPS)
    steps = UNKNOWN_STEPS if trips is None else trips
    source = loop.operands[0].operands[index]
    return steps * _steps(source, around) if around and _never_changes(source, around[-1]) else steps


def _may_be_split(dot: Instruction, loops: Sequence[Instruction]) -> bool:
    """Whether the body of the last of nested loops reads vectors of an array of the caller's, which begins anywhere,
    in a matrix that is small enough to be there twice."""
    matrix, call = dot.operands[1], library_product(dot)
    if call is None or call.kind not in KINDS_IN_MEMORY or matrix.shape.rank != 2:
        return False
    if matrix.shape.bytes > MOST_BYTES_OF_COPY:
        return False
    numbers: DotDimensionNumbers = dot.attributes["dimension_numbers"]
    is_by_rows = not numbers.lhs_batch and numbers.rhs_contracting == (0,)
    return is_by_rows and 1 < call.sizes["m"] <= MOST_ROWS and call.sizes["n"] > 1 and _is_of_caller(matrix, loops)


def _is_of_caller(matrix: Instruction, loops: Sequence[Instruction]) -> bool:
    """Whether an element of the state of the last of nested loops, which never changes there, is a parameter."""
    *around, loop = loops
    index = state_index(matrix, loop.called[1])
    assert index is not None
    source = loop.operands[0].operands[index]
    if around:
        return _never_changes(source, around[-1]) and _is_of_caller(source, around)
    return source.opcode == "parameter"


def _contracted(dot: Instruction) -> int:
    """The contracted dimension of the right side."""
    numbers: DotDimensionNumbers = dot.attributes["dimension_numbers"]
    return numbers.rhs_contracting[0]


def _width_of_strips(dot: Instruction) -> int | None:
    """Columns of a strip, maybe all there are; None where packing does not pay."""
    matrix, call = dot.operands[1].shape, library_product(dot)
    numbers: DotDimensionNumbers = dot.attributes["dimension_numbers"]
    if call is None or call.kind not in KINDS_IN_MEMORY or numbers.lhs_batch or matrix.rank != 2:
        return None
    if len(numbers.rhs_contracting) != 1 or matrix.bytes > MOST_BYTES:
        return None
    sizes: Mapping[str, int] = call.sizes
    is_by_rows, is_large = numbers.rhs_contracting == (0,), matrix.bytes > NEAR_BYTES
    if 1 in (sizes["m"], sizes["n"]) and not (is_by_rows and is_large and sizes["n"] > 1):
        return None
    if is_by_rows and not (is_large and sizes["m"] <= FEW_ROWS):
        return None
    columns, width = sizes["n"], STRIP_BYTES // matrix.type.bytes
    if columns % width == 0 and sizes["m"] <= MOST_ROWS:
        return width
    is_good_by_rows = not is_large or sizes["m"] > FEW_ROWS
    return columns if not is_by_rows and is_good_by_rows else None


def _in_strips(matrix: Instruction, depth: int, width: int) -> Value:
    """The matrix as strips of `width` columns, each by rows; `depth` is its dimension that is contracted."""
    steps, columns = matrix.shape.dims[depth], matrix.shape.dims[1 - depth]
    if width == columns:
        return new.transpose(matrix, permutation=(1, 0))
    cut = (columns // width, width)
    dims, permutation = ((steps, *cut), (1, 0, 2)) if depth == 0 else ((*cut, steps), (0, 2, 1))
    return new.transpose(new.reshaped(matrix, dims), permutation=permutation)


def _source(packed: Instruction) -> Instruction:
    """What a packed matrix is made of."""
    (operand,) = packed.operands
    return operand.operands[0] if operand.opcode == "reshape" else operand


def _product(dot: Instruction, packed: Instruction) -> Value:
    """The product with a packed matrix, in the dimensions of that with the matrix itself."""
    numbers: DotDimensionNumbers = dot.attributes["dimension_numbers"]
    if packed.shape.rank == 2:
        return new.like(dot, [dot.operands[0], packed], dimension_numbers=replace(numbers, rhs_contracting=(0,)))
    strips, _, width = packed.shape.dims
    return new.reshaped(
        new.op(
            "dot",
            [dot.operands[0], packed],
            shape=dot.shape.with_dims((*dot.shape.dims[:-1], strips, width)),
            **{**dot.attributes, "dimension_numbers": replace(numbers, rhs_contracting=(1,))},
        ),
        dot.shape.dims,
    )
