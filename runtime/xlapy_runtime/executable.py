"""Running a program: arguments in, results out, one process or a grid of them."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from xlapy_runtime import calls, collectives, custom_calls, donation, lapack, result_memory, stream_calls, top_k  # noqa: F401 - they fill tables
from xlapy_runtime.arguments import Allocate, ParameterList, allocate_results
from xlapy_runtime.buffers import Context, Pool, pointers, sliced
from xlapy_runtime.calling import CallWrapper, ContextWord
from xlapy_runtime.channels import Value, unflatten
from xlapy_runtime.device import Device, devices
from xlapy_runtime.direct_calls import DirectCalls, entry_point, is_direct
from xlapy_runtime.entry_threads import ENTRY_THREADS, EntryThread
from xlapy_runtime.errors import ArgumentError, CancelledExecution, InternalError
from xlapy_runtime.native_records import Status
from xlapy_runtime.process_groups import Grid
from xlapy_runtime.program import Program, flatten
from xlapy_runtime.rendezvous import NATIVE, Records, Rendezvous
from xlapy_runtime.waiting import Cancellation, checked_timeout

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
        self.timeout = checked_timeout(timeout)
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
        of_results, of_parameters = _first_buffers(self._result_leaves), _first_buffers(self.parameters.leaves)
        self._aliases = {of_results[result]: of_parameters[parameter] for result, parameter in program.aliases.items()}
        self._constants = pointers(program.constants)
        self._runs = itertools.count()
        sites = [
            calls.Site(index, call, self.grid, self._address_of, targets or {})
            for index, call in enumerate(program.runtime_calls)
        ]
        self._meetings = collectives.meeting_plan(sites) if needs_rendezvous(program) else None
        if self._meetings is not None:
            self._words[ContextWord.RUNTIME_CALL] = NATIVE.get().call_address
        self._memories = Pool(self._make_memory)
        self._actions = [_action(site) for site in sites]
        leaves = (*self.parameters.leaves, *self._result_leaves)
        self.run_bytes = program.arena_bytes + sum(spec.nbytes for spec in leaves)
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
        limit = self._timeout(timeout)
        buffers = self._buffers([arguments])
        place = device or self.devices[0]
        if self._direct is not None:
            return self._run_directly(buffers[0], place, seed)
        (results,) = self._begin([place], seed, limit).results(buffers)
        return unflatten(self.program.result, results)

    def _run_directly(self, arrays: Sequence[np.ndarray], device: Device, seed: int | None) -> Value:
        """Runs a program that has nothing to wait for."""
        assert self._direct is not None
        device.begin_run(self.run_bytes)
        try:
            words: dict[int, int] = {} if seed is None else {ContextWord.SEED: _word(seed), ContextWord.CALL_NUMBER: 0}
            return self._direct.bound.invoke(arrays, words)
        finally:
            device.end_run(self.run_bytes)

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
            return [self.run(*arguments[0], seed=seed, timeout=timeout)]
        limit = self._timeout(timeout)
        results = self._begin(self.devices, seed, limit).results(self._buffers(arguments))
        return [unflatten(self.program.result, row) for row in results]

    def _buffers(self, arguments: Sequence[Sequence[Value]]) -> list[list[np.ndarray]]:
        """The arguments of all processes as buffers that native code may read, and write where they are donated: those
        share no memory with another one."""
        given = [self.parameters.flat(row) for row in arguments]
        rows = [self.parameters.checked(row) for row in given]
        donated = self._aliases.values()
        if donated:
            rows = [donation.lent(row, donated) for row in donation.apart(rows, given, donated)]
        return rows

    def _timeout(self, own: float | None) -> float | None:
        """How long the waits of a run may take: as it says itself, or else as the executable does."""
        return self.timeout if own is None else checked_timeout(own)

    def _begin(self, places: Sequence[Device], seed: int | None, timeout: float | None) -> _Run:
        return _Run(
            self,
            places,
            seed=self.seed if seed is None else seed,
            counter=next(self._runs) if seed is None else 0,
            timeout=timeout,
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

    def _make_memory(self) -> _Memory:
        contexts = [self._make_context() for _ in range(self.grid.size)]
        if self._meetings is None:
            return _Memory(contexts, None)
        entry = ctypes.cast(self._entry, ctypes.c_void_p).value or 0
        return _Memory(contexts, Records(self._meetings, self.grid, contexts, entry))

    def _make_context(self) -> Context:
        return Context(
            arena_bytes=self.program.arena_bytes,
            constants=self._constants,
            num_parameters=sum(spec.num_buffers for spec in self.parameters.leaves),
            num_results=sum(spec.num_buffers for spec in self._result_leaves),
            num_calls=len(self.program.runtime_calls),
            words=self._words,
        )


@dataclass(frozen=True, slots=True)
class _Memory:
    """What one run at a time works in: a context for each process, and the records of their meetings."""

    contexts: Sequence[Context]
    records: Records | None


@dataclass(slots=True, eq=False)
class _Process:
    """One process of a run: the arrays that its native code works on, and how the runtime knows it."""

    call: calls.RunningCall
    context: Context
    arguments: list[np.ndarray]
    results: list[np.ndarray]
    run_bytes: int
    handle: int = 0
    status: int = Status.OK
    has_ended: bool = True

    def begin(self) -> None:
        """Makes the process known to native code and to its device."""
        self.context.parameters[:] = [array.ctypes.data for array in self.arguments]
        self.context.results[:] = [array.ctypes.data for array in self.results]
        self.handle = calls.enter(self.call)
        self.call.device.begin_run(self.run_bytes)

    def end(self) -> None:
        """Takes back whatever it has begun, when its native code has returned."""
        if self.call.cancellation.reason is not None:
            self.call.abandon()
        self.call.cancellation.detach(self.call.cancelled)
        self.call.device.end_run(self.run_bytes)
        calls.leave(self.handle)


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
        self._memory = executable._memories.take()
        records = self._memory.records
        self._cancellation = Cancellation(None if records is None else records.wake)
        self._rendezvous = None
        if records is not None:
            names = [f"device {device.id}" for device in places]
            self._rendezvous = Rendezvous(records, executable.grid, names, timeout)

    def results(self, arguments: Sequence[list[np.ndarray]]) -> list[list[np.ndarray]]:
        """Runs every process, the first in the calling thread; the arrays that each has produced from its buffers.

        Raises the first error of a process, when the others have been stopped. Those that do not react are left alone:
        what they use stays theirs."""
        executable = self._executable
        results = [self._result_buffers(row) for row in arguments]
        processes = [self._begin(number, *row) for number, row in enumerate(zip(arguments, results, strict=True))]
        if self._memory.records is None:
            self._enter(processes[0])
        else:
            self._enter_all(processes, self._memory.records)
        for process in processes:
            if process.has_ended:
                process.end()
        if all(process.has_ended for process in processes):
            executable._memories.give_back(self._memory)
        self._raise_failure(processes)
        return [self._valid_parts(row) for row in results]

    def _begin(self, number: int, arguments: list[np.ndarray], results: list[np.ndarray]) -> _Process:
        executable, context = self._executable, self._memory.contexts[number]
        call = calls.RunningCall(
            actions=executable._actions,
            sites=executable.program.runtime_calls,
            device=self._places[number],
            process=number,
            cancelled=context.cancelled,
            views=context.views,
            cancellation=self._cancellation,
            timeout=self._timeout,
            rendezvous=self._rendezvous,
        )
        process = _Process(call, context, arguments, results, executable.run_bytes)
        process.begin()
        replica, partition = executable.grid.coordinates(number)
        context.prepare(
            handle=process.handle, replica=replica, partition=partition, seed=self._seed, counter=self._counter
        )
        self._cancellation.attach(context.cancelled)
        return process

    def _enter(self, process: _Process) -> None:
        """Runs the only process, which meets nobody."""
        context = process.context
        try:
            process.status = self._executable._entry(
                context.address, context.parameters_address, context.results_address
            )
        except BaseException as error:  # noqa: BLE001 - a signal handler's, raised again when the process has ended
            self._cancellation.cancel(error)

    def _enter_all(self, processes: Sequence[_Process], records: Records) -> None:
        """Runs all processes and waits for them; if the run was stopped, as long as is reasonable."""
        polls = threading.current_thread() is threading.main_thread()
        try:
            records.begin(timeout=self._timeout, polls=polls)
            threads = ENTRY_THREADS.take(len(processes) - 1)
        except BaseException as error:  # noqa: BLE001 - raised again when the processes, none of which runs, have ended
            self._cancellation.cancel(error)
            return
        slots = (ctypes.c_void_p * max(1, len(threads)))(*[thread.address for thread in threads])
        try:
            unfinished = NATIVE.get().run(records.address, slots, len(threads))
            while unfinished and self._cancellation.reason is None:
                unfinished = NATIVE.get().wait(records.address)
        except BaseException as error:  # noqa: BLE001 - a signal handler's, raised again when the processes have ended
            self._cancellation.cancel(error)
        with contextlib.suppress(KeyboardInterrupt):  # a second one: nothing is waited for any more
            deadline = time.monotonic() + UNWIND_SECONDS
            while records.run.unfinished and time.monotonic() < deadline:
                NATIVE.get().wait(records.address)
        for process, member in zip(processes, records.members, strict=True):
            process.status = member.status
        self._let_go(processes[1:], threads, records)

    def _let_go(self, processes: Sequence[_Process], threads: Sequence[EntryThread], records: Records) -> None:
        """Returns the threads of processes that have ended, and leaves the others alone."""
        if self._cancellation.reason is not None:
            for process, thread in zip(processes, threads, strict=True):
                process.has_ended = not thread.abandon(functools.partial(self._end_late, process))
            records.await_ends(left_alone=sum(not process.has_ended for process in processes))
        ENTRY_THREADS.put([thread for process, thread in zip(processes, threads, strict=True) if process.has_ended])

    def _end_late(self, process: _Process) -> None:
        """Ends a process for which nobody has waited. This run, whose memory it uses, lives until then."""
        process.end()

    def _raise_failure(self, processes: Sequence[_Process]) -> None:
        if self._cancellation.reason is not None:
            raise self._cancellation.reason
        for process in processes:
            if process.status != Status.OK:
                name = self._executable.program.name
                raise CancelledExecution(f"{name} stopped on device {process.call.device.id}")

    def _result_buffers(self, buffers: list[np.ndarray]) -> list[np.ndarray]:
        """Fresh memory for the results; donated arguments lend theirs."""
        executable = self._executable
        given = {result: buffers[parameter] for result, parameter in executable._aliases.items()}
        return allocate_results(executable._result_leaves, executable._allocate, given)

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


def _first_buffers(specs: Sequence[Any]) -> list[int]:
    """For each leaf, the position of its data among all buffers."""
    return list(itertools.accumulate((spec.num_buffers for spec in specs), initial=0))


def _word(number: int) -> int:
    """The low 64 bits of a number, as a signed word."""
    return ctypes.c_int64(number).value


def _chosen_devices(chosen: Sequence[Device] | None, count: int) -> tuple[Device, ...]:
    if chosen is None:
        return devices(count)
    if len(chosen) != count:
        raise ArgumentError(f"the program runs on {count} devices, {len(chosen)} were given")
    return tuple(chosen)


def needs_rendezvous(program: Program) -> bool:
    """Whether there are several processes, or some that meet: then the native half of `rendezvous` must be there."""
    return program.num_processes > 1 or any(collectives.is_collective(call.kind) for call in program.runtime_calls)


def _action(site: calls.Site) -> calls.Action:
    """What Python does for a call site; native code does collectives."""
    if not collectives.is_collective(site.call.kind):
        return calls.PREPARE.action(site)

    def refuse(call: calls.RunningCall, buffers: calls.Buffers) -> None:
        raise InternalError("a collective is not for Python to do")

    return refuse
