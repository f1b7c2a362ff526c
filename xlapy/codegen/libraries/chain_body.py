"""What a chain over rows or columns computes, apart from sizes and numbers: the text by which libraries know it.

    top = fold maximum x #          each value with its op and what that is given; # is a number of the program
    e = exponential (subtract x top)

Two chains with one text differ in the lengths of their arrays, in their constants and in the types of elements only.
Whether a value is whole, one for a row, or one for a place in all rows, follows from what it is made of: broadcasts and
reshapes are not written down. Operands of commutative ops stand in an order that does not depend on the program.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from xlapy.hlo import element_types as et
from xlapy.hlo.attributes import ComparisonDirection
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import RowSpace, fusion_roots, is_row_major, row_space, sole_operation
from xlapy.hlo.ops import OPS, Trait

NUMBER, WHOLE, ALONG, ACROSS = "#", "whole", "along", "across"
"""What a chain is given: numbers (constants, or what is in memory), arrays of all elements, arrays of one for each
place in a row, and arrays of one for each of the columns that lie side by side."""

TRIANGLE = "triangle"
"""Whether an element is at or before the diagonal of its matrix, whose number of rows is given."""

FOLD = "fold"
RESULTS = "results"
_HALF = 0.5  # the significand of powers of two
MOST_ROWS = (1 << 31) - 1  # that are counted
MOST_INSTRUCTIONS = 64  # of a chain for which there may be a library


@dataclass(frozen=True, slots=True)
class Node:
    """A value: an op, its type where that is another one than of its operands, and places of operands in the list."""

    op: str
    type: str
    operands: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ChainBody:
    """The values of a chain, operands first, and which of them are its results."""

    nodes: tuple[Node, ...]
    results: tuple[int, ...]

    @property
    def text(self) -> str:
        lines = [" ".join([node.op, node.type, *map(str, node.operands)]) for node in self.nodes]
        return "\n".join([*lines, " ".join([RESULTS, *map(str, self.results)])])


def has_functions(body: ChainBody) -> bool:
    """Whether elements are put into exponentials, which take longer than what else is done."""
    return any(node.op == "exponential" for node in body.nodes)


Source = Instruction | np.ndarray[Any, Any]
"""What a body is given: a parameter of the program's computation, or a constant."""


@dataclass(slots=True)
class FoundChain:
    """A chain of a program: its body, its space and type, what stands for what the body is given, in order, and which
    results of the computation those of the body are."""

    body: ChainBody
    space: RowSpace
    type: ElementType
    arrays: list[Instruction]
    numbers: list[Source]
    results: list[int]


def find_chain(computation: Computation) -> FoundChain | None:
    """The chain that a fused computation of row kind is, if libraries might know it."""
    roots, order = fusion_roots(computation), computation.post_order()
    first = next((instruction for instruction in order if instruction.opcode == "reduce"), None)
    space = None if first is None or len(order) > MOST_INSTRUCTIONS else row_space(first)
    type = roots[0].shape.type
    if space is None or not all(_is_result(root, space, type) for root in roots):
        return None
    writer = _Writer(space, type)
    for instruction in order:
        is_tuple = instruction is computation.root and instruction not in roots
        if not (is_tuple or writer.add(instruction)):
            return None
    if not all(root in writer.known for root in roots):
        return None
    prints = _prints(writer.nodes)
    places = [writer.known[root] for root in roots]
    results = sorted(range(len(roots)), key=lambda result: prints[places[result]])
    order_of_nodes = _canonical_order(writer.nodes, prints, [places[result] for result in results])
    given = [number for number in order_of_nodes if number in writer.sources]
    arrays = [writer.sources[number] for number in given if writer.nodes[number].op != NUMBER]
    return FoundChain(
        _renumbered(writer.nodes, order_of_nodes, [places[result] for result in results]),
        space,
        type,
        [array for array in arrays if isinstance(array, Instruction)],
        [writer.sources[number] for number in given if writer.nodes[number].op == NUMBER],
        results,
    )


def _is_result(root: Instruction, space: RowSpace, type: ElementType) -> bool:
    """A result has an element for each of the arrays, or for each fold."""
    is_plain = root.opcode != "parameter" and root.shape.type is type and is_row_major(root)
    return is_plain and root.shape.size in (space.rows, math.prod(space.dims))


