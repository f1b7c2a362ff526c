"""Layout assignment: every array gets the order of its dimensions in memory.

    p = f32[2,3]{0,1} parameter(0)                      p = f32[2,3]{0,1} parameter(0)
    ROOT n = f32[2,3]{1,0} negate(p)        becomes     c = f32[2,3]{1,0} copy(p)
                                                        ROOT n = f32[2,3]{1,0} negate(c)

Everything is row-major but what has a layout of its own: the entry's parameters and results, the operands and results
of custom calls that demand one, and what the choice of layouts has left with one, in front of a transpose that moves
nothing. Copies stand where a layout given meets one wanted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.leaves import moves_nothing
from xlapy.hlo.shape import Shape
from xlapy.passes.base import Pass


@dataclass
class LayoutAssignment(Pass):
    name: ClassVar[str] = "layout-assignment"
    required: ClassVar[bool] = True

    keep_entry_layouts: bool = True  # else the entry is row-major too, as arrays of callers are

    def run(self, module: HloModule) -> bool:
        changed = not self.keep_entry_layouts and module.config.entry_layout is not None
        if not self.keep_entry_layouts:
            module.config.entry_layout = None
        given = module.config.entry_layout
        for computation in module.computations():
            for instruction in computation.post_order():
                shape = instruction.shape.with_default_layout()
                if instruction.opcode == "parameter" and computation is module.entry and given is not None:
                    number = instruction.attributes["number"]
                    shape = given.parameters[number].with_default_layout()
                changed = changed or str(shape) != str(instruction.shape)  # as text: scalars have no order
                computation.set_shape(instruction, shape)
            changed = _satisfy_demands(computation) or changed
            wanted = computation.root.shape.row_major()
            if computation is module.entry and given is not None:
                wanted = given.result.with_default_layout()
            changed = _satisfy_result(computation, wanted) or changed
        return changed


def _satisfy_demands(computation: Computation) -> bool:
    """Gives custom calls their operands in the layouts that they demand, and everybody else row-major ones."""
    changed = False
    for instruction in computation.post_order():
        if instruction.opcode == "get-tuple-element":
            computation.set_shape(instruction, instruction.operands[0].shape.parts[instruction.attributes["index"]])
        elif instruction.opcode == "tuple":
            computation.set_shape(instruction, Shape.tuple([operand.shape for operand in instruction.operands]))
        elif not (instruction.opcode == "transpose" and moves_nothing(instruction)):
            demands = instruction.attributes.get("operand_layout_constraints") or ()
            wanted = [
                demands[place] if place < len(demands) else operand.shape.row_major()
                for place, operand in enumerate(instruction.operands)
            ]
            pairs = zip(instruction.operands, wanted, strict=True)
            operands = [in_layout(operand, shape) for operand, shape in pairs]
            if operands != list(instruction.operands):
                computation.set_operands(instruction, operands)
                changed = True
    return changed


def _satisfy_result(computation: Computation, wanted: Shape) -> bool:
    root = in_layout(computation.root, wanted)
    changed = root is not computation.root
    computation.set_root(root)
    return changed


def in_layout(value: Instruction, wanted: Shape) -> Instruction:
    """`value` in the layouts of `wanted`: itself, a copy, or a tuple of such."""
    if value.shape == wanted or value.shape.is_token:
        return value
    computation = value.parent
    if value.shape.is_tuple:
        elements = []
        for index, part in enumerate(wanted.parts):
            element = value.operands[index] if value.opcode == "tuple" else _element(value, index)
            elements.append(in_layout(element, part))
        shape = Shape.tuple([element.shape for element in elements])
        return computation.add("tuple", elements, shape=shape, metadata=value.metadata)
    return computation.add("copy", [value], shape=wanted, metadata=value.metadata)


def _element(value: Instruction, index: int) -> Instruction:
    return value.parent.add("get-tuple-element", [value], shape=value.shape.parts[index], index=index)
