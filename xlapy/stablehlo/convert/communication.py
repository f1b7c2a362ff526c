"""What reaches outside: infeed, outfeed, send, recv, process ids, custom calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlapy.hlo.attributes import CustomCallApiVersion, OutputOperandAlias
from xlapy.hlo.element_types import U32
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.ops import OPS
from xlapy.hlo.shape import TOKEN, Shape
from xlapy.hlo.specialize import DYNAMIC
from xlapy.hlo.text.backend_config import quoted
from xlapy.stablehlo.attributes import attribute_text
from xlapy.stablehlo.convert.base import Body, attribute, converts, fields, integers
from xlapy.stablehlo.convert.deferred import defer
from xlapy.stablehlo.tree import Attributes, Operation, Symbol
from xlapy.support.errors import ParseError, ShapeError

API_VERSIONS = dict(enumerate(CustomCallApiVersion, start=1))
"""By the number in the text."""

DEVICE_TO_DEVICE, DEVICE_TO_HOST, HOST_TO_DEVICE = 1, 2, 3
"""Types of a channel handle."""

IDENTITY_TARGETS = frozenset({"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape"})
"""Custom calls that only tell a partitioner where an array lives."""


@converts("stablehlo.infeed")
def infeed(body: Body, operation: Operation) -> Instruction:
    data = _packed_shape(_all_but_token(operation))
    config = attribute(operation, "infeed_config", str, "")
    received = body.add("infeed", *body.operands(operation), shape=Shape.tuple([data, TOKEN]), infeed_config=config)
    return _flattened(body, received, len(operation.result_types))


@converts("stablehlo.outfeed")
def outfeed(body: Body, operation: Operation) -> Instruction:
    *data, token = body.operands(operation)
    return body.add("outfeed", body.pack(data), token, outfeed_config=attribute(operation, "outfeed_config", str, ""))


@converts("stablehlo.send")
def send(body: Body, operation: Operation) -> Instruction:
    *data, token = body.operands(operation)
    channel = _channel(operation)
    started = body.add("send", body.pack(data), token, **channel)
    return body.add("send-done", started, **channel)


@converts("stablehlo.recv")
def recv(body: Body, operation: Operation) -> Instruction:
    channel = _channel(operation)
    data = _packed_shape(_all_but_token(operation))
    shape = Shape.tuple([data, Shape.scalar(U32), TOKEN])
    started = body.add("recv", *body.operands(operation), shape=shape, **channel)
    return _flattened(body, body.add("recv-done", started, **channel), len(operation.result_types))


def _all_but_token(operation: Operation) -> tuple[Shape, ...]:
    """The types of what is received. Raises unless they are arrays, with a token behind them."""
    results = operation.result_types
    some, arrays, token = _RECEIVING[operation.mnemonic]
    if not results:
        raise ShapeError(f"{operation.mnemonic}.{some}", "there is no result, not even a token")
    if not results[-1].is_token:
        raise ShapeError(f"{operation.mnemonic}.{token}", "the last result is not a token")
    if any(not (shape.is_array or shape.is_tuple) for shape in results[:-1]):
        raise ShapeError(f"{operation.mnemonic}.{arrays}", "a result before the last is not an array")
    return results[:-1]


_RECEIVING = {"infeed": ("C1", "C2", "C3"), "recv": ("C2", "C3", "C4")}
"""Labels: there are results, arrays, and at last a token."""


def _packed_shape(shapes: tuple[Shape, ...]) -> Shape:
    return shapes[0] if len(shapes) == 1 else Shape.tuple(shapes)


def _flattened(body: Body, received: Instruction, count: int) -> Instruction:
    """(data, token), where the data of several results is a tuple, as one flat tuple of all results."""
    if count == 2:
        return received
    data = body.add("get-tuple-element", received, index=0)
    parts = [body.add("get-tuple-element", data, index=index) for index in range(count - 1)]
    token = body.add("get-tuple-element", received, index=1)
    return body.pack([*parts, token])


def _channel(operation: Operation) -> dict[str, Any]:
    handle = fields(operation, "channel_handle")
    is_host = attribute(operation, "is_host_transfer", bool, False)
    wanted = _HOST_TYPES[operation.mnemonic] if is_host else DEVICE_TO_DEVICE
    kind = attribute(handle, "type", int, wanted)
    if kind not in (0, wanted):  # 0 leaves it open
        raise ShapeError(
            f"{operation.mnemonic}.C1",
            f"the channel has type {kind}; with is_host_transfer = {is_host}, it is {wanted}",
        )
    return {"channel_id": attribute(handle, "handle", int), "is_host_transfer": is_host}


_HOST_TYPES = {"send": DEVICE_TO_HOST, "recv": HOST_TO_DEVICE}


@converts("stablehlo.replica_id")
def replica_id(body: Body, operation: Operation) -> Instruction:
    return body.add("replica-id")


@converts("stablehlo.partition_id")
def partition_id(body: Body, operation: Operation) -> Instruction:
    return body.add("partition-id")


OWN_TARGETS = "xlapy."
"""Begins the target of a custom call that stands for an op of ours, which StableHLO does not have."""


def _own_op(body: Body, operation: Operation, target: str, operands: Sequence[Instruction]) -> Instruction:
    """The op that is named behind `xlapy.`, with its attributes in `backend_config`."""
    name = target.removeprefix(OWN_TARGETS).replace("_", "-")
    if name not in OPS:
        raise ParseError(f"{operation.name}: xlapy has no op {name!r}")
    return body.add(name, *operands, **attribute(operation, "backend_config", dict, {}))


@converts("stablehlo.custom_call")
def custom_call(body: Body, operation: Operation) -> Instruction:
    target = attribute(operation, "call_target_name", str)
    operands = body.operands(operation)
    results = operation.result_types
    if target in IDENTITY_TARGETS and len(operands) == 1 and results == (operands[0].shape,):
        return operands[0]
    if target.startswith(OWN_TARGETS):
        return _own_op(body, operation, target, operands)
    if target in DYNAMIC:
        called = _called_computations(body, operation)
        return defer(body, target, operation, _own_attributes(operation), operands, called)
    version = attribute(operation, "api_version", int, 1)
    if version not in API_VERSIONS:
        raise ParseError(f"{operation.name} has no api_version {version}; there are 1 to {len(API_VERSIONS)}")
    call = body.add(
        "custom-call",
        *operands,
        called=_called_computations(body, operation),
        shape=_packed_shape(results),
        target=target,
        has_side_effect=attribute(operation, "has_side_effect", bool, False),
        api_version=API_VERSIONS[version],
        output_to_operand_aliasing=_aliases(operation),
    )
    config = operation.attributes.get("backend_config")
    if config:
        call.extra["backend_config"] = quoted(config) if isinstance(config, str) else attribute_text(config)
    return call


_COMMON = frozenset(
    (
        "api_version",
        "backend_config",
        "call_target_name",
        "called_computations",
        "has_side_effect",
        "output_operand_aliases",
    )
)
"""Attributes that custom calls have, whatever their target."""


def _own_attributes(operation: Operation) -> Attributes:
    """The attributes that only this target has."""
    return {name: value for name, value in operation.attributes.items() if name not in _COMMON}


def _called_computations(body: Body, operation: Operation) -> list[Computation]:
    symbols = operation.attributes.get("called_computations", ())
    if not isinstance(symbols, tuple) or not all(isinstance(symbol, Symbol) for symbol in symbols):
        raise ParseError(f"{operation.name}: called_computations lists symbols, like [@f]")
    return [body.functions[symbol.name] for symbol in symbols]


def _aliases(operation: Operation) -> tuple[OutputOperandAlias, ...]:
    aliases = []
    for written in operation.attributes.get("output_operand_aliases", ()):
        alias = Operation(f"{operation.name} (output_operand_aliases)", operation.place)
        alias.attributes = written if isinstance(written, dict) else {}
        aliases.append(
            OutputOperandAlias(
                integers(alias, "output_tuple_indices", ()),
                attribute(alias, "operand_index", int),
                integers(alias, "operand_tuple_indices", ()),
            )
        )
    return tuple(aliases)
