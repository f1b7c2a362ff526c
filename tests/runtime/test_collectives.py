import threading
import time

import numpy as np
import pytest

from tests.runtime.native import F32_4, Call, combine, executable, spec
from xlapy_runtime.collectives import BLOCK_BYTES, SHARE_ALIGNMENT, Part
from xlapy_runtime.errors import ArgumentError, CancelledExecution, DeadlineError, ExecutionError, InternalError
from xlapy_runtime.program import RuntimeCall

SHORT, LONG = 0.05, 60.0  # timeouts: one that comes, one that does not
ADD = combine("add", "float", "fadd")
ADD_S64 = combine("add_s64", "i64", "add")
POOR = "define i32 @poor(ptr %t, i64 %s, i64 %begin, i64 %end) {\n  ret i32 3\n}\n"


def collective(kind, operands, results, *, asynchronous=False, **attributes):
    """The call sites and steps of one collective between parameters and results."""
    buffers = tuple(f"p{index}" for index in range(len(operands))) + tuple(f"r{index}" for index in range(len(results)))
    if not asynchronous:
        return [RuntimeCall(kind, f"{kind}.1", "model.py:5", operands, results, attributes)], [Call(0, buffers)]
    calls = [
        RuntimeCall(f"{kind}-start", f"{kind}-start.1", "", operands, results, attributes),
        RuntimeCall(f"{kind}-done", f"{kind}-done.1", "", (), (), {"start": 0}),
    ]
    return calls, [Call(0, buffers), Call(1)]


def program(kind, operands, results, *, replicas=2, partitions=1, kernels=ADD + ADD_S64, **keywords):
    calls, body = collective(kind, operands, results, **keywords)
    return executable(
        body,
        parameters=operands,
        result=results if len(results) != 1 else results[0],
        calls=calls,
        kernels=kernels,
        num_replicas=replicas,
        num_partitions=partitions,
    )


def outcome(run, operands, **keywords):
    return run.run_parallel([[operand] for operand in operands], **keywords)


FORMS = pytest.mark.parametrize("form", [{}, {"asynchronous": True}], ids=["together", "start-done"])


@FORMS
def test_all_reduce_is_worked_example_e1(form):
    s64 = spec(np.int64, 4)
    run = program("all-reduce", (s64,), (s64,), combine=("add_s64",), replica_groups=((0, 1),), **form)
    for row in outcome(run, [np.array([1, 2, 3, 4]), np.array([5, 6, 7, 8])]):
        assert row.tolist() == [6, 8, 10, 12]


@FORMS
@pytest.mark.parametrize("size", [1, 1000, 300_001])
def test_all_reduce_folds_in_the_order_of_the_group(size, form):
    dims = spec(np.float32, size)
    run = program("all-reduce", (dims,), (dims,), replicas=4, combine=("add",), replica_groups=((2, 0), (1, 3)), **form)
    rng = np.random.default_rng(size)
    values = [rng.normal(size=size).astype(np.float32) for _ in range(4)]
    results = outcome(run, values)
    for process in (0, 2):
        np.testing.assert_array_equal(results[process], values[2] + values[0])
    for process in (1, 3):
        np.testing.assert_array_equal(results[process], values[1] + values[3])


@pytest.mark.parametrize("size", [7, 50_000])
def test_all_reduce_of_several_arrays_combines_each_by_itself(size):
    leaves = (spec(np.float32, size), spec(np.int32, size))
    kernels = combine("multiply", "i32", "mul") + ADD
    run = program("all-reduce", leaves, leaves, replicas=3, combine=("add", "multiply"), kernels=kernels)
    rows = [[np.full(size, r + 1.5, np.float32), np.full(size, r + 2, np.int32)] for r in range(3)]
    for first, second in run.run_parallel(rows):
        assert set(first) == {1.5 + 2.5 + 3.5}
        assert set(second) == {24}


@FORMS
def test_all_gather_is_worked_example_e1(form):
    operand, result = spec(np.int64, 2, 2), spec(np.int64, 2, 4)
    run = program("all-gather", (operand,), (result,), all_gather_dimension=1, replica_groups=((0, 1),), **form)
    for row in outcome(run, [np.array([[1, 2], [3, 4]]), np.array([[5, 6], [7, 8]])]):
        assert row.tolist() == [[1, 2, 5, 6], [3, 4, 7, 8]]


