"""Reverse-mode differentiation over recorded tensors."""

from __future__ import annotations

from examples.tinyframe.tensor import Tensor
from examples.tinyframe.tree import Tree, flatten


def gradient(scalar: Tensor, parameters: Tree) -> Tree:
    """The derivatives of `scalar` by each tensor of the tree `parameters`, as a tree of the same structure.

    Derivatives by other tensors are recorded on the way where a pullback gives several; the compiler drops them."""
    if scalar.dims:
        raise ValueError(f"only a scalar has a gradient, and this is {scalar}")
    leaves, structure = flatten(parameters)
    wanted = {leaf.serial for leaf in leaves}
    reached = {scalar.serial: scalar.filled(1)}
    for tensor in _backwards(scalar):
        arrived = reached.get(tensor.serial) if tensor.serial in wanted else reached.pop(tensor.serial, None)
        if arrived is None or tensor.pullback is None:
            continue
        for source, part in zip(tensor.inputs, tensor.pullback(arrived), strict=True):
            if part is not None:
                reached[source.serial] = reached[source.serial] + part if source.serial in reached else part
    return structure.rebuild(reached[leaf.serial] if leaf.serial in reached else leaf.filled(0) for leaf in leaves)


def _backwards(root: Tensor) -> list[Tensor]:
    """Everything that `root` was computed from, later tensors first: users always come before what they use."""
    found = {root.serial: root}
    waiting = [root]
    while waiting:
        for source in waiting.pop().inputs:
            if source.serial not in found:
                found[source.serial] = source
                waiting.append(source)
    return [found[serial] for serial in sorted(found, reverse=True)]
