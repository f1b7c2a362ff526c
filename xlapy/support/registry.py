"""Registries: one function per op for each concern (evaluation, native code, text ...).

A registry knows which names exist, refuses unknown and repeated ones, and can list what it still lacks, so that "nobody
lowers `sort` yet" is a failing test and not a user's surprise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from xlapy.support.errors import InternalError

Entry = TypeVar("Entry")


class Registry(Generic[Entry]):
    """Entries by name. `known` (usually the op table) limits the names; `None` allows any."""

    def __init__(self, concern: str, known: Mapping[str, Any] | None = None) -> None:
        self.concern = concern
        self._known = known
        self._entries: dict[str, Entry] = {}

    def register(self, *names: str) -> Callable[[Entry], Entry]:
        """Decorator: the entry serves each of `names`."""

        def add(entry: Entry) -> Entry:
            for name in names:
                self.add(name, entry)
            return entry

        return add

    def add(self, name: str, entry: Entry) -> None:
        if self._known is not None and name not in self._known:
            raise InternalError(f"{self.concern}: there is no op named {name!r}")
        if name in self._entries:
            raise InternalError(f"{self.concern}: {name!r} is registered twice")
        self._entries[name] = entry

    def get(self, name: str) -> Entry | None:
        return self._entries.get(name)

    def __getitem__(self, name: str) -> Entry:
        try:
            return self._entries[name]
        except KeyError:
            raise InternalError(f"{self.concern}: nothing is registered for {name!r}") from None

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def missing(self) -> list[str]:
        """The known names that have no entry, in the order of the table."""
        return [name for name in self._known or () if name not in self._entries]

    def __repr__(self) -> str:
        return f"Registry({self.concern!r}, {len(self)} entries)"
