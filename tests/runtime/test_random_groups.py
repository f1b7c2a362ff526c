"""Collectives over random grids and process groups, against the definitions written with numpy."""

import functools
import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.native import spec
from tests.runtime.test_collectives import program
from xlapy_runtime.process_groups import Grid, process_groups

MODES = ("cross_replica", "cross_partition", "cross_replica_and_partition", "flattened_ids")


@st.composite
def groupings(draw, equal=True):
    """A grid, a strategy, and groups that cover what the strategy counts."""
    grid = Grid(draw(st.integers(1, 4)), draw(st.integers(1, 2)))
    mode = draw(st.sampled_from(MODES))
    count = {"cross_partition": grid.num_partitions, "flattened_ids": grid.size}.get(mode, grid.num_replicas)
    ids = draw(st.permutations(range(count)))
    size = draw(st.sampled_from([k for k in range(1, count + 1) if count % k == 0]))
    groups = tuple(tuple(ids[start : start + size]) for start in range(0, count, size))
    return grid, mode, groups


@functools.cache
def collective(kind, operand, result, grid, mode, groups, **attributes):
    return program(
        kind,
        (operand,),
        (result,),
        replicas=grid.num_replicas,
        partitions=grid.num_partitions,
        group_mode=mode,
        replica_groups=groups,
        **attributes,
    )


def check(kind, grouping, operand, result_of, reference, **attributes):
    """Runs one collective and compares every process with `reference(operands of its group, position)`."""
    grid, mode, groups = grouping
    members = process_groups(mode, grid, groups)
    result = spec(operand.dtype, *result_of(operand.dims, len(members[0])))
    run = collective(kind, operand, result, grid, mode, groups, **attributes)
    values = [np.arange(operand.size).reshape(operand.dims).astype(operand.dtype) + 1000 * p for p in range(grid.size)]
    rows = run.run_parallel([[value] for value in values])
    for group in members:
        for position, process in enumerate(group):
            expected = reference([values[member] for member in group], position)
            np.testing.assert_array_equal(rows[process], expected)


FEW = settings(max_examples=12, deadline=None, derandomize=True)
S64 = np.int64


@FEW
@given(groupings(), st.integers(0, 1))
def test_all_gather(grouping, dimension):
    def widened(dims, size):
        return tuple(d * size if k == dimension else d for k, d in enumerate(dims))

    def reference(operands, _position):
        return np.concatenate(operands, dimension)

    check("all-gather", grouping, spec(S64, 3, 2), widened, reference, all_gather_dimension=dimension)


@FEW
@given(groupings())
def test_all_reduce(grouping):
    check("all-reduce", grouping, spec(S64, 5), lambda dims, _: dims, lambda rows, _: sum(rows), combine=("add_s64",))


@FEW
@given(groupings(), st.integers(0, 1))
def test_reduce_scatter(grouping, dimension):
    def narrowed(dims, size):
        return tuple(d // size if k == dimension else d for k, d in enumerate(dims))

    def reference(operands, position):
        return np.split(sum(operands), len(operands), dimension)[position]

    check(
        "reduce-scatter",
        grouping,
        spec(S64, 24, 24),
        narrowed,
        reference,
        combine=("add_s64",),
        scatter_dimension=dimension,
    )


@FEW
@given(groupings(), st.integers(0, 1))
def test_all_to_all(grouping, dimension):
    def reference(operands, position):
        return np.concatenate([np.split(row, len(operands), dimension)[position] for row in operands], dimension)

    check("all-to-all", grouping, spec(S64, 24, 24), lambda dims, _: dims, reference, dimension=dimension)


@FEW
@given(st.permutations(range(4)), st.integers(0, 4))
def test_collective_permute(targets, count):
    pairs = tuple(itertools.islice(enumerate(targets), count))
    run = program("collective-permute", (spec(S64, 3),), (spec(S64, 3),), replicas=4, source_target_pairs=pairs)
    values = [np.full(3, p + 1) for p in range(4)]
    rows = run.run_parallel([[value] for value in values])
    source_of = {target: source for source, target in pairs}
    for process, row in enumerate(rows):
        assert set(row) == {source_of[process] + 1 if process in source_of else 0}
