"""Clients and devices: where programs are compiled, and what they talk to while they run."""

from __future__ import annotations

import itertools
import threading
import weakref
from typing import Any

import numpy as np

from xlapy.api import Source
from xlapy.api import compile as compile_program
from xlapy.builder.communication import ChannelHandle, ChannelType
from xlapy.hlo import shape as hlo_shape
from xlapy.hlo.cost import cost_analysis
from xlapy.support.errors import ArgumentError
from xlapy.xla_client.buffers import Buffer
from xlapy.xla_client.computations import XlaComputation
from xlapy.xla_client.executables import LoadedExecutable
from xlapy.xla_client.hlo import HloModule
from xlapy.xla_client.modules import mlir_text
from xlapy.xla_client.options import CompileOptions
from xlapy.xla_client.serialization import executable_from_bytes
from xlapy.xla_client.shapes import Shape
from xlapy_runtime import device as runtime
from xlapy_runtime.program import ArraySpec, TokenSpec, Tree


class Device:
    """A device as its client sees it."""

    platform = "cpu"
    device_kind = "cpu"
    process_index = 0

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
        return self._device.transfer_from_outfeed(_tree(shape.unwrapped()))

    def runtime_device(self) -> runtime.Device:
        """The device itself, which all clients of the process share."""
        return self._device

    def memory_stats(self) -> dict[str, int]:
        return self._device.memory_stats()

    def live_buffers(self) -> list[Buffer]:
        return [buffer for buffer in self.client.live_buffers() if buffer.device() is self]

    def __repr__(self) -> str:
        return f"CpuDevice(id={self.id})"


def _source(computation: Any) -> Source:
    """What is compiled, in a form that nobody changes: passes of `_xla` change modules."""
    if isinstance(computation, HloModule):
        return computation.module.clone()
    return computation.module if isinstance(computation, XlaComputation) else mlir_text(computation)


def _arrays(value: Any) -> Any:
    return tuple(map(_arrays, value)) if isinstance(value, tuple) else np.asarray(value)


def _tree(shape: hlo_shape.Shape) -> Tree:
    if shape.is_tuple:
        return tuple(map(_tree, shape.parts))
    return ArraySpec(shape.type.dtype, shape.dims, shape.dynamic) if shape.is_array else TokenSpec()


