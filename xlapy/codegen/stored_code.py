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
    from xlapy.codegen.target import Target


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


def find_code(name: str, target: Target, cache: ObjectCache) -> StoredCode | None:
    """What is kept under the name for this target, if there is something.

    The cache's version covers the emitter's sources, the key what they may ask of the target. How many cores there are
    is not for shared code to know."""
    found = cache.get(_KIND, _key(name, target))
    if found is None:
        return None
    begin = _SIZE_BYTES + int.from_bytes(found[:_SIZE_BYTES], "little")
    facts = read_json(found[_SIZE_BYTES:begin].decode())
    objects, remaining = [], memoryview(found)[begin:]
    for size in facts["sizes"]:
        objects.append(remaining[:size])
        remaining = remaining[size:]
    return StoredCode(objects, facts["exports"], facts["needs"], facts["trim"])


def keep_code(name: str, target: Target, cache: ObjectCache, code: StoredCode) -> None:
    """Keeps it for `find_code`."""
    sizes = [len(part) for part in code.objects]
    told = {"sizes": sizes, "exports": list(code.exports), "needs": list(code.needs), "trim": code.trim}
    facts = late("json").dumps(told).encode()
    cache.put(_KIND, _key(name, target), b"".join((len(facts).to_bytes(_SIZE_BYTES, "little"), facts, *code.objects)))


class SharedCode(Record):
    """What each program needs besides itself: the object files of the thread pool, and the call wrapper, if there is
    one that is safe."""

    pool: Sequence[Code]
    wrapper: Code | None


def find_shared_code(target: Target, cache: ObjectCache) -> SharedCode | None:
    """Both together, as kept by a process of the same Python and numpy that could use the wrapper."""
    found = find_code(_shared_name(), target, cache)
    return None if found is None else SharedCode(found.objects[:-1], found.objects[-1])


def keep_shared_code(target: Target, cache: ObjectCache, code: SharedCode) -> None:
    """Keeps both for `find_shared_code`."""
    assert code.wrapper is not None
    keep_code(_shared_name(), target, cache, StoredCode([*code.pool, code.wrapper], ()))


def _shared_name() -> str:
    return f"pool and {wrapper_name()}"


def _key(name: str, target: Target) -> bytes:
    return f"{name}|{target.code_key}|{target.l1_bytes}|{target.l2_bytes}|{target.l3_bytes}".encode()
