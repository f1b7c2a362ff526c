"""Random numbers: bits as XLA:CPU makes them, and numbers that are distributed as they should be."""

from __future__ import annotations

from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest
import scipy.special  # not scipy.stats, which takes two seconds to import

import xlapy
from xlapy import ops
from xlapy.hlo.element_types import ALL, ElementType
from xlapy.hlo.evaluate.numerics import to_bits

U32, U64 = np.uint32, np.uint64

ALGORITHMS = {
    "rng_default": jax.lax.RandomAlgorithm.RNG_DEFAULT,
    "rng_three_fry": jax.lax.RandomAlgorithm.RNG_THREE_FRY,
    "rng_philox": jax.lax.RandomAlgorithm.RNG_PHILOX,
}


def generator(algorithm: Any, state_size: int, dims: tuple[int, ...], dtype: Any) -> xlapy.XlaComputation:
    builder = xlapy.XlaBuilder("bits")
    state = builder.parameter(0, xlapy.Shape.array(U64, (state_size,)))
    return builder.build(ops.RngBitGenerator(algorithm, state, xlapy.Shape.array(dtype, dims)))


def native(computation: Any, *arguments: Any, threads: int = 1) -> Any:
    return xlapy.compile(computation, xlapy.CompileOptions(num_threads=threads, verify=True))(*arguments)


KNOWN = [
    ("rng_three_fry", [1, 2], (4,), U32, [1, 4], [43444564, 2150618427, 3979645651, 3745730563]),
    ("rng_philox", [1, 2, 3], (4,), U32, [1, 3, 3], [4031113034, 1366700262, 495645701, 3051723414]),
    ("rng_three_fry", [1, 2], (2, 2), U64, [1, 6],
     [9236835810183407956, 16087790271692313299, 18212823393184779219, 2658481902456610144]),
]  # fmt: skip


@pytest.mark.parametrize(("algorithm", "state", "dims", "dtype", "following", "bits"), KNOWN)
def test_known_answers(algorithm: str, state: list, dims: tuple, dtype: Any, following: list, bits: list) -> None:
    computation = generator(algorithm, len(state), dims, dtype)
    for run in (xlapy.evaluate, native):
        new_state, made = run(computation, np.array(state, U64))
        assert new_state.tolist() == following
        assert made.shape == dims and made.reshape(-1).tolist() == bits


STATES = {2: [[1, 2], [2**64 - 1, 2**64 - 3], [1 << 63, 1 << 31]], 3: [[5, 2**64 - 2, 7], [1, 2**64 - 1, 2**64 - 1]]}
CASES = [
    *[("rng_three_fry", dims, U32) for dims in [(), (5,), (0,), (5, 3), (3, 4), (2, 3, 5), (3, 5, 2), (1000,)]],
    *[("rng_three_fry", (5, 3), dtype) for dtype in (np.uint8, np.uint16, U64)],
    *[("rng_philox", dims, U32) for dims in [(), (4,), (5, 3), (0,), (1000,)]],
    *[("rng_philox", (5, 3), dtype) for dtype in (np.uint8, np.uint16, U64)],
    ("rng_default", (5, 3), U32),
]


@pytest.mark.parametrize(("algorithm", "dims", "dtype"), CASES)
def test_bits_are_those_of_xla(algorithm: str, dims: tuple[int, ...], dtype: Any) -> None:
    computation = generator(algorithm, 2, dims, dtype)
    compiled = xlapy.compile(computation)
    words = 4 if algorithm == "rng_default" else 2

    def bits(key: Any) -> Any:
        return jax.lax.rng_bit_generator(key, dims, dtype=dtype, algorithm=ALGORITHMS[algorithm])

    with jax.enable_x64(True):
        reference = jax.jit(bits)
        for state in STATES[2]:
            key = np.array(state, U64)
            theirs = [np.asarray(part) for part in reference(key.view(U32) if words == 4 else key)]
            for new_state, made in (xlapy.evaluate(computation, key), compiled(key)):
                assert new_state.tobytes() == theirs[0].tobytes()
                assert made.dtype == dtype and made.tolist() == theirs[1].tolist()


