"""Native code that programs share, as the cache keeps it: found without what emits it.

The emitters of a library are many modules, which a process that finds it in the cache need not load. So what is kept
says also what is otherwise written beside the emitter: which functions it offers, and which other libraries it calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xlapy_runtime.calling import layout_identity
from xlapy_runtime.images import Code
from xlapy_runtime.json_text import read_json
from xlapy_runtime.late import late
from xlapy_runtime.records import Record

if TYPE_CHECKING:
    from xlapy.codegen.object_cache import ObjectCache
    from xlapy.codegen.target import Host, Target


def wrapper_name() -> str:
    """The name of the native call wrapper, under which it is kept by processes that found Python and numpy laid out in
    memory as it takes for granted: who finds it need not look again."""
    return f"call-wrapper for {layout_identity()}"


_KIND = "library"
_SIZE_BYTES = 8


class StoredCode(Record):
    """Object code, the symbols that it offers, and the names of the libraries whose functions it calls. `trim` is the
    one of its functions that gives memory it keeps back to the system, if any."""

    objects: Sequence[Code]
    exports: Sequence[str]
    needs: Sequence[str] = ()
    trim: str = ""


def find_code(name: str, machine: Host | Target, cache: ObjectCache) -> StoredCode | None:
    """What is kept under the name for this machine, if there is something.

    The cache's version covers the emitter's sources, the key what they may ask of the target."""
    found = cache.get(_KIND, _key(name, machine))
    return None if found is None else _read(found)


def keep_code(name: str, machine: Host | Target, cache: ObjectCache, code: StoredCode) -> None:
    """Keeps it for `find_code`."""
    cache.put(_KIND, _key(name, machine), _dump(code))


def _read(data: bytes | memoryview) -> StoredCode:
    begin = _SIZE_BYTES + int.from_bytes(data[:_SIZE_BYTES], "little")
    facts = read_json(str(data[_SIZE_BYTES:begin], "utf-8"))
    objects, remaining = [], memoryview(data)[begin:]
    for size in facts["sizes"]:
        objects.append(remaining[:size])
        remaining = remaining[size:]
    return StoredCode(objects, facts["exports"], facts["needs"], facts["trim"])


def _dump(code: StoredCode) -> bytes:
    sizes = [len(part) for part in code.objects]
    told = {"sizes": sizes, "exports": list(code.exports), "needs": list(code.needs), "trim": code.trim}
    facts = late("json").dumps(told).encode()
    return b"".join((len(facts).to_bytes(_SIZE_BYTES, "little"), facts, *code.objects))


class SharedCode(Record):
    """What each program needs besides itself: the object files of the thread pool, and the call wrapper, if there is
    one that is safe."""

    pool: Sequence[Code]
    wrapper: Code | None


def read_shared_code(data: bytes | memoryview) -> SharedCode:
    """What `dump_shared_code` made."""
    *pool, wrapper = _read(data).objects
    return SharedCode(pool, wrapper)


def dump_shared_code(code: SharedCode) -> bytes:
    """Both as bytes, to be kept for processes of the same Python and numpy. There must be a wrapper."""
    assert code.wrapper is not None
    return _dump(StoredCode([*code.pool, code.wrapper], ()))


def _key(name: str, machine: Host | Target) -> bytes:
    return f"{name}|{machine.library_key}".encode()
