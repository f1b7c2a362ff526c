"""Run-time sizes under folds and orders: reduce, sort, topk."""

from __future__ import annotations

from xlapy.hlo.attributes import ComparisonDirection, ComparisonType, SliceDimension
from xlapy.hlo.element_types import S32, ElementType
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.identities import identity_literal
from xlapy.hlo.shape import Shape
from xlapy.passes.dynamic.indexing_rules import first_results
from xlapy.passes.dynamic.padding import RULES, ArraySizes, Padding
from xlapy.passes.dynamic.regions import TRUE, folding_what_exists, what_exists_first


@RULES.register("reduce")
def reduce(padding: Padding, instruction: Instruction) -> None:
    """What does not exist becomes an element that the computation ignores, or is kept from it."""
    inputs, inits = instruction.grouped_operands()
    folded = instruction.attributes["dimensions"]
    sizes = padding.least_sizes(*inputs)
    masks = {dim: size for dim, size in sizes.items() if dim in folded}
    arrays, starts = [padding.copy(array) for array in inputs], [padding.copy(init) for init in inits]
    left = [dim for dim in range(inputs[0].shape.rank) if dim not in folded]
    identity = identity_literal(instruction.called[0]) if len(inputs) == 1 else None
    if not masks:
        result = padding.same(instruction)
    elif identity is not None:
        array = padding.masked(arrays[0], masks, padding.add("constant", literal=identity))
        result = padding.same(instruction, [array, *starts])
    else:
        result = _folded_if_it_exists(padding, instruction, arrays, starts, masks)
    padding.enter_alike(instruction, result, {place: sizes.get(dim) for place, dim in enumerate(left)})


def _folded_if_it_exists(
    padding: Padding,
    instruction: Instruction,
    arrays: list[Instruction],
    starts: list[Instruction],
    masks: ArraySizes,
) -> Instruction:
    exists = padding.inside_all(arrays[0], masks)
    assert exists is not None
    true = padding.add("constant", literal=TRUE)
    everything = padding.add(
        "reduce",
        [*arrays, exists, *starts, true],
        called=[folding_what_exists(instruction.called[0])],
        metadata=instruction.metadata,
        dimensions=instruction.attributes["dimensions"],
    )
    return first_results(padding, everything, len(arrays))


@RULES.register("sort")
def sort(padding: Padding, instruction: Instruction) -> None:
    """What does not exist goes behind everything that does."""
    sizes = padding.least_sizes(*instruction.operands)
    size = sizes.get(instruction.attributes["dimension"])
    if size is None:
        result = padding.same(instruction)
    else:
        arrays = [padding.copy(array) for array in instruction.operands]
        result = _sorted(padding, instruction, arrays, instruction.attributes["dimension"], size, instruction.called[0])
    padding.enter_alike(instruction, result, sizes)


def _sorted(
    padding: Padding,
    instruction: Instruction,
    arrays: list[Instruction],
    dim: int,
    size: Instruction,
    comparator: Computation,
) -> Instruction:
    everything = padding.add(
        "sort",
        [*arrays, padding.inside(arrays[0], dim, size)],
        called=[what_exists_first(comparator)],
        metadata=instruction.metadata,
        dimension=dim,
        is_stable=True,
    )
    return first_results(padding, everything, len(arrays))


@RULES.register("topk")
def topk(padding: Padding, instruction: Instruction) -> None:
    """A sort of all rows, unless they are whole: no element is surely worse than all others."""
    (operand,) = instruction.operands
    sizes = padding.array_sizes(operand)
    last, k = operand.shape.rank - 1, instruction.attributes["k"]
    size = sizes.get(last)
    if size is None:
        result = padding.same(instruction)
    else:
        array = padding.copy(operand)
        best = _best_first(array.shape.type, largest=instruction.attributes["largest"])
        ordered = _sorted(padding, instruction, [array, padding.counted(array, last)], last, size, best)
        ranges = tuple(SliceDimension(0, k if dim == last else bound) for dim, bound in enumerate(array.shape.dims))
        parts = padding.computation.unpacked(ordered)
        result = padding.add("tuple", [padding.add("slice", [part], dimensions=ranges) for part in parts])
        sizes[last] = padding.add("minimum", [size, padding.number(k)])
    padding.enter_alike(instruction, result, sizes)


def _best_first(element_type: ElementType, *, largest: bool) -> Computation:
    """(a, b, position of a, position of b) -> whether a is better, in total order."""
    comparator = Computation("best-first")
    shapes = [Shape.scalar(kind) for kind in (element_type, element_type, S32, S32)]
    a, b, *_ = (comparator.add("parameter", shape=shape, number=number) for number, shape in enumerate(shapes))
    direction = ComparisonDirection.GT if largest else ComparisonDirection.LT
    kind = ComparisonType.TOTALORDER if element_type.is_float else None
    comparator.set_root(comparator.add("compare", [a, b], direction=direction, type=kind))
    return comparator
