"""Motion out of conditionals, on random branches that have much in common, and as a whole."""

import random

import numpy as np
import pytest

import xlapy
from tests.support.hlo_cases import assert_same, check_same_values
from tests.support.random_programs import BINARY, UNARY, random_program
from xlapy.hlo.evaluate import evaluate
from xlapy.hlo.graph import Computation, HloModule
from xlapy.hlo.ops import OPS
from xlapy.hlo.random_values import random_arguments
from xlapy.hlo.shape import Shape
from xlapy.hlo.text import fingerprint, parse
from xlapy.hlo.verifier import verify
from xlapy.passes.conditional_motion import ConditionalMotion


def varied(base: Computation, choices: random.Random) -> Computation:
    """A copy of `base` in which some operations are others."""
    copy = base.clone()
    for instruction in copy:
        kind = instruction.shape.type if instruction.shape.is_array else None
        for table in (UNARY, BINARY):
            others = [name for name in table.get(kind, ()) if len(table[kind]) > 1] if kind else []
            if instruction.opcode in others and choices.random() < 0.15:
                instruction.spec = OPS[choices.choice(others)]
                instruction.opcode = instruction.spec.name
    return copy


def branch(base: Computation, order: list[int]) -> Computation:
    """`base`, taking one tuple whose element `order[n]` is parameter n."""
    shapes: dict[int, Shape] = {}
    for place, parameter in zip(order, base.parameters, strict=True):
        shapes[place] = parameter.shape
    computation = Computation("branch")
    state = computation.add("parameter", shape=Shape.tuple([shapes[n] for n in range(len(shapes))]), number=0)
    arguments = [computation.add("get-tuple-element", [state], index=place) for place in order]
    computation.set_root(computation.insert(base, arguments))
    return computation


def choice(seed: int) -> HloModule:
    """A conditional whose branches vary one program, beside another variation of it."""
    choices = random.Random(seed)
    base = random_program(seed, size=24).entry
    entry = Computation("main")
    selector = entry.add("parameter", shape=Shape.array(np.int32, ()), number=0)
    values = [entry.add("parameter", shape=p.shape, number=n) for n, p in enumerate(base.parameters, start=1)]
    beside = entry.insert(varied(base, choices), values)
    called, operands = [], []
    for _ in range(choices.choice((2, 2, 3, 5))):
        order = choices.sample(range(len(values)), len(values))
        called.append(branch(varied(base, choices), order))
        operands.append(entry.add("tuple", [values[order.index(place)] for place in range(len(values))]))
    chosen = entry.add("conditional", [selector, *operands], called=called)
    count = len(chosen.shape.parts)
    used = choices.sample(range(count), choices.randint(1, count))
    results = [entry.add("get-tuple-element", [chosen], index=index) for index in used]
    entry.set_root(entry.add("tuple", [*results, beside.operands[0]]) if choices.random() < 0.8 else chosen)
    return HloModule("choice", entry)


@pytest.mark.parametrize("seed", range(60))
def test_random_branches_compute_the_same(seed: int) -> None:
    before = choice(seed)
    verify(before)
    after = before.clone()
    step = ConditionalMotion()
    for _ in range(8):
        changed, text = step.run(after), fingerprint(after)
        verify(after)
        if not changed:
            break
    assert step.run(after) is False
    assert fingerprint(after) == text
    check_same_values(before, after)


@pytest.mark.parametrize("seed", range(100, 112))
def test_random_branches_run(seed: int) -> None:
    module = choice(seed)
    run = xlapy.compile(module)
    arguments = random_arguments(module.signature.parameters, seed)
    for selector in (-1, 0, 1, 2, 9):
        arguments[0] = np.int32(selector)
        assert_same(run(*arguments), evaluate(module, *arguments))


def test_records_say_what_moved() -> None:
    module = parse("""
    f { s = (f32[4,4], f32[4,4], f32[]) parameter(0)  x = f32[4,4] get-tuple-element(s), index=0
        w = f32[4,4] get-tuple-element(s), index=1
        d = f32[4,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        n = f32[4,4] negate(d)  ROOT t = (f32[4,4], f32[4,4]) tuple(n, w) }
    g { s = (f32[4,4], f32[4,4], f32[]) parameter(0)  x = f32[4,4] get-tuple-element(s), index=0
        w = f32[4,4] get-tuple-element(s), index=1
        d = f32[4,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        ROOT t = (f32[4,4], f32[4,4]) tuple(d, w) }
    ENTRY e { p = pred[] parameter(0)  s = (f32[4,4], f32[4,4], f32[]) parameter(1)
        ROOT c = (f32[4,4], f32[4,4]) conditional(p, s, s), true_computation=f, false_computation=g }""")
    step = ConditionalMotion()
    assert step.run(module)
    (record,) = step.take_records()
    assert (record.subject, record.computation, record.made) == ("c", "e", True)
    assert record.reason == "w is the same in all branches; f reads d from outside; g reads d from outside"
