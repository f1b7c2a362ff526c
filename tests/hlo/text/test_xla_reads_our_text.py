"""XLA's own parser on what our printer writes."""

from __future__ import annotations

import importlib

import pytest

from tests.hlo.text.samples import EVERYTHING
from xlapy.hlo.text import parse, to_text

PLACES = ("jaxlib._hlo", "jaxlib.xla_extension")  # where releases of jaxlib keep the function


def through_xla(text: str) -> str:
    for place in PLACES:
        try:
            module = importlib.import_module(place)
        except ImportError:
            continue
        return str(module.hlo_module_from_text(text).to_string())
    raise AssertionError(f"jaxlib has no HLO parser in any of {PLACES}")


@pytest.mark.parametrize("long", [False, True])
def test_xla_reads_both_forms(long: bool) -> None:
    text = to_text(parse(EVERYTHING), long=long)
    assert "ENTRY %main" in through_xla(text)


CONSTANTS = [
    "f32[2,0] constant({ {}, {} })",
    "f32[0,2] constant({})",
    "f32[4] constant({nan(0x12), -nan, inf, -0.0})",
    "f32[1] constant({1e-45})",
    "f64[1] constant({1e-320})",
    "f16[3] constant({nan(0x12), 6e-8, -inf})",
    "bf16[2] constant({1.5, -0.0})",
    "f8e4m3fn[2] constant({1.5, nan})",
    "c64[2] constant({(1, -2.5), (0, -inf)})",
    "pred[2,1] constant({{true}, {false}})",
    "s4[2] constant({-8, 7})",
    "u64[1] constant({18446744073709551615})",
]


@pytest.mark.parametrize("constant", CONSTANTS)
def test_xla_sees_the_same_values(constant: str) -> None:
    module = parse(f"HloModule m\nENTRY e {{ ROOT c = {constant} }}")
    again = parse(through_xla(to_text(module)))
    assert again.entry.root.attributes["literal"] == module.entry.root.attributes["literal"]
