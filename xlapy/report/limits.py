"""What this machine can do at best: multiply-adds per second, and bytes per second to and from memory.

Measured by kernels that do nothing else, written with the compiler's own IR builder. The best of several runs counts: a
limit is what was once reached.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
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

ALIGNMENT = 64
CACHES_EXCEEDED = 3
"""Arrays are this many times the size of the last-level cache."""

_MEMORY_FLOOR_BYTES = 64 << 20
_MEMORY_CEILING_BYTES = 512 << 20

_Kernel = Callable[..., None]


@dataclass(frozen=True)
class Pair:
    """A rate of one core, and of all of them."""

    one: float
    all: float


@dataclass(frozen=True)
class Limits:
    """Operations and bytes per second, of one core and of all that may be used together."""

    cores: int
    cache_bytes: int  # of the last level: what fits is not limited by memory
    f32: Pair
    f64: Pair
    read: Pair
    copy: Pair
    triad: Pair

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Limits:
        """The limits that `as_dict` wrote down."""
        pairs = {name: Pair(**values[name]) for name in ("f32", "f64", "read", "copy", "triad")}
        return Limits(cores=values["cores"], cache_bytes=values["cache_bytes"], **pairs)

    def alone(self) -> Limits:
        """Those of a program that keeps to one core."""
        f32, f64, *rates = (Pair(pair.one, pair.one) for pair in (self.f32, self.f64, self.read, self.copy, self.triad))
        return Limits(1, self.cache_bytes, f32, f64, *rates)

    def shortest(self, operations: float, read: int, written: int, *, double: bool) -> float:
        """Seconds below which no program can be that does so much, with its data in memory or in cache.

        Bytes count only where they exceed the cache; a multiplication and an addition are two operations."""
        return max(self.arithmetic(operations, double=double), self.memory(read, written))

    def arithmetic(self, operations: float, *, double: bool) -> float:
        """Seconds that so many operations take at least."""
        return operations / (self.f64.all if double else self.f32.all)

    def memory(self, read: int, written: int) -> float:
        """Seconds that so many bytes take at least; none if a cache may hold them."""
        if read + written <= self.cache_bytes:
            return 0.0
        if written * 8 <= read:
            bandwidth = self.read.all
        else:
            bandwidth = self.triad.all if read * 2 > written * 3 else self.copy.all
        return (read + written) / bandwidth


def measure(cores: int | None = None, *, processor_time: bool = False) -> Limits:
    """Measures all limits, in about three seconds. `cores` bounds the threads used for the figures of all cores.

    With `processor_time`, what other processes do meanwhile does not count; for one core only."""
    target = host_target()
    count = min(cores or target.cores, target.cores)
    kernels = _Kernels(target)
    clock = time.process_time if processor_time else time.perf_counter
    one, many = _Team(1, clock), _Team(count, clock)
    try:
        f32, f64 = (Pair(*[_arithmetic(kernels, team, type) for team in (one, many)]) for type in (F32, F64))
        arrays = _Arrays(target)
        read, copy, triad = (
            Pair(*[max(_bandwidth(kernels, team, arrays, name) for name in names) for team in (one, many)])
            for names in (_ways("read"), *(_ways(name, f"{name}_streaming") for name in ("copy", "triad")))
        )
    finally:
        one.close()
        many.close()
    return Limits(count, target.l3_bytes, f32, f64, read, copy, triad)


class _Kernels:
    """The kernels as native functions of (target, first source, second source, length in bytes or rounds)."""

    def __init__(self, target: Target) -> None:
        self.lanes = {type: target.lanes(type.bits) for type in (F32, F64)}
        module = Module.of(target)
        attributes = f"nounwind {target.function_attributes}".strip()
        names = ["multiply_add.f32", "multiply_add.f64"]
        for type in (F32, F64):
            with _kernel(module, f"multiply_add.{type.kind}", attributes) as k:
                _write_multiply_adds(k, type.with_lanes(self.lanes[type]))
        vector = F32.with_lanes(self.lanes[F32])
        writers: dict[str, _Writer] = {
            "read": _write_read,
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


def _ways(*names: str) -> list[str]:
    """Kernels without and with requests for what they read later: which is faster, processors differ in."""
    return [f"{name}{suffix}" for name in names for suffix in ("", ".ahead")]


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


class _Team:
    """Threads that start together; native code called through ctypes runs without Python's lock."""

    def __init__(self, size: int, clock: Callable[[], float]) -> None:
        self.size = size
        self._clock = clock
        self._pool = ThreadPoolExecutor(size)
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

    def close(self) -> None:
        self._pool.shutdown()


class _Arrays:
    """Three arrays that no cache holds, aligned and touched."""

    def __init__(self, target: Target) -> None:
        wanted = CACHES_EXCEEDED * target.l3_bytes
        self.nbytes = min(max(wanted, _MEMORY_FLOOR_BYTES), _MEMORY_CEILING_BYTES)
        self._keep = [np.ones((self.nbytes + ALIGNMENT) // 4, np.float32) for _ in range(3)]
        self.addresses = [-(-array.ctypes.data // ALIGNMENT) * ALIGNMENT for array in self._keep]


def _arithmetic(kernels: _Kernels, team: _Team, type: IRType) -> float:
    """Operations per second in registers."""
    kernel, lanes = kernels[f"multiply_add.{type.kind}"], kernels.lanes[type]
    dtype = np.float32 if type is F32 else np.float64
    values = [np.full(CHAINS * lanes + 2 * ALIGNMENT, 0.5, dtype) for _ in range(team.size)]
    pointers = [array.ctypes.data for array in values]
    rounds = 1024

    def task(member: int) -> None:
        pointer = pointers[member]
        kernel(pointer, pointer, pointer, rounds)

    while team.seconds(task) < ROUND_SECONDS:
        rounds *= 2
    best = min(team.seconds(task) for _ in range(REPETITIONS))
    return 2.0 * CHAINS * lanes * rounds * team.size / best


def _bandwidth(kernels: _Kernels, team: _Team, arrays: _Arrays, name: str) -> float:
    """Bytes that the program reads and writes per second, each member on its own part of the arrays."""
    kernel, name = kernels[name], name.removesuffix(".ahead")
    step = 8 * UNROLLED * ALIGNMENT
    part = arrays.nbytes // team.size // step * step
    scratch = [np.zeros(2 * ALIGNMENT, np.float32) for _ in range(team.size)]

    def task(member: int) -> None:
        target, first, second = (address + member * part for address in arrays.addresses)
        kernel(scratch[member].ctypes.data if name == "read" else target, first, second, part)

    streams = {"read": 1, "copy": 2, "triad": 3}[name.partition("_")[0]]
    task(0)
    return streams * part * team.size / min(team.seconds(task) for _ in range(REPETITIONS))
