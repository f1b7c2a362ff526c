"""Call conventions: what goes in, what comes out, and when a function is compiled anew. `jax.jit` is the measure."""

from __future__ import annotations

import copy
import functools
import operator
import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import xlapy.jax
from tests.jax.agreement import assert_agree, x64_mode
from xlapy import ArgumentError, CompileOptions, UnsupportedError
from xlapy.support.other_names import JITTED

VECTOR = np.array([1.5, -2.0, 3.25], np.float32)
COUNTS = np.array([3, 1, 2], np.int32)


@pytest.mark.parametrize(
    "arguments",
    [
        (VECTOR, COUNTS),
        (VECTOR, 2),
        (VECTOR, True),
        (2.5, COUNTS),
        (1, 2),
        (1 + 2j, VECTOR),
        (np.float32(2), COUNTS),
        (np.int8(2), np.int8(3)),
        (VECTOR.astype(ml_dtypes.bfloat16), 2.0),
        (VECTOR.astype(np.float16), VECTOR),
        (VECTOR.astype(np.float64), COUNTS.astype(np.int64)),
        (jnp.asarray(VECTOR), VECTOR),
        (jnp.asarray(2.0), jnp.asarray(COUNTS)),
        (jax.jit(lambda x: x)(2), VECTOR.astype(np.float16)),  # a weak jax array
        (np.asfortranarray(np.ones((2, 3), np.float32)), VECTOR[::-1]),
    ],
    ids=str,
)
def test_element_types_are_those_of_jax(arguments: tuple[Any, Any]) -> None:
    def function(x: Any, y: Any) -> Any:
        return x + y, x * jnp.float32(2), y

    assert_agree(function, *arguments)


def test_x64_mode_is_part_of_the_signature() -> None:
    function = xlapy.jax.jit(lambda x, y: (x + y, jnp.arange(3)))
    wide = VECTOR.astype(np.float64)
    assert [part.dtype for part in function(wide, 1.0)] == [np.float32, np.int32]
    with x64_mode():
        assert [part.dtype for part in function(wide, 1.0)] == [np.float64, np.int64]
        np.testing.assert_array_equal(function(wide, 0.1)[0], wide + 0.1)
    assert function(wide, 1.0)[0].dtype == np.float32
    assert function.cache_size() == 2


def test_other_settings_of_jax_are_part_of_the_signature() -> None:
    strict = xlapy.jax.jit(lambda x, y: x + y)
    strict(VECTOR, COUNTS)
    with jax.numpy_dtype_promotion("strict"), pytest.raises(Exception, match="promotion"):
        strict(VECTOR, COUNTS)


@functools.partial(jax.tree_util.register_dataclass, data_fields=["weights", "bias"], meta_fields=["name"])
@dataclass
class Layer:
    weights: Any
    bias: Any
    name: str


def test_pytrees_go_in_and_come_out() -> None:
    def function(layer: Layer, pairs: dict[str, Any], nothing: None) -> Any:
        moved = Layer(layer.weights + 1, layer.bias * 2, layer.name + "!")
        return {"layer": moved, "swapped": (pairs["b"], [pairs["a"]]), "nothing": nothing, "empty": ()}

    layer = Layer(np.ones((2, 2), np.float32), VECTOR, "first")
    result = assert_agree(function, layer, {"a": COUNTS, "b": VECTOR}, None)
    assert result["layer"].name == "first!"


def test_results_of_every_nesting() -> None:
    for function in (
        lambda x: x,
        lambda x: (x,),
        lambda x: [x, x + 1],
        lambda x: (x, (x + 1, x + 2)),
        lambda x: {"only": x},
        lambda x: (),
        lambda x: None,
        lambda x: 3,
        lambda x: (np.float32(2), x),
    ):
        assert_agree(function, VECTOR)


def test_results_are_fresh_numpy_arrays() -> None:
    result = xlapy.jax.jit(lambda x: x)(VECTOR)
    assert type(result) is np.ndarray and result is not VECTOR and result.flags.writeable


def test_results_as_jax_arrays_keep_weak_types() -> None:
    function = xlapy.jax.jit(lambda x, y: (x, y * 2), results="jax")
    strong, weak = function(VECTOR, 3.0)
    assert isinstance(strong, jax.Array) and isinstance(weak, jax.Array)
    assert (strong.weak_type, weak.weak_type) == (False, True)
    assert (COUNTS.astype(np.float16) * weak).dtype == np.float16


def test_keyword_arguments() -> None:
    def function(x: Any, /, y: Any = 1.0, *, scale: Any = 2.0, **others: Any) -> Any:
        return (x + y) * scale + sum(others.values())

    compiled = xlapy.jax.jit(function)
    for args, kwargs in [((VECTOR,), {}), ((VECTOR, 2.0), {}), ((VECTOR,), {"y": 2.0}),
                         ((VECTOR,), {"scale": COUNTS, "more": VECTOR})]:  # fmt: skip
        np.testing.assert_allclose(compiled(*args, **kwargs), function(*args, **kwargs), rtol=1e-6)
    assert compiled.cache_size() == 4


