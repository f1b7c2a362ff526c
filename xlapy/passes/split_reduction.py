"""Splitting of large folds with few results, so that all cores can share them.

    p = f32[8388608] parameter(0)
    ROOT r = f32[] reduce(p, zero), dimensions={0}, to_apply=add

becomes

    s = f32[64,131072] reshape(p)
    t = f32[64] reduce(s, identity), dimensions={1}, to_apply=add
    ROOT r = f32[] reduce(t, zero), dimensions={0}, to_apply=add

Only for one commutative, associative op, whose order of folding is free. The split depends on the shape alone, so the
result is the same for any number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.identities import identity_literal
from xlapy.passes.base import ComputationPass, pinned, replace_all

LEAST_BYTES = 1 << 20  # of the operand: some tens of microseconds of reading
FEW_RESULTS = 256  # with more, there is enough to hand out already
LEAST_FOLDED = 16  # elements of each partial fold, in all dimensions: with fewer, what is stored is no longer small
PARTS = range(128, 15, -1)  # how many partial folds there may be, the best first


@dataclass
class SplitReduction(ComputationPass):
    name: ClassVar[str] = "split-reduction"

    def run_on(self, computation: Computation) -> bool:
        fixed = pinned(computation)
        replacements = {
            instruction: split
            for instruction in computation.post_order()
            if instruction not in fixed and _is_worth_it(instruction) and (split := _split(instruction)) is not None
        }
        replace_all(computation, replacements)
        return computation.remove(replacements)


def _is_worth_it(instruction: Instruction) -> bool:
    if instruction.opcode != "reduce" or len(instruction.operands) != 2:
        return False
    return (
        instruction.operands[0].shape.bytes >= LEAST_BYTES
        and instruction.shape.size <= FEW_RESULTS
        and instruction.operands[0].shape.size >= LEAST_FOLDED * PARTS.start * instruction.shape.size
        and not instruction.shape.type.is_narrow_float  # partial folds would be rounded
        and identity_literal(instruction.called[0]) is not None
    )


def _split(reduce: Instruction) -> Instruction | None:
    """The same fold in two steps; None if its outermost dimension has no good divisor."""
    computation, (array, init) = reduce.parent, reduce.operands
    folded: tuple[int, ...] = tuple(sorted(reduce.attributes["dimensions"]))
    first, size = folded[0], array.shape.dims[folded[0]]
    if len(folded) == 1 or size < PARTS.stop:
        parts = next((count for count in PARTS if size % count == 0), None)
        if parts is None:
            return None
        dims = (*array.shape.dims[:first], parts, size // parts, *array.shape.dims[first + 1 :])
        array = computation.add("reshape", [array], shape=array.shape.with_dims(dims), metadata=reduce.metadata)
        folded = (first, first + 1, *(dim + 1 for dim in folded[1:]))
    literal = identity_literal(reduce.called[0])
    assert literal is not None
    identity = computation.add("constant", literal=literal)
    partial = computation.add(
        "reduce", [array, identity], called=reduce.called, dimensions=folded[1:], metadata=reduce.metadata
    )
    return computation.add(
        "reduce",
        [partial, init],
        called=reduce.called,
        dimensions=(first,),
        shape=reduce.shape,
        metadata=reduce.metadata,
    )
