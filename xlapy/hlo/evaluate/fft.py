"""Fourier transforms, by numpy in double precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xlapy.hlo.attributes import FftType
from xlapy.hlo.element_types import complex_type_of, real_part_type
from xlapy.hlo.evaluate.base import evaluator
from xlapy.hlo.evaluate.numerics import Array, element_type, narrow
from xlapy.hlo.ops.fft import half_size

_TRANSFORMS: dict[FftType, Callable[..., Any]] = {
    FftType.FFT: np.fft.fftn,
    FftType.IFFT: np.fft.ifftn,
    FftType.RFFT: np.fft.rfftn,
    FftType.IRFFT: np.fft.irfftn,
}


@evaluator("fft")
def fft(operand: Array, *, fft_type: FftType, fft_length: tuple[int, ...]) -> Array:
    given = element_type(operand)
    target = complex_type_of(given) if fft_type is FftType.RFFT else given
    if fft_type is FftType.IRFFT:
        target = real_part_type(given)
    axes = range(operand.ndim - len(fft_length), operand.ndim)
    if not all(fft_length) or not operand.size:
        sizes = [*operand.shape[: -len(fft_length)], *fft_length]
        if fft_type is FftType.RFFT:
            sizes[-1] = half_size(fft_length[-1])
        return np.zeros(sizes, target.dtype)
    wide = operand.astype(np.complex128 if given.is_complex else np.float64)
    with np.errstate(all="ignore"):
        return narrow(_TRANSFORMS[fft_type](wide, s=fft_length, axes=[*axes]), target)
