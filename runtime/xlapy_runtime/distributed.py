"""Collectives between processes of the system, over MPI: what Python does at call sites where native code would do it
for the processes of a parallel run.

The parts are those of `collectives`, and so is the order of folds: results have the bits of `run_parallel`. What a
process has for another one is copied into a message; what has arrived is copied or folded into the results. An
all-reduce of more than `SMALL_BYTES` is cut into shares: each member folds one and sends it to the others. A smaller
one is folded by everybody, which takes one way instead of two.
"""

from __future__ import annotations

import ctypes
import hashlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from xlapy_runtime.calls import PREPARE, Action, Buffers, RunningCall, Site
from xlapy_runtime.collectives import NOBODY, SMALL_BYTES, Exchange, Part, exchanges, kind_of
from xlapy_runtime.errors import DeadlineError, ExecutionError, UnsupportedError
from xlapy_runtime.mpi import NOTICE_TAG, Bytes, Message, Partners
from xlapy_runtime.native_records import Kind
from xlapy_runtime.program import Program, tree_text
from xlapy_runtime.runs import Runs
from xlapy_runtime.waiting import seconds

_Combine = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)

_PHASES = 2
"""Of an all-reduce in shares: these cross first, then what they were folded into."""

_BETWEEN_DEVICES = ("send", "recv")


class DistributedProgram:
    """A program as the processes of communicators run it."""

    def __init__(self, program: Program) -> None:
        self.digest = _digest(program)
        self._runs: dict[Partners, Runs] = {}

    def runs(self, in_one_process: Runs, partners: Partners) -> Runs:
        """Those of this process of `partners`."""
        if partners not in self._runs:
            preparation = Preparation(in_one_process.sites, partners)
            self._runs[partners] = in_one_process.of_process(partners.rank, preparation.action)
        return self._runs[partners]


def _digest(program: Program) -> bytes:
    """What is the same for the same program, and hardly for another. Constants that its text elides do not count."""
    calls = [(call.kind, call.label, call.operands, call.results, call.attributes) for call in program.runtime_calls]
    shapes = tree_text(program.parameters), tree_text(program.result), program.num_replicas, program.num_partitions
    return hashlib.sha256(repr((program.name, shapes, calls, program.hlo_text)).encode()).digest()


class Preparation:
    """Prepares the call sites of a program for this process of `partners`."""

    def __init__(self, sites: Sequence[Site], partners: Partners) -> None:
        self._partners = partners
        self._exchanges: Mapping[int, Exchange] = exchanges(sites, partners.rank)

    def action(self, site: Site) -> Action:
        kind = kind_of(site.call.kind)
        if kind is Kind.OTHER:
            return _unchanged(site)
        if kind is Kind.DONE:
            return lambda call, _: call.take_started(site).finish(call)
        exchange = self._exchanges.get(site.index)

        def crossing(call: RunningCall, buffers: Buffers) -> Crossing | Absence:
            if exchange is None:
                return Absence(buffers)
            return Crossing(self._partners, site, exchange, call.context, buffers)

        def begin(call: RunningCall, buffers: Buffers) -> None:
            call.started(site, crossing(call, buffers))

        def meet(call: RunningCall, buffers: Buffers) -> None:
            crossing(call, buffers).finish(call)

        return begin if kind is Kind.START else meet


def _unchanged(site: Site) -> Action:
    """What a site does that meets no other process of the program."""
    if site.call.kind in _BETWEEN_DEVICES and not site.attribute("is_host_transfer", False):
        raise UnsupportedError(f"{site.call.label}: send and recv between devices do not go over MPI")
    return PREPARE.action(site)


@dataclass(frozen=True, slots=True)
class Place:
    """Rows of bytes in native memory."""

    address: int
    rows: int
    row_bytes: int
    pitch: int

    @property
    def nbytes(self) -> int:
        return self.rows * self.row_bytes

    def view(self) -> Bytes:
        if not self.nbytes:
            return np.empty((self.rows, self.row_bytes), np.uint8)
        memory: Any = (ctypes.c_char * ((self.rows - 1) * self.pitch + self.row_bytes)).from_address(self.address)
        return np.ndarray((self.rows, self.row_bytes), np.uint8, memory, strides=(self.pitch, 1))

    def packed(self) -> Bytes:
        """A copy, without what lies between the rows."""
        return self.view().flatten()

    def fill(self, data: Bytes) -> None:
        np.copyto(self.view(), data.reshape(self.rows, self.row_bytes))


class Places:
    """Where the parts of one process begin and end up, by the position of the other member."""

    def __init__(self, buffers: Buffers) -> None:
        count = len(buffers.site.operands)
        self._operands, self._results = buffers.addresses[:count], buffers.addresses[count:]

    def source(self, part: Part, target: int) -> Place:
        address = self._operands[part.operand + part.operand_step * target] + part.source_step * target
        return Place(address, part.rows, part.row_bytes, part.source_pitch)

    def target(self, part: Part, source: int) -> Place:
        address = self._results[part.result + part.result_step * source] + part.target_step * source
        return Place(address, part.rows, part.row_bytes, part.target_pitch)


