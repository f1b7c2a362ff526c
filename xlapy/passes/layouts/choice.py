"""The choice of orders: from the program as it is, one change after the other, as long as each makes it cheaper.

A change gives one region another order, or all regions that transposes join: then the transposes between them are
nothing at all. What lies behind reshapes that keep dimensions apart may change along. Orders are tried that some op at
the border of a region would like.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from xlapy.hlo.graph import Instruction
from xlapy.passes.layouts.followers import order_of_rows, wants_rows
from xlapy.passes.layouts.forms import regrouped
from xlapy.passes.layouts.orders import Order, inverse, is_row_major, row_major, taken
from xlapy.passes.layouts.prices import FormedOp, Priced, PricedFollower, Prices
from xlapy.passes.layouts.regions import Region

MOST_SWEEPS = 4
MOST_CANDIDATES = 8
MOST_JOINED = 16  # clusters that change together
LEAST_GAIN = 1.0  # bytes


@dataclass(eq=False, slots=True)
class Cluster:
    """Regions that change together: `labels` says for each which dimension of the cluster each of its own is."""

    labels: dict[Region, Order] = field(default_factory=dict)
    priced: list[Priced] = field(default_factory=list)
    seen: tuple[Order, ...] = ()  # the orders around it at the last look
    reshapes: list[FormedOp] = field(default_factory=list)  # that lead to other clusters

    def look(self) -> bool:
        """Looks at the orders around it, and remembers them; returns whether any has changed since the last look."""
        around = tuple([region.order for priced in self.priced for region in priced.regions])
        before, self.seen = self.seen, around
        return before != around

    def price(self) -> float:
        return _price(self.priced)


Orders = dict[Region, Order]
"""What a change does: regions with the orders that they get."""


def improve(prices: Prices) -> dict[Region, float]:
    """Changes orders until no change helps; returns the regions that have another one now, with the bytes saved."""
    cluster_of = _clusters(prices)
    joined = list(dict.fromkeys(cluster_of.values()))
    for op in prices.ops.values():
        if op.instruction.opcode == "reshape" and all(region in cluster_of for region in op.regions):
            for region in op.regions:
                cluster_of[region].reshapes.append(op)
    single = [_single(region) for cluster in joined for region in cluster.labels if len(cluster.labels) > 1]
    for cluster in (*joined, *single):
        cluster.priced = prices.around(cluster.labels)
    gains: dict[Region, float] = {}
    for _ in range(MOST_SWEEPS):
        changes = [_improve(prices, cluster, cluster_of, gains) for cluster in (*joined, *single)]
        if not any(changes):
            break
    changed = [region for region in prices.program.regions if not is_row_major(region.order)]
    return {region: gains.get(region, 0.0) for region in changed}


def _single(region: Region) -> Cluster:
    return Cluster({region: row_major(region.shape.rank)})


def _clusters(prices: Prices) -> dict[Region, Cluster]:
    """Regions joined by transposes, the largest arrays first; transposes that contradict others join nothing."""
    cluster_of = {region: _single(region) for region in prices.program.regions}
    transposes = [op for op in prices.ops.values() if op.instruction.opcode == "transpose"]
    transposes.sort(key=lambda op: -op.instruction.shape.bytes * op.runs)
    for op in transposes:
        source, target = op.regions
        permutation = op.instruction.attributes["permutation"]
        if source not in cluster_of or target not in cluster_of:
            continue
        kept, moved = cluster_of[source], cluster_of[target]
        if len(kept.labels) >= len(moved.labels):
            _join(cluster_of, source, target, permutation)
        else:
            _join(cluster_of, target, source, inverse(permutation))
    return cluster_of


def _join(cluster_of: dict[Region, Cluster], source: Region, target: Region, permutation: Order) -> None:
    """Makes one cluster of two: dimension d of the target is dimension `permutation[d]` of the source."""
    kept, moved = cluster_of[source], cluster_of[target]
    if kept is moved:
        return
    labels = taken(kept.labels[source], permutation)
    renamed = dict(zip(moved.labels[target], labels, strict=True))
    for region, own in moved.labels.items():
        kept.labels[region] = tuple([renamed[label] for label in own])
        cluster_of[region] = kept


def _improve(prices: Prices, cluster: Cluster, cluster_of: dict[Region, Cluster], gains: dict[Region, float]) -> bool:
    """Makes the change that helps most, of those that give the cluster another order; returns whether there is one."""
    now = cluster.price() if cluster.look() else 0.0
    if not now:
        return False
    best: Orders = {}
    saved = LEAST_GAIN
    for candidate in _candidates(prices, cluster):
        for orders in _changes(cluster, candidate, cluster_of):
            gain = _gain(prices, orders, now, cluster, cluster_of)
            if gain > saved:
                best, saved = orders, gain
    if best:
        prices.set_orders(best)
        turned = next((region for region, order in best.items() if not is_row_major(order)), None)
        if turned is not None:
            gains[turned] = gains.get(turned, 0.0) + saved
    return bool(best)


def _changes(cluster: Cluster, candidate: Order, cluster_of: dict[Region, Cluster]) -> Iterator[Orders]:
    """The change of the cluster alone, and that of what lies behind its reshapes as well."""
    own = {region: _in_region(candidate, labels) for region, labels in cluster.labels.items()}
    if all(region.order == order for region, order in own.items()):
        return
    yield own
    orders = {cluster: candidate}
    reached = _behind_reshapes(orders, cluster_of)
    if reached:
        behind = {region: _in_region(orders[c], labels) for c in reached for region, labels in c.labels.items()}
        yield own | behind


def _behind_reshapes(orders: dict[Cluster, Order], cluster_of: dict[Region, Cluster]) -> list[Cluster]:
    """Adds the clusters that reshapes lead to, in the orders that make those nothing; returns the added ones."""
    pending = [*orders]
    for here in pending:
        for op in here.reshapes if len(orders) < MOST_JOINED else ():
            before, after = op.instruction.operands[0].shape, op.instruction.shape
            (source, target) = op.regions
            for one, other, shapes in ((source, target, (before, after)), (target, source, (after, before))):
                there = cluster_of[other]
                if one in here.labels and there not in orders:
                    order = regrouped(_in_region(orders[here], here.labels[one]), *shapes)
                    if order is not None:
                        orders[there] = taken(there.labels[other], order)
                        pending.append(there)
    return pending[1:]


def _gain(prices: Prices, orders: Orders, now: float, cluster: Cluster, cluster_of: dict[Region, Cluster]) -> float:
    """The bytes that a change saves, by trying it. `now` is the price of the cluster, which the change may exceed."""
    priced, before = cluster.priced, now
    if len(orders) > len(cluster.labels):
        clusters = dict.fromkeys(cluster_of[region] for region in orders)
        priced = list(dict.fromkeys(item for part in clusters for item in part.priced))
        before = _price(priced)
    own = {region: region.order for region in orders}
    prices.set_orders(orders)
    after = _price(priced)
    prices.set_orders(own)
    return before - after


def _price(priced: Iterable[Priced]) -> float:
    return sum([item.price() for item in priced])


def _in_region(order: Order, labels: Order) -> Order:
    """An order of a cluster as one of a region."""
    return tuple([labels.index(label) for label in order])


def _candidates(prices: Prices, cluster: Cluster) -> list[Order]:
    """The orders that most bytes around the cluster would like, in its labels."""
    found: dict[Order, int] = {}
    for region, labels in cluster.labels.items():
        for order in _wishes(prices, region):
            wish = taken(labels, order)
            found[wish] = found.get(wish, 0) + region.shape.bytes
    return sorted(found, key=lambda order: -found[order])[:MOST_CANDIDATES]


def _wishes(prices: Prices, region: Region) -> Iterable[Order]:
    """Row-major, what callers want, and the orders in which ops around a region read and write."""
    rank = region.shape.rank
    found: dict[Order, None] = {row_major(rank): None}
    found.update(dict.fromkeys(_of_callers(prices, region)))
    for priced in prices.of_region[region]:
        if isinstance(priced, FormedOp):
            found.update(dict.fromkeys(_of_op(priced, region)))
        elif isinstance(priced, PricedFollower) and wants_rows(priced.instruction):
            found[order_of_rows(priced.instruction)] = None
    return found


def _of_callers(prices: Prices, region: Region) -> Iterable[Order]:
    given, demanded = prices.program.given, prices.program.demanded
    if given or demanded:
        yield from (given[member] for member in region.members if member in given)
        yield from (order for (root, place), order in demanded.items() if _result(root, place) in region.members)


def _result(root: Instruction, place: int) -> Instruction:
    return root.operands[place] if root.opcode == "tuple" else root


def _of_op(op: FormedOp, region: Region) -> Iterable[Order]:
    for form in op.forms():
        for end, order in zip(op.regions, (*form.operands, form.result), strict=True):
            if end is region:
                yield order
    if op.instruction.opcode == "transpose" and op.regions[1] is region:
        permutation = op.instruction.attributes["permutation"]
        yield tuple([permutation.index(dim) for dim in op.regions[0].order])
