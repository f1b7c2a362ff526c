"""Words that messages of all parts are made of."""

from __future__ import annotations


def counted(count: float, noun: str) -> str:
    """1 kernel, 2 kernels, 1,000 kernels: for nouns that take an s."""
    return f"{count:,.0f} {noun}" + "s" * (count != 1)
