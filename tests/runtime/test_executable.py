import gc
import sys
import threading
import weakref

import ml_dtypes
import numpy as np
import pytest

import xlapy
from tests.runtime.native import F32_4, Call, Copy, executable, spec
from tests.support.shared_cache import shared_cache
from xlapy.codegen.call_wrapper import call_wrapper_object
from xlapy.codegen.target import host_target
from xlapy_runtime import calls
from xlapy_runtime.buffers import Pool
from xlapy_runtime.calling import load_wrapper
from xlapy_runtime.device import devices
from xlapy_runtime.errors import ArgumentError, CancelledExecution
from xlapy_runtime.executable import ProgramExecutable
from xlapy_runtime.program import RuntimeCall, TokenSpec, element_name, flatten, tree_text

pytestmark = pytest.mark.usefixtures("only_new_garbage")

X = np.arange(4, dtype=np.float32)
IDENTITY = [Copy("r0", "p0", 16)]
HOOK = RuntimeCall("custom-call", "hook.1", "", (), (), {"target": "hook"})


def identity(**fields):
    return executable(IDENTITY, parameters=(F32_4,), result=F32_4, **fields)


def test_a_result_is_fresh_writeable_and_unaliased():
    run = identity()
    first, second = run(X), run(X)
    np.testing.assert_array_equal(first, X)
    assert first.flags.writeable
    assert not np.may_share_memory(first, second)
    assert not np.may_share_memory(first, X)


def test_without_a_pool_python_is_asked_behind_what_may_take_long():
    compiled = xlapy.compile(
        "HloModule m  ENTRY e { p = f32[1000,1000] parameter(0)  ROOT n = f32[1000,1000] negate(p) }"
    )
    program = compiled._compiled.program
    array = np.arange(1_000_000, dtype=np.float32).reshape(1000, 1000)
    plain = ProgramExecutable(program, compiled._compiled.link())
    np.testing.assert_array_equal(plain(array), -array)


@pytest.mark.parametrize(
    "argument",
    [
        X.astype(">f4"),
        np.repeat(X, 2)[::2],
        np.frombuffer(X.tobytes(), np.float32),
        np.frombuffer(b"\0" + X.tobytes(), np.uint8)[1:].view(np.float32),
    ],
    ids=["big-endian", "strided", "read-only", "unaligned"],
)
def test_equal_values_in_another_form_are_accepted(argument):
    np.testing.assert_array_equal(identity()(argument), X)


@pytest.mark.parametrize(
    ("argument", "got"),
    [
        (X.astype(np.float64), r"f64\[4\]"),
        (X[:3], r"f32\[3\]"),
        (X.reshape(2, 2), r"f32\[2,2\]"),
        ([0.0, 1.0, 2.0, 3.0], "list"),
        (1.0, "the Python scalar 1.0"),
    ],
)
def test_another_type_or_shape_is_an_error_that_names_the_parameter(argument, got):
    run = identity(parameter_names=("x",))
    with pytest.raises(ArgumentError, match=rf"parameter 0 \(x\): expected f32\[4\], got {got}"):
        run(argument)
    np.testing.assert_array_equal(run(X), X)


def test_a_run_that_never_begins_takes_no_memory():
    made = []
    run = executable([Call(0)], parameters=(F32_4,), calls=[HOOK], options={"targets": {"hook": lambda: None}})
    run._runs.memories = Pool(lambda: made.append(1) or run._runs.make_memory())
    for _ in range(3):
        with pytest.raises(ArgumentError):
            run(np.zeros(3, np.float32))
        run(np.zeros(4, np.float32))
    assert made == [1]


def test_the_wrong_number_of_arguments_is_an_error():
    with pytest.raises(ArgumentError, match=r"takes 1 argument, got 2; it wants \(parameter 0.*: f32\["):
        identity()(X, X)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (np.float32, 2.5),
        (np.float32, 3),
        (np.int8, -7),
        (np.bool_, True),
        (np.complex64, 1j),
        (ml_dtypes.bfloat16, 1.5),
    ],
)
def test_python_scalars_are_arrays_of_rank_0(dtype, value):
    scalar = spec(dtype)
    run = executable([Copy("r0", "p0", scalar.nbytes)], parameters=(scalar,), result=scalar)
    assert run(value) == np.array(value).astype(dtype)
    assert run(np.array(value).astype(dtype)[()]).dtype == dtype