def test_static_arguments_by_position_and_by_name() -> None:
    def function(x: Any, count: int, mode: str = "sum") -> Any:
        return x[:count].sum() if mode == "sum" else x[:count].max()

    by_position = xlapy.jax.jit(function, static_argnums=(1, 2))
    by_name = xlapy.jax.jit(function, static_argnames=("count", "mode"))
    from_the_end = xlapy.jax.jit(function, static_argnums=(-1, -2))
    for compiled in (by_position, by_name):
        assert compiled(VECTOR, 2) == -0.5
        assert compiled(VECTOR, 3) == 2.75
        assert compiled(VECTOR, count=3, mode="max") == 3.25
        assert compiled(VECTOR, 3, "max") == 3.25
    assert from_the_end(VECTOR, 3, "max") == 3.25


def test_equal_static_values_of_different_types_differ() -> None:
    function = xlapy.jax.jit(lambda x, value: x * value, static_argnums=1)
    assert function(COUNTS, 1).dtype == np.int32
    assert function(COUNTS, 1.0).dtype == np.float32


def test_static_values_must_be_hashable() -> None:
    with pytest.raises(ArgumentError, match=r"static argument 1 is a list"):
        xlapy.jax.jit(lambda x, value: x, static_argnums=1)(VECTOR, [1])


def test_unused_arguments_are_accepted() -> None:
    assert_agree(lambda x, unused, y: x + y, VECTOR, {"a": COUNTS, "b": 1}, VECTOR)


def test_closed_over_arrays_are_constants() -> None:
    table = np.arange(6000, dtype=np.float32).reshape(2000, 3)
    device_table = jnp.arange(3.0)
    assert_agree(lambda x: table[7:9] + x * device_table, VECTOR)


def test_a_signature_is_traced_once() -> None:
    traced = []

    @xlapy.jax.jit
    def function(x: Any) -> Any:
        traced.append(x.dtype)
        return x + 1

    for _ in range(3):
        function(VECTOR)
        function(COUNTS)
    function(VECTOR[:2])
    assert len(traced) == function.cache_size() == 3
    function.clear_cache()
    function(VECTOR)
    assert len(traced) == 4


def test_kinds_of_arrays_share_a_program() -> None:
    function = xlapy.jax.jit(lambda x: x + 1)
    same = [np.ones((), np.float32), np.float32(1), jnp.ones((), jnp.float32)]
    assert [float(function(x)) for x in same] == [2, 2, 2]
    assert len({id(function.executable(x)) for x in same}) == 1


def test_many_threads_compile_once() -> None:
    traced = []

    def function(x: Any) -> Any:
        traced.append(1)
        return x * 2

    compiled = xlapy.jax.jit(function)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(compiled, [VECTOR] * 16))
    assert len(traced) == 1
    assert all((result == VECTOR * 2).all() for result in results)


def test_methods() -> None:
    class Model:
        def __init__(self, scale: float) -> None:
            self.scale = scale

        @functools.partial(xlapy.jax.jit, static_argnums=0)
        def apply(self, x: Any) -> Any:
            return x * self.scale

    np.testing.assert_array_equal(Model(2.0).apply(VECTOR), VECTOR * 2)
    np.testing.assert_array_equal(Model(3.0).apply(VECTOR), VECTOR * 3)


def test_random_keys_go_in_and_come_out() -> None:
    keys = xlapy.jax.jit(jax.random.split)(jax.random.key(5))
    expected = jax.random.split(jax.random.key(5))
    assert keys.dtype == expected.dtype
    np.testing.assert_array_equal(jax.random.key_data(keys), jax.random.key_data(expected))


def test_gradients_of_integers_have_no_values() -> None:
    gradient = jax.grad(lambda x, n: (x * n).sum(), argnums=(0, 1), allow_int=True)
    of_floats, of_integers = xlapy.jax.jit(gradient)(VECTOR, COUNTS)
    np.testing.assert_array_equal(of_floats, COUNTS)
    assert of_integers.dtype == jax.dtypes.float0 and of_integers.shape == (3,)


def test_inspection() -> None:
    function = xlapy.jax.jit(lambda x, n: x * n, static_argnames="n", options=CompileOptions(num_threads=1))
    lowered = function.lower(jax.ShapeDtypeStruct((3,), np.float32), n=2)
    assert "stablehlo.multiply" in lowered.text
    assert [aval.shape for aval in lowered.in_avals] == [(3,)]
    np.testing.assert_array_equal(lowered.compile()(VECTOR), VECTOR * 2)
    executable = function.executable(VECTOR, n=2)
    assert executable.options.num_threads == 1
    np.testing.assert_array_equal(executable(VECTOR), VECTOR * 2)
    assert "stablehlo.add" in xlapy.jax.stablehlo(lambda x, y: x + y, VECTOR, y=1.0)
    assert function.__name__ == "<lambda>" and "lambda" in repr(function)


