"""Calls into compiled programs from Python.

`bind` makes a callable of a program's entry point. Where it can, that is a CPython builtin whose machine code
(`codegen.call_wrapper` makes it, once per machine) walks a `TableRecord` that describes the program: it compares the
arguments with what the entry expects, allocates the results, calls the entry and hands out the arrays, in a fraction of
a microsecond. Elsewhere it is a `PortableCall` (`portable_calls`), the same in Python over ctypes. Both leave
everything unusual (lists, other dtypes, strided arrays, wrong arguments) to the caller's own `general` function.

The native code reads private fields of Python and numpy objects. `load_wrapper` checks first that they are where they
should be (`object_layouts`), unless a process of the same Python and numpy did, and answers None if they are not.

A running call owns a `CallContext`: the words through which native code reaches the runtime, with an arena of its own.
Contexts are recycled; as many exist as calls ever overlapped.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from xlapy_runtime import result_blocks, result_memory, trimming
from xlapy_runtime.alignment import LINE_WORDS, aligned_words, data_address
from xlapy_runtime.capsules import capsule_address, keep_for_good
from xlapy_runtime.errors import InternalError
from xlapy_runtime.late import late
from xlapy_runtime.linking import LinkedCode, link, symbol_address
from xlapy_runtime.program import ArraySpec
from xlapy_runtime.records import Record, field

Array = np.ndarray[Any, Any]

_WORD_BYTES = 8


class ContextWord:
    """The words of a call context, as native code sees them. More may follow: a program's own. (These and the other
    numbers here are no enumerations, because every process would make them, for 0.1 ms each.)"""

    RUNTIME_CALL = 0
    ARENA = 1
    CONSTANTS = 2
    CANCELLED = 3
    POLL = 4
    PARALLEL = 5
    HANDLE = 6
    PROCESS = 7
    """replica | partition << 32"""
    SEED = 8
    CALL_NUMBER = 9
    POLLED = 10
    """the clock when native code last let Python look at its signals"""
    INTERRUPTED = 11
    """the address of an i32 that is not 0 if a signal has cut a kernel short"""
    MEMBER = 12
    """the record of a process in a parallel run"""
    OWNER = 13
    """the thread in which the program runs, while a kernel runs that may be stopped; else 0"""
    CALLS = 14
    """in the context of region functions: how many were called since one looked at the signals"""
    LOOK = 15
    """the function that programs call behind what may take long: `i32 look(ptr context)`, not 0 if they are to stop"""
    SITES = 16
    """what call sites have left for native code: the function of Python's, then a plan for each site, or null"""


CONTEXT_WORDS = ContextWord.SITES + 1


class Status:
    """What native code returns to its caller."""

    OK = 0
    FAILED = 1
    CANCELLED = 2
    NO_MEMORY = 3
    """Of combine kernels only."""


class WrapperWord:
    """Words just before a context that belong to the call wrapper, counted backwards from the context."""

    NEXT_IDLE = -4
    PARAMETERS = -3
    RESULTS = -2
    OBJECTS = -1


def is_ready(spec: ArraySpec, argument: object) -> bool:
    """Whether native code may read the argument in place. Any alignment will do."""
    return (
        type(argument) is np.ndarray
        and (argument.dtype is spec.dtype or argument.dtype == spec.dtype)
        and argument.shape == spec.dims
        and argument.flags.c_contiguous
    )


