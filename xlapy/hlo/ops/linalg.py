"""Triangular factors, triangular systems of equations, and eigenvalues."""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.hlo.attributes import Transpose
from xlapy.hlo.element_types import COMPLEX, FLOAT, S32
from xlapy.hlo.ops.spec import PURE, op
from xlapy.hlo.shape import UNBOUNDED, Shape
from xlapy.support.errors import ShapeError

INEXACT = FLOAT | COMPLEX


@op("cholesky", traits=PURE)
def cholesky(a: Shape, *, lower: bool = False) -> Shape:
    """The triangular factor of positive definite matrices: a = l lᴴ for the lower one, a = uᴴ u for the upper one.

    Only the triangle of `a` that `lower` names is read, and of its diagonal only the real parts. The other triangle
    of the result is zero. Where a matrix is not positive definite, the triangle of its result is NaN, with the number
    of the first leading minor that is not positive, from 1, in the low bits (of f32 and f64, and parts of that size).
    Of a matrix with more rows than columns at run time, or the other way round, only the leading square exists.

    element-type [B3]: the elements are floats or complex.
    rank [B2 C2]: the operand has at least two dimensions.
    square [B1 C3]: the two minor dimensions are equal.
    """
    _check_type(a)
    _check_rank(a)
    _check_square(a)
    minor = (a.rank - 2, a.rank - 1)
    return _bounded(a, minor if any(_is_bounded(a, dim) for dim in minor) else ())


@op("eigh", traits=PURE)
def eigh(a: Shape, *, lower: bool = True) -> Shape:
    """Eigenvectors and eigenvalues of symmetric matrices: a v = v w, for columns v of the first and w of the second.

    Only the triangle of `a` that `lower` names is read. Eigenvalues ascend, and vectors are orthonormal; their signs,
    and the vectors of eigenvalues that are equal, are whatever Jacobi's rotations come to. Where not all that is read
    of a matrix is finite, all of its results are NaN.
    An op of xlapy: HLO as XLA reads it has no such op.

    element-type: the elements are floats.
    rank: the operand has at least two dimensions.
    square: the two minor dimensions are equal.
    known-sizes: so many rows are there at run time.
    """
    _check_real(a)
    _check_rank(a)
    _check_square(a)
    _check_known(a)
    return Shape.tuple([_of_matrices(a, a.dims[-2:]), _of_matrices(a, a.dims[-1:])])


@op("lu", traits=PURE, title="LU")
def lu(a: Shape) -> Shape:
    """The factors of matrices with partial pivoting, p a = l u: both triangles in one matrix, pivots, permutation.

    Step k exchanged row k with row pivots[k], the first one from there on whose element in column k is of the largest
    size (|re| + |im| of a complex one; a NaN is larger than nothing, and nothing is larger than it). Row i of p a is row
    permutation[i] of a. The diagonal of l is ones. Where all that is left of a column is zero, so it stays.
    An op of xlapy: HLO as XLA reads it has no such op.

    element-type: the elements are floats or complex.
    rank: the operand has at least two dimensions.
    """
    _check_type(a)
    _check_rank(a)
    permutation = _of_matrices(a, a.dims[-2:-1], [a.is_dynamic_dim(a.rank - 2)])
    return Shape.tuple([a.without_layout(), _of_steps(a).with_type(S32), permutation.with_type(S32)])


@op("qr-decomposition", traits=PURE)
def qr_decomposition(a: Shape) -> Shape:
    """Reflections that make matrices upper triangular, as LAPACK packs them: r above their vectors, and factors tau.

    With q the product of I - tau v vᴴ over the columns, from the first one on, a = q r. The elements of v above the
    diagonal are 0, that on it is 1, and those below it are in that place of the first result. The diagonal of r is
    real. Where a column is zero below the diagonal already, its factor is zero.
    An op of xlapy: XLA has a custom call of that name.

    element-type: the elements are floats or complex.
    rank: the operand has at least two dimensions.
    """
    _check_type(a)
    _check_rank(a)
    return Shape.tuple([a.without_layout(), _of_steps(a)])


@op("householder-product", traits=PURE, title="ProductOfElementaryHouseholderReflectors")
def householder_product(a: Shape, taus: Shape) -> Shape:
    """The product of reflections that `qr-decomposition` packs: as many of its columns as `a` has.

    Factors that are fewer than columns stand for those of the first ones, and others are zero.
    An op of xlapy: XLA has a custom call of that name.

    element-type: the elements are floats or complex.
    same-type: both operands have the same element type.
    rank: `a` has at least two dimensions, and `taus` one less.
    batch-dims: the other dimensions of both are equal.
    sizes: `a` has no more columns than rows, and `taus` no more factors than `a` has columns.
    known-sizes: so many rows, columns and factors are there at run time.
    """
    _check_type(a)
    if a.element_type is not taus.element_type:
        raise ShapeError("same-type", f"{a} and {taus} have different element types")
    _check_rank(a)
    if taus.rank != a.rank - 1:
        raise ShapeError("rank", f"{taus} does not have one dimension less than {a}")
    for dim in range(a.rank - 2):
        if not _may_equal(a.dims[dim], taus.dims[dim]):
            raise ShapeError("batch-dims", f"{a} and {taus} differ in batch dimension {dim}")
    _check_known(a)
    if taus.is_dynamic_dim(taus.rank - 1):
        raise ShapeError("known-sizes", f"how many factors {taus} has is known at run time only")
    if not taus.dims[-1] <= a.dims[-1] <= a.dims[-2]:
        raise ShapeError("sizes", f"{taus} are not factors for {a}, whose columns must not be more than its rows")
    return _bounded(a.without_layout(), [dim for dim in range(a.rank - 2) if _is_bounded(taus, dim)])


