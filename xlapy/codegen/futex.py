"""Sleeping on a word of memory until another thread changes it: Linux's futex, where there is one."""

from __future__ import annotations

from xlapy.codegen.ir import I32, I64, PTR, KernelBuilder, Value
from xlapy.codegen.target import Target

_SYSTEM_CALL = {"x86_64": 202, "aarch64": 98}
_WAIT_PRIVATE = 128
_WAKE_PRIVATE = 129


def architecture(target: Target) -> str:
    return target.triple.partition("-")[0]


def has_futex(target: Target) -> bool:
    return "linux" in target.triple and architecture(target) in _SYSTEM_CALL


def futex_wait(k: KernelBuilder, target: Target, word: Value, expected: Value, timespec: Value | None = None) -> None:
    """Sleeps while `word` is `expected`; may return early, and does when the relative time has passed."""
    _call(k, target, _WAIT_PRIVATE, word, expected, timespec)


def futex_wake(k: KernelBuilder, target: Target, word: Value, count: Value) -> None:
    """Wakes up to `count` threads that sleep on `word`."""
    _call(k, target, _WAKE_PRIVATE, word, count, None)


def _call(
    k: KernelBuilder, target: Target, operation: int, word: Value, argument: Value, pointer: Value | None
) -> None:
    number, nothing = k.const(I64, _SYSTEM_CALL[architecture(target)]), k.const(I64, 0)
    first = k.const(PTR, 0) if pointer is None else pointer
    k.call("syscall", [number, word, k.const(I64, operation), k.zext(argument, I64), first, nothing, nothing], I64)


def pause(k: KernelBuilder, target: Target) -> None:
    """Tells the core that this thread only waits."""
    match architecture(target):
        case "x86_64":
            k.call("llvm.x86.sse2.pause", [])
        case "aarch64":
            k.call("llvm.aarch64.hint", [k.const(I32, 1)])
