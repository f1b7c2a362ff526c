"""Fourier transforms as calls of the library: one pass for each dimension that is transformed.

A pass works on units: one transform whose elements are next to each other, or as many neighbouring transforms as a
vector has lanes or more. Its steps go through the memory of a task, which stays in cache (`fourier_steps`). The
dimensions beyond the first are transformed in place.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from xlapy.codegen.arrays import FETCHED_AHEAD
from xlapy.codegen.fourier_steps import Block, Composer, Place, begins_with_stage, is_direct, rows_in_work
from xlapy.codegen.fourier_tables import Tables
from xlapy.codegen.ir import F64
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.kernels.loop import STREAMED_BYTES, power_of_two_below
from xlapy.codegen.kernels.tasks import MOST_TASKS_WITH_SCRATCH, PARALLEL_BYTES, units_per_task
from xlapy.codegen.libraries.fft_record import OPERAND, PASS_NUMBERS, RESULT
from xlapy.codegen.registers import register_type
from xlapy.codegen.target import Target
from xlapy.hlo.attributes import FftType
from xlapy.hlo.graph import Instruction
from xlapy.hlo.shape import Shape
from xlapy_runtime.records import Record

LONGEST_SIDE_BY_SIDE = 16
"""Vectors. Transforms up to this length are computed side by side, one in each lane, if there are enough."""

LONGEST_POWER_SIDE_BY_SIDE = 4
"""The same for powers of two, whose stages have good use for the vectors."""

MOST_COLUMNS = 64
"""Transforms of a unit."""

PARTS_OF_CACHE = 2
"""One of them holds both buffers of a unit of columns, of which few steps use the second (`fourier_rounds`)."""

NEAR_PART = 0.75
"""Of the first-level cache, for near buffers: their source and target pass through the rest."""

SCRATCH_ALIGNMENT = 64


class Side(Record):
    """The operand or the result of a pass: which array it is, and how it is laid out, in real numbers."""

    array: str  # "operand", "result" or "shared": memory besides
    parts: int  # 2 if complex
    row_pitch: int
    column_pitch: int
    group_pitch: int


class FourierPass(Record):
    """Transforms one dimension: groups of `columns` transforms of `length`."""

    real_bytes: int
    length: int
    operand: Side
    result: Side
    groups: int
    columns: int
    inverse: bool
    scale: float
    target: Target

    @property
    def kind(self) -> str:
        """Of the library."""
        return f"f{self.real_bytes * 8}"

    @property
    def is_real(self) -> bool:
        return self.operand.parts != self.result.parts

    @property
    def work_length(self) -> int:
        """Of the complex transform that this one is made of."""
        return self.length // 2 if self.is_real and self.length % 2 == 0 else self.length

    @property
    def blocks(self) -> int:
        """Units into which a group is cut. The memory for columns takes a part of the second-level cache, through which
        operand and result pass too; of the first one, if that is where they become neighbours. No unit has less than a
        vector: what it would store beyond its columns belongs to the next."""
        lanes = self.target.lanes(8 * self.real_bytes)
        cache = self.target.l2_bytes // PARTS_OF_CACHE if self.has_neighbours else self.target.l1_bytes
        fitting = cache // (4 * self.real_bytes * rows_in_work(self.work_length))
        widest = max(lanes, min(MOST_COLUMNS, power_of_two_below(max(fitting, 1))))
        return min(-(-self.columns // widest), max(self.columns // lanes, 1))

    @property
    def has_neighbours(self) -> bool:
        """Columns lie next to each other, as pairs."""
        return self.operand.column_pitch == self.result.column_pitch == 2

    @property
    def units(self) -> int:
        return self.groups * self.blocks

    @property
    def block(self) -> Block:
        """What a unit works on."""
        lanes = self.target.lanes(8 * self.real_bytes)
        if self.columns == 1:
            fills_vectors = is_direct(self.work_length, lanes)
        else:
            fills_vectors = self.columns >= lanes and self.has_neighbours
        rows, width = rows_in_work(self.work_length), -(-self.columns // self.blocks)
        cached = self.target.l1_bytes // (2 * self.real_bytes)  # complex numbers
        near = 0 if 2 * rows * width <= cached else int(cached * NEAR_PART)
        return Block(rows, width, lanes, fills_vectors, near)

    @property
    def bytes_per_unit(self) -> int:
        """Traffic, for a stage or two of each factor of eight."""
        block = self.block
        stages = max(1, block.rows.bit_length() // 2)
        return block.width * block.rows * 4 * self.real_bytes * stages

    @property
    def grain(self) -> int:
        grain = units_per_task(self.units, self.bytes_per_unit)
        return max(grain, -(-self.units // MOST_TASKS_WITH_SCRATCH))

    @property
    def memory_bytes(self) -> int:
        """Scratch memory of all tasks."""
        return -(-self.units // self.grain) * self.block.memory * self.real_bytes

    @property
    def takes_long(self) -> bool:
        """So long that Python should look at its signals afterwards."""
        return self.units * self.bytes_per_unit >= PARALLEL_BYTES

    def composed(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """The library's table for the pass, and its numbers."""
        tables = Tables(np.dtype(np.float64 if self.real_bytes == F64.bytes else np.float32))
        block = self.block
        composer = Composer(block, tables, self.target, past_caches=self.streams)
        sides = (OPERAND, self.operand), (RESULT, self.result)
        source, target = (Place(array, 0, side.row_pitch, side.column_pitch) for array, side in sides)
        if not self.is_real:
            composer.complex(source, target, self.length, inverse=self.inverse, scale=self.scale)
        elif self.inverse:
            composer.to_real(source, target, self.length, scale=self.scale)
        else:
            composer.from_real(source, target, self.length)
        values = {
            "units": self.units,
            "grain": self.grain,
            "columns": self.columns,
            "blocks": self.blocks,
            "operand_group": self.operand.group_pitch,
            "operand_column": self.operand.column_pitch,
            "result_group": self.result.group_pitch,
            "result_column": self.result.column_pitch,
            "task_memory": block.memory,
            "rounds": len(composer.rounds),
            **self._fetched(),
            "past_caches": int(self.streams),
        }
        values["fetched_with_step"] = -(-values["fetched_rows"] // max(1, composer.calls))
        if self._fetches_with_vectors:
            composer.fetch_with_vectors(self._operand_unit_bytes)
        numbers = [values[name] for name in PASS_NUMBERS]
        numbers += [number for steps in composer.rounds for step in steps for number in step]
        return tables.array, np.array(numbers, np.int64)

    @property
    def streams(self) -> bool:
        """Whether storing the result past the caches pays: it is large. In the place of the operand, lines are in cache
        if that holds all of it."""
        result_bytes = self.groups * self.result.group_pitch * self.real_bytes
        cached = self.target.l3_bytes // (1 if self.operand.array == self.result.array else 2)
        return result_bytes >= max(cached, STREAMED_BYTES)

    @property
    def _operand_unit_bytes(self) -> int:
        """What a unit takes of the operand, if that is in one piece."""
        side = self.operand
        return self.real_bytes * (side.group_pitch if self.columns == 1 else self.block.width * side.column_pitch)

    @property
    def _is_in_cache(self) -> bool:
        return self.groups * self.operand.group_pitch * self.real_bytes <= self.target.l2_bytes

    @property
    def _fetches_with_vectors(self) -> bool:
        """Whether each vector of a stage fetches a little of the next row: rows of so many lines that fetching a part
        of them at the beginning of a step would hold it up, but few enough to stay in cache until they are used."""
        fits = self.target.l1_bytes // 2 < self._operand_unit_bytes <= self.target.l2_bytes // 4
        return self.columns == 1 and fits and not self._is_in_cache

    def _fetched(self) -> dict[str, int]:
        """Which rows of the operand the library fetches for a unit to come, while another is in work; lines count as
        rows if they follow each other. None if a cache holds all, or if vectors fetch them."""
        side, unit_bytes = self.operand, self._operand_unit_bytes
        ahead = rows = pitch = row_bytes = 0
        if self._fetches_with_vectors:
            ahead = 1
        elif self.columns > 1 and self.has_neighbours and not self._is_in_cache:
            ahead, rows, pitch = 1, self.length, side.row_pitch
            row_bytes = 2 * self.block.width * self.real_bytes
        elif unit_bytes <= self.target.l1_bytes // 2 and not self._is_in_cache:
            ahead, rows = -(-FETCHED_AHEAD // unit_bytes), -(-unit_bytes // CACHE_LINE)
            pitch, row_bytes = CACHE_LINE // self.real_bytes, CACHE_LINE
        return {"ahead": ahead, "fetched_rows": rows, "fetched_pitch": pitch, "fetched_bytes": row_bytes}


@functools.lru_cache(maxsize=4)  # of what the plan of the memory asked for, and the program asks again
def passes_of(
    kind: FftType, lengths: tuple[int, ...], operand: Shape, result: Shape, target: Target
) -> tuple[FourierPass, ...]:
    inverse = kind in (FftType.IFFT, FftType.IRFFT)
    scale = 1.0 / math.prod(lengths) if inverse else 1.0
    outer = range(result.rank - 2, result.rank - 1 - len(lengths), -1)
    if kind is FftType.IRFFT:
        arrays = ["operand", *["shared"] * len(outer)]
        passes = [
            _outer_pass(operand, dim, (array, "shared"), 1.0, target, inverse=True)
            for dim, array in zip(outer, arrays, strict=False)
        ]
        return *passes, _inner_pass(kind, operand, result, (arrays[-1], "result"), scale, target)
    scales = [*[1.0] * len(outer), scale]
    return (
        _inner_pass(kind, operand, result, ("operand", "result"), scales[0], target),
        *(
            _outer_pass(result, dim, ("result", "result"), scale, target, inverse=inverse)
            for dim, scale in zip(outer, scales[1:], strict=True)
        ),
    )


def fourier_passes(fft: Instruction, target: Target) -> tuple[FourierPass, ...]:
    """The passes for an instruction, in order. All but the one of the innermost dimension are in place."""
    if not fft.shape.size:
        return ()
    lengths = fft.attributes["fft_length"]
    return passes_of(fft.attributes["fft_type"], tuple(lengths), fft.operands[0].shape, fft.shape, target)


def shared_bytes(fft: Instruction) -> int:
    """What IRFFT needs for the operand transformed along all dimensions but the innermost."""
    several = len(fft.attributes["fft_length"]) > 1
    size = fft.operands[0].shape.bytes if several and fft.attributes["fft_type"] is FftType.IRFFT else 0
    return -(-size // SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT


def fourier_scratch_bytes(fft: Instruction, target: Target) -> int:
    """What all passes work in, one after the other, behind what they share."""
    return shared_bytes(fft) + max((each.memory_bytes for each in fourier_passes(fft, target)), default=0)


def _inner_pass(
    kind: FftType, operand: Shape, result: Shape, arrays: tuple[str, str], scale: float, target: Target
) -> FourierPass:
    """The pass over the innermost dimension."""
    length = (operand if kind is FftType.RFFT else result).dims[-1]
    batch = result.size // result.dims[-1]
    real_bytes = register_type(operand.type).bytes
    lanes = target.lanes(8 * real_bytes)
    is_row = batch < lanes or _is_better_alone(kind, length, lanes)
    sides = []
    for array, shape in zip(arrays, (operand, result), strict=True):
        parts = 2 if shape.type.is_complex else 1
        pitch = parts * shape.dims[-1]
        sides.append(Side(array, parts, parts, pitch, pitch))
    groups, columns = (batch, 1) if is_row else (1, batch)
    inverse = kind in (FftType.IFFT, FftType.IRFFT)
    return FourierPass(real_bytes, length, sides[0], sides[1], groups, columns, inverse, scale, target)


def _is_better_alone(kind: FftType, length: int, lanes: int) -> bool:
    """Long ones are, whose numbers do not fit the caches side by side, unless a stage in their middle has runs of one
    number: 64 transforms of 289 numbers take 38 us side by side, 60 one by one, and with AVX2 44 and 209."""
    is_half = kind in (FftType.RFFT, FftType.IRFFT) and length % 2 == 0
    work = length // 2 if is_half else length
    longest = LONGEST_SIDE_BY_SIDE if work & (work - 1) else LONGEST_POWER_SIDE_BY_SIDE
    return work > longest * lanes and is_direct(work, lanes) and begins_with_stage(work, lanes)


def _outer_pass(
    shape: Shape, dim: int, arrays: tuple[str, str], scale: float, target: Target, *, inverse: bool
) -> FourierPass:
    """The pass over a dimension that has others inside: neighbours along those are transformed together."""
    columns, length = math.prod(shape.dims[dim + 1 :]), shape.dims[dim]
    operand, result = (Side(array, 2, 2 * columns, 2, 2 * columns * length) for array in arrays)
    groups = math.prod(shape.dims[:dim])
    real_bytes = register_type(shape.type).bytes
    return FourierPass(real_bytes, length, operand, result, groups, columns, inverse, scale, target)
