"""Forgetting layouts, so that the passes in between see logical arrays only.

What the module says about its own parameters and results is kept in `config.entry_layout`. A bitcast, whose meaning
hangs on layouts, is spelled out in logical operations:

    b = f32[6]{0} bitcast(f32[2,3]{0,1} x)        becomes        t = f32[3,2] transpose(x)    b = f32[6] reshape(t)

Custom calls keep their layouts: those belong to their interface.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.shape import Shape
from xlapy.passes.base import Pass

KEEPING_LAYOUTS = ("custom-call",)


@dataclass
class LayoutNormalization(Pass):
    name: ClassVar[str] = "forget-layouts"
    required: ClassVar[bool] = True

    def run(self, module: HloModule) -> bool:
        changed = module.config.entry_layout is None
        if changed:
            module.config.entry_layout = module.signature
        for computation in module.computations():
            changed = _expand_bitcasts(computation) or changed
            for instruction in computation:
                if instruction.opcode not in KEEPING_LAYOUTS:
                    logical = instruction.shape.without_layout()
                    changed = changed or logical != instruction.shape
                    computation.set_shape(instruction, logical)
        return changed


def _expand_bitcasts(computation: Computation) -> bool:
    bitcasts = [instruction for instruction in computation.post_order() if instruction.opcode == "bitcast"]
    for bitcast in bitcasts:
        computation.replace(bitcast, _logical(bitcast))
    return computation.remove(bitcasts)


def _changes_type_only(source: Shape, target: Shape) -> bool:
    """Every element stays where it is: scalars do, and those of a region must stay scalars."""
    same_places = source.dims == target.dims and source.minor_to_major == target.minor_to_major
    return same_places and source.type is not target.type and source.type.bits == target.type.bits


def _logical(bitcast: Instruction) -> Instruction:
    """The bytes of the operand in memory order, cut into elements of the result, in the order of its memory."""
    computation, source, target = bitcast.parent, bitcast.operands[0], bitcast.shape
    if _changes_type_only(source.shape, target):
        return computation.add("bitcast-convert", [source], shape=target, metadata=bitcast.metadata)
    major_to_minor = source.shape.minor_to_major[::-1]
    value = computation.add("transpose", [source], permutation=major_to_minor)
    value = computation.add("reshape", [value], shape=value.shape.with_dims((value.shape.size,)))
    if source.shape.type is not target.type:
        ratio = source.shape.type.bits // target.type.bits
        parts = (value.shape.size, ratio) if ratio > 1 else (target.size,)
        if not ratio:
            pieces = target.type.bits // source.shape.type.bits
            value = computation.add("reshape", [value], shape=value.shape.with_dims((target.size, pieces)))
        value = computation.add("bitcast-convert", [value], shape=target.with_dims(parts))
    target_order = target.minor_to_major[::-1]
    in_memory = [target.dims[dim] for dim in target_order]
    value = computation.add("reshape", [value], shape=target.with_dims(in_memory))
    back = tuple(target_order.index(dim) for dim in range(target.rank))
    return computation.add("transpose", [value], permutation=back, metadata=bitcast.metadata)
