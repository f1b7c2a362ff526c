"""Puts object code into the memory of this process.

Code must not be unloaded while it may run. Whoever hands an address to someone else keeps the `LinkedCode` alive for
as long; at the end of the process nothing is unloaded at all, because a worker thread may still be inside.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from xlapy_runtime.errors import InternalError
from xlapy_runtime.images import PAGE_BYTES, Code, Image, Parts, is_image, parts, rounded_up, space_of
from xlapy_runtime.late import late
from xlapy_runtime.records import values_of


class LinkedCode:
    """Machine code in memory. Unloaded when this object goes."""

    __slots__ = ("_base", "_offsets", "_unload")

    def __init__(self, offsets: Mapping[str, int], unload: Callable[[], None], base: int = 0) -> None:
        self._offsets = offsets
        self._unload = unload
        self._base = base

    def address(self, symbol: str) -> int:
        """Where the exported `symbol` is."""
        try:
            return self._base + self._offsets[symbol]
        except KeyError:
            raise InternalError(f"{symbol} was not exported; exported: {', '.join(self._offsets)}") from None

    def export_only(self, symbols: Sequence[str]) -> None:
        """Forgets where all else is. An InternalError if one of these is not there."""
        absent = [symbol for symbol in symbols if symbol not in self._offsets]
        if absent:
            raise InternalError(f"cannot link object code: it does not define {', '.join(absent)}")
        self._offsets = {symbol: self._offsets[symbol] for symbol in symbols}

    def __contains__(self, symbol: str) -> bool:
        return symbol in self._offsets

    def addresses(self) -> dict[str, int]:
        """All that it exports."""
        return {symbol: self._base + offset for symbol, offset in self._offsets.items()}

    def __del__(self, is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_ending():
            self._unload()


def link(objects: Sequence[Code], imports: Mapping[str, int], exports: Sequence[str]) -> LinkedCode:
    """Links object files with each other, with `imports` (name to address), and with this process's own symbols. What
    `prelinked` made of such files is only copied.

    The objects must be position-independent code for this machine. An unknown or repeated symbol is an InternalError;
    where LLVM links, it writes its name to the standard error stream.
    """
    ready = _ready(objects)
    if len(ready) == 1 and is_image(ready[0]):
        return _loaded(parts(ready[0]), imports, exports)
    return LinkedCode(*late("xlapy_runtime.llvm_linking").link(ready, imports, exports))


def _ready(objects: Sequence[Code]) -> Sequence[Code]:
    """The image of these objects, or the objects if they have none."""
    if len(objects) == 1 and is_image(objects[0]):
        return objects
    ready: Sequence[bytes] = late("xlapy_runtime.prelinking").prelinked([bytes(code) for code in objects])
    return ready


def as_image(objects: Sequence[Code]) -> Code | None:
    """One image of these objects, if they are of a kind that becomes one."""
    ready = _ready(objects)
    return ready[0] if len(ready) == 1 and is_image(ready[0]) else None


def load(image: Image, imports: Mapping[str, int], exports: Sequence[str]) -> LinkedCode:
    """Copies an image into memory of its own."""
    return _loaded((list(values_of(image.layout).values()), image.data, image.code), imports, exports)


def _loaded(image: Parts, imports: Mapping[str, int], exports: Sequence[str]) -> LinkedCode:
    facts, data, code = image
    _, data_space, _, offsets, importing, with_base = facts
    room = Room(space_of(data_space, len(code)))
    memory, base, space = room.memory, room.address, room.size
    memory[: len(data)] = data
    memory[data_space : data_space + len(code)] = code
    fill_in(memory.cast("q"), base, with_base, importing.items(), imports)
    protect(base + data_space, space - data_space)
    linked = LinkedCode(offsets, functools.partial(release, room.hand_over(), space), base)
    linked.export_only(exports)
    return linked


class Room:
    """Pages that code is put into, or read to, where it runs; those of what is never linked are given back.

    `content` are the first bytes of the `memory`, as many as one asks for. They may be written to until the code is
    linked."""

    __slots__ = ("address", "content", "memory", "size")

    def __init__(self, size: int) -> None:
        self.size = rounded_up(size, PAGE_BYTES)
        self.address = _memory(self.size)
        self.memory: memoryview = _view(self.address, self.size, _WRITEABLE)
        self.content = self.memory[:size]

    def hand_over(self) -> int:
        """The address, for code that is unloaded by itself: nobody finds its bytes here any more."""
        self.size = 0
        self.memory = self.content = memoryview(b"")
        return self.address

    def __del__(self, is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if self.size and not is_ending():
            release(self.address, self.size)


def fill_in(
    words: memoryview,
    base: int,
    addresses: Sequence[int],
    places: Iterable[tuple[str, Sequence[int]]],
    imports: Mapping[str, int],
) -> None:
    """Completes the words of linked code that hold addresses: those of places in its own memory, and of what is
    elsewhere, by its name."""
    try:
        for place in addresses:
            words[place] += base
        for name, own in places:
            address = imports.get(name) or _address_elsewhere(name)
            for place in own:
                words[place] = address
    except (IndexError, TypeError, ValueError) as error:
        raise InternalError(f"cannot link object code: a damaged image: {error}") from None


_WRITEABLE = 0x200
"""CPython's PyBUF_WRITE."""

