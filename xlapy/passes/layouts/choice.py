"""The choice of orders: from the program as it is, one change after the other, as long as each makes it cheaper.

A change gives one region another order, or all regions that transposes join: then the transposes between them are
nothing at all. Orders are tried that some op at the border of a region would like.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from xlapy.hlo.graph import Instruction
from xlapy.passes.layouts.orders import Order, inverse, row_major, taken
from xlapy.passes.layouts.prices import FormedOp, Prices, Priced
from xlapy.passes.layouts.regions import Region

MOST_SWEEPS = 4
MOST_CANDIDATES = 8
LEAST_GAIN = 1.0  # bytes


@dataclass(eq=False, slots=True)
class Cluster:
    """Regions that change together: `labels` says for each which dimension of the cluster each of its own is."""

    labels: dict[Region, Order] = field(default_factory=dict)
    priced: list[Priced] = field(default_factory=list)
    tried: tuple[Order, ...] = ()  # the orders around it when it was last looked at

    def is_settled(self) -> bool:
        """Nothing around has changed since the last look; notes that this is one."""
        around = tuple([region.order for priced in self.priced for region in priced.regions])
        before, self.tried = self.tried, around
        return before == around

    @property
    def regions(self) -> list[Region]:
        return [*self.labels]

    def price(self) -> float:
        return sum([priced.price() for priced in self.priced])


def improve(prices: Prices) -> dict[Region, float]:
    """Changes orders until no change helps; returns the regions that have another one now, with the bytes saved."""
    joined = _clusters(prices)
    single = [_single(region) for cluster in joined for region in cluster.labels if len(cluster.labels) > 1]
    clusters = [*joined, *single]
    for cluster in clusters:
        cluster.priced = prices.around(cluster.labels)
    gains: dict[Region, float] = {}
    for _ in range(MOST_SWEEPS):
        changes = [_try_orders(prices, cluster, gains) for cluster in clusters]
        if not any(changes):
            break
    changed = [region for region in prices.program.regions if region.order != row_major(region.shape.rank)]
    return {region: gains.get(region, 0.0) for region in changed}


def _single(region: Region) -> Cluster:
    return Cluster({region: row_major(region.shape.rank)})


def _clusters(prices: Prices) -> list[Cluster]:
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
    return list(dict.fromkeys(cluster_of.values()))


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


def _try_orders(prices: Prices, cluster: Cluster, gains: dict[Region, float]) -> bool:
    """Gives all regions of the cluster the order that is cheapest; returns whether that is another one."""
    before = 0.0 if cluster.is_settled() else cluster.price()
    if not before:
        return False
    own = [region.order for region in cluster.labels]
    best, cheapest = own, before - LEAST_GAIN
    for candidate in _candidates(prices, cluster):
        orders = [_in_region(candidate, labels) for labels in cluster.labels.values()]
        if orders != own:
            _set(cluster.labels, orders)
            price = cluster.price()
            if price < cheapest:
                best, cheapest = orders, price
    _set(cluster.labels, best)
    if best is own:
        return False
    first = next(iter(cluster.labels))
    gains[first] = gains.get(first, 0.0) + before - cheapest
    return True


def _set(regions: Iterable[Region], orders: Sequence[Order]) -> None:
    for region, order in zip(regions, orders, strict=True):
        region.order = order


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
    return found


def _of_callers(prices: Prices, region: Region) -> Iterable[Order]:
    given, demanded = prices.program.given, prices.program.demanded
    if given or demanded:
        yield from (given[member] for member in region.members if member in given)
        yield from (
            order for (root, place), order in demanded.items() if _result(root, place) in region.members
        )


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
