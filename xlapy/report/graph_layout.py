"""Where the boxes of a graph stand: in layers, operands above their users.

Four steps: a layer for each node, so that edges run downwards; an order within each layer that crosses few edges; a
place for each node near its neighbours; and a way for each edge, through a bend in every layer that it passes.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, TypeVar

Point = tuple[float, float]
Key = TypeVar("Key", bound=Hashable)

SWEEPS = 8
GAP = 18.0  # between boxes of a layer
BEND_GAP = 10.0  # between the ways of edges
LAYER_GAP = 34.0
MARGIN = 12.0


@dataclass(frozen=True, slots=True)
class Drawing(Generic[Key]):
    """Centres of the boxes, the points that each edge passes, and the size of the whole."""

    centres: Mapping[Key, Point]
    ways: Mapping[tuple[Key, Key], Sequence[Point]]
    width: float
    height: float


@dataclass(eq=False, slots=True)
class _Node:
    """A box, or a bend of an edge, which has no width."""

    width: float
    height: float
    layer: int
    above: list[_Node]
    below: list[_Node]
    x: float = 0.0

    @property
    def gap(self) -> float:
        return GAP if self.width else BEND_GAP


def layered(sizes: Mapping[Key, Point], edges: Sequence[tuple[Key, Key]]) -> Drawing[Key]:
    """The drawing of boxes of the given widths and heights, listed operands first; edges go from operand to user."""
    kept = [*dict.fromkeys(edge for edge in edges if edge[0] in sizes and edge[1] in sizes)]
    ranks = _ranks(sizes, kept)
    boxes = {key: _Node(width, height, ranks[key], [], []) for key, (width, height) in sizes.items()}
    chains = {edge: _chain(boxes[edge[0]], boxes[edge[1]]) for edge in kept}
    nodes = dict.fromkeys([*boxes.values(), *(bend for chain in chains.values() for bend in chain)])
    layers: list[list[_Node]] = [[] for _ in range(max(ranks.values(), default=-1) + 1)]
    for node in nodes:
        layers[node.layer].append(node)
    _order(layers)
    _place(layers)
    return _drawing(boxes, chains, layers)


def _ranks(sizes: Mapping[Key, Point], edges: Sequence[tuple[Key, Key]]) -> dict[Key, int]:
    """The layer of each box: below all its operands; what has none stands right above its first user."""
    sources: dict[Key, list[Key]] = {key: [] for key in sizes}
    users: dict[Key, list[Key]] = {key: [] for key in sizes}
    for source, user in edges:
        sources[user].append(source)
        users[source].append(user)
    ranks: dict[Key, int] = {}
    for key in sizes:
        ranks[key] = 1 + max((ranks[source] for source in sources[key]), default=-1)
    for key in sizes:
        if not sources[key] and users[key]:
            ranks[key] = max(0, min(ranks[user] for user in users[key]) - 1)
    return ranks


def _chain(source: _Node, user: _Node) -> list[_Node]:
    """The bends between two boxes, joined to them."""
    bends = [_Node(0.0, 0.0, layer, [], []) for layer in range(source.layer + 1, user.layer)]
    path = [source, *bends, user]
    for upper, lower in pairwise(path):
        upper.below.append(lower)
        lower.above.append(upper)
    return bends


def _order(layers: list[list[_Node]]) -> None:
    """Sorts each layer by where its neighbours are, downwards and upwards in turn."""
    position = {node: float(number) for layer in layers for number, node in enumerate(layer)}
    for sweep in range(SWEEPS):
        downwards = sweep % 2 == 0
        for layer in layers if downwards else reversed(layers):
            wanted = {node: _mean(node.above if downwards else node.below, position, position[node]) for node in layer}
            layer.sort(key=wanted.__getitem__)
            position.update((node, float(number)) for number, node in enumerate(layer))


def _mean(nodes: Sequence[_Node], position: Mapping[_Node, float], otherwise: float) -> float:
    return sum(position[node] for node in nodes) / len(nodes) if nodes else otherwise


def _place(layers: list[list[_Node]]) -> None:
    """Moves the nodes of each layer as near to their neighbours as the order and the gaps allow."""
    for layer in layers:
        _spread(layer, [0.0] * len(layer))
    for sweep in range(SWEEPS):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            wanted = []
            for node in layer:
                neighbours = (node.above if sweep % 2 == 0 else node.below) or [node]
                wanted.append(sum(other.x for other in neighbours) / len(neighbours))
            _spread(layer, wanted)


def _spread(layer: Sequence[_Node], wanted: Sequence[float]) -> None:
    """The places closest to the wanted ones, by least squares, of nodes that keep their order and distance.

    Without the distances that is isotonic regression: neighbours in the wrong order are pooled, and share a mean."""
    offsets = [0.0]
    for left, right in pairwise(layer):
        offsets.append(offsets[-1] + (left.width + right.width) / 2 + max(left.gap, right.gap))
    pools: list[tuple[float, int]] = []  # (mean, members)
    for place, offset in zip(wanted, offsets, strict=False):
        mean, count = place - offset, 1
        while pools and pools[-1][0] > mean:
            other, members = pools.pop()
            mean = (mean * count + other * members) / (count + members)
            count += members
        pools.append((mean, count))
    means = [mean for mean, count in pools for _ in range(count)]
    for node, mean, offset in zip(layer, means, offsets, strict=False):
        node.x = mean + offset


def _drawing(
    boxes: Mapping[Key, _Node],
    chains: Mapping[tuple[Key, Key], Sequence[_Node]],
    layers: Sequence[Sequence[_Node]],
) -> Drawing[Key]:
    heights = [max((node.height for node in layer), default=0.0) for layer in layers]
    middles: list[float] = []
    top = MARGIN
    for height in heights:
        middles.append(top + height / 2)
        top += height + LAYER_GAP
    nodes = [node for layer in layers for node in layer]
    left = min((node.x - node.width / 2 for node in nodes), default=0.0) - MARGIN
    right = max((node.x + node.width / 2 for node in nodes), default=0.0) + MARGIN
    ways = {}
    for (source, user), bends in chains.items():
        first, last = boxes[source], boxes[user]
        ways[source, user] = [
            (first.x - left, middles[first.layer] + first.height / 2),
            *((bend.x - left, middles[bend.layer]) for bend in bends),
            (last.x - left, middles[last.layer] - last.height / 2),
        ]
    centres = {key: (node.x - left, middles[node.layer]) for key, node in boxes.items()}
    return Drawing(centres, ways, right - left, max(top - LAYER_GAP, 0.0) + MARGIN)
