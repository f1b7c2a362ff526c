"""Runs of programs that call the runtime, or that run as a grid of processes: what native code meets on its way.

Programs with nothing to wait for hardly ever come here (see `direct_calls`), and processes that only have such do not
load this module.
"""

from __future__ import annotations

import contextlib
import copy
import ctypes
import functools
import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from xlapy_runtime import (  # some of them fill tables
    built_in_calls,  # noqa: F401
    calls,
    collectives,
    custom_calls,  # noqa: F401
    planned_calls,
    stream_calls,  # noqa: F401
)
from xlapy_runtime.alignment import data_address
from xlapy_runtime.arguments import Allocate, allocate_results
from xlapy_runtime.buffers import Context, Pool, Words, sliced
from xlapy_runtime.calling import ContextWord, Status
from xlapy_runtime.device import Device
from xlapy_runtime.entry_threads import ENTRY_THREADS, EntryThread
from xlapy_runtime.errors import CancelledExecution, InternalError
from xlapy_runtime.process_groups import Grid
from xlapy_runtime.program import ArraySpec, Program
from xlapy_runtime.rendezvous import NATIVE, Records, Rendezvous
from xlapy_runtime.waiting import Cancellation

UNWIND_SECONDS = 0.5
"""How long an interrupted run waits for processes that do not react, because a callback of theirs hangs. Afterwards
they are left alone; what they use stays theirs."""


class Runs:
    """What all runs of one program share, and the memory that one at a time works in.

    `parameters` and `results` are the array leaves; `aliases` says by the number of a result's buffer which parameter's
    it takes over. Where processes meet, native code does the calls, and `words` are told."""

    def __init__(
        self,
        program: Program,
        entry: Any,
        *,
        parameters: Sequence[ArraySpec],
        results: Sequence[ArraySpec],
        aliases: Mapping[int, int],
        constants: Words,
        words: dict[int, int],
        run_bytes: int,
        allocate: Allocate,
        address_of: Callable[[str], int],
        targets: Mapping[str, Any],
    ) -> None:
        self.program = program
        self.entry = entry
        self.grid = Grid(program.num_replicas, program.num_partitions)
        self.processes: Sequence[int] = range(self.grid.size)
        self.results = results
        self.aliases = aliases
        self.run_bytes = run_bytes
        self.allocate = allocate
        self._parameters = parameters
        self._constants = constants
        self._words = words
        self._numbers = itertools.count()
        self.sites = [
            calls.Site(index, call, self.grid, address_of, targets) for index, call in enumerate(program.runtime_calls)
        ]
        self._meetings = collectives.meeting_plan(self.sites) if needs_rendezvous(program) else None
        if self._meetings is not None:
            self._words[ContextWord.RUNTIME_CALL] = NATIVE.get().call_address
        self.actions = [_action(site) for site in self.sites]
        self.memories = Pool(self.make_memory)

    def of_process(self, process: int, action: calls.Preparation) -> Runs:
        """Runs of one process here, while the others run elsewhere. Python does the calls: `action` prepares them."""
        runs = copy.copy(self)
        runs.processes = (process,)
        runs._words = self._words | {ContextWord.RUNTIME_CALL: planned_calls.call_address()}
        runs._numbers = itertools.count()
        runs._meetings = None
        runs.actions = [action(site) for site in self.sites]
        runs.memories = Pool(runs.make_memory)
        return runs

    def begin(self, places: Sequence[Device], *, seed: int, is_seeded: bool, timeout: float | None) -> Run:
        """A run on these devices, one for each process. Runs that are not seeded draw other random numbers each."""
        counter = 0 if is_seeded else next(self._numbers)
        return Run(self, places, seed=seed, counter=counter, timeout=timeout)

    def make_memory(self) -> Memory:
        sites = [calls.SiteMemory(len(self.sites)) for _ in self.processes]
        contexts = [self._make_context(each) for each in sites]
        if self._meetings is None:
            return Memory(contexts, sites, None)
        entry = ctypes.cast(self.entry, ctypes.c_void_p).value or 0
        return Memory(contexts, sites, Records(self._meetings, self.grid, contexts, entry))

    def _make_context(self, sites: calls.SiteMemory) -> Context:
        return Context(
            arena_bytes=self.program.arena_bytes,
            constants=self._constants,
            num_parameters=sum(spec.num_buffers for spec in self._parameters),
            num_results=sum(spec.num_buffers for spec in self.results),
            words=self._words | {ContextWord.SITES: sites.address},
        )