OTHER_TYPES = [np.int8, np.int32, np.int64, np.float16, ml_dtypes.bfloat16, np.float32, np.float64]


@pytest.mark.parametrize("dtype", OTHER_TYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_other_types_have_the_same_bits(dtype: Any) -> None:
    unsigned = np.dtype(f"u{np.dtype(dtype).itemsize}")
    for algorithm, state in (("rng_philox", STATES[3][0]), ("rng_three_fry", STATES[2][1])):
        key = np.array(state, U64)
        _, expected = native(generator(algorithm, len(state), (3, 7), unsigned), key)
        computation = generator(algorithm, len(state), (3, 7), dtype)
        for run in (xlapy.evaluate, native):
            assert run(computation, key)[1].tobytes() == expected.tobytes()


@pytest.mark.parametrize("element_type", [t for t in ALL if t.bits < 8 and t.kind != "pred"], ids=str)
def test_types_of_less_than_a_byte_have_the_low_bits(element_type: ElementType) -> None:
    for algorithm, state in (("rng_philox", STATES[3][0]), ("rng_three_fry", STATES[2][1])):
        key = np.array(state, U64)
        following, expected = native(generator(algorithm, len(state), (97, 7), np.uint8), key)
        low = expected & np.uint8((1 << element_type.bits) - 1)
        assert set(low.reshape(-1).tolist()) == set(range(1 << element_type.bits))
        computation = generator(algorithm, len(state), (97, 7), element_type)
        for run in (xlapy.evaluate, native):
            new_state, made = run(computation, key)
            assert new_state.tolist() == following.tolist()
            assert made.dtype == element_type.dtype
            assert to_bits(made).tolist() == low.tolist()


@pytest.mark.parametrize("state", STATES[3], ids=str)
def test_counters_of_128_bits_carry(state: list[int]) -> None:
    key = np.array(state, U64)
    computation = generator("rng_philox", 3, (50,), U32)
    expected = xlapy.evaluate(computation, key)
    result = native(computation, key)
    assert result[0].tolist() == expected[0].tolist()
    assert result[1].tolist() == expected[1].tolist()


@pytest.mark.parametrize("algorithm", ["rng_philox", "rng_three_fry"])
def test_any_number_of_threads_makes_the_same_bits(algorithm: str) -> None:
    key = np.array([7, 9], U64)
    computation = generator(algorithm, 2, (3, 100_003), U32)
    one, four = native(computation, key, threads=1), native(computation, key, threads=4)
    assert one[1].tobytes() == four[1].tobytes() == xlapy.evaluate(computation, key)[1].tobytes()
    assert one[0].tolist() == four[0].tolist()


# -- the state of the program --------------------------------------------------------------------------------------


def uniform(dtype: Any, low: Any, high: Any, *dims: int) -> xlapy.XlaComputation:
    builder = xlapy.XlaBuilder("uniform")
    bounds = [builder.constant(np.asarray(bound).astype(dtype)[()]) for bound in (low, high)]
    return builder.build(ops.RngUniform(*bounds, xlapy.Shape.array(dtype, dims)))


def normal(dtype: Any, mean: float, deviation: float, *dims: int) -> xlapy.XlaComputation:
    builder = xlapy.XlaBuilder("normal")
    parameters = [builder.constant(np.dtype(dtype).type(number)) for number in (mean, deviation)]
    return builder.build(ops.RngNormal(*parameters, xlapy.Shape.array(dtype, dims)))


TYPES = [
    *(np.float32, np.float64, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2),
    *(np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64, np.bool_, ml_dtypes.int4),
]


def likelihood(uniform: Any) -> float:
    """How likely as many numbers from [0, 1) are to be distributed as unevenly as these, as Kolmogorov and Smirnov
    measure it: to either side, which no numbers are at once if that is unlikely."""
    count, ordered = uniform.size, np.sort(uniform.reshape(-1))
    steps = np.arange(count + 1) / count
    distance = max((steps[1:] - ordered).max(), (ordered - steps[:-1]).max())
    return float(2 * scipy.special.smirnov(count, distance))


def test_what_is_unlikely() -> None:
    even = (np.arange(1000) + 0.5) / 1000
    assert likelihood(even) > 0.99
    assert likelihood(even**1.1) > 1e-3 > 1e-12 > likelihood(even**1.5)
    np.testing.assert_allclose(likelihood(np.full(2, 0.25)), 0.125)  # both below 1/4, or both above 3/4


@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_uniform_numbers_of_every_type(dtype: Any) -> None:
    low, high = (False, True) if dtype is np.bool_ else (1, 6)
    computation = uniform(dtype, low, high, 37, 101)
    numbers = native(computation)
    assert numbers.tobytes() == xlapy.evaluate(computation).tobytes()
    wide = numbers.astype(np.float64)
    if dtype is np.bool_:
        assert abs(wide.mean() - 0.5) < 0.05
        return
    assert wide.min() >= low and wide.max() < high
    if np.dtype(dtype).kind in "iu" or dtype is ml_dtypes.int4:
        counts = np.bincount(wide.astype(int).reshape(-1))[1:]
        mean = counts.mean()
        assert scipy.special.chdtrc(counts.size - 1, ((counts - mean) ** 2).sum() / mean) > 1e-4
    elif np.dtype(dtype).itemsize > 2:
        assert likelihood((wide - low) / (high - low)) > 1e-4


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint64, np.int8], ids=lambda dtype: np.dtype(dtype).name)
def test_uniform_integers_over_wide_ranges(dtype: Any) -> None:
    limits = np.iinfo(dtype)
    computation = uniform(dtype, limits.min, limits.max, 20_000)
    numbers = native(computation)
    assert numbers.tobytes() == xlapy.evaluate(computation).tobytes()
    span = float(limits.max) - float(limits.min)
    assert likelihood((numbers.astype(float) - limits.min) / span) > 1e-4 or dtype is np.int8
    assert abs(numbers.astype(float).mean() - (float(limits.max) + float(limits.min)) / 2) < 0.01 * span


