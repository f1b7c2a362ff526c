"""The choice of orders: from the program as it is, one change after the other, as long as each makes it cheaper.

A change gives one region another order, or all regions that transposes join: then the transposes between them are
nothing at all. Orders are tried that some op at the border of a region would like. What a state of the program costs
is the sum over

- arrays: the bytes moved to bring each into every other order in which somebody reads it,
- ops: the prices of their forms,

each as often as its computation runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from xlapy.hlo.graph import Instruction
from xlapy.passes.layouts.forms import FORMS, SOURCES, Form, is_movable, price_of_following, relayout_bytes
from xlapy.passes.layouts.orders import Order, row_major, taken, wide
from xlapy.passes.layouts.regions import Element, Program, Region

MOST_SWEEPS = 4
MOST_CANDIDATES = 8
LEAST_GAIN = 1.0  # bytes


FormKey = tuple[Instruction, tuple[Order, ...]]
"""An op with the orders of its arrays, the result's last."""


class Choice:
    """The orders that a program has, and what they cost."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._best: dict[FormKey, Form] = {}
        self._forms: dict[FormKey, list[Form]] = {}
        self._uses: dict[Region, dict[Instruction, None]] = {region: {} for region in program.regions}
        self._border: dict[Region, dict[Instruction, None]] = {region: {} for region in program.regions}
        for region in program.regions:
            for member in region.members:
                self._enter(region, member)

    # -- what ops want ---------------------------------------------------------------------------------------------

    def order(self, value: Instruction) -> Order:
        """The order of the region of an array."""
        region = self.program.region_of.get(value)
        return region.order if region is not None else row_major(value.shape.rank)

    def form(self, instruction: Instruction) -> Form:
        """The form of an op that has several: the one that is cheapest together with its own copies."""
        key = self._key(instruction)
        found = self._best.get(key)
        if found is None:
            arrays, result = self.arrays(instruction), self._result(instruction)
            orders, wanted = key[1][:-1], key[1][-1]
            forms = self.forms(instruction)
            found = self._best[key] = min(
                forms, key=lambda form: _local_price(form, arrays, orders, result, wanted), default=forms[0]
            )
        return found

    def forms(self, instruction: Instruction) -> list[Form]:
        """All forms of an op that deserve a thought in the orders that there are."""
        key = self._key(instruction)
        found = self._forms.get(key)
        if found is None:
            found = self._forms[key] = [*FORMS[instruction.opcode](instruction, key[1][:-1], key[1][-1])]
        return found

    def _key(self, instruction: Instruction) -> FormKey:
        arrays, result = self.arrays(instruction), self._result(instruction)
        return instruction, (*map(self.order, arrays), self.order(result))

    def _result(self, instruction: Instruction) -> Instruction:
        return next(self.program.array_results(instruction), instruction)

    @staticmethod
    def arrays(instruction: Instruction) -> Sequence[Instruction]:
        """The operands of an op with forms that are arrays."""
        if instruction.opcode == "reduce":
            return instruction.operands[: len(instruction.operands) // 2]
        return instruction.operands

    def produced(self, value: Instruction) -> Order:
        """The order in which an array is made."""
        program = self.program
        maker = value.operands[0] if value.opcode == "get-tuple-element" else value
        if program.state_element(value) is not None:
            return self.order(value)
        if maker.opcode != "while" and program.has_forms(maker):
            return self.form(maker).result
        if program.is_following(maker):
            return self.order(value)
        return program.given.get(value) or row_major(value.shape.rank)

    def required(self, user: Instruction, place: int) -> Order | None:
        """The order in which `user` reads an operand; None if any will do."""
        program, operand = self.program, user.operands[place]
        if user.opcode == "tuple":
            loop = program.states.get(user)
            if loop is not None:
                region = program.region_of_state.get(Element(loop, place))
                return region.order if region is not None else row_major(operand.shape.rank)
            if user.is_root:
                return program.demanded.get((user, place)) or row_major(operand.shape.rank)
        if user.opcode == "broadcast":
            return None
        if program.has_forms(user):
            arrays = self.arrays(user)
            return self.form(user).operands[place] if place < len(arrays) else row_major(operand.shape.rank)
        if program.is_following(user):
            result = next(program.array_results(user), None)
            return self.order(result) if result is not None else self.order(operand)
        return row_major(operand.shape.rank)

    def demanded(self, value: Instruction) -> Order | None:
        """The order that callers want of an array that is the result of its computation."""
        return self.program.demanded.get((value, 0)) or row_major(value.shape.rank) if value.is_root else None

    def wanted(self, value: Instruction) -> list[Order]:
        """All orders in which an array is read, each once."""
        found: dict[Order, Order] = {}
        for user in value.users:
            for place, operand in enumerate(user.operands):
                order = self.required(user, place) if operand is value else None
                if order is not None:
                    found.setdefault(wide(order, value.shape.dims), order)
        last = self.demanded(value)
        if last is not None:
            found.setdefault(wide(last, value.shape.dims), last)
        return [*found.values()]

    # -- prices ----------------------------------------------------------------------------------------------------

    def price_of_value(self, value: Instruction) -> float:
        """The copies of an array that its users need."""
        if not self.program.runs.get(value.parent):
            return 0.0
        made = self.produced(value)
        copies = sum(relayout_bytes(value.shape, made, order) for order in self.wanted(value))
        return copies * self.program.runs[value.parent]

    def price_of_use(self, instruction: Instruction) -> float:
        """What an op costs in the orders of its arrays."""
        if self.program.has_forms(instruction):
            price = self.form(instruction).price
        else:
            result = next(self.program.array_results(instruction), instruction)
            price = price_of_following(instruction, self.order(result))
        return price * self.program.runs.get(instruction.parent, 0.0)

    def price(self, regions: Iterable[Region]) -> float:
        """All that hangs on the orders of some regions."""
        values: dict[Instruction, None] = {}
        uses: dict[Instruction, None] = {}
        for region in regions:
            values.update(self._border[region])
            uses.update(self._uses[region])
        return sum(map(self.price_of_value, values)) + sum(map(self.price_of_use, uses))

    # -- neighbourhood ---------------------------------------------------------------------------------------------

    def _enter(self, region: Region, member: Instruction) -> None:
        """Notes the ops around a member that are not indifferent, and the arrays whose copies hang on the region."""
        program = self.program
        maker = member.operands[0] if member.opcode == "get-tuple-element" else member
        around = [maker, *member.users]
        for op in around:
            if program.has_forms(op):
                self._uses[region][op] = None
                touched = [*self.arrays(op), *program.array_results(op)]
                self._border[region].update(dict.fromkeys(i for i in touched if i in program.region_of))
            elif program.is_following(op) and op.opcode in PRICED:
                self._uses[region][op] = None
        if not all(program.is_following(op) for op in around) or member.is_root:
            self._border[region][member] = None

    def neighbours(self, region: Region) -> list[Instruction]:
        return [*self._uses[region]]


PRICED = frozenset({"sort", "reduce-window", "select-and-scatter", "dynamic-slice", "dynamic-update-slice"})


def _local_price(
    form: Form, arrays: Sequence[Instruction], orders: Sequence[Order], result: Instruction, wanted: Order
) -> float:
    copies = sum(
        relayout_bytes(array.shape, order, read)
        for array, order, read in zip(arrays, orders, form.operands, strict=True)
        if is_movable(array.shape) and array.opcode not in SOURCES
    )
    made = relayout_bytes(result.shape, form.result, wanted) if is_movable(result.shape) else 0.0
    return form.price + copies + made


# -- improvement -------------------------------------------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class Cluster:
    """Regions that transposes join: `labels` says for each which dimension of the cluster each of its own is."""

    labels: dict[Region, Order] = field(default_factory=dict)


def improve(choice: Choice) -> dict[Region, float]:
    """Changes orders until no change helps; returns the bytes that each changed region's change saved."""
    clusters = _clusters(choice)
    gains: dict[Region, float] = {}
    for _ in range(MOST_SWEEPS):
        before = len(gains), sum(gains.values())
        for cluster in clusters:
            _try_cluster(choice, cluster, gains)
        for cluster in clusters:
            for region in cluster.labels:
                _try_cluster(choice, Cluster({region: row_major(region.shape.rank)}), gains)
        if before == (len(gains), sum(gains.values())):
            break
    return {region: gain for region, gain in gains.items() if region.order != row_major(region.shape.rank)}


