"""Places in text."""

from __future__ import annotations

from xlapy.support.source import LINE_WIDTH, Source, suggestion


def test_line_column_and_caret() -> None:
    source = Source("first\n  second\nthird", "file.hlo")
    assert source.line_and_column(0) == (1, 1)
    assert source.line_and_column(8) == (2, 3)
    assert source.where(8) == "file.hlo, line 2, column 3:\n  second\n  ^"


def test_the_end_of_the_text_is_a_place() -> None:
    assert Source("ab").where(99) == "line 1, column 3:\nab\n  ^"
    assert Source("ab\n").where(3) == "line 2, column 1:\n\n^"
    assert Source("").where(0) == "line 1, column 1:\n\n^"


def test_tabs_stay_aligned_and_carriage_returns_vanish() -> None:
    assert Source("\tab\r\n").where(2) == "line 1, column 3:\n\tab\n\t ^"


def test_long_lines_are_shown_around_the_caret() -> None:
    text = "x" * 500 + "!" + "y" * 500
    _, line, caret = Source(text).where(500).split("\n")
    assert line[caret.index("^")] == "!"
    assert len(line) <= LINE_WIDTH + 6


def test_suggestions() -> None:
    assert suggestion("paramter", ["parameter", "negate"]) == "; did you mean 'parameter'?"
    assert suggestion("zzz", ["parameter"]) == ""
