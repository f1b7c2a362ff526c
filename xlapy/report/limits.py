"""What this machine can do at best: multiply-adds per second, and bytes per second to and from memory.

Measured by kernels that do nothing else, written with the compiler's own IR builder. Of the limits the best of several
runs counts: a limit is what was once reached. What the machine can do at a given moment, a `Probe` tells.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from operator import methodcaller
from typing import Any

import numpy as np

from xlapy.codegen.arrays import FETCHED_AHEAD
from xlapy.codegen.ir import F32, F64, I64, PTR, IRType, KernelBuilder, Module, Value
from xlapy.codegen.jit import emit_object
from xlapy.codegen.target import Target, host_target
from xlapy_runtime.linking import LinkedCode, link

CHAINS = 12
"""Independent chains of multiply-adds: more than latency times units anywhere, and they fit 16 registers."""

UNROLLED = 4
REPETITIONS = 30
ROUND_SECONDS = 0.004
"""Many short rounds: on a busy machine some fall between two turns of other processes."""

LIMITS = ("f32", "f64", "fed_f32", "fed_f64", "read", "copy", "triad")
FED_STEPS = 128
"""Steps whose factors the nearest cache holds, on any machine."""

FED_VECTORS = 2
"""Of a row of a tile, as products have."""
PIECES = 4
"""Some processors read memory faster in so many pieces side by side than from end to end."""

STREAMS = {"read": 1, "copy": 2, "triad": 3}
"""How many arrays a kernel reads and writes."""

CHOICE_SECONDS = 0.1
"""For each way to reach a limit: enough to tell which is the fastest by its mean, as what it is for is a mean."""

ALIGNMENT = 64
CACHES_EXCEEDED = 3
"""Arrays are this many times the size of the last-level cache."""

_MEMORY_FLOOR_BYTES = 64 << 20
_MEMORY_CEILING_BYTES = 512 << 20
_MOST_STEPS = 4

_Kernel = Callable[..., None]
_FLOATS = {type.kind: type for type in (F32, F64)}


@dataclass(frozen=True)
class Pair:
    """A rate of one core, and of all of them."""

    one: float
    all: float


@dataclass(frozen=True)
class Bound:
    """So many operations or bytes, and the limit that holds for them: "f32", "f64", "read", "copy" or "triad"."""

    limit: str
    amount: float


@dataclass(frozen=True)
class Limits:
    """Operations and bytes per second, of one core and of all that may be used together.

    `f32` and `f64` are multiply-adds on registers. Fed ones load their factors from the nearest cache, as products do:
    no fewer per cycle, but a processor that is held to a certain power lowers its clock where vectors are loaded."""

    cores: int
    cache_bytes: int  # of the last level: what fits is not limited by memory
    f32: Pair
    f64: Pair
    read: Pair
    copy: Pair
    triad: Pair
    fed_f32: Pair | None = None
    fed_f64: Pair | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, to be written down."""
        return asdict(self)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Limits:
        """The limits that `as_dict` wrote down."""
        pairs = {name: Pair(**values[name]) for name in LIMITS if values.get(name)}
        return Limits(cores=values["cores"], cache_bytes=values["cache_bytes"], **pairs)

    def alone(self) -> Limits:
        """Those of a program that keeps to one core."""
        pairs: dict[str, Pair | None] = {name: getattr(self, name) for name in LIMITS}
        one = {name: Pair(pair.one, pair.one) for name, pair in pairs.items() if pair is not None}
        return Limits(1, self.cache_bytes, **one)

    def bound(self, operations: float, read: int, written: int, *, double: bool) -> Bound | None:
        """What a program that does so much is limited by most, with its data in memory or in cache; None by nothing.

        Bytes count only where they exceed the cache; a multiplication and an addition are two operations."""
        arithmetic, memory = self._arithmetic(operations, double), self._memory(read, written)
        most = max(arithmetic, memory, key=self.seconds)
        return most if most.amount else None

    def seconds(self, bound: Bound) -> float:
        """How long what is bound so takes at least."""
        pair: Pair = getattr(self, bound.limit)
        return bound.amount / pair.all

    def arithmetic(self, operations: float, *, double: bool) -> float:
        """Seconds that so many operations take at least."""
        return self.seconds(self._arithmetic(operations, double))

    def memory(self, read: int, written: int) -> float:
        """Seconds that so many bytes take at least; none if a cache may hold them."""
        return self.seconds(self._memory(read, written))

    def _arithmetic(self, operations: float, double: bool) -> Bound:
        return Bound("f64" if double else "f32", operations)

    def _memory(self, read: int, written: int) -> Bound:
        """The bandwidth of the kernel that is most like a program that moves so many bytes."""
        moved = read + written
        if moved <= self.cache_bytes:
            return Bound("copy", 0)
        if written * 8 <= read:
            return Bound("read", moved)
        return Bound("triad" if read * 2 > written * 3 else "copy", moved)