def _clusters(choice: Choice) -> list[Cluster]:
    """Regions joined by transposes, the largest arrays first; transposes that contradict others join nothing."""
    program = choice.program
    cluster_of = {region: Cluster({region: row_major(region.shape.rank)}) for region in program.regions}
    region_of = program.region_of
    transposes = [
        member
        for region in program.regions
        for member in region.members
        if member.opcode == "transpose" and program.has_forms(member) and member.operands[0] in region_of
    ]
    transposes.sort(key=lambda t: -t.shape.bytes * program.runs.get(t.parent, 0.0))
    for transpose in transposes:
        source, target = region_of[transpose.operands[0]], region_of[transpose]
        kept, moved = cluster_of[source], cluster_of[target]
        if kept is moved:
            continue
        # dimension d of the target is dimension permutation[d] of the source, which has that label
        labels = taken(kept.labels[source], transpose.attributes["permutation"])
        renamed = dict(zip(moved.labels[target], labels, strict=True))
        for region, own in moved.labels.items():
            kept.labels[region] = taken(renamed, own)  # type: ignore[arg-type]
            cluster_of[region] = kept
    return list(dict.fromkeys(cluster_of.values()))


def _try_cluster(choice: Choice, cluster: Cluster, gains: dict[Region, float]) -> None:
    """Gives all regions of the cluster the order that is cheapest."""
    regions = [*cluster.labels]
    own = [region.order for region in regions]
    now = choice.price(regions)
    if not now:
        return
    best, cheapest = own, now - LEAST_GAIN
    candidates = _candidates(choice, cluster)
    for candidate in candidates:
        orders = [_in_region(candidate, cluster.labels[region]) for region in regions]
        if orders != own:
            _set(regions, orders)
            price = choice.price(regions)
            if price < cheapest:
                best, cheapest = orders, price
    _set(regions, best)
    if best is not own:
        gains[regions[0]] = gains.get(regions[0], 0.0) + now - cheapest
        for region in regions[1:]:
            gains.setdefault(region, 0.0)


