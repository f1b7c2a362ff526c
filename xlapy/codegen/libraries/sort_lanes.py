"""Short rows side by side: vectors of records, one of each row, go to memory, are sorted there, and come back.

    sort_lanes_32                 keys of 32 bits alone
    sort_lanes_32_position        and each with its position, which is the other result
    sort_lanes_32_moving          the same, but all operands are moved there

The network that sorts them is not stable; positions make all records different.
"""

from __future__ import annotations

from xlapy.codegen.ir import I32, I64, IRType, Module, Value
from xlapy.codegen.kernels.sort_records import Column, Records
from xlapy.codegen.libraries.sort_keys import KeyCode, restore_merged
from xlapy.codegen.libraries.sort_layouts import Rows, in_layout
from xlapy.codegen.libraries.sort_moves import MOVE_LANES
from xlapy.codegen.libraries.sort_network import Lanes
from xlapy.codegen.libraries.sort_problem import row_bases, sort_library
from xlapy.codegen.libraries.sort_rows import key_result
from xlapy.codegen.target import Target
from xlapy.hlo.sort_plan import Payload, lanes_of
from xlapy_runtime.records import Record


class LanesKind(Record):
    """What one library sorts."""

    key: IRType
    payload: Payload
    moves: bool = False

    @property
    def name(self) -> str:
        ending = "" if self.payload is Payload.NOTHING else "_moving" if self.moves else "_position"
        return f"sort_lanes_{self.key.bits}{ending}"

    @property
    def records(self) -> Records:
        word = self.key if self.payload is Payload.NOTHING else I64
        return Records(word.with_lanes(lanes_of(word.bytes)), self.payload)


def emit_lanes(kind: LanesKind, target: Target) -> Module:
    return sort_library(kind.name, target, lambda problem: _Lanes(kind, KeyCode(problem, kind.key)).sort)


class _Lanes(Record):
    kind: LanesKind
    code: KeyCode

    @property
    def _count(self) -> int:
        return self.kind.records.type.lanes

    def sort(self, group: Value, memory: Value) -> None:
        """Sorts the rows of a group; the last one may overlap the one before it."""
        problem, kind = self.code.problem, self.kind
        k = problem.k
        number = k.smin(k.mul(group, self._count), k.sub(problem["rows"], self._count))
        lanes = Lanes(memory, kind.records.type, problem["length"], problem["top"])
        merged = self.code.new_merged()

        def encode(rows: Rows) -> None:
            self._encode(rows, lanes, merged)

        in_layout(problem, problem["source_layout"], number, self._count, encode)
        lanes.sort(k)
        if kind.moves:
            k.call(MOVE_LANES, [k.parameters["table"], number, memory])
            return
        in_layout(problem, problem["result_layout"], number, self._count, lambda rows: self._decode(rows, lanes))
        if kind.payload is Payload.NOTHING:
            with self.code.where_merged(merged), k.loop(0, self._count) as loop:
                base, kept_base = row_bases(problem, k.add(number, loop.index))
                source = Column(problem.operand(problem["key"]), kind.key.bytes, base, problem["stride"])
                restore_merged(self.code, source, key_result(problem, kind.key, kept_base))

    def _encode(self, rows: Rows, lanes: Lanes, merged: Value) -> None:
        """Writes the records."""
        code, problem, block = self.code, self.code.problem, rows.block
        k, length = problem.k, problem["length"]
        source = rows.source(problem.operand(problem["key"]), code.type.bytes)
        with k.loop(0, length, block) as loop:
            start = k.smin(loop.index, k.sub(length, block))

            def use(offset: int, key: Value, start: Value = start) -> None:
                position = k.add(start, offset)
                payload = position if self.kind.payload is Payload.POSITION else None
                lanes.store(k, position, self.kind.records.pack(k, key, payload))

            code.encode_all(source.load_block(k, start, block), use, merged)

    def _decode(self, rows: Rows, lanes: Lanes) -> None:
        """Writes the results from sorted records."""
        problem, code, records, block = self.code.problem, self.code, self.kind.records, rows.block
        k = problem.k
        keys = rows.result(problem.result(problem["key"]), code.type.bytes)
        has_positions = self.kind.payload is Payload.POSITION
        with k.loop(0, problem["kept"], block) as loop:
            start = k.smin(loop.index, k.sub(problem["kept"], block))
            ordered = [lanes.load(k, k.add(start, offset)) for offset in range(block)]
            keys.store_block(k, start, [code.decode(k.trunc(records.key(k, record), code.type)) for record in ordered])
            if has_positions:
                positions = rows.result(problem.result(k.sub(1, problem["key"])), I32.bytes)
                positions.store_block(k, start, [k.trunc(records.payload_of(k, record), I32) for record in ordered])
