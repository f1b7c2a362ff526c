"""Runs AArch64 code on this machine: a process under emulation that loads libraries and calls their functions for us.

    machine = Machine(folder)
    code = machine.load([emit_object(text, TARGET)])
    with machine.memory() as memory:
        x = memory.place(array)
        machine.call(code.address("f"), x, array.size)
        result = memory.fetch(x, array)

Whatever is placed lies between guards that must still be whole when the memory is given back.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import shutil
import struct
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import numpy as np
import pytest

from tests.support.shared_cache import shared_cache
from xlapy.codegen.libraries import Library
from xlapy.codegen.libraries.catalogue import LIBRARIES
from xlapy.codegen.pool import POOL
from xlapy.codegen.target import reference_target
from xlapy.compiled import Compiled
from xlapy_runtime.calling import CONTEXT_WORDS, ContextWord, Status
from xlapy_runtime.program import ArraySpec, flatten
from xlapy_runtime.threads import PoolState

Array = np.ndarray

TARGET = reference_target("neon")

_EMULATOR = "qemu-aarch64"
_COMPILER = "aarch64-linux-gnu-gcc"
_LINKER = "aarch64-linux-gnu-ld"
_MISSING = [tool for tool in (_EMULATOR, _COMPILER, _LINKER) if shutil.which(tool) is None]

needs_emulation = pytest.mark.skipif(
    bool(_MISSING),
    reason=f"not installed: {', '.join(_MISSING)} (Debian: qemu-user, gcc-aarch64-linux-gnu, libc6-dev-arm64-cross)",
)

_GUARD = b"\xa5" * 64
_WORKER_SPINS = 100


class _Request(IntEnum):
    """As in remote_machine.c."""

    ALLOCATE = 0
    RELEASE = 1
    WRITE = 2
    READ = 3
    LOAD = 4
    ADDRESS = 5
    CALL = 6
    START = 7


@dataclass(frozen=True)
class Loaded:
    """A library in the machine's memory."""

    machine: Machine
    path: Path
    handle: int

    def address(self, symbol: str) -> int:
        return self.machine.ask(_Request.ADDRESS, self.handle, symbol.encode())


