"""How a thread computes with floats: rounding, what is trapped, and whether subnormal results count as zero.

A program runs with settings of its own, and leaves the calling thread those that it had: libraries that were compiled
for speed may have changed them. Workers of the pool take those of the thread whose job they do.
"""

from __future__ import annotations

from xlapy.codegen.futex import architecture
from xlapy.codegen.ir import I32, I64, KernelBuilder, Value
from xlapy.codegen.target import Target

_X86, _ARM = "x86_64", "aarch64"

_USUAL = {_X86: 0x1F80, _ARM: 0}
"""Rounding to nearest, subnormals kept, nothing trapped."""

_FLUSHING = {_X86: 0x8000, _ARM: 1 << 24 | 1 << 19}
"""Besides: subnormal results are zeros; on ARM subnormal operands, too."""

_X86_FLAGS = 0x3F
"""What has happened so far: no settings."""


def settings(target: Target, *, flushes: bool = False) -> int:
    """Those of programs, or of those that flush subnormal results."""
    machine = architecture(target)
    return _USUAL.get(machine, 0) | (_FLUSHING.get(machine, 0) if flushes else 0)


def settings_of_thread(k: KernelBuilder, target: Target) -> Value:
    """Those of the thread, in 32 bits."""
    match architecture(target):
        case "x86_64":
            place = k.alloca(I32)
            k.call("llvm.x86.sse.stmxcsr", [place])
            return k.and_(k.load(place, I32), ~_X86_FLAGS)
        case "aarch64":
            return k.trunc(k.call_value("llvm.aarch64.get.fpcr", [], I64), I32)
    return k.const(I32, 0)


def use_settings(k: KernelBuilder, target: Target, wanted: Value) -> None:
    """Makes 32 bits of settings those of the thread."""
    match architecture(target):
        case "x86_64":
            place = k.alloca(I32)
            k.store(place, wanted)
            k.call("llvm.x86.sse.ldmxcsr", [place])
        case "aarch64":
            k.call("llvm.aarch64.set.fpcr", [k.zext(wanted, I64)])
