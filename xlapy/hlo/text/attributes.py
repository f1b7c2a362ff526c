"""Attribute values in HLO text: one codec per Python type, found by the type that the op table declares.

Which key has which attribute of an op is said in `op_keys`.
"""

from __future__ import annotations

import functools
import re
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from xlapy.hlo.attributes import (
    NO_WINDOW_DIMENSION,
    ComparisonType,
    ConvolutionDimensionNumbers,
    ConvolutionSide,
    Named,
    OpMetadata,
    OutputOperandAlias,
    PaddingDimension,
    ReplicaGroups,
    SliceDimension,
    SourceTargetPairs,
    Window,
    WindowDimension,
)
from xlapy.hlo.dim_labels import LETTERS, labels_of, side_of
from xlapy.hlo.literal import Literal
from xlapy.hlo.process_groups import AxisPart, iota_groups, mesh_groups, transposed_ids
from xlapy.hlo.shape import Shape
from xlapy.hlo.text.lexer import Lexer, quote
from xlapy.hlo.text.literals import literal_to_text
from xlapy.hlo.text.shapes import parse_shape
from xlapy.support.errors import InternalError
from xlapy.support.records import Record
from xlapy.support.registry import Registry
from xlapy.support.wording import excerpt


class Codec(Record):
    """How values of one type are read at the cursor and written."""

    read: Callable[[Lexer], Any]
    write: Callable[[Any], str]


CODECS: Registry[Codec] = Registry("attribute text")
"""By the name of the type: `int`, `Window`, `tuple[PaddingDimension]`."""


def _codec(name: str, read: Callable[[Lexer], Any], write: Callable[[Any], str]) -> Codec:
    codec = Codec(read, write)
    CODECS.add(name, codec)
    return codec


def braced(codec: Codec) -> Codec:
    """A list `{a, b}` as a tuple."""

    def read(lexer: Lexer) -> tuple[Any, ...]:
        return tuple(read_list(lexer, codec.read))

    def write(values: Sequence[Any]) -> str:
        return "{" + ",".join(map(codec.write, values)) + "}"

    return Codec(read, write)


def read_list(lexer: Lexer, read: Callable[[Lexer], Any]) -> Iterator[Any]:
    """The elements of `{a, b}`."""
    lexer.expect("{")
    first = True
    while not lexer.accept("}"):
        if not first:
            lexer.expect(",", " or '}'")
        first = False
        yield read(lexer)


@functools.cache
def codec_for(annotation: Any) -> Codec:
    """The codec of a type as the op table writes it: `int | None`, `tuple[Precision, ...]`, an enumeration ..."""
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        return codec_for(next(part for part in typing.get_args(annotation) if part is not types.NoneType))
    if typing.get_origin(annotation) is tuple:
        element = typing.get_args(annotation)[0]
        return CODECS.get(f"tuple[{element.__name__}]") or braced(codec_for(element))
    codec = CODECS.get(annotation.__name__)
    if codec is not None:
        return codec
    if isinstance(annotation, type) and issubclass(annotation, Named):
        return _enumeration(annotation)
    raise InternalError(f"attributes of type {annotation} have no text form")


# -- plain values --------------------------------------------------------------------------------------------------


def _read_bool(lexer: Lexer) -> bool:
    if lexer.accept("true") or lexer.accept("1"):
        return True
    if lexer.accept("false") or lexer.accept("0"):
        return False
    return lexer.expected("true or false")


def _read_text(lexer: Lexer) -> str:
    return lexer.string() if lexer.at('"') else lexer.verbatim()


def _enumeration(kind: type[Named]) -> Codec:
    def read(lexer: Lexer) -> Named:
        start = lexer.position
        word = lexer.word(f"one of {', '.join(map(str, kind))}")
        try:
            return kind(word)
        except ValueError:
            raise lexer.error(f"{excerpt(word)!r} is none of {', '.join(map(str, kind))}", start) from None

    return Codec(read, str)


def _read_order(lexer: Lexer) -> ComparisonType | None:
    """What of `order=` says more than the element type."""
    if lexer.accept("PARTIAL"):
        return None
    return ComparisonType.TOTALORDER if lexer.accept("TOTAL") else lexer.expected("TOTAL or PARTIAL")


COMPARISON_ORDER = Codec(_read_order, str)
_codec("bool", _read_bool, lambda value: "true" if value else "false")
INTEGER = _codec("int", lambda lexer: lexer.integer(), str)
_codec("float", lambda lexer: lexer.number(), lambda value: repr(float(value)).removesuffix(".0"))
_codec("str", _read_text, quote)
_codec("Shape", parse_shape, lambda shape: typing.cast(Shape, shape).to_text(layouts=True))


