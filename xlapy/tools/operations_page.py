"""docs/operations.md, made from the op table and from what registers for its rows."""

from __future__ import annotations

import enum
import inspect
import re
import typing
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from xlapy.builder.registry import FUNCTIONS, NOT_RECORDED, RECORDED_BY
from xlapy.hlo.element_types import ALL, ElementType, describe
from xlapy.hlo.limitations import limitations_of
from xlapy.hlo.ops import OPS, OpSpec
from xlapy.hlo.ops.spec import AttributeParameter
from xlapy.stablehlo.convert import CONVERSIONS

OTHER_NAMES = {
    "call": ("func.call",),
    "conditional": ("stablehlo.if", "stablehlo.case"),
    "dot": ("stablehlo.dot_general", "stablehlo.dot"),
    "opt-barrier": ("stablehlo.optimization_barrier",),
    "topk": ("chlo.top_k",),
    "broadcast": ("stablehlo.broadcast_in_dim", "stablehlo.broadcast"),
    "after-all": ("stablehlo.after_all", "stablehlo.create_token"),
}
"""StableHLO's names of the ops that are not called there what they are called here."""


def page() -> str:
    """The whole page: one section per family, one per op in it, both in alphabetical order."""
    lines = [_HEAD]
    specs = sorted(OPS.values(), key=lambda spec: (spec.family, spec.name))
    for family, members in groupby(specs, key=lambda spec: spec.family):
        lines += [f"## {family.replace('_', ' ').capitalize()}", ""]
        for spec in members:
            lines += [*section(spec), ""]
    return "\n".join(lines).rstrip() + "\n"


def section(spec: OpSpec) -> Iterator[str]:
    """What the page says of one op, line by line."""
    yield f"### {spec.name}"
    yield ""
    yield _description(spec)
    yield ""
    yield f"- Operands: {_operands(spec)}"
    if spec.regions:
        yield f"- Computations: {', '.join(f'`{_starred(region)}`' for region in spec.regions)}"
    for attribute in spec.attributes.values():
        yield f"- Attribute {_attribute(attribute)}"
    types = _element_types(spec)
    if types:
        yield f"- Element types: {types}"
    yield f"- Builder: {_builder(spec)}"
    yield f"- StableHLO: {', '.join(f'`{name}`' for name in stablehlo_names(spec)) or 'no name'}"
    for constraint in spec.constraints.values():
        labels = f" [{' '.join(constraint.labels)}]" if constraint.labels else ""
        yield f"- Rule `{constraint.slug}`{labels}: {constraint.text}"
    for limitation in limitations_of(spec.name):
        yield f"- Not supported: {limitation.what}, because {limitation.reason}."


def _description(spec: OpSpec) -> str:
    """What stands above the constraints in the docstring of the rule, as a sentence."""
    lines = spec.doc.split("\n")
    first_rule = next((at for at, line in enumerate(lines) if _begins_rule(spec, line)), len(lines))
    text = "\n".join(lines[:first_rule]).strip()
    text = text if text.endswith((".", ":")) else text + "."
    return text[:1].upper() + text[1:] if not re.match(r"[a-z]\^", text) else text


def _begins_rule(spec: OpSpec, line: str) -> bool:
    return re.split(r"[ :]", line)[0] in spec.constraints and ":" in line


def _operands(spec: OpSpec) -> str:
    return ", ".join(f"`{_starred(operand)}`" for operand in spec.operands) or "none"


def _starred(parameter: Any) -> str:
    """The name of an operand or computation, with a star if it stands for any number of them."""
    return f"*{parameter.name}" if parameter.variadic else str(parameter.name)


def _attribute(attribute: AttributeParameter) -> str:
    default = "" if attribute.required else f", default `{_default_text(attribute.default)}`"
    spelling = attribute.text_key
    other = f", in HLO text `{spelling}`" if spelling not in (attribute.name, "()") else ""
    return f"`{attribute.name}`: {_type_text(attribute.type)}{other}{default}"


def _default_text(default: Any) -> str:
    return default.name if isinstance(default, enum.Enum) else repr(default)


def _type_text(annotation: Any) -> str:
    """A type as its annotation says it, without the modules."""
    if typing.get_origin(annotation) is None and inspect.isclass(annotation):
        return f"`{annotation.__name__}`"
    return f"`{re.sub(r'[A-Za-z_]+[.](?=[A-Za-z_])', '', str(annotation))}`"


def _element_types(spec: OpSpec) -> str:
    """The element types of the operands, for the ops whose rows declare them."""
    types: frozenset[ElementType] | None = spec.options.get("types")
    if types is None:
        return ""
    return "all" if types == frozenset(ALL) else describe(types)


def _builder(spec: OpSpec) -> str:
    if spec.name in NOT_RECORDED:
        return f"none; {NOT_RECORDED[spec.name]}"
    return ", ".join(f"`{name}`" for name in builder_names(spec)) or "none"


def builder_names(spec: OpSpec) -> list[str]:
    """The function that is registered for the op, by all of its names."""
    function = RECORDED_BY.get(spec.name)
    return [name for name in FUNCTIONS if FUNCTIONS[name] is function]


def stablehlo_names(spec: OpSpec) -> list[str]:
    """What the op is called in StableHLO text that the parser reads."""
    own = [f"{dialect}.{spec.python_name}" for dialect in ("stablehlo", "chlo")]
    return [name for name in OTHER_NAMES.get(spec.name, own) if name in CONVERSIONS]


_HEAD = """\
# Operations

Made from the op table by `xlapy ops --page > docs/operations.md`; a test compares them.

A star marks any number of operands or computations. A rule is checked whenever an instruction is made or read, and its
name stands behind the message of the error. Labels say where the rule stands in the specifications: B for the builder,
C for StableHLO. Builder functions are in `xlapy.ops`, and so are the classes of what some of them take, such as
`GatherDimensionNumbers` and `FftType`.
"""
