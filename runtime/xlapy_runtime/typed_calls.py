"""C functions of the typed custom-call API, seen from the other side: what they are called with (`typed_header`).

    XLA_FFI_Error* handler(XLA_FFI_CallFrame* frame)

A call frame has the buffers of operands and results, the attributes with their types, the stage, and a table of
functions by which a handler reports errors, keeps state, or goes on in another thread. Only what a CPU has is there;
the rest of the table answers with an error. Structures begin with their size, so that both sides may grow; the version
of the header that a handler was compiled with is asked for before its first call.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from xlapy_runtime.calls import Buffers, RunningCall, Site
from xlapy_runtime.errors import ArgumentError, ExecutionError, InternalError
from xlapy_runtime.process_lock import ProcessLock
from xlapy_runtime.program import ArraySpec, element_name
from xlapy_runtime.typed_header import (
    BUFFER,
    DATA_TYPES,
    FIRST_VERSION,
    METADATA_EXTENSION,
    VERSION,
    ApiVersion,
    Array,
    AttributeKind,
    Attributes,
    Buffer,
    ByteSpan,
    CallFrame,
    ErrorCode,
    Handler,
    Int,
    Metadata,
    MetadataExtension,
    Pointer,
    Scalar,
    Stage,
    Values,
    sized,
    structure,
)

_ERROR_NAMES: Mapping[int, str] = {code.value: code.name for code in ErrorCode}
"""Handlers may return any other number, too."""


def _frame(**fields: Any) -> Any:
    """A call frame. The header counts its size up to the future, which it does not include."""
    return CallFrame(struct_size=CallFrame.future.offset, api=ctypes.addressof(_API), **fields)


# -- what a handler may ask for ------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class _Call:
    """One call of a handler: the `context` of its frame."""

    device: int
    states: dict[int, int]


class _Future:
    """What a handler returns that has not ended yet."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.is_done = False
        self.error = 0

    def finish(self, error: int = 0) -> None:
        with self.changed:
            self.is_done, self.error = True, error
            self.changed.notify_all()


_numbers = itertools.count(1)
_errors: dict[int, tuple[int, bytes]] = {}
_calls: dict[int, _Call] = {}
_futures: dict[int, _Future] = {}
_types: dict[bytes, int] = {}
_deleters: dict[int, int] = {}


def _error(code: int, message: bytes) -> int:
    """A new error; its number stands for the address of one."""
    number = next(_numbers)
    _errors[number] = (code, message)
    return number


_ErrorArguments = structure("ErrorArguments", ("message", ctypes.c_char_p), ("code", Int))
_MessageArguments = structure("MessageArguments", ("error", Pointer), ("message", ctypes.c_char_p))
_DetailsArguments = structure("DetailsArguments", ("error", Pointer), ("message", ctypes.c_char_p), ("code", Int))
_ErrorOnly = structure("ErrorOnly", ("error", Pointer))
_TypeInfo = structure("TypeInfo", ("deleter", Pointer))
_TypeArguments = structure("TypeArguments", ("name", ByteSpan), ("type", Pointer), ("info", Pointer))
_StateArguments = structure(
    "StateArguments", ("context", Pointer), ("stage", Int), ("type", Pointer), ("state", Pointer)
)
_TaskArguments = structure("TaskArguments", ("context", Pointer), ("task", Pointer), ("data", Pointer))
_ThreadsArguments = structure("ThreadsArguments", ("context", Pointer), ("count", Pointer))
_FutureArguments = structure("FutureArguments", ("future", Pointer), ("error", Pointer))
_FutureOnly = structure("FutureOnly", ("future", Pointer))
_RunArguments = structure("RunArguments", ("context", Pointer), ("number", ctypes.c_int64))
_DeviceArguments = structure("DeviceArguments", ("context", Pointer), ("number", ctypes.c_int32))
_ExtensionArguments = structure(
    "ExtensionArguments", ("context", Pointer), ("type", ctypes.c_int64), ("extension", Pointer)
)
_OptionsArguments = structure("OptionsArguments", ("context", Pointer), ("attributes", Pointer))


def _create_error(arguments: Any) -> int:
    return _error(arguments.code, arguments.message or b"")


