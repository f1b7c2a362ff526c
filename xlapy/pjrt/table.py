"""The table of the API: native code where it does a function's work, else Python behind it.

A function of Python's takes the structure of its arguments, stores what it gives, and raises what goes wrong. No
exception crosses into native code: it becomes the error that the function returns.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Any

from xlapy.pjrt import abi
from xlapy.pjrt.errors import error_of, note_interrupt
from xlapy.pjrt.native import native
from xlapy.support.errors import UnsupportedError
from xlapy_runtime.calls import guarded_from_the_start
from xlapy_runtime.capsules import keep_for_good, new_capsule

Function = Callable[[Any], None]
Callback = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


class Functions:
    """What Python does, by the names of the API. Filled at import, then only read."""

    def __init__(self) -> None:
        self._functions: dict[str, Function] = {}

    def implements(self, *names: str) -> Callable[[Function], Function]:
        def add(function: Function) -> Function:
            self._functions.update(dict.fromkeys(names, function))
            return function

        return add

    def implement_later(self, load: Callable[[], object], *names: str) -> None:
        """Of these functions, `load` imports the module when JAX first calls one."""

        def later(name: str) -> Function:
            def call(arguments: Any) -> None:
                load()
                self._functions[name](arguments)

            return call

        for name in names:
            self._functions.setdefault(name, later(name))

    def callback(self, name: str) -> int:
        """The address of a C function, which stays there for good: JAX may call it when everything else is gone."""
        function = self._functions.get(name)
        made = Callback(_unsupported(name) if function is None else _guarded(name, function))
        keep_for_good(made)
        return ctypes.cast(made, ctypes.c_void_p).value or 0


FUNCTIONS = Functions()
implements = FUNCTIONS.implements


_ENDED_BY_INTERRUPTS = ("PJRT_LoadedExecutable_Execute", "PJRT_Client_Compile")
"""What takes so long that Ctrl-C ends it. JAX expects no errors of most others, which therefore begin again."""


def _guarded(name: str, function: Function) -> Callable[[int], int | None]:
    structure = abi.arguments_of(name)
    may_end = name in _ENDED_BY_INTERRUPTS

    @guarded_from_the_start
    def call(address: int) -> int | None:
        try:
            function(structure.from_address(address))
            return None
        except BaseException as error:  # noqa: BLE001 - it must not cross into native code
            if isinstance(error, KeyboardInterrupt) and not may_end:
                note_interrupt()
                return call(address)
            return error_of(error)

    return call


def _unsupported(name: str) -> Callable[[int], int]:
    def call(_: int) -> int:
        return error_of(UnsupportedError(f"xlapy has no {name}"))

    return call


def new_table(extensions: int) -> abi.Api:
    """The table, filled. `extensions` is the address of the first one."""
    here = native()
    table = abi.Api(struct_size=abi.size_of(abi.Api), extension_start=extensions)
    table.pjrt_api_version.struct_size = abi.size_of(abi.Version)
    table.pjrt_api_version.major_version = abi.MAJOR_VERSION
    table.pjrt_api_version.minor_version = abi.MINOR_VERSION
    python = (ctypes.c_void_p * len(abi.FUNCTIONS)).from_address(here.record.python)
    for place, name in enumerate(abi.FUNCTIONS):
        python[place] = FUNCTIONS.callback(name)
        setattr(table, name, here.address(name))
    keep_for_good(table)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=here.unlock)
    return table


def capsule_of(table: abi.Api) -> object:
    """The table as JAX wants it."""
    return new_capsule(ctypes.addressof(table), abi.CAPSULE_NAME)
