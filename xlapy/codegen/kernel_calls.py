"""Calls of kernels: of one for all its units, alone or shared out by the thread pool, or of several as one job."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from xlapy.codegen.context import CONTEXT_PARALLEL
from xlapy.codegen.frame import Frame
from xlapy.codegen.ir import I64, PTR, KernelBuilder, Value
from xlapy.codegen.kernel_library import KernelLibrary, NativeKernel
from xlapy.codegen.kernels.tasks import NEAR_BYTES, Tasks
from xlapy.codegen.libraries import LibraryCall


def call_kernel(frame: Frame, kernel: NativeKernel, pointers: Sequence[Value]) -> None:
    """One call for all units, or the pool's work if the kernel is worth splitting: where there is more than near caches
    hold, threads stay close to each other, as tasks next to each other may be columns of the same rows."""
    k = frame.k
    is_split = kernel.grain < kernel.units
    begin, end = k.const(I64, 0), k.const(I64, kernel.units)
    if not is_split and kernel.call is None:
        k.call(kernel.name, [*pointers, begin, end])
        return
    table = table_of(k, pointers)
    if not is_split:
        k.call(kernel.range_name, [table, begin, end])
        return
    k.module.declare(kernel.range_name, None, [PTR, I64, I64])
    is_near = kernel.units * kernel.bytes_per_unit <= NEAR_BYTES
    sizes = [k.const(I64, kernel.units), k.const(I64, kernel.grain if is_near else -kernel.grain)]
    work = [k.function_pointer(kernel.range_name), table, *sizes]
    k.call(frame.context_word(CONTEXT_PARALLEL), work)


def call_library(frame: Frame, call: LibraryCall, pointers: Sequence[Value]) -> None:
    """One call of a function of a library for its only unit."""
    k = frame.k
    k.module.declare(call.function, None, [PTR, I64, I64])
    k.call(call.function, [table_of(k, pointers), k.const(I64, 0), k.const(I64, 1)])


def share_library(frame: Frame, call: LibraryCall, arrays: Sequence[Value], units: int) -> None:
    """A function of a library, of so many units that are a task of the pool each."""
    k, nothing = frame.k, frame.k.const(PTR, 0)
    k.module.declare(call.function, None, [PTR, I64, I64])
    table = table_of(k, [k.table(I64, call.numbers), nothing, nothing, *arrays])
    work = [k.function_pointer(call.function), table, k.const(I64, units), k.const(I64, 1)]
    k.call(frame.context_word(CONTEXT_PARALLEL), work)


def call_together(
    frame: Frame, library: KernelLibrary, calls: Sequence[tuple[NativeKernel, Sequence[Value]]], tasks: Tasks
) -> None:
    """One job of the pool for all the kernels, each with its pointers."""
    k = frame.k
    kernels = k.alloca(PTR, 2 * len(calls))
    for number, (kernel, pointers) in enumerate(calls):
        function = library.range_function(kernel, len(pointers))
        k.module.declare(function, None, [PTR, I64, I64])
        k.store(k.gep(kernels, 2 * number, PTR.bytes), k.function_pointer(function))
        k.store(k.gep(kernels, 2 * number + 1, PTR.bytes), table_of(k, pointers))
    firsts = [0, *accumulate(len(task) for task in tasks)]
    pieces = [number for task in tasks for piece in task for number in (piece.kernel, piece.begin, piece.end)]
    function = library.joint_range()
    k.module.declare(function, None, [PTR, I64, I64])
    table = table_of(k, [kernels, k.table(I64, firsts), k.table(I64, pieces)])
    work = [k.function_pointer(function), table, k.const(I64, len(tasks)), k.const(I64, 1)]
    k.call(frame.context_word(CONTEXT_PARALLEL), work)


def table_of(k: KernelBuilder, pointers: Sequence[Value]) -> Value:
    """The pointers in memory, one behind the other."""
    table = k.alloca(PTR, len(pointers))
    for number, pointer in enumerate(pointers):
        k.store(k.gep(table, number, PTR.bytes), pointer)
    return table