def _details(arguments: Any) -> None:
    """The message, which lives as long as its error, and for those who have room for it the code."""
    code, arguments.message = _errors[arguments.error]
    if arguments.struct_size > ctypes.sizeof(_MessageArguments):
        _DetailsArguments.from_address(ctypes.addressof(arguments)).code = code


def _destroy_error(arguments: Any) -> None:
    _errors.pop(arguments.error, None)


def _register_type(arguments: Any) -> int:
    """Gives a type of state its number, the same for the same name, or takes the one it has."""
    name = ctypes.string_at(arguments.name.pointer, arguments.name.length)
    number = ctypes.c_int64.from_address(arguments.type)
    number.value = number.value or _types.setdefault(name, next(_numbers))
    if arguments.info:
        _deleters[number.value] = _TypeInfo.from_address(arguments.info).deleter or 0
    return 0


def _set_state(arguments: Any) -> int:
    states = _calls[arguments.context].states
    if arguments.stage in states:
        return _error(ErrorCode.ALREADY_EXISTS, b"the stage has its state already")
    states[arguments.stage] = arguments.state
    states[_type_key(arguments.stage)] = ctypes.c_int64.from_address(arguments.type).value
    return 0


def _get_state(arguments: Any) -> int:
    states = _calls[arguments.context].states
    if states.get(_type_key(arguments.stage)) != ctypes.c_int64.from_address(arguments.type).value:
        return _error(ErrorCode.NOT_FOUND, b"the stage has set no state of this type")
    arguments.state = states[arguments.stage]
    return 0


def _type_key(stage: int) -> int:
    """Where the type of a stage's state is, among the states."""
    return -1 - stage


def _run_task(arguments: Any) -> int:
    """Runs it at once, in this thread: nobody may count on more than one."""
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(arguments.task)(arguments.data)
    return 0


def _count_threads(arguments: Any) -> int:
    ctypes.c_int64.from_address(arguments.count).value = 1
    return 0


def _create_future(arguments: Any) -> int:
    arguments.future = number = next(_numbers)
    _futures[number] = _Future()
    return 0


def _finish_future(arguments: Any) -> int:
    _futures[arguments.future].finish()
    return 0


def _fail_future(arguments: Any) -> int:
    _futures[arguments.future].finish(arguments.error)
    return 0


def _run_number(arguments: Any) -> int:
    arguments.number = arguments.context
    return 0


def _device_number(arguments: Any) -> int:
    arguments.number = _calls[arguments.context].device
    return 0


def _find_extension(arguments: Any) -> int:
    """There are none."""
    arguments.extension = None
    return 0


_NO_OPTIONS = sized(Attributes)


def _get_options(arguments: Any) -> int:
    """Those of a single call: nobody can give any."""
    arguments.attributes = ctypes.addressof(_NO_OPTIONS)
    return 0


def _not_here(what: str) -> Callable[[Any], int]:
    return lambda _: _error(ErrorCode.UNIMPLEMENTED, f"{what} is not for programs on CPUs".encode())


_TABLE: Sequence[tuple[Any, Callable[[Any], int | None]]] = (
    (_ErrorArguments, _create_error),
    (_MessageArguments, _details),
    (_ErrorOnly, _destroy_error),
    (_FutureOnly, _not_here("registering handlers")),
    (_FutureOnly, _not_here("a stream")),
    (_TypeArguments, _register_type),
    (_FutureOnly, _not_here("an object of the execution context")),
    (_StateArguments, _set_state),
    (_StateArguments, _get_state),
    (_FutureOnly, _not_here("device memory")),
    (_FutureOnly, _not_here("device memory")),
    (_TaskArguments, _run_task),
    (_ThreadsArguments, _count_threads),
    (_FutureOnly, _create_future),
    (_FutureOnly, _finish_future),
    (_FutureArguments, _fail_future),
    (_RunArguments, _run_number),
    (_DeviceArguments, _device_number),
    (_ExtensionArguments, _find_extension),
    (_OptionsArguments, _get_options),
)
"""The functions of the header's `XLA_FFI_Api`, in its order, with the structure that each is given."""


