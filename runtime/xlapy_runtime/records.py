"""Records: plain data by name, made without writing code for it.

    class Place(Record):
        row: int
        column: int = 0

A record is what a frozen dataclass with slots is: its annotations are its fields, in order, and what `__init__` takes;
it is compared and hashed by value, and never changes. `dataclasses` writes, compiles and runs source for each class,
which takes 0.3 to 1.2 ms, where most modules take 0.1 ms to load: too long for classes that every process makes, and of
which it then has a handful of objects. All records share these methods instead.

Modules with records say `from __future__ import annotations`: only the names of fields count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from operator import attrgetter, call, itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar, dataclass_transform

from xlapy_runtime.late import late

if TYPE_CHECKING:
    import dataclasses

Value = TypeVar("Value")


class _Fresh:
    """Stands for a default that each record gets a new one of."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


def field(*, default_factory: Callable[[], Value]) -> Value:
    """The default of a field that `default_factory` makes, anew for each record."""
    fresh: Any = _Fresh(default_factory)
    return fresh  # type: ignore[no-any-return]


class _DataclassFields:
    """Lets `dataclasses` take records for its own, so that its `replace`, `asdict` and `fields` work: what it looks
    for is made when it is first asked for."""

    def __get__(self, record: object, kind: _RecordType) -> dict[str, dataclasses.Field[Any]]:
        library = late("dataclasses")
        rows: list[Any] = []
        for name in kind.__match_args__:
            default = kind._defaults.get(name, library.MISSING)
            is_fresh = isinstance(default, _Fresh)
            rows.append(
                (name, Any, library.field(**{"default_factory": default.make} if is_fresh else {"default": default}))
            )
        known: dict[str, dataclasses.Field[Any]] = library.make_dataclass(kind.__name__, rows).__dataclass_fields__
        type.__setattr__(kind, "__dataclass_fields__", known)
        return known


class _RecordType(type):
    """Makes fields of annotations."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], *, eq: bool = True) -> _RecordType:
        own = tuple(
            name for name, kind in namespace.get("__annotations__", {}).items() if not kind.startswith("ClassVar")
        )
        inherited = [base for base in bases if isinstance(base, _RecordType)]
        defaults = {name: value for base in inherited for name, value in base._defaults.items()}
        defaults |= {name: namespace.pop(name) for name in own if name in namespace}
        names = (*(name for base in inherited for name in base.__match_args__), *own)
        if not eq:
            namespace |= {"__eq__": object.__eq__, "__hash__": object.__hash__}
        namespace |= {"__slots__": own, "__match_args__": names, "__dataclass_fields__": _DataclassFields()}
        made = super().__new__(mcls, name, bases, namespace)
        made._defaults = defaults
        made._is_checked = bool(bases) and made.__post_init__ is not Record.__post_init__
        made._setters = tuple(getattr(made, name).__set__ for name in names)
        made._content = attrgetter(*names) if names else repr
        made._by_name = itemgetter(*names) if names else repr
        return made

    __match_args__: tuple[str, ...]
    __post_init__: Callable[[Any], None]
    _is_checked: bool
    _hint_for_field: Callable[[str], str]
    _defaults: dict[str, Any]
    _setters: tuple[Callable[[Any, Any], None], ...]
    _content: Callable[[Any], Any]
    _by_name: Callable[[Any], Any]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Record(metaclass=_RecordType):
    """The base of all records. With `eq=False` behind it, a class compares by identity."""

    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    def __init__(self, *values: Any, **named: Any) -> None:
        kind = type(self)
        complete = values if len(values) == len(kind.__match_args__) and not named else _complete(kind, values, named)
        any(map(call, kind._setters, repeat(self), complete))  # sets all fields, each of which answers None
        if kind._is_checked:
            self.__post_init__()

    def __post_init__(self) -> None:
        """What is left to do, or to check, once all fields are there."""

    @classmethod
    def _hint_for_field(cls, name: str) -> str:
        """What may have been meant by a name that no field has, to be put behind an error; or the empty string."""
        near = late("difflib").get_close_matches(name, cls.__match_args__, n=1)
        return f"; did you mean {near[0]}?" if near else ""

    def __eq__(self, other: object) -> bool:
        kind = type(self)
        if type(other) is not kind:
            return NotImplemented
        return bool(kind._content(self) == kind._content(other))

    def __hash__(self) -> int:
        return hash(type(self)._content(self))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in values_of(self).items())
        return f"{type(self).__qualname__}({shown})"

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return type(self), tuple(values_of(self).values())

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be changed: make another record, with `replaced`")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be removed")

    def __replace__(self: SomeRecord, **changes: Any) -> SomeRecord:
        return replaced(self, **changes)


SomeRecord = TypeVar("SomeRecord", bound=Record)


def _complete(kind: _RecordType, values: tuple[Any, ...], named: dict[str, Any]) -> Sequence[Any]:
    """The values of all fields, in order. Where each is given by its name, which is how most records are made, a C
    function puts them in order."""
    if not values and 1 < len(named) == len(kind.__match_args__):
        try:
            in_order: tuple[Any, ...] = kind._by_name(named)
        except KeyError:
            pass  # some are not fields
        else:
            return in_order
    return _completed(kind, values, named)


def _completed(kind: _RecordType, values: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
    """The values of all fields, in order; some were given by name, and some not at all."""
    names, completed = kind.__match_args__, list(values)
    for name in names[len(values) :]:
        if name in named:
            completed.append(named.pop(name))
        elif name in kind._defaults:
            default = kind._defaults[name]
            completed.append(default.make() if isinstance(default, _Fresh) else default)
        else:
            raise TypeError(f"{kind.__name__} cannot be made without {name}")
    if named or len(completed) > len(names):
        wrong = ", ".join(named) or f"{len(values)} values"
        hint = kind._hint_for_field(next(iter(named), ""))
        raise TypeError(f"{kind.__name__} has the fields {', '.join(names)}, and was given {wrong}{hint}")
    return completed


def values_of(record: Record) -> dict[str, Any]:
    """The values of a record by the names of its fields."""
    return {name: getattr(record, name) for name in type(record).__match_args__}


def replaced(record: SomeRecord, **changes: Any) -> SomeRecord:
    """The record with some fields changed."""
    return type(record)(**{**values_of(record), **changes})


def changed_fields(record: Record) -> dict[str, Any]:
    """The values that are not those, or not certainly, of a record that was given none."""
    usual = type(record)._defaults
    return {name: value for name, value in values_of(record).items() if value is not usual.get(name, _Fresh)}
