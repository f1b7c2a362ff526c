"""The messages of compile options, with the names and numbers that XLA gives their fields."""

from __future__ import annotations

from dataclasses import dataclass

from xlapy.hlo.proto.messages import ShapeProto
from xlapy.support.protobuf import BOOL, BYTES, DOUBLE, FLOAT, INT, STRING, present, repeated, single


@dataclass(slots=True)
class ComputationDevicesProto:
    replica_device_ids: list[int] = repeated(1, INT)


@dataclass(slots=True)
class DeviceAssignmentProto:
    replica_count: int = single(1, INT)
    computation_count: int = single(2, INT)
    computation_devices: list[ComputationDevicesProto] = repeated(3, ComputationDevicesProto)


@dataclass(slots=True)
class DebugOptionsProto:
    """Those of the flags that scripts for CPUs set. A flag that is not stored has its default."""

    xla_disable_hlo_passes: list[str] = repeated(30, STRING)
    xla_backend_optimization_level: int | None = present(31, INT)
    xla_llvm_disable_expensive_passes: bool | None = present(73, BOOL)
    xla_cpu_enable_fast_math: bool | None = present(99, BOOL)
    xla_force_host_platform_device_count: int | None = present(102, INT)
    xla_dump_to: str | None = present(109, STRING)
    xla_dump_hlo_module_re: str | None = present(110, STRING)
    xla_dump_hlo_pass_re: str | None = present(111, STRING)
    xla_dump_hlo_as_text: bool | None = present(112, BOOL)
    xla_dump_hlo_as_proto: bool | None = present(113, BOOL)
    xla_dump_hlo_as_dot: bool | None = present(114, BOOL)
    xla_dump_hlo_as_url: bool | None = present(115, BOOL)
    xla_dump_hlo_as_html: bool | None = present(116, BOOL)
    xla_dump_hlo_snapshots: bool | None = present(118, BOOL)
    xla_cpu_fast_math_honor_nans: bool | None = present(120, BOOL)
    xla_cpu_fast_math_honor_infs: bool | None = present(121, BOOL)
    xla_enable_hlo_passes_only: list[str] = repeated(124, STRING)
    xla_cpu_fast_math_honor_division: bool | None = present(126, BOOL)
    xla_cpu_fast_math_honor_functions: bool | None = present(129, BOOL)
    xla_dump_max_hlo_modules: int | None = present(132, INT)
    xla_dump_module_metadata: bool | None = present(144, BOOL)
    xla_dump_fusion_visualization: bool | None = present(149, BOOL)
    xla_dump_compress_protos: bool | None = present(151, BOOL)
    xla_dump_disable_metadata: bool | None = present(153, BOOL)
    xla_dump_hlo_pipeline_re: str | None = present(154, STRING)
    xla_dump_hlo_as_long_text: bool | None = present(164, BOOL)


@dataclass(slots=True)
class ExecutableBuildOptionsProto:
    device_ordinal: int = single(1, INT)
    result_layout: ShapeProto | None = present(2, ShapeProto)
    debug_options: DebugOptionsProto | None = present(3, DebugOptionsProto)
    num_replicas: int = single(4, INT)
    num_partitions: int = single(5, INT)
    use_spmd_partitioning: bool = single(6, BOOL)
    use_auto_spmd_partitioning: bool = single(7, BOOL)
    device_assignment: DeviceAssignmentProto | None = present(9, DeviceAssignmentProto)
    allow_spmd_sharding_propagation_to_output: list[bool] = repeated(12, BOOL)
    fdo_profile: bytes = single(14, BYTES)
    auto_spmd_partitioning_mesh_shape: list[int] = repeated(16, INT)
    auto_spmd_partitioning_mesh_ids: list[int] = repeated(17, INT)
    allow_spmd_sharding_propagation_to_parameters: list[bool] = repeated(18, BOOL)
    use_shardy_partitioner: bool = single(19, BOOL)
    exec_time_optimization_effort: float = single(20, FLOAT)
    memory_fitting_effort: float = single(21, FLOAT)


@dataclass(slots=True)
class OptionOverrideProto:
    """One of these is given."""

    string_field: str | None = present(1, STRING)
    bool_field: bool | None = present(2, BOOL)
    int_field: int | None = present(3, INT)
    double_field: float | None = present(4, DOUBLE)


@dataclass(slots=True)
class OverrideEntry:
    key: str = single(1, STRING)
    value: OptionOverrideProto | None = present(2, OptionOverrideProto)


@dataclass(slots=True)
class CompileOptionsProto:
    argument_layouts: list[ShapeProto] = repeated(1, ShapeProto)
    parameter_is_tupled_arguments: bool = single(2, BOOL)
    executable_build_options: ExecutableBuildOptionsProto | None = present(3, ExecutableBuildOptionsProto)
    compile_portable_executable: bool = single(4, BOOL)
    profile_version: int = single(5, INT)
    env_option_overrides: list[OverrideEntry] = repeated(7, OverrideEntry)


@dataclass(slots=True)
class ExecutableProto:
    """xlapy's own: a program to compile again, and how."""

    format: int = single(1, INT)
    module: bytes = single(2, BYTES)  # an HloModuleProto, which says nothing of the grid
    num_replicas: int = single(3, INT)
    num_partitions: int = single(4, INT)
    options: CompileOptionsProto | None = present(5, CompileOptionsProto)
