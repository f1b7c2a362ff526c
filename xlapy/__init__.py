"""xlapy: a just-in-time compiler for array programs on CPUs.

b = xlapy.XlaBuilder("axpy")
x = xlapy.ops.Parameter(b, 0, xlapy.Shape.array(np.float32, (1024,)), "x")
y = xlapy.ops.Parameter(b, 1, xlapy.Shape.array(np.float32, (1024,)), "y")
exe = xlapy.compile(b.build(2 * x + y))
z = exe(np.ones(1024, np.float32), np.ones(1024, np.float32))
"""

import importlib
import sys
from typing import TYPE_CHECKING, Any

from xlapy.support.text_forms import TEXT_FORMS
from xlapy.support.version import VERSION

if TYPE_CHECKING:
    from xlapy import hlo, ops, stablehlo
    from xlapy.api import compile, evaluate, load
    from xlapy.builder import XlaBuilder, XlaComputation, XlaOp
    from xlapy.executable import Executable
    from xlapy.hlo.graph import HloModule
    from xlapy.hlo.shape import Shape
    from xlapy.options import CompileOptions
    from xlapy.support.errors import (
        ArgumentError,
        CancelledExecution,
        DeadlineError,
        ExecutionError,
        InternalError,
        OutOfMemoryError,
        ParseError,
        SavedProgramError,
        ShapeError,
        UnsupportedError,
        XlaError,
    )
    from xlapy_runtime.custom_calls import register_custom_call_target
    from xlapy_runtime.device import Device, devices
    from xlapy_runtime.result_memory import ResultMemoryStatistics
    from xlapy_runtime.result_memory import statistics as memory_statistics
    from xlapy_runtime.trimming import trim

__version__ = VERSION

__all__ = [
    "ArgumentError",
    "CancelledExecution",
    "CompileOptions",
    "DeadlineError",
    "Device",
    "Executable",
    "ExecutionError",
    "HloModule",
    "InternalError",
    "OutOfMemoryError",
    "ParseError",
    "ResultMemoryStatistics",
    "SavedProgramError",
    "Shape",
    "ShapeError",
    "UnsupportedError",
    "XlaBuilder",
    "XlaComputation",
    "XlaError",
    "XlaOp",
    "compile",
    "devices",
    "evaluate",
    "hlo",
    "load",
    "memory_statistics",
    "ops",
    "register_custom_call_target",
    "stablehlo",
    "trim",
]

_AT_FIRST_USE = {
    "CompileOptions": "xlapy.options",
    "Device": "xlapy_runtime.device",
    "Executable": "xlapy.executable",
    "HloModule": "xlapy.hlo.graph",
    "ResultMemoryStatistics": "xlapy_runtime.result_memory",
    "Shape": "xlapy.hlo.shape",
    "XlaBuilder": "xlapy.builder",
    "XlaComputation": "xlapy.builder",
    "XlaOp": "xlapy.builder",
    "builder": "xlapy.builder",
    "compile": "xlapy.api",
    "devices": "xlapy_runtime.device",
    "evaluate": "xlapy.api",
    "hlo": "xlapy.hlo",
    "load": "xlapy.api",
    "memory_statistics": "xlapy_runtime.result_memory",
    "ops": "xlapy.ops",
    "options": "xlapy.options",
    "register_custom_call_target": "xlapy_runtime.custom_calls",
    "stablehlo": "xlapy.stablehlo",
    "trim": "xlapy_runtime.trimming",
    **dict.fromkeys(
        (
            "ArgumentError",
            "CancelledExecution",
            "DeadlineError",
            "ExecutionError",
            "InternalError",
            "OutOfMemoryError",
            "ParseError",
            "SavedProgramError",
            "ShapeError",
            "UnsupportedError",
            "XlaError",
        ),
        "xlapy.support.errors",
    ),
}
"""Where names are from. Recording a program needs neither the compiler nor the runtime, and a program that the cache
has no graph."""

_NAMED_OTHERWISE = {"memory_statistics": "statistics"}
"""What a name is called in its module, where that differs."""


@TEXT_FORMS.register("html")
def _html(module: "HloModule") -> str:
    """What notebooks show of a module; reports are loaded when one is first shown."""
    html: str = importlib.import_module("xlapy.report.notebook").module_html(module)
    return html


def __getattr__(name: str) -> Any:
    if name not in _AT_FIRST_USE:
        raise AttributeError(
            f"module 'xlapy' has no attribute {name!r}{_hint(name)}", name=name, obj=sys.modules[__name__]
        )
    module = importlib.import_module("xlapy.support.late").late(_AT_FIRST_USE[name])
    value = module if module.__name__ == f"xlapy.{name}" else getattr(module, _NAMED_OTHERWISE.get(name, name))
    globals()[name] = value
    return value


def _hint(name: str) -> str:
    if name in _IMPORTED_BY_NAME:
        return f": `import xlapy.{name}` loads it"
    names = importlib.import_module("xlapy.support.other_names")
    hint: str = names.hint_for(names.PACKAGE, name)
    return hint


_IMPORTED_BY_NAME = ("codegen", "jax", "passes", "report", "tools", "xla_client")
"""Packages that are not loaded for who mentions them: some need more than xlapy does."""


def __dir__() -> list[str]:
    return sorted({*globals(), *_AT_FIRST_USE})
