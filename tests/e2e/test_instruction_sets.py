"""Programs compiled for every instruction set that this machine has, not only its best, give the same results."""

from __future__ import annotations

import pytest

from tests.support.native import flatten
from tests.support.target_programs import PROGRAMS, Program
from tests.support.targets import lesser_targets
from xlapy.codegen.target import host_target
from xlapy.compiler import compile_module
from xlapy.executable import Executable
from xlapy.options import CompileOptions

TARGETS = {"host": host_target(), **lesser_targets()}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.title)
@pytest.mark.parametrize("name", TARGETS)
def test_program(name: str, program: Program) -> None:
    options = CompileOptions()
    executable = Executable(compile_module(program.module(), options, TARGETS[name]), options)
    program.check(flatten(executable(*program.arguments)))
