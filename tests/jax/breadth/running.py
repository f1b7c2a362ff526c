"""Cases in batches through both compilers, and what came of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import jax
import ml_dtypes
import numpy as np

import xlapy.jax
from tests.jax.breadth.cases import Case
from tests.jax.breadth.values import VALUES, values
from xlapy import XlaError
from xlapy.hlo.limitations import JAX_DIFFERENCES, JaxDifference

BATCH = 40
"""Functions in one program: XLA takes a second or two for it."""

UNITS = {1: 2, 2: 4, 4: 64, 8: 256}
"""What two good implementations may differ by, in units in the last place of the largest number of a result, by the
bytes of a real number. Narrow types are computed wider and rounded; XLA contracts across operations, xlapy does not."""


SINGLE_EPSILON = float(np.finfo(np.float32).eps)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a case: `agrees`, `differs`, `fails` (in xlapy), or `refused` (by JAX or XLA)."""

    case: Case
    kind: str
    units: float = 0.0
    text: str = ""

    @property
    def known(self) -> JaxDifference | None:
        """Why the case may differ; None if it must not."""
        about = self.case.row.expression, self.case.type, self.case.mode
        return next((row for row in JAX_DIFFERENCES if row.covers(*about)), None)

    @property
    def is_good(self) -> bool:
        return self.kind in ("agrees", "refused") or self.known is not None


def run(cases: Iterable[Case]) -> Iterator[Outcome]:
    """The outcomes, in batches of one element type and mode. The caller turns on JAX's x64 mode."""
    for _, group in groupby(sorted(cases, key=_kind), key=_kind):
        alike = list(group)
        for start in range(0, len(alike), BATCH):
            yield from _run_batch(alike[start : start + BATCH])


def _kind(case: Case) -> tuple[str, str]:
    return case.type, case.mode


def _run_batch(batch: Sequence[Case]) -> Iterator[Outcome]:
    variables = VALUES.get(batch[0].mode, values)(batch[0].dtype)
    taken = []
    for case in batch:
        refusal = _refusal(case, variables)
        if refusal is None:
            taken.append(case)
        else:
            yield Outcome(case, "refused", text=refusal)
    yield from _together(taken, variables) if taken else ()


def _refusal(case: Case, variables: dict[str, Any]) -> str | None:
    """Why JAX does not take the case."""
    try:
        jax.eval_shape(case.function, variables)
    except (ArithmeticError, LookupError, NotImplementedError, TypeError, ValueError) as error:
        return f"{type(error).__name__}: {_first_line(error)}"
    return None


def _together(cases: Sequence[Case], variables: dict[str, Any]) -> list[Outcome]:
    """All cases in one program; in halves, if that does not work, until the culprits are alone."""

    def program(variables: dict[str, Any]) -> Any:
        return [case.function(variables) for case in cases]

    try:
        wanted = jax.jit(program)(variables)
    except (jax.errors.JaxRuntimeError, NotImplementedError, TypeError, ValueError) as error:
        return _apart(cases, variables) or [Outcome(cases[0], "refused", text=_first_line(error))]
    try:
        given = xlapy.jax.jit(program)(variables)
    except (
        XlaError,
        AssertionError,
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
        RuntimeError,
    ) as error:
        return _apart(cases, variables) or [
            Outcome(cases[0], "fails", text=f"{type(error).__name__}: {_first_line(error)}")
        ]
    return [_compared(case, got, want) for case, got, want in zip(cases, given, wanted, strict=True)]


def _apart(cases: Sequence[Case], variables: dict[str, Any]) -> list[Outcome]:
    """The outcomes of both halves; none for a single case."""
    middle = len(cases) // 2
    return [*_together(cases[:middle], variables), *_together(cases[middle:], variables)] if middle else []


def _compared(case: Case, given: Sequence[Any], wanted: Sequence[Any]) -> Outcome:
    if len(given) != len(wanted):
        return Outcome(case, "differs", np.inf, f"{len(given)} arrays instead of {len(wanted)}")
    worst = 0.0
    for got, want in zip(map(np.asarray, given), map(np.asarray, wanted), strict=True):
        if (got.dtype, got.shape) != (want.dtype, want.shape):
            return Outcome(case, "differs", np.inf, f"{got.dtype}{got.shape} instead of {want.dtype}{want.shape}")
        apart = units_apart(got, want, one_by_one=case.mode == "edges")
        worst = max(worst, apart / _allowed(case, want.dtype))
    text = "" if worst <= 1 else _example(given, wanted)
    return Outcome(case, "agrees" if worst <= 1 else "differs", worst, text)


def _allowed(case: Case, dtype: np.dtype[Any]) -> float:
    """In units of a result's type. What was computed from numbers of less precision is not more exact than those."""
    if dtype.kind in "biu":
        return 1.0
    coarsest = max(_epsilon(case.dtype), SINGLE_EPSILON if "single" in case.row.flags else 0.0)
    widening = max(1.0, coarsest / _epsilon(dtype))
    return (case.row.units or UNITS[_real(dtype).itemsize]) * widening


def _real(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.empty(0, dtype).real.dtype if dtype.kind == "c" else dtype


def _epsilon(dtype: np.dtype[Any]) -> float:
    """The distance from 1 to the next number; 0 for what is exact."""
    info: Any = ml_dtypes
    return 0.0 if dtype.kind in "biu" else float(info.finfo(_real(dtype)).eps)


def units_apart(got: np.ndarray, want: np.ndarray, *, one_by_one: bool = False) -> float:
    """How far apart two arrays are, in units of the type at the largest finite number, or at each number by itself;
    infinite where one is NaN or infinite and the other is not so, or for integers that differ. Complex numbers with
    such parts are alike."""
    if got.dtype.kind in "biu":
        return 0.0 if np.array_equal(got, want) else np.inf
    is_complex = got.dtype.kind == "c"
    info: Any = ml_dtypes.finfo(_real(got.dtype))
    wide = np.complex128 if is_complex else np.float64
    least = float(info.smallest_normal)  # XLA takes smaller numbers for zero
    first, second = (np.where(np.abs(array) < least, 0, array) for array in (got.astype(wide), want.astype(wide)))
    finite = np.isfinite(second)
    special = (first[~finite], second[~finite])
    if not np.isfinite(first[finite]).all() or not (_are_special(special[0]) if is_complex else _are_same(*special)):
        return np.inf
    sizes = np.abs(second[finite])
    scale = np.maximum(sizes if one_by_one else sizes.max(initial=0), least)
    return float((np.abs(first[finite] - second[finite]) / scale).max(initial=0) / float(info.eps))


def _are_same(got: np.ndarray, want: np.ndarray) -> bool:
    return bool(np.where(np.isnan(want), np.isnan(got), got == want).all())


def _are_special(got: np.ndarray) -> bool:
    return not np.isfinite(got).any()


def _example(given: Sequence[Any], wanted: Sequence[Any]) -> str:
    """The first element that differs most."""
    best, text = -1.0, ""
    for got, want in zip(map(np.asarray, given), map(np.asarray, wanted), strict=True):
        wide = np.complex128 if got.dtype.kind == "c" else np.float64
        with np.errstate(invalid="ignore", over="ignore"):
            gap = np.abs(got.astype(wide) - want.astype(wide))
        gap = np.where(np.isnan(gap), np.where(np.isnan(got) == np.isnan(want), 0, np.inf), gap) if got.size else gap
        if gap.size and gap.max() > best:
            best, place = float(gap.max()), np.unravel_index(int(gap.argmax()), gap.shape)
            text = f"{got[place]} instead of {want[place]} at {tuple(map(int, place))}"
    return text


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0][:200]
