"""Attributes in the fields of an instruction's message: one codec per attribute, found by its op, type or name."""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any

from xlapy.hlo.attributes import (
    ComparisonDirection,
    ComparisonType,
    ConvolutionDimensionNumbers,
    CustomCallApiVersion,
    DotDimensionNumbers,
    FftType,
    FusionKind,
    GatherDimensionNumbers,
    Named,
    OutputOperandAlias,
    PaddingDimension,
    Precision,
    RandomAlgorithm,
    RandomDistribution,
    ReplicaGroups,
    ScatterDimensionNumbers,
    SliceDimension,
    SourceTargetPairs,
    Transpose,
    Window,
    WindowDimension,
)
from xlapy.hlo.ops import OpSpec
from xlapy.hlo.process_groups import iota_groups
from xlapy.hlo.proto.literals import literal_from_proto
from xlapy.hlo.proto.messages import (
    CholeskyOptionsProto,
    ConvolutionDimensionNumbersProto,
    DotDimensionNumbersProto,
    GatherDimensionNumbersProto,
    InstructionProto,
    OutputOperandAliasingProto,
    PaddingConfigDimension,
    PaddingConfigProto,
    PrecisionConfigProto,
    ReplicaGroupProto,
    ScatterDimensionNumbersProto,
    SliceDimensionsProto,
    SourceTargetProto,
    TriangularSolveOptionsProto,
    WindowDimensionProto,
    WindowProto,
)
from xlapy.hlo.proto.shapes import shape_from_proto, shape_to_proto
from xlapy.support.errors import InternalError, ParseError
from xlapy.support.protobuf import enumerated
from xlapy.support.records import Record
from xlapy.support.registry import Registry
from xlapy.support.wording import excerpt

Read = Callable[[InstructionProto], Any]
Write = Callable[[InstructionProto, Any], None]


class Codec(Record):
    """How one attribute is found in a message and put there."""

    read: Read
    write: Write


CODECS: Registry[Codec] = Registry("attributes in protocol buffers")
"""By `op.attribute`, by the name of the attribute's type, or by the name of the attribute, asked in this order."""


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


def _add(read: Read, write: Write, *keys: str) -> None:
    for key in keys:
        CODECS.add(key, Codec(read, write))


# -- plain values --------------------------------------------------------------------------------------------------


def _plain(field: str, *keys: str) -> None:
    """An attribute that is the value of a field."""
    _add(lambda proto: getattr(proto, field), lambda proto, value: setattr(proto, field, value), *keys)


def _sizes(field: str, *keys: str) -> None:
    """A tuple of numbers."""
    _add(lambda proto: tuple(getattr(proto, field)), lambda proto, value: setattr(proto, field, list(value)), *keys)


def _optional(field: str, *keys: str) -> None:
    """A number, which is positive where it is given."""

    def read(proto: InstructionProto) -> int | None:
        value: int = getattr(proto, field)
        return value if value > 0 else None

    _add(read, lambda proto, value: setattr(proto, field, value or 0), *keys)


def _text(field: str, *keys: str) -> None:
    """Text that is bytes in the message."""

    def read(proto: InstructionProto) -> str:
        data: bytes = getattr(proto, field)
        return data.decode(errors="surrogateescape")

    def write(proto: InstructionProto, value: str) -> None:
        setattr(proto, field, value.encode(errors="surrogateescape"))

    _add(read, write, *keys)


def _counted(field: str, *keys: str) -> None:
    """A number of groups, of which there is one where the message has none."""
    _add(lambda proto: getattr(proto, field) or 1, lambda proto, value: setattr(proto, field, value), *keys)


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


_add(_read_mapped, _write_mapped, "map.dimensions")
_add(_read_dimension, _write_dimension, "dimension")
_add(_read_split_dimension, _write_dimension, "all-to-all.dimension", "all-to-all-start.dimension")
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

    _add(read, lambda proto, value: setattr(proto, field, values.index(value)), *keys)


