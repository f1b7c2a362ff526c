"""Triangular factors and systems, and Fourier transforms."""

from __future__ import annotations

from typing import Any, TypeVar

from xlapy.builder.arguments import Integers, as_flag, as_ints, described
from xlapy.builder.op import XlaOp
from xlapy.builder.operands import Operand, as_op, as_ops, builder_of
from xlapy.builder.registry import op_function
from xlapy.builder.shapes import require_array
from xlapy.builder.structure import GetTupleElement
from xlapy.hlo.attributes import FftType, Named, Transpose
from xlapy.support.errors import ArgumentError

Enumerator = TypeVar("Enumerator", bound=Named)


@op_function("cholesky")
def Cholesky(a: Operand, lower: bool = True) -> XlaOp:
    """The triangular factor of positive definite matrices: a = l lᴴ, or a = uᴴ u unless `lower`.

    Only the triangle of `a` that `lower` names is read; the other one of the result is zero. The factor of a matrix
    that is not positive definite is NaN."""
    builder = builder_of(a)
    return builder.record("cholesky", [as_op(builder, a)], lower=as_flag(lower, "lower"))


@op_function("lu")
def LU(operand: Operand) -> tuple[XlaOp, XlaOp, XlaOp]:
    """The factors of matrices with partial pivoting, p a = l u: (both triangles in one matrix, pivots, permutation).

    Step k exchanged row k with row pivots[k]; row i of p a is row permutation[i] of a. The diagonal of l is ones."""
    builder = builder_of(operand)
    found = builder.record("lu", [as_op(builder, operand)])
    factors, pivots, permutation = (GetTupleElement(found, index) for index in range(3))
    return factors, pivots, permutation


@op_function("qr-decomposition")
def QrDecomposition(operand: Operand) -> tuple[XlaOp, XlaOp]:
    """The QR decomposition of matrices as LAPACK packs it: (r above Householder vectors, their factors tau).

    q is the product of I - tau v vH over the vectors, whose first element (on the diagonal) is 1 and not stored."""
    builder = builder_of(operand)
    found = builder.record("qr-decomposition", [as_op(builder, operand)])
    return GetTupleElement(found, 0), GetTupleElement(found, 1)


@op_function("householder-product")
def ProductOfElementaryHouseholderReflectors(a: Operand, taus: Operand) -> XlaOp:
    """The product of the reflections that `QrDecomposition` packs; as many of its columns as `a` has."""
    builder = builder_of(a, taus)
    return builder.record("householder-product", as_ops(builder, [a, taus]))


@op_function("triangular-solve")
def TriangularSolve(
    a: Operand,
    b: Operand,
    left_side: bool,
    lower: bool,
    unit_diagonal: bool,
    transpose_a: Any = Transpose.NO_TRANSPOSE,
) -> XlaOp:
    """The x of op(a) x = b, or of x op(a) = b unless `left_side`, for triangular `a`.

    `lower` names the triangle of `a` that is read, as it is stored; `transpose_a` is a Transpose, or its name."""
    builder = builder_of(a, b)
    matrix, sides = as_ops(builder, (a, b))
    require_array(matrix)
    require_array(sides)
    return builder.record(
        "triangular-solve",
        [matrix, sides],
        left_side=as_flag(left_side, "left_side"),
        lower=as_flag(lower, "lower"),
        unit_diagonal=as_flag(unit_diagonal, "unit_diagonal"),
        transpose_a=as_enumerator(transpose_a, Transpose, first=1),
    )


@op_function("fft")
def Fft(operand: Operand, fft_type: Any, fft_length: Integers) -> XlaOp:
    """Fourier transforms over the innermost dimensions, one for each length; a length is a size in the time domain.

    `fft_type` is an FftType, or its name: FFT, IFFT, RFFT or IRFFT."""
    builder = builder_of(operand)
    source = as_op(builder, operand)
    require_array(source)
    lengths = as_ints(fft_length, "fft_length")
    return builder.record("fft", [source], fft_type=as_enumerator(fft_type, FftType), fft_length=lengths)


def as_enumerator(value: Any, kind: type[Enumerator], first: int = 0) -> Enumerator:
    """One of ours, from itself, its name, a foreign enumerator of that name, or its number, counted from `first`."""
    if isinstance(value, kind):
        return value
    name = value if isinstance(value, str) else getattr(value, "name", None)
    members = list(kind)
    if name is None and isinstance(value, int) and first <= value < first + len(members):
        return members[value - first]
    if str(name).upper() not in kind.__members__:
        raise ArgumentError(f"expected one of {', '.join(kind.__members__)}, got {described(value)}")
    return kind[str(name).upper()]
