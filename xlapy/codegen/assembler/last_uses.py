"""Where values are read for the last time, so that others may take their places."""

from __future__ import annotations

import re
from collections.abc import Sequence

ELSEWHERE = -1


def last_uses(body: Sequence[str]) -> dict[str, int]:
    """By values, the line of the function where they are read for the last time; `ELSEWHERE` if another block reads
    them than that which makes them, or gives them to it. What is compared, and what others are a known distance from,
    is read with those.

    A place that is free again in one block may be that of a value of any later one: blocks before the one that makes it
    run again only before that one does."""
    blocks: dict[str, int] = {}
    last: dict[str, int] = {}
    block = 0
    for number, line in enumerate(body):
        if not line.startswith("  "):
            block = number
            continue
        made, equals, rest = line.partition(" = ")
        if not equals:
            made, rest = "", line
        is_kept = rest.startswith("icmp")
        if rest.startswith("getelementptr"):
            is_kept = _KNOWN_DISTANCE.match(rest) is not None
        for name in NAME.findall(rest):
            is_near = not is_kept and blocks.get(name) == block and last.get(name) != ELSEWHERE
            last[name] = number if is_near else ELSEWHERE
        if made and not rest.startswith("phi "):
            blocks[made[2:]] = block
    return last


NAME = re.compile(r"%[\w.]+")
_KNOWN_DISTANCE = re.compile(r"getelementptr i8, ptr \S+ i64 -?\d+$")