def _entry(kind: Any, function: Callable[[Any], int | None]) -> Any:
    def call(address: int) -> int:
        try:
            return function(kind.from_address(address)) or 0
        except BaseException as error:  # noqa: BLE001 - no exception crosses a native frame
            return _error(ErrorCode.INTERNAL, f"{type(error).__name__}: {error}".encode())

    return Handler(call)


_ENTRIES = [_entry(*row) for row in _TABLE]
_Api = structure("Api", ("version", ApiVersion), ("internal", Pointer), ("functions", Pointer * len(_ENTRIES)))
_API = sized(_Api, version=sized(ApiVersion, major=VERSION[0], minor=VERSION[1]))
for _number, _function in enumerate(_ENTRIES):
    _API.functions[_number] = ctypes.cast(_function, ctypes.c_void_p).value


# -- frames --------------------------------------------------------------------------------------------------------


def _words(addresses: Sequence[int]) -> Any:
    return (ctypes.c_void_p * max(1, len(addresses)))(*addresses)


@dataclass(slots=True)
class _Kept:
    """Structures, and what they point to."""

    things: list[Any] = field(default_factory=list)

    def keep(self, thing: Any) -> int:
        """The address of something that lives as long as this."""
        self.things.append(thing)
        return ctypes.addressof(thing)

    def span(self, data: bytes) -> Any:
        return ByteSpan(self.keep(ctypes.create_string_buffer(data, len(data) + 1)), len(data))

    def attributes(self, entries: Mapping[str, Sequence[Any]]) -> Any:
        """A dictionary of attributes, sorted by name. Each is a tuple as `attribute` takes it."""
        ordered = sorted(entries.items())
        kinds, values = [], []
        for _, entry in ordered:
            kind, value = self.attribute(*entry)
            kinds.append(int(kind))
            values.append(self.keep(value))
        return sized(
            Attributes,
            size=len(ordered),
            types=self.keep((ctypes.c_int * max(1, len(kinds)))(*kinds)),
            names=self.keep(_words([self.keep(self.span(name.encode())) for name, _ in ordered])),
            values=self.keep(_words(values)),
        )

    def attribute(self, kind: str, element_type: str, value: Any) -> tuple[AttributeKind, Any]:
        """One attribute: a "scalar" or an "array" of an element type, a "string", or a "dictionary"."""
        if kind == "string":
            return AttributeKind.STRING, self.span(str(value).encode("utf-8", "surrogateescape"))
        if kind == "dictionary":
            return AttributeKind.DICTIONARY, self.attributes(value)
        number, dtype = DATA_TYPES[element_type]
        data = np.atleast_1d(np.array(value)).astype(dtype).ravel()
        self.things.append(data)
        if kind == "scalar":
            return AttributeKind.SCALAR, Scalar(number, data.ctypes.data)
        return AttributeKind.ARRAY, Array(number, data.size, data.ctypes.data)

    def buffers(self, specs: Sequence[ArraySpec], addresses: Sequence[int]) -> Any:
        """The arrays of a call."""
        types = (ctypes.c_int * max(1, len(specs)))(*[BUFFER] * len(specs))
        return sized(
            Values,
            size=len(specs),
            types=self.keep(types),
            values=self.keep(_words([self.keep(self._buffer(*row)) for row in zip(specs, addresses, strict=True)])),
        )

    def _buffer(self, spec: ArraySpec, address: int) -> Any:
        dims = (ctypes.c_int64 * max(1, len(spec.dims)))(*spec.dims)
        number = DATA_TYPES[element_name(spec.dtype)][0]
        return sized(Buffer, dtype=number, data=address, rank=len(spec.dims), dims=self.keep(dims))


