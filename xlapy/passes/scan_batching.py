"""Scan batching: a product of what a loop reads step by step is one product, in front of the loop.

    b { ...  x = f32[100,16,128] get-tuple-element(s), index=0  w = f32[128,64] get-tuple-element(s), index=1
        x.i = f32[16,128] reshape(dynamic-slice(x, i, 0, 0))  p = f32[16,64] dot(x.i, w) ... }

becomes

    b { ...  y = f32[100,16,64] dot(x, w)  p = f32[16,64] reshape(dynamic-slice(y, i, 0, 0)) ... }

where x and w never change, so that `hoist-invariants` takes y out of the loop. One product of many rows is quicker than
many of a few: the matrices are packed once, and threads can share it. Recurrent networks multiply their inputs so.

The same element is read, wherever i is clamped to. It pays if the loop comes to most of the slices, and if the rows of
one step are few. Where the results of all steps would be a burden on memory, and a few steps are rows enough, the loop
becomes one over blocks of steps (`loop_blocks`), and each block has a product of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import ClassVar

from xlapy.hlo.attributes import DotDimensionNumbers
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.loop_counter import state_index, trip_count
from xlapy.hlo.progressions import Progression, progression
from xlapy.hlo.shape import Dims
from xlapy.passes import new
from xlapy.passes.base import ComputationPass, Record, pinned
from xlapy.passes.loop_blocks import BLOCK_ROWS, LITTLE_BYTES, MOST_BYTES, MOST_ROWS, Share, can_be_cut, cut_into_blocks
from xlapy.passes.loop_invariants import rewritable_loops, unchanged_elements
from xlapy.passes.loop_parts import Part, goes_through, part_of
from xlapy.passes.new import Value


@dataclass
class ScanBatching(ComputationPass):
    name: ClassVar[str] = "batch-scans"
    ops: ClassVar[Set[str]] = frozenset({"while"})

    def run_on(self, computation: Computation) -> bool:
        changed = False
        for loop in rewritable_loops(computation):
            changed = self._batch(loop) or changed
        return changed

    def _batch(self, loop: Instruction) -> bool:
        trips = trip_count(loop)
        products = [] if trips is None else _products(loop, trips)
        length = trips and _length_of_block(loop, products, trips)
        if trips and length:
            what = f"one product for every {length} steps of {loop.name}"
            cut_into_blocks(loop, trips, length, [_share(product, length, trips) for product in products])
        else:
            what = f"one product for all steps of {loop.name}"
            products = [product for product in products if product.bytes <= MOST_BYTES]
            for product in products:
                _replace(product)
        self.records += [Record.of(product.dot, True, what) for product in products]
        return bool(products)


@dataclass(frozen=True, slots=True)
class _Product:
    """A dot of a part of what never changes, by its operand `side`, with something else that never changes."""

    dot: Instruction
    side: int
    part: Part
    index: Progression | None  # of the part

    @property
    def steps(self) -> int:
        return self.part.count

    @property
    def bytes(self) -> int:
        """Of the products of all parts."""
        return self.steps * self.dot.shape.bytes

    @property
    def rows(self) -> int:
        numbers: DotDimensionNumbers = self.dot.attributes["dimension_numbers"]
        shape = self.dot.operands[self.side].shape
        free = numbers.rhs_free(shape.rank) if self.side else numbers.lhs_free(shape.rank)
        return math.prod(shape.dims[dim] for dim in free)


def _products(loop: Instruction, trips: int) -> list[_Product]:
    """The dots of the loop's body that may read a part of a larger product, where that pays."""
    body = loop.called[1]
    unchanged, fixed = unchanged_elements(loop), pinned(body)
    found = []
    for dot in body.post_order():
        if dot.opcode != "dot" or dot in fixed:
            continue
        for side in (0, 1):
            part, other = part_of(dot.operands[side]), dot.operands[1 - side]
            if part is None or not {state_index(part.whole, body), state_index(other, body)} <= unchanged:
                continue
            product = _Product(dot, side, part, progression(part.index, loop))
            if 2 * trips > product.steps and product.rows <= MOST_ROWS:
                found.append(product)
                break
    return found


