"""What executes compiled programs: devices, buffers, channels, collectives. Knows nothing of the compiler.

program = xlapy_runtime.load("model.xlapy")     # what exe.save("model.xlapy") wrote
result = program(*arrays)
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xlapy_runtime.saved import SavedProgram, SavedProgramError, load

__all__ = ["SavedProgram", "SavedProgramError", "load"]


def __getattr__(name: str) -> Any:
    """What is public is loaded at its first use: most processes have compiled what they run."""
    if name not in __all__:
        raise AttributeError(f"module 'xlapy_runtime' has no attribute {name!r}")
    return getattr(importlib.import_module("xlapy_runtime.saved"), name)
