"""Attributes that have messages of their own: dimension numbers, windows, groups of processes, literals, layouts."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from xlapy.hlo.attributes import (
    ConvolutionDimensionNumbers,
    DotDimensionNumbers,
    GatherDimensionNumbers,
    OutputOperandAlias,
    PaddingDimension,
    Precision,
    ReplicaGroups,
    ScatterDimensionNumbers,
    SliceDimension,
    SourceTargetPairs,
    Transpose,
    Window,
    WindowDimension,
)
from xlapy.hlo.process_groups import AxisPart, iota_groups, mesh_groups, transposed_ids
from xlapy.hlo.proto.codecs import add_codec
from xlapy.hlo.proto.literals import literal_from_proto
from xlapy.hlo.proto.messages import (
    CholeskyOptionsProto,
    ConvolutionDimensionNumbersProto,
    DotDimensionNumbersProto,
    GatherDimensionNumbersProto,
    InstructionProto,
    MeshProto,
    MeshReplicaGroupListProto,
    OutputOperandAliasingProto,
    PaddingConfigDimension,
    PaddingConfigProto,
    PrecisionConfigProto,
    ReplicaGroupProto,
    ScatterDimensionNumbersProto,
    SliceDimensionsProto,
    SourceTargetProto,
    SubAxisProto,
    TriangularSolveOptionsProto,
    WindowDimensionProto,
    WindowProto,
)
from xlapy.hlo.proto.shapes import shape_from_proto, shape_to_proto
from xlapy.support.errors import ParseError
from xlapy.support.protobuf import enumerated

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

    add_codec(read, write, kind.__name__)


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


add_codec(_read_window, _write_window, "Window")


def _read_padding(proto: InstructionProto) -> tuple[PaddingDimension, ...]:
    dimensions = (proto.padding_config or PaddingConfigProto()).dimensions
    return tuple(PaddingDimension(d.edge_padding_low, d.edge_padding_high, d.interior_padding) for d in dimensions)


def _write_padding(proto: InstructionProto, value: Sequence[PaddingDimension]) -> None:
    proto.padding_config = PaddingConfigProto([PaddingConfigDimension(d.low, d.high, d.interior) for d in value])


add_codec(_read_padding, _write_padding, "tuple[PaddingDimension]")


def _read_slices(proto: InstructionProto) -> tuple[SliceDimension, ...]:
    return tuple(SliceDimension(d.start, d.limit, d.stride) for d in proto.slice_dimensions)


def _write_slices(proto: InstructionProto, value: Sequence[SliceDimension]) -> None:
    proto.slice_dimensions = [SliceDimensionsProto(d.start, d.limit, d.stride) for d in value]


add_codec(_read_slices, _write_slices, "tuple[SliceDimension]")


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


add_codec(_read_precision, _write_precision, "tuple[Precision]")
add_codec(_read_algorithm, _write_algorithm, "dot.algorithm")


def _solve_option(name: str) -> None:
    def read(proto: InstructionProto) -> Any:
        return getattr(proto.triangular_solve_options or TriangularSolveOptionsProto(), name)

    def write(proto: InstructionProto, value: Any) -> None:
        proto.triangular_solve_options = proto.triangular_solve_options or TriangularSolveOptionsProto()
        setattr(proto.triangular_solve_options, name, value)

    add_codec(read, write, f"triangular-solve.{name}")


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
add_codec(_read_transpose, _write_transpose, "Transpose")


def _read_cholesky_lower(proto: InstructionProto) -> bool:
    return (proto.cholesky_options or CholeskyOptionsProto()).lower


def _write_cholesky_lower(proto: InstructionProto, value: bool) -> None:
    proto.cholesky_options = CholeskyOptionsProto(value)


add_codec(_read_cholesky_lower, _write_cholesky_lower, "cholesky.lower", "eigh.lower")


# -- processes -----------------------------------------------------------------------------------------------------


def _read_groups(proto: InstructionProto) -> ReplicaGroups:
    """The groups, of which newer messages hold a list of their own or a description."""
    iota, mesh = proto.iota_collective_device_list, proto.mesh_collective_device_list
    try:
        if iota is not None:
            sizes = (iota.num_replica_groups, iota.num_devices_per_group)
            return ReplicaGroups(iota_groups(sizes, iota.iota_reshape_dims, iota.iota_transpose_perm))
        if mesh is not None:
            return ReplicaGroups(_groups_of_mesh(mesh))
    except ValueError as error:
        raise ParseError(str(error)) from None
    listed = proto.collective_device_list
    groups = proto.replica_groups or (listed.replica_groups if listed is not None else [])
    return ReplicaGroups(tuple(tuple(group.replica_ids) for group in groups))


def _groups_of_mesh(proto: MeshReplicaGroupListProto) -> tuple[tuple[int, ...], ...]:
    mesh = proto.mesh or MeshProto()
    sizes = [axis.size for axis in mesh.axes]
    if not all(0 <= part.mesh_axis_index < len(sizes) for part in proto.axes):
        raise ValueError(f"groups along an axis that a mesh of {sizes} does not have")
    parts = []
    for ref in proto.axes:
        part = ref.sub_axis_info or SubAxisProto(1, sizes[ref.mesh_axis_index])
        parts.append(AxisPart(ref.mesh_axis_index, part.pre_size, part.size))
    iota = mesh.iota_device_ids
    ids = mesh.device_ids if iota is None else transposed_ids(iota.reshape_dims, iota.transpose_perm)
    return mesh_groups(sizes, parts, ids)


def _write_groups(proto: InstructionProto, value: ReplicaGroups) -> None:
    proto.replica_groups = [ReplicaGroupProto(list(group)) for group in value.groups]


def _read_pairs(proto: InstructionProto) -> SourceTargetPairs:
    return SourceTargetPairs(tuple((pair.source, pair.target) for pair in proto.source_target_pairs))


def _write_pairs(proto: InstructionProto, value: SourceTargetPairs) -> None:
    proto.source_target_pairs = [SourceTargetProto(source, target) for source, target in value.pairs]


add_codec(_read_groups, _write_groups, "ReplicaGroups")
add_codec(_read_pairs, _write_pairs, "SourceTargetPairs")


# -- constants, aliases, layouts -----------------------------------------------------------------------------------


def _read_literal(proto: InstructionProto) -> Any:
    if proto.literal is None:
        raise ParseError("a constant has no literal")
    return literal_from_proto(proto.literal)


def _write_literal(proto: InstructionProto, value: Any) -> None:
    """The writer puts it there, who knows in which layout."""


add_codec(_read_literal, _write_literal, "Literal")


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


add_codec(_read_aliases, _write_aliases, "tuple[OutputOperandAlias]")


def _read_layout_constraints(proto: InstructionProto) -> Any:
    return tuple(map(shape_from_proto, proto.operand_shapes_with_layout)) if proto.constrain_layout else None


def _write_layout_constraints(proto: InstructionProto, value: Any) -> None:
    proto.constrain_layout = value is not None
    proto.operand_shapes_with_layout = [shape_to_proto(shape) for shape in value or ()]


def _read_outfeed_shape(proto: InstructionProto) -> Any:
    return shape_from_proto(proto.outfeed_shape) if proto.outfeed_shape is not None else None


def _write_outfeed_shape(proto: InstructionProto, value: Any) -> None:
    proto.outfeed_shape = shape_to_proto(value) if value is not None else None


add_codec(_read_layout_constraints, _write_layout_constraints, "custom-call.operand_layout_constraints")
add_codec(_read_outfeed_shape, _write_outfeed_shape, "outfeed_shape")
