"""`xlapy laws`: the laws that there are, or how often each fired in a program."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from typing import Any

from xlapy.hlo.verifier import verify
from xlapy.native import host_target
from xlapy.passes.pipelines import PipelineOptions, cpu_pipeline
from xlapy.passes.rewrite import LAWS, Exactness, Law
from xlapy.support.wording import counted
from xlapy.tools.commands import add_command
from xlapy.tools.console import BOLD, painted, progress
from xlapy.tools.programs import PROGRAM, add_size, load_static

_NOTES = {Exactness.EXACT: "", Exactness.FREE: "  (order or last bits)", Exactness.APPROXIMATE: "  (fast_math only)"}


def add_to(commands: Any) -> None:
    """Adds the subcommand to the parser."""
    parser = add_command(commands, "laws", "list the algebraic laws, or how often each fires in a program")
    parser.add_argument("file", metavar="FILE", nargs="?", help=PROGRAM)
    add_size(parser)
    parser.add_argument("--fast-math", action="store_true", help="with laws that are not exact")
    parser.add_argument("--all", action="store_true", help="list those that did not fire as well")
    parser.set_defaults(run=_laws)


def _laws(chosen: argparse.Namespace) -> int:
    if chosen.file is None:
        _list()
        return 0
    module = load_static(chosen)
    verify(module)
    options = PipelineOptions(fast_math=chosen.fast_math, repeats_functions=host_target().repeats_functions)
    with progress("optimizing"):
        counts = cpu_pipeline(options).run(module).counts
    _print_counts(counts, everything=chosen.all)
    return 0


def _list() -> None:
    """Every law by family, with what it states."""
    families: dict[str, list[Law]] = {}
    for law in LAWS:
        families.setdefault(law.family, []).append(law)
    for family, laws in families.items():
        print(painted(family, BOLD, sys.stdout))
        for law in laws:
            print(f"  {law.name}{_NOTES[law.exactness]}\n      {law.statement}")
    print(f"{sum(map(len, families.values()))} laws; CompileOptions(disabled_laws=...) switches off those named there")


def _print_counts(counts: Counter[str], *, everything: bool) -> None:
    """The laws that fired, most often first; then, if wanted, the others."""
    width = max(map(len, counts), default=0)
    for name, count in counts.most_common():
        print(f"{count:6}  {name:{width}}  {LAWS[name].statement}")
    silent = [law for law in LAWS if law.name not in counts]
    if everything:
        for law in silent:
            print(f"     0  {law.name}{_NOTES[law.exactness]}")
    print(f"{counted(len(counts), 'law')} fired {counted(counts.total(), 'time')}, {len(silent)} did not")
