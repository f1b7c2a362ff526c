"""Regions with loops, branches and arrays in them: functions that kernels call, beside the evaluator and beside XLA."""

from __future__ import annotations

import functools
import os
import signal
import threading
from typing import Any

import numpy as np
import pytest

import xlapy
from tests.e2e.test_collectives import run_parallel
from tests.support.values import Array, assert_same, random_array
from xlapy import ops
from xlapy.hlo.element_types import ALL, ElementType, element_type_of
from xlapy.hlo.evaluate import evaluate
from xlapy.hlo.graph import HloModule
from xlapy.support.errors import UnsupportedError

CHECKED = xlapy.CompileOptions(verify=True)
F32 = element_type_of(np.dtype(np.float32))

# What the regions below share. `number` makes a small integer of anything; T is the element type.
SHARED = """
number { x = T[] parameter(0)  REAL  f = f32[] convert(r)  low = f32[] constant(0)  high = f32[] constant(5)
  n = f32[] clamp(low, f, high)  is_number = pred[] compare(f, f), direction=EQ  s = f32[] select(is_number, n, low)
  ROOT i = s32[] convert(s) }
fold { a = T[] parameter(0)  b = T[] parameter(1)  FOLD }
more { s = (s32[], s32[], T[], T[]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1  ROOT c = pred[] compare(i, n), direction=LE }
step { s = (s32[], s32[], T[], T[]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1  a = T[] get-tuple-element(s), index=2  b = T[] get-tuple-element(s), index=3
  one = s32[] constant(1)  j = s32[] add(i, one)  c = T[] add(a, b)
  ROOT t = (s32[], s32[], T[], T[]) tuple(j, n, c, b) }
looping { a = T[] parameter(0)  b = T[] parameter(1)  zero = s32[] constant(0)  n = s32[] call(b), to_apply=number
  s = (s32[], s32[], T[], T[]) tuple(zero, n, a, b)
  w = (s32[], s32[], T[], T[]) while(s), condition=more, body=step  ROOT r = T[] get-tuple-element(w), index=2 }
sum_of { s = (T[], T[]) parameter(0)  a = T[] get-tuple-element(s), index=0  b = T[] get-tuple-element(s), index=1
  ROOT r = T[] add(a, b) }
product_of { s = (T[], T[]) parameter(0)  a = T[] get-tuple-element(s), index=0  b = T[] get-tuple-element(s), index=1
  ROOT r = T[] multiply(a, b) }
second_of { s = (T[], T[]) parameter(0)  ROOT b = T[] get-tuple-element(s), index=1 }
"""