def _read_single(lexer: Lexer) -> int:
    lexer.expect("{")
    value = lexer.integer()
    lexer.expect("}", " after one dimension")
    return value


BRACED_INTEGER = Codec(_read_single, lambda value: f"{{{value}}}")
WORD = Codec(lambda lexer: lexer.word(), str)


# -- ranges and windows --------------------------------------------------------------------------------------------

_PADDING = re.compile(r"(-?\d{1,18})_(-?\d{1,18})(?:_(-?\d{1,18}))?")
_WINDOW_LISTS = {
    "size": ("size",),
    "stride": ("stride",),
    "pad": ("padding_low", "padding_high"),
    "lhs_dilate": ("base_dilation",),
    "rhs_dilate": ("window_dilation",),
    "rhs_reversal": ("reversal",),
}
"""The parts of a window by their key; each is a list `AxBxC` with one entry per dimension, `low_high` for `pad`."""


def _read_padding(lexer: Lexer) -> tuple[PaddingDimension, ...]:
    if lexer.accept("{"):
        lexer.expect("}", ": no dimension has padding")
        return ()
    start = lexer.position
    parts = lexer.word("a padding such as 0_1x2_3_1").split("x")
    dimensions = []
    for part in parts:
        match = _PADDING.fullmatch(part)
        if match is None:
            raise lexer.error(f"{excerpt(part)!r} is not a padding: expected low_high or low_high_interior", start)
        dimensions.append(PaddingDimension(int(match[1]), int(match[2]), int(match[3] or 0)))
    return tuple(dimensions)


def _write_padding(dimensions: Sequence[PaddingDimension]) -> str:
    if not dimensions:
        return "{}"
    interior = any(dimension.interior for dimension in dimensions)
    return "x".join(f"{d.low}_{d.high}" + (f"_{d.interior}" if interior else "") for d in dimensions)


def _read_slice(lexer: Lexer) -> SliceDimension:
    lexer.expect("[")
    start = lexer.integer("the start of a range")
    lexer.expect(":")
    limit = lexer.integer("the limit of a range")
    stride = lexer.integer("a stride") if lexer.accept(":") else 1
    lexer.expect("]", " after the range")
    return SliceDimension(start, limit, stride)


def _write_slices(dimensions: Sequence[SliceDimension]) -> str:
    strided = any(dimension.stride != 1 for dimension in dimensions)
    ranges = (f"[{d.start}:{d.limit}" + (f":{d.stride}]" if strided else "]") for d in dimensions)
    return "{" + ", ".join(ranges) + "}"


def _read_window(lexer: Lexer) -> Window:
    begin = lexer.position
    lexer.expect("{")
    columns: dict[str, list[int]] = {}
    while not lexer.accept("}"):
        start = lexer.position
        key = lexer.key()
        if key not in _WINDOW_LISTS:
            raise lexer.error(f"a window has no {key!r}; it has: {', '.join(_WINDOW_LISTS)}", start)
        fields = _WINDOW_LISTS[key]
        for part in lexer.word("a list such as 3x3").split("x"):
            numbers = part.split("_")
            if len(numbers) != len(fields) or not all(re.fullmatch(r"-?\d{1,18}", number) for number in numbers):
                form = "low_high" if len(fields) == 2 else "a number"
                raise lexer.error(f"{excerpt(part)!r} is not {form}, for each dimension of the window", start)
            for field, number in zip(fields, numbers, strict=True):
                columns.setdefault(field, []).append(int(number))
        lexer.accept(",")
    rank = len(columns.get("size", ()))
    for field, values in columns.items():
        if len(values) != rank:
            raise lexer.error(f"the window has {rank} sizes, but {field} is given {len(values)} times", begin)
    rows = ({field: values[dim] for field, values in columns.items()} for dim in range(rank))
    return Window(tuple(_window_dimension(**row) for row in rows))


def _window_dimension(*, reversal: int = 0, **numbers: int) -> WindowDimension:
    return WindowDimension(**numbers, reversal=bool(reversal))


def _write_window(window: Window) -> str:
    default = NO_WINDOW_DIMENSION
    parts = []
    for key, fields in _WINDOW_LISTS.items():
        rows = [[int(getattr(dimension, field)) for field in fields] for dimension in window.dimensions]
        plain = [int(getattr(default, field)) for field in fields]
        if rows and (key == "size" or any(row != plain for row in rows)):
            parts.append(f"{key}=" + "x".join("_".join(map(str, row)) for row in rows))
    return "{" + " ".join(parts) + "}"


