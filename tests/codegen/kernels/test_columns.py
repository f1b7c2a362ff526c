"""Chains down columns: extrema that are found among integers, strips that tasks keep memory of their own for, columns
that are joined of a few arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.native import on_threads
from tests.support.targets import lesser_targets
from xlapy.codegen.kernels.columns import LEAST_KEPT_BYTES, MOST_KEPT_BYTES, TASKS_PER_CORE, ColumnPlan, plan_columns
from xlapy.codegen.kernels.makers.base import Situation
from xlapy.codegen.kernels.makers.chains import kernel_of_chain
from xlapy.codegen.target import Target, host_target, reference_target
from xlapy.compiler import compile_module
from xlapy.executable import Executable
from xlapy.hlo.evaluate import evaluate
from xlapy.hlo.graph import Computation
from xlapy.hlo.text import parse
from xlapy.options import CompileOptions
from xlapy_runtime.records import replaced

SOFTMAX = """
HloModule columns
max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT m = f32[] maximum(a, b) }
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
ENTRY main {
  x = f32[ROWS,COLUMNS] parameter(0)
  lowest = f32[] constant(-inf)
  m = f32[COLUMNS] reduce(x, lowest), dimensions={0}, to_apply=max
  each = f32[ROWS,COLUMNS] broadcast(m), dimensions={1}
  below = f32[ROWS,COLUMNS] subtract(x, each)
  e = f32[ROWS,COLUMNS] exponential(below)
  zero = f32[] constant(0)
  s = f32[COLUMNS] reduce(e, zero), dimensions={0}, to_apply=add
  sums = f32[ROWS,COLUMNS] broadcast(s), dimensions={1}
  ROOT y = f32[ROWS,COLUMNS] divide(e, sums)
}
"""
RANGE = """
HloModule columns
max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT m = f32[] maximum(a, b) }
min { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT m = f32[] minimum(a, b) }
ENTRY main {
  x = f32[ROWS,COLUMNS] parameter(0)
  lowest = f32[] constant(-inf)
  highest = f32[] constant(inf)
  m = f32[COLUMNS] reduce(x, lowest), dimensions={0}, to_apply=max
  n = f32[COLUMNS] reduce(x, highest), dimensions={0}, to_apply=min
  tops = f32[ROWS,COLUMNS] broadcast(m), dimensions={1}
  ends = f32[ROWS,COLUMNS] broadcast(n), dimensions={1}
  down = f32[ROWS,COLUMNS] divide(x, tops)
  ROOT y = f32[ROWS,COLUMNS] divide(down, ends)
}
"""
"""Divided by both extrema, whose signs are seen even of zeros."""

LATTICE = """
HloModule lattice
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
ENTRY main {
  x = f32[3,ROWS,COLUMNS] parameter(0)
  rest = f32[1,ROWS,COLUMNS] slice(x), slice={[0:1], [0:ROWS], [0:COLUMNS]}
  down = f32[1,ROWS,COLUMNS] slice(x), slice={[1:2], [0:ROWS], [0:COLUMNS]}
  first = f32[1,1,COLUMNS] slice(down), slice={[0:1], [0:1], [0:COLUMNS]}
  others = f32[1,ABOVE,COLUMNS] slice(down), slice={[0:1], [1:ROWS], [0:COLUMNS]}
  rolled = f32[1,ROWS,COLUMNS] concatenate(others, first), dimensions={1}
  along = f32[1,ROWS,COLUMNS] slice(x), slice={[2:3], [0:ROWS], [0:COLUMNS]}
  zero = f32[] constant(0)
  moved = f32[1,ROWS,COLUMNS] pad(along, zero), padding=0_0x0_0x2_-2
  all = f32[3,ROWS,COLUMNS] concatenate(rest, rolled, moved), dimensions={0}
  s = f32[ROWS,COLUMNS] reduce(all, zero), dimensions={0}, to_apply=add
  sums = f32[3,ROWS,COLUMNS] broadcast(s), dimensions={1,2}
  ROOT y = f32[3,ROWS,COLUMNS] subtract(all, sums)
}
"""
"""Directions of a lattice: from each place elements move to a neighbour of it, round the end or over the edge."""

TARGETS = {"host": host_target(), **lesser_targets()}


def sized(text: str, rows: int, columns: int) -> str:
    return text.replace("ROWS", str(rows)).replace("COLUMNS", str(columns))


def compiled(text: str, target: Target) -> Executable:
    options = CompileOptions(num_threads=1)
    return Executable(compile_module(parse(text), options, target), options)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("text", [SOFTMAX, RANGE], ids=["softmax", "range"])
def test_extrema_are_those_of_floats(text: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLAPY_CACHE_DIR", "off")
    x = np.random.default_rng(0).standard_normal((40, 70)).astype(np.float32)
    x[:, 3], x[:, 4], x[:, 5] = 0.0, -0.0, np.where(np.arange(40) % 2, 0.0, -0.0)
    x[7, 6], x[9, 7], x[11, 8] = np.nan, np.inf, -np.inf
    x[12, 9] = np.frombuffer(np.uint32(0xFFC00001).tobytes(), np.float32)[0]
    x[:, 10], x[:, 11] = -np.inf, np.inf
    found = np.asarray(compiled(sized(text, 40, 70), TARGETS[target])(x))
    monkeypatch.setattr("xlapy.codegen.kernels.columns.is_found_in_order", lambda *_: False)
    wanted = np.asarray(compiled(sized(text, 40, 70), TARGETS[target])(x))
    np.testing.assert_array_equal(found, wanted)
    numbers = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(wanted[numbers]))


def test_strips_in_memory_of_tasks_are_the_same_for_any_threads() -> None:
    text = sized(SOFTMAX, 4096, 640)
    x = np.random.default_rng(0).standard_normal((4096, 640)).astype(np.float32)
    program = compiled(text, TARGETS["host"])
    once, *others = (np.asarray(on_threads(program, threads)(x)).tobytes() for threads in (1, 2, 3, 8))
    assert all(other == once for other in others)


def chain(rows: int, columns: int) -> Computation:
    return parse(sized(SOFTMAX, rows, columns)).entry


def plan(target: Target, rows: int, columns: int) -> ColumnPlan:
    return plan_columns(chain(rows, columns), rows * columns * 4, target)


@pytest.mark.parametrize(("l3_bytes", "most"), [(8 << 20, LEAST_KEPT_BYTES), (32 << 20, MOST_KEPT_BYTES)])
def test_kept_strips_leave_room_in_the_last_cache(l3_bytes: int, most: int) -> None:
    target = replaced(reference_target("avx512"), l3_bytes=l3_bytes)
    assert most // 2 < plan(target, 4096, 4096).scratch_bytes <= most


@pytest.mark.parametrize("cores", [1, 2, 4])
def test_tasks_keep_many_strips_in_the_same_memory(cores: int) -> None:
    target = replaced(reference_target("avx512"), cores=cores)
    kernel: Any = kernel_of_chain(chain(4096, 4096), Situation(target, in_place=False))
    assert kernel.task_bytes
    assert kernel.tasks == TASKS_PER_CORE * cores


def lattice(rows: int, columns: int) -> str:
    return sized(LATTICE.replace("ABOVE", str(rows - 1)), rows, columns)


def test_what_columns_are_joined_of_is_known_for_each_element() -> None:
    computation = parse(lattice(40, 168)).entry
    found = plan_columns(computation, 40 * 168 * 12, reference_target("avx2"))
    assert found.joined == ((0,), ())  # the last sweep reads what the first one kept
    assert found.interior == {1: range(39), 2: range(2, 168)}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("rows", "columns"), [(40, 168), (41, 163), (300, 18), (5, 17)])
def test_columns_of_joined_arrays(rows: int, columns: int, target: str) -> None:
    text = lattice(rows, columns)
    x = np.random.default_rng(0).integers(-99, 99, (3, rows, columns)).astype(np.float32)
    executable = compiled(text, TARGETS[target])
    assert "kind=kOutput" in executable.hlo_text()
    np.testing.assert_array_equal(executable(x), evaluate(parse(text), x))
