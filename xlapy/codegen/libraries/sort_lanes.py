"""Short rows side by side: vectors of records, one of each row, go to memory, are sorted there, and come back.

sort_lanes_32                 keys of 32 bits alone
sort_lanes_32_position        and each with its position, which is the other result
sort_lanes_32_moving          the same, but all operands are moved there
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xlapy.codegen.ir import I1, I32, I64, IRType, KernelBuilder, Module, Value
from xlapy.codegen.kernels.sort_records import Column, Records
from xlapy.codegen.libraries.sort_keys import KeyCode, restore_merged
from xlapy.codegen.libraries.sort_layouts import Layout, Rows, in_layout
from xlapy.codegen.libraries.sort_moves import MOVE_LANES
from xlapy.codegen.libraries.sort_network import Lanes
from xlapy.codegen.libraries.sort_problem import Problem, emit_groups, row_bases, sort_function
from xlapy.codegen.libraries.sort_rows import key_result
from xlapy.codegen.target import Target
from xlapy.hlo.sort_plan import Payload, lanes_of


@dataclass(frozen=True, slots=True)
class LanesKind:
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


def emit_lanes(kind: LanesKind, target: Target) -> str:
    module = Module.of(target)
    with sort_function(module, kind.name, target) as problem:
        lanes = _Lanes(kind, problem)
        emit_groups(problem, lanes.sort)
    return module.text()


@dataclass(frozen=True, slots=True)
class _Lanes:
    kind: LanesKind
    problem: Problem

    @property
    def _k(self) -> KernelBuilder:
        return self.problem.k

    @property
    def _code(self) -> KeyCode:
        return KeyCode(self.problem, self.kind.key)

    @property
    def _count(self) -> int:
        return self.kind.records.type.lanes

    def sort(self, group: Value, memory: Value) -> None:
        """Sorts the rows of a group; the last one may overlap the one before it."""
        k, problem, kind = self._k, self.problem, self.kind
        number = k.smin(k.mul(group, self._count), k.sub(problem["rows"], self._count))
        lanes = Lanes(memory, kind.records.type, problem["length"], problem["top"])

        def encode(rows: Rows) -> Value:
            return self._encode(rows, lanes)

        (has_merged,) = in_layout(problem, problem["source_layout"], number, self._count, encode)
        lanes.sort(k)
        if kind.moves:
            k.call(MOVE_LANES, [k.parameters["table"], number, memory])
            return
        in_layout(problem, problem["result_layout"], number, self._count, lambda rows: self._decode(rows, lanes))
        if kind.payload is Payload.NOTHING:
            with k.if_(k.any_lane(has_merged)), k.loop(0, self._count) as loop:
                base, kept_base = row_bases(problem, k.add(number, loop.index))
                source = Column(problem.operand(problem["key"]), kind.key.bytes, base, problem["stride"])
                restore_merged(self._code, source, key_result(problem, kind.key, kept_base))

    def _encode(self, rows: Rows, lanes: Lanes) -> Value:
        """Writes the records; returns the lanes in which a key does not tell its element."""
        k, problem = self._k, self.problem
        source = Column(
            problem.operand(problem["key"]),
            self.kind.key.bytes,
            rows.base,
            problem["stride"],
            rows.layout is Layout.NEIGHBOURS,
        )
        block = self._block(rows)
        with k.loop(0, problem["length"], block, carry=[k.const(I1.with_lanes(self._count), 0)]) as loop:
            start = k.smin(loop.index, k.sub(problem["length"], block))
            has_merged = loop.values[0]
            for offset, word in enumerate(source.load_block(k, start, block)):
                position = k.add(start, offset)
                canonical = self._code.canonical(word)
                payload = position if self.kind.payload is Payload.POSITION else None
                lanes.store(k, position, self.kind.records.pack(k, self._code.encode(canonical), payload))
                has_merged = k.or_(has_merged, k.compare("ne", word, canonical))
            loop.next = [has_merged]
        return loop.results[0]

    def _decode(self, rows: Rows, lanes: Lanes) -> None:
        """Writes the results from sorted records."""
        k, problem, block = self._k, self.problem, self._block(rows)
        with k.loop(0, problem["kept"], block) as loop:
            start = k.smin(loop.index, k.sub(problem["kept"], block))
            self._decode_block(rows, start, [lanes.load(k, k.add(start, offset)) for offset in range(block)])

    def _decode_block(self, rows: Rows, start: Value, ordered: Sequence[Value]) -> None:
        k, problem, code, records = self._k, self.problem, self._code, self.kind.records
        stride, neighbours = problem["stride"], rows.layout is Layout.NEIGHBOURS
        keys = Column(problem.result(problem["key"]), code.type.bytes, rows.kept_base, stride, neighbours)
        keys.store_block(k, start, [code.decode(k.trunc(records.key(k, record), code.type)) for record in ordered])
        if self.kind.payload is not Payload.NOTHING:
            other = problem.result(k.sub(1, problem["key"]))
            positions = Column(other, I32.bytes, rows.kept_base, stride, neighbours)
            positions.store_block(k, start, [k.trunc(records.payload_of(k, record), I32) for record in ordered])

    def _block(self, rows: Rows) -> int:
        """How many positions to read or write at once."""
        return self._count if rows.layout is Layout.BLOCKS else 1
