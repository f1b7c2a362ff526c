"""Compiled programs: what JAX asks of them, and runs that native code leaves to Python.

Those are runs of programs that call Python functions, or have anything else to wait for, and runs in which JAX keeps
an argument that the program would take.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, TypeVar

from xlapy.hlo.proto.options import ComputationDevicesProto, DeviceAssignmentProto, ExecutableBuildOptionsProto
from xlapy.jax.callbacks import TARGETS as CALLBACK_TARGETS
from xlapy.pjrt import abi
from xlapy.pjrt.buffers import array_in, empty_buffer, new_buffer, type_of
from xlapy.pjrt.client import MEMORY_KINDS, Device, Memory, client
from xlapy.pjrt.errors import error_of
from xlapy.pjrt.native import native
from xlapy.pjrt.programs import (
    LateCallbacks,
    ProgramText,
    compile_program,
    read_artifact,
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
Kept = TypeVar("Kept")


class LoadedExecutable:
    """A program on a device, with the record of it that native code reads."""

    def __init__(self, source: ProgramText, code: bytes, options: bytes) -> None:
        self.build_options, compile_options = read_options(options)
        self.device = _device_of(self.build_options)
        self.callbacks = LateCallbacks()
        self.executable = compile_program(source, self.callbacks, compile_options)
        self.calls_python = any(target in source.text for target in CALLBACK_TARGETS)
        self.code, self.options = code, options
        self.kept: dict[str, Any] = {}
        self.failure: BaseException | None = None
        self._contexts: list[Any] = []
        program = self.executable.runnable.program
        self.parameters = _leaves(program.parameters)
        self.results = _leaves(program.result if isinstance(program.result, tuple) else (program.result,))
        places = [place for place, spec in enumerate(self.parameters) if isinstance(spec, ArraySpec)]
        self.donated = sorted({places[number] for number in program.aliases.values()})
        self.direct = None if self._has_tokens() else self.executable.runnable.direct
        self._describe(source)
        self._record_results(source)
        self.record = self._new_record()
        self.address = ctypes.addressof(self.record)
        native().expect(sum(spec.nbytes for spec in self.results if isinstance(spec, ArraySpec)))

    def keep(self, name: str, value: Kept) -> Kept:
        """The value, which lives as long as the program: JAX has its address."""
        self.kept[name] = value
        return value

    def _has_tokens(self) -> bool:
        return any(isinstance(spec, TokenSpec) for spec in (*self.parameters, *self.results))

    def _describe(self, source: ProgramText) -> None:
        """What JAX asks for: texts, and tables of types and dimensions, one result after the other."""
        self.name = Text(self.executable.name)
        self.fingerprint = Text(hashlib.sha256(self.code).hexdigest())
        self.assignment = Text(encode(DeviceAssignmentProto(1, 1, [ComputationDevicesProto([self.device.number])])))
        self.device_table = numbers([self.device.address])
        self.logical_ids = abi.LogicalIds(0, 0)
        self.types = (ctypes.c_int * max(1, len(self.results)))(*map(_type_of, self.results))
        dims = [dims_of(spec) for spec in self.results]
        self.dims = numbers([size for sizes in dims for size in sizes])
        self.ranks = numbers([len(sizes) for sizes in dims])
        self.result_kinds = self._kinds(len(self.results), source.result_kinds)
        self.parameter_kinds = self._kinds(len(self.parameters), source.parameter_kinds)

    def _kinds(self, count: int, stated: Sequence[str | None]) -> tuple[Any, Any]:
        """The tables of the kinds of memory that arrays are in, and of their lengths."""
        kinds = [self._memory(number, stated).kind for number in range(count)]
        return numbers([kind.address for kind in kinds]), numbers([kind.size for kind in kinds])

    def _memory(self, number: int, stated: Sequence[str | None]) -> Memory:
        kind = stated[number] if number < len(stated) else None
        return self.device.memories[MEMORY_KINDS.index(kind) if kind in MEMORY_KINDS else 0]

    def _record_results(self, source: ProgramText) -> None:
        aliases = self.executable.runnable.program.aliases
        self._results = (ResultRecord * max(1, len(self.results)))()
        place = ctypes.addressof(self.dims)
        for number, (record, spec) in enumerate(zip(self._results, self.results, strict=False)):
            byte_count = spec.nbytes if isinstance(spec, ArraySpec) else 0
            record.type, record.rank, record.dims = _type_of(spec), len(dims_of(spec)), place
            record.byte_count, record.home = byte_count, native().home_address(byte_count)
            record.donor = aliases.get(number, -1)
            record.memory = self._memory(number, source.result_kinds).address
            place += 8 * record.rank

    def _new_record(self) -> ExecutableRecord:
        self._donated = numbers(self.donated)
        return ExecutableRecord(
            holders=1,
            entry=None if self.direct is None else self.direct.entry.address,
            parameter_count=len(self.parameters),
            result_count=len(self.results),
            results=ctypes.addressof(self._results),
            donated_count=len(self.donated),
            donated=ctypes.addressof(self._donated),
            new_context=_NEW_CONTEXT_ADDRESS,
            failed=_FAILED_ADDRESS,
            replica_count=max(1, self.build_options.num_replicas),
            partition_count=max(1, self.build_options.num_partitions),
        )

    def new_context(self) -> int:
        """Another context, which lives as long as the program."""
        assert self.direct is not None
        context = self.direct.new_context()
        self._contexts.append(context)
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
        return [
            empty_buffer(_type_of(spec), (), record.memory) if result is None else new_buffer(result, record.memory)
            for spec, record, result in zip(self.results, self._results, results, strict=False)
        ]


_BUFFER_DELETE = abi.arguments_of("PJRT_Buffer_Delete")


def _leaves(tree: tuple[Any, ...]) -> tuple[Spec, ...]:
    if any(isinstance(leaf, tuple) for leaf in tree):
        raise UnsupportedError("programs of JAX take and give arrays, not tuples of them")
    return tree


def dims_of(spec: Spec) -> tuple[int, ...]:
    return spec.dims if isinstance(spec, ArraySpec) else ()


def _type_of(spec: Spec) -> int:
    return type_of(spec.dtype) if isinstance(spec, ArraySpec) else abi.TOKEN_TYPE


def _device_of(options: ExecutableBuildOptionsProto) -> Device:
    """The device that a program is for."""
    count = max(1, options.num_replicas) * max(1, options.num_partitions)
    if count != 1:
        raise UnsupportedError(f"the program is for {count} devices; xlapy's client has one")
    assigned = options.device_assignment
    devices = assigned.computation_devices if assigned else []
    return client().device_numbered(devices[0].replica_device_ids[0] if devices else 0)


# -- what is loaded ----------------------------------------------------------------------------------------------------

_LOADED: dict[int, LoadedExecutable] = {}


def loaded(handle: int) -> LoadedExecutable:
    """The program of a handle."""
    return _LOADED[handle]


def load(code: bytes, form: str, options: bytes) -> int:
    """Compiles a program; its handle."""
    drop_dead()
    made = LoadedExecutable(read_artifact(code, form), code, options)
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
        return loaded(handle).new_context()
    except BaseException as error:  # noqa: BLE001 - the run by Python raises it
        loaded(handle).failure = error
        return 0


def _failed(handle: int, context: int, status: int) -> int:
    """`PJRT_Error* failed(ptr executable, ptr context, i32 status)`: what native code has kept for its caller."""
    try:
        direct = loaded(handle).direct
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
def compile_and_load(arguments: Any) -> None:
    program = abi.Program.from_address(arguments.program)
    code, form = (ctypes.string_at(*where) for where in _places_of(program))
    options = ctypes.string_at(arguments.compile_options, arguments.compile_options_size)
    arguments.executable = load(code, form.decode(), options)


def _places_of(program: abi.Program) -> tuple[tuple[int, int], tuple[int, int]]:
    return (program.code, program.code_size), (program.format, program.format_size)


@implements("PJRT_LoadedExecutable_Execute")
def execute(arguments: Any) -> None:
    """A run that is not simple, or went wrong."""
    made = loaded(arguments.executable)
    failure, made.failure = made.failure, None
    if failure is not None:
        raise failure
    if made.record.is_deleted:
        raise ArgumentError(f"{made.executable.name} has been deleted")
    if arguments.num_devices != 1:
        raise InternalError(f"a run on {arguments.num_devices} devices")
    options = abi.ExecuteOptions.from_address(arguments.options)
    context = ExecuteContextRecord.from_address(options.context) if options.context else None
    if context is not None and context.data and made.calls_python:
        made.callbacks.read(context.data)
    kept = read_numbers(options.non_donatable_input_indices, options.num_non_donatable_input_indices)
    (given,) = read_numbers(arguments.argument_lists, 1) if arguments.num_args else (0,)
    deleted = [number for number in made.donated if number not in kept]
    results = made.run(read_numbers(given, arguments.num_args), deleted)
    if results:
        (place,) = read_numbers(arguments.output_lists, 1)
        ctypes.memmove(place, numbers(results), 8 * len(results))
    if arguments.device_complete_events:
        ctypes.c_int64.from_address(arguments.device_complete_events).value = native().ready_event


@implements("PJRT_LoadedExecutable_AddressableDevices")
def executable_devices(arguments: Any) -> None:
    arguments.addressable_devices = ctypes.addressof(loaded(arguments.executable).device_table)
    arguments.num_addressable_devices = 1


@implements("PJRT_LoadedExecutable_AddressableDeviceLogicalIds")
def executable_logical_ids(arguments: Any) -> None:
    arguments.addressable_device_logical_ids = ctypes.addressof(loaded(arguments.executable).logical_ids)
    arguments.num_addressable_device_logical_ids = 1


@implements("PJRT_LoadedExecutable_GetDeviceAssignment")
def executable_assignment(arguments: Any) -> None:
    text = loaded(arguments.executable).assignment
    arguments.serialized_bytes, arguments.serialized_bytes_size = text.address, text.size
    arguments.serialized_device_assignment = None
    arguments.serialized_device_assignment_deleter = nothing_to_delete()


def nothing_to_delete() -> int:
    """A deleter of what lives as long as the executable."""
    return native().address("PJRT_Layouts_MemoryLayout_Destroy")


@implements("PJRT_Executable_Name")
def executable_name(arguments: Any) -> None:
    text = loaded(arguments.executable).name
    arguments.executable_name, arguments.executable_name_size = text.address, text.size


@implements("PJRT_Executable_Fingerprint", "PJRT_LoadedExecutable_Fingerprint")
def executable_fingerprint(arguments: Any) -> None:
    text = loaded(arguments.executable).fingerprint
    arguments.executable_fingerprint, arguments.executable_fingerprint_size = text.address, text.size


@implements("PJRT_Executable_OutputElementTypes")
def output_types(arguments: Any) -> None:
    made = loaded(arguments.executable)
    arguments.output_types, arguments.num_output_types = ctypes.addressof(made.types), len(made.results)


@implements("PJRT_Executable_OutputDimensions")
def output_dimensions(arguments: Any) -> None:
    made = loaded(arguments.executable)
    arguments.num_outputs = len(made.results)
    arguments.dims, arguments.dim_sizes = ctypes.addressof(made.dims), ctypes.addressof(made.ranks)


@implements("PJRT_Executable_OutputMemoryKinds")
def output_memory_kinds(arguments: Any) -> None:
    made = loaded(arguments.executable)
    arguments.num_outputs = len(made.results)
    arguments.memory_kinds, arguments.memory_kind_sizes = map(ctypes.addressof, made.result_kinds)


@implements("PJRT_Executable_ParameterMemoryKinds")
def parameter_memory_kinds(arguments: Any) -> None:
    made = loaded(arguments.executable)
    arguments.num_parameters = len(made.parameters)
    arguments.memory_kinds, arguments.memory_kind_sizes = map(ctypes.addressof, made.parameter_kinds)


# -- shardings: all of an array is on the device -----------------------------------------------------------------------

_SHARDING = Text(b"\x08\x00")
"""An OpSharding of the type that is replicated."""


@implements("PJRT_Shardings_PJRT_Executable_ParameterShardings")
def parameter_shardings(arguments: Any) -> None:
    made = loaded(arguments.executable)
    arguments.num_parameters = len(made.parameters)
    arguments.shardings, arguments.sharding_sizes = _shardings(made, len(made.parameters))


@implements("PJRT_Shardings_PJRT_Executable_OutputShardings")
def result_shardings(arguments: Any) -> None:
    made = loaded(arguments.executable)
    arguments.num_outputs = len(made.results)
    arguments.shardings, arguments.sharding_sizes = _shardings(made, len(made.results))


def _shardings(made: LoadedExecutable, count: int) -> tuple[int | None, int | None]:
    """The tables of shardings and their sizes; without any arrays, JAX takes none for an answer."""
    if not count:
        return None, None
    tables = numbers([_SHARDING.address] * count), numbers([_SHARDING.size] * count)
    made.keep(f"shardings of {count}", tables)
    return ctypes.addressof(tables[0]), ctypes.addressof(tables[1])
