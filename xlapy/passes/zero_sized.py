"""Arrays without elements become constants, so that no kernel meets an empty index space.

    ROOT s = f32[0,4] add(x, y)        becomes        ROOT s = f32[0,4] constant({})

Effects keep running; only what is read of them is replaced. Elements that a gather takes from slices without elements
are zeros, for there is nothing to read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.literal import Literal
from xlapy.passes import new
from xlapy.passes.base import ComputationPass, pinned, replace_all


@dataclass
class ZeroSized(ComputationPass):
    name: ClassVar[str] = "zero-sized"
    required: ClassVar[bool] = True

    def run_on(self, computation: Computation) -> bool:
        fixed = pinned(computation)
        replacements: dict[Instruction, Instruction] = {}
        for instruction in computation:
            if instruction in fixed:
                continue
            if _is_empty(instruction):
                literal = Literal(np.zeros(instruction.shape.dims), instruction.shape.without_layout())
                replacements[instruction] = computation.add(
                    "constant", shape=instruction.shape, name=instruction.name, literal=literal
                )
            elif instruction.opcode == "gather" and 0 in instruction.attributes["slice_sizes"]:
                nothing = np.zeros((), instruction.shape.type.dtype)  # also of a type whose bits of zero are a number
                zeros = new.number(nothing, like=instruction)
                replacements[instruction] = new.materialize(zeros, computation, instruction)[0]
        replace_all(computation, replacements)
        return computation.remove(replacements)


def _is_empty(instruction: Instruction) -> bool:
    if instruction.opcode in ("parameter", "constant") or not instruction.is_pure:
        return False
    return instruction.shape.is_array and instruction.shape.is_static and not instruction.shape.size
