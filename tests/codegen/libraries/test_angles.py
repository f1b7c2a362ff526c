"""Sines of large angles: programs call the library, which no program has a copy of."""

from __future__ import annotations

import numpy as np

import xlapy
from tests.support.native import assert_same_bits
from xlapy.codegen.libraries.angles import ANGLES
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
        program = xlapy.compile(BODY.format(kind="f32", size=size))._compiled.program
        assert ANGLES.name in program.libraries
        code = "".join(program.llvm_modules)
        assert f"declare void @{SINGLE_ANGLES.symbol}(" in code and "define internal" not in code
    wide = xlapy.compile(BODY.format(kind="f64", size=40))._compiled.program
    assert f"declare void @{LARGE_ANGLES}(" in "".join(wide.llvm_modules)


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


def test_the_library_has_the_only_copy() -> None:
    text = ANGLES.emit(host_target()).text()
    assert f"define void @{LARGE_ANGLES}(" in text and f"define void @{SINGLE_ANGLES.symbol}(" in text