def test_an_empty_interval_gives_its_beginning() -> None:
    assert set(native(uniform(np.int32, 5, 5, 100)).tolist()) == {5}
    assert set(native(uniform(np.int32, 5, 2, 100)).tolist()) == {5}
    assert set(native(uniform(np.float32, 5, 5, 100)).tolist()) == {5.0}


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16], ids=lambda dtype: np.dtype(dtype).name)
def test_normal_numbers(dtype: Any) -> None:
    computation = normal(dtype, 1.0, 2.0, 300, 101)
    numbers = native(computation)
    ulp = float(np.finfo(dtype).eps)
    np.testing.assert_allclose(
        numbers.astype(float), xlapy.evaluate(computation).astype(float), rtol=8 * ulp, atol=8 * ulp
    )
    wide = numbers.astype(np.float64).reshape(-1)
    if dtype is not np.float16:
        assert likelihood(scipy.special.ndtr((wide - 1) / 2)) > 1e-4
    assert abs(wide.mean() - 1) < 0.05 and abs(wide.std() - 2) < 0.05


def test_calls_differ_and_can_be_repeated() -> None:
    executable = xlapy.compile(normal(np.float32, 0.0, 1.0, 1000))
    first, second = executable(), executable()
    assert not np.array_equal(first, second)
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.15
    again = executable.run(seed=5)
    assert np.array_equal(again, executable.run(seed=5))
    assert not np.array_equal(again, executable.run(seed=6))
    assert np.array_equal(first, executable.run(seed=0))
    assert not np.array_equal(executable(), second)
    other = xlapy.compile(normal(np.float32, 0.0, 1.0, 1000), xlapy.CompileOptions(seed=5))
    assert np.array_equal(again, other())


