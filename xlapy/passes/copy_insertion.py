"""Copy insertion: values that will be written to one place each must not be one value.

    body { p = (f32[8], f32[8]) parameter(0)                 body { ...
           a = get-tuple-element(p), index=0                        c = f32[8] copy(a)
           b = get-tuple-element(p), index=1                        d = f32[8] copy(b)
           ROOT t = tuple(b, a) }                   becomes         ROOT t = tuple(d, c) }

At the end of a while body each element of the new state is written where the old one lies. An element that is another
element of the old state, or a constant, or occurs twice, gets a copy, so that no write destroys what a later one reads.
Scalars are exempt: they live in registers.
"""

from __future__ import annotations

from dataclasses import dataclass

from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.leaves import origin_of_leaf
from xlapy.passes.base import Pass


@dataclass
class CopyInsertion(Pass):
    name = "copy-insertion"
    required = True

    def run(self, module: HloModule) -> bool:
        changed = False
        for computation in module.computations():
            for instruction in computation:
                if instruction.opcode == "while":
                    changed |= _separate_state(instruction.called[1])
        return changed


def _separate_state(body: Computation) -> bool:
    root = body.root
    if root.opcode != "tuple":
        return False  # a single array, or a tuple that the body's own while, conditional ... produces leaf by leaf
    seen: set[tuple[Instruction, int]] = set()
    operands = list(root.operands)
    for number, operand in enumerate(operands):
        if not operand.shape.is_array or not operand.shape.rank:
            continue
        origin = origin_of_leaf(operand, 0)
        passes_through = origin == (body.parameters[0], number) and _is_flat(root)
        external = origin[0].opcode in ("parameter", "constant")
        if not passes_through and (external or origin in seen):
            operands[number] = body.add("copy", [operand], shape=operand.shape)
        seen.add(origin)
    if operands == list(root.operands):
        return False
    body.set_operands(root, operands)
    return True


def _is_flat(root: Instruction) -> bool:
    """Operand numbers of the root are leaf numbers: no element is itself a tuple."""
    return all(not operand.shape.is_tuple for operand in root.operands)
