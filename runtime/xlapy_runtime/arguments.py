"""What callers pass in, and what they get: checking, padding, nesting.

An array of the right element type and dimensions is borrowed as it is; strides and byte order are mended by a copy;
anything else is an `ArgumentError` that names the parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np

from xlapy_runtime.buffers import padded
from xlapy_runtime.errors import ArgumentError, OutOfMemoryError
from xlapy_runtime.given import array_of, is_python_scalar, is_taken, represented, spelled
from xlapy_runtime.program import ArraySpec, Program, TokenSpec, Tree, Value, array_leaves, tree_text
from xlapy_runtime.wording import counted


class ParameterList:
    """The parameters of a program, as the leaves that native code sees."""

    def __init__(self, program: Program) -> None:
        self._name = program.name
        self._trees = program.parameters
        self._titles = [_title(program, index) for index in range(len(program.parameters))]
        self.leaves: list[ArraySpec] = []
        self._leaf_titles: list[str] = []
        for title, tree in zip(self._titles, self._trees, strict=True):
            for path, spec in array_leaves(tree):
                self.leaves.append(spec)
                self._leaf_titles.append(title + path)
        self._is_flat = all(isinstance(tree, ArraySpec) for tree in self._trees)

    def flat(self, arguments: Sequence[Value]) -> list[Value]:
        """The array leaves of nested arguments."""
        if len(arguments) != len(self._trees):
            wanted = [f"{title}: {tree_text(tree)}" for title, tree in zip(self._titles, self._trees, strict=True)]
            raise ArgumentError(
                f"{self._name} takes {counted(len(self._trees), 'argument')}, got {len(arguments)}; it wants "
                f"({', '.join(wanted)})"
            )
        if self._is_flat:
            return list(arguments)
        leaves: list[Value] = []
        for title, tree, argument in zip(self._titles, self._trees, arguments, strict=True):
            _flatten_value(title, tree, argument, leaves)
        return leaves

    def checked(self, leaves: Sequence[Value]) -> list[np.ndarray]:
        """The buffers of all leaves: each an array that native code may read, sizes behind those that need them."""
        if len(leaves) != len(self.leaves):
            raise ArgumentError(f"{self._name} takes {counted(len(self.leaves), 'array')}, got {len(leaves)}")
        arrays: list[np.ndarray] = []
        for spec, value, title in zip(self.leaves, leaves, self._leaf_titles, strict=True):
            array = checked_array(spec, value, title)
            if spec.dynamic_dims:
                data, sizes = padded(array, spec)
                arrays += [data, *sizes]
            else:
                arrays.append(array)
        return arrays


def checked_array(spec: ArraySpec, value: Value, title: str) -> np.ndarray:
    """`value` as an array of `spec`, itself if it is one already; `title` names it in errors."""
    if type(value) is np.ndarray and value.dtype == spec.dtype and value.shape == spec.dims:
        return value if value.flags.c_contiguous and value.dtype.isnative else _mended(value, spec, title)
    if is_python_scalar(value):
        return _scalar(spec, value, title)
    if not callable(getattr(value, "__array__", None)):
        maker = _maker_of_array(value, spec)
        hint = f"; {maker} makes an array of it" if maker else ""
        _refuse(title, spec, f"{type(value).__name__}{hint}")
    array = array_of(value, title)
    dtype, is_admitted = array.dtype.newbyteorder("="), spec.admits(array.shape)
    if dtype != spec.dtype or not is_admitted:
        hint = f"; .astype({spec.dtype.name!r}) converts it" if is_admitted else ""
        _refuse(title, spec, f"{ArraySpec(dtype, array.shape)}{hint}")
    return _mended(array, spec, title)


def _maker_of_array(value: Value, spec: ArraySpec) -> str:
    """What of numpy's makes an array of `value`, which is none and does not make one of itself."""
    if isinstance(value, list | tuple | memoryview) or hasattr(value, "__array_interface__"):
        return f"np.asarray(it, {spec.dtype.name!r})"
    return "np.from_dlpack(it)" if hasattr(value, "__dlpack__") else ""


def _mended(array: np.ndarray, spec: ArraySpec, title: str) -> np.ndarray:
    """The same values, contiguous and in native byte order."""
    try:
        return np.asarray(array, dtype=spec.dtype, order="C")
    except MemoryError:
        raise OutOfMemoryError(
            f"{title}: no memory for a copy of {array.nbytes:,} bytes in row-major order, {spec}"
        ) from None


def _scalar(spec: ArraySpec, value: complex, title: str) -> np.ndarray:
    """A Python scalar for a parameter of rank 0, if the element type has its value."""
    if spec.dims:
        _refuse(title, spec, f"the Python scalar {spelled(value)}")
    if not is_taken(value, spec.dtype):
        _refuse(title, spec, f"the Python {type(value).__name__} {spelled(value)}")
    array = represented(value, spec.dtype)
    if array is None:
        _refuse(title, spec, f"{spelled(value)}, which it cannot represent")
    return array


def _flatten_value(title: str, tree: Tree, value: Value, leaves: list[Value]) -> None:
    if isinstance(tree, ArraySpec):
        leaves.append(value)
    elif isinstance(tree, tuple):
        if not isinstance(value, (tuple, list)):
            raise ArgumentError(f"{title}: expected the tuple {tree_text(tree)}, got {type(value).__name__}")
        if len(value) != len(tree):
            raise ArgumentError(f"{title}: expected {tree_text(tree)}, got a tuple of {len(value)}")
        for index, (part, inner) in enumerate(zip(tree, value, strict=True)):
            _flatten_value(f"{title}[{index}]", part, inner, leaves)
    elif value is not None and isinstance(tree, TokenSpec):
        raise ArgumentError(f"{title}: expected None for a token, got {type(value).__name__}")


def _title(program: Program, index: int) -> str:
    names = program.parameter_names
    return f"parameter {index}" + (f" ({names[index]})" if index < len(names) and names[index] else "")


def _refuse(title: str, spec: ArraySpec, got: str) -> NoReturn:
    raise ArgumentError(f"{title}: expected {spec}, got {got}")


Allocate = Callable[[tuple[int, ...], Any], np.ndarray]
"""Makes the memory of a result: `np.empty`, or a pool's."""


def allocate_results(
    specs: Sequence[ArraySpec], allocate: Allocate, given: Mapping[int, np.ndarray] = MappingProxyType({})
) -> list[np.ndarray]:
    """Buffers for result leaves, sizes behind those that need them. They are fresh, unless `given` has one of the
    number."""
    arrays: list[np.ndarray] = []
    for spec in specs:
        lent = given.get(len(arrays))
        arrays.append(allocate(spec.dims, spec.dtype) if lent is None else lent)
        arrays += [np.zeros((), np.int32) for _ in spec.dynamic_dims]
    return arrays
