"""XLA's own parser on what our printer writes."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from tests.e2e.corpus import corpus
from tests.hlo.text.samples import EVERYTHING
from xlapy.hlo.graph import Computation, HloModule, Instruction, topological
from xlapy.hlo.literal import Literal
from xlapy.hlo.ops import OPS
from xlapy.hlo.text import parse, structural_equal, to_text

PLACES = ("jaxlib._hlo", "jaxlib.xla_extension")  # where releases of jaxlib keep the function


def library() -> Any:
    for place in PLACES:
        try:
            return importlib.import_module(place)
        except ImportError:
            continue
    raise AssertionError(f"jaxlib has no HLO parser in any of {PLACES}")


def hlo_options() -> Any:
    """Print everything, large constants too."""
    options = library().HloPrintOptions()
    options.print_large_constants = True
    return options


def through_xla(text: str, *options: Any) -> str:
    return str(library().hlo_module_from_text(text).to_string(*options))


@pytest.mark.parametrize("long", [False, True])
def test_xla_reads_both_forms(long: bool) -> None:
    text = to_text(parse(EVERYTHING), long=long)
    assert "ENTRY %main" in through_xla(text)


CONSTANTS = [
    "f32[2,0] constant({ {}, {} })",
    "f32[0,2] constant({})",
    "f32[4] constant({nan(0x12), -nan, inf, -0.0})",
    "f32[1] constant({1e-45})",
    "f64[1] constant({1e-320})",
    "f16[3] constant({nan(0x12), 6e-8, -inf})",
    "bf16[2] constant({1.5, -0.0})",
    "f8e4m3fn[2] constant({1.5, nan})",
    "c64[2] constant({(1, -2.5), (0, -inf)})",
    "pred[2,1] constant({{true}, {false}})",
    "s4[2] constant({-8, 7})",
    "u64[1] constant({18446744073709551615})",
]


@pytest.mark.parametrize("constant", CONSTANTS)
def test_xla_sees_the_same_values(constant: str) -> None:
    module = parse(f"HloModule m\nENTRY e {{ ROOT c = {constant} }}")
    again = parse(through_xla(to_text(module)))
    assert again.entry.root.attributes["literal"] == module.entry.root.attributes["literal"]


UNKNOWN_TO_XLA = frozenset(
    name for name, spec in OPS.items() if "An op of xlapy" in spec.doc or name in ("acos", "acosh", "asin", "asinh",
                                                                                 "atan", "atanh", "cosh", "sinh")
)  # fmt: skip


def as_xla_reads(literal: Literal) -> Literal:
    """XLA takes a complex number that is not a number in one part for one that is in neither."""
    if literal.elements is not None or not literal.shape.type.is_complex:
        return literal
    return Literal(np.where(np.isnan(literal.array), complex(np.nan, np.nan), literal.array), literal.shape)


def logical(module: HloModule) -> HloModule:
    """The module without layouts, which XLA fills in, and in an order that follows from operands alone."""
    copies: dict[Computation, Computation] = {}
    for computation in module.computations():
        copy = Computation(computation.name)
        effects = [instruction for instruction in computation if instruction.has_effect]
        made: dict[Instruction, Instruction] = {}
        for instruction in topological([*computation.parameters, computation.root, *effects]):
            operands = [made[operand] for operand in instruction.operands]
            made[instruction] = copy.add_copy(instruction, operands, instruction.shape.without_layout())
            if instruction.opcode == "constant":
                copy.set_attributes(made[instruction], literal=as_xla_reads(instruction.attributes["literal"]))
            if instruction.opcode == "topk":  # newer releases of XLA say what ours always is
                made[instruction].extra.pop("is_stable", None)
            copy.set_called(made[instruction], [copies[called] for called in instruction.called])
        copy.set_root(made[computation.root])
        copies[computation] = copy
    return HloModule(module.name, copies[module.entry])


@pytest.mark.parametrize("long", [False, True])
def test_xla_reads_every_op_as_we_mean_it(long: bool) -> None:
    options = hlo_options()
    read = set()
    for module in corpus():
        opcodes = {instruction.opcode for instruction in module.instructions()}
        if opcodes & UNKNOWN_TO_XLA:
            continue
        again = parse(through_xla(to_text(module, long=long), options))
        assert structural_equal(logical(again), logical(module)), module.to_text()
        read |= opcodes
    assert len(read) > 100
