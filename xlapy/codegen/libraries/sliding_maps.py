"""What the sliding libraries make from elements before they fold them: what stands between a layer and its pooling.

A tree is an op on trees, the element, the number that its channel has in one of the arrays of such, or zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import permutations

from xlapy.codegen.elements import emit_element
from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.ops import Trait
from xlapy.hlo.shape import Shape


class Leaf(Enum):
    """What is not made."""

    ELEMENT = "x"
    ZERO = "0"
    FIRST = "a"
    SECOND = "b"


CHANNELS = (Leaf.FIRST, Leaf.SECOND)
"""Arrays with one number for each channel."""

Tree = Leaf | tuple[str, tuple["Tree", ...]]


@dataclass(frozen=True, slots=True)
class SlidingMap:
    """One of them, with so many arrays of numbers for channels."""

    name: str
    tree: Tree
    arrays: int = 0

    def leaves(
        self, value: Instruction, is_leaf: Callable[[Leaf, Instruction], bool]
    ) -> dict[Leaf, Instruction] | None:
        """What the leaves stand for if `value` is made in this way, with operands in any order where that is the same;
        `is_leaf` says whether a value may be a leaf."""
        return _matched(self.tree, value, is_leaf, {})

    def emit(self, k: KernelBuilder, type: ElementType, element: Value, numbers: Sequence[Value]) -> Value:
        """What is made from elements side by side, and the numbers of their channels."""
        leaves = {
            Leaf.ELEMENT: element,
            Leaf.ZERO: k.const(element.type, 0),
            **dict(zip(CHANNELS, numbers, strict=False)),
        }
        return _emitted(k, self.tree, Computation(self.name), Shape.array(type, ()), leaves)[1]


def _matched(
    tree: Tree,
    value: Instruction,
    is_leaf: Callable[[Leaf, Instruction], bool],
    found: dict[Leaf, Instruction],
) -> dict[Leaf, Instruction] | None:
    """`found`, with what the leaves of one more tree stand for; None if it is not `value`."""
    if isinstance(tree, Leaf):
        return {**found, tree: value} if is_leaf(tree, value) and found.get(tree, value) is value else None
    opcode, inner = tree
    if value.opcode != opcode:
        return None
    orders = permutations(value.operands) if Trait.COMMUTATIVE in value.spec.traits else [tuple(value.operands)]
    for operands in orders:
        all_found: dict[Leaf, Instruction] | None = found
        for part, operand in zip(inner, operands, strict=True):
            all_found = None if all_found is None else _matched(part, operand, is_leaf, all_found)
        if all_found is not None:
            return all_found
    return None


def _emitted(
    k: KernelBuilder, tree: Tree, scratch: Computation, scalar: Shape, leaves: dict[Leaf, Value]
) -> tuple[Instruction, Value]:
    """The op at the root of a tree, on scalars, and its value."""
    if tree is Leaf.ZERO:
        return scratch.add("constant", literal=Literal(0, scalar)), leaves[tree]
    if isinstance(tree, Leaf):
        return scratch.add("parameter", shape=scalar, number=len(scratch.parameters)), leaves[tree]
    opcode, operands = tree
    made = [_emitted(k, operand, scratch, scalar, leaves) for operand in operands]
    operation = scratch.add(opcode, [instruction for instruction, _ in made])
    value = emit_element(k, operation, [value for _, value in made], unrounded=True)
    assert isinstance(value, Value)
    return operation, value


_SHIFTED: Tree = ("add", (Leaf.ELEMENT, Leaf.FIRST))
_SCALED_AND_SHIFTED: Tree = ("add", (("multiply", (Leaf.ELEMENT, Leaf.FIRST)), Leaf.SECOND))


def _rectified(tree: Tree) -> Tree:
    return "maximum", (tree, Leaf.ZERO)


ITSELF = SlidingMap("", Leaf.ELEMENT)
SHIFTED = SlidingMap("shifted", _SHIFTED, 1)
SCALED_AND_SHIFTED = SlidingMap("line", _SCALED_AND_SHIFTED, 2)
RECTIFIED = (
    SlidingMap("rectified", _rectified(Leaf.ELEMENT)),
    SlidingMap("rectified_sum", _rectified(_SHIFTED), 1),
    SlidingMap("rectified_line", _rectified(_SCALED_AND_SHIFTED), 2),
)

_ANY = (ITSELF, SHIFTED, SCALED_AND_SHIFTED)
MAPS = {"add": (*_ANY, *RECTIFIED), "maximum": _ANY, "minimum": _ANY}
"""By the op that folds. The largest of a window is rectified by itself, when it is found."""
