"""Rows one by one: their records go to memory, are sorted there, by digits if they are many, and come back as results.

sort_rows_32                  keys of 32 bits alone
sort_rows_32_with_16          and each with an element of 16 bits of the other operand
sort_rows_32_position         and each with its position, which is the other result
sort_rows_32_moving           the same, but all operands are moved there
"""

from __future__ import annotations

from dataclasses import dataclass

from xlapy.codegen.ir import I1, I32, I64, IRType, KernelBuilder, Module, Value
from xlapy.codegen.kernels.sort_algorithms import Histograms, emit_merge_sort, emit_radix_sort
from xlapy.codegen.kernels.sort_records import Column, Records, word_type
from xlapy.codegen.libraries.sort_keys import KeyCode, restore_merged
from xlapy.codegen.libraries.sort_moves import MOVE_ROW
from xlapy.codegen.libraries.sort_problem import Problem, emit_groups, row_bases, sort_function
from xlapy.codegen.stopping import listening_loop
from xlapy.codegen.target import Target
from xlapy.hlo.sort_plan import Payload


@dataclass(frozen=True, slots=True)
class RowsKind:
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


def emit_rows(kind: RowsKind, target: Target) -> str:
    module = Module.of(target)
    with sort_function(module, kind.name, target) as problem:
        rows = _Rows(kind, problem)
        emit_groups(problem, rows.sort)
    return module.text()


@dataclass(frozen=True, slots=True)
class _Rows:
    kind: RowsKind
    problem: Problem

    @property
    def _k(self) -> KernelBuilder:
        return self.problem.k

    @property
    def _code(self) -> KeyCode:
        return KeyCode(self.problem, self.kind.key)

    def sort(self, number: Value, memory: Value) -> None:
        """Sorts the row of that number."""
        k, problem, records = self._k, self.problem, self.kind.records
        base, kept_base = row_bases(problem, number)
        second = k.gep(memory, problem["length"], records.bytes)

        def by_digits() -> list[Value]:
            histograms = Histograms.zeroed(k, self.kind.key.bytes)
            has_merged = self._encode(base, memory, histograms)
            return [emit_radix_sort(k, records, memory, second, problem["length"], histograms), has_merged]

        def by_merging() -> list[Value]:
            has_merged = self._encode(base, memory, None)
            less = records.less
            ordered = emit_merge_sort(k, records, memory, second, problem["length"], lambda a, b: less(k, a, b))
            return [ordered, has_merged]

        ordered, has_merged = k.if_else(k.compare("ne", problem["is_long"], 0), by_digits, by_merging)
        if self.kind.moves:
            k.call(MOVE_ROW, [k.parameters["table"], base, kept_base, ordered, k.const(I64, records.bytes)])
            return
        result = key_result(problem, self.kind.key, kept_base)
        has_other = self.kind.payload is not Payload.NOTHING
        other = other_result(problem, self.kind.element, kept_base) if has_other else None
        decode_row(self._code, records, ordered, result, other)
        if self.kind.payload is not Payload.POSITION:
            with k.if_(has_merged):
                restore_merged(self._code, self._source(base), result)

    def _source(self, base: Value) -> Column:
        problem = self.problem
        return Column(problem.operand(problem["key"]), self.kind.key.bytes, base, problem["stride"])

    def _other_source(self, base: Value) -> Column:
        k, problem = self._k, self.problem
        other = problem.operand(k.sub(1, problem["key"]))
        return Column(other, self.kind.element.bytes, base, problem["stride"])

    def _encode(self, base: Value, memory: Value, histograms: Histograms | None) -> Value:
        """Writes the records of a row; returns whether a key does not tell its element."""
        k, records, code = self._k, self.kind.records, self._code
        source = self._source(base)
        with listening_loop(k, 0, self.problem["length"], carry=[k.const(I1, 0)]) as loop:
            word = source.load(k, loop.index)
            (canonical,), differs = code.canonical([word])
            key = code.encode(canonical)
            payload = None
            if self.kind.payload is Payload.POSITION:
                payload = loop.index
            elif self.kind.payload is Payload.ELEMENT:
                payload = k.zext(self._other_source(base).load(k, loop.index), I64)
            records.store(k, memory, loop.index, records.pack(k, key, payload))
            if histograms is not None:
                histograms.count(k, key)
            loop.next = [k.or_(loop.values[0], differs)]
        return loop.results[0]


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
