"""Padded selections: a select-and-scatter reads an array and what lies beside it, and writes what is kept.

    p = f32[9,9] pad(x, lowest), padding=0_1x0_1
    s = f32[9,9] select-and-scatter(p, source, zero), ...
    ROOT r = f32[8,8] slice(s), slice={[0:8], [0:8]}

becomes

    ROOT r.fusion = f32[8,8] fusion(x, source, zero), kind=kLoop, calls={ all three }

JAX writes the gradient of a pooling with padding like that. Three arrays need not be copied.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.attributes import FusionKind
from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.kernel_plan import is_kernel_constant
from xlapy.hlo.padded_selections import PaddedSelection, may_update_places, padded_selection
from xlapy.passes.base import Pass, Record, pinned, program_computations
from xlapy.passes.fusion.build import empty_box


@dataclass
class PaddedSelections(Pass):
    name: ClassVar[str] = "padded-selections"
    ops: ClassVar[Set[str]] = frozenset({"select-and-scatter"})

    def run(self, module: HloModule) -> bool:
        changed = False
        for computation in program_computations(module):
            fixed = pinned(computation)
            for instruction in computation.post_order():
                found = _outermost(instruction)
                if found is not None and not found.is_plain and not fixed.intersection(found.members):
                    changed = self._join(computation, found) or changed
        return changed

    def _join(self, computation: Computation, found: PaddedSelection) -> bool:
        fault = _fault(found)
        if fault:
            self.records.append(Record.of(found.selection, False, fault))
            return False
        fused, operands = _fused_computation(found)
        fusion = computation.add(
            "fusion",
            operands,
            called=[fused],
            shape=found.root.shape,
            name=f"{found.selection.name}.fusion",
            metadata=found.selection.metadata,
            kind=FusionKind.LOOP,
        )
        between = sum(member.shape.bytes for member in found.members if member is not found.root)
        self.records.append(Record.of(fusion, True, f"{between:,} bytes need not be stored"))
        computation.replace(found.root, fusion)
        computation.remove(found.members)
        return True


def _outermost(selection: Instruction) -> PaddedSelection | None:
    """What can be done in the kernel of a selection, with a slice if that alone reads it."""
    if selection.opcode != "select-and-scatter":
        return None
    if len(selection.users) == 1 and not selection.is_root:
        (user,) = selection.users
        if user.opcode == "slice" and (sliced := padded_selection(user)) is not None:
            return sliced
    return padded_selection(selection)


def _fault(found: PaddedSelection) -> str:
    """Why the members shall stay apart, or ""."""
    pad = found.selection.operands[0]
    if found.beside is not None and (len(pad.users) > 1 or pad.is_root):
        return f"others read {pad.name}"
    if not may_update_places(found.selection):
        return "its windows are too large, or what it calls is"
    orders = {value.shape.minor_to_major for value in (found.array, found.selection, found.root)}
    return "" if len(orders) == 1 else "its arrays lie in different orders"


def _fused_computation(found: PaddedSelection) -> tuple[Computation, list[Instruction]]:
    """The computation of all members, and what its parameters stand for."""
    read = dict.fromkeys(operand for member in found.members for operand in member.operands)
    outside = [operand for operand in read if operand not in found.members]
    operands = [operand for operand in outside if not is_kernel_constant(operand) and not _is_repeated(operand)]
    fused, copies = empty_box(f"fused.{found.selection.name}", operands)
    for operand in outside:
        if operand not in copies:
            copies[operand] = fused.add_copy(operand, [fused.add_copy(constant, ()) for constant in operand.operands])
    for member in found.members:
        copies[member] = fused.add_copy(member, [copies[operand] for operand in member.operands])
    fused.set_root(copies[found.root])
    return fused, operands


def _is_repeated(operand: Instruction) -> bool:
    """The same number everywhere, which a kernel need not read."""
    return operand.opcode == "broadcast" and is_kernel_constant(operand.operands[0])
