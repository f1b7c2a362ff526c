"""Constants that products read as their right side, packed when the program is compiled.

The library packs B in each call, or copies it strip by strip, unless tiles are to read it where it lies. If it is a
constant, such as the weights of a model, the program can keep it as tiles want it instead:

    c = f32[1000,2048] constant          constant 0: f32[1000,2048], unless only products read it
    dot(x, c)                   has      constant 1: 2048 steps of 32 columns, of the next 32, ...

`Frame` notes which constants are read as they are; the others are not kept. Products of few rows read B once, as fast
as memory gives it, so there is nothing to be saved.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from xlapy.codegen.libraries.gemm import LOW_ROWS, is_turned_round, kind_on
from xlapy.codegen.libraries.gemm_strips import Strips, strips_of
from xlapy.codegen.libraries.gemm_types import LIBRARY_TYPES
from xlapy.codegen.target import Target
from xlapy.hlo.buffer_plan import BufferPlan, Home
from xlapy.hlo.graph import Instruction
from xlapy.hlo.matrix_products import MatrixProduct, Repetition
from xlapy.support.records import Record

_NAMES = (
    {"batch": "a_batch", "step": "a_step", "column": "a_row"},
    {"batch": "b_batch", "step": "b_step", "column": "b_column"},
)
"""How a call names the strides of what is the right side in the end: of its left side, if it is turned round."""


class PackedConstant(Record):
    """A constant to be packed, read as elements of `dtype`. Its matrices are found by sizes and strides, in bytes: of
    the dimensions along which there are several, outermost first, then of steps along K and of columns."""

    constant: Instruction
    dtype: np.dtype[Any]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    strips: Strips

    def array(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """The constant as the program keeps it."""
        memory = elements_in_memory(self.constant).reshape(-1).view(np.uint8)
        matrices: np.ndarray[Any, Any] = np.ndarray(self.sizes, self.dtype, memory, 0, self.strides)
        return self.strips.pack(matrices.reshape(-1, *self.sizes[-2:]))


class PackedSide(Record):
    """A product one side of which is packed: the call that computes it, the number of that side, 0 or 1, and what it
    reads there."""

    call: MatrixProduct
    side: int
    constant: PackedConstant


def packed_side(
    plan: BufferPlan, target: Target, call: MatrixProduct, sides: Sequence[Instruction]
) -> PackedSide | None:
    """The call with its right side packed; None if that is no constant, or is best read as it lies."""
    side = 0 if is_turned_round(call.sizes) else 1
    location = plan.location(sides[side])
    if sides[0] is sides[1] or location.home is not Home.CONSTANT or location.start or not _packs(call):
        return None
    constant = plan.constants[location.index]
    if _may_meet_infinity(call, constant):
        return None
    names, sizes = _NAMES[side], call.sizes
    kind = kind_on(call.kind, target, sizes, call.windows, is_precise=call.is_precise)
    if LIBRARY_TYPES[kind].planes > 1:
        return None  # it must be there as it is, too
    strips = strips_of(kind, target, sizes["k"], sizes["n" if side else "m"])
    element = strips.element_bytes
    outer = [(each.count, each.strides[side]) for each in call.repetitions]
    outer.append((sizes["batches"], sizes[names["batch"]] * element))
    # What is the same for all products of a dimension is packed once.
    counts = [count if stride else 1 for count, stride in outer]
    packed = PackedConstant(
        constant,
        sides[side].shape.type.dtype,
        (*counts, strips.depth, strips.columns),
        (*(stride for _, stride in outer), sizes[names["step"]] * element, sizes[names["column"]] * element),
        strips,
    )
    return PackedSide(_call_of_strips(call, side, counts, strips), side, packed)


def _packs(call: MatrixProduct) -> bool:
    """Whether the library packs the right side, or has tiles read it more than once."""
    if call.windows is not None:
        return not call.windows["is_gradient"]
    return min(call.sizes["m"], call.sizes["n"]) > LOW_ROWS


def _may_meet_infinity(call: MatrixProduct, constant: Instruction) -> bool:
    """Whether a convolution might multiply zeros around its array by what is not finite, and look at B as it lies to
    sum such rows again."""
    return call.windows is not None and bool(call.windows["reaches_outside"]) and not _is_finite(constant)


def _is_finite(constant: Instruction) -> bool:
    if not constant.shape.type.is_float:
        return True
    array = constant.attributes["literal"].array
    with np.errstate(invalid="ignore"):  # bf16 says that it compares NaNs
        return not array.size or bool(np.isfinite(array.min()) and np.isfinite(array.max()))


def _call_of_strips(call: MatrixProduct, side: int, counts: Sequence[int], strips: Strips) -> MatrixProduct:
    """The call if its right side, which is number `side`, is packed: so many matrices of each outer dimension."""
    *distances, batch = (
        math.prod(counts[level + 1 :]) * strips.matrix_bytes if count > 1 else 0 for level, count in enumerate(counts)
    )
    names, element = _NAMES[side], strips.element_bytes
    described = {
        names["batch"]: batch // element,
        names["step"]: strips.step_bytes // element,
        names["column"]: 1,
        "b_strip": strips.strip_bytes // element,
    }
    repetitions = []
    for each, distance in zip(call.repetitions, distances, strict=True):
        a, b, c = each.strides
        repetitions.append(Repetition(each.count, (a, distance, c) if side else (distance, b, c)))
    windows = call.windows and {**call.windows, "reaches_outside": 0}
    return replace(call, sizes={**call.sizes, **described}, repetitions=tuple(repetitions), windows=windows)


def elements_in_memory(constant: Instruction) -> np.ndarray[Any, Any]:
    """The elements of a constant in the order of its layout."""
    array, shape = constant.attributes["literal"].array, constant.shape
    if shape.layout is not None and not shape.layout.is_row_major:
        array = array.transpose(tuple(reversed(shape.minor_to_major)))
    return np.ascontiguousarray(array)
