"""Decompositions, solutions and transforms that libraries compute."""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.codegen.context import CONTEXT_PARALLEL
from xlapy.codegen.entry.base import HANDLERS, Entry, Step
from xlapy.codegen.entry.kernels import write_kernel
from xlapy.codegen.entry.signals import look_at_signals
from xlapy.codegen.fourier_transforms import fourier_passes, shared_bytes
from xlapy.codegen.frame import Frame
from xlapy.codegen.ir import I64, Value
from xlapy.codegen.kernels.linalg import is_large, system_of
from xlapy.hlo.buffer_plan import Home, Location
from xlapy.hlo.graph import Instruction


@HANDLERS.register("cholesky")
def _cholesky(entry: Entry, frame: Frame, instruction: Instruction) -> None:
    """Large matrices are factored in place by the library, upper factors as those of the transposed matrix."""
    if not is_large(instruction):
        write_kernel(entry, frame, instruction)
        return
    shape = instruction.shape
    rows = shape.dims[-1]
    pitches = (rows, 1) if instruction.attributes["lower"] else (1, rows)
    entry.move(frame, (instruction.operands[0], 0), (instruction, 0), shape)
    sizes = (shape.size // rows**2, rows, rows**2, *pitches)
    arrays = [frame.array(instruction)]
    _linalg_call(entry, frame, instruction, f"linalg_{shape.type.name}", "factor", arrays, sizes)


@HANDLERS.register("triangular-solve")
def _triangular_solve(entry: Entry, frame: Frame, instruction: Instruction) -> None:
    if not is_large(instruction):
        write_kernel(entry, frame, instruction)
        return
    a, shape = instruction.operands[0], instruction.shape
    rows = a.shape.dims[-1]
    batches = a.shape.size // rows**2
    each = shape.size // batches
    system = system_of(instruction)
    entry.move(frame, (instruction.operands[1], 0), (instruction, 0), shape)
    sizes = (
        *(batches, rows, each // rows),
        *(rows**2, system.a_row, system.a_column, each, system.x_row, system.x_column),
        *(system.is_upper, system.unit_diagonal, system.conjugates),
    )
    arrays = [frame.array(a), frame.array(instruction)]
    _linalg_call(entry, frame, instruction, f"linalg_{shape.type.name}", "solve", arrays, sizes)


def _linalg_call(
    entry: Entry,
    frame: Frame,
    instruction: Instruction,
    library: str,
    function: str,
    arrays: Sequence[Value],
    sizes: Sequence[int],
) -> None:
    entry.libraries.add(library)
    entry.steps[instruction] = (Step(f"{library}_{function}"),)
    table = frame.k.table(I64, [int(size) for size in sizes])
    frame.k.call(f"{library}_{function}", [frame.context_word(CONTEXT_PARALLEL), *arrays, table])
    look_at_signals(frame)


@HANDLERS.register("fft")
def _fft(entry: Entry, frame: Frame, instruction: Instruction) -> None:
    """A call of the library for each pass. What passes share is in front of the memory that they work in."""
    k, target = frame.k, entry.kernels.target
    passes = fourier_passes(instruction, target)
    entry.libraries.update(f"fft_{each.kind}" for each in passes)
    entry.steps[instruction] = tuple(Step(f"fft_{each.kind}_run", each.units, each.grain) for each in passes)
    arrays = {"operand": frame.array(instruction.operands[0]), "result": frame.array(instruction)}
    for each in passes:
        shared = frame.pointer(entry.plan.scratch[instruction].location)
        arrays["shared"] = shared
        memory = k.gep(shared, shared_bytes(instruction))
        constants = entry.kernels.tables_for(each, each.composed)
        tables = [frame.pointer(Location(Home.CONSTANT, number)) for number in constants]
        sides = [arrays[side.array] for side in (each.operand, each.result)]
        k.call(f"fft_{each.kind}_run", [frame.context_word(CONTEXT_PARALLEL), *sides, memory, *tables])
        if each.takes_long:
            look_at_signals(frame)
