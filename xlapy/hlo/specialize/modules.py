"""Modules for the shapes of one call, computation by computation."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.shape import UNBOUNDED, Shape, Signature
from xlapy.hlo.specialize.base import Copy, Request, Specialized, is_dynamic_call, refuse_undetermined
from xlapy.hlo.specialize.rules import RULES, copy_of_ordinary
from xlapy.support.errors import ArgumentError, XlaError
from xlapy.support.wording import counted


def is_dynamic(module: HloModule) -> bool:
    """The module must be specialized before anything else can be done with it."""
    return has_open_parameters(module) or any(map(is_dynamic_call, _every_instruction(module)))


def has_open_parameters(module: HloModule) -> bool:
    """A parameter of the module has a `?` dimension, so that only a call tells all shapes."""
    return any(shape.is_unbounded for shape in module.signature.parameters)


def _every_instruction(module: HloModule) -> list[Instruction]:
    """In any order, and without the care for cycles that `HloModule.computations` takes."""
    seen: dict[Computation, None] = {module.entry: None}
    stack = [module.entry]
    while stack:
        fresh = [called for called in stack.pop().called_computations() if called not in seen]
        seen.update(dict.fromkeys(fresh))
        stack += fresh
    return [instruction for computation in seen for instruction in computation]


def _closed(shape: Shape, value: Any) -> Shape:
    """`shape` with the sizes that an argument has where it says `?`. Raises ArgumentError where ranks differ."""
    if shape.is_tuple:
        if not isinstance(value, (tuple, list)) or len(value) != len(shape.parts):
            raise ArgumentError(f"an argument is {type(value).__name__}, but the parameter is a tuple {shape}")
        return Shape.tuple([_closed(part, inner) for part, inner in zip(shape.parts, value, strict=True)])
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
        wanted = counted(len(parameters), "argument")
        raise ArgumentError(f"{module.name} takes {wanted}, and is given {len(arguments)}")
    return specialize(module, [_closed(shape, value) for shape, value in zip(parameters, arguments, strict=True)])


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
    names = _Names()
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


class _Names:
    """Names that no other computation of the copy has."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def fresh(self, wanted: str) -> str:
        while wanted in self._counts:
            self._counts[wanted] += 1
            wanted = f"{wanted}.{self._counts[wanted]}"
        self._counts[wanted] = 0
        return wanted


def _copied(request: Request, name: str) -> Generator[Request, Specialized, Specialized]:
    copy = Copy(request, name)
    for instruction in request.computation.post_order():
        try:
            made = RULES.get(instruction.opcode, copy_of_ordinary)(copy, instruction)
            new = (yield from made) if isinstance(made, Generator) else made
            if new.shape.is_unbounded:
                refuse_undetermined(instruction)
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
