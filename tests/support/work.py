"""How much Python runs, counted in lines: the same on every machine, however busy it is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

GROWTH = 2.1
"""What twice the input may cost: work that grows faster than its input shows even where it is still a small part."""


def lines_run(action: Callable[[], Any]) -> int:
    """The lines that `action` executes in this thread, those of every turn of a loop."""
    count = 0

    def line(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return line

    before = sys.gettrace()
    sys.settrace(line)
    try:
        action()
    finally:
        sys.settrace(before)
    return count


def assert_linear(action: Callable[[int], Callable[[], Any]], size: int) -> None:
    """`action(n)` prepares work of size n and returns it; twice the size must not cost much more than twice the
    lines."""
    once, twice = lines_run(action(size)), lines_run(action(2 * size))
    assert twice <= GROWTH * once, f"{once} lines for {size}, {twice} for twice as much"