def test_sharding_annotations_pass_through() -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices("cpu")[:1]), ("x",))
    layout = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))

    def function(x: Any) -> Any:
        held = jax.lax.with_sharding_constraint(x * 2, layout)
        return jax.device_put(held, jax.devices("cpu")[0]) + 1

    assert_agree(function, VECTOR)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: jax.ffi.ffi_call("nobody_has_this", x)(x), "nobody_has_this.*CompileOptions"),
    ],
)
def test_what_cannot_run_is_refused_before_it_does(function: Any, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        xlapy.jax.jit(function)(VECTOR)


@pytest.mark.parametrize("transformed", [jax.grad, jax.vmap, jax.jit, lambda f: functools.partial(jax.eval_shape, f)])
def test_transformations_around_the_function_are_refused(transformed: Any) -> None:
    """XLA would run them, without a word."""
    with pytest.raises(UnsupportedError, match=r"put the transformation inside.*__wrapped__"):
        transformed(xlapy.jax.jit(jnp.sum))(VECTOR)


def test_functions_within_functions_become_part_of_them() -> None:
    @xlapy.jax.jit
    def inner(x: Any) -> Any:
        return {"sum": jnp.sum(jnp.sin(x))}

    scaled = xlapy.jax.jit(lambda x, n: x * n, static_argnums=1)

    def function(x: Any, plus: Any = inner, times: Any = scaled) -> Any:
        slopes = jax.grad(lambda x: plus(x)["sum"])(x)
        of_rows = jax.vmap(plus)(jnp.stack([x, 2 * x]))
        return slopes, of_rows, times(x, 3), times(jnp.ones(3), 2)

    def plain(x: Any) -> Any:
        return function(x, inner.__wrapped__, scaled.__wrapped__)

    got, wanted = xlapy.jax.jit(function)(VECTOR), jax.jit(plain)(VECTOR)
    assert jax.tree.structure(got) == jax.tree.structure(wanted)
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    assert inner(VECTOR)["sum"].dtype == np.float32  # and is a function of its own still
    assert inner.cache_size() == 1


def test_a_function_within_another_may_use_its_values() -> None:
    def function(x: Any) -> Any:
        return xlapy.jax.jit(lambda: x + 1)() + xlapy.jax.jit(lambda y: x * y)(np.float32(2))

    np.testing.assert_array_equal(xlapy.jax.jit(function)(VECTOR), VECTOR * 3 + 1)


def test_without_a_function_it_is_a_decorator() -> None:
    @xlapy.jax.jit(static_argnames="n", options=CompileOptions(num_threads=1))
    def times(x: Any, n: int) -> Any:
        return x * n

    np.testing.assert_array_equal(times(VECTOR, n=3), VECTOR * 3)
    assert times.executable(VECTOR, n=3).options.num_threads == 1


@xlapy.jax.jit
def decorated(x: Any) -> Any:
    return x + 1


def test_copies_and_pickles() -> None:
    assert copy.copy(decorated) is decorated and copy.deepcopy(decorated) is decorated
    assert pickle.dumps(decorated).count(b"decorated") == 1  # its name
    assert type(decorated).__reduce__(decorated) == "decorated"
    times = pickle.loads(pickle.dumps(xlapy.jax.jit(operator.mul, static_argnums=1, results="jax")))
    assert isinstance(times(VECTOR, 3), jax.Array)
    np.testing.assert_array_equal(times(VECTOR, 3), VECTOR * 3)


def test_references_of_its_own() -> None:
    def function(x: Any) -> Any:
        sum_of_squares = jax.new_ref(jnp.zeros((), x.dtype))
        jax.lax.fori_loop(0, 3, lambda i, _: sum_of_squares.__setitem__(..., sum_of_squares[...] + x[i] ** 2), None)
        return sum_of_squares[...]

    np.testing.assert_allclose(xlapy.jax.jit(function)(VECTOR), (VECTOR**2).sum(), rtol=1e-6)


def test_references_are_refused() -> None:
    reference = jax.new_ref(jnp.zeros(3, jnp.float32))

    def function(x: Any) -> Any:
        reference[...] = x
        return x

    with pytest.raises(UnsupportedError, match="effects besides its results"):
        xlapy.jax.jit(function)(VECTOR)


def test_custom_calls_that_are_given_run() -> None:
    options = CompileOptions(custom_calls={"twice": lambda x: x * 2})
    function = xlapy.jax.jit(lambda x: jax.ffi.ffi_call("twice", x)(x) + 1, options=options)
    np.testing.assert_array_equal(function(VECTOR), VECTOR * 2 + 1)


def test_custom_calls_get_their_attributes() -> None:
    seen: list[dict[str, Any]] = []

    def target(x: Any, **attributes: Any) -> Any:
        seen.append(attributes)
        return x

    attributes = {"number": np.int32(-3), "scale": np.float32(0.5), "text": 'a "b"', "on": True, "sizes": np.arange(3)}
    function = xlapy.jax.jit(
        lambda x: jax.ffi.ffi_call("target", x)(x, **attributes),
        options=CompileOptions(custom_calls={"target": target}),
    )
    function(VECTOR)
    assert seen == [{"number": -3, "scale": 0.5, "text": 'a "b"', "on": True, "sizes": (0, 1, 2)}]


def test_custom_calls_get_their_layouts() -> None:
    matrix = np.arange(6, dtype=np.float32).reshape(2, 3)

    def target(x: Any) -> Any:
        assert x.strides == (4, 8)
        return x * 2

    call = jax.ffi.ffi_call("target", matrix, input_layouts=[(1, 0)], output_layouts=(1, 0))
    options = CompileOptions(custom_calls={"target": target})
    np.testing.assert_array_equal(xlapy.jax.jit(call, options=options)(matrix), matrix * 2)
    looped = xlapy.jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda _, y: call(y), x), options=options)
    np.testing.assert_array_equal(looped(matrix), matrix * 8)


