"""Integers that are computed in more bits than they have: as pixels are, whose sums and products fit 16.

    w = s32[720,1280] convert(u8[720,1280] x)
    p = s32[720,1280] multiply(w, 150)                    becomes    w = u16[720,1280] convert(x)
    s = s32[720,1280] shift-right-arithmetic(p, 8)                   p = u16[720,1280] multiply(w, 150) ...
    y = u8[720,1280] convert(s)

Twice as many fit into a vector. That is so where each number on the way, by its range (`analysis/ranges.py`), is one of
the narrower type, and nobody else needs what is computed. What 64 bits number, as elements for a generator of random
numbers, is computed in 32 likewise.
"""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.hlo.element_types import S16, S32, U16, U32, ElementType
from xlapy.hlo.graph import Instruction
from xlapy.passes import new
from xlapy.passes.analysis.ranges import Ranges
from xlapy.passes.new import Value
from xlapy.support.ordering import post_order

LEAST_ELEMENTS = 64
MOST_COMPUTED = 64  # instructions that are looked at

_MOVED = frozenset({"broadcast", "reshape", "slice", "transpose", "reverse"})
_COMPUTED = frozenset(
    {
        *("add", "subtract", "multiply", "divide", "remainder", "negate", "abs"),
        *("minimum", "maximum", "clamp", "and", "or", "xor"),
        *("shift-left", "shift-right-logical", "shift-right-arithmetic"),
    }
)
"""Ops whose result does not depend on how many bits there are, if these hold what is computed."""


_UNSIGNED_FIRST = ((U16, S16), (U32, S32))
"""Types to compute in, by their bits."""


def in_fewer_bits(convert: Instruction, known: Ranges) -> Value | None:
    """convert(f(convert(x))) of narrow integers, with f computed in 16 or 32 bits instead of more"""
    (wide,), target = convert.operands, convert.shape.type
    if not (wide.shape.type.is_integer and target.is_integer) or convert.shape.size < LEAST_ELEMENTS:
        return None
    types = next((types for types in _UNSIGNED_FIRST if target.bits <= types[0].bits), None)
    if types is None or types[0].bits >= wide.shape.type.bits:
        return None
    computed = _computed(wide, convert, known, types[0].bits)
    if computed is None or not any(i.opcode in _COMPUTED for i in computed):
        return None
    ranges = [known[instruction] for instruction in computed]
    limits = min(low for low, _ in ranges), max(high for _, high in ranges)
    type = next((type for type in types if type.holds(*limits)), None)
    if type is None:
        return None
    made: dict[Instruction, Value] = {}
    for instruction in computed:
        made[instruction] = _made(
            instruction, known[instruction][0], type, [made.get(i, i) for i in instruction.operands]
        )
    return new.converted(made[wide], target)


def _made(instruction: Instruction, number: int, type: ElementType, operands: list[Value]) -> Value:
    """The same in another type, of operands that are; of a constant, its number."""
    shape, opcode = instruction.shape.with_type(type), instruction.opcode
    if opcode == "constant":
        return new.filled(number, shape)
    if opcode == "convert":
        return new.converted(operands[0], type)
    if opcode == "abs" and not type.is_signed:
        return operands[0]
    if opcode == "shift-right-arithmetic" and not type.is_signed:
        opcode = "shift-right-logical"
    stated = shape if instruction.spec.takes_result else None
    return new.op(opcode, operands, shape=stated, **instruction.attributes)


def _computed(root: Instruction, user: Instruction, known: Ranges, bits: int) -> list[Instruction] | None:
    """What `root` is made of, operands first, down to numbers and to what is converted from integers of so many bits;
    None if something else is among that, or is needed elsewhere."""
    looked_at: set[Instruction] = set()

    def is_leaf(instruction: Instruction) -> bool:
        return _is_leaf(instruction, bits)

    def can_be(instruction: Instruction) -> bool:
        """It has a range, and an op that may have fewer bits."""
        return instruction in known and (
            is_leaf(instruction) or instruction.opcode in _MOVED or instruction.opcode in _COMPUTED
        )

    def needed(instruction: Instruction) -> Sequence[Instruction]:
        looked_at.add(instruction)
        is_end = is_leaf(instruction) or len(looked_at) > MOST_COMPUTED or not can_be(instruction)
        return () if is_end else instruction.operands

    order = post_order([root], needed)
    if len(order) > MOST_COMPUTED or not all(map(can_be, order)):
        return None
    owned = {*order, user}
    shared = (i for i in order if not is_leaf(i) and not _is_number(i) and not owned.issuperset(i.users))
    return None if any(shared) else order


def _is_leaf(instruction: Instruction, bits: int) -> bool:
    if instruction.opcode == "constant":
        return instruction.shape.is_scalar
    if instruction.opcode == "iota":
        return True
    if instruction.opcode != "convert":
        return False
    source = instruction.operands[0].shape.type
    return source.kind == "pred" or (source.is_integer and source.bits <= bits)


def _is_number(instruction: Instruction) -> bool:
    return instruction.opcode == "broadcast" and instruction.operands[0].opcode == "constant"