_codec("tuple[PaddingDimension]", _read_padding, _write_padding)
_codec("tuple[SliceDimension]", braced(Codec(_read_slice, str)).read, _write_slices)
_codec("Window", _read_window, _write_window)


# -- dimension numbers ---------------------------------------------------------------------------------------------

_LABELS = re.compile(r"([0-9bf?]{2,})_([0-9io?]{2,})->([0-9bf?]{2,})")


def _read_labels(lexer: Lexer) -> ConvolutionDimensionNumbers:
    start = lexer.position
    match = lexer.take(_LABELS)
    if match is None:
        lexer.expected("dimension labels such as b01f_01io->b01f")
    lexer.skip()
    try:
        sides = [_side(match[number], letters) for number, letters in enumerate(LETTERS, start=1)]
        if len({len(spatial) for _, _, spatial in sides}) != 1:
            raise ValueError("its three parts have different numbers of spatial dimensions")
    except ValueError as error:
        raise lexer.error(f"{match[0].strip()!r}: {error}", start) from None
    return ConvolutionDimensionNumbers.of_sides(*sides)


def _side(labels: str, letters: str) -> ConvolutionSide:
    try:
        return side_of([*labels], letters)
    except ValueError as error:
        raise ValueError(f"{labels!r} {error}") from None


def _write_labels(numbers: ConvolutionDimensionNumbers) -> str:
    lhs, rhs, result = map("".join, labels_of(numbers))
    return f"{lhs}_{rhs}->{result}"


_codec("ConvolutionDimensionNumbers", _read_labels, _write_labels)


# -- groups of processes -------------------------------------------------------------------------------------------

_IOTA = re.compile(r"\[([\d,\s]+)\]\s*<=\s*\[([\d,\s]+)\]\s*(?:T\(([\d,\s]+)\))?")
_INTEGERS = braced(INTEGER)
_INTEGER_LISTS = braced(_INTEGERS)


def _read_groups(lexer: Lexer) -> ReplicaGroups:
    if lexer.at("["):
        return ReplicaGroups(_read_iota_groups(lexer))
    if lexer.at("mesh"):
        return ReplicaGroups(_read_mesh_groups(lexer))
    return ReplicaGroups(_INTEGER_LISTS.read(lexer))


def _read_iota_groups(lexer: Lexer) -> tuple[tuple[int, ...], ...]:
    """`[groups, size]<=[dims]T(permutation)`."""
    start = lexer.position
    match = lexer.take(_IOTA)
    if match is None:
        lexer.expected("groups such as [2,2]<=[4] or [2,2]<=[2,2]T(1,0)")
    lexer.skip()
    try:
        groups, dims, permutation = map(_numbers, match.groups(default=""))
    except ValueError:
        raise lexer.error(f"{excerpt(match[0].strip())!r} is not a list of groups", start) from None
    try:
        return iota_groups(groups, dims, permutation)
    except ValueError as error:
        raise lexer.error(str(error), start) from None


_MESH = re.compile(
    r"mesh\s*\[([^\]]*)\]\s*"
    r"(?:,\s*device_ids\s*=\s*\((?:\[([\d,\s]+)\]\s*(?:T\(([\d,\s]+)\))?|([\d,\s]+))\)\s*)?"
    r"\{([^}]*)\}"
)
_MESH_AXIS = re.compile(r"\s*'([^']*)'\s*=\s*(\d+)\s*")
_MESH_PART = re.compile(r"\s*'([^']*)'\s*(?::\s*\((\d+)\)\s*(\d+)\s*)?")


def _read_mesh_groups(lexer: Lexer) -> tuple[tuple[int, ...], ...]:
    """`mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'a','b':(2)2}`: along axis a, and along pairs within b."""
    start = lexer.position
    match = lexer.take(_MESH)
    if match is None:
        lexer.expected("groups such as mesh['a'=2,'b'=4] {'a'}")
    lexer.skip()
    axes, dims, permutation, ids, along = match.groups(default="")
    try:
        sizes = {axis[1]: int(axis[2]) for axis in _pieces(_MESH_AXIS, axes)}
        numbers = {name: number for number, name in enumerate(sizes)}
        parts = [
            AxisPart(numbers[part[1]], int(part[2] or 1), int(part[3] or sizes[part[1]]))
            for part in _pieces(_MESH_PART, along)
        ]
        members = transposed_ids(_numbers(dims), _numbers(permutation)) if dims else _numbers(ids)
        return mesh_groups([*sizes.values()], parts, members)
    except KeyError as error:
        raise lexer.error(f"the mesh has no axis {error}", start) from None
    except ValueError as error:
        raise lexer.error(str(error), start) from None