def _named(field: str, kind: type[Named], *keys: str) -> None:
    """The name of an enumerator, or nothing."""

    def read(proto: InstructionProto) -> Named | None:
        name: str = getattr(proto, field)
        try:
            return kind(name) if name else None
        except ValueError:
            raise ParseError(f"{excerpt(name)!r} is none of {', '.join(map(str, kind))}") from None

    _add(read, lambda proto, value: setattr(proto, field, str(value) if value else ""), *keys)


_named("comparison_direction", ComparisonDirection, "ComparisonDirection")
_named("fusion_kind", FusionKind, "FusionKind")


def _read_comparison_type(proto: InstructionProto) -> ComparisonType | None:
    """The total order, if that is meant: the other types only repeat what the operands are. Newer releases of XLA name
    the order in a field of its own; that of integers is always total, and there for the reader to drop."""
    is_total = proto.comparison_type == str(ComparisonType.TOTALORDER) or proto.comparison_order == "TOTAL"
    return ComparisonType.TOTALORDER if is_total else None


def _write_comparison_type(proto: InstructionProto, value: ComparisonType | None) -> None:
    proto.comparison_type = str(value) if value is not None else ""


_add(_read_comparison_type, _write_comparison_type, "ComparisonType")
_enumeration("fft_type", tuple(FftType), "kind of transform", "FftType")
_enumeration("distribution", (None, *RandomDistribution), "distribution", "RandomDistribution")
_enumeration("rng_algorithm", tuple(RandomAlgorithm), "random algorithm", "RandomAlgorithm")
_API_VERSIONS = (CustomCallApiVersion.ORIGINAL, *CustomCallApiVersion)


def _read_api_version(proto: InstructionProto) -> CustomCallApiVersion:
    version: CustomCallApiVersion = enumerated(_API_VERSIONS, proto.custom_call_api_version, "version of custom calls")
    return version


def _write_api_version(proto: InstructionProto, value: CustomCallApiVersion) -> None:
    proto.custom_call_api_version = _API_VERSIONS.index(value, 1)


_add(_read_api_version, _write_api_version, "CustomCallApiVersion")


# -- messages of their own -----------------------------------------------------------------------------------------


def _same_fields(field: str, kind: type[Any], message: type[Any]) -> None:
    """Values of a class and messages of another that have the same fields; lists are tuples in the former."""
    names = [item.name for item in dataclasses.fields(kind)]

    def read(proto: InstructionProto) -> Any:
        found = getattr(proto, field) or message()
        values = (getattr(found, name) for name in names)
        return kind(*(tuple(value) if isinstance(value, list) else value for value in values))

    def write(proto: InstructionProto, value: Any) -> None:
        values = {name: getattr(value, name) for name in names}
        listed = {name: list(part) if isinstance(part, tuple) else part for name, part in values.items()}
        setattr(proto, field, message(**listed))

    _add(read, write, kind.__name__)


_same_fields("dot_dimension_numbers", DotDimensionNumbers, DotDimensionNumbersProto)
_same_fields("convolution_dimension_numbers", ConvolutionDimensionNumbers, ConvolutionDimensionNumbersProto)
_same_fields("gather_dimension_numbers", GatherDimensionNumbers, GatherDimensionNumbersProto)
_same_fields("scatter_dimension_numbers", ScatterDimensionNumbers, ScatterDimensionNumbersProto)


def _read_window(proto: InstructionProto) -> Window:
    return Window(
        tuple(
            WindowDimension(
                dimension.size,
                dimension.stride,
                dimension.padding_low,
                dimension.padding_high,
                dimension.base_dilation,
                dimension.window_dilation,
                dimension.window_reversal,
            )
            for dimension in (proto.window or WindowProto()).dimensions
        )
    )


def _write_window(proto: InstructionProto, value: Window) -> None:
    proto.window = WindowProto(
        [
            WindowDimensionProto(
                d.size, d.stride, d.padding_low, d.padding_high, d.window_dilation, d.base_dilation, d.reversal
            )
            for d in value.dimensions
        ]
    )


_add(_read_window, _write_window, "Window")