REGIONS = {
    "looping": "",
    "branching": """
region { a = T[] parameter(0)  b = T[] parameter(1)
  x = s32[] call(a), to_apply=number  y = s32[] call(b), to_apply=number
  s = (T[], T[]) tuple(a, b)  less = pred[] compare(x, y), direction=LT
  p = T[] conditional(less, s, s), true_computation=sum_of, false_computation=product_of
  n = s32[] subtract(x, y)
  q = T[] conditional(n, s, s, s), branch_computations={second_of, product_of, sum_of}  ROOT r = T[] add(p, q) }
""",
    "on_arrays": """
region { a = T[] parameter(0)  b = T[] parameter(1)  n = s32[] call(b), to_apply=number
  row = T[6] broadcast(b), dimensions={}  i = s32[6] iota(), iota_dimension=0  k = s32[6] constant({5, 3, 4, 1, 0, 2})
  numbers = T[6] convert(i)  products = T[6] multiply(row, numbers)  zero = T[] constant(ZERO)
  total = T[] reduce(products, zero), dimensions={0}, to_apply=fold
  ordered = s32[6] sort(k), dimensions={0}, to_apply=before  other = s32[6] add(ordered, k)
  taken = s32[1] dynamic-slice(other, n), dynamic_slice_sizes={1}  t = T[1] convert(taken)  u = T[] reshape(t)
  mix = T[] add(total, u)  ROOT r = T[] add(a, mix) }
before { x = s32[] parameter(0)  y = s32[] parameter(1)  ROOT c = pred[] compare(x, y), direction=LT }
""",
    "nested": """
region { a = T[] parameter(0)  b = T[] parameter(1)  ra = T[1,2] broadcast(a), dimensions={}
  rb = T[1,2] broadcast(b), dimensions={}  zero = T[] constant(ZERO)
  m = T[1,2] map(ra, rb), dimensions={0,1}, to_apply=looping
  t = T[1] reduce(m, zero), dimensions={1}, to_apply=looping
  ROOT r = T[] reduce(t, a), dimensions={0}, to_apply=fold }
""",
    "calling": """
region { a = T[] parameter(0)  b = T[] parameter(1)
  x = T[] call(a, b), to_apply=inner  ROOT r = T[] call(x, b), to_apply=inner }
inner { a = T[] parameter(0)  b = T[] parameter(1)  m = T[] map(a, b), dimensions={}, to_apply=looping
  n = T[] call(m, b), to_apply=looping  ROOT r = T[] add(n, b) }
""",
    "updating": """
region { a = T[] parameter(0)  b = T[] parameter(1)  zero = s32[] constant(0)  n = s32[] call(b), to_apply=number
  memory = T[7] broadcast(a), dimensions={}  other = T[7] broadcast(b), dimensions={}
  s = (s32[], s32[], T[7], T[7]) tuple(zero, n, memory, other)
  w = (s32[], s32[], T[7], T[7]) while(s), condition=goes_on, body=update
  m = T[7] get-tuple-element(w), index=2  o = T[7] get-tuple-element(w), index=3  p = T[7] add(m, o)
  z = T[] constant(ZERO)  ROOT r = T[] reduce(p, z), dimensions={0}, to_apply=fold }
goes_on { s = (s32[], s32[], T[7], T[7]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1  ROOT c = pred[] compare(i, n), direction=LE }
update { s = (s32[], s32[], T[7], T[7]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  m = T[7] get-tuple-element(s), index=2  o = T[7] get-tuple-element(s), index=3
  u = T[1] dynamic-slice(o, i), dynamic_slice_sizes={1}  v = T[1] dynamic-slice(m, n), dynamic_slice_sizes={1}
  uv = T[1] add(u, v)  x = T[7] dynamic-update-slice(m, uv, i)  one = s32[] constant(1)  j = s32[] add(i, one)
  ROOT t = (s32[], s32[], T[7], T[7]) tuple(j, n, o, x) }
""",
}

# Two values at once, and a comparison, made of the region at hand.
DERIVED = """
both { a = T[] parameter(0)  n = s32[] parameter(1)  b = T[] parameter(2)  m = s32[] parameter(3)
  x = T[] map(a, b), dimensions={}, to_apply=region  k = s32[] call(x), to_apply=number  l = s32[] add(n, m)
  o = s32[] add(k, l)  ROOT t = (T[], s32[]) tuple(x, o) }
less { a = T[] parameter(0)  b = T[] parameter(1)  zero = T[] constant(ZERO)
  x = T[] map(zero, a), dimensions={}, to_apply=region  y = T[] map(zero, b), dimensions={}, to_apply=region
  k = s32[] call(x), to_apply=number  l = s32[] call(y), to_apply=number  ROOT c = pred[] compare(k, l), direction=LT }
less_of_two { a = T[] parameter(0)  b = T[] parameter(1)  n = s32[] parameter(2)  m = s32[] parameter(3)
  c = pred[] call(a, b), to_apply=less  d = pred[] call(b, a), to_apply=less  e = pred[] or(c, d)
  f = pred[] compare(n, m), direction=LT  ROOT r = pred[] select(e, c, f) }
"""

