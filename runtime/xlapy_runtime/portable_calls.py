"""Calls into compiled programs through ctypes, which need nothing but Python and numpy.

For places where `calling` has no native wrapper, and for calls of which something is unusual: words of the context that
are set for one call, or arguments that were copied first. Most processes never load this.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from xlapy_runtime import result_memory
from xlapy_runtime.alignment import data_address
from xlapy_runtime.calling import Array, Callbacks, CallContext, ContextWord, EntryPoint, is_ready


class PortableCall:
    """A `BoundCall` without the native wrapper."""

    def __init__(
        self, entry: EntryPoint, callbacks: Callbacks, next_call_number: Callable[[], int] | None = None
    ) -> None:
        prototype = _FREE_ENTRY if entry.release_gil else _ENTRY
        self._entry = entry
        self._callbacks = callbacks
        self._native = prototype(entry.address)
        self._idle_contexts: list[CallContext] = []
        self._next_call_number = next_call_number or itertools.count().__next__

    @property
    def function(self) -> Callable[..., Any]:
        return self._call

    def invoke(self, arrays: Sequence[Array], words: Mapping[int, int] = MappingProxyType({})) -> Any:
        """Calls the entry with arrays that match, with the given context words replaced for this call."""
        try:
            context = self._idle_contexts.pop()
        except IndexError:
            context = self._callbacks.new_context()
        replaced = {index: int(context.words[index]) for index in words}
        try:
            if ContextWord.CALL_NUMBER not in words:
                context.words[ContextWord.CALL_NUMBER] = self._next_call_number()
            for index, value in words.items():
                context.words[index] = value
            return self._run(context, arrays)
        finally:
            for index, value in replaced.items():
                context.words[index] = value
            self._idle_contexts.append(context)

    def _call(self, *arguments: Any) -> Any:
        parameters = self._entry.parameters
        is_simple = len(arguments) == len(parameters) and not self._entry.donations
        if is_simple and all(map(is_ready, parameters, arguments)):
            return self.invoke(arguments)
        return self._callbacks.general(*arguments)

    def _run(self, context: CallContext, arrays: Sequence[Array]) -> Any:
        entry = self._entry
        results = tuple(
            arrays[entry.donations[number]]
            if number in entry.donations
            else result_memory.allocate(spec.dims, spec.dtype)
            for number, spec in enumerate(entry.results)
        )
        _store_pointers(context.parameters_address, arrays)
        _store_pointers(context.results_address, results)
        status = self._native(context.address, context.parameters_address, context.results_address)
        if status != 0:
            return self._callbacks.failed(context.address, status)
        if not entry.gives_tuple:
            return results[0]
        return entry.restructure(results) if entry.restructure else results


_FREE_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_ENTRY = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
"""Entries that run without the GIL, and with it."""


def _store_pointers(address: int, arrays: Sequence[Array]) -> None:
    pointers = (ctypes.c_void_p * len(arrays)).from_address(address)
    for index, array in enumerate(arrays):
        pointers[index] = data_address(array)
