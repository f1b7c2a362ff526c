"""The order of execution: what it holds at once, and what keeps it as it is."""

from __future__ import annotations

import numpy as np
import pytest

import xlapy
from tests.e2e.random_programs import random_program
from xlapy.hlo.graph import topological
from xlapy.hlo.text import parse
from xlapy.passes.analysis.peak import peak_bytes
from xlapy.passes.buffer_assignment import assign_buffers
from xlapy.passes.pipelines import cpu_pipeline
from xlapy.passes.scheduling import schedule

LESS = "less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT l = pred[] compare(a, b), direction=LT }\n"
SMALL_AFTER_BIG = (
    LESS
    + """ENTRY main {
  x = f32[4096] parameter(0)
  y = f32[4096] parameter(1)
  big = f32[4096] sort(x), dimensions={0}, to_apply=less
  other = f32[4096] sort(y), dimensions={0}, to_apply=less
  small = f32[64] slice(other), slice={[0:64]}
  again = f32[64] sort(small), dimensions={0}, to_apply=less
  ROOT t = (f32[4096], f32[64]) tuple(big, again)
}"""
)


JOIN = "ROOT c = f32[4160] concatenate(big, again), dimensions={0}"
BIG_IS_NO_RESULT = SMALL_AFTER_BIG.replace("ROOT t = (f32[4096], f32[64]) tuple(big, again)", JOIN)


def test_what_leaves_little_behind_comes_first() -> None:
    module = parse(BIG_IS_NO_RESULT)
    order = schedule(module)[module.entry]
    names = [instruction.name for instruction in order]
    assert names.index("again") < names.index("big")
    assert peak_bytes(order) < peak_bytes(topological([module.entry.root, *module.entry]))


def test_results_have_memory_of_their_own_from_beginning_to_end() -> None:
    module = parse(SMALL_AFTER_BIG)
    plain = topological([module.entry.root, *module.entry])
    assert peak_bytes(plain) == 4096 * 4 + 64 * 4
    assert list(schedule(module)[module.entry]) == plain


@pytest.mark.parametrize(
    "kept",
    [
        "o = f32[1000] opt-barrier(a)",
        "t = token[] after-all()  o = f32[1000] add-dependency(a, t)",
        "t = (f32[1000], f32[]) tuple(a, s)  b = (f32[1000], f32[]) opt-barrier(t)  "
        "o = f32[1000] get-tuple-element(b), index=0",
    ],
)
def test_what_stands_behind_a_barrier_is_alive_until_its_last_reader(kept: str) -> None:
    module = parse(f"""ENTRY main {{
      p = f32[1000] parameter(0)
      s = f32[] parameter(1)
      a = f32[1000] tanh(p)
      {kept}
      c = f32[1000] sine(p)
      ROOT r = f32[1000] add(o, c)
    }}""")
    assert peak_bytes(tuple(module.entry)) == 2 * 4 * 1000


def test_less_memory_is_planned() -> None:
    module = parse(BIG_IS_NO_RESULT)
    cpu_pipeline().run(module)
    plan = assign_buffers(module, schedule(module), lambda instruction, functions: 0)
    assert plan.live_bytes < 2 * 4096 * 4


def test_control_edges_and_updates_keep_the_order() -> None:
    text = SMALL_AFTER_BIG.replace("to_apply=less\n  small", "to_apply=less, control-predecessors={big}\n  small")
    module = parse(text)
    assert list(schedule(module)[module.entry]) == topological([module.entry.root, *module.entry])


@pytest.mark.parametrize("seed", range(8))
def test_no_order_holds_more_than_the_plain_one(seed: int) -> None:
    program = random_program(seed, 40)
    module = program.module.clone()
    cpu_pipeline().run(module)
    for computation, order in schedule(module).order.items():
        assert peak_bytes(order) <= peak_bytes(topological([computation.root, *computation]))
        place = {instruction: number for number, instruction in enumerate(order)}
        assert all(place[operand] < place[instruction] for instruction in order for operand in instruction.operands)


def test_results_stay() -> None:
    x, y = (np.random.default_rng(seed).normal(size=4096).astype(np.float32) for seed in (0, 1))
    for got, expected in zip(xlapy.compile(SMALL_AFTER_BIG)(x, y), xlapy.evaluate(SMALL_AFTER_BIG, x, y), strict=True):
        np.testing.assert_array_equal(got, expected)


