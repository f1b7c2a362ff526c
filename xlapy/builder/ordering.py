"""Order: Sort in all its forms, and TopK."""

from __future__ import annotations

from typing import Any

from xlapy.builder.arguments import as_int, as_list, described
from xlapy.builder.builder import ComputationLike, XlaBuilder
from xlapy.builder.op import XlaOp
from xlapy.builder.operands import Operand, as_handle, as_ops
from xlapy.builder.regions import computation_of
from xlapy.builder.registry import op_function
from xlapy.builder.shapes import require_array
from xlapy.hlo.attributes import ComparisonDirection, ComparisonType
from xlapy.hlo.element_types import PRED
from xlapy.hlo.graph import Computation
from xlapy.hlo.shape import Shape
from xlapy.support.errors import ArgumentError, ShapeError


@op_function("sort")
def Sort(
    builder: XlaBuilder | XlaOp,
    operands: Any = None,
    comparator: ComputationLike | None = None,
    dimension: int = -1,
    is_stable: bool = False,
) -> XlaOp:
    """Sorts along a dimension: `Sort(builder, operands, comparator, dimension, is_stable)`, or in the older forms
    `Sort(operand, dimension=...)` and `Sort(keys, values, dimension=...)`.

    The comparator gets two elements of each operand, interleaved, and says whether the first come before the second.
    Without one, the first operand ascends, floats in total order. Several operands are moved alike and give a tuple."""
    if isinstance(builder, XlaOp):
        further = [] if operands is None else operands if isinstance(operands, (list, tuple)) else [operands]
        return _sort(builder.builder, [builder, *further], comparator, dimension, is_stable)
    if not isinstance(builder, XlaBuilder):
        raise ArgumentError(f"the first argument is the builder or the operand, not {described(builder)}")
    listed = [operands] if isinstance(operands, XlaOp) else as_list(operands, "the operands")
    return _sort(builder, listed, comparator, dimension, is_stable)


@op_function()
def SortKeyVal(keys: Operand, values: Operand, dimension: int = -1) -> XlaOp:
    """Sorts keys, ascending, and moves the values alike: a tuple of both."""
    return _sort(as_handle(keys).builder, [keys, values], None, dimension, False)


def _sort(
    builder: XlaBuilder, operands: Any, comparator: ComputationLike | None, dimension: int, is_stable: bool
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
    place = place + rank if place < 0 else place
    return builder.record("sort", arrays, called=[called], dimension=place, is_stable=bool(is_stable))


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
    return operand.builder.record("topk", [operand], k=as_int(k, "k"), largest=bool(largest))
