"""Static arguments: values that a function is specialized to, by position or by name, as `jax.jit` has them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from xlapy.support.errors import ArgumentError
from xlapy_runtime.wording import kind_of

Positions: TypeAlias = int | Sequence[int] | None
Names: TypeAlias = str | Sequence[str] | None

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True, slots=True)
class StaticArguments:
    """Which arguments of a function are static. Negative positions count from the last argument of a call."""

    positions: tuple[int, ...]
    names: tuple[str, ...]

    def split(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any], dict[int | str, Any]]:
        """The arguments with None, an empty tree, for each static one, and the static ones by position or name."""
        dynamic, keywords = list(args), dict(kwargs)
        static: dict[int | str, Any] = {}
        for position in self.positions:
            index = position + len(args) if position < 0 else position
            if 0 <= index < len(args):
                static[index], dynamic[index] = dynamic[index], None
        for name in self.names:
            if name in keywords:
                static[name], keywords[name] = keywords[name], None
        return tuple(dynamic), keywords, static


def static_arguments(function: Callable[..., Any], argnums: Positions, argnames: Names) -> StaticArguments:
    """The static arguments of a function. If only positions or only names are given, its signature tells the others,
    so that an argument is static however it is passed."""
    positions = _as_tuple(argnums)
    names = _as_tuple(argnames)
    if (argnums is None) != (argnames is None):
        parameters = _parameters(function)
        if argnums is None:
            positions = tuple(i for i, p in enumerate(parameters) if p.name in names and p.kind in _POSITIONAL)
        else:
            positional = [p for p in parameters if p.kind in _POSITIONAL]
            chosen = [positional[i] for i in positions if -len(positional) <= i < len(positional)]
            names = tuple(parameter.name for parameter in chosen if parameter.kind in _NAMED)
    return StaticArguments(positions, names)


def restore(
    args: Sequence[Any], kwargs: Mapping[str, Any], static: Mapping[int | str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with the static ones back in their places."""
    every, keywords = list(args), dict(kwargs)
    for place, value in static.items():
        if isinstance(place, int):
            every[place] = value
        else:
            keywords[place] = value
    return tuple(every), keywords


def static_key(static: Mapping[int | str, Any]) -> Hashable:
    """What tells static values apart, in the order of `StaticArguments`; 1, 1.0 and True are three."""
    for place, value in static.items():
        try:
            hash(value)
        except TypeError:
            title = f"argument {place}" if isinstance(place, int) else f"argument {place!r}"
            raise ArgumentError(
                f"static {title} is {kind_of(value)}, which cannot be hashed; only values that can be looked "
                "up in a dictionary may be static"
            ) from None
    return tuple([(place, type(value), value) for place, value in static.items()])


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a function; none for built-in ones that do not tell."""
    try:
        return list(inspect.signature(function).parameters.values())
    except (ValueError, TypeError):
        return []


def _as_tuple(value: Any) -> tuple[Any, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, (int, str)) else tuple(value)