OPERATIONS = {
    "map": """  x = T[2,1,3,1,4] parameter(0)  y = T[24] parameter(1)  z = T[2,1,3,1,4] reshape(y)
  m = T[2,1,3,1,4] map(x, z), dimensions={0,1,2,3,4}, to_apply=region
  a = T[1] slice(y), slice={[3:4]}  b = T[] reshape(a)  c = T[] map(b, b), dimensions={}, to_apply=region
  v = T[6,4] reshape(y)  e = T[0,4] slice(v), slice={[2:2], [0:4]}
  f = T[0,4] map(e, e), dimensions={0,1}, to_apply=region
  ROOT t = (T[2,1,3,1,4], T[], T[0,4]) tuple(m, c, f)""",
    "reduce": """  x = T[2,3,4] parameter(0)  y = T[24] parameter(1)  i = T[] constant(ZERO)
  k = s32[24] iota(), iota_dimension=0
  n = s32[] constant(1)  c = T[4,6] reshape(y)  d = T[4,6] add(c, c)
  p = T[2,4] reduce(x, i), dimensions={1}, to_apply=region  q = T[] reduce(x, i), dimensions={0,1,2}, to_apply=region
  r = T[6] reduce(d, i), dimensions={0}, to_apply=region  s = T[4] reduce(d, i), dimensions={1}, to_apply=region
  e = T[0,3] constant({})  f = T[3] reduce(e, i), dimensions={0}, to_apply=region
  v = (T[], s32[]) reduce(y, k, i, n), dimensions={0}, to_apply=both
  ROOT t = (T[2,4], T[], T[6], T[4], T[3], (T[], s32[])) tuple(p, q, r, s, f, v)""",
    "reduce-window": """  x = T[4,6] parameter(0)  y = T[24] parameter(1)  i = T[] constant(ZERO)
  j = s32[24] iota(), iota_dimension=0
  n = s32[] constant(0)
  p = T[3,5] reduce-window(x, i), window={size=2x2}, to_apply=region
  q = T[4,4] reduce-window(x, i), window={size=3x2 stride=1x2 pad=1_1x1_1 rhs_dilate=1x1}, to_apply=region
  s = T[24] reduce-window(y, i), window={size=24 pad=23_0}, to_apply=region
  d = T[25] reduce-window(y, i), window={size=4 stride=2 pad=3_3 lhs_dilate=2}, to_apply=region
  v = (T[12], s32[12]) reduce-window(y, j, i, n), window={size=3 stride=2 pad=1_0}, to_apply=both
  ROOT t = (T[3,5], T[4,4], T[24], T[25], (T[12], s32[12])) tuple(p, q, s, d, v)""",
    "select-and-scatter": """  x = T[4,6] parameter(0)  y = T[24] parameter(1)  a = T[6] slice(y), slice={[0:6]}
  s = T[2,3] reshape(a)  i = T[] constant(ZERO)
  p = T[4,6] select-and-scatter(x, s, i), window={size=2x2 stride=2x2}, select=less, scatter=region
  b = T[12] slice(y), slice={[0:12]}  u = T[2,6] reshape(b)
  q = T[4,6] select-and-scatter(x, u, i), window={size=4x1 stride=2x1 pad=1_1x0_0}, select=less, scatter=region
  ROOT t = (T[4,6], T[4,6]) tuple(p, q)""",
    "scatter": """  x = T[4,6] parameter(0)  y = T[24] parameter(1)  k = s32[3,1] constant({{2}, {0}, {2}})
  a = T[18] slice(y), slice={[0:18]}  u = T[3,6] reshape(a)
  p = T[4,6] scatter(x, k, u), update_window_dims={1}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=region
  b = T[3] slice(y), slice={[5:8]}
  q = T[24] scatter(y, k, b), update_window_dims={}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=region
  ROOT t = (T[4,6], T[24]) tuple(p, q)""",
    "sort": """  x = T[3,8] parameter(0)  y = T[24] parameter(1)  i = s32[24] iota(), iota_dimension=0
  p = T[3,8] sort(x), dimensions={1}, is_stable=true, to_apply=less
  q = T[3,8] sort(x), dimensions={0}, is_stable=true, to_apply=less
  v = (T[24], s32[24]) sort(y, i), dimensions={0}, is_stable=true, to_apply=less_of_two
  ROOT t = (T[3,8], T[3,8], (T[24], s32[24])) tuple(p, q, v)""",
}


