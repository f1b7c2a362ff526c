"""Compiles IR text for tests: no passes, native CPU."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm
import numpy as np

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()

NATIVE_FEATURES = llvm.get_host_cpu_features().flatten()
HAS_FMA = bool(llvm.get_host_cpu_features().get("fma"))


class Compiled:
    """Machine code of a module; `call` runs one of its functions on arrays (by address) and integers."""

    def __init__(self, text: str, *, features: str = NATIVE_FEATURES, optimize: int = 1) -> None:
        self._text = text
        self._machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=features, opt=optimize, jit=True
        )
        self._engine = llvm.create_mcjit_compiler(self._module(), self._machine)
        self._engine.finalize_object()

    def _module(self) -> llvm.ModuleRef:
        module = llvm.parse_assembly(self._text)
        module.triple = llvm.get_process_triple()
        module.verify()
        return module

    @functools.cached_property
    def assembly(self) -> str:
        """The code, to read: most callers only run it, and it takes as long again."""
        return str(self._machine.emit_assembly(self._module()))

    def call(self, name: str, *arguments: Any, result: Any = None) -> Any:
        kinds: Sequence[Any] = [
            ctypes.c_void_p if isinstance(argument, np.ndarray) else ctypes.c_int64 for argument in arguments
        ]
        function = ctypes.CFUNCTYPE(result, *kinds)(self._engine.get_function_address(name))
        return function(*(a.ctypes.data if isinstance(a, np.ndarray) else a for a in arguments))
