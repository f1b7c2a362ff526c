"""Pictures of numbers as SVG: the roofline, and memory over time."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xlapy.hlo.buffer_plan import Lifetime
from xlapy.hlo.graph import Instruction
from xlapy.report.kernels import Kernel
from xlapy.report.limits import Limits
from xlapy.report.markup import Html, element
from xlapy.report.observation import Observation
from xlapy.report.profile import Profile
from xlapy.report.units import amount, bytes_text, time_text

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


def roofline(kernels: Sequence[Kernel], limits: Limits, profile: Profile | None) -> Html:
    """Kernels by operations per byte and operations per second, under the limits of the machine.

    Where no time was measured a kernel stands on the roof."""
    peak, bandwidth = limits.f32.all, limits.copy.all
    top = math.log10(peak * 2)

    def x_of(intensity: float) -> float:
        share = math.log(min(max(intensity, LEAST_INTENSITY), MOST_INTENSITY) / LEAST_INTENSITY)
        return LEFT + (WIDTH - LEFT - RIGHT) * share / math.log(MOST_INTENSITY / LEAST_INTENSITY)

    def y_of(rate: float) -> float:
        share = (top - math.log10(max(rate, 1.0))) / DECADES_SHOWN
        return TOP + (ROOF_HEIGHT - TOP - BOTTOM) * min(max(share, 0.0), 1.0)

    ridge = peak / bandwidth
    bottom = ROOF_HEIGHT - BOTTOM
    roof = f"M{x_of(LEAST_INTENSITY):.1f} {y_of(bandwidth * LEAST_INTENSITY):.1f}"
    roof += f"L{x_of(ridge):.1f} {y_of(peak):.1f}L{x_of(MOST_INTENSITY):.1f} {y_of(peak):.1f}"
    parts = [element("path", d=roof, class_="roof")]
    for power in range(-6, 11, 2):
        place = x_of(2.0**power)
        parts.append(element("line", x1=place, x2=place, y1=TOP, y2=bottom, class_="grid"))
        parts.append(_label(f"1/{2**-power}" if power < 0 else str(2**power), place, bottom + 16))
    for power in range(math.ceil(top - DECADES_SHOWN), math.floor(top) + 1):
        place = y_of(10.0**power)
        parts.append(element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=place, y2=place, class_="grid"))
        parts.append(_label(amount(10.0**power), LEFT - 6, place + 4, "end"))
    parts.append(_label("operations per byte", (LEFT + WIDTH) / 2, ROOF_HEIGHT - 6))
    parts.append(_label(f"{peak / 1e9:,.0f} GFLOP/s", WIDTH - RIGHT - 4, y_of(peak) - 5, "end"))
    measured = {time.name: time for time in profile.kernels if time.runs} if profile else {}
    for kernel in kernels:
        if not kernel.operations:
            continue
        intensity = kernel.operations / max(kernel.bytes, 1)
        time = measured.get(kernel.name)
        seconds = time.seconds / time.runs if time else kernel.seconds
        rate = kernel.operations / seconds if time and seconds else min(peak, bandwidth * intensity)
        tip = f"{kernel.name}: {amount(kernel.operations)} operations, {bytes_text(kernel.bytes)}"
        tip += f", {time_text(seconds)} {'measured' if time else 'at best'}"
        dot = element("circle", element("title", tip), cx=x_of(intensity), cy=y_of(rate), r=5)
        parts.append(element("g", dot, class_="measured" if time else "possible"))
    return _svg(ROOF_HEIGHT, "Kernels under the limits of the machine", parts)


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
    more = f" and {len(owners) - NAMED_OWNERS} more" if len(owners) > NAMED_OWNERS else ""
    lines = [f"{', '.join(owners[:NAMED_OWNERS])}{more}", f"{bytes_text(block.bytes)} from {block.offset:,} on"]
    first, last = names.get(block.ranges[0][0]), names.get(block.ranges[-1][1])
    if first is not None:
        lines.append(f"from {first.name} to {last.name if last else 'the end'}")
    return "\n".join(lines)