class EntryPoint(Record):
    """Native code `i32 entry(context, parameters, results)` and what it takes and gives, tuples flattened.

    `code` keeps the address valid. `donations` are the results, by number, that live in the memory of a parameter: the
    argument itself, if it may be lent (see `donation`), is the result. `gives_tuple` says whether the result is a tuple
    even if it has one leaf or none; `restructure`, if given, turns that flat tuple into the result.
    """

    address: int
    parameters: tuple[ArraySpec, ...]
    results: tuple[ArraySpec, ...]
    gives_tuple: bool
    release_gil: bool = True
    restructure: Callable[[tuple[Array, ...]], Any] | None = None
    code: object = None
    donations: Mapping[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.gives_tuple and (len(self.results) != 1 or self.restructure):
            raise InternalError(f"a result of {len(self.results)} leaves that is no tuple")


class CallContext:
    """The memory of one running call: context words, and room for the pointers to its parameters and results.

    `words` gives values by index (ContextWord), the others are 0; `extra_words` more follow the known ones. `keep` is
    whatever the words point to.
    """

    __slots__ = ("_memory", "address", "keep", "words")

    def __init__(
        self,
        entry: EntryPoint,
        words: Mapping[int, int] = MappingProxyType({}),
        *,
        extra_words: int = 0,
        keep: object = None,
    ) -> None:
        parameter_count, result_count = len(entry.parameters), len(entry.results)
        pointers = parameter_count + 2 * result_count
        first = LINE_WORDS  # in front of it are the wrapper's
        self._memory = aligned_words(first + CONTEXT_WORDS + extra_words + pointers)
        self.address: int = data_address(self._memory) + first * _WORD_BYTES
        self.words = self._memory[first : first + CONTEXT_WORDS + extra_words]
        self.keep = keep
        parameters = self.address + (CONTEXT_WORDS + extra_words) * _WORD_BYTES
        results = parameters + parameter_count * _WORD_BYTES
        objects = results + result_count * _WORD_BYTES
        for word, value in (
            (WrapperWord.PARAMETERS, parameters),
            (WrapperWord.RESULTS, results),
            (WrapperWord.OBJECTS, objects),
        ):
            self._memory[first + word] = value
        for index, value in words.items():
            self.words[index] = value

    @property
    def parameters_address(self) -> int:
        return self._wrapper_word(WrapperWord.PARAMETERS)

    @property
    def results_address(self) -> int:
        return self._wrapper_word(WrapperWord.RESULTS)

    def _wrapper_word(self, word: int) -> int:
        return ctypes.c_int64.from_address(self.address + word * _WORD_BYTES).value


class Callbacks(Protocol):
    """What the caller of `bind` provides."""

    def general(self, *arguments: Any) -> Any:
        """Takes over a call whose arguments do not match exactly, or of which one that is to be lent may not be; after
        converting or copying them it may `invoke`."""

    def failed(self, context_address: int, status: int) -> Any:
        """The entry returned a status other than 0: raises. (What it returns would become the call's result.)"""

    def new_context(self) -> CallContext:
        """Another context, when as many calls overlap as there are contexts."""


class BoundCall(Protocol):
    """A program that can be called. `function` is the fast way in, `invoke` the one with options."""

    @property
    def function(self) -> Callable[..., Any]: ...

    def invoke(self, arrays: Sequence[Array], words: Mapping[int, int] = ...) -> Any:
        """Calls the entry with arrays that match and may be lent, with the given words in the context."""


def bind(entry: EntryPoint, callbacks: Callbacks, wrapper: CallWrapper | None) -> BoundCall:
    """A callable of the entry point: native where `wrapper` was loaded, else portable."""
    return _portable_call(entry, callbacks) if wrapper is None else NativeCall(entry, callbacks, wrapper)


def _portable_call(*arguments: Any) -> BoundCall:
    call: BoundCall = late("xlapy_runtime.portable_calls").PortableCall(*arguments)
    return call


class ParameterRecord(ctypes.Structure):
    """What the wrapper compares an argument with."""

    _fields_ = (
        ("dtype", ctypes.c_void_p),
        ("rank", ctypes.c_int64),
        ("dims", ctypes.c_void_p),
        ("byte_count", ctypes.c_int64),
    )


class ResultRecord(ctypes.Structure):
    """How the wrapper makes a result: of the argument `donor` unless that is negative, by calling `allocator` if there
    is one, else as a new numpy array, in a block of the class `home` if that is given."""

    _fields_ = (
        ("dtype", ctypes.c_void_p),
        ("rank", ctypes.c_int64),
        ("dims", ctypes.c_void_p),
        ("allocator", ctypes.c_void_p),
        ("donor", ctypes.c_int64),
        ("home", ctypes.c_void_p),
    )


class TableRecord(ctypes.Structure):
    """A program as the wrapper sees it."""

    _fields_ = (
        ("parameter_count", ctypes.c_int64),
        ("result_count", ctypes.c_int64),
        ("parameters", ctypes.c_void_p),
        ("results", ctypes.c_void_p),
        ("entry", ctypes.c_void_p),
        ("release_gil", ctypes.c_int64),
        ("gives_tuple", ctypes.c_int64),
        ("restructure", ctypes.c_void_p),
        ("general", ctypes.c_void_p),
        ("failed", ctypes.c_void_p),
        ("new_context", ctypes.c_void_p),
        ("idle_contexts", ctypes.c_void_p),
        ("call_number", ctypes.c_int64),
        ("donation_count", ctypes.c_int64),
    )


class _TableArray(np.ndarray[Any, Any]):
    """The builtin's `self`: an array, because the wrapper knows where arrays keep their data, that owns all
    to which its table points."""

    __qualname__ = "Executable"  # errors of wrong calls name the type of `self` and the builtin
    owned: object


class NativeCall:
    """Calls through the native wrapper."""

    def __init__(self, entry: EntryPoint, callbacks: Callbacks, wrapper: CallWrapper) -> None:
        self._parameters = entry.parameters
        self._has_donations = bool(entry.donations)
        self._contexts: list[CallContext] = []
        self._new_context = callbacks.new_context
        table = _build_table(entry, callbacks, self._context_address)
        self._function = wrapper.function(table)
        self._make_portable = functools.partial(
            _portable_call, entry, callbacks, lambda: wrapper.next_call_number(data_address(table))
        )

    @property
    def function(self) -> Callable[..., Any]:
        return self._function

    def invoke(self, arrays: Sequence[Array], words: Mapping[int, int] = MappingProxyType({})) -> Any:
        """Calls the entry with arrays that match, with the given context words replaced for this call."""
        # what has been prepared must not be examined again: the builtin would ask for the same preparation
        if words or self._has_donations or not all(map(is_ready, self._parameters, arrays)):
            return self._portable.invoke(arrays, words)
        return self._function(*arrays)

    @functools.cached_property
    def _portable(self) -> BoundCall:
        """The way in for calls of which something is unusual; most programs get none."""
        return self._make_portable()

    def _context_address(self) -> int:
        """A context for the wrapper to keep; it lives as long as the program."""
        context = self._new_context()
        self._contexts.append(context)
        return context.address


def _build_table(entry: EntryPoint, callbacks: Callbacks, context_address: Callable[[], int]) -> _TableArray:
    """The table of a program with everything it points to behind it, in one array: a `TableRecord`, a `ParameterRecord`
    for each parameter, a `ResultRecord` for each result, and the dimensions of all these."""
    parameters, results = entry.parameters, entry.results
    allocators = [_allocator(spec) for spec in results]
    homes = [result_blocks.home_address(spec.nbytes) for spec in results]
    result_blocks.expect(homes)
    general, failed = callbacks.general, callbacks.failed
    parameters_place = _TABLE_WORDS
    results_place = parameters_place + len(parameters) * _PARAMETER_WORDS
    dims_place = results_place + len(results) * _RESULT_WORDS
    dims = [dim for spec in parameters + results for dim in spec.dims]
    array: Any = _TableArray((dims_place + len(dims),), np.int64)
    base = ctypes.addressof(ctypes.c_char.from_buffer(array))  # half the time of what numpy says of itself
    words = [
        len(parameters),
        len(results),
        base + parameters_place * _WORD_BYTES,
        base + results_place * _WORD_BYTES,
        entry.address,
        entry.release_gil,
        entry.gives_tuple,
        id(entry.restructure) if entry.restructure else 0,
        id(general),
        id(failed),
        id(context_address),
        0,  # idle contexts
        0,  # call number
        len(entry.donations),
    ]
    dims_address = base + dims_place * _WORD_BYTES
    for spec in parameters:
        words += (id(spec.dtype), len(spec.dims), dims_address, spec.nbytes)
        dims_address += len(spec.dims) * _WORD_BYTES
    for number, (spec, allocator, home) in enumerate(zip(results, allocators, homes, strict=True)):
        donor = entry.donations.get(number, -1)
        words += (id(spec.dtype), len(spec.dims), dims_address, id(allocator) if allocator else 0, donor, home)
        dims_address += len(spec.dims) * _WORD_BYTES
    array[:] = words + dims
    array.owned = (entry, general, failed, context_address, allocators)
    table: _TableArray = array
    return table


_TABLE_WORDS, _PARAMETER_WORDS, _RESULT_WORDS = (
    ctypes.sizeof(record) // _WORD_BYTES for record in (TableRecord, ParameterRecord, ResultRecord)
)


def _allocator(spec: ArraySpec) -> Callable[[], Array] | None:
    """What makes a result, if it is large."""
    if spec.nbytes < result_blocks.HUGE_PAGE_BYTES:
        return None
    return functools.partial(result_memory.allocate, spec.dims, spec.dtype)


class _MethodDefinition(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("documentation", ctypes.c_char_p),
    )


_METH_FASTCALL = 0x80


class CallWrapper:
    """The native wrapper, linked and found fit. Serves all programs of the process."""

    def __init__(self, code: LinkedCode) -> None:
        self._code = code
        result_blocks.install(code.address)
        trimming.add_native(code.address(result_blocks.TRIM_SYMBOL))
        keep_for_good(code)  # arrays that own a block call it when they end
        self._definition = _MethodDefinition(b"__call__", code.address(CALL_SYMBOL), _METH_FASTCALL, None)
        # A builtin reads its definition when it is destroyed. When Python ends, that may be after everything else.
        keep_for_good(self._definition)

    @functools.cached_property
    def next_call_number(self) -> Callable[[int], int]:
        """Counts a call of the program of the table at an address."""
        number: Callable[[int], int] = _NUMBERING(self._code.address(CALL_NUMBER_SYMBOL))
        return number

    def function(self, table: _TableArray) -> Callable[..., Any]:
        """The builtin that calls the program of this table."""
        function: Callable[..., Any] = _new_builtin(ctypes.addressof(self._definition), table, None)
        return function


_NUMBERING = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
_new_builtin = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)


