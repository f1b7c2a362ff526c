"""How instructions are copied whose shapes do not follow from operands and attributes alone, and all others."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence

import numpy as np

from xlapy.hlo.evaluate.base import EVALUATORS
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.ops import OPS, Trait
from xlapy.hlo.shape import Shape
from xlapy.hlo.specialize.base import (
    DYNAMIC,
    MAX_KNOWN,
    Copy,
    DynamicCall,
    Known,
    Request,
    Specialized,
    Steps,
    is_dynamic_call,
)
from xlapy.hlo.specialize.stated import STATED
from xlapy.support.errors import ShapeError


def _parameter(copy: Copy, instruction: Instruction) -> Instruction:
    number = instruction.attributes["number"]
    layout = None if instruction.shape.is_tuple else instruction.shape.layout
    shape = copy.request.shapes[number]
    new = copy.add(instruction, shape=shape if layout is None else shape.with_layout(layout))
    copy.known[new] = copy.request.known[number]
    return new


def _constant(copy: Copy, instruction: Instruction) -> Instruction:
    new = copy.add(instruction)
    literal = instruction.attributes["literal"]
    if new.shape.is_array and _is_worth_knowing(new.shape):
        copy.known[new] = literal
    return new


def _is_worth_knowing(shape: Shape) -> bool:
    return shape.size <= MAX_KNOWN and (shape.type.is_integer or shape.type.kind == "pred") and shape.is_static


def _tuple(copy: Copy, instruction: Instruction) -> Instruction:
    new = copy.add(instruction)
    copy.known[new] = tuple(copy.knowledge(operand) for operand in new.operands)
    return new


def _get_tuple_element(copy: Copy, instruction: Instruction) -> Instruction:
    new = copy.add(instruction)
    whole = copy.knowledge(new.operands[0])
    if isinstance(whole, tuple):
        copy.known[new] = whole[instruction.attributes["index"]]
    return new


def _get_dimension_size(copy: Copy, instruction: Instruction) -> Instruction:
    """A number, unless the dimension is bounded."""
    shape = copy.copies[instruction.operands[0]].shape
    dim = instruction.attributes["dimension"]
    if shape.is_dynamic_dim(dim):
        return copy.add(instruction)
    return copy.constant(instruction, Literal(np.int32(shape.dims[dim])))


def copy_of_ordinary(copy: Copy, instruction: Instruction) -> Instruction | Steps:
    if instruction.called:
        return _with_regions(copy, instruction)
    stated = STATED.get(instruction.opcode)
    shape = instruction.shape
    if stated is not None and shape.is_unbounded:
        shape = stated(copy, instruction, copy.copies[instruction.operands[0]].shape)
    new = copy.add(instruction, shape=shape)
    literal = _computed(copy, new)
    if literal is not None:
        copy.known[new] = literal
    return new


def _computed(copy: Copy, new: Instruction) -> Literal | None:
    """The value of an instruction that depends on nothing unknown."""
    if not new.shape.is_array or new.shape.is_unbounded or not _is_worth_knowing(new.shape):
        return None
    if Trait.PURE not in new.spec.traits or Trait.RUNTIME in new.spec.traits:
        return None
    if new.called or new.opcode not in EVALUATORS:
        return None
    values = [copy.knowledge(operand) for operand in new.operands]
    if not all(isinstance(value, Literal) for value in values):
        return None
    arrays = [value.array for value in values if isinstance(value, Literal)]
    return Literal(np.ascontiguousarray(EVALUATORS[new.opcode](new, arrays)).reshape(new.shape.dims), new.shape)


def _with_regions(copy: Copy, instruction: Instruction) -> Steps:
    """An operation whose computations take scalars, or what else does not depend on its operands' shapes."""
    called = yield from _regions(instruction)
    return copy.add(instruction, called=called, shape=instruction.shape)


def _regions(instruction: Instruction) -> Generator[Request, Specialized, list[Computation]]:
    """Copies of the called computations for the shapes that their parameters have; for `yield from`."""
    called = []
    for computation in instruction.called:
        shapes = tuple(parameter.shape.without_layout() for parameter in computation.parameters)
        answer = yield Request(computation, shapes, (None,) * len(shapes))
        called.append(answer.computation)
    return called


