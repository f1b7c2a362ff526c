"""What is public says what it is: each class and function has a docstring, and so has each method."""

from __future__ import annotations

import inspect
from types import ModuleType

import pytest

import xlapy
import xlapy.hlo.graph
import xlapy_runtime

PUBLIC = (xlapy, xlapy_runtime, xlapy.hlo, xlapy.hlo.graph, xlapy.stablehlo)


@pytest.mark.parametrize("module", PUBLIC, ids=lambda module: module.__name__)
def test_what_is_public_says_what_it_is(module: ModuleType) -> None:
    found = {name: getattr(module, name) for name in module.__all__}
    documented = {name: value for name, value in found.items() if inspect.isclass(value) or inspect.isfunction(value)}
    for name, value in tuple(documented.items()):
        if inspect.isclass(value):
            parts = {f"{name}.{part}": of_class for part, of_class in vars(value).items() if not part.startswith("_")}
            documented |= {part: of_class for part, of_class in parts.items() if is_method(of_class)}
    assert [name for name, value in documented.items() if not value.__doc__] == []


def test_op_functions_say_what_they_are() -> None:
    assert [name for name in dir(xlapy.ops) if name[0].isupper() and not getattr(xlapy.ops, name).__doc__] == []


def is_method(of_class: object) -> bool:
    return inspect.isfunction(of_class) or isinstance(of_class, (classmethod, property, staticmethod))
