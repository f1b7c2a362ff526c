"""Attributes that are a value in a field of an instruction's message: numbers, flags, texts, enumerators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlapy.hlo.attributes import (
    ComparisonDirection,
    ComparisonType,
    CustomCallApiVersion,
    FftType,
    FusionKind,
    Named,
    RandomAlgorithm,
    RandomDistribution,
)
from xlapy.hlo.proto.codecs import add_codec
from xlapy.hlo.proto.messages import InstructionProto
from xlapy.support.errors import ParseError
from xlapy.support.protobuf import enumerated
from xlapy.support.wording import excerpt

# -- plain values --------------------------------------------------------------------------------------------------


def _plain(field: str, *keys: str) -> None:
    """An attribute that is the value of a field."""
    add_codec(lambda proto: getattr(proto, field), lambda proto, value: setattr(proto, field, value), *keys)


def _sizes(field: str, *keys: str) -> None:
    """A tuple of numbers."""
    add_codec(
        lambda proto: tuple(getattr(proto, field)), lambda proto, value: setattr(proto, field, list(value)), *keys
    )


def _optional(field: str, *keys: str) -> None:
    """A number, which is positive where it is given."""

    def read(proto: InstructionProto) -> int | None:
        value: int = getattr(proto, field)
        return value if value > 0 else None

    add_codec(read, lambda proto, value: setattr(proto, field, value or 0), *keys)


def _text(field: str, *keys: str) -> None:
    """Text that is bytes in the message."""

    def read(proto: InstructionProto) -> str:
        data: bytes = getattr(proto, field)
        return data.decode(errors="surrogateescape")

    def write(proto: InstructionProto, value: str) -> None:
        setattr(proto, field, value.encode(errors="surrogateescape"))

    add_codec(read, write, *keys)


def _counted(field: str, *keys: str) -> None:
    """A number of groups, of which there is one where the message has none."""
    add_codec(lambda proto: getattr(proto, field) or 1, lambda proto, value: setattr(proto, field, value), *keys)


def _read_dimension(proto: InstructionProto) -> int:
    if len(proto.dimensions) != 1:
        raise ParseError(f"it has {len(proto.dimensions)} dimensions instead of one")
    return proto.dimensions[0]


def _read_split_dimension(proto: InstructionProto) -> int | None:
    return _read_dimension(proto) if proto.dimensions else None


def _write_dimension(proto: InstructionProto, value: int | None) -> None:
    proto.dimensions = [] if value is None else [value]


def _read_mapped(proto: InstructionProto) -> tuple[int, ...]:
    """All dimensions, which a map has in any case, and which XLA's builder leaves out."""
    shape = proto.shape
    return tuple(proto.dimensions) or tuple(range(len(shape.dimensions) if shape is not None else 0))


def _write_mapped(proto: InstructionProto, value: Sequence[int]) -> None:
    proto.dimensions = list(value)


add_codec(_read_mapped, _write_mapped, "map.dimensions")
add_codec(_read_dimension, _write_dimension, "dimension")
add_codec(_read_split_dimension, _write_dimension, "all-to-all.dimension", "all-to-all-start.dimension")
_plain("parameter_number", "number")
_plain("tuple_index", "index")
_plain("exponent_bits", "exponent_bits")
_plain("mantissa_bits", "mantissa_bits")
_plain("epsilon", "epsilon")
_plain("feature_index", "feature_index")
_plain("is_host_transfer", "is_host_transfer")
_plain("use_global_device_ids", "use_global_device_ids")
_plain("constrain_layout", "constrain_layout")
_plain("custom_call_target", "target")
_plain("custom_call_has_side_effect", "has_side_effect")
_plain("full_matrices", "full_matrices")
_plain("is_composite", "is_composite")
_plain("indices_are_sorted", "indices_are_sorted")
_plain("unique_indices", "unique_indices")
_plain("is_stable", "is_stable")
_plain("k", "k")
_plain("largest", "largest")
_plain("delta", "delta")
_plain("channel_id", "send.channel_id", "send-done.channel_id", "recv.channel_id", "recv-done.channel_id")
_optional("channel_id", "channel_id")
_counted("feature_group_count", "feature_group_count")
_counted("batch_group_count", "batch_group_count")
_sizes("dimensions", "dimensions", "permutation")
_sizes("dynamic_slice_sizes", "dynamic-slice.slice_sizes")
_sizes("gather_slice_sizes", "gather.slice_sizes")
_sizes("fft_length", "fft_length")
_text("infeed_config", "infeed_config")
_text("outfeed_config", "outfeed_config")


# -- enumerations --------------------------------------------------------------------------------------------------


def _enumeration(field: str, values: Sequence[Any], what: str, *keys: str) -> None:
    """A number in the message; `values` lists what the numbers mean, None where one means nothing."""

    def read(proto: InstructionProto) -> Any:
        return enumerated(values, getattr(proto, field), what)

    add_codec(read, lambda proto, value: setattr(proto, field, values.index(value)), *keys)


def _named(field: str, kind: type[Named], *keys: str) -> None:
    """The name of an enumerator."""

    def read(proto: InstructionProto) -> Named:
        name: str = getattr(proto, field)
        try:
            return kind(name)
        except ValueError:
            raise ParseError(f"its {field} {excerpt(name)!r} is none of {', '.join(map(str, kind))}") from None

    add_codec(read, lambda proto, value: setattr(proto, field, str(value)), *keys)


_named("comparison_direction", ComparisonDirection, "ComparisonDirection")
_named("fusion_kind", FusionKind, "FusionKind")


def _read_comparison_type(proto: InstructionProto) -> ComparisonType | None:
    """The total order, if that is meant: the other types only repeat what the operands are. Newer releases of XLA name
    the order in a field of its own; that of integers is always total, and there for the reader to drop."""
    is_total = proto.comparison_type == str(ComparisonType.TOTALORDER) or proto.comparison_order == "TOTAL"
    return ComparisonType.TOTALORDER if is_total else None


def _write_comparison_type(proto: InstructionProto, value: ComparisonType | None) -> None:
    proto.comparison_type = str(value) if value is not None else ""


add_codec(_read_comparison_type, _write_comparison_type, "ComparisonType")
_enumeration("fft_type", tuple(FftType), "kind of transform", "FftType")
_enumeration("distribution", (None, *RandomDistribution), "distribution", "RandomDistribution")
_enumeration("rng_algorithm", tuple(RandomAlgorithm), "random algorithm", "RandomAlgorithm")
_API_VERSIONS = (CustomCallApiVersion.ORIGINAL, *CustomCallApiVersion)


def _read_api_version(proto: InstructionProto) -> CustomCallApiVersion:
    version: CustomCallApiVersion = enumerated(_API_VERSIONS, proto.custom_call_api_version, "version of custom calls")
    return version


def _write_api_version(proto: InstructionProto, value: CustomCallApiVersion) -> None:
    proto.custom_call_api_version = _API_VERSIONS.index(value, 1)


add_codec(_read_api_version, _write_api_version, "CustomCallApiVersion")
