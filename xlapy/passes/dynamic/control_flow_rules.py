"""Run-time sizes in control flow: a bounded value is passed, carried and returned with its sizes behind it.

(f32[<=8], s32[])  becomes  (f32[8], s32[], s32[])        f32[<=8]  becomes  (f32[8], s32[])
"""

from __future__ import annotations

from xlapy.hlo.element_types import S32
from xlapy.hlo.graph import Instruction
from xlapy.hlo.shape import Shape
from xlapy.passes.dynamic.padding import RULES, Padding, Sizes, bounded_places


def packed_shape(shape: Shape) -> Shape:
    """What a value of `shape` and its sizes are together; the shape itself if it is static."""
    places = bounded_places(shape)
    parts = shape.parts if shape.is_tuple else (shape,)
    sizes = [Shape.scalar(S32)] * len(places)
    return Shape.tuple([*(part.static() for part in parts), *sizes]) if places else shape


def packed(padding: Padding, instruction: Instruction, shape: Shape) -> Instruction:
    """A value of the original with its sizes, as `packed_shape(shape)`."""
    value = padding.copy(instruction)
    places = bounded_places(shape)
    if not places:
        return value
    parts = padding.computation.unpacked(value) if shape.is_tuple else [value]
    known = padding.sizes(instruction)
    sizes = [known.get(place) or padding.number(bound) for place, bound in places]
    return padding.add("tuple", [*parts, *sizes])


def enter_packed(padding: Padding, instruction: Instruction, value: Instruction, shape: Shape) -> None:
    """Enters `value`, of `packed_shape(shape)`, as the copy of an instruction of that shape."""
    places = bounded_places(shape)
    if not places:
        padding.enter(instruction, value)
        return
    count = len(shape.parts) if shape.is_tuple else 1
    parts = padding.computation.unpacked(value)
    sizes: Sizes = {place: size for (place, _), size in zip(places, parts[count:], strict=True)}
    array = padding.add("tuple", parts[:count]) if shape.is_tuple else parts[0]
    padding.enter(instruction, array, sizes, anchor=value)


@RULES.register("while")
def while_(padding: Padding, instruction: Instruction) -> None:
    (init,), state = instruction.operands, instruction.shape
    condition, body = instruction.called
    called = [padding.callee(condition), padding.callee(body)]
    result = padding.computation.add_like(instruction, [packed(padding, init, state)], called)
    enter_packed(padding, instruction, result, state)


@RULES.register("conditional")
def conditional(padding: Padding, instruction: Instruction) -> None:
    selector, *operands = instruction.operands
    branches = instruction.called
    arguments = [
        packed(padding, operand, branch.parameters[0].shape) for operand, branch in zip(operands, branches, strict=True)
    ]
    called = [padding.callee(branch, instruction.shape) for branch in branches]
    result = padding.computation.add_like(instruction, [padding.copy(selector), *arguments], called)
    enter_packed(padding, instruction, result, instruction.shape)


@RULES.register("call")
def call(padding: Padding, instruction: Instruction) -> None:
    (computation,) = instruction.called
    arguments = [
        packed(padding, operand, parameter.shape)
        for operand, parameter in zip(instruction.operands, computation.parameters, strict=True)
    ]
    result = padding.computation.add_like(instruction, arguments, [padding.callee(computation)])
    enter_packed(padding, instruction, result, instruction.shape)
