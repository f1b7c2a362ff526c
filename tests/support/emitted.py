"""The LLVM IR of programs, with that of the functions that their quick kernels call."""

from __future__ import annotations

from collections.abc import Collection

from xlapy.codegen.target import Target, host_target
from xlapy.compiler import lower
from xlapy.hlo.text import parse
from xlapy.options import CompileOptions
from xlapy.passes.pipeline import Watch
from xlapy.support.timing import Timings


def emitted_code(text: str) -> tuple[str, Collection[str]]:
    """All code that is linked with no other program's, and the names of the libraries that it calls."""
    target = host_target()
    emitted = lower(parse(text), CompileOptions(), target, Watch(), Timings()).emitted
    functions = [function.emit(target) for function in emitted.outlined]
    code = "".join([*(module.text for module in emitted.modules), *(module.text() for module in functions)])
    return code, {*emitted.libraries, *(name for module in functions for name in module.libraries or ())}


def emitted_kernels(text: str, target: Target) -> str:
    """The code of a program's kernels, as made for any machine."""
    return "".join(map(str, lower(parse(text), CompileOptions(), target, Watch(), Timings()).emitted.kernels))
