"""Shardings: HLO's text, `{devices=[2,1]<=[2]}`, and the message with the same content."""

from __future__ import annotations

import re

from xlapy.hlo.proto.messages import OpShardingProto
from xlapy.hlo.text.lexer import Lexer
from xlapy.support.errors import ParseError
from xlapy.support.protobuf import enumerated
from xlapy.support.source import Source
from xlapy.support.wording import excerpt

TYPES = ("replicated", "maximal", "tuple", "other", "manual", "unknown", "unreduced")
"""The kinds of shardings by their numbers."""

MAXIMAL, TUPLE, OTHER = 1, 2, 3
_GROUP_KINDS = ("shard_as", "shard_like")
_NUMBERS = re.compile(r"\d+(?:,\d+)*")
_IOTA = re.compile(r"\[(\d+(?:,\d+)*)\](?:T\((\d+(?:,\d+)*)\))?")
_MAX_NESTING = 100


def sharding_to_text(proto: OpShardingProto) -> str:
    """`{replicated}`, `{devices=[2,1]0,1}`, `{{replicated}, {manual}}`."""
    if proto.type == TUPLE:
        return "{" + ", ".join(map(sharding_to_text, proto.tuple_shardings)) + "}"
    words = []
    if proto.type == MAXIMAL:
        words.append(f"maximal device={next(iter(proto.tile_assignment_devices), 0)}")
    elif proto.type == OTHER:
        words.append(_tiles_to_text(proto))
        if proto.last_tile_dims:
            kinds = (str(enumerated(TYPES, number, "kind of sharding")) for number in proto.last_tile_dims)
            words.append("last_tile_dims={" + ", ".join(kinds) + "}")
        if proto.replicate_on_last_tile_dim:
            words.append("last_tile_dim_replicate")
    else:
        words.append(str(enumerated(TYPES, proto.type, "kind of sharding")))
    if proto.is_shard_group:
        kind = enumerated(_GROUP_KINDS, proto.shard_group_type, "kind of groups of shardings")
        words.append(f"{kind} {proto.shard_group_id}")
    return "{" + " ".join(words) + "}"


def _tiles_to_text(proto: OpShardingProto) -> str:
    sizes = _joined(proto.tile_assignment_dimensions)
    if not proto.iota_reshape_dims:
        return f"devices=[{sizes}]{_joined(proto.tile_assignment_devices)}"
    permutation = proto.iota_transpose_perm
    is_plain = permutation == sorted(permutation)
    return f"devices=[{sizes}]<=[{_joined(proto.iota_reshape_dims)}]" + (
        "" if is_plain else f"T({_joined(permutation)})"
    )


def sharding_from_text(text: str) -> OpShardingProto:
    """The inverse of `sharding_to_text`; raises ParseError for what is no sharding."""
    lexer = Lexer(Source(text))
    proto = _sharding(lexer, 0)
    if not lexer.at_end:
        lexer.expected("the end of the sharding")
    return proto


def _sharding(lexer: Lexer, depth: int) -> OpShardingProto:
    if depth > _MAX_NESTING:
        raise lexer.error(f"shardings are nested more than {_MAX_NESTING} deep")
    lexer.expect("{", " before a sharding")
    proto = OpShardingProto()
    if lexer.at("{"):
        proto.type = TUPLE
        while lexer.at("{"):
            proto.tuple_shardings.append(_sharding(lexer, depth + 1))
            lexer.accept(",")
        lexer.expect("}", " after the shardings of a tuple")
        return proto
    while not lexer.accept("}"):
        _word(lexer, proto)
    return proto


def _word(lexer: Lexer, proto: OpShardingProto) -> None:
    start = lexer.position
    word = lexer.word("a sharding such as replicated or devices=[2,1]<=[2]")
    if word == "devices":
        proto.type = OTHER
        _tiles(lexer, proto)
    elif word == "device":
        lexer.expect("=")
        proto.tile_assignment_devices = [lexer.integer()]
    elif word == "last_tile_dims":
        lexer.expect("=")
        lexer.expect("{")
        while not lexer.accept("}"):
            proto.last_tile_dims.append(_type(lexer, lexer.word(), start))
            lexer.accept(",")
    elif word == "last_tile_dim_replicate":
        proto.replicate_on_last_tile_dim = True
    elif word in _GROUP_KINDS:
        proto.is_shard_group = True
        proto.shard_group_type = _GROUP_KINDS.index(word)
        proto.shard_group_id = lexer.integer()
    elif word == "metadata":
        lexer.expect("=")
        lexer.verbatim()
    else:
        proto.type = _type(lexer, word, start)
        if proto.type == MAXIMAL:
            proto.tile_assignment_dimensions = [1]


def _type(lexer: Lexer, word: str, start: int) -> int:
    if word not in TYPES:
        raise lexer.error(f"{excerpt(word)!r} is no sharding", start)
    return TYPES.index(word)


def _tiles(lexer: Lexer, proto: OpShardingProto) -> None:
    """`=[2,1]0,1` or `=[2,1]<=[2]T(0)`."""
    lexer.expect("=")
    lexer.expect("[")
    proto.tile_assignment_dimensions = _numbers(lexer)
    lexer.expect("]")
    if not lexer.accept("<="):
        proto.tile_assignment_devices = _numbers(lexer)
        return
    match = lexer.take(_IOTA)
    if match is None:
        lexer.expected("the shape of the devices, as [2,2]T(1,0)")
    lexer.skip()
    proto.iota_reshape_dims = _listed(match[1])
    proto.iota_transpose_perm = _listed(match[2]) if match[2] else list(range(len(proto.iota_reshape_dims)))


def _numbers(lexer: Lexer) -> list[int]:
    match = lexer.take(_NUMBERS)
    if match is None:
        lexer.expected("a list of numbers")
    lexer.skip()
    return _listed(match[0])


def _listed(text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise ParseError(f"{excerpt(text)!r} is too large a number") from None


def _joined(numbers: list[int]) -> str:
    return ",".join(map(str, numbers))
