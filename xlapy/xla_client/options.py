"""CompileOptions with the old interface's fields, most of which concern other machines and are kept but not read."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from xlapy import options as xlapy_options
from xlapy.hlo.proto import shape_to_proto
from xlapy.hlo.proto.options import (
    CompileOptionsProto,
    ComputationDevicesProto,
    DebugOptionsProto,
    DeviceAssignmentProto,
    ExecutableBuildOptionsProto,
    OptionOverrideProto,
    OverrideEntry,
)
from xlapy.support.errors import ArgumentError, ParseError
from xlapy.support.protobuf import decode, encode
from xlapy.xla_client.shapes import Shape


class DeviceAssignment:
    """Which device runs which process: rows are replicas, columns are computations (partitions)."""

    __slots__ = ("_ids",)

    def __init__(self, ids: np.ndarray[Any, Any]) -> None:
        if ids.ndim != 2:
            raise ArgumentError(f"a device assignment is an array of replicas by computations, not of rank {ids.ndim}")
        self._ids = ids.astype(np.int64)

    @staticmethod
    def create(array: Any) -> DeviceAssignment:
        return DeviceAssignment(np.asarray(array))

    def replica_count(self) -> int:
        return int(self._ids.shape[0])

    def computation_count(self) -> int:
        return int(self._ids.shape[1])

    def device_ids(self) -> tuple[int, ...]:
        """The ids, replica-major."""
        return tuple(int(number) for number in self._ids.ravel())

    def to_proto(self) -> DeviceAssignmentProto:
        columns = [ComputationDevicesProto(column.tolist()) for column in self._ids.T]
        return DeviceAssignmentProto(self.replica_count(), self.computation_count(), columns)

    @staticmethod
    def from_proto(proto: DeviceAssignmentProto) -> DeviceAssignment:
        """Raises ParseError where the counts do not fit the lists."""
        replicas, computations = proto.replica_count, proto.computation_count
        columns = [column.replica_device_ids for column in proto.computation_devices]
        if replicas < 0 or len(columns) != computations or any(len(column) != replicas for column in columns):
            raise ParseError(f"a device assignment of {replicas} replicas by {computations} computations lists others")
        return DeviceAssignment(np.array(columns, np.int64).reshape(computations, replicas).T)

    def serialize(self) -> bytes:
        """The bytes of a DeviceAssignmentProto."""
        return encode(self.to_proto())

    @staticmethod
    def deserialize(serialized: bytes) -> DeviceAssignment:
        """The assignment in the bytes of a DeviceAssignmentProto; raises ParseError where there is none."""
        return DeviceAssignment.from_proto(decode(DeviceAssignmentProto, serialized))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceAssignment) and np.array_equal(self._ids, other._ids)

    def __hash__(self) -> int:
        return hash((self._ids.shape, self.device_ids()))

    def __repr__(self) -> str:
        return f"DeviceAssignment({self._ids.tolist()})"


@dataclass
class DebugOptions:
    """Flags by their old names. xlapy reads `xla_cpu_enable_fast_math`; it keeps the others, and any that is assigned.

    Lists of passes are text with commas between the names."""

    xla_cpu_enable_fast_math: bool = False
    xla_cpu_fast_math_honor_infs: bool = True
    xla_cpu_fast_math_honor_nans: bool = True
    xla_cpu_fast_math_honor_division: bool = True
    xla_cpu_fast_math_honor_functions: bool = True
    xla_backend_optimization_level: int = 3
    xla_llvm_disable_expensive_passes: bool = False
    xla_disable_hlo_passes: str = ""
    xla_enable_hlo_passes_only: str = ""
    xla_force_host_platform_device_count: int = 1
    xla_dump_to: str = ""
    xla_dump_hlo_module_re: str = ""
    xla_dump_hlo_pass_re: str = ""
    xla_dump_hlo_pipeline_re: str = ""
    xla_dump_hlo_as_text: bool = False
    xla_dump_hlo_as_proto: bool = False
    xla_dump_hlo_as_dot: bool = False
    xla_dump_hlo_as_url: bool = False
    xla_dump_hlo_as_html: bool = False
    xla_dump_hlo_as_long_text: bool = False
    xla_dump_hlo_snapshots: bool = False
    xla_dump_max_hlo_modules: int = -1
    xla_dump_module_metadata: bool = False
    xla_dump_fusion_visualization: bool = False
    xla_dump_compress_protos: bool = False
    xla_dump_disable_metadata: bool = False

    def to_proto(self) -> DebugOptionsProto:
        """Only what differs from the default is stored."""
        proto = DebugOptionsProto()
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            if value != item.default:
                setattr(proto, item.name, value.split(",") if item.name in _PASS_LISTS else value)
        return proto

    @staticmethod
    def from_proto(proto: DebugOptionsProto) -> DebugOptions:
        options = DebugOptions()
        for item in dataclasses.fields(proto):
            value = getattr(proto, item.name)
            if value is not None:
                setattr(options, item.name, ",".join(value) if item.name in _PASS_LISTS else value)
        return options


_PASS_LISTS = ("xla_disable_hlo_passes", "xla_enable_hlo_passes_only")


@dataclass
class ExecutableBuildOptions:
    """The nested options, which hold the grid, too."""

    num_replicas: int = 1
    num_partitions: int = 1
    device_assignment: DeviceAssignment | None = None
    debug_options: DebugOptions = field(default_factory=DebugOptions)
    result_layout: Shape | None = None
    use_spmd_partitioning: bool = False
    use_auto_spmd_partitioning: bool = False
    use_shardy_partitioner: bool = False
    auto_spmd_partitioning_mesh_shape: Sequence[int] = ()
    auto_spmd_partitioning_mesh_ids: Sequence[int] = ()
    allow_spmd_sharding_propagation_to_parameters: Sequence[bool] = (False,)
    allow_spmd_sharding_propagation_to_output: Sequence[bool] = (False,)
    exec_time_optimization_effort: float = 0.0
    memory_fitting_effort: float = 0.0
    fdo_profile: bytes = b""

    def to_proto(self) -> ExecutableBuildOptionsProto:
        proto = ExecutableBuildOptionsProto(_NO_DEVICE)
        for name in _PLAIN_BUILD_OPTIONS:
            setattr(proto, name, getattr(self, name))
        for name in _LISTED_BUILD_OPTIONS:
            setattr(proto, name, list(getattr(self, name)))
        proto.debug_options = self.debug_options.to_proto()
        proto.result_layout = None if self.result_layout is None else shape_to_proto(self.result_layout.unwrapped())
        proto.device_assignment = None if self.device_assignment is None else self.device_assignment.to_proto()
        return proto

    @staticmethod
    def from_proto(proto: ExecutableBuildOptionsProto) -> ExecutableBuildOptions:
        options = ExecutableBuildOptions()
        for name in _PLAIN_BUILD_OPTIONS:
            setattr(options, name, getattr(proto, name))
        for name in _LISTED_BUILD_OPTIONS:
            setattr(options, name, tuple(getattr(proto, name)))
        options.num_replicas = proto.num_replicas or 1
        options.num_partitions = proto.num_partitions or 1
        options.debug_options = DebugOptions.from_proto(proto.debug_options or DebugOptionsProto())
        if proto.result_layout is not None:
            options.result_layout = Shape(encode(proto.result_layout))
        if proto.device_assignment is not None:
            options.device_assignment = DeviceAssignment.from_proto(proto.device_assignment)
        return options


_NO_DEVICE = -1
_PLAIN_BUILD_OPTIONS = (
    "num_replicas",
    "num_partitions",
    "use_spmd_partitioning",
    "use_auto_spmd_partitioning",
    "use_shardy_partitioner",
    "exec_time_optimization_effort",
    "memory_fitting_effort",
    "fdo_profile",
)
_LISTED_BUILD_OPTIONS = (
    "auto_spmd_partitioning_mesh_shape",
    "auto_spmd_partitioning_mesh_ids",
    "allow_spmd_sharding_propagation_to_parameters",
    "allow_spmd_sharding_propagation_to_output",
)

Override = str | bool | int | float


@dataclass
class CompileOptions:
    """How to compile. `num_replicas`, `num_partitions` and `device_assignment` are those of the nested options."""

    argument_layouts: Sequence[Shape] | None = None
    parameter_is_tupled_arguments: bool = False
    compile_portable_executable: bool = False
    profile_version: int = 0
    env_option_overrides: Sequence[tuple[str, Override]] = field(default_factory=list)
    executable_build_options: ExecutableBuildOptions = field(default_factory=ExecutableBuildOptions)

    @property
    def num_replicas(self) -> int:
        return self.executable_build_options.num_replicas

    @num_replicas.setter
    def num_replicas(self, count: int) -> None:
        self.executable_build_options.num_replicas = count

    @property
    def num_partitions(self) -> int:
        return self.executable_build_options.num_partitions

    @num_partitions.setter
    def num_partitions(self, count: int) -> None:
        self.executable_build_options.num_partitions = count

    @property
    def device_assignment(self) -> DeviceAssignment | None:
        return self.executable_build_options.device_assignment

    @device_assignment.setter
    def device_assignment(self, assignment: DeviceAssignment | None) -> None:
        self.executable_build_options.device_assignment = assignment

    @property
    def tuple_arguments(self) -> bool:
        """The older name of `parameter_is_tupled_arguments`."""
        return self.parameter_is_tupled_arguments

    @tuple_arguments.setter
    def tuple_arguments(self, value: bool) -> None:
        self.parameter_is_tupled_arguments = value

    def xlapy_options(self) -> xlapy_options.CompileOptions:
        """What xlapy understands of these."""
        assignment = self.device_assignment
        return xlapy_options.CompileOptions(
            num_replicas=self.num_replicas,
            num_partitions=self.num_partitions,
            device_assignment=None if assignment is None else assignment.device_ids(),
            fast_math=self.executable_build_options.debug_options.xla_cpu_enable_fast_math,
        )

    def to_proto(self) -> CompileOptionsProto:
        return CompileOptionsProto(
            [shape_to_proto(shape.unwrapped()) for shape in self.argument_layouts or ()],
            self.parameter_is_tupled_arguments,
            self.executable_build_options.to_proto(),
            self.compile_portable_executable,
            self.profile_version,
            [OverrideEntry(key, _override(value)) for key, value in self.env_option_overrides],
        )

    @staticmethod
    def from_proto(proto: CompileOptionsProto) -> CompileOptions:
        nested = proto.executable_build_options or ExecutableBuildOptionsProto()
        return CompileOptions(
            [Shape(encode(shape)) for shape in proto.argument_layouts] or None,
            proto.parameter_is_tupled_arguments,
            proto.compile_portable_executable,
            proto.profile_version,
            [(entry.key, _overriding(entry.value)) for entry in proto.env_option_overrides],
            ExecutableBuildOptions.from_proto(nested),
        )

    def SerializeAsString(self) -> bytes:
        """The bytes of a CompileOptionsProto. Assigned fields that are not those of the class are left out."""
        return encode(self.to_proto())

    @staticmethod
    def ParseFromString(serialized: bytes) -> CompileOptions:
        """The options in the bytes of a CompileOptionsProto; raises ParseError where there are none."""
        return CompileOptions.from_proto(decode(CompileOptionsProto, serialized))


def _override(value: Override) -> OptionOverrideProto:
    if isinstance(value, bool):
        return OptionOverrideProto(bool_field=value)
    if isinstance(value, int):
        return OptionOverrideProto(int_field=value)
    if isinstance(value, float):
        return OptionOverrideProto(double_field=value)
    return OptionOverrideProto(string_field=value)


def _overriding(proto: OptionOverrideProto | None) -> Override:
    fields = dataclasses.astuple(proto) if proto is not None else ()
    return next((value for value in fields if value is not None), "")
