"""Chains down columns whose number and length their functions are told, by strips of neighbouring ones. An array is
`groups` x `length` x `columns`, of which the middle is folded.

    chain_columns_BODY_TYPE.N      strips of N vectors
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xlapy.codegen.arrays import Array
from xlapy.codegen.indexing import Coordinate, Index, Indexing
from xlapy.codegen.ir import IRType, KernelBuilder, Module, Value
from xlapy.codegen.kernels.columns import ColumnExtent, emit_columns, plan_columns
from xlapy.codegen.libraries.chain_bodies import WITH_LITTLE_WORK
from xlapy.codegen.libraries.chain_body import ChainBody
from xlapy.codegen.libraries.chain_problem import SCRATCH_PLACE, ChainProblem, chain_function, chain_of
from xlapy.codegen.target import Target
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.kernel_plan import RowSpace
from xlapy.hlo.shape import Shape

COLUMNS = "columns"
_WIDTHS = (2, 4, 8, 16)
_WIDEST = 32  # of vectors of few lanes, so many are needed for 256 columns; plans have them if each is little work

SIZES = ("length", "columns", "strips", "streams", "ahead", "grain", "task_bytes", "result")
"""Elements of a column, columns side by side, strips of them, whether results go past the caches, how many bytes ahead
of what is read memory is fetched, units and scratch memory of a task, and the place of the result in the table."""

_SPACE = RowSpace((1 << 10, 1 << 6, 1 << 12), (1,))
"""For plans, of which only what does not depend on sizes is used."""


@dataclass(frozen=True, slots=True)
class ChainColumns(Array):
    """An array of dimensions that are not known, of which rows are fetched that come later."""

    length: Value | None = None
    columns: Value | None = None
    fetched: Value | None = None

    def offset(self, ix: Indexing, index: Index) -> Coordinate:
        assert self.length is not None and self.columns is not None
        k, (group, place, column) = ix.k, ix.split(index)
        row = k.add(k.mul(group.start, self.length), place.start)
        return ix.sum(ix.at(k.mul(row, self.columns)), column)

    def _raw_load(self, k: KernelBuilder, pointer: Value, type: IRType, align: int | None = None) -> Value:
        loaded = Array._raw_load(self, k, pointer, type, align)
        if self.fetched is not None and type.lanes > 1:
            k.prefetch(k.gep(pointer, self.fetched), loaded.type.bytes * type.lanes)
        return loaded


def widths_of(body: str) -> tuple[int, ...]:
    """Vectors of a strip, as plans for large arrays have them."""
    return (*_WIDTHS, _WIDEST) if body in WITH_LITTLE_WORK else _WIDTHS


def emit_columns_chain(name: str, widths: Sequence[int], body: ChainBody, type: ElementType, target: Target) -> Module:
    module, computation = Module.of(target), chain_of(body, type, _SPACE)
    for vectors in widths:
        with chain_function(module, columns_name(name, vectors), SIZES, computation, target) as problem:
            _emit(problem, vectors, target)
    return module


def columns_name(name: str, vectors: int) -> str:
    return f"{name}.{vectors}"


def _emit(problem: ChainProblem, vectors: int, target: Target) -> None:
    k, length, columns, root = problem.k, problem["length"], problem["columns"], problem.computation.root
    plan = replace(plan_columns(problem.computation, 0, target), vectors=vectors, streaming=True)
    task = k.udiv(k.parameters["begin"], problem["grain"])
    k.parameters["scratch"] = k.gep(problem.pointer(SCRATCH_PLACE), k.mul(task, problem["task_bytes"]))
    ahead = problem["ahead"]

    def whole(pointer: Value, shape: Shape) -> Array:
        return ChainColumns(pointer, shape, read_only=False, length=length, columns=columns, fetched=ahead)

    pointer = problem.pointer(problem["result"])
    result = ChainColumns(pointer, root.shape, read_only=False, length=length, columns=columns)
    extent = ColumnExtent(length, columns, problem["strips"], problem["streams"])
    units = k.parameters["begin"], k.parameters["end"]
    emit_columns(k, plan, problem.inputs(whole, None), [result], *units, extent)
