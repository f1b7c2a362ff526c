"""Scalar computations inlined into kernels: the regions of reduce, map, scatter ..., on any number of lanes.

A region is inlined if it is made of element-wise ops on scalars, tuples and calls of such regions. (`is_inlinable` says
so; other regions run as functions, one element at a time.)
"""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.codegen.elements import emit_element
from xlapy.codegen.ir import KernelBuilder
from xlapy.codegen.registers import Element, constant_element
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.ops import Trait
from xlapy.support.errors import UnsupportedError

_RENAMING = frozenset({"reshape", "broadcast", "transpose", "bitcast", "reverse", "opt-barrier"})  # no-ops on scalars
_STRUCTURE = frozenset({"parameter", "constant", "tuple", "get-tuple-element"})


def is_inlinable(computation: Computation) -> bool:
    """Whether `emit_region` can inline the computation."""
    return all(_is_inlinable(instruction) for instruction in computation)


def _is_inlinable(instruction: Instruction) -> bool:
    if any(leaf.rank for leaf in instruction.shape.leaves()):
        return False
    if instruction.opcode in ("call", "map"):
        return is_inlinable(instruction.called[0])
    return instruction.opcode in _RENAMING or instruction.opcode in _STRUCTURE or _is_element(instruction)


def _is_element(instruction: Instruction) -> bool:
    """One result for one element of each operand. The bits of a scalar are a scalar."""
    return Trait.ELEMENTWISE in instruction.spec.traits or instruction.opcode == "bitcast-convert"


def emit_region(
    k: KernelBuilder, computation: Computation, arguments: Sequence[Element], *, unrounded: bool = False
) -> list[Element]:
    """The results of a scalar computation for `arguments`; several if its root is a tuple.

    `unrounded` keeps narrow floats in f32 throughout, as accumulation wants it."""
    values: dict[Instruction, list[Element]] = {}
    for parameter, argument in zip(computation.parameters, arguments, strict=True):
        values[parameter] = [argument]
    for instruction in computation.post_order():
        if instruction not in values:
            operands = [values[operand] for operand in instruction.operands]
            values[instruction] = _emit(k, instruction, operands, unrounded)
    return values[computation.root]


def _emit(
    k: KernelBuilder, instruction: Instruction, operands: Sequence[list[Element]], unrounded: bool
) -> list[Element]:
    match instruction.opcode:
        case "constant":
            literal = instruction.attributes["literal"]
            return [constant_element(k, literal.shape.type, literal.scalar())]
        case "tuple":
            return [element for operand in operands for element in operand]
        case "get-tuple-element":
            return [operands[0][instruction.attributes["index"]]]
        case "call" | "map":
            arguments = [operand[0] for operand in operands]
            return emit_region(k, instruction.called[0], arguments, unrounded=unrounded)
    if instruction.opcode in _RENAMING:
        return operands[0]
    if not _is_element(instruction):
        raise UnsupportedError(
            f"{instruction.opcode} in a scalar computation: only element-wise operations on scalars, tuples and calls "
            "of such computations can be part of a kernel"
        ).add_context(subject=instruction.parent.name, where=instruction.metadata.location())
    return [emit_element(k, instruction, [operand[0] for operand in operands], unrounded=unrounded)]
