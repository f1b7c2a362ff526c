"""Programs with `?` dimensions, made into programs for the shapes of one call.

    x = f32[?,4] parameter(0)                                  x = f32[3,4] parameter(0)
    n = s32[] get-dimension-size(x), dimensions={0}            n = s32[] constant(3)
    ROOT y = f32[?] reshape(x)                   becomes       ROOT y = f32[12] reshape(x)

The module is copied, callees at their first use, and every shape is inferred again. Integers that follow from shapes
and constants alone are computed on the way, so that they are known where an operation takes a size as an operand: such
operations stand in a module as custom calls, whose targets `DYNAMIC` knows. Bounded dimensions stay bounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn, TypeAlias

import numpy as np

from xlapy.hlo.evaluate.base import EVALUATORS
from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.ops import OPS, Trait
from xlapy.hlo.shape import UNBOUNDED, Shape, Signature
from xlapy.support.errors import ArgumentError, ShapeError, UnsupportedError, XlaError
from xlapy.support.records import Record
from xlapy.support.registry import Registry

Known: TypeAlias = "Literal | tuple[Known, ...] | None"
"""What is known of a value before the program runs: all of it, something of a tuple, or nothing."""

MAX_KNOWN = 4096
"""Elements of a value that is worth knowing: sizes are few."""


class Request(Record):
    """A copy of `computation` for parameters of these shapes, of which so much is known."""

    computation: Computation
    shapes: tuple[Shape, ...]
    known: tuple[Known, ...]


class Specialized(Record):
    """A copy, and what is known of its result."""

    computation: Computation
    known: Known


class DynamicCall(Record):
    """A custom call for an operation that takes sizes as operands: what replaces it goes into `computation`."""

    computation: Computation
    instruction: Instruction
    operands: Sequence[Instruction]
    known: Callable[[Instruction], Known]
    called: Sequence[Computation]


DYNAMIC: Registry[Callable[[DynamicCall], Instruction]] = Registry("operations with sizes as operands")
"""By target of the custom call. Filled by the packages that read such operations, which stand above this one."""

Steps: TypeAlias = Generator[Request, Specialized, Instruction]


def is_dynamic(module: HloModule) -> bool:
    """The module must be specialized before anything else can be done with it."""
    return has_open_parameters(module) or any(map(is_dynamic_call, _every_instruction(module)))


def has_open_parameters(module: HloModule) -> bool:
    """A parameter of the module has a `?` dimension, so that only a call tells all shapes."""
    return any(shape.is_unbounded for shape in module.signature.parameters)


def is_dynamic_call(instruction: Instruction) -> bool:
    return instruction.opcode == "custom-call" and instruction.attributes["target"] in DYNAMIC


def _every_instruction(module: HloModule) -> list[Instruction]:
    """In any order, and without the care for cycles that `HloModule.computations` takes."""
    seen: dict[Computation, None] = {module.entry: None}
    stack = [module.entry]
    while stack:
        fresh = [called for called in stack.pop().called_computations() if called not in seen]
        seen.update(dict.fromkeys(fresh))
        stack += fresh
    return [instruction for computation in seen for instruction in computation]


def closed(shape: Shape, value: Any) -> Shape:
    """`shape` with the sizes that an argument has where it says `?`. Raises ArgumentError where ranks differ."""
    if shape.is_tuple:
        if not isinstance(value, (tuple, list)) or len(value) != len(shape.parts):
            raise ArgumentError(f"an argument is {type(value).__name__}, but the parameter is a tuple {shape}")
        return Shape.tuple([closed(part, inner) for part, inner in zip(shape.parts, value, strict=True)])
    if not shape.is_unbounded:
        return shape
    sizes = np.shape(value)
    if len(sizes) != shape.rank:
        raise ArgumentError(f"an argument has dimensions {list(sizes)}, but the parameter is {shape}")
    dims = [size if wanted == UNBOUNDED else wanted for wanted, size in zip(shape.dims, sizes, strict=True)]
    dynamic = [shape.is_dynamic_dim(dim) and shape.dims[dim] != UNBOUNDED for dim in range(shape.rank)]
    return Shape.array(shape.type, dims, dynamic, shape.layout)


def specialize_to(module: HloModule, arguments: Sequence[Any]) -> HloModule:
    """The module for arguments (arrays, or nested tuples of them) of these shapes."""
    parameters = module.signature.parameters
    if len(arguments) != len(parameters):
        raise ArgumentError(f"{module.name} takes {len(parameters)} arguments, and is given {len(arguments)}")
    return specialize(module, [closed(shape, value) for shape, value in zip(parameters, arguments, strict=True)])


def specialize(module: HloModule, parameters: Sequence[Shape]) -> HloModule:
    """The module for parameters of these shapes, none of which has a `?`. The module itself stays as it is.

    Raises ShapeError where a rule does not hold for these shapes, and UnsupportedError where a size depends on more
    than shapes: on the values of arguments."""
    shapes = tuple(shape.without_layout() for shape in parameters)
    entry = _run(Request(module.entry, shapes, (None,) * len(shapes))).computation
    config = replace(module.config, extra=dict(module.config.extra))
    if config.entry_layout is not None:
        config.entry_layout = _relaid(entry.signature, config.entry_layout)
    return HloModule(module.name, entry, config)


def _relaid(signature: Signature, like: Signature) -> Signature:
    """The signature with the layouts of another one."""
    parameters = tuple(_with_layouts(*pair) for pair in zip(signature.parameters, like.parameters, strict=True))
    return Signature(parameters, _with_layouts(signature.result, like.result))


def _with_layouts(shape: Shape, like: Shape) -> Shape:
    if shape.is_tuple:
        return Shape.tuple([_with_layouts(*pair) for pair in zip(shape.parts, like.parts, strict=True)])
    return shape.with_layout(like.layout)


def _run(request: Request) -> Specialized:
    """Answers a request and all that it leads to. Requests that wait for others stand on a stack: nothing recurses."""
    answers: dict[Request, Specialized] = {}
    names = Names()
    stack = [(request, _copied(request, names.fresh(request.computation.name)))]
    answer: Specialized | None = None
    while stack:
        wanted, steps = stack[-1]
        try:
            inner = next(steps) if answer is None else steps.send(answer)
        except StopIteration as finished:
            answer = answers[wanted] = finished.value
            stack.pop()
            continue
        answer = answers.get(inner)
        if answer is None:
            if any(inner.computation is waiting.computation for waiting, _ in stack):
                raise XlaError(f"computation {inner.computation.name} calls itself")
            stack.append((inner, _copied(inner, names.fresh(inner.computation.name))))
    assert answer is not None
    return answer


class Names:
    """Names that no other computation of the copy has."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def fresh(self, wanted: str) -> str:
        while wanted in self._counts:
            self._counts[wanted] += 1
            wanted = f"{wanted}.{self._counts[wanted]}"
        self._counts[wanted] = 0
        return wanted