@pytest.mark.parametrize(("dtype", "value"), [(np.int8, 300), (np.uint32, -1), (np.int32, 1.5), (np.bool_, 1)])
def test_python_scalars_that_do_not_fit_are_errors(dtype, value):
    scalar = spec(dtype)
    run = executable([Copy("r0", "p0", scalar.nbytes)], parameters=(scalar,), result=scalar)
    with pytest.raises(ArgumentError, match="parameter 0"):
        run(value)


def test_nested_tuples_go_in_and_come_out():
    tree = (F32_4, (TokenSpec(), (F32_4,)), ())
    run = executable([Copy("r0", "p1", 16), Copy("r1", "p0", 16)], parameters=(tree,), result=tree)
    first, (token, (second,)), empty = run((X, (None, [X + 1]), ()))
    np.testing.assert_array_equal(first, X + 1)
    np.testing.assert_array_equal(second, X)
    assert token is None
    assert empty == ()
    with pytest.raises(ArgumentError, match=r"parameter 0\[1\]\[1\]\[0\]: expected f32\[4\], got f32\[2\]"):
        run((X, (None, [X[:2]]), ()))
    with pytest.raises(ArgumentError, match=r"parameter 0\[1\]: expected the tuple"):
        run((X, X, ()))


def test_arrays_of_size_zero_pass():
    empty = spec(np.float32, 0, 3)
    run = executable([], parameters=(empty,), result=empty)
    assert run(np.zeros((0, 3), np.float32)).shape == (0, 3)


def test_dynamic_dimensions_are_padded_on_the_way_in_and_sliced_on_the_way_out():
    bounded = spec(np.float32, 2, 4, dynamic=(False, True))
    full = spec(np.float32, 2, 4)
    run = executable(
        [Copy("r0", "p0", 32), Copy("r1", "p1", 4), Copy("r2", "p0", 32)], parameters=(bounded,), result=(bounded, full)
    )
    value = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    result, padded = run(value)
    np.testing.assert_array_equal(result, value)
    np.testing.assert_array_equal(padded, np.pad(value, ((0, 0), (0, 1))))
    with pytest.raises(ArgumentError, match=r"expected f32\[2,<=4\], got f32\[2,5\]"):
        run(np.zeros((2, 5), np.float32))


def test_a_donated_argument_lends_its_memory_to_the_result():
    run = executable([], parameters=(F32_4,), result=F32_4, aliases={0: 0})
    mine = X.copy()
    assert run(mine) is mine
    frozen = np.frombuffer(X.tobytes(), np.float32)
    result = run(frozen)
    assert not np.may_share_memory(result, frozen)
    assert result.flags.writeable
    np.testing.assert_array_equal(result, X)


def test_seed_and_counter_reach_native_code():
    words = spec(np.int64, 2)
    body = """
      %s = getelementptr i64, ptr %context, i64 8
      %r = load ptr, ptr %results
      call void @llvm.memcpy.p0.p0.i64(ptr %r, ptr %s, i64 16, i1 false)
      ret i32 0
    """
    run = executable(body, result=words, options={"seed": 7})
    rows = [run().tolist(), run().tolist(), run.run(seed=-1).tolist(), run().tolist()]
    assert rows == [[7, 0], [7, 1], [-1, 0], [7, 2]]  # a run with a seed of its own can be repeated


def test_replica_and_partition_reach_native_code():
    word = spec(np.int32, 2)
    body = """
      %s = getelementptr i64, ptr %context, i64 7
      %r = load ptr, ptr %results
      call void @llvm.memcpy.p0.p0.i64(ptr %r, ptr %s, i64 8, i1 false)
      ret i32 0
    """
    run = executable(body, result=word, num_replicas=2, num_partitions=3)
    results = run.run_parallel([[]] * 6)
    assert [row.tolist() for row in results] == [[r, p] for r in range(2) for p in range(3)]
    with pytest.raises(ArgumentError, match="use run_parallel"):
        run()
    with pytest.raises(ArgumentError, match="6 processes, got arguments for 2"):
        run.run_parallel([[], []])


def test_constants_and_arena_are_where_the_context_says():
    constant = np.array([5.0, 6.0, 7.0, 8.0], np.float32)
    body = """
      %s = getelementptr ptr, ptr %context, i64 2
      %table = load ptr, ptr %s
      %c = load ptr, ptr %table
      %as = getelementptr ptr, ptr %context, i64 1
      %a = load ptr, ptr %as
      call void @llvm.memcpy.p0.p0.i64(ptr %a, ptr %c, i64 16, i1 false)
      %r = load ptr, ptr %results
      call void @llvm.memcpy.p0.p0.i64(ptr %r, ptr %a, i64 16, i1 false)
      %n = ptrtoint ptr %a to i64
      %rest = and i64 %n, 63
      %status = trunc i64 %rest to i32
      ret i32 %status
    """
    run = executable(body, result=F32_4, constants=(constant,), arena_bytes=16)
    np.testing.assert_array_equal(run(), constant)


