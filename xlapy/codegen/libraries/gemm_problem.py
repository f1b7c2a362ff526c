"""A matrix product as data: what the caller wants, and how the part at hand is cut into blocks and read by tiles."""

from __future__ import annotations

from xlapy.codegen.ir import I64, PTR, IRType, KernelBuilder, Module, Value
from xlapy.codegen.libraries.gemm_packing import SLACK_BYTES, packed_strip_bytes
from xlapy.codegen.libraries.gemm_record import Record, RecordValue
from xlapy.codegen.libraries.gemm_tile import TileShape, tile_shape
from xlapy.codegen.libraries.gemm_types import UNIT_STEPS, GemmType
from xlapy.codegen.target import Target

_CHUNK_BYTES = 2048
_BLOCK_ROWS = 120
"""Bytes along K of one packed row in a chunk, and rows of a block. More would push A's part of a block out of a
second-level cache of 512 KB, which holds strips of B and C, too (240 rows, 2048 by 2048: 1.1 of the time); less would
fetch C more often."""

_LONG_CHUNK_BYTES = 4096
_LONG_BLOCK_ROWS = 180
"""The same for caches that have room for them (f64, 1024 by 1024: 2 % faster on one core, 6 % on two)."""

UNIT_CHUNK_STEPS, LONG_UNIT_CHUNK_STEPS = 256, 512
"""Where the matrix unit multiplies: so many that the nearest cache keeps a strip of B. Twice as many where rows of sums
are in each other's way in it, and take long to come and go, or would come and go more than twice (bf16, 1024 by 1024:
0.8 of the time; 768 by 768 else: 1.15)."""

_UNIT_BLOCK_ROWS = 256
"""Where the matrix unit multiplies: with more, rows of a chunk and those of C leave no room for strips of B in the
second-level cache (bf16, 2048 by 2048: 512 rows 1.2 of the time)."""

PLANES_CHUNK_STEPS = 768
"""Of f32 in planes: 512 elements along K. A tile of sums takes as long to come and go as half of that."""

_STEPS_OF_PART = 512
"""Steps along K of a chunk at most where K is cut at all, with as many more rows in a block: a strip of B and the next
one take room, too, and higher blocks copy each strip of B less often (f32, 2048 by 2048: 3 % faster)."""

STEPS_AT_ONCE = 8
"""Along K, that are packed together in general, of all strips: read row by row, B comes three times as fast as strip by
strip, as a strip has only a line or two of each row."""

PANEL_ROWS = 1032
PANEL_COLUMNS = 1024
"""With these, and one chunk deep, a panel's packed operands take 4 or 8 MB, which stay in the third-level cache even if
others use it too (5 % faster than 12 MB, on 2048 by 2048)."""

BLOCK_COLUMNS = 256
"""With these a block is half a megabyte of A or more and 50,000 sums, and takes a millisecond: many enough to share out
evenly."""

LEAST_BLOCK_ROWS = 132
"""Lower blocks copy each strip of B for too few tiles (1 to 2 % slower than higher ones)."""

EVEN_BLOCKS = 16
"""With so many blocks of a product, the last ones keep nobody waiting for long."""

LEAST_ROWS = 16
"""With fewer rows than this the time is that of reading B, as if there were so many."""

PANELS_IN_CACHE = 4
"""So many times what is read of B for a row of blocks fits the last cache, where the next row of blocks finds it."""

CHUNK_WORK = 1 << 20
"""Multiplications that a thread takes at a time if there are many: ten microseconds or more."""

_LEAST_CHUNK_WORK = 1 << 17
_FEW_CHUNKS = 4
"""Smaller chunks where there would be fewer than so many, but no smaller than is worth to hand to another thread: a
microsecond or more (16 by 512 by 128, two cores: 0.55 of the time; steps of 16 by 128 by 128 in a loop: 0.78)."""

PACKED_CHUNK = 1 << 15
"""Elements that a thread packs at a time: some microseconds."""

WAY_BYTES = 4096
"""Lines a multiple of so many bytes apart share a set of the nearest cache: in general, a page, so that a set can be
found before the page is."""

