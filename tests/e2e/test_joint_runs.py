"""Programs whose small kernels share the threads: the bits of the evaluator and of kernels one by one, for any number
of threads, in place, in loops and in branches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlapy
from tests.e2e.random_programs import random_program
from tests.support.guarded_memory import GuardedRoom
from tests.support.machine import LIMITS
from tests.support.native import on_threads
from tests.support.values import assert_same
from xlapy.codegen.entry import kernels
from xlapy.codegen.kernels import tasks
from xlapy.passes import joint_runs
from xlapy.stablehlo import parse as parse_stablehlo

JOINT = "@kernel.joint"
THREADS = (1, 2, 3, 8)
SHAPES = ((40_000,), (300, 300), (77, 13), (65,), (5000,), (120, 7, 33), (1000, 129), (16_384,))


def compiled(program: Any, *, joint: bool = True) -> xlapy.Executable:
    """The program, with joint runs that are in it, or without."""
    disabled = frozenset() if joint else frozenset({joint_runs.NAME})
    options = xlapy.CompileOptions(num_threads=2, disabled_passes=disabled, verify=True)
    executable = xlapy.compile(program, options)
    assert (JOINT in executable.llvm_ir()) == joint
    return executable


def check(program: Any, *arguments: np.ndarray[Any, Any]) -> None:
    """The same bits by all ways."""
    expected = compiled(program, joint=False)(*arguments)
    together = compiled(program)
    for threads in THREADS:
        assert_same(on_threads(together, threads)(*arguments), expected, f"{threads} threads")


def arrays(*shapes: tuple[int, ...], types: tuple[type, ...] = (np.float32,)) -> list[np.ndarray[Any, Any]]:
    random = np.random.default_rng(0)
    return [(random.random(shape) * 8 + 1).astype(types[number % len(types)]) for number, shape in enumerate(shapes)]


# -- programs of JAX ---------------------------------------------------------------------------------------------------


def adam(gradients: Any, parameters: Any, first: Any, second: Any, number: Any) -> Any:
    """One step, of whatever shapes and types."""
    jnp = pytest.importorskip("jax.numpy")
    number = number + 1
    updated = []
    for g, p, m, v in zip(gradients, parameters, first, second, strict=True):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        scale = jnp.sqrt(1 - 0.999**number) / (1 - 0.9**number)
        updated.append((p - (0.001 * scale * m / (jnp.sqrt(v) + 1e-8)).astype(p.dtype), m, v))
    return (*zip(*updated, strict=True), number)


def momentum(gradients: Any, parameters: Any, moved: Any) -> Any:
    velocities = [0.9 * v + g for g, v in zip(gradients, moved, strict=True)]
    return [p - 0.01 * v for p, v in zip(parameters, velocities, strict=True)], velocities


def lowered(function: Any, *arguments: Any, **options: Any) -> tuple[Any, list[np.ndarray[Any, Any]], list[Any]]:
    """The module of a function, its arguments one by one, and what XLA makes of them."""
    jax = pytest.importorskip("jax")
    module = parse_stablehlo(jax.jit(function, **options).lower(*arguments).as_text())
    flat = [np.array(leaf) for leaf in jax.tree.leaves(arguments)]
    return module, flat, jax.tree.leaves(jax.jit(function)(*arguments))


def assert_close(results: Any, expected: list[Any]) -> None:
    for result, wanted in zip(results, expected, strict=True):
        reference = np.asarray(wanted)
        tolerance = 1e-6 if result.dtype.itemsize >= 4 else 1e-2
        np.testing.assert_allclose(
            result.astype(np.float64), reference.astype(np.float64), rtol=tolerance, atol=tolerance
        )


def test_an_optimizer_of_many_shapes_and_types() -> None:
    types = (np.float32, np.float16)
    states = [arrays(*SHAPES, types=types) for _ in range(4)]
    module, flat, expected = lowered(adam, *states, np.float32(1))
    check(module, *flat)
    assert_close(compiled(module)(*flat), expected)


def test_donated_state_stays_where_it_is() -> None:
    states = [arrays(*SHAPES) for _ in range(3)]
    module, flat, expected = lowered(momentum, *states, donate_argnums=(1, 2))
    executable, alone = compiled(module), compiled(module, joint=False)
    assert executable.memory_analysis()["peak_bytes"] == alone.memory_analysis()["peak_bytes"]
    for threads in THREADS:
        copies = [array.copy() for array in flat]
        results = on_threads(executable, threads)(*copies)
        assert_close(results, expected)
        assert all(result is given for result, given in zip(results, copies[len(SHAPES) :], strict=True))


@pytest.mark.parametrize("size", [53_760, 107_520, 71_680])
def test_pieces_of_bytes_in_place_are_whole_vectors(size: int) -> None:
    """Whose vectors have more elements than those of other types: each is added to once, and nothing behind them."""
    program = f"""HloModule bytes, input_output_alias={{ {{0}}: (0, {{}}, may-alias) }}
      ENTRY main {{
        x = s8[{size}] parameter(0)  y = s8[{size}] parameter(1)  v = f32[250000] parameter(2)
        sum = s8[{size}] add(x, y)  backwards = f32[250000] reverse(v), dimensions={{0}}
        ROOT t = tuple(sum, backwards) }}"""
    random = np.random.default_rng(0)
    x, y = (random.integers(-128, 128, size, np.int8) for _ in range(2))
    v = np.arange(250_000, dtype=np.float32)
    executable = compiled(program)
    for threads in THREADS:
        room = GuardedRoom(size)
        placed = room.array_at(x, 0)
        total, backwards = on_threads(executable, threads)(placed, y, v)
        np.testing.assert_array_equal(total, x + y)
        np.testing.assert_array_equal(backwards, v[::-1])
        assert room.is_untouched(size)


def test_steps_in_a_scan() -> None:
    jax = pytest.importorskip("jax")
    gradients, parameters, velocities = (arrays(*SHAPES) for _ in range(3))

    def run(gradients: Any, parameters: Any, velocities: Any) -> Any:
        def step(state: Any, scale: Any) -> Any:
            scaled = [g * scale for g in gradients]
            return momentum(scaled, *state), sum(p.sum() for p in state[0])

        return jax.lax.scan(step, (parameters, velocities), np.arange(4, dtype=np.float32) / 8)

    module, flat, expected = lowered(run, gradients, parameters, velocities)
    check(module, *flat)
    results = compiled(module)(*flat)
    assert_close(results[:-1], expected[:-1])
    np.testing.assert_allclose(results[-1], expected[-1], rtol=1e-4)


def test_reduces_rows_and_elements_of_all_kinds() -> None:
    """Kernels of each kind that shares a run, side by side."""
    jnp = pytest.importorskip("jax.numpy")

    def many(a: Any, b: Any, c: Any, d: Any) -> Any:
        rows = jnp.exp(b - b.max(1, keepdims=True))
        return (
            a.sum(0),
            (b * b).sum(1),
            rows / rows.sum(1, keepdims=True),
            jnp.tanh(a),
            jnp.concatenate([c[:100], c[7:], c]),
            (c > 2) | (c < 1),
            d.argmax(1),
            d.transpose(),
            jnp.pad(d, ((1, 2), (0, 3))),
            c.astype(np.int8),
        )

    added, *others = arrays((500, 300), (400, 256), (90_001,), (128, 640))
    values = [np.round(added * 64) / 64, *others]  # sums of these are exact, in whatever order they are made
    module, flat, expected = lowered(many, *values)
    check(module, *flat)
    assert_close(compiled(module)(*flat), expected)


# -- control flow, scalars, small things -------------------------------------------------------------------------------

BRANCHES = """
one { t = (f32[150000], f32[150000]) parameter(0)
  x = f32[150000] get-tuple-element(t), index=0  y = f32[150000] get-tuple-element(t), index=1
  a = f32[150000] sine(x)  b = f32[150000] negate(y)  ROOT r = (f32[150000], f32[150000]) tuple(a, b) }
