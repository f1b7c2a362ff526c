"""Eigenvalues and singular values by Jacobi's methods: sweeps of rotations, half as many at once as there are rows."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from xlapy.builder.arguments import as_flag, as_int, as_number
from xlapy.builder.contractions import DotGeneral
from xlapy.builder.control_flow import While
from xlapy.builder.decompositions.factorizations import QR
from xlapy.builder.decompositions.matrices import (
    adjoint,
    as_type_of,
    column_numbers,
    diagonal_of,
    filled_like,
    folded,
    hermitian,
    in_matrices,
    is_any,
    ones_like,
    real_parts,
    repeated,
    row_numbers,
    scalar_like,
    spread,
    spread_rows,
    squared,
    summed,
    unbatched,
    unit_like,
    unit_of,
    zeros_like,
)
from xlapy.builder.elementwise import Abs, And, Conj, ConvertElementType, Max, Or, Select, Sqrt, Square
from xlapy.builder.op import XlaOp
from xlapy.builder.operands import Operand, record_literal
from xlapy.builder.reductions import Reduce
from xlapy.builder.registry import op_function
from xlapy.builder.shapes import BroadcastInDim, Concatenate, Pad, Reshape, SliceInDim, Transpose
from xlapy.builder.structure import GetTupleElement, Iota
from xlapy.hlo.attributes import PaddingDimension
from xlapy.hlo.element_types import S32, real_part_type
from xlapy.hlo.rotations import MOST_ROWS
from xlapy.hlo.shape import Shape
from xlapy.support.errors import ShapeError


@op_function("eigh")
def Eigh(
    a: Operand, lower: bool = True, max_iter: int = 15, epsilon: float = 1e-5, sort_eigenvalues: bool = True
) -> tuple[XlaOp, XlaOp]:
    """Eigenvectors (the columns of a unitary matrix) and eigenvalues of Hermitian matrices: (v, w) with a v = v w.

    Only the triangle that `lower` names is read. Jacobi's method: sweeps of rotations until all that is left beside the
    diagonal is below `epsilon` times the whole, but at most `max_iter` sweeps. Eigenvalues ascend if sorted. Small real
    matrices have an op of their own, which sorts always, and goes on until nothing is left that counts."""
    matrix, batch = in_matrices(a)
    count, size, columns = matrix.shape.dims
    if size != columns:
        raise ShapeError("Eigh.square", f"the two minor dimensions are {size} and {columns}; they must be equal")
    sweeps, tolerance = as_int(max_iter, "max_iter"), as_number(epsilon, "epsilon") ** 2
    lower, is_sorted = as_flag(lower, "lower"), as_flag(sort_eigenvalues, "sort_eigenvalues")
    if size <= MOST_ROWS and not matrix.shape.type.is_complex:
        found = matrix.builder.record("eigh", [matrix], lower=lower)
        return unbatched(GetTupleElement(found, 0), batch), unbatched(GetTupleElement(found, 1), batch)
    pairs = _Pairs(count, size)
    whole = pairs.padded(hermitian(matrix, lower), 1, 2)
    vectors = pairs.padded(unit_like(matrix), 1)

    def goes_on(sweep: XlaOp, a: XlaOp, vectors: XlaOp) -> XlaOp:
        beside = Select(row_numbers(a) == column_numbers(a), zeros_like(a), a)
        left, total = (summed(squared(part), 1, 2) for part in (beside, a))
        return And(sweep < sweeps, is_any(left > total * scalar_like(total, tolerance)))

    def sweep(number: XlaOp, a: XlaOp, vectors: XlaOp) -> tuple[XlaOp, ...]:
        return number + 1, *repeated(pairs.steps, lambda _, *state: _eigen_rotation(pairs, *state), (a, vectors))

    zero = record_literal(matrix.builder, np.int32(0))
    _, diagonal, vectors = While(goes_on, sweep, (zero, whole, vectors))
    values = real_parts(diagonal_of(diagonal))
    values, vectors = SliceInDim(values, 0, size, 1, 1), SliceInDim(vectors, 0, size, 1, 1)
    if is_sorted:
        order = _order(values)
        values, vectors = _ordered(values, order), _ordered(vectors, order)
    return unbatched(Transpose(vectors, (0, 2, 1)), batch), unbatched(values, batch)


def _eigen_rotation(pairs: _Pairs, a: XlaOp, vectors: XlaOp) -> tuple[XlaOp, XlaOp]:
    """Rotates each pair of rows and columns so that the element where they meet becomes zero; then pairs anew."""
    top_rows, bottom_rows = pairs.halves(a, 1)
    corners = pairs.halves(top_rows, 2)
    first, second = (real_parts(diagonal_of(part)) for part in (corners[0], pairs.halves(bottom_rows, 2)[1]))
    rotation = _rotation(first, second, diagonal_of(corners[1]))
    a = pairs.rotated(a, rotation, 1, conjugates=True)
    a = pairs.rotated(a, rotation, 2, conjugates=False)
    vectors = pairs.rotated(vectors, rotation, 1, conjugates=False)
    return pairs.turned(pairs.turned(a, 1), 2), pairs.turned(vectors, 1)


@op_function("svd")
def SVD(a: Operand, max_iter: int = 100, epsilon: float = 1e-6) -> tuple[XlaOp, XlaOp, XlaOp]:
    """Singular values d, descending, with u and v of orthonormal columns: (u, d, v) with a = u d vH.

    One-sided Jacobi: columns are rotated until the cosine of any two is at most `epsilon`, in at most `max_iter`
    sweeps. There are as many columns as the smaller dimension of `a` says. Small real matrices have an op of their own,
    which goes on until nothing is left that counts."""
    matrix, batch = in_matrices(a)
    _, rows, columns = matrix.shape.dims
    limits = as_int(max_iter, "max_iter"), as_number(epsilon, "epsilon")
    if max(rows, columns) <= MOST_ROWS and not matrix.shape.type.is_complex:
        found = matrix.builder.record("svd", [matrix], full_matrices=False)
        u, d, vt = (GetTupleElement(found, index) for index in range(3))
        return unbatched(u, batch), unbatched(d, batch), unbatched(Transpose(vt, (0, 2, 1)), batch)
    if rows >= columns:
        u, d, v = _svd_of_tall(matrix, *limits)
    else:
        v, d, u = _svd_of_tall(adjoint(matrix), *limits)
    return unbatched(u, batch), unbatched(d, batch), unbatched(v, batch)


def _svd_of_tall(matrix: XlaOp, max_iter: int, epsilon: float) -> tuple[XlaOp, XlaOp, XlaOp]:
    count, _, size = matrix.shape.dims
    pairs = _Pairs(count, size)
    builder = matrix.builder
    columns = pairs.padded(Transpose(matrix, (0, 2, 1)), 1)
    vectors = pairs.padded(unit_of(matrix, (count, size, size)), 1)
    real = real_part_type(matrix.shape.type)

    def goes_on(sweep: XlaOp, cosine: XlaOp, columns: XlaOp, vectors: XlaOp) -> XlaOp:
        return And(sweep < max_iter, cosine > epsilon)

    def sweep(number: XlaOp, cosine: XlaOp, columns: XlaOp, vectors: XlaOp) -> tuple[XlaOp, ...]:
        state = (scalar_like(cosine, 0.0), columns, vectors)
        return number + 1, *repeated(pairs.steps, lambda _, *inner: _svd_rotation(pairs, *inner), state)

    zero = record_literal(builder, np.int32(0))
    start = record_literal(builder, np.array(np.inf, real.dtype))
    _, _, columns, vectors = While(goes_on, sweep, (zero, start, columns, vectors))
    columns, vectors = SliceInDim(columns, 0, size, 1, 1), SliceInDim(vectors, 0, size, 1, 1)
    values = _norms(columns)
    order = _order(-values)
    values, columns, vectors = (_ordered(part, order) for part in (values, columns, vectors))
    left = _orthonormal(Transpose(columns, (0, 2, 1)), values)
    return left, values, Transpose(vectors, (0, 2, 1))


def _svd_rotation(pairs: _Pairs, cosine: XlaOp, columns: XlaOp, vectors: XlaOp) -> tuple[XlaOp, ...]:
    """Rotates each pair of columns to be orthogonal; then pairs anew."""
    one, other = pairs.halves(columns, 1)
    first, second = summed(squared(one), 2), summed(squared(other), 2)
    inner = summed((Conj(one) if one.shape.type.is_complex else one) * other, 2)
    product = Sqrt(first) * Sqrt(second)
    share = Select(product > 0, Abs(inner) / Select(product > 0, product, ones_like(product)), zeros_like(product))
    largest = Reduce(share, scalar_like(share, 0.0), Max, (0, 1))
    rotation = _rotation(first, second, inner)
    columns = pairs.rotated(columns, rotation, 1, conjugates=False)
    vectors = pairs.rotated(vectors, rotation, 1, conjugates=False)
    return Max(cosine, largest), pairs.turned(columns, 1), pairs.turned(vectors, 1)


def _norms(rows: XlaOp) -> XlaOp:
    """The norm of each row."""
    scale = folded(Abs(rows), 2, Max, 0)
    scale = Select(scale > 0, scale, ones_like(scale))
    return scale * Sqrt(summed(squared(rows / as_type_of(spread(scale, rows, 0, 1), rows)), 2))


def _orthonormal(columns: XlaOp, norms: XlaOp) -> XlaOp:
    """The columns at length 1; those whose norm is lost in rounding are replaced by any that complete the basis."""
    size = columns.shape.dims[2]
    largest = spread_rows(folded(norms, 1, Max, 0), size)
    accuracy: Any = ml_dtypes.finfo
    tiny = float(accuracy(norms.shape.type.dtype).eps) * max(columns.shape.dims[1:])
    counts = norms > largest * scalar_like(norms, tiny)
    divisor = Select(counts, norms, ones_like(norms))
    scaled = columns / as_type_of(spread(divisor, columns, 0, 2), columns)
    scaled = Select(spread(counts, columns, 0, 2), scaled, zeros_like(scaled))
    q, r = QR(scaled, full_matrices=False)
    phases = Select(counts, diagonal_of(r), ones_like(diagonal_of(r)))
    return q * spread(phases, q, 0, 2)


@dataclass(frozen=True, slots=True)
class _Rotation:
    """x' = c x - s p y, y' = s x + c p y for each pair; p is a phase, and none for real numbers."""

    cosine: XlaOp
    sine: XlaOp
    phase: XlaOp | None


def _rotation(first: XlaOp, second: XlaOp, beside: XlaOp) -> _Rotation:
    """The rotation that makes [[first, beside], [beside*, second]] diagonal."""
    size = Abs(beside) if beside.shape.type.is_complex else beside
    is_zero = size == 0
    divisor = Select(is_zero, ones_like(size), size)
    slope = (second - first) / (2.0 * divisor)
    root = Sqrt(1.0 + Square(slope))
    tangent = Select(slope >= 0, ones_like(slope), filled_like(slope, -1)) / (Abs(slope) + root)
    tangent = Select(is_zero, zeros_like(tangent), tangent)
    cosine = 1.0 / Sqrt(1.0 + Square(tangent))
    phase = None
    if beside.shape.type.is_complex:
        phase = Select(is_zero, ones_like(beside), Conj(beside) / as_type_of(divisor, beside))
    return _Rotation(cosine, tangent * cosine, phase)


@dataclass(frozen=True, slots=True)
class _Pairs:
    """`size` rows, filled up to an even number: row i is paired with row i + half. All pairs are met in `steps` turns,
    after which the rows are in their first order again."""

    count: int
    size: int

    @property
    def half(self) -> int:
        return max(1, (self.size + 1) // 2)

    @property
    def steps(self) -> int:
        return 2 * self.half - 1

    def padded(self, array: XlaOp, *dims: int) -> XlaOp:
        config = [PaddingDimension(0, 2 * self.half - self.size if dim in dims else 0) for dim in range(3)]
        return Pad(array, scalar_like(array, 0), config)

    def halves(self, array: XlaOp, dim: int) -> tuple[XlaOp, XlaOp]:
        return SliceInDim(array, 0, self.half, 1, dim), SliceInDim(array, self.half, 2 * self.half, 1, dim)

    def rotated(self, array: XlaOp, rotation: _Rotation, dim: int, *, conjugates: bool) -> XlaOp:
        """Rotates the pairs along a dimension, with the conjugate phases if so."""
        x, y = self.halves(array, dim)
        cosine, sine = (as_type_of(spread(part, x, 0, dim), x) for part in (rotation.cosine, rotation.sine))
        if rotation.phase is not None:
            phase = Conj(rotation.phase) if conjugates else rotation.phase
            y = y * spread(phase, y, 0, dim)
        return Concatenate([cosine * x - sine * y, sine * x + cosine * y], dim)

    def turned(self, array: XlaOp, dim: int) -> XlaOp:
        """New pairs: all rows but the first move on by one, along the first halves and back along the second."""
        half = self.half
        if half == 1:
            return array
        part = functools.partial(_part, array, dim)
        order = [part(0, 1), part(half, half + 1), part(1, half - 1), part(half + 1, 2 * half), part(half - 1, half)]
        return Concatenate([piece for piece in order if piece.shape.dims[dim]], dim)


def _part(array: XlaOp, dim: int, start: int, end: int) -> XlaOp:
    return SliceInDim(array, start, end, 1, dim)


def _order(values: XlaOp) -> XlaOp:
    """For each place in ascending order, which value goes there: ones in an array [batch, value, place]."""
    count, size = values.shape.dims
    table = Shape.array(S32, (count, size, size))
    own = BroadcastInDim(values, table.dims, (0, 1))
    other = BroadcastInDim(values, table.dims, (0, 2))
    number, rival = (Iota(values.builder, table, dim) for dim in (1, 2))
    is_behind = Or(other < own, And(other == own, rival < number))
    rank = summed(ConvertElementType(is_behind, S32), 2)
    return BroadcastInDim(rank, table.dims, (0, 1)) == rival


def _ordered(array: XlaOp, order: XlaOp) -> XlaOp:
    """The array with what belongs to values (dimension 1) put in order."""
    numbers = ConvertElementType(order, array.shape.type)
    contracted = DotGeneral(numbers, array, (((1,), (1,)), ((0,), (0,))))
    return Reshape(contracted, array.shape.dims)
