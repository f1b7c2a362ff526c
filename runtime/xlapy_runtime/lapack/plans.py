"""What a routine does to the problems of a batch, as steps that are prepared once.

A plan knows all that shapes, types and attributes decide: integers, letters, workspaces, how far pointers move on from
problem to problem, where the routine is. A call only fills in the addresses of its arrays. A plan may be run by many
threads at once: what a run writes to besides its arrays is a `_Frame`, which serves one run at a time.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from xlapy_runtime.alignment import data_address
from xlapy_runtime.buffers import Pool
from xlapy_runtime.lapack.batches import call_each_at

Array = np.ndarray

KEPT_BYTES = 1 << 18
"""Frames with more memory of their own are made for each run, which takes no time beside what runs in so much."""


@dataclass(frozen=True, slots=True)
class Place:
    """An array of a plan: matrices lie column by column, everything else densely packed.

    `slot` counts the operands, then the results, then the plan's own arrays."""

    slot: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    is_matrix: bool
    offset: int = 0

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def __getitem__(self, index: int) -> Place:
        """A part along the first dimension."""
        part = replace(self, shape=self.shape[1:])
        return replace(part, offset=self.offset + index * part.nbytes)

    def at(self, address: int) -> Array:
        """The array that begins at an address. Nothing keeps its memory alive."""
        dims = (*self.shape[:-2], self.shape[-1], self.shape[-2]) if self.is_matrix else self.shape
        memory: Any = (ctypes.c_char * self.nbytes).from_address(address) if self.nbytes else None
        array: Array = np.ndarray(dims, self.dtype, memory)
        return array.swapaxes(-1, -2) if self.is_matrix else array


Bound = Callable[[Sequence[int]], None]
"""A step of one frame: is given the addresses of all places."""


class Step(Protocol):
    def bound(self, own: dict[int, int]) -> Bound:
        """The step of a frame whose own arrays, by their slots, are at these addresses."""


@dataclass(frozen=True, slots=True)
class Call:
    """A routine for each problem. `fixed` are the pointers, of which those to places are yet to be found."""

    address: int
    count: int
    fixed: tuple[int, ...]
    steps: tuple[int, ...]
    places: tuple[tuple[int, Place], ...]
    keep_alive: tuple[Any, ...]

    def bound(self, own: dict[int, int]) -> Bound:
        kind = ctypes.c_int64 * len(self.fixed)
        pointers, steps = kind(*self.fixed), kind(*self.steps)
        for position, place in self.places:
            if place.slot in own:
                pointers[position] = own[place.slot] + place.offset
        moving = [(position, place.slot, place.offset) for position, place in self.places if place.slot not in own]
        routine, count = self.address, self.count

        def call(addresses: Sequence[int]) -> None:
            for position, slot, offset in moving:
                pointers[position] = addresses[slot] + offset
            call_each_at(routine, count, pointers, steps)

        return call


@dataclass(frozen=True, slots=True)
class Copy:
    """One array to another of the same size and order; both may be the same memory."""

    source: Place
    to: Place

    def bound(self, own: dict[int, int]) -> Bound:
        source, to, nbytes, move = self.source.slot, self.to.slot, self.to.nbytes, ctypes.memmove
        source_offset, to_offset = self.source.offset, self.to.offset

        def copy(addresses: Sequence[int]) -> None:
            move(addresses[to] + to_offset, addresses[source] + source_offset, nbytes)

        return copy


@dataclass(frozen=True, slots=True)
class Clear:
    """Fills an array with zeros."""

    place: Place

    def bound(self, own: dict[int, int]) -> Bound:
        slot, offset, nbytes, fill = self.place.slot, self.place.offset, self.place.nbytes, ctypes.memset

        def clear(addresses: Sequence[int]) -> None:
            fill(addresses[slot] + offset, 0, nbytes)

        return clear


@dataclass(frozen=True, slots=True)
class Compute:
    """A function of Python on the arrays themselves."""

    function: Callable[..., None]
    places: tuple[Place, ...]

    def bound(self, own: dict[int, int]) -> Bound:
        function, places = self.function, self.places
        slots = [place.slot for place in places]
        seen: list[int] = []
        arrays: list[Array] = []

        def compute(addresses: Sequence[int]) -> None:
            now = [addresses[slot] for slot in slots]
            if now != seen:
                arrays[:] = [place.at(address + place.offset) for place, address in zip(places, now, strict=True)]
                seen[:] = now
            function(*arrays)

        return compute


class _Frame:
    """The memory of one run at a time, and the steps that know where it is."""

    __slots__ = ("_memory", "_own", "_steps")

    def __init__(self, steps: Sequence[Step], first: int, contents: Sequence[Array]) -> None:
        self._memory = [content.copy() for content in contents]
        self._own = tuple(map(data_address, self._memory))
        own = dict(enumerate(self._own, first))
        self._steps = [step.bound(own) for step in steps]

    def run(self, given: Sequence[int]) -> None:
        addresses = (*given, *self._own)
        for step in self._steps:
            step(addresses)


class Plan:
    """Steps over `num_given` arrays, and arrays of its own, which begin each frame with these contents."""

    def __init__(self, steps: Sequence[Step], num_given: int, contents: Sequence[Array]) -> None:
        self._frames = Pool(partial(_Frame, steps, num_given, contents))
        self._keeps = sum(content.nbytes for content in contents) <= KEPT_BYTES

    def run(self, given: Sequence[int]) -> None:
        """Goes through the steps, for arrays at these addresses."""
        frame = self._frames.take()
        frame.run(given)
        if self._keeps:
            self._frames.give_back(frame)
