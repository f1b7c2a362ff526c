"""`xlapy translate` and `xlapy check`: programs as text."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import xlapy
from xlapy.hlo.graph import HloModule
from xlapy.hlo.specialize import has_open_parameters, is_dynamic
from xlapy.hlo.verifier import verify
from xlapy.support.errors import InternalError, XlaError
from xlapy.support.wording import counted
from xlapy.tools.commands import add_command
from xlapy.tools.console import WRONG, progress, report_error
from xlapy.tools.programs import PROGRAM, add_program, load_program

FORMATS: dict[str, Callable[[HloModule], str]] = {
    "stablehlo": lambda module: xlapy.stablehlo.to_text(module, pretty=True),
    "stablehlo-generic": xlapy.stablehlo.to_text,
    "hlo": lambda module: module.to_text(),
    "hlo-long": lambda module: module.to_text(long=True),
    "dot": xlapy.hlo.to_dot,
}


def add_to(commands: Any) -> None:
    """Adds the subcommands to the parser."""
    parser = add_command(commands, "translate", "write a program in another form")
    add_program(parser)
    parser.add_argument("--to", choices=tuple(FORMATS), required=True, help="the form; dot is for drawings")
    parser.add_argument("-o", "--output", metavar="FILE", help="where to; standard output if not given")
    parser.set_defaults(run=_translate)
    parser = add_command(commands, "check", "tell whether a program keeps all rules")
    parser.add_argument("files", metavar="FILE", nargs="+", help=PROGRAM)
    parser.set_defaults(run=_check)


def _translate(chosen: argparse.Namespace) -> int:
    text = FORMATS[chosen.to](load_program(chosen))
    if chosen.output is None:
        print(text, end="" if text.endswith("\n") else "\n")
    else:
        Path(chosen.output).write_text(text, encoding="utf-8")
    return 0


def _check(chosen: argparse.Namespace) -> int:
    status = 0
    for file in chosen.files:
        try:
            print(f"{file}: right, {_checked(file)}")
        except InternalError:
            raise
        except (XlaError, OSError) as error:
            report_error(error)
            status = WRONG
    return status


def _checked(file: str) -> str:
    """What is in the file. Raises XlaError for a program that breaks a rule."""
    module = load_program(argparse.Namespace(file=file))
    with progress(f"checking {file}"):
        if not is_dynamic(module):
            verify(module)
    sizes = "; sizes are checked when a call gives them" if has_open_parameters(module) else ""
    return f"{counted(module.instruction_count, 'instruction')}, {module.signature}{sizes}"
