"""The rows of the tables as cases: an expression, for one element type, plain or as a gradient or at the edges."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy import fft as scipy_fft
from jax.scipy import integrate, interpolate, linalg, ndimage, signal, special, stats
from jax.scipy.cluster import vq
from jax.scipy.spatial.transform import Rotation

from tests.jax.breadth.values import DTYPES, GROUPS

TABLES = Path(__file__).parent / "tables"
COLUMNS = re.compile(r"\s{2,}")

MODULES: dict[str, Any] = {
    "jax": jax, "jnp": jnp, "lax": lax, "np": np,
    "special": special, "linalg": linalg, "signal": signal, "scipy_fft": scipy_fft, "integrate": integrate,
    "interpolate": interpolate, "ndimage": ndimage, "vq": vq, "Rotation": Rotation, "stats": stats,
}  # fmt: skip

MODES = {
    "gradient": ("f32", "f64"),
    "second": ("f64",),
    "edges": (*GROUPS["float"], *GROUPS["complex"]),
    "batched": ("f32", "i32"),
    "empty": ("f32", "i32"),
    "large": ("f32", "bf16"),
}
"""How a function is tried besides being called, and with which types: its gradient, a derivative of that, at difficult
numbers, under `vmap`, with arrays of no elements and with large ones."""

NEEDS = {"gradient": "grad", "second": "grad", "edges": "edges"}
"""The flag that a row must have for a mode."""

FLAGS = {"grad", "edges", "single"}


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a table. `units` is how many units in the last place of a result's largest number may differ.

    Flags: `grad` and `edges` are further modes to try it in; `single` functions compute in f32 whatever they are given.
    """

    table: str
    expression: str
    types: tuple[str, ...]
    flags: frozenset[str]
    units: float | None

    @property
    def cases(self) -> Iterator[Case]:
        for name in self.types:
            yield Case(self, name, "plain")
            for mode, types in MODES.items():
                if name in types and NEEDS.get(mode) in (None, *self.flags):
                    yield Case(self, name, mode)


@dataclass(frozen=True, slots=True)
class Case:
    """A row for one element type, `plain` or in one of `MODES`."""

    row: Row
    type: str
    mode: str
    function: Callable[[dict[str, Any]], Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        function = _evaluator(self.row.expression)
        changed = _TRANSFORMATIONS.get(self.mode)
        object.__setattr__(self, "function", changed(function) if changed else function)

    @property
    def dtype(self) -> np.dtype[Any]:
        return DTYPES[self.type]

    def __str__(self) -> str:
        return f"{self.row.expression} [{self.type}, {self.mode}]"


@cache
def rows() -> tuple[Row, ...]:
    found = []
    for path in sorted(TABLES.glob("*.txt")):
        lines = (line.strip() for line in path.read_text().splitlines())
        found += [_row(path.stem, line) for line in lines if line and not line.startswith("#")]
    return tuple(found)


def _row(table: str, line: str) -> Row:
    expression, words, *more = COLUMNS.split(line)
    types = dict.fromkeys(name for word in words.split() for name in GROUPS.get(word, (word,)))
    flags = frozenset(" ".join(more).split())
    units = next((float(flag.removeprefix("units=")) for flag in flags if flag.startswith("units=")), None)
    unknown = set(types) - set(DTYPES) | {flag for flag in flags if flag not in FLAGS and "=" not in flag}
    if unknown:
        raise ValueError(f"{table}: {expression}: what is {', '.join(sorted(unknown))}?")
    return Row(table, expression, tuple(types), flags, units)


def _evaluator(expression: str) -> Callable[[dict[str, Any]], Any]:
    code = compile(expression, expression, "eval")
    names = set(code.co_names)

    def evaluate(variables: dict[str, Any]) -> Any:
        known = {**MODULES, **variables}
        if "key" in names:
            known["key"] = jax.random.wrap_key_data(variables["key"])
        return _plain(eval(code, known))

    return evaluate


def _plain(result: Any) -> Any:
    """The arrays in a result, keys as what they hold."""
    leaves = [leaf for leaf in jax.tree_util.tree_leaves(result) if not isinstance(leaf, (str, type))]
    return [
        jax.random.key_data(leaf) if jnp.issubdtype(jnp.result_type(leaf), jax.dtypes.prng_key) else jnp.asarray(leaf)
        for leaf in leaves
    ]


def _gradient(function: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Any]:
    """Of a sum of the results' elements, each with another weight, in the variables that are floats."""

    def differentiated(variables: dict[str, Any]) -> Any:
        return jax.tree_util.tree_leaves(jax.grad(_total(function, variables))(_floats(variables)))

    return differentiated


def _second(function: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Any]:
    """The derivative of the gradient in some direction."""

    def differentiated(variables: dict[str, Any]) -> Any:
        floats = _floats(variables)
        direction = {name: jnp.cos(value) for name, value in floats.items()}
        _, tangents = jax.jvp(jax.grad(_total(function, variables)), (floats,), (direction,))
        return jax.tree_util.tree_leaves(tangents)

    return differentiated


_TRANSFORMATIONS = {"gradient": _gradient, "second": _second, "batched": jax.vmap}


def _floats(variables: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in variables.items() if jnp.issubdtype(value.dtype, jnp.floating)}


def _total(function: Callable[[dict[str, Any]], Any], variables: dict[str, Any]) -> Callable[[dict[str, Any]], Any]:
    def total(floats: dict[str, Any]) -> Any:
        parts = [_weighted(leaf) for leaf in function({**variables, **floats})]
        return sum(part for part in parts if part is not None)

    return total


def _weighted(leaf: Any) -> Any:
    if not jnp.issubdtype(leaf.dtype, jnp.inexact):
        return None
    weights = np.cos(np.arange(leaf.size)).reshape(leaf.shape).astype(np.empty(0, leaf.dtype).real.dtype)
    parts = (leaf.real, leaf.imag) if jnp.iscomplexobj(leaf) else (leaf,)
    return sum((part * weights).sum() for part in parts)