@dataclass(slots=True)
class _Writer:
    """Writes down instructions, operands first."""

    space: RowSpace
    type: ElementType
    nodes: list[Node] = field(default_factory=list)
    known: dict[Instruction, int] = field(default_factory=dict)
    sources: dict[int, Source] = field(default_factory=dict)  # of what the body is given
    scalars: dict[Instruction, Instruction] = field(default_factory=dict)  # by what repeats them

    def add(self, instruction: Instruction) -> bool:
        """Whether the instruction could be written down."""
        if not is_row_major(instruction):
            return False
        if instruction.opcode == "parameter":
            return self._add_parameter(instruction)
        if instruction.opcode == "iota" or self._is_part_of_triangle(instruction):
            return True  # what else reads it does not find it
        if self._is_triangle(instruction):
            return self._add_triangle(instruction)
        if instruction.opcode == "constant":
            self.scalars[instruction] = instruction
            return instruction.shape.is_scalar
        if instruction.opcode in ("broadcast", "reshape"):
            return self._add_renaming(instruction)
        if instruction.opcode == "reduce":
            return self._add_fold(instruction)
        if Trait.ELEMENTWISE not in instruction.spec.traits or instruction.called or instruction.attributes:
            return False
        if instruction.opcode == "multiply" and not self.space.is_full(instruction):
            return self._add_part(instruction) or self._add_node(instruction, "multiply", instruction.operands)
        return self._add_node(instruction, instruction.opcode, instruction.operands)

    def _add_part(self, product: Instruction) -> bool:
        """A value of each row times a power of two is one divided by another one. Means are divided, unless rows are so
        long that a law has found this product; for libraries they are the same."""
        for value, factor in (product.operands, reversed(product.operands)):
            constant = self.scalars.get(factor)
            if constant is None or value not in self.known or not constant.shape.type.is_float:
                continue
            if constant.opcode != "constant":
                continue
            number = float(constant.attributes["literal"].scalar())
            if math.frexp(number)[0] != _HALF:
                continue
            with np.errstate(over="ignore"):
                size = np.asarray(1 / number).astype(constant.shape.type.dtype)
            if np.isfinite(size):
                self._append(product, "divide", (self.known[value], self._add_number(constant, size)))
                return True
        return False

    def _add_parameter(self, parameter: Instruction) -> bool:
        """A number, an array of all elements, or one that is repeated for all rows, or down all columns."""
        if parameter.shape.is_scalar:
            self.scalars[parameter] = parameter
            return True
        if self.space.is_full(parameter):
            return self._add_source(parameter, WHOLE)
        if all(self._is_repeated_along(user) for user in parameter.users):
            return self._add_source(parameter, ALONG)
        return all(map(self._is_repeated_across, parameter.users)) and self._add_source(parameter, ACROSS)

    def _is_repeated_along(self, user: Instruction) -> bool:
        folded = self.space.folded
        return user.opcode == "broadcast" and self.space.is_full(user) and user.attributes["dimensions"] == folded

    def _is_repeated_across(self, user: Instruction) -> bool:
        """A parameter has a number for each column, of which all columns are that lie side by side."""
        first, rank = max(self.space.folded) + 1, len(self.space.dims)
        if not self.space.is_columns or math.prod(self.space.dims[first:]) != self.space.rows:
            return False
        if user.opcode != "broadcast" or not self.space.is_full(user):
            return self.space.is_per_row(user)
        return tuple(user.attributes["dimensions"]) == tuple(range(first, rank))

    def _is_part_of_triangle(self, instruction: Instruction) -> bool:
        return not self.space.is_full(instruction) and self._compares_row_and_place(instruction)

    def _is_triangle(self, instruction: Instruction) -> bool:
        """The same for all matrices, or of the only one."""
        if not self.space.is_full(instruction):
            return False
        last = tuple(range(len(self.space.dims)))[-2:]
        if instruction.opcode == "broadcast" and instruction.attributes["dimensions"] == last:
            instruction = instruction.operands[0]
        return self._compares_row_and_place(instruction)

    def _compares_row_and_place(self, instruction: Instruction) -> bool:
        """row >= place, or place <= row, for each element of a matrix of the last two dimensions."""
        rank, dims = instruction.shape.rank, self.space.dims
        if instruction.opcode != "compare" or self.space.folded != (len(dims) - 1,) or self.space.rows > MOST_ROWS:
            return False
        if rank < 2 or instruction.shape.dims[-2:] != dims[-2:]:
            return False
        operands, widest = instruction.operands, max(et.S32.bits, self.type.bits)
        if any(operand.opcode != "iota" or operand.shape.type.bits < et.S32.bits for operand in operands):
            return False
        if operands[0].shape.type.bits > widest:
            return False  # kernels of programs go in smaller steps for these
        row_dim, place_dim = (operand.attributes["dimension"] for operand in operands)
        direction: ComparisonDirection = instruction.attributes["direction"]
        if row_dim > place_dim:
            row_dim, place_dim, direction = place_dim, row_dim, direction.swapped()
        return (row_dim, place_dim, direction) == (rank - 2, rank - 1, ComparisonDirection.GE)

    def _add_triangle(self, instruction: Instruction) -> bool:
        self.sources[len(self.nodes)] = np.asarray(self.space.dims[-2], np.int32)
        self.nodes.append(Node(NUMBER, et.S32.name, ()))
        self._append(instruction, TRIANGLE, [len(self.nodes) - 1])
        return True

    def _add_source(self, source: Instruction, op: str) -> bool:
        self.known[source] = len(self.nodes)
        self.sources[len(self.nodes)] = source
        self.nodes.append(Node(op, self._type_name(source), ()))
        return True

    def _add_renaming(self, instruction: Instruction) -> bool:
        """A value under another name: repeated, or with other dimensions of one element."""
        (operand,) = instruction.operands
        if operand in self.scalars:
            self.scalars[instruction] = self.scalars[operand]
            return True
        is_along = operand.opcode == "parameter" and self._is_repeated_along(instruction)
        if operand not in self.known or not (is_along or self.space.continues(instruction)):
            return False
        self.known[instruction] = self.known[operand]
        return True

    def _add_fold(self, reduce: Instruction) -> bool:
        operation = sole_operation(reduce.called[0])
        if operation is None or row_space(reduce) != self.space:
            return False
        return self._add_node(reduce, f"{FOLD}.{operation.opcode}", reduce.operands)

    def _add_node(self, instruction: Instruction, op: str, operands: Sequence[Instruction]) -> bool:
        places = [self._place(operand) for operand in operands]
        self._append(instruction, op, [place for place in places if place is not None])
        return None not in places

    def _append(self, instruction: Instruction, op: str, operands: Sequence[int]) -> None:
        type = self._type_name(instruction) if op == "convert" else ""
        self.known[instruction] = len(self.nodes)
        self.nodes.append(Node(op, type, tuple(operands)))

    def _place(self, operand: Instruction) -> int | None:
        """Each use of a scalar is a number of its own."""
        scalar = self.scalars.get(operand)
        if scalar is None:
            return self.known.get(operand)
        return self._add_number(scalar, scalar.attributes["literal"].array if scalar.opcode == "constant" else scalar)

    def _add_number(self, scalar: Instruction, number: Source) -> int:
        self.sources[len(self.nodes)] = number
        self.nodes.append(Node(NUMBER, self._type_name(scalar), ()))
        return len(self.nodes) - 1

    def _type_name(self, instruction: Instruction) -> str:
        """That of the result stands for many."""
        type = instruction.shape.type
        return "" if type == self.type else type.name


