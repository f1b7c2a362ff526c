"""Results of folds: what is computed from each result of a reduce, or of a window, joins the kernel that folds it.

    r = f32[64] fusion(x), kind=kInput, calls=sums_of_columns
    ROOT m = f32[64] multiply(r, scale)

becomes

    ROOT m = f32[64] fusion(x, scale), kind=kInput, calls=scaled_sums_of_columns

Only where nothing else is computed from the plain results, and where each is used at its own place: then one kernel
never waits for another. A fold along lanes has its results one by one, so that what follows is not worth vectors there;
it joins where it is little beside the fold, or beside the start of a kernel.

Of a fold with several results, those that nobody reads are not stored: the ones that are read become the roots.
"""

from __future__ import annotations

import math

from xlapy.hlo.attributes import FusionKind
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import FOLDS, continues_fold, fold_values, is_blocked_transpose
from xlapy.passes.base import Record
from xlapy.passes.fusion.cost import KERNEL_START, operation_cost
from xlapy.passes.fusion.plan import FusionPlan, Group

ALONE = 8.0
"""How many times as long something takes that is done for one element at a time."""


def join_results(plan: FusionPlan) -> None:
    """Merges folds of `plan` with the groups that compute something from each result.

    A group that a fold has joined comes by a second time, with another root: it is done."""
    for fold in list(plan.groups()):
        if fold.kind is FusionKind.INPUT and fold.root.opcode in FOLDS:
            following = _following(plan, fold)
            if following is not None and _is_worth_it(fold, following) and _fits(plan, fold, following):
                _merge(plan, fold, following)
            else:
                _drop_unread(plan, fold)


def _drop_unread(plan: FusionPlan, fold: Group) -> None:
    """Makes the results that are read the roots of their fold, if there are others."""
    reduce = fold.root
    if reduce.shape.is_array or reduce.is_root:
        return
    values = fold_values(reduce)
    if any(value.opcode != "get-tuple-element" for value in values):
        return
    read = {value.attributes["index"] for value in values}
    if values and len(values) == len(read) < len(reduce.shape.parts):
        for value in values:
            plan.groups_of[value] = {fold: None}
            fold.maps[value] = frozenset()
        fold.roots = values


def _following(plan: FusionPlan, fold: Group) -> Group | None:
    """The group that alone reads the results, each at its own place."""
    reduce = fold.root
    values = fold_values(reduce)
    readers = [reader for value in values for reader in value.users if not _is_result(reader)]
    groups = {group for reader in readers for group in plan.groups_of.get(reader, {None: None})}
    if len(groups) != 1 or any(value.is_root for value in (reduce, *values)):
        return None
    following = groups.pop()
    if following is None or following.kind is not FusionKind.LOOP or following.updates_in_place:
        return None
    return following if _reads_in_place(following, values) else None


def _is_result(reader: Instruction) -> bool:
    """What reads a value to give it back reads it after everything else."""
    return reader.opcode == "tuple" and reader.is_root


def _reads_in_place(following: Group, values: list[Instruction]) -> bool:
    """Everything that the group makes of the values keeps to their places, and all that it stores is as large."""
    size = values[0].shape.size
    if any(root.shape.size != size or is_blocked_transpose(root) for root in following.roots):
        return False
    pending = list(dict.fromkeys(user for value in values for user in value.users if not _is_result(user)))
    seen = {*pending}
    while pending:
        member = pending.pop()
        if not continues_fold(member, size):
            return False
        new = [user for user in member.users if user in following.maps and user not in seen]
        seen.update(new)
        pending += new
    return True


def _is_worth_it(fold: Group, following: Group) -> bool:
    """Vectors of results are there, or the work for single ones is little beside the fold or the start of a kernel."""
    if fold.root.opcode == "reduce-window":
        return True  # lanes lie across its results
    source, folded = fold.root.operands[0].shape, fold.root.attributes["dimensions"]
    last = next((dim for dim in reversed(range(source.rank)) if source.dims[dim] > 1), None)
    if last is not None and last not in folded:
        return True
    work = ALONE * sum(operation_cost(member) for member in following.maps)
    each = math.prod(source.dims[dim] for dim in folded)
    return work <= each or work * following.domain <= KERNEL_START


def _fits(plan: FusionPlan, fold: Group, following: Group) -> bool:
    outputs = len(fold_values(fold.root)) + len(following.roots)
    return fold.fits_with(following, plan.limits, outputs=outputs)


def _merge(plan: FusionPlan, fold: Group, following: Group) -> None:
    reduce, values = fold.root, fold_values(fold.root)
    subject = f"{following.root.name} with {reduce.name}"
    reason = f"{following.root.name} is made from each result of {reduce.name}"
    plan.records.append(Record(subject, True, reason, plan.computation.name, reduce.metadata))
    for value in values:
        if value is not reduce:  # an element of the tuple that the reduce makes
            fold.maps[value] = frozenset()
            plan.groups_of[value] = {fold: None}
    plan.absorb(following, fold)
    following.roots += [value for value in values if any(map(_is_result, value.users))]
    following.kind = FusionKind.INPUT