class _Copy:
    """A computation as it is copied."""

    def __init__(self, request: Request, name: str) -> None:
        self.request = request
        self.computation = Computation(name)
        self.copies: dict[Instruction, Instruction] = {}
        self.known: dict[Instruction, Known] = {}

    def knowledge(self, instruction: Instruction) -> Known:
        return self.known.get(instruction)

    def add(
        self, instruction: Instruction, *, called: Sequence[Computation] = (), shape: Shape | None = None
    ) -> Instruction:
        """Adds an instruction like one of the original: its shape is inferred, or the given one."""
        operands = [self.copies[operand] for operand in instruction.operands]
        return self.computation.add_like(instruction, operands, called, shape)

    def constant(self, instruction: Instruction, literal: Literal) -> Instruction:
        copy = self.computation.add("constant", name=instruction.name, metadata=instruction.metadata, literal=literal)
        self.known[copy] = literal
        return copy


def _copied(request: Request, name: str) -> Generator[Request, Specialized, Specialized]:
    copy = _Copy(request, name)
    for instruction in request.computation.post_order():
        try:
            made = _HANDLERS.get(instruction.opcode, _ordinary)(copy, instruction)
            new = (yield from made) if isinstance(made, Generator) else made
            if new.shape.is_unbounded:
                _undetermined(instruction)
        except XlaError as error:
            place = instruction.metadata.location()
            where = f"{instruction.name} in {request.computation.name}" + (f", from {place}" if place else "")
            shapes = ", ".join(map(str, request.shapes))
            raise error.add_context(where=f"{where}, specialized to ({shapes})") from None
        copy.copies[instruction] = new
        for predecessor in instruction.control_predecessors:
            copy.computation.add_control_edge(copy.copies[predecessor], new)
    copy.computation.set_root(copy.copies[request.computation.root])
    return Specialized(copy.computation, copy.knowledge(copy.computation.root))


