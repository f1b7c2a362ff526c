"""Kernels in surroundings: some faults show only there, and not where a kernel is all that its program has.

- Beside heavy work a kernel is so small a part of its program that LLVM does not try hard, or it has less code.
- In a loop it runs more than once, and what it reads are slices of larger arrays, which may be read where they lie.

Several cases are one program, so that what every compilation takes is taken once, and their arguments lie anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.support.guarded_memory import anywhere, fenced_results
from tests.support.native import flatten, on_threads, record, together
from tests.support.values import assert_same, same_elements
from xlapy import evaluate, ops
from xlapy.builder import XlaBuilder, XlaComputation, XlaOp
from xlapy.codegen.target import Target, host_target
from xlapy.compiler import compile_module
from xlapy.executable import Executable
from xlapy.hlo.element_types import element_type_of
from xlapy.hlo.graph import HloModule
from xlapy.hlo.shape import Shape
from xlapy.options import CompileOptions

Array = np.ndarray[Any, Any]

THREADS = (1, 2, 3, 8, 1, 3)
TRIPS = 2
FACTORS = [np.ones((1024, 512), np.float32), np.ones((512, 512), np.float32)]
"""Of a product of a quarter of a milliard of steps: 24 times what a kernel does that folds 100,000 numbers twice."""


@dataclass(frozen=True, eq=False, slots=True)
class Case:
    """A kernel, or a few, to compare with the evaluator. `error` is how far floats may be off, relative to the largest
    result of a case; unless told, every bit counts."""

    title: str
    module: HloModule
    arguments: Sequence[Array]
    error: float = 0

    def evaluated(self) -> list[Array]:
        with np.errstate(all="ignore"):
            return flatten(evaluate(self.module, *self.arguments))

    def check(self, found: Sequence[Array], wanted: Sequence[Array]) -> None:
        for number, (one, other) in enumerate(zip(found, wanted, strict=True)):
            if not self.error or not _is_near(one, other, self.error):
                assert_same(one, other, f"result {number}")


Surrounding = Callable[[Sequence[Case]], tuple[HloModule, list[Array]]]
"""One program that has the results of some cases first, and all its arguments."""


def alone(cases: Sequence[Case]) -> tuple[HloModule, list[Array]]:
    """Nothing else is in the program."""
    return together([case.module for case in cases]), _arguments(cases)


def beside_heavy_work(cases: Sequence[Case]) -> tuple[HloModule, list[Array]]:
    """A product takes nearly all of the time."""
    called, arguments = _all_of(cases), [*_arguments(cases), *FACTORS]

    def program(*parameters: XlaOp) -> list[XlaOp]:
        results = ops.Call(parameters[0].builder, called, parameters[:-2])
        return [*_leaves(results), ops.Dot(*parameters[-2:])]

    return record(program, *arguments), arguments


def in_a_loop(cases: Sequence[Case]) -> tuple[HloModule, list[Array]]:
    """Nobody knows how often it runs, and each time it takes another slice of every argument."""
    called = _all_of(cases)
    arguments = [np.asarray(np.int32(TRIPS)), *(np.stack([argument] * TRIPS) for argument in _arguments(cases))]

    def step(i: XlaOp, trips: XlaOp, before: Sequence[XlaOp], stacks: Sequence[XlaOp]) -> list[Any]:
        results = ops.Call(i.builder, called, [_slice_of(stack, i) for stack in stacks])
        return [i + 1, trips, _leaves(results), stacks]

    def program(trips: XlaOp, *stacks: XlaOp) -> list[XlaOp]:
        zeros = [_zeros(trips.builder, shape) for shape in called.program_shape.result.leaves()]
        start = [np.int32(0), trips, zeros, list(stacks)]
        done = ops.While(lambda i, trips, before, stacks: ops.Lt(i, trips), step, start)
        return _leaves(done[2])

    return record(program, *arguments), arguments


SURROUNDINGS: dict[str, Surrounding] = {
    "alone": alone,
    "beside heavy work": beside_heavy_work,
    "in a loop": in_a_loop,
}


def check_cases(
    cases: Sequence[Case],
    surrounding: Surrounding,
    random: np.random.Generator,
    target: Target | None = None,
    threads: Sequence[int] = THREADS,
) -> None:
    """Compiles the cases as one program, and compares them with the evaluator on several numbers of threads, each time
    with arguments that lie elsewhere and may only be read, and with results between fences. All faults are told."""
    module, arguments = surrounding(cases)
    options = CompileOptions()
    executable = Executable(compile_module(module, options, target or host_target()), options)
    wanted = [case.evaluated() for case in cases]
    faults: dict[str, str] = {}
    first: list[Array] | None = None
    for count in threads:
        placed = [anywhere(random, argument) for argument in arguments]
        with fenced_results():
            found = flatten(on_threads(executable, count).run(*placed, seed=0))
        first = first or found
        _compare(cases, found, wanted, faults, f"on {count} threads")
        _compare(
            [replace(case, error=0) for case in cases], found, _parted(first, wanted), faults, "not the same twice"
        )
    assert not faults, "\n".join(f"{title}: {fault}" for title, fault in faults.items())


def _compare(
    cases: Sequence[Case],
    found: Sequence[Array],
    wanted: Sequence[Sequence[Array]],
    faults: dict[str, str],
    where: str,
) -> None:
    for case, results, expected in zip(cases, _parted(found, wanted), wanted, strict=True):
        try:
            case.check(results, expected)
        except AssertionError as error:
            faults.setdefault(f"{case.title}\n{case.module.to_text()}", f"{where}: {error}")


def _parted(results: Sequence[Array], like: Sequence[Sequence[Array]]) -> list[Sequence[Array]]:
    """The results of each case; what else a program has comes behind them."""
    parts, start = [], 0
    for part in like:
        parts.append(results[start : start + len(part)])
        start += len(part)
    return parts


def _all_of(cases: Sequence[Case]) -> XlaComputation:
    return XlaComputation(together([case.module for case in cases]))


def _arguments(cases: Sequence[Case]) -> list[Array]:
    return [np.asarray(argument) for case in cases for argument in case.arguments]


def _leaves(value: XlaOp) -> list[XlaOp]:
    """The arrays in a tuple, depth first."""
    if not value.shape.is_tuple:
        return [value]
    return [leaf for number in range(len(value.shape.parts)) for leaf in _leaves(value[number])]


def _slice_of(stack: XlaOp, number: XlaOp) -> XlaOp:
    _, *dims = stack.shape.dims
    return ops.Reshape(ops.DynamicSlice(stack, [number, *[np.int32(0)] * len(dims)], (1, *dims)), dims)


def _zeros(builder: XlaBuilder, shape: Shape) -> XlaOp:
    return ops.Broadcast(ops.Constant(builder, np.zeros((), shape.type.dtype)), shape.dims)


def _is_near(found: Array, wanted: Array, error: float) -> bool:
    """Whether floats are as near to each other as `error` says, in parts of the largest one."""
    if found.dtype != wanted.dtype or found.shape != wanted.shape or element_type_of(wanted.dtype).kind not in _INEXACT:
        return False
    wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
    one, other = found.reshape(-1).astype(wide), wanted.reshape(-1).astype(wide)
    with np.errstate(all="ignore"):
        largest = np.abs(other[np.isfinite(other)]).max(initial=0)
        return bool((same_elements(found, wanted) | (np.abs(one - other) <= error * largest)).all())


_INEXACT = frozenset({"float", "complex"})
