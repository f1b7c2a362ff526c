"""Right sides of products that are packed beforehand: strips as wide as a tile, one behind the other.

    strip 0: step 0 of its columns, step 1, ...    strip 1: ...

So `gemm_packing` packs a part of a matrix in each call; here each strip has all steps along K, so that a product may
cut K and the strips as it likes, and finds any part by strides. A caller passes these as those of B, with `b_strip`,
which is 0 for a matrix as it lies.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from xlapy.codegen.ir import F32, F64, I32, I64
from xlapy.codegen.libraries.gemm_packing import packed_strip_bytes
from xlapy.codegen.libraries.gemm_tile import tile_shape
from xlapy.codegen.libraries.gemm_types import LIBRARY_TYPES, UNIT_STEPS, GemmType
from xlapy.codegen.target import Target
from xlapy.support.records import Record
from xlapy_runtime.alignment import aligned_bytes

_DTYPES = {F32: np.float32, F64: np.float64, I32: np.int32, I64: np.int64}
_COMPLEX_DTYPES = {F32: np.complex64, F64: np.complex128}


class Strips(Record):
    """How matrices of `depth` steps and `columns` columns are packed. Bytes, but for counts; `pair` steps share a
    packed element, and `width` columns make a strip."""

    depth: int
    columns: int
    width: int
    pair: int
    element_bytes: int  # of the matrix
    packed: np.dtype[Any]  # of one step, be it half of a pair
    strip_bytes: int

    @property
    def count(self) -> int:
        """Strips of one matrix."""
        return -(-self.columns // self.width)

    @property
    def matrix_bytes(self) -> int:
        return self.count * self.strip_bytes

    @property
    def step_bytes(self) -> int:
        """From one step along K to the next."""
        return self.width * self.packed.itemsize

    def pack(self, matrices: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """The strips of all `matrices`, an array by number, step and column. What is missing of the last strip, and of
        the last pair of steps, is zero."""
        memory = aligned_bytes(len(matrices) * self.matrix_bytes)
        strips = memory.view(self.packed).reshape(len(matrices) * self.count, -1)
        pairs = -(-self.depth // self.pair)
        for number, strip in enumerate(strips[:, : pairs * self.width * self.pair]):
            matrix, place = divmod(number, self.count)
            columns = matrices[matrix, :, place * self.width : (place + 1) * self.width]
            goal = strip.reshape(pairs, self.width, self.pair)
            for half in range(self.pair):
                steps = columns[half :: self.pair]
                goal[: len(steps), : steps.shape[1], half] = steps
        return memory


def strips_of(kind_name: str, target: Target, depth: int, columns: int) -> Strips:
    """How the library of this type reads right sides of this size."""
    kind = LIBRARY_TYPES[kind_name].on(target)
    width = tile_shape(kind, target).columns
    return Strips(
        depth,
        columns,
        width // kind.parts,
        kind.pair,
        kind.element.bytes * kind.parts,
        _packed_dtype(kind),
        packed_strip_bytes(kind, width, _packed_steps(kind, depth)),
    )


def _packed_steps(kind: GemmType, depth: int) -> int:
    """For so many along K; the matrix unit makes several at once."""
    together = UNIT_STEPS if kind.unit else 1
    return -(-depth // (kind.pair * together)) * together


def _packed_dtype(kind: GemmType) -> np.dtype[Any]:
    """Of one step; numpy converts elements to it exactly."""
    if kind.unit:
        return np.dtype(ml_dtypes.bfloat16 if kind.narrow_float else np.int8 if kind.signed else np.uint8)
    if kind.pair == 2:
        return np.dtype(np.int16)
    return np.dtype((_COMPLEX_DTYPES if kind.parts == 2 else _DTYPES)[kind.packed])
