"""Executables that take and return lists of buffers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from xlapy.executable import Executable
from xlapy.hlo.shape import Shape as HloShape
from xlapy.hlo.text import parse
from xlapy.support.errors import ArgumentError
from xlapy.xla_client.buffers import Buffer
from xlapy.xla_client.computations import HloModule
from xlapy.xla_client.options import CompileOptions
from xlapy.xla_client.shapes import Layout

if TYPE_CHECKING:
    from xlapy.xla_client.client import Client, Device


class LoadedExecutable:
    """A compiled program. A result that is a tuple comes as its leaves; parameters that are tuples take theirs."""

    def __init__(self, client: Client, executable: Executable, devices: Sequence[Device], options: CompileOptions):
        self.client = client
        self.traceback = None
        self._executable = executable
        self._devices = list(devices)
        self._options = options
        signature = parse(executable.hlo_text()).signature
        self._parameters = signature.parameters
        self._result = signature.result

    # -- running ---------------------------------------------------------------------------------------------------

    def execute(self, arguments: Sequence[Any], device: Device | None = None) -> list[Any]:
        """Runs the program with one buffer (or array) per leaf of its parameters; returns the leaves of the result."""
        place = device or self._devices[0]
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
            if len(shards) != count:
                raise ArgumentError(f"parameter {number} has {len(shards)} buffers, and the program {count} devices")
        rows = [self._nested([shards[process] for shards in arguments]) for process in range(count)]
        results = self._executable.run_parallel(rows)
        columns = [list(self._buffers(value, place)) for value, place in zip(results, self._devices, strict=True)]
        return [list(outputs) for outputs in zip(*columns, strict=True)]

    def execute_sharded_on_local_devices_with_tokens(
        self, arguments: Sequence[Sequence[Any]]
    ) -> tuple[list[list[Any]], Token]:
        return self.execute_sharded_on_local_devices(arguments), Token()

    def execute_sharded(self, arguments: Sequence[Sequence[Any]], with_tokens: bool = False) -> ExecuteResults:
        return ExecuteResults(self.execute_sharded_on_local_devices(arguments))

    def _nested(self, arguments: Sequence[Any]) -> list[Any]:
        """The arguments as xlapy takes them: arrays, in the nesting of the parameters."""
        leaves = [array for argument in arguments for array in _leaves(argument)]
        wanted = sum(len(list(shape.leaves())) for shape in self._parameters)
        if len(leaves) != wanted:
            raise ArgumentError(f"{self.name} takes {wanted} buffers, got {len(leaves)}")
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

    def get_parameter_layouts(self) -> list[Layout]:
        return [Layout(leaf.minor_to_major) for shape in self._parameters for leaf in shape.leaves()]

    def get_output_layouts(self) -> list[Layout]:
        return [Layout(leaf.minor_to_major) for leaf in self._result.leaves()]

    def delete(self) -> None:
        """Nothing to do: code is freed when nobody has the executable any more."""

    # -- as the releases before 2020 spelled it --------------------------------------------------------------------

    def Execute(self, arguments: Sequence[Any] = ()) -> list[Any]:
        return self.execute(arguments)

    def ExecutePerReplica(self, arguments: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """One list of arguments, and one of results, per replica."""
        outputs = self.execute_sharded_on_local_devices(list(map(list, zip(*arguments, strict=True))))
        return list(map(list, zip(*outputs, strict=True)))

    def __repr__(self) -> str:
        return repr(self._executable)


class Token:
    """That a run has ended, which is so when it returns."""

    def block_until_ready(self) -> None:
        """Returns at once."""


class ExecuteResults:
    """The results of a run on several devices."""

    def __init__(self, outputs: list[list[Any]]) -> None:
        self._outputs = outputs

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

    def consume_token(self) -> Token:
        return Token()


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
