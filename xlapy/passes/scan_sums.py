"""Sums of products over the steps of a loop: one product for a block of steps, behind these.

    b { ...  g = f32[128,64] get-tuple-element(s), index=1  x = f32[100,16,128] get-tuple-element(s), index=2
        x.i = f32[16,128] reshape(dynamic-slice(x, i, 0, 0))  d = f32[16,64] ...
        p = f32[128,64] dot(x.i, d), lhs_contracting_dims={0}, rhs_contracting_dims={0}
        ROOT t = (...) tuple(i + 1, g + p, x, ...) }

becomes the body of a loop over, say, 20 steps, which keeps what would be multiplied

    b { ...  y = f32[20,16,64] get-tuple-element(s), index=3
        z = f32[20,16,64] dynamic-update-slice(y, reshape(d), step, 0, 0)
        ROOT t = (...) tuple(i + 1, g, x, ..., z, step + 1) }

in a loop over five blocks, each of which ends with

    g + dot(dynamic-slice(x, done, 0, 0), z), lhs_contracting_dims={0,1}, rhs_contracting_dims={0,1}

where x never changes. Gradients of weights that every step multiplies by are such sums. A product of few rows takes as
long to store its result, and to add it to what there is, as to multiply; a long one keeps its sums in registers. What
a block keeps is still in a cache when it ends.

It pays if the rows of one step are few, and less is kept of each step than its products have. The loop comes to one
part of x after the other; what is kept lies in the same order. All blocks are full: if the steps cannot be shared out
so, there is one block. Sums are in another order than the program has them in, as those of any product are; sums of
narrow floats, which each step rounds, stay.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import ClassVar

from xlapy.hlo.attributes import DotDimensionNumbers
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.loop_counter import state_index, trip_count
from xlapy.hlo.progressions import Progression, progression
from xlapy.hlo.shape import Dims, Shape
from xlapy.passes import new
from xlapy.passes.base import ComputationPass, Record
from xlapy.passes.loop_blocks import BLOCK_ROWS, COUNT, LITTLE_BYTES, MOST_BYTES, MOST_ROWS, can_be_cut, counting
from xlapy.passes.loop_invariants import remove_unused, replace_loop, rewritable_loops, unchanged_elements
from xlapy.passes.loop_parts import Part, goes_through, part_of
from xlapy.passes.new import Value

LEAST_STEPS = 4

FAR_FROM_BEST = 4
"""A block has not so many times more or fewer rows."""


@dataclass
class ScanSums(ComputationPass):
    name: ClassVar[str] = "sum-behind-scans"
    ops: ClassVar[Set[str]] = frozenset({"while"})

    def run_on(self, computation: Computation) -> bool:
        changed = False
        for loop in rewritable_loops(computation):
            if can_be_cut(loop):
                changed = self._sum(loop) or changed
        return changed

    def _sum(self, loop: Instruction) -> bool:
        trips = trip_count(loop)
        if trips is None or trips < LEAST_STEPS:
            return False
        sums = [*_sums(loop, trips)]
        stacks = [*dict.fromkeys(term.stack for total in sums for term in total.terms if term.stack is not None)]
        made = sum(term.dot.shape.bytes for total in sums for term in total.terms)
        if not sums or _kept_bytes(stacks) > made:
            return False
        length = _length_of_block(trips, sums, stacks)
        if length * _kept_bytes(stacks) > MOST_BYTES:
            return False
        names = ", ".join(term.dot.name for total in sums for term in total.terms)
        self.records.append(Record.of(loop, True, f"one product for every {length} steps of {names}"))
        _replace(loop, trips, length, sums, stacks)
        return True


@dataclass(frozen=True, slots=True)
class _Stack:
    """A value of the body that is kept of each step, in the order of the parts that it is multiplied with."""

    value: Instruction
    order: Progression


@dataclass(frozen=True, slots=True)
class _Term:
    """A dot of a part of what never changes, by its operand `side`, and of what is kept of each step, or a part too."""

    dot: Instruction
    side: int
    part: Part
    order: Progression  # of the parts
    stack: _Stack | None
    other: Part | None

    @property
    def rows(self) -> int:
        """That a step adds up."""
        return _rows(self.dot)


@dataclass(frozen=True, slots=True)
class _Sum:
    """The element `index` of the state, to which each step adds some products."""

    index: int
    terms: tuple[_Term, ...]


def _sums(loop: Instruction, trips: int) -> Iterator[_Sum]:
    """The elements of the state that are nothing but sums of products."""
    condition, body = loop.called
    asked = {state_index(value, condition) for value in condition}
    for index, following in enumerate(body.root.operands):
        products = None if index in asked else _products(body, index, following)
        terms = [_term(loop, trips, product) for product in products or ()]
        if terms and None not in terms:
            yield _Sum(index, tuple(term for term in terms if term is not None))


def _products(body: Computation, index: int, total: Instruction) -> list[Instruction] | None:
    """The dots whose sum with an element of the state is `total`; None if it is no such sum, or is needed otherwise."""
    if not total.shape.is_array or total.shape.type.is_narrow_float or total.opcode != "add":
        return None
    carried: list[Instruction] = []
    products: list[Instruction] = []
    pending = [total]
    while pending:
        value = pending.pop()
        if len(value.users) != 1 or [*body.root.operands].count(value) != (value is total):
            return None
        if value.opcode == "add":
            pending += reversed(value.operands)
        elif state_index(value, body) == index:
            carried.append(value)
        elif value.opcode == "dot":
            products.append(value)
        else:
            return None
    readers = [value for value in body if state_index(value, body) == index]
    return products if len(carried) == 1 and readers == carried else None


def _term(loop: Instruction, trips: int, dot: Instruction) -> _Term | None:
    """How to make the product of all steps; what has to be kept for it is as small as it can be."""
    if _rows(dot) > MOST_ROWS or not dot.shape.is_static:
        return None
    parts = [_part_in_order(loop, trips, operand) for operand in dot.operands]
    found = []
    for side, (one, other) in enumerate(zip(parts, reversed(parts), strict=True)):
        if one is None:
            continue
        part, order = one
        if other is not None and other[1] == order:
            return _Term(dot, side, part, order, None, other[0])
        found.append(_Term(dot, side, part, order, _Stack(dot.operands[1 - side], order), None))
    return min(found, key=lambda term: term.dot.operands[1 - term.side].shape.bytes, default=None)


def _rows(dot: Instruction) -> int:
    numbers: DotDimensionNumbers = dot.attributes["dimension_numbers"]
    dims = dot.operands[0].shape.dims
    return math.prod(dims[dim] for dim in numbers.lhs_contracting)


def _part_in_order(loop: Instruction, trips: int, value: Instruction) -> tuple[Part, Progression] | None:
    """What never changes, parts of which the loop reads one after the other."""
    part, body = part_of(value), loop.called[1]
    if part is None or state_index(part.whole, body) not in unchanged_elements(loop):
        return None
    index = progression(part.index, loop)
    return (part, index) if index is not None and goes_through(index, trips, part.count) else None


def _length_of_block(trips: int, sums: Sequence[_Sum], stacks: Sequence[_Stack]) -> int:
    """How many steps share a product: all of them, or a divisor of their number."""
    if trips * _kept_bytes(stacks) <= LITTLE_BYTES:
        return trips
    best = BLOCK_ROWS / min(term.rows for total in sums for term in total.terms)
    lengths = [length for length in range(2, trips) if trips % length == 0]
    near = [length for length in lengths if best / FAR_FROM_BEST <= length <= best * FAR_FROM_BEST]
    return min(near, key=lambda length: max(length / best, best / length), default=trips)


def _kept_bytes(stacks: Sequence[_Stack]) -> int:
    return sum(stack.value.shape.bytes for stack in stacks)


def _replace(loop: Instruction, trips: int, length: int, sums: Sequence[_Sum], stacks: Sequence[_Stack]) -> None:
    """Replaces a loop by one over blocks of `length` steps, each of which ends with the products of its steps."""
    computation, (init,) = loop.parent, loop.operands
    shapes = [stack.value.shape.with_dims((length, *stack.value.shape.dims)) for stack in stacks]
    empty = [new.materialize(new.filled(0, shape), computation, loop)[0] for shape in shapes]
    done = computation.add("constant", literal=Literal(0, COUNT))
    state = computation.add("tuple", [*init.operands, *empty, done])
    condition = counting(loop.called[0].name, state.shape, trips)
    body = _over_blocks(loop, state.shape, length, sums, stacks)
    blocks = computation.add("while", [state], called=[condition, body], name=loop.name, metadata=loop.metadata)
    replace_loop(loop, blocks)


def _over_blocks(
    loop: Instruction, shape: Shape, length: int, sums: Sequence[_Sum], stacks: Sequence[_Stack]
) -> Computation:
    """The body of the loop over blocks."""
    outer = Computation(loop.called[1].name)
    parameter = outer.add("parameter", shape=shape, name="state", number=0)
    *elements, done = outer.unpacked(parameter)
    inner = outer.add("tuple", [*elements, outer.add("constant", literal=Literal(0, COUNT))])
    condition = counting(f"{loop.called[0].name}.block", inner.shape, length)
    body = _over_steps(loop, inner.shape, length, sums, stacks)
    steps = outer.add("while", [inner], called=[condition, body], name=loop.name, metadata=loop.metadata)
    summed, unchanged = {total.index: total for total in sums}, unchanged_elements(loop)
    results = []
    for index, element in enumerate(elements):
        if index in summed:
            kept = _Kept(elements, done, steps, len(elements) - len(stacks), length, stacks)
            results.append(kept.added(element, summed[index]))
        else:
            is_new = index not in unchanged
            results.append(outer.add("get-tuple-element", [steps], index=index) if is_new else element)
    size = outer.add("constant", literal=Literal(length, COUNT))
    outer.set_root(outer.add("tuple", [*results, outer.add("add", [done, size])]))
    return outer


def _over_steps(
    loop: Instruction, shape: Shape, length: int, sums: Sequence[_Sum], stacks: Sequence[_Stack]
) -> Computation:
    """A copy of the body that hands on the sums as they are, keeps the stacks, and counts its steps."""
    body = loop.called[1]
    (state,) = body.parameters
    inner = Computation(f"{body.name}.block")
    parameter = inner.add("parameter", shape=shape, name=state.name, number=0)
    copies: dict[Instruction, Instruction] = {state: parameter}
    for instruction in body.post_order():
        if instruction is not state:
            copies[instruction] = inner.add_copy(instruction, [copies[operand] for operand in instruction.operands])
    results = [copies[result] for result in body.root.operands]
    for total in sums:
        results[total.index] = inner.add("get-tuple-element", [parameter], index=total.index)
    first = len(results)
    step = inner.add("get-tuple-element", [parameter], index=first + len(stacks))
    for number, stack in enumerate(stacks, start=first):
        old = inner.add("get-tuple-element", [parameter], index=number)
        results.append(_with_row(old, copies[stack.value], step, length, stack.order))
    one = inner.add("constant", literal=Literal(1, COUNT))
    inner.set_root(inner.add("tuple", [*results, inner.add("add", [step, one])], name=body.root.name))
    remove_unused(inner)
    return inner


def _with_row(
    stack: Instruction, value: Instruction, step: Instruction, length: int, order: Progression
) -> Instruction:
    """The stack with the value of this step, in the order of the parts that it is multiplied with."""
    place: Value = step if order.step > 0 else new.subtract(new.number(length - 1, step), step)
    row = new.reshaped(value, (1, *value.shape.dims))
    places: list[Value] = [place, *[new.number(0, step)] * value.shape.rank]
    return new.materialize(new.dynamic_update_slice(stack, row, *places), stack.parent, value)[0]


@dataclass(frozen=True, slots=True)
class _Kept:
    """What there is behind the steps of a block: the elements of the state, the number of steps before the block, and
    the loop over its steps, the stacks in whose state begin with element `first`."""

    elements: Sequence[Instruction]
    done: Instruction
    steps: Instruction
    first: int
    length: int
    stacks: Sequence[_Stack]

    def added(self, element: Instruction, total: _Sum) -> Instruction:
        """An element of the state with the products of the block."""
        value: Value = element
        for term in total.terms:
            value = new.add(value, self._product(term))
        return new.materialize(value, element.parent, total.terms[0].dot)[0]

    def _product(self, term: _Term) -> Value:
        """Of all steps, which are one more contracted dimension, in front of the others."""
        values: list[Value] = [*term.dot.operands]
        dims = [0, 0]
        values[term.side], dims[term.side] = self._parts(term.part, term.order), term.part.dim
        if term.other is not None:
            values[1 - term.side], dims[1 - term.side] = self._parts(term.other, term.order), term.other.dim
        elif term.stack is not None:
            number = self.first + self.stacks.index(term.stack)
            values[1 - term.side] = self.steps.parent.add("get-tuple-element", [self.steps], index=number)
        numbers = _with_steps(term.dot.attributes["dimension_numbers"], *dims)
        return new.op("dot", values, shape=term.dot.shape, **{**term.dot.attributes, "dimension_numbers": numbers})

    def _parts(self, part: Part, order: Progression) -> Value:
        """Those that the block reads."""
        index: int = part.whole.attributes["index"]
        whole = self.elements[index]
        if part.count == self.length:
            return whole
        first = order.first - (self.length - 1 if order.step < 0 else 0)
        move = new.add if order.step > 0 else new.subtract
        start: Value = move(new.number(first, self.done), self.done) if first or order.step < 0 else self.done
        starts: list[Value] = [new.number(0, self.done)] * whole.shape.rank
        starts[part.dim] = start
        sizes = [*whole.shape.dims]
        sizes[part.dim] = self.length
        return new.op("dynamic-slice", [whole, *starts], slice_sizes=tuple(sizes))


def _with_steps(numbers: DotDimensionNumbers, left: int, right: int) -> DotDimensionNumbers:
    """Dimension numbers of operands that have one more dimension, which is contracted, too."""

    def moved(dims: Dims, by: int) -> Dims:
        return tuple(dim + (dim >= by) for dim in dims)

    return replace(
        numbers,
        lhs_contracting=(left, *moved(numbers.lhs_contracting, left)),
        rhs_contracting=(right, *moved(numbers.rhs_contracting, right)),
        lhs_batch=moved(numbers.lhs_batch, left),
        rhs_batch=moved(numbers.rhs_batch, right),
    )
