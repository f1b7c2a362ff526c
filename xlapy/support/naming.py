"""Names that nothing else has."""

from __future__ import annotations

from collections.abc import Iterable


class Names:
    """Gives out names, each once. It remembers how far it has counted, so that many equal ones cost no more each."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._counts: dict[str, int] = {}

    def unused(self, wanted: str) -> str:
        """The name, or the first of `NAME.1`, `NAME.2` ... that is not taken. It is taken from then on."""
        name, number = wanted, self._counts.get(wanted, 0)
        while name in self._taken:
            number += 1
            name = f"{wanted}.{number}"
        self._counts[wanted] = number
        self._taken.add(name)
        return name