def _pieces(pattern: re.Pattern[str], listed: str) -> list[re.Match[str]]:
    """What stands between commas. Raises ValueError for what is no such piece."""
    pieces = [pattern.fullmatch(piece) for piece in listed.split(",")] if listed.strip() else []
    found = [piece for piece in pieces if piece is not None]
    if len(found) < len(pieces):
        raise ValueError(f"{excerpt(listed)!r} does not list axes of a mesh")
    return found


def _numbers(listed: str) -> list[int]:
    return [int(number) for number in listed.split(",")] if listed else []


def _read_pairs(lexer: Lexer) -> SourceTargetPairs:
    start = lexer.position
    pairs = _INTEGER_LISTS.read(lexer)
    for pair in pairs:
        if len(pair) != 2:
            raise lexer.error(f"{pair} is not a pair of a source and a target", start)
    return SourceTargetPairs(pairs)


_codec("ReplicaGroups", _read_groups, lambda value: _INTEGER_LISTS.write(value.groups))
_codec("SourceTargetPairs", _read_pairs, lambda value: _INTEGER_LISTS.write(value.pairs))


# -- aliases -------------------------------------------------------------------------------------------------------


def read_alias(lexer: Lexer) -> tuple[tuple[int, ...], int, tuple[int, ...], str]:
    """`{output index}: (number, {index}, kind)`, where the index and the kind may be missing."""
    output_index = _INTEGERS.read(lexer)
    lexer.expect(":", " after an output index")
    if not lexer.accept("("):
        return output_index, lexer.integer(), (), ""
    number = lexer.integer()
    index = _INTEGERS.read(lexer) if lexer.accept(",") else ()
    kind = lexer.word() if lexer.accept(",") else ""
    lexer.expect(")", " after an alias")
    return output_index, number, index, kind


def alias_to_text(output_index: Sequence[int], number: int, index: Sequence[int], kind: str = "") -> str:
    suffix = f", {kind}" if kind else ""
    return f"{_INTEGERS.write(output_index)}: ({number}, {_INTEGERS.write(index)}{suffix})"


def read_donor(lexer: Lexer) -> tuple[int, tuple[int, ...]]:
    """`(number, {index})`: a part of a parameter."""
    lexer.expect("(", " before a parameter")
    number = lexer.integer()
    index = _INTEGERS.read(lexer) if lexer.accept(",") else ()
    lexer.expect(")", " after a parameter")
    return number, index


def donor_to_text(number: int, index: Sequence[int]) -> str:
    return f"({number}, {_INTEGERS.write(index)})"


def _read_output_alias(lexer: Lexer) -> OutputOperandAlias:
    output_index, operand, operand_index, _ = read_alias(lexer)
    return OutputOperandAlias(output_index, operand, operand_index)


def _write_output_alias(alias: OutputOperandAlias) -> str:
    return alias_to_text(alias.output_index, alias.operand, alias.operand_index)


_codec("OutputOperandAlias", _read_output_alias, _write_output_alias)


def _read_literal(lexer: Lexer) -> Literal:
    raise InternalError("a literal is read together with its shape")


LITERAL = _codec("Literal", _read_literal, literal_to_text)


# -- metadata ------------------------------------------------------------------------------------------------------


def read_metadata(lexer: Lexer) -> OpMetadata:
    """`{op_name="..." source_file="..." source_line=3 ...}`; what has no field of its own is kept as text."""
    known: dict[str, Any] = {}
    extra: list[tuple[str, str]] = []
    lexer.expect("{")
    while not lexer.accept("}"):
        key = lexer.key()
        if key in ("op_type", "op_name", "source_file"):
            known[key] = _read_text(lexer)
        elif key == "source_line":
            known[key] = lexer.integer()
        else:
            extra.append((key, lexer.verbatim()))
        lexer.accept(",")
    return OpMetadata(**known, extra=tuple(extra))


def metadata_to_text(metadata: OpMetadata) -> str:
    parts = [
        f"{key}={quote(value)}" for key in ("op_type", "op_name", "source_file") if (value := getattr(metadata, key))
    ]
    if metadata.source_line:
        parts.append(f"source_line={metadata.source_line}")
    return "{" + " ".join(parts + [f"{key}={value}" for key, value in metadata.extra]) + "}"
