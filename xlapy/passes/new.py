"""New instructions of a law: `new.transpose(x, permutation=p)`.

A law returns a tree of these and of instructions that exist. Nothing enters the graph until the engine has checked
it, so a law may look at the shape of what it builds, and drop it.

    new.broadcast(x, shape=shape, dimensions=(0,))      every op of the table, by its Python name
    new.number(0, like=x)                               a constant number of the shape of x
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from xlapy.hlo.attributes import OpMetadata
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.ops import OPS, OpSpec
from xlapy.hlo.shape import Dims, Shape


@dataclass(frozen=True, slots=True, eq=False)
class New:
    """An instruction to be."""

    spec: OpSpec
    shape: Shape
    operands: tuple[Value, ...]
    attributes: dict[str, Any]
    called: tuple[Computation, ...]


Value: TypeAlias = "New | Instruction"


def op(
    opcode: str,
    operands: Sequence[Value] = (),
    *,
    shape: Shape | None = None,
    called: Sequence[Computation] = (),
    **attributes: Any,
) -> New:
    """A new instruction; raises ShapeError where a constraint of the op is broken."""
    spec = OPS[opcode]
    complete = spec.complete_attributes(attributes)
    stated = shape.without_layout() if shape is not None else None
    signatures = [computation.signature for computation in called]
    inferred = spec.infer([operand.shape for operand in operands], complete, signatures, stated)
    return New(spec, inferred.without_layout(), (*operands,), complete, (*called,))


def like(instruction: Instruction, operands: Sequence[Value], **attributes: Any) -> New:
    """An instruction like `instruction` with other operands, and other values of some attributes."""
    return op(
        instruction.opcode,
        operands,
        shape=instruction.shape if instruction.spec.takes_result else None,
        called=instruction.called,
        **{**instruction.attributes, **attributes},
    )


def number(value: Any, like: Value) -> New:
    """The shape of `like`, filled with one number."""
    return filled(value, like.shape)


def filled(value: Any, shape: Shape) -> New:
    """An array of `shape` all of whose elements are `value`."""
    scalar = op("constant", literal=Literal(value, Shape.scalar(shape.type)))
    return scalar if shape.is_scalar else op("broadcast", [scalar], shape=shape, dimensions=())


def reshaped(operand: Value, dims: Sequence[int]) -> Value:
    """The operand under other dimensions; the operand itself when it has them."""
    if operand.shape.dims == tuple(dims):
        return operand
    return op("reshape", [operand], shape=operand.shape.with_dims(dims))


def converted(operand: Value, element_type: ElementType) -> Value:
    """The operand in another element type; the operand itself when it has that."""
    if operand.shape.type is element_type:
        return operand
    return op("convert", [operand], shape=operand.shape.with_type(element_type))


def repeated(scalar: Value, dims: Dims) -> Value:
    """An array all of whose elements are `scalar`; the scalar itself where there are no dimensions."""
    return op("broadcast", [scalar], shape=scalar.shape.with_dims(dims), dimensions=()) if dims else scalar


def __getattr__(name: str) -> Callable[..., New]:
    opcode = name.rstrip("_").replace("_", "-")
    if opcode not in OPS:
        raise AttributeError(f"there is no op {name!r}")

    def build(*operands: Value, **attributes: Any) -> New:
        return op(opcode, operands, **attributes)

    return build


def materialize(
    value: Value, computation: Computation, model: Instruction, metadata: OpMetadata | None = None
) -> tuple[Instruction, list[Instruction]]:
    """Adds a tree to `computation`, each node once; returns its root and all that was added, operands first.

    Metadata is that of `model`, which the tree will replace, unless other is given."""
    metadata = model.metadata if metadata is None else metadata
    made: dict[New, Instruction] = {}

    def add(node: Value) -> Instruction:
        if isinstance(node, Instruction):
            return node
        if node not in made:
            operands = [add(operand) for operand in node.operands]
            made[node] = computation.add_unchecked(
                node.spec, node.shape, operands, node.attributes, node.called, metadata=metadata
            )
        return made[node]

    return add(value), list(made.values())
