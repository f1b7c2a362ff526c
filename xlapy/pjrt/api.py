"""The whole API, put together: the table, and the extensions that are served."""

from __future__ import annotations

import ctypes
import functools

from xlapy.pjrt import abi, buffers, client, executables
from xlapy.pjrt.native import native
from xlapy.pjrt.table import capsule_of, new_table
from xlapy_runtime.capsules import keep_for_good

__all__ = ["buffers", "capsule", "client", "executables"]


class FfiExtension(ctypes.Structure):
    """PJRT_FFI_Extension: of its functions the one that JAX tells the functions of a program with."""

    _fields_ = (
        ("base", abi.ExtensionBase),
        ("type_register", ctypes.c_void_p),
        ("user_data_add", ctypes.c_void_p),
        ("register_handler", ctypes.c_void_p),
    )


@functools.cache
def capsule() -> object:
    """The table as JAX wants it, made once."""
    extension = FfiExtension(user_data_add=native().address("PJRT_FFI_UserData_Add"))
    extension.base.struct_size, extension.base.type = ctypes.sizeof(FfiExtension), abi.ExtensionType.FFI
    keep_for_good(extension)
    return capsule_of(new_table(ctypes.addressof(extension)))
