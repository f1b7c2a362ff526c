"""scipy's LAPACK and BLAS as native functions.

scipy publishes a capsule for each routine, whose name is the C signature. All parameters are pointers: to characters,
to 32-bit integers, to numbers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from xlapy_runtime.alignment import data_address
from xlapy_runtime.capsules import capsule_address, capsule_name
from xlapy_runtime.errors import InternalError, UnsupportedError
from xlapy_runtime.lapack.batches import call_each

Array = np.ndarray

MISSING = "linear algebra beyond triangles is LAPACK's, which comes with scipy: pip install 'xlapy[linalg]'"


@cache
def capsules() -> dict[str, Any]:
    """The routines of BLAS and LAPACK by name. Raises UnsupportedError if scipy is not installed."""
    try:
        from scipy.linalg import cython_blas, cython_lapack
    except ModuleNotFoundError as error:
        raise UnsupportedError(MISSING) from error
    return {**cython_blas.__pyx_capi__, **cython_lapack.__pyx_capi__}


@cache
def native_address(name: str, count: int) -> int:
    """The address of the routine, which takes `count` pointers."""
    capsule = capsules()[name]
    signature = capsule_name(capsule)
    parameters = signature[signature.index("(") + 1 : -1].split(", ")
    if len(parameters) != count or any(parameter in ("long *", "int64_t *") for parameter in parameters):
        raise InternalError(f"{name} of this scipy is {signature}; expected {count} pointers, integers of 32 bits")
    return capsule_address(capsule)


@dataclass(frozen=True, slots=True)
class Shared:
    """Memory that all calls of a batch use, one after the other."""

    array: Array


@dataclass(frozen=True, slots=True)
class Queried:
    """A workspace, and its length behind it, which the routine says itself when it is asked for it."""

    kind: str


WORK = Queried("numbers")
REAL_WORK = Queried("real numbers")
INTEGER_WORK = Queried("integers")


@dataclass(frozen=True, slots=True)
class Batch:
    """`count` problems, at least one, for the routines of one element type, whose names begin with `prefix`."""

    prefix: str
    dtype: np.dtype[Any]
    count: int

    @property
    def is_complex(self) -> bool:
        return self.dtype.kind == "c"

    @property
    def real(self) -> np.dtype[Any]:
        return np.empty(0, self.dtype).real.dtype

    def call(self, routine: str, *arguments: Any) -> None:
        """Calls the routine for each problem of the batch.

        Arguments are letters, integers, workspaces, `Shared` memory, None, and arrays that hold one item for each
        problem, one behind the other in memory."""
        if any(isinstance(argument, Queried) for argument in arguments):
            arguments = (*self._with_workspaces(routine, arguments),)
        numbers = np.array([argument for argument in arguments if isinstance(argument, int)], np.int32)
        places = itertools.count(data_address(numbers), numbers.itemsize)
        pointers = [next(places) if isinstance(argument, int) else _address(argument) for argument in arguments]
        steps = [argument.nbytes // self.count if isinstance(argument, np.ndarray) else 0 for argument in arguments]
        call_each(native_address(self.prefix + routine, len(pointers)), self.count, pointers, steps)

    def integers(self, length: int) -> Shared:
        """Memory for so many integers; one is what routines without results to doubt report to."""
        return Shared(np.zeros(length, np.int32))

    def real_numbers(self, length: int) -> tuple[Shared, ...]:
        """Memory that only the complex variants of a routine want: as many real numbers."""
        return (Shared(np.empty(max(1, length), self.real)),) if self.is_complex else ()

    def _with_workspaces(self, routine: str, arguments: Sequence[Any]) -> list[Any]:
        """The arguments with memory for what is queried."""
        known = (argument if isinstance(argument, _KNOWN) else _Unread(argument is None) for argument in arguments)
        lengths = _workspaces(Batch(self.prefix, self.dtype, 1), routine, tuple(known))
        spaces = {queried: np.empty(length, self.dtype_of(queried)) for queried, length in lengths.items()}
        return _with_spaces(arguments, {queried: (Shared(space), space.size) for queried, space in spaces.items()})

    def dtype_of(self, queried: Queried) -> np.dtype[Any]:
        """Of a workspace."""
        return {WORK: self.dtype, REAL_WORK: self.real, INTEGER_WORK: np.dtype(np.int32)}[queried]


_KNOWN = (int, str, Queried)
"""The arguments by which a routine knows how much memory it wants."""


@dataclass(frozen=True, slots=True)
class _Unread:
    """An array, or a null pointer, which a routine that is asked for workspaces does not look at."""

    is_null: bool


@cache
def _workspaces(batch: Batch, routine: str, known: tuple[Any, ...]) -> Mapping[Queried, int]:
    """How long the workspaces are that a routine says it wants. Asking takes as long as a small problem."""
    answers = {argument: np.zeros(1, batch.dtype_of(argument)) for argument in known if isinstance(argument, Queried)}
    room = Shared(np.zeros(1, np.complex128))  # for whatever it reports
    arguments = [(None if each.is_null else room) if isinstance(each, _Unread) else each for each in known]
    batch.call(
        routine, *_with_spaces(arguments, {queried: (Shared(answer), -1) for queried, answer in answers.items()})
    )
    return {queried: _length(answer[0]) for queried, answer in answers.items()}


def _address(argument: Any) -> int:
    """Where an argument of all problems lies that is no number; 0 for a null pointer."""
    if isinstance(argument, str):
        return data_address(_letters(argument))
    if isinstance(argument, Shared):
        return data_address(argument.array)
    return 0 if argument is None else data_address(argument)


@cache
def _letters(text: str) -> Array:
    return np.frombuffer(text.encode(), np.uint8)


def _with_spaces(arguments: Sequence[Any], spaces: Mapping[Queried, tuple[Shared, int]]) -> list[Any]:
    parts = (spaces[argument] if isinstance(argument, Queried) else (argument,) for argument in arguments)
    return list(itertools.chain.from_iterable(parts))


def _length(answer: Any) -> int:
    """The length of a workspace from the answer of a routine, which may have been rounded down to f32."""
    wanted: int = math.ceil(float(answer.real) * (1 + 2.0**-22))
    return max(1, wanted)


def leading(matrix: Array) -> int:
    """The distance of the columns of a matrix: LAPACK wants at least 1."""
    rows: int = matrix.shape[-2]
    return max(1, rows)


NOT_FINITE = -4
"""What `info` is for a matrix with an infinity or a NaN, over which an iteration might never end."""


def only_finite(matrices: Array, place: Array | None = None) -> tuple[Array, Array]:
    """Which matrices are finite, and a copy of all, of which the others are zero; in `place`, if it is given."""
    finite = np.isfinite(matrices).all((-1, -2))
    copy = matrices_like(matrices) if place is None else place
    np.copyto(copy, matrices)
    copy[~finite] = 0
    return finite, copy


def matrices_like(a: Array) -> Array:
    """Fresh matrices of the same size, column by column."""
    *batch, rows, columns = a.shape
    return np.empty((*batch, columns, rows), a.dtype).swapaxes(-1, -2)
