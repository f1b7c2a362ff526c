"""Calls from Python into native code: the native wrapper and its portable twin behave alike."""

from __future__ import annotations

import ctypes
import gc
import pickle
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.support.shared_cache import shared_cache
from xlapy.codegen.call_wrapper import call_wrapper_object
from xlapy.codegen.jit import emit_object
from xlapy.codegen.target import host_target
from xlapy_runtime import calling, result_blocks, result_memory
from xlapy_runtime.calling import CallContext, CallWrapper, ContextWord, EntryPoint, bind, load_wrapper
from xlapy_runtime.errors import InternalError, OutOfMemoryError
from xlapy_runtime.linking import LinkedCode, link
from xlapy_runtime.program import ArraySpec

pytestmark = pytest.mark.usefixtures("only_new_garbage")

FLOAT32 = np.dtype(np.float32)
VECTOR = ArraySpec(FLOAT32, (4,))

PROGRAMS = f"""
; results[0] = parameters[0] + parameters[1]
define i32 @add(ptr %context, ptr %parameters, ptr %results) nounwind {{
  %second = getelementptr ptr, ptr %parameters, i64 1
  %a = load ptr, ptr %parameters
  %b = load ptr, ptr %second
  %o = load ptr, ptr %results
  %x = load <4 x float>, ptr %a, align 1
  %y = load <4 x float>, ptr %b, align 1
  %z = fadd <4 x float> %x, %y
  store <4 x float> %z, ptr %o, align 1
  ret i32 0
}}

; results[0] = the context's first ten words
define i32 @words(ptr %context, ptr %parameters, ptr %results) nounwind {{
  %o = load ptr, ptr %results
  %words = load <10 x i64>, ptr %context, align 8
  store <10 x i64> %words, ptr %o, align 8
  ret i32 0
}}

define i32 @nothing(ptr %context, ptr %parameters, ptr %results) nounwind {{
  ret i32 0
}}

; its status is parameters[0]
define i32 @fail(ptr %context, ptr %parameters, ptr %results) nounwind {{
  %p = load ptr, ptr %parameters
  %status = load i32, ptr %p
  ret i32 %status
}}

; marks its arena, waits until parameters[0] calls have begun, then returns the arena's mark
define i32 @meet(ptr %context, ptr %parameters, ptr %results) nounwind {{
  %second = getelementptr ptr, ptr %parameters, i64 1
  %third = getelementptr ptr, ptr %parameters, i64 2
  %wanted_pointer = load ptr, ptr %parameters
  %begun = load ptr, ptr %second
  %mark_pointer = load ptr, ptr %third
  %wanted = load i64, ptr %wanted_pointer
  %mark = load i64, ptr %mark_pointer
  %arena_field = getelementptr ptr, ptr %context, i64 {ContextWord.ARENA}
  %arena = load ptr, ptr %arena_field
  store i64 %mark, ptr %arena
  %before = atomicrmw add ptr %begun, i64 1 seq_cst
  br label %wait
wait:
  %now = load atomic i64, ptr %begun seq_cst, align 8
  %is_enough = icmp sge i64 %now, %wanted
  br i1 %is_enough, label %done, label %wait
done:
  %found = load volatile i64, ptr %arena
  %o = load ptr, ptr %results
  store i64 %found, ptr %o
  ret i32 0
}}
"""
_SYMBOLS = ("add", "words", "nothing", "fail", "meet")


@pytest.fixture(scope="module")
def programs() -> LinkedCode:
    return link([emit_object(PROGRAMS, host_target())], {}, _SYMBOLS)


@pytest.fixture(scope="module", params=["native", "portable"])
def wrapper(request: pytest.FixtureRequest) -> CallWrapper | None:
    if request.param == "portable":
        return None
    loaded = load_wrapper(call_wrapper_object(host_target(), shared_cache()))
    assert loaded is not None, "the tests run on Pythons and numpys that are known"
    return loaded


def test_what_builtins_are_defined_by_outlives_them(wrapper: CallWrapper | None) -> None:
    """A builtin reads its definition when it is destroyed, at the end of Python perhaps behind everything else."""
    if wrapper is not None:
        another = CallWrapper(wrapper._code)
        definition = weakref.ref(another._definition)
        del another
        gc.collect()
        assert definition() is not None


