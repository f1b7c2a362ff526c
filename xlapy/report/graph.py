"""A computation drawn as SVG: one box per instruction, operands above users, colours by family of ops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from textwrap import wrap

from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.ops import Trait
from xlapy.report.graph_layout import Drawing, layered
from xlapy.report.kernels import members, place_of, shape_text
from xlapy.report.markup import Html, element, joined
from xlapy.report.units import few
from xlapy.support.wording import counted

DRAWN = 120
"""Boxes in one drawing: with more, nobody finds anything in it, and browsers get slow."""

DRAWINGS = 6
"""Computations that are drawn: the entry, and the bodies of its loops and branches."""

CHARACTER = 6.7  # width of one in a box, in pixels
LINE = 14.0
PADDING = 8.0
LONGEST_LINE = 34
OPS_SHOWN = 12

_FAMILIES = {
    "elementwise": "elementwise",
    "special": "elementwise",
    "shapes": "moving",
    "indexing": "moving",
    "contractions": "product",
    "linalg": "product",
    "fft": "product",
    "windows": "folding",
    "reductions": "folding",
    "normalization": "folding",
    "ordering": "folding",
    "collectives": "talking",
    "communication": "talking",
    "control_flow": "control",
}
"""The colour of a box by the family of its op; grey for all others."""


def graphs(module: HloModule, link: Callable[[Instruction], str | None] = lambda instruction: None) -> Html:
    """Drawings of the entry and of what it runs as control flow."""
    found = [module.entry, *_bodies(module)]
    drawn = [_figure(computation, link) for computation in found[:DRAWINGS]]
    if len(found) > DRAWINGS:
        left = len(found) - DRAWINGS
        drawn.append(element("p", f"{left:,} more computations of loops and branches are not drawn.", class_="note"))
    return joined(drawn)


def _bodies(module: HloModule) -> Iterable[Computation]:
    """The computations that run as control flow, callers first."""
    return {
        called: None
        for computation in reversed(module.computations())
        for instruction in computation
        if Trait.CONTROL in instruction.spec.traits
        for called in instruction.called
    }


def _figure(computation: Computation, link: Callable[[Instruction], str | None]) -> Html:
    shown = [i for i in computation.post_order() if i.opcode != "constant"]
    note = f"{computation.name}: {counted(len(shown), 'instruction')}"
    if len(shown) > DRAWN:
        note += f", of which the first {DRAWN} are drawn"
    if len(shown) < len(computation):
        note += f"; {counted(len(computation) - len(shown), 'constant')} left out"
    drawing = svg(shown[:DRAWN], computation.name, link)
    return element(
        "figure", element("div", drawing, class_="scroll graph", tabindex=0), element("figcaption", note + ".")
    )


def svg(
    instructions: Sequence[Instruction],
    title: str,
    link: Callable[[Instruction], str | None] = lambda instruction: None,
) -> Html:
    """The drawing of some instructions of a computation."""
    lines = {instruction: _lines(instruction) for instruction in instructions}
    sizes = {
        i: (max(map(len, texts)) * CHARACTER + 2 * PADDING, len(texts) * LINE + PADDING) for i, texts in lines.items()
    }
    edges = [(operand, user) for user in instructions for operand in user.operands]
    drawing = layered(sizes, edges)
    parts = [element("path", d=_curve(way), class_="edge") for way in drawing.ways.values()]
    parts += [_box(i, texts, sizes[i], drawing, link(i)) for i, texts in lines.items()]
    return element(
        "svg",
        *parts,
        viewBox=f"0 0 {drawing.width:.0f} {drawing.height:.0f}",
        width=round(drawing.width),
        height=round(drawing.height),
        role="group",
        aria_label=f"Graph of {title}",
    )


def _lines(instruction: Instruction) -> list[str]:
    """What stands in a box: name, shape, and the ops of a fusion."""
    shape = shape_text(instruction.shape)
    if len(shape) > LONGEST_LINE:
        shape = shape[: LONGEST_LINE - 3] + "..."
    name = instruction.name if len(instruction.name) <= LONGEST_LINE else instruction.name[: LONGEST_LINE - 3] + "..."
    is_plain = name.split(".")[0] == instruction.opcode or instruction.opcode == "fusion"
    lines = [name, shape] if is_plain else [name, f"{instruction.opcode} {shape}"]
    if instruction.opcode != "fusion":
        return lines
    ops = [member.opcode for member in members(instruction)]
    return [*lines, *wrap(few(ops, OPS_SHOWN), LONGEST_LINE)]


def _box(
    instruction: Instruction,
    texts: Sequence[str],
    size: tuple[float, float],
    drawing: Drawing[Instruction],
    target: str | None,
) -> Html:
    (x, y), (width, height) = drawing.centres[instruction], size
    top = y - height / 2 + PADDING / 2
    rows = [
        element("text", text, x=x, y=top + LINE * (number + 0.75), class_="name" if number == 0 else None)
        for number, text in enumerate(texts)
    ]
    place = place_of(instruction.metadata)
    tip = f"{instruction!r}"[1:-1] + (f"\n{place}" if place else "")
    family = "fused" if instruction.opcode == "fusion" else _FAMILIES.get(instruction.spec.family, "plain")
    box = element("rect", x=x - width / 2, y=y - height / 2, width=width, height=height, rx=5, class_=family)
    group = element("g", element("title", tip), box, *rows, class_="root" if instruction.is_root else None)
    return element("a", group, href=target) if target else group


def _curve(way: Sequence[tuple[float, float]]) -> str:
    """A smooth line through the points, vertical at each."""
    (x, y), *rest = way
    parts = [f"M{x:.1f} {y:.1f}"]
    for next_x, next_y in rest:
        middle = (y + next_y) / 2
        parts.append(f"C{x:.1f} {middle:.1f} {next_x:.1f} {middle:.1f} {next_x:.1f} {next_y:.1f}")
        x, y = next_x, next_y
    return "".join(parts)


LEGEND: Mapping[str, str] = {
    "fused": "fusion",
    "elementwise": "element-wise",
    "moving": "data movement",
    "product": "products, factors, transforms",
    "folding": "reductions, windows, sorting",
    "control": "control flow",
    "talking": "communication",
    "plain": "other",
}


def legend() -> Html:
    """What the colours mean."""
    return element(
        "p", *(element("span", text, class_=f"key {family}") for family, text in LEGEND.items()), class_="legend"
    )
