"""Libraries that XLA's optimized programs call: those that we know run, the others are named when they are called."""

from __future__ import annotations

import jax
import ml_dtypes
import numpy as np
import pytest
from jax import lax

import xlapy
from tests.support.xla_flags import usual_fusions
from xlapy.hlo.text import parse, structural_equal, to_text
from xlapy.support.errors import ExecutionError, UnsupportedError

MATRIX = np.arange(16, dtype=np.float32).reshape(4, 4) / 7

ONEDNN = """\
HloModule jit_f, is_scheduled=true

ENTRY %main.4 (p0.1: f32[4,4], p1.2: f32[4,4]) -> f32[4,4] {
  %p0.1 = f32[4,4]{1,0} parameter(0)
  %p1.2 = f32[4,4]{1,0} parameter(1)
  ROOT %call = f32[4,4]{1,0} custom-call(%p0.1, %p1.2), custom_call_target="TARGET", \
metadata={op_name="jit(f)/dot_general"}, backend_config={"outer_dimension_partitions":[],\
"onednn_matmul_config":{"fusions":{"ops":[],"alpha_typecast":0},"bias_broadcast":false,"optimization_config":\
{"weights_prepacked":false,"user_scratchpad":false}}}
}
"""

YNN = """\
HloModule jit_f, is_scheduled=true

%ynn_computation (p0: f32[4,4], p1: f32[4,4]) -> f32[4,4] {
  %p0 = f32[4,4]{1,0} parameter(0)
  %p1 = f32[4,4]{1,0} parameter(1)
  ROOT %dot.1 = f32[4,4]{1,0} dot(%p0, %p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

ENTRY %main.4 (p0.1: f32[4,4], p1.2: f32[4,4]) -> f32[4,4] {
  %p0.1 = f32[4,4]{1,0} parameter(0)
  %p1.2 = f32[4,4]{1,0} parameter(1)
  ROOT %ynn_fusion = f32[4,4]{1,0} fusion(%p0.1, %p1.2), kind=kCustom, calls=%ynn_computation, \
backend_config={"outer_dimension_partitions":[],"fusion_config":{"kind":"__ynn_fusion"}}
}
"""


@pytest.mark.parametrize(
    "target", ["__onednn$matmul", "__onednn$softmax", "__onednn$layernorm", "__onednn$convolution"]
)
def test_calls_of_onednn_are_named(target: str) -> None:
    text = ONEDNN.replace("TARGET", target)
    module = parse(text)
    assert structural_equal(parse(to_text(module)), module)
    for run in (xlapy.compile(text), lambda *arguments: xlapy.evaluate(text, *arguments)):
        with pytest.raises(ExecutionError) as caught:
            run(MATRIX, MATRIX)
        assert f"'{target}'" in str(caught.value)


def test_fusions_for_ynn_are_what_they_hold() -> None:
    module = parse(YNN)
    assert structural_equal(parse(to_text(module)), module)
    np.testing.assert_allclose(xlapy.compile(YNN)(MATRIX, MATRIX), MATRIX @ MATRIX, rtol=1e-6)
    np.testing.assert_allclose(xlapy.evaluate(YNN, MATRIX, MATRIX), MATRIX @ MATRIX, rtol=1e-6)


TOP_K = """\
HloModule m
ENTRY e {
  x = TYPE[3,8] parameter(0)
  ROOT t = (TYPE[3,4], s32[3,4]) custom-call(x), custom_call_target="TopK"
}
"""


@pytest.mark.parametrize(("name", "dtype"), [("f32", np.float32), ("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_the_largest_of_each_row_are_in_total_order(name: str, dtype: type) -> None:
    odd = [0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1, 1]
    rows = np.array([odd, odd[::-1], [3, 1, 2, 3, 1, 2, 3, -7]]).astype(dtype)
    values, places = xlapy.compile(TOP_K.replace("TYPE", name))(rows)
    wanted, theirs = lax.top_k(rows, 4)
    np.testing.assert_array_equal(places, theirs)
    np.testing.assert_array_equal(values.view(np.uint8), np.asarray(wanted).view(np.uint8))
    _, evaluated = xlapy.evaluate(TOP_K.replace("TYPE", name), rows)
    np.testing.assert_array_equal(evaluated, theirs)


def test_the_largest_of_integers_are_none_of_its_business() -> None:
    with pytest.raises(UnsupportedError, match="TopK is for floats"):
        xlapy.compile(TOP_K.replace("TYPE", "s32"))(np.zeros((3, 8), np.int32))


def test_what_xla_makes_of_top_k_runs() -> None:
    lowered = jax.jit(lambda x: lax.top_k(x, 2)).lower(MATRIX)
    text = lowered.compile(usual_fusions()).as_text()
    for result, value in zip(xlapy.compile(text)(MATRIX), lowered.compile()(MATRIX), strict=True):
        np.testing.assert_array_equal(result, value)
