"""The messages of HLO's protocol buffers, with the names and numbers that XLA gives their fields.

Fields that nothing here has a use for are left out, and skipped on reading.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from xlapy.support.protobuf import (
    BOOL,
    BYTES,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    UNSIGNED,
    array,
    present,
    repeated,
    single,
)

# -- shapes --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class LayoutProto:
    minor_to_major: list[int] = repeated(1, INT)


@dataclass(slots=True)
class ShapeProto:
    element_type: int = single(2, INT)
    dimensions: list[int] = repeated(3, INT)
    tuple_shapes: list[ShapeProto] = repeated(4, lambda: ShapeProto)
    layout: LayoutProto | None = present(5, LayoutProto)
    is_dynamic_dimension: list[bool] = repeated(6, BOOL)


@dataclass(slots=True)
class ProgramShapeProto:
    parameters: list[ShapeProto] = repeated(1, ShapeProto)
    result: ShapeProto | None = present(2, ShapeProto)
    parameter_names: list[str] = repeated(3, STRING)


# -- literals ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class LiteralProto:
    """One of the fields behind `shape` holds the elements, in the order of the shape's layout."""

    shape: ShapeProto | None = present(1, ShapeProto)
    preds: np.ndarray[Any, Any] | None = array(2, BOOL)
    u8s: bytes = single(3, BYTES)
    s32s: np.ndarray[Any, Any] | None = array(4, INT)
    s64s: np.ndarray[Any, Any] | None = array(5, INT)
    u32s: np.ndarray[Any, Any] | None = array(6, UNSIGNED)
    u64s: np.ndarray[Any, Any] | None = array(7, UNSIGNED)
    f32s: np.ndarray[Any, Any] | None = array(8, FLOAT)
    f64s: np.ndarray[Any, Any] | None = array(9, DOUBLE)
    tuple_literals: list[LiteralProto] = repeated(10, lambda: LiteralProto)
    f16s: bytes = single(11, BYTES)
    c64s: np.ndarray[Any, Any] | None = array(12, FLOAT)
    bf16s: bytes = single(13, BYTES)
    s8s: bytes = single(15, BYTES)
    u16s: bytes = single(16, BYTES)
    s16s: bytes = single(17, BYTES)
    c128s: np.ndarray[Any, Any] | None = array(18, DOUBLE)
    f8e5m2s: bytes = single(19, BYTES)
    f8e4m3fns: bytes = single(20, BYTES)
    s4s: bytes = single(21, BYTES)
    u4s: bytes = single(22, BYTES)
    f8e4m3b11fnuzs: bytes = single(23, BYTES)
    f8e5m2fnuzs: bytes = single(24, BYTES)
    f8e4m3fnuzs: bytes = single(25, BYTES)
    s2s: bytes = single(26, BYTES)
    u2s: bytes = single(27, BYTES)
    f8e4m3s: bytes = single(28, BYTES)
    f8e3m4s: bytes = single(29, BYTES)
    f4e2m1fns: bytes = single(32, BYTES)
    f8e8m0fnus: bytes = single(33, BYTES)
    f6e3m2fns: bytes = single(35, BYTES)
    f6e2m3fns: bytes = single(36, BYTES)


# -- attributes ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class PaddingConfigDimension:
    edge_padding_low: int = single(1, INT)
    edge_padding_high: int = single(2, INT)
    interior_padding: int = single(3, INT)


@dataclass(slots=True)
class PaddingConfigProto:
    dimensions: list[PaddingConfigDimension] = repeated(1, PaddingConfigDimension)


@dataclass(slots=True)
class SliceDimensionsProto:
    start: int = single(1, INT)
    limit: int = single(2, INT)
    stride: int = single(3, INT)


@dataclass(slots=True)
class WindowDimensionProto:
    size: int = single(1, INT)
    stride: int = single(2, INT)
    padding_low: int = single(3, INT)
    padding_high: int = single(4, INT)
    window_dilation: int = single(5, INT)
    base_dilation: int = single(6, INT)
    window_reversal: bool = single(7, BOOL)


@dataclass(slots=True)
class WindowProto:
    dimensions: list[WindowDimensionProto] = repeated(1, WindowDimensionProto)


@dataclass(slots=True)
class DotDimensionNumbersProto:
    lhs_contracting: list[int] = repeated(1, INT)
    rhs_contracting: list[int] = repeated(2, INT)
    lhs_batch: list[int] = repeated(3, INT)
    rhs_batch: list[int] = repeated(4, INT)


