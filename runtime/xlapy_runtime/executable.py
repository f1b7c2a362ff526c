"""Running a program: arguments in, results out, one process or a grid of them."""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from xlapy_runtime import calls, donation, result_memory
from xlapy_runtime.arguments import Allocate, ParameterList
from xlapy_runtime.buffers import Words, pointers
from xlapy_runtime.calling import CallContext, CallWrapper, ContextWord, EntryPoint
from xlapy_runtime.device import Device, devices
from xlapy_runtime.direct_calls import DirectCalls, call_actions, entry_point, is_direct, new_context
from xlapy_runtime.errors import ArgumentError, InternalError
from xlapy_runtime.late import late
from xlapy_runtime.program import ArraySpec, Program, Value, flatten, unflatten
from xlapy_runtime.waiting import checked_timeout
from xlapy_runtime.wording import counted

if TYPE_CHECKING:
    from xlapy_runtime.distributed import DistributedProgram
    from xlapy_runtime.runs import Runs

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
    programs that call nothing may keep the GIL, which they do if arena, parameters and results have no more than
    `keeps_gil_to` bytes. `parallel` gives the address of what shares out ranges among threads, `look` that of what
    looks at signals behind kernels; they are asked when the program is first called, as all is made then that calls
    need and a program does not.
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
        parallel: Callable[[], int] = calls.serial_parallel,
        look: Callable[[], int] = calls.plain_look,
        allocate: Allocate = result_memory.allocate,
        wrapper: CallWrapper | None = None,
        keeps_gil_to: int = -1,
    ) -> None:
        self.program = program
        if devices is not None or program.num_processes > 1:
            self.devices = _chosen_devices(devices, program.num_processes)
        self.timeout = checked_timeout(timeout)
        self.seed = seed
        self._linked = linked
        self._address = linked if isinstance(linked, int) else linked.address(program.entry)
        self._seed_word = _word(seed) if seed else 0
        self._parallel = parallel
        self._look = look
        parameters, self._result_leaves = flatten(program.parameters), flatten(program.result)
        self._aliases = _aliased_buffers(program.aliases, self._result_leaves, parameters) if program.aliases else {}
        self._direct: DirectCalls | None = None
        self._runs: Runs | None = None
        leaves = (*parameters, *self._result_leaves)
        self.run_bytes = program.arena_bytes + sum([spec.nbytes for spec in leaves])
        if is_direct(program, leaves, targets or {}):
            release_gil = bool(program.runtime_calls) or self.run_bytes > keeps_gil_to
            self._direct = self._make_direct(wrapper, parameters, release_gil=release_gil)
            self._allocate = allocate
        else:
            self._runs = self._make_runs(allocate, targets or {})
        self.function: Callable[..., Value] = self.run if self._direct is None else self._direct.bound.function

    @property
    def direct(self) -> DirectCalls | None:
        """The short way in, for callers that call the entry point by themselves; None if there is only `run`."""
        return self._direct

    @functools.cached_property
    def parameters(self) -> ParameterList:
        """What arguments are checked against, unless native code does it."""
        return ParameterList(self.program)

    @functools.cached_property
    def devices(self) -> tuple[Device, ...]:
        """One for each process."""
        return _chosen_devices(None, self.program.num_processes)

    @functools.cached_property
    def _words(self) -> dict[int, int]:
        """What all contexts begin with."""
        return {
            ContextWord.RUNTIME_CALL: _call_address(self.program),
            ContextWord.POLL: calls.POLL_ADDRESS,
            ContextWord.PARALLEL: self._parallel(),
            ContextWord.LOOK: self._look(),
            ContextWord.INTERRUPTED: calls.INTERRUPTED_ADDRESS,
            ContextWord.SEED: self._seed_word,
        }

    @functools.cached_property
    def _constants(self) -> Words:
        return pointers(self.program.constants)

    def _new_context(self, entry: EntryPoint) -> tuple[CallContext, calls.RunningCall]:
        return new_context(self.program, entry, self._constants, self._words, self.devices[0], self._call_actions)

    @functools.cached_property
    def _call_actions(self) -> tuple[calls.Action, ...]:
        return call_actions(self.program)

    def __repr__(self) -> str:
        return f"ProgramExecutable({self.program.name}, {self.program.num_replicas} x {self.program.num_partitions})"

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
        if self.program.num_processes != 1:
            raise ArgumentError(f"{self.program.name} runs as {self.program.num_processes} processes: use run_parallel")
        limit = self._timeout(timeout)
        buffers = self._buffers([arguments])
        place = self.devices[0] if device is None else device
        if not isinstance(place, Device):
            raise ArgumentError(f"device is one of xlapy.devices(), not {device!r}")
        if self._direct is not None and (place is self.devices[0] or not self.program.runtime_calls):
            return self._run_directly(buffers[0], place, seed)
        if self._runs is None:  # of calls that are told on which device they are, and seldom on another one
            self._runs = self._make_runs(self._allocate, {})
        (results,) = self._run([place], buffers, seed, limit)
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
        expected = self.program.num_processes
        if not _is_list_of_lists(arguments):
            processes = "its process" if expected == 1 else f"each of its {expected} processes"
            raise ArgumentError(f"{self.program.name} takes a list of lists: of the arguments for {processes}")
        if len(arguments) != expected:
            processes = counted(expected, "process", "processes")
            raise ArgumentError(f"{self.program.name} runs as {processes}, got arguments for {len(arguments)}")
        if self._direct is not None:
            return [self.run(*arguments[0], seed=seed, timeout=timeout)]
        limit = self._timeout(timeout)
        results = self._run(self.devices, self._buffers(arguments), seed, limit)
        return [unflatten(self.program.result, row) for row in results]

    def run_distributed(
        self,
        *arguments: Value,
        communicator: Any = None,
        seed: int | None = None,
        timeout: float | None = None,
    ) -> Value:
        """Runs this process of the grid, while each other process of an MPI communicator runs its own; see
        `distributed`. All call this together; it fails in all if it fails in one."""
        limit = self._timeout(timeout)
        partners = late("xlapy_runtime.mpi").partners_in(communicator)
        if partners.size != self.program.num_processes:
            counts = f"{self.program.num_processes} processes, and the communicator has {partners.size}"
            raise ArgumentError(f"{self.program.name} runs as {counts}")
        if self._direct is not None:
            return self.run(*arguments, seed=seed, timeout=timeout)

        def run_own() -> Value:
            assert self._runs is not None
            runs = self._distributed.runs(self._runs, partners)
            chosen = self.seed if seed is None else seed
            run = runs.begin([self.devices[partners.rank]], seed=chosen, is_seeded=seed is not None, timeout=limit)
            (results,) = run.results(self._buffers([arguments]))
            return unflatten(self.program.result, results)

        return partners.run(self._distributed.digest, limit, run_own)

    @functools.cached_property
    def _distributed(self) -> DistributedProgram:
        made: DistributedProgram = late("xlapy_runtime.distributed").DistributedProgram(self.program)
        return made

    def _run(
        self, places: Sequence[Device], buffers: Sequence[list[np.ndarray]], seed: int | None, timeout: float | None
    ) -> list[list[np.ndarray]]:
        """Runs every process with its buffers; the results of each."""
        assert self._runs is not None
        chosen = self.seed if seed is None else seed
        return self._runs.begin(places, seed=chosen, is_seeded=seed is not None, timeout=timeout).results(buffers)

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

    def _address_of(self, symbol: str) -> int:
        if isinstance(self._linked, int):
            raise InternalError(f"{self.program.name} needs the kernel {symbol!r}, but only its entry was given")
        return self._linked.address(symbol)

    def _make_runs(self, allocate: Allocate, targets: Mapping[str, Any]) -> Runs:
        runs: Runs = late("xlapy_runtime.runs").Runs(
            self.program,
            EntryFunction(self._address),
            parameters=self.parameters.leaves,
            results=self._result_leaves,
            aliases=self._aliases,
            constants=self._constants,
            words=self._words,
            run_bytes=self.run_bytes,
            allocate=allocate,
            address_of=self._address_of,
            targets=targets,
        )
        return runs

    def _make_direct(
        self, wrapper: CallWrapper | None, parameters: tuple[ArraySpec, ...], *, release_gil: bool
    ) -> DirectCalls:
        entry = entry_point(
            self.program, parameters, self._result_leaves, self._address, self._linked, release_gil=release_gil
        )
        return DirectCalls(self.program.name, entry, wrapper, general=self.run, make_context=self._new_context)


