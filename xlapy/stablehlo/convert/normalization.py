"""Batch normalization."""

from __future__ import annotations

from xlapy.hlo.graph import Instruction
from xlapy.stablehlo.convert.base import Body, attribute, converts
from xlapy.stablehlo.tree import Operation


@converts("stablehlo.batch_norm_training", "stablehlo.batch_norm_inference", "stablehlo.batch_norm_grad")
def batch_norm(body: Body, operation: Operation) -> Instruction:
    return body.add(
        operation.mnemonic.replace("_", "-"),
        *body.operands(operation),
        epsilon=float(attribute(operation, "epsilon", float)),
        feature_index=attribute(operation, "feature_index", int),
    )
