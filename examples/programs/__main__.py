"""Runs exported JAX programs, and compares their results with those that XLA computed when they were exported."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Sequence

from examples.programs.catalogue import PROGRAMS, Program
from examples.programs.running import Agreement, Report, run


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 if all agree."""
    parser = argparse.ArgumentParser(prog="python -m examples.programs", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="which to run (all)")
    parser.add_argument("--list", action="store_true", help="say which there are")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in PROGRAMS]
    if unknown:
        parser.error(f"there is no program {', '.join(unknown)}; there are {', '.join(PROGRAMS)}")
    chosen = [PROGRAMS[name] for name in options.names or PROGRAMS]
    if options.list:
        for program in chosen:
            print(f"{program.name:22}{program.title}")
        return 0
    reports = [show(program, run(program)) for program in chosen]
    return 0 if all(report.is_good for report in reports) else 1


def show(program: Program, report: Report) -> Report:
    print(f"{program.name}: {program.title}")
    for kind, agreements in itertools.groupby(
        report.agreements, key=lambda agreement: agreement.name.partition(".")[0]
    ):
        print(f"  {_line(kind, list(agreements))}")
    stats = report.stats
    print(f"  {report.call_us:.0f} us per call; compiled in {report.compile_ms:.0f} ms to {stats.kernels} kernels")
    return report


def _line(kind: str, agreements: list[Agreement]) -> str:
    """One result, or several that make up one tree."""
    worst = max(agreements, key=lambda agreement: agreement.error / (agreement.allowed or 1))
    shape = worst.shape if len(agreements) == 1 else f"{len(agreements)} arrays"
    if not worst.allowed:
        verdict = "the same as XLA's" if worst.is_good else f"{worst.error:.2%} of the elements DIFFER from XLA's"
    else:
        word = "agrees with XLA's" if worst.is_good else "DIFFERS from XLA's"
        verdict = f"{word}: off by {worst.error:.1e} of the largest number, {worst.allowed:.0e} is allowed"
    return f"{kind:18}{shape:20}{verdict}"


if __name__ == "__main__":
    sys.exit(main())
