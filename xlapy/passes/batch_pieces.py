"""Batches in pieces: what convolutions make of a large batch is made, used up and forgotten, a few images at a time.

    c = f32[64,64,64,32] convolution(x, k)  m = f32[64,64,64,32] maximum(c, zeros)
    ROOT p = f32[64,32,32,32] reduce-window(m, low), window={size=1x2x2x1 stride=1x2x2x1}

becomes

    ROOT p = the last element of the state of a loop, which for i = 0, 8, 16, ...
        x.i = f32[8,64,64,3] dynamic-slice(x, i, 0, 0, 0)  c.i = f32[8,64,64,32] convolution(x.i, k)  ...
        puts p.i = f32[8,32,32,32] reduce-window(m.i, low) at i

The first dimension of all these arrays counts what is computed alike and by itself. A whole array between two kernels
is written to memory and read again; a piece of it is still in a cache, and takes little room. The last piece begins
early enough to be as large as the others, so some of it may be computed twice, with the same result.

It pays if what lies between is large, what comes out is not, and the weights, which every piece needs, are few.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from typing import ClassVar

from xlapy.hlo.attributes import (
    NO_WINDOW_DIMENSION,
    ComparisonDirection,
    ConvolutionDimensionNumbers,
    PaddingDimension,
)
from xlapy.hlo.element_types import S32
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.ops import OPS, Trait
from xlapy.hlo.shape import Shape
from xlapy.passes.base import ComputationPass, Record, pinned, supplant
from xlapy.support.registry import Registry

LEAST_BYTES = 16 << 20
"""Of what is no longer kept whole. What a cache holds need not be in pieces."""

PIECE_BYTES = 4 << 20
"""Of what is kept instead, while there is one image in it at least: enough work for all cores, and not too much for
their caches."""

LEAST_PIECES = 4
USES_OF_WEIGHTS = 16
"""A convolution has at least so many times more bytes of activations than of weights, which each piece reads."""

Places = Callable[[Instruction], tuple[int, ...] | None]
"""Which operands of an instruction have its first dimension, index by index; the others are the same for all of them.
None where results do not depend on one index each."""

PLACES: Registry[Places] = Registry("operands with the first dimension of the result", OPS)


def places(instruction: Instruction) -> tuple[int, ...] | None:
    """Like `Places`, of any op."""
    shape = instruction.shape
    if not (shape.is_array and shape.rank and shape.is_static):
        return None
    if Trait.ELEMENTWISE in instruction.spec.traits and not instruction.called:
        return tuple(place for place, operand in enumerate(instruction.operands) if operand.shape.rank)
    find = PLACES.get(instruction.opcode)
    return find(instruction) if find else None


@PLACES.register("convolution")
def _of_convolution(convolution: Instruction) -> tuple[int, ...] | None:
    numbers: ConvolutionDimensionNumbers = convolution.attributes["dimension_numbers"]
    is_first = numbers.input_batch == numbers.output_batch == 0
    return (0,) if is_first and convolution.attributes["batch_group_count"] == 1 else None


@PLACES.register("reduce-window")
def _of_reduce_window(fold: Instruction) -> tuple[int, ...] | None:
    return (0,) if fold.attributes["window"].dimensions[0] == NO_WINDOW_DIMENSION else None


@PLACES.register("reduce")
def _of_reduce(fold: Instruction) -> tuple[int, ...] | None:
    return (0,) if 0 not in fold.attributes["dimensions"] else None


@PLACES.register("transpose")
def _of_transpose(transpose: Instruction) -> tuple[int, ...] | None:
    return (0,) if transpose.attributes["permutation"][0] == 0 else None


@PLACES.register("reshape")
def _of_reshape(reshape: Instruction) -> tuple[int, ...] | None:
    return (0,) if reshape.operands[0].shape.dims[:1] == reshape.shape.dims[:1] else None


@PLACES.register("broadcast")
def _of_broadcast(broadcast: Instruction) -> tuple[int, ...] | None:
    dimensions = broadcast.attributes["dimensions"]
    if 0 not in dimensions:
        return ()
    is_same = dimensions[0] == 0 and broadcast.operands[0].shape.dims[0] == broadcast.shape.dims[0]
    return (0,) if is_same else None


@PLACES.register("pad")
def _of_pad(pad: Instruction) -> tuple[int, ...] | None:
    return (0,) if pad.attributes["dimensions"][0] == PaddingDimension() else None


@PLACES.register("concatenate")
def _of_concatenate(concatenate: Instruction) -> tuple[int, ...] | None:
    return tuple(range(len(concatenate.operands))) if concatenate.attributes["dimension"] else None


@PLACES.register("reverse")
def _of_reverse(reverse: Instruction) -> tuple[int, ...] | None:
    return (0,) if 0 not in reverse.attributes["dimensions"] else None


@dataclass
class BatchPieces(ComputationPass):
    name: ClassVar[str] = "batch-in-pieces"
    ops: ClassVar[Set[str]] = frozenset({"convolution"})

    def run_on(self, computation: Computation) -> bool:
        fixed, taken, changed = pinned(computation), set[Instruction](), False
        for seed in computation.post_order():
            if seed.opcode != "convolution" or seed in taken or seed in fixed or not _is_worth_its_weights(seed):
                continue
            region = _grown(seed, fixed)
            taken.update(region.members)
            piece = _size_of_piece(region)
            if piece is not None:
                reason = f"{len(region.members)} instructions in pieces of {piece} of {region.count}"
                self.records.append(Record.of(seed, True, reason))
                _Loop(computation, region, piece).replace()
                changed = True
        return changed


@dataclass
class _Region:
    """Instructions, operands first, whose first dimension is `count` and the same thing in all of them."""

    count: int
    members: dict[Instruction, None] = field(default_factory=dict)

    @property
    def results(self) -> list[Instruction]:
        """What others read."""
        return [i for i in self.members if i.is_root or any(user not in self.members for user in i.users)]

    @property
    def bytes_between(self) -> int:
        """Of what kernels of the region hand to each other, and nobody else reads."""
        kept = set(self.results)
        return sum(i.shape.bytes for i in self.members if i.opcode in _MADE and i not in kept)


_MADE = frozenset({"convolution", "reduce-window"})
"""Ops whose results the kernels behind them do not compute themselves."""


def _is_worth_its_weights(convolution: Instruction) -> bool:
    if places(convolution) != (0,):
        return False
    x, weights = (operand.shape for operand in convolution.operands)
    return USES_OF_WEIGHTS * weights.bytes <= x.bytes + convolution.shape.bytes


def _grown(seed: Instruction, fixed: set[Instruction]) -> _Region:
    """What depends on `seed` index by index, as far as nothing else of it does; then what only that depends on."""
    region = _Region(seed.shape.dims[0], {seed: None})
    members = region.members
    beyond: set[Instruction] = set()
    order = seed.parent.post_order()
    for instruction in order[order.index(seed) + 1 :]:
        if beyond.intersection(instruction.operands):
            beyond.add(instruction)
        elif not members.keys().isdisjoint(instruction.operands):
            if instruction not in fixed and _joins(instruction, region):
                members[instruction] = None
            else:
                beyond.add(instruction)
    for instruction in reversed(order):
        is_read_here = instruction.users and all(user in members for user in instruction.users)
        if is_read_here and not instruction.is_root and instruction not in fixed and _leads_into(instruction, region):
            members[instruction] = None
    region.members = {instruction: None for instruction in order if instruction in members}
    return _without_renamings(region)


def _without_renamings(region: _Region) -> _Region:
    """Leaves out reshapes at the end, so that pieces are put where they belong without another kernel."""
    for instruction in reversed([*region.members]):
        if instruction.opcode == "reshape" and not any(user in region.members for user in instruction.users):
            del region.members[instruction]
    return region


def _joins(instruction: Instruction, region: _Region) -> bool:
    """All that it reads of the region, it reads index by index."""
    found = places(instruction)
    if found is None or instruction.shape.dims[0] != region.count:
        return False
    if any(operand in region.members for place, operand in enumerate(instruction.operands) if place not in found):
        return False
    return instruction.opcode != "convolution" or _is_worth_its_weights(instruction)


def _leads_into(instruction: Instruction, region: _Region) -> bool:
    """It is read by the region index by index, and made so."""
    is_read_so = all(
        place in (places(user) or ())
        for user in instruction.users
        for place, operand in enumerate(user.operands)
        if operand is instruction
    )
    return is_read_so and bool(places(instruction)) and _joins(instruction, region)


def _size_of_piece(region: _Region) -> int | None:
    """How many indices of the first dimension a piece has; None if the region stays whole."""
    between = region.bytes_between
    out = sum(result.shape.bytes for result in region.results)
    if between < LEAST_BYTES or 2 * out > between:
        return None
    most = max(PIECE_BYTES * region.count // between, 1)
    pieces = -(-region.count // most)
    return -(-region.count // pieces) if pieces >= LEAST_PIECES else None


class _Loop:
    """The loop that takes the place of a region. Its state: a counter, what the region reads, and what it makes."""

    def __init__(self, computation: Computation, region: _Region, piece: int) -> None:
        self._computation = computation
        self._region = region
        self._piece = piece
        self._results = region.results
        self._sliced: dict[Instruction, None] = {}  # what the region reads, index by index
        self._whole: dict[Instruction, None] = {}  # what it reads for each piece
        for member in region.members:
            found = places(member) or ()
            for place, operand in enumerate(member.operands):
                if operand not in region.members:
                    self._read_one(operand, place in found)

    def _read_one(self, operand: Instruction, is_sliced: bool) -> None:
        if is_sliced and _repeats(operand):
            self._read_one(operand.operands[0], False)
        elif is_sliced:
            self._sliced[operand] = None
        elif not _is_number(operand):
            self._whole[operand] = None

    def replace(self) -> None:
        computation = self._computation
        zero = computation.add("constant", literal=Literal(0, _COUNTER))
        goals = [self._filled(result) for result in self._results]
        state = computation.add("tuple", [zero, *self._read, *goals])
        body = self._body(state.shape)
        loop = computation.add("while", [state], called=[self._condition(state.shape), body])
        first = len(state.operands) - len(goals)
        elements = {
            result: computation.add("get-tuple-element", [loop], index=index)
            for index, result in enumerate(self._results, start=first)
        }
        supplant(computation, elements)
        computation.remove(member for member in self._region.members if member not in elements)

    @property
    def _read(self) -> list[Instruction]:
        return list(dict.fromkeys([*self._sliced, *self._whole]))

    def _filled(self, result: Instruction) -> Instruction:
        """Where pieces of a result go."""
        zero = self._computation.add("constant", literal=Literal(0, Shape.scalar(result.shape.type)))
        return self._computation.add("broadcast", [zero], shape=result.shape, dimensions=())

    def _condition(self, state: Shape) -> Computation:
        condition = Computation("has_more_pieces")
        parameter = condition.add("parameter", shape=state, name="state", number=0)
        counter = condition.add("get-tuple-element", [parameter], index=0)
        count = condition.add("constant", literal=Literal(self._region.count, _COUNTER))
        condition.set_root(condition.add("compare", [counter, count], direction=ComparisonDirection.LT))
        return condition

    def _body(self, state: Shape) -> Computation:
        body = Computation("piece")
        parameter = body.add("parameter", shape=state, name="state", number=0)
        counter, *arrays = body.unpacked(parameter)
        read, goals = arrays[: len(self._read)], arrays[len(self._read) :]
        zero = body.add("constant", literal=Literal(0, _COUNTER))
        given = dict(zip(self._read, read, strict=True))
        pieces = {
            array: body.add(
                "dynamic-slice",
                [given[array], counter, *[zero] * (array.shape.rank - 1)],
                slice_sizes=(self._piece, *array.shape.dims[1:]),
            )
            for array in self._sliced
        }
        self._compute(body, pieces, given)
        new = [
            body.add("dynamic-update-slice", [goal, pieces[result], counter, *[zero] * (result.shape.rank - 1)])
            for goal, result in zip(goals, self._results, strict=True)
        ]
        step = body.add("constant", literal=Literal(self._piece, _COUNTER))
        body.set_root(body.add("tuple", [body.add("add", [counter, step]), *read, *new]))
        return body

    def _compute(
        self, body: Computation, pieces: dict[Instruction, Instruction], given: dict[Instruction, Instruction]
    ) -> None:
        """Adds the members for one piece to `pieces`; `given` is what they read whole."""

        def whole(operand: Instruction) -> Instruction:
            if operand not in given:
                given[operand] = body.add_copy(operand, [])
            return given[operand]

        def piece(operand: Instruction) -> Instruction:
            if operand not in pieces:
                pieces[operand] = self._copied(body, operand, [whole(operand.operands[0])])
            return pieces[operand]

        for member in self._region.members:
            found = places(member) or ()
            operands = [
                piece(operand) if place in found else whole(operand) for place, operand in enumerate(member.operands)
            ]
            pieces[member] = self._copied(body, member, operands)

    def _copied(self, body: Computation, member: Instruction, operands: Sequence[Instruction]) -> Instruction:
        """The member for one piece."""
        return body.add_copy(member, operands, member.shape.with_dim(0, self._piece))


_COUNTER = Shape.scalar(S32)


def _repeats(operand: Instruction) -> bool:
    """It is the same for each index, and made anew for each piece."""
    return operand.opcode == "broadcast" and places(operand) == ()


def _is_number(operand: Instruction) -> bool:
    return operand.opcode == "constant" and operand.shape.is_scalar
