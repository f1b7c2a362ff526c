"""The error classes, where the compiler imports them from; they live with the runtime, which stands alone."""

from xlapy_runtime.errors import (
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

__all__ = [
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
]