def measure(cores: int | None = None, *, processor_time: bool = False) -> Limits:
    """Measures all limits, in about three seconds. `cores` bounds the threads used for the figures of all cores.

    With `processor_time`, what other processes do meanwhile does not count; for one core only."""
    kernels = _Kernels(host_target())
    alone, together = (Probe(count, processor_time=processor_time, kernels=kernels) for count in (1, cores))
    with closing(alone), closing(together):
        pairs = {name: Pair(alone.best(name), together.best(name)) for name in LIMITS}
    return Limits(together.cores, host_target().l3_bytes, **pairs)


class Probe:
    """The kernels of the limits at hand, and threads that run them: for what the machine can do just now. Close it."""

    def __init__(
        self, cores: int | None = None, *, processor_time: bool = False, kernels: _Kernels | None = None
    ) -> None:
        """`cores` and `processor_time` are those of `measure`; `kernels` may be those of another probe."""
        target = host_target()
        self.cores = min(cores or target.cores, target.cores)
        self._team = _Team(self.cores, time.process_time if processor_time else time.perf_counter)
        self._kernels = kernels or _Kernels(target)
        self._chosen: dict[tuple[str, int], _Work] = {}

    def best(self, limit: str) -> float:
        """Operations or bytes per second of a limit, the best of several runs."""
        return max(work.best_rate() for work in self._works(limit))

    def seconds(self, bound: Bound, at_least: float) -> float:
        """How long the machine takes for what is bound so, at the mean rate of runs that take `at_least` seconds; on
        arrays as large as that has: more may come more slowly, where others share the last cache."""
        key = bound.limit, self._kernels.array_bytes(bound)
        if key not in self._chosen:
            self._chosen[key] = max(self._works(*key), key=methodcaller("mean_rate", CHOICE_SECONDS))
        return bound.amount / self._chosen[key].mean_rate(at_least)

    def close(self) -> None:
        self._team.close()

    def _works(self, limit: str, array_bytes: int = 0) -> list[_Work]:
        """The ways to reach a limit, of memory on arrays of so many bytes, or of as many as it takes."""
        kind, _, type = limit.rpartition("_")
        if type in _FLOATS:
            work = _fed_multiply_adds if kind == "fed" else _multiply_adds
            return [work(self._kernels, self._team, _FLOATS[type])]
        arrays = self._kernels.arrays(array_bytes)
        return [_movement(self._kernels[way], arrays, self._team, limit) for way in self._kernels.ways(limit)]


