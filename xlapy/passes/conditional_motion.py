"""Motion out of conditionals: what all branches do, hand on, or do not need, is no matter of choice.

    f { s = (f32[8,8], f32[8,8], f32[9]) parameter(0) ...  ROOT n = negate(dot(x, w)) }
    g { s = (f32[8,8], f32[8,8], f32[9]) parameter(0) ...  ROOT e = exponential(dot(x, w)) }
    c = f32[8,8] conditional(p, t, t), branch_computations={f, g}

becomes

    d = f32[8,8] dot(x, w)
    c = f32[8,8] conditional(p, (d), (d)), branch_computations={negate, exponential}

Results that are equal in all branches, constants and values that are only passed through among them, are read outside.
Those that nobody uses disappear, and equal ones are one. Branches get what they read, once; constants they have
themselves, and a branch knows the number that chose it.

Work that is the same in all branches moves in front of the conditional, and work in one branch that its surroundings do
anyway is read from there: where it takes a kernel of its own (a dot, a reduce ...) or, done already, is expensive.
Other element-wise operations stay: in registers they cost less than an array to hand in. A last operation that all
branches have in common moves behind, if the conditional then returns less, or what reads its result is element-wise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import ClassVar

from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.ops import Trait
from xlapy.passes.base import ComputationPass, Record, pinned
from xlapy.passes.branches import Branch, Cut, Outside, Part, cut_branch, parts_of, rebuilt


@dataclass
class ConditionalMotion(ComputationPass):
    name: ClassVar[str] = "move-out-of-conditionals"
    ops: ClassVar[Set[str]] = frozenset({"conditional"})

    def run_on(self, computation: Computation) -> bool:
        fixed = pinned(computation)
        conditionals = [i for i in computation.post_order() if i.opcode == "conditional" and _is_rewritable(i, fixed)]
        if not conditionals:
            return False
        outside = Outside(computation)
        for conditional in filter(outside.needed.__contains__, conditionals):
            plan = _planned(conditional, outside)
            if plan.reasons:
                self.records.append(Record.of(conditional, True, "; ".join(plan.reasons)))
                _apply(plan, outside)
        return outside.finish()


def _is_rewritable(conditional: Instruction, fixed: Set[Instruction]) -> bool:
    results = [branch.root.shape for branch in conditional.called]
    return (
        len(results) > 1
        and all(shape.matches(conditional.shape) for shape in results)
        and fixed.isdisjoint((conditional, *conditional.users))
    )


@dataclass(slots=True)
class _Result:
    """A result outside: a value that is the same in all branches, or a result of the new conditional.

    `last` are operations of the first branch that follow, the last one first, each with the place of the operand that
    depends on the choice."""

    shared: Part | None = None
    slot: int = 0
    last: list[tuple[Instruction, int]] = field(default_factory=list)


@dataclass(slots=True)
class _Plan:
    """What becomes of a conditional. `kept` are the results of its new branches: a part of each."""

    conditional: Instruction
    branches: list[Branch]
    results: dict[int, _Result] = field(default_factory=dict)
    kept: list[tuple[Part, ...]] = field(default_factory=list)
    cuts: list[Cut] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)


def _planned(conditional: Instruction, outside: Outside) -> _Plan:
    plan = _Plan(conditional, outside.branches(conditional))
    rows = list(zip(*(branch.results() for branch in plan.branches), strict=True))
    used = _used(conditional)
    by_branch = list(zip(*(rows[index] for index in used), strict=True)) or [()] * len(plan.branches)
    needed = [branch.numbers_for(parts) for branch, parts in zip(plan.branches, by_branch, strict=True)]
    _plan_results(plan, {index: rows[index] for index in used})
    common = set.intersection(*needed)
    for number, branch in enumerate(plan.branches):
        plan.cuts.append(cut_branch(branch, [parts[number] for parts in plan.kept], outside, common))
    if len(used) < len(rows):
        plan.reasons.append(f"{len(rows) - len(used)} results are not used")
    for branch, cut in zip(plan.branches, plan.cuts, strict=True):
        _explain(plan, branch, cut)
    return plan


def _used(conditional: Instruction) -> list[int]:
    """The results that something reads."""
    if conditional.is_root or any(user.opcode != "get-tuple-element" for user in conditional.users):
        return list(range(len(parts_of(conditional))))
    return sorted({user.attributes["index"] for user in conditional.users})


def _plan_results(plan: _Plan, rows: Mapping[int, tuple[Part, ...]]) -> None:
    """Which results the new conditional has, and how those that are used follow from them."""
    slots: dict[tuple[int, ...], int] = {}
    for index, parts in rows.items():
        result = plan.results[index] = _Result()
        if len(set(_numbers(plan, parts))) > 1:
            readers = [branch.computation.root for branch in plan.branches]
            while (place := _differing_operand(plan, index, parts, readers)) is not None:
                result.last.append((parts[0].source, place))
                readers = [part.source for part in parts]
                parts = tuple(Part(part.source.operands[place]) for part in parts)
            result.slot = slots.setdefault(_numbers(plan, parts), len(slots))
            if result.slot == len(plan.kept):
                plan.kept.append(parts)
            else:
                plan.reasons.append(f"result {index} equals another one")
            if result.last:
                names = ", ".join(model.opcode for model, _ in result.last)
                plan.reasons.append(f"all branches end with {names}")
        else:
            result.shared = parts[0]
            plan.reasons.append(f"{parts[0].source.name} is the same in all branches")


def _numbers(plan: _Plan, parts: Sequence[Part]) -> tuple[int, ...]:
    return tuple(branch.number(part) for branch, part in zip(plan.branches, parts, strict=True))


def _differing_operand(plan: _Plan, index: int, parts: Sequence[Part], readers: Sequence[Instruction]) -> int | None:
    """Where `parts`, of result `index`, are one operation on the same values but for one operand, the place of that,
    if the operation is better done behind the conditional. `readers` are behind it already, or the roots."""
    first, *others = (part.source for part in parts)
    if not all(map(_is_last, plan.branches, parts, readers)) or not all(_is_like(first, other) for other in others):
        return None
    places = [
        place
        for place in range(len(first.operands))
        if len(set(_numbers(plan, [Part(part.source.operands[place]) for part in parts]))) > 1
    ]
    if len(places) != 1:
        return None
    returned = first.operands[places[0]].shape.bytes
    fuses = returned == first.shape.bytes and Trait.ELEMENTWISE in first.spec.traits
    is_better = returned < first.shape.bytes or (fuses and _is_read_elementwise(plan.conditional, index))
    return places[0] if is_better else None


def _is_last(branch: Branch, part: Part, reader: Instruction) -> bool:
    """The part is a simple operation that only `reader` needs: the result of the branch, or what was last in it."""
    source, root = part.source, branch.computation.root
    return (
        part.index is None
        and bool(source.spec.traits & {Trait.ELEMENTWISE, Trait.INDEX_MAP})
        and not source.called
        and source not in branch.fixed
        and source not in branch.given
        and set(source.users) <= {reader}
        and (source is root or bool(source.users))
    )


def _is_like(first: Instruction, other: Instruction) -> bool:
    """The same operation on operands of the same shapes."""
    shapes = [[operand.shape for operand in instruction.operands] for instruction in (first, other)]
    return (
        first.opcode == other.opcode
        and first.shape == other.shape
        and first.attributes == other.attributes
        and shapes[0] == shapes[1]
    )


def _is_read_elementwise(conditional: Instruction, index: int) -> bool:
    """One element-wise operation reads the result, and nothing else."""
    reader = conditional.sole_user
    if conditional.shape.is_tuple:
        readers = [user for user in conditional.users if user.attributes.get("index") == index]
        reader = readers[0].sole_user if len(readers) == 1 and not conditional.is_root else None
    return reader is not None and Trait.ELEMENTWISE in reader.spec.traits


def _explain(plan: _Plan, branch: Branch, cut: Cut) -> None:
    """Adds what is new about what a branch is handed."""
    before, name = branch.inputs(), branch.computation.name
    if list(cut.inputs) == before:
        return
    brought = [part.source.name for part in cut.inputs.values() if part.source not in branch.given]
    if brought:
        plan.reasons.append(f"{name} reads {', '.join(brought)} from outside")
    if cut.repeated:
        plan.reasons.append(f"{name} has constants of its own")
    if cut.chosen:
        plan.reasons.append(f"{name} knows what chose it")
    if not (brought or cut.repeated or cut.chosen):
        plan.reasons.append(f"{name} reads {len(cut.inputs)} values of {len(before)}")


def _apply(plan: _Plan, outside: Outside) -> None:
    """Rewrites the conditional as planned."""
    for branch, cut in zip(plan.branches, plan.cuts, strict=True):
        outside.bring(branch, cut.inputs.values())
    outside.bring(plan.branches[0], _parts_outside(plan))
    chosen = _new_conditional(plan, outside)
    values = {index: _value(plan, result, chosen, outside) for index, result in plan.results.items()}
    conditional = plan.conditional
    readers = [user for user in conditional.users if user.opcode == "get-tuple-element"]
    for reader in readers:
        outside.replace(reader, values[reader.attributes["index"]])
    if conditional.is_root or len(readers) < len(conditional.users):
        is_tuple = conditional.shape.is_tuple
        whole = conditional.parent.add("tuple", list(values.values())) if is_tuple else values[0]
        outside.replace(conditional, whole)
    else:
        outside.drop(conditional)


def _parts_outside(plan: _Plan) -> list[Part]:
    """Parts of the first branch from which results are made outside."""
    parts = [result.shared for result in plan.results.values() if result.shared is not None]
    for result in plan.results.values():
        for model, differing in result.last:
            parts += [Part(operand) for place, operand in enumerate(model.operands) if place != differing]
    return parts


def _new_conditional(plan: _Plan, outside: Outside) -> Instruction | None:
    """The choice between the new branches, if anything is left to choose."""
    old = plan.conditional
    if not plan.kept and not old.has_effect:
        return None
    as_tuple = old.shape.is_tuple or not plan.kept
    operands: dict[tuple[int, ...], Instruction] = {}
    called = []
    for number, (branch, cut) in enumerate(zip(plan.branches, plan.cuts, strict=True)):
        inputs = tuple(cut.inputs)
        if inputs not in operands:
            operands[inputs] = old.parent.add("tuple", [outside.value(n) for n in inputs])
        called.append(rebuilt(branch, cut, [parts[number] for parts in plan.kept], as_tuple=as_tuple))
    handed = [operands[tuple(cut.inputs)] for cut in plan.cuts]
    return old.parent.add_like(old, [old.operands[0], *handed], called)


def _value(plan: _Plan, result: _Result, chosen: Instruction | None, outside: Outside) -> Instruction:
    """What a result of the old conditional is now."""
    first = plan.branches[0]
    if result.shared is not None:
        return outside.value(first.number(result.shared))
    assert chosen is not None
    computation = plan.conditional.parent
    value = chosen
    if chosen.shape.is_tuple:
        value = computation.add("get-tuple-element", [chosen], index=result.slot)
    for model, differing in reversed(result.last):
        operands = [
            value if place == differing else outside.value(first.numbers[operand])
            for place, operand in enumerate(model.operands)
        ]
        value = computation.add_copy(model, operands)
    return value
