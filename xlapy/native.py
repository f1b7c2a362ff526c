"""Native code that programs share: libraries, the thread pool, the wrapper around calls.

A program that comes from the cache needs no more than this to run, so nothing here knows the compiler."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from xlapy.codegen.object_cache import ObjectCache, cache_directory, code_version
from xlapy.codegen.processor import known_processor
from xlapy.codegen.stored_code import SharedCode, StoredCode, dump_shared_code, find_code, read_shared_code
from xlapy.codegen.target import Host, Target, leave_code, remembered_host, sees_cache_sizes
from xlapy.options import Environment, cache_settings, environment
from xlapy.support.late import late
from xlapy_runtime import threads, trimming
from xlapy_runtime.calling import (
    WRAPPER_SYMBOLS,
    CallWrapper,
    layout_identity,
    load_wrapper,
    wrapper_imports,
)
from xlapy_runtime.errors import ArgumentError, InternalError
from xlapy_runtime.images import Code, Parts, is_image, parts
from xlapy_runtime.joint_code import Joint, Member, link_members
from xlapy_runtime.linking import LinkedCode, Room, as_image, link, note_usual_functions
from xlapy_runtime.program import Program

if TYPE_CHECKING:
    from xlapy.codegen.libraries import Library

CACHE_LIMIT_BYTES = 1 << 30


def object_cache(around: Environment) -> ObjectCache:
    """The cache of object code on disk, where the environment wants it."""
    setting = around.cache_dir
    if setting in _CACHES:
        return _CACHES[setting]
    cache = _object_cache(cache_directory(setting, around.cache_home))
    if setting is not None and os.path.isabs(setting):  # which is the same folder every time
        _CACHES[setting] = cache
    return cache


_CACHES: dict[str | None, ObjectCache] = {}
"""By what the environment says of their folders."""


def _present_cache() -> ObjectCache:
    """The one that the environment names now."""
    return _object_cache(cache_directory(*cache_settings()))


def _note_version() -> None:
    """Looks at the sources when they are loaded: what is edited later is not what this process compiles with, nor what
    those do that are forked from it. A cache that is switched off needs no version."""
    directory = cache_directory(*cache_settings())
    if directory is not None:
        code_version(directory)


def _note_process() -> None:
    """Asks once for all what mostly does not change while a process lives, nor in those that are forked from it: what
    the environment says, what kind of processor it has, and where Python and numpy are."""
    with contextlib.suppress(ArgumentError):  # who compiles is told
        object_cache(environment())
    if known_processor() is not None and layout_identity() is not None:
        wrapper_imports()
        note_usual_functions()


@cache
def _object_cache(directory: str | None) -> ObjectCache:
    return ObjectCache(directory, CACHE_LIMIT_BYTES)


_note_version()
_note_process()


@cache
def host_target() -> Target:
    """This machine, as this process may use it. Read once."""
    return host().target


@cache
def host() -> Host:
    """This machine, as all its processes find it. Read once."""
    return remembered_host(_present_cache())


def native_wrapper() -> CallWrapper | None:
    """The native call wrapper of this process; None where only the portable way of calling works."""
    if not _WRAPPER:
        code = shared_code().wrapper
        _WRAPPER.append(None if code is None else load_wrapper(bytes(code), is_checked=layout_identity() is not None))
    return _WRAPPER[0]


_WRAPPER: list[CallWrapper | None] = []
"""The wrapper, once somebody has asked for it."""


@cache
def shared_code() -> SharedCode:
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


def library_symbols(name: str, machine: Host | Target) -> Mapping[str, int]:
    """The addresses of a library's functions; loaded once, and for as long as the process lives."""
    is_here = machine.library_key == host().library_key
    key = name, "" if is_here else machine.library_key
    if key not in _LIBRARIES:
        code = library_code(name, machine)
        imports: dict[str, int] = {}
        for needed in code.needs:
            imports.update(library_symbols(needed, machine))
        _keep_library(key, link(code.objects, imports, code.exports), code.trim)
    return _LIBRARIES[key].addresses()


def _keep_library(key: tuple[str, str], linked: LinkedCode, trim: str) -> None:
    """Of two that are loaded at the same time, one serves what comes later; both stay."""
    if _LIBRARIES.setdefault(key, linked) is not linked:
        _OTHERS.append(linked)
    if trim:
        trimming.add_native(linked.address(trim))


_LIBRARIES: dict[tuple[str, str], LinkedCode] = {}
"""By their names, and the machine that they are for if that is not this one."""

_OTHERS: list[LinkedCode] = []


@lru_cache(maxsize=16)
def library_code(name: str, machine: Host | Target) -> StoredCode:
    """A library, from the cache, or made now. A process that compiles needs it again with each program that calls it,
    to put it beside that."""
    cache = _present_cache()
    code = find_code(name, machine, cache)
    if code is None:
        library: Library = late("xlapy.codegen.libraries.catalogue").LIBRARIES[name]
        code = library.code(machine.target, cache)
    return code