def _call(copy: Copy, instruction: Instruction) -> Steps:
    """A computation that takes the operands as they are."""
    operands = [copy.copies[operand] for operand in instruction.operands]
    answer = yield _request(copy, instruction.called[0], operands)
    new = copy.add(instruction, called=[answer.computation], shape=answer.computation.signature.result)
    copy.known[new] = answer.known
    return new


def _request(copy: Copy, computation: Computation, operands: Sequence[Instruction]) -> Request:
    shapes = tuple(operand.shape.without_layout() for operand in operands)
    return Request(computation, shapes, tuple(copy.knowledge(operand) for operand in operands))


def _while(copy: Copy, instruction: Instruction) -> Steps:
    """What the body hands on unchanged is known inside if it is known outside."""
    state = copy.copies[instruction.operands[0]]
    condition, body = instruction.called
    known = _kept(copy.knowledge(state), body)
    shapes = (state.shape.without_layout(),)
    condition_copy = yield Request(condition, shapes, (known,))
    body_copy = yield Request(body, shapes, (known,))
    result = body_copy.computation.signature.result
    if not result.matches(state.shape):
        raise ShapeError("while.body-type", f"the loop makes {result} of a state that is {state.shape}")
    new = copy.add(instruction, called=[condition_copy.computation, body_copy.computation])
    copy.known[new] = known
    return new


def _kept(known: Known, body: Computation) -> Known:
    """What stays known of the state of a loop: the elements of the tuple that its body does not change."""
    if not isinstance(known, tuple) or body.root.opcode != "tuple":
        return None
    (state,) = body.parameters
    return tuple(
        part if operand.opcode == "get-tuple-element" and _picks(operand, state, index) else None
        for index, (part, operand) in enumerate(zip(known, body.root.operands, strict=True))
    )


def _picks(element: Instruction, whole: Instruction, index: int) -> bool:
    return element.operands[0] is whole and element.attributes["index"] == index


def _conditional(copy: Copy, instruction: Instruction) -> Steps:
    """All branches, or the one that a known selector chooses: the others need not make sense for these shapes."""
    selector, *operands = (copy.copies[operand] for operand in instruction.operands)
    choice = copy.knowledge(selector)
    if isinstance(choice, Literal):
        last = len(operands) - 1
        number = int(choice.scalar())
        chosen = 1 - number if choice.shape.type.kind == "pred" else number if 0 <= number <= last else last
        answer = yield _request(copy, instruction.called[chosen], [operands[chosen]])
        new = copy.computation.add(
            "call", [operands[chosen]], called=[answer.computation], metadata=instruction.metadata
        )
        copy.known[new] = answer.known
        return new
    called = []
    for computation, operand in zip(instruction.called, operands, strict=True):
        answer = yield _request(copy, computation, [operand])
        called.append(answer.computation)
    return copy.add(instruction, called=called)


def _custom_call(copy: Copy, instruction: Instruction) -> Instruction | Steps:
    if not is_dynamic_call(instruction):
        return copy_of_ordinary(copy, instruction)
    return _dynamic(copy, instruction)


def _dynamic(copy: Copy, instruction: Instruction) -> Steps:
    called = yield from _regions(instruction)
    operands = [copy.copies[operand] for operand in instruction.operands]
    new = DYNAMIC[instruction.attributes["target"]](
        DynamicCall(copy.computation, instruction, operands, copy.knowledge, called)
    )
    literal = _computed(copy, new) if new not in copy.known else None
    if literal is not None:
        copy.known[new] = literal
    return new


Handler = Callable[[Copy, Instruction], "Instruction | Steps"]

RULES: Mapping[str, Handler] = {
    "parameter": _parameter,
    "constant": _constant,
    "tuple": _tuple,
    "get-tuple-element": _get_tuple_element,
    "get-dimension-size": _get_dimension_size,
    "call": _call,
    "fusion": _call,
    "while": _while,
    "conditional": _conditional,
    "custom-call": _custom_call,
}
"""What is not inferred from operands and attributes alone."""

assert set(RULES) <= set(OPS)
