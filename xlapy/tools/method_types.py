"""xlapy/builder/method_types.pyi, made from the op functions: what type checkers and editors know of their methods."""

from __future__ import annotations

import ast
import builtins
import enum
import functools
import inspect
import sys
import textwrap
import typing
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from xlapy.builder import XlaBuilder, XlaOp
from xlapy.builder.methods import methods

CLASSES: dict[type, str] = {XlaOp: "OpMethods", XlaBuilder: "BuilderMethods"}
"""The classes with methods that are made, and what the stub calls their bases."""

LINE_LENGTH = 120

_HEAD = '''"""The methods of `XlaOp` and `XlaBuilder` that come from op functions, for type checkers and editors.

Made by `xlapy ops --stub > xlapy/builder/method_types.pyi`; a test compares them. There is no such module at run time.
"""
'''


def stub() -> str:
    """The whole file."""
    imported: defaultdict[str, set[str]] = defaultdict(set)
    classes: list[str] = []
    for owner, base in CLASSES.items():
        classes += ["", f"class {base}:"]
        for name, function in sorted(_methods_of(owner)):
            signature = _signature(function, owner)
            classes += _method(name, signature, function)
            for used in _names(signature):
                imported[_home(used, function.__module__)].add(used)
    return "\n".join([_HEAD, *_imports(imported), *classes]) + "\n"


def _methods_of(owner: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    return ((name, made) for of, name, made in methods() if of is owner and vars(owner).get(name) is made)


def _signature(function: Callable[..., Any], owner: type) -> inspect.Signature:
    """That of the function, or of the one of its overloads which begins with the class."""
    signatures = [inspect.signature(overload) for overload in typing.get_overloads(function)]
    fitting = [signature for signature in signatures if _first(signature).annotation == owner.__name__]
    return fitting[0] if fitting else inspect.signature(function)


def _first(signature: inspect.Signature) -> inspect.Parameter:
    return next(iter(signature.parameters.values()))


# -- methods -------------------------------------------------------------------------------------------------------


def _method(name: str, signature: inspect.Signature, function: Callable[..., Any]) -> Iterator[str]:
    """Laid out as the formatter does it."""
    parameters = list(_parameters(signature))
    result = signature.return_annotation
    line = f"    def {name}({', '.join(parameters)}) -> {result}:"
    if len(line) <= LINE_LENGTH:
        yield line
    else:
        inside = f"        {', '.join(parameters)}"
        yield f"    def {name}("
        yield from [inside] if len(inside) <= LINE_LENGTH else [f"        {parameter}," for parameter in parameters]
        yield f"    ) -> {result}:"
    summary = " ".join((inspect.getdoc(function) or "").split("\n\n")[0].split())
    lines = textwrap.wrap(f'"""{summary}"""', LINE_LENGTH - 8)
    yield from (f"        {line}" for line in lines)


def _parameters(signature: inspect.Signature) -> Iterator[str]:
    """All parameters as they are written, the first one as `self`."""
    yield "self"
    first, *others = signature.parameters.values()
    before = first.kind
    for parameter in others:
        if before is parameter.POSITIONAL_ONLY and parameter.kind is not before:
            yield "/"
        if before is parameter.POSITIONAL_OR_KEYWORD and parameter.kind is parameter.KEYWORD_ONLY:
            yield "*"
        before = parameter.kind
        default = "" if parameter.default is parameter.empty else f" = {_written(parameter.default)}"
        stars = "*" if before is parameter.VAR_POSITIONAL else "**" if before is parameter.VAR_KEYWORD else ""
        yield f"{stars}{parameter.name}: {parameter.annotation}{default}"
    if before is first.POSITIONAL_ONLY:
        yield "/"


def _written(default: object) -> str:
    """The default as an expression."""
    if isinstance(default, enum.Enum):
        return f"{type(default).__name__}.{default.name}"
    return repr(default).replace("'", '"')


# -- names ---------------------------------------------------------------------------------------------------------


def _names(signature: inspect.Signature) -> set[str]:
    """The names in annotations and defaults, besides those that Python knows."""
    texts = [signature.return_annotation]
    for parameter in list(signature.parameters.values())[1:]:
        texts.append(parameter.annotation)
        if isinstance(parameter.default, enum.Enum):
            texts.append(_written(parameter.default))
    nodes = (node for text in texts for node in ast.walk(ast.parse(text, mode="eval")))
    return {node.id for node in nodes if isinstance(node, ast.Name) and not hasattr(builtins, node.id)}


def _home(name: str, module: str) -> str:
    """The module which a name of `module` is defined in."""
    return _imported(module).get(name, module)


@functools.cache
def _imported(module: str) -> Mapping[str, str]:
    """Where the names come from that a module imports."""
    nodes = [
        node for node in ast.parse(inspect.getsource(sys.modules[module])).body if isinstance(node, ast.ImportFrom)
    ]
    return {alias.name: node.module or "" for node in reversed(nodes) for alias in node.names}


def _imports(names: Mapping[str, set[str]]) -> Iterator[str]:
    """The statements: those of Python's modules first."""
    lines = {module: f"from {module} import {', '.join(sorted(names[module]))}" for module in sorted(names)}
    yield from (line for module, line in lines.items() if not module.startswith("xlapy."))
    yield ""
    yield from (line for module, line in lines.items() if module.startswith("xlapy."))
