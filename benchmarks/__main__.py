"""`python -m benchmarks`: measures xlapy beside XLA and others, and prints all results, the slower ones included."""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks import report
from benchmarks.arguments import pattern
from benchmarks.earlier import OtherRunError, undisturbed
from benchmarks.engines import ENGINE_NAMES
from benchmarks.machine import Load, describe, pin
from benchmarks.measure import OURS, QUICK, Bench, Outcome, Plan, run_all
from benchmarks.workload import Case, cases
from xlapy.report import limits

INTERRUPTED = 130
"""What a shell says of a command that Ctrl-C ended."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    chosen = _chosen_cases(options)
    if options.list:
        print("\n".join(case.name for case in chosen))
        return 0
    if not chosen:
        print("no workload fits: see --list", file=sys.stderr)
        return 2
    try:
        run = _measure(chosen, options)
    except OtherRunError as error:
        print(error, file=sys.stderr)
        return 2
    print()
    print("\n".join(report.summary(run)))
    is_interrupted = len(run.outcomes) < len(chosen)
    _write(run, options, is_part=bool(is_interrupted or options.only or options.family))
    if is_interrupted:
        print(f"interrupted: {len(run.outcomes)} of {len(chosen)} cases were measured", file=sys.stderr)
        return INTERRUPTED
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only", metavar="REGEX", type=pattern, default="", help="cases whose family/workload/size matches"
    )
    parser.add_argument("--family", metavar="NAME", action="append", default=[], help="a family; may be repeated")
    parser.add_argument(
        "--engines",
        metavar="NAMES",
        type=_engine_names,
        default=["xla", "numpy"],
        help="opponents: xla,numpy,numba,torch",
    )
    parser.add_argument("--pin", action="store_true", help="every engine on one and the same core")
    parser.add_argument(
        "--quick", action="store_true", help="few short samples, without the largest sizes: for a first look"
    )
    parser.add_argument("--largest", action="store_true", help="with --quick: the largest sizes, too")
    parser.add_argument(
        "--warm",
        action="store_true",
        help="nothing that takes new processes: compilation with nothing or all cached, memory",
    )
    parser.add_argument(
        "--earlier",
        metavar="FILE",
        type=Path,
        help="the data of an earlier run: what it measured while nothing else ran is kept, all else is measured",
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="write everything as data")
    parser.add_argument("--plot", metavar="FILE", type=Path, help="draw the ratios (.png, .svg)")
    parser.add_argument("--page", metavar="FILE", type=_page, help="replace the measured section of a page")
    parser.add_argument("--list", action="store_true", help="print the names of the cases, and stop")
    return parser


def _engine_names(text: str) -> list[str]:
    names = [name for name in text.split(",") if name and name != OURS]
    unknown = set(names) - set(ENGINE_NAMES)
    if unknown:
        raise argparse.ArgumentTypeError(
            f"no engine is called {', '.join(sorted(unknown))}: there are {', '.join(ENGINE_NAMES)}"
        )
    return names


def _page(text: str) -> Path:
    """Checked before the run, which takes minutes, and not after it."""
    try:
        report.around_measured_section(Path(text))
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return Path(text)


def _chosen_cases(options: argparse.Namespace) -> list[Case]:
    from benchmarks.workloads import all_workloads

    largest = options.largest or not options.quick
    return cases(all_workloads(), only=options.only, families=options.family, largest=largest)


def _measure(chosen: Sequence[Case], options: argparse.Namespace) -> report.Run:
    plan = QUICK if options.quick else Plan(fresh_processes=not options.warm)
    core = max(os.sched_getaffinity(0)) if options.pin else None
    kept = _kept(chosen, options, plan)
    before, began = Load.now(), time.perf_counter()
    _show_progress("measuring the machine's limits")
    reached = _limits_in_new_process(core)
    measured: list[Outcome] = []
    with Bench(options.engines, plan, reached, core) as bench:
        table = report.columns(bench.opponents, fresh_processes=plan.fresh_processes)
        with contextlib.suppress(KeyboardInterrupt):  # what has been measured by then is told
            for outcome in run_all(
                bench,
                [case for case in chosen if case.name not in kept],
                lambda number, total, case: _show_progress(f"{number}/{total} {case.name}"),
            ):
                _clear_progress()
                if not measured or measured[-1].case.workload.family != outcome.case.workload.family:
                    print(f"\n{outcome.case.workload.family}\n{report.header_line(table)}")
                print(report.line(outcome, table), flush=True)
                measured.append(outcome)
        unavailable, opponents = bench.unavailable, bench.opponents
    known = kept | {outcome.case.name: outcome for outcome in measured}
    outcomes = [known[case.name] for case in chosen if case.name in known]
    foreign = [outcome.disturbance.foreign_cores for outcome in outcomes if outcome.disturbance]
    run = report.Run(
        describe(), plan, options.pin, opponents, unavailable, reached, before, Load.now(),
        sum(foreign) / max(len(foreign), 1), outcomes, len(kept),
    )  # fmt: skip
    print()
    print("\n".join([*report.machine_lines(run), f"took {time.perf_counter() - began:.0f} s"]))
    return run


def _kept(chosen: Sequence[Case], options: argparse.Namespace, plan: Plan) -> dict[str, Outcome]:
    """What an earlier run has measured already, by name."""
    if options.earlier is None:
        return {}
    return undisturbed(options.earlier, chosen, options.engines, plan, describe(), pinned=options.pin)


def _limits_in_new_process(core: int | None) -> limits.Limits:
    """A process of its own, which gives the big arrays back."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, initializer=pin, initargs=(core,)) as pool:
        return pool.submit(limits.measure).result()


def _write(run: report.Run, options: argparse.Namespace, *, is_part: bool) -> None:
    if options.json:
        options.json.write_text(json.dumps(report.as_data(run), indent=1) + "\n")
    if options.plot:
        from benchmarks.plot import draw

        draw(run.outcomes, options.plot)
    if options.page and is_part:
        print(f"{options.page} is left as it is: only part of the suite was run")
    elif options.page:
        report.write_page(options.page, run)


def _show_progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def _clear_progress() -> None:
    _show_progress("")


if __name__ == "__main__":
    sys.exit(main())
