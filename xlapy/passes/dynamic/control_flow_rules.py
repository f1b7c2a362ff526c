"""Run-time sizes in control flow: a bounded value is passed, carried and returned with its sizes behind it.

(f32[<=8], s32[])  becomes  (f32[8], s32[], s32[])        f32[<=8]  becomes  (f32[8], s32[])
"""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.hlo.element_types import S32
from xlapy.hlo.graph import Computation, Instruction
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
    parts = [value]
    if shape.is_tuple:
        parts = [padding.add("get-tuple-element", [value], index=index) for index in range(len(shape.parts))]
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
    parts = [padding.add("get-tuple-element", [value], index=index) for index in range(count + len(places))]
    sizes: Sizes = {place: size for (place, _), size in zip(places, parts[count:], strict=True)}
    array = padding.add("tuple", parts[:count]) if shape.is_tuple else parts[0]
    padding.enter(instruction, array, sizes, anchor=value)


def _calling(
    padding: Padding, instruction: Instruction, operands: Sequence[Instruction], called: Sequence[Computation]
) -> Instruction:
    copy = padding.add(
        instruction.opcode,
        operands,
        called=called,
        name=instruction.name,
        metadata=instruction.metadata,
        **instruction.attributes,
    )
    copy.extra = dict(instruction.extra)
    return copy


@RULES.register("while")
def while_(padding: Padding, instruction: Instruction) -> None:
    (init,), state = instruction.operands, instruction.shape
    condition, body = instruction.called
    result = _calling(
        padding, instruction, [packed(padding, init, state)], [padding.callee(condition), padding.callee(body)]
    )
    enter_packed(padding, instruction, result, state)


@RULES.register("conditional")
def conditional(padding: Padding, instruction: Instruction) -> None:
    selector, *operands = instruction.operands
    branches = instruction.called
    arguments = [
        packed(padding, operand, branch.parameters[0].shape) for operand, branch in zip(operands, branches, strict=True)
    ]
    result = _calling(
        padding,
        instruction,
        [padding.copy(selector), *arguments],
        [padding.callee(branch, instruction.shape) for branch in branches],
    )
    enter_packed(padding, instruction, result, instruction.shape)


@RULES.register("call")
def call(padding: Padding, instruction: Instruction) -> None:
    (computation,) = instruction.called
    arguments = [
        packed(padding, operand, parameter.shape)
        for operand, parameter in zip(instruction.operands, computation.parameters, strict=True)
    ]
    result = _calling(padding, instruction, arguments, [padding.callee(computation)])
    enter_packed(padding, instruction, result, instruction.shape)