class TypedHandler:
    """The handlers of one call site, by stage."""

    def __init__(self, site: Site, handlers: Mapping[str, int]) -> None:
        unknown = set(handlers) - {stage.name.lower() for stage in Stage}
        if unknown or "execute" not in handlers:
            raise ArgumentError(f"handlers of {self._names(handlers)}: there must be execute, and may be {_STAGES}")
        if any(spec.dynamic_dims for spec in (*site.call.operands, *site.call.results)):
            raise InternalError(f"{site.call.label}: a typed handler takes no arrays of dynamic size")
        self._site = site
        self._handlers = {Stage[name.upper()]: Handler(address) for name, address in handlers.items()}
        self._kept = _Kept()
        self._attributes = self._kept.attributes(site.attribute("typed_config", {}))
        self._states: dict[int, int] = {}
        self._starting = ProcessLock()
        self._has_started = False
        for handler in self._handlers.values():
            self._check_version(handler)

    @staticmethod
    def _names(handlers: Mapping[str, int]) -> str:
        return ", ".join(handlers) or "no stage"

    def __call__(self, call: RunningCall, buffers: Buffers) -> None:
        """Runs all stages but the first, which runs once."""
        with self._starting.own():
            if not self._has_started and Stage.INSTANTIATE in self._handlers:
                self._run(Stage.INSTANTIATE, call, self._states, ())
                weakref.finalize(self, _delete, dict(self._states), Stage.INSTANTIATE).atexit = False
            self._has_started = True
        states = dict(self._states)
        try:
            for stage in (Stage.PREPARE, Stage.INITIALIZE, Stage.EXECUTE):
                if stage in self._handlers:
                    self._run(stage, call, states, buffers.addresses)
        finally:
            _delete(states, Stage.PREPARE)
            _delete(states, Stage.INITIALIZE)

    def _run(self, stage: Stage, call: RunningCall, states: dict[int, int], addresses: Sequence[int]) -> None:
        kept = _Kept()
        specs = (self._site.call.operands, self._site.call.results) if addresses else ((), ())
        count = len(specs[0])
        context = next(_numbers)
        _calls[context] = _Call(call.device.id, states)
        frame = _frame(
            context=context,
            stage=stage,
            operands=kept.buffers(specs[0], addresses[:count]),
            results=kept.buffers(specs[1], addresses[count:]),
            attributes=self._attributes,
        )
        try:
            self._raise(self._handlers[stage](ctypes.addressof(frame)))
            if frame.future:
                self._wait(frame.future)
        finally:
            del _calls[context]

    def _wait(self, number: int) -> None:
        """Waits for a handler that goes on elsewhere. Until then its buffers stay, whatever happens."""
        future = _futures[number]
        interrupted: BaseException | None = None
        with future.changed:
            while not future.is_done:
                try:
                    future.changed.wait()
                except BaseException as error:  # noqa: BLE001 - a signal handler's, raised when the buffers are free
                    interrupted = error
        del _futures[number]
        if interrupted is not None:
            raise interrupted
        self._raise(future.error)

    def _raise(self, error: int | None) -> None:
        if error:
            code, message = _errors.pop(error, (int(ErrorCode.UNKNOWN), b"an error of another library"))
            name, text = _ERROR_NAMES.get(code, f"error code {code}"), message.decode(errors="replace")
            raise ExecutionError(f"custom call target {self._site.attribute('target')!r} failed: {name}: {text}")

    def _check_version(self, handler: Any) -> None:
        """Asks a handler which version of the header it was compiled with."""
        metadata = sized(Metadata, version=sized(ApiVersion))
        extension = MetadataExtension(
            struct_size=ctypes.sizeof(MetadataExtension),
            type=METADATA_EXTENSION,
            metadata=ctypes.addressof(metadata),
        )
        frame = _frame(extension=ctypes.addressof(extension), stage=Stage.EXECUTE)
        frame.operands, frame.results, frame.attributes = sized(Values), sized(Values), sized(Attributes)
        self._raise(handler(ctypes.addressof(frame)))
        version = (metadata.version.major, metadata.version.minor)
        if not FIRST_VERSION <= version <= VERSION:
            given, first, last = (".".join(map(str, numbers)) for numbers in (version, FIRST_VERSION, VERSION))
            raise ExecutionError(
                f"custom call target {self._site.attribute('target')!r} was compiled with version {given} of XLA's FFI "
                f"header, and this takes {first} to {last}"
            )


_STAGES = ", ".join(stage.name.lower() for stage in (Stage.INSTANTIATE, Stage.PREPARE, Stage.INITIALIZE))


def _delete(states: Mapping[int, int], stage: Stage) -> None:
    """Ends the state of a stage, if its type says how."""
    deleter = _deleters.get(states.get(_type_key(stage), 0), 0)
    if deleter and stage in states:
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter)(states[stage])
