"""The processor's clock, by which native code knows when to let Python look at its signals."""

from __future__ import annotations

import ctypes
import time
from functools import cache

from xlapy.codegen.ir import I32, I64, KernelBuilder, Module, Value
from xlapy.codegen.jit import emit_object
from xlapy.codegen.target import Target
from xlapy_runtime.linking import link

_WHOLE_SYSTEM = 15  # AArch64's name for the widest barrier
_TICKS = 20_000_000  # of x86 in 10 ms at 2 GHz
_SLOW_TICKS = 250_000  # of a clock of 24 MHz, as AArch64 may have it, to 1 GHz: at most 10 ms


def clock(k: KernelBuilder) -> Value:
    """The present time, in ticks."""
    return k.call_value("llvm.readcyclecounter", [], I64)


def exact_clock(k: KernelBuilder, target: Target) -> Value:
    """The present time, once everything before is done: processors may look at the clock early, and go on early."""
    _wait(k, target)
    now = clock(k)
    _wait(k, target)
    return now


def _wait(k: KernelBuilder, target: Target) -> None:
    if target.is_x86:
        k.call("llvm.x86.sse2.lfence", [])
    else:
        k.call("llvm.aarch64.isb", [k.const(I32, _WHOLE_SYSTEM)])


def ticks(target: Target, hundredths: int) -> int:
    """About so many hundredths of a second, or less, on any machine of this kind."""
    return hundredths * (_TICKS if target.is_x86 else _SLOW_TICKS)


_CALIBRATION_SECONDS = 0.02


@cache
def ticks_per_second(target: Target) -> float:
    """How fast the clock of this machine goes, held against the system's for a moment."""
    module = Module()
    with KernelBuilder(module, "now", [], I64) as k:
        k.ret(clock(k))
    code = link([emit_object(module.text(), target, codegen_level=0)], {}, ["now"])
    now = ctypes.CFUNCTYPE(ctypes.c_int64)(code.address("now"))
    began, first = time.perf_counter(), now()
    while time.perf_counter() - began < _CALIBRATION_SECONDS:
        pass
    last, ended = now(), time.perf_counter()
    return float(last - first) / (ended - began)
