"""Tuple simplification: tuples that are only packed and unpacked disappear.

t = (f32[], f32[]) tuple(a, b)
ROOT g = f32[] get-tuple-element(t), index=1        becomes        ROOT b

x = f32[] get-tuple-element(t), index=0
y = f32[] get-tuple-element(t), index=1
ROOT u = (f32[], f32[]) tuple(x, y)                 becomes        ROOT t
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.graph import Computation, Instruction
from xlapy.passes.base import ComputationPass, pinned, replace_all


@dataclass
class TupleSimplification(ComputationPass):
    name: ClassVar[str] = "simplify-tuples"
    ops: ClassVar[Set[str]] = frozenset({"get-tuple-element"})

    def run_on(self, computation: Computation) -> bool:
        fixed = pinned(computation)
        replacements: dict[Instruction, Instruction] = {}
        for instruction in computation.post_order():
            simpler = None if instruction in fixed else _simpler(instruction, replacements)
            if simpler is not None:
                replacements[instruction] = simpler
        replace_all(computation, replacements)
        return computation.remove(replacements)


def _simpler(instruction: Instruction, replacements: dict[Instruction, Instruction]) -> Instruction | None:
    if instruction.opcode == "get-tuple-element":
        source = replacements.get(instruction.operands[0], instruction.operands[0])
        if source.opcode == "tuple":
            element: Instruction = source.operands[instruction.attributes["index"]]
            return replacements.get(element, element)
    if instruction.opcode == "tuple":
        return _repacked(instruction, replacements)
    return None


def _repacked(packed: Instruction, replacements: dict[Instruction, Instruction]) -> Instruction | None:
    """The tuple whose elements `packed` lists, all of them and in order."""
    elements = [replacements.get(operand, operand) for operand in packed.operands]
    if not elements or any(element.opcode != "get-tuple-element" for element in elements):
        return None
    sources = {replacements.get(element.operands[0], element.operands[0]) for element in elements}
    source = sources.pop()
    in_order = not sources and all(element.attributes["index"] == place for place, element in enumerate(elements))
    return source if in_order and source.shape.matches(packed.shape) else None
