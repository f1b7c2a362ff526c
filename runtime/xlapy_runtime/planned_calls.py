"""Calls that native code makes without Python: what is done there, as records in memory.

A plan is a list of steps over arrays: copies, zeros, what LAPACK's eigenvalues need around them, and functions that are
called for each problem of a batch. The addresses of its arrays are a table, of which a run fills in the first ones:
those that it is given.

`codegen.planned_calls` goes through such records, Python does where its code is not installed. A context has a table of
the plans of its call sites. Where it has none, or none yet, Python is asked, which may leave one for the next time.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, ClassVar, TypeAlias

import numpy as np

from xlapy_runtime import calls
from xlapy_runtime.calling import Status
from xlapy_runtime.images import Code
from xlapy_runtime.linking import InstalledOnce, LinkedCode, link

CALL_SYMBOL, RUN_SYMBOL = SYMBOLS = ("planned_call", "run_plan")
"""`i32 planned_call(ptr context, i32 site, ptr buffers)` is what programs call for everything; `i32 run_plan(ptr plan,
ptr context)` goes through the steps, and looks at signals if there is a context."""

POINTER_COUNTS = range(4, 25)
"""How many pointers the functions may take."""

PROBLEMS_PER_LOOP = 256
"""Between two looks at signals."""

Words: TypeAlias = "ctypes.Array[ctypes.c_int64]"


class StepKind:
    """What a step does."""

    COPY = 0
    CLEAR = 1
    CALL = 2
    KEEP_FINITE = 3
    REPORT_OTHERS = 4
    UNPACK = 5


class StepRecord(ctypes.Structure):
    """One step. Arrays are numbers of places in the table of addresses, and offsets from there in bytes.

    COPY: `count` pieces of `size` bytes each, from an array to another, or within one; both move on by their steps.
    CLEAR: `size` bytes become 0.
    CALL: `function` is called `count` times, with `size` pointers, which move on by their steps from call to call. They
    lie in one table, all steps behind all pointers. Of the pointers, `moving` ones are filled in at each run: three
    words for each, behind the steps, are its position, the array, and the offset.
    KEEP_FINITE: of `count` pieces of `size` floats, each is copied if all of it is finite; else it becomes zeros. The
    bytes of a third array say which.
    REPORT_OTHERS: in an array of s32, the elements become `size` for which the bytes of another one are zero.
    UNPACK: `count` times, `size` columns of as many floats become complex. An element of a third array for each column
    says how: positive, if it holds real parts, and the next column imaginary ones; negative, if it is conjugate to the
    column before; else it is real.
    Floats are of `float_bytes`.
    """

    _fields_: ClassVar[list[Any]] = [
        ("kind", ctypes.c_int64),
        ("count", ctypes.c_int64),
        ("size", ctypes.c_int64),
        ("target", ctypes.c_int64),
        ("target_offset", ctypes.c_int64),
        ("target_step", ctypes.c_int64),
        ("source", ctypes.c_int64),
        ("source_offset", ctypes.c_int64),
        ("source_step", ctypes.c_int64),
        ("third", ctypes.c_int64),
        ("third_offset", ctypes.c_int64),
        ("float_bytes", ctypes.c_int64),
        ("function", ctypes.c_void_p),
        ("table", ctypes.c_void_p),
        ("moving", ctypes.c_int64),
    ]


class PlanRecord(ctypes.Structure):
    """A plan for one run at a time. `given` is how many of the `addresses` are those of a run."""

    _fields_: ClassVar[list[Any]] = [
        ("given", ctypes.c_int64),
        ("addresses", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        ("steps", ctypes.c_void_p),
    ]


def _linked(objects: Sequence[Code]) -> LinkedCode:
    return link(objects, {}, SYMBOLS)


NATIVE: InstalledOnce[LinkedCode] = InstalledOnce("the native code of planned calls", _linked)


def call_address() -> int:
    """What programs are to call: native code where it is installed, else Python."""
    return calls.RUNTIME_CALL_ADDRESS if NATIVE.found is None else NATIVE.found.address(CALL_SYMBOL)


def words(numbers: Sequence[int]) -> Words:
    return (ctypes.c_int64 * len(numbers))(*numbers)


def run(plan: PlanRecord, context: int = 0) -> int:
    """Goes through the steps without the GIL, for the arrays whose addresses are in the table. With a context, what is
    not 0 is the status of a run that was stopped."""
    if NATIVE.found is None:
        _run_slowly(plan)
        return Status.OK
    return _native(NATIVE.found.address(RUN_SYMBOL))(ctypes.addressof(plan), context)


_RunPlan = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)


@cache
def _native(address: int) -> Callable[[int, int], int]:
    """The function at an address, to be called from Python."""
    return _RunPlan(address)


def _run_slowly(plan: PlanRecord) -> None:
    for step in (StepRecord * plan.count).from_address(plan.steps or 0) if plan.count else ():
        _SLOW[step.kind](step, plan.addresses)


def _copy(step: StepRecord, addresses: int) -> None:
    target = _word(addresses, step.target) + step.target_offset
    source = _word(addresses, step.source) + step.source_offset
    for number in range(step.count):
        ctypes.memmove(target + number * step.target_step, source + number * step.source_step, step.size)


def _clear(step: StepRecord, addresses: int) -> None:
    ctypes.memset(_word(addresses, step.target) + step.target_offset, 0, step.size)


def _call(step: StepRecord, addresses: int) -> None:
    table = words([_word(step.table, number) for number in range(2 * step.size + 3 * step.moving)])
    pointers, steps = table[: step.size], table[step.size : 2 * step.size]
    for first in range(2 * step.size, len(table), 3):
        position, place, offset = table[first : first + 3]
        pointers[position] = _word(addresses, place) + offset
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * step.size)(step.function)
    for number in range(step.count):
        function(*(pointer + number * each for pointer, each in zip(pointers, steps, strict=True)))


def _keep_finite(step: StepRecord, addresses: int) -> None:
    shape, kind = (step.count, step.size), f"f{step.float_bytes}"
    source, target = (_array(step, addresses, name, shape, kind) for name in ("source", "target"))
    finite = _array(step, addresses, "third", (step.count,), "u1")
    finite[:] = np.isfinite(source).all(1)
    target[:] = np.where(finite[:, None], source, 0)


def _report_others(step: StepRecord, addresses: int) -> None:
    finite = _array(step, addresses, "source", (step.count,), "u1")
    _array(step, addresses, "target", (step.count,), "i4")[finite == 0] = step.size


def _unpack(step: StepRecord, addresses: int) -> None:
    shape, kind = (step.count, step.size, step.size), f"f{step.float_bytes}"
    pairs, signs = _array(step, addresses, "source", shape, kind), _array(step, addresses, "third", shape[:2], kind)
    first, second = (signs > 0)[..., None], (signs < 0)[..., None]
    before, behind = np.roll(pairs, 1, axis=1), np.roll(pairs, -1, axis=1)
    vectors = _array(step, addresses, "target", shape, f"c{2 * step.float_bytes}")
    vectors.real = np.where(second, before, pairs)
    vectors.imag = np.where(first, behind, np.where(second, -pairs, 0))


def _array(step: StepRecord, addresses: int, name: str, shape: tuple[int, ...], kind: str) -> np.ndarray:
    dtype = np.dtype(kind)
    address = _word(addresses, getattr(step, name)) + getattr(step, f"{name}_offset")
    memory: Any = (ctypes.c_char * (math.prod(shape) * dtype.itemsize)).from_address(address)
    array: np.ndarray = np.ndarray(shape, dtype, memory)
    return array


_SLOW = {
    StepKind.COPY: _copy,
    StepKind.CLEAR: _clear,
    StepKind.CALL: _call,
    StepKind.KEEP_FINITE: _keep_finite,
    StepKind.REPORT_OTHERS: _report_others,
    StepKind.UNPACK: _unpack,
}


def _word(table: int, number: int) -> int:
    return ctypes.c_int64.from_address(table + 8 * number).value
