"""JSON that was written by `json.dumps`, read without that package: its modules compile regular expressions when they
are loaded, which takes 1 ms. What parses JSON there is a C function, and that is all that is needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xlapy_runtime.late import late


def read_json(text: str) -> Any:
    """The value that the text says. Raises ValueError for text that is not exactly one value."""
    try:
        value, end = _SCAN(text, 0)
    except StopIteration:
        value, end = None, 0
    if not end or end != len(text):
        raise ValueError("this is not JSON")
    return value


class _Settings:
    """What the parser asks for, as `json.loads` has it."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def _scanner() -> Callable[[str, int], tuple[Any, int]]:
    """What finds the value that begins at a place, and where it ends; without the C function, as `json` has it."""
    scan: Callable[[str, int], tuple[Any, int]]
    try:
        scan = late("_json").make_scanner(_Settings)
    except (ImportError, AttributeError):
        scan = late("json").JSONDecoder().scan_once
    return scan


_SCAN = _scanner()
