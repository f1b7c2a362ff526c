"""Folds along lanes that choose the largest or smallest element of a row, and find its place.

Each lane keeps the best element that it has met, and the step of the loop in which it met it: the first or the last of
equal ones, as somebody asks for it. In the end places are made of steps and lanes, and the best of all lanes is known
with its place. So the region of a reduce needs to run once only, with the elements at that place.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from functools import reduce

from xlapy.codegen.ir import I32, I64, KernelBuilder, Value
from xlapy.codegen.registers import Element, register_type
from xlapy.hlo.choices import MOST_PLACES, Choice, Tie
from xlapy.hlo.element_types import ElementType
from xlapy_runtime.records import Record


class _Best(Record):
    """The best element, in each lane, and where equals of it are: the first, and the last if that is asked for."""

    value: Value
    places: tuple[Value, ...]


class Choosing:
    """The fold of a row of keys, of which some `results` are wanted. What is folded twice changes nothing."""

    def __init__(self, k: KernelBuilder, choice: Choice, element_type: ElementType, results: Collection[int]) -> None:
        self._k = k
        self._choice = choice
        self._type = element_type
        is_float = register_type(element_type).is_float
        # Equal keys are the same, but for the signs of zeros. Of NaNs, the first one counts in any case.
        told = [number for number in results if is_float or number != choice.key]
        ties = {choice.ties[number] for number in told or [choice.key]}
        self._ties = tuple(tie for tie in Tie if tie in ties or (is_float and tie is Tie.FIRST))

    def start(self, count: int, lanes: int) -> list[Element]:
        """The state before anything is folded: `count` best elements, and the steps where they were met.

        No element is worse than these; so if they stay, that of the first step in each lane is as good."""
        worst, first = self._k.splat(self._worst, lanes), self._k.const(I32.with_lanes(lanes), 0)
        return [*[worst] * count, *[first] * (count * len(self._ties))]

    def step(self, state: Sequence[Element], elements: Sequence[Element], position: Value) -> list[Element]:
        """The state with one element more for each of the first running ones; `position` is that of the first."""
        k = self._k
        kept = self._unpacked(state)
        for number, element in enumerate(elements):
            assert isinstance(element, Value)
            best = kept[number]
            here = k.splat(k.trunc(position, I32), element.type.lanes)
            taken = [self._takes(tie, best.value, element) for tie in self._ties]
            places = [k.select(take, here, place) for take, place in zip(taken, best.places, strict=True)]
            kept[number] = _Best(k.select(taken[-1], element, best.value), tuple(places))
        return self._packed(kept)

    def places(self, state: Sequence[Element]) -> dict[Tie, Value]:
        """Where in the row the best element is."""
        k = self._k
        kept = self._unpacked(state)
        best_lanes, has_nan = self._best_lanes([best.value for best in kept])
        places = {}
        for number, tie in enumerate(self._ties):
            combine, none = (k.smin, MOST_PLACES - 1) if tie is Tie.FIRST else (k.smax, 0)
            all_places = [self._place(best.places[number], accumulator) for accumulator, best in enumerate(kept)]
            of_best = [k.select(lanes, place, none) for lanes, place in zip(best_lanes, all_places, strict=True)]
            places[tie] = k.zext(k.horizontal(combine, reduce(combine, of_best)), I64)
        if has_nan is not None and Tie.LAST in places:
            places[Tie.LAST] = k.select(has_nan, places[Tie.FIRST], places[Tie.LAST])
        return {tie: places.get(tie, places[self._ties[0]]) for tie in Tie}

    def _best_lanes(self, values: Sequence[Value]) -> tuple[list[Value], Value | None]:
        """Which lanes have the best element of all, or a NaN if there is one; and whether there is, among floats."""
        k = self._k
        best = k.splat(k.horizontal(self._extreme, reduce(self._extreme, values)), values[0].type.lanes)
        lanes = [k.compare("eq", value, best) for value in values]
        if not self._type.is_float:
            return lanes, None
        nans = [k.compare("ne", value, value) for value in values]
        has_nan = k.any_lane(reduce(k.or_, nans))
        return [k.select(has_nan, nan, usual) for nan, usual in zip(nans, lanes, strict=True)], has_nan

    def _place(self, step: Value, accumulator: int) -> Value:
        """The places of the elements that a running one met in some steps."""
        k, lanes = self._k, step.type.lanes
        return k.add(step, k.const_vector(step.type, [accumulator * lanes + lane for lane in range(lanes)]))

    # -- states as lists -----------------------------------------------------------------------------------------------

    def _unpacked(self, state: Sequence[Element]) -> list[_Best]:
        count = len(state) // (1 + len(self._ties))
        values = [value for value in state if isinstance(value, Value)]
        return [_Best(values[number], tuple(values[number + count :: count])) for number in range(count)]

    def _packed(self, kept: Sequence[_Best]) -> list[Element]:
        values: list[Element] = [best.value for best in kept]
        return values + [best.places[number] for number in range(len(self._ties)) for best in kept]

    @property
    def _worst(self) -> Value:
        """What no element is worse than."""
        k, type = self._k, register_type(self._type)
        if type.is_float:
            return k.const(type, -math.inf if self._choice.largest else math.inf)
        low, high = (0, 1) if self._type.kind == "pred" else self._type.integer_range
        return k.const(type, low if self._choice.largest else high)

    # -- comparisons ---------------------------------------------------------------------------------------------------

    def _beats(self, one: Value, other: Value, *, or_equals: bool = False) -> Value:
        """As numbers; a NaN does not."""
        direction = ("g" if self._choice.largest else "l") + ("e" if or_equals else "t")
        return self._k.compare(direction, one, other, signed=self._type.is_signed)

    def _takes(self, tie: Tie, best: Value, element: Value) -> Value:
        """Whether an element is better than the best one before it, which is no NaN then."""
        k = self._k
        takes = k.not_(self._beats(best, element, or_equals=tie is Tie.FIRST))
        return k.and_(takes, k.compare("eq", best, best)) if self._type.is_float else takes

    def _extreme(self, one: Value, other: Value) -> Value:
        """The better one of two numbers."""
        return self._k.select(self._beats(one, other), one, other)
