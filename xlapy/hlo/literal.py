"""Literals: constant values with a shape, compared by value (bit for bit: NaN equals itself, -0 differs from 0)."""

from __future__ import annotations

from typing import Any

import numpy as np

from xlapy.hlo.element_types import element_type_of
from xlapy.hlo.shape import Shape


class Literal:
    """An array value, read-only, or a tuple of literals. `shape` may carry a layout; `array` is always logical."""

    __slots__ = ("_hash", "array", "elements", "shape")

    shape: Shape
    array: np.ndarray[Any, Any]
    elements: tuple[Literal, ...] | None

    def __init__(self, value: Any, shape: Shape | None = None) -> None:
        """Wraps `value` (array, scalar, or tuple of literals), copying it unless it is read-only already.

        `shape` gives the element type, and the dimensions to which a scalar value is splatted."""
        self._hash: int | None = None
        if isinstance(value, tuple):
            self.elements = tuple(element if isinstance(element, Literal) else Literal(element) for element in value)
            self.shape = Shape.tuple([element.shape for element in self.elements])
            self.array = np.zeros((0,), np.bool_)
            return
        self.elements = None
        array = np.asarray(value, dtype=shape.type.dtype if shape is not None else None)
        array = array.astype(element_type_of(array.dtype).dtype, copy=False)  # native byte order
        if shape is not None and array.shape != shape.dims:
            array = np.broadcast_to(array, shape.dims)
        elif array.flags.writeable:
            array = array.copy()
            array.flags.writeable = False
        self.array = array
        self.shape = shape if shape is not None else Shape.array(array.dtype, array.shape)

    @property
    def is_splat(self) -> bool:
        """All elements are the same bits (an empty array is none)."""
        if self.elements is not None or not self.array.size:
            return False
        if not any(self.array.strides):
            return True
        flat = self.array.reshape(-1)
        first = flat[:_SAMPLE].tobytes()
        is_splat = flat[:1].tobytes() * min(flat.size, _SAMPLE) == first
        return is_splat and (flat.size <= _SAMPLE or _all_same(flat))

    def scalar(self) -> Any:
        """The first element, as a numpy scalar."""
        return self.array.reshape(-1)[0] if self.array.ndim else self.array[()]

    def to_value(self) -> Any:
        """The numpy array, or nested tuple of numpy arrays."""
        return self.array if self.elements is None else tuple(element.to_value() for element in self.elements)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        if self.shape != other.shape:
            return False
        if self.elements is not None:
            return self.elements == other.elements
        return self.array.tobytes() == other.array.tobytes()

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.shape, self.elements if self.elements is not None else _sample(self.array)))
        return self._hash

    def __repr__(self) -> str:
        if self.elements is not None:
            return "(" + ", ".join(map(repr, self.elements)) + ")"
        return f"{self.shape} " + np.array2string(self.array, threshold=16, separator=",").replace("\n", "")


_SAMPLE = 256
"""Elements that mostly tell a large array from one of equal elements, and from others of its shape."""


def _sample(array: np.ndarray[Any, Any]) -> bytes:
    """All elements of a small array; of a large one, which takes milliseconds to copy and to hash, some."""
    return array.flat[:: 1 + array.size // _SAMPLE].tobytes()


def _all_same(flat: np.ndarray[Any, Any]) -> bool:
    raw = np.ascontiguousarray(flat).view(np.uint8).reshape(flat.size, flat.dtype.itemsize)
    return bool((raw == raw[0]).all())
