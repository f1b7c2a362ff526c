"""Which folds are those of libraries: by one operation, from a constant on, of arrays or of what is usually made from
them, and nothing else but that.

reduce(x, 0)                           and with elements that are wider in between: convert(reduce(convert(x), 0))
reduce(multiply(x, y), 0)              and other norms, products and distances
reduce(exponential(x - each), 0)       and others with a number for each fold: each = broadcast(m)
divide(reduce(x, 0), n)                and other sums that are divided by a constant: means
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from xlapy.codegen.libraries.fold_maps import ITSELF, MAPS, FoldMap
from xlapy.codegen.libraries.fold_problem import FoldKind
from xlapy.codegen.registers import register_type
from xlapy.hlo import element_types as et
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import is_row_major, sole_operation, three_parts
from xlapy.hlo.patterns import number_of
from xlapy.support.records import Record

_OPCODES = ("add", "multiply", "maximum", "minimum")
_NARROW = (et.BF16, et.F16)
_TYPES = (*_NARROW, et.F32, et.F64, et.S32, et.U32, et.S64, et.U64)

_WIDE = (et.F32, et.F64)
_HALF = 0.5  # the significand of powers of two
_MADE = tuple((opcode, made) for opcode, maps in MAPS.items() for made in maps)


def _narrow_types(made: FoldMap) -> Iterator[tuple[ElementType, ElementType]]:
    """Of elements and results; what has a number for each fold has one type for all."""
    for type in () if made.has_each else _NARROW:
        yield type, type
        yield type, et.F32


KINDS = (
    *(FoldKind(opcode, type, type) for opcode in _OPCODES for type in _TYPES),
    *(FoldKind(opcode, type, et.F32) for opcode in _OPCODES for type in _NARROW),
    *(FoldKind(opcode, et.F32, type) for opcode in _OPCODES for type in _NARROW),
    *(FoldKind(opcode, type, type, made) for opcode, made in _MADE for type in _WIDE),
    *(FoldKind(opcode, type, result, made) for opcode, made in _MADE for type, result in _narrow_types(made)),
)


class PlainFold(Record):
    """A fold that a library may compute, and its arrays in three parts."""

    kind: FoldKind
    sources: tuple[Instruction, ...]
    each: Instruction | None  # an array with a number for each fold, or one for all of them
    constant: Instruction | None  # of the map, if it has one
    divisor: float | None
    init: Instruction
    groups: int
    length: int
    columns: int  # 1 where rows are folded

    @property
    def arrays(self) -> frozenset[Instruction]:
        """All that is read."""
        return frozenset(self.sources if self.each is None else (*self.sources, self.each))

    @property
    def each_step(self) -> int:
        """The distance of the numbers that folds have one each of; there may be one for all."""
        return int(self.each is not None and self.each.shape.rank > 0)

    @property
    def size(self) -> int:
        return self.groups * self.length * self.columns


def plain_fold(root: Instruction, is_source: Callable[[Instruction], bool]) -> PlainFold | None:
    """The fold that `root` is of instructions for which `is_source` holds, if it is such."""
    reduce, divisor = _undivided(root if root.opcode == "reduce" else _unconverted(root))
    if reduce.opcode != "reduce" or len(reduce.operands) != 2:
        return None
    init = reduce.operands[1]
    combiner = sole_operation(reduce.called[0])
    if combiner is None or init.opcode != "constant":
        return None
    made, sources = _made_of(reduce, combiner.opcode, is_source)
    if not sources or {source.shape.type for source in sources} != {sources[0].shape.type}:
        return None
    kind = FoldKind(combiner.opcode, sources[0].shape.type, root.shape.type, made)
    parts = three_parts(reduce.operands[0].shape.dims, reduce.attributes["dimensions"])
    constant = sources.pop() if made.has_constant else None
    if kind not in KINDS or parts is None or not all(map(is_row_major, (root, reduce, *sources))):
        return None
    if divisor is not None and not kind.may_be_divided:
        return None
    each = sources.pop() if made.has_each else None
    return PlainFold(kind, tuple(sources), each, constant, divisor, init, *parts)


def _undivided(value: Instruction) -> tuple[Instruction, float | None]:
    """What is divided by a number that is not zero, and that number. To multiply by a power of two is the same."""
    if value.opcode not in ("divide", "multiply") or value.shape.type not in _WIDE:
        return value, None
    for operand, factor in (value.operands, value.operands[::-1]):
        number = number_of(factor)
        if number is None:
            continue
        if not number:
            return value, None  # calls have zero for nothing to divide by
        if value.opcode == "divide":
            return (operand, float(number)) if factor is value.operands[1] else (value, None)
        with np.errstate(all="ignore"):
            inverse = 1 / number
        is_exact = np.isfinite(inverse) and math.frexp(number)[0] == _HALF
        return (operand, float(inverse)) if is_exact else (value, None)
    return value, None


def _made_of(
    reduce: Instruction, opcode: str, is_source: Callable[[Instruction], bool]
) -> tuple[FoldMap, list[Instruction]]:
    """How what is folded by an op is made from sources, and from which; from none, if the libraries do not know how."""
    value = reduce.operands[0]

    def leaf(value: Instruction) -> Instruction | None:
        plain = _unreshaped(_unconverted(_unreshaped(value)))
        return next((source for source in (value, _unconverted(value), plain) if is_source(source)), None)

    if leaf(value) is None and register_type(value.shape.type).bits != value.shape.type.bits:
        return ITSELF, []  # what is made is rounded before it is folded

    def each(value: Instruction) -> Instruction | None:
        repeated = _repeated(value, reduce)
        return repeated if repeated is not None and is_source(repeated) else None

    for made in (ITSELF, *MAPS.get(opcode, ())):
        sources = made.sources(value, leaf, each)
        if sources:
            return made, sources

    return ITSELF, []


def _repeated(value: Instruction, reduce: Instruction) -> Instruction | None:
    """The array that a value repeats, if that has a number for each fold, or one for all of them."""
    if value.opcode != "broadcast":
        return None
    kept = tuple(dim for dim in range(value.shape.rank) if dim not in reduce.attributes["dimensions"])
    (operand,) = value.operands
    return operand if value.attributes["dimensions"] in ((), kept) else None


def _unconverted(value: Instruction) -> Instruction:
    """Behind a conversion between floats that are narrow in memory and what registers have of them anyway."""
    if value.opcode != "convert":
        return value
    (operand,) = value.operands
    types = {value.shape.type, operand.shape.type}
    return operand if et.F32 in types and types & {*_NARROW} else value


def _unreshaped(value: Instruction) -> Instruction:
    """The same elements in the same order in memory."""
    if value.opcode != "reshape" or not is_row_major(value):
        return value
    (operand,) = value.operands
    return operand if is_row_major(operand) else value


def bits_of(number: Any, type: ElementType) -> int:
    """A scalar as a register holds it, as a signed number."""
    register = register_type(type)
    if not register.is_float:
        return int(number) - (1 << 64) * (int(number) >> 63 > 0)
    formats = ("<f", "<i") if register.bits == 32 else ("<d", "<q")
    (bits,) = struct.unpack(formats[1], struct.pack(formats[0], float(number)))
    return int(bits)
