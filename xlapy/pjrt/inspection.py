"""What JAX tells about compiled programs, and programs that it keeps."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from xlapy.api import load as load_module
from xlapy.hlo.graph import HloModule
from xlapy.hlo.proto import module_to_bytes, signature_to_proto
from xlapy.hlo.text import parse
from xlapy.pjrt import abi
from xlapy.pjrt.client import NamedValues
from xlapy.pjrt.executables import LoadedExecutable, Spec, dims_of, load, loaded, nothing_to_delete
from xlapy.pjrt.native import native
from xlapy.pjrt.programs import read_artifact
from xlapy.pjrt.records import Text, numbers
from xlapy.pjrt.table import implements
from xlapy.support.errors import ParseError
from xlapy.support.protobuf import DELIMITED, encode, varint

# -- what a program costs ----------------------------------------------------------------------------------------------


@implements("PJRT_Executable_SizeOfGeneratedCodeInBytes")
def code_size(arguments: Any) -> None:
    arguments.size_in_bytes = loaded(arguments.executable).executable.memory_analysis()["code_bytes"]


@implements("PJRT_Executable_GetCostAnalysis")
def cost_analysis(arguments: Any) -> None:
    made = loaded(arguments.executable)
    values = made.keep("costs", NamedValues(made.executable.cost_analysis()))
    arguments.properties, arguments.num_properties = values.address, values.count


@implements("PJRT_Executable_GetCompiledMemoryStats")
def memory_analysis(arguments: Any) -> None:
    known = loaded(arguments.executable).executable.memory_analysis()
    for field, name in _MEMORY.items():
        setattr(arguments, field, known.get(name, 0))


_MEMORY = {
    "generated_code_size_in_bytes": "code_bytes",
    "argument_size_in_bytes": "argument_bytes",
    "output_size_in_bytes": "result_bytes",
    "alias_size_in_bytes": "donated_bytes",
    "temp_size_in_bytes": "temporary_bytes",
    "host_generated_code_size_in_bytes": "",
    "host_argument_size_in_bytes": "",
    "host_output_size_in_bytes": "",
    "host_alias_size_in_bytes": "",
    "host_temp_size_in_bytes": "",
    "peak_memory_in_bytes": "peak_bytes",
    "total_size_in_bytes": "peak_bytes",
}


@implements("PJRT_Device_MemoryStats")
def memory_statistics(arguments: Any) -> None:
    """Of buffers that the platform has made: not of the host's memory that is shared with it."""
    record = native().record
    for name, kind in arguments._fields_[3:]:
        setattr(arguments, name, kind())
    arguments.bytes_in_use = record.bytes_in_use
    arguments.peak_bytes_in_use, arguments.peak_bytes_in_use_is_set = record.peak_bytes_in_use, True
    arguments.pool_bytes, arguments.pool_bytes_is_set = record.idle_bytes, True


# -- the program -------------------------------------------------------------------------------------------------------


@implements("PJRT_Executable_OptimizedProgram")
def optimized_program(arguments: Any) -> None:
    """Asked for twice: for the size, and then for the bytes."""
    made = loaded(arguments.executable)
    text = made.kept.get("optimized") or made.keep("optimized", Text(_with_configuration(_module_of(made))))
    program = abi.Program.from_address(arguments.program)
    if program.code:
        ctypes.memmove(program.code, text.address, text.size)
    program.code_size = text.size
    program.format, program.format_size = _FORMAT.address, _FORMAT.size


_FORMAT = Text("hlo_with_config")


def _module_of(made: LoadedExecutable) -> HloModule:
    """What was compiled, after all passes; before them if it has large constants, which its text leaves out."""
    try:
        return parse(made.executable.hlo_text())
    except ParseError:
        return load_module(read_artifact(made.code, "mlir").text)


def _with_configuration(module: HloModule) -> bytes:
    """HloModuleProtoWithConfig. The configuration is the types of parameters and results."""
    names = [parameter.name for parameter in module.entry.parameters]
    signature = signature_to_proto(module.config.entry_layout or module.entry.signature, names)
    return _field(1, module_to_bytes(module)) + _field(2, _field(1, encode(signature)))


def _field(number: int, message: bytes) -> bytes:
    return varint(number << 3 | DELIMITED) + varint(len(message)) + message


# -- programs that are kept --------------------------------------------------------------------------------------------

_MAGIC = b"xlapy program\n"
_SIZE_BYTES = 8


@implements("PJRT_Executable_Serialize")
def serialize(arguments: Any) -> None:
    """The program and its options: what it was compiled to is in the cache of xlapy's own."""
    made = loaded(arguments.executable)
    size = len(made.options).to_bytes(_SIZE_BYTES, "little")
    text = made.keep("serialized", Text(b"".join((_MAGIC, size, made.options, made.code))))
    arguments.serialized_bytes, arguments.serialized_bytes_size = text.address, text.size
    arguments.serialized_executable, arguments.serialized_executable_deleter = None, nothing_to_delete()


@implements("PJRT_Executable_DeserializeAndLoad")
def deserialize(arguments: Any) -> None:
    data = ctypes.string_at(arguments.serialized_executable, arguments.serialized_executable_size)
    if not data.startswith(_MAGIC):
        raise ParseError("these bytes are no program that this platform has serialized")
    begin = len(_MAGIC) + _SIZE_BYTES
    middle = begin + int.from_bytes(data[len(_MAGIC) : begin], "little")
    options = data[begin:middle]
    if arguments.overridden_serialized_compile_options:
        size = arguments.overridden_serialized_compile_options_size
        options = ctypes.string_at(arguments.overridden_serialized_compile_options, size)
    arguments.loaded_executable = load(data[middle:], "mlir", options)


@implements("PJRT_Executable_GetCompileOptions")
def compile_options(arguments: Any) -> None:
    made = loaded(arguments.executable)
    text = made.keep("options", Text(made.options))
    arguments.serialized_bytes, arguments.serialized_bytes_size = text.address, text.size
    arguments.serialized_compile_options = None
    arguments.serialized_compile_options_deleter = nothing_to_delete()


# -- layouts: the last dimension side by side, always ------------------------------------------------------------------


@implements("PJRT_Layouts_PJRT_Client_GetDefaultLayout", "PJRT_Layouts_PJRT_Topology_GetDefaultLayout")
def default_layout(arguments: Any) -> None:
    arguments.layout = native().layout(arguments.num_dims)


@implements("PJRT_Layouts_PJRT_Executable_GetOutputLayouts")
def result_layouts(arguments: Any) -> None:
    made = loaded(arguments.executable)
    table = made.keep("result layouts", _table_of_layouts(made.results))
    arguments.num_outputs, arguments.layouts = len(made.results), ctypes.addressof(table)


@implements("PJRT_Layouts_PJRT_Executable_GetParameterLayouts")
def parameter_layouts(arguments: Any) -> None:
    made = loaded(arguments.executable)
    table = made.keep("parameter layouts", _table_of_layouts(made.parameters))
    arguments.num_parameters, arguments.layouts = len(made.parameters), ctypes.addressof(table)


def _table_of_layouts(specs: Sequence[Spec]) -> Any:
    return numbers([native().layout(len(dims_of(spec))) for spec in specs])
