"""Bounded dimensions made static: `padder` is the pass, the rules say what each op does to sizes and padding.

An op without a rule that meets a bounded dimension is an UnsupportedError."""

from xlapy.passes.dynamic import (
    contraction_rules,
    control_flow_rules,
    folding_rules,
    indexing_rules,
    shape_rules,
    structure_rules,
    window_rules,
)

__all__ = [
    "contraction_rules",
    "control_flow_rules",
    "folding_rules",
    "indexing_rules",
    "shape_rules",
    "structure_rules",
    "window_rules",
]
