"""What the fold libraries make from elements before they fold them: what norms, products and distances are sums of.

A tree is the number of an array, or an op on trees.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xlapy.codegen.elements import emit_element
from xlapy.codegen.ir import KernelBuilder
from xlapy.codegen.registers import Element
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.shape import Shape

Tree = int | tuple[str, tuple["Tree", ...]]


@dataclass(frozen=True, slots=True)
class FoldMap:
    """One of them, of one array or of two."""

    name: str
    tree: Tree
    arrays: int = 1

    def sources(self, value: Instruction, leaf: Callable[[Instruction], Instruction | None]) -> list[Instruction]:
        """The arrays that `value` is made from in this way, none if it is not; `leaf` says what array a value is, and
        None if that is something to be made."""
        found: dict[int, Instruction] = {}
        return [found[number] for number in range(self.arrays)] if _matches(self.tree, value, leaf, found) else []

    def emit(self, k: KernelBuilder, type: ElementType, elements: Sequence[Element]) -> Element:
        """What is made from the elements of its arrays, in the precision of registers."""
        return _emitted(k, self.tree, Computation(self.name), Shape.array(type, ()), elements)[1]


def _matches(
    tree: Tree, value: Instruction, leaf: Callable[[Instruction], Instruction | None], found: dict[int, Instruction]
) -> bool:
    if isinstance(tree, int):
        array = leaf(value)
        return array is not None and found.setdefault(tree, array) is array
    opcode, operands = tree
    if value.opcode != opcode or leaf(value) is not None:
        return False
    return all(_matches(inner, operand, leaf, found) for inner, operand in zip(operands, value.operands, strict=True))


def _emitted(
    k: KernelBuilder, tree: Tree, scratch: Computation, scalar: Shape, elements: Sequence[Element]
) -> tuple[Instruction, Element]:
    """The op at the root of a tree, on scalars, and its value."""
    if isinstance(tree, int):
        return scratch.add("parameter", shape=scalar, number=tree), elements[tree]
    opcode, operands = tree
    made = [_emitted(k, operand, scratch, scalar, elements) for operand in operands]
    operation = scratch.add(opcode, [instruction for instruction, _ in made])
    return operation, emit_element(k, operation, [element for _, element in made], unrounded=True)


_DIFFERENCE: Tree = ("subtract", (0, 1))

ITSELF = FoldMap("", 0)
SQUARE = FoldMap("square", ("multiply", (0, 0)))
PRODUCT = FoldMap("product", ("multiply", (0, 1)), arrays=2)
SQUARE_OF_DIFFERENCE = FoldMap("square_of_difference", ("multiply", (_DIFFERENCE, _DIFFERENCE)), arrays=2)
MAGNITUDE = FoldMap("abs", ("abs", (0,)))
DISTANCE = FoldMap("abs_of_difference", ("abs", (_DIFFERENCE,)), arrays=2)

MAPS = {
    "add": (SQUARE, PRODUCT, SQUARE_OF_DIFFERENCE, MAGNITUDE, DISTANCE),
    "maximum": (MAGNITUDE, DISTANCE),
}
"""By the op that folds; a square comes before products of any two arrays."""
