"""Quantized types for tests: the formulas of StableHLO's specification in numpy, and the reference implementation of
StableHLO that jaxlib contains, which verifies quantized programs and interprets some of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import jaxlib._jax as _jax
import ml_dtypes
import numpy as np
from jax._src.interpreters import mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as reference

Array = np.ndarray[Any, Any]

STORAGE = {
    "i2": ml_dtypes.int2,
    "u2": ml_dtypes.uint2,
    "i4": ml_dtypes.int4,
    "u4": ml_dtypes.uint4,
    "i8": np.int8,
    "u8": np.uint8,
    "i16": np.int16,
    "u16": np.uint16,
    "i32": np.int32,
    "u32": np.uint32,
}
EXPRESSED = {"f8E5M2": ml_dtypes.float8_e5m2, "bf16": ml_dtypes.bfloat16, "f16": np.float16} | {
    "f32": np.float32,
    "f64": np.float64,
}


@dataclass(frozen=True)
class Quantized:
    """`!quant.uniform<storage<low:high>:expressed:axis, {scales:zeros}>`."""

    scales: tuple[float, ...] = (0.1,)
    zeros: tuple[int, ...] = (0,)
    storage: str = "i8"
    expressed: str = "f32"
    axis: int | None = None
    bounds: tuple[int, int] | None = None

    def __str__(self) -> str:
        parameters = ",".join(f"{scale!r}:{zero}" for scale, zero in zip(self.scales, self.zeros, strict=True))
        low_high = "" if self.bounds is None else f"<{self.bounds[0]}:{self.bounds[1]}>"
        axis, parameters = ("", parameters) if self.axis is None else (f":{self.axis}", "{" + parameters + "}")
        return f"!quant.uniform<{self.storage}{low_high}:{self.expressed}{axis}, {parameters}>"

    def tensor(self, *dims: int) -> str:
        return f"tensor<{''.join(f'{size}x' for size in dims)}{self}>"

    def stored(self, values: Any) -> Array:
        return np.array(values).astype(STORAGE[self.storage])

    @property
    def low_high(self) -> tuple[int, int]:
        bits = int(self.storage[1:])
        return self.bounds or (
            (0, 2**bits - 1) if self.storage[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        )

    def spread(self, values: Sequence[float], dims: Sequence[int], dtype: Any) -> Array:
        """compute_scales and compute_zero_points: a parameter for each index."""
        found = np.zeros(dims, dtype)
        for index in np.ndindex(*dims):
            found[index] = values[0 if self.axis is None else index[self.axis]]
        return found

    def dequantize(self, stored: Array) -> Array:
        dtype = EXPRESSED[self.expressed]
        difference = stored.astype(np.int64) - self.spread(self.zeros, stored.shape, np.int64)
        return difference.astype(np.float64).astype(dtype) * self.spread(self.scales, stored.shape, dtype)

    def quantize(self, floats: Array) -> Array:
        dtype = EXPRESSED[self.expressed]
        assert floats.dtype == dtype
        steps = np.rint(floats / self.spread(self.scales, floats.shape, dtype))
        low, high = self.low_high
        zeros = self.spread(self.zeros, floats.shape, np.int64)
        sums = [
            0 + int(zero) if np.isnan(step) else min(max(float(step), -(2.0**60)), 2.0**60).__int__() + int(zero)
            for step, zero in zip(steps.astype(np.float64).flat, zeros.flat, strict=True)
        ]
        return self.stored([min(max(total, low), high) for total in sums]).reshape(floats.shape)

    def every(self) -> Array:
        """Every stored integer within the bounds."""
        low, high = self.low_high
        return self.stored(np.arange(low, high + 1))

    def on(self, axis: int | None) -> Quantized:
        return dataclasses.replace(self, axis=axis)


def program(operands: Sequence[str], line: str, results: Sequence[str]) -> str:
    """A program of one operation on %0, %1 ..., in the generic form: `"stablehlo.add"(%0, %1)`."""
    arguments = ", ".join(f"%{number}: {type}" for number, type in enumerate(operands))
    names = ", ".join(f"%r{number}" for number in range(len(results)))
    types = ", ".join(results)
    return (
        f"func.func @main({arguments}) -> ({types}) {{\n"
        f"  {names} = {line} : ({', '.join(operands)}) -> ({types})\n"
        f"  return {names} : {types}\n}}\n"
    )


_SEED = "func.func @main(%0: tensor<{0}>) -> tensor<{0}> {{ return %0 : tensor<{0}> }}".format(Quantized())
_VERSION = "1.17.0"


@cache
def _context() -> ir.Context:
    """A context that knows quantized types: reading an artifact that has one loads their dialect."""
    context = mlir.make_ir_context()
    artifact = _jax.mlir.serialize_portable_artifact(_SEED, _VERSION)
    with context:
        reference.deserialize_portable_artifact(context, artifact)
    return context


def refusal(text: str) -> str:
    """Why StableHLO's own verifier refuses a program; the empty string if it does not."""
    with _context() as context:
        messages: list[str] = []
        with context.attach_diagnostic_handler(lambda found: messages.append(str(found.message)) is None):
            try:
                ir.Module.parse(text).operation.verify()
            except ir.MLIRError as error:
                return "; ".join(messages) or str(error)
    return ""


def interpreted(text: str, *arguments: Array) -> list[Array]:
    """The results of a program by StableHLO's own interpreter."""
    with _context():
        module = ir.Module.parse(text)
        values = [ir.DenseElementsAttr.get(np.ascontiguousarray(argument)) for argument in arguments]
        return [np.array(found) for found in reference.eval_module(module, values)]
