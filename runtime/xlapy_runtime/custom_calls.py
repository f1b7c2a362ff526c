"""Custom calls: functions of the user, written in Python or in C, that a program calls by name.

A target is one of
- a Python callable: arrays in, which are its own to keep or change; one array, a tuple of arrays or None out;
- `Borrowing(callable)`: the same without the copies; the arrays are read-only and end with the call;
- `Filling(callable)`: is given the results too, as arrays to write to;
- a function pointer: of ctypes, of cffi, a capsule, or a plain address; under version 4 perhaps several, by stage
  ({"instantiate": ..., "execute": ...});
- no registered target at all, but a C symbol of a library that is loaded in this process.

Attributes of the call sites: `target`, `api_version`, `backend_config`, under version 4 `typed_config`, the same with
types, and `result_tree`, the result with its nesting. The versions are those of HLO. C functions have the signatures

    void target(void* out, void** in)                                                                    0, 1
    void target(void* out, void** in, const char* opaque, size_t opaque_length, struct status* status)   2, 3
    XLA_FFI_Error* target(XLA_FFI_CallFrame* frame)                                                      4

where `out` is the result's memory or, for a tuple, a table of its leaves, and `struct status { const char* message;
size_t length; }` reports a failure if the function sets a message; for the frame see `typed_calls`. Python callables
get `opaque=` (bytes) under versions 2 and 3, and the entries of `backend_config` as keyword arguments under version 4.
Arrays lie in memory as the call site's layouts say: row by row, unless it has any.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from _ctypes import CFuncPtr
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from xlapy_runtime.calls import PREPARE, Action, Buffers, RunningCall, Site
from xlapy_runtime.capsules import capsule_address, is_capsule
from xlapy_runtime.errors import ArgumentError, ExecutionError, ShapeError
from xlapy_runtime.given import array_of, is_python_scalar, is_taken, represented, spelled
from xlapy_runtime.late import late
from xlapy_runtime.program import ArraySpec, Tree, specs_text
from xlapy_runtime.typed_calls import TypedHandler
from xlapy_runtime.wording import kind_of

Target: TypeAlias = Any
"""A Python callable, a function pointer or an address."""

BuffersAction: TypeAlias = Callable[[Buffers], None]

API_ORIGINAL = (0, 1)
API_STATUS_RETURNING = (2, 3)
API_TYPED = 4

OriginalFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
StatusFunction = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p
)


class CustomCallStatus(ctypes.Structure):
    """How a C target of version 2 or 3 reports a failure: by pointing to a message."""

    _fields_ = (("message", ctypes.c_void_p), ("length", ctypes.c_size_t))


@dataclass(frozen=True, slots=True)
class Borrowing:
    """A Python target that looks at operands where they are, and promises to keep none of them, nor a view of one.

    What it keeps all the same changes under its hands, or is gone: native memory is used again.
    """

    function: Callable[..., Any]

    def __call__(self, *operands: np.ndarray, **keywords: Any) -> Any:
        return self.function(*operands, **keywords)


@dataclass(frozen=True, slots=True)
class Filling:
    """A Python target that writes its results where they are to be: `function(operands, results, **entries)`.

    Of the operands it promises what a `Borrowing` target does. The results hold anything at first.

    `prepare(operand_specs, result_specs, **entries)`, if it is given, makes at the first call of a site whose sizes are
    all static what the site does from then on."""

    function: Callable[..., None]
    prepare: Callable[..., BuffersAction] | None = None
    fills_results: ClassVar[bool] = True

    def __call__(self, operands: Sequence[np.ndarray], results: Sequence[np.ndarray], **keywords: Any) -> None:
        self.function(operands, results, **keywords)


class CustomCallTargets(Mapping[str, Target]):
    """Targets by name. A name keeps its first target, because executables remember what they found."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._targets: dict[str, Target] = {}

    def register(self, name: str, target: Target) -> None:
        """Gives a target a name. Giving it the same name again is allowed."""
        check_target(name, target)
        with self._lock:
            if self._targets.setdefault(name, target) is not target:
                raise ArgumentError(f"the custom call target {name!r} is already registered")

    def __getitem__(self, name: str) -> Target:
        return self._targets[name]

    def __iter__(self) -> Any:
        return iter(tuple(self._targets))

    def __len__(self) -> int:
        return len(self._targets)


