"""Every name of the old module is there, and every op function takes what it took."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import pytest

from tests.xla_client import names
from xlapy import ops as xlapy_ops
from xlapy import xla_client
from xlapy.builder.other_names import KEYWORDS_ELSEWHERE
from xlapy.xla_client import _xla, ops

FORMS = [line.split(" ", 1) for line in names.OPS.strip().splitlines()]

OWN_FORMS = ("Conditional", "Iota", "ReducePrecision", "Reshape", "Scatter", "Sort")
"""Functions of several forms, whose parameters are told apart by what is given."""


def found(path: str) -> Any:
    return functools.reduce(getattr, path.split("."), xla_client)


def test_the_module_has_every_name() -> None:
    assert [name for name in names.MODULE if not hasattr(xla_client, name)] == []
    assert [name for name in names.EXTENSION if not hasattr(_xla, name)] == []
    assert [name for name in names.MLIR if not hasattr(_xla.mlir, name)] == []


def test_what_is_exported_exists() -> None:
    for module in (xla_client, _xla, ops):
        assert [name for name in module.__all__ if not hasattr(module, name)] == []
    assert [name for name in names.MODULE if name not in xla_client.__all__ and not name.startswith("_")] == []


@pytest.mark.parametrize("path", names.METHODS)
def test_classes_have_every_method(path: str) -> None:
    kind = found(path)
    instance = kind() if path.endswith("Options") else kind  # dataclasses have their fields in instances
    assert [name for name in names.METHODS[path].split() if not hasattr(instance, name)] == []


@pytest.mark.parametrize("path", names.ENUMERATORS)
def test_enumerators_have_their_numbers(path: str) -> None:
    words = names.ENUMERATORS[path].split()
    kind = found(path)
    assert {name: int(kind[name]) for name in words[::2]} == dict(zip(words[::2], map(int, words[1::2]), strict=True))


def test_there_are_144_functions() -> None:
    everything = {*(name for name, *_ in FORMS), *names.BINARY, *names.UNARY}
    assert len(everything) == 144
    assert [name for name in sorted(everything) if not hasattr(ops, name)] == []


@pytest.mark.parametrize("name", names.UNARY)
def test_unary_functions_take_an_accuracy(name: str) -> None:
    """Newer releases have that parameter; all have the operand first."""
    builder = xla_client.XlaBuilder(name)
    element = "c64" if name in ("Real", "Imag", "Conj") else "s32" if name in ("PopulationCount", "Clz") else "f32"
    operand = ops.Parameter(builder, 0, xla_client.Shape("pred[2]" if name == "Not" else f"{element}[2]"))
    for result in (getattr(ops, name)(operand), getattr(ops, name)(operand, result_accuracy=None)):
        assert builder.get_shape(result).dimensions() == (2,)
    getattr(ops, name)(operand, xla_client.ResultAccuracy())


@pytest.mark.parametrize("name", names.BINARY)
def test_binary_functions_have_their_parameters(name: str) -> None:
    assert list(inspect.signature(getattr(xlapy_ops, name)).parameters)[:3] == ["lhs", "rhs", "broadcast_dimensions"]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form[0])
def test_functions_have_their_parameters(form: list[str]) -> None:
    """All by their names there, and most in their order."""
    name, parameters = form
    ours = KEYWORDS_ELSEWHERE.get(name, {})
    wanted = [ours.get(parameter, parameter) for parameter in parameters.split()]
    signature = inspect.signature(getattr(xlapy_ops, name))
    signature.bind(**dict.fromkeys(wanted))
    if name not in OWN_FORMS:
        assert list(signature.parameters)[: len(wanted)] == wanted
