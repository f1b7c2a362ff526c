"""Programs with very many instructions, very large arrays, and empty ones; and more memory than there is."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from tests.support.values import assert_same
from xlapy import ops

F32 = np.float32


def test_a_chain_of_ten_thousand_instructions() -> None:
    """Of one element-wise op behind the other, and of reverses, which cannot all be folded away."""
    b = xlapy.XlaBuilder("chain")
    x = ops.Parameter(b, 0, xlapy.Shape.array(F32, (8,)))
    y = x
    for step in range(5_000):
        y = ops.Rev(y, (0,)) if step % 100 == 99 else -y
        y = y + 1
    computation = b.build(y)
    exe = xlapy.compile(computation)
    value = np.arange(8, dtype=F32)
    assert_same(exe(value), xlapy.evaluate(computation, value))


def test_a_chain_of_ten_thousand_scalars() -> None:
    lines = ["HloModule chain", "ENTRY main {", "  v0 = s32[] parameter(0)"]
    lines += [f"  v{n + 1} = s32[] {('add', 'xor', 'multiply')[n % 3]}(v{n}, v{n // 2})" for n in range(10_000)]
    text = "\n".join([*lines[:-1], lines[-1].replace("  v", "  ROOT v", 1), "}"])
    exe = xlapy.compile(text)
    assert_same(exe(np.int32(3)), xlapy.evaluate(text, np.int32(3)))


def test_a_thousand_parameters_and_results() -> None:
    b = xlapy.XlaBuilder("wide")
    parameters = [ops.Parameter(b, n, xlapy.Shape.array(F32, (2,))) for n in range(1000)]
    exe = xlapy.compile(b.build(ops.Tuple(b, [p + 1 for p in parameters])))
    values = [np.full(2, n, F32) for n in range(1000)]
    assert_same(exe(*values), tuple(value + 1 for value in values))


def test_huge_constants() -> None:
    """They stay out of the IR; as text they survive, too."""
    value = np.random.default_rng(0).normal(size=(1024, 1024)).astype(F32)
    b = xlapy.XlaBuilder("constant")
    x = ops.Parameter(b, 0, xlapy.Shape.array(F32, (1024,)))
    exe = xlapy.compile(b.build(b.constant(value) + ops.BroadcastInDim(x, (1024, 1024), (1,))))
    assert len(exe.llvm_ir()) < 100_000
    assert_same(exe(np.ones(1024, F32)), value + 1)


def test_zero_sized_dimensions() -> None:
    b = xlapy.XlaBuilder("empty")
    x = ops.Parameter(b, 0, xlapy.Shape.array(F32, (3, 0, 2)))
    y = ops.Parameter(b, 1, xlapy.Shape.array(F32, (0, 4)))
    rows = [
        x + 1,
        ops.Transpose(x, (2, 0, 1)),
        ops.Reshape(x, (0, 7)),
        x.reduce(5, ops.Add, (1,)),
        ops.ConcatInDim(b, [x, x], 1),
        ops.Dot(ops.Reshape(x, (6, 0)), y),
        ops.Rev(x, (0, 1)),
        ops.Slice(x, (0, 0, 0), (2, 0, 1)),
    ]
    computation = b.build(ops.Tuple(b, rows))
    arguments = (np.zeros((3, 0, 2), F32), np.zeros((0, 4), F32))
    assert_same(xlapy.compile(computation)(*arguments), xlapy.evaluate(computation, *arguments))


# -- more memory than there is -----------------------------------------------------------------------------------------

ENDLESS = 1 << 44
ENDLESS_TYPE = f"f32[{ENDLESS}]"
LOOSE = f"x = f32[] parameter(0)  y = {ENDLESS_TYPE} broadcast(x), dimensions={{}}"
TOO_LARGE = {
    "the result": (
        f"ROOT z = {ENDLESS_TYPE} negate(y)",
        rf"a result of 70,368,744,177,664 bytes, float32\[{ENDLESS}\]",
    ),
    "a part of it": (f"ROOT z = (f32[], {ENDLESS_TYPE}) tuple(x, y)", "a result of 70,368,744,177,664 bytes"),
    "temporaries": (
        f"s = {ENDLESS_TYPE} sine(y)  t = {ENDLESS_TYPE} sort(s), dimensions={{0}}, to_apply=less  "
        "ROOT z = f32[1] slice(t), slice={[0:1]}",
        r"[\d,]{18,} bytes of temporaries",
    ),
}


@pytest.mark.parametrize("what", TOO_LARGE, ids=lambda what: what.replace(" ", "-"))
def test_what_no_memory_holds(what: str) -> None:
    """The error says what for, and how much."""
    less = "less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = pred[] compare(a, b), direction=LT }"
    body, message = TOO_LARGE[what]
    text = f"{less}  ENTRY e {{ {LOOSE}  {body} }}"
    exe = xlapy.compile(text)
    for call in (exe, exe.run):
        with pytest.raises(xlapy.OutOfMemoryError, match=f"no memory for {message}") as caught:
            call(F32(1))
        assert isinstance(caught.value, MemoryError)
    with pytest.raises(xlapy.OutOfMemoryError, match=r"no memory (to evaluate <|for a result: .*17592186044416)"):
        xlapy.evaluate(text, F32(1))


@pytest.mark.parametrize("rank", [1, 2], ids=["more bytes than there are", "more than can be counted"])
def test_padding_that_no_memory_holds(rank: int) -> None:
    """Kernels need no memory for it; the evaluator does, and says so."""
    dims, ones = ",".join(["2"] * rank), ",".join(["1"] * rank)
    window, holes = "x".join(["2"] * rank), "x".join([str(1 << 40)] * rank)
    text = f"""add {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }}
      ENTRY e {{
        x = f32[{dims}] parameter(0)
        zero = f32[] constant(0)
        ROOT y = f32[{ones}] reduce-window(x, zero),
          window={{size={window} lhs_dilate={holes} rhs_dilate={holes}}}, to_apply=add
      }}"""
    values = np.ones((2,) * rank, F32)
    assert xlapy.compile(text)(values) == 2**rank
    with pytest.raises(xlapy.OutOfMemoryError, match="no memory to evaluate <y = "):
        xlapy.evaluate(text, values)


def test_an_argument_of_which_no_memory_holds_a_copy() -> None:
    exe = xlapy.compile(f"ENTRY e {{ x = {ENDLESS_TYPE} parameter(0)  ROOT y = f32[1] slice(x), slice={{[0:1]}} }}")
    with pytest.raises(xlapy.OutOfMemoryError, match=r"parameter 0 \(x\): no memory for a copy of 70,368,744,177,664"):
        exe(np.broadcast_to(F32(1), (ENDLESS,)))
