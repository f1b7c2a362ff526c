"""Asynchronous wrappers of HLO dumps: around collectives, computations and custom calls, in all their spellings."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from tests.e2e.test_collectives import assert_same, run_parallel
from xlapy.hlo.proto import module_from_bytes, module_to_bytes
from xlapy.passes.async_unwrapping import AsyncUnwrapping
from xlapy.passes.scheduling import schedule

F32 = np.float32

ADD = "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }"

COLLECTIVES = {
    "all-gather": ("f32[32,16]", "dimensions={0}, replica_groups={{0,1}}"),
    "all-reduce": ("f32[16,16]", "to_apply=add"),
    "reduce-scatter": ("f32[8,16]", "dimensions={0}, replica_groups={{0,1}}, to_apply=add"),
    "all-to-all": ("f32[16,16]", "dimensions={0}, replica_groups={{0,1}}"),
    "collective-permute": ("f32[16,16]", "source_target_pairs={{0,1},{1,0}}"),
    "collective-broadcast": ("f32[16,16]", "replica_groups={{1,0}}"),
}


def around_a_collective(name: str) -> str:
    result, attributes = COLLECTIVES[name]
    return f"""HloModule m, replica_count=2
    {ADD}
    wrapped {{ q = f32[16,16] parameter(0)  ROOT r = {result} {name}(q), {attributes} }}
    ENTRY main {{
      p = f32[16,16] parameter(0)
      s = ((f32[16,16]), {result}, u32[]) async-start(p), calls=wrapped, async_execution_thread="main"
      u = ((f32[16,16]), {result}, u32[]) async-update(s), calls=wrapped
      n = f32[16,16] dot(p, p), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
      d = {result} async-done(u)
      ROOT t = (f32[16,16], {result}) tuple(n, d)
    }}"""


def rows(processes: int) -> list[list[np.ndarray]]:
    random = np.random.default_rng(processes)
    return [[random.integers(-8, 8, (16, 16)).astype(F32)] for _ in range(processes)]


@pytest.mark.parametrize("name", COLLECTIVES)
def test_a_collective_overlaps_with_what_stands_between(name: str) -> None:
    module = xlapy.hlo.parse(around_a_collective(name))
    text = module.to_text()
    assert "async-update(s), calls=wrapped" in text
    assert xlapy.hlo.parse(text).to_text() == text
    results = run_parallel(module_from_bytes(module_to_bytes(module)), rows(2), 2)
    assert_same(run_parallel(xlapy.stablehlo.parse(xlapy.stablehlo.to_text(module)), rows(2), 2), results)
    changed = module.clone()
    AsyncUnwrapping().run(changed)
    order = [instruction.opcode for instruction in schedule(changed)[changed.entry]]
    assert order == ["parameter", f"{name}-start", "dot", f"{name}-done", "tuple"]


CALL = """HloModule m
  wrapped { q = f32[16,16] parameter(0)  k = f32[] parameter(1)  b = f32[16,16] broadcast(k), dimensions={}
    ROOT r = f32[16,16] multiply(q, b) }
  ENTRY main {
    p = f32[16,16] parameter(0)
    two = f32[] constant(2)
    s = ((f32[16,16], f32[]), f32[16,16], s32[]) START(p, two), KEY=wrapped
    e = f32[16,16] negate(p)
    UPDATE
    d = f32[16,16] DONE
    ROOT t = f32[16,16] add(e, d)
  }"""

SPELLINGS = {
    "wrapper": ("async-start", "calls", "", "async-done(s), calls=wrapped"),
    "by the name of the op": ("call-start", "to_apply", "", "call-done(s)"),
    "with an update": (
        "call-start",
        "to_apply",
        "u = ((f32[16,16], f32[]), f32[16,16], s32[]) call-update(s)",
        "call-done(u)",
    ),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_computation_is_called(spelling: str) -> None:
    text = CALL
    for word, replacement in zip(("START", "KEY", "UPDATE", "DONE"), SPELLINGS[spelling], strict=True):
        text = text.replace(word, replacement)
    module = xlapy.hlo.parse(text)
    assert xlapy.hlo.parse(module.to_text()).to_text() == module.to_text()
    (x,) = rows(1)[0]
    np.testing.assert_array_equal(xlapy.compile(module)(x), x)
    np.testing.assert_array_equal(xlapy.evaluate(module, x), x)


CUSTOM_CALL = """HloModule m
  ENTRY main {
    p = f32[4] parameter(0)
    s = ((f32[4]), f32[4], s32[]) custom-call-start(p), custom_call_target="twice", async_execution_thread="other"
    n = f32[4] negate(p), control-predecessors={s}
    ROOT d = f32[4] custom-call-done(s), control-predecessors={n}
  }"""


def test_a_custom_call_keeps_its_attributes_and_its_order() -> None:
    module = xlapy.hlo.parse(CUSTOM_CALL)
    assert xlapy.hlo.parse(module.to_text()).to_text() == module.to_text()
    options = xlapy.CompileOptions(custom_calls={"twice": lambda x: 2 * x})
    assert xlapy.compile(module, options)(np.arange(4, dtype=F32)).tolist() == [0, 2, 4, 6]


def test_wrappers_that_do_not_fit_are_refused() -> None:
    text = around_a_collective("all-gather")
    wrong = {
        "parameters": text.replace("async-start(p)", "async-start(p, p)"),
        "started": text.replace("s = ((f32[16,16]), f32[32,16], u32[])", "s = ((f32[16,16]), f32[16,16], u32[])"),
        "async-start": text.replace("async-update(s)", "async-update(p)"),
    }
    for rule, broken in wrong.items():
        assert broken != text
        with pytest.raises(xlapy.XlaError, match=rule):
            xlapy.hlo.parse(broken)
    with pytest.raises(xlapy.ParseError, match="is not \\(\\(operands\\), result\\)"):
        xlapy.hlo.parse("ENTRY e { p = f32[4] parameter(0)  ROOT s = f32[4] negate-start(p) }")
