"""Sines of large angles: programs call the library, which no program has a copy of."""

from __future__ import annotations

import numpy as np

import xlapy
from tests.support.emitted import emitted_code
from tests.support.native import assert_same_bits
from xlapy.codegen.libraries.rare_functions import ANGLES
from xlapy.codegen.math.trigonometric import ANY_SINES
from xlapy.codegen.math.trigonometric_reduction import LARGE_ANGLES, SINGLE_ANGLES
from xlapy.codegen.target import host_target

BODY = """HloModule waves
ENTRY e {{ x = {kind}[{size}] parameter(0)
  s = {kind}[{size}] sine(x)
  c = {kind}[{size}] cosine(x)
  ROOT t = ({kind}[{size}], {kind}[{size}]) tuple(s, c) }}
"""


def test_programs_call_the_library() -> None:
    for size in (40, 1 << 17):  # without optimization, and with
        code, libraries = emitted_code(BODY.format(kind="f32", size=size))
        assert ANGLES.name in libraries
        for turns in (0, 1):
            assert f"declare void @{ANY_SINES['f32', turns].symbol}(" in code and "define internal" not in code
    wide, _ = emitted_code(BODY.format(kind="f64", size=40))
    for turns in (0, 1):
        assert f"declare void @{ANY_SINES['f64', turns].symbol}(" in wide


def test_tangents_call_for_the_reduction() -> None:
    for kind, symbol in (("f32", SINGLE_ANGLES.symbol), ("f64", LARGE_ANGLES)):
        text = f"HloModule m\nENTRY e {{ x = {kind}[40] parameter(0)\n  ROOT t = {kind}[40] tan(x) }}\n"
        code, libraries = emitted_code(text)
        assert ANGLES.name in libraries
        assert f"declare void @{symbol}(" in code


def test_large_angles_in_every_lane() -> None:
    """As the same function gives them one by one, in whatever company."""
    for kind, largest in (("f32", 38), ("f64", 308)):
        dtype = np.dtype(kind.replace("f", "float"))
        angles = np.concatenate([np.linspace(-3, 3, 37), 10.0 ** np.linspace(5, largest, 63)]).astype(dtype)
        together = xlapy.compile(BODY.format(kind=kind, size=angles.size))(angles)
        alone = xlapy.compile(BODY.format(kind=kind, size=1))
        for number, angle in enumerate(angles):
            for got, want in zip(together, alone(np.array([angle])), strict=True):
                assert_same_bits(got[number], want[0])
        wide = angles[angles < 1e6].astype(np.float64)
        np.testing.assert_allclose(together[0][: wide.size], np.sin(wide), rtol=1e-5, atol=1e-7)


def test_one_and_zero_are_met() -> None:
    """A cosine of next to nothing is 1, none is beyond 1, and sines of next to nothing are their angles."""
    for dtype in (np.float32, np.float64):
        tiny = np.array([0.0, -0.0, 1e-30, -1e-30, 1e-9, -1e-9], dtype)
        largest = np.arange(-300, 300).astype(dtype) * dtype(np.pi / 2)
        kind = np.dtype(dtype).name.replace("float", "f")
        sines, cosines = xlapy.compile(BODY.format(kind=kind, size=tiny.size))(tiny)
        assert_same_bits(sines, tiny)
        assert (cosines == 1).all()
        for waves in xlapy.compile(BODY.format(kind=kind, size=largest.size))(largest):
            assert np.abs(waves).max() == 1


def test_none_is_beyond_one() -> None:
    """Next to odd quarter turns, where what is added to the angle that is left must not be a bit too large."""
    for dtype in (np.float32, np.float64):
        kind = np.dtype(dtype).name.replace("float", "f")
        turns = np.arange(1, 1300, 2)[:, None] * (np.pi / 2)
        angles = (turns + np.linspace(-1e-3, 1e-3, 401)).astype(dtype).reshape(-1)
        waves = xlapy.compile(BODY.format(kind=kind, size=angles.size))
        for quarter in (0, np.pi / 2):
            for wave in waves((angles + dtype(quarter)).astype(dtype)):
                assert np.abs(wave).max() <= 1


def test_the_library_has_the_only_copy() -> None:
    text = ANGLES.emit(host_target()).text()
    assert f"define void @{LARGE_ANGLES}(" in text and f"define void @{SINGLE_ANGLES.symbol}(" in text
