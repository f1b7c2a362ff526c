"""Powers whose base or result is no normal number: programs call the library, which no program has a copy of."""

from __future__ import annotations

import itertools

import numpy as np

import xlapy
from tests.support.emitted import emitted_code
from tests.support.native import assert_same_bits
from xlapy.codegen.libraries.rare_functions import POWERS
from xlapy.codegen.math.power import ANY_POWERS
from xlapy.codegen.target import host_target

BODY = """HloModule powers
ENTRY e {{ x = {kind}[{size}] parameter(0)
  y = {kind}[{size}] parameter(1)
  ROOT p = {kind}[{size}] power(x, y) }}
"""
BASES = (0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 1e-40, -1e-40, 1e30, np.inf, -np.inf, np.nan)
EXPONENTS = (0.0, 1.0, 2.0, -3.0, 0.5, -0.5, 40.0, -40.0, np.inf, -np.inf, np.nan)


def test_programs_call_the_library() -> None:
    for kind, size in (("f32", 40), ("f64", 1 << 17)):  # without optimization, and with
        code, libraries = emitted_code(BODY.format(kind=kind, size=size))
        assert POWERS.name in libraries
        assert f"declare void @{ANY_POWERS[kind].symbol}(" in code and "define internal" not in code


def test_all_special_cases_in_any_company() -> None:
    """As numpy has them, and as the same function gives them one by one."""
    for kind, dtype in (("f32", np.float32), ("f64", np.float64)):
        pairs = np.array([*itertools.product(BASES, EXPONENTS)], dtype)
        bases, exponents = np.ascontiguousarray(pairs.T)
        together = np.asarray(xlapy.compile(BODY.format(kind=kind, size=len(pairs)))(bases, exponents))
        with np.errstate(all="ignore"):
            wanted = np.power(bases, exponents)
        np.testing.assert_allclose(together, wanted, rtol=1e-6)
        assert (np.signbit(together) == np.signbit(wanted))[~np.isnan(together)].all()
        alone = xlapy.compile(BODY.format(kind=kind, size=1))
        for number in range(0, len(pairs), 3):
            one = alone(bases[number : number + 1], exponents[number : number + 1])
            assert_same_bits(np.asarray(one)[0], together[number])


def test_the_library_has_the_only_copy() -> None:
    text = POWERS.emit(host_target()).text()
    assert all(f"define void @{function.symbol}(" in text for function in ANY_POWERS.values())
