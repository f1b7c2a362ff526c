"""Elements of a loop's state that are always equal, in random loops: what is merged must compute the same."""

import random

import numpy as np
import pytest

from tests.support.hlo_cases import check_same_values
from xlapy.hlo.attributes import ComparisonDirection
from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.shape import Shape
from xlapy.hlo.verifier import verify
from xlapy.passes.analysis.equal_elements import ROUNDS, equal_elements
from xlapy.passes.while_simplification import WhileSimplification

SCALAR, ARRAY = Shape.array(np.int32, ()), Shape.array(np.int32, (3,))


def number(computation: Computation, value: int) -> Instruction:
    return computation.add("constant", literal=Literal(np.int32(value)))


def elements(computation: Computation, state: Instruction) -> list[Instruction]:
    return [computation.add("get-tuple-element", [state], index=i) for i in range(len(state.shape.parts))]


def loop(inits: list[int], steps: list[tuple[str, int, int]], read: list[int], trips: int = 3) -> HloModule:
    """A loop over a counter and arrays. Array n starts as parameter `inits[n]`; `steps[n]` is an operation on two of
    the arrays that makes its next value. The result is what is read behind the loop."""
    shape = Shape.tuple([SCALAR, *[ARRAY] * len(inits)])
    test, body, entry = Computation("test"), Computation("body"), Computation("main")
    counter, *_ = elements(test, test.add("parameter", shape=shape, number=0))
    less = test.add("compare", [counter, number(test, trips)], direction=ComparisonDirection.LT)
    test.set_root(less)
    counter, *arrays = elements(body, body.add("parameter", shape=shape, number=0))
    following = [arrays[one] if name == "" else body.add(name, [arrays[one], arrays[two]]) for name, one, two in steps]
    body.set_root(body.add("tuple", [body.add("add", [counter, number(body, 1)]), *following]))
    parameters = [entry.add("parameter", shape=ARRAY, number=n) for n in range(2)]
    init = entry.add("tuple", [number(entry, 0), *(parameters[n] for n in inits)])
    final = entry.add("while", [init], called=[test, body])
    results = elements(entry, final)
    entry.set_root(entry.add("tuple", [results[n] for n in read]) if read else final)
    return HloModule("loop", entry)


@pytest.mark.parametrize("seed", range(60))
def test_random_loops_compute_the_same(seed: int) -> None:
    choices = random.Random(seed)
    count = choices.randint(2, 7)
    steps = [
        (choices.choice(("", "add", "multiply", "subtract")), choices.randrange(count), choices.randrange(count))
        for _ in range(count)
    ]
    read = choices.sample(range(1 + count), choices.randint(0, 3))
    before = loop([choices.randrange(2) for _ in range(count)], steps, read)
    verify(before)
    after = before.clone()
    step = WhileSimplification()
    while step.run(after):
        verify(after)
    check_same_values(before, after)


def equal_in(module: HloModule) -> dict[int, int]:
    return equal_elements(next(i for i in module.entry if i.opcode == "while"))


def test_a_ring_of_equal_arrays_is_one_array() -> None:
    module = loop([0, 0, 0], [("", 1, 0), ("", 2, 0), ("", 0, 0)], [1])
    assert equal_in(module) == {2: 1, 3: 1}
    module = loop([0, 0, 1], [("", 1, 0), ("", 2, 0), ("", 0, 0)], [1])
    assert equal_in(module) == {}


def test_what_takes_too_many_rounds_stays_apart() -> None:
    """Each iteration tells one more array of the row from the first."""
    count = ROUNDS + 3
    row = [("", n + 1, 0) for n in range(count - 1)]
    assert len(equal_in(loop([0] * count, [*row, ("", count - 1, 0)], [1]))) == count - 1
    assert equal_in(loop([0] * count, [*row, ("add", 0, 0)], [1])) == {}
