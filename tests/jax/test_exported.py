"""Artifacts of `jax.export`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import xlapy.jax
from xlapy import ArgumentError, ParseError, ShapeError, UnsupportedError

MATRIX = np.arange(12, dtype=np.float32).reshape(3, 4) / 7
SHAPE = jax.ShapeDtypeStruct((3, 4), np.float32)


def artifact(function: Callable[..., Any], *arguments: Any, **options: Any) -> export.Exported:
    return export.export(jax.jit(function), **options)(*arguments)


def layer(x: Any, weights: dict[str, Any], unused: Any, scale: Any) -> Any:
    return {"out": jnp.tanh(x @ weights["w"]) * scale, "w": [weights["w"]]}


@pytest.mark.parametrize("platforms", [["cpu"], ["tpu", "cpu"], ["tpu"]], ids=str)
def test_artifacts_are_called_like_their_functions(platforms: list[str]) -> None:
    weights = {"w": MATRIX.T.copy()}
    exported = artifact(layer, SHAPE, {"w": jax.ShapeDtypeStruct((4, 3), np.float32)}, SHAPE, 2.0, platforms=platforms)
    function = xlapy.jax.compile_exported(exported)
    result = function(MATRIX, weights, MATRIX, 3.0)
    np.testing.assert_allclose(result["out"], np.tanh(MATRIX @ MATRIX.T) * 3, rtol=1e-5)
    np.testing.assert_array_equal(result["w"][0], MATRIX.T)
    assert "exported layer" in repr(function)


def test_open_sizes_are_compiled_as_they_come() -> None:
    (size,) = export.symbolic_shape("n")
    exported = export.export(jax.jit(lambda x: (x.sum(0) / x.shape[0], jnp.tanh(x))))(
        jax.ShapeDtypeStruct((size, 4), np.float32)
    )
    function = xlapy.jax.compile_exported(exported)
    for rows in (1, 3, 2, 3):
        mean, squashed = function(MATRIX[:rows])
        np.testing.assert_allclose(mean, MATRIX[:rows].mean(0), rtol=1e-6)
        np.testing.assert_allclose(squashed, np.tanh(MATRIX[:rows]), rtol=1e-6)
    assert function.executable.specializations == ((1,), (3,), (2,))


def test_open_sizes_of_what_needs_more_than_arithmetic() -> None:
    """Sizes that are sums and products of others, dynamic gathers and slices, loops, random numbers, several trees."""
    rows, columns = export.symbolic_shape("n, m")

    def function(batch: dict[str, Any], seed: Any) -> Any:
        x, y = batch["x"], batch["y"]
        joined = jnp.concatenate([x, x[::2]]) @ y.T
        key = jax.random.key(seed)
        noise = jax.random.normal(key, x.shape)
        return {
            "joined": joined.reshape(-1),
            "means": jnp.mean(x, 1),
            "sorted": jnp.sort(x, 0)[-1],
            "scan": jax.lax.scan(lambda c, row: (c + row, c.sum()), jnp.zeros(x.shape[1]), x),
            "noise": noise + jnp.arange(x.shape[0])[:, None],
            "at": x.at[jnp.arange(x.shape[0]) // 2].add(1),
            "padded": jnp.pad(x, ((1, 2), (0, 3))),
            "slope": jax.grad(lambda x: jnp.sum(jax.nn.softmax(x) ** 2))(x),
        }

    shapes = {"x": (rows, columns), "y": (3, columns)}
    structs = {name: jax.ShapeDtypeStruct(shape, np.float32) for name, shape in shapes.items()}
    exported = artifact(function, structs, jax.ShapeDtypeStruct((), np.uint32), platforms=["tpu", "cpu"])
    ours = xlapy.jax.compile_exported(exported)
    for dims in ((3, 4), (1, 2)):
        arguments = {"x": MATRIX[: dims[0], : dims[1]], "y": MATRIX[:, : dims[1]] + 1}, np.uint32(3)
        expected = jax.jit(function)(*arguments)
        result = ours(*arguments)
        assert jax.tree.structure(result) == jax.tree.structure(expected)
        for got, want in zip(jax.tree.leaves(result), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_sizes_that_were_excluded_are_refused() -> None:
    scope = export.SymbolicScope(["n >= 2"])
    shape = jax.ShapeDtypeStruct(export.symbolic_shape("n, 4", scope=scope), np.float32)
    function = xlapy.jax.compile_exported(artifact(lambda x, y: x + y, shape, shape))
    np.testing.assert_array_equal(function(MATRIX, MATRIX), MATRIX * 2)
    with pytest.raises(ShapeError, match=r"n >= 2|n - 2"):
        function(MATRIX[:1], MATRIX[:1])
    with pytest.raises(ShapeError, match="size"):
        function(MATRIX, MATRIX[:2])
    with pytest.raises(ArgumentError, match=r"is float32\[3, 3\] now"):
        function(MATRIX, MATRIX[:, :3])
    with pytest.raises(ArgumentError, match=r"is float32\[4\] now"):
        function(MATRIX, MATRIX[0])


def test_functions_that_call_artifacts_with_open_sizes() -> None:
    (size,) = export.symbolic_shape("n")
    exported = artifact(lambda x: x.sum(0) / x.shape[0], jax.ShapeDtypeStruct((size, 4), np.float32))
    function = xlapy.jax.jit(lambda x: exported.call(x) + exported.call(x[1:]))
    np.testing.assert_allclose(function(MATRIX), MATRIX.mean(0) + MATRIX[1:].mean(0), rtol=1e-6)


def test_jax_arrays_come_out_if_wanted() -> None:
    function = xlapy.jax.compile_exported(artifact(lambda x: x + 1, SHAPE), results="jax")
    assert isinstance(function(jnp.asarray(MATRIX)), jax.Array)


def test_wide_inputs_count_as_narrow_ones_without_x64() -> None:
    function = xlapy.jax.compile_exported(artifact(lambda x: x + 1, SHAPE))
    np.testing.assert_array_equal(function(MATRIX.astype(np.float64)), MATRIX + 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "was exported for arguments like"),
        ((MATRIX[:2],), r"leaf 0 of the arguments of .* was exported as float32\[3,4\], and is float32\[2, 4\] now"),
        ((MATRIX.astype(np.int32),), r"is int32\[3, 4\] now"),
        ((2.0,), r"is float\[\] now"),
    ],
)
def test_other_arguments_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        xlapy.jax.compile_exported(artifact(lambda x: x + 1, SHAPE))(*arguments)


def test_effects_are_refused() -> None:
    exported = dataclasses.replace(artifact(lambda x: x, SHAPE), unordered_effects=("Debug",))
    with pytest.raises(UnsupportedError, match=r"effects .*: Debug"):
        xlapy.jax.compile_exported(exported)


def test_serialized_bytes_are_read() -> None:
    pytest.importorskip("flatbuffers")  # JAX's own requirement for this
    blob = artifact(lambda x, y: {"sum": x + y}, SHAPE, 2.0).serialize()
    for form in (blob, bytes(blob)):
        np.testing.assert_array_equal(xlapy.jax.compile_exported(form)(MATRIX, 1.0)["sum"], MATRIX + 1)


@pytest.mark.parametrize("given", [None, 3, "x", [1, 2], np.zeros(2)], ids=str)
def test_what_is_no_artifact(given: Any) -> None:
    with pytest.raises(ArgumentError, match="what JAX exported is an Exported"):
        xlapy.jax.compile_exported(given)


def test_bytes_of_something_else() -> None:
    whole = export.export(jax.jit(jnp.sin), platforms=["cpu"])(np.float32(1)).serialize()
    for damaged in (b"", b"\0\xff", bytes(range(256)) * 4, bytes(whole[: len(whole) // 2])):
        with pytest.raises(ParseError, match="no function that JAX exported"):
            xlapy.jax.compile_exported(damaged)
    with pytest.raises(ParseError, match="no module in MLIR's binary form"):
        xlapy.jax.compile_exported(bytes(whole).replace(b"func_v1", b"\xff" * 7))


def test_what_the_compiler_says_of_artifacts() -> None:
    exported = artifact(lambda x: x * 2, SHAPE)
    with pytest.raises(ParseError, match=r"xlapy\.jax\.compile_exported\(them\) makes a function of them"):
        xlapy.compile(bytes(exported.serialize()))
    with pytest.raises(ParseError, match=r"xlapy\.jax\.compile_exported makes a function of it"):
        xlapy.compile(exported)  # type: ignore[arg-type]
    np.testing.assert_array_equal(xlapy.compile(exported.mlir_module())(MATRIX), MATRIX * 2)
