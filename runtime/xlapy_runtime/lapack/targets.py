"""How a routine becomes a custom call target: arrays laid out as LAPACK wants them, in and out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from xlapy_runtime.alignment import data_address
from xlapy_runtime.custom_calls import BUILT_IN, BuffersAction, Filling
from xlapy_runtime.errors import ArgumentError, UnsupportedError
from xlapy_runtime.lapack.native import Batch, capsules
from xlapy_runtime.lapack.plans import Array, Place, Plan
from xlapy_runtime.lapack.signatures import Signature, Typed
from xlapy_runtime.program import ArraySpec

DTYPES = {"s": np.float32, "d": np.float64, "c": np.complex64, "z": np.complex128}

NAMES: set[str] = set()
"""All targets of this package. Filled at import, then only read."""

Routine = Callable[..., None]
"""`routine(batch, *operands, *results, **entries)`: tells the batch what to do with these places."""


def require() -> None:
    """Raises UnsupportedError if LAPACK is not there."""
    capsules()


def target(name: str, prefixes: str, signature: str, **letters: str) -> Callable[[Routine], Routine]:
    """Registers a routine under JAX's name for it, for the element types with these prefixes.

    `signature` says what it takes and gives, and `letters` what its attributes may be (`signatures`)."""

    def register(routine: Routine) -> Routine:
        for prefix in prefixes:
            register_target(f"lapack_{prefix}{name}_ffi", routine, prefix, signature, letters)
        return routine

    return register


def register_target(
    name: str, routine: Routine, prefixes: str, signature: str, letters: Mapping[str, str] | None = None
) -> None:
    """Registers a routine under a name of its own; the operands' element type is one of the prefixes'."""
    NAMES.add(name)
    types: dict[np.dtype[Any], str] = {np.dtype(DTYPES[prefix]): prefix for prefix in prefixes}
    wanted = Signature(name, signature, _keywords(routine), letters or {})

    def plan(operands: Sequence[Typed], results: Sequence[Typed], entries: Mapping[str, Any]) -> Plan:
        """For arrays of these types and shapes; without steps if there is nothing to do."""
        wanted.check_entries(entries)
        count = wanted.check(operands, results)
        dtype, given = operands[0][0], [*operands, *results]
        if dtype not in types:
            raise UnsupportedError(f"{name} is for matrices of {' or '.join(map(str, types))}, and is given {dtype}")
        if not count:
            return Plan((), len(given), ())
        places = [Place(slot, dims, dtype) for slot, (dtype, dims) in enumerate(given)]
        batch = Batch(types[dtype], dtype, count, len(given))
        try:
            routine(batch, *places, **entries)
        except ArgumentError as error:
            raise error.add_context(subject=name) from None
        return batch.plan()

    def fill(operands: Sequence[Array], results: Sequence[Array], **entries: Any) -> None:
        of_operands, of_results = ([(array.dtype, array.shape) for array in part] for part in (operands, results))
        _run_packed(plan(of_operands, of_results, entries), _rank(of_operands), operands, results)

    def prepare(operands: Sequence[ArraySpec], results: Sequence[ArraySpec], **entries: Any) -> BuffersAction:
        of_operands, of_results = ([(spec.dtype, spec.dims) for spec in part] for part in (operands, results))
        planned, rank = plan(of_operands, of_results, entries), _rank(of_operands)
        if all(_lies_as_wanted(spec, rank) for spec in (*operands, *results)):
            return planned.serve
        return lambda buffers: _run_packed(planned, rank, buffers.operands, buffers.results)

    BUILT_IN.register(name, Filling(fill, prepare))


def _keywords(routine: Callable[..., Any]) -> tuple[str, ...]:
    """The names of what it takes by name only."""
    code = routine.__code__
    return code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]


def _rank(operands: Sequence[Typed]) -> int:
    """Of a batch of matrices."""
    return max(len(dims) for _, dims in operands)


def _run_packed(plan: Plan, rank: int, operands: Sequence[Array], results: Sequence[Array]) -> None:
    """Runs the plan on arrays that lie in any order."""
    given = [_packed(operand, operand.ndim == rank) for operand in operands]
    places = [_place(result, result.ndim == rank) for result in results]
    plan.run([data_address(array) for array in (*given, *places)])
    for result, place in zip(results, places, strict=True):
        if place is not result:
            np.copyto(result, place)


def _lies_as_wanted(spec: ArraySpec, rank: int) -> bool:
    """Whether LAPACK can work on the array where it is."""
    by_row = tuple(reversed(range(len(spec.dims))))
    wanted = (by_row[1], by_row[0], *by_row[2:]) if len(spec.dims) == rank else by_row
    return _long(spec, spec.order or by_row) == _long(spec, wanted)


def _long(spec: ArraySpec, order: Sequence[int]) -> list[int]:
    """The dimensions in this order; those of one element lie anywhere."""
    return [dimension for dimension in order if spec.dims[dimension] != 1]


def _is_packed(array: Array, is_matrix: bool) -> bool:
    return bool((array.swapaxes(-1, -2) if is_matrix else array).flags.c_contiguous)


def _packed(array: Array, is_matrix: bool) -> Array:
    """The array itself, or a copy of it in the order of LAPACK."""
    if _is_packed(array, is_matrix):
        return array
    place = _place(array, is_matrix)
    np.copyto(place, array)
    return place


def _place(array: Array, is_matrix: bool) -> Array:
    """The array itself, if it lies as LAPACK wants it, or else one of its size that does."""
    if _is_packed(array, is_matrix):
        return array
    if not is_matrix:
        return np.empty(array.shape, array.dtype)
    *batch, rows, columns = array.shape
    return np.empty((*batch, columns, rows), array.dtype).swapaxes(-1, -2)
