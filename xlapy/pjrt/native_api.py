"""What native functions of the API have in common: arguments in a structure, and Python for what they leave to it."""

from __future__ import annotations

import ctypes
from types import TracebackType

from xlapy.codegen.ir import I8, I32, I64, PTR, IRType, KernelBuilder, Module, Value
from xlapy.codegen.native_fields import get, word
from xlapy.pjrt.abi import FUNCTIONS, arguments_of
from xlapy.pjrt.native_memory import platform
from xlapy.pjrt.records import PlatformRecord

_TYPES: dict[object, IRType] = {
    ctypes.c_void_p: PTR,
    ctypes.c_size_t: I64,
    ctypes.c_int64: I64,
    ctypes.c_int: I32,
    ctypes.c_bool: I8,
}


class ApiFunction(KernelBuilder):
    """Writes `PJRT_Error* name(name_Args*)`. It returns null, for success, where it does not return anything else."""

    def __init__(self, module: Module, name: str) -> None:
        super().__init__(module, name, [("arguments", PTR)], PTR)
        self._structure = arguments_of(name)
        self._types = {field[0]: _TYPES[field[1]] for field in self._structure._fields_}

    def argument(self, name: str) -> Value:
        """A field of the arguments, as it is now."""
        return self.load(self._place(name), self._types[name])

    def give(self, name: str, value: Value) -> None:
        """Stores what the function gives; of a number as much as the field has room for."""
        type = self._types[name]
        if type.bytes < value.type.bytes:
            value = self.trunc(value, type)
        self.store(self._place(name), value)

    def _place(self, name: str) -> Value:
        return self.gep(self.parameters["arguments"], getattr(self._structure, name).offset)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if kind is None and not self._terminated:
            self.ret(self.const(PTR, 0))
        super().__exit__(kind, error, where)


def python_function(f: ApiFunction) -> Value:
    """What Python's function of the same name returns."""
    functions = get(f, platform(f), PlatformRecord, "python")
    return f.call_value(word(f, functions, FUNCTIONS.index(f.name), PTR), [f.parameters["arguments"]], PTR)