CALL_SYMBOL = "xlapy_call"
CALL_NUMBER_SYMBOL = "xlapy_next_call_number"
WRAPPER_SYMBOLS = (CALL_SYMBOL, CALL_NUMBER_SYMBOL, result_blocks.TRIM_SYMBOL, *result_blocks.HANDLER_SYMBOLS)
"""What the wrapper exports."""

NEW_ARRAY_SYMBOL = "xlapy_numpy_new_from_descriptor"
ARRAY_TYPE_SYMBOL = "xlapy_numpy_array_type"
BLOCK_BYTES_SYMBOL = "xlapy_result_block_type"
PYTHON_SYMBOLS = (
    "PyEval_RestoreThread",
    "PyEval_SaveThread",
    "PyLong_AsVoidPtr",
    "PyLong_FromLongLong",
    "PyMem_RawFree",
    "PyMem_RawMalloc",
    "PyObject_Vectorcall",
    "PyTuple_New",
    "PyTuple_SetItem",
    "Py_DecRef",
    "Py_IncRef",
)

_wrappers: dict[bytes, CallWrapper] = {}


def load_wrapper(object_code: bytes, *, is_checked: bool = False) -> CallWrapper | None:
    """Links the wrapper that `codegen.call_wrapper` made, once per process. None where only `PortableCall` is safe.

    `is_checked` says that another process of the same `layout_identity` has found it safe."""
    if not (is_checked or late("xlapy_runtime.object_layouts").is_layout_known()):
        return None
    wrapper = _wrappers.get(object_code)
    if wrapper is None:
        code = link([object_code], wrapper_imports(), WRAPPER_SYMBOLS)
        wrapper = _wrappers.setdefault(object_code, CallWrapper(code))
    return wrapper


