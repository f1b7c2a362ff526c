"""Discrete Fourier transforms."""

from __future__ import annotations

from xlapy.hlo.attributes import FftType
from xlapy.hlo.element_types import COMPLEX, F32, F64, complex_type_of, real_part_type
from xlapy.hlo.ops.spec import PURE, op
from xlapy.hlo.shape import UNBOUNDED, Shape
from xlapy.support.errors import ShapeError

MOST_AXES = 3


@op("fft", traits=PURE)
def fft(operand: Shape, *, fft_type: FftType, fft_length: tuple[int, ...]) -> Shape:
    """Fourier transforms over the innermost dimensions, one for each of `fft_length`, their sizes in the time domain.

    FFT and IFFT map complex to complex. RFFT maps real to complex and leaves out the upper half of the innermost
    dimension, which is the reversed conjugate of the lower one; IRFFT is its inverse. Inverses divide by the number of
    elements that they transform.

    Along a bounded dimension the transform still has the length stated: elements that do not exist at run time count as
    zero, and the result is as large as its bound.

    length-count [B1 C3]: there are one to three lengths.
    rank [B1 C1]: the operand has as many dimensions.
    element-type [B2 C2]: FFT, IFFT and IRFFT take complex numbers, RFFT takes f32 or f64.
    real-lengths [C4]: the lengths of RFFT are the sizes of the operand, those of IRFFT the sizes of the result.
    complex-lengths: the lengths of FFT and IFFT are the sizes of the operand.
    half-size [C5]: the innermost dimension of the operand of IRFFT is half the last length, rounded down, plus 1.
    """
    count = len(fft_length)
    if not 1 <= count <= MOST_AXES:
        raise ShapeError("length-count", f"{count} lengths are given, not one to three")
    if operand.rank < count:
        raise ShapeError("rank", f"{operand} has fewer dimensions than there are lengths, {list(fft_length)}")
    if operand.element_type not in (COMPLEX if fft_type is not FftType.RFFT else (F32, F64)):
        wanted = "f32 or f64" if fft_type is FftType.RFFT else "c64 or c128"
        raise ShapeError("element-type", f"{fft_type} takes {wanted}, not {operand}")
    slug = "real-lengths" if fft_type in (FftType.RFFT, FftType.IRFFT) else "complex-lengths"
    own = count - 1 if fft_type is FftType.IRFFT else count
    for dim, length in zip(range(operand.rank - count, operand.rank), fft_length[:own], strict=False):
        if operand.dims[dim] not in (length, UNBOUNDED):
            raise ShapeError(slug, f"dimension {dim} of {operand} is not {length}, as the lengths say")
    inner, length = operand.dims[-1], fft_length[-1]
    if fft_type is FftType.RFFT:
        return operand.with_type(complex_type_of(operand.type)).with_dim(operand.rank - 1, half_size(inner))
    if fft_type is FftType.IRFFT:
        if inner not in (half_size(length), UNBOUNDED):
            raise ShapeError("half-size", f"dimension {operand.rank - 1} of {operand} is not {half_size(length)}")
        return operand.with_type(real_part_type(operand.type)).with_dim(operand.rank - 1, length, dynamic=False)
    return operand.without_layout()


def half_size(length: int) -> int:
    """How many elements of a spectrum of a real array of `length` are kept."""
    return length if length in (0, UNBOUNDED) else length // 2 + 1
