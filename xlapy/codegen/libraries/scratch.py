"""Scratch memory of libraries: a few slots per process, mapped when first needed, and kept until someone trims.

    scratch_acquire(size, room)        fills in the room, which has at least `size` bytes
    scratch_release(room)
    scratch_trim()                     gives the memory of all slots that nobody works in back to the system

A call takes the first free slot, so that a program that computes one product at a time always works in the same warm
memory, whatever the types; for a small room, the first one from a slot on that depends on the thread, so that threads
which work side by side find theirs in the caches of their cores. A slot whose memory is too small for what is asked
gets other memory. Calls that find all slots taken map memory for themselves.

Room is exactly as large as it was asked for. What holds huge pages is aligned to them and may use them, for large
rooms span thousands of small ones; what is left at the end has small ones, so that no more is in memory than was asked.
"""

from __future__ import annotations

from dataclasses import dataclass

from xlapy.codegen.ir import I32, I64, PTR, KernelBuilder, Module, Value
from xlapy.codegen.libraries import Library
from xlapy.codegen.libraries.gemm_record import Record, RecordValue
from xlapy.codegen.target import Target

_SLOTS = 64
_NO_SLOT = -1
_NEAR_BYTES = 1 << 21
"""Of a small room. What changes hands has to be fetched from the other core's cache (Sapphire Rapids, two cores, 256 by
256 by 256 of bf16: 0.6 of the time without)."""
_STACK_BITS = 20
_SPREADING = 0x9E3779B1
"""What stacks are apart at least, as a power of two, and a factor that spreads their numbers."""
_PAGE_BYTES = 1 << 12
_HUGE_PAGE_BYTES = 1 << 21
_MADV_HUGEPAGE = 14
_READ_AND_WRITE = 3
_PRIVATE_OF_LINUX = 0x22
_PRIVATE_ELSEWHERE = 0x1002
"""Flags of anonymous private mappings: MAP_PRIVATE | MAP_ANONYMOUS."""

_ROOM = Record(slot=I64, memory=PTR, bytes=I64)
_SLOT = Record(taken=I64, memory=PTR, bytes=I64, apart0=I64, apart1=I64, apart2=I64, apart3=I64, apart4=I64)
"""One slot, on a line of its own."""

ACQUIRE, RELEASE, TRIM = "scratch_acquire", "scratch_release", "scratch_trim"


def emit_slots(target: Target) -> Module:
    module = Module(has_fma=target.has_fma)
    size = _SLOTS * _SLOT.size
    module.define("scratch_slots", f"@scratch_slots = internal global [{size} x i8] zeroinitializer, align 64")
    _emit_map(module, target)
    _emit_acquire(module)
    _emit_release(module)
    _emit_trim(module)
    return module


SCRATCH_LIBRARIES = {"scratch": Library("scratch", (ACQUIRE, RELEASE, TRIM), emit_slots, trim=TRIM)}


@dataclass(frozen=True, slots=True)
class Scratch:
    """Memory that a function has acquired; 64-byte aligned."""

    room: RecordValue
    memory: Value


def acquire_scratch(k: KernelBuilder, size: Value) -> Scratch:
    room = _ROOM.new(k)
    k.call(ACQUIRE, [size, room.place])
    return Scratch(room, room["memory"])


def release_scratch(k: KernelBuilder, scratch: Scratch) -> None:
    k.call(RELEASE, [scratch.room.place])


def _slot(k: KernelBuilder, number: Value) -> RecordValue:
    return _SLOT.at(k, k.gep(k.function_pointer("scratch_slots"), number, _SLOT.size))


def _try_to_take(k: KernelBuilder, slot: RecordValue) -> Value:
    """Whether the slot was free. It is this thread's, then."""
    _, taken = k.compare_exchange(slot.place, k.const(I64, 0), k.const(I64, 1))
    return taken


def _give_back(k: KernelBuilder, slot: RecordValue) -> None:
    k.atomic_store(slot.place, k.const(I64, 0))


