"""Streaming attention: the softmax of scores and its product with values, block of keys by block of keys.

    scores = f32[n,m] dot(q, k)
    e = exponential(scores - max(scores))
    ROOT o = f32[n,d] dot(e / sum(e), v)

becomes

    ROOT o = f32[n,d] divide(weighted, sums)

behind a while that sees `block` keys at a time: where a block has a new maximum, what was summed so far is scaled down
to it. No array of n x m elements exists any more. Sums are made in another order, so last bits may differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

import xlapy
from xlapy import ops
from xlapy.hlo.attributes import DotDimensionNumbers
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.patterns import P, match, number_of, variables
from xlapy.passes.base import ComputationPass, Record, pinned

q, k, v, scores, scale, e, d, row, into, over = variables("q k v scores scale e d row into over")

ATTENTION = P.dot(
    P.divide(
        e.where(P.exponential(P.subtract(scores, P.broadcast(P.reduce(scores, P.number(-np.inf), dimensions=row))))),
        P.broadcast(P.reduce(e, P.number(0), dimensions=row), dimensions=into),
    ),
    v,
    dimension_numbers=over,
)
SCALED = P.multiply(P.dot(q, k, dimension_numbers=d), P.number(scale))
PLAIN = P.dot(q, k, dimension_numbers=d)


@dataclass(frozen=True, slots=True)
class Attention:
    """What was recognized: batches of queries, keys and values, and the factor of the scores."""

    queries: Instruction
    keys: Instruction
    values: Instruction
    factor: float


@dataclass
class StreamingAttention(ComputationPass):
    """`block` is how many keys are seen at a time; fewer than two blocks are not worth a loop."""

    name: ClassVar[str] = "streaming-attention"

    block: int = 128

    def run_on(self, computation: Computation) -> bool:
        changed = False
        fixed = pinned(computation)
        for instruction in computation.post_order():
            found = recognized(instruction) if instruction.opcode == "dot" and instruction not in fixed else None
            if found is None:
                continue
            keys = found.keys.shape.dims[-2]
            if keys % self.block or keys < 2 * self.block:
                self.records.append(
                    Record.of(instruction, False, f"{keys} keys are not several blocks of {self.block}")
                )
                continue
            self.records.append(Record.of(instruction, True, f"attention over {keys} keys, {self.block} at a time"))
            streamed = streaming(found, self.block).computation
            result = computation.insert(streamed, [found.queries, found.keys, found.values])
            computation.replace(instruction, result)
            computation.remove([instruction])
            changed = True
        return changed


def recognized(root: Instruction) -> Attention | None:
    """The attention that ends in `root`: the dot of a softmax over rows of scores with values."""
    outer = match(ATTENTION, root)
    if outer is None:
        return None
    factor = 1.0
    inner = match(SCALED, outer["scores"])
    if inner is not None:
        factor = float(inner["scale"])
    else:
        inner = match(PLAIN, outer["scores"])
    if inner is None or root.shape.type.name != "f32" or outer["scores"].shape.type.name != "f32":
        return None
    rank = outer["scores"].shape.rank
    batch = tuple(range(rank - 2))
    along_rows = outer["row"] == (rank - 1,) and outer["into"] == tuple(range(rank - 1))
    of_keys = DotDimensionNumbers((rank - 1,), (rank - 1,), batch, batch)
    of_values = DotDimensionNumbers((rank - 1,), (rank - 2,), batch, batch)
    if not along_rows or inner["d"] != of_keys or outer["over"] != of_values or not _is_softmax(root):
        return None
    if not all(value.shape.type.name == "f32" for value in (inner["q"], inner["k"], outer["v"])):
        return None
    return Attention(inner["q"], inner["k"], outer["v"], factor)


def _is_softmax(root: Instruction) -> bool:
    """The two reduces of the pattern are a maximum and a sum, and the maximum goes back to the rows it came from."""
    quotient = root.operands[0]
    exponentials, sums = quotient.operands
    spread = exponentials.operands[0].operands[1]
    folds = [spread.operands[0], sums.operands[0]]
    kinds = [fold.called[0].root.opcode for fold in folds]
    starts = [number_of(fold.operands[1]) is not None for fold in folds]
    in_place = spread.attributes["dimensions"] == sums.attributes["dimensions"]
    return kinds == ["maximum", "add"] and all(starts) and in_place


def streaming(found: Attention, block: int) -> xlapy.XlaComputation:
    """The computation of (queries, keys, values) that sees `block` keys at a time, recorded with the builder."""
    b = xlapy.XlaBuilder("streaming_attention")
    queries, keys, values = (
        ops.Parameter(b, number, operand.shape.without_layout(), name)
        for number, (operand, name) in enumerate(
            [(found.queries, "queries"), (found.keys, "keys"), (found.values, "values")]
        )
    )
    *batch, rows, _ = found.queries.shape.dims
    count, width = found.keys.shape.dims[-2] // block, found.values.shape.dims[-1]
    lead = tuple(range(len(batch)))
    first = len(batch)  # the dimension of rows of queries, of keys, and of values

    def block_of(array: Any, index: Any) -> Any:
        sizes = [*array.shape.dims]
        sizes[first] = block
        starts = [np.int32(0)] * len(sizes)
        starts[first] = index * block
        return ops.DynamicSlice(array, starts, sizes)

    def spread(per_row: Any, size: int) -> Any:
        return ops.BroadcastInDim(per_row, (*batch, rows, size), (*lead, first))

    def body(state: Any) -> Any:
        index, q, k, v, best, sums, weighted = state
        near = ops.DotGeneral(q, block_of(k, index), (((first + 1,), (first + 1,)), (lead, lead))) * found.factor
        higher = ops.Max(best, near.reduce(-np.inf, ops.Max, (first + 1,)))
        kept = ops.Exp(best - higher)
        weights = ops.Exp(near - spread(higher, block))
        products = ops.DotGeneral(weights, block_of(v, index), (((first + 1,), (first,)), (lead, lead)))
        total = sums * kept + weights.reduce(0, ops.Add, (first + 1,))
        return index + 1, q, k, v, higher, total, weighted * spread(kept, width) + products

    lowest = np.full((*batch, rows), np.finfo(np.float32).min)  # not -inf: scores of -inf are then of weight 0
    start = [
        *(np.int32(0), queries, keys, values, lowest),
        *(np.zeros((*batch, rows), np.float32), np.zeros((*batch, rows, width), np.float32)),
    ]
    *_, sums, weighted = ops.While(lambda state: state[0] < count, body, start)
    return b.build(weighted / spread(sums, width))