def test_leaves_that_are_no_arrays_are_refused() -> None:
    with pytest.raises(ArgumentError, match="a str is not an array or a scalar; make the argument static"):
        xlapy.jax.jit(lambda x: x)("text")
    for array, told in [
        (np.array([1, "a"], object), "no arrays of object"),
        (np.array(["text"]), "no arrays of str"),
        (np.array(["2026"], "datetime64[s]"), "no arrays of datetime64"),
        (np.zeros(2, [("x", "f4")]), "no arrays of void"),
        (VECTOR.astype(">f4"), r"no '>f4' arrays; .astype\('float32'\)"),
        (np.ma.array(VECTOR, mask=[True, False, False]), r"masked; .filled"),
        (jax.ShapeDtypeStruct((3,), np.float32), "has no values to call with"),
    ]:
        with pytest.raises(ArgumentError, match=told):
            xlapy.jax.jit(lambda x: x)(array)
    with pytest.raises(ArgumentError, match="compiles functions, not an int"):
        xlapy.jax.jit(3)
    with pytest.raises(ArgumentError, match="'numpy' or 'jax'"):
        xlapy.jax.jit(lambda x: x, results="list")
    with pytest.raises(OverflowError):
        xlapy.jax.jit(lambda x: x)(2**40)
    with pytest.raises(OverflowError):
        identity = xlapy.jax.jit(lambda x: x)
        identity(identity(1).item() + 2**40)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("num_threads", r"options=xlapy\.CompileOptions\(num_threads=\.\.\.\)"),
        ("opt_level", "there are no levels"),
        ("keep_unused", "all arguments are kept"),
        ("compiler_options", r"options=xlapy\.CompileOptions"),
        ("donate", r"donate_argnums=\(0, \.\.\.\)"),
        ("static_argnum", "did you mean 'static_argnums'"),
        ("donate_argname", "did you mean 'donate_argnames'"),
        ("frobnicate", "'frobnicate'$"),
    ],
)
def test_arguments_that_jit_has_not(name: str, told: str) -> None:
    with pytest.raises(ArgumentError, match=f"has no argument '{name}'.*{told}|has no argument {told}"):
        xlapy.jax.jit(jnp.tanh, **{name: 1})


@pytest.mark.parametrize("name", JITTED)
def test_what_executables_have_is_found_from_functions(name: str) -> None:
    function = xlapy.jax.jit(jnp.tanh)
    with pytest.raises(AttributeError, match=f"'{name}': ") as caught:
        getattr(function, name)
    found = re.search(r"executable\(\*arguments\)\.(\w+)", str(caught.value))
    assert not found or hasattr(xlapy.Executable, found[1])


def test_options_are_looked_at_before_anything_runs() -> None:
    with pytest.raises(ArgumentError, match="options are CompileOptions, not"):
        xlapy.jax.jit(jnp.tanh, options={"fast_math": True})  # type: ignore[arg-type]


def test_what_was_lowered_says_its_types_and_its_text() -> None:
    lowered = xlapy.jax.jit(jnp.tanh).lower(np.ones(3, np.float32))
    assert "stablehlo.tanh" in lowered.as_text()
    assert repr(lowered).startswith("<Lowered (float32[3]) -> (float32[3]), ")
