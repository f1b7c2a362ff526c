"""Custom calls in their four forms: layouts, aliases, computations, effects and versions of the interface."""

from __future__ import annotations

import enum

import numpy as np
import pytest

from xlapy import ops
from xlapy.builder import XlaBuilder, XlaOp
from xlapy.hlo.attributes import CustomCallApiVersion, OutputOperandAlias
from xlapy.hlo.shape import Shape

VECTOR = Shape.array(np.float32, (4,))


def started() -> tuple[XlaBuilder, XlaOp]:
    builder = XlaBuilder("calls")
    return builder, builder.parameter(0, VECTOR)


def test_custom_calls() -> None:
    builder, x = started()
    call = ops.CustomCall(builder, b"myfunc", [x, 1.0], VECTOR, opaque=b'a"b\n', has_side_effect=True)
    assert (call.shape, call.instruction.attributes["target"]) == (VECTOR, "myfunc")
    assert call.instruction.extra["backend_config"] == r'"a\"b\n"'
    laid_out = ops.CustomCallWithLayout(builder, "f", [x], VECTOR, [VECTOR])
    assert laid_out.instruction.attributes["operand_layout_constraints"] == (VECTOR,)
    aliased = ops.CustomCallWithAliasing(builder, "f", [x], VECTOR, [VECTOR], output_operand_aliasing=[((), (0, ()))])
    assert aliased.instruction.attributes["output_to_operand_aliasing"] == (OutputOperandAlias((), 0, ()),)
    computing = ops.CustomCallWithComputation(builder, "f", [x], ops.Neg, VECTOR)
    assert [called.name for called in computing.instruction.called] == ["Neg"]
    assert [instruction.opcode for instruction in builder.build(x).computation if instruction.has_effect] == [
        "custom-call"
    ]


def test_a_pure_custom_call_is_dropped_when_unused() -> None:
    builder, x = started()
    ops.CustomCall(builder, "f", [x], VECTOR)
    assert len(builder.build(x).computation) == 1


class Version(enum.Enum):
    API_VERSION_TYPED_FFI = 4


@pytest.mark.parametrize("given", [4, "API_VERSION_TYPED_FFI", Version.API_VERSION_TYPED_FFI])
def test_api_versions(given: object) -> None:
    builder, _ = started()
    call = ops.CustomCall(builder, "f", [], VECTOR, api_version=given)
    assert call.instruction.attributes["api_version"] is CustomCallApiVersion.TYPED_FFI
