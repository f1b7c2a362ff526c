"""Bitcasts between elements of different widths, one of them narrower than a byte.

Narrow elements lie one per byte, wide ones hold their bits side by side, the first in the lowest bits:

    u4[2,2] {{1, 2}, {3, 15}}, in memory 01 02 03 0f        <->        u8[2] {0x21, 0xf3}

A vector of bytes goes all the way in few steps: two neighbours of `held` bits are joined to one of twice as many, or
one is halved, until a byte is full or a narrow element done. Full bytes already lie as the wide elements want them.
"""

from __future__ import annotations

from dataclasses import replace

from xlapy.codegen.arrays import Array
from xlapy.codegen.indexing import Index, Indexing
from xlapy.codegen.ir import I8, I16, I64, KernelBuilder, Value
from xlapy.codegen.kernels.loop import VECTORS_PER_STEP, power_of_two_below
from xlapy.codegen.kernels.strip import strip
from xlapy.codegen.registers import Element, from_memory, memory_type, wrap_narrow_integer
from xlapy.codegen.target import Target
from xlapy.hlo.element_types import U8, U16, U32, U64, ElementType
from xlapy.hlo.graph import Instruction
from xlapy.hlo.shape import Shape
from xlapy_runtime.records import Record

_STORAGE = {1: U8, 2: U16, 4: U32, 8: U64}


class RepackPlan(Record):
    """`parts` elements of `narrow` are one of `wide`. A unit is a wide element; a step of the loop takes `lanes`."""

    wide: Shape
    narrow: Shape
    parts: int
    joins: bool
    lanes: int
    units: int
    bytes_per_unit: int


def plan_repack(instruction: Instruction, target: Target) -> RepackPlan:
    """How to join the operand's elements, or take them apart."""
    operand, result = instruction.operands[0].shape, instruction.shape
    joins = operand.type.bits < result.type.bits
    wide, narrow = (result, operand) if joins else (operand, result)
    parts = wide.type.bits // narrow.type.bits
    step = max(1, target.vector_bytes * VECTORS_PER_STEP // parts)
    lanes = power_of_two_below(min(step, wide.size))
    return RepackPlan(wide, narrow, parts, joins, lanes, wide.size, wide.type.bytes + parts * narrow.type.bytes)


def emit_repack(k: KernelBuilder, plan: RepackPlan, operand: Array, output: Array, begin: Value, end: Value) -> None:
    """Writes wide elements [begin, end), or what they are made of."""
    source, target = _as_storage(operand), _as_storage(output)

    def step(ix: Indexing, position: Value) -> None:
        one, many = ix, Indexing(k, ix.lanes * plan.parts)
        wide = Index(plan.wide.dims, None, one.along_lanes(position))
        narrow = Index(plan.narrow.dims, None, many.along_lanes(k.mul(position, plan.parts)))
        if plan.joins:
            target.store(one, wide, _joined(k, _loaded(source, many, narrow), plan.narrow.type, plan.wide.type))
        else:
            target.store(many, narrow, _apart(k, _loaded(source, one, wide), plan.wide.type, plan.narrow.type))

    strip(k, begin, end, plan.lanes, step, overlapping=True)


def load_joined(k: KernelBuilder, pointer: Value, shape: Shape, element_type: ElementType) -> Element:
    """All elements of the array of `shape` at `pointer`, as one element in a register."""
    parts = Indexing(k, shape.size)
    everything = Index(shape.dims, None, parts.along_lanes(k.const(I64, 0)))
    bits = _loaded(_as_storage(Array(pointer, shape, read_only=False)), parts, everything)
    joined = _joined(k, bits, shape.type, element_type)
    return from_memory(k, k.bitcast(joined, memory_type(element_type)), element_type)


def _as_storage(array: Array) -> Array:
    """The same memory as plain integers."""
    return replace(array, shape=array.shape.with_type(_STORAGE[array.shape.type.bytes]))


def _loaded(array: Array, ix: Indexing, index: Index) -> Value:
    loaded = array.load(ix, index)
    assert isinstance(loaded, Value)
    return loaded


def _joined(k: KernelBuilder, lanes: Value, narrow: ElementType, wide: ElementType) -> Value:
    """One lane of `wide` for every few of `narrow`, both as they are stored."""
    held = narrow.bits
    lanes = _meaningful(k, lanes, narrow)
    while held < min(wide.bits, 8):
        count = _factor(wide.bits // held)
        if count == 2:
            pairs = k.bitcast(lanes, I16.with_lanes(lanes.type.lanes // 2))
            lanes = k.trunc(k.or_(pairs, k.lshr(pairs, 8 - held)), I8)
        else:
            lanes = _interleaved(k, lanes, held, count)
        held *= count
    storage = memory_type(_STORAGE[wide.bytes])
    lanes = k.bitcast(lanes, storage.with_lanes(lanes.type.lanes // wide.bytes))
    return wrap_narrow_integer(k, lanes, wide)


def _apart(k: KernelBuilder, lanes: Value, wide: ElementType, narrow: ElementType) -> Value:
    """Several lanes of `narrow` for each one of `wide`, both as they are stored; the inverse of `_joined`."""
    lanes = _meaningful(k, lanes, wide)
    lanes = k.bitcast(lanes, I8.with_lanes(lanes.type.lanes * wide.bytes))
    held = min(wide.bits, 8)
    while held > narrow.bits:
        count = _factor(held // narrow.bits)
        held //= count
        mask = (1 << held) - 1
        if count == 2:
            pairs = k.zext(lanes, I16)
            pairs = k.and_(k.or_(pairs, k.shl(pairs, 8 - held)), mask << 8 | mask)
            lanes = k.bitcast(pairs, I8.with_lanes(lanes.type.lanes * 2))
        else:
            total = lanes.type.lanes * count
            spread = k.splat(lanes, total) if lanes.type.lanes == 1 else _repeated(k, lanes, count)
            distances = k.const_vector(spread.type, [lane % count * held for lane in range(total)])
            lanes = k.and_(k.lshr(spread, distances), mask)
    return wrap_narrow_integer(k, lanes, narrow)


def _factor(parts: int) -> int:
    """How many neighbours meet in one step: two, but three thirds of a 6-bit element."""
    return parts if parts % 2 else 2


def _meaningful(k: KernelBuilder, lanes: Value, element_type: ElementType) -> Value:
    """The bits of stored elements, without those of the byte that do not count."""
    if element_type.kind == "pred":
        return k.zext(k.compare("ne", lanes, 0), I8)
    return lanes if element_type.bits >= 8 else k.and_(lanes, (1 << element_type.bits) - 1)


def _interleaved(k: KernelBuilder, lanes: Value, held: int, count: int) -> Value:
    """Every `count` neighbours of `held` bits as one lane."""
    joined = k.shuffle(lanes, None, range(0, lanes.type.lanes, count))
    for part in range(1, count):
        bits = k.shuffle(lanes, None, range(part, lanes.type.lanes, count))
        joined = k.or_(joined, k.shl(bits, part * held))
    return joined


def _repeated(k: KernelBuilder, lanes: Value, count: int) -> Value:
    return k.shuffle(lanes, None, [lane // count for lane in range(lanes.type.lanes * count)])