_LINE_BYTES = 64
ROW_GAP_BYTES = _LINE_BYTES
"""At most, behind a row of A that is packed as it is."""

PROBLEM = Record(
    # The call; a product whose C is stored by columns is turned into that of the transposes.
    a=PTR,
    b=PTR,
    c=PTR,
    batches=I64,
    m=I64,
    n=I64,
    k=I64,
    a_batch=I64,
    a_row=I64,
    a_step=I64,
    b_batch=I64,
    b_step=I64,
    b_column=I64,
    b_strip=I64,  # of the right side as it is computed, if that was packed beforehand (`gemm_strips`), or 0
    c_batch=I64,
    c_row=I64,
    c_column=I64,
    accumulate=I64,
    epilogue_work=I64,
    missing_steps=I64,  # along K, of the last matrix of a batch
    is_transposed=I64,
    epilogue=PTR,
    epilogue_args=PTR,
    windows=PTR,
    pack_windows=PTR,  # what packs a strip of A that these describe
    suspect=PTR,  # of a convolution whose windows reach outside: a flag, raised by what is not finite in row 0 of C
    # The panel at hand. Columns count reals.
    batch=I64,
    row=I64,
    rows=I64,
    column=I64,
    columns=I64,
    step=I64,
    depth=I64,
    panel_steps=I64,  # the most steps of a panel
    adds=I64,
    is_last=I64,
    # How tiles find its operands and where they put the sums: in C, or in scratch to be rounded or scattered.
    uses_scratch=I64,
    tile_a=PTR,
    tile_a_batch=I64,
    tile_a_strip=I64,
    tile_a_row=I64,
    tile_a_step=I64,
    tile_b=PTR,
    tile_b_batch=I64,
    tile_b_strip=I64,
    tile_b_step=I64,
    sums=PTR,
    sums_batch=I64,
    sums_row=I64,
    stream=PTR,  # what adds up rows of B, if that is how sums are made
    wide_tiles=PTR,  # the table of tiles that are wider than those of large products, for few rows
    distance=I64,  # where a B that is streamed comes from
    copies=I64,
    copies_a=I64,  # whether each block copies its part of A, chunk by chunk
    column_distance=I64,  # between columns of B that a few rows are multiplied with together
    # Its blocks.
    is_broad=I64,  # whether tiles are the broad ones
    strip_columns=I64,
    block_rows=I64,
    block_columns=I64,
    row_blocks=I64,
    column_blocks=I64,
    panel_blocks=I64,  # columns of blocks that are computed with all rows before the next ones are begun
    chunk_steps=I64,
    ahead_a=I64,  # bytes of the next matrices of a batch to fetch for each row of a tile, A's and B's; 0 for none
    ahead_b=I64,
    a_strips=I64,
    packs_wide_steps=I64,  # whether several strips of A are packed together
    packs_steps=I64,  # whether B is packed some steps of all strips at a time, or strip by strip
    # The units of a convolution that tiles read directly, and the region of the array that one of them needs.
    unit_rows=I64,
    unit_positions=I64,
    row_groups=I64,
    position_groups=I64,
    lines=I64,
    pixels=I64,
    places=PTR,  # where tiles along K of the matrix unit lie in a region, and in a strip
    place_count=I64,
    piece_lines=I64,  # of positions, whose products are summed up by themselves
)

SIZES = (
    "batches",
    "m",
    "n",
    "k",
    "a_batch",
    "a_row",
    "a_step",
    "b_batch",
    "b_step",
    "b_column",
    "c_batch",
    "c_row",
    "c_column",
    "accumulate",
    "epilogue_work",
    "b_strip",
)
"""The numbers a caller passes, in order: sizes, strides in elements, 1 to add to C or 0 to replace it, how many
multiplications the epilogue of one element is worth, when work is shared out, and the distance of strips in elements if
the right side is packed (`gemm_strips`), or 0."""

_TRANSPOSED = {"a": "b", "m": "n", "a_batch": "b_batch", "a_row": "b_column", "a_step": "b_step", "c_row": "c_column"}
"""The fields that a product and that of the transposes have exchanged."""

RANGE = [("problem", PTR), ("begin", I64), ("end", I64)]

