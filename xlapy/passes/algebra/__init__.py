"""The laws, by op family. Importing this package fills `rewrite.LAWS`."""

from xlapy.passes.algebra import (
    arithmetic,
    broadcasts,
    comparison,
    contractions,
    conversion,
    convolutions,
    functions,
    indexing,
    iotas,
    joins,
    logic,
    ordering,
    reductions,
    scatters,
    shapes,
    windows,
)

__all__ = [
    "arithmetic",
    "broadcasts",
    "comparison",
    "contractions",
    "conversion",
    "convolutions",
    "functions",
    "indexing",
    "iotas",
    "joins",
    "logic",
    "ordering",
    "reductions",
    "scatters",
    "shapes",
    "windows",
]
