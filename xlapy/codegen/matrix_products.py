"""Dots as calls of the matrix product library.

A dot is a batch of matrix products if each of its four groups of dimensions (batch, rows, columns, depth) can be
walked with one stride in each operand. Most can, whatever is transposed; the others run as loop nests (`kernels.dot`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from xlapy.codegen.libraries.gemm import SIZES
from xlapy.codegen.libraries.gemm_types import GEMM_TYPES
from xlapy.hlo.attributes import DotDimensionNumbers
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Instruction
from xlapy.hlo.shape import Shape

SMALLEST_WORK = (
    2048  # multiplications; below, a loop nest with known sizes is done before the library has looked at them
)


@dataclass(frozen=True, slots=True)
class MatrixProduct:
    """A call of the library `gemm_KIND`: its numbers in the order of `SIZES`."""

    kind: str
    sizes: tuple[int, ...]


def matrix_product(dot: Instruction) -> MatrixProduct | None:
    """The library call that computes a dot, or None if it is not one matrix product per batch, or too small for one."""
    lhs, rhs, result = dot.operands[0].shape, dot.operands[1].shape, dot.shape
    kind = _kind(lhs.type, rhs.type, result.type)
    numbers: DotDimensionNumbers = dot.attributes["dimension_numbers"]
    rows, columns = numbers.lhs_free(lhs.rank), numbers.rhs_free(rhs.rank)
    depth = math.prod(lhs.dims[dim] for dim in numbers.lhs_contracting)
    if kind is None or result.size * depth < SMALLEST_WORK:
        return None
    batch_count = len(numbers.lhs_batch)
    strides = {
        "a_batch": _stride(lhs, numbers.lhs_batch),
        "a_row": _stride(lhs, rows),
        "a_step": _stride(lhs, numbers.lhs_contracting),
        "b_batch": _stride(rhs, numbers.rhs_batch),
        "b_step": _stride(rhs, numbers.rhs_contracting),
        "b_column": _stride(rhs, columns),
        "c_batch": _stride(result, range(batch_count)),
        "c_row": _stride(result, range(batch_count, batch_count + len(rows))),
        "c_column": _stride(result, range(batch_count + len(rows), result.rank)),
    }
    if any(stride is None for stride in strides.values()):
        return None
    counts = {
        "batches": math.prod(lhs.dims[dim] for dim in numbers.lhs_batch),
        "m": math.prod(lhs.dims[dim] for dim in rows),
        "n": math.prod(rhs.dims[dim] for dim in columns),
        "k": depth,
        "accumulate": 0,
    }
    values = {**strides, **counts}
    return MatrixProduct(kind, tuple(values[name] or 0 for name in SIZES))


_INTEGER_SUMS = {("s8", "s32"): "s8", ("u8", "s32"): "u8"}  # operands, sums: libraries named by their operands alone


def _kind(lhs: ElementType, rhs: ElementType, result: ElementType) -> str | None:
    """The library for these element types, if there is one."""
    if lhs is not rhs or (lhs.is_integer and lhs.bits == 8 and lhs is result):
        return None
    name = lhs.name if lhs is result else f"{lhs.name}_{result.name}"
    name = _INTEGER_SUMS.get((lhs.name, result.name), name)
    return name if name in GEMM_TYPES else None


def _stride(shape: Shape, dims: Sequence[int]) -> int | None:
    """The one distance between neighbours when `dims` are walked in order, last fastest; None if there is no such."""
    strides = shape.strides()
    wide = [dim for dim in dims if shape.dims[dim] != 1]
    if not wide:
        return 1
    for outer, inner in itertools.pairwise(wide):
        if strides[outer] != strides[inner] * shape.dims[inner]:
            return None
    return strides[wide[-1]]
