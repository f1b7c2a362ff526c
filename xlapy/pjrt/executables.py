"""Compiled programs: what JAX asks of them, and runs that native code leaves to Python.

Those are runs of programs that call Python functions, or have anything else to wait for, and runs in which JAX keeps
an argument that the program would take.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from xlapy.executable import Executable
from xlapy.options import CompileOptions
from xlapy.pjrt import abi
from xlapy.pjrt.buffers import array_in, empty_buffer, new_buffer, type_of
from xlapy.pjrt.client import Device, client
from xlapy.pjrt.errors import error_of
from xlapy.pjrt.native import native
from xlapy.pjrt.programs import (
    BuildOptions,
    ComputationDevices,
    DeviceAssignment,
    LateCallbacks,
    compile_artifact,
    read_options,
)
from xlapy.pjrt.records import (
    ExecutableRecord,
    ExecuteContextRecord,
    ResultRecord,
    Text,
    numbers,
    read_numbers,
)
from xlapy.pjrt.table import implements
from xlapy.support.errors import ArgumentError, InternalError, UnsupportedError
from xlapy.support.protobuf import encode
from xlapy_runtime.calls import guarded_from_the_start
from xlapy_runtime.capsules import keep_for_good
from xlapy_runtime.program import ArraySpec, TokenSpec

Spec = ArraySpec | TokenSpec


class LoadedExecutable:
    """A program on a device, with the record of it that native code reads."""

    def __init__(self, executable: Executable, callbacks: LateCallbacks, code: bytes, options: bytes) -> None:
        program = executable.runnable.program
        self.executable = executable
        self.callbacks = callbacks
        self.options = options
        self.build_options = read_options(options)
        self.device = _device_of(self.build_options)
        self.parameters = _leaves(program.parameters)
        self.results = _leaves(program.result if isinstance(program.result, tuple) else (program.result,))
        self.name = Text(executable.name)
        self.fingerprint = Text(hashlib.sha256(code).hexdigest())
        self.assignment = Text(encode(DeviceAssignment(1, 1, [ComputationDevices([self.device.number])])))
        self.donated = sorted(set(program.aliases.values()))
        self.direct = None if self._has_tokens() else executable.runnable.direct
        self.contexts: list[Any] = []
        self.failure: BaseException | None = None
        self._describe_results()
        self._describe()
        self.address = ctypes.addressof(self.record)
        native().expect(sum(spec.nbytes for spec in self.results if isinstance(spec, ArraySpec)))

    def _has_tokens(self) -> bool:
        return any(isinstance(spec, TokenSpec) for spec in (*self.parameters, *self.results))

    def _describe_results(self) -> None:
        """Tables of types and dimensions, one result after the other."""
        specs = self.results
        dims = [_dims_of(spec) for spec in specs]
        self.types = (ctypes.c_int * max(1, len(specs)))(*map(_type_of, specs))
        self.dims = numbers([size for sizes in dims for size in sizes])
        self.ranks = numbers([len(sizes) for sizes in dims])
        self.device_table = numbers([self.device.address])
        self.logical_ids = abi.LogicalIds(0, 0)
        self.result_kinds = self._kinds(len(specs))
        self.parameter_kinds = self._kinds(len(self.parameters))

    def _kinds(self, count: int) -> tuple[Any, Any]:
        kind = self.device.memories[0].kind
        return numbers([kind.address] * count), numbers([kind.size] * count)

    def _describe(self) -> None:
        program = self.executable.runnable.program
        self._results = (ResultRecord * max(1, len(self.results)))()
        place = ctypes.addressof(self.dims)
        for number, (record, spec) in enumerate(zip(self._results, self.results, strict=False)):
            byte_count = spec.nbytes if isinstance(spec, ArraySpec) else 0
            record.type, record.rank, record.dims = _type_of(spec), len(_dims_of(spec)), place
            record.byte_count, record.home = byte_count, native().home_address(byte_count)
            record.donor = program.aliases.get(number, -1)
            place += 8 * record.rank
        self._donated = numbers(self.donated)
        self.record = ExecutableRecord(
            holders=1,
            entry=None if self.direct is None else self.direct.entry.address,
            parameter_count=len(self.parameters),
            result_count=len(self.results),
            results=ctypes.addressof(self._results),
            donated_count=len(self.donated),
            donated=ctypes.addressof(self._donated),
            new_context=_NEW_CONTEXT_ADDRESS,
            failed=_FAILED_ADDRESS,
            device=self.device.address,
            memory=self.device.record.memory,
            replica_count=max(1, self.build_options.num_replicas),
            partition_count=max(1, self.build_options.num_partitions),
        )

    def new_context(self) -> int:
        """Another context, which lives as long as the program."""
        assert self.direct is not None
        context = self.direct.new_context()
        self.contexts.append(context)
        return context.address

    def run(self, buffers: Sequence[int], deleted: Sequence[int]) -> list[int]:
        """The buffers of the results. Arguments of these numbers are deleted by it."""
        with ExitStack() as stack:
            arrays = [
                stack.enter_context(array_in(buffer)) if isinstance(spec, ArraySpec) else None
                for buffer, spec in zip(buffers, self.parameters, strict=True)
            ]
            value = self.executable(*arrays)
        for number in deleted:
            arguments = _BUFFER_DELETE(buffer=buffers[number])
            native().function("PJRT_Buffer_Delete")(ctypes.addressof(arguments))
        results = value if isinstance(value, tuple) else (value,)
        return [self._buffer(spec, result) for spec, result in zip(self.results, results, strict=True)]

    def _buffer(self, spec: Spec, result: np.ndarray[Any, Any] | None) -> int:
        memory = self.device.memories[0].address
        if result is None:
            return empty_buffer(_type_of(spec), (), memory)
        return new_buffer(result, memory)


_BUFFER_DELETE = abi.arguments_of("PJRT_Buffer_Delete")


def _leaves(tree: tuple[Any, ...]) -> tuple[Spec, ...]:
    if any(isinstance(leaf, tuple) for leaf in tree):
        raise UnsupportedError("programs of JAX take and give arrays, not tuples of them")
    return tree


def _dims_of(spec: Spec) -> tuple[int, ...]:
    return spec.dims if isinstance(spec, ArraySpec) else ()


def _type_of(spec: Spec) -> int:
    return type_of(spec.dtype) if isinstance(spec, ArraySpec) else abi.TOKEN_TYPE


def _device_of(options: BuildOptions) -> Device:
    """The device that a program is for."""
    count = max(1, options.num_replicas) * max(1, options.num_partitions)
    if count != 1:
        raise UnsupportedError(f"the program is for {count} devices; xlapy's client has one")
    assigned = options.device_assignment
    devices = assigned.computation_devices if assigned else []
    return client().device_numbered(devices[0].replica_device_ids[0] if devices else 0)


# -- what is loaded ----------------------------------------------------------------------------------------------------

_LOADED: dict[int, LoadedExecutable] = {}


def _loaded(handle: int) -> LoadedExecutable:
    return _LOADED[handle]


def load(code: bytes, form: str, options: bytes) -> int:
    """Compiles a program; its handle."""
    drop_dead()
    _device_of(read_options(options))  # asked before it is compiled
    callbacks = LateCallbacks()
    made = LoadedExecutable(compile_artifact(code, form, callbacks, CompileOptions()), callbacks, code, options)
    _LOADED[made.address] = made
    return made.address


def drop_dead() -> None:
    """Lets go of the executables that JAX has destroyed since."""
    handle = native().dead_executables()
    while handle:
        handle, dead = ExecutableRecord.from_address(handle).next_dead, handle
        del _LOADED[dead]


def _new_context(handle: int) -> int:
    """`ptr new_context(ptr executable)`: null for what goes wrong, of which Python hears when it runs the program."""
    try:
        return _loaded(handle).new_context()
    except BaseException as error:  # noqa: BLE001 - the run by Python raises it
        _loaded(handle).failure = error
        return 0


def _failed(handle: int, context: int, status: int) -> int:
    """`PJRT_Error* failed(ptr executable, ptr context, i32 status)`: what native code has kept for its caller."""
    try:
        direct = _loaded(handle).direct
        assert direct is not None
        direct.failed(context, status)
    except BaseException as error:  # noqa: BLE001 - becomes the error that JAX raises
        return error_of(error)


def _address(prototype: Any, function: Any) -> int:
    made = prototype(guarded_from_the_start(function))
    keep_for_good(made)
    return ctypes.cast(made, ctypes.c_void_p).value or 0


_NEW_CONTEXT_ADDRESS = _address(ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p), _new_context)
_FAILED_ADDRESS = _address(ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int), _failed)


# -- the API -----------------------------------------------------------------------------------------------------------


@implements("PJRT_Client_Compile")
def compile_program(arguments: Any) -> None:
    program = abi.Program.from_address(arguments.program)
    code, form = (ctypes.string_at(*where) for where in _places_of(program))
    options = ctypes.string_at(arguments.compile_options, arguments.compile_options_size)
    arguments.executable = load(code, form.decode(), options)


def _places_of(program: abi.Program) -> tuple[tuple[int, int], tuple[int, int]]:
    return (program.code, program.code_size), (program.format, program.format_size)


@implements("PJRT_LoadedExecutable_Execute")
def execute(arguments: Any) -> None:
    """A run that is not simple, or went wrong."""
    loaded = _loaded(arguments.executable)
    failure, loaded.failure = loaded.failure, None
    if failure is not None:
        raise failure
    if loaded.record.is_deleted:
        raise ArgumentError(f"{loaded.executable.name} has been deleted")
    if arguments.num_devices != 1:
        raise InternalError(f"a run on {arguments.num_devices} devices")
    options = abi.ExecuteOptions.from_address(arguments.options)
    context = ExecuteContextRecord.from_address(options.context) if options.context else None
    if context is not None and context.data:
        loaded.callbacks.read(context.data)
    kept = read_numbers(options.non_donatable_input_indices, options.num_non_donatable_input_indices)
    (given,) = read_numbers(arguments.argument_lists, 1) if arguments.num_args else (0,)
    deleted = [number for number in loaded.donated if number not in kept]
    results = loaded.run(read_numbers(given, arguments.num_args), deleted)
    if results:
        (place,) = read_numbers(arguments.output_lists, 1)
        ctypes.memmove(place, numbers(results), 8 * len(results))
    if arguments.device_complete_events:
        ctypes.c_int64.from_address(arguments.device_complete_events).value = native().ready_event


@implements("PJRT_LoadedExecutable_AddressableDevices")
def executable_devices(arguments: Any) -> None:
    arguments.addressable_devices = ctypes.addressof(_loaded(arguments.executable).device_table)
    arguments.num_addressable_devices = 1


@implements("PJRT_LoadedExecutable_AddressableDeviceLogicalIds")
def executable_logical_ids(arguments: Any) -> None:
    arguments.addressable_device_logical_ids = ctypes.addressof(_loaded(arguments.executable).logical_ids)
    arguments.num_addressable_device_logical_ids = 1


@implements("PJRT_LoadedExecutable_GetDeviceAssignment")
def executable_assignment(arguments: Any) -> None:
    text = _loaded(arguments.executable).assignment
    arguments.serialized_bytes, arguments.serialized_bytes_size = text.address, text.size
    arguments.serialized_device_assignment = None
    arguments.serialized_device_assignment_deleter = nothing_to_delete()


def nothing_to_delete() -> int:
    """A deleter of what lives as long as the executable."""
    return native().address("PJRT_Layouts_MemoryLayout_Destroy")


@implements("PJRT_Executable_Name")
def executable_name(arguments: Any) -> None:
    text = _loaded(arguments.executable).name
    arguments.executable_name, arguments.executable_name_size = text.address, text.size


@implements("PJRT_Executable_Fingerprint", "PJRT_LoadedExecutable_Fingerprint")
def executable_fingerprint(arguments: Any) -> None:
    text = _loaded(arguments.executable).fingerprint
    arguments.executable_fingerprint, arguments.executable_fingerprint_size = text.address, text.size


@implements("PJRT_Executable_OutputElementTypes")
def output_types(arguments: Any) -> None:
    loaded = _loaded(arguments.executable)
    arguments.output_types, arguments.num_output_types = ctypes.addressof(loaded.types), len(loaded.results)


@implements("PJRT_Executable_OutputDimensions")
def output_dimensions(arguments: Any) -> None:
    loaded = _loaded(arguments.executable)
    arguments.num_outputs = len(loaded.results)
    arguments.dims, arguments.dim_sizes = ctypes.addressof(loaded.dims), ctypes.addressof(loaded.ranks)


@implements("PJRT_Executable_OutputMemoryKinds")
def output_memory_kinds(arguments: Any) -> None:
    loaded = _loaded(arguments.executable)
    arguments.num_outputs = len(loaded.results)
    arguments.memory_kinds, arguments.memory_kind_sizes = map(ctypes.addressof, loaded.result_kinds)


@implements("PJRT_Executable_ParameterMemoryKinds")
def parameter_memory_kinds(arguments: Any) -> None:
    loaded = _loaded(arguments.executable)
    arguments.num_parameters = len(loaded.parameters)
    arguments.memory_kinds, arguments.memory_kind_sizes = map(ctypes.addressof, loaded.parameter_kinds)