def _read_padding(proto: InstructionProto) -> tuple[PaddingDimension, ...]:
    dimensions = (proto.padding_config or PaddingConfigProto()).dimensions
    return tuple(PaddingDimension(d.edge_padding_low, d.edge_padding_high, d.interior_padding) for d in dimensions)


def _write_padding(proto: InstructionProto, value: Sequence[PaddingDimension]) -> None:
    proto.padding_config = PaddingConfigProto([PaddingConfigDimension(d.low, d.high, d.interior) for d in value])


_add(_read_padding, _write_padding, "tuple[PaddingDimension]")


def _read_slices(proto: InstructionProto) -> tuple[SliceDimension, ...]:
    return tuple(SliceDimension(d.start, d.limit, d.stride) for d in proto.slice_dimensions)


def _write_slices(proto: InstructionProto, value: Sequence[SliceDimension]) -> None:
    proto.slice_dimensions = [SliceDimensionsProto(d.start, d.limit, d.stride) for d in value]


_add(_read_slices, _write_slices, "tuple[SliceDimension]")


def _precision_config(proto: InstructionProto) -> PrecisionConfigProto:
    if proto.precision_config is None:
        proto.precision_config = PrecisionConfigProto()
    return proto.precision_config


_PRECISIONS = tuple(Precision)


def _read_precision(proto: InstructionProto) -> tuple[Precision, ...]:
    """No precision at all where every operand has the default one."""
    config = proto.precision_config or PrecisionConfigProto()
    precisions = tuple(enumerated(_PRECISIONS, number, "precision") for number in config.operand_precision)
    return precisions if any(precision is not Precision.DEFAULT for precision in precisions) else ()


def _write_precision(proto: InstructionProto, value: Sequence[Precision]) -> None:
    _precision_config(proto).operand_precision = [_PRECISIONS.index(precision) for precision in value or [_DEFAULT] * 2]


_DEFAULT = Precision.DEFAULT
_ALGORITHMS = (
    "",
    "dot_any_f8_any_f8_f32",
    "dot_any_f8_any_f8_f32_fast_accum",
    "dot_f16_f16_f16",
    "dot_f16_f16_f32",
    "dot_bf16_bf16_bf16",
    "dot_bf16_bf16_f32",
    "dot_bf16_bf16_f32_x3",
    "dot_bf16_bf16_f32_x6",
    "dot_tf32_tf32_f32",
    "dot_tf32_tf32_f32_x3",
    "dot_f32_f32_f32",
    "dot_f64_f64_f64",
    "dot_bf16_bf16_f32_x9",
)


def _read_algorithm(proto: InstructionProto) -> str:
    algorithm = (proto.precision_config or PrecisionConfigProto()).algorithm
    return str(enumerated(_ALGORITHMS, algorithm, "algorithm of dot"))


def _write_algorithm(proto: InstructionProto, value: str) -> None:
    if value not in _ALGORITHMS:
        raise ParseError(f"{value!r} is no algorithm of dot")
    _precision_config(proto).algorithm = _ALGORITHMS.index(value)


_add(_read_precision, _write_precision, "tuple[Precision]")
_add(_read_algorithm, _write_algorithm, "dot.algorithm")


def _solve_option(name: str) -> None:
    def read(proto: InstructionProto) -> Any:
        return getattr(proto.triangular_solve_options or TriangularSolveOptionsProto(), name)

    def write(proto: InstructionProto, value: Any) -> None:
        proto.triangular_solve_options = proto.triangular_solve_options or TriangularSolveOptionsProto()
        setattr(proto.triangular_solve_options, name, value)

    _add(read, write, f"triangular-solve.{name}")


_TRANSPOSES = (None, *Transpose)


def _read_transpose(proto: InstructionProto) -> Transpose:
    options = proto.triangular_solve_options or TriangularSolveOptionsProto()
    transpose: Transpose = enumerated(_TRANSPOSES, options.transpose_a, "transposition")
    return transpose


def _write_transpose(proto: InstructionProto, value: Transpose) -> None:
    proto.triangular_solve_options = proto.triangular_solve_options or TriangularSolveOptionsProto()
    proto.triangular_solve_options.transpose_a = _TRANSPOSES.index(value)


