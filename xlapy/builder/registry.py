"""The op functions: which there are, by public name and by the op of the table that they record, and what wraps them.

Operators of `XlaOp` find their functions here, so that the handle knows no family.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar, overload

from xlapy.builder.arguments import described
from xlapy.builder.other_names import KEYWORDS_ELSEWHERE
from xlapy.builder.places import user_line
from xlapy.hlo.ops import OPS
from xlapy.support.errors import ArgumentError, XlaError
from xlapy.support.registry import Registry
from xlapy.support.source import suggestion

FUNCTIONS: Registry[Callable[..., Any]] = Registry("op function")
"""The op functions by public name ("ConcatInDim"), aliases included."""

RECORDED_BY: Registry[Callable[..., Any]] = Registry("builder function", OPS)
"""The function that records each op of the table."""

VALUE_FORMS: Registry[Callable[..., Any]] = Registry("form of a value")
"""The other forms of functions that begin with a builder, by the same names: these begin with a value."""

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
        except TypeError:
            _check_call(function, args, kwargs)
            raise

    return call


def _check_call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raises ArgumentError if the function does not take such arguments: too many, too few, of other names."""
    signature = inspect.signature(function)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        names = [name for name in signature.parameters if name != "self"]
        unknown = [name for name in kwargs if name not in names]
        problem = f"there is no argument {unknown[0]!r}" if unknown else str(error)
        hint = suggestion(unknown[0], names) if unknown else ""
        told = ArgumentError(f"{problem}; it takes ({', '.join(names)}){hint}", where=user_line())
        raise told.add_context(subject=function.__name__) from None


@overload
def op_function(
    *opcodes: str, aliases: tuple[str, ...] = ()
) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]: ...
@overload
def op_function(
    *opcodes: str, aliases: tuple[str, ...] = (), of_value: Callable[..., Any]
) -> Callable[[Callable[..., Result]], Callable[..., Result]]: ...
def op_function(
    *opcodes: str, aliases: tuple[str, ...] = (), of_value: Callable[..., Any] | None = None
) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """Decorator of a public op function: located, and registered by its name and for the ops that it records.

    `of_value` is the other form of a function whose first parameter is the builder: it begins with a value."""

    def register(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        name = function.__name__
        keywords = KEYWORDS_ELSEWHERE.get(name)
        form = None
        if of_value is not None:
            of_value.__name__, of_value.__qualname__ = name, function.__qualname__
            form = _with_other_keywords(located(of_value), keywords)
            VALUE_FORMS.add(name, form)
        call = _with_other_keywords(located(_with_builder(function, form)), keywords)
        FUNCTIONS.register(name, *aliases)(call)
        RECORDED_BY.register(*opcodes)(call)
        return call

    return register


def _with_builder(
    function: Callable[Arguments, Result], of_value: Callable[..., Any] | None
) -> Callable[Arguments, Result]:
    """The function, checking that a first parameter that is a builder gets one, or else a value for the other form."""
    first = _first_parameter(function)
    if first.annotation != "XlaBuilder":
        return function
    names = [first.name] if of_value is None else [first.name, _first_parameter(of_value).name]
    expected = "the builder" if of_value is None else "the builder or a value"

    @functools.wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        given = args[0] if args else next((kwargs[name] for name in names if name in kwargs), None)
        if hasattr(given, "record"):
            return function(*args, **kwargs)
        if of_value is not None and hasattr(given, "instruction"):
            result: Result = of_value(*args, **kwargs)
            return result
        raise ArgumentError(f"the first argument is {expected}, not {described(given)}")

    return call


def _first_parameter(function: Callable[..., Any]) -> inspect.Parameter:
    return next(iter(inspect.signature(function).parameters.values()))


def _with_other_keywords(
    function: Callable[Arguments, Result], names: Mapping[str, str] | None
) -> Callable[Arguments, Result]:
    """The function, taking its parameters by other `names` too: by those that are keys, for ours."""
    if names is None:
        return function

    @functools.wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        given: dict[str, Any] = {}
        for name, value in kwargs.items():
            ours = names.get(name, name)
            if ours in given:
                twice = ArgumentError(f"there are two values for {ours!r}, also called {name!r}", where=user_line())
                raise twice.add_context(subject=function.__name__)
            given[ours] = value
        return function(*args, **given)

    return call