class _Kernels:
    """The kernels as native functions of (target, first source, second source, length in bytes or rounds)."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._arrays: dict[int, _Arrays] = {}
        self.lanes = {type: target.lanes(type.bits) for type in (F32, F64)}
        module = Module.of(target)
        attributes = f"nounwind {target.function_attributes}".strip()
        self.fed_rows = 12 if target.vector_registers == 32 else 6
        names = []
        for type in (F32, F64):
            vector = type.with_lanes(self.lanes[type])
            with _kernel(module, f"multiply_add.{type.kind}", attributes) as k:
                _write_multiply_adds(k, vector)
            with _kernel(module, f"fed_multiply_add.{type.kind}", attributes) as k:
                _write_fed_multiply_adds(k, vector, self.fed_rows)
            names += [f"multiply_add.{type.kind}", f"fed_multiply_add.{type.kind}"]
        vector = F32.with_lanes(self.lanes[F32])
        writers: dict[str, _Writer] = {
            "read": _write_read,
            "read_apart": _write_read_apart,
            "copy": partial(_write_copy, streaming=False),
            "copy_streaming": partial(_write_copy, streaming=True),
            "triad": partial(_write_triad, streaming=False),
            "triad_streaming": partial(_write_triad, streaming=True),
        }
        for name, write in writers.items():
            for way, asks_ahead in zip(_ways(name), (False, True), strict=True):
                with _kernel(module, way, attributes) as k:
                    write(k, _Reader(k, vector, asks_ahead))
                names.append(way)
        self._code: LinkedCode = link([emit_object(module.text(), target, codegen_level=2)], {}, names)
        signature = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64)
        self._functions: dict[str, _Kernel] = {name: signature(self._code.address(name)) for name in names}

    def __getitem__(self, name: str) -> _Kernel:
        return self._functions[name]

    def ways(self, limit: str) -> list[str]:
        """The kernels that move memory as the limit says; which is the fastest, processors differ in."""
        return [name for name in self._functions if name.partition(".")[0].partition("_")[0] == limit]

    def array_bytes(self, bound: Bound) -> int:
        """How large arrays are that hold what is bound so, in a few steps; 0 if it is not memory."""
        each = bound.amount / STREAMS[bound.limit] if bound.limit in STREAMS else 0
        steps = -(-int(each) // _MEMORY_FLOOR_BYTES)
        return min(steps, _MOST_STEPS) * _MEMORY_FLOOR_BYTES

    def arrays(self, nbytes: int) -> _Arrays:
        """Arrays of so many bytes, or of as many as no cache holds."""
        wanted = max(nbytes, CACHES_EXCEEDED * self._target.l3_bytes)
        if wanted not in self._arrays:
            self._arrays[wanted] = _Arrays(wanted)
        return self._arrays[wanted]


def _kernel(module: Module, name: str, attributes: str) -> KernelBuilder:
    parameters = [("target", PTR), ("first", PTR), ("second", PTR), ("length", I64)]
    return KernelBuilder(module, name, parameters, None, attributes=attributes)


def _write_multiply_adds(k: KernelBuilder, vector: IRType) -> None:
    p = k.parameters
    factor, addend = (k.load(p["first"], vector), k.load(p["second"], vector))
    start = [k.load(k.gep(p["target"], chain * vector.lanes, vector.bytes), vector) for chain in range(CHAINS)]
    with k.loop(0, p["length"], carry=start) as loop:
        loop.next = [k.fma(value, factor, addend) for value in loop.values]
    for chain, value in enumerate(loop.results):
        k.store(k.gep(p["target"], chain * vector.lanes, vector.bytes), value)


def _write_fed_multiply_adds(k: KernelBuilder, vector: IRType, rows: int) -> None:
    """A tile of a product, over and over: so many rows of single factors times the vectors of each step."""
    p = k.parameters
    size = vector.lanes * vector.bytes
    with k.loop(0, p["length"], carry=[k.const(vector, 0)] * (rows * FED_VECTORS)) as again:
        with k.loop(0, FED_STEPS, carry=again.values) as step:
            left, right = (
                k.gep(p["first"], step.index, rows * vector.bytes),
                k.gep(p["second"], step.index, FED_VECTORS * size),
            )
            vectors = [k.load(k.gep(right, number, size), vector) for number in range(FED_VECTORS)]
            factors = [
                k.splat(k.load(k.gep(left, row, vector.bytes), vector.element), vector.lanes) for row in range(rows)
            ]
            step.next = [
                k.fma(*operands, total) for operands, total in zip(product(factors, vectors), step.values, strict=True)
            ]
        again.next = step.results
    for number, value in enumerate(again.results):
        k.store(k.gep(p["target"], number * vector.lanes, vector.bytes), value)


def _ways(name: str) -> list[str]:
    """Kernels without and with requests for what they read later."""
    return [name, f"{name}.ahead"]


@dataclass(frozen=True)
class _Reader:
    """How a kernel reads vectors; what one of ours would fetch meanwhile is fetched, if it asks for it."""

    k: KernelBuilder
    vector: IRType
    asks_ahead: bool

    def load(self, name: str, offset: Value) -> Value:
        """What is so many bytes behind the beginning of a source."""
        k, vector = self.k, self.vector
        place = k.gep(k.parameters[name], offset)
        if self.asks_ahead:
            k.prefetch(k.gep(place, FETCHED_AHEAD), vector.lanes * vector.bytes)
        return k.load(place, vector)


_Writer = Callable[[KernelBuilder, _Reader], None]


def _write_read(k: KernelBuilder, reader: _Reader) -> None:
    p, vector = k.parameters, reader.vector
    size = vector.lanes * vector.bytes
    with k.loop(0, p["length"], size * UNROLLED, carry=[k.const(vector, 0)] * UNROLLED) as loop:
        loop.next = [
            k.add(value, reader.load("first", k.add(loop.index, chain * size)))
            for chain, value in enumerate(loop.values)
        ]
    for value in loop.results:
        k.store(p["target"], value)


def _write_read_apart(k: KernelBuilder, reader: _Reader) -> None:
    p, vector = k.parameters, reader.vector
    size, together = vector.lanes * vector.bytes, 2
    apart = k.udiv(p["length"], PIECES)
    places = [k.add(k.mul(apart, piece), number * size) for piece in range(PIECES) for number in range(together)]
    with k.loop(0, apart, size * together, carry=[k.const(vector, 0)] * len(places)) as loop:
        loop.next = [
            k.add(value, reader.load("first", k.add(loop.index, place)))
            for place, value in zip(places, loop.values, strict=True)
        ]
    for value in loop.results:
        k.store(p["target"], value)


def _write_copy(k: KernelBuilder, reader: _Reader, *, streaming: bool) -> None:
    _write_stores(k, reader.vector, streaming, lambda offset: reader.load("first", offset))


def _write_triad(k: KernelBuilder, reader: _Reader, *, streaming: bool) -> None:
    three = k.const(reader.vector, 3)

    def element(offset: Value) -> Value:
        first, second = (reader.load(name, offset) for name in ("first", "second"))
        return k.fma(second, three, first)

    _write_stores(k, reader.vector, streaming, element)


def _write_stores(k: KernelBuilder, vector: IRType, streaming: bool, element: Callable[[Value], Value]) -> None:
    size = vector.lanes * vector.bytes
    with k.loop(0, k.parameters["length"], size * UNROLLED) as loop:
        for number in range(UNROLLED):
            offset = k.add(loop.index, number * size)
            place = k.gep(k.parameters["target"], offset)
            k.store(place, element(offset), align=size, nontemporal=streaming)
    if streaming:
        k.fence()


class _Arrays:
    """Three arrays that no cache holds, aligned and touched."""

    def __init__(self, wanted: int) -> None:
        self.nbytes = min(max(wanted, _MEMORY_FLOOR_BYTES), _MEMORY_CEILING_BYTES)
        self._keep = [np.ones((self.nbytes + ALIGNMENT) // 4, np.float32) for _ in range(3)]
        self.addresses = [-(-array.ctypes.data // ALIGNMENT) * ALIGNMENT for array in self._keep]


def _cores_for(threads: int) -> Iterator[int]:
    """A core for each of several threads, which the system may let share one for milliseconds; none for one alone."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return iter(cores if 1 < threads <= len(cores) else [])


