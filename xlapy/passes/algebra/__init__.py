"""The laws, by op family. Importing this package fills `rewrite.LAWS`."""

from xlapy.passes.algebra import (
    arithmetic,
    comparison,
    contractions,
    conversion,
    convolutions,
    indexing,
    logic,
    reductions,
    shapes,
)

__all__ = [
    "arithmetic",
    "comparison",
    "contractions",
    "conversion",
    "convolutions",
    "indexing",
    "logic",
    "reductions",
    "shapes",
]