def test_threads_do_not_change_the_numbers() -> None:
    computation = uniform(np.float32, 0, 1, 1_000_000)
    one, three = (xlapy.compile(computation, xlapy.CompileOptions(num_threads=count)) for count in (1, 3))
    assert one().tobytes() == three().tobytes()
    assert one().tobytes() == three().tobytes()


def test_every_instruction_and_iteration_draws_others() -> None:
    builder = xlapy.XlaBuilder("loop")
    shape = xlapy.Shape.array(np.float32, (4,))

    def body(state: Any) -> Any:
        count, rows = state
        row = ops.RngUniform(builder_constant(state, 0.0), builder_constant(state, 1.0), shape)
        placed = ops.DynamicUpdateSlice(rows, ops.Reshape(row, (1, 4)), [count, state.builder.constant(np.int32(0))])
        return state.builder.tuple([count + 1, placed])

    def builder_constant(state: Any, number: float) -> Any:
        return state.builder.constant(np.float32(number))

    start = builder.tuple([builder.constant(np.int32(0)), builder.constant(np.zeros((10, 4), np.float32))])
    rows = ops.While(lambda state: state[0] < 10, body, start)[1]
    bounds = [builder.constant(np.float32(number)) for number in (0.0, 1.0)]
    same = [ops.RngUniform(*bounds, shape) for _ in range(2)]
    executable = xlapy.compile(builder.build(builder.tuple([rows, *same])))
    first, second = executable(), executable()
    drawn = np.concatenate([first[0].reshape(-1), *first[1:], second[0].reshape(-1), *second[1:]])
    assert len(set(drawn.tolist())) == drawn.size


def test_processes_of_a_run_draw_the_same() -> None:
    options = xlapy.CompileOptions(num_replicas=2)
    executable = xlapy.compile(uniform(np.float32, 0, 1, 100), options)
    first, second = executable.run_parallel([[], []]), executable.run_parallel([[], []])
    assert first[0].tobytes() == first[1].tobytes() != second[0].tobytes() == second[1].tobytes()
    assert executable.run_parallel([[], []], seed=0)[0].tobytes() == first[0].tobytes()


def test_bernoulli() -> None:
    builder = xlapy.XlaBuilder("bernoulli")
    mean = builder.parameter(0, xlapy.Shape.scalar(np.float32))
    executable = xlapy.compile(builder.build(ops.RngBernoulli(mean, xlapy.Shape.array(U32, (100, 200)))))
    drawn = executable(np.float32(0.3))
    assert drawn.dtype == U32 and set(drawn.reshape(-1).tolist()) == {0, 1}
    assert abs(drawn.mean() - 0.3) < 0.02
    assert executable(np.float32(0.0)).max() == 0 and executable(np.float32(1.0)).min() == 1


# -- text ----------------------------------------------------------------------------------------------------------

XLA_TEXT = """
HloModule random

ENTRY main {
  state = u64[2]{0} parameter(0)
  bits = (u64[2]{0}, u32[4,3]{1,0}) rng-bit-generator(state), algorithm=rng_three_fry
  low = f32[] constant(0)
  high = f32[] constant(1)
  numbers = f32[5]{0} rng(low, high), distribution=rng_uniform
  more = f32[5]{0} rng(low, high), distribution=rng_normal
  own = u64[2]{0} rng-get-and-update-state(), delta=3
  ROOT all = ((u64[2]{0}, u32[4,3]{1,0}), f32[5]{0}, f32[5]{0}, u64[2]{0}) tuple(bits, numbers, more, own)
}
"""


