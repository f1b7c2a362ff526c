"""What a routine does to the problems of a batch, as steps that are prepared once.

A plan knows all that shapes, types and attributes decide: integers, letters, workspaces, how far pointers move on from
problem to problem, where the routine is. A call only fills in the addresses of its arrays. A plan may be run by many
threads at once: what a run writes to besides its arrays is a `Frame`, which serves one run at a time.

Native code goes through the steps (`planned_calls`): a call site needs Python only once for each context, to which it
leaves a frame.
"""

from __future__ import annotations

import ctypes
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from xlapy_runtime import planned_calls
from xlapy_runtime.alignment import data_address
from xlapy_runtime.buffers import Pool
from xlapy_runtime.calls import Buffers
from xlapy_runtime.planned_calls import PlanRecord, StepKind, StepRecord

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
    offset: int = 0

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def __getitem__(self, index: int) -> Place:
        """A part along the first dimension."""
        part = replace(self, shape=self.shape[1:])
        return part.moved(index * part.nbytes)

    def moved(self, nbytes: int) -> Place:
        """What begins so many bytes behind."""
        return replace(self, offset=self.offset + nbytes)


@dataclass(frozen=True, slots=True)
class Call:
    """A routine for each problem. `fixed` are the pointers, of which those to places are yet to be found."""

    address: int
    count: int
    fixed: tuple[int, ...]
    steps: tuple[int, ...]
    places: tuple[tuple[int, Place], ...]
    keep_alive: tuple[Any, ...]

    def record(self, own: Mapping[int, int]) -> tuple[StepRecord, object]:
        """For a frame whose own arrays, by their slots, are at these addresses; and what the record points to."""
        pointers, moving = [*self.fixed], []
        for position, place in self.places:
            if place.slot in own:
                pointers[position] = own[place.slot] + place.offset
            else:
                moving.append((position, place.slot, place.offset))
        table = planned_calls.words([*pointers, *self.steps, *itertools.chain.from_iterable(moving)])
        step = StepRecord(kind=StepKind.CALL, count=self.count, size=len(pointers), moving=len(moving))
        step.function, step.table = self.address, ctypes.addressof(table)
        return step, (table, self.keep_alive)


@dataclass(frozen=True, slots=True)
class Copy:
    """Pieces of `nbytes` from one array to another, or to the same place; in each, they begin a step apart."""

    source: Place
    to: Place
    nbytes: int
    count: int = 1
    source_step: int = 0
    step: int = 0

    def record(self, own: Mapping[int, int]) -> tuple[StepRecord, object]:
        step = StepRecord(kind=StepKind.COPY, count=self.count, size=self.nbytes)
        _set_places(step, source=self.source, target=self.to)
        step.source_step, step.target_step = self.source_step, self.step
        return step, None


@dataclass(frozen=True, slots=True)
class Clear:
    """Fills an array with zeros."""

    place: Place

    def record(self, own: Mapping[int, int]) -> tuple[StepRecord, object]:
        step = StepRecord(kind=StepKind.CLEAR, size=self.place.nbytes)
        _set_places(step, target=self.place)
        return step, None


@dataclass(frozen=True, slots=True)
class KeepFinite:
    """Copies the matrices of which all is finite, as zeros the others; notes which."""

    source: Place
    to: Place
    finite: Place

    def record(self, own: Mapping[int, int]) -> tuple[StepRecord, object]:
        source, count = self.source, math.prod(self.finite.shape)
        float_bytes = np.empty(0, source.dtype).real.itemsize
        step = StepRecord(kind=StepKind.KEEP_FINITE, count=count, size=source.nbytes // count // float_bytes)
        _set_places(step, source=source, target=self.to, third=self.finite)
        step.float_bytes = float_bytes
        return step, None


@dataclass(frozen=True, slots=True)
class ReportOthers:
    """The number for those that are not finite."""

    finite: Place
    to: Place
    number: int

    def record(self, own: Mapping[int, int]) -> tuple[StepRecord, object]:
        step = StepRecord(kind=StepKind.REPORT_OTHERS, count=math.prod(self.finite.shape), size=self.number)
        _set_places(step, source=self.finite, target=self.to)
        return step, None


@dataclass(frozen=True, slots=True)
class Unpack:
    """Vectors from LAPACK's packed form: those of a conjugate pair of eigenvalues are one column of real parts and one
    of imaginary parts, and conjugate to each other. The eigenvalue with the positive imaginary part comes first."""

    pairs: Place
    imaginary_parts: Place
    to: Place

    def record(self, own: Mapping[int, int]) -> tuple[StepRecord, object]:
        count, size = math.prod(self.pairs.shape[:-2]), self.pairs.shape[-1]
        step = StepRecord(kind=StepKind.UNPACK, count=count, size=size)
        _set_places(step, source=self.pairs, target=self.to, third=self.imaginary_parts)
        step.float_bytes = self.pairs.dtype.itemsize
        return step, None


def _set_places(step: StepRecord, **places: Place) -> None:
    for name, place in places.items():
        setattr(step, name, place.slot)
        setattr(step, f"{name}_offset", place.offset)


Step: TypeAlias = Call | Copy | Clear | KeepFinite | ReportOthers | Unpack


class Frame:
    """The memory of one run at a time, and the plan as native code sees it."""

    __slots__ = ("_addresses", "_keep", "_num_given", "plan")

    def __init__(self, steps: Sequence[Step], num_given: int, contents: Sequence[Array]) -> None:
        memory = [content.copy() for content in contents]
        own = list(map(data_address, memory))
        made = [step.record(dict(enumerate(own, num_given))) for step in steps]
        records = (StepRecord * len(made))(*[record for record, _ in made])
        self._num_given = num_given
        self._addresses = planned_calls.words([*[0] * num_given, *own])
        places = ctypes.addressof(self._addresses), ctypes.addressof(records)
        self.plan = PlanRecord(given=num_given, addresses=places[0], count=len(made), steps=places[1])
        self._keep = (memory, records, [kept for _, kept in made])

    def run(self, given: Sequence[int], context: int = 0) -> int:
        """Goes through the steps; what is not 0 is the status of a run that was stopped."""
        self._addresses[: self._num_given] = list(given)
        return planned_calls.run(self.plan, context)


class Plan:
    """Steps over `num_given` arrays, and arrays of its own, which begin each frame with these contents."""

    def __init__(self, steps: Sequence[Step], num_given: int, contents: Sequence[Array]) -> None:
        self._frames = Pool(partial(Frame, steps, num_given, contents))
        self._keeps = sum(content.nbytes for content in contents) <= KEPT_BYTES

    def run(self, given: Sequence[int]) -> None:
        """Goes through the steps, for arrays at these addresses."""
        frame = self._frames.take()
        frame.run(given)
        self._give_back(frame)

    def serve(self, buffers: Buffers) -> None:
        """Does what a call site asks for, and leaves the next calls in the same context to native code."""
        frame = self._frames.take()
        if frame.run(buffers.addresses, buffers.call.context):
            buffers.call.cancellation.check()
        if self._keeps and planned_calls.NATIVE.found is not None:
            buffers.leave_to_native(ctypes.addressof(frame.plan), frame)
        else:
            self._give_back(frame)

    def _give_back(self, frame: Frame) -> None:
        if self._keeps:
            self._frames.give_back(frame)
