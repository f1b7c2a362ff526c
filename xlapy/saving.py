"""Saving executables: gathers the native code that a program needs, for the runtime to run it alone."""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.compiled import Compiled
from xlapy.native import host, library_code, planned_calls_code, rendezvous_code, shared_code
from xlapy.options import CompileOptions
from xlapy.support.version import VERSION
from xlapy_runtime import saved
from xlapy_runtime.executable import needs_rendezvous
from xlapy_runtime.saved import SavedLibrary, SavedOptions, SharedParts


def save(compiled: Compiled, options: CompileOptions, path: str) -> None:
    """Writes a program as a file for `xlapy_runtime.load`."""
    program = compiled.program
    wrapper = shared_code().wrapper
    shared = SharedParts(
        libraries=_libraries(program.libraries, compiled),
        pool=shared_code().pool,
        wrapper=() if wrapper is None else (wrapper,),
        rendezvous=rendezvous_code() if needs_rendezvous(program) else (),
        planned_calls=planned_calls_code(program),
    )
    assignment = options.device_assignment
    told = SavedOptions(
        num_threads=None if options.num_threads is None else int(options.num_threads),
        timeout=None if options.timeout is None else float(options.timeout),
        seed=int(options.seed),
        device_assignment=None if assignment is None else list(map(int, assignment)),
    )
    saved.save(path, program, shared, told, features=compiled.target.features, version=VERSION)


def _libraries(names: Sequence[str], compiled: Compiled) -> list[SavedLibrary]:
    """The libraries of these names and those that they call, each behind its own."""
    found: dict[str, SavedLibrary] = {}

    def add(name: str) -> None:
        if name not in found:
            code = library_code(name, compiled.machine or host())
            for needed in code.needs:
                add(needed)
            found[name] = SavedLibrary(name, code.objects, code.exports, code.trim)

    for name in names:
        add(name)
    return list(found.values())
