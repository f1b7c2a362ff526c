"""Folds along lanes that choose the largest or smallest element of a row, and find its place.

Each lane keeps the best element that it has met, and the step of the loop in which it met it: the first or the last of
equal ones, as somebody asks for it. In the end places are made of steps and lanes, and the best of all lanes is known
with its place. So the region of a reduce needs to run once only, with the elements at that place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xlapy.codegen.ir import I32, I64, KernelBuilder, Value
from xlapy.codegen.registers import Element, register_type
from xlapy.hlo.choices import Choice, Tie
from xlapy.hlo.element_types import ElementType


@dataclass(frozen=True, slots=True)
class _Best:
    """The best element, in each lane, and where equals of it are: the first, and the last if that is asked for."""

    value: Value
    places: tuple[Value, ...]


class Choosing:
    """The fold of a row of `size` keys, `lanes` at a time."""

    def __init__(self, k: KernelBuilder, choice: Choice, element_type: ElementType, size: int, lanes: int) -> None:
        self._k = k
        self._choice = choice
        self._type = element_type
        self._size = size
        self._lanes = lanes
        is_float = register_type(element_type).is_float
        others = {tie for number, tie in enumerate(choice.ties) if is_float or number != choice.key}
        # Equal numbers may differ in the signs of zeros only. Of NaNs, the first one counts in any case.
        self._ties = tuple(tie for tie in Tie if tie in others or (is_float and tie is Tie.FIRST))

    def start(self, count: int, lanes: int) -> list[Element]:
        """The state before anything is folded: `count` best elements, and the steps where they were met.

        Each lane will meet an element in the step that stands there; single lanes begin behind the last vector."""
        worst = self._k.splat(self._worst, lanes)
        step = 0 if lanes > 1 else self._size // self._lanes * self._lanes
        steps = self._k.const(I32.with_lanes(lanes), step)
        return [*[worst] * count, *[steps] * (count * len(self._ties))]

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

    def places(self, state: Sequence[Element], rest: Sequence[Element]) -> dict[Tie, Value]:
        """Where in the row the best element is."""
        k = self._k
        vectors = [
            _Best(best.value, tuple(self._place(step, number) for step in best.places))
            for number, best in enumerate(self._unpacked(state))
        ]
        best = vectors[0]
        for other in vectors[1:]:
            best = self._better(best, other)
        best = self._best_lane(best)
        if self._size % self._lanes:
            best = self._better(best, self._unpacked(rest)[0])
        places = {tie: k.zext(place, I64) for tie, place in zip(self._ties, best.places, strict=True)}
        if self._type.is_float and Tie.LAST in places:
            is_number = k.compare("eq", best.value, best.value)
            places[Tie.LAST] = k.select(is_number, places[Tie.LAST], places[Tie.FIRST])
        only = places[self._ties[0]]
        return {tie: places.get(tie, only) for tie in Tie}

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

    def _better(self, one: _Best, other: _Best) -> _Best:
        """The better one, whichever comes first; of equals, the first and the last place."""
        k = self._k
        first, second = self._is_better(one.value, other.value), self._is_better(other.value, one.value)
        places = []
        for tie, a, b in zip(self._ties, one.places, other.places, strict=True):
            shared = k.smin(a, b) if tie is Tie.FIRST else k.smax(a, b)
            places.append(k.select(first, a, k.select(second, b, shared)))
        return _Best(k.select(second, other.value, one.value), tuple(places))

    def _is_better(self, one: Value, other: Value) -> Value:
        k = self._k
        beats = self._beats(one, other)
        if not self._type.is_float:
            return beats
        return k.or_(beats, k.and_(k.compare("ne", one, one), k.compare("eq", other, other)))

    def _best_lane(self, best: _Best) -> _Best:
        """The best of all lanes, by halves."""
        lanes = best.value.type.lanes
        while lanes > 1:
            lanes //= 2
            best = self._better(self._part(best, range(lanes)), self._part(best, range(lanes, 2 * lanes)))
        return best

    def _part(self, best: _Best, lanes: range) -> _Best:
        k = self._k
        return _Best(k.shuffle(best.value, None, lanes), tuple(k.shuffle(place, None, lanes) for place in best.places))

    def _place(self, step: Value, number: int) -> Value:
        """The places of the elements that the running element `number` met in some steps."""
        k, lanes = self._k, step.type.lanes
        return k.add(step, k.const_vector(step.type, [number * lanes + lane for lane in range(lanes)]))