@FORMS
def test_reduce_scatter_is_worked_example_e1(form):
    operand, result = spec(np.int64, 2, 4), spec(np.int64, 2, 2)
    run = program(
        "reduce-scatter",
        (operand,),
        (result,),
        scatter_dimension=1,
        combine=("add_s64",),
        replica_groups=((0, 1),),
        **form,
    )
    rows = outcome(run, [np.array([[1, 2, 3, 4], [5, 6, 7, 8]]), np.array([[9, 10, 11, 12], [13, 14, 15, 16]])])
    assert rows[0].tolist() == [[10, 12], [18, 20]]
    assert rows[1].tolist() == [[14, 16], [22, 24]]


@FORMS
def test_all_to_all_exchanges_parts(form):
    s64 = spec(np.int64, 2, 4)
    run = program("all-to-all", (s64,), (s64,), dimension=1, replica_groups=((0, 1),), **form)
    rows = outcome(run, [np.array([[1, 2, 3, 4], [5, 6, 7, 8]]), np.array([[9, 10, 11, 12], [13, 14, 15, 16]])])
    assert rows[0].tolist() == [[1, 2, 9, 10], [5, 6, 13, 14]]
    assert rows[1].tolist() == [[3, 4, 11, 12], [7, 8, 15, 16]]


def test_all_to_all_of_a_tuple_exchanges_whole_arrays():
    s64 = spec(np.int64, 2)
    run = program("all-to-all", (s64, s64), (s64, s64))
    rows = run.run_parallel([[np.array([1, 2]), np.array([3, 4])], [np.array([5, 6]), np.array([7, 8])]])
    assert [[part.tolist() for part in row] for row in rows] == [[[1, 2], [5, 6]], [[3, 4], [7, 8]]]


@FORMS
def test_collective_broadcast_is_worked_example_e1(form):
    s64 = spec(np.int64, 1, 2)
    run = program("collective-broadcast", (s64,), (s64,), replicas=4, replica_groups=((2, 1),), **form)
    rows = outcome(run, [np.array([[1, 2]]), np.array([[3, 4]]), np.array([[5, 6]]), np.array([[7, 8]])])
    assert [row.tolist() for row in rows] == [[[0, 0]], [[5, 6]], [[5, 6]], [[0, 0]]]


@FORMS
def test_collective_permute_is_worked_example_e1(form):
    s64 = spec(np.int64, 2, 2)
    run = program("collective-permute", (s64,), (s64,), replicas=3, source_target_pairs=((0, 1), (1, 2)), **form)
    values = [np.array([[1, 2], [3, 4]]), np.array([[5, 6], [7, 8]]), np.array([[9, 10], [11, 12]])]
    rows = outcome(run, values)
    assert [row.tolist() for row in rows] == [[[0, 0], [0, 0]], values[0].tolist(), values[1].tolist()]


@pytest.mark.parametrize(
    ("mode", "groups", "expected"),
    [
        ("cross_replica", ((0, 1),), [4, 6, 4, 6]),
        ("cross_partition", ((0, 1),), [3, 3, 7, 7]),
        ("cross_replica_and_partition", ((0,), (1,)), [3, 3, 7, 7]),
        ("cross_replica_and_partition", (), [10, 10, 10, 10]),
        ("flattened_ids", ((0, 3), (1, 2)), [5, 5, 5, 5]),
    ],
)
def test_every_strategy_groups_the_grid(mode, groups, expected):
    s64 = spec(np.int64)
    run = program(
        "all-reduce",
        (s64,),
        (s64,),
        partitions=2,
        combine=("add_s64",),
        group_mode=mode,
        replica_groups=groups,
        channel_id=1,
    )
    assert [int(row) for row in outcome(run, [np.int64(n) for n in (1, 2, 3, 4)])] == expected


@pytest.mark.parametrize(
    ("kind", "attributes", "expected"),
    [
        ("all-reduce", {"combine": ("add",)}, [0, 1, 2, 3]),
        ("all-gather", {"all_gather_dimension": 0}, [0, 1, 2, 3]),
        ("collective-permute", {"source_target_pairs": ((0, 0),)}, [0, 1, 2, 3]),
        ("collective-permute", {"source_target_pairs": ()}, [0, 0, 0, 0]),
        ("collective-broadcast", {"replica_groups": ((0,),)}, [0, 1, 2, 3]),
    ],
)
def test_a_single_process_is_a_group_too(kind, attributes, expected):
    run = program(kind, (F32_4,), (F32_4,), replicas=1, **attributes)
    assert run(np.arange(4, dtype=np.float32)).tolist() == expected