def module_of(entry: str, region: str, element_type: ElementType) -> HloModule:
    """The operation of `entry` with one of the regions, on arrays of a type."""
    real = "w = c64[] convert(x)  r = f32[] real(w)" if element_type.is_complex else "r = T[] copy(x)"
    text = SHARED.replace("REAL", real) + REGIONS[region] + DERIVED + f"ENTRY e {{\n{entry}\n}}\n"
    if region == "looping":
        text = text.replace("to_apply=region", "to_apply=looping").replace("scatter=region", "scatter=looping")
    in_order = "c = T[] add(a, b)  ROOT d = T[] add(c, b)"
    text = text.replace("FOLD", in_order if element_type.is_complex else "ROOT m = T[] maximum(a, b)")
    if element_type.is_complex:
        text = text.replace("multiply(", "subtract(")  # numpy rounds products of its own
    zero = "(0, 0)" if element_type.is_complex else {"pred": "false", "f8e8m0fnu": "1"}.get(str(element_type), "0")
    if element_type.kind == "pred":
        text = (
            text.replace("multiply(", "and(").replace("= T[] add(", "= T[] xor(").replace("= T[1] add(", "= T[1] xor(")
        )
        text = text.replace("= T[7] add(", "= T[7] or(").replace("= T[4,6] add(", "= T[4,6] or(")
    return xlapy.hlo.parse("HloModule m\n" + text.replace("ZERO", zero).replace("T[", f"{element_type}["))


def arguments_of(module: HloModule, seed: int = 3) -> list[Array]:
    random = np.random.default_rng(seed)
    shapes = [parameter.shape for parameter in module.entry.parameters]
    return [random_array(random, shape.type, shape.dims) for shape in shapes]


def check(module: HloModule) -> None:
    """Native code and the evaluator agree to the bit."""
    arguments = arguments_of(module)
    assert_same(xlapy.compile(module, CHECKED)(*arguments), evaluate(module, *arguments))


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_applies_a_region(operation: str, region: str) -> None:
    check(module_of(OPERATIONS[operation], region, F32))


PAIRS = [(operation, region) for operation in OPERATIONS for region in REGIONS]


@pytest.mark.parametrize("number", range(len(ALL)), ids=[str(element_type) for element_type in ALL])
def test_element_types_take_turns(number: int) -> None:
    operation, region = PAIRS[number * 7 % len(PAIRS)]
    check(module_of(OPERATIONS[operation], region, ALL[number]))


@pytest.mark.slow
@pytest.mark.parametrize("element_type", ALL, ids=str)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_all_element_types(operation: str, element_type: ElementType) -> None:
    for region in REGIONS:
        check(module_of(OPERATIONS[operation], region, element_type))


# -- between processes -------------------------------------------------------------------------------------------------

COLLECTIVES = """  x = T[4,3] parameter(0)  y = T[12] parameter(1)
  p = T[4,3] all-reduce(x), replica_groups={{0,1}}, to_apply=region
  z = T[12] add(y, y)  r = T[6] reduce-scatter(z), replica_groups={{0,1}}, dimensions={0}, to_apply=region
  s = T[12] all-reduce-start(y), replica_groups={{0,1}}, to_apply=region  u = T[12] all-reduce-done(s)
  ROOT t = (T[4,3], T[6], T[12]) tuple(p, r, u)"""


@pytest.mark.parametrize("region", REGIONS)
def test_collectives_apply_a_region(region: str) -> None:
    element_type = ALL[list(REGIONS).index(region) * 5 % len(ALL)]
    for chosen in (element_type, F32):
        module = module_of(COLLECTIVES, region, chosen)
        run_parallel(module, [arguments_of(module, seed) for seed in range(2)], 2)


