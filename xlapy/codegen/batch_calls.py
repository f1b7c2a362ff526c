"""Calls of one native function for each problem of a batch, as IR: what the runtime goes through to LAPACK.

    call_each_12(function, count, pointers, steps)      for i in 0 ... count - 1: function(pointers[0] + i * steps[0],
                                                        ..., pointers[11] + i * steps[11])

Everything that LAPACK takes is a pointer. A call from Python costs microseconds, as much as the factor of a small
matrix; from here it costs next to nothing.
"""

from __future__ import annotations

from xlapy.codegen.ir import I64, PTR, KernelBuilder, Module
from xlapy.codegen.libraries import Library
from xlapy.codegen.target import Target
from xlapy_runtime.lapack.batches import LOOP_SYMBOLS


def emit_batch_calls(target: Target) -> Module:
    module = Module(has_fma=target.has_fma)
    for count, name in LOOP_SYMBOLS.items():
        _emit_loop(module, name, count)
    return module


BATCH_CALLS = Library("batch_calls", tuple(LOOP_SYMBOLS.values()), emit_batch_calls)


def _emit_loop(module: Module, name: str, num_pointers: int) -> None:
    parameters = [("function", PTR), ("count", I64), ("pointers", PTR), ("steps", PTR)]
    with KernelBuilder(module, name, parameters, None) as k:
        slots = range(num_pointers)
        pointers = [k.load(k.gep(k.parameters["pointers"], slot, 8), PTR) for slot in slots]
        steps = [k.load(k.gep(k.parameters["steps"], slot, 8), I64) for slot in slots]
        with k.loop(0, k.parameters["count"]) as each:
            arguments = [k.gep(p, k.mul(each.index, step)) for p, step in zip(pointers, steps, strict=True)]
            k.call(k.parameters["function"], arguments)
