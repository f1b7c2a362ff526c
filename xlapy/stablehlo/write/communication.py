"""Communication, custom calls, and the operations that these stand for, as StableHLO."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlapy.hlo.graph import Instruction
from xlapy.hlo.shape import TOKEN
from xlapy.stablehlo.attributes import attribute_text, string_text
from xlapy.stablehlo.convert.communication import DEVICE_TO_DEVICE, DEVICE_TO_HOST, HOST_TO_DEVICE
from xlapy.stablehlo.convert.deferred import OPERATIONS, config_attributes
from xlapy.stablehlo.write.base import (
    EMITTERS,
    Tree,
    Writer,
    element,
    integers_text,
    leaves,
    list_text,
    regrown,
    unpacked_shapes,
)
from xlapy.stablehlo.write.forms import Attributes

Trees = Sequence[Tree]
emits = EMITTERS.register


@emits("infeed")
def infeed(w: Writer, i: Instruction, operands: Trees) -> Tree:
    data = i.shape.parts[0]
    attributes = {"infeed_config": string_text(i.attributes["infeed_config"])}
    *names, token = w.simple("stablehlo.infeed", leaves(operands[0]), [TOKEN], [*data.leaves(), TOKEN], attributes)
    return regrown(names, data), token


@emits("outfeed")
def outfeed(w: Writer, i: Instruction, operands: Trees) -> Tree:
    attributes = {"outfeed_config": string_text(i.attributes["outfeed_config"])}
    return _sent(w, "stablehlo.outfeed", i, operands, attributes)


@emits("send")
def send(w: Writer, i: Instruction, operands: Trees) -> Tree:
    """All of it is written here; send-done returns the token that this gives."""
    attributes = _channel(i, DEVICE_TO_HOST)
    return operands[0], "", _sent(w, "stablehlo.send", i, operands, attributes)


def _sent(w: Writer, name: str, i: Instruction, operands: Trees, attributes: Attributes) -> str:
    shapes = [leaf for operand in i.operands for leaf in operand.shape.leaves()]
    values = [leaf for operand in operands for leaf in leaves(operand)]
    return w.simple(name, values, shapes, [TOKEN], attributes)[0]


@emits("recv")
def recv(w: Writer, i: Instruction, operands: Trees) -> Tree:
    """All of it is written here; recv-done returns what this gives."""
    data = i.shape.parts[0]
    results = [*data.leaves(), TOKEN]
    *names, token = w.simple("stablehlo.recv", leaves(operands[0]), [TOKEN], results, _channel(i, HOST_TO_DEVICE))
    return regrown(names, data), "", token


@emits("send-done")
def send_done(w: Writer, i: Instruction, operands: Trees) -> Tree:
    return element(operands[0], 2)


@emits("recv-done")
def recv_done(w: Writer, i: Instruction, operands: Trees) -> Tree:
    return element(operands[0], 0), element(operands[0], 2)


def _channel(i: Instruction, host_type: int) -> Attributes:
    host = i.attributes["is_host_transfer"]
    kind = host_type if host else DEVICE_TO_DEVICE
    return {
        "channel_handle": f"#stablehlo.channel_handle<handle = {i.attributes['channel_id']}, type = {kind}>",
        "is_host_transfer": str(host).lower(),
    }


@emits("replica-id", "partition-id")
def process_id(w: Writer, i: Instruction, operands: Trees) -> Tree:
    return w.one(f"stablehlo.{i.spec.python_name}", i, operands)


def deferred(w: Writer, i: Instruction, operands: Trees) -> Tree:
    """An operation whose sizes are operands; what is a custom call in StableHLO too has attributes of its own."""
    target = i.attributes["target"]
    attributes = {name: _spelled(name, value) for name, value in config_attributes(i).items()}
    name = target
    if target not in OPERATIONS:
        name = "stablehlo.custom_call"
        attributes["call_target_name"] = string_text(target)
        attributes["has_side_effect"] = str(i.attributes["has_side_effect"]).lower()
        attributes["api_version"] = "2 : i32"
        if i.called:
            attributes["called_computations"] = f"[{', '.join(map(w.function, i.called))}]"
    shapes = [operand.shape for operand in i.operands]
    names = w.simple(
        name, [leaf for tree in operands for leaf in leaves(tree)], shapes, unpacked_shapes(i.shape), attributes
    )
    return w.packed(names, i.shape)


_ENUMERATIONS = frozenset({"rng_distribution", "rng_algorithm"})


def _spelled(name: str, value: Any) -> str:
    """An attribute of such an operation, as MLIR wants it."""
    if name in _ENUMERATIONS:
        return f"#stablehlo<{name} {value}>"
    if name == "precision_config":
        return f"[{', '.join(f'#stablehlo<precision {word}>' for word in value)}]"
    if isinstance(value, dict):
        fields = (f"{key} = {list_text(inner) if isinstance(inner, tuple) else inner}" for key, inner in value.items())
        return f"#stablehlo.gather<{', '.join(fields)}>"
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        lhs, rhs, result = (f"[{', '.join(map(str, labels))}]" for labels in value)
        return f"#stablehlo.conv<{lhs}x{rhs}->{result}>"
    if isinstance(value, tuple) and all(isinstance(item, bool) for item in value) and value:
        return f"array<i1: {', '.join(str(item).lower() for item in value)}>"
    if isinstance(value, tuple):
        return integers_text(value)
    return attribute_text(value)
