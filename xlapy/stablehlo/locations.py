"""Locations: `loc("name"(callsite("file.py":3:4 at ...)))` and `#loc` aliases, as what an instruction remembers.

Only two things are taken from a location: the first name, and the first place in a file. Callees stand before callers
in the text, so the first place is the innermost.
"""

from __future__ import annotations

from collections.abc import Mapping

from xlapy.hlo.attributes import OpMetadata
from xlapy.hlo.graph import NO_METADATA
from xlapy.hlo.text.backend_config import mlir_string

_MAX_DIGITS = 9  # of a line number


class Locations:
    """The metadata of locations, each worked out once."""

    def __init__(self, aliases: Mapping[str, tuple[str, ...]]) -> None:
        self._aliases = aliases
        self._known: dict[tuple[str, ...], OpMetadata] = {(): NO_METADATA}

    def metadata(self, location: tuple[str, ...]) -> OpMetadata:
        known = self._known.get(location)
        if known is None:
            known = self._known[location] = self._read(location)
        return known

    def _read(self, location: tuple[str, ...]) -> OpMetadata:
        """Goes through the tokens, and into each alias once, until name and place are found."""
        name = file = ""
        line = 0
        entered: set[str] = set()
        stack = [(location, 0)]
        while stack and not (file and name):
            tokens, index = stack.pop()
            if index == len(tokens):
                continue
            token = tokens[index]
            stack.append((tokens, index + 1))
            if token.startswith("#") and token not in entered:
                entered.add(token)
                stack.append((self._aliases.get(token, ()), 0))
            elif token.startswith('"'):
                colon, number = (*tokens[index + 1 : index + 3], "", "")[:2]
                if colon != ":":
                    name = name or mlir_string(token)
                elif not file and number.isdecimal() and len(number) <= _MAX_DIGITS:
                    file, line = mlir_string(token), int(number)
        return OpMetadata(op_name=name, source_file=file, source_line=line) if name or file else NO_METADATA