def _undetermined(instruction: Instruction) -> NoReturn:
    raise UnsupportedError(f"{instruction.opcode}: nothing tells the sizes that {instruction.shape} leaves open")


# -- instructions ------------------------------------------------------------------------------------------------------


def _parameter(copy: _Copy, instruction: Instruction) -> Instruction:
    number = instruction.attributes["number"]
    layout = None if instruction.shape.is_tuple else instruction.shape.layout
    shape = copy.request.shapes[number]
    new = copy.add(instruction, shape=shape if layout is None else shape.with_layout(layout))
    copy.known[new] = copy.request.known[number]
    return new


def _constant(copy: _Copy, instruction: Instruction) -> Instruction:
    new = copy.add(instruction)
    literal = instruction.attributes["literal"]
    if new.shape.is_array and _is_worth_knowing(new.shape):
        copy.known[new] = literal
    return new


def _is_worth_knowing(shape: Shape) -> bool:
    return shape.size <= MAX_KNOWN and (shape.type.is_integer or shape.type.kind == "pred") and shape.is_static


def _tuple(copy: _Copy, instruction: Instruction) -> Instruction:
    new = copy.add(instruction)
    copy.known[new] = tuple(copy.knowledge(operand) for operand in new.operands)
    return new


def _get_tuple_element(copy: _Copy, instruction: Instruction) -> Instruction:
    new = copy.add(instruction)
    whole = copy.knowledge(new.operands[0])
    if isinstance(whole, tuple):
        copy.known[new] = whole[instruction.attributes["index"]]
    return new


def _get_dimension_size(copy: _Copy, instruction: Instruction) -> Instruction:
    """A number, unless the dimension is bounded."""
    shape = copy.copies[instruction.operands[0]].shape
    dim = instruction.attributes["dimension"]
    if shape.is_dynamic_dim(dim):
        return copy.add(instruction)
    return copy.constant(instruction, Literal(np.int32(shape.dims[dim])))


def _ordinary(copy: _Copy, instruction: Instruction) -> Instruction | Steps:
    if instruction.called:
        return _with_regions(copy, instruction)
    stated = _STATED.get(instruction.opcode)
    shape = instruction.shape
    if stated is not None and shape.is_unbounded:
        shape = stated(copy, instruction, copy.copies[instruction.operands[0]].shape)
    new = copy.add(instruction, shape=shape)
    literal = _computed(copy, new)
    if literal is not None:
        copy.known[new] = literal
    return new


def _computed(copy: _Copy, new: Instruction) -> Literal | None:
    """The value of an instruction that depends on nothing unknown."""
    if not new.shape.is_array or new.shape.is_unbounded or not _is_worth_knowing(new.shape):
        return None
    if Trait.PURE not in new.spec.traits or new.called or new.opcode not in EVALUATORS:
        return None
    values = [copy.knowledge(operand) for operand in new.operands]
    if not all(isinstance(value, Literal) for value in values):
        return None
    arrays = [value.array for value in values if isinstance(value, Literal)]
    return Literal(np.ascontiguousarray(EVALUATORS[new.opcode](new, arrays)).reshape(new.shape.dims), new.shape)


def _with_regions(copy: _Copy, instruction: Instruction) -> Steps:
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


def _call(copy: _Copy, instruction: Instruction) -> Steps:
    """A computation that takes the operands as they are."""
    operands = [copy.copies[operand] for operand in instruction.operands]
    answer = yield _request(copy, instruction.called[0], operands)
    new = copy.add(instruction, called=[answer.computation], shape=answer.computation.signature.result)
    copy.known[new] = answer.known
    return new


