"""Executables that take and return lists of buffers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from xlapy.api import Source, load
from xlapy.executable import Executable
from xlapy.hlo.shape import Shape as HloShape
from xlapy.hlo.text import fingerprint as structural_fingerprint
from xlapy.hlo.text import parse
from xlapy.support.errors import ArgumentError
from xlapy.xla_client.buffers import Buffer
from xlapy.xla_client.callbacks import HostCallback
from xlapy.xla_client.hlo import HloModule
from xlapy.xla_client.options import CompileOptions
from xlapy.xla_client.places import HOST_MEMORY
from xlapy.xla_client.serialization import executable_to_bytes
from xlapy.xla_client.shapes import Layout
from xlapy.xla_client.shardings import OpSharding
from xlapy.xla_client.tracebacks import Traceback
from xlapy_runtime.wording import counted

if TYPE_CHECKING:
    from xlapy.xla_client.client import Client
    from xlapy.xla_client.devices import Device


class LoadedExecutable:
    """A compiled program. A result that is a tuple comes as its leaves; parameters that are tuples take theirs."""

    def __init__(
        self,
        client: Client,
        executable: Executable,
        devices: Sequence[Device],
        options: CompileOptions,
        source: Source,
        host_callbacks: Sequence[HostCallback] = (),
    ) -> None:
        self.client = client
        self.traceback = Traceback.get_traceback()
        self._source = source
        self._host_callbacks = host_callbacks
        self._kept: list[Any] = []
        self._executable = executable
        self._devices = list(devices)
        self._options = options
        entry = parse(executable.hlo_text()).entry
        self._parameters = entry.signature.parameters
        self._result = entry.signature.result
        self._shardings = [parameter.extra.get("sharding") for parameter in entry.parameters]
        self._result_sharding = entry.root.extra.get("sharding")

    # -- running ---------------------------------------------------------------------------------------------------

    def execute(self, arguments: Sequence[Any], device: Device | None = None) -> list[Any]:
        """Runs the program with one buffer (or array) per leaf of its parameters; returns the leaves of the result."""
        place = device or self._devices[0]
        self._connect([place])
        if device is None or device is self._devices[0]:
            result = self._executable(*self._nested(arguments))
        else:
            result = self._executable.run(*self._nested(arguments), device=device.runtime_device())
        return list(self._buffers(result, place))

    def execute_with_token(self, arguments: Sequence[Any]) -> tuple[list[Any], Token]:
        return self.execute(arguments), Token()

    def execute_sharded_on_local_devices(self, arguments: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """Runs every process: for each parameter the buffers of all devices, and the same for each result."""
        count = len(self._devices)
        for number, shards in enumerate(arguments):
            if not isinstance(shards, Sequence):
                raise ArgumentError(f"parameter {number} is a list of buffers, one for each device, not one buffer")
            if len(shards) != count:
                devices = counted(count, "device")
                raise ArgumentError(f"parameter {number} has {counted(len(shards), 'buffer')}, the program {devices}")
        rows = [self._nested([shards[process] for shards in arguments]) for process in range(count)]
        self._connect(self._devices)
        results = self._executable.run_parallel(rows)
        columns = [list(self._buffers(value, place)) for value, place in zip(results, self._devices, strict=True)]
        return [list(outputs) for outputs in zip(*columns, strict=True)]

    def execute_sharded_on_local_devices_with_tokens(
        self, arguments: Sequence[Sequence[Any]]
    ) -> tuple[list[list[Any]], ShardedToken]:
        return self.execute_sharded_on_local_devices(arguments), ShardedToken(len(self._devices))

    def execute_sharded(self, arguments: Sequence[Sequence[Any]], with_tokens: bool = False) -> ExecuteResults:
        return ExecuteResults(self.execute_sharded_on_local_devices(arguments), len(self._devices))

    def _connect(self, devices: Sequence[Device]) -> None:
        """Puts the host callbacks at the channels of the devices that run the program."""
        for callback in self._host_callbacks:
            for device in devices:
                callback.connect(device.runtime_device())

    def _nested(self, arguments: Sequence[Any]) -> list[Any]:
        """The arguments as xlapy takes them: arrays, in the nesting of the parameters."""
        leaves = [array for argument in arguments for array in _leaves(argument)]
        wanted = sum(len(list(shape.leaves())) for shape in self._parameters)
        if len(leaves) != wanted:
            raise ArgumentError(f"{self.name} takes {counted(wanted, 'buffer')}, got {len(leaves)}")
        rest = iter(leaves)
        return [_packed(shape, rest) for shape in self._parameters]

    def _buffers(self, result: Any, device: Device) -> Iterator[Any]:
        for leaf in _leaves(result):
            yield Buffer(leaf, device) if isinstance(leaf, np.ndarray) else leaf

    # -- asking ----------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._executable.name

    def hlo_modules(self) -> list[HloModule]:
        """The module as it was compiled, after all passes."""
        return [HloModule(parse(self._executable.hlo_text()))]

    def local_devices(self) -> list[Device]:
        return self._devices

    def compile_options(self) -> CompileOptions:
        return self._options

    def cost_analysis(self) -> dict[str, float]:
        return self._executable.cost_analysis()

    def size_of_generated_code_in_bytes(self) -> int:
        return self._executable.memory_analysis()["code_bytes"]

    def get_compiled_memory_stats(self) -> CompiledMemoryStats:
        sizes = self._executable.memory_analysis()
        return CompiledMemoryStats(
            generated_code_size_in_bytes=sizes["code_bytes"],
            argument_size_in_bytes=sizes["argument_bytes"],
            output_size_in_bytes=sizes["result_bytes"],
            alias_size_in_bytes=sizes["donated_bytes"],
            temp_size_in_bytes=sizes["temporary_bytes"],
        )

    @property
    def fingerprint(self) -> bytes:
        """The same for executables of equal programs and options, in any process."""
        options = self._options.SerializeAsString()
        return hashlib.sha256(structural_fingerprint(load(self._source)).encode() + options).digest()

    def serialize(self) -> bytes:
        """The program and its options, for `deserialize_executable` of a client."""
        return executable_to_bytes(self._source, self._options)

    def get_parameter_shardings(self) -> list[OpSharding] | None:
        """The shardings that the program states of its parameters; None if it states none."""
        if not any(self._shardings):
            return None
        return [OpSharding.from_text(text or "{replicated}") for text in self._shardings]

    def get_output_shardings(self) -> list[OpSharding] | None:
        """The sharding that the program states of its result; None if it states none."""
        return None if self._result_sharding is None else [OpSharding.from_text(self._result_sharding)]

    def get_output_memory_kinds(self) -> list[list[str]]:
        return [[HOST_MEMORY for _ in self._result.leaves()]]

    def get_parameter_layouts(self) -> list[Layout]:
        return [Layout(leaf.minor_to_major) for shape in self._parameters for leaf in shape.leaves()]

    def get_output_layouts(self) -> list[Layout]:
        return [Layout(leaf.minor_to_major) for leaf in self._result.leaves()]

    def keep_alive(self, thing: Any) -> None:
        """Keeps something, as what callbacks need, for as long as the executable."""
        self._kept.append(thing)

    def delete(self) -> None:
        """Lets go of what was kept; code is freed when nobody has the executable any more."""
        self._kept.clear()

    # -- as the releases before 2020 spelled it --------------------------------------------------------------------

    def Execute(self, arguments: Sequence[Any] = ()) -> list[Any]:
        return self.execute(arguments)

    def ExecutePerReplica(self, arguments: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """One list of arguments, and one of results, per replica."""
        outputs = self.execute_sharded_on_local_devices(list(map(list, zip(*arguments, strict=True))))
        return list(map(list, zip(*outputs, strict=True)))

    def DeviceOrdinals(self) -> list[int]:
        return [device.id for device in self._devices]

    def __repr__(self) -> str:
        return repr(self._executable)


class Token:
    """That a run has ended, which is so when it returns."""

    def block_until_ready(self) -> None:
        """Returns at once."""


class ShardedToken:
    """That a run on several devices has ended, which is so when it returns."""

    def __init__(self, count: int) -> None:
        self._tokens = [Token() for _ in range(count)]

    def block_until_ready(self) -> None:
        """Returns at once."""

    def get_token(self, device_id: int) -> Token:
        return self._tokens[device_id]


@dataclass(frozen=True)
class CompiledMemoryStats:
    """Bytes that a program needs, on the device and, for programs that use both, on the host."""

    generated_code_size_in_bytes: int = 0
    argument_size_in_bytes: int = 0
    output_size_in_bytes: int = 0
    alias_size_in_bytes: int = 0
    temp_size_in_bytes: int = 0
    host_generated_code_size_in_bytes: int = 0
    host_argument_size_in_bytes: int = 0
    host_output_size_in_bytes: int = 0
    host_alias_size_in_bytes: int = 0
    host_temp_size_in_bytes: int = 0
    serialized_hlo_proto: bytes = b""


class ExecuteResults:
    """The results of a run on several devices."""

    def __init__(self, outputs: list[list[Any]], devices: int = 1) -> None:
        self._outputs = outputs
        self._devices = devices

    def __len__(self) -> int:
        return len(self._outputs)

    def disassemble_into_single_device_arrays(self) -> list[list[Any]]:
        """For each result the buffers of all devices."""
        return self._outputs

    def disassemble_prefix_into_single_device_arrays(self, count: int) -> list[list[Any]]:
        """The same for the first `count` results, which are then gone from here."""
        taken, self._outputs = self._outputs[:count], self._outputs[count:]
        return taken

    def consume_with_handlers(self, handlers: Sequence[Callable[[list[Any]], Any]]) -> list[Any]:
        return [handler(output) for handler, output in zip(handlers, self._outputs, strict=True)]

    def consume_token(self) -> ShardedToken:
        return ShardedToken(self._devices)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (tuple, list)):
        for part in value:
            yield from _leaves(part)
    else:
        yield value.array if isinstance(value, Buffer) else value


def _packed(shape: HloShape, leaves: Iterator[Any]) -> Any:
    return tuple(_packed(part, leaves) for part in shape.parts) if shape.is_tuple else next(leaves)


def execute_with_python_values(executable: LoadedExecutable, arguments: Sequence[Any], backend: Client) -> list[Any]:
    """Runs the program with arrays; returns arrays, one per leaf of the result."""
    return [np.asarray(leaf) for leaf in executable.execute(arguments)]


def execute_with_python_values_replicated(
    executable: LoadedExecutable, arguments: Sequence[Sequence[Any]], backend: Client
) -> list[list[Any]]:
    """The same on every device: one list of arguments, and one of results, per replica."""
    return [[np.asarray(leaf) for leaf in row] for row in executable.ExecutePerReplica(arguments)]
