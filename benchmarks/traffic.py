"""Kernels launched and bytes moved, beside XLA:CPU's: `python -m benchmarks.traffic`, on every program of the gallery.

The gallery is the programs of `examples/programs` and the workloads of this package at every size. Each is counted
three times by one function, `program_cost` of `xlapy.hlo.cost`: as our passes have it before fusion, with a kernel for
every instruction; as we run it; and as XLA runs it, in the text that XLA prints of its optimized module.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

import xlapy
from benchmarks.arguments import pattern
from benchmarks.engines import XlaEngine
from benchmarks.report import write_section
from benchmarks.workload import Case, cases
from xlapy.codegen.target import host_target
from xlapy.hlo.cost import Cost, program_cost
from xlapy.inspection import observe_module
from xlapy.report.copies import copies_of
from xlapy.report.fusions import FUSION_PASSES
from xlapy.report.kernels import is_in_place
from xlapy.report.units import bytes_text, number


@dataclass(frozen=True, slots=True)
class Program:
    """A program of the gallery; `lower` gives JAX's lowering of it."""

    family: str
    name: str
    lower: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Load:
    """What one call of a program has to do, the copies included that no instruction stands for."""

    kernels: float
    bytes: float

    @staticmethod
    def of(cost: Cost) -> Load:
        return Load(cost.kernels, cost.bytes)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One program: before our fusion, behind all our passes, and behind XLA's."""

    program: Program
    before: Load
    ours: Load
    theirs: Load

    @property
    def has_more_kernels(self) -> bool:
        return self.ours.kernels > self.theirs.kernels

    @property
    def has_more_bytes(self) -> bool:
        return self.ours.bytes > self.theirs.bytes

    @property
    def is_more(self) -> bool:
        return self.has_more_kernels or self.has_more_bytes


@dataclass(frozen=True, slots=True)
class Exemption:
    """Programs, by a pattern for all of their names, that may launch or move more than XLA's, and why."""

    programs: str
    reason: str

    def covers(self, program: Program) -> bool:
        return re.fullmatch(self.programs, program.name) is not None


EXEMPTIONS = (
    Exemption(
        r"models/(convolutional|attention|transformer)/(cache|memory)",
        "XLA hands a graph of products, folds and element-wise operations to a library as one call. What the library "
        "launches and stores inside is not in the text; each of ours is counted.",
    ),
    Exemption(
        r"reductions/((sum|max)_columns(_bf16)?|argmax_all)/memory",
        "Columns that no cache holds, and arrays in which the place of the largest element is looked for, are folded "
        "in parts, which threads share, and what is made of these parts by a second kernel.",
    ),
    Exemption(
        r"indexing/(mixed|cropped)_images/(cache|memory)",
        "What there is one of for each image, as its place or its share, is computed once, by small kernels, and not "
        "at each element.",
    ),
    Exemption(
        r"normalization/softmax_columns/cache",
        "Columns of small arrays, and of those that no cache holds, are folded and used in one kernel, strip by strip. "
        "Of arrays between these it takes up to 1.2 times as long as kernels that stream whole rows out of a cache.",
    ),
    Exemption(
        r"convolution/\dx\d_stride_2_image_gradient_\w+/.*",
        "A gradient that is spread out with holes is convolved by phases, whose results are woven together: more "
        "kernels, which multiply a quarter of what XLA's one multiplies, the rest being zeros.",
    ),
    Exemption(
        r"indexing/gather_columns/(cache|memory)",
        "Negative indices are made positive once, by a kernel of their own, rather than again in each row, which takes "
        "longer than the kernel.",
    ),
    Exemption(
        r"loops/relaxation/.*",
        "Two steps are written down, of which the second one is taken if the loop goes on, so that no state is copied "
        "after each; XLA's text has one.",
    ),
    Exemption(
        r"models/decoding/(small|memory)",
        "What comes past the blocks of a transformer is a single vector here: each of its folds adds it up again, "
        "rather than read a sum, and what is made of the result of a fold is a kernel of one number.",
    ),
    Exemption(
        r"transforms/exponential/.*",
        "Matrices and their transposes are added up before. These are made by a kernel that copies in blocks, where "
        "XLA adds up elements that it picks one by one.",
    ),
)