TARGETS = CustomCallTargets()
"""The targets of the whole process."""

BUILT_IN = CustomCallTargets()
"""The targets that need no registration: what JAX and XLA call on CPUs. `lapack`, `sparse` and `top_k` fill it."""


def register_custom_call_target(name: str, target: Target) -> None:
    """Makes `target` callable from every program under `name`."""
    TARGETS.register(name, target)


def find_target(name: str, targets: Mapping[str, Target]) -> Target:
    """The target of that name: the program's own, the process's, one of ours, or a C symbol of a loaded library."""
    if name in targets:
        check_target(name, targets[name])
        return targets[name]
    for place in (TARGETS, BUILT_IN):
        if name in place:
            return place[name]
    try:
        return ctypes.CDLL(None)[name]
    except AttributeError:
        near = late("difflib").get_close_matches(name, {**BUILT_IN, **TARGETS, **targets}, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ExecutionError(
            f"there is no custom call target {name!r}: neither registered (by register_custom_call_target, or in "
            f"custom_calls of the options) nor a symbol of a loaded library{hint}"
        ) from None


def check_target(name: str, target: Target) -> None:
    """Raises ArgumentError for what cannot be called, or is not named by a string."""
    if not isinstance(name, str):
        raise ArgumentError(f"the name of a custom call target is a string, not {name!r}")
    for pointer in _pointers(target).values():
        if is_pointer(pointer) or not callable(pointer):
            address_of_pointer(pointer)


def _pointers(target: Target) -> Mapping[str, Target]:
    """The handlers of a target by stage; there is one unless it is a table of them."""
    return target if isinstance(target, Mapping) else {"execute": target}


def is_pointer(target: Target) -> bool:
    """Whether a target is native code."""
    kind = type(target)
    return (
        isinstance(target, (int, CFuncPtr, ctypes.c_void_p, Mapping))
        or is_capsule(target)
        or kind.__module__ == "_cffi_backend"
    )


def address_of_pointer(target: Target) -> int:
    """The address that a native target denotes; an ArgumentError if it denotes none."""
    address = _denoted(target)
    if not _FIRST_ADDRESS <= address <= _LAST_ADDRESS:
        raise ArgumentError(f"a custom call target is no address of a function: {spelled(target)}")
    return address


_FIRST_ADDRESS, _LAST_ADDRESS = 4096, (1 << 64) - 1
"""Systems keep the first page empty, so that null pointers, and fields behind them, are noticed."""


def _denoted(target: Target) -> int:
    if isinstance(target, int):
        return target
    if isinstance(target, (CFuncPtr, ctypes.c_void_p)):
        return ctypes.cast(target, ctypes.c_void_p).value or 0
    if is_capsule(target):
        return capsule_address(target)
    if type(target).__module__ == "_cffi_backend":
        return int(sys.modules["_cffi_backend"].FFI().cast("uintptr_t", target))
    raise ArgumentError(f"{kind_of(target)} is neither callable nor a function pointer")


@PREPARE.register("custom-call")
def prepare_custom_call(site: Site) -> Action:
    """Calls the target. It is looked up at the first call, so that it may be registered after compiling."""
    name: str = site.attribute("target")
    found: list[Action] = []

    def custom_call(call: RunningCall, buffers: Buffers) -> None:
        if not found:
            target = find_target(name, site.targets)
            found.append(_native(site, target) if is_pointer(target) else _python(site, target))
        found[0](call, buffers)

    return custom_call


def _python(site: Site, target: Callable[..., Any]) -> Action:
    keywords = _keywords(site)

    def call_python(_call: RunningCall, buffers: Buffers) -> None:
        _store(site, target(*map(np.array, buffers.operands), **keywords), buffers)

    def call_borrowing(_call: RunningCall, buffers: Buffers) -> None:
        _store(site, target(*buffers.operands, **keywords), buffers)

    def call_filling(_call: RunningCall, buffers: Buffers) -> None:
        target(buffers.operands, buffers.results, **keywords)

    if isinstance(target, Filling):
        if any(spec.dynamic_dims for spec in site.call.results):
            raise _mismatch(site, f"its results cannot have sizes of their own: {specs_text(site.call.results)}")
        if target.prepare is None or any(spec.dynamic_dims for spec in site.call.operands):
            return call_filling
        act = target.prepare(site.call.operands, site.call.results, **keywords)
        return lambda _call, buffers: act(buffers)
    return call_borrowing if isinstance(target, Borrowing) else call_python


def _keywords(site: Site) -> dict[str, Any]:
    version = site.attribute("api_version", 0)
    config = site.attribute("backend_config", b"")
    if version in API_STATUS_RETURNING:
        return {"opaque": _bytes(config)}
    if version == API_TYPED and isinstance(config, Mapping):
        return dict(config)
    return {}


def _bytes(config: object) -> bytes:
    return config if isinstance(config, bytes) else str(config or "").encode()


def _store(site: Site, value: Any, buffers: Buffers) -> None:
    """Checks what a Python target returned, and copies it to the results."""
    values = _leaves(value)
    specs = site.call.results
    if len(values) != len(specs):
        raise _mismatch(site, f"{len(values)} arrays were returned, {len(specs)} are declared: {specs_text(specs)}")
    for index, (returned, spec) in enumerate(zip(values, specs, strict=True)):
        array = _typed(site, index, returned, spec)
        have = ArraySpec(array.dtype.newbyteorder("="), array.shape)
        if have.dtype != spec.dtype or not spec.admits(have.dims):
            raise _mismatch(site, f"result {index} is declared as {spec}, {have} was returned")
        buffers.write(index, array)


def _leaves(value: Any) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in _leaves(part)]
    return [value]


