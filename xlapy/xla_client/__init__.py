"""The names of the old `xla_client` module: scripts written for it run after one line is changed.

from xlapy import xla_client

Everything here stands around xlapy's own classes, whose properties are methods there; `wrapping` has the way back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import cache
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

from xlapy.builder import ComputationBuilder
from xlapy.support.errors import UnsupportedError
from xlapy.support.errors import XlaError as XlaRuntimeError
from xlapy.xla_client import _xla, ops
from xlapy.xla_client.buffers import Buffer
from xlapy.xla_client.client import Client, Device
from xlapy.xla_client.computations import XlaBuilder, XlaComputation
from xlapy.xla_client.hlo import HloModule
from xlapy.xla_client.executables import (
    LoadedExecutable,
    execute_with_python_values,
    execute_with_python_values_replicated,
)
from xlapy.xla_client.ops import XlaOp
from xlapy.xla_client.options import CompileOptions, DeviceAssignment
from xlapy.xla_client.protos import (
    ConvolutionDimensionNumbers,
    CurrentSourceInfoMetadata,
    DotDimensionNumbers,
    GatherDimensionNumbers,
    OpMetadata,
    OpSharding,
    PaddingConfig,
    PaddingConfigDimension,
    PrecisionConfig,
    ReplicaGroup,
    ScatterDimensionNumbers,
    make_convolution_dimension_numbers,
    make_dot_dimension_numbers,
    make_padding_config,
    make_replica_groups,
    window_padding_type_to_pad_values,
)
from xlapy.xla_client.shapes import Layout, ProgramShape, Shape, shape_from_pyval
from xlapy.xla_client.types import (
    DTYPE_TO_XLA_ELEMENT_TYPE,
    XLA_ELEMENT_TYPE_TO_DTYPE,
    FftType,
    HostBufferSemantics,
    PaddingType,
    PrimitiveType,
    dtype_to_etype,
)
from xlapy_runtime import custom_calls

ArrayImpl = Buffer
LocalBackend = Client
xla_platform_names = {"cpu": "Host"}


def make_cpu_client(
    asynchronous: bool = True,
    distributed_client: Any = None,
    node_id: int = 0,
    num_nodes: int = 1,
    collectives: Any = None,
    num_devices: int | None = None,
) -> Client:
    """A client of the first `num_devices` devices of this process, by default one."""
    if num_nodes != 1 or distributed_client is not None:
        raise UnsupportedError("a client of several processes: xlapy's runtime has transports for those, as MPI")
    return Client(num_devices or 1)


@cache
def _cpu_backend() -> Client:
    return make_cpu_client()


def get_local_backend(name: str | None = None) -> Client:
    """The client that all scripts of this process share, with one device."""
    if name not in (None, "cpu", "Host"):
        raise UnsupportedError(f"there is no backend {name!r}: xlapy compiles for CPUs")
    return _cpu_backend()


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


@contextlib.contextmanager
def tracebacks(enabled: bool = True) -> Iterator[None]:
    """Does nothing: errors always name the user's line."""
    yield


__all__ = [
    "DTYPE_TO_XLA_ELEMENT_TYPE",
    "XLA_ELEMENT_TYPE_TO_DTYPE",
    "ArrayImpl",
    "Buffer",
    "Client",
    "CompileOptions",
    "ComputationBuilder",
    "ConvolutionDimensionNumbers",
    "CurrentSourceInfoMetadata",
    "Device",
    "DeviceAssignment",
    "DotDimensionNumbers",
    "FftType",
    "GatherDimensionNumbers",
    "HloModule",
    "HostBufferSemantics",
    "Layout",
    "LoadedExecutable",
    "LocalBackend",
    "OpMetadata",
    "OpSharding",
    "PaddingConfig",
    "PaddingConfigDimension",
    "PaddingType",
    "PrecisionConfig",
    "PrimitiveType",
    "ProgramShape",
    "ReplicaGroup",
    "ScatterDimensionNumbers",
    "Shape",
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
    "make_convolution_dimension_numbers",
    "make_cpu_client",
    "make_dot_dimension_numbers",
    "make_padding_config",
    "make_replica_groups",
    "ops",
    "register_custom_call_target",
    "shape_from_pyval",
    "tracebacks",
    "transfer_from_outfeed",
    "transfer_to_infeed",
    "window_padding_type_to_pad_values",
    "xla_platform_names",
]