two { t = (f32[150000], f32[150000]) parameter(0)
  x = f32[150000] get-tuple-element(t), index=0  y = f32[150000] get-tuple-element(t), index=1
  ROOT r = (f32[150000], f32[150000]) tuple(y, x) }
ENTRY e {
  p = pred[] parameter(0)
  x = f32[150000] parameter(1)
  y = f32[150000] parameter(2)
  s = f32[] parameter(3)
  k = f32[] exponential(s)
  w = f32[150000] broadcast(k), dimensions={}
  u = f32[150000] multiply(x, w)
  v = f32[150000] add(y, w)
  t = (f32[150000], f32[150000]) tuple(u, v)
  ROOT r = (f32[150000], f32[150000]) conditional(p, t, t), true_computation=one, false_computation=two
}
"""


@pytest.mark.parametrize("which", [False, True])
def test_branches_and_scalars_of_kernels(which: bool) -> None:
    check(BRANCHES, np.bool_(which), *arrays((150_000,), (150_000,)), np.float32(0.25))


def test_several_parts_of_the_entry() -> None:
    """A run is never cut in two, however long the sequence that it is in."""
    lines = "".join(
        f"  p{n} = f32[{3000 + n}] parameter({n})\n  a{n} = f32[{3000 + n}] negate(p{n})\n" for n in range(400)
    )
    shapes = ", ".join(f"f32[{3000 + n}]" for n in range(400))
    text = f"ENTRY e {{\n{lines}  ROOT t = ({shapes}) tuple({', '.join(f'a{n}' for n in range(400))})\n}}"
    values = arrays(*[(3000 + n,) for n in range(400)])
    for result, value in zip(compiled(text)(*values), values, strict=True):
        np.testing.assert_array_equal(result, -value)


@pytest.mark.parametrize("first", range(0, 24, 6))
def test_random_programs(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However small the kernels, tasks and runs are."""
    monkeypatch.setenv("XLAPY_CACHE_DIR", "off")
    for limit in ("LEAST_MEMBER_BYTES", "LEAST_RUN_BYTES"):
        monkeypatch.setattr(joint_runs, limit, 1)
    monkeypatch.setattr(kernels, "PARALLEL_BYTES", 1)
    monkeypatch.setattr(tasks, "TASK_BYTES", 256)
    monkeypatch.setattr(tasks, "JOINT_TASK_BYTES", 512)
    joint = 0
    for seed in range(first, first + 6):
        program = random_program(seed, 40)
        with np.errstate(all="ignore"):
            expected = xlapy.evaluate(program.module, *program.arguments)
        executable = xlapy.compile(program.module, xlapy.CompileOptions(verify=True, num_threads=2))
        joint += JOINT in executable.llvm_ir()
        assert_same(executable(*program.arguments), expected, f"seed {seed}")
    assert joint > 1


