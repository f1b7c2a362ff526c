"""The methods of `XlaOp` and `XlaBuilder`, made from the op functions.

A function whose first parameter is the builder becomes a method of `XlaBuilder`, one that begins with an operand a
method of `XlaOp`: ops.ConcatInDim(b, ...) is b.concat_in_dim(...), ops.Reshape(x, ...) is x.reshape(...).
"""

from __future__ import annotations

import inspect
import keyword
import re
from collections.abc import Callable, Iterator
from typing import Any

from xlapy.builder import (  # noqa: F401 - importing a family registers its functions
    collectives,
    communication,
    contractions,
    control_flow,
    convolutions,
    custom_calls,
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
from xlapy.builder.registry import FUNCTIONS, VALUE_FORMS

FURTHER_NAMES: dict[str, tuple[str, ...]] = {
    "ConvertElementType": ("astype", "cast"),
    "ConcatInDim": ("concatenate",),
    "Tuple": ("make_tuple",),
}
"""Names that a method has besides that of its function."""

OWNERS: dict[str, type] = {
    "XlaBuilder": XlaBuilder,
    "XlaOp": XlaOp,
    "Operand": XlaOp,
    "Operand | None": XlaOp,
    "Operands": XlaOp,
}
"""The class that a function is a method of, by what its first parameter is: of none if that is a list, a number, a
computation."""


def attach_methods() -> None:
    """Gives both classes a method for each op function; called once, when the package is imported.

    What type checkers and editors know of them is in `method_types.pyi`: `xlapy ops --stub` prints that file."""
    for owner, name, function in methods():
        if not hasattr(owner, name):
            setattr(owner, name, function)


def methods() -> Iterator[tuple[type, str, Callable[..., Any]]]:
    """Class, name and function of each method. Where the class has something of that name, it keeps it."""
    for name in FUNCTIONS:
        function = FUNCTIONS[name]
        owner = OWNERS.get(next(iter(inspect.signature(function).parameters.values())).annotation)
        if owner is None:
            continue
        for method in (snake_case(name), *FURTHER_NAMES.get(name, ())):
            if not keyword.iskeyword(method):
                yield owner, method, function
    for name in VALUE_FORMS:
        yield XlaOp, snake_case(name), VALUE_FORMS[name]


def snake_case(name: str) -> str:
    """The name of the method of a function: reduce_scatter, of ReduceScatter."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
