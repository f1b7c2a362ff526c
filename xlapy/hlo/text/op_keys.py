"""How the attributes and regions of an op are spelled in HLO text, derived from the op table.

Most attributes are one `key=value`. The dimension numbers of dot, gather and scatter are one key per field
(`FIELD_KEYS`).
"""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from xlapy.hlo.attributes import DotDimensionNumbers, GatherDimensionNumbers, ScatterDimensionNumbers
from xlapy.hlo.ops import OpSpec
from xlapy.hlo.text.attributes import BRACED_INTEGER, COMPARISON_ORDER, WORD, Codec, codec_for


def _same_names(kind: type[Any]) -> dict[str, str]:
    return {field.name: field.name for field in dataclasses.fields(kind)}


FIELD_KEYS: dict[type[Any], Mapping[str, str]] = {
    DotDimensionNumbers: {
        "lhs_batch": "lhs_batch_dims",
        "lhs_contracting": "lhs_contracting_dims",
        "rhs_batch": "rhs_batch_dims",
        "rhs_contracting": "rhs_contracting_dims",
    },
    GatherDimensionNumbers: _same_names(GatherDimensionNumbers),
    ScatterDimensionNumbers: _same_names(ScatterDimensionNumbers),
}
"""Types whose fields are attributes of their own in text: field -> key."""

_field_types = functools.cache(typing.get_type_hints)

SPELLINGS: dict[tuple[str, str], Codec] = {("dot", "algorithm"): WORD}
"""Attributes of an op that are not spelled as their type usually is."""


@dataclass(frozen=True, slots=True)
class TextField:
    """One `key=` of an op: the attribute it belongs to, and the field within that where the type has FIELD_KEYS."""

    key: str
    attribute: str
    field: str
    codec: Codec
    default: Any


FURTHER_KEYS: dict[str, tuple[TextField, ...]] = {"compare": (TextField("order", "type", "", COMPARISON_ORDER, None),)}
"""Keys by which newer releases of XLA spell an attribute: read, and not written."""

BETWEEN_PARENTHESES = "()"
"""The text key of an attribute that stands where operands do: a parameter's number, a constant's literal."""


@dataclass(frozen=True, slots=True, eq=False)
class OpText:
    """How the attributes and regions of one op are spelled."""

    fields: Mapping[str, TextField]
    composed: Mapping[str, type[Any]]  # attributes that are put together from several keys
    inner: TextField | None  # the attribute between the parentheses
    regions: Mapping[str, int | None]  # key -> position of the called computation; None: a list of all of them
    read: Mapping[str, TextField]  # `fields`, and those of `FURTHER_KEYS`

    @property
    def keys(self) -> list[str]:
        return [*self.fields, *self.regions]


REGION_KEYS: dict[str, dict[str, int | None]] = {
    "conditional": {"true_computation": 0, "false_computation": 1, "branch_computations": None},
    "custom-call": {"called_computations": None, "to_apply": 0},
    "async-update": {"calls": 0},
    "async-done": {"calls": 0},
}
"""Ops whose regions can be spelled in more than one way."""


@functools.cache
def op_text(spec: OpSpec) -> OpText:
    """The spelling of an op, derived from the op table."""
    fields: dict[str, TextField] = {}
    composed: dict[str, type[Any]] = {}
    inner = None
    for parameter in spec.attributes.values():
        if parameter.type in FIELD_KEYS:
            composed[parameter.name] = parameter.type
            defaults = {field.name: field.default for field in dataclasses.fields(parameter.type)}
            for name, key in FIELD_KEYS[parameter.type].items():
                codec = codec_for(_field_types(parameter.type)[name])
                fields[key] = TextField(key, parameter.name, name, codec, defaults[name])
            continue
        codec = SPELLINGS.get((spec.name, parameter.name)) or codec_for(parameter.type)
        if parameter.braces:
            codec = BRACED_INTEGER
        field = TextField(parameter.text_key, parameter.name, "", codec, parameter.default)
        if parameter.text_key == BETWEEN_PARENTHESES:
            inner = field
        else:
            fields[parameter.text_key] = field
    regions = REGION_KEYS.get(spec.name) or {
        region.text_key: None if region.variadic else position for position, region in enumerate(spec.regions)
    }
    read = fields | {field.key: field for field in FURTHER_KEYS.get(spec.name, ())}
    return OpText(fields, composed, inner, regions, read)
