"""Regions of reduces that choose, as text."""

from __future__ import annotations


def region(name: str, body: str, key: str, place: str) -> str:
    """A computation of the keys `a` and `b` and their places `i` and `j`. The `body` may use how they compare."""
    return f"""{name} {{
        a = {key}[] parameter(0)
        i = {place}[] parameter(1)
        b = {key}[] parameter(2)
        j = {place}[] parameter(3)
        gt = pred[] compare(a, b), direction=GT
        ge = pred[] compare(a, b), direction=GE
        lt = pred[] compare(a, b), direction=LT
        eq = pred[] compare(a, b), direction=EQ
        nan = pred[] compare(a, a), direction=NE
        before = pred[] compare(i, j), direction=LT
        {body}
      }}"""
