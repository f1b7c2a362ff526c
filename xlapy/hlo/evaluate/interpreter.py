"""Runs computations: one process, or several in lock step.

A computation in execution is a generator that yields requests (`base`). Each process keeps its generators on a stack of
its own, so that deep calls do not recurse. Processes run in turn, each until it must wait for another; what they do is
therefore deterministic, and a deadlock is seen at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import GeneratorType
from typing import Any

import numpy as np

from xlapy.hlo.evaluate.base import EVALUATORS, Await, Bound, Deposit, Request, Run, Take, Value, WhoAmI
from xlapy.hlo.evaluate.communication import fits
from xlapy.hlo.evaluate.numerics import Array
from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.ops import Trait
from xlapy.hlo.process_groups import Place
from xlapy.hlo.shape import Shape
from xlapy.hlo.verifier import verify_pairs, verify_processes
from xlapy.support.errors import ArgumentError, ExecutionError, InternalError, OutOfMemoryError
from xlapy.support.given import array_of, is_python_scalar, is_taken, represented, spelled
from xlapy.support.ordering import post_order
from xlapy.support.records import Record
from xlapy.support.wording import counted

CustomCalls = Mapping[str, Callable[..., Any]]


class Interpreter:
    """What outlasts a run: the queues of each process, the channels, the custom-call targets.

    `infeeds[p]` holds what process p will read, `outfeeds[p]` what it has written; `channels[c]` the messages on
    channel c, from and to programs and the host alike."""

    def __init__(self, *, custom_calls: CustomCalls | None = None) -> None:
        self.custom_calls: CustomCalls = dict(custom_calls or {})
        self.infeeds: dict[int, deque[Value]] = {}
        self.outfeeds: dict[int, deque[Value]] = {}
        self.channels: dict[int, deque[Value]] = {}

    def infeed(self, process: int = 0) -> deque[Value]:
        """What a process will read, next first."""
        return self.infeeds.setdefault(process, deque())

    def outfeed(self, process: int = 0) -> deque[Value]:
        """What a process has written, oldest first."""
        return self.outfeeds.setdefault(process, deque())

    def channel(self, number: int) -> deque[Value]:
        """The messages on a channel, oldest first."""
        return self.channels.setdefault(number, deque())

    def run(self, module: HloModule, *arguments: Any) -> Any:
        """The result of a module of one process."""
        return self.run_together([(module, arguments)])[0]

    def run_parallel(
        self,
        module: HloModule,
        arguments: Sequence[Sequence[Any]],
        num_replicas: int | None = None,
        num_partitions: int | None = None,
    ) -> list[Any]:
        """The results of all processes of a module, replica-major, as are their arguments."""
        replicas = num_replicas or module.config.num_replicas
        partitions = num_partitions or module.config.num_partitions
        if len(arguments) != replicas * partitions:
            raise ArgumentError(
                f"{replicas} replicas of {partitions} partitions need {replicas * partitions} lists of arguments, "
                f"not {len(arguments)}"
            )
        verify_pairs(module)
        verify_processes(module, replicas, partitions)
        grid = _Grid(replicas, partitions)
        return _finish([Process(self, number, grid, module, given) for number, given in enumerate(arguments)])

    def run_together(self, programs: Sequence[tuple[HloModule, Sequence[Any]]]) -> list[Any]:
        """The results of several modules, each a process of its own, that run at the same time and share channels."""
        for module, _ in programs:
            verify_pairs(module)
            verify_processes(module, 1, 1)
        processes = [
            Process(self, number, _Grid(1, 1), module, given) for number, (module, given) in enumerate(programs)
        ]
        return _finish(processes)


@dataclass(slots=True)
class _Grid:
    """The processes of one program, and their meetings."""

    replicas: int
    partitions: int
    meetings: dict[tuple[Hashable, tuple[int, ...]], _Meeting] = field(default_factory=dict)


@dataclass(slots=True)
class _Meeting:
    """What each member has brought, and who has already left with everything."""

    contributions: dict[int, Value] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)


class Process:
    """One run of a program: a stack of computations in execution.

    `number` tells it from all others that run at the same time, `rank` from those of the same program."""

    def __init__(
        self, interpreter: Interpreter, number: int, grid: _Grid, module: HloModule, arguments: Sequence[Any]
    ) -> None:
        self.number = number
        self.rank = number % (grid.replicas * grid.partitions)
        self.place = Place(*divmod(self.rank, grid.partitions), grid.replicas, grid.partitions)
        self.infeed = interpreter.infeed(number)
        self.outfeed = interpreter.outfeed(number)
        self.channel = interpreter.channel
        self.custom_calls = interpreter.custom_calls
        self.draws = 0
        self.waiting: Take | Await | None = None
        self.is_finished = False
        self.result: Value = None
        self._grid = grid
        self._rounds: dict[Hashable, int] = {}
        self._prepared: dict[Computation, _Prepared] = {}
        self._pure: dict[Computation, bool] = {}
        self._stack: list[Generator[Request, Any, Value]] = []
        self._enter(module.entry, check_arguments(module, arguments))

    def advance(self) -> bool:
        """Runs until it is finished or must wait; says whether it got anywhere."""
        answer: Value = None
        if self.waiting is not None:
            if not self._is_ready(self.waiting):
                return False
            answer = self._collect(self.waiting)
            self.waiting = None
        while True:
            try:
                request = self._stack[-1].send(answer)
            except StopIteration as finished:
                self._stack.pop()
                answer = finished.value
                if not self._stack:
                    self.is_finished, self.result = True, answer
                    return True
                continue
            answer = None
            if isinstance(request, Run):
                self._enter(request.computation, request.arguments)
            elif isinstance(request, WhoAmI):
                answer = self
            elif isinstance(request, Deposit):
                answer = self._deposit(request)
            elif self._is_ready(request):
                answer = self._collect(request)
            else:
                self.waiting = request
                return True

    def _enter(self, computation: Computation, arguments: Sequence[Value]) -> None:
        prepared = self._prepared.get(computation)
        if prepared is None:
            prepared = self._prepared[computation] = _prepared(computation, self._pure)
        if prepared.known is None:
            self._stack.append(_execution(prepared, arguments))
        else:
            self._stack.append(_remembered(prepared, prepared.known, arguments))

    def _deposit(self, request: Deposit) -> Await:
        """Meetings repeat in loops: the n-th of one kind is for the n-th of every member."""
        key = (request.meeting, request.members)
        turn = self._rounds[key] = self._rounds.get(key, 0) + 1
        meeting = (request.meeting, turn)
        met = self._grid.meetings.setdefault((meeting, request.members), _Meeting())
        met.contributions[self.rank] = request.value
        return Await(meeting, request.members)

    def _is_ready(self, request: Take | Await) -> bool:
        if isinstance(request, Take):
            return bool(request.queue)
        return len(self._grid.meetings[request.meeting, request.members].contributions) == len(request.members)

    def _collect(self, request: Take | Await) -> Value:
        if isinstance(request, Take):
            return request.queue.popleft()
        met = self._grid.meetings[request.meeting, request.members]
        met.gone.add(self.rank)
        if len(met.gone) == len(request.members):
            del self._grid.meetings[request.meeting, request.members]
        return [met.contributions[member] for member in request.members]

    def describe_wait(self) -> str:
        """Whom or what it waits for."""
        if isinstance(self.waiting, Take):
            return f"process {self.number} waits for {self.waiting.what}"
        assert self.waiting is not None
        there = self._grid.meetings[self.waiting.meeting, self.waiting.members].contributions
        missing = [member for member in self.waiting.members if member not in there]
        return f"process {self.number} waits for processes {missing}"


class _Step(Record):
    """An instruction, ready to be evaluated: from the values at `operands`. Nearly always, what it makes is an array of
    this type and these sizes, if it makes an array."""

    instruction: Instruction
    evaluate: Bound
    operands: tuple[int, ...]
    dtype: np.dtype[Any] | None
    dims: tuple[int, ...]


class _Prepared(Record):
    """A computation, ready to be run again and again: its values are those of its parameters, then those of its steps,
    and `root` is the place of its result among them. `known` are results of a function of scalars by their bits, since
    regions are asked the same again and again: by sorts, and beside the edges of windows."""

    steps: tuple[_Step, ...]
    root: int
    known: dict[bytes, Value] | None


_MOST_KNOWN = 1 << 14
"""Results of one computation that are worth their memory."""


def _prepared(computation: Computation, pure: dict[Computation, bool]) -> _Prepared:
    """`pure` is what is known of computations, as `_is_pure` has it."""
    places = {parameter: place for place, parameter in enumerate(computation.parameters)}
    steps = []
    for instruction in computation.post_order():
        if instruction not in places:
            evaluate = EVALUATORS[instruction.opcode].bind(instruction)
            operands = tuple(places[operand] for operand in instruction.operands)
            shape = instruction.shape
            steps.append(
                _Step(instruction, evaluate, operands, shape.type.dtype if shape.is_array else None, shape.dims)
            )
            places[instruction] = len(places)
    of_scalars = all(parameter.shape.is_array and parameter.shape.is_scalar for parameter in computation.parameters)
    known: dict[bytes, Value] | None = {} if of_scalars and _is_pure(computation, pure) else None
    return _Prepared(tuple(steps), places[computation.root], known)


def _is_pure(computation: Computation, known: dict[Computation, bool]) -> bool:
    """The same arguments give the same result, and nothing else happens: in it, and in all that it calls, of which it
    is `known` then. Calls may be many, and deep."""

    def unknown(each: Computation) -> Iterator[Computation]:
        return (called for called in each.called_computations() if called not in known)

    if computation not in known:
        for each in post_order([computation], unknown):
            known[each] = all(known[called] for called in each.called_computations()) and all(
                instruction.spec.traits & {Trait.PURE, Trait.CONTROL} for instruction in each
            )
    return known[computation]


def _remembered(
    prepared: _Prepared, known: dict[bytes, Value], arguments: Sequence[Value]
) -> Generator[Request, Any, Value]:
    """What was made of the same scalars before; else it is made."""
    key = b"".join([argument.tobytes() for argument in arguments])
    value = known.get(key)
    if value is None:
        value = yield from _execution(prepared, arguments)
        if len(known) < _MOST_KNOWN:
            known[key] = value
    return value


def _execution(prepared: _Prepared, arguments: Sequence[Value]) -> Generator[Request, Any, Value]:
    values = list(arguments)
    for step in prepared.steps:
        try:
            value = step.evaluate([values[place] for place in step.operands])
            if value.__class__ is GeneratorType:
                value = yield from value
        except MemoryError as error:
            raise OutOfMemoryError(f"no memory to evaluate {step.instruction}: {error}") from None
        if value.__class__ is not np.ndarray or value.dtype is not step.dtype or value.shape != step.dims:
            value = _checked(value, step.instruction)
        values.append(value)
    return values[prepared.root]


def _checked(value: Value, instruction: Instruction) -> Value:
    """The value of an instruction, held against its shape: a difference is a bug of an evaluator or of a pass.

    That of a start op stands for what is still to come."""
    if instruction.shape.is_array and Trait.START not in instruction.spec.traits:
        value = np.asarray(value)
        if value.dtype != instruction.shape.type.dtype or not fits(value, instruction.shape):
            raise InternalError(f"{instruction} was evaluated to {value.dtype}{list(value.shape)}")
    return value


def _finish(processes: Sequence[Process]) -> list[Any]:
    """Runs processes in turn until all are finished."""
    unfinished = list(processes)
    while unfinished:
        progress = [process.advance() for process in unfinished]
        unfinished = [process for process in unfinished if not process.is_finished]
        if unfinished and not any(progress):
            raise ExecutionError("; ".join(process.describe_wait() for process in unfinished))
    return [_detached(process.result) for process in processes]


def _detached(value: Value) -> Any:
    """The result in memory of its own; tokens are None."""
    if isinstance(value, tuple):
        return tuple(_detached(element) for element in value)
    try:
        return None if value is None else np.array(value)
    except MemoryError as error:
        raise OutOfMemoryError(f"no memory for a result: {error}") from None


# -- arguments -----------------------------------------------------------------------------------------------------


def check_arguments(module: HloModule, arguments: Sequence[Any]) -> list[Value]:
    """The arguments as values of the parameters' shapes; raises ArgumentError."""
    parameters = module.entry.parameters
    if len(arguments) != len(parameters):
        raise ArgumentError(f"{module.name} takes {counted(len(parameters), 'argument')}, not {len(arguments)}")
    return [
        _argument(argument, parameter.shape, f"argument {number} ({parameter.name})")
        for number, (argument, parameter) in enumerate(zip(arguments, parameters, strict=True))
    ]


