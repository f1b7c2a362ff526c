"""Scratch memory for packed operands: a few slots per library, allocated when first needed and kept.

A call takes the first free slot, so that a program that computes one product at a time always works in the same warm
memory. Calls that find all slots taken allocate for themselves.
"""

from __future__ import annotations

from xlapy.codegen.ir import I32, I64, PTR, KernelBuilder, Module, Value
from xlapy.codegen.target import Target

_SLOTS = 64
_SLOT_BYTES = 64
_MEMORY_OFFSET = 8
_NO_SLOT = -1
_ALIGNMENT = 1 << 21
"""That of a huge page, so that the system may use them: a panel spans thousands of small ones."""

_MADV_HUGEPAGE = 14


def emit_scratch(module: Module, target: Target, prefix: str, size: int) -> None:
    """Defines the slots and the functions for `size` bytes each."""
    module.define(
        f"{prefix}_slots", f"@{prefix}_slots = internal global [{_SLOTS * _SLOT_BYTES} x i8] zeroinitializer, align 64"
    )
    with KernelBuilder(module, f"{prefix}_allocate", [], PTR, "internal") as k:
        rounded = -(-size // _ALIGNMENT) * _ALIGNMENT
        memory = k.call_value("aligned_alloc", [k.const(I64, _ALIGNMENT), k.const(I64, rounded)], PTR)
        with k.if_(k.compare("eq", memory, k.const(PTR, 0))):
            k.call("llvm.trap", [])
        if "linux" in target.triple:
            k.call("madvise", [memory, k.const(I64, rounded), k.const(I32, _MADV_HUGEPAGE)], I32)
        k.ret(memory)
    _emit_acquire(module, prefix)
    _emit_release(module, prefix)


def acquire_scratch(k: KernelBuilder, prefix: str) -> tuple[Value, Value]:
    """The number of a slot, and its memory; 64-byte aligned."""
    memory = k.alloca(PTR)
    slot = k.call_value(f"{prefix}_acquire", [memory], I64)
    return slot, k.load(memory, PTR)


def release_scratch(k: KernelBuilder, prefix: str, slot: Value, memory: Value) -> None:
    k.call(f"{prefix}_release", [slot, memory])


def _emit_acquire(module: Module, prefix: str) -> None:
    with KernelBuilder(module, f"{prefix}_acquire", [("result", PTR)], I64, "internal") as k:
        result = k.parameters["result"]
        slots = k.function_pointer(f"{prefix}_slots")
        zero, one = k.const(I32, 0), k.const(I32, 1)

        def is_taken(values: list[Value]) -> Value:
            _, taken = k.compare_exchange(k.gep(slots, values[0], _SLOT_BYTES), zero, one)
            return k.not_(taken)

        def next_slot(values: list[Value]) -> list[Value]:
            following = k.add(values[0], 1)
            with k.if_(k.compare("eq", following, _SLOTS)):
                k.store(result, _allocated(k, prefix))
                k.ret(k.const(I64, _NO_SLOT))
            return [following]

        slot = k.while_loop(is_taken, next_slot, [k.const(I64, 0)])[0]
        place = k.gep(k.gep(slots, slot, _SLOT_BYTES), _MEMORY_OFFSET)
        with k.if_(k.compare("eq", k.load(place, PTR), k.const(PTR, 0))):
            k.store(place, _allocated(k, prefix))
        k.store(result, k.load(place, PTR))
        k.ret(slot)


def _allocated(k: KernelBuilder, prefix: str) -> Value:
    return k.call_value(f"{prefix}_allocate", [], PTR)


def _emit_release(module: Module, prefix: str) -> None:
    parameters = [("slot", I64), ("memory", PTR)]
    with KernelBuilder(module, f"{prefix}_release", parameters, None, "internal") as k:
        slot = k.parameters["slot"]
        with k.if_(k.compare("eq", slot, _NO_SLOT)):
            k.call("free", [k.parameters["memory"]])
            k.ret()
        place = k.gep(k.function_pointer(f"{prefix}_slots"), slot, _SLOT_BYTES)
        k.atomic_store(place, k.const(I32, 0))
