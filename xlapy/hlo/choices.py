"""Reductions that choose: of two elements the larger (or the smaller) one, and with it what belongs to it.

    keeps = or(a > b, a != a)                          largest = select(keeps, a, b)
    first = or(keeps, and(a == b, i < j))              place = select(first, i, j)

is how argmax is written, for the elements `a`, `b` at the places `i`, `j`. Such a region does nothing but compare and
select. So all that it does is known from what it selects in each case of how its arguments compare, and these are few:
the region is run on names of its arguments, case by case. Whoever folds with it needs not run it for each element, and
may fold in another order, as long as places tell which of equals is the first.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from xlapy.hlo.attributes import ComparisonDirection, ComparisonType
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.shape import Dims
from xlapy.support.records import Record

LEAST_CHOSEN = 32  # elements of a row in which it pays to choose by vectors
MOST_PLACES = 1 << 31  # of a row, so that 32 bits number them


class Tie(enum.Enum):
    """Which of two equal elements decides what a result is."""

    FIRST = "first"
    LAST = "last"


class Choice(Record):
    """A fold of two arrays, one of which has the `key`s; of equal ones, `ties` says for each result which counts.

    A NaN counts more than any number, and the first one more than others."""

    key: int
    largest: bool
    ties: tuple[Tie, Tie]


def choice_of(reduce: Instruction) -> Choice | None:
    """What a reduce along one dimension chooses, if that is all it does, in the order of that dimension."""
    if reduce.opcode != "reduce" or len(reduce.operands) != 4:
        return None
    dims = reduce.operands[0].shape.dims
    folded = [dim for dim in reduce.attributes["dimensions"] if dims[dim] > 1]
    if len(folded) != 1 or dims[folded[0]] > MOST_PLACES:
        return None
    ascending = [_ascends(operand, folded[0]) for operand in reduce.operands[:2]]
    found = (_recognised(reduce.called[0], key, ascends=ascending[1 - key]) for key in range(2))
    return next((choice for choice in found if choice is not None), None)


def _ascends(array: Instruction, dim: int) -> bool:
    """Elements grow along a dimension."""
    if array.opcode == "broadcast" and array.operands[0].shape.rank:
        inner = array.operands[0]
        dimensions: tuple[int, ...] = array.attributes["dimensions"]
        return dim in dimensions and _ascends(inner, dimensions.index(dim))
    if array.opcode == "reshape":
        cut = _dim_of_part(array.operands[0].shape.dims, array.shape.dims, dim)
        return cut is not None and _ascends(array.operands[0], cut)
    if array.opcode != "iota" or not array.shape.type.is_integer:
        return False
    ascends: bool = array.attributes["dimension"] == dim
    return ascends and array.shape.dims[dim] - 1 <= array.shape.type.integer_range[1]


def _dim_of_part(before: Dims, after: Dims, dim: int) -> int | None:
    """The one dimension along which one moves, before a reshape, that moves along `dim` behind it."""
    inner, outer = math.prod(after[dim + 1 :]), math.prod(after[dim:])
    for number, size in enumerate(before):
        below = math.prod(before[number + 1 :])
        if size > 1 and inner % below == 0 and below * size % outer == 0:
            return number
    return None


def chooses_in_parts(reduce: Instruction) -> bool:
    """Whether a reduce chooses the same if parts of what it folds, in order, are folded first, each from the initial
    values. These take part several times then. So of equals it must be the first one that counts, or places decide; and
    of keys those that are equal must be the same, or not be equal to that among the initial values."""
    choice = choice_of(reduce)
    if choice is None:
        return False
    _, initial = reduce.grouped_operands()
    key, place = initial[choice.key], initial[1 - choice.key]
    equal = _chosen(reduce.called[0], choice.key, _EQUAL)
    of_key, of_place = equal[choice.key], equal[1 - choice.key]
    by_place = place.shape.type.is_integer and {of_place[0], of_place[-1]} == {*Tie}
    is_first = {*of_place} == {Tie.FIRST}
    return (by_place or is_first) and ({*of_key} == {Tie.FIRST} or _is_told_from_others(key))


def _is_told_from_others(key: Instruction) -> bool:
    """Whether what equals a key is the same, bit by bit; a float may be a zero of either sign."""
    if not key.shape.type.is_float:
        return True
    return key.opcode == "constant" and bool(key.attributes["literal"].scalar() != 0)


# -- regions -----------------------------------------------------------------------------------------------------------

Relation: TypeAlias = "ComparisonDirection | None"
"""How the first of two arguments compares with the second: less, equal or greater; None if they do not compare."""

_LESS, _EQUAL, _GREATER = ComparisonDirection.LT, ComparisonDirection.EQ, ComparisonDirection.GT
_HOLDS: Mapping[ComparisonDirection, frozenset[Relation]] = {
    ComparisonDirection.LT: frozenset({_LESS}),
    ComparisonDirection.LE: frozenset({_LESS, _EQUAL}),
    ComparisonDirection.EQ: frozenset({_EQUAL}),
    ComparisonDirection.NE: frozenset({_LESS, _GREATER, None}),
    ComparisonDirection.GE: frozenset({_EQUAL, _GREATER}),
    ComparisonDirection.GT: frozenset({_GREATER}),
}


class _Case(Record):
    """How the two arguments of each operand compare, and which parameters are NaN."""

    relations: tuple[Relation, Relation]
    nans: frozenset[int] = frozenset()

    def relation(self, one: int, other: int) -> Relation:
        """Of two parameters of the same operand: its first argument has the number of the operand."""
        if self.nans & {one, other}:
            return None
        if one == other:
            return _EQUAL
        relation = self.relations[one % 2]
        return relation.swapped() if relation is not None and one > other else relation


def _recognised(region: Computation, key: int, *, ascends: bool) -> Choice | None:
    """What a region chooses by the operand `key`, where the other one ascends or not."""
    element_type = region.parameters[key].shape.type
    if not _only_compares(region) or element_type.is_complex:
        return None
    less, equal, greater = (_chosen(region, key, relation) for relation in _RELATIONS)
    if {less, greater} != {_FIRST, _LAST}:
        return None
    if element_type.is_float and not _prefers_nans(region, key):
        return None
    if not ascends and any(len({*result}) > 1 for result in equal):
        return None
    first, second = (result[_RELATIONS.index(_LESS)] for result in equal)
    return Choice(key, greater == _FIRST, (first, second))


_RELATIONS = (_LESS, _EQUAL, _GREATER)

Sides: TypeAlias = "tuple[tuple[Tie, ...], tuple[Tie, ...]]"
"""Which argument each result is, for each way in which the arguments that are no keys compare."""

_FIRST: Sides = ((Tie.FIRST,) * 3, (Tie.FIRST,) * 3)
_LAST: Sides = ((Tie.LAST,) * 3, (Tie.LAST,) * 3)


def _chosen(region: Computation, key: int, relation: Relation, nans: frozenset[int] = frozenset()) -> Sides:
    """What is selected if keys compare in one way."""
    results = []
    for other in _RELATIONS:
        relations = (relation, other) if key == 0 else (other, relation)
        results.append([_SIDES[number] for number in _run(region, _Case(relations, nans))])
    first, second = zip(*results, strict=True)
    return first, second


_SIDES = (Tie.FIRST, Tie.FIRST, Tie.LAST, Tie.LAST)
"""On which side each parameter is."""


def _prefers_nans(region: Computation, key: int) -> bool:
    """A NaN is chosen, and the first one of two."""
    first, second = frozenset({key}), frozenset({key + 2})
    return (
        _chosen(region, key, None, first) == _FIRST
        and _chosen(region, key, None, second) == _LAST
        and _chosen(region, key, None, first | second) == _FIRST
    )


_LOGIC: Mapping[str, Callable[..., bool]] = {
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "xor": lambda a, b: a != b,
    "not": lambda a: not a,
}


def _only_compares(region: Computation) -> bool:
    """The results are arguments, each of its own operand, selected by how arguments of one operand compare."""
    root = region.root
    if len(region.parameters) != 4 or root.opcode != "tuple" or len(root.operands) != 2:
        return False
    inner = [instruction for instruction in region.post_order() if instruction is not root]
    return all(_compares(instruction) for instruction in inner) and all(
        _arguments(result) <= {number, number + 2} for number, result in enumerate(root.operands)
    )


def _compares(instruction: Instruction) -> bool:
    operands = instruction.operands
    if not instruction.shape.is_scalar:
        return False
    if instruction.opcode == "compare":
        numbers = [operand.attributes["number"] for operand in operands if operand.opcode == "parameter"]
        return len(numbers) == 2 and numbers[0] % 2 == numbers[1] % 2 and _is_usual(instruction)
    if instruction.opcode == "select":
        return _is_condition(operands[0]) and not any(map(_is_condition, operands[1:]))
    return instruction.opcode == "parameter" or (instruction.opcode in _LOGIC and all(map(_is_condition, operands)))


def _is_condition(instruction: Instruction) -> bool:
    """It says how arguments compare; else it is one of them."""
    return instruction.opcode == "compare" or instruction.opcode in _LOGIC


def _is_usual(compare: Instruction) -> bool:
    """Zeros are equal whatever their signs are, and NaN equals nothing."""
    element_type: ElementType = compare.operands[0].shape.type
    return not element_type.is_complex and not (
        element_type.is_float and compare.attributes["type"] is ComparisonType.TOTALORDER
    )


def _arguments(result: Instruction) -> set[int]:
    """The parameters of which a result is one; all if it says how they compare."""
    found: set[int] = set()
    waiting = [result]
    while waiting:
        instruction = waiting.pop()
        if instruction.opcode == "parameter":
            found.add(instruction.attributes["number"])
        elif instruction.opcode == "select":
            waiting += instruction.operands[1:]
        else:
            found.update(range(4))
    return found


def _run(region: Computation, case: _Case) -> list[int]:
    """The results of a region in one case: the numbers of parameters."""
    values: dict[Instruction, int | bool] = {}
    for instruction in region.post_order():
        if instruction.opcode == "parameter":
            values[instruction] = instruction.attributes["number"]
        elif instruction is not region.root:
            values[instruction] = _value(instruction, [values[operand] for operand in instruction.operands], case)
    return [values[operand] for operand in region.root.operands]


def _value(instruction: Instruction, operands: Sequence[int | bool], case: _Case) -> int | bool:
    if instruction.opcode == "compare":
        return case.relation(*operands) in _HOLDS[instruction.attributes["direction"]]
    if instruction.opcode == "select":
        return operands[1] if operands[0] else operands[2]
    return _LOGIC[instruction.opcode](*operands)
