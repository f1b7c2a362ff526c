"""Which folds are those of libraries: of one array by one operation, from a constant on, and nothing else but that.

reduce(x, 0)                           and with elements that are wider in between: convert(reduce(convert(x), 0))
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

from xlapy.codegen.libraries.fold_problem import FoldKind
from xlapy.codegen.registers import register_type
from xlapy.hlo import element_types as et
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import is_row_major, sole_operation
from xlapy.hlo.shape import Shape
from xlapy_runtime.records import Record

_OPCODES = ("add", "multiply", "maximum", "minimum")
_NARROW = (et.BF16, et.F16)
_TYPES = (*_NARROW, et.F32, et.F64, et.S32, et.U32, et.S64, et.U64)

KINDS = (
    *(FoldKind(opcode, type, type) for opcode in _OPCODES for type in _TYPES),
    *(FoldKind(opcode, type, et.F32) for opcode in _OPCODES for type in _NARROW),
)


class PlainFold(Record):
    """A fold that a library may compute, and its array in three parts."""

    kind: FoldKind
    source: Instruction
    init: int  # its bits in a register
    groups: int
    length: int
    columns: int  # 1 where rows are folded

    @property
    def size(self) -> int:
        return self.groups * self.length * self.columns


def plain_fold(root: Instruction, is_source: Callable[[Instruction], bool]) -> PlainFold | None:
    """The fold that `root` is of an instruction for which `is_source` holds, if it is such."""
    reduce = root if root.opcode == "reduce" else _unconverted(root)
    if reduce.opcode != "reduce" or len(reduce.operands) != 2:
        return None
    source, init = reduce.operands
    source = source if is_source(source) else _unconverted(source)
    combiner = sole_operation(reduce.called[0])
    if combiner is None or init.opcode != "constant" or not is_source(source):
        return None
    kind, parts = FoldKind(combiner.opcode, source.shape.type, root.shape.type), _three_parts(reduce)
    if kind not in KINDS or parts is None or not all(map(is_row_major, (root, reduce, source))):
        return None
    return PlainFold(kind, source, _bits(init, kind.type), *parts)


def _unconverted(value: Instruction) -> Instruction:
    """Behind a conversion between floats that are narrow in memory and what registers have of them anyway."""
    if value.opcode != "convert":
        return value
    (operand,) = value.operands
    types = {value.shape.type, operand.shape.type}
    return operand if et.F32 in types and types & {*_NARROW} else value


def _three_parts(reduce: Instruction) -> tuple[int, int, int] | None:
    """Groups, length and columns, if the folded dimensions lie side by side."""
    shape: Shape = reduce.operands[0].shape
    folded = [dim for dim in sorted(reduce.attributes["dimensions"]) if shape.dims[dim] > 1]
    if not folded or not shape.size:
        return None
    first, end = folded[0], folded[-1] + 1
    if any(shape.dims[dim] > 1 and dim not in folded for dim in range(first, end)):
        return None
    return math.prod(shape.dims[:first]), math.prod(shape.dims[first:end]), math.prod(shape.dims[end:])


def _bits(constant: Instruction, type: ElementType) -> int:
    """A scalar as a register holds it, as a signed number."""
    number = constant.attributes["literal"].scalar()
    register = register_type(type)
    if not register.is_float:
        return int(number) - (1 << 64) * (int(number) >> 63 > 0)
    formats = ("<f", "<i") if register.bits == 32 else ("<d", "<q")
    (bits,) = struct.unpack(formats[1], struct.pack(formats[0], float(number)))
    return int(bits)
