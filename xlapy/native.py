"""Native code that programs share: libraries, the thread pool, the wrapper around calls.

A program that comes from the cache needs no more than this to run, so nothing here knows the compiler."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from xlapy.codegen.object_cache import ObjectCache, cache_directory, code_version
from xlapy.codegen.stored_code import SharedCode, dump_shared_code, find_code, read_shared_code
from xlapy.codegen.target import Host, Target, leave_code, remembered_host
from xlapy.options import Environment, cache_settings
from xlapy.support.late import late
from xlapy_runtime import threads, trimming
from xlapy_runtime.calling import CallWrapper, layout_identity, load_wrapper
from xlapy_runtime.images import Code
from xlapy_runtime.linking import LinkedCode, link
from xlapy_runtime.program import Program

if TYPE_CHECKING:
    from xlapy.codegen.libraries import Library

CACHE_LIMIT_BYTES = 1 << 30


def object_cache(around: Environment) -> ObjectCache:
    """The cache of object code on disk, where the environment wants it."""
    return _object_cache(cache_directory(around.cache_dir, around.cache_home))


def _present_cache() -> ObjectCache:
    """The one that the environment names now."""
    return _object_cache(cache_directory(*cache_settings()))


def _note_version() -> None:
    """Looks at the sources when they are loaded: what is edited later is not what this process compiles with, nor what
    those do that are forked from it. A cache that is switched off needs no version."""
    directory = cache_directory(*cache_settings())
    if directory is not None:
        code_version(directory)


_note_version()


@cache
def _object_cache(directory: str | None) -> ObjectCache:
    return ObjectCache(directory, CACHE_LIMIT_BYTES)


@cache
def host_target() -> Target:
    """This machine, as this process may use it. Read once."""
    return host().target


@cache
def host() -> Host:
    """This machine, as all its processes find it. Read once."""
    return remembered_host(_present_cache())


@cache
def native_wrapper() -> CallWrapper | None:
    """The native call wrapper of this process; None where only the portable way of calling works."""
    code = _shared_code().wrapper
    return None if code is None else load_wrapper(bytes(code), is_checked=layout_identity() is not None)


@cache
def _shared_code() -> SharedCode:
    """What each program needs besides itself, which is made or read once in a process."""
    found = host()
    if found.code:
        return read_shared_code(found.code)
    target, cache = host_target(), _present_cache()
    pool: Sequence[Code] = late("xlapy.codegen.pool").POOL.objects(target, cache)
    if not late("xlapy_runtime.object_layouts").is_layout_known():
        return SharedCode(pool, None)
    made = SharedCode(pool, late("xlapy.codegen.call_wrapper").call_wrapper_object(target, cache))
    if found.code is not None:
        leave_code(cache, found, dump_shared_code(made))
    return made


@cache
def library_symbols(name: str, machine: Host | Target) -> dict[str, int]:
    """The addresses of a library's functions; loaded once, and for as long as the process lives."""
    cache = _present_cache()
    code = find_code(name, machine, cache)
    if code is None:
        library: Library = late("xlapy.codegen.libraries.catalogue").LIBRARIES[name]
        code = library.code(machine.target, cache)
    imports: dict[str, int] = {}
    for needed in code.needs:
        imports.update(library_symbols(needed, machine))
    linked = link(code.objects, imports, code.exports)
    _LOADED_LIBRARIES.append(linked)
    if code.trim:
        trimming.add_native(linked.address(code.trim))
    return {symbol: linked.address(symbol) for symbol in code.exports}


_LOADED_LIBRARIES: list[LinkedCode] = []


def install_rendezvous() -> None:
    """Lets programs run as several processes. Starts no thread."""
    code: Library = late("xlapy.codegen.rendezvous").RENDEZVOUS
    late("xlapy_runtime.rendezvous").NATIVE.install(code.objects(host_target(), _present_cache()))


def parallel_function(num_threads: int | None) -> int:
    """The address of the thread pool's `parallel` for so many threads, which puts the pool in memory, and starts no
    thread."""
    threads.install(_shared_code().pool)
    return threads.parallel_address(num_threads)


def look_function() -> int:
    """The address of the function that programs call behind what may take long."""
    threads.install(_shared_code().pool)
    return threads.look_address()


def install_batch_calls(program: Program) -> None:
    """Gives the runtime native loops over the problems of a batch, if the program calls LAPACK."""
    targets = [call.attributes["target"] for call in program.runtime_calls if "target" in call.attributes]
    if not targets:
        return
    lapack = late("xlapy_runtime.lapack")
    if any(target in lapack.NAMES for target in targets):
        loops: Library = late("xlapy.codegen.batch_calls").BATCH_CALLS
        lapack.LOOPS.install(loops.objects(host_target(), _present_cache()))
