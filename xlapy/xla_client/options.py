"""CompileOptions with the old interface's fields, most of which concern other machines and are kept but not read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from xlapy import options as xlapy_options
from xlapy.support.errors import ArgumentError, UnsupportedError


class DeviceAssignment:
    """Which device runs which process: rows are replicas, columns are computations (partitions)."""

    __slots__ = ("_ids",)

    def __init__(self, ids: np.ndarray[Any, Any]) -> None:
        if ids.ndim != 2:
            raise ArgumentError(f"a device assignment is an array of replicas by computations, not of rank {ids.ndim}")
        self._ids = ids.copy()

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

    def serialize(self) -> bytes:
        raise UnsupportedError("xlapy writes no serialized device assignments; keep the array that it was made of")

    def __repr__(self) -> str:
        return f"DeviceAssignment({self._ids.tolist()})"


@dataclass
class DebugOptions:
    """Flags by their old names. xlapy reads `xla_cpu_enable_fast_math`, and accepts any other."""

    xla_cpu_enable_fast_math: bool = False


@dataclass
class ExecutableBuildOptions:
    """The nested options; `num_replicas`, `num_partitions` and `device_assignment` may be set here, too."""

    num_replicas: int = 1
    num_partitions: int = 1
    device_assignment: DeviceAssignment | None = None
    debug_options: DebugOptions = field(default_factory=DebugOptions)
    result_layout: Any = None
    use_spmd_partitioning: bool = False


@dataclass
class CompileOptions:
    """How to compile. Fields that are not listed may be assigned, and do nothing."""

    num_replicas: int = 1
    num_partitions: int = 1
    device_assignment: DeviceAssignment | None = None
    argument_layouts: Any = None
    parameter_is_tupled_arguments: bool = False
    tuple_arguments: bool = False
    compile_portable_executable: bool = False
    executable_build_options: ExecutableBuildOptions = field(default_factory=ExecutableBuildOptions)

    def xlapy_options(self) -> xlapy_options.CompileOptions:
        """What xlapy understands of these."""
        nested = self.executable_build_options
        assignment = self.device_assignment or nested.device_assignment
        return xlapy_options.CompileOptions(
            num_replicas=max(self.num_replicas, nested.num_replicas),
            num_partitions=max(self.num_partitions, nested.num_partitions),
            device_assignment=None if assignment is None else assignment.device_ids(),
            fast_math=nested.debug_options.xla_cpu_enable_fast_math,
        )

    def SerializeAsString(self) -> bytes:
        raise UnsupportedError("xlapy writes no serialized compile options; make them anew where they are needed")
