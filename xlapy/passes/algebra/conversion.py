"""Laws of conversions and copies."""

from __future__ import annotations

from xlapy.hlo.element_types import F8E8M0FNU, PRED, ElementType
from xlapy.hlo.graph import Instruction
from xlapy.hlo.ops import OPS
from xlapy.hlo.patterns import OpPattern, P, variables
from xlapy.passes import new
from xlapy.passes.new import Value
from xlapy.passes.rewrite import LAWS

p, x, y = variables("p x y")


@LAWS.law(P.convert(x), P.bitcast_convert(x))
def convert_to_same(root: Instruction) -> Value | None:
    """convert(x) to its own type -> x"""
    operand = root.operands[0]
    return operand if operand.shape.type is root.shape.type else None


@LAWS.law(P.convert(y.where(P.convert(x))))
def convert_through_wider(root: Instruction, x: Instruction, y: Instruction) -> Value | None:
    """convert(convert(x: A -> B) -> C) -> convert(x: A -> C), where B holds every value of A"""
    source, middle, target = x.shape.type, y.shape.type, root.shape.type
    if not is_lossless(source, middle) or (source.is_integer and middle.is_float and target.is_integer):
        return None  # integers wrap into a narrower integer, floats saturate
    return new.convert(x, shape=root.shape)


@LAWS.law(P.convert(P.select(p, x, y)))
def convert_of_chosen_numbers(root: Instruction, p: Instruction, x: Instruction, y: Instruction) -> Value | None:
    """convert(select(p, x, y)) -> select(p, convert(x), convert(y)), for numbers, which are then converted once"""
    if not (_is_number(x) and _is_number(y)):
        return None
    return new.select(p, new.convert(x, shape=root.shape), new.convert(y, shape=root.shape))


def _is_number(instruction: Instruction) -> bool:
    source = instruction.operands[0] if instruction.opcode == "broadcast" else instruction
    return source.opcode == "constant" and source.shape.is_scalar


def is_lossless(source: ElementType, target: ElementType) -> bool:
    """Every value of `source` is one of `target`."""
    if source is target or (source is PRED and target is not F8E8M0FNU):  # powers of two: there is no 0
        return True
    if source.is_integer:
        return target is not PRED and target.holds(*source.integer_range)
    if source.is_float and target.is_float:
        return target.name in _CONTAINED and source.name in _CONTAINED[target.name]
    return False


_CONTAINED = {"f32": ("f16", "bf16"), "f64": ("f16", "bf16", "f32")}


@LAWS.law(P.copy(x))
def copy(x: Instruction) -> Value:
    """copy(x) -> x: which copies are needed is decided when layouts and buffers are"""
    return x


@LAWS.law(
    *(OpPattern(OPS[name], (y.where(P.convert(x)),), {}) for name in ("reshape", "transpose", "slice", "reverse"))
)
def movement_between_conversions(root: Instruction, x: Instruction, y: Instruction) -> Value | None:
    """convert(move(convert(x))) -> move(x), where the conversions undo each other and only move what they need not"""
    user = root.sole_user
    if user is None or user.opcode != "convert" or user.shape.type is not x.shape.type:
        return None
    if not is_lossless(x.shape.type, y.shape.type):
        return None
    moved = new.op(
        root.opcode,
        [x],
        shape=root.shape.with_type(x.shape.type) if root.spec.takes_result else None,
        **root.attributes,
    )
    return new.convert(moved, shape=root.shape)
