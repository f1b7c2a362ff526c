"""Factors of small matrices, which a machine compiles once for each size."""

from __future__ import annotations

import re

import numpy as np
import pytest

import xlapy
from xlapy.codegen.kernels.matrices import work_on_matrices
from xlapy.codegen.libraries.catalogue import LIBRARIES
from xlapy.codegen.libraries.matrices import call_on_matrices, matrix_library
from xlapy.codegen.target import host_target
from xlapy.hlo.ops import OPS

LANES = host_target().lanes(32)
PROGRAMS = {
    "eigh": """x = {t}[{b},3,3] parameter(0) e = ({t}[{b},3,3], {t}[{b},3]) eigh(x), lower=true
        ROOT v = {t}[{b},3] get-tuple-element(e), index=1""",
    "svd": """x = {t}[{b},4,3] parameter(0)
        s = ({t}[{b},4,3], {t}[{b},3], {t}[{b},3,3]) svd(x), full_matrices=false
        ROOT v = {t}[{b},3] get-tuple-element(s), index=1""",
    "lu": """x = {t}[{b},5,5] parameter(0) f = ({t}[{b},5,5], s32[{b},5], s32[{b},5]) lu(x)
        ROOT v = {t}[{b},5,5] get-tuple-element(f), index=0""",
    "qr-decomposition": """x = {t}[{b},4,2] parameter(0) f = ({t}[{b},4,2], {t}[{b},2]) qr-decomposition(x)
        p = {t}[{b},4,2] get-tuple-element(f), index=0 u = {t}[{b},2] get-tuple-element(f), index=1
        ROOT h = {t}[{b},4,2] householder-product(p, u)""",
    "cholesky": """x = {t}[{b},3,3] parameter(0) y = {t}[{b},3,3] transpose(x), dimensions={{0,2,1}}
        p = {t}[{b},3,3] dot(x, y), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}},
          rhs_contracting_dims={{1}}
        ROOT c = {t}[{b},3,3] cholesky(p), lower=true""",
    "triangular-solve": """x = {t}[{b},4,4] parameter(0) y = {t}[{b},4,2] parameter(1)
        ROOT s = {t}[{b},4,2] triangular-solve(x, y), left_side=true, lower=true, transpose_a=TRANSPOSE""",
}


def text_of(name: str, batch: int, kind: str = "f32") -> str:
    return f"ENTRY e {{ {PROGRAMS[name].format(t=kind, b=batch)} }}"


def check(text: str) -> str:
    """Compares a program with the evaluator; its code."""
    generator = np.random.default_rng(3)
    parameters = xlapy.hlo.parse(text).entry.parameters
    arguments = [generator.standard_normal(p.shape.dims).astype(p.shape.type.dtype) for p in parameters]
    for argument in arguments:
        argument[..., *map(np.arange, [min(argument.shape[-2:])] * 2)] += 4
    compiled = xlapy.compile(text)
    tolerance = 64 * np.finfo(arguments[0].dtype).eps
    np.testing.assert_allclose(compiled(*arguments), xlapy.evaluate(text, *arguments), rtol=tolerance, atol=tolerance)
    return compiled.llvm_ir()


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    for batch, way in ((4 * LANES, "full"), (3 * LANES + 1, "ragged"), (LANES - 1, "single")):
        code = check(text_of(name, batch))
        assert f"@{OPS[name].python_name}.f32." in code
        assert f".{way}" in code
        assert f"kernel.0.{name}" not in code
    for kind in ("f64", "c64"):
        if kind == "f64" or name not in ("eigh", "svd"):
            assert f"@{OPS[name].python_name}.{kind}." in check(text_of(name, 11, kind))


def test_attributes_are_part_of_the_name() -> None:
    text, names = text_of("triangular-solve", 4 * LANES), set()
    for old, new in (("", ""), ("lower=true", "lower=false"), ("=TRANSPOSE", "=NO_TRANSPOSE")):
        code = check(text.replace(old, new))
        names.update(re.findall(r"@(triangular_solve\.f32\.4x4_4x2\.\d+\.full)", code))
    assert len(names) == 3


def test_matrices_that_take_long_have_kernels() -> None:
    text = text_of("lu", 1).replace("[1,5,5]", "[1,200,200]").replace("[1,5]", "[1,200]")
    assert "kernel.0.lu" in xlapy.compile(text).llvm_ir()


def test_a_result_may_be_where_the_operand_is() -> None:
    code = check(text_of("cholesky", 3 * LANES + 1))
    assert "@cholesky.f32.3x3.1.ragged.in_place" in code


def test_large_results_bypass_the_caches() -> None:
    root = xlapy.hlo.parse(text_of("triangular-solve", 1 << 28)).entry.root
    work = work_on_matrices(root, host_target(), in_place=False)
    call = call_on_matrices(root, work, in_place=False)
    assert call is not None
    assert call.library.endswith(".full.past_caches")
    fences = [
        LIBRARIES[name].emit(host_target()).text().count("fence")
        for name in (call.library, call.library.removesuffix(".past_caches"))
    ]
    assert fences[0] > fences[1] == 0


def test_names() -> None:
    assert LIBRARIES["lu.f64.3x3..full"].exports == ("lu.f64.3x3..full",)
    assert matrix_library("lu.f64.3x3..half") is None
    assert LIBRARIES["lu.f64.64x4..sized"].exports == ("lu.f64.64x4..sized",)
    assert matrix_library("negate.f64.3x3..full") is None
