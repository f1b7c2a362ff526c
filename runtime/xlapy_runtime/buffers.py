"""The memory of a call: the words that native code sees, the arena behind them, the tables of pointers.

A context belongs to one executable and serves one run at a time; idle ones wait in a `Pool`, so that a warm
call allocates nothing but its results.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from xlapy_runtime.alignment import aligned, arena, data_address
from xlapy_runtime.calling import CONTEXT_WORDS as KNOWN_WORDS
from xlapy_runtime.calling import ContextWord
from xlapy_runtime.program import ArraySpec

CONTEXT_WORDS = 24
RESERVED_WORDS = CONTEXT_WORDS - KNOWN_WORDS

MAX_IDLE = 8
"""Of a pool. More runs at once allocate, and free, what they work in."""

Words = ctypes.Array[ctypes.c_uint64]


def table(count: int) -> Words:
    """A zeroed table of 8-byte words."""
    return (ctypes.c_uint64 * count)()


class Context:
    """The memory of one run at a time."""

    __slots__ = (
        "__weakref__",
        "_arena",
        "_keep_alive",
        "address",
        "cancelled",
        "parameters",
        "parameters_address",
        "results",
        "results_address",
        "words",
    )

    def __init__(
        self,
        *,
        arena_bytes: int,
        constants: Words,
        num_parameters: int,
        num_results: int,
        words: Mapping[int, int],
    ) -> None:
        self._arena = arena(arena_bytes)
        self._keep_alive = constants
        self.cancelled = ctypes.c_int32(0)
        self.words = table(CONTEXT_WORDS)
        self.parameters = table(num_parameters)
        self.results = table(num_results)
        self.address = ctypes.addressof(self.words)
        self.parameters_address = ctypes.addressof(self.parameters)
        self.results_address = ctypes.addressof(self.results)
        for index, value in words.items():
            self.words[index] = value
        self.words[ContextWord.ARENA] = aligned(data_address(self._arena))
        self.words[ContextWord.CONSTANTS] = ctypes.addressof(constants)
        self.words[ContextWord.CANCELLED] = ctypes.addressof(self.cancelled)

    def prepare(self, *, handle: int, replica: int, partition: int, seed: int, counter: int) -> None:
        """Makes the context that of a new run."""
        self.cancelled.value = 0
        self.words[ContextWord.HANDLE] = handle
        self.words[ContextWord.PROCESS] = replica | partition << 32
        self.words[ContextWord.SEED] = seed & 0xFFFF_FFFF_FFFF_FFFF
        self.words[ContextWord.CALL_NUMBER] = counter
        self.words[ContextWord.OWNER] = 0


Item = TypeVar("Item")


class Pool(Generic[Item]):
    """A free list of what runs work in. Safe to use from many threads: a deque's ends are."""

    def __init__(self, make: Callable[[], Item]) -> None:
        self._make = make
        self._idle: deque[Item] = deque(maxlen=MAX_IDLE)

    def take(self) -> Item:
        try:
            return self._idle.pop()
        except IndexError:
            return self._make()

    def give_back(self, item: Item) -> None:
        self._idle.append(item)


def pointers(arrays: Iterable[np.ndarray]) -> Words:
    """A table of the data pointers of `arrays`. The arrays must outlive it."""
    addresses = [data_address(array) for array in arrays]
    return (ctypes.c_uint64 * len(addresses))(*addresses)


def view(spec: ArraySpec, address: int) -> np.ndarray:
    """The memory at `address` as an array, without a copy. Nothing keeps that memory alive."""
    if not spec.nbytes:
        return np.empty(spec.dims, spec.dtype)
    memory: Any = (ctypes.c_char * spec.nbytes).from_address(address)
    if not spec.order:
        return np.ndarray(spec.dims, spec.dtype, memory)
    majors = spec.order[::-1]
    in_memory: np.ndarray = np.ndarray([spec.dims[dimension] for dimension in majors], spec.dtype, memory)
    return in_memory.transpose(np.argsort(majors))


def views(specs: Sequence[ArraySpec], addresses: Sequence[int]) -> list[np.ndarray]:
    """One array per spec, cut to its run-time sizes if it has any. `addresses` has one entry per buffer."""
    arrays = []
    position = 0
    for spec in specs:
        array = view(spec, addresses[position])
        if spec.dynamic_dims:
            array = sliced(array, spec, read_sizes(addresses[position + 1 : position + spec.num_buffers]))
        arrays.append(array)
        position += spec.num_buffers
    return arrays


def read_sizes(addresses: Sequence[int]) -> list[int]:
    """The run-time sizes that the dynamic dimensions of a leaf have in memory."""
    return [ctypes.c_int32.from_address(address).value for address in addresses]


def sliced(array: np.ndarray, spec: ArraySpec, sizes: Sequence[int]) -> np.ndarray:
    """The part of a padded array that its dynamic dimensions make valid."""
    index: list[Any] = [slice(None)] * len(spec.dims)
    for dimension, size in zip(spec.dynamic_dims, sizes, strict=True):
        index[dimension] = slice(size)
    valid: np.ndarray = array[tuple(index)]
    return valid


def padded(array: np.ndarray, spec: ArraySpec) -> tuple[np.ndarray, list[np.ndarray]]:
    """The buffers of a leaf with dynamic dimensions: the data, padded with zeros, and each size."""
    data = np.zeros(spec.dims, spec.dtype)
    data[tuple(slice(size) for size in array.shape)] = array
    return data, [np.array(array.shape[dimension], np.int32) for dimension in spec.dynamic_dims]
