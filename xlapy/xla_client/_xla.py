"""What scripts reach for below xla_client itself: `_xla.mlir`, `_xla.hlo_module_from_text`, passes on modules."""

from __future__ import annotations

from typing import Any

from xlapy.passes.base import Pass
from xlapy.passes.dce import Dce
from xlapy.passes.flatten_call_graph import FlattenCallGraph as FlattenCallGraphPass
from xlapy.passes.inlining import CallInlining
from xlapy.passes.tuple_simplification import TupleSimplification
from xlapy.support.errors import UnsupportedError
from xlapy.support.errors import XlaError as XlaRuntimeError
from xlapy.xla_client import modules as mlir
from xlapy.xla_client import ops, profiler
from xlapy.xla_client.buffers import Buffer as ArrayImpl
from xlapy.xla_client.buffers import buffer_to_dlpack_managed_tensor, dlpack_managed_tensor_to_buffer
from xlapy.xla_client.client import Client
from xlapy.xla_client.computations import XlaBuilder, XlaComputation
from xlapy.xla_client.devices import Device
from xlapy.xla_client.executables import CompiledMemoryStats, ExecuteResults, LoadedExecutable, ShardedToken, Token
from xlapy.xla_client.hlo import HloComputation, HloInstruction, HloModule, HloPrintOptions, hlo_module_to_dot_graph
from xlapy.xla_client.modules import hlo_module_from_text
from xlapy.xla_client.ops import XlaOp
from xlapy.xla_client.options import CompileOptions, DebugOptions, DeviceAssignment, ExecutableBuildOptions
from xlapy.xla_client.places import DeviceList, DeviceTopology, Memory
from xlapy.xla_client.protos import PrecisionConfig, ResultAccuracy
from xlapy.xla_client.shapes import Layout, PjRtLayout, ProgramShape, Shape, ShapeIndex
from xlapy.xla_client.shardings import (
    GSPMDSharding,
    HloSharding,
    NamedSharding,
    OpSharding,
    PmapSharding,
    Sharding,
    SingleDeviceSharding,
)
from xlapy.xla_client.tracebacks import Frame, Traceback
from xlapy.xla_client.types import (
    ArrayCopySemantics,
    AutotuneCacheMode,
    FftType,
    HostBufferSemantics,
    PrimitiveType,
)

OpSharding_Type = OpSharding.Type
OpSharding_ShardGroupType = OpSharding.ShardGroupType
PrecisionConfig_Precision = PrecisionConfig.Precision
ResultAccuracy_Mode = ResultAccuracy.Mode
PjRtXlaLayout = PjRtLayout


def get_tfrt_cpu_client(
    asynchronous: bool = True,
    distributed_client: Any = None,
    node_id: int = 0,
    num_nodes: int = 1,
    collectives: Any = None,
    num_devices: int | None = None,
    **timeouts: Any,
) -> Client:
    """A client of the first `num_devices` devices of this process, by default one."""
    if num_nodes != 1 or distributed_client is not None:
        raise UnsupportedError("a client of several processes: all of xlapy's devices are in one process")
    return Client(num_devices or 1)


def make_gloo_tcp_collectives(*arguments: Any, **options: Any) -> Any:
    raise UnsupportedError("collectives between processes of the system: all of xlapy's devices are in one process")


make_mpi_collectives = make_gloo_tcp_collectives


def hlo_module_cost_analysis(client: Client, module: HloModule) -> dict[str, float]:
    """Operations and bytes of one run."""
    return client.hlo_module_cost_analysis(module)


class _ModulePass:
    """A pass of xlapy, run on a module by itself."""

    def __init__(self, one: Pass) -> None:
        self._pass = one

    @property
    def name(self) -> str:
        return self._pass.name

    def run(self, module: HloModule) -> bool:
        """Changes the module in place; returns whether anything changed."""
        return self._pass.run(module.unwrapped())


class HloDCE(_ModulePass):
    def __init__(self) -> None:
        super().__init__(Dce())


class CallInliner(_ModulePass):
    def __init__(self) -> None:
        super().__init__(CallInlining())


class FlattenCallGraph(_ModulePass):
    def __init__(self) -> None:
        super().__init__(FlattenCallGraphPass())


class TupleSimplifier(_ModulePass):
    def __init__(self) -> None:
        super().__init__(TupleSimplification())


__all__ = [
    "ArrayCopySemantics",
    "ArrayImpl",
    "AutotuneCacheMode",
    "CallInliner",
    "Client",
    "CompileOptions",
    "CompiledMemoryStats",
    "DebugOptions",
    "Device",
    "DeviceAssignment",
    "DeviceList",
    "DeviceTopology",
    "ExecutableBuildOptions",
    "ExecuteResults",
    "FftType",
    "FlattenCallGraph",
    "Frame",
    "GSPMDSharding",
    "HloComputation",
    "HloDCE",
    "HloInstruction",
    "HloModule",
    "HloPrintOptions",
    "HloSharding",
    "HostBufferSemantics",
    "Layout",
    "LoadedExecutable",
    "Memory",
    "NamedSharding",
    "OpSharding",
    "OpSharding_ShardGroupType",
    "OpSharding_Type",
    "PjRtLayout",
    "PjRtXlaLayout",
    "PmapSharding",
    "PrecisionConfig",
    "PrecisionConfig_Precision",
    "PrimitiveType",
    "ProgramShape",
    "ResultAccuracy",
    "ResultAccuracy_Mode",
    "Shape",
    "ShapeIndex",
    "ShardedToken",
    "Sharding",
    "SingleDeviceSharding",
    "Token",
    "Traceback",
    "TupleSimplifier",
    "XlaBuilder",
    "XlaComputation",
    "XlaOp",
    "XlaRuntimeError",
    "buffer_to_dlpack_managed_tensor",
    "dlpack_managed_tensor_to_buffer",
    "get_tfrt_cpu_client",
    "hlo_module_cost_analysis",
    "hlo_module_from_text",
    "hlo_module_to_dot_graph",
    "make_gloo_tcp_collectives",
    "make_mpi_collectives",
    "mlir",
    "ops",
    "profiler",
]
