"""Native code of the platform: its lock, and the memory that buffers lie in.

    take_block(home)         an idle block of a class, or a new one; null if there is no memory
    new_block(size, home)    a block of a class
    home_of(size)            the class whose blocks hold so many bytes
    leave_block(block)       lets it wait for the next one who wants such a block, or gives it back to the system

Blocks begin on a cache line, those of 32 KB on a page, and those of a huge page on such a one, which is asked for. What
waits is limited; where it would be too much, all of it goes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from xlapy.codegen.futex import architecture, pause
from xlapy.codegen.ir import I32, I64, PTR, KernelBuilder, Module, Value
from xlapy.codegen.native_fields import get, increase, is_null, not_zero, place, put
from xlapy.codegen.target import Target
from xlapy.pjrt.records import BlockClass, BlockHeader, PlatformRecord
from xlapy_runtime.alignment import LINE_BYTES
from xlapy_runtime.images import PAGE_BYTES
from xlapy_runtime.result_blocks import HUGE_PAGE_BYTES, PAGED_BYTES

PLATFORM_SYMBOL = "xlapy_pjrt_platform"
_ADVICE_HUGE_PAGES = 14
"""Linux's MADV_HUGEPAGE."""

LEAST_BYTES = 256
MOST_BYTES = 1 << 46
"""Of blocks; more than any machine has."""

_LEAST_SHIFT = LEAST_BYTES.bit_length() - 1
_STEPS_SHIFT = 2
"""There are four sizes for each double of the smallest."""


def platform(k: KernelBuilder) -> Value:
    """The record of the platform."""
    return k.function_pointer(PLATFORM_SYMBOL)


