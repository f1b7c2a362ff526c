"""Dots and convolutions as matrix products: the calls of a library that compute them.

A dot is a batch of matrix products if each of its four groups of dimensions (batch, rows, columns, depth) can be
walked with one stride in each operand. Most can, whatever is transposed. Of the batch dimensions the first ones may
need strides of their own, like those of sentences before the heads of attention, and of rows and columns any that
leave a run of others, like those of queries that share a key: there is a call for each of their positions, or they are
the batch if there is no other. And the right side may lie in strips of columns, which are a batch then, each multiplied
by the same left side. Only where the depth has no single stride, or there is little to multiply, is a dot a loop nest
(`kernels.dot`).

A convolution is one matrix product per group: positions by features of the result, contracting places of the window
and features of the input. It needs features side by side in kernel and result, and enough of them; the others run as
loop nests (`kernels.convolution`). Few features of the input will do where lines of positions are long. If the window
is one element, and positions of an image have one stride, features may lie anywhere: the kernel multiplies each image.

Everything here is a fact about shapes and attributes, which passes and codegen share: what is a library call may take
the element-wise ops behind it along.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from xlapy.hlo.attributes import (
    NO_WINDOW_DIMENSION,
    ConvolutionDimensionNumbers,
    DotDimensionNumbers,
    Precision,
    Window,
)
from xlapy.hlo.element_types import C64, C128, F32, F64, S8, S32, S64, U8, ElementType
from xlapy.hlo.graph import Instruction
from xlapy.hlo.shape import Dims, Shape
from xlapy.hlo.short_products import short_product
from xlapy.support.records import Record

Batches = tuple[tuple[Shape, Dims], tuple[Shape, Dims], tuple[Shape, Dims]]
"""A, B and C, each with its batch dimensions."""

BATCH_STRIDES = ("a_batch", "b_batch", "c_batch")
SMALLEST_WORK = 2048
"""Multiplications; below, a loop nest with known sizes is done before the library has looked at them."""

LEAST_RUN_WORK = 1 << 14
"""Multiplications of a call that is one of several for parts of rows or columns. Below, calls take longer than a loop
nest: of 16 queries by 4 keys, four times for each of two blocks, twice as long."""

LEAST_STRIP_COLUMNS = 16
"""Of the right side, where it is one of several strips: with fewer, most of what tiles could do is idle."""

NEAR_MATRIX_BYTES = 32 << 10
"""Of a matrix that is multiplied by a vector: what a first-level cache holds, a loop nest has read before the library
has looked at it. From further away, it would have to begin where lines of the cache do, which the library sees to."""

SMALL_MATRIX_WORK = 8 * 8 * 8
"""Multiplications of one product of a batch; up to here, the same holds for each of them, and below where rows have no
single stride, which a loop nest finds one by one."""


class Repetition(Record):
    """A dimension along which a call is repeated: how often, and the bytes to the next matrix of A, B and C."""

    count: int
    strides: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class MatrixProduct:
    """Calls of the library `gemm_KIND`: its numbers by name, strides in elements, and the loops around, outermost
    first.

    `windows` describes the left side of a convolution, also by name; that of a dot is a matrix in memory. The left
    side is the first operand, unless they are `exchanged`. What `is_precise` was asked for with more than the default
    precision."""

    kind: str
    sizes: Mapping[str, int]
    repetitions: tuple[Repetition, ...] = ()
    windows: Mapping[str, int] | None = None
    exchanged: bool = False
    is_precise: bool = False

    def sides(self, product: Instruction) -> tuple[Instruction, Instruction]:
        """The operands that are the left and the right side."""
        lhs, rhs = product.operands
        return (rhs, lhs) if self.exchanged else (lhs, rhs)


def library_product(instruction: Instruction) -> MatrixProduct | None:
    """The library calls that compute an instruction; None if it is no dot or convolution, or has a kernel."""
    find = _PRODUCTS.get(instruction.opcode)
    found = find(instruction) if find else None
    return replace(found, is_precise=True) if found and is_precise(instruction) else found


def is_precise(product: Instruction) -> bool:
    """Whether a dot or a convolution is to have more than the default precision."""
    precisions: Sequence[Precision] = product.attributes["operand_precision"]
    return any(precision is not Precision.DEFAULT for precision in precisions)


def matrix_product(dot: Instruction) -> MatrixProduct | None:
    """The library calls that compute a dot, or None if there are none, or what they multiply is too little for one."""
    if short_product(dot) is not None:
        return None
    return _product_of(dot.operands[0].shape, dot.operands[1].shape, dot.shape, dot.attributes["dimension_numbers"])


def is_matrix_product(lhs: Shape, rhs: Shape, result: Shape, numbers: DotDimensionNumbers) -> bool:
    """Whether a library computes a dot of these shapes, if its rows are not too short for one."""
    return _product_of(lhs, rhs, result, numbers) is not None


@lru_cache(maxsize=256)
def _product_of(lhs: Shape, rhs: Shape, result: Shape, numbers: DotDimensionNumbers) -> MatrixProduct | None:
    """The same, worked out once: passes ask as well as who writes the calls, and layers have equal products."""
    kind = product_kind(lhs.type, rhs.type, result.type)
    depth = math.prod(lhs.dims[dim] for dim in numbers.lhs_contracting)
    if kind is None or result.size * depth < SMALLEST_WORK or is_near_vector_product(lhs, rhs, result, numbers):
        return None
    if kind in KINDS_IN_MEMORY and _has_strips(rhs, numbers):
        strips = _product_of_strips(lhs, rhs, result, numbers, kind)
        if strips is not None:
            return strips
    batch_count, row_count = len(numbers.lhs_batch), len(numbers.lhs_free(lhs.rank))
    first_column = batch_count + row_count
    rows = _Free(lhs, numbers.lhs_free(lhs.rank), result, tuple(range(batch_count, first_column)))
    columns = _Free(rhs, numbers.rhs_free(rhs.rank), result, tuple(range(first_column, result.rank)))
    batches = (lhs, numbers.lhs_batch), (rhs, numbers.rhs_batch), (result, tuple(range(batch_count)))
    own = _first_of_one_stride(batches)
    count = math.prod(result.dims[own:batch_count])
    close = _has_neighbours(lhs, numbers.lhs_contracting), _has_neighbours(rhs, numbers.rhs_contracting)
    run_of_rows, run_of_columns = rows.longest_run(is_close=close[0]), columns.longest_run(is_close=close[1])
    around = _around(rows, run_of_rows, columns, run_of_columns)
    if _matrices(count, around) * run_of_rows.size * run_of_columns.size * depth < LEAST_RUN_WORK:
        run_of_rows, run_of_columns = rows.longest_run(is_close=True), columns.longest_run(is_close=True)
        around = _around(rows, run_of_rows, columns, run_of_columns)
    m, n = run_of_rows.size, run_of_columns.size
    work, matrices = m * n * depth, _matrices(count, around)
    if work < SMALL_MATRIX_WORK + (not around) or matrices * work < (LEAST_RUN_WORK if around else SMALLEST_WORK):
        return None
    steps = sorted(
        zip(numbers.lhs_contracting, numbers.rhs_contracting, strict=True), key=lambda pair: -lhs.strides()[pair[0]]
    )
    strides = {
        **{name: one_stride(shape, dims[own:]) for name, (shape, dims) in zip(BATCH_STRIDES, batches, strict=True)},
        "a_row": one_stride(lhs, run_of_rows.dims),
        "a_step": one_stride(lhs, [left for left, _ in steps]),
        "b_step": one_stride(rhs, [right for _, right in steps]),
        "b_column": one_stride(rhs, run_of_columns.dims),
        "c_row": one_stride(result, run_of_rows.places),
        "c_column": one_stride(result, run_of_columns.places),
    }
    counts = {"batches": count, "m": m, "n": n, "k": depth}
    known = {name: stride for name, stride in strides.items() if stride is not None}
    if len(known) != len(strides):
        return None
    if count == 1 and around:
        batch = max(around, key=lambda repetition: repetition.count)
        around.remove(batch)
        element_bytes = lhs.type.bytes, rhs.type.bytes, result.type.bytes
        distances = (bytes // size for bytes, size in zip(batch.strides, element_bytes, strict=True))
        known |= zip(BATCH_STRIDES, distances, strict=True)
        counts["batches"] = batch.count
    return MatrixProduct(kind, known | counts, (*_repetitions(batches, own), *around))


def is_near_vector_product(lhs: Shape, rhs: Shape, result: Shape, numbers: DotDimensionNumbers) -> bool:
    """A vector by a matrix that the nearest cache holds."""
    vectors = (lhs, numbers.lhs_free(lhs.rank)), (rhs, numbers.rhs_free(rhs.rank))
    is_one = any(math.prod(side.dims[dim] for dim in free) == 1 for side, free in vectors)
    has_type = result.type in (F32, F64) and lhs.type is rhs.type is result.type
    return is_one and has_type and not numbers.lhs_batch and max(lhs.bytes, rhs.bytes) <= NEAR_MATRIX_BYTES


def _around(rows: _Free, run_of_rows: _Free, columns: _Free, run_of_columns: _Free) -> list[Repetition]:
    """The loops over the free dimensions that are not part of a run."""
    return [
        *(Repetition(each.count, (each.distance, 0, each.of_result)) for each in rows.outside(run_of_rows)),
        *(Repetition(each.count, (0, each.distance, each.of_result)) for each in columns.outside(run_of_columns)),
    ]


def _matrices(count: int, around: Sequence[Repetition]) -> int:
    """How many matrices one call multiplies: without a batch, the longest of the loops makes one."""
    return max(count, *(repetition.count for repetition in around)) if count == 1 and around else count


LEAST_CLOSE_RUN = 8
"""Elements side by side in memory that are worth more than a longer run of others."""


def _has_neighbours(shape: Shape, dims: Sequence[int]) -> bool:
    """Elements next to each other along one of `dims` are so in memory."""
    return any(shape.strides()[dim] == 1 and shape.dims[dim] > 1 for dim in dims)


class _Skip(Record):
    """A dimension outside of a run: bytes to the next position of the operand, and of the result."""

    count: int
    distance: int
    of_result: int


class _Free(Record):
    """Free dimensions of an operand, in order, and their places in the result."""

    shape: Shape
    dims: Dims
    result: Shape
    places: Dims

    @property
    def size(self) -> int:
        return math.prod(self.shape.dims[dim] for dim in self.dims)

    def longest_run(self, *, is_close: bool) -> _Free:
        """The neighbours among them that have one stride in operand and result, and most elements; the last of such.

        Of a matrix that `is_close`, neighbours along the depth are neighbours in memory. Of others they should be along
        the run, if that is not too short: else each element is fetched from a line of its own."""
        if self.has_one_stride:  # as nearly always
            return self
        count = len(self.dims)
        runs = [self._part(first, end) for first in range(count + 1) for end in range(first, count + 1)]
        return max(
            (run for run in runs if run.has_one_stride),
            key=lambda run: (not is_close and run.size >= LEAST_CLOSE_RUN and run.has_neighbours, run.size, run.dims),
        )

    @property
    def has_neighbours(self) -> bool:
        return _has_neighbours(self.shape, self.dims)

    @property
    def has_one_stride(self) -> bool:
        return one_stride(self.shape, self.dims) is not None and one_stride(self.result, self.places) is not None

    def outside(self, run: _Free) -> list[_Skip]:
        """The dimensions that are not part of a run."""
        return [
            _Skip(
                self.shape.dims[dim],
                self.shape.strides()[dim] * self.shape.type.bytes,
                self.result.strides()[place] * self.result.type.bytes,
            )
            for dim, place in zip(self.dims, self.places, strict=True)
            if dim not in run.dims and self.shape.dims[dim] != 1
        ]

    def _part(self, first: int, end: int) -> _Free:
        return _Free(self.shape, self.dims[first:end], self.result, self.places[first:end])


def _has_strips(rhs: Shape, numbers: DotDimensionNumbers) -> bool:
    """Whether the columns have one stride only within positions of the first free dimension of the right side, where
    there is no other batch."""
    columns = numbers.rhs_free(rhs.rank)
    return len(columns) > 1 and not numbers.rhs_batch and one_stride(rhs, columns) is None


def _product_of_strips(
    lhs: Shape, rhs: Shape, result: Shape, numbers: DotDimensionNumbers, kind: str
) -> MatrixProduct | None:
    """The library call that has strips of the right side for a batch."""
    depth = math.prod(lhs.dims[dim] for dim in numbers.lhs_contracting)
    rows, (strip, *columns) = numbers.lhs_free(lhs.rank), numbers.rhs_free(rhs.rank)
    m, n = (math.prod(shape.dims[dim] for dim in dims) for shape, dims in ((lhs, rows), (rhs, columns)))
    if n < LEAST_STRIP_COLUMNS or result.size * depth < SMALLEST_WORK or m * n * depth <= SMALL_MATRIX_WORK:
        return None
    strides = {
        "b_batch": rhs.strides()[strip],
        "c_batch": result.strides()[len(rows)],
        "a_row": one_stride(lhs, rows),
        "a_step": one_stride(lhs, numbers.lhs_contracting),
        "b_step": one_stride(rhs, numbers.rhs_contracting),
        "b_column": one_stride(rhs, columns),
        "c_row": one_stride(result, range(len(rows))),
        "c_column": one_stride(result, range(len(rows) + 1, result.rank)),
    }
    known = {name: stride for name, stride in strides.items() if stride is not None}
    counts = {"batches": rhs.dims[strip], "m": m, "n": n, "k": depth, "a_batch": 0}
    return MatrixProduct(kind, known | counts) if len(known) == len(strides) else None


def _first_of_one_stride(batches: Batches) -> int:
    """From which batch dimension on all three arrays have one stride."""
    return next(
        first
        for first in range(len(batches[0][1]) + 1)
        if all(one_stride(shape, dims[first:]) is not None for shape, dims in batches)
    )


def _repetitions(batches: Batches, end: int) -> tuple[Repetition, ...]:
    """The loops over the batch dimensions before `end`."""
    (lhs, lhs_dims), (rhs, rhs_dims), (result, dims) = batches
    steps = [
        (lhs.strides()[a] * lhs.type.bytes, rhs.strides()[b] * rhs.type.bytes, result.strides()[c] * result.type.bytes)
        for a, b, c in zip(lhs_dims[:end], rhs_dims[:end], dims[:end], strict=True)
    ]
    return tuple(Repetition(result.dims[dim], strides) for dim, strides in zip(dims, steps, strict=False))


_WIDE_KINDS = frozenset({F32, F64, S32, S64, C64, C128})
KINDS_IN_MEMORY = frozenset(element_type.name for element_type in _WIDE_KINDS)
"""Libraries whose tiles compute with the elements of matrices as they are in memory."""

_BYTES = frozenset({S8, U8})  # summed as 32 bits, in pairs along K


def product_kind(lhs: ElementType, rhs: ElementType, result: ElementType) -> str | None:
    """The name of the library for these element types, if there is one."""
    if lhs is not rhs:
        return None
    if lhs in _BYTES:
        return lhs.name if result is S32 else None
    if lhs is result:
        return lhs.name if lhs in _WIDE_KINDS or lhs.is_narrow_float else None
    return f"{lhs.name}_f32" if lhs.is_narrow_float and result is F32 else None


def one_stride(shape: Shape, dims: Sequence[int]) -> int | None:
    """The one distance between neighbours when `dims` are walked in order, last fastest; None if there is no such."""
    strides = shape.strides()
    wide = [dim for dim in dims if shape.dims[dim] != 1]
    if not wide:
        return 1
    for outer, inner in itertools.pairwise(wide):
        if strides[outer] != strides[inner] * shape.dims[inner]:
            return None
    return strides[wide[-1]]


# -- convolutions ------------------------------------------------------------------------------------------------------

SMALLEST_CONVOLUTION = 1 << 20  # multiplications; below, packing and two handovers to the pool are not worth it
LONG_RUN_OF_BYTES = 32  # features of one place, so that packing does not cost more than multiplying
LEAST_PRODUCT_FEATURES = 16
"""Features of the result, in a group, that make a convolution a matrix product: so often is each element used that is
packed for it."""

FEWEST_FEATURES = 3  # of the result, if there are no groups: most lanes are idle, but those of a kernel would be so too
LEAST_NEIGHBOURS = 12  # elements side by side in memory, to be packed together
LEAST_FEATURES_OF_FEW = 24  # of the result, where tiles sum up short runs: with fewer they are not wide enough
LEAST_POSITIONS_OF_FEW = 12  # of the window in a line: with fewer they are not high enough
SPACES = 3
"""The most dimensions that a window may have."""

LEVELS = 1 + SPACES
"""Digits of a row and of a step: batch (or feature) and one for each space, outermost first."""


class _Digit(Record):
    """One digit of a row or of a step: its range, its offset in elements, or the space in which it moves, how far."""

    count: int
    offset: int = 0
    space: int = 0
    move: int = 0


def window_product(convolution: Instruction) -> MatrixProduct | None:
    """The library call that computes a convolution, or None if it is better, or only possible, without."""
    numbers: ConvolutionDimensionNumbers = convolution.attributes["dimension_numbers"]
    lhs, rhs, result = convolution.operands[0].shape, convolution.operands[1].shape, convolution.shape
    groups: int = convolution.attributes["feature_group_count"]
    kind = product_kind(lhs.type, rhs.type, result.type)
    row_dims = [dim for dim in range(result.rank) if dim != numbers.output_feature]
    step_dims = [dim for dim in range(rhs.rank) if dim != numbers.kernel_output_feature]
    columns = result.dims[numbers.output_feature] // groups
    depth = math.prod(rhs.dims[dim] for dim in step_dims)
    c_row, b_step = one_stride(result, row_dims), one_stride(rhs, step_dims)
    if kind is None or c_row is None or b_step is None or not _is_suited(convolution, columns, depth):
        return None
    if has_tiled_types(convolution) and _is_short_along_a_line(convolution):
        return None
    rows, steps = _rows(convolution, row_dims), _steps(convolution, step_dims)
    is_regular = _is_regular(numbers, row_dims, step_dims)
    is_gradient = _is_gradient(convolution, row_dims, step_dims)
    follows_rows = _follows_rows(lhs.type, rows[-1], steps[-1])
    feature = lhs.strides()[numbers.input_feature]
    is_large = columns >= LEAST_FEATURES_OF_FEW and rows[-1].count >= LEAST_POSITIONS_OF_FEW
    if follows_rows is None and not (is_large and is_regular and feature == 1 and kind in _KINDS_OF_REGIONS):
        return None
    values = {
        "batches": groups,
        "m": math.prod(digit.count for digit in rows),
        "n": columns,
        "k": depth,
        "a_batch": rhs.dims[numbers.kernel_input_feature] * feature,
        "b_batch": columns,
        "b_step": b_step,
        "b_column": 1,
        "c_batch": columns,
        "c_row": c_row,
        "c_column": 1,
    }
    window: Window = convolution.attributes["window"]
    reaches_outside = any(part.padding_low > 0 or part.padding_high > 0 for part in window.dimensions)
    windows = {
        "follows_rows": int(bool(follows_rows)),
        "has_few": int(follows_rows is None),
        "reaches_outside": int(reaches_outside),
        "is_regular": int(is_regular),
        "is_gradient": int(is_gradient),
        **_spaces(convolution),
        **_described("row", rows, 1 if is_regular else 0, lhs.type.bytes),
        **_described("step", steps, 1 if is_gradient else 0, lhs.type.bytes),
    }
    return MatrixProduct(kind, values, windows=windows)


def convolution_product(convolution: Instruction) -> MatrixProduct | None:
    """The library call that computes a convolution, one way or another."""
    return window_product(convolution) or pointwise_product(convolution)


def pointwise_product(convolution: Instruction) -> MatrixProduct | None:
    """The library call that multiplies the kernel by each image, if the window is a single element: features of the
    result by positions."""
    numbers: ConvolutionDimensionNumbers = convolution.attributes["dimension_numbers"]
    lhs, rhs, result = convolution.operands[0].shape, convolution.operands[1].shape, convolution.shape
    kind = product_kind(lhs.type, rhs.type, result.type)
    groups = convolution.attributes["feature_group_count"] * convolution.attributes["batch_group_count"]
    is_plain = all(
        replace(part, reversal=False) == NO_WINDOW_DIMENSION for part in convolution.attributes["window"].dimensions
    )
    if kind is None or groups != 1 or not is_plain:
        return None
    batches, inputs = lhs.dims[numbers.input_batch], lhs.dims[numbers.input_feature]
    features = result.dims[numbers.output_feature]
    positions = math.prod(lhs.dims[dim] for dim in numbers.input_spatial)
    work = features * positions * inputs
    if batches * work < SMALLEST_WORK or work <= SMALL_MATRIX_WORK or positions < LEAST_STRIP_COLUMNS:
        return None
    column = one_stride(lhs, numbers.input_spatial)
    if column is None or one_stride(result, numbers.output_spatial) != 1:
        return None
    values = {
        "batches": batches,
        "m": features,
        "n": positions,
        "k": inputs,
        "a_batch": 0,
        "a_row": rhs.strides()[numbers.kernel_output_feature],
        "a_step": rhs.strides()[numbers.kernel_input_feature],
        "b_batch": lhs.strides()[numbers.input_batch],
        "b_step": lhs.strides()[numbers.input_feature],
        "b_column": column,
        "c_batch": result.strides()[numbers.output_batch],
        "c_row": result.strides()[numbers.output_feature],
        "c_column": 1,
    }
    return MatrixProduct(kind, values, exchanged=True)


def _is_suited(convolution: Instruction, columns: int, depth: int) -> bool:
    """The library can compute the convolution, and there is enough to multiply."""
    numbers: ConvolutionDimensionNumbers = convolution.attributes["dimension_numbers"]
    parts = convolution.attributes["window"].dimensions
    lhs, rhs, result = convolution.operands[0].shape, convolution.operands[1].shape, convolution.shape
    is_grouped = convolution.attributes["feature_group_count"] > 1
    return (
        not lhs.type.is_complex
        and len(parts) <= SPACES
        and all(part.base_dilation == 1 for part in parts)
        and convolution.attributes["batch_group_count"] == 1
        and columns >= (LEAST_PRODUCT_FEATURES if is_grouped else FEWEST_FEATURES)
        and result.size * depth >= _smallest_convolution(convolution)
        and result.strides()[numbers.output_feature] == rhs.strides()[numbers.kernel_output_feature] == 1
    )


def _smallest_convolution(convolution: Instruction) -> int:
    """How many multiplications are worth a call. Kernels of the program widen bytes one by one, and signed ones slowly,
    but long runs of features are packed as quickly as they are read."""
    numbers: ConvolutionDimensionNumbers = convolution.attributes["dimension_numbers"]
    lhs, rhs = convolution.operands[0].shape, convolution.operands[1].shape
    if lhs.type not in _BYTES:
        return SMALLEST_CONVOLUTION
    is_long = rhs.dims[numbers.kernel_input_feature] >= LONG_RUN_OF_BYTES and lhs.strides()[numbers.input_feature] == 1
    return SMALLEST_CONVOLUTION >> (3 if is_long else 1 if lhs.type.is_signed else 0)


TILED_TYPES = (F32, F64)
"""Of convolutions that a library computes directly, by tiles of results and of features, which come last."""


def has_tiled_types(convolution: Instruction) -> bool:
    """Operands and result are all of one of these types."""
    type = convolution.shape.type
    return type in TILED_TYPES and all(operand.shape.type is type for operand in convolution.operands)


MOST_KERNEL_BYTES_OF_LINES = 1 << 16
"""Of a window that moves along one dimension. Its places have nothing in common with those of other lines, so that a
region of the array is copied for little; direct convolutions take 0.3 to 0.9 of the time (one core of a Zen 3), and
more with kernels that leave the second-level cache."""


def _is_short_along_a_line(convolution: Instruction) -> bool:
    """Whether a direct convolution is better, of a short window along one dimension."""
    numbers: ConvolutionDimensionNumbers = convolution.attributes["dimension_numbers"]
    window: Window = convolution.attributes["window"]
    if len(window.dimensions) != 1 or convolution.operands[1].shape.bytes > MOST_KERNEL_BYTES_OF_LINES:
        return False
    return 1 < window.dimensions[0].size < convolution.shape.dims[numbers.output_spatial[0]]


def _is_regular(numbers: ConvolutionDimensionNumbers, row_dims: list[int], step_dims: list[int]) -> bool:
    """Batch, then places are the digits of a row; places, then features those of a step."""
    rows, steps = (
        (numbers.output_batch, *numbers.output_spatial),
        (*numbers.kernel_spatial, numbers.kernel_input_feature),
    )
    return tuple(row_dims) == rows and tuple(step_dims) == steps


def _is_gradient(convolution: Instruction, row_dims: list[int], step_dims: list[int]) -> bool:
    """Places, then features, which lie side by side, are the digits of a row; images, then positions those of a step:
    as of a regular one whose two sides are exchanged."""
    numbers: ConvolutionDimensionNumbers = convolution.attributes["dimension_numbers"]
    rows, steps = (
        (*numbers.output_spatial, numbers.output_batch),
        (numbers.kernel_input_feature, *numbers.kernel_spatial),
    )
    is_reversed = any(part.reversal for part in convolution.attributes["window"].dimensions)
    is_beside = convolution.operands[0].shape.strides()[numbers.input_batch] == 1
    return tuple(row_dims) == rows and tuple(step_dims) == steps and is_beside and not is_reversed


_KINDS_OF_REGIONS = frozenset({"f32", "f64", "s32", "s64"})
"""Libraries whose tiles compute with the elements of an array as they are in memory."""


def _rows(convolution: Instruction, dims: Sequence[int]) -> list[_Digit]:
    """The digits of a row: positions of the window in the input, in the order of `dims` of the result."""
    numbers: ConvolutionDimensionNumbers = convolution.attributes["dimension_numbers"]
    batch = convolution.operands[0].shape.strides()[numbers.input_batch]
    moves = [part.stride for part in convolution.attributes["window"].dimensions]
    return _digits(dims, convolution.shape.dims, numbers.output_batch, batch, numbers.output_spatial, moves)


def _steps(convolution: Instruction, dims: Sequence[int]) -> list[_Digit]:
    """The digits of a step: places in the window, in the order of `dims` of the kernel."""
    numbers: ConvolutionDimensionNumbers = convolution.attributes["dimension_numbers"]
    lhs, rhs = (operand.shape for operand in convolution.operands)
    feature, parts = lhs.strides()[numbers.input_feature], convolution.attributes["window"].dimensions
    moves = [-part.window_dilation if part.reversal else part.window_dilation for part in parts]
    return _digits(dims, rhs.dims, numbers.kernel_input_feature, feature, numbers.kernel_spatial, moves)


def _digits(
    dims: Sequence[int], sizes: Dims, plain: int, offset: int, spatial: Dims, moves: Sequence[int]
) -> list[_Digit]:
    """What `dims` of one side do to the place in the input: `plain` skips `offset` elements, the others move it."""
    return [
        _Digit(sizes[dim], offset=offset)
        if dim == plain
        else _Digit(sizes[dim], space=_first_space(spatial) + spatial.index(dim), move=moves[spatial.index(dim)])
        for dim in dims
    ]


def _first_space(spatial: Dims) -> int:
    """The number of the first space there is: missing ones come first."""
    return SPACES - len(spatial)


def _follows_rows(element_type: ElementType, row: _Digit, step: _Digit) -> bool | None:
    """Whether neighbours in memory are rows or steps; None if they are neither, or too few.

    Rows are copied as they are, so they must be in memory what tiles compute with: no bytes, no narrow floats."""
    is_paired = element_type in _BYTES
    if step.offset == 1 and step.count >= LEAST_NEIGHBOURS and not (is_paired and step.count % 2):
        return False
    is_narrow = is_paired or element_type.is_narrow_float
    if row.offset == 1 and row.count >= LEAST_NEIGHBOURS and not is_narrow:
        return True
    return None


def _spaces(convolution: Instruction) -> dict[str, int]:
    """Size, stride and start of each space; one element where there is no such dimension."""
    numbers: ConvolutionDimensionNumbers = convolution.attributes["dimension_numbers"]
    lhs = convolution.operands[0].shape
    described = {f"size{space}": 1 for space in range(SPACES)}
    parts = zip(numbers.input_spatial, convolution.attributes["window"].dimensions, strict=True)
    for space, (dim, part) in enumerate(parts, start=_first_space(numbers.input_spatial)):
        described[f"size{space}"] = lhs.dims[dim]
        described[f"stride{space}"] = lhs.strides()[dim] * lhs.type.bytes
        reach = (part.size - 1) * part.window_dilation if part.reversal else 0
        described[f"start{space}"] = reach - part.padding_low
    return described


def _described(side: str, digits: Sequence[_Digit], first: int, element_bytes: int) -> dict[str, int]:
    """The numbers of digits, the innermost last; missing ones have a range of one and follow the `first` ones."""
    described = {f"{side}_count{level}": 1 for level in range(LEVELS)}
    missing = LEVELS - len(digits)
    for number, digit in enumerate(digits):
        level = number if number < first else number + missing
        described[f"{side}_count{level}"] = digit.count
        described[f"{side}_offset{level}"] = digit.offset * element_bytes
        described[f"{side}_move{digit.space}_{level}"] = digit.move
    return described


_PRODUCTS = {"dot": matrix_product, "convolution": convolution_product}
