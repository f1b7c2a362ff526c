"""Order: sort and topk."""

from __future__ import annotations

from xlapy.hlo.element_types import FLOAT, INTEGER, PRED, S32
from xlapy.hlo.ops.checks import check_dimension
from xlapy.hlo.ops.elementwise import common_dims
from xlapy.hlo.ops.spec import PURE, Variadic, op
from xlapy.hlo.shape import UNBOUNDED, Shape, Signature, shape_of_results
from xlapy.support.errors import ShapeError


@op("sort", traits=PURE, hlo_text={"dimension": "dimensions={}", "comparator": "to_apply"})
def sort(inputs: Variadic, *, comparator: Signature, dimension: int, is_stable: bool = False) -> Shape:
    """Puts the inputs in the order of `comparator` along a dimension, all of them moved alike.

    The comparator takes two elements of each input (first of the first input, second of the first input, first of the
    second input ...) and says whether the first come before the second. Several inputs make a tuple. The sort is always
    stable; `is_stable` says that it must be.

    some-inputs [B1 C1]: there is at least one input.
    array-operands: the inputs are arrays.
    same-dims [B1 C3]: the inputs have the same dimensions.
    dimension-in-range [C4]: `dimension` is a dimension of the inputs.
    comparator-type [B2 C5]: the comparator takes two scalars of each element type and returns a pred.
    """
    if not inputs:
        raise ShapeError("some-inputs", "nothing to sort")
    for shape in inputs:
        if not shape.is_array:
            raise ShapeError("array-operands", f"{shape} is not an array")
        if not shape.has_dims_of(inputs[0]):
            raise ShapeError("same-dims", f"the inputs {inputs[0]} and {shape} have different dimensions")
    check_dimension(inputs[0], dimension)
    wanted = [Shape.scalar(shape.type) for shape in inputs for _ in range(2)]
    if not Signature(tuple(wanted), Shape.scalar(PRED)).matches(comparator):
        types = ", ".join(shape.type.name for shape in inputs)
        raise ShapeError("comparator-type", f"a computation of type {comparator} does not compare elements of {types}")
    merged = common_dims(*inputs)
    results = [merged.with_type(shape.type).without_layout() for shape in inputs]
    return shape_of_results(results)


@op("topk", traits=PURE, title="TopK")
def topk(operand: Shape, *, k: int, largest: bool) -> Shape:
    """The `k` largest (or smallest) elements of each row of the last dimension, best first, and their positions.

    Equal elements keep their order. Floats are in total order: -NaN, -inf ... -0, 0 ... inf, NaN. A row of fewer than
    `k` elements at run time is returned whole.

    array-operands: the operand is an array of rank 1 or more, of numbers with an order.
    k-in-range: 0 <= k <= size of the last dimension.
    """
    if not operand.is_array or not operand.rank or operand.type not in INTEGER | FLOAT:
        raise ShapeError("array-operands", f"{operand} is not an array of rows of integers or floats")
    if k < 0 or k > operand.dims[-1] != UNBOUNDED:
        raise ShapeError("k-in-range", f"k = {k}, but the rows of {operand} have {operand.dims[-1]} elements")
    values = operand.with_dims((*operand.dims[:-1], k), operand.dynamic).without_layout()
    return Shape.tuple([values, values.with_type(S32)])
