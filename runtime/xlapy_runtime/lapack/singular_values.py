"""Singular values. `mode` is the code of a letter: A for square factors, S for thin ones, N for none at all."""

from __future__ import annotations

from xlapy_runtime.lapack.native import WORK, Batch, leading
from xlapy_runtime.lapack.plans import Place
from xlapy_runtime.lapack.targets import target


@target("gesdd", "sdcz")
def divide_and_conquer(
    batch: Batch, a: Place, overwritten: Place, values: Place, u: Place, vt: Place, info: Place, *, mode: int
) -> None:
    finite = batch.only_finite(a, overwritten)
    _clear_factors(batch, mode, u, vt)
    less, more = sorted(a.shape[-2:])
    spaces = (WORK, *batch.real_numbers(_real_workspace(less, more)), batch.integers(8 * max(1, less)))
    batch.call("gesdd", chr(mode), *_operands(a, overwritten, values, u, vt), *spaces, info)
    batch.report_others(finite, info)


@target("gesvd", "sdcz")
def by_qr_iteration(
    batch: Batch, a: Place, overwritten: Place, values: Place, u: Place, vt: Place, info: Place, *, mode: int
) -> None:
    finite = batch.only_finite(a, overwritten)
    _clear_factors(batch, mode, u, vt)
    letter = chr(mode)
    spaces = (WORK, *batch.real_numbers(5 * min(a.shape[-2:])))
    batch.call("gesvd", letter, letter, *_operands(a, overwritten, values, u, vt), *spaces, info)
    batch.report_others(finite, info)


def _operands(a: Place, overwritten: Place, values: Place, u: Place, vt: Place) -> tuple[object, ...]:
    return (*a.shape[-2:], overwritten, leading(a), values, u, leading(u), vt, leading(vt))


def _clear_factors(batch: Batch, mode: int, u: Place, vt: Place) -> None:
    """Without factors, their places stay as they are: zeros rather than what the memory held before."""
    if mode == ord("N"):
        batch.clear(u)
        batch.clear(vt)


def _real_workspace(less: int, more: int) -> int:
    """What the documentation of cgesdd asks for, whatever the mode."""
    return max(7 * less, less * max(5 * less + 7, 2 * more + 2 * less + 1))
