"""Calls from native code into the runtime.

Native code calls one function for everything, with the index of the call site and a table of buffers. What a site does
is prepared once, when its executable is made, by the function that its kind is registered with in `PREPARE`; a call
then only finds the run by its handle, wraps the buffers, and acts.

No exception crosses a native frame: it is kept with the run, native code returns, and the caller raises it again.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from xlapy_runtime.buffers import padded, table, view, views
from xlapy_runtime.calling import ContextWord, Status
from xlapy_runtime.device import Device
from xlapy_runtime.errors import InternalError, XlaError
from xlapy_runtime.program import ArraySpec, RuntimeCall
from xlapy_runtime.records import Record
from xlapy_runtime.waiting import Cancellation

if TYPE_CHECKING:
    from xlapy_runtime.process_groups import Grid


class Site(Record, eq=False):
    """A call site, with what its preparation may need to know about the program around it."""

    index: int
    call: RuntimeCall
    grid: Grid
    address_of: Callable[[str], int]
    targets: Mapping[str, Any]

    def attribute(self, name: str, default: Any = None) -> Any:
        return self.call.attributes.get(name, default)


class Buffers:
    """The arrays of one call, as views of native memory that are valid until the call returns.

    Operands are read-only, and cut to their run-time sizes where those are dynamic.
    """

    __slots__ = ("_index", "_known", "address", "addresses", "call", "site")

    def __init__(self, call: RunningCall, index: int, addresses: list[int], address: int) -> None:
        self.site = call.sites[index]
        self.addresses = addresses
        self.address = address
        self.call = call
        self._index = index
        self._known: Known | None = None

    @property
    def operands(self) -> list[np.ndarray]:
        return self._arrays()[1]

    @property
    def results(self) -> list[np.ndarray]:
        return self._arrays()[2]

    def _arrays(self) -> Known:
        """Made when they are first asked for; those of the last call are used again if it had the same addresses."""
        if self._known is None:
            last = self.call.memory.views[self._index]
            self._known = last if last is not None and last[0] == self.addresses else self._made()
        return self._known

    def _made(self) -> Known:
        num_operands = sum(spec.num_buffers for spec in self.site.operands)
        operands = views(self.site.operands, self.addresses[:num_operands])
        for operand in operands:
            operand.flags.writeable = False
        results = _full_views(self.site.results, self.addresses[num_operands:])
        made = (self.addresses, operands, results)
        if len(self.addresses) == len(operands) + len(results):
            self.call.memory.views[self._index] = made
        return made

    def leave_to_native(self, plan: int, keep: object) -> None:
        """Has native code do from now on what this site does, as the plan at this address says; see `planned_calls`.
        Only in this context, which serves one run at a time, as the plan does."""
        self.call.memory.leave(self._index, plan, keep)

    def write(self, index: int, value: np.ndarray) -> None:
        """Stores one result, with its sizes if it has dynamic dimensions. `value` is of the result's type."""
        spec = self.site.results[index]
        if not spec.dynamic_dims:
            np.copyto(self.results[index], value)
            return
        data, sizes = padded(value, spec)
        np.copyto(self.results[index], data)
        first = sum(s.num_buffers for s in (*self.site.operands, *self.site.results[:index])) + 1
        for address, size in zip(self.addresses[first:], sizes, strict=False):
            ctypes.c_int32.from_address(address).value = int(size)


Known = tuple[list[int], list[np.ndarray], list[np.ndarray]]
"""The addresses of a site's last call, with the operands and results that they were made into."""


class SiteMemory:
    """What the call sites of one context keep from run to run: the arrays of their last calls, and what they have left
    for native code to do."""

    __slots__ = ("_kept", "_plans", "address", "views")

    def __init__(self, count: int) -> None:
        self.views: list[Known | None] = [None] * count
        self._plans = table(1 + count)
        self._plans[0] = RUNTIME_CALL_ADDRESS
        self._kept: dict[int, object] = {}
        self.address = ctypes.addressof(self._plans)

    def leave(self, site: int, plan: int, keep: object) -> None:
        self._kept[site] = keep
        self._plans[1 + site] = plan


class Started(Protocol):
    """What a start call began."""

    def abandon(self) -> None:
        """Takes it back, because the run has failed."""


class Explaining(Protocol):
    """Knows why a process of a parallel run gave up."""

    def explain(self, process: int, site: int, reason: Any) -> XlaError:
        """The error to raise, at a call site."""