class Client:
    """Compiles programs for the CPU devices of this process."""

    platform = "cpu"
    platform_version = "xlapy"
    runtime_type = "xlapy"

    def __init__(self, num_devices: int = 1) -> None:
        self._devices = [Device(self, device) for device in runtime.devices(num_devices)]
        self._channels = itertools.count(1)
        self._lock = threading.Lock()
        self._buffers: weakref.WeakSet[Buffer] = weakref.WeakSet()
        self._executables: weakref.WeakSet[LoadedExecutable] = weakref.WeakSet()

    # -- devices ---------------------------------------------------------------------------------------------------

    def devices(self) -> list[Device]:
        return self._devices

    local_devices = devices

    def device_count(self) -> int:
        return len(self._devices)

    local_device_count = device_count

    def process_index(self) -> int:
        return 0

    host_id = process_index

    def get_default_device_assignment(self, num_replicas: int, num_partitions: int | None = None) -> list[Any]:
        """The first devices: one list per replica where partitions are given, else one device per replica."""
        count = num_replicas * (num_partitions or 1)
        if count > len(self._devices):
            raise ArgumentError(f"{count} devices are wanted, and this client has {len(self._devices)}")
        rows = [self._devices[start : start + (num_partitions or 1)] for start in range(0, count, num_partitions or 1)]
        return rows if num_partitions is not None else [row[0] for row in rows]

    # -- buffers ---------------------------------------------------------------------------------------------------

    def buffer_from_pyval(
        self, argument: Any, device: Device | None = None, force_copy: bool = False, host_buffer_semantics: Any = None
    ) -> Any:
        """A copy of an array as a buffer; a tuple of buffers for a tuple."""
        if isinstance(argument, tuple):
            return tuple(self.buffer_from_pyval(part, device) for part in argument)
        return Buffer(np.array(argument), device or self._devices[0])

    def remember(self, buffer: Buffer) -> None:
        """Counts a buffer among the living, until it is deleted or nobody has it any more."""
        with self._lock:
            self._buffers.add(buffer)

    def live_buffers(self) -> list[Buffer]:
        with self._lock:
            return [buffer for buffer in self._buffers if not buffer.is_deleted()]

    live_arrays = live_buffers

    def live_executables(self) -> list[LoadedExecutable]:
        return list(self._executables)

    # -- programs --------------------------------------------------------------------------------------------------

    def compile(
        self,
        computation: XlaComputation | HloModule | str | bytes,
        compile_options: CompileOptions | None = None,
        host_callbacks: Any = (),
    ) -> LoadedExecutable:
        """Compiles a computation, a module, MLIR (StableHLO) as text or bytecode, or HLO text.

        `host_callbacks` are what `make_python_callback_from_host_send_and_recv` returned for channels of the program."""
        options = compile_options or CompileOptions()
        source = _source(computation)
        chosen = options.xlapy_options()
        if chosen.device_assignment is None:
            processes = chosen.num_replicas * chosen.num_partitions
            places = self._devices[:processes]
        else:
            places = [self._device_numbered(number) for number in chosen.device_assignment]
        executable = LoadedExecutable(
            self, compile_program(source, chosen), places, options, source, tuple(host_callbacks)
        )
        self._executables.add(executable)
        return executable

    def compile_and_load(
        self, computation: Any, devices: Any = None, compile_options: CompileOptions | None = None
    ) -> LoadedExecutable:
        """`compile`, as later releases spell it; the devices come from the options, or are the first ones."""
        return self.compile(computation, compile_options)

    def _device_numbered(self, number: int) -> Device:
        if not 0 <= number < len(self._devices):
            raise ArgumentError(f"this client has {len(self._devices)} devices, none with the id {number}")
        return self._devices[number]

    def serialize_executable(self, executable: LoadedExecutable) -> bytes:
        """The executable as bytes: its program and options, from which `deserialize_executable` compiles it again."""
        return executable.serialize()

    def deserialize_executable(self, serialized: bytes, options: CompileOptions | None = None) -> LoadedExecutable:
        """The executable that `serialize_executable` wrote, in this process or another one.

        `options` are used instead of those it was compiled with. Raises ParseError for other or damaged bytes."""
        module, stated = executable_from_bytes(serialized)
        return self.compile(HloModule(module), options or stated)

    def hlo_module_cost_analysis(self, module: HloModule) -> dict[str, float]:
        return cost_analysis(module.unwrapped())

    def defragment(self) -> None:
        """Nothing to do: buffers are the host's memory."""

    # -- channels --------------------------------------------------------------------------------------------------

    def create_channel_handle(self) -> ChannelHandle:
        return ChannelHandle(next(self._channels), ChannelType.DEVICE_TO_DEVICE)

    def create_device_to_host_channel_handle(self) -> ChannelHandle:
        return ChannelHandle(next(self._channels), ChannelType.DEVICE_TO_HOST)

    def create_host_to_device_channel_handle(self) -> ChannelHandle:
        return ChannelHandle(next(self._channels), ChannelType.HOST_TO_DEVICE)

    # -- as the releases before 2020 spelled it --------------------------------------------------------------------

    def transfer_to_infeed(self, value: Any, device_ordinal: int = 0) -> None:
        self._devices[device_ordinal].transfer_to_infeed(value)

    def transfer_from_outfeed(self, shape: Shape, device_ordinal: int = 0) -> Any:
        return self._devices[device_ordinal].transfer_from_outfeed(shape)

    def __repr__(self) -> str:
        return f"<Client of {len(self._devices)} CPU devices>"