def test_arrays_of_size_zero_and_rank_zero_pass():
    empty = spec(np.float32, 0)
    run = program("all-reduce", (empty,), (empty,), combine=("add",))
    assert [row.shape for row in outcome(run, [np.zeros(0, np.float32)] * 2)] == [(0,), (0,)]


@pytest.mark.parametrize("element_bytes", [1, 4, 12, 16])
def test_blocks_cover_all_elements_once(element_bytes):
    for rows, columns in [(1, 0), (0, 5), (1, 1), (3, 7), (1, BLOCK_BYTES), (5, BLOCK_BYTES // 3), (90_001, 2)]:
        leaf = Part(rows, columns * element_bytes, element_bytes=element_bytes, owners=1).record()
        covered = []
        for block in range(leaf.blocks):
            line, segment = divmod(block, leaf.segments)
            first, begin = line * leaf.rows_per_block, segment * leaf.segment_bytes
            last, end = min(first + leaf.rows_per_block, rows), min(begin + leaf.segment_bytes, leaf.row_bytes)
            assert begin % element_bytes == 0 and (leaf.segments == 1 or begin % SHARE_ALIGNMENT == 0)
            covered.append((last - first) * (end - begin))
        assert all(covered) and sum(covered) == rows * columns * element_bytes
        assert all(size <= 2 * BLOCK_BYTES for size in covered)


def test_a_reduction_without_memory_is_an_error():
    """A kernel returns the status of a region function that could not have its memory."""
    for size in (4, 100_000):
        dims = spec(np.float32, size)
        for form in ({}, {"asynchronous": True}):
            run = program("all-reduce", (dims,), (dims,), replicas=3, combine=("poor",), kernels=POOR, **form)
            with pytest.raises(ExecutionError, match=r"all-reduce.* on device \d: there is no memory"):
                outcome(run, [np.zeros(size, np.float32)] * 3)


@pytest.mark.parametrize("first_done", [0, 1])
@pytest.mark.parametrize("size", [4, 100_000])
def test_a_reduction_without_memory_is_an_error_of_its_own_done(size, first_done):
    """Another collective that is under way at the same time has nothing to do with it."""
    dims = spec(np.float32, size)
    starts = [
        RuntimeCall("all-reduce-start", f"{name}.start", "", (dims,), (dims,), {"combine": (name,)})
        for name in ("poor", "add")
    ]
    dones = [RuntimeCall("all-reduce-done", f"done.{n}", "", (), (), {"start": n}) for n in range(2)]
    body = [Call(0, ("p0", "r0")), Call(1, ("p0", "r1")), Call(2 + first_done), Call(3 - first_done)]
    run = executable(
        body, parameters=(dims,), result=(dims, dims), calls=[*starts, *dones], kernels=POOR + ADD, num_replicas=2
    )
    for _ in range(20):
        with pytest.raises(ExecutionError, match=r"poor\.start on device \d: there is no memory"):
            outcome(run, [np.zeros(size, np.float32)] * 2)


def test_a_start_without_its_done_is_an_error():
    word = spec(np.int64)
    start = RuntimeCall("all-reduce-start", "start.1", "", (word,), (word,), {"combine": ("add_s64",)})
    left = executable(
        [Call(0, ("p0", "r0"))], parameters=(word,), result=word, calls=[start], kernels=ADD_S64, num_replicas=2
    )
    with pytest.raises(ExecutionError, match="left a collective unfinished"):
        outcome(left, [np.int64(1), np.int64(2)])
    again = [Call(0, ("p0", "r0")), Call(0, ("p0", "r0"))]
    twice = executable(again, parameters=(word,), result=word, calls=[start], kernels=ADD_S64, num_replicas=2)
    with pytest.raises(InternalError, match="started again before it was done"):
        outcome(twice, [np.int64(1), np.int64(2)])


def with_hook(before, kind="all-reduce", replicas=2, **options):
    """An all-reduce behind a custom call that runs `before(process)`, which gets its process number as data."""
    word = spec(np.int64)
    calls = [
        RuntimeCall("custom-call", "hook.1", "model.py:1", (word,), (), {"target": "hook"}),
        RuntimeCall(kind, f"{kind}.1", "model.py:2", (word,), (word,), {"combine": ("add_s64",)}),
    ]
    return executable(
        [Call(0, ("p0",)), Call(1, ("p0", "r0"))],
        parameters=(word,),
        result=word,
        calls=calls,
        kernels=ADD_S64,
        num_replicas=replicas,
        options={"targets": {"hook": lambda x: before(int(x))}, **options},
    )


def test_a_missing_participant_is_named_after_the_timeout():
    release = threading.Event()
    run = with_hook(lambda process: release.wait(5) and None if process == 1 else None)
    with pytest.raises(DeadlineError) as caught:
        try:
            outcome(run, [np.int64(0), np.int64(1)], timeout=SHORT)
        finally:
            release.set()
    text = str(caught.value)
    assert text.startswith("all-reduce.1 on device 0: device 0 (replica 0, partition 0)")
    assert "waited 0.05 s for device 1 (replica 1, partition 0)" in text
    assert "model.py:2" in text


@pytest.mark.parametrize("size", [4, 200_000])
def test_who_works_too_long_is_named_after_the_timeout(size):
    """Whether it works for all, or with the others."""
    slow = """
declare i32 @usleep(i32)
define i32 @slow(ptr %t, i64 %s, i64 %begin, i64 %end) {
  %is_first = icmp eq i64 %begin, 0
  br i1 %is_first, label %sleep, label %done
sleep:
  %x = call i32 @usleep(i32 400000)
  br label %done
done:
  ret i32 0
}
"""
    dims = spec(np.float32, size)
    run = program("all-reduce", (dims,), (dims,), combine=("slow",), kernels=slow)
    with pytest.raises(DeadlineError, match=r"waited 0\.05 s for device [01] \(replica [01], partition 0\)"):
        outcome(run, [np.zeros(size, np.float32)] * 2, timeout=SHORT)


@pytest.mark.parametrize("timeout", [float("nan"), -1.0, 1e10, float("inf"), 1e300])
def test_a_timeout_is_checked_before_anything_begins(timeout):
    """Those that are no time are errors, those that are more than native code can count are long."""
    run = with_hook(lambda process: time.sleep(SHORT) if process else None)
    values = [np.int64(0), np.int64(1)]
    if timeout >= 0:
        assert [int(row) for row in outcome(run, values, timeout=timeout)] == [1, 1]
    else:
        with pytest.raises(ArgumentError, match="timeout is"):
            outcome(run, values, timeout=timeout)
    assert [device.memory_stats()["running"] for device in run.devices] == [0, 0]


def test_an_error_in_one_process_stops_the_others_and_wins():
    def fail_in_one(process):
        if process == 2:
            time.sleep(0.02)
            raise ValueError("in process 2")

    run = with_hook(fail_in_one, replicas=4)
    began = time.monotonic()
    with pytest.raises(ValueError, match="in process 2"):
        outcome(run, [np.int64(n) for n in range(4)], timeout=LONG)
    assert time.monotonic() - began < LONG / 2  # not by the timeout, but because they were told


def test_everything_stays_usable_after_a_failure():
    failing = [True]

    def fail_once(process):
        if process == 1 and failing[0]:
            raise ValueError("once")

    run = with_hook(fail_once, replicas=3)
    for _ in range(20):
        failing[0] = True
        with pytest.raises(ValueError, match="once"):
            outcome(run, [np.int64(n) for n in range(3)])
        failing[0] = False
        assert [int(row) for row in outcome(run, [np.int64(n) for n in range(3)])] == [3, 3, 3]


def divergent(process_zero, process_one, calls, kernels=ADD_S64):
    """Two processes that execute different steps, chosen by their parameter."""
    branches = []
    for name, sites in (("zero", process_zero), ("one", process_one)):
        lines = [f"{name}0:"]
        for number, site in enumerate(sites):
            lines += [
                f"%{name}.s{number} = call i32 %f(ptr %context, i32 {site}, ptr %table)",
                f"%{name}.b{number} = icmp ne i32 %{name}.s{number}, 0",
                f"br i1 %{name}.b{number}, label %bad, label %{name}{number + 1}",
                f"{name}{number + 1}:",
            ]
        branches.append("\n".join([*lines, "ret i32 0"]))
    body = f"""
      %f = load ptr, ptr %context
      %table = alloca [2 x ptr]
      %p = load ptr, ptr %parameters
      %r = load ptr, ptr %results
      store ptr %p, ptr %table
      %second = getelementptr ptr, ptr %table, i64 1
      store ptr %r, ptr %second
      %which = load i64, ptr %p
      %is_zero = icmp eq i64 %which, 0
      br i1 %is_zero, label %zero0, label %one0
    bad:
      ret i32 1
    {branches[0]}
    {branches[1]}
    """
    word = spec(np.int64)
    return executable(body, parameters=(word,), result=word, calls=calls, kernels=kernels, num_replicas=2)


def reductions(count):
    word = spec(np.int64)
    return [
        RuntimeCall("all-reduce", f"all-reduce.{n}", "", (word,), (word,), {"combine": ("add_s64",)})
        for n in range(count)
    ]


def test_a_process_that_finishes_without_arriving_is_noticed_at_once():
    run = divergent([0, 0], [0], reductions(1))
    with pytest.raises(ExecutionError, match=r"device 1 .* finished without taking part, device 0"):
        outcome(run, [np.int64(0), np.int64(1)])


def test_processes_that_wait_for_each_other_are_a_deadlock():
    run = divergent([0, 1], [1, 0], reductions(2))
    with pytest.raises(ExecutionError, match="deadlock: device"):
        outcome(run, [np.int64(0), np.int64(1)])


def test_sites_of_one_channel_meet():
    word = spec(np.int64)
    calls = [
        RuntimeCall("all-reduce", f"all-reduce.{n}", "", (word,), (word,), {"combine": ("add_s64",), "channel_id": 3})
        for n in range(2)
    ]
    run = divergent([0], [1], calls)
    assert [int(row) for row in outcome(run, [np.int64(0), np.int64(1)])] == [1, 1]


def sharing(*sites):
    """Call sites of one channel: the kind, sizes of operand and result, and attributes of each."""
    return [
        RuntimeCall(kind, f"site.{n}", "", (spec(np.int64, size),), (spec(np.int64, size),), {"channel_id": 3, **own})
        for n, (kind, size, own) in enumerate(sites)
    ]


@pytest.mark.parametrize(
    "sites",
    [
        [("all-reduce", 1, {"combine": ("add_s64",)}), ("all-reduce", 100_000, {"combine": ("add_s64",)})],
        [("all-reduce", 1, {"combine": ("add_s64",)}), ("all-reduce", 1, {"combine": ("most",)})],
        [("collective-permute", 1, {"source_target_pairs": pairs}) for pairs in (((0, 1),), ((1, 0),))],
    ],
    ids=["shapes", "reductions", "directions"],
)
def test_sites_of_one_channel_that_exchange_something_else_do_not_meet(sites):
    """What the first to come brings says nothing about the arrays of the others."""
    kernels = ADD_S64 + combine("most", "i64", "or")
    run = divergent([0], [1], sharing(*sites), kernels)
    with pytest.raises(ExecutionError, match=r"site\.\d of the same channel exchange something else") as caught:
        outcome(run, [np.int64(0), np.int64(1)])
    assert "site.0" in str(caught.value) and "site.1" in str(caught.value)


def test_one_channel_serves_sites_of_several_shapes_one_after_the_other():
    small, large = spec(np.int64), spec(np.int64, 50_000)
    calls = [
        RuntimeCall("all-reduce", f"sum.{n}", "", (dims,), (dims,), {"combine": ("add_s64",), "channel_id": 1})
        for n, dims in enumerate((small, large))
    ]
    body = [Call(0, ("p0", "r0")), Call(1, ("p1", "r1")), Call(0, ("r0", "r2"))]
    run = executable(
        body, parameters=(small, large), result=(small, large, small), calls=calls, kernels=ADD_S64, num_replicas=2
    )
    for first, second, third in run.run_parallel([[np.int64(n), np.full(50_000, n)] for n in (1, 2)]):
        assert (int(first), set(second), int(third)) == (3, {3}, 6)


def test_cancellation_reaches_a_process_that_waits_for_its_host():
    word = spec(np.int64)
    calls = [
        RuntimeCall("infeed", "infeed.1", "", (), (word,)),
        RuntimeCall("custom-call", "c", "", (word,), (), {"target": "fail"}),
    ]

    def fail(x):
        raise ValueError("stop")

    body = """
      %f = load ptr, ptr %context
      %table = alloca ptr
      %p = load ptr, ptr %parameters
      %r = load ptr, ptr %results
      %which = load i64, ptr %p
      %is_zero = icmp eq i64 %which, 0
      br i1 %is_zero, label %wait, label %fail
    wait:
      store ptr %r, ptr %table
      %a = call i32 %f(ptr %context, i32 0, ptr %table)
      ret i32 %a
    fail:
      store ptr %p, ptr %table
      %b = call i32 %f(ptr %context, i32 1, ptr %table)
      ret i32 %b
    """
    run = executable(
        body, parameters=(word,), result=word, calls=calls, num_replicas=2, options={"targets": {"fail": fail}}
    )
    with pytest.raises(ValueError, match="stop"):
        outcome(run, [np.int64(0), np.int64(1)])
    assert len(run.devices[0].infeed) == 0


def test_cancellation_is_told_apart_from_failure():
    with pytest.raises(CancelledExecution):
        executable("ret i32 2")()


def test_dynamic_operands_are_a_bug_of_the_compiler():
    bounded = spec(np.float32, 4, dynamic=(True,))
    call = RuntimeCall("all-reduce", "all-reduce.1", "", (bounded,), (bounded,), {"combine": ("add",)})
    with pytest.raises(InternalError, match="must be padded"):
        executable([], calls=[call], kernels=ADD)


@pytest.mark.parametrize(
    ("kind", "operands", "results", "attributes"),
    [
        ("all-gather", [2], [8], {"all_gather_dimension": 0}),
        ("all-gather", [2], [4], {"all_gather_dimension": 0}),
        ("all-gather", [4], [], {"all_gather_dimension": 0}),
        ("reduce-scatter", [6], [3], {"scatter_dimension": 0, "combine": ("add",)}),
        ("reduce-scatter", [4], [1], {"scatter_dimension": 0, "combine": ("add",)}),
        ("all-reduce", [4], [3], {"combine": ("add",)}),
        ("all-to-all", [4, 4], [4, 4], {"dimension": None}),
        ("all-to-all", [4] * 4, [4] * 4, {"dimension": None}),
        ("all-to-all", [4, 4, 4], [4, 3, 4], {"dimension": None}),
        ("all-to-all", [4], [4], {"dimension": 0}),
        ("all-to-all", [], [], {"dimension": None, "replica_groups": ((0, 1), (1, 2))}),
        ("collective-broadcast", [4], [3], {}),
        ("collective-permute", [4], [5], {"source_target_pairs": ((0, 1),)}),
        ("collective-permute", [4], [4], {"source_target_pairs": ((0, 3),)}),
    ],
)
def test_arrays_that_do_not_fit_their_group_never_reach_native_code(kind, operands, results, attributes):
    shapes = [tuple(spec(np.float32, size) for size in sizes) for sizes in (operands, results)]
    with pytest.raises(InternalError, match=f"{kind}.1: "):
        program(kind, *shapes, replicas=3, **attributes)


def test_an_unknown_kind_is_a_bug_of_the_compiler():
    with pytest.raises(InternalError, match="no runtime call 'all-reverse'"):
        executable([], calls=[RuntimeCall("all-reverse", "all-reverse.1")])


@pytest.mark.parametrize("replicas", [2, 8])
def test_hundreds_of_runs_leave_no_threads_and_no_meetings_behind(replicas):
    run = with_hook(lambda process: None, replicas=replicas)
    values = [np.int64(n) for n in range(replicas)]
    outcome(run, values)
    before = threading.active_count()
    for _ in range(100):
        assert int(outcome(run, values)[0]) == sum(range(replicas))
    assert threading.active_count() <= before + replicas


def test_parallel_runs_of_one_executable_do_not_mix():
    run = with_hook(lambda process: None)
    wrong = []

    def work(base):
        for _ in range(30):
            rows = outcome(run, [np.int64(base), np.int64(base + 1)])
            wrong.extend(row for row in rows if int(row) != 2 * base + 1)

    threads = [threading.Thread(target=work, args=(100 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
