"""What the functions of the fold libraries are told.

An array is `groups` x `length` x `columns`, of which the middle is folded: (groups, 1) results, if rows are folded, one
behind the other, or (groups, columns) of them, by blocks of neighbouring columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from xlapy.codegen.arrays import Array
from xlapy.codegen.indexing import Index, Indexing
from xlapy.codegen.ir import I64, PTR, KernelBuilder, Module, Operand, Value
from xlapy.codegen.kernels.loop import VECTORS_PER_STEP
from xlapy.codegen.libraries import NUMBERS_PLACE
from xlapy.codegen.libraries.fold_maps import ITSELF, FoldMap
from xlapy.codegen.registers import Element, register_type, splat
from xlapy.codegen.target import Target
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.shape import Shape
from xlapy.support.records import Record

INPUTS = ("input", "other")
ARRAYS = (*INPUTS, "each", "each_step", "result")
NUMBERS = (*ARRAYS, "init", "constant", "divisor", "length", "columns", "blocks", "width", "ahead")
"""By name, in order: places of the arrays in the table (the other input, if two are folded, and the one that has a
number for each fold, if there is one, with the distance of these: 0 if there is one number for all), the bits that a
fold begins with, those of the constant of the map, if it has one, and of what sums are divided by, 0 for nothing,
elements of a fold, folds side by side, blocks of them, vectors in a wide block, and how many bytes ahead of what is
read memory is fetched, 0 for not at all."""


class FoldKind(Record):
    """One operation on elements of one type, as registers have them, or on what is made from these, and the type of its
    results."""

    opcode: str
    type: ElementType
    result: ElementType
    map: FoldMap = ITSELF

    def lanes(self, target: Target) -> int:
        """Lanes of one step, as loops over elements of the type have them."""
        return self.lanes_of_memory(target) * VECTORS_PER_STEP

    def lanes_of_memory(self, target: Target) -> int:
        """Lanes of one step that only waits for memory."""
        return target.lanes(max(register_type(self.type).bits, 32))

    def name(self, way: str) -> str:
        types = self.type.name if self.result == self.type else f"{self.type.name}_{self.result.name}"
        return f"fold_{way}_{self.opcode}_{types}{self.map.name and '_'}{self.map.name}"

    @property
    def may_be_divided(self) -> bool:
        """Functions for it can make means of sums."""
        return self.opcode == "add" and self.type.is_float

    def combiner(self) -> Instruction:
        """The operation on two scalars."""
        computation = Computation(self.opcode)
        scalar = Shape.array(self.type, ())
        operands = [computation.add("parameter", shape=scalar, name=name, number=n) for n, name in enumerate("ab")]
        return computation.add(self.opcode, operands)


class FoldProblem(Record):
    """The numbers and arrays of one call, loaded where they are asked for. Nothing writes to them."""

    k: KernelBuilder
    kind: FoldKind

    def __getitem__(self, name: str) -> Value:
        k = self.k
        place = k.gep(self._pointer(NUMBERS_PLACE), NUMBERS.index(name), I64.bytes)
        return k.load(place, I64, hoistable=True)

    def _pointer(self, place: Operand) -> Value:
        k = self.k
        return k.load(k.gep(k.parameters["table"], place, PTR.bytes), PTR, hoistable=True)

    def inputs(self, ahead: int = 0) -> list[Array]:
        """The arrays that are folded. They may be one and the same, which is fine as nobody writes to them."""
        shape, names = _unsized(self.kind.type), INPUTS[: self.kind.map.arrays]
        return [Array(self._pointer(self[name]), shape, "input", ahead=ahead) for name in names]

    def each(self, ix: Indexing, fold: Value) -> list[Element]:
        """What does not change along folds side by side, from one of a number on: a number for each, and a constant, if
        there are such."""
        constants: list[Element] = [self._scalar("constant")] if self.kind.map.has_constant else []
        if not self.kind.map.has_each:
            return constants
        array = Array(self._pointer(self["each"]), _unsized(self.kind.type), "input")
        return [array.load(ix, self.place(ix, self.k.mul(fold, self["each_step"]))), *constants]

    def load(self, ix: Indexing, inputs: Sequence[Array], number: Value, each: Sequence[Element] = ()) -> Element:
        """What is folded of the elements side by side, from one of a number on, and of what does not change along their
        folds."""
        return self.made(ix.lanes, [array.load(ix, self.place(ix, number)) for array in inputs], each)

    def made(self, lanes: int, elements: Sequence[Element], each: Sequence[Element] = ()) -> Element:
        """The same of elements that are loaded."""
        together = [splat(self.k, element, lanes) for element in (*elements, *each)]
        return self.kind.map.emit(self.k, self.kind.type, together)

    def store(self, ix: Indexing, fold: Value, result: Element) -> None:
        """Stores the results of folds side by side, from one of a number on."""
        array = Array(self._pointer(self["result"]), _unsized(self.kind.result), "result", read_only=False)
        array.store(ix, self.place(ix, fold), self._divided(result) if self.kind.may_be_divided else result)

    def _divided(self, result: Element) -> Element:
        assert isinstance(result, Value)
        k, is_mean = self.k, self.k.compare("ne", self["divisor"], 0)
        (divided,) = k.if_else(is_mean, lambda: k.div(result, self._scalar("divisor")), lambda: result)
        return divided

    def init(self) -> Value:
        """What a fold begins with."""
        return self._scalar("init")

    def _scalar(self, name: str) -> Value:
        k, type = self.k, register_type(self.kind.type)
        bits = self[name] if type.bits == I64.bits else k.trunc(self[name], type.integer())
        return k.bitcast(bits, type)

    def place(self, ix: Indexing, number: Value) -> Index:
        """Elements side by side, from one of a number on."""
        return Index(_unsized(self.kind.type).dims, None, ix.along_lanes(number))


def _unsized(type: ElementType) -> Shape:
    """Of arrays whose elements are found by number; how many there are is not known."""
    return Shape.array(type, (1,))


@contextmanager
def fold_function(module: Module, name: str, kind: FoldKind, target: Target) -> Iterator[FoldProblem]:
    """Writes a function of a range of units."""
    parameters = [("table", PTR), ("begin", I64), ("end", I64)]
    attributes = f"nounwind {target.function_attributes}".rstrip()
    with KernelBuilder(module, name, parameters, None, attributes=attributes, joins_offsets=True) as k:
        yield FoldProblem(k, kind)