def _typed(site: Site, index: int, value: Any, spec: ArraySpec) -> np.ndarray:
    """Python scalars have the element type that is wanted, which must have their value; everything else has its own."""
    if not is_python_scalar(value):
        return array_of(value, f"result {index}")
    array = represented(value, spec.dtype) if is_taken(value, spec.dtype) else None
    if array is None:
        raise _mismatch(site, f"result {index} is declared as {spec}, which cannot represent {spelled(value)}")
    return array


def _mismatch(site: Site, message: str) -> ShapeError:
    return ShapeError("custom-call.declared-shape", f"target {site.attribute('target')!r}: {message}")


def _native(site: Site, target: Target) -> Action:
    version = site.attribute("api_version", 0)
    if version == API_TYPED:
        return TypedHandler(site, {stage: address_of_pointer(part) for stage, part in _pointers(target).items()})
    address = address_of_pointer(target)
    place_of_results = _result_place(site)
    if version in API_ORIGINAL:
        original = OriginalFunction(address)

        def call_original(_call: RunningCall, buffers: Buffers) -> None:
            original(place_of_results(buffers), buffers.address)

        return call_original
    returning_status = StatusFunction(address)
    opaque = _bytes(site.attribute("backend_config", b""))

    def call_returning_status(_call: RunningCall, buffers: Buffers) -> None:
        status = CustomCallStatus()
        returning_status(place_of_results(buffers), buffers.address, opaque, len(opaque), ctypes.addressof(status))
        if status.message:
            message = ctypes.string_at(status.message, status.length)
            raise ExecutionError(
                f"custom call target {site.attribute('target')!r} failed: {message.decode(errors='replace')}"
            )

    return call_returning_status


def _result_place(site: Site) -> Callable[[Buffers], int]:
    """Where a C target finds its results: in memory directly, or through a table if they are a tuple.

    The table of a call holds the operands, then the results; so `in` and `out` are pieces of it.
    """
    num_operands = sum(spec.num_buffers for spec in site.call.operands)
    tree: Tree | None = site.attribute("result_tree")
    if isinstance(tree, tuple) or (tree is None and len(site.call.results) != 1):
        return lambda buffers: buffers.address + 8 * num_operands
    return lambda buffers: buffers.addresses[num_operands]
