"""QR: a loop over the columns, each of which is reflected into those behind it."""

from __future__ import annotations

from xlapy.builder.arguments import as_flag
from xlapy.builder.decompositions.matrices import (
    as_type_of,
    column_at,
    column_numbers,
    folded,
    in_matrices,
    ones_like,
    real_parts,
    repeated,
    resized,
    row_numbers,
    spread,
    spread_rows,
    squared,
    summed,
    unbatched,
    unit_like,
    zeros_like,
    zeros_of,
)
from xlapy.builder.elementwise import Abs, And, Conj, Max, Select, Sqrt
from xlapy.builder.indexing import DynamicSlice, DynamicUpdateSlice
from xlapy.builder.op import XlaOp
from xlapy.builder.operands import Operand, as_op, builder_of
from xlapy.builder.registry import op_function
from xlapy.builder.shapes import Reshape, require_array
from xlapy.builder.structure import Iota
from xlapy.hlo.element_types import S32
from xlapy.hlo.shape import Shape
from xlapy.support.errors import ShapeError


@op_function()
def QrDecomposition(operand: Operand) -> tuple[XlaOp, XlaOp]:
    """The QR decomposition of matrices as LAPACK packs it: (r above Householder vectors, their factors tau).

    q is the product of I - tau v vH over the vectors, whose first element (on the diagonal) is 1 and not stored."""
    a, batch = in_matrices(operand)
    count, rows, columns = a.shape.dims
    steps = min(rows, columns)
    taus = zeros_of(a, (count, steps))

    def step(k: XlaOp, a: XlaOp, taus: XlaOp) -> tuple[XlaOp, ...]:
        row, column = row_numbers(a), column_numbers(a)
        vector, tau, beta = _reflector(column_at(a, k), k)
        products = summed(spread(Conj(vector) if a.shape.type.is_complex else vector, a, 0, 1) * a, 1)
        conjugate = Conj(tau) if a.shape.type.is_complex else tau
        reflected = a - spread(conjugate, a, 0) * spread(vector, a, 0, 1) * spread(products, a, 0, 2)
        a = Select(column > k, reflected, a)
        own = Select(row == k, spread(beta, a, 0), Select(row > k, spread(vector, a, 0, 1), a))
        a = Select(column == k, own, a)
        return a, DynamicUpdateSlice(taus, Reshape(tau, (count, 1)), (0, k))

    packed, taus = repeated(steps, step, (a, taus))
    return unbatched(packed, batch), unbatched(taus, batch)


def _reflector(x: XlaOp, k: XlaOp) -> tuple[XlaOp, XlaOp, XlaOp]:
    """The vector v, the factor tau and the number beta with (I - tau v vH)H x = beta e_k, looking at rows from k on."""
    count, rows = x.shape.dims
    row = Iota(x.builder, Shape.array(S32, (count, rows)), 1)
    alpha = Reshape(DynamicSlice(x, (0, k), (count, 1)), (count,))
    x = Select(row >= k, x, zeros_like(x))
    scale = folded(Abs(x), 1, Max, 0)
    scale = Select(scale > 0, scale, ones_like(scale))
    norm = scale * Sqrt(summed(squared(x / as_type_of(spread_rows(scale, rows), x)), 1))
    below = folded(Abs(Select(row > k, x, zeros_like(x))), 1, Max, 0)
    real = real_parts(alpha)
    is_reduced = below == 0
    if alpha.shape.type.is_complex:
        is_reduced = And(is_reduced, alpha.imag() == 0)
    signed = Select(real >= 0, -norm, norm)
    beta = Select(is_reduced, real, signed)
    divisor = Select(is_reduced, ones_like(beta), beta)
    tau = Select(is_reduced, zeros_like(alpha), (as_type_of(beta, alpha) - alpha) / as_type_of(divisor, alpha))
    pivot = Select(is_reduced, ones_like(alpha), alpha - as_type_of(beta, alpha))
    vector = Select(row == k, ones_like(x), x / spread_rows(pivot, rows))
    return vector, tau, as_type_of(beta, alpha)


@op_function()
def ProductOfElementaryHouseholderReflectors(a: Operand, taus: Operand) -> XlaOp:
    """The product of the reflections that `QrDecomposition` packs; as many of its columns as `a` has."""
    builder = builder_of(a, taus)
    packed, batch = in_matrices(a)
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
        column = column_at(packed, k)
        vector = Select(row == k, ones_like(column), Select(row > k, column, zeros_like(column)))
        tau = Reshape(DynamicSlice(factors, (0, k), (count, 1)), (count,))
        products = summed(spread(Conj(vector) if q.shape.type.is_complex else vector, q, 0, 1) * q, 1)
        q = q - spread(tau, q, 0) * spread(vector, q, 0, 1) * spread(products, q, 0, 2)
        return q, packed, factors

    q = repeated(steps, step, (unit_like(packed), packed, factors))[0]
    return unbatched(q, batch)


@op_function()
def QR(operand: Operand, full_matrices: bool) -> tuple[XlaOp, XlaOp]:
    """Unitary q and upper triangular r with q r = a; q is square if `full_matrices`, else as narrow as possible."""
    a, batch = in_matrices(operand)
    _, rows, columns = a.shape.dims
    packed, taus = QrDecomposition(a)
    width = rows if as_flag(full_matrices, "full_matrices") else min(rows, columns)
    basis = resized(packed, rows, width)
    q = ProductOfElementaryHouseholderReflectors(basis, taus)
    upper = Select(row_numbers(packed) <= column_numbers(packed), packed, zeros_like(packed))
    return unbatched(q, batch), unbatched(resized(upper, width, columns), batch)
