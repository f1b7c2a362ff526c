"""Saved programs: made by `Executable.save`, and run by the runtime alone.

A file has the program, and the native code that it shares with others: the libraries that it calls, the thread pool,
the call wrapper. A process that loads it needs neither the compiler nor LLVM nor a cache. What a file says of the
machine and of the version that it is for is looked at first: code that does not fit is refused, not run.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from xlapy_runtime import threads, trimming
from xlapy_runtime.calling import CallWrapper, layout_identity, load_wrapper
from xlapy_runtime.device import assigned_devices
from xlapy_runtime.digests import blake2b
from xlapy_runtime.errors import ArgumentError, InternalError, SavedProgramError
from xlapy_runtime.executable import CallableProgram, ProgramExecutable, keeps_gil_to
from xlapy_runtime.images import Code
from xlapy_runtime.late import late
from xlapy_runtime.linking import LinkedCode, link
from xlapy_runtime.native_interface import interface_of_calls, interface_of_plans, interface_of_runs
from xlapy_runtime.processor_features import lacking_features, needed_features
from xlapy_runtime.program import Program, tree_text
from xlapy_runtime.program_file import dump_program, load_program
from xlapy_runtime.records import Record, values_of
from xlapy_runtime.saved_file import read_saved, write_saved

__all__ = [
    "SavedLibrary",
    "SavedOptions",
    "SavedProgram",
    "SavedProgramError",
    "SharedParts",
    "load",
    "save",
]


class SavedProgram(CallableProgram):
    """A program from a file. It is called as the executable was that was saved, and gives the same bits."""

    __slots__ = ("path",)

    def __init__(self, path: str, executable: ProgramExecutable) -> None:
        super().__init__(executable)
        self.path = path

    @property
    def program(self) -> Program:
        """What is in the file, as plain data: the shapes of parameters and result, the grid, the calls it makes."""
        return self._executable.program

    def __copy__(self) -> SavedProgram:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> SavedProgram:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} is not pickled: load {self.path} where it is wanted")

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            hint = ": saved is what runs; the executable that saved it has the rest" if name in _COMPILERS else ""
            raise AttributeError(f"a SavedProgram has no {name!r}{hint}", name=name, obj=self)

    def __repr__(self) -> str:
        signature = f"{tree_text(self.program.parameters)} -> {tree_text(self.program.result)}"
        return f"<SavedProgram {self.name} {signature}, from {self.path}>"


_COMPILERS = (
    "assembly",
    "compile_stats",
    "cost_analysis",
    "explain",
    "hlo_text",
    "html_report",
    "llvm_ir",
    "memory_analysis",
    "options",
    "profile",
    "save",
)
"""What executables tell with the compiler's help."""


class SavedLibrary(Record):
    """Native code that several programs may have in common: object code, the symbols that it offers, and the one of
    them that gives memory it keeps back to the system, if any."""

    name: str
    objects: Sequence[Code]
    exports: Sequence[str]
    trim: str = ""


class SharedParts(Record):
    """The native code that a program needs besides its own. `libraries` come behind those that they call; there is a
    `wrapper` where one is safe, and the rest if the program asks for it."""

    libraries: Sequence[SavedLibrary]
    pool: Sequence[Code]
    wrapper: Sequence[Code]
    rendezvous: Sequence[Code]
    planned_calls: Sequence[Code]


class SavedOptions(Record):
    """How the program is to be run; see `CompileOptions`."""

    num_threads: int | None
    timeout: float | None
    seed: int
    device_assignment: Sequence[int] | None


def save(path: str, program: Program, shared: SharedParts, options: SavedOptions, features: str, version: str) -> None:
    """Writes a file for `load`. `features` is LLVM's list of those of the machine that the code is for, `version` that
    of the compiler, for whoever cannot load it."""
    header = {
        "version": version,
        "system": _system(),
        "features": needed_features(features),
        "interfaces": _interfaces(bool(shared.rendezvous), bool(shared.planned_calls)),
        "python": layout_identity(),
        "options": list(values_of(options).values()),
        "libraries": [[library.name, list(library.exports), library.trim] for library in shared.libraries],
    }
    parts = {
        "program": (dump_program(program),),
        "pool": shared.pool,
        "wrapper": shared.wrapper,
        "rendezvous": shared.rendezvous,
        "planned calls": shared.planned_calls,
        **{_part_of(library.name): library.objects for library in shared.libraries},
    }
    write_saved(path, header, parts)


def load(
    path: str | os.PathLike[str], *, custom_calls: Mapping[str, Any] | None = None, num_threads: int | None = None
) -> SavedProgram:
    """The program that `executable.save(path)` has written, ready to be called.

    The file holds machine code, which is run: load only what is from somebody whom you trust. `custom_calls` are the
    targets of the program's own custom calls by their names, as `CompileOptions` has them. `num_threads` bounds the
    threads of a call, in place of the number that the program was saved with.

    Raises SavedProgramError, which is a ValueError, for a file that is no saved program, or damaged, or that was saved
    for another kind of machine or by a version that does not fit; OSError for one that cannot be read."""
    if not isinstance(custom_calls, Mapping | None):
        raise ArgumentError(f"custom_calls gives targets by their names, which {custom_calls!r} does not")
    if not isinstance(num_threads, int | None):
        raise ArgumentError(f"num_threads is a number of threads, not {num_threads!r}")
    name = os.fspath(path)
    header, parts = read_saved(name)
    try:
        _check_machine(name, header)
        _check_version(name, header, _interfaces(bool(parts["rendezvous"]), bool(parts["planned calls"])))
        program, _ = load_program(parts["program"][0])
        return SavedProgram(name, _executable(program, header, parts, custom_calls or {}, num_threads))
    except (SavedProgramError, ArgumentError):
        raise
    except (InternalError, LookupError, TypeError, ValueError) as error:
        raise SavedProgramError(f"{name} cannot be loaded: {error}; save the program again") from error


