"""The configuration of custom calls, in all its spellings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlapy
from xlapy.hlo.text.backend_config import read_backend_config
from xlapy.support.errors import ParseError

CONFIGS = [
    ("", b""),
    ('"plain"', b"plain"),
    ('"a\\"b"', b'a"b'),
    ("{}", {}),
    ('{"x": 1, "y": [2.5]}', {"x": 1, "y": (2.5,)}),
    ("{uplo = 76 : ui8}", {"uplo": 76}),
    ('{a = 1.5e+00 : f32, b = "text", c, d = false}', {"a": 1.5, "b": "text", "c": True, "d": False}),
    ("{list = [1 : i64, 2], array = array<i64: 3, -4>, empty = array<i32>}",
     {"list": (1, 2), "array": (3, -4), "empty": ()}),
    ("{inner = {x = 0xFF : i64}, symbol = @f, kind = #dialect<value>}",
     {"inner": {"x": 255}, "symbol": "@f", "kind": "#dialect<value>"}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), CONFIGS)
def test_values(text: str, value: Any) -> None:
    assert read_backend_config(text) == value


@pytest.mark.parametrize(
    "text", ["{", "{a = }", "{a = 1 b = 2}", "{a = [1}", "3", "{a = 1} x", "{" * 200, "{a = [" * 99]
)
def test_wrong_configs(text: str) -> None:
    with pytest.raises(ParseError, match="backend_config"):
        read_backend_config(text)


def test_entries_are_keyword_arguments() -> None:
    text = """HloModule m
    ENTRY e {
      x = f32[2] parameter(0)
      ROOT y = f32[2] custom-call(x), custom_call_target="scaled", api_version=API_VERSION_TYPED_FFI,
        backend_config={factor = 3 : i64}
    }"""
    options = xlapy.CompileOptions(custom_calls={"scaled": lambda x, factor: x * factor})
    result = xlapy.compile(text, options)(np.array([1, 2], np.float32))
    np.testing.assert_array_equal(result, [3, 6])
