"""UniformQuantize and UniformDequantize give the numbers of StableHLO's operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xlapy
from xlapy import ops
from xlapy.builder import XlaBuilder, XlaOp
from xlapy.support.errors import ArgumentError, ShapeError

FLOATS = np.array([[-7.25, -0.05, 0.0], [0.15, 3.14, 1e30], [np.inf, -np.inf, np.nan]], np.float32)


def run(record: Callable[[XlaOp], XlaOp], argument: Any) -> Any:
    builder = XlaBuilder("quantized")
    computation = builder.build(record(ops.Parameter(builder, 0, xlapy.Shape.of(argument))))
    result, expected = xlapy.compile(computation)(argument), xlapy.evaluate(computation, argument)
    assert result.dtype == expected.dtype and result.tolist() == expected.tolist()
    return result


def of_stablehlo(operation: str, operand: str, result: str, argument: Any) -> Any:
    return xlapy.evaluate(
        f"""func.func @main(%x: {operand}) -> {result} {{
          %r = stablehlo.{operation} %x : ({operand}) -> {result}
          return %r : {result} }}""",
        argument,
    )


CASES: list[tuple[str, np.dtype[Any], dict[str, Any]]] = [
    ("i8:f32, 0.1:-30", np.dtype(np.int8), {"scales": 0.1, "zero_points": -30}),
    ("u8:f32, 0.5", np.dtype(np.uint8), {"scales": 0.5}),
    ("i4:f32, 2.0:3", np.dtype(ml_dtypes.int4), {"scales": 2, "zero_points": 3}),
    ("i16:f32:1, {0.5, 0.25:7, 2.0:-9}", np.dtype(np.int16),
     {"scales": [0.5, 0.25, 2], "zero_points": [0, 7, -9], "quantization_dimension": 1}),
    ("i8<-100:90>:f32:0, {0.5, 0.25, 0.125}", np.dtype(np.int8),
     {"scales": [0.5, 0.25, 0.125], "quantization_dimension": 0, "storage_min": -100, "storage_max": 90}),
]  # fmt: skip


@pytest.mark.parametrize(("type", "storage", "options"), CASES, ids=[type for type, _, _ in CASES])
def test_both_ways(type: str, storage: np.dtype[Any], options: dict[str, Any]) -> None:
    floats, quantized = "tensor<3x3xf32>", f"tensor<3x3x!quant.uniform<{type}>>"
    stored = run(lambda x: ops.UniformQuantize(x, storage, **options), FLOATS)
    assert stored.dtype == storage
    assert stored.tolist() == of_stablehlo("uniform_quantize", floats, quantized, FLOATS).tolist()
    rest = {name: value for name, value in options.items() if not name.startswith("storage")}
    meant = run(lambda x: x.uniform_dequantize(np.float32, **rest), stored)
    assert meant.tobytes() == of_stablehlo("uniform_dequantize", quantized, floats, stored).tobytes()


WRONG: list[tuple[type[Exception], str, Callable[[XlaOp], Any]]] = [
    (ShapeError, "int32 does not store|s32 does not store", lambda x: ops.UniformQuantize(x, np.int32, 0.1)),
    (ShapeError, "does not store", lambda x: ops.UniformQuantize(ops.ConvertElementType(x, np.int8), np.int8, 0.1)),
    (ShapeError, "does not store", lambda x: ops.UniformDequantize(x, np.float32, 0.1)),
    (ShapeError, "not positive", lambda x: ops.UniformQuantize(x, np.int8, 0.0)),
    (ShapeError, "not positive", lambda x: ops.UniformQuantize(x, np.int8, np.inf)),
    (ShapeError, "zero point is outside", lambda x: ops.UniformQuantize(x, np.int8, 0.1, 128)),
    (ShapeError, "single ones", lambda x: ops.UniformQuantize(x, np.int8, [0.1, 0.2, 0.3])),
    (ShapeError, "single ones", lambda x: ops.UniformQuantize(x, np.int8, [0.1, 0.2], 0, 1)),
    (ShapeError, "is outside", lambda x: ops.UniformQuantize(x, np.int8, 0.1, 0, 2)),
    (ShapeError, "no range", lambda x: ops.UniformQuantize(x, np.int8, 0.1, storage_min=-129)),
    (ShapeError, "not an array", lambda x: ops.UniformQuantize(ops.Tuple(x.builder, [x]), np.int8, 0.1)),
    (ArgumentError, "integers", lambda x: ops.UniformQuantize(x, np.int8, 0.1, 0.5)),
    (ArgumentError, "numbers", lambda x: ops.UniformQuantize(x, np.int8, "x")),
]


@pytest.mark.parametrize(("error", "message", "record"), WRONG, ids=range(len(WRONG)))
def test_what_is_refused(error: type[Exception], message: str, record: Callable[[XlaOp], Any]) -> None:
    builder = XlaBuilder("wrong")
    with pytest.raises(error, match=message):
        record(ops.Parameter(builder, 0, xlapy.Shape.of(FLOATS)))
