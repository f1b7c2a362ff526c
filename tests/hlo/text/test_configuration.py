"""What custom calls carry along: strings, JSON, typed attributes."""

from __future__ import annotations

from typing import Any

import pytest

from xlapy.hlo.text.configuration import configuration
from xlapy.support.errors import ParseError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", b""),
        (r'"b\22ar\n\\"', b'b"ar\n\\'),
        (r'"\C3\A9"', "é".encode()),
        ('{"a": [1, {"b": null}], "c": 0.5}', {"a": (1, {"b": None}), "c": 0.5}),
        ("{}", {}),
        ("{uplo = 76 : ui8, low = -1 : i32}", {"uplo": 76, "low": -1}),
        ("{scale = 5.000000e-01 : f32, mask = 0xFF : ui8}", {"scale": 0.5, "mask": 255}),
        ('{left = true, off = false, on, name = "x"}', {"left": True, "off": False, "on": True, "name": "x"}),
        ("{sizes = [1 : i64, 2 : i64], none = []}", {"sizes": (1, 2), "none": ()}),
        ("{sizes = array<i64: 1, 2>, none = array<i32>}", {"sizes": (1, 2), "none": ()}),
        ("{table = dense<[[1, 2], [3, 4]]> : tensor<2x2xi64>}", {"table": ((1, 2), (3, 4))}),
        ('{"quoted name" = {inner = 1}, type = complex<f32>}', None),
        ('{"quoted name" = {inner = 1}, type = f32}', {"quoted name": {"inner": 1}, "type": "f32"}),
    ],
)
def test_what_is_read(text: str, value: Any) -> None:
    if value is None:
        with pytest.raises(ParseError, match="cannot read the backend_config"):
            configuration(text)
    else:
        assert configuration(text) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "a string or a dictionary"),
        ("{a = }", "cannot read the backend_config {a = }"),
        ("{a = 1", "cannot read"),
        ("{a = 1} {b = 2}", "cannot read"),
        ("{a = 2x3}", "cannot read"),
        ("{a = unknown}", "cannot read"),
        ("{[a] = 1}", "cannot read"),
        ("{a = ;}", "cannot read"),
        ("{a = " + "[" * 100, "too deeply"),
        ('{"a": ' + "[" * 100_000, "too deeply"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        configuration(text)