@dataclass(slots=True)
class ConvolutionDimensionNumbersProto:
    kernel_input_feature: int = single(3, INT)
    kernel_output_feature: int = single(4, INT)
    kernel_spatial: list[int] = repeated(6, INT)
    input_batch: int = single(7, INT)
    input_feature: int = single(8, INT)
    output_batch: int = single(9, INT)
    output_feature: int = single(10, INT)
    input_spatial: list[int] = repeated(11, INT)
    output_spatial: list[int] = repeated(12, INT)


@dataclass(slots=True)
class GatherDimensionNumbersProto:
    offset_dims: list[int] = repeated(1, INT)
    collapsed_slice_dims: list[int] = repeated(2, INT)
    start_index_map: list[int] = repeated(3, INT)
    index_vector_dim: int = single(4, INT)
    operand_batching_dims: list[int] = repeated(5, INT)
    start_indices_batching_dims: list[int] = repeated(6, INT)


@dataclass(slots=True)
class ScatterDimensionNumbersProto:
    update_window_dims: list[int] = repeated(1, INT)
    inserted_window_dims: list[int] = repeated(2, INT)
    scatter_dims_to_operand_dims: list[int] = repeated(3, INT)
    index_vector_dim: int = single(4, INT)
    input_batching_dims: list[int] = repeated(5, INT)
    scatter_indices_batching_dims: list[int] = repeated(6, INT)


@dataclass(slots=True)
class PrecisionConfigProto:
    operand_precision: list[int] = repeated(1, INT)
    algorithm: int = single(2, INT)


@dataclass(slots=True)
class TriangularSolveOptionsProto:
    left_side: bool = single(1, BOOL)
    lower: bool = single(2, BOOL)
    unit_diagonal: bool = single(3, BOOL)
    transpose_a: int = single(4, INT)


@dataclass(slots=True)
class CholeskyOptionsProto:
    lower: bool = single(1, BOOL)


@dataclass(slots=True)
class ReplicaGroupProto:
    replica_ids: list[int] = repeated(1, INT)


@dataclass(slots=True)
class CollectiveDeviceListProto:
    replica_groups: list[ReplicaGroupProto] = repeated(1, ReplicaGroupProto)


@dataclass(slots=True)
class IotaReplicaGroupListProto:
    num_replica_groups: int = single(1, INT)
    num_devices_per_group: int = single(2, INT)
    iota_reshape_dims: list[int] = repeated(3, INT)
    iota_transpose_perm: list[int] = repeated(4, INT)


@dataclass(slots=True)
class MeshAxisProto:
    name: str = single(1, STRING)
    size: int = single(2, INT)


@dataclass(slots=True)
class TransposedIotaProto:
    reshape_dims: list[int] = repeated(1, INT)
    transpose_perm: list[int] = repeated(2, INT)


@dataclass(slots=True)
class MeshProto:
    axes: list[MeshAxisProto] = repeated(1, MeshAxisProto)
    device_ids: list[int] = repeated(2, INT)
    iota_device_ids: TransposedIotaProto | None = present(3, TransposedIotaProto)


@dataclass(slots=True)
class SubAxisProto:
    pre_size: int = single(1, INT)
    size: int = single(2, INT)


@dataclass(slots=True)
class AxisRefProto:
    mesh_axis_index: int = single(1, INT)
    sub_axis_info: SubAxisProto | None = present(2, SubAxisProto)


@dataclass(slots=True)
class MeshReplicaGroupListProto:
    mesh: MeshProto | None = present(1, MeshProto)
    axes: list[AxisRefProto] = repeated(2, AxisRefProto)


@dataclass(slots=True)
class SourceTargetProto:
    source: int = single(1, INT)
    target: int = single(2, INT)


@dataclass(slots=True)
class OutputOperandAliasingProto:
    output_shape_index: list[int] = repeated(1, INT)
    operand_index: int = single(2, INT)
    operand_shape_index: list[int] = repeated(3, INT)


@dataclass(slots=True)
class ParameterReplicationProto:
    replicated_at_leaf_buffers: list[bool] = repeated(1, BOOL)


@dataclass(slots=True)
class StringEntry:
    key: str = single(1, STRING)
    value: str = single(2, STRING)


@dataclass(slots=True)
class FrontendAttributesProto:
    map: list[StringEntry] = repeated(1, StringEntry)


