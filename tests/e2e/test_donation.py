"""Donated arguments: results that live in their memory, right results where they may not, and no copies where none are
needed."""

from __future__ import annotations

import gc
import os
import resource
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xlapy
from tests.support.values import assert_same
from xlapy import ops
from xlapy.hlo.graph import BufferDonor
from xlapy.hlo.proto import module_from_bytes, module_to_bytes
from xlapy.support.errors import ShapeError

VERIFIED = xlapy.CompileOptions(verify=True)
VECTOR = xlapy.Shape.array(np.float32, (64,))
ONES = np.ones(64, np.float32)

Record = Callable[..., Any]


def donating(record: Record, *shapes: xlapy.Shape, donors: Sequence[int] = (0,)) -> xlapy.XlaComputation:
    """A program of what `record` makes of parameters, some of which any result may take over."""
    builder = xlapy.XlaBuilder("donating")
    parameters = [ops.Parameter(builder, number, shape) for number, shape in enumerate(shapes)]
    result = record(*parameters)
    for number in donors:
        builder.add_buffer_donor(number)
    return builder.build(result)


def check(computation: xlapy.XlaComputation, *arguments: Any) -> Any:
    """The result for copies of the arguments, which must be the evaluator's."""
    expected = xlapy.evaluate(computation, *arguments)
    copies = [np.array(argument) for argument in arguments]
    result = xlapy.compile(computation, VERIFIED)(*copies)
    assert_same(result, expected)
    return result, copies


def address(array: np.ndarray) -> int:
    return array.ctypes.data


# -- where results live ------------------------------------------------------------------------------------------------


def test_an_update_is_written_over_its_parameter() -> None:
    step = donating(lambda p, g: p - g * np.float32(0.5), VECTOR, VECTOR)
    result, (parameter, _) = check(step, ONES * 3, ONES)
    assert result is parameter


def test_without_donation_arguments_stay_as_they_are() -> None:
    step = donating(lambda p, g: p - g, VECTOR, VECTOR, donors=())
    result, (parameter, _) = check(step, ONES * 3, ONES)
    assert result is not parameter and (parameter == 3).all()


def test_other_readers_come_before_the_writer() -> None:
    """The sum of the old parameter and its product with itself are needed, too."""
    matrix = xlapy.Shape.array(np.float32, (16, 16))

    def record(p: Any, g: Any) -> Any:
        return p - g, p.reduce(0, ops.Add, (0, 1)), ops.Dot(p, p)

    generator = np.random.default_rng(0)
    values = [generator.integers(-3, 4, (16, 16)).astype(np.float32) for _ in range(2)]
    results, (parameter, _) = check(donating(record, matrix, matrix), *values)
    assert results[0] is parameter


def test_a_state_of_several_parts_is_changed_in_place() -> None:
    def record(parameter: Any, mean: Any, square: Any, slope: Any) -> Any:
        mean = mean + (slope - mean) * np.float32(0.125)
        square = square + (slope * slope - square) * np.float32(0.25)
        return parameter - mean / (ops.Sqrt(square) + np.float32(1)), mean, square

    results, given = check(donating(record, *[VECTOR] * 4, donors=(0, 1, 2)), *(ONES * n for n in (1, 2, 4, 3)))
    assert {address(result) for result in results} == {address(array) for array in given[:3]}


def test_a_named_result_takes_over_the_parameter_that_is_named() -> None:
    builder = xlapy.XlaBuilder("named")
    x, y = (ops.Parameter(builder, number, VECTOR) for number in range(2))
    builder.setup_alias((0,), 1)
    results, (_, second) = check(builder.build([x * y, x + y]), ONES, ONES * 2)
    assert results[0] is second


def test_parts_of_tuples_are_donated() -> None:
    builder = xlapy.XlaBuilder("nested")
    pair = ops.Parameter(builder, 0, xlapy.Shape.tuple([VECTOR, VECTOR]))
    builder.setup_alias((1, 0), 0, (1,))
    computation = builder.build([pair[0] + np.float32(1), [pair[1] * pair[0]]])
    first, second = ONES.copy(), ONES * 3
    results = xlapy.compile(computation, VERIFIED)((first, second))
    assert_same(results, (ONES * 2, (ONES * 3,)))
    assert results[1][0] is second


def test_the_memory_of_a_parameter_that_nobody_reads_is_used() -> None:
    result, (unused, _) = check(
        donating(lambda unused, x: ops.Rev(x, (0,)), VECTOR, VECTOR), ONES, np.arange(64, dtype="f4")
    )
    assert result is unused


