"""Operations that are a line of their own, as most are: what their text says, and what it is about.

    %3 = stablehlo.add %1, %2 : tensor<4xf32> loc(#loc7)

says `_ = stablehlo.add _, _ : tensor<4xf32>` about `%3`, `%1` and `%2`, at `#loc7`. Programs say few things again and
again: who has read a line knows what all others mean that say the same.
"""

from __future__ import annotations

import re

_VALUE = re.compile(r"(%[\w.$-]++(?:#\d++)?)")
_ALIAS = re.compile(r"#[\w.$-]++\)")
_LOCATION = " loc("
_GAP = "\n"  # which no line has


class NotALineError(Exception):
    """What seemed to be a line with one operation is more or less than that; or lines say too many different things.

    Then it is the tokens that must be read."""


def split_line(line: str) -> tuple[str, list[str], str]:
    """What a line says, the names of the values that it is about, and the location behind `loc(`, if there is one.

    Strings may look like names and locations: whoever has read the line knows better."""
    operation, behind, location = line.rpartition(_LOCATION)
    parts = _VALUE.split(operation if behind else line)
    return _GAP.join(parts[::2]), parts[1::2], location if behind else ""


def is_alias(location: str) -> bool:
    """The location is an alias, `#loc3)`."""
    return location[:1] == "#" and _ALIAS.fullmatch(location) is not None
