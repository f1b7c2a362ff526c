"""From StableHLO to HLO: one file for each family of operations. Importing this package registers all of them."""

from xlapy.stablehlo.convert import (
    broadcasting,
    collectives,
    communication,
    contractions,
    control_flow,
    custom_calls,
    dynamic,
    einsum,
    elementwise,
    indexing,
    linalg,
    normalization,
    ordering,
    random,
    reductions,
    shape_arithmetic,
    shapes,
    structure,
    windows,
)
from xlapy.stablehlo.convert.base import CONVERSIONS
from xlapy.stablehlo.convert.module import convert_program

__all__ = [
    "CONVERSIONS",
    "broadcasting",
    "collectives",
    "communication",
    "contractions",
    "control_flow",
    "convert_program",
    "custom_calls",
    "dynamic",
    "einsum",
    "elementwise",
    "indexing",
    "linalg",
    "normalization",
    "ordering",
    "random",
    "reductions",
    "shape_arithmetic",
    "shapes",
    "structure",
    "windows",
]