class Machine:
    """The emulated process, and the libraries that it has loaded. `folder` is for its files; at most `num_threads`
    threads run a program."""

    def __init__(self, folder: Path, num_threads: int = 1) -> None:
        self._folder = folder
        self._num_threads = num_threads
        self._libraries: dict[str, Loaded] = {}
        self._names = (f"library{number}" for number in itertools.count())
        program = folder / "remote_machine"
        source = Path(__file__).with_name("remote_machine.c")
        _run([_COMPILER, "-O1", "-rdynamic", "-o", program, source])
        libc = Path(_run([_COMPILER, "--print-file-name=libc.so.6"]).strip()).resolve()
        self._system = [libc, libc.with_name("libm.so.6")]
        self._process = subprocess.Popen(
            [_EMULATOR, "-L", libc.parent.parent, program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(folder / "errors").open("wb"),
        )
        self._itself = Loaded(self, program, self.ask(_Request.LOAD, b""))

    def close(self) -> None:
        self._process.communicate()

    def ask(self, request: _Request, *arguments: int | bytes) -> int:
        """Sends a request and returns the word that answers it."""
        self._tell(request, *arguments)
        (word,) = struct.unpack("<q", self._receive(8))
        return int(word)

    def _tell(self, request: _Request, *arguments: int | bytes) -> None:
        parts = [struct.pack("<q", request)]
        for argument in arguments:
            if isinstance(argument, int):
                parts.append(struct.pack("<q", argument))
            else:
                parts += [struct.pack("<q", len(argument)), argument]
        assert self._process.stdin is not None
        self._process.stdin.write(b"".join(parts))
        self._process.stdin.flush()

    def _receive(self, size: int) -> bytes:
        assert self._process.stdout is not None
        received = self._process.stdout.read(size)
        if len(received) < size:
            code = self._process.wait()
            raise AssertionError(f"the emulated process died: {code}\n{(self._folder / 'errors').read_text()}")
        return received

    def load(self, objects: Sequence[bytes], needs: Sequence[Loaded] = ()) -> Loaded:
        """Links objects with `needs` and the C library, which together must define every symbol, and loads them."""
        path = self._folder / next(self._names)
        files = []
        for number, code in enumerate(objects):
            files.append(path.with_suffix(f".{number}.o"))
            files[-1].write_bytes(code)
        _run([_LINKER, "-shared", "-z", "defs", "-o", path, *files, *(needed.path for needed in needs), *self._system])
        return Loaded(self, path, self.ask(_Request.LOAD, str(path).encode()))

    def library(self, library: Library) -> Loaded:
        """A library of shape-generic code, with those it needs; loaded once."""
        found = self._libraries.get(library.name)
        if found is None:
            needs = [self.library(LIBRARIES[name]) for name in library.needs]
            found = self.load(library.objects(TARGET, shared_cache()), needs)
            self._libraries[library.name] = found
        return found

    @functools.cached_property
    def nothing(self) -> int:
        """The address of a function that does nothing and returns 0."""
        return self._itself.address("do_nothing")

    @functools.cached_property
    def refusing(self) -> int:
        """The address of a function that returns 1."""
        return self._itself.address("refuse")

    def parallel(self, num_threads: int) -> int:
        """The address of the thread pool's function for so many threads."""
        assert num_threads <= self._num_threads
        entries = self._pool.address("parallel_entries")
        return int.from_bytes(self.read(entries + 8 * (num_threads - 1), 8), "little")

    @property
    def look(self) -> int:
        """The address of what programs call behind kernels."""
        return self._pool.address("pool_look_behind")

    @functools.cached_property
    def _pool(self) -> Loaded:
        """The thread pool with all its workers, which nobody stops."""
        workers = self._num_threads - 1
        pool = self.load(POOL.objects(TARGET, shared_cache()))
        self.call(pool.address("pool_reset"))
        place = pool.address("pool_state")
        never = place + PoolState._6.offset  # nothing interrupts: the word is in the padding
        state = PoolState(wanted=workers, start=self.nothing, poll=self.nothing, interrupted=never)
        self.write(place, bytes(state))
        for _ in range(workers):
            assert self.ask(_Request.START, pool.address("pool_worker"), _WORKER_SPINS) == 0
        return pool

    def call(self, address: int, *words: int) -> int:
        """Calls a function of up to eight integers or addresses; what it returns, with a sign."""
        return self.ask(_Request.CALL, address, *words, *[0] * (8 - len(words)))

    def write(self, address: int, contents: bytes) -> None:
        self._tell(_Request.WRITE, address, contents)

    def read(self, address: int, size: int) -> bytes:
        self._tell(_Request.READ, address, size)
        return self._receive(size)

    def release(self, block: int) -> None:
        self._tell(_Request.RELEASE, block)

    @contextmanager
    def memory(self) -> Iterator[Memory]:
        """Memory for some calls. At the end its guards are looked at, and it is given back."""
        memory = Memory(self)
        yield memory
        memory.give_back()


class Memory:
    """Arrays in the machine's memory, each between two guards."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._blocks: list[tuple[int, int, int]] = []  # address, bytes in front of the contents, bytes of the contents

    def place(self, array: Array, offset: int = 0) -> int:
        """The address of a copy of `array`, `offset` bytes off a multiple of 64. Gaps between elements are copied."""
        contents = _memory_of(array)
        front = _GUARD + _GUARD[:offset]
        block = self._machine.ask(_Request.ALLOCATE, len(front) + len(contents) + len(_GUARD))
        self._machine.write(block, front + contents + _GUARD)
        self._blocks.append((block, len(front), len(contents)))
        return block + len(front)

    def table(self, words: Sequence[int]) -> int:
        """The address of a table of words."""
        return self.place(np.array(words, np.int64))

    def fetch(self, address: int, like: Array) -> Array:
        """What is at `address` now, as an array with the shape and the strides of `like`."""
        contents = bytearray(self._machine.read(address, len(_memory_of(like))))
        return np.ndarray(like.shape, like.dtype, contents, strides=like.strides)

    def give_back(self) -> None:
        for block, front, size in self._blocks:
            found = self._machine.read(block, front + size + len(_GUARD))
            guards = found[:front] + found[front + size :]
            assert set(guards) == set(_GUARD), f"wrote outside of {size} bytes of memory"
            self._machine.release(block)


def _memory_of(array: Array) -> bytes:
    """From the first byte of the first element to the last of the last. Strides must not be negative."""
    if not array.size:
        return b""
    last = sum((size - 1) * stride for size, stride in zip(array.shape, array.strides, strict=True))
    return ctypes.string_at(array.ctypes.data, last + array.itemsize)


@dataclass(frozen=True)
class EmulatedProgram:
    """A compiled program on the machine. Called like an executable, it returns the arrays of its result as a list."""

    machine: Machine
    compiled: Compiled
    num_threads: int = 1

    @functools.cached_property
    def _entry(self) -> int:
        program = self.compiled.program
        assert not program.runtime_calls, "there is no runtime on the other side"
        needs = [self.machine.library(LIBRARIES[name]) for name in program.libraries]
        return self.machine.load(program.objects, needs).address(program.entry)

    def __call__(self, *arguments: Array) -> list[Array]:
        status, results = self._run(arguments, {})
        assert status == Status.OK
        return results

    def status(self, *arguments: Array, cancelled: int = 0, poll: int = 0) -> int:
        """What the entry returns with this word to stop it, or this function to look at signals."""
        return self._run(arguments, {"cancelled": cancelled, "poll": poll})[0]

    def _run(self, arguments: Sequence[Array], settings: Mapping[str, int]) -> tuple[int, list[Array]]:
        blank = [_blank(spec) for spec in flatten(self.compiled.program.result)]
        with self.machine.memory() as memory:
            parameters = [memory.place(np.ascontiguousarray(a), offset=a.itemsize) for a in arguments]
            results = [memory.place(array) for array in blank]
            tables = [memory.table(addresses) for addresses in (parameters, results)]
            status = self.machine.call(self._entry, self._context(memory, **settings), *tables)
            return status & 0xFFFFFFFF, [memory.fetch(*row) for row in zip(results, blank, strict=True)]

    def _context(self, memory: Memory, cancelled: int = 0, poll: int = 0) -> int:
        program = self.compiled.program
        words = {
            ContextWord.ARENA: memory.place(np.full(program.arena_bytes, 0x7F, np.uint8)),
            ContextWord.CONSTANTS: memory.table([memory.place(constant) for constant in program.constants]),
            ContextWord.CANCELLED: memory.place(np.array([cancelled], np.int32)),
            ContextWord.POLL: poll or self.machine.nothing,
            ContextWord.PARALLEL: self.machine.parallel(self.num_threads),
            ContextWord.LOOK: self.machine.look,
            ContextWord.INTERRUPTED: memory.place(np.zeros(1, np.int32)),
        }
        return memory.table([words.get(word, 0) for word in range(CONTEXT_WORDS)])


def _blank(spec: ArraySpec) -> Array:
    assert not spec.dynamic_dims
    return np.frombuffer(b"\x7f" * spec.nbytes, np.uint8).view(spec.dtype).reshape(spec.dims)


def _run(command: Sequence[object]) -> str:
    """Runs a tool; what it printed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command[0]}: {done.stderr}"
    return done.stdout