def _check_version(path: str, header: Mapping[str, Any], interfaces: Sequence[str]) -> None:
    """Raises SavedProgramError unless the code was made for a runtime like this one."""
    if header["interfaces"] != interfaces:
        raise SavedProgramError(
            f"{path} was saved by xlapy {header['version']}, whose native code this version cannot call; save the "
            "program again with this version, or load it with that one"
        )


def _interfaces(meets: bool, has_plans: bool) -> list[str]:
    """What native code takes for granted about the runtime; `meets` says that it includes the code of processes that
    meet, `has_plans` that of planned calls."""
    return [interface_of_calls(), interface_of_runs() if meets else "", interface_of_plans() if has_plans else ""]


def _system() -> str:
    """The operating system, the kind of processor, and how wide its words are."""
    machine = os.uname().machine if hasattr(os, "uname") else late("platform").machine()
    return f"{sys.platform} on {machine}, {sys.maxsize.bit_length() + 1} bits, {sys.byteorder} endian"


def _check_machine(path: str, header: Mapping[str, Any]) -> None:
    """Raises SavedProgramError unless this machine runs the code."""
    if header["system"] != _system():
        raise SavedProgramError(
            f"{path} was saved for {header['system']}, and this is {_system()}; save the program on a machine like this"
        )
    lacking = lacking_features(header["features"])
    if lacking:
        raise SavedProgramError(
            f"{path} was saved on a machine whose processor has {', '.join(lacking)}, which this one has not; save the "
            "program on a machine like this, or one that has less"
        )


def _executable(
    program: Program,
    header: Mapping[str, Any],
    parts: Mapping[str, Sequence[Code]],
    targets: Mapping[str, Any],
    num_threads: int | None,
) -> ProgramExecutable:
    """The program in memory, ready to run, with what it needs around it."""
    options = SavedOptions(*header["options"])
    wanted = options.num_threads if num_threads is None else num_threads
    if parts["rendezvous"]:
        late("xlapy_runtime.rendezvous").NATIVE.install(parts["rendezvous"])
    if parts["planned calls"]:
        late("xlapy_runtime.planned_calls").NATIVE.install(parts["planned calls"])
    imports: dict[str, int] = {}
    for name, exports, trim in header["libraries"]:
        imports.update(_library_symbols(parts[_part_of(name)], imports, exports, trim))
    return ProgramExecutable(
        program,
        link(program.objects, imports, [program.entry, *program.kernels]),
        devices=assigned_devices(options.device_assignment),
        timeout=options.timeout,
        seed=options.seed,
        targets=targets,
        parallel=functools.partial(_parallel_function, parts["pool"], threads.wanted_threads(wanted)),
        look=functools.partial(_look_function, parts["pool"]),
        wrapper=_wrapper(parts["wrapper"], header["python"]),
        keeps_gil_to=keeps_gil_to(program),
    )


def _part_of(library: str) -> str:
    return f"library {library}"


def _parallel_function(pool: Sequence[Code], num_threads: int | None) -> int:
    """The address of the thread pool's `parallel` for so many threads."""
    threads.install(pool)
    return threads.parallel_address(num_threads)


def _look_function(pool: Sequence[Code]) -> int:
    """The address of what looks at signals behind long kernels."""
    threads.install(pool)
    return threads.look_address()


def _wrapper(objects: Sequence[Code], python: str | None) -> CallWrapper | None:
    """The native call wrapper, which was found safe where Python and numpy were as `python` says; elsewhere it is
    looked at again. None where it is not safe: there the portable way of calling serves."""
    if not objects:
        return None
    return load_wrapper(bytes(objects[0]), is_checked=python is not None and python == layout_identity())


def _library_symbols(
    objects: Sequence[Code], imports: Mapping[str, int], exports: Sequence[str], trim: str
) -> Mapping[str, int]:
    """The addresses of a library's functions. Programs whose files have the same library share it; it stays for as
    long as the process lives."""
    key = _digest(objects)
    if key not in _LOADED_LIBRARIES:
        linked = _LOADED_LIBRARIES.setdefault(key, link(objects, imports, exports))
        if trim:
            trimming.add_native(linked.address(trim))
    linked = _LOADED_LIBRARIES[key]
    return {symbol: linked.address(symbol) for symbol in exports}


def _digest(objects: Iterable[Code]) -> bytes:
    digest = blake2b()
    for code in objects:
        digest.update(code)
    return digest.digest()


_LOADED_LIBRARIES: dict[bytes, LinkedCode] = {}
"""By their contents: of one name there may be several, from different versions."""
