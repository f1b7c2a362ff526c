"""Order: Sort in all its forms, TopK, and the approximate TopK."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import overload

from xlapy.builder.arguments import as_flag, as_int, as_list, as_number
from xlapy.builder.builder import ComputationLike, XlaBuilder
from xlapy.builder.op import XlaOp
from xlapy.builder.operands import Operand, Operands, as_handle, as_ops, listed
from xlapy.builder.regions import computation_of
from xlapy.builder.registry import op_function
from xlapy.builder.shapes import SliceInDim, require_array
from xlapy.builder.structure import GetTupleElement, Tuple
from xlapy.hlo.attributes import ComparisonDirection, ComparisonType
from xlapy.hlo.element_types import PRED
from xlapy.hlo.graph import Computation
from xlapy.hlo.shape import Shape
from xlapy.support.errors import ArgumentError, ShapeError


def _sorted_keys(
    keys: XlaOp,
    values: Operands | None = None,
    comparator: ComputationLike | None = None,
    dimension: int = -1,
    is_stable: bool = False,
) -> XlaOp:
    """Sorts the keys along a dimension, and moves the values alike, if there are any: the result then is a tuple.

    The comparator gets two elements of each, interleaved, and says whether the first come before the second. Without
    one, the keys ascend, floats in total order."""
    further = [] if values is None else listed(values)
    return _sort(as_handle(keys).builder, [keys, *further], comparator, dimension, is_stable)


@overload
def Sort(
    builder: XlaBuilder,
    operands: Operands,
    comparator: ComputationLike | None = None,
    dimension: int = -1,
    is_stable: bool = False,
) -> XlaOp: ...
@overload
def Sort(
    keys: XlaOp,
    values: Operands | None = None,
    comparator: ComputationLike | None = None,
    dimension: int = -1,
    is_stable: bool = False,
) -> XlaOp: ...
@op_function("sort", of_value=_sorted_keys)
def Sort(
    builder: XlaBuilder,
    operands: Operands,
    comparator: ComputationLike | None = None,
    dimension: int = -1,
    is_stable: bool = False,
) -> XlaOp:
    """Sorts along a dimension: `Sort(builder, operands, comparator, dimension, is_stable)`, or in the older forms
    `Sort(operand, dimension=...)` and `Sort(keys, values, dimension=...)`.

    The comparator gets two elements of each operand, interleaved, and says whether the first come before the second.
    Without one, the first operand ascends, floats in total order. Several operands are moved alike and give a tuple."""
    arrays = [operands] if isinstance(operands, XlaOp) else as_list(operands, "the operands")
    return _sort(builder, arrays, comparator, dimension, is_stable)


@op_function()
def SortKeyVal(keys: Operand, values: Operand, dimension: int = -1) -> XlaOp:
    """Sorts keys, ascending, and moves the values alike: a tuple of both."""
    return _sort(as_handle(keys).builder, [keys, values], None, dimension, False)


def _sort(
    builder: XlaBuilder,
    operands: Sequence[Operand],
    comparator: ComputationLike | None,
    dimension: int,
    is_stable: bool,
) -> XlaOp:
    arrays = as_ops(builder, operands)
    if not arrays:
        raise ShapeError("Sort.B1", "nothing to sort")
    scalars = [Shape.scalar(require_array(array).type) for array in arrays for _ in range(2)]
    if comparator is None:
        called = _ascending(scalars)
    else:
        called = computation_of(builder, comparator, scalars, "comparator", Shape.scalar(PRED))
    place = as_int(dimension, "dimension")
    rank = require_array(arrays[0]).rank
    place = place + rank if -rank <= place < 0 else place
    return builder.record("sort", arrays, called=[called], dimension=place, is_stable=as_flag(is_stable, "is_stable"))


def _ascending(scalars: list[Shape]) -> Computation:
    """Whether the first element of the first operand is less than the second, in total order if it is a float."""
    computation = Computation("compare-less-than")
    parameters = [computation.add("parameter", number=number, shape=shape) for number, shape in enumerate(scalars)]
    order = ComparisonType.TOTALORDER if scalars[0].type.is_float else None
    root = computation.add("compare", parameters[:2], direction=ComparisonDirection.LT, type=order)
    computation.set_root(root)
    return computation


@op_function("topk")
def TopK(input: Operand, k: int, largest: bool = True) -> XlaOp:
    """The `k` largest (or smallest) elements of each row of the last dimension, best first, and their positions."""
    operand = as_handle(input)
    return operand.builder.record("topk", [operand], k=as_int(k, "k"), largest=as_flag(largest, "largest"))


# -- approximate top k ---------------------------------------------------------------------------------------------

VECTOR_TILE, MATRIX_TILE = 1024, 128
"""How many elements of a vector, or of a row of anything else, the approximation never reduces further."""


@op_function()
def ApproxTopK(
    builder: XlaBuilder,
    operands: Sequence[Operand],
    init_values: Sequence[Operand],
    top_k: int,
    reduction_dim: int,
    comparator: ComputationLike,
    recall_target: float = 0.9,
    aggregate_to_topk: bool = True,
    reduction_input_size_override: int = -1,
) -> XlaOp:
    """The first `top_k` elements in the order of the comparator, exactly, which is an allowed approximation: a tuple
    with one array per operand. Without aggregation there are as many elements as ApproxTopKReductionOutputSize says.

    The initial values, which fill up short inputs, are only checked."""
    arrays = as_ops(builder, operands)
    if len(arrays) != len(as_ops(builder, init_values)):
        raise ShapeError("ApproxTopK.initial-values", f"{len(arrays)} operands have {len(init_values)} initial values")
    if not arrays:
        raise ShapeError("ApproxTopK.some-operands", "there is nothing to choose from")
    shape = require_array(arrays[0])
    dimension = as_int(reduction_dim, "reduction_dim")
    if not 0 <= dimension < shape.rank:
        raise ShapeError("ApproxTopK.dimension", f"dimension {dimension} is outside {shape}")
    size = shape.dims[dimension]
    best = as_int(top_k, "top_k")
    if not 0 <= best <= size:
        raise ShapeError("ApproxTopK.size", f"there are no {best} elements along dimension {dimension} of {shape}")
    count, _ = ApproxTopKReductionOutputSize(
        size, shape.rank, best, recall_target, aggregate_to_topk, reduction_input_size_override
    )
    placed = _sort(builder, arrays, comparator, dimension, False)
    sorted_arrays = [GetTupleElement(placed, index) for index in range(len(arrays))] if len(arrays) > 1 else [placed]
    return Tuple(builder, [SliceInDim(array, 0, min(count, size), 1, dimension) for array in sorted_arrays])


@op_function()
def ApproxTopKFallback(
    builder: XlaBuilder,
    operands: Sequence[Operand],
    init_values: Sequence[Operand],
    top_k: int,
    reduction_dim: int,
    comparator: ComputationLike,
    recall_target: float = 0.9,
    aggregate_to_topk: bool = True,
    reduction_input_size_override: int = -1,
) -> XlaOp:
    """ApproxTopK by sorting, which is how ApproxTopK is done here anyway."""
    return ApproxTopK(
        builder,
        operands,
        init_values,
        top_k,
        reduction_dim,
        comparator,
        recall_target,
        aggregate_to_topk,
        reduction_input_size_override,
    )


@op_function()
def ApproxTopKReductionOutputSize(
    input_size: int,
    rank: int,
    top_k: int,
    recall_target: float,
    aggregate_to_topk: bool = True,
    input_size_override: int = -1,
) -> tuple[int, int]:
    """How many elements ApproxTopK leaves of `input_size`, and how often it halves them to get there (-1: until
    `top_k` are left). Of elements that fall into m bins at random, the best k all survive with the probability
    `recall_target` where m = (1 - k) / log(recall_target)."""
    size, best = as_int(input_size, "input_size"), as_int(top_k, "top_k")
    override = as_int(input_size_override, "input_size_override")
    recall = as_number(recall_target, "recall_target")
    if not 0 < recall <= 1:
        raise ArgumentError(f"a recall of {recall} is not between 0 and 1")
    tile = VECTOR_TILE if as_int(rank, "rank") == 1 else MATRIX_TILE
    logical_size = override if override >= 0 else size
    if aggregate_to_topk:
        return best, -1
    if size <= tile:
        return size, 0
    if best == 1:
        return tile, (math.ceil(logical_size / tile) - 1).bit_length()
    if recall == 1 or logical_size < tile:
        return size, 0
    bins = max(int(min((1 - best) / math.log(recall), size)), tile)
    if logical_size < 2 * bins:
        return size, 0
    halvings = min((logical_size // bins).bit_length() - 1, (size // tile - 1).bit_length())
    return math.ceil(math.ceil(size / tile) / (1 << halvings)) * tile, halvings
