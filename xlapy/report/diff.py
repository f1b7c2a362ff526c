"""What a pass changed, as a unified diff of HLO text."""

from __future__ import annotations

import difflib

from xlapy.report.markup import Html, element, escaped, joined

CONTEXT = 1
MOST_LINES = 160  # of one diff


def diff(before: str, after: str) -> Html:
    """The lines that went and came, with a neighbour on each side; long ones are cut, with a count."""
    old, new = before.splitlines(), after.splitlines()
    lines = [line for line in difflib.unified_diff(old, new, n=CONTEXT, lineterm="") if line[:3] not in ("---", "+++")]
    shown = [_line(line) for line in lines[:MOST_LINES]]
    if len(lines) > MOST_LINES:
        shown.append(escaped(f"... and {len(lines) - MOST_LINES:,} more lines"))
    return element("pre", joined(shown), tabindex=0)


def _line(line: str) -> Html:
    if line.startswith("@@"):
        return element("span", "\u22ef\n", class_="note")
    if line.startswith("+"):
        return element("ins", line)
    return element("del", line) if line.startswith("-") else escaped(line + "\n")
