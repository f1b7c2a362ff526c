"""Fourier transforms of any length, along one dimension of an array.

    void fft_f32_run(parallel, operand, result, memory, table, numbers)

`parallel` is the thread pool's function; `numbers` are those of a pass and its steps (`fft_record`), `table` holds real
numbers that steps refer to, `memory` has room for all tasks. A unit is one transform whose elements are next to each
other, or several that lie side by side; it goes step by step through the memory of its task, which stays in cache.

The library only knows how to take a step. Which ones a length wants, and for what kind of transform, is composed when
a program is compiled (`fourier_steps`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from xlapy.codegen.ir import F32, F64, I64, PTR, IRType, KernelBuilder, Module, Value
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.libraries import Library
from xlapy.codegen.libraries.fft_copies import emit_clear, emit_copy, emit_times, emit_times_rows, emit_turn
from xlapy.codegen.libraries.fft_halves import emit_join, emit_join_rows, emit_split, emit_split_rows
from xlapy.codegen.libraries.fft_record import (
    END_RADICES,
    PAIRED_RADICES,
    PASS_NUMBERS,
    RADICES,
    SCRATCH,
    STEP_NUMBERS,
    step_kinds,
)
from xlapy.codegen.libraries.fft_stages import (
    emit_first,
    emit_first_row,
    emit_last,
    emit_middle,
    emit_paired,
    emit_short,
)
from xlapy.codegen.libraries.fft_step import StepEmitter
from xlapy.codegen.libraries.gemm_record import Record
from xlapy.codegen.target import Target

_ARGUMENTS = Record(operand=PTR, result=PTR, memory=PTR, table=PTR, numbers=PTR)

_EMITTERS: dict[str, Callable[[StepEmitter], None]] = {
    **{f"first{radix}": partial(emit_first, radix=radix) for radix in END_RADICES},
    **{f"first_row{radix}": partial(emit_first_row, radix=radix) for radix in END_RADICES},
    **{f"last{radix}": partial(emit_last, radix=radix) for radix in END_RADICES},
    **{f"middle{radix}": partial(emit_middle, radix=radix) for radix in RADICES},
    **{f"paired{radix}": partial(emit_paired, radix=radix) for radix in PAIRED_RADICES},
    **{f"short{radix}": partial(emit_short, radix=radix) for radix in RADICES},
    "copy": partial(emit_copy, source_parts=2, target_parts=2),
    "turn": emit_turn,
    "copy_in": partial(emit_copy, source_parts=1, target_parts=2),
    "copy_out": partial(emit_copy, source_parts=2, target_parts=1),
    "clear": emit_clear,
    "times": emit_times,
    "times_rows": emit_times_rows,
    "split": emit_split,
    "split_rows": emit_split_rows,
    "join": emit_join,
    "join_rows": emit_join_rows,
}


def emit_fft(type: IRType, kind: str, target: Target) -> Module:
    module = Module.of(target)
    names = step_kinds(target)
    for name in names:
        emitter = StepEmitter(module, type, kind, name, target)
        with emitter.k:
            _EMITTERS[name](emitter)
    functions = ", ".join(f"ptr @fft_{kind}_{name}" for name in names)
    module.define(f"fft_{kind}_steps", f"@fft_{kind}_steps = internal constant [{len(names)} x ptr] [{functions}]")
    attributes = f"nounwind {target.function_attributes}".rstrip()
    _emit_units(module, type, kind, attributes)
    _emit_run(module, kind, attributes)
    return module


def _library(kind: str, type: IRType) -> Library:
    return Library(f"fft_{kind}", (f"fft_{kind}_run",), partial(emit_fft, type, kind), most_parts=4)


FFT_LIBRARIES = {kind: _library(kind, type) for kind, type in (("f32", F32), ("f64", F64))}
"""By the type of real and imaginary parts."""


def _number(k: KernelBuilder, numbers: Value, name: str) -> Value:
    return k.load(k.gep(numbers, PASS_NUMBERS.index(name), 8), I64, hoistable=True)


def _emit_run(module: Module, kind: str, attributes: str) -> None:
    """All units, shared out if they are more than one task."""
    names = ("parallel", "operand", "result", "memory", "table", "numbers")
    with KernelBuilder(module, f"fft_{kind}_run", [(name, PTR) for name in names], None, "", attributes) as k:
        parallel, *arguments = k.parameters.values()
        record = _ARGUMENTS.new(k)
        record.set(**dict(zip(names[1:], arguments, strict=True)))
        units, grain = (_number(k, k.parameters["numbers"], name) for name in ("units", "grain"))
        k.if_else(
            k.compare("lt", grain, units),
            lambda: k.call(parallel, [k.function_pointer(f"fft_{kind}_units"), record.place, units, grain]),
            lambda: k.call(f"fft_{kind}_units", [record.place, k.const(I64, 0), units]),
        )


def _emit_units(module: Module, type: IRType, kind: str, attributes: str) -> None:
    """Units [begin, end), of one task."""
    parameters = [("arguments", PTR), ("begin", I64), ("end", I64)]
    with KernelBuilder(module, f"fft_{kind}_units", parameters, None, "internal", attributes) as k:
        record = _ARGUMENTS.at(k, k.parameters["arguments"])
        begin, end = k.parameters["begin"], k.parameters["end"]
        operand, result, table, numbers = (record[name] for name in ("operand", "result", "table", "numbers"))

        def number(name: str) -> Value:
            return _number(k, numbers, name)

        task = k.mul(k.udiv(begin, number("grain")), number("task_memory"))
        columns, blocks = number("columns"), number("blocks")
        places = k.alloca(PTR, SCRATCH + 1)
        k.store(k.gep(places, SCRATCH, PTR.bytes), k.gep(record["memory"], task, type.bytes))
        with k.loop(begin, end) as units:
            group, first, width = _columns_of(k, units.index, columns, blocks)
            for place, (name, array) in enumerate((("operand", operand), ("result", result))):
                moved = k.mul(group, number(f"{name}_group")), k.mul(first, number(f"{name}_column"))
                k.store(k.gep(places, place, PTR.bytes), k.gep(array, k.add(*moved), type.bytes))
            coming = k.add(units.index, number("ahead"))
            group, first, _ = _columns_of(k, coming, columns, blocks)
            distance = k.add(k.mul(group, number("operand_group")), k.mul(first, number("operand_column")))
            unit = _Unit(places, table, width, k.gep(operand, distance, type.bytes))
            _take_rounds(_Interpreter(k, type, kind, numbers), unit)
        with k.if_(k.compare("ne", number("past_caches"), 0)):
            k.fence()


def _columns_of(k: KernelBuilder, unit: Value, columns: Value, blocks: Value) -> list[Value]:
    """The group of a unit, its first column and how many it has. Divisions take as long as a stage of a short row."""

    def cut() -> list[Value]:
        group = k.udiv(unit, blocks)
        block = k.sub(unit, k.mul(group, blocks))
        first = k.udiv(k.mul(block, columns), blocks)
        return [group, first, k.sub(k.udiv(k.mul(k.add(block, 1), columns), blocks), first)]

    return k.if_else(k.compare("eq", blocks, 1), lambda: [unit, k.const(I64, 0), columns], cut)


class _Unit(NamedTuple):
    """What the steps of a unit share."""

    places: Value  # where the arrays begin, of the unit or of the task
    table: Value
    width: Value  # columns
    coming: Value  # the operand of a unit to come


class _Interpreter(NamedTuple):
    """What reads the numbers of a pass and its steps."""

    k: KernelBuilder
    type: IRType
    kind: str
    numbers: Value

    def of_pass(self, name: str) -> Value:
        return _number(self.k, self.numbers, name)

    def of_step(self, step: Value, name: str) -> Value:
        return self.k.load(self.k.gep(step, STEP_NUMBERS.index(name), 8), I64)


def _take_rounds(i: _Interpreter, unit: _Unit) -> None:
    """All steps, and fetches rows of the unit to come meanwhile. Most rounds have one part, which needs no arithmetic:
    3 % of the time of 256 numbers."""
    k = i.k
    begin = [k.gep(i.numbers, len(PASS_NUMBERS), 8), k.const(I64, 0)]
    with k.loop(0, i.of_pass("rounds"), carry=begin) as rounds:
        first, fetched = rounds.values
        together, parts = i.of_step(first, "together"), i.of_step(first, "parts")

        def take_all(part: Value | None, fetched: Value) -> Value:
            with k.loop(0, together, carry=[fetched], runs=True) as steps:
                steps.next = [_fetch_rows(i, unit.coming, steps.values[0])]
                _take_step(i, k.gep(first, steps.index, 8 * len(STEP_NUMBERS)), part, unit)
            return steps.results[0]

        def take_parts() -> list[Value]:
            with k.loop(0, parts, carry=[fetched], runs=True) as loop:
                loop.next = [take_all(loop.index, loop.values[0])]
            return loop.results

        (end,) = k.if_else(k.compare("eq", parts, 1), lambda: [take_all(None, fetched)], take_parts)
        rounds.next = [k.gep(first, together, 8 * len(STEP_NUMBERS)), end]


def _fetch_rows(i: _Interpreter, place: Value, begin: Value) -> Value:
    """Starts to fetch the rows of a unit's operand that are fetched with a step, from `begin` on: arithmetic covers the
    time it takes. Returns where they end."""
    k, size = i.k, i.type.bytes
    end = k.smin(k.add(begin, i.of_pass("fetched_with_step")), i.of_pass("fetched_rows"))
    with k.loop(begin, end) as loop, k.loop(0, i.of_pass("fetched_bytes"), CACHE_LINE) as lines:
        row = k.gep(place, k.mul(loop.index, i.of_pass("fetched_pitch")), size)
        k.prefetch(k.gep(row, lines.index), 1, level=2)
    return end


def _take_step(i: _Interpreter, step: Value, part: Value | None, unit: _Unit) -> None:
    """Takes a step for a part of the unit, or for all of it."""
    k, size = i.k, i.type.bytes

    def moved(place: Value, name: str, size: int = size) -> Value:
        return place if part is None else k.gep(place, k.mul(part, i.of_step(step, f"{name}_part")), size)

    def place(side: str) -> Value:
        array = k.load(k.gep(unit.places, i.of_step(step, side), PTR.bytes), PTR)
        return moved(k.gep(array, i.of_step(step, f"{side}_offset"), size), side)

    steps = k.function_pointer(f"fft_{i.kind}_steps")
    function = k.load(k.gep(steps, i.of_step(step, "kind"), PTR.bytes), PTR)
    table, coming = moved(unit.table, "roots"), moved(unit.coming, "fetched", 1)
    k.call(function, [place("source"), place("target"), table, step, unit.width, coming])