def shared_by(program: Program) -> bytes:
    """What this program shares with others, to be kept beside it for the first program of a process, with the program
    itself unless that is large; nothing where that cannot be put into memory together, or is made by a process that
    does not see the sizes of caches."""
    if layout_identity() is None or not sees_cache_sizes():
        return b""
    shared = _shared_code_of(program.libraries)
    return b"" if shared is None else Joint(_own_member(program), shared).dump(layout_identity() or "")


@lru_cache(maxsize=16)
def _shared_code_of(libraries: tuple[str, ...]) -> Joint | None:
    """The call wrapper and these libraries, with those that they call; None if one of them is no image."""
    wrapper = shared_code().wrapper
    if wrapper is None:
        return None
    names = list(libraries)
    for name in names:
        names += [needed for needed in library_code(name, host()).needs if needed not in names]
    needed = [(name, library_code(name, host())) for name in names]
    codes = [(name, code.trim, as_image(code.objects), code.exports) for name, code in needed]
    codes.append((_OF_CALLS, "", as_image([wrapper]), WRAPPER_SYMBOLS))
    members = [
        Member(name, trim, _exporting(parts(image), exports))
        for name, trim, image, exports in codes
        if image is not None
    ]
    return Joint(sorted(members, key=_has_only_code)) if len(members) == len(codes) else None


def _own_member(program: Program) -> list[Member]:
    """The program itself, if it is an image that is read twice without loss."""
    if len(program.objects) != 1 or len(program.objects[0]) > _MOST_BYTES_TWICE or not is_image(program.objects[0]):
        return []
    return [Member(_OWN, "", _exporting(parts(program.objects[0]), [program.entry, *program.kernels]))]


_MOST_BYTES_TWICE = 1 << 15
"""A larger program is read once, and linked after what it shares with others."""


def _exporting(image: Parts, exports: Sequence[str]) -> Parts:
    """The image, which says only where these are: a library has ten times as many functions that call each other."""
    (*sizes, known, imports, addresses), data, code = image
    return [*sizes, {name: known[name] for name in exports}, imports, addresses], data, code


def _has_only_code(member: Member) -> bool:
    """What has data comes first: the rest becomes code in one go."""
    _, data_space, *_ = member.image[0]
    return not data_space


_OF_CALLS = "call wrapper"
_OWN = "program"


class RoomForShared:
    """Where what programs share is read to, for the first program of a process that needs any of it."""

    def __init__(self) -> None:
        self.taken: Room | None = None

    def __call__(self, size: int) -> Room | None:
        """Memory for so many bytes."""
        if not _LIBRARIES and not _WRAPPER:
            self.taken = Room(size)
        return self.taken


def link_with_shared(shared: Room | None) -> LinkedCode | None:
    """Puts what lay beside a program into use, if it is the first in this process that needs any of that; the program,
    if it is among that, and all is for this Python and numpy."""
    if shared is None or _LIBRARIES or _WRAPPER:
        return None
    own = None
    try:
        linked = link_members(shared, layout_identity(), wrapper_imports())
    except InternalError:
        return None  # who links one after the other says what is wrong with them
    for name, trim, code in linked:
        if name == _OF_CALLS:
            _WRAPPER.append(CallWrapper(code))
        elif name == _OWN:
            own = code
        else:
            _keep_library((name, ""), code, trim)
    return own


def install_rendezvous() -> None:
    """Lets programs run as several processes. Starts no thread."""
    late("xlapy_runtime.rendezvous").NATIVE.install(rendezvous_code())


def rendezvous_code() -> Sequence[Code]:
    """The native half of parallel runs."""
    code: Library = late("xlapy.codegen.rendezvous").RENDEZVOUS
    return code.objects(host_target(), _present_cache())


def parallel_function(num_threads: int | None) -> int:
    """The address of the thread pool's `parallel` for so many threads, which puts the pool in memory, and starts no
    thread."""
    threads.install(shared_code().pool)
    return threads.parallel_address(num_threads)


def look_function() -> int:
    """The address of the function that programs call behind what may take long."""
    threads.install(shared_code().pool)
    return threads.look_address()


def install_planned_calls(program: Program) -> None:
    """Lets native code do what the program calls of LAPACK, if it does."""
    code = planned_calls_code(program)
    if code:
        late("xlapy_runtime.planned_calls").NATIVE.install(code)


def planned_calls_code(program: Program) -> Sequence[Code]:
    """What goes through planned calls, if the program calls LAPACK; else nothing."""
    targets = [call.attributes["target"] for call in program.runtime_calls if "target" in call.attributes]
    if not targets or not any(target in late("xlapy_runtime.lapack").NAMES for target in targets):
        return ()
    library: Library = late("xlapy.codegen.planned_calls").PLANNED_CALLS
    return library.objects(host_target(), _present_cache())
