"""Native code that programs share: libraries, the thread pool, the wrapper around calls.

A program that comes from the cache needs no more than this to run, so nothing here knows the compiler."""

from __future__ import annotations

import json
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from xlapy.codegen.call_wrapper import call_wrapper_object
from xlapy.codegen.object_cache import ObjectCache, cache_directory
from xlapy.codegen.pool import POOL
from xlapy.codegen.target import Target, host_target
from xlapy.options import Environment, environment
from xlapy.support.late import late
from xlapy_runtime import lapack, rendezvous, threads
from xlapy_runtime.calling import CallWrapper, load_wrapper
from xlapy_runtime.linking import LinkedCode, link
from xlapy_runtime.program import Program

if TYPE_CHECKING:
    from xlapy.codegen.libraries import Library

CACHE_LIMIT_BYTES = 1 << 30


def object_cache(around: Environment) -> ObjectCache:
    """The cache of object code on disk, where the environment wants it."""
    return _object_cache(cache_directory(around.cache_dir, around.cache_home))


@cache
def _object_cache(directory: Path | None) -> ObjectCache:
    return ObjectCache(directory, CACHE_LIMIT_BYTES)


@cache
def native_wrapper() -> CallWrapper | None:
    """The native call wrapper of this process; None where only the portable way of calling works."""
    return load_wrapper(call_wrapper_object(host_target(), object_cache(environment())))


@cache
def library_symbols(name: str, target: Target) -> dict[str, int]:
    """The addresses of a library's functions; loaded once, and for as long as the process lives."""
    objects, needs, exports = _library_code(name, target)
    imports: dict[str, int] = {}
    for needed in needs:
        imports.update(library_symbols(needed, target))
    linked = link(objects, imports, exports)
    _LOADED_LIBRARIES.append(linked)
    return {symbol: linked.address(symbol) for symbol in exports}


def _library_code(name: str, target: Target) -> tuple[list[bytes], list[str], list[str]]:
    """The object files of a library, the libraries that it needs, and its symbols: from the cache, if they are there,
    where nobody has to know how the library is made."""
    cache = object_cache(environment())
    key = f"{name}|{target.code_key}|{target.l1_bytes}|{target.l2_bytes}|{target.l3_bytes}".encode()
    found = cache.get(_BY_NAME, key)
    if found is not None:
        head, _, code = found.partition(b"\n")
        needs, exports, sizes = json.loads(head)
        ends = list(accumulate(sizes))
        return [code[end - size : end] for size, end in zip(sizes, ends, strict=True)], needs, exports
    library: Library = late("xlapy.codegen.libraries.catalogue").LIBRARIES[name]
    objects = library.objects(target, cache)
    head = json.dumps([library.needs, library.exports, [len(code) for code in objects]]).encode()
    cache.put(_BY_NAME, key, b"\n".join([head, b"".join(objects)]))
    return objects, [*library.needs], [*library.exports]


_BY_NAME = "libraries"
"""The kind of what the cache has of libraries as they are linked."""


_LOADED_LIBRARIES: list[LinkedCode] = []


def install_rendezvous() -> None:
    """Lets programs run as several processes. Starts no thread."""
    code: Library = late("xlapy.codegen.rendezvous").RENDEZVOUS
    rendezvous.NATIVE.install(code.object_code(host_target(), object_cache(environment())))


def parallel_function(num_threads: int | None) -> int:
    """The address of the thread pool's `parallel` for so many threads. Starts none."""
    threads.install(_pool())
    return threads.parallel_address(num_threads)


@cache
def _pool() -> bytes:
    """The object code of the thread pool, which is made or read once in a process."""
    return POOL.object_code(host_target(), object_cache(environment()))


def install_batch_calls(program: Program) -> None:
    """Gives the runtime native loops over the problems of a batch, if the program calls LAPACK."""
    if any(call.attributes.get("target") in lapack.NAMES for call in program.runtime_calls):
        loops: Library = late("xlapy.codegen.batch_calls").BATCH_CALLS
        lapack.LOOPS.install(loops.object_code(host_target(), object_cache(environment())))
