"""Devices: what programs run on, and talk to while they run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from xlapy.support.errors import ArgumentError
from xlapy.xla_client.buffers import Buffer
from xlapy.xla_client.places import HOST_MEMORY, Memory
from xlapy.xla_client.shapes import Shape
from xlapy_runtime import device as runtime

if TYPE_CHECKING:
    from xlapy.xla_client.client import Client


class Device:
    """A device as its client sees it."""

    platform = "cpu"
    device_kind = "cpu"
    process_index = 0
    host_id = 0
    task_id = 0

    def __init__(self, client: Client, device: runtime.Device) -> None:
        self.client = client
        self.id = device.id
        self.local_hardware_id = device.id
        self._device = device

    def transfer_to_infeed(self, value: Any) -> None:
        """Queues an array, or a (nested) tuple of arrays, for the next infeed of a program on this device."""
        self._device.transfer_to_infeed(_arrays(value))

    def transfer_from_outfeed(self, shape: Shape) -> Any:
        """The oldest value that a program on this device put out; waits for it. A tuple for a tuple shape."""
        return self._device.transfer_from_outfeed(shape.unwrapped())

    def runtime_device(self) -> runtime.Device:
        """The device itself, which all clients of the process share."""
        return self._device

    def memory_stats(self) -> dict[str, int]:
        return self._device.memory_stats()

    def default_memory(self) -> Memory:
        return Memory(self)

    def addressable_memories(self) -> list[Memory]:
        return [Memory(self)]

    def memory(self, kind: str) -> Memory:
        if kind != HOST_MEMORY:
            raise ArgumentError(f"{self} has no memory of the kind {kind!r}, only {HOST_MEMORY!r}")
        return Memory(self)

    def live_buffers(self) -> list[Buffer]:
        return [buffer for buffer in self.client.live_buffers() if buffer.device() is self]

    def __repr__(self) -> str:
        return f"CpuDevice(id={self.id})"


def _arrays(value: Any) -> Any:
    return tuple(map(_arrays, value)) if isinstance(value, tuple) else np.asarray(value)