class MemoryFunctions:
    """Writes the functions of the lock and of blocks."""

    def __init__(self, module: Module, target: Target) -> None:
        self._module = module
        self._target = target

    def emit(self) -> None:
        self._module.define(PLATFORM_SYMBOL, f"@{PLATFORM_SYMBOL} = external global i8")  # linked with the code
        self._lock()
        self._unlock()
        self._new_block()
        self._take_block()
        self._home_of()
        self._release_block()
        self._trim()
        self._leave_block()

    def _lock(self) -> None:
        """Waits for the lock, which nobody holds for long; who holds it may have lost its core meanwhile."""
        with KernelBuilder(self._module, "lock", [], None, "internal") as k:
            word = place(k, platform(k), PlatformRecord, "lock")

            def is_taken(_: list[Value]) -> Value:
                return not_zero(k, k.atomic_update("xchg", word, k.const(I64, 1), "acquire"))

            def wait(_: list[Value]) -> None:
                if architecture(self._target) in ("x86_64", "aarch64"):
                    pause(k, self._target)
                with k.if_(not_zero(k, k.atomic_load(word, I64, "monotonic"))):
                    k.call("sched_yield", [], I32)

            k.while_loop(is_taken, wait, [])

    def _unlock(self) -> None:
        with KernelBuilder(self._module, "unlock", [], None, "internal") as k:
            k.atomic_store(place(k, platform(k), PlatformRecord, "lock"), k.const(I64, 0))

    def _new_block(self) -> None:
        with KernelBuilder(self._module, "new_block", [("size", I64), ("home", PTR)], PTR, "internal") as k:
            size, home = k.parameters.values()
            is_huge, is_paged = k.compare("ge", size, HUGE_PAGE_BYTES), k.compare("ge", size, PAGED_BYTES)
            alignment = k.select(is_paged, k.const(I64, PAGE_BYTES), k.const(I64, LINE_BYTES))
            alignment = k.select(is_huge, k.const(I64, HUGE_PAGE_BYTES), alignment)
            with k.if_(k.compare("ge", size, MOST_BYTES)):
                k.ret(k.const(PTR, 0))
            raw = k.call_value("malloc", [k.add(size, k.add(alignment, LINE_BYTES))], PTR)
            with k.if_(is_null(k, raw)):
                k.ret(raw)
            behind_header = k.add(k.address(raw), LINE_BYTES)
            skipped = k.and_(k.sub(0, behind_header), k.sub(alignment, 1))
            block = k.gep(raw, skipped)
            put(k, block, BlockHeader, "home", home)
            put(k, block, BlockHeader, "raw", raw)
            if "linux" in self._target.triple:
                with k.if_(is_huge):
                    whole = k.and_(size, -HUGE_PAGE_BYTES)
                    k.call("madvise", [data_of(k, block), whole, k.const(I32, _ADVICE_HUGE_PAGES)], I32)
            k.ret(block)

    def _take_block(self) -> None:
        with KernelBuilder(self._module, "take_block", [("home", PTR)], PTR, "internal") as k:
            home = k.parameters["home"]
            size = get(k, home, BlockClass, "block_bytes")
            with locked(k):
                block = get(k, home, BlockClass, "idle")
                with k.if_(k.not_(is_null(k, block))):
                    put(k, home, BlockClass, "idle", get(k, block, BlockHeader, "next"))
                    increase(k, platform(k), PlatformRecord, "idle_bytes", k.sub(0, size))
            with k.if_(is_null(k, block)):
                k.ret(k.call_value("new_block", [size, home], PTR))
            k.ret(block)

    def _home_of(self) -> None:
        """As `size_classes` counts classes."""
        with KernelBuilder(self._module, "home_of", [("size", I64)], PTR, "internal") as k:
            size = k.smin(k.smax(k.parameters["size"], 1), MOST_BYTES)
            bits = k.sub(I64.bits, k.ctlz(k.lshr(k.sub(size, 1), _LEAST_SHIFT)))
            doublings = k.smax(k.sub(bits, 1), 0)
            excess = k.smax(k.sub(size, k.shl(k.const(I64, LEAST_BYTES), doublings)), 0)
            step_shift = k.add(doublings, _LEAST_SHIFT - _STEPS_SHIFT)
            steps = k.lshr(k.add(excess, k.sub(k.shl(k.const(I64, 1), step_shift), 1)), step_shift)
            number = k.add(k.shl(doublings, _STEPS_SHIFT), steps)
            k.ret(k.gep(get(k, platform(k), PlatformRecord, "classes"), number, _CLASS_BYTES))

    def _leave_block(self) -> None:
        with KernelBuilder(self._module, "leave_block", [("block", PTR)], None, "internal") as k:
            block = k.parameters["block"]
            home = get(k, block, BlockHeader, "home")
            size = get(k, home, BlockClass, "block_bytes")
            idle, limit = (get(k, platform(k), PlatformRecord, name) for name in ("idle_bytes", "limit_bytes"))
            with k.if_(k.compare("gt", k.add(idle, size), limit)):
                k.call(TRIM_SYMBOL, [])
            with locked(k):
                put(k, block, BlockHeader, "next", get(k, home, BlockClass, "idle"))
                put(k, home, BlockClass, "idle", block)
                increase(k, platform(k), PlatformRecord, "idle_bytes", size)

    def _release_block(self) -> None:
        with KernelBuilder(self._module, "release_block", [("block", PTR)], None, "internal") as k:
            k.call("free", [get(k, k.parameters["block"], BlockHeader, "raw")])

    def _trim(self) -> None:
        """Gives all blocks that wait back to the system, class by class."""
        with KernelBuilder(self._module, TRIM_SYMBOL, [], None) as k:
            classes, count = (get(k, platform(k), PlatformRecord, name) for name in ("classes", "class_count"))
            with k.loop(0, count) as each:
                home = k.gep(classes, each.index, _CLASS_BYTES)
                size = get(k, home, BlockClass, "block_bytes")
                with locked(k):
                    first = get(k, home, BlockClass, "idle")
                    put(k, home, BlockClass, "idle", k.const(PTR, 0))
                    taken = self._bytes_of(k, first, size)
                    increase(k, platform(k), PlatformRecord, "idle_bytes", k.sub(0, taken))

                def release(values: list[Value]) -> Value:
                    following = get(k, values[0], BlockHeader, "next")
                    k.call("release_block", [values[0]])
                    return following

                k.while_loop(lambda values: k.not_(is_null(k, values[0])), release, [first])

    @staticmethod
    def _bytes_of(k: KernelBuilder, first: Value, size: Value) -> Value:
        """How many bytes the blocks of a list have."""
        _, total = k.while_loop(
            lambda values: k.not_(is_null(k, values[0])),
            lambda values: [get(k, values[0], BlockHeader, "next"), k.add(values[1], size)],
            [first, k.const(I64, 0)],
        )
        return total


TRIM_SYMBOL = "xlapy_pjrt_trim"
_CLASS_BYTES = 2 * I64.bytes


def data_of(k: KernelBuilder, block: Value) -> Value:
    """Where the data of a block begins."""
    return k.gep(block, LINE_BYTES)


@contextmanager
def locked(k: KernelBuilder) -> Iterator[None]:
    """What is written now runs with the lock of the platform, which must not be held already."""
    k.call("lock", [])
    yield
    k.call("unlock", [])
