"""The register tile: the inner loop of every matrix product.

    tile(depth, a, a_row, a_step, b, b_step, c, c_row, columns, accumulate, goal, goal_row, later, later_step, runs,
         a_run)

computes C[rows, columns] (+)= A[rows, depth] B[depth, columns] with all of C's tile in registers: at each step along K
it loads the vectors of one row of B, broadcasts each element of one column of A, and multiplies. Strides are bytes and
known at run time, so that the same tiles read packed strips and matrices where they lie; a row of B and of C is
contiguous. Along K there may be several runs of `depth` steps, which lie `a_run` bytes apart in A, and one behind the
other in B. A copying tile, for one run, also packs the strip of B that it reads, for the tiles below it; preparing ones
pack the strip beside, each some rows of it.

Each real element of C is one chain of multiply-adds in the order of K, which goes on from C where that is added to:
neither the choice of tiles nor how K is cut into chunks changes a bit of it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from xlapy.codegen.ir import I1, I32, I64, PTR, IRType, KernelBuilder, Module, Value
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.libraries.gemm_types import UNIT_ROWS, GemmType
from xlapy.codegen.target import Target
from xlapy_runtime.records import Record, replaced

PRODUCT_PARAMETERS = [
    ("depth", I64),
    ("a", PTR),
    ("a_row", I64),
    ("a_step", I64),
    ("b", PTR),
    ("b_step", I64),
    ("c", PTR),
    ("c_row", I64),
    ("columns", I64),
    ("accumulate", I64),
]
"""`columns` is what an edge tile has; the others ignore it. `accumulate` is 1 to add to C, 0 to replace it."""

_FETCHED = [("goal", PTR), ("goal_row", I64), ("later", PTR), ("later_step", I64)]
TILE_PARAMETERS = [*PRODUCT_PARAMETERS, *_FETCHED, ("runs", I64), ("a_run", I64)]
COPYING_PARAMETERS = [*PRODUCT_PARAMETERS, *_FETCHED, ("packed", PTR)]
"""Every `STEPS_OF_GROUP` steps `ROWS_OF_GROUP` rows are fetched that will be written, from `goal` on: of C, or of what
is made of it later if C is a buffer. So are as many of B for other tiles, from `later` on. `packed` has room for the
strip of B."""

PREPARING_PARAMETERS = [*PRODUCT_PARAMETERS, *_FETCHED, ("packed", PTR), ("first", I64)]
"""A preparing tile packs rows of the strip of B beside its own, which begins at `later`, from row `first` on:
`PREPARED_ROWS_OF_GROUP` every `STEPS_OF_GROUP` steps, up to the last one."""

COLUMN_PARAMETERS = [*TILE_PARAMETERS, ("tiles", I64), ("a_tile", I64), ("later_tile", I64)]
"""Several tiles one below the other, that many bytes apart in A, and in what they fetch for later."""

PREPARED_ROWS_OF_GROUP = 4
_GROUPS_AHEAD = 2
"""How early those are fetched. They come from afar, and what the processor looks ahead is shorter than that takes."""

_STEPS_AHEAD = 32
"""How early the rows of B are fetched, in the end the first rows of the strip beside this one. Where they lie far apart
the processor does not foresee them, and in the first level of the caches those a power of two apart would be in each
other's way."""

_STEPS_OF_TURN = 8
_STEPS_OF_TURN_OF_MANY_REGISTERS = 4
_LEAST_STEPS_OF_TURNS = 128
"""Of the loop where most of a large product is computed, and of such a product. What else a loop does takes the place
of multiply-adds in a core that has another thread to serve: so, and with groups twice as long, 512 by 512 takes 0.85 of
the time then on a Zen 3, and the same as before where the core has nothing else to do. With 64 steps tiles end too soon
(3136 by 256: 1.04). With many registers a step is twice as long, and turns do good to columns of tiles only (Sapphire
Rapids, 132 by 256 by 256: 0.95 of the time)."""

_MANY_REGISTERS = 32

