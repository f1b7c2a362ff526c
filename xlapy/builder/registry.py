"""The op functions: which there are, by public name and by the op of the table that they record, and what wraps them.

Operators of `XlaOp` find their functions here, so that the handle knows no family.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from xlapy.builder.arguments import described
from xlapy.builder.places import user_line
from xlapy.hlo.ops import OPS
from xlapy.support.errors import ArgumentError, XlaError
from xlapy.support.registry import Registry

FUNCTIONS: Registry[Callable[..., Any]] = Registry("op function")
"""The op functions by public name ("ConcatInDim"), aliases included."""

RECORDED_BY: Registry[Callable[..., Any]] = Registry("builder function", OPS)
"""The function that records each op of the table."""

OPERATORS: Registry[Callable[..., Any]] = Registry("operator")
"""What the operators of `XlaOp` do, by the name of the special method without underscores ("add")."""

NOT_RECORDED = {
    "async-start": "only dumps have it: the compiler that wrote them has decided what runs beside what",
    "async-update": "see async-start",
    "async-done": "see async-start",
    "bitcast": "depends on layouts, which the passes assign",
    "fusion": "the passes' own box around a kernel",
}
"""Ops of the table that a user does not record, each with the reason."""

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def located(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Wraps a function that users call: errors that pass through it gain its name and the user's line."""

    @functools.wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        try:
            return function(*args, **kwargs)
        except XlaError as error:
            error.add_context(subject=function.__name__, where=user_line())
            raise

    return call


def op_function(
    *opcodes: str, aliases: tuple[str, ...] = ()
) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """Decorator of a public op function: located, and registered by its name and for the ops that it records."""

    def register(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        call = located(_with_builder(function))
        FUNCTIONS.register(function.__name__, *aliases)(call)
        RECORDED_BY.register(*opcodes)(call)
        return call

    return register


def _with_builder(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The function, checking that a first parameter that is a builder gets one."""
    first = next(iter(inspect.signature(function).parameters.values()))
    if first.annotation != "XlaBuilder":
        return function

    @functools.wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        builder = args[0] if args else kwargs.get(first.name)
        if not hasattr(builder, "record"):
            raise ArgumentError(f"the first argument is the builder, not {described(builder)}")
        return function(*args, **kwargs)

    return call
