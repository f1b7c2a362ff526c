import ctypes
import gc
import time
import traceback
import weakref

import numpy as np
import pytest

from tests.runtime.native import F32_4, Call, Linked, executable, spec
from xlapy_runtime.custom_calls import (
    BUILT_IN,
    Borrowing,
    CustomCallStatus,
    CustomCallTargets,
    Filling,
    find_target,
    register_custom_call_target,
)
from xlapy_runtime.device import devices
from xlapy_runtime.errors import ArgumentError, ExecutionError, ShapeError
from xlapy_runtime.program import ArraySpec, RuntimeCall, TokenSpec

X = np.arange(4, dtype=np.float32)

NATIVE = Linked(
    """
    @text = constant [9 x i8] c"too small"

    define void @plus_one(ptr %out, ptr %in) {
      %x = load ptr, ptr %in
      %v = load <4 x float>, ptr %x, align 1
      %w = fadd <4 x float> %v, <float 1.0, float 1.0, float 1.0, float 1.0>
      store <4 x float> %w, ptr %out, align 1
      ret void
    }

    define void @both(ptr %out, ptr %in) {
      %a = load ptr, ptr %out
      call void @plus_one(ptr %a, ptr %in)
      %slot = getelementptr ptr, ptr %out, i64 1
      %b = load ptr, ptr %slot
      call void @plus_one(ptr %b, ptr %out)
      ret void
    }

    define void @checked(ptr %out, ptr %in, ptr %opaque, i64 %length, ptr %status) {
      call void @plus_one(ptr %out, ptr %in)
      %short = icmp ult i64 %length, 3
      br i1 %short, label %bad, label %good
    bad:
      store ptr @text, ptr %status
      %slot = getelementptr i64, ptr %status, i64 1
      store i64 9, ptr %slot
      ret void
    good:
      ret void
    }
    """
)


def program(function, *, operands=(F32_4,), results=(F32_4,), targets=None, **attributes):
    call = RuntimeCall(
        "custom-call", "custom-call.2", "model.py:8", operands, results, {"target": "test", **attributes}
    )
    buffers = [f"p{index}" for index in range(len(operands))] + [f"r{index}" for index in range(len(results))]
    return executable(
        [Call(0, tuple(buffers))],
        parameters=operands,
        result=attributes.get("result_tree", results[0] if len(results) == 1 else results),
        calls=[call],
        options={"targets": {"test": function} if targets is None else targets},
    )


def test_a_python_target_may_keep_and_change_what_it_gets():
    kept = []

    def target(x):
        kept.append(x)
        x *= 2
        return x

    run = program(target)
    mine = X.copy()
    np.testing.assert_array_equal(run(mine), X * 2)
    np.testing.assert_array_equal(run(mine + 1), X * 2 + 2)
    np.testing.assert_array_equal(mine, X)
    assert [array.tolist() for array in kept] == [(X * 2).tolist(), (X * 2 + 2).tolist()]


def test_a_borrowing_target_looks_at_the_operands_where_they_are():
    seen = []

    def target(x):
        seen.append((x.ctypes.data, x.flags.writeable))
        return -x

    np.testing.assert_array_equal(program(Borrowing(target))(X), -X)
    assert seen == [(X.ctypes.data, False)]


def test_a_filling_target_writes_its_results_in_place():
    def target(operands, results, **keywords):
        (x,), (y, z) = operands, results
        assert not x.flags.writeable
        np.multiply(x, 2, out=y)
        z[...] = keywords["scale"]

    config = {"api_version": 4, "backend_config": {"scale": 3}}
    run = program(Filling(target), results=(F32_4, spec(np.int32)), **config)
    doubled, scale = run(X)
    np.testing.assert_array_equal(doubled, X * 2)
    assert scale == 3


def test_a_filling_target_cannot_choose_sizes():
    run = program(Filling(lambda operands, results: None), results=(spec(np.float32, 4, dynamic=(True,)),))
    with pytest.raises(ShapeError, match=r"cannot have sizes of their own: f32\[<=4\]"):
        run(X)


def test_a_filling_target_prepares_for_a_site_whose_sizes_are_known():
    prepared = []

    def prepare(operands, results, **keywords):
        prepared.append((operands, results, keywords))
        return lambda buffers: np.multiply(buffers.operands[0], keywords["scale"], out=buffers.results[0])

    def fill(operands, results, **keywords):
        results[0][...] = 0
        results[0][: operands[0].size] = operands[0] + keywords["scale"]

    config = {"api_version": 4, "backend_config": {"scale": 3}}
    run = program(Filling(fill, prepare), **config)
    assert not prepared  # only the first call looks for the target
    for x in (X, X + 1):
        np.testing.assert_array_equal(run(x), x * 3)
    assert prepared == [((F32_4,), (F32_4,), {"scale": 3})]