class CallableProgram:
    """A program that is called like a function: what those who compiled it and those who loaded it have in common."""

    __slots__ = ("__call__", "_executable")

    __call__: Callable[..., Any]

    def __init__(self, executable: ProgramExecutable) -> None:
        self._executable = executable
        self.__call__ = executable.function

    @property
    def runnable(self) -> ProgramExecutable:
        """What runs it, for those who call it in another way."""
        return self._executable

    @property
    def name(self) -> str:
        """The name of the module."""
        return self._executable.program.name

    def run(self, *arguments: Any, device: Any = None, seed: int | None = None, timeout: float | None = None) -> Any:
        """Runs the program once, like a call, with a device, a seed or a timeout of its own."""
        return self._executable.run(*arguments, device=device, seed=seed, timeout=timeout)

    def run_parallel(
        self, arguments: Sequence[Sequence[Any]], *, seed: int | None = None, timeout: float | None = None
    ) -> list[Any]:
        """Runs every process of the grid at once: one list of arguments, and one result, per process, replica-major."""
        return self._executable.run_parallel(arguments, seed=seed, timeout=timeout)

    def run_distributed(
        self, *arguments: Any, communicator: Any = None, seed: int | None = None, timeout: float | None = None
    ) -> Any:
        """Runs one process of the grid here, and the others in the other processes of an MPI communicator of mpi4py:
        by default all that `mpiexec` has started. Each is the process of its rank, gives its arguments, and gets its
        results; if one fails, all raise."""
        return self._executable.run_distributed(*arguments, communicator=communicator, seed=seed, timeout=timeout)

    @property
    def donations(self) -> dict[int, int]:
        """The results that live in the memory of arguments, and of which: both as numbers of array leaves.

        Such an argument is changed by the call, and is the result: the same array. Only if it is not the caller's own
        to give (read-only, a view, passed twice ...) does a copy of it take its place."""
        return dict(self._executable.program.aliases)


