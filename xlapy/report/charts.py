"""Pictures of numbers as SVG: the roofline, and memory over time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xlapy.hlo.buffer_plan import Lifetime
from xlapy.hlo.graph import Instruction
from xlapy.report.kernels import Kernel
from xlapy.report.limits import Limits
from xlapy.report.markup import Html, element
from xlapy.report.observation import Observation
from xlapy.report.profile import KernelTime, Profile
from xlapy.report.units import amount, bytes_text, few, time_text

WIDTH = 720.0
LEFT, RIGHT, TOP, BOTTOM = 64.0, 14.0, 14.0, 40.0

MOST_BLOCKS = 800
"""Blocks of memory in one picture, the largest: more are no wider than a hair."""

NAMED_OWNERS = 4


def _svg(height: float, title: str, parts: Sequence[Html]) -> Html:
    drawing = element(
        "svg",
        element("title", title),
        *parts,
        viewBox=f"0 0 {WIDTH:.0f} {height:.0f}",
        width=WIDTH,
        height=height,
        role="img",
        class_="chart",
    )
    return element("div", drawing, class_="scroll", tabindex=0)


def _label(text: str, x: float, y: float, anchor: str = "middle") -> Html:
    return element("text", text, x=x, y=y, text_anchor=anchor, class_="axis")


# -- roofline ----------------------------------------------------------------------------------------------------------

ROOF_HEIGHT = 320.0
LEAST_INTENSITY, MOST_INTENSITY = 1 / 64, 1024.0  # operations per byte
DECADES_SHOWN = 4.5  # of operations per second, below the top
MOST_DOTS = 500


@dataclass(frozen=True, slots=True)
class _Roof:
    """Where operations per byte and operations per second are in the picture, both by their logarithms."""

    peak: float
    bandwidth: float

    @property
    def _top(self) -> float:
        return math.log10(self.peak * 2)

    def x(self, intensity: float) -> float:
        share = math.log(min(max(intensity, LEAST_INTENSITY), MOST_INTENSITY) / LEAST_INTENSITY)
        return LEFT + (WIDTH - LEFT - RIGHT) * share / math.log(MOST_INTENSITY / LEAST_INTENSITY)

    def y(self, rate: float) -> float:
        share = (self._top - math.log10(max(rate, 1.0))) / DECADES_SHOWN
        return TOP + (ROOF_HEIGHT - TOP - BOTTOM) * min(max(share, 0.0), 1.0)

    def line(self) -> Html:
        """The most that is possible: up the slope of memory to the ridge, from there flat."""
        corners = [
            (LEAST_INTENSITY, self.bandwidth * LEAST_INTENSITY),
            (self.peak / self.bandwidth, self.peak),
            (MOST_INTENSITY, self.peak),
        ]
        path = "L".join(f"{self.x(intensity):.1f} {self.y(rate):.1f}" for intensity, rate in corners)
        return element("path", d=f"M{path}", class_="roof")

    def axes(self) -> Iterator[Html]:
        bottom = ROOF_HEIGHT - BOTTOM
        for power in range(-6, 11, 2):
            x = self.x(2.0**power)
            yield element("line", x1=x, x2=x, y1=TOP, y2=bottom, class_="grid")
            yield _label(f"1/{2**-power}" if power < 0 else str(2**power), x, bottom + 16)
        for power in range(math.ceil(self._top - DECADES_SHOWN), math.floor(self._top) + 1):
            y = self.y(10.0**power)
            yield element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="grid")
            yield _label(amount(10.0**power), LEFT - 6, y + 4, "end")
        yield _label("operations per byte", (LEFT + WIDTH) / 2, ROOF_HEIGHT - 6)
        yield _label(f"{self.peak / 1e9:,.0f} GFLOP/s", WIDTH - RIGHT - 4, self.y(self.peak) - 5, "end")

    def dot(self, kernel: Kernel, time: KernelTime | None) -> Html:
        """A kernel: where it was measured, or else where it could be at best."""
        intensity = kernel.operations / max(kernel.bytes, 1)
        seconds = time.seconds / time.runs if time else kernel.seconds
        rate = kernel.operations / seconds if time and seconds else min(self.peak, self.bandwidth * intensity)
        tip = f"{kernel.name}: {amount(kernel.operations)} operations, {bytes_text(kernel.bytes)}"
        tip += f", {time_text(seconds)} {'measured' if time else 'at best'}"
        dot = element("circle", element("title", tip), cx=self.x(intensity), cy=self.y(rate), r=5)
        return element("g", dot, class_="measured" if time else "possible")


def roofline(kernels: Sequence[Kernel], limits: Limits, profile: Profile | None) -> Html:
    """Kernels by operations per byte and operations per second, under the limits of the machine.

    Where no time was measured a kernel stands on the roof."""
    roof = _Roof(limits.f32.all, limits.copy.all)
    computing = [kernel for kernel in kernels if kernel.operations][:MOST_DOTS]
    times = profile.times() if profile else {}
    dots = [roof.dot(kernel, times.get(kernel.place)) for kernel in computing]
    return _svg(ROOF_HEIGHT, "Kernels under the limits of the machine", [*roof.axes(), roof.line(), *dots])


# -- memory ------------------------------------------------------------------------------------------------------------

MEMORY_HEIGHT = 300.0
COLOURS = 6


def memory(observation: Observation) -> Html:
    """The arena: time from left to right, addresses from bottom to top, one block for each value in each stretch of
    time in which it is needed."""
    timeline, plan = observation.timeline, observation.plan
    points = max((block.ranges[-1][1] for block in timeline.lifetimes), default=1) + 1
    bottom = MEMORY_HEIGHT - BOTTOM

    def x_of(point: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * point / points

    def y_of(offset: float) -> float:
        return bottom - (bottom - TOP) * offset / max(plan.arena_bytes, 1)

    parts = []
    names = {point: instruction for instruction, point in timeline.points.items()}
    largest = sorted(timeline.lifetimes, key=lambda block: -block.bytes)[:MOST_BLOCKS]
    for number, block in enumerate(sorted(largest, key=lambda block: (block.ranges[0], block.offset))):
        tip = element("title", _tip(block, names))
        y, height = y_of(block.offset + block.bytes), max(y_of(block.offset) - y_of(block.offset + block.bytes), 0.5)
        first, last = block.ranges[0][0], block.ranges[-1][1]
        held = element("rect", x=x_of(first), y=y, width=x_of(last + 1) - x_of(first), height=height, class_="held")
        needed = [
            element("rect", x=x_of(a), y=y, width=max(x_of(b + 1) - x_of(a), 0.5), height=height)
            for a, b in block.ranges
        ]
        parts.append(element("g", tip, held, *needed, class_=f"block c{number % COLOURS}"))
    least = y_of(plan.live_bytes)
    parts.append(element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=least, y2=least, class_="bound"))
    parts.append(_label(bytes_text(plan.arena_bytes), LEFT - 6, y_of(plan.arena_bytes) + 8, "end"))
    if least - y_of(plan.arena_bytes) > 2 * 8:
        parts.append(_label(bytes_text(plan.live_bytes), LEFT - 6, least + 4, "end"))
    parts.append(_label("0", LEFT - 6, bottom, "end"))
    parts.append(_label("instructions in the order in which they run", (LEFT + WIDTH) / 2, MEMORY_HEIGHT - 14))
    return _svg(MEMORY_HEIGHT, "Temporaries over time", parts)


def _tip(block: Lifetime, names: dict[int, Instruction]) -> str:
    owners = [owner.name for owner in block.owners]
    lines = [few(owners, NAMED_OWNERS), f"{bytes_text(block.bytes)} from {block.offset:,} on"]
    first, last = names.get(block.ranges[0][0]), names.get(block.ranges[-1][1])
    if first is not None:
        lines.append(f"from {first.name} to {last.name if last else 'the end'}")
    return "\n".join(lines)
