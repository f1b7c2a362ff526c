"""Boxes in layers: what any drawing must keep to."""

from __future__ import annotations

import random

import pytest

from xlapy.report.graph_layout import GAP, layered

Edges = list[tuple[int, int]]


def random_graph(seed: int, count: int) -> tuple[dict[int, tuple[float, float]], Edges]:
    chosen = random.Random(seed)
    sizes = {number: (chosen.uniform(30, 200), chosen.choice([22.0, 36.0, 64.0])) for number in range(count)}
    edges = [(chosen.randrange(user), user) for user in range(1, count) for _ in range(chosen.randrange(3))]
    return sizes, edges


@pytest.mark.parametrize("seed", range(6))
def test_boxes_do_not_touch_and_edges_run_downwards(seed: int) -> None:
    sizes, edges = random_graph(seed, 40)
    drawing = layered(sizes, edges)
    assert set(drawing.centres) == set(sizes)
    for one, (x, y) in drawing.centres.items():
        assert x - sizes[one][0] / 2 >= 0 and x + sizes[one][0] / 2 <= drawing.width
        assert y - sizes[one][1] / 2 >= 0 and y + sizes[one][1] / 2 <= drawing.height
        for other, (there, below) in drawing.centres.items():
            if one != other and y == below:
                assert abs(x - there) >= (sizes[one][0] + sizes[other][0]) / 2 + GAP - 1e-6
    for (source, user), way in drawing.ways.items():
        assert drawing.centres[source][1] < drawing.centres[user][1]
        assert [y for _, y in way] == sorted(y for _, y in way)


def test_the_same_graph_is_drawn_alike() -> None:
    assert layered(*random_graph(1, 30)) == layered(*random_graph(1, 30))


def test_what_has_no_operands_stands_above_its_first_user() -> None:
    sizes = dict.fromkeys(range(5), (20.0, 20.0))
    drawing = layered(sizes, [(0, 1), (1, 2), (2, 4), (3, 4)])
    assert drawing.centres[3][1] == drawing.centres[2][1] < drawing.centres[4][1]


def test_little_graphs() -> None:
    assert layered({}, []).centres == {}
    assert layered({1: (10.0, 10.0)}, [(1, 2)]).ways == {}
