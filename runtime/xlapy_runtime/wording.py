"""Words that messages of all parts are made of."""

from __future__ import annotations


def counted(count: float, noun: str, several: str = "") -> str:
    """1 kernel, 2 kernels, 1,000 kernels. `several` is the plural of a noun to which an s does not make it."""
    return f"{count:,.0f} {noun if count == 1 else several or noun + 's'}"


def kind_of(value: object) -> str:
    """`an int`, `a list`: what a value is."""
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in _VOWELS else 'a'} {name}"


_VOWELS = frozenset("aeiou")
