"""`explain`: what the compiler did to a program, as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xlapy.passes.loop_packing import LoopPacking
from xlapy.passes.pipeline import PassRun
from xlapy.passes.scan_batching import ScanBatching
from xlapy.report.fusions import FUSION_PASSES, Fusion, Refusal, fusions_of, merges_of, refusals_of
from xlapy.report.kernels import KERNEL_HEAD, KERNEL_NUMERIC, Kernel, kernel_cells, kernels_of, shape_text
from xlapy.report.limits import Limits
from xlapy.report.observation import Observation
from xlapy.report.units import and_more, bytes_text, few, time_text
from xlapy.support.wording import counted

SHOWN = 40
"""Rows of each list; what is left out is counted."""

LOOP_PASSES = (ScanBatching.name, LoopPacking.name)
SHOWN_NAMES = 6
SHOWN_OPS = 12


def explain(observation: Observation, limits: Limits) -> str:
    """The whole story in paragraphs: passes, fusions, refusals, kernels, memory."""
    kernels = kernels_of(observation, limits)
    paragraphs = [
        _summary(observation, kernels),
        _passes(observation),
        _loops(observation),
        _fusions(observation),
        _refusals(refusals_of(observation)),
        _kernels(kernels, limits),
        _joint_runs(observation),
        _memory(observation),
    ]
    return "\n\n".join("\n".join(lines) for lines in paragraphs if lines) + "\n"


def elided(rows: Sequence[str], shown: int = SHOWN) -> list[str]:
    """The first rows, and how many more there are."""
    return [*rows[:shown], *_left_out(len(rows) - shown)]


def _left_out(count: int) -> list[str]:
    return [f"  ...{and_more(count)}"] if count > 0 else []


def table(rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Rows in columns, each as wide as it must be; the columns of `right` end at the same place."""
    kept = [*rows]
    widths = [max(map(len, column)) for column in zip(*kept, strict=True)]
    return [
        "  "
        + "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in kept
    ]


def _summary(observation: Observation, kernels: Sequence[Kernel]) -> list[str]:
    before, after = observation.before(FUSION_PASSES), observation.end
    runs = sum(kernel.runs for kernel in kernels)
    known = "" if all(kernel.is_known for kernel in kernels) else ", loops of unknown length counted once"
    return [
        f"{observation.source.name}: {counted(observation.source.instruction_count, 'instruction')}, "
        f"{counted(len(kernels), 'kernel')}, {counted(runs, 'run')} of them in one call of the program{known}",
        f"Before fusion: {counted(before.kernels, 'kernel')} to run, {bytes_text(before.bytes)} to read and write; "
        f"now {counted(after.kernels, 'kernel')}, {bytes_text(after.bytes)}",
    ]


def _passes(observation: Observation) -> list[str]:
    report = observation.passes
    runs: dict[str, list[PassRun]] = {}
    for run in report.runs:
        runs.setdefault(run.name, []).append(run)
    changed = {name: found for name, found in runs.items() if any(run.changed for run in found)}
    total = sum(run.seconds for run in report.runs)
    rows = [
        (
            name,
            f"changed it in {sum(run.changed for run in found)} of {counted(len(found), 'run')}",
            time_text(sum(run.seconds for run in found)),
        )
        for name, found in changed.items()
    ]
    lines = [f"Passes that changed something: {len(changed)} of {len(runs)}, all in {time_text(total)}"]
    lines += table(rows, right=(2,))
    if report.counts:
        fired = (f"{law} {count}x" if count > 1 else law for law, count in report.counts.most_common())
        lines.append("  laws: " + ", ".join(fired))
    if report.unfinished:
        lines.append(f"  not at rest after the last round: {', '.join(report.unfinished)}")
    return lines


def _loops(observation: Observation) -> list[str]:
    """Products of loop bodies that are made for many steps at once, or whose matrices are packed once for all."""
    records = [record for name in LOOP_PASSES for record in observation.passes.records.get(name, [])]
    rows = [f"  {record.subject}: {record.reason}" for record in records if record.made]
    return ["Products in loops", *elided(rows)] if rows else []


def _fusions(observation: Observation) -> list[str]:
    fusions = fusions_of(observation)
    if not fusions:
        return ["Fusions: none"]
    lines = [f"Fusions: {len(fusions)}"]
    for fusion in fusions[:SHOWN]:
        lines += _fusion(fusion)
    lines += _left_out(len(fusions) - SHOWN)
    merges = [f"    {merge.subject} with {merge.partner}: {merge.reason}" for merge in merges_of(observation)]
    return [*lines, "  stored by one kernel together:", *elided(merges)] if merges else lines


def _fusion(fusion: Fusion) -> list[str]:
    ops = [member.opcode for member in fusion.members]
    kind = fusion.instruction.attributes["kind"].value
    lines = [
        f"  {fusion.instruction.name}  {shape_text(fusion.instruction.shape)}  {kind}",
        f"    {few(ops, SHOWN_OPS)}",
        f"    {fusion.reason}",
    ]
    return lines + [f"    {place}: {', '.join(opcodes)}" for place, opcodes in [*fusion.sources.items()][:SHOWN_NAMES]]


def _refusals(refusals: Sequence[Refusal]) -> list[str]:
    if not refusals:
        return []
    rows = []
    for refusal in refusals:
        places = f"  ({few(refusal.places, SHOWN_NAMES)})" if refusal.places else ""
        rows.append(f"  {few(refusal.names, SHOWN_NAMES)}: {refusal.reason}{places}")
    return ["Not fused", *elided(rows)]


def _kernels(kernels: Sequence[Kernel], limits: Limits) -> list[str]:
    if not kernels:
        return ["Kernels: none, everything is done in registers"]
    total = sum(kernel.seconds * kernel.runs for kernel in kernels)
    lines = [f"Kernels, and what one run of each moves and computes ({machine_text(limits)})"]
    lines += table([KERNEL_HEAD, *map(kernel_cells, kernels[:SHOWN])], right=KERNEL_NUMERIC)
    return [*lines, *_left_out(len(kernels) - SHOWN), f"  at best, all together: {time_text(total)}"]


def _joint_runs(observation: Observation) -> list[str]:
    runs = [f"  {run}" for run in joint_runs(observation)]
    return [f"Run together, as {counted(len(runs), 'job')} of all threads", *elided(runs)] if runs else []


def joint_runs(observation: Observation) -> list[str]:
    """What is to say of kernels that share the threads, a line for those that run at the same time."""
    return [
        f"{few([member.name for member in run.members], SHOWN_NAMES)}: they do not need each other, and move "
        f"{bytes_text(run.bytes)} together"
        for run in observation.schedule.joint_runs
    ]


def machine_text(limits: Limits) -> str:
    """The limits in one line."""
    cores = "one core" if limits.cores == 1 else f"{limits.cores} cores"
    return (
        f"{cores}: {limits.f32.all / 1e9:,.0f} GFLOP/s in f32, {limits.f64.all / 1e9:,.0f} in f64, "
        f"{limits.read.all / 1e9:,.1f} GB/s read, {limits.copy.all / 1e9:,.1f} copied"
    )


def _memory(observation: Observation) -> list[str]:
    plan = observation.plan
    if not plan.arena_bytes:
        return ["Memory: no temporaries"]
    blocks = len(observation.timeline.lifetimes)
    return [
        f"Memory: {bytes_text(plan.arena_bytes)} of temporaries in {counted(blocks, 'block')}; "
        f"{bytes_text(plan.live_bytes)} are needed at once at the most, and no plan could do with less "
        f"({plan.arena_bytes / max(plan.live_bytes, 1):.2f} times that)"
    ]