REPELLENT = object()
"""An argument that the programs of these tests raise for."""


class RefusedError(Exception):
    """What the programs of these tests raise for a status."""


class Program:
    """The least that an executable must provide, recording what it is asked."""

    def __init__(
        self,
        programs: LinkedCode,
        symbol: str,
        wrapper: CallWrapper | None,
        parameters: tuple[ArraySpec, ...] = (VECTOR, VECTOR),
        results: tuple[ArraySpec, ...] = (VECTOR,),
        **options: Any,
    ) -> None:
        options.setdefault("gives_tuple", len(results) != 1)
        self.entry = EntryPoint(programs.address(symbol), parameters, results, code=programs, **options)
        self.contexts = 0
        self.failures: list[int] = []
        self.words = {int(ContextWord.SEED): 42, int(ContextWord.HANDLE): -7}
        self.bound = bind(self.entry, self, wrapper)
        self.function = self.bound.function

    def general(self, *arguments: Any) -> Any:
        if any(argument is REPELLENT for argument in arguments):
            raise RefusedError("arguments")
        return ("general", *arguments)

    def failed(self, context_address: int, status: int) -> Any:
        self.failures.append(context_address)
        raise RefusedError(status)

    def new_context(self) -> CallContext:
        self.contexts += 1
        arena = np.zeros(8, np.int64)
        words = self.words | {int(ContextWord.ARENA): arena.ctypes.data}
        return CallContext(self.entry, words, keep=arena)


MakeProgram = Callable[..., Program]


@pytest.fixture
def program(programs: LinkedCode, wrapper: CallWrapper | None) -> MakeProgram:
    return lambda symbol, *specs, **options: Program(programs, symbol, wrapper, *specs, **options)


def vectors() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    return np.arange(4, dtype=np.float32), np.full(4, 10, np.float32)


@pytest.mark.parametrize("release_gil", [False, True])
def test_results_are_fresh_and_writeable(program: MakeProgram, release_gil: bool) -> None:
    add = program("add", release_gil=release_gil)
    first, second = add.function(*vectors()), add.function(*vectors())
    assert type(first) is np.ndarray
    assert first.tolist() == second.tolist() == [10, 11, 12, 13]
    assert first.flags.writeable and first.flags.c_contiguous
    assert not np.shares_memory(first, second)
    assert add.contexts == 1


def test_any_alignment_and_read_only_arguments_are_borrowed(program: MakeProgram) -> None:
    a, b = vectors()
    misaligned = np.frombuffer(b"x" + a.tobytes(), np.float32, offset=1)
    b.flags.writeable = False
    assert not misaligned.flags.aligned
    assert program("add").function(misaligned, b).tolist() == [10, 11, 12, 13]


def mismatches() -> Iterator[tuple[Any, ...]]:
    a, b = vectors()
    yield ()
    yield (a,)
    yield (a, b, a)
    yield (a, 1)
    yield (a, [1.0, 2.0, 3.0, 4.0])
    yield (a, None)
    yield (a, b.astype(np.float64))
    yield (a, b.astype(np.int32))
    yield (a, b.astype(b.dtype.newbyteorder()))
    yield (a, b[:3])
    yield (a, b.reshape(4, 1))
    yield (a, b.reshape(1, 4))
    yield (a, np.float32(1))
    yield (a, np.zeros(8, np.float32)[::2])
    yield (a, b[::-1])
    yield (a, np.broadcast_to(np.float32(1), (4,)))
    yield (a, b.view(np.recarray))
    yield (a, np.ma.masked_array(b))
    yield ("x" * 200, object())


@pytest.mark.parametrize("arguments", list(mismatches()))
def test_everything_unusual_takes_the_general_way(program: MakeProgram, arguments: tuple[Any, ...]) -> None:
    add = program("add")
    answer = add.function(*arguments)
    assert answer[0] == "general"
    assert all(given is passed for given, passed in zip(arguments, answer[1:], strict=True))
    assert add.function(*vectors()).tolist() == [10, 11, 12, 13]