def test_the_state_of_a_loop_is_the_parameter() -> None:
    def record(state: Any, count: Any) -> Any:
        def body(values: Any) -> Any:
            return [values[0] + np.int32(1), values[1] * np.float32(2)]

        loop = ops.While(lambda values: values[0] < count_limit, body, [np.int32(0), state])
        return loop[1] + ops.ConvertElementType(count, np.float32)

    count_limit = np.int32(3)
    result, (state, _) = check(donating(record, VECTOR, xlapy.Shape.array(np.int32)), ONES, np.int32(5))
    assert result is state and (result == 13).all()


def test_a_branch_that_changes_its_operand_gives_right_results() -> None:
    def record(x: Any, choose: Any) -> Any:
        return ops.Conditional(choose, x, lambda v: v + np.float32(1), x, lambda v: ops.Rev(v, (0,)))

    for choose in (True, False):
        check(donating(record, VECTOR, xlapy.Shape.array(np.bool_)), np.arange(64, dtype=np.float32), np.bool_(choose))


def test_a_parameter_that_is_a_result_is_handed_back() -> None:
    results, (x, _) = check(donating(lambda x, y: [x, y + x], VECTOR, VECTOR), ONES, ONES)
    assert results[0] is x


def test_parameters_that_change_places_are_copied() -> None:
    builder = xlapy.XlaBuilder("swap")
    x, y = (ops.Parameter(builder, number, VECTOR) for number in range(2))
    for number in range(2):
        builder.setup_alias((number,), number)
    results, _ = check(builder.build([y, x]), ONES, ONES * 2)
    assert address(results[0]) != address(results[1])


def test_a_result_that_is_not_made_in_place_has_memory_of_its_own() -> None:
    square = xlapy.Shape.array(np.float32, (8, 8))
    values = np.arange(64, dtype=np.float32).reshape(8, 8)
    result, (given,) = check(donating(lambda x: ops.Transpose(x, (1, 0)), square), values)
    assert not np.may_share_memory(result, given)
    assert_same(given, values)


def test_results_of_other_shapes_and_scalars_have_memory_of_their_own() -> None:
    scalar = xlapy.Shape.array(np.float32)
    check(donating(lambda x: ops.Reshape(x + x, (8, 8)), VECTOR), ONES)
    check(donating(lambda x: x + x, scalar), np.float32(2))


