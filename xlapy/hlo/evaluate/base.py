"""The registry of reference semantics, and what an evaluator may ask of the interpreter.

An evaluator looks like the shape rule of its op: operands by parameter, then attributes and called computations by
name, and `result`, the shape, if it asks for it.

    @evaluator("reverse")
    def reverse(operand, *, dimensions):
        return np.flip(operand, dimensions)

One that must run a computation, wait, or know its process is a generator: it yields a request and is sent the answer.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np

from xlapy.hlo.evaluate.numerics import Array, narrow, widen
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.ops import OPS
from xlapy.hlo.process_groups import Place
from xlapy.support.records import Record
from xlapy.support.registry import Registry

Value: TypeAlias = Any
"""An array; a tuple of values; None for a token. A bounded dimension has its run-time size."""

TOKEN = None


class Process(Protocol):
    """The process that evaluates, as an evaluator sees it."""

    infeed: deque[Value]
    outfeed: deque[Value]
    custom_calls: Mapping[str, Callable[..., Any]]
    channel: Callable[[int], deque[Value]]
    place: Place
    """Where it is in the grid."""
    draws: int
    """How often it has drawn from its random state."""


# -- requests ------------------------------------------------------------------------------------------------------


class Run(Record):
    """Answered by the result of the computation."""

    computation: Computation
    arguments: tuple[Value, ...]


class WhoAmI(Record):
    """Answered by the process that evaluates."""


class Take(Record):
    """Answered by the next item of a queue, once there is one."""

    queue: deque[Value]
    what: str


class Deposit(Record):
    """A contribution to a meeting of `members` (process numbers). Answered by an `Await` to yield when it is needed."""

    meeting: Hashable
    members: tuple[int, ...]
    value: Value


class Await(Record):
    """Answered by the contributions of all members, in their order, once all are there."""

    meeting: Hashable
    members: tuple[int, ...]


Request: TypeAlias = Run | WhoAmI | Take | Deposit | Await
Steps: TypeAlias = Generator[Any, Any, Value]
Bound: TypeAlias = Callable[[list[Any]], Any]


class Evaluator(Record):
    """The semantics of an op: what its instructions make of their operands.

    Who evaluates an instruction again and again binds it once."""

    bind: Callable[[Instruction], Bound]

    def __call__(self, instruction: Instruction, operands: list[Any]) -> Any:
        return self.bind(instruction)(operands)


EVALUATORS: Registry[Evaluator] = Registry("reference semantics", OPS)


# -- registration --------------------------------------------------------------------------------------------------


def evaluator(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function of the parameters of the op."""
    return _registering(names, _with_attributes)


def _with_attributes(function: Callable[..., Any]) -> Evaluator:
    parameters = inspect.signature(function).parameters
    wants_result, wants_extra = "result" in parameters, "extra" in parameters

    def bind(instruction: Instruction) -> Bound:
        spec = instruction.spec
        keywords = dict(instruction.attributes)
        for position, region in enumerate(spec.regions):
            keywords[region.name] = instruction.called if region.variadic else instruction.called[position]
        if wants_result:
            keywords["result"] = instruction.shape
        if wants_extra:
            keywords["extra"] = instruction.extra
        if not spec.variadic and len(instruction.operands) == len(spec.operands):
            return lambda operands: function(*operands, **keywords)
        return lambda operands: function(*spec.group(operands), **keywords)

    return Evaluator(bind)


def instruction_evaluator(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function of the instruction and the list of its operands."""
    return _registering(names, _with_instruction)


def _with_instruction(function: Callable[[Instruction, list[Any]], Any]) -> Evaluator:
    return Evaluator(lambda instruction: partial(function, instruction))


def elementwise(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function of the operands alone, computed in the wide type and rounded once to the result's."""
    return _registering(names, _rounded_once)


def _registering(
    names: Sequence[str], adapted: Callable[[Callable[..., Any]], Evaluator]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that registers what `adapted` makes of a function, and leaves the function as it is."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            EVALUATORS.add(name, adapted(function))
        return function

    return register


def _rounded_once(function: Callable[..., Any]) -> Evaluator:
    def bind(instruction: Instruction) -> Bound:
        target = instruction.shape.type

        def evaluate(operands: list[Any]) -> Any:
            with np.errstate(all="ignore"):
                computed = function(*map(widen, align(*operands)))
            return narrow(computed, target)

        return evaluate

    return Evaluator(bind)


def align(*arrays: Array) -> tuple[Array, ...]:
    """Cuts arrays whose bounded dimensions turned out different to their common size. Scalars stay."""
    first = arrays[0].shape if arrays else ()
    for array in arrays:  # all of them, nearly always
        if array.shape != first:
            break
    else:
        return arrays
    shapes = {array.shape for array in arrays if array.ndim}
    if len(shapes) <= 1:
        return arrays
    if len({len(shape) for shape in shapes}) != 1:
        return arrays
    common = tuple(slice(min(sizes)) for sizes in zip(*shapes, strict=True))
    return tuple(array[common] if array.ndim else array for array in arrays)


def who_am_i() -> Generator[WhoAmI, Process, Process]:
    """The process that evaluates; for `yield from`."""
    return (yield WhoAmI())


def run(computation: Computation, *arguments: Value) -> Generator[Run, Value, Value]:
    """The result of a computation; for `yield from`."""
    return (yield Run(computation, arguments))