@dataclass(frozen=True, slots=True)
class Memory:
    """What one run at a time works in: a context for each process, what its call sites keep, and the records of their
    meetings."""

    contexts: Sequence[Context]
    sites: Sequence[calls.SiteMemory]
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
        self.context.parameters[:] = [data_address(array) for array in self.arguments]
        self.context.results[:] = [data_address(array) for array in self.results]
        self.handle = calls.enter(self.call)
        self.call.device.begin_run(self.run_bytes)

    def end(self) -> None:
        """Takes back whatever it has begun, when its native code has returned."""
        if self.call.cancellation.reason is not None:
            self.call.abandon()
        self.call.cancellation.detach(self.call.cancelled)
        self.call.device.end_run(self.run_bytes)
        calls.leave(self.handle)


class Run:
    """One run of a program over its grid."""

    def __init__(
        self,
        runs: Runs,
        places: Sequence[Device],
        *,
        seed: int,
        counter: int,
        timeout: float | None,
    ) -> None:
        self._shared = runs
        self._places = places
        self._seed = seed
        self._counter = counter
        self._timeout = timeout
        self._memory = runs.memories.take()
        records = self._memory.records
        self._cancellation = Cancellation(None if records is None else records.wake)
        self._rendezvous = None
        if records is not None:
            names = [f"device {device.id}" for device in places]
            self._rendezvous = Rendezvous(records, runs.grid, names, timeout)

    def results(self, arguments: Sequence[list[np.ndarray]]) -> list[list[np.ndarray]]:
        """Runs every process, the first in the calling thread; the arrays that each has produced from its buffers.

        Raises the first error of a process, when the others have been stopped. Those that do not react are left alone:
        what they use stays theirs."""
        shared = self._shared
        results = [self._result_buffers(row) for row in arguments]
        processes = self._begin_all(arguments, results)
        if self._memory.records is None:
            self._enter(processes[0])
        else:
            self._enter_all(processes, self._memory.records)
        for process in processes:
            if process.has_ended:
                process.end()
        if all(process.has_ended for process in processes):
            shared.memories.give_back(self._memory)
        self._raise_failure(processes)
        return [self._valid_parts(row) for row in results]

    def _begin_all(self, arguments: Sequence[list[np.ndarray]], results: Sequence[list[np.ndarray]]) -> list[_Process]:
        processes: list[_Process] = []
        try:
            for position, row in enumerate(zip(arguments, results, strict=True)):
                processes.append(self._begin(position, *row))
        except BaseException:  # no memory, or a signal handler's: devices must not wait for what never runs
            for process in processes:
                process.end()
            raise
        return processes

    def _begin(self, position: int, arguments: list[np.ndarray], results: list[np.ndarray]) -> _Process:
        shared, context = self._shared, self._memory.contexts[position]
        number = shared.processes[position]
        call = calls.RunningCall(
            actions=shared.actions,
            sites=shared.program.runtime_calls,
            device=self._places[position],
            process=number,
            cancelled=context.cancelled,
            memory=self._memory.sites[position],
            cancellation=self._cancellation,
            timeout=self._timeout,
            rendezvous=self._rendezvous,
            context=context.address,
        )
        process = _Process(call, context, arguments, results, shared.run_bytes)
        process.begin()
        replica, partition = shared.grid.coordinates(number)
        context.prepare(
            handle=process.handle, replica=replica, partition=partition, seed=self._seed, counter=self._counter
        )
        self._cancellation.attach(context.cancelled)
        return process

    def _enter(self, process: _Process) -> None:
        """Runs the only process, which meets nobody."""
        context = process.context
        try:
            process.status = self._shared.entry(context.address, context.parameters_address, context.results_address)
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
                name = self._shared.program.name
                raise CancelledExecution(f"{name} stopped on device {process.call.device.id}")

    def _result_buffers(self, buffers: list[np.ndarray]) -> list[np.ndarray]:
        """Fresh memory for the results; donated arguments lend theirs."""
        shared = self._shared
        given = {result: buffers[parameter] for result, parameter in shared.aliases.items()}
        return allocate_results(shared.results, shared.allocate, given)

    def _valid_parts(self, buffers: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The result leaves, cut to their run-time sizes."""
        if len(buffers) == len(self._shared.results):
            return list(buffers)
        leaves = []
        position = 0
        for spec in self._shared.results:
            array = buffers[position]
            if spec.dynamic_dims:
                sizes = [int(size) for size in buffers[position + 1 : position + spec.num_buffers]]
                array = sliced(array, spec, sizes).copy()
            leaves.append(array)
            position += spec.num_buffers
        return leaves


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
