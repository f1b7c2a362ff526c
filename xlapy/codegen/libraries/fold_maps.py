"""What the fold libraries make from elements before they fold them: what norms, products and distances are sums of,
deviations and weights, and what folds of parts are put together from.

A tree is the number of an array, a constant, or an op on trees. Comparisons ask whether operands are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xlapy.codegen.elements import emit_element
from xlapy.codegen.ir import KernelBuilder
from xlapy.codegen.registers import Element, constant_element
from xlapy.hlo.attributes import ComparisonDirection
from xlapy.hlo.cost import TRANSCENDENTAL
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.patterns import number_of
from xlapy.hlo.shape import Shape

Tree = int | float | tuple[str, tuple["Tree", ...]]
Leaf = Callable[[Instruction], Instruction | None]


@dataclass(frozen=True, slots=True)
class FoldMap:
    """One of them, of one array or of two."""

    name: str
    tree: Tree
    arrays: int = 1
    has_each: bool = False  # behind the arrays comes one with a number for each fold: a mean, or the largest element
    has_constant: bool = False  # behind that comes a constant of the program

    @property
    def hides_latency(self) -> bool:
        """It is so much to compute for each element that folds need not run side by side."""
        return _has_function(self.tree)

    def sources(self, value: Instruction, leaf: Leaf, each: Leaf) -> list[Instruction]:
        """What `value` is made from in this way, none if it is not; `leaf` says what array a value is, and None if that
        is something to be made, and `each` what array a value repeats that has a number for each fold."""
        found: dict[int, Instruction] = {}
        leaves = [leaf] * self.arrays + [each] * self.has_each + [_constant] * self.has_constant
        return [found[number] for number in sorted(found)] if _matches(self.tree, value, leaves, found) else []

    def emit(self, k: KernelBuilder, type: ElementType, elements: Sequence[Element]) -> Element:
        """What is made from the elements of its arrays, and its constant, in the precision of registers."""
        return _emitted(k, self.tree, Computation(self.name), Shape.array(type, ()), elements)[1]


def _matches(tree: Tree, value: Instruction, leaves: Sequence[Leaf], found: dict[int, Instruction]) -> bool:
    if isinstance(tree, int):
        array = leaves[tree](value)
        return array is not None and found.setdefault(tree, array) is array
    if isinstance(tree, float):
        return bool(number_of(value) == tree)
    opcode, operands = tree
    if value.opcode != opcode or leaves[0](value) is not None:
        return False
    if any(value.attributes[name] != given for name, given in _attributes(opcode).items()):
        return False
    return all(_matches(inner, operand, leaves, found) for inner, operand in zip(operands, value.operands, strict=True))


def _emitted(
    k: KernelBuilder, tree: Tree, scratch: Computation, scalar: Shape, elements: Sequence[Element]
) -> tuple[Instruction, Element]:
    """The op at the root of a tree, on scalars, and its value."""
    if isinstance(tree, int):
        return scratch.add("parameter", shape=scalar, number=tree), elements[tree]
    if isinstance(tree, float):
        return scratch.add("constant", literal=Literal(tree, scalar)), constant_element(k, scalar.type, tree)
    opcode, operands = tree
    made = [_emitted(k, operand, scratch, scalar, elements) for operand in operands]
    operation = scratch.add(opcode, [instruction for instruction, _ in made], **_attributes(opcode))
    return operation, emit_element(k, operation, [element for _, element in made], unrounded=True)


def _attributes(opcode: str) -> dict[str, Any]:
    """Those of an op in a tree."""
    return {"direction": ComparisonDirection.EQ, "type": None} if opcode == "compare" else {}


def _constant(value: Instruction) -> Instruction | None:
    """The scalar that all elements of a value are."""
    while value.opcode == "broadcast":
        (value,) = value.operands
    return value if value.opcode == "constant" and value.shape.is_scalar else None


def _has_function(tree: Tree) -> bool:
    if isinstance(tree, int | float):
        return False
    opcode, operands = tree
    return opcode in TRANSCENDENTAL or any(map(_has_function, operands))


_DIFFERENCE: Tree = ("subtract", (0, 1))

ITSELF = FoldMap("", 0)
SQUARE = FoldMap("square", ("multiply", (0, 0)))
PRODUCT = FoldMap("product", ("multiply", (0, 1)), arrays=2)
SQUARE_OF_DIFFERENCE = FoldMap("square_of_difference", ("multiply", (_DIFFERENCE, _DIFFERENCE)), arrays=2)
MAGNITUDE = FoldMap("abs", ("abs", (0,)))
DISTANCE = FoldMap("abs_of_difference", ("abs", (_DIFFERENCE,)), arrays=2)

SQUARE_OF_DEVIATION = FoldMap("square_of_deviation", ("multiply", (_DIFFERENCE, _DIFFERENCE)), has_each=True)
EXPONENTIAL = FoldMap("exponential", ("exponential", (_DIFFERENCE,)), has_each=True)

_APART: Tree = ("select", (("compare", (1, 2)), 0.0, ("subtract", (1, 2))))
_SQUARE_APART: Tree = ("multiply", (("multiply", (_APART, _APART)), 3))
SQUARES_OF_PARTS = FoldMap("squares_of_parts", ("add", (0, _SQUARE_APART)), arrays=2, has_each=True, has_constant=True)
"""Sums of squares of distances from the mean of each part, those means, the mean of the whole, and the size of a part:
see `passes.folds_in_parts`."""

EXPONENTIALS_OF_PARTS = FoldMap(
    "exponentials_of_parts",
    ("multiply", (0, ("exponential", (("minimum", (("subtract", (1, 2)), 0.0)),)))),
    arrays=2,
    has_each=True,
)
"""The same of sums of exponentials below the largest of each part, and the largest of the whole."""

MAPS = {
    "add": (
        SQUARE,
        PRODUCT,
        SQUARE_OF_DIFFERENCE,
        MAGNITUDE,
        DISTANCE,
        SQUARE_OF_DEVIATION,
        EXPONENTIAL,
        SQUARES_OF_PARTS,
        EXPONENTIALS_OF_PARTS,
    ),
    "maximum": (MAGNITUDE, DISTANCE),
}
"""By the op that folds; a square comes before products of any two arrays."""
