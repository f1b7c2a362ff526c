"""`xlapy opt`: what the passes make of a program."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from xlapy.hlo.verifier import verify
from xlapy.native import host_target
from xlapy.passes.base import Pass
from xlapy.passes.pipeline import FixedPoint, Pipeline, Step
from xlapy.passes.pipelines import PipelineOptions, cpu_pipeline
from xlapy.support.errors import UnsupportedError
from xlapy.support.source import suggestion
from xlapy.tools.commands import add_command
from xlapy.tools.console import progress
from xlapy.tools.programs import PROGRAM, add_size, load_static


def add_to(commands: Any) -> None:
    """Adds the subcommand to the parser."""
    parser = add_command(commands, "opt", "print a program as the passes leave it, as HLO text")
    parser.add_argument("file", metavar="FILE", nargs="?", help=PROGRAM)
    add_size(parser)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--passes", metavar="A,B", help="only these, in this order")
    which.add_argument("--until", metavar="PASS", help="all up to the first run of this one")
    which.add_argument("--list", action="store_true", help="list the passes in their order, and what each does")
    parser.add_argument("--timings", action="store_true", help="print how long each pass took, as comments")
    parser.set_defaults(run=_opt, usage_error=parser.error)


def _opt(chosen: argparse.Namespace) -> int:
    if chosen.list:
        _list()
        return 0
    if chosen.file is None:
        chosen.usage_error("the following arguments are required: FILE")
    pipeline = _chosen_pipeline(chosen)
    module = load_static(chosen)
    verify(module)
    with progress("optimizing"):
        report = pipeline.run(module)
    verify(module)
    if chosen.timings:
        for run in report.runs:
            print(f"// {run.seconds * 1e3:8.2f} ms  {run.name}{' (changed)' if run.changed else ''}")
    print(module.to_text(), end="")
    return 0


def _whole() -> Pipeline:
    """The passes as programs for this machine go through them."""
    return cpu_pipeline(PipelineOptions(repeats_functions=host_target().repeats_functions))


def _list() -> None:
    for step in _whole().steps:
        if isinstance(step, FixedPoint):
            print(f"{step.name}: until nothing changes")
        for one in step.passes if isinstance(step, FixedPoint) else (step,):
            indent = "  " if isinstance(step, FixedPoint) else ""
            print(f"{indent}{one.name:{28 - len(indent)}} {_summary(one)}")


def _summary(one: Pass) -> str:
    """The first line of the file that describes the pass."""
    doc = sys.modules[type(one).__module__].__doc__ or ""
    return doc.strip().split("\n")[0].rstrip(":")


def _chosen_pipeline(chosen: argparse.Namespace) -> Pipeline:
    whole = _whole()
    if chosen.passes is not None:
        return Pipeline("chosen", tuple(_pass(name.strip()) for name in chosen.passes.split(",") if name.strip()))
    if chosen.until is None:
        return whole
    last = _pass(chosen.until).name
    steps: list[Step] = []
    for step in whole.steps:
        members = step.passes if isinstance(step, FixedPoint) else (step,)
        names = [member.name for member in members]
        if last in names:
            steps += members[: names.index(last) + 1]
            break
        steps.append(step)
    return Pipeline("beginning", tuple(steps))


def _pass(name: str) -> Pass:
    passes = {one.name: one for one in _whole().passes()}
    if name not in passes:
        raise UnsupportedError(
            f"there is no pass {name!r}{suggestion(name, passes)}; `xlapy opt --list` names them all"
        )
    return passes[name]
