"""Calls, loops and branches. Values that regions capture travel in the tuple that HLO hands to each computation."""

from __future__ import annotations

from xlapy.hlo.graph import Instruction
from xlapy.stablehlo.attributes import attribute_text, string_text
from xlapy.stablehlo.convert.arity import check_arity
from xlapy.stablehlo.convert.base import (
    CONVERSIONS,
    Body,
    Elements,
    RegionKind,
    attribute,
    composed,
    converts,
    packed_parameters,
    packed_root,
)
from xlapy.stablehlo.tree import Operation, Region, Symbol
from xlapy.support.errors import ShapeError


@converts("func.call")
def call(body: Body, operation: Operation) -> Instruction:
    callee = body.functions[attribute(operation, "callee", Symbol).name]
    return body.add("call", *body.operands(operation), called=[callee])


@converts("stablehlo.composite")
def composite(body: Body, operation: Operation) -> Instruction | Elements:
    """A call of the decomposition, which remembers what it is made from; an operation of CHLO's is that itself."""
    whole = composed(operation)
    if whole is not None:
        check_arity(whole)
        return CONVERSIONS[whole.name].convert(body, whole)
    callee = body.functions[attribute(operation, "decomposition", Symbol).name]
    call = body.add("call", *body.operands(operation), called=[callee], is_composite=True)
    call.extra["frontend_attributes"] = (
        f"{{composite.attributes={attribute_text(attribute(operation, 'composite_attributes', dict, {}))},"
        f"composite.name={string_text(attribute(operation, 'name', str))},"
        f'composite.version="{attribute(operation, "version", int, 0)}"}}'
    )
    return call


def _loop_root(operation: Operation, region: Region, body: Body) -> Instruction:
    """The condition's answer, or the next state: what the body returns, and all that is captured, unchanged."""
    if region is operation.regions[0]:
        return packed_root(operation, region, body)
    returned = region.operations[-1].operands
    return body.tuple([body.value(value) for value in (*returned, *operation.captures)])


@converts("stablehlo.while", regions=RegionKind(packed_parameters, _loop_root))
def while_(body: Body, operation: Operation) -> Elements:
    """The state is one tuple: the values that the loop changes, then those that its regions capture."""
    captured = [body.value(value) for value in operation.captures]
    return Elements(body.add("while", body.tuple([*body.operands(operation), *captured]), called=body.called))


_NO_ARGUMENTS = {"if": "C1", "case": "C2"}


@converts("stablehlo.if", "stablehlo.case", regions=RegionKind(packed_parameters, packed_root))
def conditional(body: Body, operation: Operation) -> Instruction:
    """All branches get the same tuple, of everything that any of them captures."""
    if any(region.arguments for region in operation.regions):
        raise ShapeError(f"{operation.mnemonic}.{_NO_ARGUMENTS[operation.mnemonic]}", "a branch takes no arguments")
    captured = body.tuple([body.value(value) for value in operation.captures])
    operands = [captured] * len(body.called)
    return body.add("conditional", *body.operands(operation), *operands, called=body.called)
