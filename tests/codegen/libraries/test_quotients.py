"""Quotients of complex numbers that are not finite: programs call the library, which no program has a copy of."""

from __future__ import annotations

import itertools

import numpy as np

import xlapy
from tests.support.emitted import emitted_code
from tests.support.native import assert_same_bits
from xlapy.codegen.libraries.rare_functions import QUOTIENTS
from xlapy.codegen.math.complex import ANY_QUOTIENTS
from xlapy.codegen.target import host_target

BODY = """HloModule quotients
ENTRY e {{ x = {kind}[{size}] parameter(0)
  y = {kind}[{size}] parameter(1)
  ROOT q = {kind}[{size}] divide(x, y) }}
"""
PARTS = (0.0, -0.0, 1.0, -2.5, 1e30, np.inf, -np.inf, np.nan)


def test_programs_call_the_library() -> None:
    for kind, part, size in (("c64", "f32", 40), ("c128", "f64", 1 << 16)):  # without optimization, and with
        code, libraries = emitted_code(BODY.format(kind=kind, size=size))
        assert QUOTIENTS.name in libraries
        assert f"declare void @{ANY_QUOTIENTS[part].symbol}(" in code and "define internal" not in code


def test_special_quotients_in_any_company() -> None:
    """As the same function gives them one by one."""
    for kind, dtype in (("c64", np.complex64), ("c128", np.complex128)):
        parts = np.array([*itertools.product(PARTS, repeat=4)])
        numbers = np.zeros((2, len(parts)), dtype)
        numbers.real, numbers.imag = parts[:, :2].T, parts[:, 2:].T
        together = np.asarray(xlapy.compile(BODY.format(kind=kind, size=len(parts)))(*numbers))
        alone = xlapy.compile(BODY.format(kind=kind, size=1))
        for number in range(0, len(parts), 97):
            one = np.asarray(alone(*numbers[:, number : number + 1]))
            assert_same_bits(one[0], together[number])


def test_the_library_has_the_only_copy() -> None:
    text = QUOTIENTS.emit(host_target()).text()
    assert all(f"define void @{function.symbol}(" in text for function in ANY_QUOTIENTS.values())
