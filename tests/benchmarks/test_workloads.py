"""The list of workloads, and how cases are chosen from it."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.compare import compare
from benchmarks.engines import Program, XlaEngine, XlapyEngine
from benchmarks.workload import Case, Workload, cases

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


@pytest.mark.slow
def test_every_workload_gives_the_same_results_as_xla_at_its_smallest_size() -> None:
    from benchmarks.workloads import all_workloads

    xla, ours = XlaEngine(), XlapyEngine()
    differences = {}
    for workload in all_workloads():
        case = Case(workload, next(iter(workload.sizes)))
        inputs, key = case.inputs(), (workload.family, workload.name, case.size)
        program = Program(key, xla.lower(key, inputs), inputs, workload.equivalent)
        for engine in (xla, ours):
            engine.open(program)
        agreement = compare(ours.results(), xla.results(), workload.tolerance)
        if not agreement.holds(workload.may_differ):
            differences[case.name] = agreement
    assert not differences


def test_equivalents_compute_what_their_workloads_do() -> None:
    """At the smallest size; numpy has no narrow results, and wider numbers of positions."""
    from benchmarks.workloads import all_workloads

    with_equivalent = [workload for workload in all_workloads() if workload.equivalent]
    assert with_equivalent
    for workload in with_equivalent:
        inputs = Case(workload, next(iter(workload.sizes))).inputs()
        assert workload.equivalent is not None
        own = np.asarray(workload.equivalent(np)(*inputs))
        other = np.asarray(workload.function(*inputs)).astype(own.dtype)
        if own.dtype == np.float64:
            continue  # JAX computes in 32 bits unless told otherwise, for the whole process
        assert compare([own], [other], 4 * workload.tolerance).holds(workload.may_differ), workload.name
