"""Numbers as people read them."""

from __future__ import annotations

from collections.abc import Sequence

_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_BYTES = ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB"))
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))


def amount(count: float) -> str:
    """1.5 M; nothing for none."""
    for scale, prefix in _PREFIXES:
        if count >= scale:
            return f"{count / scale:.3g} {prefix}"
    return f"{count:.3g}" if count else "-"


def bytes_text(count: float) -> str:
    """1.5 KB, in powers of 1024."""
    for scale, unit in _BYTES:
        if count >= scale:
            return f"{count / scale:,.1f} {unit}"
    return f"{count:.0f} B"


def time_text(seconds: float) -> str:
    """1.50 ms; < 1 ns for what takes less."""
    for scale, unit in _SECONDS:
        if seconds >= scale:
            return f"{seconds / scale:.2f} {unit}"
    if seconds >= 0.5e-9:
        return f"{seconds * 1e9:.0f} ns"
    return "< 1 ns" if seconds > 0 else "0"


def number(count: float) -> str:
    """A count that may be large."""
    return f"{count:,.0f}"


def and_more(count: int) -> str:
    """What is said behind a list of which `count` are left out."""
    return f" and {number(count)} more" if count > 0 else ""


def few(names: Sequence[str], shown: int) -> str:
    """a, b and 7 more: the first `shown` names."""
    return ", ".join(names[:shown]) + and_more(len(names) - shown)
