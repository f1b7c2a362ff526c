"""The op table. Importing this package declares every family; `OPS` is the table."""

from xlapy.hlo.ops import (
    asynchronous,
    communication,
    contractions,
    control_flow,
    elementwise,
    fft,
    indexing,
    linalg,
    normalization,
    ordering,
    random,
    reductions,
    shapes,
    special,
    structure,
    windows,
)
from xlapy.hlo.ops.spec import OPS, AttributeParameter, OpSpec, Trait

__all__ = [
    "OPS",
    "AttributeParameter",
    "OpSpec",
    "Trait",
    "asynchronous",
    "communication",
    "contractions",
    "control_flow",
    "elementwise",
    "fft",
    "indexing",
    "linalg",
    "normalization",
    "ordering",
    "random",
    "reductions",
    "shapes",
    "special",
    "structure",
    "windows",
]