def exemption_of(program: Program) -> Exemption | None:
    return next((exemption for exemption in EXEMPTIONS if exemption.covers(program)), None)


# -- the gallery -----------------------------------------------------------------------------------------------------


def gallery(families: Sequence[str] = (), only: str = "") -> list[Program]:
    """The programs whose family is listed and whose name matches; all of them where nothing is said."""
    found = [*_examples(), *_workloads()]
    return [p for p in found if (not families or p.family in families) and re.search(only, p.name)]


def _examples() -> Iterator[Program]:
    from examples.programs.catalogue import PROGRAMS

    for name in PROGRAMS:
        yield Program("programs", f"programs/{name}", partial(_lowered_example, name))


def _lowered_example(name: str) -> Any:
    import jax

    from examples.programs.catalogue import PROGRAMS
    from examples.programs.export import SOURCES, is_wide

    config: Any = jax.config
    config.update("jax_enable_x64", is_wide(PROGRAMS[name]))
    return jax.jit(SOURCES[name], keep_unused=True).lower(*PROGRAMS[name].arguments)


def _workloads() -> Iterator[Program]:
    from benchmarks.workloads import all_workloads

    engine = XlaEngine()
    for case in cases(all_workloads()):
        yield Program(case.workload.family, case.name, partial(_lowered_case, engine, case))


def _lowered_case(engine: XlaEngine, case: Case) -> Any:
    return engine.lowered((case.workload.family, case.workload.name, case.size), case.inputs())


# -- counting --------------------------------------------------------------------------------------------------------


def compare(program: Program) -> Comparison:
    """Compiles a program with both compilers and counts."""
    lowered = program.lower()
    before, ours = our_loads(lowered.as_text())
    theirs = xlapy.hlo.parse(text_of_xla(lowered.compile()))
    return Comparison(program, before, ours, Load.of(program_cost(theirs.entry)))


def text_of_xla(compiled: Any) -> str:
    """The module of one of jax's programs as XLA has compiled it, with the values of all constants."""
    options = import_module("jaxlib._hlo").HloPrintOptions()  # jax itself has no public way to them
    options.print_large_constants = True
    (module,) = compiled.runtime_executable().hlo_modules()
    text: str = module.to_string(options)
    return text


def our_loads(text: str) -> tuple[Load, Load]:
    """Before fusion, and behind all passes."""
    options = xlapy.CompileOptions()
    found = observe_module(xlapy.stablehlo.parse(text), options, host_target())
    before = found.before(FUSION_PASSES)
    cost = program_cost(found.module.entry, lambda instruction: is_in_place(found.plan, instruction))
    for copy in copies_of(found.module, found.plan):
        cost.kernels += copy.runs
        cost.bytes += 2 * copy.bytes * copy.runs
    return Load(before.kernels, before.bytes), Load.of(cost)


# -- the table -------------------------------------------------------------------------------------------------------

HEADER = (
    f"{'':62}{'kernels':^31}{'bytes':^36}\n"
    f"{'':62}{'unfused':>10}{'xlapy':>10}{'XLA':>10} {'unfused':>12}{'xlapy':>12}{'XLA':>12}  xlapy / XLA"
)


def line(comparison: Comparison) -> str:
    """A row of the table; what is more than XLA's is marked."""
    loads = (comparison.before, comparison.ours, comparison.theirs)
    kernels = "".join(f"{number(load.kernels):>10}" for load in loads)
    moved = "".join(f"{bytes_text(load.bytes):>12}" for load in loads)
    more = [
        text
        for text, is_so in (("KERNELS", comparison.has_more_kernels), ("BYTES", comparison.has_more_bytes))
        if is_so
    ]
    mark = "  MORE " + " AND ".join(more) if more else ""
    return f"{comparison.program.name:62}{kernels} {moved}  {_ratios(comparison)}{mark}"