@functools.cache
def wrapper_imports() -> Mapping[str, int]:
    """The addresses of what the wrapper calls and looks at."""
    api = numpy_api()
    imports = {name: symbol_address(name) for name in PYTHON_SYMBOLS}
    imports[NEW_ARRAY_SYMBOL] = api[NumpyApi.NEW_FROM_DESCRIPTOR]
    imports[ARRAY_TYPE_SYMBOL] = api[NumpyApi.ARRAY_TYPE]
    imports[BLOCK_BYTES_SYMBOL] = id(result_memory.BlockBytes)
    imports[result_blocks.POOL_SYMBOL] = result_blocks.POOL_ADDRESS
    return imports


class NumpyApi:
    """Places in numpy's table of C functions; fixed since numpy 1.7."""

    ABI_VERSION = 0
    ARRAY_TYPE = 2
    NEW_FROM_DESCRIPTOR = 94


_NUMPY_PLACES = (NumpyApi.ABI_VERSION, NumpyApi.ARRAY_TYPE, NumpyApi.NEW_FROM_DESCRIPTOR)


@functools.cache
def layout_identity() -> str | None:
    """What tells Pythons and numpys apart whose objects may be laid out in different ways; None where it is unknown."""
    try:
        numpy = os.stat(_numpy_multiarray().__file__)
    except (KeyError, AttributeError, OSError):
        return None
    flags = getattr(sys, "abiflags", "")
    return f"Python {sys.version}, {flags}; numpy {np.__version__} of {numpy.st_size} bytes from {numpy.st_mtime_ns}"


@functools.cache
def numpy_api() -> Mapping[int, int]:
    """The addresses in numpy's table of C functions that matter here."""
    table = capsule_address(_numpy_multiarray()._ARRAY_API)
    return {place: ctypes.c_void_p.from_address(table + place * _WORD_BYTES).value or 0 for place in _NUMPY_PLACES}


def _numpy_multiarray() -> Any:
    """numpy's C extension, which moved with numpy 2."""
    name = "_multiarray_umath"
    return sys.modules.get(f"numpy._core.{name}") or sys.modules[f"numpy.core.{name}"]
