"""Moves the elements of all operands to where the positions in sorted records say, whatever their type.

    void sort_moves_row(table, base, kept_base, records, record_bytes)     of one row
    void sort_moves_lanes(table, number, records)                         of a group of rows side by side

Elements are moved as words; those of two words half by half.
"""

from __future__ import annotations

from collections.abc import Callable

from xlapy.codegen.ir import I8, I16, I32, I64, PTR, IRType, KernelBuilder, Module, Value
from xlapy.codegen.kernels.sort_records import PAYLOAD_BITS
from xlapy.codegen.libraries.sort_layouts import Layout, Rows, in_layout
from xlapy.codegen.libraries.sort_problem import Problem, function_attributes
from xlapy.codegen.stopping import define_look, listening_loop
from xlapy.codegen.target import Target
from xlapy_runtime.records import Record

MOVES = "sort_moves"
MOVE_ROW, MOVE_LANES = f"{MOVES}_row", f"{MOVES}_lanes"

_WORDS = (I8, I16, I32, I64)
_LANES = 8  # rows side by side, whose records are words with positions


def emit_moves(target: Target) -> Module:
    module = Module.of(target)
    attributes = function_attributes(target)
    define_look(module, target)
    parameters = [("table", PTR), ("base", I64), ("kept_base", I64), ("records", PTR), ("record_bytes", I64)]
    with KernelBuilder(module, MOVE_ROW, parameters, None, attributes=attributes) as k:
        problem = Problem(k, k.parameters["table"])
        k.parameters["context"] = problem.context
        k.leave = k.ret
        _each_half(problem, lambda half: _move_row(problem, half))
    parameters = [("table", PTR), ("number", I64), ("records", PTR)]
    with KernelBuilder(module, MOVE_LANES, parameters, None, attributes=attributes) as k:
        problem = Problem(k, k.parameters["table"])
        _each_half(problem, lambda half: _move_lanes(problem, half))
    return module


class _Half(Record):
    """Words of an operand and of its result, `bytes` apart: whole elements, or one half of each."""

    word: IRType
    source: Value
    result: Value
    bytes: Value


def _each_half(problem: Problem, move: Callable[[_Half], None]) -> None:
    """Writes `move` for words of each width; it runs for those of each operand."""
    k = problem.k
    with k.loop(0, problem["operands"]) as operands:
        source, result = problem.operand(operands.index), problem.result(operands.index)
        element = problem.element_bytes(operands.index)
        with k.loop(0, element, I64.bytes) as halves:
            addresses = [k.gep(pointer, halves.index) for pointer in (source, result)]

            def case(word: IRType) -> Callable[[], None]:
                return lambda: move(_Half(word, addresses[0], addresses[1], element))

            k.switch(element, {word.bytes: case(word) for word in _WORDS[:-1]}, case(I64))


def _move_row(problem: Problem, half: _Half) -> None:
    k, stride = problem.k, problem["stride"]
    with listening_loop(k, 0, problem["kept"]) as loop:
        record = k.gep(k.parameters["records"], k.mul(loop.index, k.parameters["record_bytes"]))
        position = k.zext(k.load(record, I32), I64)
        place = k.add(k.mul(position, stride), k.parameters["base"])
        goal = k.add(k.mul(loop.index, stride), k.parameters["kept_base"])
        word = k.load(k.gep(half.source, k.mul(place, half.bytes)), half.word)
        k.store(k.gep(half.result, k.mul(goal, half.bytes)), word)


def _move_lanes(problem: Problem, half: _Half) -> None:
    """Gathers a word of each row at a time."""
    k = problem.k
    type = I64.with_lanes(_LANES)

    def position(number: Value) -> Value:
        record = k.load(k.gep(k.parameters["records"], number, type.bytes * type.lanes), type)
        return k.and_(record, (1 << PAYLOAD_BITS) - 1)

    def move(rows: Rows) -> None:
        source, result = rows.source(half.source, half.word.bytes), rows.result(half.result, half.word.bytes)
        with k.loop(0, problem["kept"], rows.block) as loop:
            start = k.smin(loop.index, k.sub(problem["kept"], rows.block))
            positions = [position(k.add(start, offset)) for offset in range(rows.block)]
            if rows.layout is Layout.ANY:
                place, goal = source.place(k, positions[0]), result.place(k, start)
                word = k.gather(half.source, k.mul(place, half.bytes), half.word, element_bytes=1)
                k.scatter(half.result, k.mul(goal, half.bytes), word, element_bytes=1)
            else:
                result.store_block(k, start, [source.load(k, place) for place in positions])

    is_whole = k.compare("le", half.bytes, I64.bytes)
    layout = k.select(is_whole, problem["result_layout"], int(Layout.ANY))
    in_layout(problem, layout, k.parameters["number"], _LANES, move)
