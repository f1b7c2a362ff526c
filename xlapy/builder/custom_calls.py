"""Custom calls: functions that the program finds by name, in the four forms that the builder has for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from xlapy.builder.arguments import as_flag, as_int, as_ints, as_list, as_shape, as_text, described
from xlapy.builder.builder import ComputationLike, XlaBuilder
from xlapy.builder.communication import check_stated
from xlapy.builder.op import XlaOp
from xlapy.builder.operands import Operand, as_op
from xlapy.builder.regions import computation_of
from xlapy.builder.registry import op_function
from xlapy.hlo.attributes import CustomCallApiVersion, OutputOperandAlias
from xlapy.hlo.shape import Shape
from xlapy.hlo.text.backend_config import quoted
from xlapy.support.errors import ArgumentError, ShapeError


@op_function("custom-call")
def CustomCall(
    builder: XlaBuilder,
    call_target_name: bytes | str,
    operands: Sequence[Operand],
    shape: Shape,
    opaque: bytes | str = b"",
    has_side_effect: bool = False,
    schedule: Any = None,
    api_version: Any = CustomCallApiVersion.ORIGINAL,
) -> XlaOp:
    """Calls an external function by name; the result has `shape`. There is one schedule, so `schedule` is not read."""
    return _custom_call(builder, call_target_name, operands, shape, opaque, has_side_effect, api_version)


@op_function()
def CustomCallWithLayout(
    builder: XlaBuilder,
    call_target_name: bytes | str,
    operands: Sequence[Operand],
    shape_with_layout: Shape,
    operand_shapes_with_layout: Sequence[Shape],
    opaque: bytes | str = b"",
    has_side_effect: bool = False,
    schedule: Any = None,
    api_version: Any = CustomCallApiVersion.ORIGINAL,
) -> XlaOp:
    """CustomCall whose target wants its operands and result in the layouts of the shapes."""
    return _custom_call(
        builder,
        call_target_name,
        operands,
        shape_with_layout,
        opaque,
        has_side_effect,
        api_version,
        operand_shapes=operand_shapes_with_layout,
    )


@op_function()
def CustomCallWithAliasing(
    builder: XlaBuilder,
    call_target_name: bytes | str,
    operands: Sequence[Operand],
    shape_with_layout: Shape,
    operand_shapes_with_layout: Sequence[Shape],
    opaque: bytes | str = b"",
    has_side_effect: bool = False,
    output_operand_aliasing: Sequence[Any] = (),
    literal: None = None,
    schedule: Any = None,
    api_version: Any = CustomCallApiVersion.ORIGINAL,
) -> XlaOp:
    """CustomCallWithLayout whose outputs live in operands: pairs (output index, (operand number, operand index))."""
    _refuse_literal(literal)
    return _custom_call(
        builder,
        call_target_name,
        operands,
        shape_with_layout,
        opaque,
        has_side_effect,
        api_version,
        operand_shapes=operand_shapes_with_layout,
        aliasing=output_operand_aliasing,
    )


@op_function()
def CustomCallWithComputation(
    builder: XlaBuilder,
    call_target_name: bytes | str,
    operands: Sequence[Operand],
    computation: ComputationLike,
    shape: Shape,
    opaque: bytes | str = b"",
    has_side_effect: bool = False,
    output_operand_aliasing: Sequence[Any] = (),
    literal: None = None,
    schedule: Any = None,
    api_version: Any = CustomCallApiVersion.ORIGINAL,
) -> XlaOp:
    """CustomCall with a computation for the target; a Python function is recorded for the shapes of the operands."""
    _refuse_literal(literal)
    return _custom_call(
        builder,
        call_target_name,
        operands,
        shape,
        opaque,
        has_side_effect,
        api_version,
        aliasing=output_operand_aliasing,
        computation=computation,
    )


def _refuse_literal(literal: Any) -> None:
    if literal is not None:
        raise ArgumentError("a custom call takes no literal; pass the value as a Constant operand")


def _custom_call(
    builder: XlaBuilder,
    name: bytes | str,
    operands: Sequence[Operand],
    shape: Shape,
    opaque: bytes | str,
    has_side_effect: bool,
    api_version: Any,
    *,
    operand_shapes: Sequence[Shape] | None = None,
    aliasing: Sequence[Any] = (),
    computation: ComputationLike | None = None,
) -> XlaOp:
    if not isinstance(opaque, (bytes, str)):
        raise ArgumentError(f"opaque must be bytes or a string, got {described(opaque)}")
    values = [as_op(builder, operand) for operand in as_list(operands, "the operands")]
    if operand_shapes is not None:
        if len(as_list(operand_shapes, "operand_shapes_with_layout")) != len(values):
            raise ShapeError("operand-shapes", f"{len(operand_shapes)} shapes are given for {len(values)} operands")
        for value, stated in zip(values, operand_shapes, strict=True):
            check_stated(value, stated)
    called = []
    if computation is not None:
        called.append(computation_of(builder, computation, [value.shape for value in values], "called"))
    result = builder.record(
        "custom-call",
        values,
        called=called,
        shape=as_shape(shape, "the shape of the result"),
        target=as_text(name, "the target of a custom call"),
        has_side_effect=as_flag(has_side_effect, "has_side_effect"),
        api_version=_api_version(api_version),
        operand_layout_constraints=tuple(operand_shapes) if operand_shapes is not None else None,
        output_to_operand_aliasing=tuple(map(_alias, as_list(aliasing, "output_operand_aliasing"))),
    )
    if opaque:
        result.instruction.extra["backend_config"] = quoted(opaque)
    if has_side_effect:
        builder.order_effect(result.instruction)
    return result


def _api_version(given: Any) -> CustomCallApiVersion:
    """From our enumeration, one with the same names, or xla_client's number."""
    if isinstance(given, CustomCallApiVersion):
        return given
    versions = list(CustomCallApiVersion)
    name = getattr(given, "name", given)
    for number, version in enumerate(versions, start=1):
        if name in (number, version.value, version.name):
            return version
    raise ArgumentError(f"{described(given)} is not an API version: {', '.join(version.value for version in versions)}")


def _alias(pair: Any) -> OutputOperandAlias:
    if isinstance(pair, OutputOperandAlias):
        return pair
    try:
        output_index, (operand, operand_index) = pair
    except (TypeError, ValueError):
        raise ArgumentError(
            f"an alias is (output index, (operand number, operand index)), not {described(pair)}"
        ) from None
    return OutputOperandAlias(_index(output_index), as_int(operand, "an operand number"), _index(operand_index))


def _index(index: Iterable[int]) -> tuple[int, ...]:
    return as_ints(index, "a shape index")
