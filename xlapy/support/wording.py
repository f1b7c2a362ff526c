"""Words of messages. Those that the runtime says, too, live with it, as it stands alone."""

from __future__ import annotations

from xlapy_runtime.wording import counted

LONGEST_EXCERPT = 60
"""Characters of somebody's text that a message quotes: it may be a constant of a million."""


def excerpt(text: str) -> str:
    """A text as a message quotes it; dots stand for the rest of a long one."""
    return text if len(text) <= LONGEST_EXCERPT else text[: LONGEST_EXCERPT - 3] + "..."


__all__ = ["counted", "excerpt"]
