"""The processor's clock, by which native code knows when to let Python look at its signals."""

from __future__ import annotations

from xlapy.codegen.ir import I64, KernelBuilder, Value
from xlapy.codegen.target import Target

_TICKS = 20_000_000  # of x86 in 10 ms at 2 GHz
_SLOW_TICKS = 250_000  # of a clock of 24 MHz, as AArch64 may have it, to 1 GHz: at most 10 ms


def clock(k: KernelBuilder) -> Value:
    """The present time, in ticks."""
    now = k.call("llvm.readcyclecounter", [], I64)
    assert now is not None
    return now


def ticks(target: Target, hundredths: int) -> int:
    """About so many hundredths of a second, or less, on any machine of this kind."""
    return hundredths * (_TICKS if target.is_x86 else _SLOW_TICKS)
