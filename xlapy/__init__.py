"""xlapy: a just-in-time compiler for array programs on CPUs.

b = xlapy.XlaBuilder("axpy")
x = xlapy.ops.Parameter(b, 0, xlapy.Shape.array(np.float32, (1024,)), "x")
y = xlapy.ops.Parameter(b, 1, xlapy.Shape.array(np.float32, (1024,)), "y")
exe = xlapy.compile(b.build(2 * x + y))
z = exe(np.ones(1024, np.float32), np.ones(1024, np.float32))
"""

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
    ParseError,
    ShapeError,
    UnsupportedError,
    XlaError,
)
from xlapy_runtime.custom_calls import register_custom_call_target
from xlapy_runtime.device import Device, devices
from xlapy_runtime.result_memory import ResultMemoryStatistics, trim
from xlapy_runtime.result_memory import statistics as memory_statistics

__version__ = "0.1.0"

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
    "ParseError",
    "ResultMemoryStatistics",
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