class RunningCall:
    """One process of one run, while its native code runs."""

    __slots__ = (
        "actions",
        "cancellation",
        "cancelled",
        "context",
        "device",
        "failure",
        "memory",
        "pending",
        "process",
        "rendezvous",
        "revocable",
        "sites",
        "timeout",
    )

    def __init__(
        self,
        *,
        actions: Sequence[Action],
        sites: Sequence[RuntimeCall],
        device: Device,
        process: int,
        cancelled: ctypes.c_int32,
        memory: SiteMemory,
        cancellation: Cancellation,
        timeout: float | None,
        rendezvous: Explaining | None = None,
        context: int = 0,
    ) -> None:
        self.actions = actions
        self.sites = sites
        self.device = device
        self.process = process
        self.cancelled = cancelled
        self.memory = memory
        self.cancellation = cancellation
        self.timeout = timeout
        self.rendezvous = rendezvous
        self.context = context
        self.failure: BaseException | None = None
        self.pending: dict[int, list[Started]] = {}
        self.revocable: list[Started] = []

    def wait(self, condition: threading.Condition, ready: Callable[[], bool], timeout: float | None) -> bool:
        """Waits as long as this run goes on."""
        return self.cancellation.wait(condition, ready, timeout)

    def started(self, site: Site, operation: Started) -> None:
        """Remembers what a start call began, for its done call."""
        self.pending.setdefault(site.index, []).append(operation)

    def take_started(self, site: Site) -> Any:
        """What the oldest unfinished start call of this done call began."""
        operations = self.pending.get(site.attribute("start"), [])
        if not operations:
            raise InternalError(f"{site.call.label}: nothing was started at call site {site.attribute('start')}")
        return operations.pop(0)

    def abandon(self) -> None:
        """Takes back whatever this run began and did not finish."""
        for operations in self.pending.values():
            for operation in operations:
                operation.abandon()
        for operation in self.revocable:
            operation.abandon()


Action = Callable[[RunningCall, Buffers], None]
Preparation = Callable[[Site], Action]
_Prepare = TypeVar("_Prepare", bound=Preparation)


class PreparationTable:
    """What each kind of call site does. Filled at import, then only read."""

    def __init__(self) -> None:
        self._preparations: dict[str, Preparation] = {}

    def register(self, *kinds: str) -> Callable[[_Prepare], _Prepare]:
        def add(prepare: _Prepare) -> _Prepare:
            for kind in kinds:
                if kind in self._preparations:
                    raise InternalError(f"the runtime call {kind!r} is registered twice")
                self._preparations[kind] = prepare
            return prepare

        return add

    def __contains__(self, kind: str) -> bool:
        return kind in self._preparations

    def action(self, site: Site) -> Action:
        """The prepared action of a call site."""
        if site.call.kind not in self._preparations:
            raise InternalError(f"{site.call.label}: there is no runtime call {site.call.kind!r}")
        return self._preparations[site.call.kind](site)


PREPARE = PreparationTable()

_running: dict[int, RunningCall] = {}
_handles = itertools.count(1)


def enter(call: RunningCall) -> int:
    """Makes a run known to native code; returns its handle."""
    handle = next(_handles)
    _running[handle] = call
    return handle


def leave(handle: int) -> None:
    del _running[handle]


def running(context: int) -> RunningCall:
    """The run that a context belongs to."""
    return _running[ctypes.c_int64.from_address(context + 8 * ContextWord.HANDLE).value]


class Registration:
    """A run that native code may name for as long as this object lives."""

    def __init__(self, call: RunningCall) -> None:
        self.handle = enter(call)

    def __del__(self) -> None:
        leave(self.handle)


Function = TypeVar("Function", bound=Callable[..., int | None])


def guarded_from_the_start(function: Function) -> Function:
    """Extends the first `try` of `function` to its very first instruction.

    A pending signal is delivered where a Python function begins, before any `try` of its can begin. In a callback
    from native code that exception would be lost, and the status with it. CPython's exception table says which
    instructions a handler covers; here its first entry is stretched back to the start.
    """
    code: CodeType = function.__code__
    table = _cover_start(code.co_exceptiontable)
    code = code.replace(co_exceptiontable=table)
    guarded = FunctionType(code, function.__globals__, function.__name__, closure=function.__closure__)
    guarded.__doc__ = function.__doc__
    return guarded  # type: ignore[return-value]


def _cover_start(table: bytes) -> bytes:
    """The exception table with its first entry (start, length, target, depth) starting at 0.

    Entries are numbers of 6 bits per byte, high bits first; bit 6 means that more bits follow, bit 7 marks an entry.
    """
    numbers: list[int] = []
    position = 0
    while len(numbers) < 2:
        value = table[position] & 0x3F
        while table[position] & 0x40:
            position += 1
            value = value << 6 | table[position] & 0x3F
        position += 1
        numbers.append(value)
    start, length = numbers
    return bytes([0x80]) + _varint(start + length) + table[position:]


def _varint(value: int) -> bytes:
    digits = [value & 0x3F]
    while value := value >> 6:
        digits.insert(0, value & 0x3F | 0x40)
    return bytes(digits)