@op("svd", traits=PURE, title="SVD")
def svd(a: Shape, *, full_matrices: bool = True) -> Shape:
    """Singular values s and vectors of matrices: u, s and vt with a = u s vt.

    Values descend. Columns of u are orthonormal, and so are rows of vt; their signs, and the vectors of values that are
    equal or zero, are whatever Jacobi's rotations come to. There are as many as the smaller side of a matrix is long,
    with `full_matrices` as many as make u and vt square. Where not all of a matrix is finite, all of its results are
    NaN.
    An op of xlapy: HLO as XLA reads it has no such op.

    element-type: the elements are floats.
    rank: the operand has at least two dimensions.
    known-sizes: so many rows and columns are there at run time.
    """
    _check_real(a)
    _check_rank(a)
    _check_known(a)
    rows, columns = a.dims[-2:]
    least = min(rows, columns)
    u, vt = ((rows, rows), (columns, columns)) if full_matrices else ((rows, least), (least, columns))
    return Shape.tuple([_of_matrices(a, dims) for dims in (u, (least,), vt)])


@op("triangular-solve", traits=PURE)
def triangular_solve(
    a: Shape,
    b: Shape,
    *,
    left_side: bool = False,
    lower: bool = False,
    unit_diagonal: bool = False,
    transpose_a: Transpose,
) -> Shape:
    """The x of op(a) x = b, or of x op(a) = b unless `left_side`, for triangular matrices `a`.

    `op` is nothing, the transpose, or the conjugate transpose. Only the triangle of `a` (as it is stored) that `lower`
    names is read; with `unit_diagonal` its diagonal is not read either, but taken as ones. Run-time sizes that should
    be equal but are not count as the smallest of them.

    element-type: the elements are floats or complex.
    same-type [C1]: both operands have the same element type.
    rank [C2]: the operands have the same number of dimensions, at least two.
    square [B2 C3]: the two minor dimensions of `a` are equal.
    batch-dims [B1 C3]: the other dimensions of both operands are equal.
    sizes [C3]: `b` has as many rows (columns, unless `left_side`) as `a`.
    """
    _check_type(a)
    if a.element_type is not b.element_type:
        raise ShapeError("same-type", f"{a} and {b} have different element types")
    _check_rank(a)
    if a.rank != b.rank:
        raise ShapeError("rank", f"{a} and {b} have different ranks")
    _check_square(a)
    for dim in range(a.rank - 2):
        if not _may_equal(a.dims[dim], b.dims[dim]):
            raise ShapeError("batch-dims", f"{a} and {b} differ in batch dimension {dim}")
    side = b.rank - (2 if left_side else 1)
    if not _may_equal(a.dims[-1], b.dims[side]):
        raise ShapeError("sizes", f"dimension {side} of {b} is not {a.dims[-1]}, the size of the matrices {a}")
    bounded = [dim for dim in range(a.rank - 2) if _is_bounded(a, dim)]
    if _is_bounded(a, a.rank - 2) or _is_bounded(a, a.rank - 1):
        bounded.append(side)
    return _bounded(b, bounded)


def _is_bounded(shape: Shape, dim: int) -> bool:
    return shape.is_dynamic_dim(dim) and shape.dims[dim] != UNBOUNDED


def _bounded(shape: Shape, dims: Sequence[int]) -> Shape:
    """The shape with `dims` bounded, besides those that are."""
    return shape.with_dims(shape.dims, [shape.is_dynamic_dim(dim) or dim in dims for dim in range(shape.rank)])


def _check_type(shape: Shape) -> None:
    if shape.element_type not in INEXACT:
        raise ShapeError("element-type", f"{shape} is not an array of floats or complex numbers")


def _check_real(shape: Shape) -> None:
    if shape.element_type not in FLOAT:
        raise ShapeError("element-type", f"{shape} is not an array of floats")


def _check_known(shape: Shape) -> None:
    if any(shape.is_dynamic_dim(dim) for dim in (shape.rank - 2, shape.rank - 1)):
        raise ShapeError("known-sizes", f"the matrices of {shape} have a size that is known at run time only")


def _of_steps(shape: Shape) -> Shape:
    """Of each matrix, a number for each row or column, whichever are fewer."""
    minor = shape.dims[-2:]
    is_dynamic = any(shape.is_dynamic_dim(dim) for dim in (shape.rank - 2, shape.rank - 1))
    return _of_matrices(shape, [UNBOUNDED if UNBOUNDED in minor else min(minor)], [is_dynamic])


def _of_matrices(shape: Shape, dims: Sequence[int], is_dynamic: Sequence[bool] | None = None) -> Shape:
    """Of each matrix, something of these dimensions, which are static if nothing is said."""
    batch = [shape.is_dynamic_dim(dim) for dim in range(shape.rank - 2)]
    wanted = (*shape.dims[: len(batch)], *dims)
    return shape.without_layout().with_dims(wanted, [*batch, *(is_dynamic or [False] * len(dims))])


def _check_rank(shape: Shape) -> None:
    if shape.rank < 2:
        raise ShapeError("rank", f"{shape} is not a matrix, nor a batch of them")


def _check_square(shape: Shape) -> None:
    if not _may_equal(shape.dims[-2], shape.dims[-1]):
        raise ShapeError("square", f"the two minor dimensions of {shape} differ")


def _may_equal(one: int, other: int) -> bool:
    return one == other or UNBOUNDED in (one, other)