def _training_step(layers: int, results: str = "") -> str:
    """Products behind each other, and the gradients of their factors: all are results, the first layer's first."""
    rows, lines = "f32[512,64]", ["x0 = f32[512,64] parameter(0)"]
    for n in range(layers):
        lines.append(f"w{n} = f32[64,64] parameter({n + 1})")
        lines.append(f"y{n} = {rows} dot(x{n}, w{n}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}")
        lines.append(f"x{n + 1} = {rows} sort(y{n}), dimensions={{1}}, to_apply=less")
    gradient = f"x{layers}"
    for n in reversed(range(layers)):
        lines.append(f"g{n} = f32[64,64] dot(x{n}, {gradient}), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}")
        lines.append(f"u{n} = f32[64,64] add(w{n}, g{n})")
        lines.append(f"d{n} = {rows} dot({gradient}, w{n}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}")
        gradient = f"d{n}"
    names = [*(f"u{n}" for n in range(layers)), *filter(None, [results])]
    shapes = ", ".join(["f32[64,64]"] * len(names))
    return LESS + f"ENTRY step {{\n{chr(10).join(lines)}\nROOT t = ({shapes}) tuple({', '.join(names)}) }}"


LAYERS = 12
ROWS_BYTES = 512 * 64 * 4


def test_gradients_are_made_as_soon_as_that_frees_memory() -> None:
    module = parse(_training_step(LAYERS))
    plain = topological([module.entry.root, *module.entry])
    order = schedule(module)[module.entry]
    assert peak_bytes(plain) > (2 * LAYERS - 3) * ROWS_BYTES
    assert peak_bytes(order) < (LAYERS + 2) * ROWS_BYTES
    place = {instruction.name: number for number, instruction in enumerate(order)}
    assert all(place[f"u{n}"] < place[f"d{n - 2}"] for n in range(2, LAYERS))


def test_what_has_its_place_keeps_it() -> None:
    """An update in place stays behind what reads the old elements, and the rest is released early all the same."""
    update = "u0 = f32[64,64] dynamic-update-slice(w1, corner, zero, zero)"
    text = _training_step(LAYERS).replace("u0 = f32[64,64] add(w0, g0)", f"{CORNER} {update}")
    module = parse(text)
    place = {instruction.name: number for number, instruction in enumerate(schedule(module)[module.entry])}
    assert place["u0"] > place["d1"]
    assert all(place[f"u{n}"] < place[f"d{n - 2}"] for n in range(2, LAYERS))


CORNER = "corner = f32[1,1] slice(g0), slice={[0:1], [0:1]} zero = s32[] constant(0)"


def test_the_new_state_of_a_loop_is_made_behind_what_reads_the_old_one() -> None:
    """The body reads w0 once more when the new one could be there already."""
    state = "(" + ", ".join(["f32[512,64]", *["f32[64,64]"] * LAYERS]) + ")"
    step = _training_step(LAYERS)
    lines = [line for line in step.split("ENTRY step {\n")[1].splitlines() if "parameter" not in line]
    reads = [f"{name} = {shape} get-tuple-element(p), index={n}" for n, (name, shape) in enumerate(STATE)]
    body = [f"p = {state} parameter(0)", *reads, *lines[:-1]]
    news = ", ".join(["last", *(f"u{n}" for n in range(LAYERS))])
    body.append("last = f32[512,64] dot(d0, u5), lhs_contracting_dims={1}, rhs_contracting_dims={0}")
    text = f"""{LESS}body {{ {" ".join(body)} ROOT t = {state} tuple({news}) }}
    condition {{ p = {state} parameter(0) ROOT c = pred[] constant(false) }}
    ENTRY main {{ p = {state} parameter(0) ROOT w = {state} while(p), condition=condition, body=body }}"""
    module = parse(text)
    (loop,) = (instruction for instruction in module.entry if instruction.opcode == "while")
    place = {instruction.name: number for number, instruction in enumerate(schedule(module)[loop.called[1]])}
    assert all(place[f"u{n}"] > place[f"d{n}"] for n in range(LAYERS))
    assert all(place[f"u{n}"] < place[f"d{n - 2}"] for n in range(2, LAYERS))


STATE = [("x0", "f32[512,64]"), *((f"w{n}", "f32[64,64]") for n in range(LAYERS))]
