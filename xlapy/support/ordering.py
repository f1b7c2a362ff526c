"""The order in which the nodes of a graph can be handled, each after what it needs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

Node = TypeVar("Node", bound=Hashable)


class CycleError(Exception):
    """`source` needs `target`, which needs `source`, directly or by way of others."""

    def __init__(self, source: Any, target: Any) -> None:
        super().__init__(f"{target} depends on itself")
        self.source = source
        self.target = target


def post_order(starts: Iterable[Node], needs: Callable[[Node], Iterable[Node]]) -> list[Node]:
    """Each start and what it needs, needs first, depth first from each in turn. Without recursion: graphs are deep.

    Raises CycleError where a node needs itself."""
    order: list[Node] = []
    done: set[Node] = set()
    for start in starts:
        if start in done:
            continue
        needed = tuple(needs(start))
        if done.issuperset(needed):  # nearly always: graphs are mostly built in order
            done.add(start)
            order.append(start)
        else:
            _visit(start, needed, needs, order, done)
    return order


def _visit(
    start: Node, first: Iterable[Node], needs: Callable[[Node], Iterable[Node]], order: list[Node], done: set[Node]
) -> None:
    """Adds a start to the order, behind all that it needs and that is not done: `first`, and what these need."""
    stack = [(start, iter(first))]
    active = {start}
    while stack:
        node, rest = stack[-1]
        for needed in rest:
            if needed in active:
                raise CycleError(node, needed)
            if needed not in done:
                stack.append((needed, iter(needs(needed))))
                active.add(needed)
                break
        else:
            stack.pop()
            active.discard(node)
            done.add(node)
            order.append(node)