COUNTING = """
more { s = (s32[], s32[]) parameter(0)  n = s32[] get-tuple-element(s), index=0  zero = s32[] constant(0)
  ROOT c = pred[] compare(n, zero), direction=GT }
step { s = (s32[], s32[]) parameter(0)  n = s32[] get-tuple-element(s), index=0  t = s32[] get-tuple-element(s), index=1
  one = s32[] constant(1)  m = s32[] subtract(n, one)  u = s32[] add(t, n)  ROOT r = (s32[], s32[]) tuple(m, u) }
count { a = s32[] parameter(0)  b = s32[] parameter(1)  s = (s32[], s32[]) tuple(b, a)
  w = (s32[], s32[]) while(s), condition=more, body=step  ROOT r = s32[] get-tuple-element(w), index=1 }
"""
"""count(a, b) = a + 1 + 2 + ... + b"""


def counted(array: Array) -> Array:
    return np.where(array > 0, array * (array + 1) // 2, 0).astype(np.int32)


def test_large_collectives_are_shared_by_all_processes() -> None:
    module = f"""HloModule m {COUNTING}
      ENTRY e {{ x = s32[50000] parameter(0)
        ROOT r = s32[50000] all-reduce(x), replica_groups={{{{0,1,2}}}}, to_apply=count }}"""
    arguments = [np.arange(50000, dtype=np.int32) % (7 + process) for process in range(3)]
    results = xlapy.compile(module, xlapy.CompileOptions(num_replicas=3)).run_parallel([[x] for x in arguments])
    for result in results:
        np.testing.assert_array_equal(result, arguments[0] + counted(arguments[1]) + counted(arguments[2]))


# -- threads, memory, limits -------------------------------------------------------------------------------------------


THREADED = f"""HloModule m {COUNTING}
  wide {{ a = s32[] parameter(0)  b = s32[] parameter(1)  many = s32[5000] iota(), iota_dimension=0
    row = s32[5000] broadcast(b), dimensions={{}}  big = s32[5000] maximum(many, row)
    zero = s32[] constant(0)  m = s32[5000] sort(big), dimensions={{0}}, to_apply=greater
    f = s32[1] slice(m), slice={{[4999:5000]}}  g = s32[] reshape(f)  ROOT r = s32[] call(a, g), to_apply=count }}
  greater {{ x = s32[] parameter(0)  y = s32[] parameter(1)  ROOT c = pred[] compare(x, y), direction=GT }}
  ENTRY e {{ x = s32[60,50] parameter(0)  y = s32[90000] parameter(1)  zero = s32[] constant(0)
    a = s32[60] reduce(x, zero), dimensions={{1}}, to_apply=wide
    b = s32[90000] map(y, y), dimensions={{0}}, to_apply=count
    c = s32[60,50] reduce-window(x, zero), window={{size=1x3 pad=0_0x1_1}}, to_apply=count
    ROOT t = (s32[60], s32[90000], s32[60,50]) tuple(a, b, c) }}"""


def test_the_number_of_threads_changes_no_bit() -> None:
    """Each task has an arena of its own for the function at hand."""
    module = xlapy.hlo.parse(THREADED)
    random = np.random.default_rng(5)
    x, y = random.integers(-5, 40, (60, 50), np.int32), random.integers(-5, 40, 90000, np.int32)
    padded = np.pad(x, ((0, 0), (1, 1)))
    expected = (
        counted(np.maximum(x, 0)).sum(axis=1, dtype=np.int32),
        y + counted(y),
        sum(counted(padded[:, place : place + 50]) for place in range(3)),
    )
    for threads in (1, 2, 3, 8):
        results = xlapy.compile(module, xlapy.CompileOptions(num_threads=threads))(x, y)
        for result, wanted in zip(results, expected, strict=True):
            np.testing.assert_array_equal(result, wanted)


def test_arrays_of_a_region_are_in_the_arena() -> None:
    """64 MB of them, which no stack holds; products of matrices go to their library."""
    module = """HloModule m
      r { a = f32[] parameter(0)  b = f32[] parameter(1)
        x = f32[4096,1024] broadcast(b), dimensions={}  i = f32[4096,1024] iota(), iota_dimension=1
        y = f32[4096,1024] sort(i), dimensions={1}, to_apply=greater
        w = f32[4096,1024] multiply(x, y)  j = f32[1024,3] iota(), iota_dimension=1
        d = f32[4096,3] dot(w, j), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        s = f32[1,1] slice(d), slice={[7:8], [2:3]}  t = f32[] reshape(s)  ROOT u = f32[] add(a, t) }
      greater { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT c = pred[] compare(x, y), direction=GT }
      ENTRY e { x = f32[3] parameter(0)  z = f32[] constant(0)
        ROOT y = f32[] reduce(x, z), dimensions={0}, to_apply=r }"""
    executable = xlapy.compile(module, CHECKED)
    assert executable(np.array([1, 2, 3], np.float32)) == 6 * 2 * 1023 * 1024 / 2
    assert executable.memory_analysis()["temporary_bytes"] >= 2 * 4096 * 1024 * 4


ENDLESS = """HloModule m
  again { s = f32[] parameter(0)  z = f32[] constant(7)  ROOT p = pred[] compare(s, z), direction=NE }
  same { s = f32[] parameter(0)  ROOT n = f32[] negate(s) }
  r { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT w = f32[] while(y), condition=again, body=same }
"""

OVER_ARRAYS = "x = f32[100000] parameter(0)  ROOT y = f32[100000] map(x, x), dimensions={0}, to_apply=r"
OVER_PROCESSES = "x = f32[8] parameter(0)  ROOT y = f32[8] all-reduce(x), replica_groups={{0,1}}, to_apply=r"


def interrupted(run: Any) -> bool:
    """Ctrl-C, soon after `run` began."""
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        run()
    except KeyboardInterrupt:
        return True
    finally:
        timer.join()
    return False


@pytest.mark.parametrize("threads", [1, 2])
def test_an_endless_loop_in_a_region_can_be_interrupted(threads: int) -> None:
    """And the executable goes on to be of use."""
    executable = xlapy.compile(f"{ENDLESS} ENTRY e {{ {OVER_ARRAYS} }}", xlapy.CompileOptions(num_threads=threads))
    sevens = np.full(100000, 7, np.float32)
    for _ in range(2):
        assert interrupted(lambda: executable(np.ones(100000, np.float32)))
        np.testing.assert_array_equal(executable(sevens), sevens)


def test_an_endless_loop_in_a_collective_can_be_interrupted() -> None:
    executable = xlapy.compile(f"{ENDLESS} ENTRY e {{ {OVER_PROCESSES} }}", xlapy.CompileOptions(num_replicas=2))
    ones, sevens = np.ones(8, np.float32), np.full(8, 7, np.float32)
    assert interrupted(lambda: executable.run_parallel([[ones], [ones]]))
    np.testing.assert_array_equal(executable.run_parallel([[sevens], [sevens]]), [sevens, sevens])


@pytest.mark.parametrize(
    "effect",
    [
        "t = token[] after-all()  f = (f32[], token[]) infeed(t)  ROOT r = f32[] get-tuple-element(f), index=0",
        'ROOT r = f32[] custom-call(x), custom_call_target="f"',
        "one = f32[] constant(1)  ROOT r = f32[] rng(x, one), distribution=rng_uniform",
        "ROOT r = f32[] all-reduce(x), to_apply=add",
    ],
)
def test_effects_in_a_region_are_refused(effect: str) -> None:
    module = f"""HloModule m
      add {{ x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT s = f32[] add(x, y) }}
      region {{ x = f32[] parameter(0)  y = f32[] parameter(1)  {effect} }}
      ENTRY e {{ x = f32[4] parameter(0)  z = f32[] constant(0)
        ROOT y = f32[] reduce(x, z), dimensions={{0}}, to_apply=region }}"""
    with pytest.raises(UnsupportedError, match="in region, which is applied to each element, on several threads"):
        xlapy.compile(module)


def test_effects_in_a_region_are_named_as_they_were_written() -> None:
    """Random numbers are other operations by the time that anybody finds out."""
    module = """HloModule m
      region { x = f32[] parameter(0)  one = f32[] constant(1)  low = f32[] negate(one)
        draw = f32[] rng(low, one), distribution=rng_normal, metadata={source_file="model.py" source_line=7}
        ROOT r = f32[] add(x, draw) }
      ENTRY e { x = f32[4] parameter(0)  ROOT y = f32[4] map(x), dimensions={0}, to_apply=region }"""
    with pytest.raises(UnsupportedError) as caught:
        xlapy.compile(module)
    assert str(caught.value).startswith("draw: rng (rng-get-and-update-state) in region, ")
    assert caught.value.where == "model.py:7"


def test_what_the_user_calls_an_effect_in_a_region_is_said() -> None:
    builder = xlapy.XlaBuilder("numbers")
    x = builder.parameter(0, xlapy.Shape.array(np.float32, (4,)))

    def noisy(value: xlapy.XlaOp) -> xlapy.XlaOp:
        return value + ops.RngUniform(0.0 * value, 1.0, value.shape)

    with pytest.raises(UnsupportedError, match=r"^rng: rng \(rng-get-and-update-state\) in noisy, ") as caught:
        xlapy.compile(builder.build(ops.Map(builder, [x], noisy)))
    assert "test_region_functions.py:" in caught.value.where


def test_a_region_function_may_be_a_branch_too() -> None:
    """Written twice or once: what runs as control flow has memory of its own."""
    body = """{ x = f32[] parameter(0)  row = f32[5] broadcast(x), dimensions={}  i = f32[5] iota(), iota_dimension=0
      y = f32[5] multiply(row, i)  z = f32[] constant(0)  ROOT r = f32[] reduce(y, z), dimensions={0}, to_apply=sum }"""
    module = xlapy.hlo.parse(f"""HloModule m
      sum {{ x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT s = f32[] add(x, y) }}
      one {body}
      other {body}
      ENTRY e {{ x = f32[9] parameter(0)  p = pred[] parameter(1)  a = f32[1] slice(x), slice={{[2:3]}}
        b = f32[] reshape(a)  c = f32[] conditional(p, b, b), true_computation=one, false_computation=sum_of_none
        m = f32[9] map(x), dimensions={{0}}, to_apply=other  n = f32[9] map(x), dimensions={{0}}, to_apply=one
        ROOT t = (f32[], f32[9], f32[9]) tuple(c, m, n) }}
      sum_of_none {{ x = f32[] parameter(0)  ROOT n = f32[] negate(x) }}""")
    x = np.arange(9, dtype=np.float32)
    for choice in (True, False):
        assert_same(xlapy.compile(module, CHECKED)(x, choice), evaluate(module, x, choice))


# -- beside XLA --------------------------------------------------------------------------------------------------------


def test_functions_of_jax_as_computations() -> None:
    """XLA:CPU compiles few such reductions itself, so that here it folds the columns one after the other."""
    jax = pytest.importorskip("jax")
    lax, jnp = jax.lax, jax.numpy

    def grown(a: Any, b: Any) -> Any:
        return lax.while_loop(lambda s: s[0] < 4, lambda s: (s[0] * 1.5 + 0.75, s[1] + 1), (abs(b), a))[1]

    def smaller_or_sum(a: Any, b: Any) -> Any:
        return lax.cond(a < b, lambda x, y: x + y, lambda x, y: x - y, a, b)

    def one_of_three(a: Any, b: Any) -> Any:
        branches = [lambda x, y: x, lambda x, y: y - x, lambda x, y: x * 0.5 + y]
        return lax.switch((b * 2).astype(jnp.int32), branches, a, b)

    def on_arrays(a: Any, b: Any) -> Any:
        row = jnp.arange(5, dtype=jnp.float32) * b
        return a + jnp.sort(row)[1] + jnp.take(jnp.cumsum(row), (abs(b) * 2).astype(jnp.int32)) + jnp.max(row)

    functions = (grown, smaller_or_sum, one_of_three, on_arrays)
    x = np.round(np.random.default_rng(1).normal(size=(7, 6)) * 8).astype(np.float32) / 4

    def reductions(x: Any) -> Any:
        return [lax.reduce(x, jnp.float32(0), function, (1,)) for function in functions]

    def folds(x: Any) -> Any:
        zeros = jnp.zeros(7, jnp.float32)
        return [functools.reduce(jax.vmap(function), list(x.T), zeros) for function in functions]

    module = xlapy.stablehlo.parse(jax.jit(reductions).lower(x).as_text())
    wanted = [np.asarray(result) for result in jax.jit(folds)(x)]
    for result, expected, function in zip(xlapy.compile(module, CHECKED)(x), wanted, functions, strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-6, err_msg=function.__name__)
    for result, expected in zip(evaluate(module, x), wanted, strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_tasks_of_calls_in_place_are_no_whole_vectors() -> None:
    """Many operands make tasks of some fifty elements, and the result takes the memory of the first operand."""
    count, size = 9, 5000
    scalars = "\n".join(f"  p{n} = s32[] parameter({n})" for n in range(count))
    arrays = "\n".join(
        f"  a{n} = s32[{size}] parameter({n})\n  b{n} = s32[{size}] add(a{n}, a{n})" for n in range(count)
    )
    total = "\n".join(f"  t{n} = s32[] add({'p0' if n == 1 else f't{n - 1}'}, p{n})" for n in range(1, count))
    text = f"""HloModule tasks
    goes_on {{
      s = (s32[], s32[]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      limit = s32[] constant(3)
      ROOT c = pred[] compare(n, limit), direction=LT
    }}
    step {{
      s = (s32[], s32[]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      x = s32[] get-tuple-element(s), index=1
      one = s32[] constant(1)
      m = s32[] add(n, one)
      y = s32[] multiply(x, x)
      ROOT t = (s32[], s32[]) tuple(m, y)
    }}
    region {{
    {scalars}
    {total}
      zero = s32[] constant(0)
      start = (s32[], s32[]) tuple(zero, t{count - 1})
      end = (s32[], s32[]) while(start), condition=goes_on, body=step
      ROOT r = s32[] get-tuple-element(end), index=1
    }}
    ENTRY main {{
    {arrays}
      ROOT m = s32[{size}] map({", ".join(f"b{n}" for n in range(count))}), dimensions={{0}}, to_apply=region
    }}"""
    generator = np.random.default_rng(0)
    arguments = [generator.integers(-5, 5, size).astype(np.int32) for _ in range(count)]
    np.testing.assert_array_equal(xlapy.compile(text)(*arguments), xlapy.evaluate(text, *arguments))


def test_calls_of_functions_release_the_lock_of_the_interpreter() -> None:
    """A call may take any time, however small its arrays: and threads that work on it look at Python's signals, for
    which they need what the caller must not hold while it waits for them."""
    text = """HloModule m
      add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
      r { x = f32[] parameter(0)  z = f32[] constant(0)  many = f32[6] iota(), iota_dimension=0
        row = f32[6] broadcast(x), dimensions={}  both = f32[6] power(many, row)
        ROOT t = f32[] reduce(both, z), dimensions={0}, to_apply=add }
      ENTRY e { x = f32[64] parameter(0)  ROOT y = f32[64] map(x), dimensions={0}, to_apply=r }"""
    executable = xlapy.compile(text)
    assert executable._compiled.program.has_loops
    np.testing.assert_array_equal(executable(np.ones(64, np.float32)), np.full(64, 15, np.float32))
