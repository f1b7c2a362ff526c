"""Donation: which results may take over the memory of parameters, by what a module says.

    input_output_alias={ {0}: (1, {}) }      result {0} may live where parameter 1 lies
    buffer_donor={ (1, {}) }                 some result of the same shape may

Both only allow it. Buffer assignment decides, and makes no copy to bring it about: a result for which no parameter's
memory is free in time gets memory of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from xlapy.hlo.graph import HloModule
from xlapy.hlo.leaves import leaf_at
from xlapy.hlo.shape import Shape

MOST_PAIRS = 1 << 16  # of donors and results of one shape: models have hundreds of both, and programs might thousands


class Donation(NamedTuple):
    """A result that may live in a parameter's memory; both are numbered among all array leaves."""

    result: int
    parameter: int


def possible_donations(module: HloModule) -> list[Donation]:
    """All that the module allows, those that name their result first; never scalars and arrays of run-time size."""
    config = module.config
    if not (config.aliases or config.donors):
        return []
    signature = config.entry_layout or module.signature  # which says in addition how callers lay arrays out
    parameters = [leaf for shape in signature.parameters for leaf in shape.leaves()]
    results = list(signature.result.leaves())
    first = list(accumulate((len(shape.leaves()) for shape in signature.parameters), initial=0))
    pairs = [
        (leaf_at(signature.result, alias.output_index), first[alias.parameter] + leaf_at(shape, alias.parameter_index))
        for alias in config.aliases
        for shape in (signature.parameters[alias.parameter],)
    ]
    pairs = [(result, lender) for result, lender in pairs if results[result] == parameters[lender]]
    donors = [
        first[donor.parameter] + leaf_at(signature.parameters[donor.parameter], donor.parameter_index)
        for donor in config.donors
    ]
    lenders, borrowers = _by_shape(parameters, donors), _by_shape(results, range(len(results)))
    for shape, alike in lenders.items():
        for place, lender in enumerate(alike):
            pairs += [(result, lender) for result in _offered(borrowers.get(shape, []), place, len(alike))]
    result_numbers, parameter_numbers = _array_numbers(results), _array_numbers(parameters)
    movable = {number for number, leaf in enumerate(results) if _is_movable(leaf)}
    return [
        Donation(result_numbers[result], parameter_numbers[parameter])
        for result, parameter in pairs
        if result in movable
    ]


def _by_shape(leaves: Sequence[Shape], numbers: Iterable[int]) -> dict[Shape, list[int]]:
    found: dict[Shape, list[int]] = {}
    for number in numbers:
        found.setdefault(leaves[number], []).append(number)
    return found


def _offered(results: Sequence[int], place: int, donors: int) -> Sequence[int]:
    """The results that one of so many donors of a shape is offered to: all, or where these are too many pairs the ones
    at about its place, for what a program updates comes out in the order in which it goes in."""
    if len(results) * donors <= MOST_PAIRS:
        return results
    width = max(MOST_PAIRS // donors, 1)
    middle = place * len(results) // donors
    begin = max(min(middle - width // 2, len(results) - width), 0)
    return results[begin : begin + width]


def _array_numbers(leaves: list[Shape]) -> list[int]:
    """For each leaf, how many arrays stand before it."""
    return list(accumulate((int(leaf.is_array) for leaf in leaves), initial=0))


def _is_movable(shape: Shape) -> bool:
    return shape.is_array and shape.rank > 0 and shape.is_static and shape.bytes > 0
