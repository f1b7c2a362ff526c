"""The names of JAX's old `xla_bridge`, which scripts of `xla_client` got their backend from.

from xlapy.xla_client import xla_bridge
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xlapy.support.errors import UnsupportedError
from xlapy.xla_client import ops
from xlapy.xla_client.client import Client, cpu_backend
from xlapy.xla_client.computations import XlaBuilder
from xlapy.xla_client.devices import Device
from xlapy.xla_client.options import CompileOptions, DeviceAssignment
from xlapy.xla_client.shapes import Shape
from xlapy.xla_client.types import dtype_to_etype


def get_backend(platform: str | Client | None = None) -> Client:
    """The client that all scripts of this process share, or the client itself that is given."""
    if isinstance(platform, Client):
        return platform
    if platform not in (None, "cpu", "Host"):
        raise UnsupportedError(f"there is no backend {platform!r}: xlapy compiles for CPUs")
    return cpu_backend()


def backends() -> dict[str, Client]:
    return {"cpu": get_backend()}


def default_backend() -> str:
    return get_backend().platform


def devices(backend: str | Client | None = None) -> list[Device]:
    return get_backend(backend).devices()


def local_devices(
    process_index: int | None = None, backend: str | Client | None = None, host_id: int | None = None
) -> list[Device]:
    """The devices of this process; it has number 0, and there is no other."""
    return devices(backend) if not (process_index or host_id) else []


def device_count(backend: str | Client | None = None) -> int:
    return get_backend(backend).device_count()


def local_device_count(backend: str | Client | None = None) -> int:
    return get_backend(backend).local_device_count()


def process_index(backend: str | Client | None = None) -> int:
    return get_backend(backend).process_index()


host_id = process_index


def process_count(backend: str | Client | None = None) -> int:
    return 1


host_count = process_count


def get_compile_options(
    num_replicas: int,
    num_partitions: int,
    device_assignment: Any = None,
    use_spmd_partitioning: bool = True,
    **others: Any,
) -> CompileOptions:
    """Options for a grid of processes. `device_assignment` lists devices as an array of replicas by partitions, or of
    replicas alone. What else JAX said there concerns other machines."""
    options = CompileOptions()
    options.num_replicas, options.num_partitions = num_replicas, num_partitions
    build = options.executable_build_options
    build.num_replicas, build.num_partitions = num_replicas, num_partitions
    build.use_spmd_partitioning = use_spmd_partitioning
    if device_assignment is not None:
        grid = np.array(device_assignment).reshape(num_replicas, num_partitions)
        options.device_assignment = DeviceAssignment.create(grid)
    return options


def constant(builder: XlaBuilder, value: Any, canonicalize_types: bool = True) -> Any:
    """A constant of an array or a scalar, with its element type."""
    return ops.Constant(builder, value if hasattr(value, "dtype") else np.asarray(value))


def parameter(builder: XlaBuilder, number: int, shape: Shape, name: str | None = None, replicated: Any = None) -> Any:
    return ops.Parameter(builder, number, shape, name or "", [])


__all__ = [
    "backends",
    "constant",
    "default_backend",
    "device_count",
    "devices",
    "dtype_to_etype",
    "get_backend",
    "get_compile_options",
    "host_count",
    "host_id",
    "local_device_count",
    "local_devices",
    "parameter",
    "process_count",
    "process_index",
]