_STREAMED_ROWS = 2
_STREAMED_ROWS_OF_SHORT_VECTORS = 4
"""Products with up to so many (real) rows are streamed (`gemm_vector`) if B comes from memory. With more rows sums in
registers are worth more than long runs of B, if each piece of it is some lines long: 4096 by 1024, tiles take 0.8 of
the time for 4 rows, 0.4 for 8; with vectors half as long 1.1 for 4."""

STEPS_OF_GROUP = 32
ROWS_OF_GROUP = 2
"""How slowly the rows of C are fetched, and those of B that are for later. All at once they would keep the operands
waiting (10 % slower)."""


class TileShape(Record):
    """How much of C a target holds in registers.

    `rows` and `vectors` are those of the tile for large products; `wide` has the most rows for which wider tiles fit,
    by vectors, the widest first: these read longer pieces of a row of B. Rows are real ones: two for a complex row.
    """

    rows: int
    vectors: int
    wide: tuple[tuple[int, int], ...]
    lanes: int
    registers: int
    has_masks: bool
    """Whether a part of a vector can be read at the price of a whole one."""
    streamed_rows: int
    """The most rows with which B is streamed, if it comes from memory."""
    masks_are_free: bool
    """Whether it can be written so, too: then edge tiles are as good as others if B is in cache. From memory it would
    come half as fast by masks."""
    broad: tuple[int, int] | None = None
    """Rows and vectors of the tile for a large B that tiles copy, if it is another one."""
    most_positions: int = 0
    """Rows of the tile for positions of a line, if it has more."""

    @property
    def columns(self) -> int:
        return self.vectors * self.lanes

    @property
    def most_vectors(self) -> int:
        return max(vectors for _, vectors in self.wide)

    def most_vectors_of(self, rows: int) -> int:
        """The width of the widest tile with so many rows."""
        return max([self.vectors, *(vectors for most_rows, vectors in self.wide if rows <= most_rows)])

    @property
    def broadened(self) -> TileShape | None:
        """The shape whose usual tile is the broad one."""
        return replaced(self, rows=self.broad[0], vectors=self.broad[1], broad=None) if self.broad else None

    @property
    def of_lines(self) -> TileShape:
        """The shape whose usual tile is that for positions of a line."""
        return replaced(self, rows=max(self.rows, self.most_positions))


def tile_shape(kind: GemmType, target: Target) -> TileShape:
    """12 by 2 vectors of 32 registers, 6 by 2 of 16; of the matrix unit, two by two of its tiles.

    For f64, where a vector is a cache line and B is copied, 9 by 3: 27 multiply-adds for 12 loads, not 24 for 14, while
    operands come from the second-level cache (0.95 to 0.98 of the time on a Zen 5). The longer strip of B does not pay
    where that would else be in the nearest cache; and what f32 gains, a hundredth, is not worth the third of the time
    by which the library takes longer to make.

    Lines of networks are multiples of 7 long: with 14 rows, as many as 32 registers have room for, one tile takes what
    would else be two of 7 (Sapphire Rapids, 8 by 14 by 14 of 256 features: 0.84 of the time, 28 by 28 of 128: 0.95).
    Large products lose by them (512 by 512: 1.02, left side transposed 1.06).
    """
    if kind.unit:
        side = 2 * UNIT_ROWS
        return TileShape(side, 2, ((side, 2),), UNIT_ROWS, 8, True, 0, True)
    lanes = target.lanes(kind.accumulator.bits)
    is_long = not has_short_vectors(kind, lanes)
    streamed_rows = _STREAMED_ROWS if is_long else _STREAMED_ROWS_OF_SHORT_VECTORS
    has_masks = target.is_avx512 or target.has("avx2")
    if target.is_avx512 or not target.is_x86:
        is_double = kind.accumulator.bits == 64 and kind.parts == 1 and kind.is_packed_in_memory
        copies_often = target.is_avx512 and not target.has_far_last_cache
        broad = (9, 3) if copies_often and is_long and is_double else None
        most_positions = 14 if target.is_avx512 and kind.parts == 1 else 0
        wide = ((6, 4), (9, 3))
        return TileShape(
            12, 2, wide, lanes, 32, has_masks, streamed_rows, target.is_avx512, broad, most_positions=most_positions
        )
    return TileShape(6, 2, ((2, 4), (4, 3)), lanes, 16, has_masks, streamed_rows, False)


