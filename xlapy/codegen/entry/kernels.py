"""Calls of kernels, through the pool if there is enough to do, and what needs none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from xlapy.codegen.clock import exact_clock
from xlapy.codegen.context import CONTEXT_OWNER
from xlapy.codegen.entry.base import Entry, Step
from xlapy.codegen.entry.signals import look_at_signals
from xlapy.codegen.frame import Frame
from xlapy.codegen.ir import I64, PTR, Value
from xlapy.codegen.kernel_calls import call_kernel, call_library, call_together
from xlapy.codegen.kernel_library import NativeKernel
from xlapy.codegen.kernels.tasks import PARALLEL_BYTES, Tasks, joint_tasks
from xlapy.codegen.libraries import LibraryCall
from xlapy.codegen.slice_copies import (
    copy_slice,
    copy_update,
    is_block_copy,
    load_element,
    store_address,
    store_element,
    update_of_element,
)
from xlapy.hlo.buffer_plan import Location
from xlapy.hlo.graph import Instruction
from xlapy.hlo.overwritten import is_overwritten
from xlapy.hlo.views import is_part, is_view, view_of
from xlapy.support.registry import Registry


def write_kernel(entry: Entry, frame: Frame, instruction: Instruction) -> None:
    """Calls the instruction's kernel over all its units, through the pool if there is enough to do; or does without."""
    shortcut = SHORTCUTS.get(instruction.opcode)
    if shortcut is not None and shortcut(entry, frame, instruction):
        return
    kernel, arrays = _kernel_of(entry, instruction)
    entry.steps[instruction] = (Step(kernel.name, kernel.units, kernel.grain),)
    for number, leaf in kernel.overwrites:
        operand = instruction.operands[number]
        entry.move(frame, (operand, 0), (instruction, leaf), operand.shape)
    if not kernel.units:
        return
    scratch = entry.plan.scratch[instruction].location if kernel.has_scratch else None
    pointers = _pointers(entry, frame, kernel, arrays, scratch, _views(instruction))
    if kernel.cleared_bytes and scratch is not None:
        frame.k.memset(frame.pointer(scratch), 0, kernel.cleared_bytes)
    if kernel.has_context and not entry.prefix:
        with _owned(frame):
            call_kernel(frame, kernel, pointers)
    else:
        call_kernel(frame, kernel, pointers)
    if kernel.finish:
        frame.k.call(kernel.finish, pointers if kernel.call is None else _from_table(pointers))
    if kernel.finish_call is not None:
        call_library(frame, kernel.finish_call, [_numbers(entry, frame, kernel.finish_call), *pointers[1:]])
    if kernel.grain < kernel.units:
        look_at_signals(frame)
    elif kernel.has_context:
        frame.stop_if_cancelled()


Shortcut = Callable[[Entry, Frame, Instruction], bool]
"""Writes what an instruction does without a kernel, if it can; whether it did."""

SHORTCUTS: Registry[Shortcut] = Registry("code without a kernel")


@SHORTCUTS.register("broadcast")
def _unread(entry: Entry, frame: Frame, instruction: Instruction) -> bool:
    return is_overwritten(instruction)


@SHORTCUTS.register("slice")
def _part(entry: Entry, frame: Frame, instruction: Instruction) -> bool:
    return is_part(instruction)


@SHORTCUTS.register("dynamic-slice")
def _slice(entry: Entry, frame: Frame, instruction: Instruction) -> bool:
    if is_view(instruction):
        store_address(frame, instruction)
        return True
    if not is_block_copy(instruction):
        return False
    entry.steps[instruction] = (Step("memcpy"),)
    if instruction.shape.size == 1:
        load_element(frame, instruction)
    else:
        copy_slice(frame, instruction)
    return True


@SHORTCUTS.register("fusion")
def _update_element(entry: Entry, frame: Frame, instruction: Instruction) -> bool:
    update = update_of_element(instruction)
    if update is None:
        return False
    entry.steps[instruction] = (Step("store"),)
    entry.move(frame, (update.target, 0), (instruction, 0), instruction.shape)
    store_element(frame, instruction, update)
    return True


@SHORTCUTS.register("dynamic-update-slice")
def _update_slice(entry: Entry, frame: Frame, instruction: Instruction) -> bool:
    if not is_block_copy(instruction):
        return False
    entry.steps[instruction] = (Step("memcpy"),)
    entry.move(frame, (instruction.operands[0], 0), (instruction, 0), instruction.shape)
    copy_update(frame, instruction)
    return True


