"""The names of the old `xla_client` module: scripts written for it run after one line is changed.

from xlapy import xla_client

Everything here stands around xlapy's own classes, whose properties are methods there; `wrapping` has the way back.
"""

from __future__ import annotations

from typing import Any

from ml_dtypes import (
    bfloat16,
    float8_e3m4,
    float8_e4m3,
    float8_e4m3b11fnuz,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
)

from xlapy.support.errors import UnsupportedError
from xlapy.support.errors import XlaError as XlaRuntimeError
from xlapy.xla_client import _xla, ops, profiler
from xlapy.xla_client.buffers import Buffer
from xlapy.xla_client.client import Client, cpu_backend
from xlapy.xla_client.computation_builder import ComputationBuilder
from xlapy.xla_client.computations import XlaBuilder, XlaComputation
from xlapy.xla_client.devices import Device
from xlapy.xla_client.executables import (
    LoadedExecutable,
    execute_with_python_values,
    execute_with_python_values_replicated,
)
from xlapy.xla_client.hlo import HloModule
from xlapy.xla_client.ops import XlaOp
from xlapy.xla_client.options import CompileOptions, DeviceAssignment
from xlapy.xla_client.places import DeviceList, DeviceTopology, Memory
from xlapy.xla_client.protos import (
    ConvolutionDimensionNumbers,
    CurrentSourceInfoMetadata,
    DotDimensionNumbers,
    GatherDimensionNumbers,
    OpMetadata,
    PaddingConfig,
    PaddingConfigDimension,
    PrecisionConfig,
    ReplicaGroup,
    ResultAccuracy,
    ScatterDimensionNumbers,
    make_convolution_dimension_numbers,
    make_dot_dimension_numbers,
    make_padding_config,
    make_replica_groups,
    window_padding_type_to_pad_values,
)
from xlapy.xla_client.shapes import Layout, PjRtLayout, ProgramShape, Shape, ShapeIndex, shape_from_pyval
from xlapy.xla_client.shardings import (
    GSPMDSharding,
    HloSharding,
    NamedSharding,
    OpSharding,
    PmapSharding,
    Sharding,
    SingleDeviceSharding,
)
from xlapy.xla_client.tracebacks import Frame, Traceback, tracebacks
from xlapy.xla_client.types import (
    DTYPE_TO_XLA_ELEMENT_TYPE,
    XLA_ELEMENT_TYPE_TO_DTYPE,
    ArrayCopySemantics,
    AutotuneCacheMode,
    CustomCallTargetTraits,
    FftType,
    HostBufferSemantics,
    PaddingType,
    PrimitiveType,
    dtype_to_etype,
)
from xlapy_runtime import custom_calls

_version = 301
"""The version of the old interface that this one is like: that of jaxlib 0.4.38."""

mlir_api_version = 57
ArrayImpl = Buffer
LocalBackend = Client
xla_platform_names = {"cpu": "Host"}


make_cpu_client = _xla.get_tfrt_cpu_client


def get_local_backend(name: str | None = None) -> Client:
    """The client that all scripts of this process share, with one device."""
    if name not in (None, "cpu", "Host"):
        raise UnsupportedError(f"there is no backend {name!r}: xlapy compiles for CPUs")
    return cpu_backend()


def transfer_to_infeed(value: Any, device_ordinal: int = 0) -> None:
    get_local_backend().transfer_to_infeed(value, device_ordinal)


def transfer_from_outfeed(shape: Shape, device_ordinal: int = 0) -> Any:
    return get_local_backend().transfer_from_outfeed(shape, device_ordinal)


def register_custom_call_target(
    name: str | bytes, fn: Any, platform: str = "cpu", api_version: int = 0, traits: Any = None
) -> None:
    """Gives a Python callable, a capsule or another function pointer a name that custom calls know it by."""
    if platform.lower() not in ("cpu", "host"):
        raise UnsupportedError(f"custom calls on the platform {platform!r}: xlapy compiles for CPUs")
    custom_calls.register_custom_call_target(name.decode() if isinstance(name, bytes) else name, fn)


def custom_call_targets(platform: str = "cpu") -> dict[str, Any]:
    """The registered targets by name."""
    return dict(custom_calls.TARGETS) if platform.lower() in ("cpu", "host") else {}


def register_custom_type_id(type_name: str, type_id: Any, platform: str = "cpu") -> None:
    """Does nothing: targets are Python functions or plain function pointers, whose types have no numbers."""


def heap_profile(client: Client) -> bytes:
    """The living buffers of a client as a compressed profile for pprof."""
    return client.heap_profile()


def load_pjrt_plugin_dynamically(plugin_name: str, library_path: str) -> Any:
    raise UnsupportedError(f"xlapy compiles for CPUs by itself and loads no plugins such as {plugin_name!r}")


def make_c_api_client(plugin_name: str, options: Any = None, distributed_client: Any = None) -> Client:
    raise UnsupportedError(f"xlapy compiles for CPUs by itself and loads no plugins such as {plugin_name!r}")


__all__ = [
    "DTYPE_TO_XLA_ELEMENT_TYPE",
    "XLA_ELEMENT_TYPE_TO_DTYPE",
    "ArrayCopySemantics",
    "ArrayImpl",
    "AutotuneCacheMode",
    "Buffer",
    "Client",
    "CompileOptions",
    "ComputationBuilder",
    "ConvolutionDimensionNumbers",
    "CurrentSourceInfoMetadata",
    "CustomCallTargetTraits",
    "Device",
    "DeviceAssignment",
    "DeviceList",
    "DeviceTopology",
    "DotDimensionNumbers",
    "FftType",
    "Frame",
    "GSPMDSharding",
    "GatherDimensionNumbers",
    "HloModule",
    "HloSharding",
    "HostBufferSemantics",
    "Layout",
    "LoadedExecutable",
    "LocalBackend",
    "Memory",
    "NamedSharding",
    "OpMetadata",
    "OpSharding",
    "PaddingConfig",
    "PaddingConfigDimension",
    "PaddingType",
    "PjRtLayout",
    "PmapSharding",
    "PrecisionConfig",
    "PrimitiveType",
    "ProgramShape",
    "ReplicaGroup",
    "ResultAccuracy",
    "ScatterDimensionNumbers",
    "Shape",
    "ShapeIndex",
    "Sharding",
    "SingleDeviceSharding",
    "Traceback",
    "XlaBuilder",
    "XlaComputation",
    "XlaOp",
    "XlaRuntimeError",
    "_xla",
    "bfloat16",
    "custom_call_targets",
    "dtype_to_etype",
    "execute_with_python_values",
    "execute_with_python_values_replicated",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "get_local_backend",
    "heap_profile",
    "load_pjrt_plugin_dynamically",
    "make_c_api_client",
    "make_convolution_dimension_numbers",
    "make_cpu_client",
    "make_dot_dimension_numbers",
    "make_padding_config",
    "make_replica_groups",
    "mlir_api_version",
    "ops",
    "profiler",
    "register_custom_call_target",
    "register_custom_type_id",
    "shape_from_pyval",
    "tracebacks",
    "transfer_from_outfeed",
    "transfer_to_infeed",
    "window_padding_type_to_pad_values",
    "xla_platform_names",
]
