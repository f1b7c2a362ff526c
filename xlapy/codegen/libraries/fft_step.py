"""What the emitters of all steps share: a step's numbers, and how vectors of complex numbers are read and written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xlapy.codegen.ir import F64, I32, I64, PTR, IRType, KernelBuilder, Module, Operand, Value
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.libraries.fft_record import FETCHED_LINES, STEP_NUMBERS
from xlapy.codegen.registers import Pair
from xlapy.codegen.target import Target

PARAMETERS = [("source", PTR), ("target", PTR), ("table", PTR), ("numbers", PTR), ("width", I64), ("coming", PTR)]
"""`width` is the number of columns of the unit at hand, `coming` where the operand of one to come begins."""


class StepEmitter:
    """One step while it is written, in a function of its own."""

    def __init__(self, module: Module, type: IRType, kind: str, name: str, target: Target) -> None:
        attributes = f"nounwind {target.function_attributes}".rstrip()
        self.k = KernelBuilder(module, f"fft_{kind}_{name}", PARAMETERS, None, attributes=attributes)
        self.type = type
        self.lanes = target.lanes(type.bits)

    @property
    def vector(self) -> IRType:
        return self.type.with_lanes(self.lanes)

    @property
    def source(self) -> Value:
        return self.k.parameters["source"]

    @property
    def target(self) -> Value:
        return self.k.parameters["target"]

    @property
    def roots(self) -> Value:
        """Where the step's numbers begin in the table."""
        return self.moved(self.k.parameters["table"], self["roots"])

    def __getitem__(self, name: str) -> Value:
        place = self.k.gep(self.k.parameters["numbers"], STEP_NUMBERS.index(name), 8)
        return self.k.load(place, I64, hoistable=True)

    @property
    def inner(self) -> Value:
        return self.size("inner")

    def size(self, name: str) -> Value:
        """A number that counts columns if it is 0."""
        size = self[name]
        return self.k.select(self.k.compare("eq", size, 0), self.k.parameters["width"], size)

    def factor(self, name: str, lanes: int) -> Value:
        number = self.k.bitcast(self[name], F64)
        return self.k.splat(number if self.type == F64 else self.k.fptrunc(number, self.type), lanes)

    def moved(self, place: Value, distance: Operand) -> Value:
        return self.k.gep(place, distance, self.type.bytes)

    def clamped(self, index: Value, size: Value) -> Value:
        """Where a vector of positions begins: the last one overlaps the one before, unless there is only one, which
        goes beyond the end."""
        return self.k.smax(self.k.smin(index, self.k.sub(size, self.lanes)), 0)

    def vectors_in(self, size: Value) -> Value:
        return self.k.udiv(self.k.add(size, self.lanes - 1), self.lanes)

    def fetch(self, number: Value) -> None:
        """Starts to fetch what vector `number` of the step fetches of an operand to come. Without a loop, which would
        hold up what is around it: a step that fetches nothing names the same lines again and again."""
        k, bytes = self.k, self["fetched_bytes"]
        begin = k.gep(k.parameters["coming"], k.add(self["fetched"], k.mul(number, bytes)))
        for line in range(FETCHED_LINES):
            k.prefetch(k.gep(begin, line * CACHE_LINE), 1, level=2)

    # -- vectors of complex numbers ------------------------------------------------------------------------------------

    def load_planes(self, place: Value, plane: Value, in_use: Value | None = None) -> Pair:
        """A vector, of which all lanes that are not `in_use` are zero, if that is given."""

        def load(part: Value) -> Value:
            return self.k.load(part, self.vector) if in_use is None else self.k.masked_load(part, self.vector, in_use)

        return Pair(load(place), load(self.moved(place, plane)))

    def store_planes(self, place: Value, plane: Value, value: Pair) -> None:
        self.k.store(place, value.re)
        self.k.store(self.moved(place, plane), value.im)

    def load_pairs(self, place: Value) -> Pair:
        """As many as a vector has lanes, which may be one."""
        k, lanes = self.k, self.lanes
        whole = k.load(place, self.type.with_lanes(2 * lanes))
        re, im = (k.shuffle(whole, None, range(part, 2 * lanes, 2)) for part in range(2))
        return Pair(re, im)

    def load_reversed_pairs(self, last: Value) -> Pair:
        """The same in reverse order: the pair at `last`, then those in front of it."""
        k, lanes = self.k, self.lanes
        whole = k.load(self.moved(last, -2 * (lanes - 1)), self.type.with_lanes(2 * lanes))
        re, im = (k.shuffle(whole, None, range(2 * lanes - 2 + part, -1, -2)) for part in range(2))
        return Pair(re, im)

    def store_pairs(self, place: Value, value: Pair, *, past_caches: bool = False) -> None:
        pairs = self._in_turns(value, range(self.lanes))
        self.k.store(place, pairs, align=self._line_bytes if past_caches else None, nontemporal=past_caches)

    def store_reversed_pairs(self, last: Value, value: Pair) -> None:
        """The first pair at `last`, the others in front of it."""
        lanes = range(self.lanes - 1, -1, -1)
        self.k.store(self.moved(last, -2 * (self.lanes - 1)), self._in_turns(value, lanes))

    def _in_turns(self, value: Pair, lanes: Iterable[int]) -> Value:
        """These lanes' real and imaginary parts next to each other."""
        return self.shuffled(value.re, value.im, [lane + self.lanes * part for lane in lanes for part in range(2)])

    def store_first_pairs(self, place: Value, value: Pair, count: Value) -> None:
        """So many of the pairs, and nothing behind them."""
        k, lanes = self.k, self.lanes
        mask = k.compare("lt", k.lane_numbers(I32.with_lanes(2 * lanes)), k.trunc(k.mul(count, 2), I32))
        k.masked_store(place, self._in_turns(value, range(lanes)), mask, self.type.bytes)

    @property
    def _line_bytes(self) -> int:
        """What pairs fill that are stored past the caches: lines, or vectors shorter than these."""
        return min(CACHE_LINE, 2 * self.lanes * self.type.bytes)

    def begin_lines(self, place: Value, distance: Value) -> Value:
        """Whether a vector of pairs begins where lines do, and others some distances behind it."""
        bits = self.k.or_(self.k.address(place), self.k.mul(distance, self.type.bytes))
        return self.k.compare("eq", self.k.and_(bits, self._line_bytes - 1), 0)

    def has_whole_pairs(self, place: Value) -> Value:
        """Whether pairs do not lie across lines."""
        return self.k.compare("eq", self.k.and_(self.k.address(place), 2 * self.type.bytes - 1), 0)

    def pairs_to_line(self, place: Value) -> Value:
        """How many pairs lie in front of the next line (or vector) that begins at `place` or behind it."""
        k = self.k
        return k.udiv(k.and_(k.sub(0, k.address(place)), self._line_bytes - 1), 2 * self.type.bytes)

    def shuffled(self, a: Value, b: Value, lanes: Sequence[int]) -> Value:
        """A shuffle of vectors that may have one lane."""
        if a.type.lanes > 1:
            return self.k.shuffle(a, b, lanes)
        type = self.type.with_lanes(len(lanes))
        whole = self.k.const(type, 0.0)
        for number, lane in enumerate(lanes):
            whole = self.k.insert(whole, (a, b)[lane], number)
        return whole

    def load_roots(self, place: Value, number: int) -> Pair:
        """The pair of vectors `number` of the table, which has them one behind the other."""
        re, im = (
            self.k.load(self.moved(place, (2 * number + part) * self.lanes), self.vector, hoistable=True)
            for part in range(2)
        )
        return Pair(re, im)

    def load_root(self, place: Value, number: int) -> Pair:
        """The pair of scalars `number` of the table, in all lanes."""
        re, im = (
            self.k.splat(self.k.load(self.moved(place, 2 * number + part), self.type, hoistable=True), self.lanes)
            for part in range(2)
        )
        return Pair(re, im)

    def scaled(self, value: Pair) -> Pair:
        """A vector times the factors of the step."""
        re, im = self.factor("re_factor", self.lanes), self.factor("im_factor", self.lanes)
        return Pair(self.k.mul(value.re, re), self.k.mul(value.im, im))
