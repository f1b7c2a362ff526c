"""Chains over rows whose number and length their functions are told: the kernels that programs have for such, with
sizes and constants in a table.

    chain_rows_BODY_TYPE              one row of the result for each row of the arrays
    chain_rows_BODY_TYPE.in_place     the same, in the memory of one of them
    chain_rows_BODY_TYPE.whole        the same, or elsewhere, of what is in a cache; of rows that are whole strips
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from xlapy.codegen.arrays import FETCHED_AHEAD, Array
from xlapy.codegen.indexing import Coordinate, Index, Indexing
from xlapy.codegen.ir import Module, Value
from xlapy.codegen.kernels.functions import ROOMY_REGISTERS
from xlapy.codegen.kernels.rows import Extent, bytes_to_other_half, emit_rows, plan_rows
from xlapy.codegen.libraries import SCRATCH_PLACE
from xlapy.codegen.libraries.chain_body import ALONG, ChainBody, has_functions
from xlapy.codegen.libraries.chain_problem import ChainProblem, chain_function, chain_of
from xlapy.codegen.target import Target
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import LEAST_ROWS, MOST_ON_STACK, SWEPT_ELEMENTS, RowSpace
from xlapy.hlo.shape import Shape

ROWS = "rows"
SIZES = ("rows", "length", "block", "streams", "grain", "task_bytes")
"""How many rows there are, their elements, how many are taken together, whether results go past the caches, and units
and scratch memory of a task: for what is kept of rows that are too long for a stack."""

LEAST_LENGTH = 64
WHOLE = 128
"""Elements of a strip. Of rows that are made of such, vectors leave nothing over, however many are taken at once."""

_SPACE = RowSpace((1 << 20, MOST_ON_STACK), (1,))
"""For plans, in which the number of rows has no part."""


@dataclass(frozen=True, slots=True)
class ChainRows(Array):
    """An array of rows of a length that is not known."""

    length: Value | None = None

    def offset(self, ix: Indexing, index: Index) -> Coordinate:
        assert self.length is not None
        row, place = ix.split(index)
        return ix.sum(ix.at(ix.k.mul(row.start, self.length)), place)


def emit_rows_chain(name: str, body: ChainBody, type: ElementType, target: Target) -> Module:
    module, computation = Module.of(target), chain_of(body, type, _SPACE)
    for function in names_of_functions(name, body):
        with chain_function(module, function, SIZES, computation, target, is_light=_is_light(body, target)) as problem:
            is_whole = function == whole_name(name)
            in_place = is_whole or function == in_place_name(name)
            _emit(problem, rows_together(body), target, in_place=in_place, is_whole=is_whole)
    return module


def names_of_functions(name: str, body: ChainBody) -> tuple[str, ...]:
    """Those of a library. Where there is little to compute, code that knows the sizes of its arrays is faster in the
    caches (an RMS norm by a tenth), so that none is here for that."""
    return (name, in_place_name(name), *([whole_name(name)] if has_functions(body) else []))


@cache
def scratch_bytes(body: ChainBody, type: ElementType, length: int, target: Target) -> int:
    """What a task needs for what is kept of a block of rows of so many elements, beside the stack."""
    if length <= MOST_ON_STACK:
        return 0
    plan = plan_rows(chain_of(body, type, _SPACE), 0, target, in_place=False)
    elements = length * rows_together(body)
    return sum(2 * bytes_to_other_half(elements * value.shape.type.bytes) for values in plan.kept for value in values)


def rows_together(body: ChainBody) -> int:
    """Rows that the last sweep goes over side by side, where it reads more of arrays that are repeated for all rows
    than of a row itself; a block holds so many, or several times as many."""
    return LEAST_ROWS if sum(node.op == ALONG for node in body.nodes) > 1 else 1


def _is_light(body: ChainBody, target: Target) -> bool:
    """With exponentials of two arrays, what LLVM moves in its later passes takes a twelfth longer than before, where
    there are 16 registers; of 32, it makes good use (a quarter less time)."""
    return target.vector_registers < ROOMY_REGISTERS and sum(node.op == "exponential" for node in body.nodes) > 1


def in_place_name(name: str) -> str:
    return f"{name}.in_place"


def whole_name(name: str) -> str:
    return f"{name}.whole"


def _emit(problem: ChainProblem, together: int, target: Target, *, in_place: bool, is_whole: bool) -> None:
    k, length = problem.k, problem["length"]
    plan = plan_rows(problem.computation, 0, target, in_place=in_place)
    plan = replace(plan, streaming=not in_place and any(map(plan.space.is_full, plan.roots)))
    most_rows = SWEPT_ELEMENTS // LEAST_LENGTH
    most_elements = max(SWEPT_ELEMENTS * LEAST_ROWS, together * MOST_ON_STACK)
    streams = k.compare("ne", problem["streams"], 0)
    delays = any(map(plan.space.is_full, plan.roots)) and (is_whole or not in_place)
    task = k.udiv(k.parameters["begin"], problem["grain"])
    scratch = k.gep(problem.pointer(SCRATCH_PLACE), k.mul(task, problem["task_bytes"]))
    extent = Extent(
        problem["rows"],
        length,
        problem["block"],
        most_rows,
        most_elements,
        streams,
        together,
        fits=is_whole,
        delays=delays,
        scratch=None if is_whole else scratch,
    )
    ahead = 0 if is_whole else FETCHED_AHEAD
    alias = None if in_place else "operands"

    def whole(pointer: Value, shape: Shape) -> Array:
        return ChainRows(pointer, shape, alias, read_only=not in_place, ahead=ahead, length=length)

    def output(root: Instruction, pointer: Value) -> Array:
        alias = None if in_place else "result" if len(plan.roots) == 1 else f"result.{root.name}"
        if not plan.space.is_full(root):
            return Array(pointer, root.shape, alias, read_only=False)
        return ChainRows(pointer, root.shape, alias, read_only=False, length=length)

    outputs = [output(root, pointer) for root, pointer in problem.outputs()]
    units = k.parameters["begin"], k.parameters["end"]
    emit_rows(k, plan, problem.inputs(whole, alias), outputs, *units, in_place=in_place, extent=extent)
