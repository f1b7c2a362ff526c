"""`xlapy compile`: a program as a file that runs without the compiler."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import xlapy
from xlapy.tools.commands import add_command
from xlapy.tools.console import progress
from xlapy.tools.programs import add_options, add_program, add_size, chosen_options, load_static


def add_to(commands: Any) -> None:
    """Adds the subcommand to the parser."""
    parser = add_command(commands, "compile", "compile a program, and save it for `xlapy run` and xlapy_runtime")
    add_program(parser)
    add_size(parser)
    add_options(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="where to (default: the name of the program, .xlapy)")
    parser.set_defaults(run=_compile)


def _compile(chosen: argparse.Namespace) -> int:
    module = load_static(chosen)
    with progress("compiling"):
        executable = xlapy.compile(module, chosen_options(chosen))
    path = Path(chosen.output or f"{executable.name}.xlapy")
    executable.save(path)
    print(executable.compile_stats())
    print(f"{path}: {path.stat().st_size:,} bytes")
    return 0