# -- bytes -------------------------------------------------------------------------------------------------------------


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _result_allocations() -> int:
    """How often memory of a large result was asked for so far."""
    statistics = xlapy.memory_statistics()
    return statistics.fresh + statistics.recycled


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs to know which pages were touched")
def test_an_update_of_a_cache_touches_only_its_own_bytes() -> None:
    """The pages of a fresh array of zeros exist only once somebody has read or written them."""
    places, features = 1 << 17, 1 << 8
    cache = xlapy.Shape.array(np.float32, (places, features))
    row = xlapy.Shape.array(np.float32, (1, features))
    number = xlapy.Shape.array(np.int32)

    def record(cache: Any, row: Any, number: Any) -> Any:
        return ops.DynamicUpdateSlice(cache, row * np.float32(2), [number, np.int32(0)])

    write = xlapy.compile(donating(record, cache, row, number), VERIFIED)
    sizes = write.memory_analysis()
    assert sizes["temporary_bytes"] < 1 << 12 and sizes["donated_bytes"] == sizes["result_bytes"] == cache.bytes
    held = np.zeros((places, features), np.float32)
    ones = np.ones((1, features), np.float32)
    allocations, before = _result_allocations(), _resident_bytes()
    for place in (5, places // 2, places - 1):
        assert write(held, ones, np.int32(place)) is held
    assert _resident_bytes() - before < held.nbytes // 8
    assert _result_allocations() == allocations
    assert held[[5, places // 2, places - 1]].min() == 2 and held[:5].max() == 0


def test_large_results_are_lent_again() -> None:
    """They live in pooled memory, which they own."""
    large = xlapy.Shape.array(np.float32, (1 << 19,))
    step = xlapy.compile(donating(lambda x: x + np.float32(1), large), VERIFIED)
    start = np.zeros(1 << 19, np.float32)
    start.flags.writeable = False
    first = step(start)
    assert first is not start and (start == 0).all()
    allocations = _result_allocations()
    result = first
    for _ in range(3):
        result = step(result)
        assert result is first
    assert (result == 4).all()
    assert _result_allocations() == allocations
    view = result[:]
    assert step(view) is not view and (result == 4).all(), "a view is not its own"


# -- what may not be lent ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def double_and_sum() -> xlapy.Executable:
    """(2 x, x + y, z + y); x and z are donated."""
    record = lambda x, y, z: [x * np.float32(2), x + y, z + y]  # noqa: E731
    return xlapy.compile(donating(record, VECTOR, VECTOR, VECTOR, donors=(0, 2)), VERIFIED)


def _assert_right(results: Any, x: np.ndarray, y: np.ndarray, z: np.ndarray) -> None:
    assert_same(results, (x * np.float32(2), x + y, z + y))


NUMBERS = np.arange(64, dtype=np.float32)


def read_only() -> np.ndarray:
    array = NUMBERS.copy()
    array.flags.writeable = False
    return array


def unaligned() -> np.ndarray:
    return np.frombuffer(bytearray(b"\0" + NUMBERS.tobytes()), np.float32, offset=1)


class Special(np.ndarray):
    """An array of another class."""


UNLENDABLE: dict[str, Callable[[], np.ndarray]] = {
    "read-only": read_only,
    "unaligned": unaligned,
    "a view of all": lambda: NUMBERS.copy()[:],
    "a view of a part": lambda: np.concatenate([NUMBERS, NUMBERS])[:64],
    "strided": lambda: np.repeat(NUMBERS, 2)[::2],
    "reversed": lambda: NUMBERS[::-1].copy()[::-1],
    "of bytes": lambda: np.frombuffer(NUMBERS.tobytes(), np.float32),
    "in foreign byte order": lambda: NUMBERS.astype(">f4"),
    "of another class": lambda: NUMBERS.copy().view(Special),
}


@pytest.mark.parametrize("kind", UNLENDABLE)
def test_what_may_not_be_lent_is_copied(kind: str, double_and_sum: xlapy.Executable) -> None:
    given = UNLENDABLE[kind]()
    results = double_and_sum(given, ONES, ONES.copy())
    _assert_right(results, NUMBERS, ONES, ONES)
    assert_same(np.asarray(given, np.float32), NUMBERS)
    assert not any(np.may_share_memory(result, given) for result in results)


def test_an_array_that_is_passed_twice_is_copied(double_and_sum: xlapy.Executable) -> None:
    for places in ((0, 1), (0, 2), (1, 2), (0, 1, 2)):
        same = NUMBERS.copy()
        arguments = [same if place in places else ONES * 3 for place in range(3)]
        expected = [argument.copy() for argument in arguments]
        results = double_and_sum(*arguments)
        _assert_right(results, *expected)
        assert_same(same, NUMBERS)


def test_arguments_that_overlap_are_copied(double_and_sum: xlapy.Executable) -> None:
    whole = np.arange(64, dtype=np.float32)
    results = double_and_sum(whole, whole[::-1], ONES.copy())
    _assert_right(results, NUMBERS, NUMBERS[::-1], ONES)
    assert_same(whole, NUMBERS)


def test_calls_with_options_lend_like_others(double_and_sum: xlapy.Executable) -> None:
    x, z = NUMBERS.copy(), ONES.copy()
    results = double_and_sum.run(x, ONES, z, seed=1)
    _assert_right(results, NUMBERS, ONES, ONES)
    assert {address(x), address(z)} <= {address(result) for result in results}


def test_programs_that_call_the_runtime_lend_like_others() -> None:
    def record(x: Any, y: Any) -> Any:
        return x + ops.CustomCall(x.builder, "twice", [y], VECTOR)

    computation = donating(record, VECTOR, VECTOR)
    options = xlapy.CompileOptions(verify=True, custom_calls={"twice": lambda y: y * 2})
    program = xlapy.compile(computation, options)
    x = NUMBERS.copy()
    assert program(x, ONES) is x
    assert_same(x, NUMBERS + 2)
    assert_same(program(read_only(), ONES), NUMBERS + 2)
    same = NUMBERS.copy()
    assert_same(program(same, same), NUMBERS * 3)
    assert_same(same, NUMBERS)


def test_results_are_counted_and_released_like_others() -> None:
    step = xlapy.compile(donating(lambda x: x + np.float32(1), VECTOR), VERIFIED)
    array = ONES.copy()
    before = len(gc.get_referrers(array))
    for _ in range(1000):
        result = step(array)
    assert result is array
    del result
    assert len(gc.get_referrers(array)) == before
    assert (array == 1001).all()


def test_a_program_from_the_cache_lends_like_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLAPY_CACHE_DIR", str(tmp_path))
    computation = donating(lambda x: x * np.float32(3), VECTOR)
    for cached in (False, True):
        program = xlapy.compile(computation)
        assert program.compile_stats().cached is cached
        array = ONES.copy()
        assert program(array) is array
        assert program.donations == {0: 0}


def test_programs_with_open_sizes_lend_for_each() -> None:
    program = xlapy.compile("""
    HloModule open, input_output_alias={ {}: (0, {}) }
    ENTRY e { x = f32[?] parameter(0)  ROOT y = f32[?] add(x, x) }
    """)
    for size in (3, 5):
        array = np.ones(size, np.float32)
        assert program(array) is array and (array == 2).all()
    with pytest.raises(xlapy.UnsupportedError, match="donations before sizes are known"):
        _ = program.donations


def test_a_profile_leaves_its_arguments_alone() -> None:
    program = xlapy.compile(donating(lambda x: x * np.float32(3), VECTOR))
    array = ONES.copy()
    assert program.profile(array, calls=3).calls == 3
    assert (array == 1).all()


# -- several at once ---------------------------------------------------------------------------------------------------


def test_threads_with_arrays_of_their_own() -> None:
    step = xlapy.compile(donating(lambda x, y: x + y, VECTOR, VECTOR), VERIFIED)
    ends: dict[int, np.ndarray] = {}

    def work(number: int) -> None:
        state = np.zeros(64, np.float32)
        for _ in range(500):
            state = step(state, ONES * number)
        ends[number] = state

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, state in ends.items():
        assert (state == 500 * number).all()


def test_replicas_do_not_write_over_what_they_share() -> None:
    def record(x: Any, y: Any) -> Any:
        return x + ops.AllReduce(y * x, ops.Add)

    options = xlapy.CompileOptions(verify=True, num_replicas=3, timeout=60)
    program = xlapy.compile(donating(record, VECTOR, VECTOR), options)
    shared = NUMBERS.copy()
    rows = [[shared, ONES * number] for number in range(3)]
    for result in program.run_parallel(rows):
        assert_same(result, NUMBERS + 3 * NUMBERS)
    assert_same(shared, NUMBERS)
    own = [NUMBERS + number for number in range(3)]
    expected = [array + sum((array * n for n, array in enumerate(own)), np.float32(0)) for array in own]
    results = program.run_parallel([[array, ONES * number] for number, array in enumerate(own)])
    assert_same(tuple(results), tuple(expected))
    assert all(result is array for result, array in zip(results, own, strict=True))


# -- random programs ---------------------------------------------------------------------------------------------------

SIDE = 6
SQUARE = xlapy.Shape.array(np.int32, (SIDE, SIDE))


def _random_program(seed: int) -> tuple[xlapy.XlaComputation, list[np.ndarray]]:
    """Values of one shape, made in ways that are in place and in ways that are not; some of them are results."""
    generator = np.random.default_rng(seed)
    builder = xlapy.XlaBuilder(f"random_{seed}")
    count = int(generator.integers(1, 5))
    values = [ops.Parameter(builder, number, SQUARE) for number in range(count)]

    def pick() -> Any:
        return values[generator.integers(len(values))]

    def loop() -> Any:
        rounds = np.int32(generator.integers(0, 4))
        state = ops.While(
            lambda v: v[0] < rounds, lambda v: [v[0] + np.int32(1), v[2] - v[1], v[1]], [np.int32(0), pick(), pick()]
        )
        return state[1 + int(generator.integers(2))]

    makers: list[Callable[[], Any]] = [
        lambda: pick() + pick(),
        lambda: pick() * np.int32(3),
        lambda: ops.Max(pick(), pick()) - pick(),
        lambda: ops.Transpose(pick(), (1, 0)),
        lambda: ops.Rev(pick(), (0,)) + pick(),
        lambda: ops.Dot(pick(), pick()),
        lambda: ops.BroadcastInDim(pick().reduce(0, ops.Add, (0,)), (SIDE, SIDE), (1,)) + pick(),
        lambda: ops.DynamicUpdateSlice(
            pick(), ops.Slice(pick(), (1, 2), (3, 5), (1, 1)), [np.int32(2), np.int32(generator.integers(SIDE))]
        ),
        lambda: ops.Reshape(ops.Reshape(pick(), (SIDE * SIDE,)) + np.int32(1), (SIDE, SIDE)),
        lambda: ops.Conditional(
            ops.Gt(ops.Reshape(ops.Slice(pick(), (0, 0), (1, 1), (1, 1)), ()), np.int32(0)),
            pick(),
            lambda v: v + np.int32(1),
            pick(),
            lambda v: ops.Rev(v, (1,)),
        ),
        loop,
    ]
    for _ in range(generator.integers(1, 12)):
        made = makers[generator.integers(len(makers))]()
        values.append(made)
    results = [pick() for _ in range(generator.integers(1, 5))]
    places = generator.permutation(len(results)).tolist()  # a result is in one alias at most
    for number in range(count):
        if places and generator.random() < 0.3:
            builder.setup_alias((places.pop(),), number)
        elif generator.random() < 0.8:
            builder.add_buffer_donor(number)
    arguments = [generator.integers(-9, 10, (SIDE, SIDE), np.int32) for _ in range(count)]
    return builder.build(results), arguments


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_programs_give_the_same_results_with_donation(first: int) -> None:
    _check_random_programs(range(first, first + 20))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 3000, 100))
def test_many_random_programs_with_donation(first: int) -> None:
    _check_random_programs(range(first, first + 100))


def _check_random_programs(seeds: range) -> None:
    donations = 0
    for seed in seeds:
        computation, arguments = _random_program(seed)
        program = xlapy.compile(computation, VERIFIED)
        expected = xlapy.evaluate(computation, *arguments)
        given = [argument.copy() for argument in arguments]
        results = program(*given)
        assert_same(results, expected, f"seed {seed}")
        for number, parameter in program.donations.items():
            assert results[number] is given[parameter]
        lent = set(program.donations.values())
        for number, (array, argument) in enumerate(zip(given, arguments, strict=True)):
            assert number in lent or (array == argument).all(), f"seed {seed} writes to argument {number}"
        donations += len(lent)
        same = arguments[0].copy()
        expected = xlapy.evaluate(computation, *[arguments[0]] * len(arguments))
        assert_same(program(*[same] * len(arguments)), expected, f"seed {seed}, one array for all")
    assert donations > len(seeds) // 4


# -- what is said of it ------------------------------------------------------------------------------------------------


def test_every_form_of_a_program_says_what_is_donated() -> None:
    builder = xlapy.XlaBuilder("forms")
    x, y, z = (ops.Parameter(builder, number, VECTOR) for number in range(3))
    builder.setup_alias((1,), 0)
    builder.add_buffer_donor(2)
    module = builder.build([x + y, x * y, z - y]).module
    forms = [
        module.to_text(),
        xlapy.stablehlo.to_text(module),
        xlapy.stablehlo.to_text(module, pretty=True),
        module_to_bytes(module),
    ]
    assert "buffer_donor={ (2, {}) }" in forms[0]
    assert "{tf.aliasing_output = 1 : i32}" in forms[2] and "{jax.buffer_donor = true}" in forms[2]
    for form in forms:
        read = module_from_bytes(form) if isinstance(form, bytes) else xlapy.load(form)
        assert read.config.aliases == module.config.aliases
        assert read.config.donors == (BufferDonor(2),)
        given = [ONES * number for number in (2, 3, 4)]
        results = xlapy.compile(form, VERIFIED)(*given)
        assert results[1] is given[0]
        assert any(result is given[2] for result in results)


def test_the_only_result_is_named_by_number_in_stablehlo() -> None:
    text = """
    func.func @main(%x: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4xf32> {
      %0 = stablehlo.negate %x : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    """
    given = np.ones(4, np.float32)
    assert xlapy.compile(text)(given) is given
    with pytest.raises(xlapy.ParseError, match="there are 1 results"):
        xlapy.load(text.replace("= 0", "= 1"))
    with pytest.raises(xlapy.ParseError, match="cannot live in the memory of argument 0"):
        xlapy.load(
            text.replace("%x: tensor<4xf32>", "%x: tensor<5xf32>").replace(
                "stablehlo.negate %x : tensor<4xf32>", "stablehlo.slice %x [0:4] : (tensor<5xf32>) -> tensor<4xf32>"
            )
        )


def test_a_donor_that_is_not_there_is_refused() -> None:
    builder = xlapy.XlaBuilder("missing")
    x = ops.Parameter(builder, 0, VECTOR)
    builder.add_buffer_donor(1)
    with pytest.raises(ShapeError, match=r"add_buffer_donor.*\n.*test_donation"):
        builder.build(x)
