"""Why a fused computation is no kernel: what `kernel_plan` promises to codegen, checked.

A fault is a sentence that names the instruction, or "".
"""

from __future__ import annotations

import itertools

from xlapy.hlo.attributes import FusionKind
from xlapy.hlo.fold_steps import fold_steps
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_faults import fault_of_members, fault_of_product
from xlapy.hlo.kernel_plan import (
    FOLDING_KINDS,
    FOLDS,
    continues_fold,
    fold_values,
    fusion_roots,
    holds_kernels,
    keeps_places,
    row_space,
)
from xlapy.support.errors import InternalError


def check_fusion(fusion: Instruction) -> None:
    """Raises InternalError unless `fusion` is one that codegen accepts."""
    computation, kind = fusion.called[0], fusion.attributes["kind"]
    fault = _fault_of_steps(computation, kind) if kind in _FAULTS else "unknown kind"
    if fault:
        raise InternalError(f"{fusion} is no kernel: {fault}")


def _fault_of_steps(computation: Computation, kind: FusionKind) -> str:
    steps = fold_steps(computation) if kind in FOLDING_KINDS else None
    if steps is None:
        return _FAULTS[kind](computation)
    return _FAULTS[kind](steps[0]) or _fault_of_input(steps[1])


def _fault_of_loop(computation: Computation) -> str:
    roots = fusion_roots(computation)
    if len({root.shape.dims for root in roots}) != 1:
        return "its roots have different dimensions"
    outside = {computation.root} if computation.root.opcode == "tuple" else set()
    if len(roots) == 1 and roots[0].opcode == "dynamic-update-slice":
        if roots[0].operands[0].opcode != "parameter":
            return "its root updates what is not a parameter"
        outside.add(roots[0])
    return fault_of_members(computation, outside)


def _fault_of_input(computation: Computation) -> str:
    folds = [instruction for instruction in computation if instruction.opcode in FOLDS]
    if len(folds) != 1:
        return f"it has {len(folds)} folds"
    (fold,) = folds
    values = fold_values(fold)
    outside = {fold, *values} | ({computation.root} if computation.root.opcode == "tuple" else set())
    made = {*values}
    for instruction in computation.post_order():
        if instruction not in outside and made & {*instruction.operands}:
            if not continues_fold(instruction, values[0].shape.size):
                return f"{instruction} is not made from each result of {fold}"
            made.add(instruction)
    if any(root.shape.leaves()[0].size != values[0].shape.size for root in fusion_roots(computation)):
        return "it stores more or less than its fold makes"
    return _fault_of_initial_values(fold) or fault_of_members(computation, outside)


def _fault_of_initial_values(reduce: Instruction) -> str:
    for init in reduce.operands[len(reduce.operands) // 2 :]:
        if init.opcode not in ("parameter", "constant"):
            return f"its initial value {init} is computed inside"
    return ""


def _fault_of_rows(computation: Computation) -> str:
    order = computation.post_order()
    reduces = [instruction for instruction in order if instruction.opcode == "reduce"]
    space = row_space(reduces[0]) if reduces else None
    if space is None:
        return "nothing in it reduces rows"
    from_rows: set[Instruction] = set()
    outside = {computation.root} if computation.root.opcode == "tuple" else set()
    for instruction in order:
        if instruction.opcode == "reduce":
            fault = _fault_of_initial_values(instruction)
            if fault:
                return fault
        if instruction not in outside and (instruction.opcode == "reduce" or from_rows & {*instruction.operands}):
            if not space.continues(instruction):
                return f"{instruction} mixes rows"
            from_rows.add(instruction)
    for root in fusion_roots(computation):
        if not space.is_full(root) and not space.is_per_row(root):
            return f"{root} has no rows"
    return fault_of_members(computation, {*outside, *reduces})


def _fault_of_custom(computation: Computation) -> str:
    return _fault_of_kernels(computation) if holds_kernels(computation) else fault_of_product(computation)


def _fault_of_kernels(computation: Computation) -> str:
    """The root reads the rows, and these the other product; each is there for the next one only."""
    *members, root = (member for member in computation.post_order() if member.opcode != "parameter")
    kernels = [member.opcode for member in (*members, root) if not keeps_places(member)]
    if kernels != ["dot", "fusion", "dot"]:
        return "its kernels are no chain of a product, rows and a product"
    is_chain = all(one.sole_user is other for one, other in itertools.pairwise([*members, root]))
    return "" if is_chain else "what one of its kernels makes is not for the next one alone"


_FAULTS = {
    FusionKind.LOOP: _fault_of_loop,
    FusionKind.INPUT: _fault_of_input,
    FusionKind.OUTPUT: _fault_of_rows,
    FusionKind.CUSTOM: _fault_of_custom,
}