_SHARED_RANGES = ("matrices", "parts", "blocks", "pack_strips", "add_pieces")
SHARED_FUNCTIONS = ("multiply", "matrix", "finish", *_SHARED_RANGES)
"""Of the library of products of many rows, which the others call."""


class GemmFunctions:
    """What all writers of the library's functions share: the type, the target, and sizes that follow from them.

    A library is written by one object whose classes build on each other: this one, blocks, panels, operands in place,
    and the entry.
    """

    def __init__(self, module: Module, kind: GemmType, target: Target) -> None:
        self._module = module
        self._kind = kind
        self._target = target
        self._shape: TileShape = tile_shape(kind, target)
        self._broad = self._shape.broadened
        self._prefix = f"gemm_{kind.name}"
        self._attributes = f"nounwind {target.function_attributes}".rstrip()
        self._tile_rows = self._shape.rows // kind.parts
        """Rows of C in a tile; `shape.rows` counts reals."""
        self._element_bytes = kind.element.bytes * kind.parts
        self._result_bytes = kind.result.bytes
        self._c_bytes = kind.result.bytes * kind.parts
        has_room = target.l2_bytes > _LONG_BLOCK_ROWS * _LONG_CHUNK_BYTES
        self._block_rows = _LONG_BLOCK_ROWS if has_room else _BLOCK_ROWS
        self._chunk_steps = (_LONG_CHUNK_BYTES if has_room else _CHUNK_BYTES) // kind.packed.bytes
        if kind.unit:
            self._block_rows = _UNIT_BLOCK_ROWS
            self._chunk_steps -= self._chunk_steps % kind.steps_of_tile
        self._least_work = CHUNK_WORK * (kind.speed if kind.unit else 1)
        """Multiplications that are worth handing out."""
        self._steps_together = UNIT_STEPS * kind.pair if kind.unit else STEPS_AT_ONCE
        """Along K, that are packed together, of all strips."""
        self._part_steps = min(self._chunk_steps, _STEPS_OF_PART)
        self._part_rows = self._block_rows * self._chunk_steps // self._part_steps
        panel_strips = -(-PANEL_ROWS // self._tile_rows), PANEL_COLUMNS // self._shape.columns
        self._most_bytes_of_a = panel_strips[0] * max(
            packed_strip_bytes(kind, self._shape.rows, self._chunk_steps),
            self._tile_rows * (self._chunk_steps * kind.packed.bytes * kind.parts + ROW_GAP_BYTES),
        )
        """Of the packed rows of a panel; below, of both operands, and of its sums besides."""
        self._most_packed_bytes = self._most_bytes_of_a + panel_strips[1] * packed_strip_bytes(
            kind, self._shape.columns, self._chunk_steps
        )
        self._most_scratch_bytes = (
            self._most_packed_bytes + panel_strips[0] * self._tile_rows * PANEL_COLUMNS * kind.accumulator.bytes
        )

    @property
    def _has_short_vectors(self) -> bool:
        """Whether a vector of packed elements is less than a cache line."""
        return self._shape.lanes * self._kind.packed.bytes < _LINE_BYTES

    @property
    def _copies_strips(self) -> bool:
        """Whether there are tiles that pack B for others. The matrix unit has it packed beforehand."""
        return not self._kind.unit

    @property
    def _turns_rows(self) -> bool:
        """Whether rows of A that are contiguous along K are packed as all others are, where they are read often.

        With vectors of less than a line, B has twice as many strips of half the width, for each of which A is read
        once: in one piece it comes faster than by as many streams as a tile has rows (AVX2, 1024 by 1024: 0.91 of the
        time, 256 by 4096 by 1024: 0.86). Then B is packed once, too, and not by each block (2048 by 2048: 0.94). Pairs
        are left as they are: to turn them round takes too long (s8, 512 by 512: 1.1 of the time)."""
        return self._has_short_vectors and self._kind.parts == self._kind.pair == 1

    def declare_shared(self) -> None:
        """Makes the functions of ranges known to a module that calls those of another one."""
        for name in _SHARED_RANGES:
            self._module.declare(f"{self._prefix}_{name}", None, [type for _, type in RANGE])

    def _function(
        self, name: str, parameters: list[tuple[str, IRType]], linkage: str = "internal", *, is_glue: bool = False
    ) -> KernelBuilder:
        """A function of the library. What `is_glue` only decides and calls, a few times for a product: LLVM does
        without the passes that would make it faster."""
        linkage = "" if name in SHARED_FUNCTIONS else linkage
        attributes = f"noinline optnone {self._attributes}" if is_glue else self._attributes
        return KernelBuilder(self._module, f"{self._prefix}_{name}", parameters, None, linkage, attributes)

    def _plain(self, function: str) -> str:
        """The function of the library that computes what is too large or too small for planes."""
        return f"gemm_{self._kind.plain_name}_{function}"

    def _is_packed_before(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Whether the caller has packed B, as tiles want it."""
        return k.compare("ne", problem["b_strip"], 0)

    def _grain(self, k: KernelBuilder, count: Value, work: Value) -> Value:
        """How many of `count` units a thread takes at a time, if one takes so many multiplications."""
        fair = k.sdiv(k.mul(count, work), _FEW_CHUNKS)
        least = _LEAST_CHUNK_WORK * self._kind.speed
        return ceil_div(k, k.smin(k.smax(fair, least), self._least_work), work)

    def _whole_columns(self, k: KernelBuilder, reals: Value) -> Value:
        return k.lshr(reals, self._kind.parts - 1)

    def _steps(self, k: KernelBuilder, depth: Value) -> Value:
        return packed_steps(k, self._kind, depth)


def packed_steps(k: KernelBuilder, kind: GemmType, depth: Value) -> Value:
    """Packed steps for `depth` elements along K. The matrix unit makes several at once: the last ones are zeros."""
    pairs = k.lshr(k.add(depth, kind.pair - 1), kind.pair_bits)
    if not kind.unit:
        return pairs
    whole = k.and_(k.add(pairs, UNIT_STEPS - 1), -UNIT_STEPS)
    return whole if kind.planes == 1 else k.mul(whole, kind.planes)


def depth_of(k: KernelBuilder, problem: RecordValue, batch: Value, depth: Value) -> Value:
    """Elements along K of one matrix of the batch, of which all but the last one have `depth`."""
    is_last = k.compare("eq", batch, k.sub(problem["batches"], 1))
    return k.sub(depth, k.select(is_last, problem["missing_steps"], 0))


def work_per_element(k: KernelBuilder, problem: RecordValue, depth: Value) -> Value:
    """Multiplications for one element of C, counting what the epilogue does."""
    return k.add(k.smax(depth, 1), problem["epilogue_work"])


def transpose(k: KernelBuilder, problem: RecordValue) -> None:
    """Turns the problem into that of the transposes: C' = B' A'."""
    for first, second in _TRANSPOSED.items():
        problem[first], problem[second] = problem[second], problem[first]
    problem["is_transposed"] = k.xor(problem["is_transposed"], 1)


def ceil_div(k: KernelBuilder, count: Value, size: Value | int) -> Value:
    return k.sdiv(k.sub(k.add(count, size), 1), size)


def round_up(k: KernelBuilder, count: Value, size: Value | int) -> Value:
    return k.mul(ceil_div(k, count, size), size)


def even_part(k: KernelBuilder, count: Value, limit: Value | int, multiple: int) -> Value:
    """The size of the fewest equal parts that are at most `limit`, a multiple of `multiple`."""
    return round_up(k, ceil_div(k, count, ceil_div(k, count, limit)), multiple)


def row_pitch(k: KernelBuilder, steps: Value, step_bytes: int) -> Value:
    """From one copied row of A to the next. An odd number of lines: an even one would put the rows of a tile into each
    other's way in the nearest cache."""
    lines = k.lshr(k.add(k.mul(steps, step_bytes), _LINE_BYTES - 1), _LINE_BYTES.bit_length() - 1)
    return k.mul(k.or_(lines, 1), _LINE_BYTES)


def strip_bytes(k: KernelBuilder, steps: Value, step_bytes: int) -> Value:
    return k.and_(k.add(k.mul(steps, step_bytes), SLACK_BYTES + 63), -64)
