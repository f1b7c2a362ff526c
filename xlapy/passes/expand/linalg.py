"""Matrices of narrow floats are factored and solved in f32, and rounded at the end.

ROOT l = bf16[3,3] cholesky(a), lower=true        becomes        w = f32[3,3] convert(a)
                                                                 c = f32[3,3] cholesky(w), lower=true
                                                                 ROOT l = bf16[3,3] convert(c)
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.element_types import F32
from xlapy.hlo.graph import Computation, Instruction
from xlapy.passes.base import ComputationPass, pinned, replace_all

OPS_ON_MATRICES = frozenset(
    {"cholesky", "eigh", "householder-product", "lu", "qr-decomposition", "svd", "triangular-solve"}
)


@dataclass
class WidenMatrices(ComputationPass):
    name: ClassVar[str] = "widen-matrices"
    required: ClassVar[bool] = True
    ops: ClassVar[Set[str]] = OPS_ON_MATRICES

    def run_on(self, computation: Computation) -> bool:
        fixed = pinned(computation)
        replacements: dict[Instruction, Instruction] = {}
        for instruction in computation.post_order():
            if instruction.opcode not in OPS_ON_MATRICES or not instruction.operands[0].shape.type.is_narrow_float:
                continue
            if instruction not in fixed:
                replacements[instruction] = _widened(instruction)
        replace_all(computation, replacements)
        return computation.remove(replacements)


def _widened(instruction: Instruction) -> Instruction:
    computation, metadata = instruction.parent, instruction.metadata
    operands = [
        computation.add("convert", [operand], shape=operand.shape.with_type(F32), metadata=metadata)
        for operand in instruction.operands
    ]
    wide = computation.add(instruction.opcode, operands, metadata=metadata, **instruction.attributes)
    if wide.shape.is_array:
        return computation.add("convert", [wide], shape=instruction.shape, metadata=metadata)
    parts = [
        part if part.shape.type is shape.type else computation.add("convert", [part], shape=shape, metadata=metadata)
        for part, shape in zip(computation.unpacked(wide), instruction.shape.parts, strict=True)
    ]
    return computation.add("tuple", parts, metadata=metadata)
