"""Which operands an instruction may overwrite with its result.

An element-wise kernel reads element i of an operand before it writes element i of the result, so the two may share
memory if they have the same bytes per element and the operand is read at no other index. A dynamic-update-slice or a
scatter writes some elements only, so the rest of its operand simply stays; a kernel may make an update of the elements
that it replaces. A matrix is factored, and right sides are solved, in place. A kernel over rows folds all of a row
before it writes there. A custom call says itself which operands it changes. A matrix product reads its operands after
it has begun to write, and so does a fusion that holds one.
"""

from __future__ import annotations

from collections.abc import Callable

from xlapy.hlo.attributes import FusionKind
from xlapy.hlo.column_folds import column_folds
from xlapy.hlo.fold_steps import fold_steps
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import column_space, fusion_roots, has_same_places, is_read_at_own_index, rereads
from xlapy.hlo.leaves import aliased_leaves
from xlapy.hlo.ops import OPS, Trait
from xlapy.support.registry import Registry

Overwritable = Callable[[Instruction], list[tuple[int, int]]]
"""Pairs (operand number, leaf of the result) of an instruction that may share memory if the operand dies there."""

RULES: Registry[Overwritable] = Registry("operands that a result may overwrite", OPS)


def overwritable_operands(instruction: Instruction) -> list[tuple[int, int]]:
    """Pairs (operand number, leaf of the result) that may share memory if the operand dies here."""
    rule = RULES.get(instruction.opcode)
    if rule is not None:
        return rule(instruction)
    if Trait.ELEMENTWISE in instruction.spec.traits:
        return [(n, 0) for n, operand in enumerate(instruction.operands) if has_same_places(operand, instruction)]
    return []


@RULES.register("dynamic-update-slice", "cholesky", "lu", "qr-decomposition", "householder-product")
def _first_operand(instruction: Instruction) -> list[tuple[int, int]]:
    return [(0, 0)]


@RULES.register("triangular-solve")
def _right_side(solve: Instruction) -> list[tuple[int, int]]:
    return [(1, 0)]


@RULES.register("scatter")
def _inputs(scatter: Instruction) -> list[tuple[int, int]]:
    return [(number, number) for number in range(len(scatter.operands) // 2)]


@RULES.register("custom-call")
def _aliases(call: Instruction) -> list[tuple[int, int]]:
    return [(operand, result) for operand, _, result in aliased_leaves(call) if call.operands[operand].shape.is_array]


@RULES.register("fusion")
def _of_fusion(fusion: Instruction) -> list[tuple[int, int]]:
    computation, kind = fusion.called[0], fusion.attributes["kind"]
    if kind is FusionKind.CUSTOM or kind is FusionKind.INPUT:
        return []  # a product is read while it is written; of a fold, results at the end of a row may be computed twice
    rows = kind is FusionKind.OUTPUT
    if rows and not _writes_each_row_once(computation):
        return []
    outputs = fusion_roots(computation)
    added_to = {fold.reduce for fold in column_folds(computation)} if rows else ()
    return [
        (number, leaf)
        for number, parameter in enumerate(computation.parameters)
        for leaf, output in enumerate(outputs)
        if output not in added_to
        and (
            len(outputs) == 1 and _updates(output, parameter)
            if output.opcode == "dynamic-update-slice"
            else has_same_places(parameter, output) and is_read_at_own_index(parameter, rows=rows)
        )
    ]


def _writes_each_row_once(computation: Computation) -> bool:
    """What a kernel over rows, or columns, stores is one value per row, and the last strip overlaps no other."""
    columns = column_space(computation)
    return fold_steps(computation) is None and (columns is None or columns.has_whole_strips)


def _updates(update_slice: Instruction, parameter: Instruction) -> bool:
    """The parameter is what is updated, and is read elsewhere in the kernel only where that replaces it."""
    is_target = update_slice.operands[0] is parameter and parameter not in update_slice.operands[1:]
    return is_target and all(rereads(update_slice, user) for user in parameter.users if user is not update_slice)
