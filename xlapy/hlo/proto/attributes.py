"""Attributes in the fields of an instruction's message: one codec per attribute, found by its op, type or name."""

from __future__ import annotations

import functools
import types
import typing
from typing import Any

from xlapy.hlo.ops import OpSpec
from xlapy.hlo.proto import (  # noqa: F401 - importing a family registers its codecs
    message_attributes,
    plain_attributes,
)
from xlapy.hlo.proto.codecs import CODECS, Codec
from xlapy.support.errors import InternalError


@functools.cache
def codecs_for(spec: OpSpec) -> dict[str, Codec]:
    """The codecs of an op's attributes; the literal of a constant, which needs its shape, is written elsewhere."""
    return {name: _codec_for(spec.name, name, parameter.type) for name, parameter in spec.attributes.items()}


def _codec_for(op: str, name: str, annotation: Any) -> Codec:
    for key in (f"{op}.{name}", _type_name(annotation), name):
        if key in CODECS:
            return CODECS[key]
    raise InternalError(f"the attribute {name} of {op} has no place in protocol buffers")


def _type_name(annotation: Any) -> str:
    """`Window` of `Window | None`, `tuple[Precision]` of `tuple[Precision, ...]`."""
    if isinstance(annotation, types.UnionType):
        annotation = next(part for part in typing.get_args(annotation) if part is not types.NoneType)
    if typing.get_origin(annotation) is tuple:
        return f"tuple[{typing.get_args(annotation)[0].__name__}]"
    return str(annotation.__name__)
