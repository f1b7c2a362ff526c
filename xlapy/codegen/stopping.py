"""Kernels that may take long listen: every now and then they look whether the run was stopped, and end early if so.

A kernel that listens has the context of its call and a way out (`KernelBuilder.leave`). Its caller looks at the flag in
the context afterwards, as behind a loop: what a kernel leaves behind that was stopped is no result. In a kernel that
does not listen the functions here add nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from xlapy.codegen.clock import clock, ticks
from xlapy.codegen.context import CONTEXT_CANCELLED, CONTEXT_POLL, CONTEXT_POLLED
from xlapy.codegen.ir import I32, I64, PTR, KernelBuilder, Loop, Module, Operand, Value
from xlapy.codegen.native_fields import not_zero, word
from xlapy.codegen.target import Target

LONG = 1 << 18
"""Elements that one task must have at least for a kernel to listen: fewer take some milliseconds at most."""

_ITERATIONS = 1 << 14
"""Of a loop between two looks: so many that looking costs nothing, so few that they take milliseconds."""

_CALLS = 1 << 8
"""The same of calls of region functions, which may take a microsecond each, or much longer."""

_HUNDREDTHS = 5
"""Of a second between two times that Python may look at its signals."""

_LOOK = "kernel.look"


def define_look(module: Module, target: Target) -> None:
    """Writes `i32 look(context)` into a module of kernels, once: not 0 if the run was stopped.

    Libraries get no context where there is no need to look."""
    if module.defines(_LOOK):
        return
    with KernelBuilder(module, _LOOK, [("context", PTR)], I32, "internal") as k:
        context = k.parameters["context"]
        with k.if_(k.compare("eq", context, k.const(PTR, 0))):
            k.ret(k.const(I32, 0))
        flag = word(k, context, CONTEXT_CANCELLED, PTR)
        with k.if_(not_zero(k, k.load(flag, I32, volatile=True))):
            k.ret(k.const(I32, 1))
        place, now = k.gep(context, CONTEXT_POLLED, I64.bytes), clock(k)
        early = k.compare("le", k.sub(now, k.load(place, I64)), ticks(target, _HUNDREDTHS), signed=False)
        with k.if_(early):
            k.ret(k.const(I32, 0))
        k.store(place, now)
        stop = k.call_value(word(k, context, CONTEXT_POLL, PTR), [context], I32)
        with k.if_(not_zero(k, stop)):
            k.store(flag, k.const(I32, 1))  # for other threads to see
        k.ret(stop)


def look(k: KernelBuilder) -> None:
    """Leaves the kernel if the run was stopped."""
    if k.leave is not None:
        stop = k.call_value(_LOOK, [k.parameters["context"]], I32)
        with k.if_(not_zero(k, stop)):
            k.leave()


def look_between_calls(k: KernelBuilder, counter: Value, calls: int) -> None:
    """Looks every now and then, where `calls` more region functions were called. `counter` is a word to count them."""
    if k.leave is not None:
        count = k.add(k.load(counter, I64), calls)
        is_time = k.compare("ge", count, _CALLS)
        k.store(counter, k.select(is_time, k.const(I64, 0), count))
        with k.if_(is_time):
            look(k)


@contextmanager
def listening_loop(
    k: KernelBuilder, begin: Operand, end: Operand, step: int = 1, carry: Sequence[Value] = (), *, weight: int = 1
) -> Iterator[Loop]:
    """Like `KernelBuilder.loop`; in a kernel that listens it looks every now and then.

    `weight` says how many iterations an iteration is worth. A nest of such loops looks in one of them: in the innermost
    that takes long enough; those around it are worth so much already that they leave it to that one."""
    if k.leave is None or weight >= _ITERATIONS or _is_short(begin, end, step, weight):
        with k.loop(begin, end, step, carry) as loop:
            yield loop
        return
    block = _ITERATIONS // weight * step
    with k.loop(begin, end, block, carry) as blocks:
        look(k)
        last = k.smin(k.add(blocks.index, block), end)
        with k.loop(blocks.index, last, step, blocks.values) as loop:
            yield loop
        blocks.next = loop.results
    loop.results = blocks.results


def _is_short(begin: Operand, end: Operand, step: int, weight: int) -> bool:
    """It is known to end before it would look a second time."""
    if not (isinstance(begin, int) and isinstance(end, int)):
        return False
    return (end - begin) // step * weight < _ITERATIONS
