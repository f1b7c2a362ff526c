"""Factors of matrices that come one by one: code that is told their sizes when it runs."""

from __future__ import annotations

import re

import numpy as np
import pytest

import xlapy
from xlapy.codegen.target import host_target

KINDS = ("f32", "f64", "c64", "c128")

FACTORS = {
    "lu": """f = ({t}[3,{m},{n}], s32[3,{s}], s32[3,{m}]) lu(x)
        ROOT v = {t}[3,{m},{n}] get-tuple-element(f), index=0""",
    "qr_decomposition": """f = ({t}[3,{m},{n}], {t}[3,{s}]) qr-decomposition(x)
        ROOT p = {t}[3,{m},{n}] get-tuple-element(f), index=0""",
    "householder_product": """f = ({t}[3,{m},{n}], {t}[3,{s}]) qr-decomposition(x)
        p = {t}[3,{m},{n}] get-tuple-element(f), index=0 u = {t}[3,{s}] get-tuple-element(f), index=1
        ROOT h = {t}[3,{m},{n}] householder-product(p, u)""",
}


def sized_names(text: str, diagonal: float = 0, scale: float = 1) -> set[str]:
    """The libraries that a program calls, which is compared with the evaluator: for a matrix of such a scale, and so
    much on its diagonal."""
    generator = np.random.default_rng(3)
    arguments = []
    for parameter in xlapy.hlo.parse(text).entry.parameters:
        dims, dtype = parameter.shape.dims, parameter.shape.type.dtype
        argument = generator.standard_normal(dims) + 1j * generator.standard_normal(dims)
        argument = (argument if dtype.kind == "c" else argument.real).astype(dtype)
        argument[..., *map(np.arange, [min(dims[-2:])] * 2)] += diagonal
        arguments.append(argument)
    arguments[0] *= scale
    compiled = xlapy.compile(text)
    tolerance = 512 * np.finfo(arguments[0].dtype).eps
    np.testing.assert_allclose(compiled(*arguments), xlapy.evaluate(text, *arguments), rtol=tolerance, atol=tolerance)
    return set(re.findall(r"@(\w+\.\w+\.[x_\d]+\.\d*\.sized[.\w]*)\(", compiled.llvm_ir()))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FACTORS)
def test_factors(name: str, kind: str) -> None:
    found = set()
    for rows, columns in ((33, 17), (40, 33), (64, 63)):
        text = FACTORS[name].format(t=kind, m=rows, n=columns, s=columns)
        found |= sized_names(f"ENTRY e {{ x = {kind}[3,{rows},{columns}] parameter(0) {text} }}")
    assert sum(each.startswith(f"{name}.{kind}.64x") for each in found) == 1


@pytest.mark.parametrize("name", FACTORS)
def test_factors_with_few_columns_have_shorter_vectors(name: str) -> None:
    text = FACTORS[name].format(t="f64", m=50, n=3, s=3)
    found = sized_names(f"ENTRY e {{ x = f64[3,50,3] parameter(0) {text} }}")
    assert sum(each.startswith(f"{name}.f64.64x2") for each in found) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lower", ["true", "false"])
def test_cholesky(kind: str, lower: str) -> None:
    found = set()
    for rows in (17, 50, 64):
        shape = f"{kind}[2,{rows},{rows}]"
        text = f"""ENTRY e {{ r = {shape} parameter(0) {_adjoint(kind, rows)}
            x = {shape} add(r, t) ROOT c = {shape} cholesky(x), lower={lower} }}"""
        found |= sized_names(text, diagonal=4 * rows)
    assert len({each.removesuffix(".in_place") for each in found}) == 1


def _adjoint(kind: str, rows: int) -> str:
    """The instruction t, which is the adjoint of r."""
    shape = f"{kind}[2,{rows},{rows}]"
    if kind.startswith("f"):
        return f"t = {shape} transpose(r), dimensions={{0,2,1}}"
    part = f"{'f32' if kind == 'c64' else 'f64'}[2,{rows},{rows}]"
    return f"""re = {part} real(r) im = {part} imag(r) minus = {part} negate(im) other = {shape} complex(re, minus)
        t = {shape} transpose(other), dimensions={{0,2,1}}"""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("transpose", ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"])
def test_triangular_systems(kind: str, transpose: str) -> None:
    found = set()
    for left, lower, unit in ((1, 1, 0), (1, 0, 1), (0, 1, 1), (0, 0, 0)):
        for rows, sides in ((20, 200), (64, 150)):
            shape = f"{kind}[2,{rows},{sides}]" if left else f"{kind}[2,{sides},{rows}]"
            flags = [("false", "true")[flag] for flag in (left, lower, unit)]
            found |= sized_names(
                f"""ENTRY e {{ x = {kind}[2,{rows},{rows}] parameter(0) y = {shape} parameter(1)
                ROOT s = {shape} triangular-solve(x, y), left_side={flags[0]}, lower={flags[1]},
                  unit_diagonal={flags[2]}, transpose_a={transpose} }}""",
                diagonal=4 * rows,
                scale=1 / rows,
            )
    assert len(found) == 2  # with ones on the diagonal, and without


@pytest.mark.parametrize("sides", [1, 2, 3, 6, 40])
def test_few_right_sides_have_shorter_vectors(sides: int) -> None:
    width = min(1 << (sides - 1).bit_length(), 4 * host_target().lanes(32))
    for batch in (1, 3):
        shape = f"f32[{batch},30,{sides}]"
        found = sized_names(
            f"""ENTRY e {{ x = f32[{batch},30,30] parameter(0) y = {shape} parameter(1)
            ROOT s = {shape} triangular-solve(x, y), left_side=true, lower=true, transpose_a=NO_TRANSPOSE }}""",
            diagonal=60,
        )
        assert found == {f"triangular_solve.f32.64x64_64x{width}.1100.sized"}
