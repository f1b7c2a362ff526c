"""Sliding windows and batch normalization as StableHLO."""

from __future__ import annotations

from xlapy.hlo.attributes import Window
from xlapy.hlo.dim_labels import labels_of
from xlapy.hlo.graph import Instruction
from xlapy.stablehlo.write.base import EMITTERS, Steps, Tree, Writer, integers_text, unpacked_shapes
from xlapy.stablehlo.write.emitters import Trees, precision_attribute, with_own_arguments
from xlapy.stablehlo.write.forms import Attributes

emits = EMITTERS.register


@emits("reduce-window")
def reduce_window(w: Writer, i: Instruction, operands: Trees) -> Steps:
    window: Window = i.attributes["window"]
    attributes = {
        "window_dimensions": integers_text([part.size for part in window.dimensions]),
        "window_strides": integers_text([part.stride for part in window.dimensions]),
        "base_dilations": integers_text([part.base_dilation for part in window.dimensions]),
        "window_dilations": integers_text([part.window_dilation for part in window.dimensions]),
        "padding": _padding_text(window),
    }
    return (yield from with_own_arguments(w, "stablehlo.reduce_window", i, operands, attributes))


@emits("select-and-scatter")
def select_and_scatter(w: Writer, i: Instruction, operands: Trees) -> Steps:
    window: Window = i.attributes["window"]
    attributes = {
        "window_dimensions": integers_text([part.size for part in window.dimensions]),
        "window_strides": integers_text([part.stride for part in window.dimensions]),
        "padding": _padding_text(window),
    }
    return (yield from with_own_arguments(w, "stablehlo.select_and_scatter", i, operands, attributes))


def _padding_text(window: Window) -> str:
    rows = ", ".join(f"[{part.padding_low}, {part.padding_high}]" for part in window.dimensions)
    contents = f"[{rows}]" if rows else ""
    return f"dense<{contents}> : tensor<{len(window.dimensions)}x2xi64>"


@emits("convolution")
def convolution(w: Writer, i: Instruction, operands: Trees) -> Tree:
    window: Window = i.attributes["window"]
    flags = ", ".join(str(part.reversal).lower() for part in window.dimensions)
    attributes = {
        "window_strides": integers_text([part.stride for part in window.dimensions]),
        "padding": _padding_text(window),
        "lhs_dilation": integers_text([part.base_dilation for part in window.dimensions]),
        "rhs_dilation": integers_text([part.window_dilation for part in window.dimensions]),
        "window_reversal": f"array<i1: {flags}>" if flags else "array<i1>",
        "dimension_numbers": _numbers_text(i),
        "feature_group_count": f"{i.attributes['feature_group_count']} : i64",
        "batch_group_count": f"{i.attributes['batch_group_count']} : i64",
        **precision_attribute(i),
    }
    return w.one("stablehlo.convolution", i, operands, attributes)


def _numbers_text(i: Instruction) -> str:
    lhs, rhs, result = (f"[{', '.join(labels)}]" for labels in labels_of(i.attributes["dimension_numbers"]))
    return f"#stablehlo.conv<{lhs}x{rhs}->{result}>"


@emits("batch-norm-training", "batch-norm-inference", "batch-norm-grad")
def batch_norm(w: Writer, i: Instruction, operands: Trees) -> Tree:
    attributes: Attributes = {
        "epsilon": f"{i.attributes['epsilon']!r} : f32",
        "feature_index": f"{i.attributes['feature_index']} : i64",
    }
    shapes = [operand.shape for operand in i.operands]
    values = [w.materialized(tree, shape) for tree, shape in zip(operands, shapes, strict=True)]
    results = unpacked_shapes(i.shape)
    return w.packed(w.simple(f"stablehlo.{i.spec.python_name}", values, shapes, results, attributes), i.shape)
