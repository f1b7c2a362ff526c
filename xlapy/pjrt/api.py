"""The whole API, put together: the table, and the extensions that are served."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence

from xlapy.pjrt import abi, buffers, client, executables
from xlapy.pjrt.native import EXTENSION_FUNCTIONS, native
from xlapy.pjrt.table import FUNCTIONS, capsule_of, new_table
from xlapy.support.late import late
from xlapy_runtime.capsules import keep_for_good

__all__ = ["buffers", "capsule", "client", "executables"]


_EXTENSIONS = {
    abi.ExtensionType.FFI: (None, "PJRT_FFI_UserData_Add", None),
    abi.ExtensionType.SHARDINGS: (
        "PJRT_Shardings_PJRT_Executable_ParameterShardings",
        "PJRT_Shardings_PJRT_Executable_OutputShardings",
    ),
    abi.ExtensionType.LAYOUTS: (
        "PJRT_Layouts_MemoryLayout_Destroy",
        "PJRT_Layouts_MemoryLayout_Serialize",
        "PJRT_Layouts_PJRT_Client_GetDefaultLayout",
        "PJRT_Layouts_PJRT_Buffer_MemoryLayout",
        "PJRT_Layouts_PJRT_Topology_GetDefaultLayout",
        "PJRT_Layouts_PJRT_Executable_GetOutputLayouts",
        "PJRT_Layouts_PJRT_Executable_GetParameterLayouts",
    ),
}
"""The functions of each extension, in their order. Of those for the foreign function interface it is the one by which
JAX tells the functions of a program. JAX calls the last one of layouts without asking whether it is there."""


_INSPECTION = (
    "PJRT_Device_MemoryStats",
    "PJRT_Executable_DeserializeAndLoad",
    "PJRT_Executable_GetCompileOptions",
    "PJRT_Executable_GetCompiledMemoryStats",
    "PJRT_Executable_GetCostAnalysis",
    "PJRT_Executable_OptimizedProgram",
    "PJRT_Executable_Serialize",
    "PJRT_Executable_SizeOfGeneratedCodeInBytes",
    *(name for name in _EXTENSIONS[abi.ExtensionType.LAYOUTS] if name and name not in EXTENSION_FUNCTIONS),
)
"""What programs seldom ask, and needs modules that nothing else does."""


@functools.cache
def capsule() -> object:
    """The table as JAX wants it, made once."""
    FUNCTIONS.implement_later(lambda: late("xlapy.pjrt.inspection"), *_INSPECTION)
    first = 0
    for kind, functions in _EXTENSIONS.items():
        first = _extension(kind, functions, first)
    return capsule_of(new_table(first))


def _extension(kind: int, functions: Sequence[str | None], following: int) -> int:
    """The address of an extension: a head, and the addresses of functions."""
    head, slot = ctypes.sizeof(abi.ExtensionBase), ctypes.sizeof(ctypes.c_void_p)
    memory = ctypes.create_string_buffer(head + slot * len(functions))
    keep_for_good(memory)
    base = abi.ExtensionBase.from_buffer(memory)
    base.struct_size, base.type, base.next = len(memory), kind, following
    addresses = (ctypes.c_void_p * len(functions)).from_buffer(memory, head)
    addresses[:] = [_address(name) if name else None for name in functions]
    return ctypes.addressof(memory)


def _address(name: str) -> int:
    return native().address(name) if name in EXTENSION_FUNCTIONS else FUNCTIONS.callback(name)
