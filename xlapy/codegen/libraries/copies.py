"""Copies of whole arrays that are large enough to be shared out: of parameters into results, of what loops begin with.

    copy_blocks(table, begin, end)                  through the caches
    copy_blocks_past_caches(table, begin, end)      of results that no cache holds until somebody reads them

A unit is a block of memory. What the C library copies alone is one core's work, and a block at a time is too little for
it to bypass the caches, which it does for whole arrays.
"""

from __future__ import annotations

from xlapy.codegen.arrays import FETCHED_AHEAD
from xlapy.codegen.ir import I8, I64, PTR, KernelBuilder, Module, Value
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.kernels.loop import streamed_bytes
from xlapy.codegen.kernels.tasks import PARALLEL_BYTES, TASK_BYTES
from xlapy.codegen.libraries import Library, LibraryCall
from xlapy.codegen.target import Target

BLOCK_BYTES = TASK_BYTES // 2
"""Each is read and written."""

_THROUGH_CACHES, _PAST_CACHES = "copy_blocks", "copy_blocks_past_caches"
_NUMBERS_PLACE, _SOURCE_PLACE, _TARGET_PLACE = 0, 3, 4  # in the table of a library call
_RANGE = [("table", PTR), ("begin", I64), ("end", I64)]


def call_of_copy(size: int, target: Target) -> LibraryCall | None:
    """How so many bytes are copied, if they are worth sharing out."""
    if 2 * size < PARALLEL_BYTES:
        return None
    return LibraryCall("copies", _PAST_CACHES if size >= streamed_bytes(target) else _THROUGH_CACHES, (size,))


def units_of_copy(size: int) -> int:
    """The blocks of so many bytes, of which the last one may be shorter."""
    return -(-size // BLOCK_BYTES)


def emit_copies(target: Target) -> Module:
    module = Module.of(target)
    attributes = f"nounwind {target.function_attributes}".rstrip()
    with KernelBuilder(module, _THROUGH_CACHES, _RANGE, None, attributes=attributes) as k:
        source, goal, size = _stretch(k)
        k.memcpy(goal, source, size)
    with KernelBuilder(module, _PAST_CACHES, _RANGE, None, attributes=attributes) as k:
        source, goal, size = _stretch(k)
        is_placed = k.compare("eq", k.and_(k.address(goal), CACHE_LINE - 1), 0)
        lines = k.select(is_placed, k.and_(size, -CACHE_LINE), 0)
        _copy_lines(k, source, goal, lines, target)
        k.memcpy(k.gep(goal, lines), k.gep(source, lines), k.sub(size, lines))
    return module


COPY_LIBRARIES = {"copies": Library("copies", (_THROUGH_CACHES, _PAST_CACHES), emit_copies)}


def _stretch(k: KernelBuilder) -> tuple[Value, Value, Value]:
    """Where the blocks of a range come from, where they go, and their bytes."""
    numbers, source, goal = (
        k.load(k.gep(k.parameters["table"], place, PTR.bytes), PTR)
        for place in (_NUMBERS_PLACE, _SOURCE_PLACE, _TARGET_PLACE)
    )
    first = k.mul(k.parameters["begin"], BLOCK_BYTES)
    last = k.smin(k.mul(k.parameters["end"], BLOCK_BYTES), k.load(numbers, I64))
    return k.gep(source, first), k.gep(goal, first), k.sub(last, first)


def _copy_lines(k: KernelBuilder, source: Value, goal: Value, size: Value, target: Target) -> None:
    """Copies whole cache lines to where cache lines begin."""
    vector = I8.with_lanes(target.vector_bytes)
    with k.loop(0, size, CACHE_LINE) as lines:
        place = k.gep(source, lines.index)
        k.prefetch(k.gep(place, FETCHED_AHEAD), CACHE_LINE)
        offsets = range(0, CACHE_LINE, vector.lanes)
        vectors = [k.load(k.gep(place, offset), vector) for offset in offsets]
        for offset, loaded in zip(offsets, vectors, strict=True):
            k.store(k.gep(k.gep(goal, lines.index), offset), loaded, align=vector.lanes, nontemporal=True)
    k.fence()
