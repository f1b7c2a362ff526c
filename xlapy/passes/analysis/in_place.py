"""Which operands an instruction may overwrite with its result.

An element-wise kernel reads element i of an operand before it writes element i of the result, so the two may share
memory if they have the same bytes per element and the operand is read at no other index. A dynamic-update-slice or a
scatter writes some elements only, so the rest of its operand simply stays; a kernel may make an update of the elements
that it replaces. A matrix is factored, and right sides are solved, in place. A kernel over rows folds all of a row
before it writes there. A custom call says itself which operands it changes. A matrix product reads its operands after
it has begun to write, and so does a fusion that holds one.
"""

from __future__ import annotations

from xlapy.hlo.attributes import FusionKind
from xlapy.hlo.fold_steps import fold_steps
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import column_space, has_same_places, is_read_at_own_index, rereads
from xlapy.hlo.leaves import aliased_leaves
from xlapy.hlo.ops import Trait


def overwritable_operands(instruction: Instruction) -> list[tuple[int, int]]:
    """Pairs (operand number, leaf of the result) that may share memory if the operand dies here."""
    if instruction.opcode in ("dynamic-update-slice", "cholesky"):
        return [(0, 0)]
    if instruction.opcode == "triangular-solve":
        return [(1, 0)]
    if instruction.opcode == "scatter":
        return [(number, number) for number in range(len(instruction.operands) // 2)]
    if instruction.opcode == "custom-call":
        arrays = [pair for pair in aliased_leaves(instruction) if instruction.operands[pair[0]].shape.is_array]
        return [(operand, result) for operand, _, result in arrays]
    if instruction.opcode == "fusion" and instruction.attributes["kind"] is not FusionKind.CUSTOM:
        return _of_fusion(instruction)
    if Trait.ELEMENTWISE in instruction.spec.traits:
        return [(n, 0) for n, operand in enumerate(instruction.operands) if has_same_places(operand, instruction)]
    return []


def _of_fusion(fusion: Instruction) -> list[tuple[int, int]]:
    if fusion.attributes["kind"] is FusionKind.INPUT:
        return []  # results at the end of a row may be computed twice
    computation = fusion.called[0]
    root = computation.root
    outputs = root.operands if root.opcode == "tuple" else (root,)
    rows = fusion.attributes["kind"] is FusionKind.OUTPUT
    if rows and fold_steps(computation) is not None:
        return []  # what is stored is no longer one value per row
    columns = column_space(computation) if rows else None
    if columns is not None and not columns.has_whole_strips:
        return []  # the last strip overlaps the one before it
    pairs = []
    for number, parameter in enumerate(computation.parameters):
        for leaf, output in enumerate(outputs):
            if output.opcode == "dynamic-update-slice":
                others = [user for user in parameter.users if user is not output]
                is_target = output.operands[0] is parameter and parameter not in output.operands[1:]
                if is_target and len(outputs) == 1 and all(rereads(output, user) for user in others):
                    pairs.append((number, leaf))
            elif has_same_places(parameter, output) and is_read_at_own_index(parameter, rows=rows):
                pairs.append((number, leaf))
    return pairs
