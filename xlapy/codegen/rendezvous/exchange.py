"""The work of collectives, in chunks: a chunk copies or reduces one block of one array for everybody who gets it.

    i32 exchange_chunk(context, member, meeting, number)

Chunks write to different memory and may run in any order, on any thread; each reads the operands of all members, and
a reduction folds them in the order of the group. So results do not depend on who works on what. What is read once, for
several targets, stays in the cache between them.
"""

from __future__ import annotations

import ctypes

from xlapy.codegen.ir import I32, I64, PTR, KernelBuilder, Module, Value
from xlapy.codegen.native_fields import get, is_null, not_zero, word
from xlapy.codegen.rendezvous.meetings import place_of_arrays
from xlapy_runtime.calling import Status
from xlapy_runtime.native_records import GroupRecord, LeafRecord, Meeting, Member

_CHUNK = [("context", PTR), ("member", PTR), ("meeting", PTR)]
_BLOCK = [*_CHUNK, ("leaf", PTR), ("part", I64), ("block", I64)]


def emit_exchange(module: Module) -> None:
    _emit_array(module)
    _emit_copy(module)
    _emit_reduce(module)
    _emit_chunk(module)


def _leaf(k: KernelBuilder, name: str) -> Value:
    return get(k, k.parameters["leaf"], LeafRecord, name)


def _array(k: KernelBuilder, position: Value, number: Value) -> Value:
    """The address of an array of the member at a position of the group."""
    return k.call_value("exchange_array", [k.parameters["member"], k.parameters["meeting"], position, number], PTR)


def _emit_array(module: Module) -> None:
    parameters = [("member", PTR), ("meeting", PTR), ("position", I64), ("number", I64)]
    with KernelBuilder(module, "exchange_array", parameters, PTR, "internal") as k:
        run = get(k, k.parameters["member"], Member, "run")
        arrays = place_of_arrays(k, run, k.parameters["meeting"], k.parameters["position"])
        k.ret(word(k, arrays, k.parameters["number"], PTR))


def _emit_chunk(module: Module) -> None:
    """Finds the leaf, part and block of a chunk by its number."""
    with KernelBuilder(module, "exchange_chunk", [*_CHUNK, ("number", I64)], I32, "internal") as k:
        group = get(k, k.parameters["meeting"], Meeting, "group")

        def chunks(leaf: Value) -> Value:
            return k.mul(get(k, leaf, LeafRecord, "owners"), get(k, leaf, LeafRecord, "blocks"))

        def is_further(values: list[Value]) -> Value:
            return k.compare("ge", values[1], chunks(values[0]))

        def following(values: list[Value]) -> list[Value]:
            return [k.gep(values[0], ctypes.sizeof(LeafRecord)), k.sub(values[1], chunks(values[0]))]

        first = [get(k, group, GroupRecord, "leaves"), k.parameters["number"]]
        leaf, number = k.while_loop(is_further, following, first)
        blocks = get(k, leaf, LeafRecord, "blocks")
        part = k.udiv(number, blocks)
        common = [k.parameters[name] for name, _ in _CHUNK]
        arguments = [*common, leaf, part, k.sub(number, k.mul(part, blocks))]

        def copy() -> list[Value]:
            k.call("exchange_copy", arguments)
            return [k.const(I32, Status.OK)]

        def reduce() -> list[Value]:
            status = k.call_value("exchange_reduce", arguments, I32)
            return [status]

        k.ret(k.if_else(is_null(k, get(k, leaf, LeafRecord, "combine")), copy, reduce)[0])


def _rows(k: KernelBuilder) -> tuple[Value, Value, Value, Value]:
    """The rows of a block, from the first to behind the last, and the bytes of each row in the same way."""
    block, segments = k.parameters["block"], _leaf(k, "segments")
    line = k.udiv(block, segments)
    segment = k.sub(block, k.mul(line, segments))
    first = k.mul(line, _leaf(k, "rows_per_block"))
    last = k.smin(k.add(first, _leaf(k, "rows_per_block")), _leaf(k, "rows"))
    begin = k.mul(segment, _leaf(k, "segment_bytes"))
    return first, last, begin, k.smin(k.add(begin, _leaf(k, "segment_bytes")), _leaf(k, "row_bytes"))