def _emit_map(module: Module, target: Target) -> None:
    """New memory. There is nobody to report to that there is none."""
    is_linux = "linux" in target.triple
    with KernelBuilder(module, "scratch_map", [("size", I64)], PTR, "internal") as k:
        size = k.parameters["size"]
        flags = _PRIVATE_OF_LINUX if is_linux else _PRIVATE_ELSEWHERE
        is_large = k.compare("ge", size, _HUGE_PAGE_BYTES)
        beyond = k.select(is_large, k.const(I64, _HUGE_PAGE_BYTES), 0)
        protection = [k.const(I32, number) for number in (_READ_AND_WRITE, flags, -1)]
        arguments = [k.const(PTR, 0), k.add(size, beyond), *protection, k.const(I64, 0)]
        mapped = k.call_value("mmap", arguments, PTR)
        with k.if_(k.compare("eq", k.address(mapped), -1)):
            k.call("llvm.trap", [])
        with k.if_(k.not_(is_large)):
            k.ret(mapped)
        before = k.and_(k.sub(0, k.address(mapped)), _HUGE_PAGE_BYTES - 1)
        memory = k.gep(mapped, before)
        with k.if_(k.compare("gt", before, 0)):
            k.call("munmap", [mapped, before], I32)
        behind = k.sub(beyond, before)
        k.call("munmap", [k.gep(memory, size), behind], I32)
        if is_linux:
            huge = k.and_(size, -_HUGE_PAGE_BYTES)
            k.call("madvise", [memory, huge, k.const(I32, _MADV_HUGEPAGE)], I32)
        k.ret(memory)


def _slot_of_thread(k: KernelBuilder) -> Value:
    """A number that depends on where the stack of the thread is."""
    place = k.lshr(k.address(k.alloca(I64)), _STACK_BITS)
    return k.lshr(k.and_(k.mul(place, _SPREADING), (1 << 32) - 1), 32 - (_SLOTS.bit_length() - 1))


def _emit_acquire(module: Module) -> None:
    with KernelBuilder(module, ACQUIRE, [("size", I64), ("room", PTR)], None) as k:
        size = k.and_(k.add(k.smax(k.parameters["size"], 1), _PAGE_BYTES - 1), -_PAGE_BYTES)
        room = _ROOM.at(k, k.parameters["room"])

        first = k.select(k.compare("le", size, _NEAR_BYTES), _slot_of_thread(k), 0)

        def number_at(tries: Value) -> Value:
            return k.and_(k.add(first, tries), _SLOTS - 1)

        def is_taken(values: list[Value]) -> Value:
            return k.not_(_try_to_take(k, _slot(k, number_at(values[0]))))

        def next_slot(values: list[Value]) -> list[Value]:
            following = k.add(values[0], 1)
            with k.if_(k.compare("eq", following, _SLOTS)):
                room.set(slot=_NO_SLOT, memory=k.call_value("scratch_map", [size], PTR), bytes=size)
                k.ret()
            return [following]

        number = number_at(k.while_loop(is_taken, next_slot, [k.const(I64, 0)])[0])
        slot = _slot(k, number)
        with k.if_(k.compare("lt", slot["bytes"], size)):
            _empty(k, slot)
            slot.set(memory=k.call_value("scratch_map", [size], PTR), bytes=size)
        room.set(slot=number, memory=slot["memory"], bytes=slot["bytes"])


def _empty(k: KernelBuilder, slot: RecordValue) -> None:
    with k.if_(k.compare("gt", slot["bytes"], 0)):
        k.call("munmap", [slot["memory"], slot["bytes"]], I32)
        slot.set(memory=k.const(PTR, 0), bytes=0)


def _emit_release(module: Module) -> None:
    with KernelBuilder(module, RELEASE, [("room", PTR)], None) as k:
        room = _ROOM.at(k, k.parameters["room"])
        number = room["slot"]
        with k.if_(k.compare("eq", number, _NO_SLOT)):
            k.call("munmap", [room["memory"], room["bytes"]], I32)
            k.ret()
        _give_back(k, _slot(k, number))


def _emit_trim(module: Module) -> None:
    with KernelBuilder(module, TRIM, [], None) as k, k.loop(0, _SLOTS) as number:
        slot = _slot(k, number.index)
        with k.if_(_try_to_take(k, slot)):
            _empty(k, slot)
            _give_back(k, slot)