def _set(regions: Sequence[Region], orders: Sequence[Order]) -> None:
    for region, order in zip(regions, orders, strict=True):
        region.order = order


def _in_region(order: Order, labels: Order) -> Order:
    """An order of a cluster as one of a region."""
    return tuple(labels.index(label) for label in order)


def _candidates(choice: Choice, cluster: Cluster) -> list[Order]:
    """Orders that somebody around the cluster would like, in its labels."""
    found: dict[Order, float] = {}
    for region, labels in cluster.labels.items():
        weight = float(region.shape.bytes)
        for order in _wishes(choice, region):
            wish = taken(labels, order)
            found[wish] = found.get(wish, 0.0) + weight
    if len(found) < 2 and len(cluster.labels) == 1:
        region = next(iter(cluster.labels))
        found.pop(region.order, None)
    ranked = sorted(found, key=lambda order: -found[order])
    return ranked[:MOST_CANDIDATES]


def _wishes(choice: Choice, region: Region) -> list[Order]:
    """Row-major, and the orders in which ops around a region read and write, one way or another."""
    program = choice.program
    rank = region.shape.rank
    found: dict[Order, None] = {row_major(rank): None, region.order: None}
    for member in region.members:
        given = program.given.get(member) or choice.demanded(member)
        if given is not None:
            found[given] = None
    for op in choice.neighbours(region):
        if op.opcode == "sort":
            last = op.attributes["dimension"]
            found[(*(dim for dim in range(rank) if dim != last), last)] = None
        if not program.has_forms(op):
            continue
        arrays = choice.arrays(op)
        result = next(program.array_results(op), op)
        for form in choice.forms(op):
            if program.region_of.get(result) is region:
                found[form.result] = None
            for array, order in zip(arrays, form.operands, strict=True):
                if program.region_of.get(array) is region:
                    found[order] = None
        if op.opcode == "transpose" and program.region_of.get(op) is region and op.operands[0] in program.region_of:
            permutation = op.attributes["permutation"]
            outer = choice.order(op.operands[0])
            found[tuple(permutation.index(dim) for dim in outer)] = None
    return [*found]
