"""The short way into a program: one process, static shapes, nothing to wait for.

Such a program may make custom calls, unless its options bring targets: what such a function knows, which may be the
program itself, would be kept alive by the contexts, which live as long as the program.

`calling` does the work: arguments that match go straight to native code. Here is what it asks for: contexts, what to do
with arguments that do not match, and what a status other than 0 means.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from xlapy_runtime import calls
from xlapy_runtime.alignment import aligned, arena, data_address
from xlapy_runtime.buffers import RESERVED_WORDS, Words
from xlapy_runtime.calling import BoundCall, CallContext, CallWrapper, ContextWord, EntryPoint, bind
from xlapy_runtime.device import Device
from xlapy_runtime.errors import CancelledExecution, InternalError
from xlapy_runtime.late import late
from xlapy_runtime.program import ArraySpec, Program, Value, unflatten
from xlapy_runtime.waiting import Cancellation


def is_direct(program: Program, leaves: Sequence[ArraySpec], targets: Mapping[str, object]) -> bool:
    """Whether a program can be called without a run around it. `leaves` are those of parameters and result, `targets`
    what its options bring."""
    if program.num_processes != 1 or any(any(leaf.dynamic) for leaf in leaves):
        return False
    return not program.runtime_calls or (
        not targets and all(call.kind == "custom-call" for call in program.runtime_calls)
    )


def call_actions(program: Program) -> tuple[calls.Action, ...]:
    """What the custom calls of a direct program do."""
    if not program.runtime_calls:
        return ()
    late("xlapy_runtime.built_in_calls")  # fills tables
    grid = late("xlapy_runtime.process_groups").Grid(1, 1)
    sites = [calls.Site(index, call, grid, _no_kernel, {}) for index, call in enumerate(program.runtime_calls)]
    return tuple(map(calls.PREPARE.action, sites))


def _no_kernel(symbol: str) -> int:
    raise InternalError(f"a custom call has no use for the kernel {symbol!r}")


def entry_point(
    program: Program,
    parameters: tuple[ArraySpec, ...],
    results: tuple[ArraySpec, ...],
    address: int,
    code: object,
    *,
    release_gil: bool,
) -> EntryPoint:
    """The program's entry as `calling` wants it described, with the leaves of parameters and result."""
    result = program.result
    gives_tuple = isinstance(result, tuple)
    is_plain = bool(results) and (result == results or not gives_tuple)
    return EntryPoint(
        address=address,
        parameters=parameters,
        results=results,
        gives_tuple=gives_tuple or not results,
        release_gil=release_gil,
        donations=program.aliases,
        restructure=None if is_plain else lambda leaves: unflatten(result, leaves),
        code=code,
    )


class DirectCalls:
    """The contexts of one program's direct calls, and their failures."""

    def __init__(
        self,
        name: str,
        entry: EntryPoint,
        wrapper: CallWrapper | None,
        *,
        general: Callable[..., Value],
        make_context: Callable[[EntryPoint], tuple[CallContext, calls.RunningCall]],
    ) -> None:
        self._name = name
        self.entry = entry
        self._make_context = make_context
        self._contexts: dict[int, calls.RunningCall] = {}
        self.general = general
        self.bound: BoundCall = bind(entry, self, wrapper)

    def new_context(self) -> CallContext:
        """A context of a call that may go on as long as it likes, but listens to Ctrl-C."""
        context, call = self._make_context(self.entry)
        self._contexts[context.address] = call
        return context

    def failed(self, context_address: int, status: int) -> NoReturn:
        """Raises what native code has kept for its caller."""
        call = self._contexts[context_address]
        failure, call.failure = call.failure, None
        call.cancelled.value = 0  # the context serves the next call
        call.cancellation = Cancellation()
        try:
            raise failure or CancelledExecution(f"{self._name} stopped with status {status}")
        finally:
            del failure


def new_context(
    program: Program,
    entry: EntryPoint,
    constants: Words,
    words: Mapping[int, int],
    device: Device,
    actions: tuple[calls.Action, ...],
) -> tuple[CallContext, calls.RunningCall]:
    """A context with an arena of its own, and what the runtime knows of the call in it. `words` are those that all
    contexts of the program begin with, `actions` what its call sites do."""
    memory = arena(program.arena_bytes)
    sites = calls.SiteMemory(len(actions))
    call = calls.RunningCall(
        actions=actions,
        sites=program.runtime_calls,
        device=device,
        process=0,
        cancelled=ctypes.c_int32(0),
        memory=sites,
        cancellation=Cancellation(),
        timeout=None,
    )
    registration = calls.Registration(call)
    context = CallContext(
        entry,
        {
            **words,
            ContextWord.ARENA: aligned(data_address(memory)),
            ContextWord.CONSTANTS: ctypes.addressof(constants),
            ContextWord.CANCELLED: ctypes.addressof(call.cancelled),
            ContextWord.HANDLE: registration.handle,
            ContextWord.SITES: sites.address,
        },
        extra_words=RESERVED_WORDS,
        keep=(memory, constants, registration),
    )
    call.context = context.address
    return context, call
