"""JSON read by the C function of the json package alone."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from xlapy_runtime.json_text import read_json

VALUES: list[Any] = [
    {"a": [1, -2.5e-300, None, True, 'é\n"\\', {}], "b": [[]]},
    [],
    "",
    2**80,
    [math.inf, -math.inf],
    {"nested": {"twice": [{"x": 1}, {"x": 2}]}},
]


@pytest.mark.parametrize("value", VALUES)
def test_what_was_written_is_read(value: Any) -> None:
    for text in (json.dumps(value), json.dumps(value, separators=(",", ":"))):
        assert read_json(text) == value == json.loads(text)
    assert math.isnan(read_json(json.dumps(math.nan)))


@pytest.mark.parametrize("text", ["", '{"a"', "[1] ", " 1", "x", "[1,]", '{"a":1}{', "1x", '"', "\0", '["\x01"]'])
def test_all_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        read_json(text)