def _request(copy: _Copy, computation: Computation, operands: Sequence[Instruction]) -> Request:
    shapes = tuple(operand.shape.without_layout() for operand in operands)
    return Request(computation, shapes, tuple(copy.knowledge(operand) for operand in operands))


def _while(copy: _Copy, instruction: Instruction) -> Steps:
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


def _conditional(copy: _Copy, instruction: Instruction) -> Steps:
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


def _custom_call(copy: _Copy, instruction: Instruction) -> Instruction | Steps:
    if not is_dynamic_call(instruction):
        return _ordinary(copy, instruction)
    return _dynamic(copy, instruction)


def _dynamic(copy: _Copy, instruction: Instruction) -> Steps:
    called = yield from _regions(instruction)
    operands = [copy.copies[operand] for operand in instruction.operands]
    new = DYNAMIC[instruction.attributes["target"]](
        DynamicCall(copy.computation, instruction, operands, copy.knowledge, called)
    )
    literal = _computed(copy, new) if new not in copy.known else None
    if literal is not None:
        copy.known[new] = literal
    return new


Handler = Callable[[_Copy, Instruction], "Instruction | Steps"]

_HANDLERS: Mapping[str, Handler] = {
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


# -- stated results ----------------------------------------------------------------------------------------------------


def _like_operand(copy: _Copy, instruction: Instruction, operand: Shape) -> Shape:
    """The dimensions of the operand, in another element type."""
    return operand.without_layout().with_type(instruction.shape.type)


def _like_leading(copy: _Copy, instruction: Instruction, operand: Shape) -> Shape:
    """Sizes that a `?` takes from the operand; a last dimension that is cut or joined must be static."""
    shape = instruction.shape
    dims = list(shape.dims)
    for dim, size in enumerate(operand.dims[: len(dims)]):
        if dims[dim] == UNBOUNDED:
            dims[dim] = size
    return _with_sizes(shape, dims)


def _of_broadcast(copy: _Copy, instruction: Instruction, operand: Shape) -> Shape:
    """Sizes that the operand has; those of new dimensions are those of the arrays that it is combined with."""
    dims = list(instruction.shape.dims)
    for size, target in zip(operand.dims, instruction.attributes["dimensions"], strict=True):
        if dims[target] == UNBOUNDED:
            dims[target] = size
    for like in _combined_with(copy, instruction) if UNBOUNDED in dims else ():
        dims = [size if known == UNBOUNDED else known for known, size in zip(dims, like.dims, strict=True)]
    if UNBOUNDED in dims:
        _undetermined(instruction)
    return _with_sizes(instruction.shape, dims)


def _combined_with(copy: _Copy, instruction: Instruction) -> Iterator[Shape]:
    """The shapes of what users take element by element together with an instruction, as far as they are copied."""
    for user in instruction.users:
        if Trait.ELEMENTWISE in user.spec.traits:
            others = (copy.copies[operand].shape for operand in user.operands if operand in copy.copies)
            yield from (shape for shape in others if shape.rank == instruction.shape.rank)


def _of_reshape(copy: _Copy, instruction: Instruction, operand: Shape) -> Shape:
    """One `?` that is left, from the number of elements."""
    dims = list(instruction.shape.dims)
    others = math.prod(size for size in dims if size != UNBOUNDED)
    if dims.count(UNBOUNDED) != 1 or not others or operand.size % others:
        _undetermined(instruction)
    dims[dims.index(UNBOUNDED)] = operand.size // others
    return _with_sizes(instruction.shape, dims)


def _with_sizes(shape: Shape, dims: Sequence[int]) -> Shape:
    """The shape with all sizes known: what was bounded stays so."""
    dynamic = [shape.is_dynamic_dim(dim) and shape.dims[dim] != UNBOUNDED for dim in range(shape.rank)]
    return shape.with_dims(dims, dynamic)


_STATED: Mapping[str, Callable[[_Copy, Instruction, Shape], Shape]] = {
    "convert": _like_operand,
    "bitcast-convert": _like_leading,
    "broadcast": _of_broadcast,
    "reshape": _of_reshape,
}
"""Results that the text states, and whose `?` follow from the operand. Other rules look at element types only."""

assert set(_HANDLERS) | set(_STATED) <= set(OPS)
