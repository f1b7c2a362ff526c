"""What the functions of the fold libraries are told, and which folds are made of them.

An array is `groups` x `length` x `columns`, of which the middle is folded: (groups, 1) results, if rows are folded, one
behind the other, or (groups, columns) of them, by blocks of neighbouring columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from xlapy.codegen.arrays import Array
from xlapy.codegen.indexing import Index, Indexing
from xlapy.codegen.ir import I64, PTR, KernelBuilder, Module, Value
from xlapy.codegen.kernels.loop import VECTORS_PER_STEP
from xlapy.codegen.registers import Element, register_type
from xlapy.codegen.target import Target
from xlapy.hlo import element_types as et
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import is_row_major, sole_operation
from xlapy.hlo.shape import Shape

FOLDED_TYPES = (et.F32, et.F64, et.BF16, et.F16, et.S32, et.U32, et.S64, et.U64)
FOLDED_OPCODES = ("add", "multiply", "maximum", "minimum")

NUMBERS = ("length", "columns", "blocks", "ahead")
"""By name, in order: elements of a fold, folds side by side, blocks of them, and how many bytes ahead of what is read
memory is fetched, 0 for not at all."""

_TABLE = ("numbers", "context", "scratch", "input", "init", "result")


@dataclass(frozen=True, slots=True)
class FoldKind:
    """One operation on elements of one type."""

    opcode: str
    type: ElementType

    def lanes(self, target: Target) -> int:
        """Lanes of one step, as loops over elements of the type have them."""
        return target.lanes(max(register_type(self.type).bits, 32)) * VECTORS_PER_STEP

    def name(self, way: str) -> str:
        return f"fold_{way}_{self.opcode}_{self.type.name}"

    def combiner(self) -> Instruction:
        """The operation on two scalars."""
        computation = Computation(self.opcode)
        scalar = Shape.array(self.type, ())
        operands = [computation.add("parameter", shape=scalar, name=name, number=n) for n, name in enumerate("ab")]
        return computation.add(self.opcode, operands)


KINDS = tuple(FoldKind(opcode, type) for opcode in FOLDED_OPCODES for type in FOLDED_TYPES)


@dataclass(frozen=True, slots=True)
class FoldShape:
    """The array of a fold, in three parts."""

    groups: int
    length: int
    columns: int  # 1 where rows are folded

    @property
    def size(self) -> int:
        return self.groups * self.length * self.columns


def kind_of(reduce: Instruction) -> FoldKind | None:
    """What a reduce does with its elements, if libraries do that."""
    combiner = sole_operation(reduce.called[0])
    if combiner is None or not all(is_row_major(i) for i in (reduce, *reduce.operands)):
        return None
    kind = FoldKind(combiner.opcode, combiner.shape.type)
    return kind if kind in KINDS else None


def shape_of(reduce: Instruction) -> FoldShape | None:
    """The array of a reduce in three parts, if the folded dimensions lie side by side."""
    dims = reduce.operands[0].shape.dims
    folded = [dim for dim in sorted(reduce.attributes["dimensions"]) if dims[dim] > 1]
    if not folded or not reduce.operands[0].shape.size:
        return None
    first, last = folded[0], folded[-1]
    if any(dims[dim] > 1 and dim not in folded for dim in range(first, last)):
        return None
    return FoldShape(math.prod(dims[:first]), math.prod(dims[first : last + 1]), math.prod(dims[last + 1 :]))


@dataclass(frozen=True, slots=True)
class FoldProblem:
    """The numbers and arrays of one call, loaded where they are asked for. Nothing writes to them."""

    k: KernelBuilder
    kind: FoldKind

    def __getitem__(self, name: str) -> Value:
        k = self.k
        return k.load(k.gep(self._pointer("numbers"), NUMBERS.index(name), I64.bytes), I64, hoistable=True)

    def _pointer(self, name: str) -> Value:
        k = self.k
        return k.load(k.gep(k.parameters["table"], _TABLE.index(name), PTR.bytes), PTR, hoistable=True)

    def input(self, ahead: int = 0) -> Array:
        return Array(self._pointer("input"), self._shape, "operands", ahead=ahead)

    @property
    def result(self) -> Array:
        return Array(self._pointer("result"), self._shape, "result", read_only=False)

    def init(self) -> Element:
        ix = Indexing(self.k, 1)
        return Array(self._pointer("init"), self._shape, "operands").load(ix, self.place(ix, self.k.const(I64, 0)))

    def place(self, ix: Indexing, number: Value) -> Index:
        """Elements side by side, from one of a number on."""
        return Index(self._shape.dims, None, ix.along_lanes(number))

    @property
    def _shape(self) -> Shape:
        """Elements are found by number; how many there are is not known."""
        return Shape.array(self.kind.type, (1,))


@contextmanager
def fold_function(module: Module, name: str, kind: FoldKind, target: Target) -> Iterator[FoldProblem]:
    """Writes a function of a range of units."""
    parameters = [("table", PTR), ("begin", I64), ("end", I64)]
    attributes = f"nounwind {target.function_attributes}".rstrip()
    with KernelBuilder(module, name, parameters, None, attributes=attributes, joins_offsets=True) as k:
        yield FoldProblem(k, kind)
