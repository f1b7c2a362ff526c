"""Records are what frozen dataclasses with slots are."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest

from xlapy.options import CompileOptions
from xlapy_runtime.records import Record, field, replaced, values_of


class Place(Record):
    row: int
    column: int = 7
    notes: dict[str, int] = field(default_factory=dict)


class Named(Place):
    name: str = ""

    def __post_init__(self) -> None:
        if self.name == "nobody":
            raise ValueError("nobody is no name")


class Thing(Record, eq=False):
    size: int


class Nothing(Record):
    """Has no fields."""


@dataclasses.dataclass(frozen=True, slots=True)
class Twin:
    row: int
    column: int = 7


def test_fields_are_annotations_in_order() -> None:
    assert Place.__match_args__ == ("row", "column", "notes")
    assert values_of(Place(1)) == {"row": 1, "column": 7, "notes": {}}
    assert Place(1, 2) == Place(column=2, row=1) == Place(1, column=2)
    assert repr(Place(1)) == "Place(row=1, column=7, notes={})"
    match Place(3, 4):
        case Place(row, column):
            assert (row, column) == (3, 4)


def test_a_factory_makes_each_its_own() -> None:
    assert Place(1).notes is not Place(1).notes


@pytest.mark.parametrize("values, named", [((), {}), ((1, 2, {}, 4), {}), ((1,), {"row": 1}), ((1,), {"size": 1})])
def test_what_does_not_fit_is_refused(values: tuple[Any, ...], named: dict[str, Any]) -> None:
    make: Any = Place
    with pytest.raises(TypeError, match="Place"):
        make(*values, **named)


def test_records_never_change() -> None:
    place: Any = Place(1)
    for change in (lambda: setattr(place, "row", 2), lambda: delattr(place, "row"), lambda: setattr(place, "size", 2)):
        with pytest.raises(AttributeError):
            change()
    assert replaced(place, row=2) == Place(2) and place.row == 1
    assert not hasattr(place, "__dict__")


def test_values_are_compared_and_hashed() -> None:
    assert hash(Nothing()) == hash(Nothing()) and Nothing() == Nothing()
    assert Place(1, 2) != Place(1, 3) and Place(1) != Named(1) and Place(1) != (1, 7, {})
    with pytest.raises(TypeError, match="unhashable"):
        hash(Place(1))
    assert Thing(1) != Thing(1) and len({Thing(1), Thing(1)}) == 2


def test_fields_are_inherited() -> None:
    assert Named(1, name="corner") == Named(1, 7, {}, "corner")
    with pytest.raises(ValueError, match="no name"):
        Named(1, name="nobody")


def test_copies_are_equal() -> None:
    place = Named(1, notes={"a": 1}, name="here")
    for other in (pickle.loads(pickle.dumps(place)), copy.copy(place), copy.deepcopy(place)):
        assert other == place and type(other) is Named
    assert copy.deepcopy(place).notes is not place.notes


def test_dataclasses_take_them_for_their_own() -> None:
    place = Place(1)
    assert dataclasses.is_dataclass(place) and dataclasses.is_dataclass(Thing)
    assert dataclasses.replace(place, column=3) == Place(1, 3)
    assert dataclasses.asdict(place) == {"row": 1, "column": 7, "notes": {}}
    assert [(item.name, item.default) for item in dataclasses.fields(Place)][:2] == [
        (item.name, item.default) for item in dataclasses.fields(Twin)
    ]
    assert [item.name for item in dataclasses.fields(Named)] == ["row", "column", "notes", "name"]
    assert dataclasses.replace(CompileOptions(), num_threads=2).num_threads == 2
