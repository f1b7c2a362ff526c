"""Whether the native call wrapper may be used: only where objects of Python and numpy are laid out as it takes them to
be."""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from xlapy_runtime import calling, object_layouts
from xlapy_runtime.calling import load_wrapper


@pytest.fixture
def forgetful_layout_check() -> Iterator[None]:
    object_layouts.is_layout_known.cache_clear()
    yield
    object_layouts.is_layout_known.cache_clear()


@pytest.mark.usefixtures("forgetful_layout_check")
@pytest.mark.parametrize("field", ["object", "data", "rank", "dims", "strides", "base", "descriptor", "flags"])
def test_a_moved_field_selects_the_portable_way(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_layouts, "ArrayFields", with_padding_before(object_layouts.ArrayFields, field))
    assert load_wrapper(b"never looked at") is None


@pytest.mark.usefixtures("forgetful_layout_check")
@pytest.mark.parametrize("field", ["object", "scalar_type", "identity"])
def test_a_moved_field_of_dtypes_selects_the_portable_way(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_layouts, "DtypeFields", with_padding_before(object_layouts.DtypeFields, field))
    assert load_wrapper(b"never looked at") is None


@pytest.mark.usefixtures("forgetful_layout_check")
@pytest.mark.parametrize(
    "change",
    [
        lambda patch: patch.setattr(object_layouts, "_NUMPY_ABI_VERSIONS", (0x03000000,)),
        lambda patch: patch.setattr(sys.implementation, "name", "pypy"),
        lambda patch: patch.setattr(object_layouts, "_OBJECT_BYTES", 32),
        lambda patch: patch.setattr(struct, "calcsize", lambda format: 4),
        lambda patch: patch.setattr(calling, "_numpy_multiarray", lambda: np),
    ],
    ids=["numpy version", "interpreter", "free threading", "32 bits", "no table"],
)
def test_an_unknown_python_or_numpy_selects_the_portable_way(
    change: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    calling.numpy_api.cache_clear()
    change(monkeypatch)
    assert load_wrapper(b"never looked at") is None
    monkeypatch.undo()
    calling.numpy_api.cache_clear()


def with_padding_before(structure: type[ctypes.Structure], field: str) -> type[ctypes.Structure]:
    """The structure as another Python or numpy might have it: with a word more before the field."""
    fields: list[Any] = []
    for name, kind in structure._fields_:  # type: ignore[misc]
        if name == field:
            fields.append(("padding", ctypes.c_int64))
        fields.append((name, kind))
    return type("Moved", (ctypes.Structure,), {"_fields_": fields})
