"""From Python's exceptions to PJRT_Error, of which JAX makes a JaxRuntimeError."""

from __future__ import annotations

import traceback

from xlapy.pjrt.abi import ErrorCode
from xlapy.pjrt.native import native
from xlapy.support.errors import (
    ArgumentError,
    CancelledExecution,
    DeadlineError,
    OutOfMemoryError,
    ParseError,
    ShapeError,
    UnsupportedError,
    XlaError,
)

_CODES: dict[type[BaseException], int] = {
    UnsupportedError: ErrorCode.UNIMPLEMENTED,
    OutOfMemoryError: ErrorCode.RESOURCE_EXHAUSTED,
    MemoryError: ErrorCode.RESOURCE_EXHAUSTED,
    DeadlineError: ErrorCode.DEADLINE_EXCEEDED,
    CancelledExecution: ErrorCode.CANCELLED,
    KeyboardInterrupt: ErrorCode.CANCELLED,
    ArgumentError: ErrorCode.INVALID_ARGUMENT,
    ParseError: ErrorCode.INVALID_ARGUMENT,
    ShapeError: ErrorCode.INVALID_ARGUMENT,
}


def error_of(error: BaseException) -> int:
    """A new PJRT_Error, which its receiver destroys. What is no error of xlapy's, as one of a function that the program
    calls, comes with its traceback.

    JAX knows no other errors than its own. So Ctrl-C is raised once more behind it."""
    if isinstance(error, KeyboardInterrupt):
        note_interrupt()
    code = next((code for kind, code in _CODES.items() if isinstance(error, kind)), ErrorCode.INTERNAL)
    message = str(error) if isinstance(error, XlaError) else "".join(traceback.format_exception(error))
    data = message.encode(errors="replace")
    return int(native().new_error(code, data, len(data)))


def note_interrupt() -> None:
    """Has Ctrl-C raised in the main thread, by native code to which Python returns."""
    native().record.is_interrupted = 1
