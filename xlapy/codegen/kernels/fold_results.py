"""What kernels that fold do with each result: store it, or what is made from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xlapy.codegen.arrays import Array
from xlapy.codegen.element_graph import ElementGraph
from xlapy.codegen.indexing import Index, Indexing
from xlapy.codegen.registers import Element, rounded
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import fold_values


def store_results(
    ix: Indexing,
    fold: Instruction,
    roots: Sequence[Instruction],
    arrays: Mapping[Instruction, Array],
    outputs: Sequence[Array],
    index: Index,
    results: Sequence[Element],
) -> None:
    """Stores the results of `fold` at one index, or the `roots` that are made from them and from `arrays`."""
    leaves = fold.shape.leaves()
    stored = [rounded(ix.k, result, leaf.type) for result, leaf in zip(results, leaves, strict=True)]
    if [*roots] != [fold]:
        graph = ElementGraph(ix, arrays, {value: stored[_leaf(value)] for value in fold_values(fold)})
        stored = graph.values([(root, ix.reshaped(index, root.shape.dims)) for root in roots])
    for output, value in zip(outputs, stored, strict=True):
        output.store(ix, ix.reshaped(index, output.shape.dims), value)


def stored_results(fold: Instruction, roots: Sequence[Instruction]) -> list[int]:
    """Which results of `fold` the `roots` of its kernel are made from."""
    if [*roots] == [fold]:
        return [*range(len(fold.shape.leaves()))]
    return [_leaf(value) for value in fold_values(fold)]


def _leaf(value: Instruction) -> int:
    """Which result of its fold a value is."""
    index: int = value.attributes.get("index", 0)
    return index
