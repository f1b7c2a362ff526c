"""The few first records of a long row: most elements are compared with the last one that is kept, and dropped.

    room for candidates:   those kept so far | new ones, each less than the last of those kept
                           when there is no room for more, it is sorted, and the first are kept

Vectors of keys are compared at once, so that a row is read about as fast as memory allows; of n elements in any order
some k log(n / k) become candidates. Records hold their positions: of equal elements the earlier is the lesser.
"""

from __future__ import annotations

from xlapy.codegen.ir import I64, KernelBuilder, Value
from xlapy.codegen.kernels.sort_algorithms import emit_merge_sort
from xlapy.codegen.kernels.sort_records import Column, KeyCode, Records
from xlapy.codegen.stopping import look
from xlapy.hlo.sort_plan import SELECTION_LANES, SortPlan

_STRETCH = 1 << 20
"""Elements between two looks whether the run was stopped."""

_LAST = -1  # as an unsigned number: a record behind all others


def emit_selection(
    k: KernelBuilder, plan: SortPlan, code: KeyCode, records: Records, row: Column, room: Value
) -> Value:
    """Puts the first `plan.kept` records of a row into `room`, in order; returns where they are."""
    emitter = _Selection(k, plan, code, records, row, room)
    whole = plan.length // SELECTION_LANES * SELECTION_LANES
    count = k.const(I64, 0)
    for position in range(whole, plan.length):
        count = emitter.add(k.const(I64, position), k.const(I64, _LAST), count)
    begin, threshold = k.const(I64, 0), k.const(I64, _LAST)

    def sorted_room(count: Value) -> list[Value]:
        emitter.sort(count)
        return [records.load(k, room, plan.kept - 1), k.const(I64, plan.kept)]

    def fill_and_sort(values: list[Value]) -> list[Value]:
        look(k)
        position, threshold, count = values
        stretch = k.smin(k.add(position, _STRETCH), whole)
        position, count = emitter.fill(position, stretch, threshold, count)
        is_full = k.compare("gt", count, plan.candidates - SELECTION_LANES)
        ends = k.or_(is_full, k.compare("ge", position, whole))
        return [position, *k.if_else(ends, lambda: sorted_room(count), lambda: [threshold, count])]

    k.while_loop(lambda values: k.compare("lt", values[0], whole), fill_and_sort, [begin, threshold, count])
    return room


class _Selection:
    def __init__(
        self, k: KernelBuilder, plan: SortPlan, code: KeyCode, records: Records, row: Column, room: Value
    ) -> None:
        self._k = k
        self._plan = plan
        self._code = code
        self._records = records
        self._row = row
        self._room = room

    def fill(self, position: Value, end: Value, threshold: Value, count: Value) -> tuple[Value, Value]:
        """Adds candidates from `position` on to `end`, or until a vector of them might find no room."""
        k, lanes = self._k, SELECTION_LANES
        last_key = k.splat(k.trunc(self._records.key(k, threshold), self._code.type), lanes)

        def goes_on(values: list[Value]) -> Value:
            has_room = k.compare("le", values[1], self._plan.candidates - lanes)
            return k.and_(k.compare("lt", values[0], end), has_room)

        def compare(values: list[Value]) -> list[Value]:
            position, count = values
            words = self._row.load_neighbours(k, position, lanes)
            keys = self._code.encode(k, self._code.canonical(k, words))
            is_near = k.any_lane(k.compare("le", keys, last_key, signed=False))
            (count,) = k.if_else(is_near, lambda: self._add_all(position, threshold, count), lambda: count)
            return [k.add(position, lanes), count]

        position, count = k.while_loop(goes_on, compare, [position, count])
        return position, count

    def _add_all(self, position: Value, threshold: Value, count: Value) -> Value:
        k = self._k
        with k.loop(0, SELECTION_LANES, carry=[count]) as loop:
            loop.next = [self.add(k.add(position, loop.index), threshold, loop.values[0])]
        return loop.results[0]

    def add(self, position: Value, threshold: Value, count: Value) -> Value:
        """Writes the record of a position; it counts only if it comes before the threshold."""
        k, records = self._k, self._records
        key = self._code.encode(k, self._code.canonical(k, self._row.load(k, position)))
        record = records.pack(k, key, position)
        records.store(k, self._room, count, record)
        return k.add(count, k.zext(records.less(k, record, threshold), I64))

    def sort(self, count: Value) -> None:
        """Sorts the candidates and leaves those to keep at the beginning of the room."""
        k, records, size = self._k, self._records, self._plan.candidates
        with k.loop(count, size) as loop:
            records.store(k, self._room, loop.index, k.const(I64, _LAST))
        second = k.gep(self._room, size * records.bytes)
        ordered = emit_merge_sort(
            k, records, self._room, second, size, lambda left, right: records.less(k, left, right)
        )
        k.memmove(self._room, ordered, self._plan.kept * records.bytes)
