"""What notebooks show of modules and executables: a drawing and the text, small enough for any page."""

from __future__ import annotations

from xlapy.hlo.graph import HloModule
from xlapy.report.graph import graphs
from xlapy.report.markup import Html, details, element, joined
from xlapy.report.style import NOTEBOOK_STYLE
from xlapy.support.wording import counted

MOST_LINES = 400


def module_html(module: HloModule) -> Html:
    """The graph of a module, its text below."""
    title = f"HloModule {module.name} {module.signature}, {counted(module.instruction_count, 'instruction')}"
    text = module.to_text(large_constants=False)
    return _framed(title, graphs(module), details("HLO", listing(text, MOST_LINES)))


def executable_html(title: str, stats: str, text: str) -> Html:
    """What was compiled, in a line, and the compiled module."""
    return _framed(title, element("p", stats), details("HLO, as compiled", listing(text, MOST_LINES)))


def listing(text: str, lines: int) -> Html:
    """Code, cut after so many lines with a count."""
    found = text.splitlines()
    shown = "\n".join(found[:lines])
    if len(found) > lines:
        shown += f"\n... and {len(found) - lines:,} more lines"
    return element("pre", shown, tabindex=0)


def _framed(title: str, *parts: Html) -> Html:
    style = element("style", Html(NOTEBOOK_STYLE))
    return element("div", style, element("p", element("strong", title)), joined(parts), class_="xlapy")