def _length_of_block(loop: Instruction, products: Sequence[_Product], trips: int) -> int | None:
    """How many steps share a product; None if all do."""
    if sum(product.bytes for product in products) <= LITTLE_BYTES or not can_be_cut(loop):
        return None
    rows = min(max(product.rows, 1) for product in products)
    blocks = -(-trips // -(-BLOCK_ROWS // rows))
    if blocks < 2 or not all(goes_through(product.index, trips, product.steps) for product in products):
        return None
    length = -(-trips // blocks)
    return length if length * max(product.dot.shape.bytes for product in products) <= MOST_BYTES else None


def _replace(product: _Product) -> None:
    """Puts a slice of the product of the whole in the place of the product of the slice."""
    dot, part = product.dot, product.part
    operands = [*dot.operands]
    operands[product.side] = part.whole
    whole = _product_of(product, operands)
    step = _step_of(product, whole, part.index)
    replacement, _ = new.materialize(step, dot.parent, dot)
    dot.parent.replace(dot, replacement)


def _product_of(product: _Product, operands: Sequence[Value]) -> new.New:
    """The dot of all parts of an operand at once."""
    dot, side, part = product.dot, product.side, product.part
    numbers, place = _numbers_of_whole(dot, side, part)
    dims = [*dot.shape.dims]
    dims.insert(place, operands[side].shape.dims[part.dim])
    return new.op("dot", operands, shape=dot.shape.with_dims(dims), **{**dot.attributes, "dimension_numbers": numbers})


def _step_of(product: _Product, whole: Value, index: Value) -> Value:
    """The part of a larger product that belongs to the slice at `index`."""
    dot = product.dot
    _, place = _numbers_of_whole(dot, product.side, product.part)
    dims = [*whole.shape.dims]
    indices: list[Value] = [new.filled(0, index.shape)] * len(dims)
    indices[place] = index
    dims[place] = 1
    step = new.op("dynamic-slice", [whole, *indices], slice_sizes=tuple(dims))
    return new.reshaped(step, dot.shape.dims)


def _share(product: _Product, length: int, trips: int) -> Share:
    """What a block of steps has of a product: that of its slices, and the number of the first of these."""
    dot, side, part = product.dot, product.side, product.part
    index, index_type = product.index, part.index.shape.type
    assert index is not None

    def make(needed: Sequence[Instruction], done: Instruction) -> list[Instruction]:
        whole, other = needed
        first = index.first - (length - 1 if index.step < 0 else 0)
        move = new.add if index.step > 0 else new.subtract
        start: Value = move(new.number(first, done), done) if first or index.step < 0 else done
        if trips % length:  # the last block reaches back to be full
            start = new.clamp(new.number(0, done), start, new.number(product.steps - length, done))
        start, _ = new.materialize(new.converted(start, index_type), done.parent, dot)
        starts: list[Value] = [new.number(0, start)] * whole.shape.rank
        starts[part.dim] = start
        sizes = [*whole.shape.dims]
        sizes[part.dim] = length
        block = new.op("dynamic-slice", [whole, *starts], slice_sizes=tuple(sizes))
        product_of_block = _product_of(product, [block, other] if side == 0 else [other, block])
        return [new.materialize(product_of_block, done.parent, dot)[0], start]

    def use(made: Sequence[Instruction], operands: Sequence[Instruction]) -> Instruction:
        whole, start = made
        index = operands[side].operands[0].operands[1 + part.dim]
        step = _step_of(product, whole, new.subtract(index, start))
        return new.materialize(step, whole.parent, dot)[0]

    return Share(dot, (part.whole, dot.operands[1 - side]), make, use)


def _numbers_of_whole(dot: Instruction, side: int, part: Part) -> tuple[DotDimensionNumbers, int]:
    """The dimension numbers of the product of the whole, and which of its dimensions counts the slices."""
    numbers: DotDimensionNumbers = dot.attributes["dimension_numbers"]

    def moved(dims: Dims) -> Dims:
        return tuple(dim + (dim >= part.dim) for dim in dims)

    left, right = (operand.shape.rank for operand in dot.operands)
    batch = len(numbers.lhs_batch)
    if side == 0:
        numbers = replace(numbers, lhs_contracting=moved(numbers.lhs_contracting), lhs_batch=moved(numbers.lhs_batch))
        return numbers, batch + numbers.lhs_free(left + 1).index(part.dim)
    numbers = replace(numbers, rhs_contracting=moved(numbers.rhs_contracting), rhs_batch=moved(numbers.rhs_batch))
    return numbers, batch + len(numbers.lhs_free(left)) + numbers.rhs_free(right + 1).index(part.dim)
