"""Normalization over all dimensions but one: batch-norm-training, -inference and -grad."""

from __future__ import annotations

from xlapy.hlo.element_types import FLOAT
from xlapy.hlo.ops.elementwise import common_dims
from xlapy.hlo.ops.spec import PURE, op
from xlapy.hlo.shape import UNBOUNDED, Shape
from xlapy.support.errors import ShapeError


def _checked(operand: Shape, feature_index: int, **vectors: Shape) -> Shape:
    """The shape of the operand, its features bounded if they are so in a vector; raises unless all fit together."""
    for shape in (operand, *vectors.values()):
        if shape.element_type not in FLOAT:
            raise ShapeError("element-type", f"{shape} is not an array of floats")
    if not 0 <= feature_index < operand.rank:
        raise ShapeError("feature-in-range", f"feature dimension {feature_index} is outside {operand}")
    size = operand.dims[feature_index]
    for name, shape in vectors.items():
        if shape.element_type is not operand.element_type:
            raise ShapeError("same-type", f"{operand} and the {name} {shape} have different element types")
        if shape.rank != 1 or (shape.dims[0] != size and UNBOUNDED not in (shape.dims[0], size)):
            message = f"the {name} {shape} does not have {size} elements, one for each feature"
            raise ShapeError(f"{name}-size", message)
    bounded = any(shape.is_dynamic_dim(0) and shape.dims[0] != UNBOUNDED for shape in vectors.values())
    flags = [operand.is_dynamic_dim(dim) or (bounded and dim == feature_index) for dim in range(operand.rank)]
    return operand.with_dims(operand.dims, flags)


def _per_feature(operand: Shape, feature_index: int) -> Shape:
    return operand.select_dims([feature_index])


@op("batch-norm-training", traits=PURE, title="BatchNormTraining")
def batch_norm_training(operand: Shape, scale: Shape, offset: Shape, *, epsilon: float, feature_index: int) -> Shape:
    """Normalizes each feature by its mean and variance over all other dimensions: (output, means, variances).

    The variance is that of the elements at hand (divided by their number).

    element-type: all operands are arrays of floats.
    feature-in-range [B1 C1]: `feature_index` is a dimension of the operand.
    same-type [C2]: all operands have the same element type.
    scale-size [B2 C3]: the scale is a vector with one element for each feature.
    offset-size [B2 C4]: the offset is a vector with one element for each feature.
    """
    result = _checked(operand, feature_index, scale=scale, offset=offset)
    moments = _per_feature(result, feature_index)
    return Shape.tuple([result, moments, moments])


@op("batch-norm-inference", traits=PURE, title="BatchNormInference")
def batch_norm_inference(
    operand: Shape, scale: Shape, offset: Shape, mean: Shape, variance: Shape, *, epsilon: float, feature_index: int
) -> Shape:
    """scale * (operand - mean) / sqrt(variance + epsilon) + offset, by feature.

    element-type: all operands are arrays of floats.
    feature-in-range [B1 C1]: `feature_index` is a dimension of the operand.
    same-type [C2]: all operands have the same element type.
    scale-size [B2 C3]: the scale is a vector with one element for each feature.
    offset-size [B2 C4]: the offset is a vector with one element for each feature.
    mean-size [B2 C5]: the mean is a vector with one element for each feature.
    variance-size [B2 C6]: the variance is a vector with one element for each feature.
    """
    return _checked(operand, feature_index, scale=scale, offset=offset, mean=mean, variance=variance)


@op("batch-norm-grad", traits=PURE, title="BatchNormGrad")
def batch_norm_grad(
    operand: Shape,
    scale: Shape,
    mean: Shape,
    variance: Shape,
    grad_output: Shape,
    *,
    epsilon: float,
    feature_index: int,
) -> Shape:
    """The gradients of batch-norm-training with respect to operand, scale and offset.

    element-type: all operands are arrays of floats.
    feature-in-range [B1 C1]: `feature_index` is a dimension of the operand.
    same-type [C2]: all operands have the same element type.
    grad-dims [B3 C3]: `grad_output` has the dimensions of the operand.
    scale-size [B2 C5]: the scale is a vector with one element for each feature.
    mean-size [B2 C4]: the mean is a vector like the scale.
    variance-size [B2 C4]: the variance is a vector like the scale.
    """
    result = _checked(operand, feature_index, scale=scale, mean=mean, variance=variance)
    if grad_output.element_type is not operand.element_type:
        raise ShapeError("same-type", f"{operand} and the gradient {grad_output} have different element types")
    if grad_output.dims != operand.dims and UNBOUNDED not in (*grad_output.dims, *operand.dims):
        raise ShapeError("grad-dims", f"the gradient {grad_output} does not have the dimensions of {operand}")
    result = common_dims(result, grad_output)
    moments = _per_feature(result, feature_index)
    return Shape.tuple([result, moments, moments])
