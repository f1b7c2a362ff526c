"""Chains down columns whose number and length their functions are told, by strips of neighbouring ones. An array is
`groups` x `length` x `columns`, of which the middle is folded.

    chain_columns_BODY_TYPE.N      strips of N vectors
    chain_columns_BODY_TYPE.wide   strips as wide as a second-level cache holds
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from xlapy.codegen.arrays import Array
from xlapy.codegen.indexing import Coordinate, Index, Indexing
from xlapy.codegen.ir import IRType, KernelBuilder, Module, Value
from xlapy.codegen.kernels.columns import ColumnExtent, emit_columns, plan_columns
from xlapy.codegen.kernels.wide_columns import WideColumnPlan, emit_wide_columns, widest_plan
from xlapy.codegen.libraries import SCRATCH_PLACE
from xlapy.codegen.libraries.chain_bodies import OVER_WIDE_STRIPS, WITH_LITTLE_WORK
from xlapy.codegen.libraries.chain_body import ChainBody, has_functions
from xlapy.codegen.libraries.chain_problem import ChainProblem, chain_function, chain_of
from xlapy.codegen.target import Target
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import RowSpace

COLUMNS = "columns"
_WIDTHS = (2, 4, 8, 16)
_WIDEST = 32  # of vectors of few lanes, so many are needed for 256 columns; plans have them if each is little work

SIZES = ("length", "columns", "strips", "vectors", "streams", "rows_ahead", "grain", "task_bytes")
"""Elements of a column, columns side by side, strips of them, vectors of a strip, whether results go past the caches,
how many rows ahead of what is read memory is fetched, and units and scratch memory of a task."""

_SPACE = RowSpace((1 << 10, 1 << 6, 1 << 12), (1,))
"""For plans, of which only what does not depend on sizes is used."""


@dataclass(frozen=True, slots=True)
class ChainColumns(Array):
    """An array of dimensions that are not known, of all elements or of one for each column, of which rows are fetched
    that come later."""

    length: Value | None = None
    columns: Value | None = None
    fetched: Value | None = None

    def offset(self, ix: Indexing, index: Index) -> Coordinate:
        assert self.length is not None and self.columns is not None
        k, (group, *places, column) = ix.k, ix.split(index)
        row = group.start
        for place in places:
            row = k.add(k.mul(row, self.length), place.start)
        return ix.sum(ix.at(k.mul(row, self.columns)), column)

    def _raw_load(self, k: KernelBuilder, pointer: Value, type: IRType, align: int | None = None) -> Value:
        loaded = Array._raw_load(self, k, pointer, type, align)
        if self.fetched is not None and type.lanes > 1:
            k.prefetch(k.gep(pointer, self.fetched), loaded.type.bytes * type.lanes)
        return loaded


def widths_of(body: str) -> tuple[int, ...]:
    """Vectors of a narrow strip, as plans for large arrays have them."""
    if body in OVER_WIDE_STRIPS:
        return ()
    return (*_WIDTHS, _WIDEST) if body in WITH_LITTLE_WORK else _WIDTHS


def emit_columns_chain(name: str, widths: Sequence[int], body: ChainBody, type: ElementType, target: Target) -> Module:
    module, computation = Module.of(target), chain_of(body, type, _SPACE)
    for vectors in widths:
        with chain_function(module, columns_name(name, vectors), SIZES, computation, target) as problem:
            _emit(problem, vectors, target, fetches_next=has_functions(body))
    wide = widest_plan(plan_columns(computation, 0, target), target)
    if wide is not None:
        with chain_function(module, wide_name(name), SIZES, computation, target) as problem:
            _emit_wide(problem, wide)
    return module


def columns_name(name: str, vectors: int) -> str:
    return f"{name}.{vectors}"


def wide_name(name: str) -> str:
    return f"{name}.wide"


def _emit(problem: ChainProblem, vectors: int, target: Target, *, fetches_next: bool) -> None:
    k, roots = problem.k, problem.roots
    plan = plan_columns(problem.computation, 0, target)
    plan = replace(plan, vectors=vectors, streaming=any(map(plan.space.is_full, roots)))
    task = k.udiv(k.parameters["begin"], problem["grain"])
    k.parameters["scratch"] = k.gep(problem.pointer(SCRATCH_PLACE), k.mul(task, problem["task_bytes"]))
    sizes = problem["length"], problem["columns"], problem["strips"], problem["streams"]
    extent = ColumnExtent(*sizes, fetches_next=fetches_next)
    ahead = k.mul(k.mul(problem["rows_ahead"], extent.columns), roots[0].shape.type.bytes)
    inputs, outputs = _arrays(problem, extent, ahead)
    emit_columns(k, plan, inputs, outputs, k.parameters["begin"], k.parameters["end"], extent)


def _emit_wide(problem: ChainProblem, plan: WideColumnPlan) -> None:
    k = problem.k
    extent = ColumnExtent(problem["length"], problem["columns"], problem["strips"], vectors=problem["vectors"])
    inputs, outputs = _arrays(problem, extent, None)
    emit_wide_columns(k, plan, inputs, outputs, k.parameters["begin"], k.parameters["end"], extent)


def _arrays(
    problem: ChainProblem, extent: ColumnExtent, fetched: Value | None
) -> tuple[dict[Instruction, Array], list[Array]]:
    """What is read, some bytes ahead, and what is written."""
    unsized = partial(ChainColumns, read_only=False, length=extent.length, columns=extent.columns)
    inputs = problem.inputs(partial(unsized, fetched=fetched), None)
    return inputs, [unsized(pointer, root.shape) for root, pointer in problem.outputs()]
