"""The list of workloads, and how cases are chosen from it."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.workload import Workload, cases

pytest.importorskip("jax")


def _workload(name: str, *sizes: str) -> Workload:
    return Workload("family", name, lambda x: x, lambda generator, size: [generator.random(3)], dict.fromkeys(sizes, 1))


def test_cases_are_chosen_by_name_and_family() -> None:
    workloads = [_workload("first", "small", "large"), _workload("second", "small")]
    assert [case.name for case in cases(workloads, only="/small")] == ["family/first/small", "family/second/small"]
    assert cases(workloads, families=["other"]) == []


def test_the_largest_of_three_sizes_can_be_left_out() -> None:
    chosen = cases([_workload("many", "a", "b", "c"), _workload("few", "a", "b")], largest=False)
    assert [case.size for case in chosen] == ["a", "b", "a", "b"]


def test_inputs_are_the_same_every_time_and_differ_between_cases() -> None:
    first, second = cases([_workload("one", "small", "large")])
    assert np.array_equal(first.inputs()[0], first.inputs()[0])
    assert not np.array_equal(first.inputs()[0], second.inputs()[0])


def test_all_workloads_are_found_under_their_names() -> None:
    from benchmarks.workloads import all_workloads, find

    for workload in all_workloads():
        assert find(workload.family, workload.name) is workload
