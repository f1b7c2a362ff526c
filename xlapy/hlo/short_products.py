"""Products of many short rows by one small matrix: points that are turned, colours that become others.

f32[1000,3] dot(f32[1000,3] x, f32[3,3] m), lhs_contracting_dims={1}, rhs_contracting_dims={1}
"""

from __future__ import annotations

from xlapy.hlo import element_types as et
from xlapy.hlo.attributes import DotDimensionNumbers
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import is_row_major
from xlapy.support.records import Record

LEAST_SIDE, MOST_SIDE = 2, 4
TYPES = (et.F32, et.F64)
LEAST_ROWS = 64  # that are worth a call
MOST_BYTES = 8 << 20
"""Of a result that a library writes. Larger ones may bypass the caches, as kernels of programs let them."""


class ShortProduct(Record):
    """`rows` rows of `depth` elements by a matrix of `columns`; `step` and `column` tell its elements apart."""

    type: ElementType
    rows: int
    depth: int
    columns: int
    step: int
    column: int


def short_product(dot: Instruction) -> ShortProduct | None:
    """What a dot multiplies, if it is such a product."""
    (left, right), result = (operand.shape for operand in dot.operands), dot.shape
    numbers: DotDimensionNumbers = dot.attributes["dimension_numbers"]
    if result.type not in TYPES or not (left.type is right.type is result.type) or right.rank != 2 or not left.rank:
        return None
    if numbers.lhs_batch or numbers.lhs_contracting != (left.rank - 1,) or len(numbers.rhs_contracting) != 1:
        return None
    (contracted,) = numbers.rhs_contracting
    depth, columns = right.dims[contracted], right.dims[1 - contracted]
    rows = result.size // max(columns, 1)
    if not (min(depth, columns) >= LEAST_SIDE and max(depth, columns) <= MOST_SIDE and rows >= LEAST_ROWS):
        return None
    if result.bytes > MOST_BYTES or not all(is_row_major(value) for value in (dot, *dot.operands)):
        return None
    step, column = (right.dims[1], 1) if contracted == 0 else (1, right.dims[1])
    return ShortProduct(result.type, rows, depth, columns, step, column)
