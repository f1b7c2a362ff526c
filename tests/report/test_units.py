"""Numbers and lists as people read them."""

from xlapy.report.units import and_more, few, time_text


def test_a_list_says_how_much_of_it_is_missing() -> None:
    assert few(["a", "b", "c"], 3) == "a, b, c"
    assert few(["a", "b", "c"], 2) == "a, b and 1 more"
    assert few([str(number) for number in range(2002)], 1) == "0 and 2,001 more"
    assert few([], 3) == ""
    assert and_more(0) == and_more(-2) == ""


def test_a_short_time_is_not_none() -> None:
    assert [time_text(seconds) for seconds in (1.5e-3, 2e-9, 3e-10, 0)] == ["1.50 ms", "2 ns", "< 1 ns", "0"]