def has_short_vectors(kind: GemmType, lanes: int) -> bool:
    """Whether a vector of sums is less than a cache line."""
    return lanes * kind.accumulator.bytes < CACHE_LINE


class Tile(Record):
    """One variant. `is_edge` tiles leave the last vector's surplus columns alone; `copies` packs B on the way;
    `prepares` packs some of the strip of B beside it, for other tiles; `follows` one that copied B. A `column` is
    several, one below the other."""

    rows: int
    vectors: int
    is_edge: bool = False
    copies: bool = False
    prepares: bool = False
    follows: bool = False
    is_column: bool = False

    def name(self, kind: GemmType) -> str:
        way = "copying_" if self.copies else "preparing_" if self.prepares else ""
        variant = f"{way}{'edge' if self.is_edge else 'column' if self.is_column else 'tile'}"
        return f"gemm_{kind.name}_{variant}_{self.rows}x{self.vectors}"


def tiles_of(kind: GemmType, shape: TileShape) -> list[Tile]:
    """Every variant that products of this type may call, of each height those for whole strips last.

    Where masks are free, edges stand for those that only see strips of B in cache: all but the widest of each height,
    and those of so few rows that B would be streamed if it were larger, or that the matrix unit is not used as a whole.
    """
    heights = range(kind.parts, shape.rows + 1, kind.parts)
    tiles = []
    for rows in heights:
        widest = shape.most_vectors_of(rows)
        tiles += [Tile(rows, vectors, is_edge=True) for vectors in range(1, widest + 1)]
        whole = {widest} if shape.masks_are_free else {shape.vectors, widest}
        is_low = rows < shape.rows if kind.unit else rows <= shape.streamed_rows
        if shape.masks_are_free and is_low:
            whole = set()
        tiles += [Tile(rows, vectors) for vectors in sorted(whole)]
    return tiles


def copying_tiles_of(shape: TileShape) -> list[Tile]:
    """Variants for the first of several tiles, which has all rows; the last one is that for whole strips."""
    edges = [Tile(shape.rows, vectors, is_edge=True, copies=True) for vectors in range(1, shape.vectors + 1)]
    return [*edges, Tile(shape.rows, shape.vectors, copies=True)]


def broad_tiles_of(shape: TileShape) -> list[Tile]:
    """Those of the width of the broad tile. All but the highest are for edges, and for whole strips too: what they read
    has been copied."""
    if shape.broad is None:
        return []
    most_rows, vectors = shape.broad
    edges = [Tile(rows, vectors, is_edge=True, follows=True) for rows in range(1, most_rows + 1)]
    return [*edges, Tile(most_rows, vectors, follows=True)]


def preparing_tile_of(shape: TileShape) -> Tile:
    """The variant that packs the next strip, while it computes one of the many tiles of a high block."""
    return Tile(shape.rows, shape.vectors, prepares=True)


def column_of(shape: TileShape) -> Tile:
    """The variant for several whole tiles, one below the other."""
    return Tile(shape.rows, shape.vectors, is_column=True)


def emit_tile(module: Module, target: Target, kind: GemmType, shape: TileShape, tile: Tile) -> None:
    attributes = f"nounwind {target.function_attributes}".rstrip()
    parameters = TILE_PARAMETERS
    if tile.copies:
        parameters = COPYING_PARAMETERS
    elif tile.prepares:
        parameters = PREPARING_PARAMETERS
    elif tile.is_column:
        parameters = COLUMN_PARAMETERS
    noalias = {"a": "noalias", "b": "noalias"}
    builder = KernelBuilder(
        module, tile.name(kind), parameters, None, attributes=attributes, parameter_attributes=noalias
    )
    with builder as k:
        _TileEmitter(k, target, kind, shape, tile).emit()


class _Walk(Record):
    """A way through the operands: bytes from step to step, and from row to row of A, where these are known."""

    a_step: Value | int
    b_step: Value | int
    a_row: int | None = None
    turn: int = 1
    """Steps at a turn of a loop; several where the bytes are known."""


