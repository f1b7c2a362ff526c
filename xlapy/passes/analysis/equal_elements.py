"""Which elements of the state of a loop are always equal: two counters that count alike, one array handed in twice.

Elements that start from one value are supposed to be equal, and told apart where the body computes different next
values from states in which they are. What no round tells apart any more is equal in every iteration.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from xlapy.hlo.graph import Instruction
from xlapy.passes.analysis.value_numbers import ValueNumbers

ROUNDS = 8
"""How often the body is looked at: each round costs time, and loops whose elements differ step by step are rare."""


def equal_elements(loop: Instruction) -> dict[int, int]:
    """For elements that equal an earlier one: that one. Empty where it takes too many rounds to tell."""
    init, body = loop.operands[0], loop.called[1]
    if init.opcode != "tuple" or body.root.opcode != "tuple":
        return {}
    classes = _numbered(_start(value) for value in init.operands)
    for _ in range(ROUNDS):
        if len(set(classes)) == len(classes):
            return {}
        values = ValueNumbers()
        kinds = [values.fresh() for _ in classes]
        numbers = values.enter_region(body, [values.tuple_of([kinds[number] for number in classes])])
        following = [numbers[value] for value in body.root.operands]
        refined = _numbered(zip(classes, following, strict=True))
        if refined == classes:
            return {place: number for place, number in enumerate(classes) if number != place}
        classes = refined
    return {}


def _start(value: Instruction) -> Hashable:
    return (value.shape, value.attributes["literal"]) if value.opcode == "constant" else value


def _numbered(values: Iterable[Hashable]) -> list[int]:
    """For each value the place of the first that is equal."""
    first: dict[Hashable, int] = {}
    return [first.setdefault(value, place) for place, value in enumerate(values)]