def _kernel_of(entry: Entry, instruction: Instruction) -> tuple[NativeKernel, list[Location]]:
    """The kernel of an instruction, and where its operands and results are."""
    results = [
        entry.plan.location(instruction, leaf)
        for leaf, shape in enumerate(instruction.shape.leaves())
        if shape.is_array
    ]
    operands = [entry.plan.location(operand) for operand in instruction.operands]
    overwritten = tuple(number for number, location in enumerate(operands) if location in results)
    runs_once = instruction.parent is entry.runs_once
    return entry.kernels.kernel(instruction, overwritten, runs_once=runs_once), [*operands, *results]


def write_joint_run(entry: Entry, frame: Frame, instructions: Sequence[Instruction]) -> None:
    """Calls several kernels that do not need each other: together, through the pool, those that may be and that have
    enough to do for that; the others one by one."""
    together = {i: found for i in instructions if (found := _kernel_of(entry, i))[0].may_share_a_run}
    works = [kernel.work for kernel, _ in together.values()]
    tasks = joint_tasks(works)
    is_split = len(tasks) > 1 and sum(work.bytes for work in works) >= PARALLEL_BYTES
    for instruction in instructions:
        if instruction not in together or not is_split:
            entry.write(frame, instruction, write_kernel)
    if is_split:
        _write_joint(entry, frame, together, tasks)


def _write_joint(
    entry: Entry,
    frame: Frame,
    together: Mapping[Instruction, tuple[NativeKernel, Sequence[Location]]],
    tasks: Tasks,
) -> None:
    """One call for the kernels of several instructions. Each of them took the part of the time that is its part of
    the bytes."""
    k, target = frame.k, entry.kernels.target
    for instruction, (kernel, _) in together.items():
        entry.steps[instruction] = (Step(kernel.name, kernel.units, kernel.work.piece),)
    calls = [
        (kernel, _pointers(entry, frame, kernel, arrays, None, _views(instruction)))
        for instruction, (kernel, arrays) in together.items()
    ]
    began = None if entry.counters is None else exact_clock(k, target)
    call_together(frame, entry.kernels, calls, tasks)
    if began is not None:
        ended = exact_clock(k, target)
        total = sum(kernel.work.bytes for kernel, _ in together.values())
        for instruction, (kernel, _) in together.items():
            spent = k.udiv(k.mul(k.sub(ended, began), kernel.work.bytes), total)
            entry.count(frame, instruction, began, ended, spent)
    look_at_signals(frame)


def _pointers(
    entry: Entry,
    frame: Frame,
    kernel: NativeKernel,
    arrays: Sequence[Location],
    scratch: Location | None,
    views: Collection[int],
) -> list[Value]:
    """The arguments of a kernel, or the table of a function of a library, but for the range. Of some arrays, views,
    only an address is where they are."""
    k = frame.k
    places = [frame.pointer(location) for location in arrays]
    places = [k.load(place, PTR) if number in views else place for number, place in enumerate(places)]
    memory = [] if scratch is None else [frame.pointer(scratch)]
    context = [k.parameters["context"]] if kernel.has_context else []
    if kernel.call is not None:
        null = [k.const(PTR, 0)]
        return [_numbers(entry, frame, kernel.call), *(context or null), *(memory or null), *places]
    return [*places, *memory, *context]


def _views(instruction: Instruction) -> Collection[int]:
    """The numbers of the operands that are views, which products alone read."""
    if instruction.opcode != "dot":
        return ()
    return [number for number, operand in enumerate(instruction.operands) if view_of(operand) is not None]


def _from_table(pointers: Sequence[Value]) -> list[Value]:
    """The arguments of a kernel of the program, from those of a function of a library that does the first part."""
    _, _, memory, *places = pointers
    return [*places, memory]


def _numbers(entry: Entry, frame: Frame, call: LibraryCall) -> Value:
    """What a function of a library is told, which the program is linked with."""
    entry.libraries.add(call.library)
    return frame.k.table(I64, call.numbers)


@contextmanager
def _owned(frame: Frame) -> Iterator[None]:
    """Around a kernel: writes down which thread runs the program. If it is Python's main thread, others stop too if a
    signal handler raises there while they work for it. Afterwards nobody does, and the context may change hands."""
    k = frame.k
    owner = k.gep(k.parameters["context"], CONTEXT_OWNER, 8)
    k.store(owner, k.call_value("pthread_self", [], I64))
    yield
    k.store(owner, k.const(I64, 0))
