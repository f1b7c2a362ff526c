"""Calls, branches and loops: native code around that of other computations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xlapy.codegen.entry.base import HANDLERS, NO_CODE, Entry, scalar_leaves
from xlapy.codegen.entry.signals import Watch
from xlapy.codegen.frame import Frame
from xlapy.codegen.ir import I1, Value
from xlapy.codegen.kernels.effort import is_brief
from xlapy.codegen.registers import Element, from_parts, parts_of
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.leaves import is_renaming, leaf_shape
from xlapy.hlo.ops import Trait
from xlapy.hlo.shape import Shape


def _bind_parameter(frame: Frame, parameter: Instruction, value: Instruction, value_leaf: int = 0) -> None:
    """The scalar leaves of `parameter` are those of `value`, from `value_leaf` on."""
    for leaf in scalar_leaves(parameter.shape):
        frame.bind(parameter, leaf, frame.scalar(value, value_leaf + leaf))


@HANDLERS.register("call")
def _call(entry: Entry, frame: Frame, instruction: Instruction) -> None:
    computation = instruction.called[0]
    for parameter, operand in zip(computation.parameters, instruction.operands, strict=True):
        _bind_parameter(frame, parameter, operand)
    entry.run(frame, computation)
    for leaf in scalar_leaves(instruction.shape):
        frame.bind(instruction, leaf, frame.scalar(computation.root, leaf))


@HANDLERS.register("conditional")
def _conditional(entry: Entry, frame: Frame, instruction: Instruction) -> None:
    k = frame.k
    scalars = scalar_leaves(instruction.shape)

    def arm(number: int) -> Callable[[], list[Value]]:
        def write() -> list[Value]:
            branch, operand = instruction.called[number], instruction.operands[1 + number]
            with frame.scope():
                _bind_parameter(frame, branch.parameters[0], operand)
                entry.run(frame, branch)
                loaded = [part for leaf in scalars for part in parts_of(frame.scalar(branch.root, leaf))]
                for leaf, shape in enumerate(instruction.shape.leaves()):
                    if shape.is_array and shape.rank:
                        entry.move(frame, (branch.root, leaf), (instruction, leaf), shape)
                return loaded

        return write

    selector = frame.scalar(instruction.operands[0])
    assert isinstance(selector, Value)
    last = len(instruction.called) - 1
    if selector.type == I1:
        merged = k.if_else(selector, arm(0), arm(1))
    else:
        merged = k.switch(selector, {number: arm(number) for number in range(last)}, arm(last))
    for leaf, element in zip(
        scalars, _regroup(merged, [leaf_shape(instruction.shape, n) for n in scalars]), strict=True
    ):
        frame.bind(instruction, leaf, element)


@HANDLERS.register("while")
def _while(entry: Entry, frame: Frame, instruction: Instruction) -> None:
    k = frame.k
    condition, body = instruction.called
    init = instruction.operands[0]
    shapes = list(instruction.shape.leaves())
    scalars = scalar_leaves(instruction.shape)
    scalar_shapes = [shapes[leaf] for leaf in scalars]
    initial = [part for leaf in scalars for part in parts_of(frame.scalar(init, leaf))]
    for leaf, shape in enumerate(shapes):
        if shape.is_array and shape.rank:
            entry.move(frame, (init, leaf), (instruction, leaf), shape)
    watch = Watch(frame, entry.kernels.target, takes_long=_takes_long(entry, body))

    def bind(parameter: Instruction, values: Sequence[Value]) -> None:
        for leaf, element in zip(scalars, _regroup(values, scalar_shapes), strict=True):
            frame.bind(parameter, leaf, element)

    def test(values: list[Value]) -> Value:
        with frame.scope():
            bind(condition.parameters[0], values[watch.width :])
            entry.run(frame, condition)
            result = frame.scalar(condition.root)
            assert isinstance(result, Value)
            return result

    def step(values: list[Value]) -> list[Value]:
        with frame.scope():
            watched = watch.step(values[: watch.width])
            bind(body.parameters[0], values[watch.width :])
            entry.run(frame, body)
            loaded = [part for leaf in scalars for part in parts_of(frame.scalar(body.root, leaf))]
            for leaf, shape in enumerate(shapes):
                if shape.is_array and shape.rank:
                    entry.move(frame, (body.root, leaf), (instruction, leaf), shape)
            return watched + loaded

    final = k.while_loop(test, step, [*watch.initial(), *initial])
    bind(instruction, final[watch.width :])


def _regroup(values: Sequence[Value], shapes: Sequence[Shape]) -> list[Element]:
    """The elements that a flat list of parts makes up."""
    elements = []
    position = 0
    for shape in shapes:
        width = 2 if shape.type.is_complex else 1
        elements.append(from_parts(list(values[position : position + width])))
        position += width
    return elements


def _takes_long(entry: Entry, body: Computation) -> bool:
    """Whether iterations may take so long that each has to look at the clock."""
    called = [i for i in entry.schedule[body] if not (i.shape.is_scalar or i.opcode in NO_CODE or is_renaming(i))]
    return any(Trait.CONTROL in i.spec.traits or Trait.RUNTIME in i.spec.traits for i in called) or not is_brief(called)
