"""Copies of whole arrays that are large enough to be shared out: of parameters into results, of what loops begin with;
and arrays that are joined, of any size, each of which is a stretch of the result.

    copy_blocks(table, begin, end)                  through the caches
    copy_blocks_past_caches(table, begin, end)      of results that no cache holds until somebody reads them

A unit is a block of the result. What the C library copies alone is one core's work, and a block at a time is too little
for it to bypass the caches, which it does for whole arrays.

The numbers of a call are the place of the result in the table, how many stretches there are, and three for each: the
place of its array, its first byte in the result, and its bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xlapy.codegen.arrays import FETCHED_AHEAD
from xlapy.codegen.ir import I8, I64, PTR, KernelBuilder, Module, Operand, Value
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.kernels.loop import streamed_bytes
from xlapy.codegen.kernels.tasks import PARALLEL_BYTES, TASK_BYTES
from xlapy.codegen.libraries import Library, LibraryCall
from xlapy.codegen.target import Target
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import is_row_major

BLOCK_BYTES = TASK_BYTES // 2
"""Each is read and written."""

_THROUGH_CACHES, _PAST_CACHES = "copy_blocks", "copy_blocks_past_caches"
LEAST_STRETCH_BYTES = 1 << 11
"""Of arrays that are joined: of smaller ones it matters that the C library is called for each."""
MOST_SHORT_STRETCHES = 16
"""Of more it matters that a kernel of the program has a loop for each, which takes LLVM a millisecond or two."""

_NUMBERS_PLACE, _FIRST_PLACE = 0, 3  # in the table of a library call
_FIRST_STRETCH, _STRETCH = 2, 3  # among the numbers
_RANGE = [("table", PTR), ("begin", I64), ("end", I64)]


def call_of_copy(size: int, target: Target) -> LibraryCall | None:
    """How so many bytes are copied, if they are worth sharing out."""
    if 2 * size < PARALLEL_BYTES:
        return None
    return _call([size], target)


def call_of_join(concatenate: Instruction, target: Target) -> LibraryCall | None:
    """How arrays in memory are joined, if each is one stretch of the result, and not a small one
    of a few."""
    arrays = [concatenate, *concatenate.operands]
    dims = concatenate.shape.dims[: concatenate.attributes["dimension"]]
    if any(size != 1 for size in dims) or not all(array.shape.is_static and is_row_major(array) for array in arrays):
        return None
    sizes = [operand.shape.bytes for operand in concatenate.operands]
    has_short = any(0 < size < LEAST_STRETCH_BYTES for size in sizes)
    return None if has_short and len(sizes) <= MOST_SHORT_STRETCHES else _call(sizes, target)


def _call(sizes: Sequence[int], target: Target) -> LibraryCall:
    """Of arrays of so many bytes, which come one behind the other."""
    function = _PAST_CACHES if sum(sizes) >= streamed_bytes(target) else _THROUGH_CACHES
    numbers, start = [_FIRST_PLACE + len(sizes), len(sizes)], 0
    for place, size in enumerate(sizes, _FIRST_PLACE):
        numbers += [place, start, size]
        start += size
    return LibraryCall("copies", function, tuple(numbers))


def units_of_copy(size: int) -> int:
    """The blocks of so many bytes, of which the last one may be shorter."""
    return -(-size // BLOCK_BYTES)


def emit_copies(target: Target) -> Module:
    module = Module.of(target)
    attributes = f"nounwind {target.function_attributes}".rstrip()
    with KernelBuilder(module, _THROUGH_CACHES, _RANGE, None, attributes=attributes) as k:
        _for_each_stretch(k, k.memcpy)
    with KernelBuilder(module, _PAST_CACHES, _RANGE, None, attributes=attributes) as k:
        _for_each_stretch(k, lambda goal, source, size: _copy_past_caches(k, goal, source, size, target))
        k.fence()
    return module


COPY_LIBRARIES = {"copies": Library("copies", (_THROUGH_CACHES, _PAST_CACHES), emit_copies)}


def _for_each_stretch(k: KernelBuilder, copy: Callable[[Value, Value, Value], None]) -> None:
    """Copies what a range of blocks has of each stretch: to where it goes, from where it comes, so many bytes."""
    numbers = _pointer(k, _NUMBERS_PLACE)
    goal = _pointer(k, _number(k, numbers, 0))
    first, last = (k.mul(k.parameters[name], BLOCK_BYTES) for name in ("begin", "end"))
    with k.loop(0, _number(k, numbers, 1)) as stretches:
        facts = k.gep(numbers, k.add(k.mul(stretches.index, _STRETCH), _FIRST_STRETCH), I64.bytes)
        place, start, size = (_number(k, facts, number) for number in range(_STRETCH))
        low, high = k.smax(first, start), k.smin(last, k.add(start, size))
        with k.if_(k.compare("lt", low, high)):
            copy(k.gep(goal, low), k.gep(_pointer(k, place), k.sub(low, start)), k.sub(high, low))


def _pointer(k: KernelBuilder, place: Operand) -> Value:
    return k.load(k.gep(k.parameters["table"], place, PTR.bytes), PTR)


def _number(k: KernelBuilder, numbers: Value, place: int) -> Value:
    return k.load(k.gep(numbers, place, I64.bytes), I64)


def _copy_past_caches(k: KernelBuilder, goal: Value, source: Value, size: Value, target: Target) -> None:
    """Whole cache lines of the goal bypass the caches, those at its ends do not."""
    before = k.smin(k.and_(k.sub(0, k.address(goal)), CACHE_LINE - 1), size)
    lines = k.and_(k.sub(size, before), -CACHE_LINE)
    behind = k.add(before, lines)
    k.memcpy(goal, source, before)
    _copy_lines(k, k.gep(goal, before), k.gep(source, before), lines, target)
    k.memcpy(k.gep(goal, behind), k.gep(source, behind), k.sub(size, behind))


def _copy_lines(k: KernelBuilder, goal: Value, source: Value, size: Value, target: Target) -> None:
    """Copies whole cache lines to where cache lines begin.

    Where processors see by themselves what is read next, asking for it takes a tenth longer (on Zen 3)."""
    vector = I8.with_lanes(target.vector_bytes)
    with k.loop(0, size, CACHE_LINE) as lines:
        place = k.gep(source, lines.index)
        if target.asks_ahead:
            k.prefetch(k.gep(place, FETCHED_AHEAD), CACHE_LINE)
        offsets = range(0, CACHE_LINE, vector.lanes)
        vectors = [k.load(k.gep(place, offset), vector) for offset in offsets]
        for offset, loaded in zip(offsets, vectors, strict=True):
            k.store(k.gep(k.gep(goal, lines.index), offset), loaded, align=vector.lanes, nontemporal=True)
