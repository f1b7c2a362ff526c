"""What was measured, as a table for the terminal, as a section of a page, and as data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.machine import Load
from benchmarks.measure import OURS, XLA, Outcome, Plan
from benchmarks.statistics import geometric_mean
from xlapy.report.limits import Limits

BEHIND = 0.97
"""A case is behind where the whole interval lies below this many times XLA's speed."""

MEMORY_NOISE = 1 << 20
"""Bytes by which two processes may differ for reasons of their own: stacks of threads, code that is touched first."""

WARM_SHARE = 0.1
"""What a process that finds everything on disk may take of XLA's compilation."""

PAGE_BEGIN = "<!-- measured: begin; written by the benchmarks -->"
PAGE_END = "<!-- measured: end -->"


@dataclass(frozen=True)
class Run:
    """Everything about one run of the benchmarks."""

    machine: dict[str, Any]
    plan: Plan
    pinned: bool
    opponents: Sequence[str]
    unavailable: dict[str, str]
    limits: Limits
    before: Load
    after: Load
    foreign_cores: float
    outcomes: Sequence[Outcome]
    kept: int = 0  # of these, from an earlier run


def families(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    grouped: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        grouped.setdefault(outcome.case.workload.family, []).append(outcome)
    return grouped


def is_behind(outcome: Outcome, opponent: str = XLA) -> bool:
    ratio = outcome.ratios.get(opponent)
    return ratio is not None and ratio.high < BEHIND


def needs_more_memory(outcome: Outcome) -> bool:
    measured = outcome.memory.measured
    return OURS in measured and XLA in measured and measured[OURS] > measured[XLA] + MEMORY_NOISE


# -- figures as text ---------------------------------------------------------------------------------------------------


def time_text(seconds: float | None) -> str:
    """Three figures with the fitting unit."""
    if seconds is None:
        return "-"
    for scale, unit in ((1e-6, "ns"), (1e-3, "us"), (1, "ms")):
        if seconds < scale:
            return f"{_three_figures(seconds / scale * 1e3)} {unit}"
    return f"{_three_figures(seconds)} s"


def ratio_text(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{_three_figures(value)}x"


def share_text(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


def bytes_text(size: int | None) -> str:
    return "-" if size is None else f"{_three_figures(size / 1e6)} MB"


def _three_figures(value: float) -> str:
    decimals = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:.{decimals}f}"


# -- the table ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    title: str
    text: Callable[[Outcome], str]
    width: int
    left: bool = False


def _interval_text(outcome: Outcome) -> str:
    ratio = outcome.ratios.get(XLA)
    return "" if ratio is None else f"{ratio.low:.2f}-{ratio.high:.2f}"


def _compile_ratio(outcome: Outcome, state: str = "program_cold") -> float | None:
    """XLA's time over ours with our caches in the state that a field of `Compilation` is called after."""
    ours: float | None = getattr(outcome.compilation, state)
    return None if ours is None or outcome.compilation.xla is None else outcome.compilation.xla / ours


def _starts_slowly(outcome: Outcome) -> bool:
    ratio = _compile_ratio(outcome, "all_cached")
    return ratio is not None and ratio < 1 / WARM_SHARE


def _remark(outcome: Outcome) -> str:
    if not outcome.measured:
        return f"{outcome.status}: {outcome.message.partition(chr(10))[0]}"
    remarks = ["BEHIND"] if is_behind(outcome) else []
    if not outcome.agrees and outcome.agreement is not None:
        agreement = outcome.agreement
        what = agreement.problem or f"{agreement.beyond:.1%} of results beyond tolerance, worst {agreement.worst:.0f}x"
        remarks.append(f"DIFFERS from XLA: {what}")
    if XLA in outcome.missing:
        remarks.append(f"xla: {outcome.missing[XLA].partition(chr(10))[0]}")
    return "; ".join(remarks)


def columns(opponents: Sequence[str], *, fresh_processes: bool) -> list[Column]:
    """The columns of a run: some exist only where there is something to put into them."""
    chosen = [
        Column("workload", lambda o: o.case.workload.name, 26, left=True),
        Column("size", lambda o: o.case.size, 14, left=True),
        Column("xlapy", lambda o: time_text(o.seconds.get(OURS)), 8),
    ]
    if XLA in opponents:
        chosen += [
            Column("XLA", lambda o: time_text(o.seconds.get(XLA)), 8),
            Column("XLA/xlapy", lambda o: ratio_text(o.ratios[XLA].median if XLA in o.ratios else None), 9),
            Column("95 %", _interval_text, 13),
        ]
    chosen.append(Column("of limit", lambda o: share_text(o.share_of_limit.median if o.share_of_limit else None), 8))
    for name in opponents:
        if name != XLA:
            chosen.append(Column(f"{name}/xlapy", _opponent_text(name), len(name) + 6))
    chosen.append(Column("compile", lambda o: time_text(o.compilation.program_cold), 8))
    if XLA in opponents:
        chosen += [
            Column("XLA", lambda o: time_text(o.compilation.xla), 8),
            Column("ratio", lambda o: ratio_text(_compile_ratio(o)), 6),
        ]
    if fresh_processes:
        chosen += [
            Column("uncached", lambda o: time_text(o.compilation.nothing_cached), 8),
            Column("cached", lambda o: time_text(o.compilation.all_cached), 8),
        ]
    chosen.append(Column("", _remark, 0, left=True))
    return chosen


def _opponent_text(name: str) -> Callable[[Outcome], str]:
    return lambda outcome: ratio_text(outcome.ratios[name].median if name in outcome.ratios else None)


def header_line(chosen: Sequence[Column]) -> str:
    return "  ".join(_aligned(column, column.title) for column in chosen).rstrip()


def line(outcome: Outcome, chosen: Sequence[Column]) -> str:
    return "  ".join(_aligned(column, column.text(outcome)) for column in chosen).rstrip()


def _aligned(column: Column, text: str) -> str:
    return text.ljust(column.width) if column.left else text.rjust(column.width)


# -- around the table --------------------------------------------------------------------------------------------------


_MEANS: dict[str, Callable[[Outcome], float | None]] = {
    "call": lambda outcome: outcome.ratios[XLA].median if XLA in outcome.ratios else None,
    "compile": _compile_ratio,
    "uncached": lambda outcome: _compile_ratio(outcome, "nothing_cached"),
    "cached": lambda outcome: _compile_ratio(outcome, "all_cached"),
}
"""What the summary has means of, each as XLA's time over ours."""


def summary(run: Run) -> list[str]:
    """Means by family and over all, what is behind, wrong or missing, and memory."""
    lines = [*_means(run), ""]
    for title, applies in (
        (f"behind XLA (the whole interval below {BEHIND}x)", is_behind),
        *((f"behind {name}", _is_behind(name)) for name in run.opponents if name != XLA),
        ("compiled more slowly than by XLA", lambda outcome: (_compile_ratio(outcome) or 1) < 1),
        *(_OF_NEW_PROCESSES if run.plan.fresh_processes else ()),
        ("results differ from XLA's", lambda outcome: outcome.measured and not outcome.agrees),
        ("not measured", lambda outcome: not outcome.measured),
    ):
        chosen = [outcome.case.name for outcome in run.outcomes if applies(outcome)]
        lines.append(f"{title}: {len(chosen)} of {len(run.outcomes)}: {', '.join(chosen) or 'none'}")
    return lines + _memory_lines(run.outcomes)


_OF_NEW_PROCESSES: tuple[tuple[str, Callable[[Outcome], bool]], ...] = (
    (f"started from the cache in more than {WARM_SHARE} of XLA's compilation", _starts_slowly),
    (f"more memory than XLA (by {bytes_text(MEMORY_NOISE)} or more)", needs_more_memory),
)
"""Of which nothing is known where no new processes were made."""


def _is_behind(opponent: str) -> Callable[[Outcome], bool]:
    return lambda outcome: is_behind(outcome, opponent)


def _means(run: Run) -> list[str]:
    """Geometric means of each family, and of the families' means."""
    rows = {
        family: [geometric_mean(_known(figure(outcome) for outcome in outcomes)) for figure in _MEANS.values()]
        for family, outcomes in families(run.outcomes).items()
    }
    rows["all families"] = [geometric_mean(_known(column)) for column in zip(*rows.values(), strict=True)]
    counts = {family: len(outcomes) for family, outcomes in families(run.outcomes).items()}
    lines = [
        "geometric means, XLA's time over xlapy's:",
        f"  {'':16}" + "".join(f"{t:>10}" for t in (*_MEANS, "cases")),
    ]
    for family, means in rows.items():
        texts = [*map(ratio_text, means), str(counts.get(family, len(run.outcomes)))]
        lines.append(f"  {family:16}" + "".join(f"{text:>10}" for text in texts))
    return lines


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None and not math.isnan(value)]


def _memory_lines(outcomes: Sequence[Outcome]) -> list[str]:
    """What a call needs beside its inputs, where that was measured."""
    rows = [outcome for outcome in outcomes if outcome.memory.measured or outcome.memory.declared]
    if not rows:
        return []
    columns = ("xlapy", "XLA", "declared", "XLA")
    lines = ["", "memory of a call beside its inputs:", f"  {'':48}" + "".join(f"{title:>10}" for title in columns)]
    for outcome in rows:
        figures = [
            kind.get(name) for kind in (outcome.memory.measured, outcome.memory.declared) for name in (OURS, XLA)
        ]
        lines.append(f"  {outcome.case.name:48}" + "".join(f"{bytes_text(size):>10}" for size in figures))
    return lines


def machine_lines(run: Run) -> list[str]:
    machine, limits = run.machine, run.limits
    caches = ", ".join(f"{level} {size}" for level, size in machine["caches"].items())
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    lines = [
        f"{machine['processor']}, {machine['usable_cores']} cores ({caches}), {machine['system']}",
        f"Python {machine['python']}, {packages}",
        f"limits, one core / {limits.cores} cores: " + ", ".join(_limit_texts(limits)),
        f"{run.plan.pairs} rounds of {run.plan.sample_seconds * 1e3:.0f} ms per engine, behind "
        f"{run.plan.settle_seconds * 1e3:.0f} ms untimed where a share of a limit is said"
        + (", all engines on one core" if run.pinned else ""),
        f"load average {run.before.average:.2f} before, {run.after.average:.2f} after; "
        f"other processes kept {run.foreign_cores:.2f} cores busy; "
        f"{run.after.stolen - run.before.stolen:.1f} s withheld by the host",
    ]
    if run.kept:
        lines.append(f"{run.kept} of {len(run.outcomes)} cases were measured by an earlier run")
    return lines + [f"{name} is not available: {reason}" for name, reason in run.unavailable.items()]


def _limit_texts(limits: Limits) -> list[str]:
    rates = [("f32", limits.f32, "GFLOP/s"), ("f64", limits.f64, "GFLOP/s")]
    fed = {"fed f32": limits.fed_f32, "fed f64": limits.fed_f64}
    rates += [(name, rate, "GFLOP/s") for name, rate in fed.items() if rate is not None]
    rates += [("read", limits.read, "GB/s"), ("copy", limits.copy, "GB/s"), ("triad", limits.triad, "GB/s")]
    return [f"{name} {rate.one / 1e9:.0f} / {rate.all / 1e9:.0f} {unit}" for name, rate, unit in rates]


def as_markdown(run: Run) -> str:
    """The section that `docs/performance.md` holds."""
    chosen = columns(run.opponents, fresh_processes=run.plan.fresh_processes)
    parts = ["```", *machine_lines(run), "```", "", "```", *summary(run), "```", ""]
    for family, outcomes in families(run.outcomes).items():
        parts += [f"### {family}", "", "```", header_line(chosen)]
        parts += [line(outcome, chosen) for outcome in outcomes]
        parts += ["```", ""]
    return "\n".join(parts)


def write_page(page: Path, run: Run) -> None:
    """Replaces what stands between the two markers of the page."""
    write_section(page, as_markdown(run))


def write_section(page: Path, text: str) -> None:
    """Puts a text between the two markers of a page."""
    before, after = around_measured_section(page)
    page.write_text(f"{before}{PAGE_BEGIN}\n\n{text}\n{PAGE_END}{after}")


def around_measured_section(page: Path) -> tuple[str, str]:
    """What stands before and after the two markers. Raises OSError and ValueError for what is no such page."""
    before, begin, rest = page.read_text().partition(PAGE_BEGIN)
    _, end, after = rest.partition(PAGE_END)
    if not begin or not end:
        raise ValueError(f"{page} lacks the markers {PAGE_BEGIN} and {PAGE_END}")
    return before, after


def as_data(run: Run) -> dict[str, Any]:
    """The whole run as what JSON can hold."""
    return {
        "machine": run.machine,
        "limits": run.limits.as_dict(),
        "plan": asdict(run.plan),
        "pinned": run.pinned,
        "unavailable": run.unavailable,
        "load": {"before": asdict(run.before), "after": asdict(run.after), "foreign_cores": run.foreign_cores},
        "cases": [_outcome_data(outcome) for outcome in run.outcomes],
    }


def _outcome_data(outcome: Outcome) -> dict[str, Any]:
    return {
        "name": outcome.case.name,
        "status": outcome.status,
        "message": outcome.message,
        "seconds": outcome.seconds,
        "ratios": {name: asdict(interval) for name, interval in outcome.ratios.items()},
        "behind": is_behind(outcome),
        "compile_seconds": asdict(outcome.compilation),
        "share_of_limit": asdict(outcome.share_of_limit) if outcome.share_of_limit else None,
        "memory": asdict(outcome.memory),
        "agreement": asdict(outcome.agreement) if outcome.agreement else None,
        "agrees": outcome.agrees,
        "disturbance": asdict(outcome.disturbance) if outcome.disturbance else None,
        "missing": outcome.missing,
    }