def _keep_to_own_core(cores: Iterator[int]) -> None:
    if (core := next(cores, None)) is not None:
        os.sched_setaffinity(0, {core})  # of this thread


class _Team:
    """Threads that start together; native code called through ctypes runs without Python's lock."""

    def __init__(self, size: int, clock: Callable[[], float]) -> None:
        self.size = size
        self._clock = clock
        self._pool = ThreadPoolExecutor(size, initializer=partial(_keep_to_own_core, _cores_for(size)))
        self._barrier = threading.Barrier(size)

    def seconds(self, task: Callable[[int], None]) -> float:
        """From the first start to the last end of `task(member)`."""

        def member(number: int) -> tuple[float, float]:
            self._barrier.wait()
            began = self._clock()
            task(number)
            return began, self._clock()

        spans = list(self._pool.map(member, range(self.size)))
        return max(end for _, end in spans) - min(begin for begin, _ in spans)

    def runs_per_second(self, task: Callable[[int], None], at_least: float) -> float:
        """Of `task(member)`, those of all members, of which each goes on for so many seconds. One that is held up holds
        up no other: parallel loops share out work as well."""

        def member(number: int) -> float:
            self._barrier.wait()
            began, runs, spent = self._clock(), 0, 0.0
            while not runs or spent < at_least:
                task(number)
                runs, spent = runs + 1, self._clock() - began
            return runs / spent

        return sum(self._pool.map(member, range(self.size)))

    def close(self) -> None:
        self._pool.shutdown()