def _argument(argument: Any, shape: Shape, place: str) -> Value:
    if shape.is_token:
        return None
    if shape.is_tuple:
        if not isinstance(argument, (tuple, list)) or len(argument) != len(shape.parts):
            raise ArgumentError(f"{place} must be a tuple of shape {shape}")
        parts = zip(argument, shape.parts, strict=True)
        return tuple(_argument(part, part_shape, f"{place}[{i}]") for i, (part, part_shape) in enumerate(parts))
    array = _scalar(argument, shape, place) if is_python_scalar(argument) else array_of(argument, place)
    if array.dtype.newbyteorder("=") != shape.type.dtype or not fits(array, shape):
        hint = f"; .astype({shape.type.dtype.name!r}) converts it" if fits(array, shape) else ""
        raise ArgumentError(f"{place} must be {shape.without_layout()}, not {array.dtype}{list(array.shape)}{hint}")
    return array.astype(shape.type.dtype, copy=False)


def _scalar(argument: complex, shape: Shape, place: str) -> Array:
    array = represented(argument, shape.type.dtype) if is_taken(argument, shape.type.dtype) else None
    if array is None:
        raise ArgumentError(f"{place}: the Python {type(argument).__name__} {spelled(argument)} is no {shape.type}")
    return array


# -- the short way -------------------------------------------------------------------------------------------------


def evaluate(module: HloModule, *arguments: Any, custom_calls: CustomCalls | None = None) -> Any:
    """The result of a module by reference semantics: a numpy array, or a (nested) tuple of arrays."""
    return Interpreter(custom_calls=custom_calls).run(module, *arguments)


def evaluate_parallel(
    module: HloModule,
    arguments: Sequence[Sequence[Any]],
    num_replicas: int | None = None,
    num_partitions: int | None = None,
    *,
    custom_calls: CustomCalls | None = None,
) -> list[Any]:
    """The results of every process of a module (replica-major), which run in lock step."""
    return Interpreter(custom_calls=custom_calls).run_parallel(module, arguments, num_replicas, num_partitions)
