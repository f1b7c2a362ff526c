"""Post-order of graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from xlapy.support.ordering import CycleError, post_order


def ordered(graph: Mapping[str, Sequence[str]], starts: Sequence[str]) -> str:
    return "".join(post_order(starts, lambda node: iter(graph[node])))


def test_what_a_node_needs_comes_first_and_once() -> None:
    graph = {"a": "bc", "b": "d", "c": "bd", "d": "", "e": "c"}
    assert ordered(graph, "a") == "dbca"
    assert ordered(graph, "da") == "dbca"
    assert ordered(graph, "ea") == "dbcea"


def test_starts_may_come_in_any_order() -> None:
    graph = {"a": "", "b": "ad", "c": "b", "d": "a", "e": "cf", "f": ""}
    assert ordered(graph, "abcdef") == "adbcfe"
    assert ordered(graph, "fedcba") == "fadbce"


def test_a_node_that_needs_itself_is_a_cycle() -> None:
    with pytest.raises(CycleError):
        ordered({"a": "", "b": "ab"}, "ab")


def test_a_cycle_is_named_by_the_edge_that_closes_it() -> None:
    with pytest.raises(CycleError) as caught:
        ordered({"a": "b", "b": "c", "c": "b"}, "a")
    assert (caught.value.source, caught.value.target) == ("c", "b")


def test_depth_needs_no_recursion() -> None:
    assert post_order([0], lambda n: iter([n + 1] if n < 50_000 else [])) == list(range(50_000, -1, -1))