@dataclass(frozen=True)
class _Work:
    """What each member of a team runs, and how many operations or bytes that is for all of them."""

    team: _Team
    task: Callable[[int], None]
    amount: float

    def best_rate(self) -> float:
        return self.amount / min(self.team.seconds(self.task) for _ in range(REPETITIONS))

    def mean_rate(self, at_least: float) -> float:
        """Over runs for so many seconds."""
        return self.amount / self.team.size * self.team.runs_per_second(self.task, at_least)


def _multiply_adds(kernels: _Kernels, team: _Team, type: IRType) -> _Work:
    """Operations in registers."""
    kernel, lanes = kernels[f"multiply_add.{type.kind}"], kernels.lanes[type]
    dtype = np.float32 if type is F32 else np.float64
    values = [np.full(CHAINS * lanes + 2 * ALIGNMENT, 0.5, dtype) for _ in range(team.size)]
    rounds = 1024

    def task(member: int) -> None:
        pointer = values[member].ctypes.data
        kernel(pointer, pointer, pointer, rounds)

    while team.seconds(task) < ROUND_SECONDS:
        rounds *= 2
    return _Work(team, task, 2.0 * CHAINS * lanes * rounds * team.size)


def _fed_multiply_adds(kernels: _Kernels, team: _Team, type: IRType) -> _Work:
    """Operations whose factors come from the nearest cache."""
    kernel, lanes, rows = kernels[f"fed_multiply_add.{type.kind}"], kernels.lanes[type], kernels.fed_rows
    columns = FED_VECTORS * lanes
    sides = [[_aligned(size * FED_STEPS, type) for size in (rows * columns, rows, columns)] for _ in range(team.size)]
    rounds = 8

    def task(member: int) -> None:
        kernel(*(side.ctypes.data for side in sides[member]), rounds)

    while team.seconds(task) < ROUND_SECONDS:
        rounds *= 2
    return _Work(team, task, 2.0 * rows * columns * FED_STEPS * rounds * team.size)


def _aligned(size: int, type: IRType) -> np.ndarray:
    """So many small numbers, of which no vector crosses a line."""
    dtype = np.dtype(np.float32 if type is F32 else np.float64)
    array = np.full(size + ALIGNMENT // dtype.itemsize, 0.5, dtype)
    return array[-array.ctypes.data % ALIGNMENT // dtype.itemsize :][:size]


def _movement(kernel: _Kernel, arrays: _Arrays, team: _Team, limit: str) -> _Work:
    """Bytes that the program reads and writes, each member on its own part of the arrays."""
    step = 8 * UNROLLED * ALIGNMENT
    part = arrays.nbytes // team.size // step * step
    scratch = [np.zeros(2 * ALIGNMENT, np.float32) for _ in range(team.size)]

    def task(member: int) -> None:
        target, first, second = (address + member * part for address in arrays.addresses)
        kernel(scratch[member].ctypes.data if limit == "read" else target, first, second, part)

    task(0)
    return _Work(team, task, STREAMS[limit] * part * team.size)
