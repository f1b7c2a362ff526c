"""What routines take and give, and whether arrays are that: LAPACK itself believes all that it is told.

    t[m,n] -> t[m,n], s32[k], s32[]

Arrays have these dimensions behind those of the batch, which they share. A letter is the same number wherever it is; k
is the lesser one of m and n, and p is one less than n. `t` is the type of the matrices, `real` that of their parts,
and `complex` that whose parts are such. Attributes that are codes of letters have one of those that are listed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from xlapy_runtime.errors import ArgumentError
from xlapy_runtime.lapack.plans import Place
from xlapy_runtime.program import element_name

Typed: TypeAlias = tuple[np.dtype[Any], tuple[int, ...]]


class Signature:
    """That of a target, whose name messages begin with. `entries` are the names of its attributes."""

    def __init__(self, name: str, text: str, entries: Sequence[str], letters: Mapping[str, str]) -> None:
        self._name = name
        self._text = text
        self._entries = {entry: letters.get(entry) for entry in entries}
        operands, _, results = text.partition(" -> ")
        self._operands, self._results = _ARRAY.findall(operands), _ARRAY.findall(results)

    def check_entries(self, given: Mapping[str, Any]) -> None:
        """Raises ArgumentError if there is an attribute too many, one too few, or one that means nothing."""
        if given.keys() != self._entries.keys():
            wanted = ", ".join(self._entries) or "none"
            raise ArgumentError(f"{self._name} has the attributes {wanted}, and is given {', '.join(given) or 'none'}")
        for entry, letters in self._entries.items():
            value = given[entry]
            codes = None if letters is None else [*map(ord, letters)]
            if not isinstance(value, int) or (codes is not None and value not in codes):
                wanted = "a number" if letters is None else " or ".join(f"{ord(each)} ({each})" for each in letters)
                raise ArgumentError(f"{self._name}: its attribute {entry} is {value!r}, but it must be {wanted}")

    def check(self, operands: Sequence[Typed], results: Sequence[Typed]) -> int:
        """How many problems there are. Raises ArgumentError if these are not the arrays that belong together."""
        wanted, given = [*self._operands, *self._results], [*operands, *results]
        if (len(operands), len(results)) != (len(self._operands), len(self._results)):
            raise self._error(operands, results)
        dtype, dims = given[0]
        real = np.empty(0, dtype).real.dtype
        types = {"t": dtype, "real": real, "complex": np.result_type(real, np.complex64), "s32": np.dtype(np.int32)}
        batch = dims[: max(len(dims) - _rank(wanted[0][1]), 0)]
        sizes: dict[str, int] = {}
        for (kind, letters), (found, dims) in zip(wanted, given, strict=True):
            inner = dims[len(batch) :]
            if found != types[kind] or dims[: len(batch)] != batch or len(inner) != _rank(letters):
                raise self._error(operands, results)
            for letter, size in zip(filter(None, letters.split(",")), inner, strict=True):
                if letter not in sizes:
                    sizes[letter] = _DERIVED[letter](sizes) if letter in _DERIVED else size
                if sizes[letter] != size:
                    raise self._error(operands, results)
        return math.prod(batch)

    def _error(self, operands: Sequence[Typed], results: Sequence[Typed]) -> ArgumentError:
        text = f"{_texts(operands)} -> {_texts(results)}"
        return ArgumentError(f"{self._name} is {self._text} for each matrix of a batch, and is called as {text}")


def require_sizes(holds: bool, rule: str, *arrays: Place) -> None:
    """Raises ArgumentError unless sizes that belong to these arrays are as attributes want them."""
    if not holds:
        given = _texts([(array.dtype, array.shape) for array in arrays])
        raise ArgumentError(f"sizes do not belong together unless {rule}, and these are {given}")


def _rank(letters: str) -> int:
    return letters.count(",") + 1 if letters else 0


def _texts(arrays: Sequence[Typed]) -> str:
    return ", ".join(f"{element_name(dtype)}[{','.join(map(str, dims))}]" for dtype, dims in arrays) or "nothing"


_ARRAY = re.compile(r"(\w+)\[([\w,]*)\]")
_DERIVED = {"k": lambda sizes: min(sizes["m"], sizes["n"]), "p": lambda sizes: max(sizes["n"] - 1, 0)}
