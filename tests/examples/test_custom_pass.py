"""The pass and the law of the example, with the harness that ours are tested with, and in a compilation."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xlapy
import xlapy.jax
from examples.custom_pass import SOFTMAX_LAWS, StreamingAttention
from examples.custom_pass.__main__ import attention, main
from xlapy.hlo.text import parse
from xlapy.passes.rewrite import AlgebraicSimplification
from xlapy.passes.trial import Case, check_case, check_same_values, load_cases
from xlapy.passes.user import after, before

jax = pytest.importorskip("jax")

CASES = Path(__file__).parent / "custom_pass" / "streaming-attention.hlo"


@pytest.mark.parametrize("case", load_cases(CASES), ids=str)
def test_the_pass(case: Case) -> None:
    check_case(case, StreamingAttention(block=4), tolerance=1e-5, bless=bool(os.environ.get("BLESS")))


def test_too_few_keys_are_on_record() -> None:
    step = StreamingAttention(block=5)
    assert not step.run(parse(load_cases(CASES)[0].before))
    assert [(record.subject, record.made) for record in step.records] == [("o", False)]
    assert "8 keys are not several blocks of 5" in step.records[0].reason


def test_in_a_compilation() -> None:
    options = xlapy.CompileOptions(passes=[after("simplify", StreamingAttention(block=256))])
    plain = xlapy.compile(attention(), xlapy.CompileOptions(disabled_passes=frozenset({"row-blocks"})))
    streaming = xlapy.compile(attention(), options)
    random = np.random.default_rng(0)
    inputs = [random.normal(size=(2, 1024, 64)).astype(np.float32) for _ in range(3)]
    np.testing.assert_allclose(streaming(*inputs), plain(*inputs), atol=1e-5)
    temporaries = [exe.memory_analysis()["temporary_bytes"] for exe in (plain, streaming)]
    assert temporaries[1] < temporaries[0] / 2
    assert "while" in streaming.hlo_text() and "while" not in plain.hlo_text()


def test_a_program_of_jax() -> None:
    def heads(q: Any, k: Any, v: Any) -> Any:
        scores = jax.numpy.einsum("hqd,hkd->hqk", q, k) / np.float32(8)
        return jax.numpy.einsum("hqk,hkd->hqd", jax.nn.softmax(scores), v)

    random = np.random.default_rng(1)
    inputs = [random.normal(size=(2, 32, 8)).astype(np.float32) for _ in range(3)]
    options = xlapy.CompileOptions(passes=[after("simplify", StreamingAttention(block=8))])
    compiled = xlapy.jax.jit(heads, options=options)
    np.testing.assert_allclose(compiled(*inputs), jax.jit(heads)(*inputs), atol=1e-5)
    assert "while" in compiled.executable(*inputs).hlo_text()


SHIFTED = """
max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT m = f32[] maximum(a, b) }
ENTRY main {
  p0 = f32[4,16] parameter(0)
  c0 = f32[4] parameter(1)
  p = f32[4,16] tanh(p0)
  c = f32[4] tanh(c0)
  cs = f32[4,16] broadcast(c), dimensions={0}
  x = f32[4,16] add(p, cs)
  low = f32[] constant(-inf)
  top = f32[4] reduce(x, low), dimensions={1}, to_apply=max
  tops = f32[4,16] broadcast(top), dimensions={0}
  ROOT s = f32[4,16] subtract(x, tops)
}
"""


def test_the_law() -> None:
    module = parse(SHIFTED)
    after_law = module.clone()
    step = AlgebraicSimplification(fast_math=True, laws=SOFTMAX_LAWS)
    assert step.run(after_law) and step.counts == {"shift-of-rows": 1}
    check_same_values(module, after_law, tolerance=1e-5)
    exact = xlapy.compile(module, xlapy.CompileOptions(laws=[SOFTMAX_LAWS]))
    fast = xlapy.compile(module, xlapy.CompileOptions(laws=[SOFTMAX_LAWS], fast_math=True))
    arguments = np.ones((4, 16), np.float32), np.ones(4, np.float32)
    np.testing.assert_allclose(fast(*arguments), exact(*arguments), atol=1e-6)
    assert "add" in exact.hlo_text() and " add(" not in fast.hlo_text()


def test_the_demonstration(capsys: pytest.CaptureFixture[str]) -> None:
    main([])
    assert "streaming" in capsys.readouterr().out


def test_options_that_it_has_not(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--faster"])
    assert "unrecognized arguments: --faster" in capsys.readouterr().err


def test_places_are_known() -> None:
    with pytest.raises(xlapy.XlaError, match=r"there is no pass 'simplfy'.*simplify"):
        xlapy.compile(attention(), xlapy.CompileOptions(passes=[before("simplfy", StreamingAttention())]))
