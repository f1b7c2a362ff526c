"""Folding dimensions: reduce and map."""

from __future__ import annotations

from xlapy.hlo.ops.checks import check_dimensions, require_array
from xlapy.hlo.ops.elementwise import common_dims
from xlapy.hlo.ops.spec import ELEMENTWISE, PURE, Variadic, op
from xlapy.hlo.shape import Shape, Signature, shape_of_results
from xlapy.support.errors import ShapeError


def check_inputs(inputs: Variadic) -> None:
    """Raises unless there is an input and all inputs are arrays of the same dimensions."""
    if not inputs:
        raise ShapeError("some-inputs", "nothing to reduce")
    require_array(*inputs)
    common_dims(*inputs)


def check_init_values(inputs: Variadic, init_values: Variadic) -> None:
    """Raises unless each initial value is a scalar of its input's element type."""
    for array, init in zip(inputs, init_values, strict=True):
        if not init.is_scalar or init.element_type is not array.element_type:
            raise ShapeError("init-types", f"initial value {init} is not a scalar of the element type of {array}")


def check_reduction(inputs: Variadic, computation: Signature) -> tuple[Shape, ...]:
    """The element shapes that `computation` folds; raises unless it has type (T.., T..) -> T.. for them."""
    count = len(inputs)
    parameters = computation.parameters
    results = computation.result.parts if computation.result.is_tuple else (computation.result,)
    accumulators = parameters[:count]
    well_typed = (
        len(parameters) == 2 * count
        and len(results) == count
        and all(shape.is_scalar for shape in (*parameters, *results))
        and all(a.element_type is r.element_type for a, r in zip(accumulators, results, strict=True))
        and all(a.element_type is v.element_type for a, v in zip(accumulators, parameters[count:], strict=True))
        and all(a.element_type is shape.element_type for a, shape in zip(accumulators, inputs, strict=True))
    )
    if not well_typed:
        types = ", ".join(shape.type.name for shape in inputs)
        raise ShapeError(
            "computation-type", f"a computation of type {computation} cannot fold elements of type {types}"
        )
    return results


@op("reduce", traits=PURE, hlo_text={"computation": "to_apply"})
def reduce(inputs: Variadic, init_values: Variadic, *, computation: Signature, dimensions: tuple[int, ...]) -> Shape:
    """Folds `dimensions` of the inputs with `computation`, starting from the initial values.

    Several inputs are folded together; the computation takes the running values, then the elements, and the result is a
    tuple. The order of folding is free, but fixed.

    some-inputs [B1 C3]: there is at least one input.
    array-operands: the inputs are arrays.
    same-dims [B2 C1]: the inputs have the same dimensions.
    init-types [B3 C2]: each initial value is a scalar of its input's element type.
    dimensions-in-range [B4 C4]: `dimensions` are dimensions of the inputs.
    dimensions-unique [B4 C5]: no dimension is listed twice.
    computation-type [C6]: the computation has type (T.., T..) -> T.. for element types T.
    """
    check_inputs(inputs)
    check_init_values(inputs, init_values)
    check_dimensions(inputs[0], dimensions)
    check_reduction(inputs, computation)
    merged = common_dims(*inputs)
    results = [merged.with_type(shape.type).without(*dimensions) for shape in inputs]
    return shape_of_results(results)


@op("map", traits=ELEMENTWISE, hlo_text={"computation": "to_apply"})
def map_(operands: Variadic, *, computation: Signature, dimensions: tuple[int, ...]) -> Shape:
    """Applies a scalar computation at every index.

    some-inputs [C2]: there is at least one operand.
    array-operands: the operands are arrays.
    same-dims [B1 C1]: the operands have the same dimensions.
    all-dimensions [B3 C3]: `dimensions` are all dimensions, in order.
    computation-type [B2 C4]: the computation takes one scalar of each element type and returns a scalar.
    """
    if not operands:
        raise ShapeError("some-inputs", "nothing to map over")
    require_array(*operands)
    merged = common_dims(*operands)
    if dimensions != tuple(range(merged.rank)):
        raise ShapeError("all-dimensions", f"dimensions {list(dimensions)} are not all dimensions of {merged} in order")
    parameters = computation.parameters
    well_typed = (
        len(parameters) == len(operands)
        and all(p.is_scalar for p in parameters)
        and all(p.element_type is o.element_type for p, o in zip(parameters, operands, strict=True))
        and computation.result.is_scalar
    )
    if not well_typed:
        raise ShapeError("computation-type", f"a computation of type {computation} does not map over these elements")
    return merged.with_type(computation.result.type).without_layout()
