"""Convolutions, pooling, scans and batch normalization, and their gradients, against XLA:CPU.

Many cases make one program, since XLA's time to compile is what counts.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlapy
from xlapy import stablehlo
from xlapy.hlo.evaluate import evaluate
from xlapy.hlo.text import parse

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")
lax = pytest.importorskip("jax.lax")

GENERATOR = np.random.default_rng(17)


def normal(*dims: int) -> Any:
    return GENERATOR.normal(size=dims).astype(np.float32)


TOLERANCES = {"bfloat16": 2e-2, "float16": 4e-3}


def check(function: Callable[..., Any], *arguments: Any) -> None:
    """Native code and the evaluator, on StableHLO and on HLO text, agree with XLA."""
    lowered = jax.jit(function, keep_unused=True).lower(*arguments)
    wanted = [np.asarray(leaf) for leaf in jax.tree.leaves(lowered.compile()(*arguments))]
    module = stablehlo.parse(lowered.as_text())
    from_hlo = parse(lowered.as_text(dialect="hlo"))
    assert stablehlo.parse(stablehlo.to_text(module)).signature == module.signature
    for got in (
        xlapy.compile(module)(*arguments),
        evaluate(module, *arguments),
        xlapy.compile(from_hlo)(*arguments),
    ):
        results = got if isinstance(got, tuple) else (got,)
        for number, (one, other) in enumerate(zip(results, wanted, strict=True)):
            assert one.dtype == other.dtype
            tolerance = TOLERANCES.get(str(other.dtype), 1e-4)
            kind = np.complex128 if other.dtype.kind == "c" else np.float64
            one, other = one.astype(kind), other.astype(kind)
            finite = other[np.isfinite(other)]
            scale = max(1.0, float(np.abs(finite).max())) if finite.size else 1.0
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * scale, err_msg=f"case {number}")


LABELS_2D = [
    ("NHWC", "HWIO", "NHWC"),
    ("NCHW", "OIHW", "NCHW"),
    ("NHWC", "OHWI", "NCHW"),
    ("CWNH", "IWHO", "HNCW"),
]


def arranged(array: Any, source: str, target: str) -> Any:
    return jnp.transpose(array, [source.index(letter) for letter in target])


@pytest.mark.parametrize("labels", LABELS_2D, ids=["-".join(labels) for labels in LABELS_2D])
def test_convolutions_of_planes(labels: tuple[str, str, str]) -> None:
    def program(x: Any, k: Any, grouped: Any, depthwise: Any) -> list[Any]:
        x = arranged(x, "NHWC", labels[0])
        results = []
        for strides, padding, lhs_dilation, rhs_dilation in [
            ((1, 1), "SAME", (1, 1), (1, 1)),
            ((2, 1), ((0, 1), (2, 1)), (1, 1), (1, 2)),
            ((1, 2), ((-1, 2), (1, -1)), (2, 3), (1, 1)),
            ((3, 2), ((2, 2), (0, 0)), (2, 1), (2, 2)),
        ]:
            for kernel, groups, batch_groups in [(k, 1, 1), (grouped, 2, 1), (depthwise, 4, 1), (k, 1, 2)]:
                results.append(
                    lax.conv_general_dilated(
                        x,
                        arranged(kernel, "HWIO", labels[1]),
                        strides,
                        padding,
                        lhs_dilation,
                        rhs_dilation,
                        labels,
                        groups,
                        batch_groups,
                    )
                )
        return results

    check(program, normal(2, 9, 11, 4), normal(3, 2, 4, 18), normal(3, 2, 2, 18), normal(3, 2, 1, 8))


def test_convolutions_of_lines_and_spaces() -> None:
    def program(line: Any, space: Any, points: Any) -> list[Any]:
        lines = [
            lax.conv_general_dilated(line, line[:4, :, :3], (stride,), ((2, 2),), (base,), (dilation,), labels)
            for stride, base, dilation in itertools.product((1, 2), (1, 2), (1, 2))
            for labels in [("NWC", "OWI", "NWC"), ("NCW", "OIW", "NCW")][:1]
        ]
        spaces = lax.conv_general_dilated(space, space[:2, :, :2, :3, :2], (1, 2, 1), "SAME")
        dense = lax.conv_general_dilated(points, points[:5], (), ())
        return [*lines, spaces, dense, lax.conv(space[:, :, 0], space[:, :, 1, :2, :2], (2, 2), "VALID")]

    check(program, normal(6, 20, 3)[..., :3], normal(2, 3, 5, 6, 7), normal(7, 3))


def test_convolutions_in_other_types() -> None:
    def along(x: Any, outputs: int, wanted: Any = None) -> Any:
        """A row of `x` as the kernel."""
        kernel = x[0, :3].reshape(3, 4 // outputs, outputs) if outputs > 1 else x[0, :3].reshape(3, 4, 1)
        groups = 4 // kernel.shape[1]
        return lax.conv_general_dilated(
            x,
            kernel if groups == 1 else jnp.tile(kernel, (1, 1, groups)),
            (1,),
            "SAME",
            dimension_numbers=("NWC", "WIO", "NWC"),
            feature_group_count=groups,
            preferred_element_type=wanted,
        )

    def program(integers: Any, short: Any, f16: Any, bf16: Any, waves: Any) -> list[Any]:
        plain = [along(x, outputs) for x in (integers, f16, bf16, waves) for outputs in (1, 2)]
        return [*plain, along(short, 1, jnp.int32), along(bf16, 1, jnp.float32)]

    integers = GENERATOR.integers(-9, 9, (2, 12, 4)).astype(np.int32)
    waves = (normal(2, 12, 4) + 1j * normal(2, 12, 4)).astype(np.complex64)
    f16, bf16 = normal(2, 12, 4).astype(np.float16), normal(2, 12, 4).astype(jnp.bfloat16)
    check(program, integers, integers.astype(np.int8), f16, bf16, waves)


def test_gradients_of_convolutions() -> None:
    def program(x: Any, k: Any, depthwise: Any) -> list[Any]:
        results: list[Any] = []
        for labels in (("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")):
            for kernel, groups, strides in [(k, 1, (1, 1)), (k, 1, (2, 2)), (depthwise, 4, (1, 1))]:

                def loss(x: Any, k: Any, labels: Any = labels, groups: int = groups, strides: Any = strides) -> Any:
                    moved = arranged(x, "NHWC", labels[0]), arranged(k, "HWIO", labels[1])
                    out = lax.conv_general_dilated(
                        *moved, strides, "SAME", dimension_numbers=labels, feature_group_count=groups
                    )
                    return (out * out).sum()

                results += jax.grad(loss, (0, 1))(x, kernel)
        return results

    check(program, normal(2, 8, 9, 4), normal(3, 3, 4, 16), normal(3, 3, 1, 8))


def test_pooling_and_its_gradients() -> None:
    def pooled(x: Any, fold: Any, init: Any, window: Any, strides: Any, padding: Any, base: Any, dilation: Any) -> Any:
        return lax.reduce_window(x, init, fold, window, strides, padding, base, dilation)

    def program(x: Any, i: Any) -> list[Any]:
        settings = [
            ((1, 2, 2, 1), (1, 2, 2, 1), "VALID", (1, 1, 1, 1), (1, 1, 1, 1)),
            ((1, 3, 3, 1), (1, 2, 1, 1), "SAME", (1, 1, 1, 1), (1, 1, 1, 1)),
            ((1, 1, 3, 2), (1, 1, 2, 2), ((0, 0), (1, 0), (2, 1), (0, 0)), (1, 1, 1, 1), (1, 2, 2, 1)),
            ((2, 1, 2, 2), (1, 3, 1, 1), "VALID", (1, 2, 1, 2), (1, 1, 2, 1)),
        ]
        results = []
        for setting in settings:
            for fold, init in ((lax.add, 0.0), (lax.max, -jnp.inf), (lax.min, jnp.inf), (lax.mul, 1.0)):
                results.append(pooled(x, fold, init, *setting))
            results.append(pooled(i, lax.max, jnp.int32(-(2**31)), *setting))
            if setting[-2:] == ((1, 1, 1, 1), (1, 1, 1, 1)):
                for fold, init in ((lax.add, 0.0), (lax.max, -jnp.inf)):
                    results.append(jax.grad(lambda x, f=fold, i=init, s=setting: (pooled(x, f, i, *s) ** 2).sum())(x))
        return results

    check(program, normal(2, 7, 9, 8), GENERATOR.integers(-99, 99, (2, 7, 9, 8)).astype(np.int32))


def test_windows_of_several_arrays() -> None:
    def largest(one: Any, other: Any) -> Any:
        keeps = (one[0] > other[0]) | ((one[0] == other[0]) & (one[1] < other[1]))
        return jnp.where(keeps, one[0], other[0]), jnp.where(keeps, one[1], other[1])

    def program(x: Any) -> Any:
        places = lax.broadcasted_iota(jnp.int32, x.shape, 1)
        inits = (jnp.float32(-jnp.inf), jnp.int32(99))
        return lax.reduce_window((x, places), inits, largest, (1, 3), (1, 2), "SAME")

    check(program, normal(5, 12))


def test_cumulative_scans() -> None:
    def program(x: Any, i: Any, half: Any, special: Any) -> list[Any]:
        scans = (lax.cumsum, lax.cumprod, lax.cummax, lax.cummin, lax.cumlogsumexp)
        results = [scan(x, axis, reverse) for scan in scans for axis in (1, 2) for reverse in (False, True)]
        results += [scan(i, 1, reverse) for scan in scans[:4] for reverse in (False, True)]
        results += [scan(half, axis) for scan in scans[:1] for axis in (0, 1)]
        results += [scan(special) for scan in scans]
        return [*results, jax.grad(lambda x: (lax.cumsum(x, 1) ** 2).sum())(x)]

    special = np.array([1, -np.inf, 2, np.inf, 3, np.nan, 0, 1, 1], np.float32)
    check(
        program,
        normal(5, 12, 17),
        GENERATOR.integers(-3, 3, (4, 33)).astype(np.int32),
        normal(40, 12).astype(jnp.bfloat16),
        special,
    )


def test_batch_normalization() -> None:
    """JAX does not record the operation: its formula and the gradient of that stand in."""

    def program(x: Any, scale: Any, offset: Any) -> Any:
        mean, variance = x.mean((0, 1)), x.var((0, 1))
        return scale * (x - mean) / jnp.sqrt(variance + 1e-3) + offset, mean, variance

    x, scale, offset = normal(4, 6, 5), normal(5), normal(5)
    cotangent = normal(4, 6, 5)
    _, pull = jax.vjp(lambda *args: program(*args)[0], x, scale, offset)
    text = """
    ENTRY main {
      x = f32[4,6,5] parameter(0)
      scale = f32[5] parameter(1)
      offset = f32[5] parameter(2)
      dy = f32[4,6,5] parameter(3)
      t = (f32[4,6,5], f32[5], f32[5]) batch-norm-training(x, scale, offset), epsilon=0.001, feature_index=2
      mean = f32[5] get-tuple-element(t), index=1
      variance = f32[5] get-tuple-element(t), index=2
      g = (f32[4,6,5], f32[5], f32[5]) batch-norm-grad(x, scale, mean, variance, dy), epsilon=0.001, feature_index=2
      ROOT r = ((f32[4,6,5], f32[5], f32[5]), (f32[4,6,5], f32[5], f32[5])) tuple(t, g)
    }"""
    wanted = [*program(x, scale, offset), *pull(cotangent)]
    for got in (
        xlapy.compile(parse(text))(x, scale, offset, cotangent),
        evaluate(parse(text), x, scale, offset, cotangent),
    ):
        for one, other in zip([*got[0], *got[1]], wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-4)
