"""The native half of parallel runs: entry threads, and the meetings of processes in collectives.

    i32 rendezvous_call(context, site, buffers)     what programs with collectives call for every call site
    i32 rendezvous_run(run, slots, count)           starts all processes, the first in this thread
    i32 rendezvous_wait(run)                        waits for a while for all to end; how many have not
    i32 rendezvous_serve(slot, nanoseconds)         the life of an entry thread, until it was idle for so long

The records are those of `xlapy_runtime.native_records`. A member of a collective leaves the addresses of its arrays at
a meeting. When all have come, its work is cut into chunks (`exchange`), which the members take one after the other;
whoever finds none left waits for those that are being worked on. Of small work, the last to come does all.

Whoever waits sleeps on the meeting's generation at once: there are mostly more processes than cores, and even where
there are not, a thread that only looks keeps the one for which it waits from running. It wakes now and then: to let
Python's main thread look at its signals, and to see that its time is over. Python is entered for nothing else, and for
what went wrong.
"""

from __future__ import annotations

from xlapy.codegen.ir import Module
from xlapy.codegen.libraries import Library
from xlapy.codegen.rendezvous.attendance import AttendanceFunctions
from xlapy.codegen.rendezvous.exchange import emit_exchange
from xlapy.codegen.rendezvous.processes import ProcessFunctions
from xlapy.codegen.rendezvous.sleep import SleepFunctions
from xlapy.codegen.target import Target
from xlapy_runtime.rendezvous import SYMBOLS

__all__ = ["RENDEZVOUS", "emit_rendezvous"]


def emit_rendezvous(target: Target) -> Module:
    """All functions, in the order in which they build on each other."""
    module = Module(has_fma=target.has_fma)
    emit_exchange(module)
    for functions in (SleepFunctions, AttendanceFunctions, ProcessFunctions):
        functions(module, target).emit()
    return module


RENDEZVOUS = Library("rendezvous", SYMBOLS, emit_rendezvous)
