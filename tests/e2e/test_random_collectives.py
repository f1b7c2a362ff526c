"""Collectives over random grids, groups, types and reductions: native code beside the evaluator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xlapy
from tests.e2e.test_collectives import run_parallel
from xlapy import ops

TYPES = ("s8", "u16", "s64", "bf16", "f32", "c64", "pred")
ORDERED = ("s8", "u16", "s64", "bf16", "f32")
FEW = settings(max_examples=8, deadline=None, derandomize=True)
MANY = settings(max_examples=120, deadline=None)
Groups = list[list[int]]


@st.composite
def grids(draw: Any, *, global_ids: bool = True) -> tuple[tuple[int, int], Groups, int, dict[str, Any]]:
    """(replicas, partitions), groups of equal size, how many processes meet, and how the groups are to be read."""
    replicas, partitions = draw(st.integers(1, 4)), draw(st.integers(1, 2))
    strategies = ["replicas", "both", "global"] if global_ids else ["replicas", "partitions"]
    strategy = draw(st.sampled_from(strategies))
    count = {"global": replicas * partitions, "partitions": partitions}.get(strategy, replicas)
    ids = draw(st.permutations(range(count)))
    size = draw(st.sampled_from([size for size in range(1, count + 1) if count % size == 0]))
    groups = [list(ids[start : start + size]) for start in range(0, count, size)]
    attributes = {} if strategy == "replicas" else {"channel_id": 7}
    if strategy == "global":
        attributes["use_global_device_ids"] = True
    return (replicas, partitions), groups, size * partitions if strategy == "both" else size, attributes


def check(grid: tuple[int, int], shapes: Sequence[xlapy.Shape], function: Callable[..., Any]) -> None:
    builder = xlapy.XlaBuilder("random")
    parameters = [builder.parameter(number, shape) for number, shape in enumerate(shapes)]
    computation = builder.build(function(*parameters))
    random = np.random.default_rng(len(shapes))
    arguments = [
        [random.integers(0, 5, shape.dims).astype(shape.type.dtype) for shape in shapes]
        for _ in range(grid[0] * grid[1])
    ]
    run_parallel(computation, arguments, *grid)


def reduced(case: Any, types: Sequence[str], reduction: Any) -> None:
    grid, groups, members, attributes = case
    shapes = [xlapy.Shape.array(element_type, (members * 2, 3)) for element_type in types]

    def function(*arrays: Any) -> Any:
        whole = ops.AllReduce(list(arrays), reduction, groups, **attributes)
        parts = ops.ReduceScatter(list(arrays), reduction, 0, members, groups, **attributes)
        return arrays[0].builder.tuple([whole, parts])

    check(grid, shapes, function)


def exchanged(case: Any, pairs: Sequence[tuple[int, int]], element_type: str) -> None:
    grid, groups, members, attributes = case
    count = grid[1] if attributes else grid[0]
    known = [(source, target) for source, target in pairs if source < count and target < count]

    def function(x: Any) -> Any:
        return x.builder.tuple(
            [
                ops.AllToAll(x, 0, 1, members, groups, **attributes),
                ops.CollectiveBroadcast(x, groups[:1], **attributes),
                ops.CollectivePermute(x, known, **attributes),
            ]
        )

    check(grid, [xlapy.Shape.array(element_type, (members * 2, 3))], function)


REDUCTIONS = st.sampled_from([ops.Add, ops.Max, ops.Min, ops.Mul, lambda a, b: ops.Max(a, b) + a - b])
PAIRS = st.permutations(range(4)).flatmap(
    lambda targets: st.lists(st.sampled_from(list(enumerate(targets))), unique=True, max_size=4)
)


@FEW
@given(grids(), st.lists(st.sampled_from(ORDERED), min_size=1, max_size=4), REDUCTIONS)
def test_reductions_of_several_arrays_of_mixed_types(case: Any, types: list[str], reduction: Any) -> None:
    grid, groups, _, attributes = case
    shapes = [xlapy.Shape.array(element_type, (2, 3)) for element_type in types]
    check(grid, shapes, lambda *arrays: ops.AllReduce(list(arrays), reduction, groups, **attributes))


@FEW
@given(grids(), st.lists(st.sampled_from(ORDERED), min_size=1, max_size=1), REDUCTIONS)
def test_reductions(case: Any, types: list[str], reduction: Any) -> None:
    reduced(case, types, reduction)


@FEW
@given(grids(), st.lists(st.sampled_from(TYPES), min_size=1, max_size=3), st.integers(0, 1))
def test_gathering(case: Any, types: list[str], dimension: int) -> None:
    grid, groups, members, attributes = case
    shapes = [xlapy.Shape.array(element_type, (2, 3)) for element_type in types]
    check(grid, shapes, lambda *arrays: ops.AllGather(list(arrays), dimension, members, groups, **attributes))


@FEW
@given(grids(global_ids=False), PAIRS, st.sampled_from(TYPES))
def test_exchanges(case: Any, pairs: list[tuple[int, int]], element_type: str) -> None:
    exchanged(case, pairs, element_type)


@pytest.mark.slow
@MANY
@given(grids(), st.lists(st.sampled_from(ORDERED), min_size=1, max_size=1), REDUCTIONS)
def test_many_reductions(case: Any, types: list[str], reduction: Any) -> None:
    reduced(case, types, reduction)


@pytest.mark.slow
@MANY
@given(grids(global_ids=False), PAIRS, st.sampled_from(TYPES))
def test_many_exchanges(case: Any, pairs: list[tuple[int, int]], element_type: str) -> None:
    exchanged(case, pairs, element_type)
