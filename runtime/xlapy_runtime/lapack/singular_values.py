"""Singular values. `mode` is the code of a letter: A for square factors, S for thin ones, N for none at all."""

from __future__ import annotations

from xlapy_runtime.lapack.native import WORK, Batch, leading
from xlapy_runtime.lapack.plans import Place
from xlapy_runtime.lapack.signatures import require_sizes
from xlapy_runtime.lapack.targets import target

_FACTORS = "t[m,n] -> t[m,n], real[k], t[m,u], t[v,n], s32[]"


@target("gesdd", "sdcz", _FACTORS, mode="ASN")
def divide_and_conquer(
    batch: Batch, a: Place, overwritten: Place, values: Place, u: Place, vt: Place, info: Place, *, mode: int
) -> None:
    finite = batch.only_finite(a, overwritten)
    _prepare_factors(batch, mode, u, vt)
    less, more = sorted(a.shape[-2:])
    spaces = (WORK, *batch.real_numbers(_real_workspace(less, more)), batch.integers(8 * max(1, less)))
    batch.call("gesdd", chr(mode), *_operands(a, overwritten, values, u, vt), *spaces, info)
    batch.report_others(finite, info)


@target("gesvd", "sdcz", _FACTORS, mode="ASN")
def by_qr_iteration(
    batch: Batch, a: Place, overwritten: Place, values: Place, u: Place, vt: Place, info: Place, *, mode: int
) -> None:
    finite = batch.only_finite(a, overwritten)
    _prepare_factors(batch, mode, u, vt)
    letter = chr(mode)
    spaces = (WORK, *batch.real_numbers(5 * min(a.shape[-2:])))
    batch.call("gesvd", letter, letter, *_operands(a, overwritten, values, u, vt), *spaces, info)
    batch.report_others(finite, info)


def _operands(a: Place, overwritten: Place, values: Place, u: Place, vt: Place) -> tuple[object, ...]:
    return (*a.shape[-2:], overwritten, leading(a), values, u, leading(u), vt, leading(vt))


def _prepare_factors(batch: Batch, mode: int, u: Place, vt: Place) -> None:
    """Without factors, their places stay as they are: zeros rather than what the memory held before."""
    if mode == ord("N"):
        batch.clear(u)
        batch.clear(vt)
        return
    rows, columns = u.shape[-2], vt.shape[-1]
    wanted = (rows, columns) if mode == ord("A") else (min(rows, columns),) * 2
    require_sizes((u.shape[-1], vt.shape[-2]) == wanted, "u is m, and v is n, or both are k with mode S", u, vt)


def _real_workspace(less: int, more: int) -> int:
    """What the documentation of cgesdd asks for, whatever the mode."""
    return max(7 * less, less * max(5 * less + 7, 2 * more + 2 * less + 1))
