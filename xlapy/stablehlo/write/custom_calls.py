"""How custom calls are written in StableHLO."""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.hlo.attributes import CustomCallApiVersion
from xlapy.hlo.graph import Instruction
from xlapy.hlo.shape import Shape
from xlapy.hlo.specialize import is_dynamic_call
from xlapy.hlo.text.backend_config import unquoted
from xlapy.stablehlo.attributes import string_text
from xlapy.stablehlo.convert.custom_calls import API_VERSIONS
from xlapy.stablehlo.reader import read_attribute
from xlapy.stablehlo.write.base import EMITTERS, Tree, Writer, list_text, unpacked_shapes
from xlapy.stablehlo.write.communication import deferred
from xlapy.stablehlo.write.forms import Attributes
from xlapy.support.errors import ParseError

Trees = Sequence[Tree]


@EMITTERS.register("custom-call")
def custom_call(w: Writer, i: Instruction, operands: Trees) -> Tree:
    if is_dynamic_call(i):
        return deferred(w, i, operands)
    shapes = [operand.shape for operand in i.operands]
    values = [w.materialized(tree, shape) for tree, shape in zip(operands, shapes, strict=True)]
    version = i.attributes["api_version"]
    numbers = {known: number for number, known in API_VERSIONS.items()}
    attributes = {
        "call_target_name": string_text(i.attributes["target"]),
        "has_side_effect": str(i.attributes["has_side_effect"]).lower(),
        "api_version": f"{numbers[version]} : i32",
    }
    if i.called:
        attributes["called_computations"] = f"[{', '.join(map(w.function, i.called))}]"
    config = i.extra.get("backend_config")
    if config:
        attributes["backend_config"] = _config_text(config, version)
    aliases = i.attributes["output_to_operand_aliasing"]
    if aliases:
        texts = [
            f"#stablehlo.output_operand_alias<output_tuple_indices = {list_text(alias.output_index)}, "
            f"operand_index = {alias.operand}, operand_tuple_indices = {list_text(alias.operand_index)}>"
            for alias in aliases
        ]
        attributes["output_operand_aliases"] = f"[{', '.join(texts)}]"
    results = unpacked_shapes(i.shape)
    demands = i.attributes["operand_layout_constraints"] or [shape.without_layout() for shape in shapes]
    attributes |= _layouts(demands, results)
    return w.packed(w.simple("stablehlo.custom_call", values, shapes, results, attributes), i.shape)


def _config_text(config: str, version: CustomCallApiVersion) -> str:
    """Named values of a typed call as they are, where they are spelled as MLIR has them; anything else as a string."""
    if config.startswith('"'):
        return string_text(unquoted(config).decode("utf-8", "surrogateescape"))
    if version is CustomCallApiVersion.TYPED_FFI:
        try:
            read_attribute(config)
        except ParseError:
            return string_text(config)  # such as JSON
        return config
    return string_text(config)


def _layouts(operands: Sequence[Shape], results: Sequence[Shape]) -> Attributes:
    """Both lists of layouts, where one of them says more than row-major."""
    if all(shape.layout is None or shape.layout.is_row_major for shape in (*operands, *results)):
        return {}
    return {"operand_layouts": _layout_list(operands), "result_layouts": _layout_list(results)}


def _layout_list(shapes: Sequence[Shape]) -> str:
    orders = [shape.minor_to_major if shape.is_array else () for shape in shapes]
    texts = [f"dense<{list_text(order) if order else ''}> : tensor<{len(order)}xindex>" for order in orders]
    return f"[{', '.join(texts)}]"
