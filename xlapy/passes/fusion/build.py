"""Turning a fusion plan into fusion instructions."""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.hlo.attributes import FusionKind
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import is_kernel_constant, row_space
from xlapy.hlo.shape import Shape
from xlapy.passes.base import Record, replace_all
from xlapy.passes.fusion.cost import memory_bytes
from xlapy.passes.fusion.plan import FusionPlan, Group


def build_fusions(plan: FusionPlan) -> bool:
    """Replaces every group of more than one instruction by a fusion; returns whether there was one."""
    place = {instruction: number for number, instruction in enumerate(plan.order)}
    groups = [group for group in plan.groups() if len(group.maps) > 1]
    groups.sort(key=lambda group: (group.level, place[group.root]))
    for group in groups:
        group.roots = [root for root in group.roots if _is_needed_outside(root, group, plan)] or group.roots
    replace_groups(plan.computation, groups, place, plan.records)
    plan.computation.remove(dict.fromkeys(member for group in groups for member in group.maps))
    return bool(groups)


def empty_box(name: str, operands: Sequence[Instruction]) -> tuple[Computation, dict[Instruction, Instruction]]:
    """A computation to fuse into, with a parameter for each operand; and what stands in it for what outside."""
    fused = Computation(name)
    parameters = {
        operand: fused.add("parameter", shape=operand.shape, name=operand.name, number=number)
        for number, operand in enumerate(operands)
    }
    return fused, parameters


def _is_needed_outside(root: Instruction, group: Group, plan: FusionPlan) -> bool:
    """Somebody reads the root from memory: groups that were merged compute for themselves what they read of each
    other."""
    return root.is_root or any(plan.groups_of.get(user, {}).keys() != {group} for user in root.users)


def replace_groups(
    computation: Computation, groups: Sequence[Group], place: dict[Instruction, int], records: list[Record]
) -> None:
    """Makes users of groups, each behind those that it reads, use fusions instead; the members stay behind."""
    replacements: dict[Instruction, Instruction] = {}
    for group in groups:
        fusion = _build(computation, group, place, replacements)
        records.append(Record.of(fusion, True, _reason(group)))
    replace_all(computation, replacements)


_BENEFITS = {
    FusionKind.LOOP: "each element is computed where it is used",
    FusionKind.INPUT: "the reduce computes what it folds",
    FusionKind.OUTPUT: "each row is read once and stays in a cache",
}


def _benefit(group: Group) -> str:
    if group.kind is FusionKind.OUTPUT:
        space = row_space(next(member for member in group.maps if member.opcode == "reduce"))
        if space is not None and space.is_columns:
            return "each strip of columns is read once and stays in a cache"
    return _BENEFITS[group.kind]


def _reason(group: Group) -> str:
    """What the fusion is good for."""
    kept = sum(memory_bytes(member) for member in group.maps if member not in group.roots)
    stored = f", {len(group.roots)} results in one kernel" if len(group.roots) > 1 else ""
    return f"{_benefit(group)}{stored}" + (f": {kept:,} bytes need not be stored" if kept else "")


def _build(
    computation: Computation,
    group: Group,
    place: dict[Instruction, int],
    replacements: dict[Instruction, Instruction],
) -> Instruction:
    """Adds the fusion of one group, and enters what replaces its roots."""
    roots = sorted(group.roots, key=place.__getitem__)
    fused, operands = _fused_computation(group, roots, place)
    fusion = computation.add(
        "fusion",
        [replacements.get(operand, operand) for operand in operands],
        called=[fused],
        shape=roots[0].shape if len(roots) == 1 else Shape.tuple([root.shape for root in roots]),
        name=f"{roots[-1].name}.fusion",
        metadata=roots[-1].metadata,
        kind=group.kind,
    )
    if len(roots) == 1:
        replacements[roots[0]] = fusion
    else:
        for index, root in enumerate(roots):
            replacements[root] = computation.add(
                "get-tuple-element", [fusion], shape=root.shape, name=root.name, index=index
            )
    return fusion


def _fused_computation(
    group: Group, roots: list[Instruction], place: dict[Instruction, int]
) -> tuple[Computation, list[Instruction]]:
    """The computation inside the box, and what its parameters stand for."""
    operands = sorted(group.inputs, key=place.__getitem__)
    fused, copies = empty_box(f"fused.{roots[-1].name}", operands)
    for member in sorted(group.maps, key=place.__getitem__):
        for operand in member.operands:
            if operand not in copies and is_kernel_constant(operand):
                copies[operand] = fused.add_copy(operand, ())
        copies[member] = fused.add_copy(member, [copies[operand] for operand in member.operands])
    results = [copies[root] for root in roots]
    fused.set_root(results[0] if len(results) == 1 else fused.add("tuple", results))
    return fused, operands
