"""Whole programs in the cache on disk: what was compiled once is read, and the compiler stays out of the process."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from xlapy.codegen.processor import known_processor
from xlapy.compiled import Compiled, CompileStats
from xlapy.native import RoomForShared, host, host_target, object_cache, shared_by
from xlapy.options import USUAL_OPTIONS, CompileOptions, environment
from xlapy.support.collection import paused_collection
from xlapy.support.late import late
from xlapy_runtime.digests import digest_of_text
from xlapy_runtime.program_file import dump_program, load_program
from xlapy_runtime.records import replaced, values_of

if TYPE_CHECKING:
    from xlapy.hlo.graph import HloModule
    from xlapy_runtime.program import Texts


def compile_cached(
    key: str, load: Callable[[], HloModule], options: CompileOptions, *, is_own: bool = False
) -> Compiled:
    """Compiles what `load` returns, unless the cache knows the program of `key`, which determines the module. What it
    returns is left as it is, unless it `is_own`: made for this.

    A program is cached whole, without its texts: passes, emission and LLVM are skipped, and with text as the key, even
    reading it. Who asks for texts of a program from the cache has it compiled again."""
    began = time.perf_counter()
    around = environment()
    kept = object_cache(around)
    machine = known_processor() or host().code_key
    chosen = _USUAL_KEY if options is USUAL_OPTIONS else f"{options.cache_key}\n{_identity_of_extensions(options)}"
    around_it = f"{machine}\n{chosen}\n".encode("utf-8", "surrogatepass")
    full_key = digest_of_text(around_it, key)
    checked = around.verify or options.verify
    observed = around.dump_to or checked or around.time_passes or around.pass_limit is not None
    room = RoomForShared()
    found = None if observed else kept.get_with_supplement(_PROGRAM_KIND, full_key, room)
    if found is not None:
        try:
            program, read_facts = load_program(found, partial(_texts, load, options, is_own))
            elapsed = time.perf_counter() - began
            return Compiled(program, partial(_stats_of, read_facts, elapsed), source=load, shared=room.taken)
        except (ValueError, TypeError):
            pass  # written by another version, or damaged beyond the checksum: compile again
    compiled = _compile(load, options, is_own)
    program = compiled.program
    if kept.is_on:
        facts = values_of(compiled.stats) | {"passes_ms": 0.0, "llvm_ms": 0.0}
        kept.put(_PROGRAM_KIND, full_key, dump_program(program, facts), shared_by(program))
    return replaced(compiled, source=load)


@paused_collection()
def _compile(load: Callable[[], HloModule], options: CompileOptions, is_own: bool) -> Compiled:
    """Compiles what is loaded; the collector waits for the end of both."""
    compile_module: Callable[..., Compiled] = late("xlapy.compiler").compile_module
    return compile_module(load(), options, host_target(), is_own=is_own)


def _stats_of(read_facts: Callable[[], dict[str, Any]], seconds: float) -> CompileStats:
    """Those of a program from the cache, which took so long to load."""
    return CompileStats(**{**read_facts(), "compile_ms": seconds * 1e3, "cached": True})


def _texts(load: Callable[[], HloModule], options: CompileOptions, is_own: bool) -> Texts:
    """What a program from the cache was made of: what it would be made of now."""
    return _compile(load, options, is_own).program.texts()


_PROGRAM_KIND = "programs"


def _identity_of_extensions(options: CompileOptions) -> str:
    """What tells the passes and laws apart that a user brings along; mostly there are none."""
    if not (options.passes or options.laws):
        return ""
    identity: str = late("xlapy.passes.user").identity_of(options.passes, options.laws)
    return identity


_USUAL_KEY = f"{USUAL_OPTIONS.cache_key}\n{_identity_of_extensions(USUAL_OPTIONS)}"


def module_key(module: HloModule) -> str:
    """Text that tells modules apart wherever their programs differ: all of it, large constants as digests."""
    key: str = late("xlapy.hlo.text").complete_text(module)
    return key
