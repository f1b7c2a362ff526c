"""Running a program: arguments in, results out, one process or a grid of them."""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from xlapy_runtime import calls, collectives, custom_calls, donation, lapack, result_memory, stream_calls, top_k  # noqa: F401 - they fill tables
from xlapy_runtime.arguments import Allocate, ParameterList, allocate_results
from xlapy_runtime.buffers import Context, ContextPool, pointers, sliced
from xlapy_runtime.calling import CallWrapper, ContextWord
from xlapy_runtime.channels import Value, unflatten
from xlapy_runtime.device import Device, devices
from xlapy_runtime.direct_calls import DirectCalls, entry_point, is_direct
from xlapy_runtime.entry_threads import ENTRY_THREADS
from xlapy_runtime.errors import ArgumentError, CancelledExecution, InternalError
from xlapy_runtime.process_groups import Grid
from xlapy_runtime.program import Program, flatten
from xlapy_runtime.transports import NOBODY, Transport
from xlapy_runtime.transports.in_process import Rendezvous
from xlapy_runtime.waiting import Cancellation, wait_until

UNWIND_SECONDS = 0.5
"""How long an interrupted run waits for processes that do not react, because a callback of theirs hangs. Afterwards
they are left alone; what they use stays theirs."""

EntryFunction = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


class LinkedCode(Protocol):
    """Loaded object code. It must stay loaded as long as this object lives."""

    def address(self, symbol: str) -> int:
        """The address of an exported symbol."""


class ProgramExecutable:
    """A program that is ready to run, from any number of threads at once.

    Nothing in it changes but counters and free lists; what changes during a run lives in that run. `linked` is loaded
    code, or the address of the entry if the program calls no kernels by name. `timeout` bounds each wait for another
    process, device or host, in seconds; None waits forever, but a deadlock between processes is noticed at once.
    `function` is the quickest way to call it; without a `wrapper` (see `calling`), and for programs that are not
    direct (see `direct_calls`), a slower one. Devices count the calls of `run`, not those of `function`. Only direct
    programs may keep the GIL.
    """

    def __init__(
        self,
        program: Program,
        linked: LinkedCode | int,
        *,
        devices: Sequence[Device] | None = None,
        timeout: float | None = None,
        seed: int = 0,
        targets: Mapping[str, Any] | None = None,
        parallel: int = calls.SERIAL_PARALLEL_ADDRESS,
        allocate: Allocate = result_memory.allocate,
        wrapper: CallWrapper | None = None,
        release_gil: bool = True,
    ) -> None:
        self.program = program
        self.grid = Grid(program.num_replicas, program.num_partitions)
        self.devices = _chosen_devices(devices, self.grid.size)
        self.timeout = timeout
        self.seed = seed
        self.parameters = ParameterList(program)
        self._linked = linked
        self._entry = EntryFunction(linked if isinstance(linked, int) else linked.address(program.entry))
        self._words: dict[int, int] = {
            ContextWord.RUNTIME_CALL: calls.RUNTIME_CALL_ADDRESS,
            ContextWord.POLL: calls.POLL_ADDRESS,
            ContextWord.PARALLEL: parallel,
            ContextWord.INTERRUPTED: calls.INTERRUPTED_ADDRESS,
            ContextWord.SEED: _word(seed),
        }
        self._allocate = allocate
        self._result_leaves = flatten(program.result)
        self._donated = frozenset(program.aliases.values())
        self._constants = pointers(program.constants)
        self._runs = itertools.count()
        self.has_collectives = any(collectives.is_collective(call.kind) for call in program.runtime_calls)
        self._contexts = ContextPool(self._make_context)
        self._actions = [
            calls.PREPARE.action(calls.Site(index, call, self.grid, self._address_of, targets or {}))
            for index, call in enumerate(program.runtime_calls)
        ]
        self._direct = self._make_direct(wrapper, release_gil=release_gil) if is_direct(program) else None
        self.function: Callable[..., Value] = self.run if self._direct is None else self._direct.bound.function

    def __repr__(self) -> str:
        return f"ProgramExecutable({self.program.name}, {self.grid.num_replicas} x {self.grid.num_partitions})"

    def __call__(self, *arguments: Value) -> Value:
        """Runs the program on its first device. Nested tuples in, nested tuples out."""
        return self.function(*arguments)

    def run(
        self,
        *arguments: Value,
        device: Device | None = None,
        seed: int | None = None,
        timeout: float | None = None,
    ) -> Value:
        """Runs the program once; `seed` and `timeout` replace the executable's own.

        Runs with the same explicit seed draw the same random numbers; without one, every call draws others."""
        if self.grid.size != 1:
            raise ArgumentError(f"{self.program.name} runs as {self.grid.size} processes: use run_parallel")
        leaves = self._apart([self.parameters.flat(arguments)])[0]
        place = device or self.devices[0]
        if self._direct is not None:
            return self._run_directly(leaves, place, seed)
        return unflatten(self.program.result, self._begin([place], seed, timeout).process(0, leaves))

    def _run_directly(self, leaves: Sequence[Value], device: Device, seed: int | None) -> Value:
        """Runs a program that has nothing to wait for, with arguments that may have to be mended first."""
        assert self._direct is not None
        arrays = donation.lent(self.parameters.checked(leaves), self._donated)
        device.begin_run(self.program.arena_bytes)
        try:
            words: dict[int, int] = {} if seed is None else {ContextWord.SEED: _word(seed), ContextWord.CALL_NUMBER: 0}
            return self._direct.bound.invoke(arrays, words)
        finally:
            device.end_run(self.program.arena_bytes)

    def run_parallel(
        self,
        arguments: Sequence[Sequence[Value]],
        *,
        seed: int | None = None,
        timeout: float | None = None,
    ) -> list[Value]:
        """Runs every process of the grid at once, one thread each; `arguments` has one list per process, replica-major.

        The first error wins: the other processes are stopped and unwound, then it is raised here. The processes of one
        run draw different random numbers only if the program makes them depend on its replica or partition id.
        """
        if len(arguments) != self.grid.size:
            raise ArgumentError(
                f"{self.program.name} runs as {self.grid.size} processes, got arguments for {len(arguments)}"
            )
        if self._direct is not None:
            return [self.run(*arguments[0], seed=seed)]
        leaves = self._apart([self.parameters.flat(row) for row in arguments])
        results = self._begin(self.devices, seed, timeout).all_processes(leaves)
        return [unflatten(self.program.result, row) for row in results]

    def _apart(self, rows: list[list[Value]]) -> list[list[Value]]:
        """The arguments of all processes, so that no donated one shares memory with another."""
        return donation.apart(rows, self._donated) if self._donated else rows

    def _begin(self, places: Sequence[Device], seed: int | None, timeout: float | None) -> _Run:
        return _Run(
            self,
            places,
            seed=self.seed if seed is None else seed,
            counter=next(self._runs) if seed is None else 0,
            timeout=self.timeout if timeout is None else timeout,
        )

    def _address_of(self, symbol: str) -> int:
        if isinstance(self._linked, int):
            raise InternalError(f"{self.program.name} needs the kernel {symbol!r}, but only its entry was given")
        return self._linked.address(symbol)

    def _make_direct(self, wrapper: CallWrapper | None, *, release_gil: bool) -> DirectCalls:
        address = ctypes.cast(self._entry, ctypes.c_void_p).value or 0
        return DirectCalls(
            self.program,
            entry_point(self.program, address, self._linked, release_gil=release_gil),
            self._constants,
            wrapper,
            device=self.devices[0],
            general=self.run,
            words=self._words,
        )

    def _make_context(self) -> Context:
        return Context(
            arena_bytes=self.program.arena_bytes,
            constants=self._constants,
            num_parameters=sum(spec.num_buffers for spec in self.parameters.leaves),
            num_results=sum(spec.num_buffers for spec in self._result_leaves),
            num_calls=len(self.program.runtime_calls),
            words=self._words,
        )


