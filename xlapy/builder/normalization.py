"""Batch normalization: BatchNormTraining, BatchNormInference, BatchNormGrad."""

from __future__ import annotations

from xlapy.builder.arguments import as_int, as_number
from xlapy.builder.op import XlaOp
from xlapy.builder.operands import Operand, as_handle, as_op
from xlapy.builder.registry import op_function
from xlapy.builder.shapes import require_array


def _record(opcode: str, operand: XlaOp, others: tuple[Operand, ...], epsilon: float, feature_index: int) -> XlaOp:
    builder = as_handle(operand).builder
    like = require_array(operand).type
    operands = [operand, *(as_op(builder, other, like) for other in others)]
    index = as_int(feature_index, "feature_index")
    return builder.record(opcode, operands, epsilon=as_number(epsilon, "epsilon"), feature_index=index)


@op_function("batch-norm-training")
def BatchNormTraining(operand: XlaOp, scale: Operand, offset: Operand, epsilon: float, feature_index: int) -> XlaOp:
    """Normalizes each feature by its own mean and variance: the tuple (output, means, variances)."""
    return _record("batch-norm-training", operand, (scale, offset), epsilon, feature_index)


@op_function("batch-norm-inference")
def BatchNormInference(
    operand: XlaOp,
    scale: Operand,
    offset: Operand,
    mean: Operand,
    variance: Operand,
    epsilon: float,
    feature_index: int,
) -> XlaOp:
    """Normalizes each feature by the given mean and variance."""
    return _record("batch-norm-inference", operand, (scale, offset, mean, variance), epsilon, feature_index)


@op_function("batch-norm-grad")
def BatchNormGrad(
    operand: XlaOp,
    scale: Operand,
    mean: Operand,
    variance: Operand,
    grad_output: Operand,
    epsilon: float,
    feature_index: int,
) -> XlaOp:
    """The gradients of BatchNormTraining: the tuple (of the operand, of the scale, of the offset)."""
    others = (scale, mean, variance, grad_output)
    return _record("batch-norm-grad", operand, others, epsilon, feature_index)