class Crossing:
    """One collective of one process, from its start, which sends what others get, to its end."""

    def __init__(self, partners: Partners, site: Site, exchange: Exchange, context: int, buffers: Buffers) -> None:
        self.partners = partners
        self.site = site
        self.exchange = exchange
        self.context = context
        self.position = exchange.members.index(partners.rank)
        self._messages: list[Message] = []
        places = Places(buffers)
        self._steps: list[Fold | Copies] = [
            Fold(self, part, places) if part.combine else Copies(self, part, places) for part in exchange.parts
        ]

    def send(self, position: int, data: Bytes, phase: int = 0) -> None:
        """Sends to another member; nothing is no message. Messages of two phases are not taken for each other."""
        if data.size:
            self._messages.append(self.partners.send(self.exchange.members[position], self._tag(phase), data))

    def receive(self, position: int, byte_count: int, phase: int = 0) -> Bytes:
        """What another member sends, when the messages of this crossing have arrived."""
        if not byte_count:
            return np.empty(0, np.uint8)
        message = self.partners.receive(self.exchange.members[position], self._tag(phase), byte_count)
        self._messages.append(message)
        return message.data

    def _tag(self, phase: int) -> int:
        return NOTICE_TAG + 1 + _PHASES * self.exchange.key + phase

    def arrive(self, call: RunningCall) -> None:
        """Waits for all messages that were begun so far."""
        late = self.partners.arrive(self._messages, call.timeout)
        self._messages = []
        if late:
            missing = ", ".join(f"process {process}" for process in late)
            waited = seconds(call.timeout or 0)
            raise DeadlineError(f"process {self.partners.rank} waited {waited} for {missing}")

    def finish(self, call: RunningCall) -> None:
        self.arrive(call)
        for step in self._steps:
            step.finish(self, call)

    def abandon(self) -> None:
        """Its messages are ended before the next run, with those of the whole run."""


class Absence:
    """A collective of a process that is in no group of it: the results are zeros."""

    def __init__(self, buffers: Buffers) -> None:
        for result in buffers.results:
            result.fill(0)

    def finish(self, call: RunningCall) -> None:
        """There is nothing to wait for."""

    def abandon(self) -> None:
        """There is nothing to take back."""


class Copies:
    """A part that others get as it is."""

    def __init__(self, crossing: Crossing, part: Part, places: Places) -> None:
        sources = crossing.exchange.sources
        own = crossing.position
        self._arriving: list[tuple[Place, Bytes]] = []
        packed: dict[int, Bytes] = {}
        for other in range(len(crossing.exchange.members)):
            if sources is None or sources[other] == own:
                place = places.source(part, other)
                if place.address not in packed:
                    packed[place.address] = place.packed()
                if other != own:
                    crossing.send(other, packed[place.address])
            if sources is None or sources[own] == other:
                place = places.target(part, other)
                is_own = other == own
                data = packed[places.source(part, own).address] if is_own else crossing.receive(other, place.nbytes)
                self._arriving.append((place, data))
        if sources is not None and sources[own] == NOBODY:
            place = places.target(part, own)
            self._arriving.append((place, np.zeros(place.nbytes, np.uint8)))

    def finish(self, crossing: Crossing, call: RunningCall) -> None:
        for place, data in self._arriving:
            place.fill(data)


class Fold:
    """A part of which all members' are folded: whole, in each member, or in as many shares as there are members."""

    def __init__(self, crossing: Crossing, part: Part, places: Places) -> None:
        size, own = len(crossing.exchange.members), crossing.position
        self._part = part
        self._result = places.target(part, own)
        self._is_shared = part.to_all and self._result.nbytes > SMALL_BYTES
        if self._is_shared:
            shares = _shares(places.source(part, own).packed(), part.element_bytes, size)
        elif part.to_all:
            shares = [places.source(part, own).packed()] * size
        else:
            shares = [places.source(part, other).packed() for other in range(size)]
        self._sizes = [share.size for share in shares]
        self._operands = []
        for other in range(size):
            if other != own:
                crossing.send(other, shares[other])
            self._operands.append(shares[own] if other == own else crossing.receive(other, shares[own].size))

    def finish(self, crossing: Crossing, call: RunningCall) -> None:
        folded = self._folded(crossing)
        if self._is_shared:
            folded = self._gathered(crossing, call, folded)
        self._result.fill(folded)

    def _folded(self, crossing: Crossing) -> Bytes:
        """The operands, folded from the left by the kernel of the site."""
        folded = np.empty_like(self._operands[0])
        if not folded.size:
            return folded
        size = len(self._operands)
        arrays = [array.ctypes.data for array in (*self._operands, folded)]
        table = (ctypes.c_void_p * (size + 2))(crossing.context, *arrays)
        count = folded.size // self._part.element_bytes
        if _Combine(self._part.combine)(ctypes.addressof(table), size, 0, count):
            raise ExecutionError("there is no memory for what the reduction's computation needs")
        return folded

    def _gathered(self, crossing: Crossing, call: RunningCall, own_share: Bytes) -> Bytes:
        """The shares of all members, one behind the other."""
        shares = []
        for other, byte_count in enumerate(self._sizes):
            if other == crossing.position:
                shares.append(own_share)
            else:
                crossing.send(other, own_share, phase=1)
                shares.append(crossing.receive(other, byte_count, phase=1))
        crossing.arrive(call)
        return np.concatenate(shares)


def _shares(data: Bytes, element_bytes: int, count: int) -> list[Bytes]:
    """The elements in so many runs of about the same length."""
    elements = data.size // element_bytes
    ends = [elements * number // count * element_bytes for number in range(count + 1)]
    return [data[begin:end] for begin, end in itertools.pairwise(ends)]
