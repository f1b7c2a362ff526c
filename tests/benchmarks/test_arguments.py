"""A wrong command line is refused at once, and says what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from benchmarks import __main__, checkouts, collectives, floors, parsing, traffic


@pytest.mark.parametrize(
    ("main", "line", "said"),
    [
        (__main__.main, "--only (", "'(' is no regular expression: missing )"),
        (floors.main, "--only [", "'[' is no regular expression"),
        (floors.main, "--only nothing-like-it", "no figure is called 'nothing-like-it'"),
        (checkouts.main, ". /nowhere --only x", "/nowhere is no checkout of xlapy"),
        (checkouts.main, ". . --only x --pairs 0", "'0' is no number of at least 1"),
        (traffic.main, "--match (", "'(' is no regular expression"),
        (traffic.main, "--only nothing-like-it", "no program fits; the families are programs, elementwise"),
        (parsing.main, "--repeat 0", "'0' is no number of at least 1"),
        (collectives.main, "--devices 2 -1", "-1"),
        (collectives.main, "--devices two", "'two' is no number of at least 1"),
    ],
)
def test_what_is_wrong_on_the_command_line(
    main: Callable[[Sequence[str]], object], line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(line.split())
    assert caught.value.code == 2
    assert said in capsys.readouterr().err