_view = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)(
    ("PyMemoryView_FromMemory", ctypes.pythonapi)
)


def _address_elsewhere(name: str) -> int:
    address = _address_in_process(name)
    if not address:
        raise InternalError(f"cannot link object code: nobody defines {name}")
    return address


@functools.cache
def _address_in_process(name: str) -> int | None:
    """Where a function of the process itself is, or of a library that all of it sees; for `memcpy` a better one."""
    try:
        return _address_of_copy() if name == "memcpy" else symbol_address(name)
    except ValueError:
        return None


def _address_of_copy() -> int:
    hand_written = late("xlapy_runtime.hand_written")
    return int(hand_written.address_of_copy()) if hand_written.is_linux_on_x86() else symbol_address("memcpy")


def note_usual_functions() -> None:
    """Finds what libraries call of the system, which stays where it is while a process lives, and in those that are
    forked from it."""
    for name in ("madvise", "memcpy", "memset", "mmap", "munmap"):
        _address_in_process(name)


def symbol_address(name: str) -> int:
    """Where something of that name is in Python itself, or in a library that all of the process sees. A ValueError
    where there is none."""
    return ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, name))


_PLACE, _SIZE, _NUMBER = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
_MMAP = ctypes.CFUNCTYPE(_PLACE, _PLACE, _SIZE, _NUMBER, _NUMBER, _NUMBER, ctypes.c_long, use_errno=True)
_MPROTECT = ctypes.CFUNCTYPE(_NUMBER, _PLACE, _SIZE, _NUMBER, use_errno=True)
_MUNMAP = ctypes.CFUNCTYPE(_NUMBER, _PLACE, _SIZE, use_errno=True)


@functools.cache
def system_function(prototype: Any, name: str) -> Callable[..., Any]:
    """A function of the system's that Python has no name for, as a prototype of `ctypes` describes it."""
    function: Callable[..., Any] = prototype((name, ctypes.pythonapi))
    return function


def _memory(space: int) -> int:
    """Pages that may be written to. Small pieces come from a larger one, from its end on: the system takes 10 to 50 us
    to find memory, however little that is, and 2 us more for each page."""
    try:
        begin, left = _SPARE.pop()  # nobody else has it meanwhile
    except IndexError:
        begin = left = 0
    if left < space:
        if space > _CHUNK_BYTES // 2:
            _SPARE.append((begin, left))
            return _new_memory(space)
        begin, left = _new_memory(_CHUNK_BYTES), _CHUNK_BYTES
    _SPARE.append((begin, left - space))
    return begin + left - space


_CHUNK_BYTES = 3 << 16
"""Enough for the largest library, that of products, with what the first program that calls it needs besides."""

_SPARE: list[tuple[int, int]] = []
"""Where memory is that nobody uses yet, and how much."""


def _new_memory(space: int) -> int:
    """Pages from the system; all there at once, where most of them will be, instead of each at its first use."""
    kind = _ANONYMOUS | _AT_ONCE if space <= _MOST_BYTES_AT_ONCE else _ANONYMOUS
    address = system_function(_MMAP, "mmap")(None, space, mmap.PROT_READ | mmap.PROT_WRITE, kind, -1, 0)
    if address == _NO_MEMORY:
        raise MemoryError(f"no memory for {space} bytes of code: {os.strerror(ctypes.get_errno())}")
    assert isinstance(address, int)
    return address


_ANONYMOUS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
_AT_ONCE = getattr(mmap, "MAP_POPULATE", 0)
_MOST_BYTES_AT_ONCE = 1 << 20
"""Of what is larger, much may be zeros that are never touched."""

_NO_MEMORY = ctypes.c_void_p(-1).value


def protect(address: int, space: int) -> None:
    """Makes pages code, which cannot be written to."""
    if space and system_function(_MPROTECT, "mprotect")(address, space, mmap.PROT_READ | mmap.PROT_EXEC):
        raise InternalError(f"the system refuses to run code: {os.strerror(ctypes.get_errno())}")


def release(address: int, space: int) -> None:
    system_function(_MUNMAP, "munmap")(address, space)


Installed = TypeVar("Installed")


class InstalledOnce(Generic[Installed]):
    """Native code of which a process needs one copy, made of the first object files that come: `found`."""

    def __init__(self, what: str, make: Callable[[Sequence[Code]], Installed]) -> None:
        self._what = what
        self._make = make
        self._unlock()
        self.found: Installed | None = None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._unlock)

    def _unlock(self) -> None:
        """At first, and in a forked child, where the thread that may hold the lock is not."""
        self._lock = threading.Lock()

    def install(self, objects: Sequence[Code]) -> None:
        """Makes it. Whoever comes second changes nothing."""
        with self._lock:
            if self.found is None:
                self.found = self._make(objects)

    def get(self) -> Installed:
        """What was made; there must be one."""
        if self.found is None:
            raise InternalError(f"{self._what} is not installed")
        return self.found
