"""Programs with very many instructions, very large arrays, and empty ones; and more memory than there is."""

from __future__ import annotations

import os

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


BEYOND = (1 << 31) + 4099
"""More elements than 32 bits count with a sign."""

FREE_BYTES = 12 << 30
ADD_S8 = "add { a = s8[] parameter(0)  b = s8[] parameter(1)  ROOT c = s8[] add(a, b) }"
AT = "index_vector_dim=1"
BEYOND_CASES = {
    "gather": f"""ENTRY e {{ x = s8[{BEYOND}] parameter(0)  i = s64[5] parameter(1)
      ROOT y = s8[5] gather(x, i), offset_dims={{}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, {AT},
        slice_sizes={{1}} }}""",
    "scatter": f"""{ADD_S8}
      ENTRY e {{ x = s8[{BEYOND}] parameter(0)  i = s64[5] parameter(1)  u = s8[5] convert(i)
      ROOT y = s8[{BEYOND}] scatter(x, i, u), update_window_dims={{}}, inserted_window_dims={{0}},
        scatter_dims_to_operand_dims={{0}}, {AT}, to_apply=add }}""",
    "reverse": f"""ENTRY e {{ x = s8[{BEYOND}] parameter(0)  i = s64[5] parameter(1)
      ROOT y = s8[{BEYOND}] reverse(x), dimensions={{0}} }}""",
    "cumulative sum": f"""{ADD_S8}
      ENTRY e {{ x = s8[{BEYOND}] parameter(0)  i = s64[5] parameter(1)  zero = s8[] constant(0)
      ROOT y = s8[{BEYOND}] reduce-window(x, zero), window={{size={BEYOND} pad={BEYOND - 1}_0}}, to_apply=add }}""",
}


def expected_beyond(case: str, x: np.ndarray, indices: np.ndarray) -> np.ndarray:
    if case == "reverse":
        return x[::-1]
    if case == "cumulative sum":
        return np.cumsum(x, dtype=np.int8)
    if case == "gather":
        return x[np.clip(indices, 0, BEYOND - 1)]
    added = x.copy()
    inside = indices[indices < BEYOND]
    added[inside] += inside.astype(np.int8)
    return added


@pytest.mark.slow
@pytest.mark.parametrize("case", BEYOND_CASES)
def test_more_elements_than_32_bits_count(case: str) -> None:
    if os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < FREE_BYTES:
        pytest.skip("needs 12 GiB of free memory")
    x = np.resize(np.random.default_rng(0).integers(-128, 128, 1 << 16, dtype=np.int8), BEYOND)
    indices = np.array([1, BEYOND - 1, 1 << 31, BEYOND + 5, (1 << 32) + 1])
    got = xlapy.compile(BEYOND_CASES[case])(x, indices)
    assert np.array_equal(got, expected_beyond(case, x, indices))
