"""Loop kernels: what runs beside the loop over vectors."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from tests.support.guarded_memory import fenced_results
from tests.support.native import check_native, record
from xlapy import ops
from xlapy.builder import XlaOp
from xlapy.codegen.kernels.functions import (
    MANY_STEPS_IN_MEMORY,
    MANY_STEPS_OF_SLENDER,
    MOST_BESIDE,
    ROOMY_REGISTERS,
    STEPS_OF_CALLS,
    VECTORS_OF_SLENDER,
)
from xlapy.codegen.target import host_target
from xlapy.hlo.element_types import element_type_named

INSTRUCTIONS = 1300
"""More than one kernel takes; the second one overwrites the result of the first."""


def chain(x: XlaOp, y: XlaOp) -> XlaOp:
    for number in range(INSTRUCTIONS // 2):
        x = (x + y) if number % 2 else (x - y)
        x = ops.Max(x, y) if number % 3 else ops.Abs(x)
    return x


@pytest.mark.parametrize(
    ("size", "has_rest"),
    [
        (256, False),
        (250, False),
        (257, True),
        (1 << 14, False),
        ((1 << 15) + 1, True),
        ((1 << 15) + 5, True),
    ],
)
def test_nothing_is_left_over_where_vectors_fill_every_task(size: int, has_rest: bool) -> None:
    """Only a kernel that works in place has code for single elements, and only if its size wants it: if one is left
    over, or a last task may have fewer than a vector."""
    random = np.random.default_rng(0)
    executable = check_native(chain, *(random.normal(size=size).astype(np.float32) for _ in range(2)))
    assert executable.compile_stats().kernels > 1
    assert ("fadd float" in executable.llvm_ir()) == has_rest


FEW = {
    "a part": "ROOT r = f32[11] slice(x), slice={[5:16]}",
    "parts joined": """a = f32[5] slice(x), slice={[0:5]}  b = f32[6] slice(x), slice={[9:15]}
      ROOT r = f32[11] concatenate(b, a), dimensions={0}""",
    "looked up": """i = s32[11] iota(), iota_dimension=0  s = s32[11] multiply(i, i)
      ROOT r = f32[11] gather(x, s), offset_dims={}, collapsed_slice_dims={0},
        start_index_map={0}, index_vector_dim=1, slice_sizes={1}""",
    "bytes": """a = f32[11] slice(x), slice={[5:16]}  i = s32[11] bitcast-convert(a)
      ROOT r = s8[11,4] bitcast-convert(i)""",
}


@pytest.mark.parametrize("body", FEW.values(), ids=FEW)
@pytest.mark.parametrize("threads", [1, 3])
def test_a_few_elements_of_much_memory(body: str, threads: int) -> None:
    """They are dealt out by vectors at least: the last one of a task ends where the task does, and no vector begins in
    front of the result."""
    text = f"HloModule few\nENTRY e {{ x = f32[1000000] parameter(0)  {body} }}"
    run = xlapy.compile(text, xlapy.CompileOptions(num_threads=threads))
    x = np.arange(1_000_000, dtype=np.float32)
    with fenced_results():
        np.testing.assert_array_equal(run.run(x, seed=0), xlapy.evaluate(text, x))


MANY = [("f32", 512, 513), ("f32", 3, 100_000), ("f64", 512, 512), ("f64", 300, 1000)]


@pytest.mark.parametrize(("kind", "rows", "columns"), MANY)
@pytest.mark.parametrize("along", [0, 1])
def test_many_elements_of_functions_are_the_same_as_few(kind: str, rows: int, columns: int, along: int) -> None:
    """Of many elements, more vectors are computed together, in loops over numbers and over rows."""

    def compiled(rows: int, columns: int) -> xlapy.Executable:
        scale = f"s = {kind}[{rows},{columns}] broadcast(y), dimensions={{{along}}}"
        return xlapy.compile(f"""HloModule many
          ENTRY e {{ x = {kind}[{rows},{columns}] parameter(0)  y = {kind}[{(rows, columns)[along]}] parameter(1)
            {scale}  a = {kind}[{rows},{columns}] sine(x)  b = {kind}[{rows},{columns}] exponential(x)
            c = {kind}[{rows},{columns}] atan2(a, b)  ROOT r = {kind}[{rows},{columns}] multiply(c, s) }}""")

    random = np.random.default_rng(0)
    x = random.normal(size=(rows, columns)).astype(np.float32 if kind == "f32" else np.float64)
    y = random.normal(size=(rows, columns)[along]).astype(x.dtype)
    few = np.ascontiguousarray(x[:2, -33:])
    found = compiled(rows, columns).run(x, y)[:2, -33:]
    np.testing.assert_array_equal(found, compiled(2, 33).run(few, y[:2] if along == 0 else y[-33:]))


EIGHT = [
    *(("logistic", kind, MANY_STEPS_OF_SLENDER) for kind in ("f32", "f64")),
    ("exponential", "f64", MANY_STEPS_OF_SLENDER),
    ("tanh", "f32", MANY_STEPS_OF_SLENDER),
    *((op, kind, MANY_STEPS_IN_MEMORY) for op, kind in (("tanh", "bf16"), ("sine", "f32"), ("log", "f64"))),
    ("erf", "f64", STEPS_OF_CALLS),
]


@pytest.mark.parametrize(("op", "kind", "steps"), EIGHT)
def test_eight_vectors_of_a_function_are_the_same_as_few(op: str, kind: str, steps: int) -> None:
    def compiled(size: int) -> xlapy.Executable:
        return xlapy.compile(
            f"HloModule m\nENTRY e {{ x = {kind}[{size}] parameter(0)  ROOT y = {kind}[{size}] {op}(x) }}"
        )

    target = host_target()
    lanes = target.lanes(64 if kind == "f64" else 32) * VECTORS_OF_SLENDER
    size = steps * lanes + 77
    x = np.random.default_rng(0).normal(size=size).astype(element_type_named(kind).dtype)
    x[-5:] = [np.inf, -np.inf, np.nan, 0.0, -0.0]
    many = compiled(size)
    has_eight = target.has_permute and target.has_far_last_cache if steps == MANY_STEPS_IN_MEMORY else True
    if target.vector_registers >= ROOMY_REGISTERS and has_eight:
        assert f"<{lanes} x {'double' if kind == 'f64' else 'float'}>" in many.llvm_ir()
    found, expected = (run.astype(np.float64) for run in (many(x)[-333:], compiled(333)(x[-333:])))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("beside", "vectors"), [(MOST_BESIDE // 2, 8), (3 * MOST_BESIDE, 4)])
def test_much_beside_functions_that_are_called_is_for_fewer_vectors(beside: int, vectors: int) -> None:
    """Of what is no long loop: it would take twice as long to compile."""
    target, size = host_target(), 1 << 13

    def program(x: XlaOp) -> XlaOp:
        y = ops.Log(x)
        for number in range(2 * beside - 1):
            y = y * x if number % 2 else y + np.float32(number)
        return ops.Log(y)

    x = np.random.default_rng(0).uniform(0.9, 1, size).astype(np.float32)
    module = record(program, x)
    executable = xlapy.compile(module)
    np.testing.assert_allclose(executable(x), xlapy.evaluate(module, x), rtol=1e-6)
    if target.vector_registers >= ROOMY_REGISTERS:
        assert f"fadd <{target.lanes(32) * vectors} x float>" in executable.llvm_ir()


@pytest.mark.parametrize("columns", [9, 31, 32, 44])
def test_rows_that_are_updated_in_place_end_in_whole_vectors(columns: int) -> None:
    """The last vector of a row begins inside of the one before it, and is made before that overwrites anything."""
    text = f"""condition {{ s = (s32[], f32[6,48], f32[6,48]) parameter(0) i = s32[] get-tuple-element(s), index=0
        n = s32[] constant(5) ROOT c = pred[] compare(i, n), direction=LT }}
      body {{ s = (s32[], f32[6,48], f32[6,48]) parameter(0) i = s32[] get-tuple-element(s), index=0
        x = f32[6,48] get-tuple-element(s), index=1 y = f32[6,48] get-tuple-element(s), index=2
        own = f32[5,{columns}] slice(x), slice={{[1:6], [2:{columns + 2}]}}
        up = f32[5,{columns}] slice(y), slice={{[0:5], [0:{columns}]}}
        two = f32[] constant(2) twos = f32[5,{columns}] broadcast(two), dimensions={{}}
        d = f32[5,{columns}] multiply(own, twos) a = f32[5,{columns}] subtract(d, up)
        one = s32[] constant(1) at = s32[] constant(2)
        z = f32[6,48] dynamic-update-slice(x, a, one, at) j = s32[] add(i, one)
        ROOT t = (s32[], f32[6,48], f32[6,48]) tuple(j, z, y) }}
      ENTRY e {{ x = f32[6,48] parameter(0) y = f32[6,48] parameter(1) i = s32[] constant(0)
        t = (s32[], f32[6,48], f32[6,48]) tuple(i, x, y)
        w = (s32[], f32[6,48], f32[6,48]) while(t), condition=condition, body=body
        ROOT r = f32[6,48] get-tuple-element(w), index=1 }}"""
    x, y = np.random.default_rng(9).integers(-9, 9, (2, 6, 48)).astype(np.float32)
    compiled = xlapy.compile(text)
    np.testing.assert_array_equal(compiled(x, y), xlapy.evaluate(text, x, y))
    assert "load float" not in compiled.llvm_ir()


@pytest.mark.parametrize("shape", ["15", "60", "95", "131077", "524293", "6,33", "6,95", "5,128", "700,95"])
def test_what_a_loop_overwrites_ends_in_whole_vectors(shape: str) -> None:
    """The last vector is made before anything is overwritten, and a task that is shorter than one takes its elements
    one by one; whatever the number of threads."""
    rows = shape.split(",")
    source = ",".join([*rows[:-1], str(int(rows[-1]) + 1)])
    slices = [",".join([*(f"[0:{rows[0]}]" for _ in rows[:-1]), f"[{n}:{int(rows[-1]) + n}]"]) for n in (0, 1)]
    state = f"(s32[], f32[{source}], f32[{shape}], f32[{shape}])"
    text = f"""condition {{ s = {state} parameter(0) i = s32[] get-tuple-element(s), index=0
        n = s32[] constant(3) ROOT c = pred[] compare(i, n), direction=LT }}
      body {{ s = {state} parameter(0) i = s32[] get-tuple-element(s), index=0 one = s32[] constant(1)
        x = f32[{source}] get-tuple-element(s), index=1 y = f32[{shape}] get-tuple-element(s), index=2
        v = f32[{shape}] get-tuple-element(s), index=3 j = s32[] add(i, one)
        a = f32[{shape}] slice(x), slice={{{slices[0]}}} b = f32[{shape}] slice(x), slice={{{slices[1]}}}
        d = f32[{shape}] subtract(a, b) z = f32[{shape}] add(y, d) n = f32[{shape}] negate(v)
        w = f32[{shape}] subtract(n, z)
        ROOT t = {state} tuple(j, x, z, w) }}
      ENTRY e {{ x = f32[{source}] parameter(0) y = f32[{shape}] parameter(1) v = f32[{shape}] parameter(2)
        i = s32[] constant(0) t = {state} tuple(i, x, y, v)
        ROOT w = {state} while(t), condition=condition, body=body }}"""
    random = np.random.default_rng(4)
    dims = [tuple(map(int, each.split(","))) for each in (source, shape, shape)]
    arguments = [random.integers(-99, 99, each).astype(np.float32) for each in dims]
    expected = xlapy.evaluate(text, *arguments)
    for threads in (1, 2, 3, 8):
        found = xlapy.compile(text, xlapy.CompileOptions(num_threads=threads))(*arguments)
        for mine, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(mine, other)
