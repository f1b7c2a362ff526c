"""Zeta functions of negative numbers: programs call the library, which no program has a copy of."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from tests.support.emitted import emitted_code
from tests.support.native import assert_same_bits
from xlapy.codegen.libraries.rare_functions import ZETAS
from xlapy.codegen.math.zeta import ZETA_OF_NEGATIVE
from xlapy.codegen.target import host_target

BODY = """HloModule zetas
ENTRY e {{ s = {kind}[{size}] parameter(0)
  q = {kind}[{size}] parameter(1)
  ROOT z = {kind}[{size}] zeta(s, q) }}
"""


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_programs_call_the_library(kind: str) -> None:
    code, libraries = emitted_code(BODY.format(kind=kind, size=1 << 13))
    assert ZETAS.name in libraries
    assert f"declare void @{ZETA_OF_NEGATIVE.symbol}(" in code


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_negative_numbers_in_any_company(kind: str) -> None:
    dtype = {"f32": np.float32, "f64": np.float64}[kind]
    s = np.full(100, 3, dtype)
    q = np.linspace(0.25, 40, 100).astype(dtype)
    together, alone = (xlapy.compile(BODY.format(kind=kind, size=size)) for size in (100, 1))
    usual = np.asarray(together(s, q))
    for negative in (-0.5, -1.25, -17.75, -2.0, -np.inf):
        q[37] = negative
        got = np.asarray(together(s, q))
        assert_same_bits(np.delete(got, 37), np.delete(usual, 37))
        assert_same_bits(got[37], np.asarray(alone(s[37:38], q[37:38]))[0])


def test_the_library_has_the_only_copy() -> None:
    assert f"define void @{ZETA_OF_NEGATIVE.symbol}(" in ZETAS.emit(host_target()).text()
