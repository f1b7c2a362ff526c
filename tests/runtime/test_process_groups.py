import pytest

from xlapy_runtime.errors import InternalError
from xlapy_runtime.process_groups import Grid, connected, process_groups, process_pairs

GRID = Grid(4, 2)


def coordinates(mode, ids, grid=GRID):
    return [[grid.coordinates(process) for process in group] for group in process_groups(mode, grid, ids)]


def test_cross_replica_is_worked_example_e1():
    expected = [[(0, 0), (1, 0)], [(0, 1), (1, 1)], [(2, 0), (3, 0)], [(2, 1), (3, 1)]]
    assert coordinates("cross_replica", [[0, 1], [2, 3]]) == expected


def test_cross_partition_is_worked_example_e2():
    expected = [[(0, 0), (0, 1)], [(1, 0), (1, 1)], [(2, 0), (2, 1)], [(3, 0), (3, 1)]]
    assert coordinates("cross_partition", [[0, 1]]) == expected


def test_cross_replica_and_partition_is_worked_example_e3():
    expected = [[(0, 0), (1, 0), (0, 1), (1, 1)], [(2, 0), (3, 0), (2, 1), (3, 1)]]
    assert coordinates("cross_replica_and_partition", [[0, 1], [2, 3]]) == expected


def test_flattened_ids_is_worked_example_e4():
    expected = [[(0, 0), (0, 1), (1, 0), (1, 1)], [(2, 0), (2, 1), (3, 0), (3, 1)]]
    assert coordinates("flattened_ids", [[0, 1, 2, 3], [4, 5, 6, 7]]) == expected


@pytest.mark.parametrize(
    ("mode", "sizes"),
    [
        ("cross_replica", [4, 4]),
        ("cross_partition", [2] * 4),
        ("cross_replica_and_partition", [8]),
        ("flattened_ids", [8]),
    ],
)
def test_no_groups_mean_everybody(mode, sizes):
    groups = process_groups(mode, GRID, ())
    assert [len(group) for group in groups] == sizes
    assert sorted(process for group in groups for process in group) == list(range(8))


def test_negative_ids_are_padding():
    assert process_groups("flattened_ids", GRID, [[0, 1, 2], [3, -1, -1]]) == ((0, 1, 2), (3,))


def test_an_unknown_strategy_is_a_bug():
    with pytest.raises(InternalError, match="cross_everything"):
        process_groups("cross_everything", GRID, ())


def test_pairs_repeat_in_every_partition():
    assert process_pairs("cross_replica", GRID, [(0, 1), (1, 2)]) == {2: 0, 3: 1, 4: 2, 5: 3}
    assert process_pairs("cross_partition", GRID, [(0, 1)]) == {1: 0, 3: 2, 5: 4, 7: 6}
    assert process_pairs("cross_replica", GRID, ()) == {}


def test_only_those_who_exchange_data_are_connected():
    sources = {1: 0, 2: 1, 5: 4}
    assert connected(sources, 0) == connected(sources, 2) == (0, 1, 2)
    assert connected(sources, 4) == (4, 5)
    assert connected(sources, 3) == (3,)