for _name in ("left_side", "lower", "unit_diagonal"):
    _solve_option(_name)
_add(_read_transpose, _write_transpose, "Transpose")


def _read_cholesky_lower(proto: InstructionProto) -> bool:
    return (proto.cholesky_options or CholeskyOptionsProto()).lower


def _write_cholesky_lower(proto: InstructionProto, value: bool) -> None:
    proto.cholesky_options = CholeskyOptionsProto(value)


_add(_read_cholesky_lower, _write_cholesky_lower, "cholesky.lower")


# -- processes -----------------------------------------------------------------------------------------------------


def _read_groups(proto: InstructionProto) -> ReplicaGroups:
    """The groups, of which newer messages hold a list of their own or a description."""
    iota = proto.iota_collective_device_list
    if iota is not None:
        sizes = (iota.num_replica_groups, iota.num_devices_per_group)
        try:
            return ReplicaGroups(iota_groups(sizes, iota.iota_reshape_dims, iota.iota_transpose_perm))
        except ValueError as error:
            raise ParseError(str(error)) from None
    listed = proto.collective_device_list
    groups = proto.replica_groups or (listed.replica_groups if listed is not None else [])
    return ReplicaGroups(tuple(tuple(group.replica_ids) for group in groups))


def _write_groups(proto: InstructionProto, value: ReplicaGroups) -> None:
    proto.replica_groups = [ReplicaGroupProto(list(group)) for group in value.groups]


def _read_pairs(proto: InstructionProto) -> SourceTargetPairs:
    return SourceTargetPairs(tuple((pair.source, pair.target) for pair in proto.source_target_pairs))


def _write_pairs(proto: InstructionProto, value: SourceTargetPairs) -> None:
    proto.source_target_pairs = [SourceTargetProto(source, target) for source, target in value.pairs]


_add(_read_groups, _write_groups, "ReplicaGroups")
_add(_read_pairs, _write_pairs, "SourceTargetPairs")


# -- constants, aliases, layouts -----------------------------------------------------------------------------------


def _read_literal(proto: InstructionProto) -> Any:
    if proto.literal is None:
        raise ParseError("a constant has no literal")
    return literal_from_proto(proto.literal)


def _write_literal(proto: InstructionProto, value: Any) -> None:
    """The writer puts it there, who knows in which layout."""


_add(_read_literal, _write_literal, "Literal")


def _read_aliases(proto: InstructionProto) -> tuple[OutputOperandAlias, ...]:
    return tuple(
        OutputOperandAlias(tuple(alias.output_shape_index), alias.operand_index, tuple(alias.operand_shape_index))
        for alias in proto.output_operand_aliasing
    )


def _write_aliases(proto: InstructionProto, value: Sequence[OutputOperandAlias]) -> None:
    proto.output_operand_aliasing = [
        OutputOperandAliasingProto(list(alias.output_index), alias.operand, list(alias.operand_index))
        for alias in value
    ]


_add(_read_aliases, _write_aliases, "tuple[OutputOperandAlias]")


def _read_layout_constraints(proto: InstructionProto) -> Any:
    return tuple(map(shape_from_proto, proto.operand_shapes_with_layout)) if proto.constrain_layout else None


def _write_layout_constraints(proto: InstructionProto, value: Any) -> None:
    proto.constrain_layout = value is not None
    proto.operand_shapes_with_layout = [shape_to_proto(shape) for shape in value or ()]


def _read_outfeed_shape(proto: InstructionProto) -> Any:
    return shape_from_proto(proto.outfeed_shape) if proto.outfeed_shape is not None else None


def _write_outfeed_shape(proto: InstructionProto, value: Any) -> None:
    proto.outfeed_shape = shape_to_proto(value) if value is not None else None


_add(_read_layout_constraints, _write_layout_constraints, "custom-call.operand_layout_constraints")
_add(_read_outfeed_shape, _write_outfeed_shape, "outfeed_shape")
