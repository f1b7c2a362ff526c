"""Clients: where programs are compiled, and where buffers and executables are known."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from xlapy import builder as xlapy_builder
from xlapy.api import Source
from xlapy.api import compile as compile_program
from xlapy.builder.communication import ChannelHandle, ChannelType
from xlapy.hlo.cost import cost_analysis
from xlapy.hlo.graph import HloModule as Module
from xlapy.support.errors import ArgumentError
from xlapy.xla_client import callbacks, ops
from xlapy.xla_client.buffers import Buffer
from xlapy.xla_client.computations import XlaBuilder, XlaComputation
from xlapy.xla_client.devices import Device
from xlapy.xla_client.executables import LoadedExecutable
from xlapy.xla_client.heap import heap_profile
from xlapy.xla_client.hlo import HloModule
from xlapy.xla_client.modules import mlir_text
from xlapy.xla_client.ops import XlaOp
from xlapy.xla_client.options import CompileOptions
from xlapy.xla_client.places import DeviceTopology
from xlapy.xla_client.serialization import executable_from_bytes
from xlapy.xla_client.shapes import Shape
from xlapy_runtime import device as runtime
from xlapy_runtime.wording import counted


def _source(computation: Any) -> Source:
    """What is compiled, in a form that nobody changes: passes of `_xla` change modules. Computations and modules of
    xlapy's own interface are programs, too."""
    if isinstance(computation, HloModule):
        return computation.module.clone()
    if isinstance(computation, Module):
        return computation.clone()
    if hasattr(computation, "build"):
        raise ArgumentError(f"{computation!r} is a builder; what its build() returns is a program")
    if isinstance(computation, XlaComputation | xlapy_builder.XlaComputation):
        return computation.module
    return mlir_text(computation)


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
    task_id = process_index

    def device_from_local_hardware_id(self, number: int) -> Device:
        return self._device_numbered(number)

    def topology(self) -> DeviceTopology:
        return DeviceTopology(self.platform, self.platform_version, self._devices)

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

        `host_callbacks` are what `make_python_callback_from_host_send_and_recv` returned for the program's channels."""
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

    def heap_profile(self) -> bytes:
        """The living buffers as a compressed profile for pprof."""
        return heap_profile(self.live_buffers())

    def defragment(self) -> None:
        """Nothing to do: buffers are the host's memory."""

    # -- callbacks -------------------------------------------------------------------------------------------------

    def get_emit_python_callback_descriptor(
        self,
        callable: Callable[..., Any],
        operand_shapes: Sequence[Shape],
        result_shapes: Sequence[Shape] | None = None,
    ) -> tuple[int, Any]:
        """A number for a function, and an object to keep for as long as programs call it.

        A program calls the function by a custom call of the target `xla_python_cpu_callback` with the number, a
        scalar u64 or s64, as the first operand. The function gets the other operands as arrays."""
        return callbacks.describe(callable, operand_shapes, result_shapes)

    def emit_python_callback(
        self,
        callable: Callable[..., Any],
        builder: XlaBuilder,
        operands: Sequence[XlaOp],
        result_shapes: Sequence[Shape],
        operand_layouts: Sequence[Shape] | None = None,
        has_side_effect: bool = False,
    ) -> tuple[XlaOp, Any]:
        """Records a call of a function: a tuple of its results, and an object to keep, as above."""
        shapes = [builder.get_shape(operand) for operand in operands]
        number, kept = self.get_emit_python_callback_descriptor(callable, shapes, result_shapes)
        descriptor = ops.Constant(builder, np.uint64(number))
        whole = Shape.tuple_shape(result_shapes)
        arguments = (builder, callbacks.TARGET, [descriptor, *operands])
        if operand_layouts is None:
            return ops.CustomCall(*arguments, whole, b"", has_side_effect), kept
        layouts = [builder.get_shape(descriptor), *operand_layouts]
        return ops.CustomCallWithLayout(*arguments, whole, layouts, b"", has_side_effect), kept

    def make_python_callback_from_host_send_and_recv(
        self,
        callable: Callable[..., Any],
        operand_shapes: Sequence[Shape],
        result_shapes: Sequence[Shape],
        send_channel_ids: Sequence[int],
        recv_channel_ids: Sequence[int],
        serializer: Any = None,
    ) -> Any:
        """A function for `host_callbacks` of `compile`: it takes what the program sends to the host on the first
        channels, and the program receives its results on the others. Nothing is serialized, so `serializer` is not
        read."""
        return callbacks.HostCallback(callable, operand_shapes, result_shapes, send_channel_ids, recv_channel_ids)

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
        return f"<Client of {counted(len(self._devices), 'CPU device')}>"


@cache
def cpu_backend() -> Client:
    """The client of one device that all scripts of this process share."""
    return Client(1)