class _Places(Record):
    """Where a tile begins: in A and C, and in what it fetches."""

    a: Value
    c: Value
    goal: Value
    later: Value


class _TileEmitter:
    def __init__(self, k: KernelBuilder, target: Target, kind: GemmType, shape: TileShape, tile: Tile) -> None:
        self._k = k
        self._target = target
        self._kind = kind
        self._shape = shape
        self._tile = tile
        self._vector: IRType = kind.accumulator.with_lanes(shape.lanes)
        self._vector_bytes = self._vector.lanes * self._vector.bytes
        self._row_bytes = tile.vectors * self._vector_bytes
        self._strip_bytes = shape.vectors * self._vector_bytes
        """Of a step of a packed strip of B."""
        self._element_bytes = kind.packed.bytes * kind.parts
        self._mask = self._edge_mask() if tile.is_edge else None

    def emit(self) -> None:
        """Several steps at a turn where rows of B follow each other, and the elements of a row of A, or packed rows of
        it at each step."""
        k, given, element = self._k, self._k.parameters, self._element_bytes
        any_walk = _Walk(given["a_step"], given["b_step"])
        if not self._makes_turns:
            self._tiles_on(any_walk)
            return
        row = _Walk(element, self._strip_bytes, turn=self._steps_of_turn)
        packed = replaced(row, a_step=self._shape.rows * self._kind.packed.bytes, a_row=element)
        pays = k.compare("ge", given["depth"], _LEAST_STEPS_OF_TURNS)
        pays = k.and_(pays, k.compare("eq", given["b_step"], row.b_step))
        is_row = k.and_(pays, k.compare("eq", given["a_step"], row.a_step))
        is_packed = k.and_(pays, k.compare("eq", given["a_step"], packed.a_step))
        is_packed = k.and_(is_packed, k.compare("eq", given["a_row"], element))
        on_row, on_packed, by_steps = (functools.partial(self._tiles_on, walk) for walk in (row, packed, any_walk))
        k.if_else(is_row, on_row, lambda: k.if_else(is_packed, on_packed, by_steps))

    def _tiles_on(self, walk: _Walk) -> None:
        """All tiles, on one way through the operands."""
        k, given = self._k, self._k.parameters
        first = [given[name] for name in ("a", "c", "goal", "later")]
        if not self._tile.is_column:
            self._tile_at(walk, _Places(*first))
            return
        rows = self._tile.rows // self._kind.parts
        to_next = [given["a_tile"], k.mul(given["c_row"], rows), k.mul(given["goal_row"], rows), given["later_tile"]]
        with k.loop(0, given["tiles"], carry=first) as tile:
            self._tile_at(walk, _Places(*tile.values))
            tile.next = [k.gep(place, bytes) for place, bytes in zip(tile.values, to_next, strict=True)]

    def _tile_at(self, walk: _Walk, places: _Places) -> None:
        k = self._k
        accumulates = k.compare("ne", k.parameters["accumulate"], 0)
        initial = k.if_else(accumulates, lambda: self._old_sums(places.c), self._zeros)
        self._store(places.c, self._sums(walk, places, initial))

    @property
    def _makes_turns(self) -> bool:
        """Whether most of a large product is computed by this tile, and several steps at a turn do it good. Without one
        instruction for a multiplication and an addition, as for integers, LLVM puts sums in another order, for which
        registers do not suffice; nor do they on ARM, for what it loads at several steps."""
        is_highest = self._tile.rows == self._shape.rows and self._tile.vectors == self._shape.vectors
        has_fma = self._target.has_fma and self._kind.accumulator.is_float
        if self._has_many_registers:
            is_usual = self._tile.is_column and self._target.is_avx512
        else:
            is_usual = not (self._tile.is_edge or self._tile.copies)
        return is_highest and is_usual and has_fma

    @property
    def _has_many_registers(self) -> bool:
        return self._shape.registers >= _MANY_REGISTERS

    @property
    def _steps_of_turn(self) -> int:
        return _STEPS_OF_TURN_OF_MANY_REGISTERS if self._has_many_registers else _STEPS_OF_TURN

    def _sums(self, walk: _Walk, tile: _Places, initial: Sequence[Value]) -> list[Value]:
        """The products along K added to `initial`, vector by vector of each row; a few steps at a time, between which
        it is decided what to fetch for later."""
        k, given = self._k, self._k.parameters
        depth = given["depth"]
        groups = k.lshr(k.add(depth, STEPS_OF_GROUP - 1), STEPS_OF_GROUP.bit_length() - 1)
        if self._has_runs:
            groups = k.mul(groups, given["runs"])
        places = [tile.a, given["b"], tile.goal, tile.later]
        with k.loop(0, groups, carry=[depth, *places, *initial]) as group:
            left, a, b, written, later, *sums = group.values
            for _ in range(ROWS_OF_GROUP):
                self._prefetch(written, for_writing=True)
                written = k.gep(written, given["goal_row"])
            if self._tile.prepares:
                self._prepare(group.index)
            else:
                for _ in range(ROWS_OF_GROUP):
                    self._prefetch(later, level=2)
                    later = k.gep(later, given["later_step"])
            steps = k.smin(left, STEPS_OF_GROUP)
            copy = k.gep(given["packed"], k.mul(k.sub(depth, left), self._strip_bytes)) if self._tile.copies else None
            a, b, *sums = self._sums_of_group(walk, steps, a, b, self._distance_ahead(left), copy, sums)
            left, a = self._behind_group(k.sub(left, STEPS_OF_GROUP), a)
            group.next = [left, a, b, written, later, *sums]
        return group.results[5:]

    @property
    def _has_runs(self) -> bool:
        return not (self._tile.copies or self._tile.prepares)

    def _prepare(self, group: Value) -> None:
        """Packs the rows of the strip beside that are a group's part, and fetches those of a later group."""
        k, given = self._k, self._k.parameters
        next_strip, b_step, last = given["later"], given["later_step"], k.sub(given["depth"], 1)
        first = k.add(given["first"], k.mul(group, PREPARED_ROWS_OF_GROUP))
        for number in range(PREPARED_ROWS_OF_GROUP):
            fetched = k.add(first, _GROUPS_AHEAD * PREPARED_ROWS_OF_GROUP + number)
            self._prefetch(k.gep(next_strip, k.mul(fetched, b_step)), level=2)
        for number in range(PREPARED_ROWS_OF_GROUP):
            row = k.smin(k.add(first, number), last)
            place = k.gep(next_strip, k.mul(row, b_step))
            packed = k.gep(given["packed"], k.mul(row, self._strip_bytes))
            self._copy(packed, [self._load_b(place, index) for index in range(self._tile.vectors)])

    def _behind_group(self, left: Value, a: Value) -> tuple[Value, Value]:
        """Steps that are left and the place in A: those of the next run, if this one is over."""
        if not self._has_runs:
            return left, a
        k, given = self._k, self._k.parameters
        to_next_run = k.sub(given["a_run"], k.mul(given["depth"], given["a_step"]))
        ends = k.compare("le", left, 0)
        return k.select(ends, given["depth"], left), k.gep(a, k.select(ends, to_next_run, 0))

    def _sums_of_group(
        self, walk: _Walk, steps: Value, a: Value, b: Value, ahead: Value, copy: Value | None, initial: Sequence[Value]
    ) -> list[Value]:
        """The same along a few steps, behind the row of A where they end. Rows of B go to `copy`, if there is one, and
        those that lie `ahead` are fetched if they may be far away."""
        k = self._k
        done: Value | int = 0
        if isinstance(walk.a_step, int) and isinstance(walk.b_step, int):
            done = k.and_(steps, -walk.turn)
            with k.loop(0, done, walk.turn, carry=[a, b, *initial]) as turns:
                a, b, *sums = turns.values
                for step in range(walk.turn):
                    row = k.gep(b, step * walk.b_step)
                    sums = self._sums_of_step(walk, k.gep(a, step * walk.a_step), row, ahead, None, sums)
                turns.next = [k.gep(a, walk.turn * walk.a_step), k.gep(b, walk.turn * walk.b_step), *sums]
            a, b, *initial = turns.results
        with k.loop(done, steps, carry=[a, b, *initial]) as loop:
            a, b, *sums = loop.values
            packed = k.gep(copy, k.mul(loop.index, self._strip_bytes)) if copy is not None else None
            sums = self._sums_of_step(walk, a, b, ahead, packed, sums)
            loop.next = [k.gep(a, walk.a_step), k.gep(b, walk.b_step), *sums]
        return loop.results

    def _sums_of_step(
        self, walk: _Walk, a: Value, b: Value, ahead: Value, packed: Value | None, sums: Sequence[Value]
    ) -> list[Value]:
        """The sums with one row of B, multiplied, added; the row is copied to `packed`, if there is that."""
        k = self._k
        if self._may_read_b_from_afar:
            self._prefetch(k.gep(b, ahead), level=2)
        vectors = [self._load_b(b, index) for index in range(self._tile.vectors)]
        if packed is not None:
            self._copy(packed, vectors)
        result = []
        for row in range(self._tile.rows):
            element = k.splat(k.load(self._a_element(a, row, walk.a_row), self._kind.packed), self._vector.lanes)
            for column, vector in enumerate(vectors):
                total = sums[row * self._tile.vectors + column]
                result.append(self._kind.multiply_add(k, self._target, element, vector, total))
        return result

    @property
    def _may_read_b_from_afar(self) -> bool:
        """Whether B is worth to be fetched early. Tiles that prepare, or follow one that copied B, read what was packed
        just before (1024 by 1024 takes 0.99 of the time without, on a Zen 5)."""
        return not (self._tile.prepares or self._tile.follows or self._tile.is_column)

    def _distance_ahead(self, left: Value) -> Value:
        """From a row of B to the one to fetch: that of some steps later, in the end one of the strip beside."""
        k = self._k
        depth, b_step = k.parameters["depth"], k.parameters["b_step"]
        ahead = k.smin(depth, _STEPS_AHEAD)
        next_strip = k.add(k.mul(k.sub(ahead, depth), b_step), self._row_bytes)
        return k.select(k.compare("gt", left, ahead), k.mul(ahead, b_step), next_strip)

    def _prefetch(self, row: Value, *, level: int = 1, for_writing: bool = False) -> None:
        """Fetches the lines of a row, except one that it begins in the middle of: that came with the strip before."""
        place = self._k.gep(row, CACHE_LINE - 1)
        self._k.prefetch(place, self._row_bytes, level=level, for_writing=for_writing)

    def _copy(self, packed: Value, vectors: Sequence[Value]) -> None:
        for index, vector in enumerate(vectors):
            self._k.store(self._k.gep(packed, index * self._vector_bytes), vector)

    def _a_element(self, a: Value, row: int, a_row: int | None) -> Value:
        k = self._k
        whole, part = divmod(row, self._kind.parts)
        place = self._a_row(a, whole) if a_row is None else k.gep(a, whole * a_row)
        return k.gep(place, part * self._kind.packed.bytes)

    def _a_row(self, a: Value, row: int) -> Value:
        """Where the row is, as an odd multiple of the stride times a power of two: x86 adds that while it loads.

        LLVM would step from row to row, which takes as long as the multiplications.
        """
        if not row:
            return a
        k = self._k
        power = (row & -row).bit_length() - 1
        odd_stride = k.opaque(k.mul(k.parameters["a_row"], row >> power))
        return k.gep(a, k.shl(odd_stride, power))

    def _load_b(self, b: Value, index: int) -> Value:
        k = self._k
        place = k.gep(b, index * self._vector_bytes)
        if self._mask is not None and index == self._tile.vectors - 1 and self._shape.has_masks:
            return k.masked_load(place, self._vector, self._mask)
        return k.load(place, self._vector)

    def _edge_mask(self) -> Value:
        """The lanes of the last vector that are columns."""
        rest = self._rest()
        return first_lanes(self._k, self._shape.lanes, rest)

    def _rest(self) -> Value:
        """How many columns the last vector of an edge tile has."""
        return self._k.sub(self._k.parameters["columns"], (self._tile.vectors - 1) * self._shape.lanes)

    def _zeros(self) -> list[Value]:
        return [self._k.const(self._vector, 0)] * (self._tile.rows * self._tile.vectors)

    def _old_sums(self, c: Value) -> list[Value]:
        """What C holds. Of a complex row it goes to the products with real parts, which have its signs."""
        k, tile, kind = self._k, self._tile, self._kind
        sums = self._zeros()
        for row in range(0, tile.rows, kind.parts):
            for column in range(tile.vectors):
                place, mask = self._c_vector(c, row, column)
                old = k.load(place, self._vector) if mask is None else k.masked_load(place, self._vector, mask)
                sums[row * tile.vectors + column] = old
        return sums

    def _store(self, c: Value, sums: Sequence[Value]) -> None:
        k, tile = self._k, self._tile
        parts: list[tuple[Value, Value]] = []
        for row in range(0, tile.rows, self._kind.parts):
            for column in range(tile.vectors):
                value = sums[row * tile.vectors + column]
                if self._kind.parts == 2:
                    value = self._combine(value, sums[(row + 1) * tile.vectors + column])
                place, mask = self._c_vector(c, row, column)
                if mask is None:
                    k.store(place, value)
                elif self._shape.masks_are_free:
                    k.masked_store(place, value, mask)
                else:
                    parts.append((place, value))
        if not parts:
            return

        def whole() -> None:
            for place, value in parts:
                k.store(place, value)

        is_whole = k.compare("ge", self._rest(), self._shape.lanes)
        k.if_else(is_whole, whole, lambda: store_first(k, parts, self._rest()))

    def _c_vector(self, c: Value, row: int, column: int) -> tuple[Value, Value | None]:
        """Where a vector of C is, and the mask of its columns if it is not a whole one."""
        is_last = column == self._tile.vectors - 1
        return self._k.gep(self._c_row(c, row), column * self._vector_bytes), self._mask if is_last else None

    def _combine(self, by_real: Value, by_imaginary: Value) -> Value:
        """(a.re b.re, a.re b.im) and (a.im b.re, a.im b.im) to (a.re b.re - a.im b.im, a.re b.im + a.im b.re)."""
        k, lanes = self._k, self._shape.lanes
        crossed = k.shuffle(by_imaginary, None, [lane ^ 1 for lane in range(lanes)])
        is_imaginary = k.const_vector(I1.with_lanes(lanes), [lane % 2 for lane in range(lanes)])
        return k.select(is_imaginary, k.add(by_real, crossed), k.sub(by_real, crossed))

    def _c_row(self, c: Value, row: int) -> Value:
        k = self._k
        return k.gep(c, k.mul(k.parameters["c_row"], row // self._kind.parts))


def first_lanes(k: KernelBuilder, lanes: int, count: Value) -> Value:
    """The mask of the first `count` lanes."""
    numbers = I32.with_lanes(lanes)
    return k.compare("lt", k.lane_numbers(numbers), k.splat(k.trunc(count, I32), lanes))


def store_first(k: KernelBuilder, parts: Sequence[tuple[Value, Value]], count: Value) -> None:
    """Stores the first `count` lanes of some vectors at their places, but no whole vector: by halves, whichever of
    these are asked for. To write by a mask takes a dozen cycles where that is not free (AVX2, 12 by 12 by 12: 2.4 times
    as long)."""
    half = parts[0][1].type.lanes // 2
    if not half:
        return

    def low(value: Value) -> Value:
        return k.extract(value, 0) if half == 1 else k.shuffle(value, None, range(half))

    def high(value: Value) -> Value:
        return k.extract(value, 1) if half == 1 else k.shuffle(value, None, range(half, 2 * half))

    def stored() -> list[Value]:
        for place, value in parts:
            k.store(place, low(value))
        return [part for place, value in parts for part in (k.gep(place, half * value.type.bytes), high(value))]

    def kept() -> list[Value]:
        return [part for place, value in parts for part in (place, low(value))]

    left = k.if_else(k.compare("ne", k.and_(count, half), 0), stored, kept)
    store_first(k, list(zip(left[::2], left[1::2], strict=True)), count)
