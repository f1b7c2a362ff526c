"""The methods of `XlaOp` and `XlaBuilder`, made from the op functions.

A function whose first parameter is the builder becomes a method of `XlaBuilder`; any other one a method of `XlaOp`, its
first operand being the object: ops.ConcatInDim(b, ...) is b.concat_in_dim(...), ops.Reshape(x, ...) is x.reshape(...).
"""

from __future__ import annotations

import inspect
import keyword
import re

from xlapy.builder import (  # noqa: F401 - importing a family registers its functions
    collectives,
    communication,
    contractions,
    control_flow,
    decompositions,
    elementwise,
    indexing,
    linalg,
    normalization,
    operators,
    ordering,
    quantization,
    random,
    reductions,
    shapes,
    special,
    structure,
    windows,
)
from xlapy.builder.builder import XlaBuilder
from xlapy.builder.op import XlaOp
from xlapy.builder.registry import FUNCTIONS

FURTHER_NAMES: dict[str, tuple[str, ...]] = {
    "ConvertElementType": ("astype", "cast"),
    "ConcatInDim": ("concatenate",),
    "Tuple": ("make_tuple",),
}
"""Names that a method has besides that of its function."""

NO_METHOD = ("While", "Concatenate", "Concat")
"""Functions whose first parameter is a computation or a list."""


def attach_methods() -> None:
    """Gives both classes a method for each op function; called once, when the package is imported."""
    for name in FUNCTIONS:
        if name in NO_METHOD:
            continue
        function = FUNCTIONS[name]
        first = next(iter(inspect.signature(function).parameters))
        owner = XlaBuilder if first == "builder" else XlaOp
        for method in (_snake_case(name), *FURTHER_NAMES.get(name, ())):
            if not keyword.iskeyword(method) and not hasattr(owner, method):
                setattr(owner, method, function)
    setattr(XlaOp, "reduce", reductions.Reduce)  # noqa: B010 - its second form begins with the operand
    setattr(XlaOp, "sort", ordering.Sort)  # noqa: B010 - its older forms do


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
