"""Random programs with effects: by the evaluator and as native code they put out the same, in the same order, and leave
the same in the queues."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import xlapy
from tests.e2e.random_effects import FROM_HOST, TO_HOST, Effects, random_effects
from tests.support.values import assert_same, random_array
from xlapy.hlo.evaluate import Interpreter
from xlapy.hlo.shape import Shape
from xlapy.hlo.verifier import verify

SEEDS_PER_TEST = 20
ITEMS = 3000
"""More than nearly all programs take."""

SECONDS = 60.0
THREADS = (1, 2, 3, 8)


class Supply(deque[Any]):
    """What the host gives, made when it is taken, and noted."""

    def __init__(self, shape: Shape, seed: int) -> None:
        super().__init__([None] * ITEMS)
        self.taken: list[Any] = []
        self._shape, self._random = shape, np.random.default_rng(seed)

    def popleft(self) -> Any:
        super().popleft()
        self.taken.append(self._of(self._shape))
        return self.taken[-1]

    def _of(self, shape: Shape) -> Any:
        if shape.is_tuple:
            return tuple(map(self._of, shape.parts))
        return random_array(self._random, shape.type, shape.dims)


@pytest.fixture
def device() -> Iterator[xlapy.Device]:
    (first,) = xlapy.devices(1)
    first.reset()
    yield first
    first.set_send_callback(TO_HOST, None)
    first.set_recv_callback(FROM_HOST, None)
    first.reset()


def check(seed: int, steps: int, device: xlapy.Device) -> None:
    program, effects = random_effects(seed, steps)
    verify(program.module)
    interpreter, fed, given = supplied(effects, seed)
    with np.errstate(all="ignore"):
        expected = interpreter.run(program.module, *program.arguments)
    options = xlapy.CompileOptions(verify=seed % 4 == 0, num_threads=THREADS[seed % len(THREADS)], timeout=SECONDS)
    run = xlapy.compile(program.module, options)
    answers, sent, put = iter(given.taken), [], interpreter.outfeed()
    device.set_send_callback(TO_HOST, sent.append)
    device.set_recv_callback(FROM_HOST, lambda: next(answers))
    with ThreadPoolExecutor(2) as pool:
        feeding = pool.submit(lambda: [device.transfer_to_infeed(item, SECONDS) for item in fed.taken])
        taking = pool.submit(lambda: [device.transfer_from_outfeed(timeout=SECONDS) for _ in put])
        result = run.run(*program.arguments, seed=0)
        feeding.result()
        place = f"seed {seed}, {steps} steps"
        assert_same(tuple(taking.result()), tuple(put), f"{place}, outfeed")
    assert_same(result, expected, place)
    assert_same(tuple(sent), tuple(interpreter.channel(TO_HOST)), f"{place}, sent")
    assert next(answers, None) is None
    assert not len(device.infeed) and not len(device.outfeed), place


def supplied(effects: Effects, seed: int) -> tuple[Interpreter, Supply, Supply]:
    interpreter, fed, given = Interpreter(), Supply(effects.fed, seed), Supply(effects.received, seed + 1)
    interpreter.infeeds[0] = fed
    interpreter.channels[FROM_HOST] = given
    return interpreter, fed, given


@pytest.mark.parametrize("first", range(0, 20, SEEDS_PER_TEST))
def test_some(first: int, device: xlapy.Device) -> None:
    for seed in range(first, first + SEEDS_PER_TEST):
        check(seed, 15, device)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(400_000, 402_000, SEEDS_PER_TEST))
def test_many(first: int, device: xlapy.Device) -> None:
    for seed in range(first, first + SEEDS_PER_TEST):
        check(seed, 20, device)