def test_text_forms() -> None:
    module = xlapy.hlo.parse(XLA_TEXT)
    text = module.to_text()
    assert xlapy.hlo.parse(text).to_text() == text
    written = xlapy.stablehlo.to_text(module)
    again = xlapy.stablehlo.parse(written)
    opcodes = [instruction.opcode for instruction in again.entry]
    assert opcodes.count("rng") == 2 and opcodes.count("rng-bit-generator") == 1
    assert opcodes.count("rng-get-and-update-state") == 1
    assert [i.attributes["delta"] for i in again.entry if i.opcode == "rng-get-and-update-state"] == [3]
    key = np.array([1, 2], U64)
    results, expected = native(module, key), xlapy.evaluate(module, key)
    assert results[0][1].tolist() == expected[0][1].tolist()
    assert all(0 <= number < 1 for number in results[1].tolist())


PRETTY = """
func.func @main(%state: tensor<2xui64>, %a: tensor<i32>, %b: tensor<i32>) -> (tensor<2xui64>, tensor<2x2xui64>, tensor<3x3xi32>) {
  %shape = stablehlo.constant dense<[3, 3]> : tensor<2xi64>
  %next, %bits = stablehlo.rng_bit_generator %state, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<2x2xui64>)
  %r = stablehlo.rng %a, %b, %shape, distribution = UNIFORM : (tensor<i32>, tensor<i32>, tensor<2xi64>) -> tensor<3x3xi32>
  return %next, %bits, %r : tensor<2xui64>, tensor<2x2xui64>, tensor<3x3xi32>
}
"""  # noqa: E501 (a program is kept on its lines)

GENERIC = PRETTY.replace(
    "stablehlo.rng %a, %b, %shape, distribution = UNIFORM",
    '"stablehlo.rng"(%a, %b, %shape) <{rng_distribution = #stablehlo<rng_distribution UNIFORM>}>',
).replace(
    "stablehlo.rng_bit_generator %state, algorithm = THREE_FRY",
    '"stablehlo.rng_bit_generator"(%state) <{rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}>',
)


@pytest.mark.parametrize("text", [PRETTY, GENERIC], ids=["pretty", "generic"])
def test_examples_of_stablehlo(text: str) -> None:
    state, bits, numbers = native(text, np.array([1, 2], U64), np.int32(0), np.int32(2))
    assert state.tolist() == [1, 6]
    assert bits.tolist() == [[9236835810183407956, 16087790271692313299], [18212823393184779219, 2658481902456610144]]
    assert set(numbers.reshape(-1).tolist()) <= {0, 1}


@pytest.mark.parametrize(
    ("old", "new", "label"),
    [
        ("tensor<2xui64>", "tensor<3xui64>", "rng_bit_generator.C2"),
        ("%state: tensor<2xui64>|algorithm = THREE_FRY : (tensor<2xui64>)",
         "%state: tensor<3xui64>|algorithm = PHILOX : (tensor<3xui64>)", "rng_bit_generator.C1"),
        ("distribution = UNIFORM", "distribution = NORMAL", "rng.C2"),
        ("tensor<3x3xi32>", "tensor<3x3xf32>", "rng.C1"),
    ],
)  # fmt: skip
def test_broken_constraints_are_named(old: str, new: str, label: str) -> None:
    text = PRETTY
    for before, after in zip(old.split("|"), new.split("|"), strict=True):
        assert before in text
        text = text.replace(before, after)
    with pytest.raises(xlapy.XlaError) as caught:
        xlapy.stablehlo.parse(text)
    assert caught.value.rule == label


def test_programs_of_jax() -> None:
    """jax.random in plain arithmetic, and with the generator of the backend."""

    for implementation in ("threefry2x32", "rbg"):
        key = jax.random.key(42, impl=implementation)
        data = np.asarray(jax.random.key_data(key))

        def program(data: Any, implementation: str = implementation) -> Any:
            key = jax.random.wrap_key_data(data, impl=implementation)
            first, second = jax.random.split(key)
            return jax.random.uniform(first, (7, 5)), jax.random.bits(second, (11,)), jax.random.normal(first, (33,))

        compiled = xlapy.compile(jax.jit(program).lower(data).as_text())
        for result, expected in zip(compiled(data), program(data), strict=True):
            np.testing.assert_allclose(result, np.asarray(expected), rtol=1e-5, atol=1e-6)
