"""The few first records of a long row: most elements are compared with the last one that is kept, and dropped.

    room for candidates:   those kept so far | new ones, each less than the last of those kept
                           when there is no room for more, it is sorted, and the first are kept

Vectors of keys are compared at once, so that a row is read about as fast as memory allows; of n elements in any order
some k log(n / k) become candidates. Records hold their positions: of equal elements the earlier is the lesser.

To begin with, the least keys in each lane of the row's beginning say what is not among the first: there are as many
elements as lanes up to the last of these, and k of them up to the k-th.
"""

from __future__ import annotations

from functools import partial

from xlapy.codegen.ir import I32, I64, IRType, KernelBuilder, Module, Value
from xlapy.codegen.kernels.sort_algorithms import emit_merge_sort
from xlapy.codegen.kernels.sort_records import Column, Records
from xlapy.codegen.libraries.sort_keys import KeyCode
from xlapy.codegen.libraries.sort_problem import Problem, row_bases, sort_library
from xlapy.codegen.libraries.sort_rows import decode_row, key_result, other_result
from xlapy.codegen.stopping import look
from xlapy.codegen.target import Target
from xlapy.hlo.sort_plan import MOST_POSITIONS, SELECTION_LANES, Payload
from xlapy_runtime.records import Record

_STRETCH = 1 << 20
"""Elements between two looks whether the run was stopped."""

_SAMPLE = 1 << 12
"""Elements at the beginning of a row whose least keys are looked for first."""

_LAST = -1  # as an unsigned number: a record behind all others


def selection_name(key: IRType) -> str:
    return f"sort_selection_{key.bits}"


def emit_selection(key: IRType, target: Target) -> Module:
    """The library for keys of a width, which fit a record of one word with their positions."""
    records = Records(I64, Payload.POSITION)

    def select(code: KeyCode, number: Value, room: Value) -> None:
        problem = code.problem
        base, kept_base = row_bases(problem, number)
        row = Column(problem.operand(problem["key"]), key.bytes, base, 1)
        _Selection(problem, code, records, row, room).run()
        positions = other_result(problem, I32, kept_base)
        decode_row(code, records, room, key_result(problem, key, kept_base), positions)

    return sort_library(selection_name(key), target, lambda problem: partial(select, KeyCode(problem, key)))


class _Selection(Record):
    """Puts the first records of one row into `room`, in order."""

    problem: Problem
    code: KeyCode
    records: Records
    row: Column
    room: Value

    @property
    def _k(self) -> KernelBuilder:
        return self.problem.k

    def run(self) -> None:
        k, problem, records = self._k, self.problem, self.records
        kept, length = problem["kept"], problem["length"]
        whole = k.and_(length, -SELECTION_LANES)
        begin = k.const(I64, 0)
        (threshold,) = k.if_else(
            k.compare("le", kept, SELECTION_LANES),
            lambda: self._first_threshold(k.smin(whole, _SAMPLE)),
            lambda: k.const(I64, _LAST),
        )
        with k.loop(whole, length, carry=[k.const(I64, 0)]) as rest:
            rest.next = [self._add(rest.index, threshold, rest.values[0])]

        def sorted_room(count: Value) -> list[Value]:
            self._sort(count)
            return [records.load(k, self.room, k.sub(kept, 1)), kept]

        def fill_and_sort(values: list[Value]) -> list[Value]:
            look(k)
            position, threshold, count = values
            stretch = k.smin(k.add(position, _STRETCH), whole)
            position, count = self._fill(position, stretch, threshold, count)
            is_full = k.compare("gt", count, k.sub(problem["candidates"], SELECTION_LANES))
            ends = k.or_(is_full, k.compare("ge", position, whole))
            return [position, *k.if_else(ends, lambda: sorted_room(count), lambda: [threshold, count])]

        k.while_loop(
            lambda values: k.compare("lt", values[0], whole), fill_and_sort, [begin, threshold, rest.results[0]]
        )

    def _first_threshold(self, end: Value) -> Value:
        """A record behind those to be kept, found among the elements up to `end`, of which each lane has some."""
        k, lanes = self._k, SELECTION_LANES
        last = k.splat(k.const(self.code.type, _LAST), lanes)
        with k.loop(0, end, lanes, carry=[last]) as row:
            keys = self.code.encode(self.row.load_neighbours(k, row.index, lanes))
            row.next = [k.umin(row.values[0], keys)]
        with k.loop(0, self.problem["kept"], carry=[row.results[0], k.const(self.code.type, _LAST)]) as kept:
            least = k.horizontal(k.umin, kept.values[0])
            # Perhaps in several lanes, which are left out together: the threshold is a later one then.
            is_least = k.compare("eq", kept.values[0], k.splat(least, lanes))
            kept.next = [k.select(is_least, last, kept.values[0]), least]
        return self.records.pack(k, kept.results[1], k.const(I64, MOST_POSITIONS - 1))

    def _fill(self, position: Value, end: Value, threshold: Value, count: Value) -> tuple[Value, Value]:
        """Adds candidates from `position` on to `end`, or until a vector of them might find no room."""
        k, lanes = self._k, SELECTION_LANES
        last_key = k.splat(k.trunc(self.records.key(k, threshold), self.code.type), lanes)

        def goes_on(values: list[Value]) -> Value:
            has_room = k.compare("le", values[1], k.sub(self.problem["candidates"], lanes))
            return k.and_(k.compare("lt", values[0], end), has_room)

        def compare(values: list[Value]) -> list[Value]:
            position, count = values
            keys = self.code.encode(self.row.load_neighbours(k, position, lanes))
            is_near = k.any_lane(k.compare("le", keys, last_key, signed=False))
            (count,) = k.if_else(is_near, lambda: self._add_all(position, threshold, count), lambda: count)
            return [k.add(position, lanes), count]

        position, count = k.while_loop(goes_on, compare, [position, count])
        return position, count

    def _add_all(self, position: Value, threshold: Value, count: Value) -> Value:
        k = self._k
        with k.loop(0, SELECTION_LANES, carry=[count]) as loop:
            loop.next = [self._add(k.add(position, loop.index), threshold, loop.values[0])]
        return loop.results[0]

    def _add(self, position: Value, threshold: Value, count: Value) -> Value:
        """Writes the record of a position; it counts only if it comes before the threshold."""
        k, records = self._k, self.records
        record = records.pack(k, self.code.encode(self.row.load(k, position)), position)
        records.store(k, self.room, count, record)
        return k.add(count, k.zext(records.less(k, record, threshold), I64))

    def _sort(self, count: Value) -> None:
        """Sorts the candidates and leaves those to keep at the beginning of the room."""
        k, records = self._k, self.records
        second = k.gep(self.room, self.problem["candidates"], records.bytes)
        ordered = emit_merge_sort(k, records, self.room, second, count, lambda a, b: records.less(k, a, b))
        k.memmove(self.room, ordered, k.mul(self.problem["kept"], records.bytes))