def _emit_copy(module: Module) -> None:
    """Copies one block of the part'th member's operand to all who get it; behind the last member there are zeros."""
    with KernelBuilder(module, "exchange_copy", _BLOCK, None, "internal") as k:
        group = get(k, k.parameters["meeting"], Meeting, "group")
        size, sources = get(k, group, GroupRecord, "size"), get(k, group, GroupRecord, "sources")
        part = k.parameters["part"]
        is_zeros = k.compare("eq", part, size)
        wanted = k.select(is_zeros, k.const(I64, -1), part)
        with k.loop(0, size) as targets:
            target = targets.index

            def is_source(target: Value = target) -> list[Value]:
                return [k.compare("eq", word(k, sources, target), wanted)]

            gets_it = k.if_else(is_null(k, sources), lambda: [k.not_(is_zeros)], is_source)[0]
            with k.if_(gets_it):
                _copy_block(k, get(k, group, GroupRecord, "operands"), target, is_zeros)


def _copy_block(k: KernelBuilder, operands: Value, target: Value, is_zeros: Value) -> None:
    part = k.parameters["part"]
    first, last, begin, end = _rows(k)
    number = k.add(k.add(operands, _leaf(k, "result")), k.mul(part, _leaf(k, "result_step")))
    result = k.gep(k.gep(_array(k, target, number), k.mul(part, _leaf(k, "target_step"))), begin)
    source_pitch, target_pitch, count = _leaf(k, "source_pitch"), _leaf(k, "target_pitch"), k.sub(end, begin)

    def clear() -> None:
        with k.loop(first, last) as rows:
            k.memset(k.gep(result, k.mul(rows.index, target_pitch)), 0, count)

    def copy() -> None:
        number = k.add(_leaf(k, "operand"), k.mul(target, _leaf(k, "operand_step")))
        source = k.gep(k.gep(_array(k, part, number), k.mul(target, _leaf(k, "source_step"))), begin)
        with k.loop(first, last) as rows:
            place = k.gep(result, k.mul(rows.index, target_pitch))
            k.memcpy(place, k.gep(source, k.mul(rows.index, source_pitch)), count)

    k.if_else(is_zeros, clear, copy)


def _emit_reduce(module: Module) -> None:
    """Folds one block of all operands: for the part'th member, or for the first one, from whom all others get it."""
    with KernelBuilder(module, "exchange_reduce", _BLOCK, I32, "internal") as k:
        group = get(k, k.parameters["meeting"], Meeting, "group")
        table = get(k, k.parameters["member"], Member, "scratch")
        size, part = get(k, group, GroupRecord, "size"), k.parameters["part"]
        to_all = not_zero(k, _leaf(k, "to_all"))
        first, last, begin, end = _rows(k)
        width = _leaf(k, "element_bytes")
        bounds = [k.sdiv(begin, width), k.sdiv(end, width)]
        result = k.add(get(k, group, GroupRecord, "operands"), _leaf(k, "result"))
        k.store(table, k.parameters["context"])
        with k.loop(first, last) as rows:
            row = rows.index
            offset = k.add(k.mul(part, _leaf(k, "source_step")), k.mul(row, _leaf(k, "source_pitch")))
            with k.loop(0, size) as sources:
                operand = k.gep(_array(k, sources.index, _leaf(k, "operand")), offset)
                k.store(k.gep(table, k.add(sources.index, 1), I64.bytes), operand)
            target = k.select(to_all, k.const(I64, 0), part)
            place = k.gep(_array(k, target, result), k.mul(row, _leaf(k, "target_pitch")))
            k.store(k.gep(table, k.add(size, 1), I64.bytes), place)
            status = k.call_value(_leaf(k, "combine"), [table, size, *bounds], I32)
            with k.if_(not_zero(k, status)):
                k.ret(status)
            with k.loop(1, k.select(to_all, size, k.const(I64, 1))) as others:
                k.memcpy(k.gep(_array(k, others.index, result), begin), k.gep(place, begin), k.sub(end, begin))
        k.ret(k.const(I32, Status.OK))
