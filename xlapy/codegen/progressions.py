"""Integers of a program that move by one step from lane to lane, as places in windows and patches do.

    i = s32[64,8] iota(), iota_dimension=1
    j = s32[64,8] add(i, broadcast(s32[64] multiply(iota(), 4)))          along a row: one more each

What is gathered at such places, none of them outside, is read as neighbours are, and no place is computed in a lane.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from xlapy.codegen.indexing import SCALAR, Coordinate, Index, Indexing
from xlapy.hlo.graph import Instruction

if TYPE_CHECKING:
    from xlapy.codegen.element_graph import ElementGraph


MOST_FOLLOWED = 64
"""Instructions that are looked at, of one place: more are computed, lane by lane."""


class Progression(NamedTuple):
    """Integers that move by one step from lane to lane, none outside of [least, most] anywhere in their array."""

    at: Coordinate
    least: int
    most: int


def progression_of(graph: ElementGraph, instruction: Instruction, index: Index) -> Progression | None:
    """The values of integers made of iotas and constants, if that is how they move."""
    return _Search(graph, {}).of(instruction, index)


class _Search(NamedTuple):
    """What is known of instructions at the indices that were asked for: each is followed once."""

    graph: ElementGraph
    known: dict[tuple[Instruction, Index], Progression | None]

    def of(self, instruction: Instruction, index: Index) -> Progression | None:
        wanted = (instruction, index)
        if wanted not in self.known and len(self.known) < MOST_FOLLOWED:
            self.known[wanted] = None  # counts while it is looked for
            self.known[wanted] = self._of_new(instruction, index)
        return self.known.get(wanted)

    def of_terms(self, instruction: Instruction, index: Index) -> tuple[Progression, Progression] | None:
        one, other = (self.of(operand, index if operand.shape.rank else SCALAR) for operand in instruction.operands)
        return None if one is None or other is None else (one, other)

    def _of_new(self, instruction: Instruction, index: Index) -> Progression | None:
        rule, type = _RULES.get(instruction.opcode), instruction.shape.type
        if rule is None or self.graph.is_input(instruction) or not type.is_integer:
            return None
        found = rule(self, instruction, index)
        fits = found is not None and found.at.vector is None and type.holds(found.least, found.most)
        return found if fits else None


def _counted(search: _Search, iota: Instruction, index: Index) -> Progression:
    dimension = iota.attributes["dimension"]
    return Progression(search.graph.ix.split(index)[dimension], 0, max(iota.shape.dims[dimension] - 1, 0))


def _same_everywhere(search: _Search, constant: Instruction, index: Index) -> Progression | None:
    literal = constant.attributes["literal"]
    if not literal.array.size or not literal.is_splat:
        return None
    value = int(literal.scalar())
    return Progression(search.graph.ix.constant(value), value, value)


def _moved(search: _Search, instruction: Instruction, index: Index) -> Progression | None:
    """Of what an instruction reads of its only operand, or of the only one that lanes reach."""
    (operand, at), *others = search.graph.demand(instruction, index).operands
    return None if others else search.of(operand, at)


def _converted(search: _Search, convert: Instruction, index: Index) -> Progression | None:
    return search.of(convert.operands[0], index)


def _sum(search: _Search, add: Instruction, index: Index) -> Progression | None:
    terms = search.of_terms(add, index)
    return None if terms is None else _added(search.graph.ix, *terms)


def _difference(search: _Search, subtract: Instruction, index: Index) -> Progression | None:
    terms, ix = search.of_terms(subtract, index), search.graph.ix
    return None if terms is None else _added(ix, terms[0], _times(ix, terms[1], -1))


def _multiple(search: _Search, multiply: Instruction, index: Index) -> Progression | None:
    terms = search.of_terms(multiply, index)
    for one, other in () if terms is None else (terms, terms[::-1]):
        if other.least == other.most:
            return _times(search.graph.ix, one, other.least)
    return None


def _added(ix: Indexing, one: Progression, other: Progression) -> Progression:
    return Progression(ix.sum(one.at, other.at), one.least + other.least, one.most + other.most)


def _times(ix: Indexing, progression: Progression, factor: int) -> Progression:
    ends = progression.least * factor, progression.most * factor
    return Progression(ix.scale(progression.at._replace(bounds=None), factor), min(ends), max(ends))


_MOVEMENTS = ("bitcast", "broadcast", "concatenate", "reshape", "reverse", "slice", "transpose")
_RULES: Mapping[str, Callable[[_Search, Instruction, Index], Progression | None]] = MappingProxyType(
    {
        "add": _sum,
        "constant": _same_everywhere,
        "convert": _converted,
        "iota": _counted,
        "multiply": _multiple,
        "subtract": _difference,
        **dict.fromkeys(_MOVEMENTS, _moved),
    }
)
"""How the integers of an instruction move from lane to lane, by ops for which that is known."""
