"""QR: reflections of columns, and their product."""

from __future__ import annotations

from xlapy.builder.arguments import as_flag
from xlapy.builder.decompositions.matrices import (
    column_numbers,
    in_matrices,
    resized,
    row_numbers,
    unbatched,
    zeros_like,
)
from xlapy.builder.elementwise import Select
from xlapy.builder.linalg import ProductOfElementaryHouseholderReflectors, QrDecomposition
from xlapy.builder.op import XlaOp
from xlapy.builder.operands import Operand
from xlapy.builder.registry import op_function


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
