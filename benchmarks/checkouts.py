"""`python -m benchmarks.checkouts OLD NEW`: two checkouts of xlapy on the same cases, in turns.

Each checkout has a process and a cache of its own. Times of a call (or, with `--compile`, of a compilation) are taken
in pairs, and whoever begins changes, so that what else the machine does favours neither.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from benchmarks.arguments import pattern, positive
from benchmarks.measure import XLA
from benchmarks.report import time_text
from benchmarks.statistics import lower_decile, median, paired_ratio
from benchmarks.worker import Worker
from benchmarks.workload import Case, cases

_WORKER = Path(__file__).with_name("checkout_worker.py")
_SAMPLE_SECONDS = 0.02
_WARM_UP_SECONDS = 0.1

_HEADER = f"{'case':44s}{'old':>10s}{'new':>10s}{'old/new':>9s}{'95 %':>13s}{'quick calls':>12s}"


class _CheckoutError(Exception):
    """A checkout failed at a case."""


class _Checkout:
    """A handle on the process of a checkout."""

    def __init__(self, folder: Path, cache: Path, core: int | None) -> None:
        paths = os.pathsep.join(str(path) for path in (folder, folder / "runtime"))
        environment = {**os.environ, "PYTHONPATH": paths, "PYTHONSAFEPATH": "1", "XLAPY_CACHE_DIR": str(cache)}
        pinned = [] if core is None else ["taskset", "-c", str(core)]
        self._process = subprocess.Popen(
            [*pinned, sys.executable, str(_WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )

    def ask(self, *command: Any) -> Any:
        try:
            pickle.dump(command, self._requests)
            self._requests.flush()
            worked, answer = pickle.load(self._answers)
        except (EOFError, OSError):
            raise _CheckoutError(f"its process ended with {self._process.wait()}") from None
        if not worked:
            raise _CheckoutError(answer)
        return answer

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

    @property
    def _requests(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def _answers(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    from benchmarks.workloads import all_workloads

    chosen = cases(all_workloads(), only=options.only)
    if not chosen:
        print("no workload fits: see `python -m benchmarks --list`", file=sys.stderr)
        return 2
    programs = _lowered(chosen)
    print(_HEADER)
    with _checkouts(options) as (old, new):
        for case, (text, inputs) in zip(chosen, programs, strict=True):
            try:
                print(_line(case, *_times(old, new, text, inputs, options)), flush=True)
            except _CheckoutError as error:
                print(f"{case.name:44s} {error}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks.checkouts", description=__doc__)
    parser.add_argument("old", metavar="OLD", type=_checkout, help="the folder of a checkout")
    parser.add_argument("new", metavar="NEW", type=_checkout, help="the folder of another")
    parser.add_argument(
        "--only", metavar="REGEX", type=pattern, required=True, help="cases whose family/workload/size matches"
    )
    parser.add_argument("--pairs", metavar="N", type=positive, default=15, help="how many pairs of samples (15)")
    parser.add_argument("--pin", action="store_true", help="both on one and the same core")
    parser.add_argument("--compile", action="store_true", help="compare times to compile instead of times of a call")
    return parser


def _checkout(text: str) -> Path:
    folder = Path(text).resolve()
    if not (folder / "xlapy" / "__init__.py").exists():
        raise argparse.ArgumentTypeError(f"{text} is no checkout of xlapy")
    return folder


def _lowered(chosen: Sequence[Case]) -> list[tuple[str, list[np.ndarray]]]:
    """The programs and their inputs; by a process that ends before anything is measured."""
    programs = []
    with closing(Worker(XLA)) as xla:
        for case in chosen:
            inputs = case.inputs()
            programs.append((xla.ask("lower", (case.workload.family, case.workload.name, case.size), inputs), inputs))
    return programs


@contextmanager
def _checkouts(options: argparse.Namespace) -> Iterator[tuple[_Checkout, _Checkout]]:
    core = max(os.sched_getaffinity(0)) if options.pin else None
    with tempfile.TemporaryDirectory(prefix="xlapy-checkouts-") as scratch:
        old, new = (
            _Checkout(folder, Path(scratch, name), core)
            for name, folder in (("old", options.old), ("new", options.new))
        )
        try:
            yield old, new
        finally:
            old.close()
            new.close()


def _times(
    old: _Checkout, new: _Checkout, text: str, inputs: list[np.ndarray], options: argparse.Namespace
) -> tuple[list[float], list[float]]:
    """Seconds of a call, or of a compilation, pair by pair."""
    for checkout in (old, new):
        checkout.ask("open", text, inputs, _WARM_UP_SECONDS)
    command = "compile" if options.compile else "sample"
    times: dict[_Checkout, list[float]] = {old: [], new: []}
    for number in range(options.pairs):
        for checkout in (old, new) if number % 2 else (new, old):
            times[checkout].append(checkout.ask(command, _SAMPLE_SECONDS))
    return times[old], times[new]


def _line(case: Case, old: list[float], new: list[float]) -> str:
    ratio = paired_ratio(new, old)
    interval = f"{ratio.low:.2f}-{ratio.high:.2f}"
    quick = lower_decile(old) / lower_decile(new)
    return (
        f"{case.name:44s}{time_text(median(old)):>10s}{time_text(median(new)):>10s}"
        f"{ratio.median:8.2f}x{interval:>13s}{quick:11.2f}x"
    )


if __name__ == "__main__":
    sys.exit(main())
