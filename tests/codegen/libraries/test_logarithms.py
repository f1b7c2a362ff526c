"""Logarithms of zeros, subnormal and negative numbers: programs call the library, and have no copy of it."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from tests.support.emitted import emitted_code
from tests.support.native import assert_same_bits
from xlapy.codegen.libraries.rare_functions import LOGARITHMS
from xlapy.codegen.math.logarithm import ANY_LOGARITHMS
from xlapy.codegen.target import host_target

BODY = "HloModule m\nENTRY e {{ x = {kind}[{size}] parameter(0)\n  ROOT l = {kind}[{size}] log(x) }}\n"
DTYPES = {"f32": np.dtype(np.float32), "f64": np.dtype(np.float64)}


@pytest.mark.parametrize("kind", DTYPES)
def test_programs_call_the_library(kind: str) -> None:
    """Where no instructions take any number apart."""
    for size in (40, 1 << 13):  # without optimization, and with
        code, libraries = emitted_code(BODY.format(kind=kind, size=size))
        is_called = not host_target().has_permute
        assert (LOGARITHMS.name in libraries) == is_called
        assert (f"declare void @{ANY_LOGARITHMS[kind].symbol}(" in code) == is_called
        assert "define internal" not in code


@pytest.mark.parametrize("kind", DTYPES)
def test_unusual_numbers_in_any_company(kind: str) -> None:
    """As numpy has them, one among many that are usual, and as the same function gives them one by one."""
    dtype = DTYPES[kind]
    info = np.finfo(dtype)
    tiny, largest = float(info.smallest_subnormal), float(info.max)
    below = np.nextafter(info.smallest_normal, dtype.type(0))
    unusual = [0.0, -0.0, tiny, -tiny, 3 * tiny, below, -below, -1.0, -largest, np.inf, -np.inf, np.nan]
    limits = [float(info.smallest_normal), largest]
    together = xlapy.compile(BODY.format(kind=kind, size=1 << 13))
    alone = xlapy.compile(BODY.format(kind=kind, size=1))
    for number in (*unusual, *limits):
        x = np.linspace(0.25, 40, 1 << 13).astype(dtype)
        usual = np.asarray(together(x))
        x[1234] = number
        got = np.asarray(together(x))
        with np.errstate(all="ignore"):
            wanted = np.log(x[1234].astype(np.longdouble)).astype(dtype)
        np.testing.assert_allclose(got[1234], wanted, rtol=4 * float(info.eps))
        assert_same_bits(np.delete(got, 1234), np.delete(usual, 1234))
        assert_same_bits(got[1234], np.asarray(alone(x[1234:1235]))[0])


def test_the_library_has_the_only_copy() -> None:
    text = LOGARITHMS.emit(host_target()).text()
    assert all(f"define void @{function.symbol}(" in text for function in ANY_LOGARITHMS.values())