# -- what is said of them ----------------------------------------------------------------------------------------------

PAIR = """ENTRY e {
  x = f32[200000] parameter(0)
  y = f32[150000] parameter(1)
  a = f32[200000] sine(x)
  b = f32[150000] negate(y)
  ROOT t = (f32[200000], f32[150000]) tuple(a, b)
}"""


def test_a_limit_of_changes_counts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are the last change: with a limit that all before them come up to there are none."""
    found = {}
    for limit in range(20):
        monkeypatch.setenv("XLAPY_PASS_LIMIT", str(limit))
        found[limit] = JOINT in xlapy.compile(PAIR).llvm_ir()
    needed = min(limit for limit, is_joint in found.items() if is_joint)
    assert needed > 0
    assert found == {limit: limit >= needed for limit in found}


def test_they_are_explained() -> None:
    assert "Run together, as 1 job of all threads\n  a, b: they do not need each other" in compiled(PAIR).explain(
        LIMITS
    )
    assert "Run together: 1 job of all threads" in compiled(PAIR).html_report(LIMITS)
    alone = compiled(PAIR, joint=False)
    assert "Run together" not in alone.explain(LIMITS) + alone.html_report(LIMITS)


def test_each_member_has_its_part_of_the_time_in_a_profile() -> None:
    profile = compiled(PAIR).profile(*arrays((200_000,), (150_000,)), calls=3)
    one, other = profile.kernels
    assert (one.name, one.runs, other.name, other.runs) == ("a", 1, "b", 1)
    assert one.seconds / other.seconds == pytest.approx(4 / 3, rel=0.1)
    assert (one.began, one.ended) == (other.began, other.ended)
    assert one.seconds + other.seconds <= 1.01 * one.ended
