"""`xlapy compile`: a program as a file that runs without the compiler."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import xlapy
from xlapy.tools.console import progress
from xlapy.tools.programs import add_program, add_size, load_static


def add_to(commands: Any) -> None:
    """Adds the subcommand to the parser."""
    parser = commands.add_parser("compile", help="compile a program, and save it for `xlapy run` and xlapy_runtime")
    add_program(parser)
    add_size(parser)
    parser.add_argument("--fast-math", action="store_true", help="with laws that are not exact")
    parser.add_argument("--threads", type=int, metavar="N", help="of one call (default: all cores)")
    parser.add_argument("-o", "--output", metavar="FILE", help="where to (default: the name of the program, .xlapy)")
    parser.set_defaults(run=_compile)


def _compile(chosen: argparse.Namespace) -> int:
    module = load_static(chosen)
    with progress("compiling"):
        executable = xlapy.compile(module, xlapy.CompileOptions(fast_math=chosen.fast_math, num_threads=chosen.threads))
    path = Path(chosen.output or f"{executable.name}.xlapy")
    executable.save(path)
    print(executable.compile_stats())
    print(f"{path}: {path.stat().st_size:,} bytes")
    return 0
