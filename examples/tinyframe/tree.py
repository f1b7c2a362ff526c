"""Parameter trees: dicts, lists and tuples, nested at will, with arrays or tensors at the leaves.

    flatten({"weight": w, "bias": b})   gives   [b, w] and a structure that rebuilds the tree from two new leaves

Dicts are walked in the order of their sorted keys, so that equal trees give equal leaves however they were made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

Tree: TypeAlias = (
    Any  # a leaf, or dict[str, Tree], list[Tree], tuple[Tree, ...]: Python cannot say it with leaves of any type
)


class Structure(NamedTuple):
    """A tree without its leaves. A tuple, because it is hashed and compared at every call as part of the signature."""

    kind: type | None  # dict, list or tuple; None for a leaf
    keys: tuple[str, ...] = ()
    children: tuple[Structure, ...] = ()

    @property
    def leaves(self) -> int:
        """How many leaves it takes."""
        return 1 if self.kind is None else sum(child.leaves for child in self.children)

    def rebuild(self, leaves: Iterable[Any]) -> Tree:
        """The tree of this structure with `leaves` in the order in which `flatten` gives them."""
        remaining = iter(leaves)
        tree = self._rebuild(remaining)
        assert next(remaining, remaining) is remaining, "more leaves than the structure has places"
        return tree

    def _rebuild(self, leaves: Iterator[Any]) -> Tree:
        if self.kind is None:
            return next(leaves)
        children = [child._rebuild(leaves) for child in self.children]
        return dict(zip(self.keys, children, strict=True)) if self.kind is dict else self.kind(children)


LEAF = Structure(None)


def flatten(tree: Tree) -> tuple[list[Any], Structure]:
    """The leaves of `tree`, depth first, and what is left of it."""
    leaves: list[Any] = []
    return leaves, _collect(tree, leaves)


def _collect(tree: Tree, leaves: list[Any]) -> Structure:
    if isinstance(tree, dict):
        keys = tuple(sorted(tree))
        return Structure(dict, keys, tuple(_collect(tree[key], leaves) for key in keys))
    if isinstance(tree, (list, tuple)):
        return Structure(type(tree), children=tuple(_collect(child, leaves) for child in tree))
    leaves.append(tree)
    return LEAF


def map_tree(function: Callable[..., Any], tree: Tree, *others: Tree) -> Tree:
    """`function` of each leaf of `tree` and of the leaves of `others` in the same places."""
    leaves, structure = flatten(tree)
    columns = [leaves]
    for other in others:
        other_leaves, other_structure = flatten(other)
        if other_structure != structure:
            raise ValueError(f"trees differ in structure: {structure} and {other_structure}")
        columns.append(other_leaves)
    return structure.rebuild(function(*row) for row in zip(*columns, strict=True))
