"""Singular values. `mode` is the code of a letter: A for square factors, S for thin ones, N for none at all."""

from __future__ import annotations

from xlapy_runtime.lapack.native import NOT_FINITE, WORK, Array, Batch, leading, only_finite
from xlapy_runtime.lapack.targets import target


@target("gesdd", "sdcz")
def divide_and_conquer(
    batch: Batch, a: Array, overwritten: Array, values: Array, u: Array, vt: Array, info: Array, *, mode: int
) -> None:
    finite, _ = only_finite(a, overwritten)
    _clear_factors(mode, u, vt)
    less, more = sorted(a.shape[-2:])
    spaces = (WORK, *batch.real_numbers(_real_workspace(less, more)), batch.integers(8 * max(1, less)))
    batch.call("gesdd", chr(mode), *_operands(a, overwritten, values, u, vt), *spaces, info)
    info[~finite] = NOT_FINITE


@target("gesvd", "sdcz")
def by_qr_iteration(
    batch: Batch, a: Array, overwritten: Array, values: Array, u: Array, vt: Array, info: Array, *, mode: int
) -> None:
    finite, _ = only_finite(a, overwritten)
    _clear_factors(mode, u, vt)
    letter = chr(mode)
    spaces = (WORK, *batch.real_numbers(5 * min(a.shape[-2:])))
    batch.call("gesvd", letter, letter, *_operands(a, overwritten, values, u, vt), *spaces, info)
    info[~finite] = NOT_FINITE


def _operands(a: Array, overwritten: Array, values: Array, u: Array, vt: Array) -> tuple[object, ...]:
    return (*a.shape[-2:], overwritten, leading(a), values, u, leading(u), vt, leading(vt))


def _clear_factors(mode: int, u: Array, vt: Array) -> None:
    """Without factors, their places stay as they are: zeros rather than what the memory held before."""
    if mode == ord("N"):
        u.fill(0)
        vt.fill(0)


def _real_workspace(less: int, more: int) -> int:
    """What the documentation of cgesdd asks for, whatever the mode."""
    return max(7 * less, less * max(5 * less + 7, 2 * more + 2 * less + 1))
