"""The entry: scheduled HLO as native functions that call kernels and the runtime.

Handlers by op write what one instruction does in a `Frame`. Everything else is a kernel call, or, for a scalar, code in
registers. Control flow is native: nothing returns to Python between ops. Long sequences are cut into functions of their
own, because LLVM's time grows faster than a function's length. Importing this package registers all handlers.
"""

from xlapy.codegen.entry import control_flow, library_calls, products, scalars
from xlapy.codegen.entry.base import COUNTER_WORDS, HANDLERS, NO_CODE, Step
from xlapy.codegen.entry.emitter import EntryEmitter, write_entry

__all__ = [
    "COUNTER_WORDS",
    "HANDLERS",
    "NO_CODE",
    "EntryEmitter",
    "Step",
    "control_flow",
    "library_calls",
    "products",
    "scalars",
    "write_entry",
]