def _call_address(program: Program) -> int:
    """What a program is to call for everything that it does not do itself."""
    if not program.runtime_calls:
        return calls.RUNTIME_CALL_ADDRESS
    address: int = late("xlapy_runtime.planned_calls").call_address()
    return address


def _aliased_buffers(
    aliases: Mapping[int, int], results: Sequence[ArraySpec], parameters: Sequence[ArraySpec]
) -> dict[int, int]:
    """The buffers of results that are buffers of parameters, which one each, of leaves that are."""
    of_results, of_parameters = _first_buffers(results), _first_buffers(parameters)
    return {of_results[result]: of_parameters[parameter] for result, parameter in aliases.items()}


def _first_buffers(specs: Sequence[Any]) -> list[int]:
    """For each leaf, the position of its data among all buffers."""
    return list(itertools.accumulate((spec.num_buffers for spec in specs), initial=0))


def _is_list_of_lists(arguments: Any) -> bool:
    return isinstance(arguments, Sequence) and all(isinstance(row, Sequence) for row in arguments)


def _word(number: int) -> int:
    """The low 64 bits of a seed, as a signed word."""
    try:
        return ctypes.c_int64(number).value
    except TypeError:
        raise ArgumentError(f"seed is an integer, not {number!r}") from None


def _chosen_devices(chosen: Sequence[Device] | None, count: int) -> tuple[Device, ...]:
    if chosen is None:
        return devices(count)
    if len(chosen) != count:
        raise ArgumentError(f"the program runs on {count} devices, {len(chosen)} were given")
    return tuple(chosen)


SMALL_PROGRAM_BYTES = 64 * 1024
"""Programs that touch no more keep the GIL: they end before another thread could have got anything done."""


def keeps_gil_to(program: Program) -> int:
    """How many bytes the program may touch and keep the GIL; none if a call may take any time."""
    return -1 if program.has_loops else SMALL_PROGRAM_BYTES


def needs_rendezvous(program: Program) -> bool:
    """Whether there are several processes, or some that meet: then the native half of `rendezvous` must be there."""
    if program.num_processes == 1 and not program.runtime_calls:
        return False
    needed: bool = late("xlapy_runtime.runs").needs_rendezvous(program)
    return needed