def _ratios(comparison: Comparison) -> str:
    ours, theirs = comparison.ours, comparison.theirs
    return " ".join(
        f"{ratio:5.2f}" if ratio is not None else "    -"
        for ratio in (_ratio(ours.kernels, theirs.kernels), _ratio(ours.bytes, theirs.bytes))
    )


def _ratio(ours: float, theirs: float) -> float | None:
    return ours / theirs if theirs else None


def summary(comparisons: Sequence[Comparison]) -> list[str]:
    """For each family the geometric means of what ours is of XLA's, and of what it was before fusion."""
    lines = [f"{'':16}{'programs':>9}{'more':>6}  kernels: of unfused, of XLA's   bytes: of unfused, of XLA's"]
    for family, found in groupby(comparisons, key=lambda comparison: comparison.program.family):
        group = [*found]
        means = [
            _mean(_ratio(getattr(c.ours, what), getattr(getattr(c, than), what)) for c in group)
            for what in ("kernels", "bytes")
            for than in ("before", "theirs")
        ]
        more = sum(comparison.is_more for comparison in group)
        lines.append(
            f"{family:16}{len(group):9}{more:6}{means[0]:21.2f}{means[1]:10.2f}{means[2]:18.2f}{means[3]:10.2f}"
        )
    return lines


def _mean(ratios: Iterable[float | None]) -> float:
    known = [ratio for ratio in ratios if ratio]
    return float(np.exp(np.mean(np.log(known)))) if known else float("nan")


def exemption_lines(comparisons: Sequence[Comparison]) -> list[str]:
    """The reasons that are on record, each with the programs that need it now."""
    lines = []
    for exemption in EXEMPTIONS:
        names = [c.program.name for c in comparisons if c.is_more and exemption_of(c.program) is exemption]
        if names:
            lines += [f"- {exemption.reason}", f"  {', '.join(f'`{name}`' for name in names)}"]
    return lines


def as_markdown(comparisons: Sequence[Comparison]) -> str:
    """The section that `docs/traffic.md` holds."""
    more = sum(comparison.is_more for comparison in comparisons)
    parts = [
        f"{len(comparisons)} programs, {more} of which launch or move more than with XLA (jaxlib {version('jaxlib')}).",
        *("", "```", *summary(comparisons), "```", "", "### Where ours is more, and why", ""),
        *(exemption_lines(comparisons) or ["Nowhere."]),
    ]
    for family, found in groupby(comparisons, key=lambda comparison: comparison.program.family):
        parts += ["", f"### {family}", "", "```", HEADER, *map(line, found), "```"]
    return "\n".join(parts) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table; 1 where a program has more than XLA's and no reason is on record."""
    parser = argparse.ArgumentParser("python -m benchmarks.traffic", description=__doc__.partition("\n")[0])
    parser.add_argument("--only", metavar="FAMILY", nargs="+", default=[], help="families of programs")
    parser.add_argument(
        "--match", metavar="REGEX", type=pattern, default="", help="programs whose family/name/size matches"
    )
    parser.add_argument("--page", metavar="FILE", type=Path, help="replace the measured section of a page")
    options = parser.parse_args(arguments)
    chosen = gallery(options.only, options.match)
    if not chosen:
        families = dict.fromkeys(program.family for program in gallery())
        parser.error(f"no program fits; the families are {', '.join(families)}")
    comparisons = []
    print(HEADER)
    for program in chosen:
        comparisons.append(compare(program))
        print(line(comparisons[-1]), flush=True)
    print("\n".join(["", *summary(comparisons), "", *exemption_lines(comparisons)]))
    if options.page:
        if options.only or options.match:
            print(f"{options.page} is left as it is: only part of the gallery was compiled")
        else:
            write_section(options.page, as_markdown(comparisons))
    unexplained = [c.program.name for c in comparisons if c.is_more and exemption_of(c.program) is None]
    if unexplained:
        print(f"more than XLA's, and no reason is on record: {', '.join(unexplained)}")
    return int(bool(unexplained))


if __name__ == "__main__":
    sys.exit(main())