@dataclass(slots=True)
class OpShardingProto:
    type: int = single(1, INT)
    tile_assignment_dimensions: list[int] = repeated(3, INT)
    tile_assignment_devices: list[int] = repeated(4, INT)
    tuple_shardings: list[OpShardingProto] = repeated(5, lambda: OpShardingProto)
    replicate_on_last_tile_dim: bool = single(6, BOOL)
    last_tile_dims: list[int] = repeated(8, INT)
    iota_reshape_dims: list[int] = repeated(9, INT)
    iota_transpose_perm: list[int] = repeated(10, INT)
    is_shard_group: bool = single(11, BOOL)
    shard_group_id: int = single(12, INT)
    shard_group_type: int = single(13, INT)


@dataclass(slots=True)
class OpMetadataProto:
    op_type: str = single(1, STRING)
    op_name: str = single(2, STRING)
    source_file: str = single(3, STRING)
    source_line: int = single(4, INT)
    deduplicated_name: str = single(12, STRING)
    stack_frame_id: int = single(15, INT)
    scheduling_name: str = single(16, STRING)
    source_end_line: int = single(17, INT)
    source_column: int = single(18, INT)
    source_end_column: int = single(19, INT)


# -- instructions, computations, modules ---------------------------------------------------------------------------


@dataclass(slots=True)
class InstructionProto:
    name: str = single(1, STRING)
    opcode: str = single(2, STRING)
    shape: ShapeProto | None = present(3, ShapeProto)
    metadata: OpMetadataProto | None = present(7, OpMetadataProto)
    literal: LiteralProto | None = present(8, LiteralProto)
    parameter_number: int = single(9, INT)
    fusion_kind: str = single(11, STRING)
    tuple_index: int = single(13, INT)
    dimensions: list[int] = repeated(14, INT)
    window: WindowProto | None = present(15, WindowProto)
    convolution_dimension_numbers: ConvolutionDimensionNumbersProto | None = present(
        16, ConvolutionDimensionNumbersProto
    )
    slice_dimensions: list[SliceDimensionsProto] = repeated(17, SliceDimensionsProto)
    exponent_bits: int = single(18, INT)
    mantissa_bits: int = single(19, INT)
    dynamic_slice_sizes: list[int] = repeated(20, INT)
    padding_config: PaddingConfigProto | None = present(21, PaddingConfigProto)
    outfeed_config: bytes = single(22, BYTES)
    distribution: int = single(23, INT)
    epsilon: float = single(24, FLOAT)
    feature_index: int = single(25, INT)
    channel_id: int = single(26, INT)
    infeed_config: bytes = single(27, BYTES)
    custom_call_target: str = single(28, STRING)
    outfeed_shape: ShapeProto | None = present(29, ShapeProto)
    dot_dimension_numbers: DotDimensionNumbersProto | None = present(30, DotDimensionNumbersProto)
    fft_type: int = single(31, INT)
    fft_length: list[int] = repeated(32, INT)
    gather_dimension_numbers: GatherDimensionNumbersProto | None = present(33, GatherDimensionNumbersProto)
    gather_slice_sizes: list[int] = repeated(34, INT)
    id: int = single(35, INT)
    operand_ids: list[int] = repeated(36, INT)
    control_predecessor_ids: list[int] = repeated(37, INT)
    called_computation_ids: list[int] = repeated(38, INT)
    sharding: OpShardingProto | None = present(40, OpShardingProto)
    backend_config: bytes = single(43, BYTES)
    is_host_transfer: bool = single(47, BOOL)
    scatter_dimension_numbers: ScatterDimensionNumbersProto | None = present(48, ScatterDimensionNumbersProto)
    replica_groups: list[ReplicaGroupProto] = repeated(49, ReplicaGroupProto)
    feature_group_count: int = single(50, INT)
    precision_config: PrecisionConfigProto | None = present(51, PrecisionConfigProto)
    source_target_pairs: list[SourceTargetProto] = repeated(52, SourceTargetProto)
    constrain_layout: bool = single(56, BOOL)
    operand_shapes_with_layout: list[ShapeProto] = repeated(57, ShapeProto)
    batch_group_count: int = single(58, INT)
    triangular_solve_options: TriangularSolveOptionsProto | None = present(59, TriangularSolveOptionsProto)
    is_stable: bool = single(60, BOOL)
    parameter_replication: ParameterReplicationProto | None = present(61, ParameterReplicationProto)
    cholesky_options: CholeskyOptionsProto | None = present(62, CholeskyOptionsProto)
    comparison_direction: str = single(63, STRING)
    custom_call_has_side_effect: bool = single(65, BOOL)
    delta: int = single(66, INT)
    indices_are_sorted: bool = single(67, BOOL)
    frontend_attributes: FrontendAttributesProto | None = present(68, FrontendAttributesProto)
    unique_indices: bool = single(69, BOOL)
    rng_algorithm: int = single(70, INT)
    use_global_device_ids: bool = single(71, BOOL)
    comparison_type: str = single(72, STRING)
    output_operand_aliasing: list[OutputOperandAliasingProto] = repeated(74, OutputOperandAliasingProto)
    custom_call_schedule: int = single(76, INT)
    custom_call_api_version: int = single(77, INT)
    k: int = single(81, INT)
    largest: bool = single(85, BOOL)
    collective_device_list: CollectiveDeviceListProto | None = present(87, CollectiveDeviceListProto)
    is_composite: bool = single(89, BOOL)
    iota_collective_device_list: IotaReplicaGroupListProto | None = present(92, IotaReplicaGroupListProto)
    mesh_collective_device_list: MeshReplicaGroupListProto | None = present(93, MeshReplicaGroupListProto)
    comparison_order: str = single(102, STRING)
    full_matrices: bool = single(20001, BOOL)  # of an op of xlapy, far from the numbers that XLA gives


