"""`xlapy explain` and `xlapy report`: what the compiler did to a program, as text or as a page."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import xlapy
from xlapy.executable import Executable
from xlapy.hlo.shape import Shape
from xlapy.report.profile import Profile
from xlapy.tools.commands import add_command
from xlapy.tools.console import progress
from xlapy.tools.programs import (
    add_options,
    add_program,
    add_size,
    chosen_options,
    load_static,
    random_arguments,
    read_arguments,
)


def add_to(commands: Any) -> None:
    """Adds the subcommands to the parser."""
    explain = add_command(commands, "explain", "tell what the compiler did: passes, fusions, kernels, memory")
    report = add_command(commands, "report", "tell what `explain` does and more, on one HTML page: graph, diffs, code")
    for parser in (explain, report):
        add_program(parser)
        add_size(parser)
        add_options(parser)
        parser.add_argument("--profile", action="store_true", help="run it, and tell how long each kernel took")
        parser.add_argument(
            "--input", nargs="+", action="extend", metavar="FILE.npy", help="arguments to run it on; else random ones"
        )
        parser.add_argument("--trace", metavar="FILE", help="write the fastest call there, for Perfetto; runs it")
    report.add_argument("-o", "--output", metavar="FILE", help="where to (default: the name of the program, .html)")
    explain.set_defaults(run=_explain)
    report.set_defaults(run=_report)


def _explain(chosen: argparse.Namespace) -> int:
    executable, profile = _compiled(chosen)
    with progress("explaining (at first also measuring the machine)"):
        text = executable.explain()
    print(text, end="")
    if profile is not None:
        print(f"\n{profile}")
    return 0


def _report(chosen: argparse.Namespace) -> int:
    executable, profile = _compiled(chosen)
    with progress("reporting (at first also measuring the machine)"):
        page = executable.html_report(profile=profile)
    path = Path(chosen.output or f"{executable.name}.html")
    path.write_text(page, encoding="utf-8")
    print(f"{path}: {len(page.encode()):,} bytes")
    return 0


def _compiled(chosen: argparse.Namespace) -> tuple[Executable, Profile | None]:
    module = load_static(chosen)
    with progress("compiling"):
        executable = xlapy.compile(module, chosen_options(chosen))
    if not chosen.profile and not chosen.input and not chosen.trace:
        return executable, None
    arguments = _arguments(chosen, module.signature.parameters)
    with progress("running"):
        profile = executable.profile(*arguments)
    if chosen.trace:
        Path(chosen.trace).write_text(profile.to_perfetto(), encoding="utf-8")
    return executable, profile


def _arguments(chosen: argparse.Namespace, parameters: Sequence[Shape]) -> list[Any]:
    return read_arguments(chosen.input) if chosen.input else random_arguments(parameters, seed=0)
