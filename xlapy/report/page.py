"""The report as one HTML page: no scripts, no network, nothing that has to load later.

Large programs are cut everywhere, each time with a count of what is missing, so that the page stays a few megabytes at
most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from xlapy.hlo.graph import Instruction
from xlapy.passes.pipeline import PassRun
from xlapy.report import charts
from xlapy.report.code import assembly_functions, ir_functions
from xlapy.report.diff import diff
from xlapy.report.explain import joint_runs, machine_text
from xlapy.report.fusions import FUSION_PASSES, Fusion, Refusal, fusions_of, merges_of, refusals_of
from xlapy.report.graph import graphs, legend
from xlapy.report.kernels import (
    KERNEL_HEAD,
    KERNEL_NUMERIC,
    Kernel,
    kernel_cells,
    kernels_of,
    place_of,
    shape_text,
    sources,
)
from xlapy.report.limits import Limits
from xlapy.report.markup import Html, details, element, joined, table
from xlapy.report.notebook import listing
from xlapy.report.observation import PRINTED_INSTRUCTIONS, Observation, State
from xlapy.report.profile import Profile
from xlapy.report.style import STYLE
from xlapy.report.units import and_more, bytes_text, few, number, time_text
from xlapy.support.wording import counted

MOST_ROWS = 200  # of a table
MOST_FUSIONS = 100
MOST_DIFFS = 60
MOST_KERNELS_WITH_CODE = 60  # those that take longest
CODE_LINES = 250  # of one function
MODULE_LINES = 1500
NAMES_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Story:
    """What the parts of the page tell of."""

    observation: Observation
    kernels: Sequence[Kernel]
    limits: Limits
    profile: Profile | None


def page(observation: Observation, limits: Limits, profile: Profile | None = None) -> str:
    """The whole page."""
    story = Story(observation, kernels_of(observation, limits), limits, profile)
    body = [_header(story), _navigation()]
    sections = [
        element("section", element("h2", title), *write(story), id=key) for key, (title, write) in SECTIONS.items()
    ]
    body.append(element("main", *sections))
    body.append(element("footer", f"Written by xlapy for {observation.target.cpu}."))
    name = observation.source.name
    head = [
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"{name}: what the compiler did"),
        element("style", Html(STYLE)),
    ]
    whole = element("html", element("head", *head), element("body", *body), lang="en")
    return f"<!DOCTYPE html>\n{whole}\n"


def _header(story: Story) -> Html:
    observation, profile = story.observation, story.profile
    before, after = observation.before(FUSION_PASSES), observation.end
    plan = observation.plan
    at_best = sum(kernel.seconds * kernel.runs for kernel in story.kernels)
    figures = [
        (
            "Instructions",
            number(observation.source.instruction_count),
            f"{number(after.instructions)} behind the passes",
        ),
        ("Kernels to run", number(after.kernels), f"{number(before.kernels)} before fusion"),
        ("Bytes to move", bytes_text(after.bytes), f"{bytes_text(before.bytes)} before fusion"),
        ("Temporaries", bytes_text(plan.arena_bytes), f"no plan needs less than {bytes_text(plan.live_bytes)}"),
        (
            "Passes",
            time_text(sum(run.seconds for run in observation.passes.runs)),
            f"{observation.passes.changes} changes",
        ),
        ("At best", time_text(at_best), "by the limits of this machine"),
    ]
    if profile is not None:
        figures.append(("Measured", time_text(profile.seconds), f"fastest of {counted(profile.calls, 'call')}"))
    written = [
        element("div", element("dt", name), element("dd", value, element("small", note)))
        for name, value, note in figures
    ]
    signature = element("p", element("code", str(observation.source.signature)))
    return element(
        "header", element("h1", observation.source.name), signature, element("dl", *written, class_="figures")
    )


def _navigation() -> Html:
    links = [element("li", element("a", title, href=f"#{key}")) for key, (title, _) in SECTIONS.items()]
    return element("nav", element("ul", *links), aria_label="Parts of the report")


def _more(count: int, what: str) -> Html:
    """A line for what was left out."""
    return element("p", f"... and {count:,} more {what}.", class_="note") if count > 0 else Html()


def _anchor(instruction: Instruction) -> str:
    return f"k-{instruction.parent.name}-{instruction.name}"


# -- graph -------------------------------------------------------------------------------------------------------------


def _graph(story: Story) -> Iterable[Html]:
    known = {kernel.instruction for kernel in _with_code(story.kernels)}

    def link(instruction: Instruction) -> str | None:
        return f"#{_anchor(instruction)}" if instruction in known else None

    yield legend()
    yield element("h3", "As compiled")
    yield graphs(story.observation.module, link)
    yield details("As given", graphs(story.observation.source))
    for title, module in (
        ("HLO text as given", story.observation.source),
        ("HLO text as compiled", story.observation.module),
    ):
        yield details(title, listing(module.to_text(large_constants=False), MODULE_LINES))


# -- passes ------------------------------------------------------------------------------------------------------------


def _passes(story: Story) -> Iterable[Html]:
    report = story.observation.passes
    longest = max((run.seconds for run in report.runs), default=1.0)
    idle = [run for run in report.runs if not run.changed]
    yield element(
        "p",
        f"{counted(len(report.runs), 'run')} of passes took {time_text(sum(run.seconds for run in report.runs))}; "
        f"{number(len(idle))} of them changed nothing, in {time_text(sum(run.seconds for run in idle))}. "
        "Each line opens to show what changed.",
    )
    if story.observation.recorder.begin.text is None:
        yield element("p", f"Modules of more than {PRINTED_INSTRUCTIONS:,} instructions have no diffs.", class_="note")
    before = story.observation.recorder.begin
    rows = []
    for place, (run, after) in enumerate(story.observation.recorder.changes):
        rows.append(_change(run, before, after, longest, has_diff=place < MOST_DIFFS))
        before = after
    yield joined(rows)
    if report.counts:
        yield element("h3", "Laws that fired")
        laws = story.observation.laws
        rows_of_laws = (
            [number(n), element("code", law), laws[law].statement] for law, n in report.counts.most_common()
        )
        yield table(("times", "law", ""), rows_of_laws, numeric=(0,))


def _change(run: PassRun, before: State, after: State, longest: float, *, has_diff: bool) -> Html:
    bar = element("span", class_="bar", style=f"width:{100 * run.seconds / longest:.1f}%")
    group = element("span", f" {run.group}", class_="note") if run.group else ""
    line = element(
        "span",
        element("span", run.name, group),
        element("span", time_text(run.seconds), class_="time"),
        element("span", bar, class_="bar-box"),
        element("span", _effect(before, after), class_="what"),
        class_="pass",
    )
    ops = ", ".join(
        f"{opcode} {after.opcodes.get(opcode, 0) - before.opcodes.get(opcode, 0):+,}"
        for opcode in sorted({*before.opcodes, *after.opcodes})
        if after.opcodes.get(opcode, 0) != before.opcodes.get(opcode, 0)
    )
    inside = [element("p", ops or "The same ops as before, differently connected, laid out or shaped.", class_="note")]
    if has_diff and before.text is not None and after.text is not None:
        inside.append(diff(before.text, after.text))
    return details(line, *inside)


def _effect(before: State, after: State) -> str:
    """Instructions, kernels and bytes, where they changed."""
    parts = []
    if after.instructions != before.instructions:
        parts.append(f"{after.instructions - before.instructions:+,} instructions")
    if after.kernels != before.kernels:
        parts.append(f"{after.kernels - before.kernels:+,.0f} kernels")
    if after.bytes != before.bytes:
        sign = "+" if after.bytes > before.bytes else "-"
        parts.append(sign + bytes_text(abs(after.bytes - before.bytes)))
    return ", ".join(parts) or "no change in number"


# -- fusions -----------------------------------------------------------------------------------------------------------


def _fusions(story: Story) -> Iterable[Html]:
    observation = story.observation
    fusions, refusals, merges = fusions_of(observation), refusals_of(observation), merges_of(observation)
    if not fusions and not refusals:
        yield element("p", "No kernel reads what it could have computed itself: there was nothing to fuse.")
        return
    yield element("h3", f"Made: {number(len(fusions))}")
    yield joined(_fusion(fusion) for fusion in fusions[:MOST_FUSIONS])
    yield _more(len(fusions) - MOST_FUSIONS, "fusions")
    if merges:
        yield element("h3", "Stored by one kernel together")
        rows = [
            element("li", element("code", f"{merge.subject} with {merge.partner}"), f": {merge.reason}")
            for merge in merges[:MOST_ROWS]
        ]
        yield element("ul", *rows, class_="reasons")
        yield _more(len(merges) - MOST_ROWS, "pairs")
    yield element("h3", f"Not made: {number(sum(len(refusal.names) for refusal in refusals))}")
    yield element("ul", *(_refusal(refusal) for refusal in refusals[:MOST_ROWS]), class_="reasons")
    yield _more(len(refusals) - MOST_ROWS, "reasons")


def _fusion(fusion: Fusion) -> Html:
    instruction = fusion.instruction
    kind = instruction.attributes["kind"].value
    line = element(
        "span",
        element("code", instruction.name),
        element(
            "span",
            f"  {shape_text(instruction.shape)}, {kind}, {counted(len(fusion.members), 'instruction')}",
            class_="what",
        ),
    )
    rows = [
        [
            element("code", member.name),
            member.opcode,
            element("code", shape_text(member.shape)),
            place_of(member.metadata),
        ]
        for member in fusion.members[:MOST_ROWS]
    ]
    return details(
        line,
        element("p", _sentence(fusion.reason)),
        _places(fusion.sources),
        table(("instruction", "op", "shape", "source"), rows),
        _more(len(fusion.members) - MOST_ROWS, "instructions"),
    )


def _places(places: Mapping[str, Sequence[str]]) -> Html:
    if not places:
        return Html()
    rows = [
        element("li", element("code", place), f": {', '.join(opcodes)}")
        for place, opcodes in [*places.items()][:NAMES_SHOWN]
    ]
    return joined([element("ul", *rows, class_="reasons"), _more(len(places) - NAMES_SHOWN, "lines")])


def _refusal(refusal: Refusal) -> Html:
    names = [element("code", name, class_="tag") for name in refusal.names[:NAMES_SHOWN]]
    more = and_more(len(refusal.names) - NAMES_SHOWN)
    places = few(refusal.places, NAMES_SHOWN)
    note = element("span", f" ({places})", class_="note") if places else ""
    return element("li", *names, more, element("br"), refusal.reason, note)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


# -- kernels -----------------------------------------------------------------------------------------------------------


def _kernels(story: Story) -> Iterable[Html]:
    yield element(
        "p",
        f"In the order in which they run. Times at best are what {machine_text(story.limits)} allow; what a cache may "
        "hold takes no time to read or write.",
    )
    rows = []
    times = story.profile.times() if story.profile else {}
    with_code = {kernel.instruction for kernel in _with_code(story.kernels)}
    for kernel in story.kernels[:MOST_ROWS]:
        name, *cells = kernel_cells(kernel)
        shown = element("code", name)
        if kernel.instruction in with_code:
            shown = element("a", shown, href=f"#{_anchor(kernel.instruction)}")
        if story.profile:
            time = times.get(kernel.place)
            cells += [time_text(time.seconds / time.runs), number(time.runs)] if time else ["", "0"]
        rows.append([shown, *cells])
    measured = ("measured", "times") if story.profile else ()
    head = (*KERNEL_HEAD, *measured)
    yield table(head, rows, numeric=(*KERNEL_NUMERIC, *range(len(KERNEL_HEAD), len(head))))
    yield _more(len(story.kernels) - MOST_ROWS, "kernels")
    runs = joint_runs(story.observation)
    if runs:
        yield details(f"Run together: {counted(len(runs), 'job')} of all threads", listing("\n".join(runs), CODE_LINES))
    if not all(kernel.is_known for kernel in story.kernels):
        yield element("p", "? counts loops of unknown length once, and each branch.", class_="note")
    if any(kernel.operations for kernel in story.kernels):
        yield element("h3", "Under the limits of the machine")
        yield charts.roofline(story.kernels, story.limits, story.profile)
        filled = "Filled: measured. " if story.profile else ""
        yield element(
            "p", f"{filled}Rings: the best that is possible. Kernels in a cache may be above the slope.", class_="note"
        )


# -- memory ------------------------------------------------------------------------------------------------------------


def _memory(story: Story) -> Iterable[Html]:
    plan, blocks = story.observation.plan, story.observation.timeline.lifetimes
    if not blocks:
        yield element("p", "The program needs no temporaries: every value is an argument, a result or in registers.")
        return
    yield element(
        "p",
        f"{counted(len(blocks), 'block')} share {bytes_text(plan.arena_bytes)}. {bytes_text(plan.live_bytes)} are "
        "needed at once at the most, which no plan could beat (the dashed line). Pale is memory that is kept for a "
        "value between two times in which it is needed.",
    )
    yield charts.memory(story.observation)
    yield _more(len(blocks) - charts.MOST_BLOCKS, "blocks, which are smaller")


# -- code --------------------------------------------------------------------------------------------------------------


def _with_code(kernels: Sequence[Kernel]) -> list[Kernel]:
    """The kernels whose code is shown, in order: those with most to do."""
    largest = sorted(kernels, key=lambda kernel: (-kernel.seconds * kernel.runs, -kernel.bytes * kernel.runs))
    chosen = {kernel.instruction for kernel in largest[:MOST_KERNELS_WITH_CODE]}
    return [kernel for kernel in kernels if kernel.instruction in chosen]


def _code(story: Story) -> Iterable[Html]:
    ir, assembly = ir_functions(story.observation), assembly_functions(story.observation)
    if not assembly:
        yield element("p", "Assembly is left out: the program is very large.", class_="note")
    shown = _with_code(story.kernels)
    used = {step.function for kernel in story.kernels for step in kernel.steps}
    for kernel in shown:
        parts = [_function(step.function, ir, assembly) for step in kernel.steps]
        line = element(
            "span",
            element("code", kernel.name),
            element("span", f"  {', '.join(step.function for step in kernel.steps)}{_split(kernel)}", class_="what"),
        )
        places = _places(sources(kernel.instruction))
        yield details(line, element("div", places, *parts, id=_anchor(kernel.instruction)))
    yield _more(len(story.kernels) - len(shown), "kernels")
    entries = [name for name in ir if name not in used and not name.endswith(".range")]
    yield details(
        f"The entry and its parts: {counted(len(entries), 'function')}",
        *(_function(name, ir, assembly) for name in entries[:NAMES_SHOWN]),
        _more(len(entries) - NAMES_SHOWN, "functions"),
    )


def _split(kernel: Kernel) -> str:
    tasks = max((-(-step.units // step.grain) for step in kernel.steps if step.is_split), default=1)
    return f", in {tasks:,} tasks for the thread pool" if tasks > 1 else ""


def _function(name: str, ir: Mapping[str, str], assembly: Mapping[str, str]) -> Html:
    if name not in ir:
        return element("p", element("code", name), " is a function of the runtime or of a library.", class_="note")
    parts = [details(f"LLVM IR of {name}", listing(ir[name], CODE_LINES))]
    if name in assembly:
        parts.append(details(f"Assembly of {name}", listing(assembly[name], CODE_LINES)))
    return joined(parts)


Section = Callable[[Story], Iterable[Html]]

SECTIONS: Mapping[str, tuple[str, Section]] = {
    "graph": ("Graph", _graph),
    "passes": ("Passes", _passes),
    "fusions": ("Fusions", _fusions),
    "kernels": ("Kernels", _kernels),
    "memory": ("Memory", _memory),
    "code": ("Code", _code),
}
"""The parts of the page in order: title, and what writes them."""
