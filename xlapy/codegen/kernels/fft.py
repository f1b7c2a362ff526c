"""Fourier transforms: one kernel for each dimension that is transformed.

A kernel works on blocks: one transform whose rows are next to each other, or as many neighbouring transforms as a
vector has lanes or more. A block goes from the source through two buffers of scratch memory, stage by stage, to the
target, so that all but the first and the last stage stay in cache. The dimensions beyond the first are transformed in
place.

Real transforms of an even length are complex ones of half the length: neighbours are taken as real and imaginary part,
and the spectra of the two halves are told apart by their symmetry.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from xlapy.codegen.arrays import Array
from xlapy.codegen.ir import F64, I64, IRType, KernelBuilder, Value
from xlapy.codegen.kernels.butterflies import add, conjugate, multiply, plus_i_times, scaled, subtract, swapped
from xlapy.codegen.kernels.fft_stages import Block, emit_stage
from xlapy.codegen.kernels.fft_tables import Recipe, Tables, recipe, roots_of_unity
from xlapy.codegen.kernels.fft_views import Inverted, Numbers, Place, Planes, View
from xlapy.codegen.kernels.loop import power_of_two_below
from xlapy.codegen.registers import Pair, register_type
from xlapy.codegen.target import Target
from xlapy.hlo.attributes import FftType
from xlapy.hlo.graph import Instruction
from xlapy.hlo.shape import Shape

LONGEST_ACROSS_LANES = 32
"""Transforms up to this length are computed side by side, one in each lane, if there are enough."""

MOST_COLUMNS = 64
SCRATCH_ALIGNMENT = 64


Change = Callable[[Place, Pair], Pair]


@dataclass(frozen=True, slots=True)
class Side:
    """How the source or the target of a pass is laid out: distances in its own elements, real or complex."""

    place: str  # "operand", "result" or "shared"
    parts: int  # 2 if complex
    row_pitch: int
    column_pitch: int
    outer_pitch: int


@dataclass(frozen=True, slots=True)
class FftPass:
    """Transforms one dimension: `outer` groups of `columns` transforms of `length`."""

    type: IRType  # of real numbers
    length: int
    source: Side
    target: Side
    outer: int
    columns: int
    lanes: int
    blocks: int  # into which the columns of a group are cut
    inverse: bool
    scale: float
    recipe: Recipe
    table: np.ndarray[Any, Any] | None
    half_table: int  # where the roots for the spectra of two halves begin

    @property
    def lanes_along_rows(self) -> bool:
        return self.columns == 1

    @property
    def units(self) -> int:
        return self.outer * self.blocks

    @property
    def width(self) -> int:
        """Columns of the widest block."""
        return -(-self.columns // self.blocks)

    @property
    def bytes_per_unit(self) -> int:
        stages = max(len(self.recipe.stages), 1)
        return self.width * self.recipe.rows * 4 * self.type.bytes * stages

    @property
    def plane_bytes(self) -> int:
        """Bytes of the real parts of one buffer; a spectrum of a half repeats its first row at the end."""
        size = (self.recipe.rows + 1) * self.width * self.type.bytes
        return -(-size // SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT

    @property
    def scratch_bytes(self) -> int:
        return 4 * self.plane_bytes

    @property
    def is_real(self) -> bool:
        return self.source.parts != self.target.parts


def plan_fft(fft: Instruction, target: Target) -> list[FftPass]:
    """The passes for an instruction, in order. All but the one of the innermost dimension are in place."""
    kind: FftType = fft.attributes["fft_type"]
    operand, result = fft.operands[0].shape, fft.shape
    count = len(fft.attributes["fft_length"])
    inverse = kind in (FftType.IFFT, FftType.IRFFT)
    dims = list(range(result.rank - 1, result.rank - 1 - count, -1))
    scale = 1.0 / math.prod(fft.attributes["fft_length"]) if inverse else 1.0
    if kind is not FftType.IRFFT:
        places = [("operand", "result"), *[("result", "result")] * (count - 1)]
        passes = [_plan_inner(kind, operand, result, places[0], inverse, scale if count == 1 else 1.0, target)]
        for dim, place in zip(dims[1:], places[1:], strict=True):
            passes.append(_plan_outer(result, dim, place, inverse, scale if dim == dims[-1] else 1.0, target))
        return passes
    sources = ["operand", *["shared"] * (count - 1)]
    passes = [
        _plan_outer(operand, dim, (source, "shared"), inverse, 1.0, target)
        for dim, source in zip(dims[1:], sources, strict=False)
    ]
    return [*passes, _plan_inner(kind, operand, result, (sources[-1], "result"), inverse, scale, target)]


def shared_bytes(fft: Instruction) -> int:
    """What IRFFT needs for the operand transformed along all dimensions but the innermost."""
    several = len(fft.attributes["fft_length"]) > 1
    return fft.operands[0].shape.bytes if several and fft.attributes["fft_type"] is FftType.IRFFT else 0


def _plan_inner(
    kind: FftType,
    operand: Shape,
    result: Shape,
    places: tuple[str, str],
    inverse: bool,
    scale: float,
    target: Target,
) -> FftPass:
    """The pass over the innermost dimension."""
    real_side = {FftType.RFFT: operand, FftType.IRFFT: result}.get(kind)
    length = (real_side or result).dims[-1]
    batch = result.size // result.dims[-1]
    source, goal = (
        Side(place, 2 if shape.type.is_complex else 1, 1, shape.dims[-1], shape.dims[-1])
        for place, shape in zip(places, (operand, result), strict=True)
    )
    lanes = _lanes(operand, target)
    if length <= LONGEST_ACROSS_LANES and batch >= lanes:
        columns, outer = batch, 1
    else:
        columns, outer = 1, batch
    return _plan(operand, length, (source, goal), outer, columns, inverse, scale, target)


def _plan_outer(
    shape: Shape, dim: int, places: tuple[str, str], inverse: bool, scale: float, target: Target
) -> FftPass:
    """The pass over a dimension that has others inside: neighbours along those are transformed together."""
    columns = math.prod(shape.dims[dim + 1 :])
    length = shape.dims[dim]
    source, goal = (Side(place, 2, columns, 1, columns * length) for place in places)
    outer = math.prod(shape.dims[:dim])
    return _plan(shape, length, (source, goal), outer, columns, inverse, scale, target)


@functools.lru_cache(maxsize=4)  # of what the plan of the memory asked for, and the kernel asks again
def _plan(
    shape: Shape,
    length: int,
    sides: tuple[Side, Side],
    outer: int,
    columns: int,
    inverse: bool,
    scale: float,
    target: Target,
) -> FftPass:
    type = register_type(shape.type)
    lanes = _lanes(shape, target)
    if columns > 1:
        lanes = min(lanes, power_of_two_below(columns))
    is_real = sides[0].parts != sides[1].parts
    is_half = is_real and length % 2 == 0
    tables = Tables(np.dtype(np.float64 if type == F64 else np.float32))
    work = recipe(length // 2 if is_half else length, lanes if columns == 1 else 1, tables)
    half_table = tables.add(roots_of_unity(np.arange(length // 2 + 1), length)) if is_half else 0
    widest = target.l2_bytes // 2 // (4 * type.bytes * work.rows)
    widest = max(2 * lanes, min(MOST_COLUMNS, power_of_two_below(max(widest, 1))))
    blocks = -(-columns // widest)
    return FftPass(
        type, length, sides[0], sides[1], outer, columns, lanes, blocks, inverse, scale, work, tables.array, half_table
    )


def _lanes(shape: Shape, target: Target) -> int:
    return target.lanes(register_type(shape.type).bits)


def emit_fft(k: KernelBuilder, plan: FftPass, operand: Array, result: Array, begin: Value, end: Value) -> None:
    """Writes units [begin, end): blocks of columns, for each outer index."""
    pointers = {"operand": operand.pointer, "result": result.pointer, "shared": k.parameters.get("shared")}
    with k.loop(begin, end) as units:
        outer = k.udiv(units.index, plan.blocks)
        number = k.sub(units.index, k.mul(outer, plan.blocks))
        first = k.udiv(k.mul(number, plan.columns), plan.blocks)
        width = k.sub(k.udiv(k.mul(k.add(number, 1), plan.columns), plan.blocks), first)
        block = Block(k, plan.type, plan.lanes, width, plan.lanes_along_rows, k.parameters.get("table"))
        views = []
        for side in (plan.source, plan.target):
            pointer = pointers[side.place]
            assert pointer is not None
            views.append(_view(k, plan, side, pointer, outer, first))
        _BlockEmitter(plan, block).emit(*views)


def _view(k: KernelBuilder, plan: FftPass, side: Side, pointer: Value, outer: Value, first: Value) -> Numbers:
    """The columns from `first` on in a source or a target."""
    position = k.add(k.mul(outer, side.outer_pitch), k.mul(first, side.column_pitch))
    start = k.gep(pointer, position, side.parts * plan.type.bytes)
    return Numbers(start, plan.type, side.parts, side.row_pitch, side.column_pitch, plan.lanes_along_rows)


class _BlockEmitter:
    """Writes the code for one block, from source to target."""

    def __init__(self, plan: FftPass, block: Block) -> None:
        k = block.k
        self._plan = plan
        self._block = block
        self._k = k
        memory = k.parameters["scratch"]
        planes = [k.gep(memory, number * plan.plane_bytes) for number in range(4)]
        self._buffers = (
            Planes(planes[0], planes[1], plan.type, plan.width),
            Planes(planes[2], planes[3], plan.type, plan.width),
        )

    def emit(self, source: Numbers, target: Numbers) -> None:
        plan = self._plan
        if not plan.is_real:
            views: list[View] = [source, target]
            if plan.inverse:
                views = [Inverted(source), Inverted(target, plan.scale)]
            self._complex(views[0], views[1])
        elif plan.inverse:
            self._to_real(source, target)
        else:
            self._from_real(source, target)

    # -- complex ---------------------------------------------------------------------------------------------------

    def _complex(self, source: View, target: View) -> None:
        """The transform from one view to another, which may be the same."""
        stages = self._plan.recipe.stages
        if self._plan.recipe.chirp is not None:
            self._copy(self._convolved(source), target, self._plan.length, self._times_chirp)
        elif len(stages) > 1:
            last = self._in_scratch(source, stages=len(stages) - 1)
            emit_stage(self._block, stages[-1], last, target)
        elif self._plan.source.place == self._plan.target.place:
            self._copy(self._transformed(source), target, self._plan.length)
        elif stages:
            emit_stage(self._block, stages[0], source, target)
        else:
            self._copy(source, target, self._plan.length)

    def _transformed(self, source: View) -> Planes:
        """The transform, left in a buffer."""
        if self._plan.recipe.chirp is None:
            return self._in_scratch(source)
        before = self._convolved(source)
        after = self._other(before)
        self._copy(before, after, self._plan.recipe.length, self._times_chirp)
        return after

    def _in_scratch(self, source: View, stages: int | None = None) -> Planes:
        """The first `stages` stages (all of them, if None), from buffer to buffer; returns the last."""
        current = source
        for stage in self._plan.recipe.stages[:stages]:
            following = self._other(current)
            emit_stage(self._block, stage, current, following)
            current = following
        if isinstance(current, Planes):
            return current
        self._copy(current, self._buffers[0], self._plan.recipe.length)
        return self._buffers[0]

    def _other(self, current: View) -> Planes:
        return self._buffers[1] if current is self._buffers[0] else self._buffers[0]

    def _convolved(self, source: View) -> Planes:
        """Bluestein's convolution, without the chirp that the result is multiplied by."""
        chirp, length = self._plan.recipe.chirp, self._plan.recipe.length
        assert chirp is not None
        padded = self._other(source)
        self._copy(source, padded, length, self._times_chirp)
        zero = self._k.const(self._plan.type, 0.0)
        self._block.each(length, chirp.length, lambda place: padded.store(self._k, place, Pair(zero, zero)))
        spectrum = self._in_scratch(padded)
        product = self._other(spectrum)

        def times_factor(place: Place, value: Pair) -> Pair:
            factor = self._block.row_numbers(chirp.factor, chirp.length, place)
            return swapped(multiply(self._k, value, factor))

        self._copy(spectrum, product, chirp.length, times_factor)
        inverted = self._in_scratch(product)
        result = self._other(inverted)
        self._copy(inverted, result, length, lambda place, value: swapped(value))
        return result

    def _times_chirp(self, place: Place, value: Pair) -> Pair:
        chirp = self._plan.recipe.chirp
        assert chirp is not None
        return multiply(self._k, value, self._block.row_numbers(chirp.chirp, self._plan.recipe.length, place))

    def _copy(self, source: View, target: View, rows: int, change: Change | None = None) -> None:
        """Copies rows, each value changed on the way."""

        def step(place: Place) -> None:
            value = source.load(self._k, place)
            target.store(self._k, place, change(place, value) if change else value)

        self._block.each(0, rows, step)

    # -- real ------------------------------------------------------------------------------------------------------

    def _from_real(self, source: Numbers, target: Numbers) -> None:
        plan = self._plan
        rows = plan.length // 2 + 1
        if plan.length % 2:
            self._copy(self._transformed(source), target, rows)
            return
        half = self._transformed(_as_pairs(source))
        self._block.each(0, 1, lambda place: self._repeat_first(half, place))

        def step(place: Place) -> None:
            """Half the sum with the mirrored conjugate is the spectrum of the even elements; the difference, turned,
            that of the odd ones."""
            value, mirrored = half.load(self._k, place), conjugate(self._k, self._mirrored(half, place))
            even = scaled(self._k, add(self._k, value, mirrored), 0.5)
            odd = scaled(self._k, subtract(self._k, value, mirrored), 0.5)
            turned = multiply(self._k, odd, self._half_roots(place))
            target.store(self._k, place, Pair(self._k.add(even.re, turned.im), self._k.sub(even.im, turned.re)))

        self._block.each(0, rows, step)

    def _repeat_first(self, half: Planes, place: Place) -> None:
        last = replace(place, row=self._k.const(I64, self._plan.length // 2))
        half.store(self._k, last, half.load(self._k, place))

    def _half_roots(self, place: Place) -> Pair:
        return self._block.row_numbers(self._plan.half_table, self._plan.length // 2 + 1, place)

    def _mirrored(self, view: View, place: Place) -> Pair:
        """The values at row `length / 2 - row`."""
        k = self._k
        row = k.sub(k.const(I64, self._plan.length // 2), place.row)
        if not self._plan.lanes_along_rows or place.lanes == 1:
            return view.load(k, replace(place, row=row))
        value = view.load(k, replace(place, row=k.sub(row, place.lanes - 1)))
        order = range(place.lanes - 1, -1, -1)
        return Pair(k.shuffle(value.re, None, order), k.shuffle(value.im, None, order))

    def _to_real(self, source: Numbers, target: Numbers) -> None:
        plan = self._plan
        if plan.length % 2:
            self._complex_from_half(source, target)
            return
        k, half = self._k, self._buffers[0]

        def step(place: Place) -> None:
            value, mirrored = source.load(k, place), conjugate(k, self._mirrored(source, place))
            even, odd = add(k, value, mirrored), subtract(k, value, mirrored)
            turned = multiply(k, odd, conjugate(k, self._half_roots(place)))
            half.store(k, place, swapped(plus_i_times(k, even, turned)))

        def first(place: Place) -> None:
            """The imaginary parts of the first and the last element do not count."""
            value, last = source.load(k, place).re, self._mirrored(source, place).re
            half.store(k, place, swapped(Pair(k.add(value, last), k.sub(value, last))))

        self._block.each(0, plan.length // 2, step)
        self._block.each(0, 1, first)
        self._from_buffer(half, Inverted(_as_pairs(target), plan.scale))

    def _complex_from_half(self, source: Numbers, target: Numbers) -> None:
        """An odd length: the missing half of the spectrum is filled in."""
        k, whole, length = self._k, self._buffers[0], self._plan.length

        def step(place: Place) -> None:
            whole.store(k, place, swapped(source.load(k, place)))

        def mirror(place: Place) -> None:
            value = conjugate(k, source.load(k, place))
            row = k.sub(k.const(I64, length), place.row)
            if self._plan.lanes_along_rows and place.lanes > 1:
                order = range(place.lanes - 1, -1, -1)
                value = Pair(k.shuffle(value.re, None, order), k.shuffle(value.im, None, order))
                row = k.sub(row, place.lanes - 1)
            whole.store(k, replace(place, row=row), swapped(value))

        def first(place: Place) -> None:
            value = source.load(k, place).re
            whole.store(k, place, swapped(Pair(value, k.const(value.type, 0.0))))

        self._block.each(0, length // 2 + 1, step)
        self._block.each(1, length // 2 + 1, mirror)
        self._block.each(0, 1, first)
        self._from_buffer(whole, Inverted(target, self._plan.scale))

    def _from_buffer(self, source: Planes, target: View) -> None:
        """The transform of a buffer, in the target."""
        self._copy(self._transformed(source), target, self._plan.recipe.length)


def _as_pairs(numbers: Numbers) -> Numbers:
    """Real numbers, two by two as complex ones."""
    pitch = numbers.column_pitch // 2
    return replace(numbers, parts=2, column_pitch=pitch)