def test_fortran_order_takes_the_general_way(program: MakeProgram) -> None:
    matrix = ArraySpec(FLOAT32, (2, 2))
    add = program("add", (matrix, matrix), (matrix,))
    square = np.ones((2, 2), np.float32)
    assert add.function(square, square).tolist() == [[2, 2], [2, 2]]
    assert add.function(square, np.asfortranarray(square))[0] == "general"


def test_keywords_are_refused(program: MakeProgram) -> None:
    a, b = vectors()
    with pytest.raises(TypeError, match=r"Executable\.__call__\(\) takes no keyword|unexpected keyword argument 'b'"):
        program("add").function(a, b=b)


def test_an_error_of_the_general_way_is_raised(program: MakeProgram) -> None:
    with pytest.raises(RefusedError, match="arguments"):
        program("add").function(REPELLENT)


@pytest.mark.parametrize(
    "specs",
    [
        (),
        (VECTOR,),
        (VECTOR, ArraySpec(np.dtype(np.int64), ()), ArraySpec(np.dtype(ml_dtypes.bfloat16), (3, 0, 2))),
        tuple(ArraySpec(np.dtype(np.bool_), (n, 2)) for n in range(40)),
    ],
    ids=len,
)
def test_tuples_are_flat_unless_restructured(program: MakeProgram, specs: tuple[ArraySpec, ...]) -> None:
    flat = program("nothing", (), specs, gives_tuple=True).function()
    assert type(flat) is tuple
    assert [(array.shape, array.dtype) for array in flat] == [(spec.dims, spec.dtype) for spec in specs]
    nested = program("nothing", (), specs, gives_tuple=True, restructure=lambda leaves: {"leaves": leaves})
    assert len(nested.function()["leaves"]) == len(specs)


def test_an_error_of_restructuring_is_raised(program: MakeProgram) -> None:
    def refuse(leaves: tuple[Any, ...]) -> Any:
        raise RefusedError(len(leaves))

    with pytest.raises(RefusedError):
        program("nothing", (), (VECTOR, VECTOR), gives_tuple=True, restructure=refuse).function()


def test_several_leaves_that_are_no_tuple_are_a_bug(program: MakeProgram) -> None:
    with pytest.raises(InternalError):
        program("nothing", (), (VECTOR, VECTOR), gives_tuple=False)


def test_large_results_come_from_the_pool(program: MakeProgram) -> None:
    large = ArraySpec(np.dtype(np.uint8), (result_blocks.HUGE_PAGE_BYTES,))
    function = program("nothing", (), (large,)).function
    function()
    before = result_memory.statistics()
    array = function()
    assert (array.shape, array.flags.owndata) == (large.dims, False)
    assert result_memory.statistics().recycled == before.recycled + 1


def test_memory_of_a_result_that_numpy_refuses_to_make_waits_for_the_next_one(program: MakeProgram) -> None:
    deep = ArraySpec(np.dtype(np.uint8), (1,) * 65)
    function = program("nothing", (), (VECTOR, deep)).function
    for _ in range(3):
        before = result_memory.statistics()
        with pytest.raises(ValueError, match="dimension"):
            function()
    after = result_memory.statistics()
    assert (after.idle_blocks, after.fresh) == (before.idle_blocks, before.fresh)


def test_a_status_raises_and_the_program_stays_usable(program: MakeProgram) -> None:
    status = ArraySpec(np.dtype(np.int32), ())
    fail = program("fail", (status,), (VECTOR, VECTOR))
    for number in (5, -3):
        with pytest.raises(RefusedError, match=str(number)):
            fail.function(np.array(number, np.int32))
    assert len(fail.function(np.array(0, np.int32))) == 2
    assert len(set(fail.failures)) == fail.contexts == 1