def test_arrays_of_a_call_are_made_when_they_are_asked_for():
    seen = []

    def prepare(operands, results):
        def act(buffers):
            assert buffers.site.operands == operands and buffers.addresses[0] == X.ctypes.data
            seen.append(buffers.operands if len(seen) else None)
            np.copyto(buffers.results[0], X)

        return act

    run = program(Filling(lambda operands, results: None, prepare))
    for _ in range(2):
        np.testing.assert_array_equal(run(X), X)
    (array,) = seen[1]
    assert array.ctypes.data == X.ctypes.data and not array.flags.writeable


def test_arrays_lie_as_their_layouts_say():
    columns = ArraySpec(np.dtype(np.float32), (2, 2), (), (0, 1))

    def target(operands, results):
        assert operands[0].strides == results[0].strides == (4, 8)
        results[0][...] = operands[0] + [[0, 10], [20, 30]]

    run = program(Filling(target), operands=(columns,), results=(columns,))
    assert run(np.float32([[1, 2], [3, 4]])).tolist() == [[1, 22], [13, 34]]  # what the caller sees is row-major


def test_built_in_targets_give_way_to_others():
    assert find_target("lapack_sgetrf_ffi", {}) is BUILT_IN["lapack_sgetrf_ffi"]
    assert find_target("lapack_sgetrf_ffi", {"lapack_sgetrf_ffi": max}) is max


def test_tuples_tokens_and_scalars_come_back():
    tree = (F32_4, (spec(np.int32), TokenSpec()))
    run = program(lambda x: (x + 1, (3,)), results=(F32_4, spec(np.int32)), result_tree=tree)
    first, (second, token) = run(X)
    np.testing.assert_array_equal(first, X + 1)
    assert second == 3
    assert token is None
    assert program(lambda x: None, results=())(X) == ()


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (X[:3], r"result 0 is declared as f32\[4\], f32\[3\] was returned"),
        (X.astype(np.float64), r"result 0 is declared as f32\[4\], f64\[4\] was returned"),
        ((X, X), r"2 arrays were returned, 1 are declared: f32\[4\]"),
        (None, "0 arrays were returned"),
        (10**400, r"result 0 is declared as f32\[4\], which cannot represent 1000"),
        (True, r"result 0 is declared as f32\[4\], which cannot represent True"),
        (2, r"result 0 is declared as f32\[4\], f32\[\] was returned"),
    ],
)
def test_wrong_results_are_errors_that_say_what_was_declared(returned, message):
    run = program(lambda x: returned)
    with pytest.raises(ShapeError, match=message) as caught:
        run(X)
    assert "model.py:8" in str(caught.value)


def test_an_exception_arrives_with_its_traceback():
    def failing_target(x):
        raise KeyError("mine")

    run = program(failing_target)
    with pytest.raises(KeyError, match="mine") as caught:
        run(X)
    assert "failing_target" in "".join(traceback.format_tb(caught.value.__traceback__))
    assert any("custom-call.2 on device 0" in note and "model.py:8" in note for note in caught.value.__notes__)


def test_opaque_and_typed_attributes_are_passed_when_the_version_says_so():
    seen = []

    def target(x, **keywords):
        seen.append(keywords)
        return x

    program(target, backend_config="bar", api_version=1)(X)
    program(target, backend_config="bar", api_version=2)(X)
    program(target, backend_config={"scale": 3}, api_version=4)(X)
    assert seen == [{}, {"opaque": b"bar"}, {"scale": 3}]


def test_function_pointers_of_ctypes_are_called_directly():
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(NATIVE.address("plus_one"))
    np.testing.assert_array_equal(program(function)(X), X + 1)


def test_addresses_and_capsules_are_function_pointers():
    address = NATIVE.address("plus_one")
    new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
        ("PyCapsule_New", ctypes.pythonapi)
    )
    for target in (address, ctypes.c_void_p(address), new_capsule(address, b"xla._CUSTOM_CALL_TARGET", None)):
        np.testing.assert_array_equal(program(target)(X), X + 1)


def test_a_tuple_result_is_a_table_of_pointers():
    first, second = program(NATIVE.address("both"), results=(F32_4, F32_4))(X)
    np.testing.assert_array_equal(first, X + 1)
    np.testing.assert_array_equal(second, X + 2)