@guarded_from_the_start
def _runtime_call(context: int, site: int, table: int) -> int:
    """`i32 runtime_call(ptr context, i32 site, ptr buffers)`: does what the call site says."""
    try:
        call = running(context)
        call.cancellation.check()
        call.actions[site](call, _wrap(call, site, table))
        return Status.OK
    except BaseException as error:  # noqa: BLE001 - kept, and raised again in the caller
        return keep(context, error, site)


@guarded_from_the_start
def _poll(context: int) -> int:
    """`i32 poll(ptr context)`: runs Python's signal handlers if this is the main thread; non-zero means stop."""
    try:
        call = running(context)
        ctypes.pythonapi.PyErr_CheckSignals()
        main, thread = threading.main_thread().ident, threading.get_ident()
        if interrupted.value and thread == main:
            interrupted.value = 0
            raise _interruptions.pop()
        works_for = ctypes.c_int64.from_address(context + 8 * ContextWord.OWNER).value
        return call.cancelled.value or int(interrupted.value != 0 and works_for == main)
    except BaseException as error:  # noqa: BLE001 - kept, and raised again in the caller
        return keep(context, error)


_interruptions: list[BaseException] = []
"""What a signal handler raised in the middle of a kernel, until the main thread's program polls."""

interrupted = ctypes.c_int32(0)
"""Whether there is such an error. Native code looks at it behind each kernel that may have been cut short."""


@guarded_from_the_start
def _look_for_signals() -> int:
    """`i32 look_for_signals()`: runs Python's signal handlers in the middle of a kernel; non-zero means stop."""
    try:
        ctypes.pythonapi.PyErr_CheckSignals()
        return 0
    except BaseException as error:  # noqa: BLE001 - kept, and raised again in the caller
        _interruptions[:] = [error]
        interrupted.value = 1
        return 1


def keep(context: int, error: BaseException, site: int | None = None) -> int:
    """Stores the error that ends a run, and stops all its processes; the first one counts."""
    call = running(context)
    if call.failure is None:
        call.failure = error if site is None else explain(error, call.sites[site], call.device)
        call.cancellation.cancel(call.failure)
    return Status.FAILED


def explain(error: BaseException, call: RuntimeCall, device: Device) -> BaseException:
    """Adds to an error which instruction failed, and where."""
    if isinstance(error, XlaError):
        return error.add_context(subject=f"{call.label} on device {device.id}", where=call.where)
    error.add_note(f"raised in {call.label} on device {device.id}" + (f"\n  {call.where}" if call.where else ""))
    return error


def _wrap(call: RunningCall, site: int, table: int) -> Buffers:
    """The buffers of a call."""
    row = call.sites[site]
    count = 0
    for spec in row.operands:
        count += spec.num_buffers
    for spec in row.results:
        count += spec.num_buffers
    addresses = list((ctypes.c_uint64 * count).from_address(table)) if count else []
    return Buffers(call, site, addresses, table or 0)


def _full_views(specs: Sequence[ArraySpec], addresses: Sequence[int]) -> list[np.ndarray]:
    """One array per spec, up to its bounds: the sizes of results are yet to be written."""
    positions = itertools.accumulate([spec.num_buffers for spec in specs], initial=0)
    return [view(spec, addresses[position]) for spec, position in zip(specs, positions, strict=False)]


_Parallel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_Kernel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def _serial(kernel: int, arguments: int, count: int, grain: int) -> None:
    """`void parallel(ptr kernel, ptr args, i64 count, i64 grain)` without threads: one loop over all."""
    _Kernel(kernel)(arguments, 0, count)


def _look(context: int) -> int:
    """`i32 look(ptr context)`: lets Python look at its signals; the status to end with if the run is to stop, or 0."""
    call = running(context)
    if _poll(context):
        call.cancelled.value = 1  # for other threads to see
    return Status.CANCELLED if call.cancelled.value else Status.OK


_native_runtime_call = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p)(_runtime_call)
_native_look_for_signals = ctypes.CFUNCTYPE(ctypes.c_int32)(_look_for_signals)
_native_poll = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(_poll)
_native_look = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(_look)
_native_serial = _Parallel(_serial)


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


RUNTIME_CALL_ADDRESS = _address(_native_runtime_call)
INTERRUPTED_ADDRESS = ctypes.addressof(interrupted)
LOOK_FOR_SIGNALS_ADDRESS = _address(_native_look_for_signals)
POLL_ADDRESS = _address(_native_poll)


def serial_parallel() -> int:
    """The address of a `parallel` without threads."""
    return _address(_native_serial)


def plain_look() -> int:
    """The address of a `look` that asks Python each time."""
    return _address(_native_look)
