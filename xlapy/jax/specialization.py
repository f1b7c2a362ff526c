"""A JAX function compiled for one signature: flat leaves in, nested results out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax.tree_util import tree_structure

from xlapy.executable import Executable
from xlapy.jax.callbacks import without_tokens
from xlapy.jax.leaves import Reader, ResultKind, Writer, readers, writers
from xlapy.jax.lowering import Lowered


@dataclass(frozen=True, slots=True)
class Specialization:
    """An executable, and what stands between its arrays and the caller's values; None where nothing does. `donated` are
    the leaves that callers give up, whether or not a result is made in place of them."""

    executable: Executable
    function: Callable[..., Any]
    readers: tuple[Reader, ...] | None
    nest: Callable[[Any], Any] | None
    donated: tuple[int, ...] = ()

    def call(self, leaves: Sequence[Any]) -> Any:
        """Runs the program with leaves of its signature."""
        if self.donated:
            return self._call_donating(leaves)
        return self._call(leaves)

    def _call_donating(self, leaves: Sequence[Any]) -> Any:
        """As JAX does it: a donated jax array is gone afterwards. A numpy array cannot be; it holds the result."""
        result = self._call(leaves)
        for number in self.donated:
            leaf = leaves[number]
            if isinstance(leaf, jax.Array):
                leaf.delete()
        return result

    def _call(self, leaves: Sequence[Any]) -> Any:
        if self.readers is not None:
            leaves = [read(leaf) for read, leaf in zip(self.readers, leaves, strict=True)]
        if self.nest is None:
            return self.function(*leaves)
        return self.nest(self.function(*leaves))


def specialize(lowered: Lowered, executable: Executable, leaves: Sequence[Any], results: ResultKind) -> Specialization:
    """What calls a function, lowered and compiled, with leaves like these."""
    tokens = lowered.effects.tokens
    donated = tuple(number - tokens for number in lowered.donated)
    return Specialization(
        executable,
        without_tokens(executable.__call__, tokens) if tokens else executable.__call__,
        readers(leaves, lowered.in_avals, donated, results),
        nesting(lowered.out_tree, writers(lowered.out_avals, results)),
        donated,
    )


def nesting(tree: Any, write: tuple[Writer, ...] | None) -> Callable[[Any], Any] | None:
    """From what an executable returns (an array, or a tuple of several) to the function's result; None if it is that
    already."""
    count = tree.num_leaves
    plain = 0 if count == 1 else (0,) * count
    if write is None and tree == tree_structure(plain):
        return None
    if write is None:
        return (lambda array: tree.unflatten((array,))) if count == 1 else tree.unflatten
    if count == 1:
        (write_only,) = write
        return lambda array: tree.unflatten((write_only(array),))
    return lambda arrays: tree.unflatten([one(array) for one, array in zip(write, arrays, strict=True)])
