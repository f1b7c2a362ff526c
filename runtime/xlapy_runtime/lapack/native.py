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
from xlapy_runtime.lapack.plans import Array, Call, Clear, Copy, KeepFinite, Place, Plan, ReportOthers, Step, Unpack

MISSING = (
    "linear algebra beyond triangles and small systems is LAPACK's, which comes with scipy: pip install 'xlapy[linalg]'"
)


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

    place: Place


@dataclass(frozen=True, slots=True)
class Queried:
    """A workspace, and its length behind it, which the routine says itself when it is asked for it."""

    kind: str


WORK = Queried("numbers")
REAL_WORK = Queried("real numbers")
INTEGER_WORK = Queried("integers")

INTEGER = np.dtype(np.int32)


class Batch:
    """What is to be done with `count` problems, at least one, by the routines of one element type, whose names begin
    with `prefix`: the steps of a plan over `given` arrays, the operands and then the results."""

    def __init__(self, prefix: str, dtype: np.dtype[Any], count: int, num_given: int = 0) -> None:
        self.prefix = prefix
        self.dtype = dtype
        self.count = count
        self._num_given = num_given
        self._steps: list[Step] = []
        self._contents: list[Array] = []

    @property
    def is_complex(self) -> bool:
        return self.dtype.kind == "c"

    @property
    def real(self) -> np.dtype[Any]:
        return np.empty(0, self.dtype).real.dtype

    def plan(self) -> Plan:
        return Plan(tuple(self._steps), self._num_given, tuple(self._contents))

    def copy(self, source: Place, to: Place) -> None:
        """All of an array to another of its size."""
        self._steps.append(Copy(source, to, to.nbytes))

    def rotate(self, source: Place, to: Place, by: int) -> None:
        """The elements along the last dimension to another array: so far on, and round the end."""
        length, item = source.shape[-1], source.dtype.itemsize
        rows, row = math.prod(source.shape[:-1]), length * item
        for first, end in ((0, by % length), (by % length, length)) if length else ():
            parts = source.moved((first - by) % length * item), to.moved(first * item)
            self._steps.append(Copy(*parts, (end - first) * item, rows, row, row))

    def take_column(self, matrices: Place, index: int, vectors: Place) -> None:
        """A column of each matrix."""
        nbytes, step = _column_sizes(matrices)
        self._steps.append(Copy(matrices.moved(index * nbytes), vectors, nbytes, self.count, step, nbytes))

    def give_column(self, vectors: Place, matrices: Place, index: int) -> None:
        """The other way round."""
        nbytes, step = _column_sizes(matrices)
        self._steps.append(Copy(vectors, matrices.moved(index * nbytes), nbytes, self.count, nbytes, step))

    def clear(self, place: Place) -> None:
        """Zeros, for what a routine leaves as it is."""
        self._steps.append(Clear(place))

    def unpack(self, pairs: Place, imaginary_parts: Place, vectors: Place) -> None:
        """Eigenvectors of real matrices, as complex numbers."""
        self._steps.append(Unpack(pairs, imaginary_parts, vectors))

    def call(self, routine: str, *arguments: Any) -> None:
        """Calls the routine for each problem of the batch.

        Arguments are letters, integers, workspaces, `Shared` memory, None, and arrays that hold one item for each
        problem, one behind the other in memory."""
        if any(isinstance(argument, Queried) for argument in arguments):
            arguments = (*self._with_workspaces(routine, arguments),)
        numbers = np.array([argument for argument in arguments if isinstance(argument, int)], INTEGER)
        letters = [_letters(argument) for argument in arguments if isinstance(argument, str)]
        at_numbers = itertools.count(data_address(numbers), numbers.itemsize)
        at_letters = iter(map(data_address, letters))
        fixed, steps, places = [], [], []
        for position, argument in enumerate(arguments):
            place = argument.place if isinstance(argument, Shared) else argument
            if isinstance(place, Place):
                places.append((position, place))
            steps.append(argument.nbytes // self.count if isinstance(argument, Place) else 0)
            is_number, is_letter = isinstance(argument, int), isinstance(argument, str)
            fixed.append(next(at_numbers) if is_number else next(at_letters) if is_letter else 0)
        address = native_address(self.prefix + routine, len(fixed))
        self._steps.append(Call(address, self.count, (*fixed,), (*steps,), (*places,), (numbers, *letters)))

    def room(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Place:
        """An array of the plan's own. What it holds at first is no more than that it may be read."""
        return self._own(np.zeros(tuple(shape), dtype), tuple(shape))

    def matrices_like(self, a: Place) -> Place:
        """Matrices of the same size, column by column."""
        return self.room(a.shape, a.dtype)

    def constant(self, number: int) -> Shared:
        """A number of the batch's element type, which is only read."""
        return Shared(self._own(np.full(1, number, self.dtype), (1,)))

    def integers(self, length: int) -> Shared:
        """Memory for so many integers; one is what routines without results to doubt report to."""
        return Shared(self.room((length,), INTEGER))

    def real_numbers(self, length: int) -> tuple[Shared, ...]:
        """Memory that only the complex variants of a routine want: as many real numbers."""
        return (Shared(self.room((max(1, length),), self.real)),) if self.is_complex else ()

    def only_finite(self, matrices: Place, to: Place) -> Place:
        """Copies the matrices, those that are not finite as zeros; which are."""
        finite = self.room(matrices.shape[:-2], np.dtype(bool))
        self._steps.append(KeepFinite(matrices, to, finite))
        return finite

    def report_others(self, finite: Place, info: Place) -> None:
        """What `info` says of matrices that are not finite."""
        self._steps.append(ReportOthers(finite, info, NOT_FINITE))

    def dtype_of(self, queried: Queried) -> np.dtype[Any]:
        """Of a workspace."""
        return {WORK: self.dtype, REAL_WORK: self.real, INTEGER_WORK: INTEGER}[queried]

    def _own(self, content: Array, shape: tuple[int, ...]) -> Place:
        self._contents.append(content)
        return Place(self._num_given + len(self._contents) - 1, shape, content.dtype)

    def _with_workspaces(self, routine: str, arguments: Sequence[Any]) -> list[Any]:
        """The arguments with memory for what is queried."""
        known = (argument if isinstance(argument, _KNOWN) else _Unread(argument is None) for argument in arguments)
        lengths = _workspaces(self.prefix, self.dtype, routine, tuple(known))
        spaces = {
            queried: (Shared(self.room((length,), self.dtype_of(queried))), length)
            for queried, length in lengths.items()
        }
        return _with_spaces(arguments, spaces)


_KNOWN = (int, str, Queried)
"""The arguments by which a routine knows how much memory it wants."""


@dataclass(frozen=True, slots=True)
class _Unread:
    """An array, or a null pointer, which a routine that is asked for workspaces does not look at."""

    is_null: bool


@cache
def _workspaces(prefix: str, dtype: np.dtype[Any], routine: str, known: tuple[Any, ...]) -> Mapping[Queried, int]:
    """How long the workspaces are that a routine says it wants. Asking takes as long as a small problem."""
    queried = [argument for argument in known if isinstance(argument, Queried)]
    batch = Batch(prefix, dtype, 1, 1 + len(queried))
    answers = [np.zeros(1, batch.dtype_of(each)) for each in queried]
    whatever = np.zeros(1, np.complex128)  # for what it reports besides
    given = [whatever, *answers]
    room, *places = [Shared(Place(slot, (1,), array.dtype)) for slot, array in enumerate(given)]
    arguments = [(None if each.is_null else room) if isinstance(each, _Unread) else each for each in known]
    batch.call(
        routine, *_with_spaces(arguments, {each: (place, -1) for each, place in zip(queried, places, strict=True)})
    )
    batch.plan().run([data_address(array) for array in given])
    return {each: _length(answer[0]) for each, answer in zip(queried, answers, strict=True)}


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


def _column_sizes(matrices: Place) -> tuple[int, int]:
    """The bytes of a column, and of a matrix."""
    rows, columns = matrices.shape[-2:]
    nbytes = rows * matrices.dtype.itemsize
    return nbytes, columns * nbytes


def leading(matrix: Place) -> int:
    """The distance of the columns of a matrix: LAPACK wants at least 1."""
    return max(1, matrix.shape[-2])


NOT_FINITE = -4
"""What `info` is for a matrix with an infinity or a NaN, over which an iteration might never end."""