class _Run:
    """One run of an executable over its grid."""

    def __init__(
        self,
        executable: ProgramExecutable,
        places: Sequence[Device],
        *,
        seed: int,
        counter: int,
        timeout: float | None,
    ) -> None:
        self._executable = executable
        self._places = places
        self._seed = seed
        self._counter = counter
        self._timeout = timeout
        self._cancellation = Cancellation()
        self._rendezvous = None
        if executable.has_collectives:
            names = [f"device {device.id}" for device in places]
            self._rendezvous = Rendezvous(executable.grid, self._cancellation, timeout, names)

    def process(self, number: int, leaves: Sequence[Value]) -> list[np.ndarray]:
        """Runs one process on the calling thread."""
        executable = self._executable
        buffers = executable.parameters.checked(leaves)
        results = self._result_buffers(buffers)
        context = executable._contexts.take()
        context.parameters[:] = [array.ctypes.data for array in buffers]
        context.results[:] = [array.ctypes.data for array in results]
        self._enter(number, context)
        executable._contexts.give_back(context)
        return self._valid_parts(results)

    def all_processes(self, leaves: Sequence[Sequence[Value]]) -> list[list[np.ndarray]]:
        """Runs every process; the calling thread runs the first."""
        gathered = _Gathered(len(leaves), self._cancellation)
        try:
            for number in range(1, len(leaves)):
                ENTRY_THREADS.run(_process_task(self, number, leaves[number], gathered))
            _process_task(self, 0, leaves[0], gathered)()
            return gathered.results()
        except BaseException as error:
            if self._cancellation.reason is None:
                self._cancellation.cancel(error)
                gathered.wait(UNWIND_SECONDS)
            raise

    def _enter(self, number: int, context: Context) -> None:
        """Runs the native entry; raises what went wrong in it."""
        device = self._places[number]
        transport: Transport = NOBODY if self._rendezvous is None else self._rendezvous.member(number, context.address)
        call = calls.RunningCall(
            actions=self._executable._actions,
            sites=self._executable.program.runtime_calls,
            device=device,
            process=number,
            cancelled=context.cancelled,
            views=context.views,
            cancellation=self._cancellation,
            transport=transport,
            timeout=self._timeout,
        )
        nbytes = self._executable.program.arena_bytes
        handle = calls.enter(call)
        device.begin_run(nbytes)
        try:
            replica, partition = self._executable.grid.coordinates(number)
            context.prepare(handle=handle, replica=replica, partition=partition, seed=self._seed, counter=self._counter)
            self._cancellation.attach(context.cancelled)
            status = self._executable._entry(context.address, context.parameters_address, context.results_address)
            if status != calls.STATUS_OK:
                self._raise(call)
        except BaseException as error:
            self._cancellation.cancel(error)
            call.abandon()
            raise
        finally:
            transport.leave()
            self._cancellation.detach(context.cancelled)
            device.end_run(nbytes)
            calls.leave(handle)

    def _raise(self, call: calls.RunningCall) -> None:
        failure, call.failure = call.failure, None
        try:
            if failure is not None:
                raise failure
            self._cancellation.check()
            raise CancelledExecution(f"{self._executable.program.name} stopped on device {call.device.id}")
        finally:
            del failure

    def _result_buffers(self, buffers: list[np.ndarray]) -> list[np.ndarray]:
        """Fresh memory for the results; donated arguments lend theirs."""
        executable = self._executable
        aliases = {
            _buffer_index(executable._result_leaves, result): _buffer_index(executable.parameters.leaves, parameter)
            for result, parameter in executable.program.aliases.items()
        }
        if not aliases:
            return allocate_results(executable._result_leaves, executable._allocate)
        buffers[:] = donation.lent(buffers, aliases.values())
        return allocate_results(
            executable._result_leaves,
            executable._allocate,
            {result: buffers[parameter] for result, parameter in aliases.items()},
        )

    def _valid_parts(self, buffers: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The result leaves, cut to their run-time sizes."""
        if len(buffers) == len(self._executable._result_leaves):
            return list(buffers)
        leaves = []
        position = 0
        for spec in self._executable._result_leaves:
            array = buffers[position]
            if spec.dynamic_dims:
                sizes = [int(size) for size in buffers[position + 1 : position + spec.num_buffers]]
                array = sliced(array, spec, sizes).copy()
            leaves.append(array)
            position += spec.num_buffers
        return leaves


class _Gathered:
    """What the processes of a run have produced so far, and the first error."""

    def __init__(self, size: int, cancellation: Cancellation) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._cancellation = cancellation
        self._results: list[list[np.ndarray] | None] = [None] * size
        self._unfinished = size

    def add(self, number: int, results: list[np.ndarray] | None, error: BaseException | None) -> None:
        """Takes the outcome of one process; an error stops the others."""
        if error is not None:
            self._cancellation.cancel(error)
        with self._changed:
            self._results[number] = results
            self._unfinished -= 1
            self._changed.notify_all()

    def wait(self, timeout: float | None) -> bool:
        """Waits for all processes to end; False if time ran out."""
        with self._changed:
            return wait_until(self._changed, lambda: self._unfinished == 0, timeout)

    def results(self) -> list[list[np.ndarray]]:
        """Waits for all processes; raises the error that ended the run, if one did."""
        with self._changed:
            wait_until(self._changed, lambda: self._unfinished == 0 or self._cancellation.reason is not None, None)
        if self._cancellation.reason is not None:
            self.wait(UNWIND_SECONDS)
            raise self._cancellation.reason
        return [row for row in self._results if row is not None]


def _process_task(run: _Run, number: int, leaves: Sequence[Value], gathered: _Gathered) -> Callable[[], None]:
    """A task that runs one process and reports how it ended."""

    def task() -> None:
        try:
            results = run.process(number, leaves)
        except BaseException as error:  # noqa: BLE001 - reported, and raised by the thread that waits for the run
            gathered.add(number, None, error)
        else:
            gathered.add(number, results, None)

    return task


def _buffer_index(specs: Sequence[Any], leaf: int) -> int:
    """The position of a leaf's data among all buffers."""
    return sum(spec.num_buffers for spec in specs[:leaf])


def _word(number: int) -> int:
    """The low 64 bits of a number, as a signed word."""
    return ctypes.c_int64(number).value


def _chosen_devices(chosen: Sequence[Device] | None, count: int) -> tuple[Device, ...]:
    if chosen is None:
        return devices(count)
    if len(chosen) != count:
        raise ArgumentError(f"the program runs on {count} devices, {len(chosen)} were given")
    return tuple(chosen)