def test_failing_allocations_raise_and_leave_nothing(program: MakeProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    endless = ArraySpec(np.dtype(np.uint8), (1 << 60,))
    pooled = program("nothing", (), (VECTOR, endless)).function
    monkeypatch.setattr(calling, "_allocator", lambda spec: None)
    monkeypatch.setattr(result_memory, "LARGE_BYTES", 1 << 62)
    plain = program("nothing", (), (VECTOR, endless)).function
    for _ in range(3):
        with pytest.raises(MemoryError):
            plain()
    monkeypatch.undo()
    for _ in range(3):
        with pytest.raises(
            OutOfMemoryError, match=r"a result of 1,152,921,504,606,846,976 bytes, uint8\[1152921504606846976\]"
        ):
            pooled()


def test_an_error_of_new_context_is_raised(program: MakeProgram) -> None:
    add = program("add")
    add.words = {99: 1}
    for _ in range(2):
        with pytest.raises(IndexError):
            add.function(*vectors())
    add.words = {}
    assert add.function(*vectors()).tolist() == [10, 11, 12, 13]


def test_the_entry_sees_its_context(program: MakeProgram) -> None:
    words = program("words", (), (ArraySpec(np.dtype(np.int64), (10,)),))
    first = words.function()
    assert first[ContextWord.HANDLE] == -7
    assert first[ContextWord.SEED] == 42
    assert first[ContextWord.ARENA] % 8 == 0 and first[ContextWord.ARENA] != 0
    assert first[ContextWord.CONSTANTS] == 0


def test_every_call_has_the_next_number_whichever_way_it_takes(program: MakeProgram) -> None:
    words = program("words", (), (ArraySpec(np.dtype(np.int64), (10,)),))
    seed = {int(ContextWord.SEED): 1}
    calls = [words.function(), words.bound.invoke(()), words.bound.invoke((), seed), words.function()]
    assert [int(call[ContextWord.CALL_NUMBER]) for call in calls] == [0, 1, 2, 3]


def test_words_are_replaced_for_one_call(program: MakeProgram) -> None:
    words = program("words", (), (ArraySpec(np.dtype(np.int64), (10,)),))
    process = 3 << 32 | 1
    replaced = words.bound.invoke((), {ContextWord.SEED: 7, ContextWord.PROCESS: process})
    assert (replaced[ContextWord.SEED], replaced[ContextWord.PROCESS]) == (7, process)
    for after in (words.bound.invoke((), {ContextWord.HANDLE: 0}), words.function()):
        assert (after[ContextWord.SEED], after[ContextWord.PROCESS]) == (42, 0)


def test_equal_dtypes_need_not_be_numpys_own(program: MakeProgram) -> None:
    """Dtypes with metadata, and those that were in a pickle, are objects of their own."""
    a, b = vectors()
    described = np.frombuffer(b.tobytes(), np.dtype(np.float32, metadata={"unit": "m"}))
    unpickled = pickle.loads(pickle.dumps(b))
    add = program("add")
    for equal in (described, unpickled):
        assert equal.dtype is not b.dtype
        assert add.function(a, equal).tolist() == [10, 11, 12, 13]
        assert add.bound.invoke((a, equal)).tolist() == [10, 11, 12, 13]
    assert add.function(a, b.astype(">f4"))[0] == "general"


def test_overlapping_calls_have_contexts_of_their_own(program: MakeProgram) -> None:
    number = ArraySpec(np.dtype(np.int64), ())
    meet = program("meet", (number, number, number), (number,), release_gil=True)
    begun = np.array(0)
    found: dict[int, int] = {}

    def work(mark: int) -> None:
        found[mark] = int(meet.function(np.array(6), begun, np.array(mark)))

    threads = [threading.Thread(target=work, args=(mark,)) for mark in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {mark: mark for mark in range(6)}
    assert meet.contexts == 6
    meet.function(np.array(0), begun, np.array(1))
    assert meet.contexts == 6


def test_contexts_survive_many_threads(program: MakeProgram) -> None:
    add = program("add", release_gil=True)
    a, b = vectors()
    wrong: list[Any] = []

    def work() -> None:
        for _ in range(2000):
            result = add.function(a, b)
            if result[3] != 13:
                wrong.append(result)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not wrong
    assert add.contexts <= 6


def test_reference_counts_come_out_even(program: MakeProgram) -> None:
    large = ArraySpec(np.dtype(np.uint8), (result_blocks.HUGE_PAGE_BYTES,))
    add = program("add")
    pair = program("nothing", (VECTOR,), (VECTOR, large))
    nested = program("nothing", (VECTOR,), (VECTOR,), gives_tuple=True, restructure=list)
    fail = program("fail", (VECTOR,), (VECTOR, large))
    a, b = vectors()
    a.view(np.int32)[0] = 1

    def call_all() -> None:
        add.function(a, b)
        add.function(a, 1)
        pair.function(a)
        nested.function(a)
        with pytest.raises(RefusedError):
            fail.function(a)

    def counts() -> list[int]:
        gc.collect()
        watched: tuple[Any, ...] = (a, b, FLOAT32, large.dtype, None, list)
        watched += tuple(p.function for p in (add, pair, nested, fail))
        return [sys.getrefcount(each) for each in watched]

    call_all()
    result = add.function(a, b)
    assert sys.getrefcount(result) == 2
    before = counts()
    for _ in range(200):
        call_all()
    assert all(abs(after - earlier) < 50 for after, earlier in zip(counts(), before, strict=True))


def test_many_calls_leave_no_memory_behind(program: MakeProgram) -> None:
    add = program("add")
    pair = program("nothing", (VECTOR,), (VECTOR, VECTOR))
    a, b = vectors()

    def call_many(count: int) -> None:
        for _ in range(count):
            add.function(a, b)
            add.function(a, None)
            pair.function(a)

    def growth() -> int:
        before = resident_bytes()
        call_many(10_000)
        return resident_bytes() - before

    call_many(3000)
    # A leak shows every time. Python's table of interned strings, which every `__array_interface__` adds to and takes
    # from, moves to fresh memory now and then: as large as what the process has imported, and the old one is free.
    assert any(growth() < 256 * 1024 for _ in range(4))


def test_the_function_alone_keeps_everything_alive(program: MakeProgram) -> None:
    add = program("add")
    function = add.function
    fate = weakref.ref(add)
    del add
    gc.collect()
    assert fate() is not None
    assert function(*vectors()).tolist() == [10, 11, 12, 13]
    del function
    gc.collect()
    assert fate() is None


def test_programs_come_and_go_without_a_trace(program: MakeProgram) -> None:
    a, b = vectors()

    def churn(count: int) -> None:
        for _ in range(count):
            program("add").function(a, b)
        gc.collect()

    def growth() -> int:
        before = resident_bytes()
        churn(1000)
        return resident_bytes() - before

    churn(200)
    assert any(growth() < 512 * 1024 for _ in range(3))  # a leak shows every time, other threads' memory does not


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_a_layout_has_no_identity_without_the_library_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert calling.layout_identity() == calling.layout_identity() is not None
    monkeypatch.setattr(calling, "_numpy_multiarray", lambda: sys)  # which is no file
    assert calling.layout_identity.__wrapped__() is None


def test_a_table_says_what_its_records_name() -> None:
    """The words are written one by one, the fields are named in `TableRecord` and those that it points to."""
    scalar = ArraySpec(np.dtype(np.int16), ())
    matrix = ArraySpec(FLOAT32, (3, 5))
    entry = EntryPoint(4096, (VECTOR, matrix), (scalar, matrix), gives_tuple=True, release_gil=False, donations={1: 1})

    class Caller:
        def general(self, *arguments: Any) -> None: ...

        def failed(self, context_address: int, status: int) -> None: ...

        def new_context(self) -> CallContext:
            raise NotImplementedError

    words = calling._build_table(entry, Caller(), lambda: 0)
    table = calling.TableRecord.from_address(words.ctypes.data)
    assert (table.parameter_count, table.result_count, table.donation_count) == (2, 2, 1)
    assert (table.entry, table.release_gil, table.gives_tuple, table.restructure) == (4096, 0, 1, None)
    assert (table.idle_contexts, table.call_number) == (None, 0)
    _, general, failed, context_address, _ = words.owned
    assert (table.general, table.failed, table.new_context) == (id(general), id(failed), id(context_address))
    parameters = (calling.ParameterRecord * 2).from_address(table.parameters)
    results = (calling.ResultRecord * 2).from_address(table.results)
    for record, spec in zip((*parameters, *results), (VECTOR, matrix, scalar, matrix), strict=True):
        assert record.dtype == id(spec.dtype)
        assert tuple((ctypes.c_int64 * record.rank).from_address(record.dims)) == spec.dims
    assert [record.byte_count for record in parameters] == [16, 60]
    assert [(record.allocator, record.donor) for record in results] == [(None, -1), (None, 1)]
