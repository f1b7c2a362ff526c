"""What an earlier run has measured, from the data it wrote: a long run can be continued, and what other processes
disturbed can be measured again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.compare import Agreement
from benchmarks.machine import Disturbance
from benchmarks.measure import OURS, Compilation, Memory, Outcome, Plan
from benchmarks.statistics import Interval
from benchmarks.workload import Case

MOST_FOREIGN_CORES = 0.2
"""That other processes may have kept busy, on the average, while a case was measured."""


class OtherRunError(Exception):
    """The earlier run cannot be continued; the message says why."""


def undisturbed(
    file: Path,
    chosen: Sequence[Case],
    opponents: Sequence[str],
    plan: Plan,
    machine: Mapping[str, Any],
    *,
    pinned: bool,
) -> dict[str, Outcome]:
    """The outcomes by name of those chosen cases that the earlier run has measured, left alone and with all opponents.

    Raises OtherRunError if it ran on another machine or took other samples, or if the file holds no run."""
    try:
        data = json.loads(file.read_text())
        known = {case["name"]: case for case in data["cases"]}
        before = {"machine": data["machine"], "plan": data["plan"], "pinned": data["pinned"]}
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise OtherRunError(f"{file} is not the data of a run: {error}") from error
    for what, now in (("machine", dict(machine)), ("plan", asdict(plan)), ("pinned", pinned)):
        if before[what] != now:
            raise OtherRunError(f"{file} is of another run: its {what} was {before[what]}, and now is {now}")
    outcomes = [_outcome(case, known[case.name]) for case in chosen if case.name in known]
    return {outcome.case.name: outcome for outcome in outcomes if _is_kept(outcome, opponents)}


def _is_kept(outcome: Outcome, opponents: Sequence[str]) -> bool:
    disturbance = outcome.disturbance
    is_quiet = disturbance is not None and disturbance.foreign_cores <= MOST_FOREIGN_CORES
    return outcome.measured and is_quiet and {OURS, *opponents} <= {*outcome.seconds, *outcome.missing}


def _outcome(case: Case, data: Mapping[str, Any]) -> Outcome:
    """All but the samples, of which there are the intervals."""
    return Outcome(
        case,
        data["status"],
        data["message"],
        seconds=data["seconds"],
        ratios={name: Interval(**interval) for name, interval in data["ratios"].items()},
        compilation=Compilation(**data["compile_seconds"]),
        memory=Memory(**data["memory"]),
        agreement=Agreement(**data["agreement"]) if data["agreement"] else None,
        share_of_limit=Interval(**data["share_of_limit"]) if data["share_of_limit"] else None,
        disturbance=Disturbance(**data["disturbance"]) if data["disturbance"] else None,
        missing=data["missing"],
    )
