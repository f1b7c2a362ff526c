"""How random numbers are written in StableHLO."""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.hlo.element_types import S64
from xlapy.hlo.graph import Instruction
from xlapy.hlo.shape import Shape
from xlapy.stablehlo.attributes import string_text
from xlapy.stablehlo.convert.custom_calls import OWN_TARGETS
from xlapy.stablehlo.types import type_text
from xlapy.stablehlo.write.base import EMITTERS, Tree, Writer, leaves, list_text

Trees = Sequence[Tree]


@EMITTERS.register("rng")
def rng(w: Writer, i: Instruction, operands: Trees) -> Tree:
    """The shape is an operand: a constant."""
    shape = Shape.array(S64, (i.shape.rank,))
    dims = list_text(i.shape.dims) if i.shape.dims else ""
    value = {"value": f"dense<{dims}> : {type_text(shape)}"}
    (sizes,) = w.simple("stablehlo.constant", [], [], [shape], value)
    attributes = {"rng_distribution": f"#stablehlo<rng_distribution {i.attributes['distribution'].name}>"}
    values = [leaf for operand in operands for leaf in leaves(operand)]
    shapes = [*(operand.shape for operand in i.operands), shape]
    (result,) = w.simple("stablehlo.rng", [*values, sizes], shapes, [i.shape], attributes)
    return result


@EMITTERS.register("rng-bit-generator")
def rng_bit_generator(w: Writer, i: Instruction, operands: Trees) -> Tree:
    attributes = {"rng_algorithm": f"#stablehlo<rng_algorithm {i.attributes['algorithm'].name}>"}
    shapes = [operand.shape for operand in i.operands]
    return tuple(w.simple("stablehlo.rng_bit_generator", leaves(operands[0]), shapes, i.shape.parts, attributes))


@EMITTERS.register("rng-get-and-update-state")
def rng_get_and_update_state(w: Writer, i: Instruction, operands: Trees) -> Tree:
    attributes = {
        "call_target_name": string_text(OWN_TARGETS + i.spec.python_name),
        "has_side_effect": "true",
        "backend_config": f"{{delta = {i.attributes['delta']} : i64}}",
        "api_version": "4 : i32",
    }
    (result,) = w.simple("stablehlo.custom_call", [], [], [i.shape], attributes)
    return result