@dataclass(slots=True)
class ComputationProto:
    name: str = single(1, STRING)
    instructions: list[InstructionProto] = repeated(2, InstructionProto)
    program_shape: ProgramShapeProto | None = present(4, ProgramShapeProto)
    id: int = single(5, INT)
    root_id: int = single(6, INT)
    is_fusion_computation: bool = single(7, BOOL)
    execution_thread: str = single(8, STRING)


@dataclass(slots=True)
class InstructionSequenceProto:
    instruction_ids: list[int] = repeated(1, INT)


@dataclass(slots=True)
class SequenceEntry:
    key: int = single(1, INT)
    value: InstructionSequenceProto | None = present(2, InstructionSequenceProto)


@dataclass(slots=True)
class ScheduleProto:
    sequences: list[SequenceEntry] = repeated(1, SequenceEntry)


@dataclass(slots=True)
class AliasEntryProto:
    output_shape_index: list[int] = repeated(1, INT)
    parameter_number: int = single(2, INT)
    parameter_shape_index: list[int] = repeated(3, INT)
    kind: int = single(4, INT)


@dataclass(slots=True)
class InputOutputAliasProto:
    entries: list[AliasEntryProto] = repeated(1, AliasEntryProto)


@dataclass(slots=True)
class DonorEntryProto:
    parameter_number: int = single(1, INT)
    parameter_shape_index: list[int] = repeated(2, INT)


@dataclass(slots=True)
class BufferDonorProto:
    entries: list[DonorEntryProto] = repeated(1, DonorEntryProto)


@dataclass(slots=True)
class FileLocationProto:
    file_name_id: int = single(1, INT)
    line: int = single(3, INT)


@dataclass(slots=True)
class StackFrameProto:
    file_location_id: int = single(1, INT)


@dataclass(slots=True)
class StackFrameIndexProto:
    file_names: list[str] = repeated(1, STRING)
    file_locations: list[FileLocationProto] = repeated(3, FileLocationProto)
    stack_frames: list[StackFrameProto] = repeated(4, StackFrameProto)


@dataclass(slots=True)
class ModuleProto:
    name: str = single(1, STRING)
    entry_computation_name: str = single(2, STRING)
    computations: list[ComputationProto] = repeated(3, ComputationProto)
    host_program_shape: ProgramShapeProto | None = present(4, ProgramShapeProto)
    id: int = single(5, INT)
    entry_computation_id: int = single(6, INT)
    schedule: ScheduleProto | None = present(7, ScheduleProto)
    input_output_alias: InputOutputAliasProto | None = present(8, InputOutputAliasProto)
    is_dynamic: bool = single(11, BOOL)
    stack_frame_index: StackFrameIndexProto | None = present(17, StackFrameIndexProto)
    buffer_donor: BufferDonorProto | None = present(18, BufferDonorProto)
    frontend_attributes: FrontendAttributesProto | None = present(19, FrontendAttributesProto)


@dataclass(slots=True)
class HloProto:
    """What `xla_dump_hlo_as_proto` writes around a module."""

    hlo_module: ModuleProto | None = present(1, ModuleProto)
