"""What users may pass for convolutions and their dimension numbers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from xlapy import ops
from xlapy.builder import XlaBuilder, XlaOp
from xlapy.hlo.attributes import ConvolutionDimensionNumbers, Precision
from xlapy.hlo.shape import Shape
from xlapy_runtime.errors import ArgumentError


def parameters(*shapes: tuple[int, ...]) -> list[XlaOp]:
    builder = XlaBuilder("convolutions")
    return [builder.parameter(number, Shape.array(np.float32, dims)) for number, dims in enumerate(shapes)]


def proto(**fields: Any) -> Any:
    return SimpleNamespace(**fields)


NHWC = ConvolutionDimensionNumbers(0, 3, (1, 2), 2, 3, (0, 1), 0, 3, (1, 2))


@pytest.mark.parametrize(
    "numbers",
    [
        NHWC,
        ("NHWC", "HWIO", "NHWC"),
        ["NXYC", "XYIO", "NXYC"],
        proto(
            input_batch_dimension=0,
            input_feature_dimension=3,
            input_spatial_dimensions=[1, 2],
            kernel_input_feature_dimension=2,
            kernel_output_feature_dimension=3,
            kernel_spatial_dimensions=[0, 1],
            output_batch_dimension=0,
            output_feature_dimension=3,
            output_spatial_dimensions=[1, 2],
        ),
    ],
    ids=["ours", "labels", "other letters", "proto"],
)
def test_spellings_of_dimension_numbers(numbers: Any) -> None:
    x, k = parameters((2, 8, 9, 3), (3, 3, 3, 5))
    result = ops.ConvGeneralDilated(x, k, (1, 1), [(1, 1), (1, 1)], (1, 1), (1, 1), numbers)
    assert result.shape.dims == (2, 8, 9, 5)
    assert x.builder.build(result).computation.root.attributes["dimension_numbers"] == NHWC


@pytest.mark.parametrize("numbers", [("NHWC", "HWIO"), ("NHWC", "HWIO", "NHWW"), 3, ("NHWC", "HWII", "NHWC")])
def test_dimension_numbers_that_are_none(numbers: Any) -> None:
    x, k = parameters((2, 8, 9, 3), (3, 3, 3, 5))
    with pytest.raises(ArgumentError):
        ops.ConvGeneralDilated(x, k, (1, 1), "SAME", None, None, numbers)


def test_the_forms_of_convolution_agree() -> None:
    x, k = parameters((2, 3, 8, 9), (5, 3, 3, 3))
    plain = ops.Conv(x, k, (1, 1), "SAME")
    others = [
        ops.ConvWithGeneralPadding(x, k, (1, 1), [(1, 1), (1, 1)]),
        ops.ConvGeneral(x, k, (1, 1), "SAME", ("NCHW", "OIHW", "NCHW")),
        ops.ConvWithGeneralDimensions(x, k, (1, 1), "SAME", None),
        ops.ConvGeneralDilated(x, k, None, "SAME"),
        x.conv(k, (1, 1), "SAME"),
    ]
    for other in others:
        assert other.instruction.attributes == plain.instruction.attributes
        assert other.shape == plain.shape


def test_precision_and_element_type_of_the_result() -> None:
    x, k = parameters((1, 2, 8), (4, 2, 3))
    config = proto(operand_precision=[Precision.HIGH, Precision.DEFAULT])
    result = ops.Conv(x, k, precision_config=config, preferred_element_type=np.float64)
    assert str(result.shape) == "f64[1,4,6]"
    assert result.instruction.attributes["operand_precision"] == (Precision.HIGH, Precision.DEFAULT)
