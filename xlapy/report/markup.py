"""HTML and SVG as strings that know whether they are markup: what is not gets escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable


class Html(str):
    """Markup. Any other string is text."""

    __slots__ = ()


_EMPTY = frozenset({"meta", "br", "rect", "line", "path", "circle"})


def element(name: str, /, *children: str, **attributes: object) -> Html:
    """An element with children, text escaped. Attributes are spelled `class_`, `aria_label`; None leaves one out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(_value(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _EMPTY and not children:
        return Html(f"<{name}{written}/>")
    return Html(f"<{name}{written}>{joined(children)}</{name}>")


def joined(parts: Iterable[str], between: str = "") -> Html:
    """Parts one behind the other."""
    return Html(escaped(between).join(escaped(part) for part in parts))


def escaped(text: str) -> Html:
    """The text as markup; markup as it is."""
    return text if isinstance(text, Html) else Html(html.escape(text, quote=False))


def _value(value: object) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def details(summary: str, /, *children: str, **attributes: object) -> Html:
    """A part of the page that opens when asked to."""
    return element("details", element("summary", summary), *children, **attributes)


def table(head: Iterable[str], rows: Iterable[Iterable[str]], numeric: Iterable[int] = ()) -> Html:
    """A table that scrolls by itself where the page is narrow; the columns of `numeric` are flush right."""
    right = frozenset(numeric)

    def row(cell: str, cells: Iterable[str]) -> Html:
        return element("tr", *(element(cell, c, class_="n" if n in right else None) for n, c in enumerate(cells)))

    body = joined(row("td", cells) for cells in rows)
    whole = element("table", element("thead", row("th", head)), element("tbody", body))
    return element("div", whole, class_="scroll", tabindex=0)
