"""Rows one by one: their records go to memory, are sorted there, by digits if they are many, and come back as results.

    sort_rows_32                  keys of 32 bits alone
    sort_rows_32_with_16          and each with an element of 16 bits of the other operand
    sort_rows_32_position         and each with its position, which is the other result
    sort_rows_32_moving           the same, but all operands are moved there

Both ways of sorting are stable.
"""

from __future__ import annotations

from xlapy.codegen.ir import I32, I64, IRType, Module, Value
from xlapy.codegen.kernels.sort_algorithms import Histograms, emit_merge_sort, emit_radix_sort
from xlapy.codegen.kernels.sort_records import Column, Records, word_type
from xlapy.codegen.libraries.sort_keys import KeyCode, restore_merged
from xlapy.codegen.libraries.sort_moves import MOVE_ROW
from xlapy.codegen.libraries.sort_problem import Problem, row_bases, sort_library
from xlapy.codegen.stopping import listening_loop
from xlapy.codegen.target import Target
from xlapy.hlo.sort_plan import Payload
from xlapy_runtime.records import Record


class RowsKind(Record):
    """What one library sorts: `element` are the words of payloads that are elements."""

    key: IRType
    payload: Payload
    element: IRType = I32
    moves: bool = False

    @property
    def name(self) -> str:
        endings = {Payload.NOTHING: "", Payload.ELEMENT: f"_with_{self.element.bits}", Payload.POSITION: "_position"}
        return f"sort_rows_{self.key.bits}{'_moving' if self.moves else endings[self.payload]}"

    @property
    def records(self) -> Records:
        if self.payload is Payload.NOTHING:
            return Records(self.key, self.payload)
        widest = self.key.bytes if self.payload is Payload.POSITION else max(self.key.bytes, self.element.bytes)
        return Records(I64.with_lanes(2 if widest == I64.bytes else 1), self.payload)


def emit_rows(kind: RowsKind, target: Target) -> Module:
    return sort_library(kind.name, target, lambda problem: _Rows(kind, KeyCode(problem, kind.key)).sort)


class _Rows(Record):
    kind: RowsKind
    code: KeyCode

    def sort(self, number: Value, memory: Value) -> None:
        """Sorts the row of that number."""
        problem, records = self.code.problem, self.kind.records
        k = problem.k
        base, kept_base = row_bases(problem, number)
        second = k.gep(memory, problem["length"], records.bytes)
        merged = self.code.new_merged()

        def by_digits() -> Value:
            histograms = Histograms.zeroed(k, self.kind.key.bytes)
            self._encode(base, memory, merged, histograms)
            return emit_radix_sort(k, records, memory, second, problem["length"], histograms)

        def by_merging() -> Value:
            self._encode(base, memory, merged, None)
            less = records.less
            return emit_merge_sort(k, records, memory, second, problem["length"], lambda a, b: less(k, a, b))

        (ordered,) = k.if_else(k.compare("ne", problem["is_long"], 0), by_digits, by_merging)
        if self.kind.moves:
            k.call(MOVE_ROW, [k.parameters["table"], base, kept_base, ordered, k.const(I64, records.bytes)])
            return
        result = key_result(problem, self.kind.key, kept_base)
        has_other = self.kind.payload is not Payload.NOTHING
        other = other_result(problem, self.kind.element, kept_base) if has_other else None
        decode_row(self.code, records, ordered, result, other)
        if self.kind.payload is not Payload.POSITION:
            with self.code.where_merged(merged):
                restore_merged(self.code, self._source(base), result)

    def _source(self, base: Value) -> Column:
        problem = self.code.problem
        return Column(problem.operand(problem["key"]), self.kind.key.bytes, base, problem["stride"])

    def _other_source(self, base: Value) -> Column:
        problem = self.code.problem
        other = problem.operand(problem.k.sub(1, problem["key"]))
        return Column(other, self.kind.element.bytes, base, problem["stride"])

    def _encode(self, base: Value, memory: Value, merged: Value, histograms: Histograms | None) -> None:
        """Writes the records of a row."""
        k, records, payload = self.code.problem.k, self.kind.records, self.kind.payload
        source = self._source(base)
        with listening_loop(k, 0, self.code.problem["length"]) as loop:
            word = source.load(k, loop.index)
            carried = None
            if payload is Payload.POSITION:
                carried = loop.index
            elif payload is Payload.ELEMENT:
                carried = k.zext(self._other_source(base).load(k, loop.index), I64)

            def use(number: int, key: Value, position: Value = loop.index, carried: Value | None = carried) -> None:
                records.store(k, memory, position, records.pack(k, key, carried))
                if histograms is not None:
                    histograms.count(k, key)

            self.code.encode_all([word], use, merged)


def key_result(problem: Problem, key: IRType, kept_base: Value) -> Column:
    """The row of the result that has the keys."""
    return Column(problem.result(problem["key"]), key.bytes, kept_base, problem["stride"])


def other_result(problem: Problem, word: IRType, kept_base: Value) -> Column:
    """The row of the result that has what comes with the keys."""
    number = problem.k.sub(1, problem["key"])
    return Column(problem.result(number), word.bytes, kept_base, problem["stride"])


def decode_row(code: KeyCode, records: Records, memory: Value, result: Column, other: Column | None) -> None:
    """Writes the results of a row from its sorted records."""
    k = code.problem.k
    with listening_loop(k, 0, code.problem["kept"]) as loop:
        record = records.load(k, memory, loop.index)
        result.store(k, loop.index, code.decode(k.trunc(records.key(k, record), code.type)))
        if other is not None:
            payload = k.trunc(records.payload_of(k, record), word_type(other.element_bytes))
            other.store(k, loop.index, payload)
