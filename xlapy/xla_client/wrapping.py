"""Objects in the old interface's manner around xlapy's own, and the way back: the op functions take either."""

from __future__ import annotations

from typing import Any

from xlapy.xla_client.types import PrimitiveType


class Wrapper:
    """An object of the old interface that stands for one of xlapy's."""

    __slots__ = ()

    def unwrapped(self) -> Any:
        """What xlapy's own functions take instead of this."""
        raise TypeError(f"{type(self).__name__} stands for nothing of xlapy's")


def unwrapped(value: Any) -> Any:
    """`value` as xlapy's own functions take it; lists and tuples element by element, anything else as it is."""
    if isinstance(value, Wrapper):
        return value.unwrapped()
    if isinstance(value, PrimitiveType):
        return value.element_type
    if type(value) in (list, tuple):
        return type(value)(unwrapped(element) for element in value)
    return value