def test_a_c_target_reports_failure_through_its_status():
    address = NATIVE.address("checked")
    np.testing.assert_array_equal(program(address, api_version=2, backend_config="long")(X), X + 1)
    with pytest.raises(ExecutionError, match="custom call target 'test' failed: too small"):
        program(address, api_version=3, backend_config="ab")(X)
    assert ctypes.sizeof(CustomCallStatus) == 16


def test_symbols_of_loaded_libraries_need_no_registration():
    now = program(None, operands=(), results=(spec(np.int64),), targets={}, target="time")
    assert abs(int(now()) - time.time()) < 10
    with pytest.raises(ExecutionError, match="there is no custom call target 'xlapy_nowhere'"):
        program(None, targets={}, target="xlapy_nowhere")(X)


def test_a_misspelt_target() -> None:
    with pytest.raises(ExecutionError, match=r"no custom call target 'negatve'.*; did you mean 'negative'\?"):
        program(None, targets={"negative": np.negative}, target="negatve")(X)


def test_the_registry_keeps_the_first_target():
    targets = CustomCallTargets()
    targets.register("f", np.negative)
    targets.register("f", np.negative)
    with pytest.raises(ArgumentError, match="already registered"):
        targets.register("f", np.abs)
    with pytest.raises(ArgumentError, match="neither callable nor a function pointer"):
        targets.register("g", "text")
    assert list(targets) == ["f"]


def test_targets_of_a_program_can_be_called():
    with pytest.raises(ArgumentError, match="a float is neither callable nor a function pointer"):
        find_target("f", {"f": 3.5})


def test_targets_of_the_process_may_be_registered_after_the_executable_was_made():
    run = program(None, targets={}, target="xlapy_test_late")
    register_custom_call_target("xlapy_test_late", lambda x: -x)
    np.testing.assert_array_equal(run(X), -X)


def test_dynamic_results_may_be_smaller_than_their_bound():
    bounded = spec(np.float32, 4, dynamic=(True,))
    call = RuntimeCall("custom-call", "c", operands=(bounded,), results=(bounded,), attributes={"target": "half"})
    run = executable(
        [Call(0, ("p0", "p1", "r0", "r1"))],
        parameters=(bounded,),
        result=bounded,
        calls=[call],
        options={"targets": {"half": lambda x: x[::2]}},
    )
    np.testing.assert_array_equal(run(X[:3]), [0, 2])
    np.testing.assert_array_equal(run(X), [0, 2])


# -- without a run around the call: targets that the options do not bring ---------------------------------------------


def registered(name, target, **options):
    """A program that calls a target of the process."""
    register_custom_call_target(name, target)
    return program(None, targets={}, target=name, **options)


@pytest.mark.parametrize("kind", [lambda function: function, Borrowing])
def test_a_failure_is_that_of_its_own_call(kind):
    def target(x):
        if x[0] < 0:
            raise ValueError(f"no {x[0]}")
        return x + 1

    run = registered(f"xlapy_test_failing_{kind.__name__}", kind(target))
    for start in (-1, -2):
        np.testing.assert_array_equal(run(X), X + 1)
        with pytest.raises(ValueError, match=f"no {start}") as caught:
            run.function(X + start)
        assert "raised in custom-call.2 on device 0\n  model.py:8" in caught.value.__notes__
    np.testing.assert_array_equal(run.function(X), X + 1)


def test_an_interruption_in_a_target_ends_the_call():
    answers = [KeyboardInterrupt(), None]

    def target(x):
        if answer := answers.pop(0):
            raise answer
        return x

    run = registered("xlapy_test_interrupted", target)
    with pytest.raises(KeyboardInterrupt):
        run(X)
    np.testing.assert_array_equal(run(X), X)


def test_a_target_may_call_the_program_that_calls_it():
    def target(x):
        return run.function(x - 1) + 1 if x[0] > 0 else x * 10

    run = registered("xlapy_test_recursive", target)
    np.testing.assert_array_equal(run.function(X + 3), X * 10 + 3)


def test_failures_name_the_device_of_the_run():
    def target(x):
        raise ExecutionError("never")

    run = registered("xlapy_test_places", target)
    for device in devices()[:3]:
        with pytest.raises(ExecutionError, match=rf"custom-call\.2 on device {device.id}: never"):
            run.run(X, device=device)
        assert device.memory_stats()["running"] == 0


def test_programs_that_have_made_calls_are_not_kept_alive():
    run = registered("xlapy_test_forgotten", lambda x: x + 1)
    np.testing.assert_array_equal(run(X), X + 1)
    seen = weakref.ref(run)
    del run
    gc.collect()
    assert seen() is None


def test_seeds_reach_programs_that_make_calls():
    run = registered("xlapy_test_seeded", lambda x: x + 1)
    np.testing.assert_array_equal(run.run(X, seed=3), X + 1)