def test_many_threads_call_one_executable():
    run = executable([Copy("a0", "p0", 16), Copy("r0", "a0", 16)], parameters=(F32_4,), result=F32_4, arena_bytes=16)
    wrong = []

    def work(number):
        mine = X + number
        wrong.extend(1 for _ in range(200) if not np.array_equal(run(mine), mine))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_run_leaves_no_references_behind():
    run = identity()
    mine = X.copy()
    run(mine)
    gc.collect()
    before = sys.getrefcount(mine)
    for _ in range(10):
        run(mine)
    assert sys.getrefcount(mine) == before


@pytest.fixture(params=["portable", "native"])
def wrapper(request):
    if request.param == "portable":
        return None
    return load_wrapper(call_wrapper_object(host_target(), shared_cache()))


def test_direct_calls_take_what_matches_and_mend_the_rest(wrapper):
    run = identity(options={"wrapper": wrapper})
    for argument in (X, X.astype(">f4"), np.repeat(X, 2)[::2]):
        np.testing.assert_array_equal(run.function(argument), X)
    with pytest.raises(ArgumentError, match=r"expected f32\[4\], got f32\[3\]"):
        run.function(X[:3])
    pair = executable(
        [Copy("r0", "p0", 16), Copy("r1", "p0", 16)],
        parameters=(F32_4,),
        result=(F32_4, (TokenSpec(), F32_4)),
        options={"wrapper": wrapper},
    )
    first, (token, second) = pair(X)
    assert token is None
    np.testing.assert_array_equal(first, second)


def test_direct_calls_and_runs_share_one_counter(wrapper):
    words = spec(np.int64, 2)
    body = """
      %s = getelementptr i64, ptr %context, i64 8
      %r = load ptr, ptr %results
      call void @llvm.memcpy.p0.p0.i64(ptr %r, ptr %s, i64 16, i1 false)
      ret i32 0
    """
    run = executable(body, result=words, options={"seed": 2**64 - 1, "wrapper": wrapper})
    rows = [run().tolist(), run.run(seed=5).tolist(), run().tolist(), run.run().tolist()]
    assert [row[0] for row in rows] == [-1, 5, -1, -1]
    first = rows[0][1]
    assert [row[1] for row in rows] == [first, 0, first + 1, first + 2]


def test_a_direct_call_that_stops_is_an_error_and_can_be_called_again(wrapper):
    run = executable("ret i32 2", options={"wrapper": wrapper})
    for _ in range(2):
        with pytest.raises(CancelledExecution, match="test stopped"):
            run()


def test_executables_go_with_their_last_reference(wrapper):
    gc.collect()
    run = identity(options={"wrapper": wrapper})
    run(X)
    watch = weakref.ref(run)
    registered = len(calls._running)
    del run
    gc.collect()
    assert watch() is None
    assert len(calls._running) == registered - 1


def test_devices_are_the_same_objects_every_time():
    assert devices(2) == devices(5)[:2]
    assert devices(3)[1].id == 1
    assert repr(devices(1)[0]).startswith("Device(id=0")
    with pytest.raises(ArgumentError):
        devices(0)


def test_memory_statistics_count_runs_and_arenas():
    device = devices(9)[8]
    before = device.memory_stats()["runs"]
    executable([], arena_bytes=4096).run(device=device)
    stats = device.memory_stats()
    assert stats["runs"] == before + 1
    assert stats["running"] == 0
    assert stats["bytes_in_use"] == stats["bytes_queued"]
    assert stats["peak_bytes_in_use"] >= 4096


def test_types_are_named_as_in_hlo():
    names = [np.bool_, np.int8, np.uint64, np.float16, np.complex128, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn]
    assert [element_name(np.dtype(name)) for name in names] == ["pred", "s8", "u64", "f16", "c128", "bf16", "f8e4m3fn"]
    assert element_name(np.dtype(ml_dtypes.int4)) == "s4"
    tree = (F32_4, (TokenSpec(), spec(np.int32)))
    assert tree_text(tree) == "(f32[4], (token, s32[]))"
    assert flatten(tree) == (F32_4, spec(np.int32))