def read_body(text: str) -> ChainBody:
    """The body that is written in a table: a line for each value, with its name, its op and the names of what that is
    given, as `name = op a b`; the type of a conversion, or of what is given, behind a colon, if it is not that of the
    result. The last value is the result, unless a line names `results`."""
    nodes: list[Node] = []
    names: dict[str, int] = {}
    results: list[int] = []

    def place(word: str) -> int:
        if word.partition(":")[0] != NUMBER:
            return names[word]
        nodes.append(Node(NUMBER, word.partition(":")[2], ()))
        return len(nodes) - 1

    for line in filter(None, map(str.strip, text.splitlines())):
        name, is_value, value = line.partition(" = ")
        if not is_value:
            results = [names[result] for result in line.split()[1:]]
            continue
        op, *operands = value.split()
        places = tuple(place(operand) for operand in operands)
        names[name] = len(nodes)
        opcode, _, type = op.partition(":")
        nodes.append(Node(opcode, type, places))
    prints = _prints(nodes)
    results = sorted(results or [len(nodes) - 1], key=prints.__getitem__)
    return _renumbered(nodes, _canonical_order(nodes, prints, results), results)


def _prints(nodes: Sequence[Node]) -> list[int]:
    """Numbers that tell apart what nodes compute."""
    prints: list[int] = []
    for node in nodes:
        words = [node.op, node.type, *(str(prints[operand]) for operand in _ordered(node, prints))]
        prints.append(zlib.crc32(" ".join(words).encode()))
    return prints


def _ordered(node: Node, prints: Sequence[int]) -> tuple[int, ...]:
    """The operands of a node, in an order that does not depend on the program if they may be swapped."""
    return tuple(sorted(node.operands, key=prints.__getitem__)) if _commutes(node.op) else node.operands


def _canonical_order(nodes: Sequence[Node], prints: Sequence[int], results: Sequence[int]) -> list[int]:
    """The nodes that the results need, operands first, from left to right where the order counts; else by what they
    are."""
    order: dict[int, None] = {}
    for result in results:
        pending: list[tuple[int, Iterator[int]]] = [(result, iter(_ordered(nodes[result], prints)))]
        while pending:
            number, rest = pending[-1]
            operand = next((operand for operand in rest if operand not in order), None)
            if operand is None:
                order[number] = None
                pending.pop()
            else:
                pending.append((operand, iter(_ordered(nodes[operand], prints))))
    return [*order]


def _renumbered(nodes: Sequence[Node], order: Sequence[int], results: Sequence[int]) -> ChainBody:
    places = {number: place for place, number in enumerate(order)}
    found = []
    for number in order:
        node = nodes[number]
        operands = [places[operand] for operand in node.operands]
        found.append(Node(node.op, node.type, tuple(sorted(operands) if _commutes(node.op) else operands)))
    return ChainBody(tuple(found), tuple(places[result] for result in results))


def _commutes(op: str) -> bool:
    return op in OPS and Trait.COMMUTATIVE in OPS[op].traits
