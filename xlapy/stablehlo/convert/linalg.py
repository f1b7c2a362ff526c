"""Triangular factors and systems, and Fourier transforms."""

from __future__ import annotations

from xlapy.hlo.attributes import FftType, Transpose
from xlapy.hlo.graph import Instruction
from xlapy.stablehlo.convert.base import Body, attribute, converts, enumerator, integers
from xlapy.stablehlo.tree import Operation

_TRANSPOSES = {transpose.name: transpose for transpose in Transpose}
_FFT_TYPES = {fft_type.name: fft_type for fft_type in FftType}


@converts("stablehlo.cholesky")
def cholesky(body: Body, operation: Operation) -> Instruction:
    return body.add("cholesky", *body.operands(operation), lower=attribute(operation, "lower", bool, False))


@converts("stablehlo.triangular_solve")
def triangular_solve(body: Body, operation: Operation) -> Instruction:
    return body.add(
        "triangular-solve",
        *body.operands(operation),
        left_side=attribute(operation, "left_side", bool),
        lower=attribute(operation, "lower", bool),
        unit_diagonal=attribute(operation, "unit_diagonal", bool),
        transpose_a=enumerator(operation, "transpose_a", _TRANSPOSES),
    )


@converts("stablehlo.fft")
def fft(body: Body, operation: Operation) -> Instruction:
    return body.add(
        "fft",
        *body.operands(operation),
        fft_type=enumerator(operation, "fft_type", _FFT_TYPES),
        fft_length=integers(operation, "fft_length"),
    )
