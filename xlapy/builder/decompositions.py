"""Decompositions of matrices, composed of simpler operations and loops: LU, QR, Eigh, SVD.

All take batches. Inside, the batch is one dimension; a loop goes through the columns, or sweeps of Jacobi rotations,
and masks say which elements a step is about.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from xlapy.builder.arguments import as_flag, as_int, as_number
from xlapy.builder.builder import XlaBuilder
from xlapy.builder.contractions import DotGeneral
from xlapy.builder.control_flow import While
from xlapy.builder.elementwise import (
    Abs,
    And,
    Conj,
    ConvertElementType,
    Max,
    Min,
    Or,
    Real,
    Select,
    Sqrt,
    Square,
)
from xlapy.builder.indexing import DynamicSlice, DynamicUpdateSlice
from xlapy.builder.op import XlaOp
from xlapy.builder.operands import Operand, as_op, builder_of, record_literal
from xlapy.builder.reductions import Reduce
from xlapy.builder.registry import op_function
from xlapy.builder.shapes import BroadcastInDim, Concatenate, Pad, Reshape, SliceInDim, Transpose, require_array
from xlapy.builder.structure import Iota
from xlapy.hlo.attributes import PaddingDimension
from xlapy.hlo.element_types import S32, real_part_type
from xlapy.hlo.ops.linalg import INEXACT
from xlapy.hlo.shape import Shape
from xlapy.support.errors import ShapeError


@op_function()
def LU(operand: Operand) -> tuple[XlaOp, XlaOp, XlaOp]:
    """The factors of matrices with partial pivoting, p a = l u: (both triangles in one matrix, pivots, permutation).

    Step k exchanged row k with row pivots[k]; row i of p a is row permutation[i] of a. The diagonal of l is ones."""
    a, batch = _matrices(operand)
    count, rows, columns = a.shape.dims
    steps = min(rows, columns)
    builder = a.builder
    pivots = _full(builder, 0, S32, (count, steps))
    permutation = Iota(builder, Shape.array(S32, (count, rows)), 1)

    def step(k: XlaOp, a: XlaOp, pivots: XlaOp, permutation: XlaOp) -> tuple[XlaOp, ...]:
        row, column = _row_numbers(a), _column_numbers(a)
        pivot_row = _largest_below(_column(a, k), k)
        pivots = DynamicUpdateSlice(pivots, Reshape(pivot_row, (count, 1)), (0, k))
        chosen = row == _spread(pivot_row, a, 0)
        upper = _sum(Select(chosen, a, _zeros(a)), 1)
        here = row == k
        a = Select(here, _spread(upper, a, 0, 2), Select(chosen, _spread(_row(a, k), a, 0, 2), a))
        permutation = _exchanged(permutation, k, pivot_row)
        pivot = Reshape(DynamicSlice(upper, (0, k), (count, 1)), (count,))
        divisor = Select(pivot == _scalar(a, 0), _ones(pivot), pivot)
        lower = _column(a, k) / _spread_rows(divisor, rows)
        below = row > k
        eliminated = a - _spread(lower, a, 0, 1) * _spread(upper, a, 0, 2)
        a = Select(And(below, column > k), eliminated, a)
        return Select(And(below, column == k), _spread(lower, a, 0, 1), a), pivots, permutation

    factors, pivots, permutation = _for(steps, step, (a, pivots, permutation))
    return _unbatched(factors, batch), _unbatched(pivots, batch), _unbatched(permutation, batch)


def _largest_below(column: XlaOp, k: XlaOp) -> XlaOp:
    """The row, from `k` on, of the first element of the largest magnitude."""
    count, rows = column.shape.dims
    row = Iota(column.builder, Shape.array(S32, (count, rows)), 1)
    size = Abs(column)
    size = Select(row >= k, size, _like(size, -1))
    largest = _spread_rows(_fold(size, 1, Max, -1), rows)
    found = _fold(Select(size == largest, row, _like(row, rows)), 1, Min, rows)
    return Select(found < rows, found, BroadcastInDim(k, (count,), ()))


def _exchanged(values: XlaOp, k: XlaOp, other: XlaOp) -> XlaOp:
    """Each row of `values` with elements `k` and `other` (one for each row) exchanged."""
    count, size = values.shape.dims
    place = Iota(values.builder, values.shape.with_type(S32), 1)
    chosen = place == _spread_rows(other, size)
    first = Reshape(DynamicSlice(values, (0, k), (count, 1)), (count,))
    second = _sum(Select(chosen, values, _zeros(values)), 1)
    return Select(place == k, _spread_rows(second, size), Select(chosen, _spread_rows(first, size), values))


@op_function()
def QrDecomposition(operand: Operand) -> tuple[XlaOp, XlaOp]:
    """The QR decomposition of matrices as LAPACK packs it: (r above Householder vectors, their factors tau).

    q is the product of I - tau v vH over the vectors, whose first element (on the diagonal) is 1 and not stored."""
    a, batch = _matrices(operand)
    count, rows, columns = a.shape.dims
    steps = min(rows, columns)
    taus = _zeros_of(a, (count, steps))

    def step(k: XlaOp, a: XlaOp, taus: XlaOp) -> tuple[XlaOp, ...]:
        row, column = _row_numbers(a), _column_numbers(a)
        vector, tau, beta = _reflector(_column(a, k), k)
        products = _sum(_spread(Conj(vector) if a.shape.type.is_complex else vector, a, 0, 1) * a, 1)
        conjugate = Conj(tau) if a.shape.type.is_complex else tau
        reflected = a - _spread(conjugate, a, 0) * _spread(vector, a, 0, 1) * _spread(products, a, 0, 2)
        a = Select(column > k, reflected, a)
        own = Select(row == k, _spread(beta, a, 0), Select(row > k, _spread(vector, a, 0, 1), a))
        a = Select(column == k, own, a)
        return a, DynamicUpdateSlice(taus, Reshape(tau, (count, 1)), (0, k))

    packed, taus = _for(steps, step, (a, taus))
    return _unbatched(packed, batch), _unbatched(taus, batch)


def _reflector(x: XlaOp, k: XlaOp) -> tuple[XlaOp, XlaOp, XlaOp]:
    """The vector v, the factor tau and the number beta with (I - tau v vH)H x = beta e_k, looking at rows from k on."""
    count, rows = x.shape.dims
    row = Iota(x.builder, Shape.array(S32, (count, rows)), 1)
    alpha = Reshape(DynamicSlice(x, (0, k), (count, 1)), (count,))
    x = Select(row >= k, x, _zeros(x))
    scale = _fold(Abs(x), 1, Max, 0)
    scale = Select(scale > 0, scale, _ones(scale))
    norm = scale * Sqrt(_sum(_squared(x / _as_type_of(_spread_rows(scale, rows), x)), 1))
    below = _fold(Abs(Select(row > k, x, _zeros(x))), 1, Max, 0)
    real = _real(alpha)
    is_reduced = below == 0
    if alpha.shape.type.is_complex:
        is_reduced = And(is_reduced, alpha.imag() == 0)
    signed = Select(real >= 0, -norm, norm)
    beta = Select(is_reduced, real, signed)
    divisor = Select(is_reduced, _ones(beta), beta)
    tau = Select(is_reduced, _zeros(alpha), (_as_type_of(beta, alpha) - alpha) / _as_type_of(divisor, alpha))
    pivot = Select(is_reduced, _ones(alpha), alpha - _as_type_of(beta, alpha))
    vector = Select(row == k, _ones(x), x / _spread_rows(pivot, rows))
    return vector, tau, _as_type_of(beta, alpha)


@op_function()
def ProductOfElementaryHouseholderReflectors(a: Operand, taus: Operand) -> XlaOp:
    """The product of the reflections that `QrDecomposition` packs; as many of its columns as `a` has."""
    builder = builder_of(a, taus)
    packed, batch = _matrices(a)
    factors = as_op(builder, taus)
    count, rows, columns = packed.shape.dims
    steps = require_array(factors).dims[-1] if factors.shape.rank else 0
    expected = (*batch, steps)
    if factors.shape.dims != expected or factors.shape.type is not packed.shape.type or steps > min(rows, columns):
        raise ShapeError(
            "ProductOfElementaryHouseholderReflectors.taus", f"{factors.shape} are not factors for {packed.shape}"
        )
    factors = Reshape(factors, (count, steps))

    def step(number: XlaOp, q: XlaOp, packed: XlaOp, factors: XlaOp) -> tuple[XlaOp, ...]:
        k = (steps - 1) - number
        row = Iota(q.builder, Shape.array(S32, (count, rows)), 1)
        column = _column(packed, k)
        vector = Select(row == k, _ones(column), Select(row > k, column, _zeros(column)))
        tau = Reshape(DynamicSlice(factors, (0, k), (count, 1)), (count,))
        products = _sum(_spread(Conj(vector) if q.shape.type.is_complex else vector, q, 0, 1) * q, 1)
        q = q - _spread(tau, q, 0) * _spread(vector, q, 0, 1) * _spread(products, q, 0, 2)
        return q, packed, factors

    q = _for(steps, step, (_unit(packed), packed, factors))[0]
    return _unbatched(q, batch)


@op_function()
def QR(operand: Operand, full_matrices: bool) -> tuple[XlaOp, XlaOp]:
    """Unitary q and upper triangular r with q r = a; q is square if `full_matrices`, else as narrow as possible."""
    a, batch = _matrices(operand)
    _, rows, columns = a.shape.dims
    packed, taus = QrDecomposition(a)
    width = rows if as_flag(full_matrices, "full_matrices") else min(rows, columns)
    basis = _resized(packed, rows, width)
    q = ProductOfElementaryHouseholderReflectors(basis, taus)
    upper = Select(_row_numbers(packed) <= _column_numbers(packed), packed, _zeros(packed))
    return _unbatched(q, batch), _unbatched(_resized(upper, width, columns), batch)


@op_function()
def Eigh(
    a: Operand, lower: bool = True, max_iter: int = 15, epsilon: float = 1e-5, sort_eigenvalues: bool = True
) -> tuple[XlaOp, XlaOp]:
    """Eigenvectors (the columns of a unitary matrix) and eigenvalues of Hermitian matrices: (v, w) with a v = v w.

    Only the triangle that `lower` names is read. Jacobi's method: sweeps of rotations until all that is left beside the
    diagonal is below `epsilon` times the whole, but at most `max_iter` sweeps. Eigenvalues ascend if sorted."""
    matrix, batch = _matrices(a)
    count, size, columns = matrix.shape.dims
    if size != columns:
        raise ShapeError("Eigh.square", f"the two minor dimensions of {matrix.shape} differ")
    sweeps, tolerance = as_int(max_iter, "max_iter"), as_number(epsilon, "epsilon") ** 2
    pairs = _Pairs(count, size)
    whole = pairs.padded(_hermitian(matrix, as_flag(lower, "lower")), 1, 2)
    vectors = pairs.padded(_unit(matrix), 1)

    def goes_on(sweep: XlaOp, a: XlaOp, vectors: XlaOp) -> XlaOp:
        beside = Select(_row_numbers(a) == _column_numbers(a), _zeros(a), a)
        left, total = (_sum(_squared(part), 1, 2) for part in (beside, a))
        return And(sweep < sweeps, _any(left > total * _scalar(total, tolerance)))

    def sweep(number: XlaOp, a: XlaOp, vectors: XlaOp) -> tuple[XlaOp, ...]:
        return number + 1, *_for(pairs.steps, lambda _, *state: _eigen_rotation(pairs, *state), (a, vectors))

    zero = record_literal(matrix.builder, np.int32(0))
    _, diagonal, vectors = While(goes_on, sweep, (zero, whole, vectors))
    values = _real(_sum(Select(_row_numbers(diagonal) == _column_numbers(diagonal), diagonal, _zeros(diagonal)), 2))
    values, vectors = SliceInDim(values, 0, size, 1, 1), SliceInDim(vectors, 0, size, 1, 1)
    if as_flag(sort_eigenvalues, "sort_eigenvalues"):
        order = _order(values)
        values, vectors = _ordered(values, order), _ordered(vectors, order)
    return _unbatched(Transpose(vectors, (0, 2, 1)), batch), _unbatched(values, batch)


def _eigen_rotation(pairs: _Pairs, a: XlaOp, vectors: XlaOp) -> tuple[XlaOp, XlaOp]:
    """Rotates each pair of rows and columns so that the element where they meet becomes zero; then pairs anew."""
    top_rows, bottom_rows = pairs.halves(a, 1)
    corners = pairs.halves(top_rows, 2)
    first, second = (_real(_diagonal(part)) for part in (corners[0], pairs.halves(bottom_rows, 2)[1]))
    rotation = _rotation(first, second, _diagonal(corners[1]))
    a = pairs.rotated(a, rotation, 1, conjugates=True)
    a = pairs.rotated(a, rotation, 2, conjugates=False)
    vectors = pairs.rotated(vectors, rotation, 1, conjugates=False)
    return pairs.turned(pairs.turned(a, 1), 2), pairs.turned(vectors, 1)


@op_function()
def SVD(a: Operand, max_iter: int = 100, epsilon: float = 1e-6) -> tuple[XlaOp, XlaOp, XlaOp]:
    """Singular values d, descending, with u and v of orthonormal columns: (u, d, v) with a = u d vH.

    One-sided Jacobi: columns are rotated until the cosine of any two is at most `epsilon`, in at most `max_iter`
    sweeps. There are as many columns as the smaller dimension of `a` says."""
    matrix, batch = _matrices(a)
    _, rows, columns = matrix.shape.dims
    limits = as_int(max_iter, "max_iter"), as_number(epsilon, "epsilon")
    if rows >= columns:
        u, d, v = _svd_of_tall(matrix, *limits)
    else:
        v, d, u = _svd_of_tall(_adjoint(matrix), *limits)
    return _unbatched(u, batch), _unbatched(d, batch), _unbatched(v, batch)


def _svd_of_tall(matrix: XlaOp, max_iter: int, epsilon: float) -> tuple[XlaOp, XlaOp, XlaOp]:
    count, _, size = matrix.shape.dims
    pairs = _Pairs(count, size)
    builder = matrix.builder
    columns = pairs.padded(Transpose(matrix, (0, 2, 1)), 1)
    vectors = pairs.padded(_unit_of(matrix, (count, size, size)), 1)
    real = real_part_type(matrix.shape.type)

    def goes_on(sweep: XlaOp, cosine: XlaOp, columns: XlaOp, vectors: XlaOp) -> XlaOp:
        return And(sweep < max_iter, cosine > epsilon)

    def sweep(number: XlaOp, cosine: XlaOp, columns: XlaOp, vectors: XlaOp) -> tuple[XlaOp, ...]:
        state = (_scalar(cosine, 0.0), columns, vectors)
        return number + 1, *_for(pairs.steps, lambda _, *inner: _svd_rotation(pairs, *inner), state)

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
    first, second = _sum(_squared(one), 2), _sum(_squared(other), 2)
    inner = _sum((Conj(one) if one.shape.type.is_complex else one) * other, 2)
    product = Sqrt(first) * Sqrt(second)
    share = Select(product > 0, Abs(inner) / Select(product > 0, product, _ones(product)), _zeros(product))
    largest = Reduce(share, _scalar(share, 0.0), Max, (0, 1))
    rotation = _rotation(first, second, inner)
    columns = pairs.rotated(columns, rotation, 1, conjugates=False)
    vectors = pairs.rotated(vectors, rotation, 1, conjugates=False)
    return Max(cosine, largest), pairs.turned(columns, 1), pairs.turned(vectors, 1)


def _norms(rows: XlaOp) -> XlaOp:
    """The norm of each row."""
    scale = _fold(Abs(rows), 2, Max, 0)
    scale = Select(scale > 0, scale, _ones(scale))
    return scale * Sqrt(_sum(_squared(rows / _as_type_of(_spread(scale, rows, 0, 1), rows)), 2))


def _orthonormal(columns: XlaOp, norms: XlaOp) -> XlaOp:
    """The columns at length 1; those whose norm is lost in rounding are replaced by any that complete the basis."""
    size = columns.shape.dims[2]
    largest = _spread_rows(_fold(norms, 1, Max, 0), size)
    accuracy: Any = ml_dtypes.finfo
    tiny = float(accuracy(norms.shape.type.dtype).eps) * max(columns.shape.dims[1:])
    counts = norms > largest * _scalar(norms, tiny)
    divisor = Select(counts, norms, _ones(norms))
    scaled = columns / _as_type_of(_spread(divisor, columns, 0, 2), columns)
    scaled = Select(_spread(counts, columns, 0, 2), scaled, _zeros(scaled))
    q, r = QR(scaled, full_matrices=False)
    phases = Select(counts, _diagonal(r), _ones(_diagonal(r)))
    return q * _spread(phases, q, 0, 2)


# -- rotations ---------------------------------------------------------------------------------------------------------


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
    divisor = Select(is_zero, _ones(size), size)
    slope = (second - first) / (2.0 * divisor)
    root = Sqrt(1.0 + Square(slope))
    tangent = Select(slope >= 0, _ones(slope), _like(slope, -1)) / (Abs(slope) + root)
    tangent = Select(is_zero, _zeros(tangent), tangent)
    cosine = 1.0 / Sqrt(1.0 + Square(tangent))
    phase = None
    if beside.shape.type.is_complex:
        phase = Select(is_zero, _ones(beside), Conj(beside) / _as_type_of(divisor, beside))
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
        return Pad(array, _scalar(array, 0), config)

    def halves(self, array: XlaOp, dim: int) -> tuple[XlaOp, XlaOp]:
        return SliceInDim(array, 0, self.half, 1, dim), SliceInDim(array, self.half, 2 * self.half, 1, dim)

    def rotated(self, array: XlaOp, rotation: _Rotation, dim: int, *, conjugates: bool) -> XlaOp:
        """Rotates the pairs along a dimension, with the conjugate phases if so."""
        x, y = self.halves(array, dim)
        cosine, sine = (_as_type_of(_spread(part, x, 0, dim), x) for part in (rotation.cosine, rotation.sine))
        if rotation.phase is not None:
            phase = Conj(rotation.phase) if conjugates else rotation.phase
            y = y * _spread(phase, y, 0, dim)
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


# -- order -------------------------------------------------------------------------------------------------------------


def _order(values: XlaOp) -> XlaOp:
    """For each place in ascending order, which value goes there: ones in an array [batch, value, place]."""
    count, size = values.shape.dims
    table = Shape.array(S32, (count, size, size))
    own = BroadcastInDim(values, table.dims, (0, 1))
    other = BroadcastInDim(values, table.dims, (0, 2))
    number, rival = (Iota(values.builder, table, dim) for dim in (1, 2))
    is_behind = Or(other < own, And(other == own, rival < number))
    rank = _sum(ConvertElementType(is_behind, S32), 2)
    return BroadcastInDim(rank, table.dims, (0, 1)) == rival


def _ordered(array: XlaOp, order: XlaOp) -> XlaOp:
    """The array with what belongs to values (dimension 1) put in order."""
    numbers = ConvertElementType(order, array.shape.type)
    contracted = DotGeneral(numbers, array, (((1,), (1,)), ((0,), (0,))))
    return Reshape(contracted, array.shape.dims)


# -- matrices ----------------------------------------------------------------------------------------------------------


def _matrices(operand: Operand) -> tuple[XlaOp, tuple[int, ...]]:
    """The operand as [batch, rows, columns], and what the batch dimensions were."""
    builder = builder_of(operand)
    a = as_op(builder, operand)
    shape = require_array(a)
    if shape.element_type not in INEXACT:
        raise ShapeError("element-type", f"{shape} is not an array of floats or complex numbers")
    if shape.rank < 2:
        raise ShapeError("rank", f"{shape} is not a matrix, nor a batch of them")
    batch = shape.dims[:-2]
    return Reshape(a, (math.prod(batch), *shape.dims[-2:])), batch


def _unbatched(array: XlaOp, batch: tuple[int, ...]) -> XlaOp:
    return Reshape(array, (*batch, *array.shape.dims[1:]))


def _for(steps: int, step: Callable[..., Any], state: Sequence[XlaOp]) -> list[XlaOp]:
    """Runs `step(number, *state)` for numbers below `steps`; returns the last state."""
    if not steps:  # there may be no column for a step to look at
        return [*state]
    zero = record_literal(state[0].builder, np.int32(0))

    def body(values: Sequence[XlaOp]) -> tuple[XlaOp, ...]:
        number, *rest = values
        return number + 1, *step(number, *rest)

    _, *last = While(lambda values: values[0] < steps, body, (zero, *state))
    return last


def _row_numbers(a: XlaOp) -> XlaOp:
    return Iota(a.builder, Shape.array(S32, a.shape.dims), 1)


def _column_numbers(a: XlaOp) -> XlaOp:
    return Iota(a.builder, Shape.array(S32, a.shape.dims), 2)


def _column(a: XlaOp, k: XlaOp) -> XlaOp:
    count, rows, _ = a.shape.dims
    return Reshape(DynamicSlice(a, (0, 0, k), (count, rows, 1)), (count, rows))


def _row(a: XlaOp, k: XlaOp) -> XlaOp:
    count, _, columns = a.shape.dims
    return Reshape(DynamicSlice(a, (0, k, 0), (count, 1, columns)), (count, columns))


def _diagonal(a: XlaOp) -> XlaOp:
    size = min(a.shape.dims[1:])
    a = _resized(a, size, size)
    return _sum(Select(_row_numbers(a) == _column_numbers(a), a, _zeros(a)), 2)


def _resized(a: XlaOp, rows: int, columns: int) -> XlaOp:
    """The matrix cut to a size, or filled up with zeros."""
    _, old_rows, old_columns = a.shape.dims
    if (rows, columns) == (old_rows, old_columns):
        return a
    config = [PaddingDimension(), PaddingDimension(0, rows - old_rows), PaddingDimension(0, columns - old_columns)]
    return Pad(a, _scalar(a, 0), config)


def _hermitian(a: XlaOp, lower: bool) -> XlaOp:
    """The matrix of which one triangle is given."""
    row, column = _row_numbers(a), _column_numbers(a)
    is_given = row > column if lower else row < column
    diagonal = _as_type_of(_real(a), a)
    return Select(is_given, a, Select(row == column, diagonal, _adjoint(a)))


def _adjoint(a: XlaOp) -> XlaOp:
    transposed = Transpose(a, (0, 2, 1))
    return Conj(transposed) if a.shape.type.is_complex else transposed


def _unit(a: XlaOp) -> XlaOp:
    return _unit_of(a, a.shape.dims)


def _unit_of(a: XlaOp, dims: tuple[int, ...]) -> XlaOp:
    """Unit matrices of other dimensions, with the elements of `a`."""
    shape = Shape.array(S32, dims)
    is_diagonal = Iota(a.builder, shape, 1) == Iota(a.builder, shape, 2)
    return ConvertElementType(is_diagonal, a.shape.type)


# -- elements ----------------------------------------------------------------------------------------------------------


def _full(builder: XlaBuilder, value: Any, element_type: Any, dims: tuple[int, ...]) -> XlaOp:
    return BroadcastInDim(record_literal(builder, np.array(value, element_type.dtype)), dims, ())


def _zeros_of(a: XlaOp, dims: tuple[int, ...]) -> XlaOp:
    return _full(a.builder, 0, a.shape.type, dims)


def _like(a: XlaOp, value: Any) -> XlaOp:
    return _full(a.builder, value, a.shape.type, a.shape.dims)


def _zeros(a: XlaOp) -> XlaOp:
    return _like(a, 0)


def _ones(a: XlaOp) -> XlaOp:
    return _like(a, 1)


def _scalar(a: XlaOp, value: Any) -> XlaOp:
    return record_literal(a.builder, np.array(value, a.shape.type.dtype))


def _spread(values: XlaOp, like: XlaOp, *dims: int) -> XlaOp:
    """The values along `dims` of an array like another."""
    return BroadcastInDim(values, like.shape.dims, dims)


def _spread_rows(values: XlaOp, size: int) -> XlaOp:
    """Each value `size` times in a new last dimension."""
    return BroadcastInDim(values, (*values.shape.dims, size), tuple(range(values.shape.rank)))


def _fold(a: XlaOp, dim: int, computation: Callable[[XlaOp, XlaOp], XlaOp], start: Any) -> XlaOp:
    return Reduce(a, _scalar(a, start), computation, (dim,))


def _sum(a: XlaOp, *dims: int) -> XlaOp:
    return Reduce(a, _scalar(a, 0), lambda x, y: x + y, dims)


def _any(a: XlaOp) -> XlaOp:
    return Reduce(a, _scalar(a, False), Or, tuple(range(a.shape.rank)))


def _squared(a: XlaOp) -> XlaOp:
    """The squared magnitude of each element."""
    return Square(a.real()) + Square(a.imag()) if a.shape.type.is_complex else Square(a)


def _real(a: XlaOp) -> XlaOp:
    return Real(a) if a.shape.type.is_complex else a


def _as_type_of(real: XlaOp, like: XlaOp) -> XlaOp:
    """Real numbers as elements of another array's type."""
    return ConvertElementType(real, like.shape.type) if like.shape.type.is_complex else real
