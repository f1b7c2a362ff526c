"""Where each law fires in a program of JAX, or in what another front end writes: none is there for its test alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

import xlapy
import xlapy.jax
from xlapy.hlo.graph import HloModule
from xlapy.passes.pipelines import PipelineOptions, cpu_pipeline
from xlapy.passes.rewrite import LAWS

X = np.arange(30, dtype=np.float32).reshape(6, 5) / 7
W = np.arange(20, dtype=np.float32).reshape(5, 4) / 9
V = np.arange(5, dtype=np.float32) / 3
N = np.array([0, 2, 1, 3, 3, 0], np.int32)
U = np.arange(6, dtype=np.uint32)
B = X > 1
Z = X.astype(np.complex64)
HALF = X.astype(ml_dtypes.bfloat16)
IMAGES = np.ones((2, 8, 8, 3), np.float32)


@dataclass(frozen=True)
class Program:
    """A function, what it is called with, and the laws that it is cited for."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    laws: str


def cross_entropy(weights: Any, x: Any, labels: Any) -> Any:
    logits = jax.nn.log_softmax(x @ weights)
    return -jnp.mean(jnp.take_along_axis(logits, labels[:, None], 1))


def attention(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("qd,kd->qk", q, k) / jnp.sqrt(q.shape[-1])
    return jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((6, 6), bool)), scores, -1e9)) @ v


def normalized(x: Any, axis: int) -> Any:
    return (x - x.mean(axis, keepdims=True)) / jnp.sqrt(x.var(axis, keepdims=True) + 1e-5)


def swung(state: Any, step: Any) -> Any:
    angle, speed = state + step * jnp.stack([state[1], -state[0]])
    return angle - speed


def convolved(x: Any, kernel: Any, stride: int = 1, groups: int = 1) -> Any:
    numbers = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(
        x, kernel, (stride, stride), "SAME", dimension_numbers=numbers, feature_group_count=groups
    )


def pooled(x: Any, size: int) -> Any:
    window = (1, size, size, 1)
    return lax.reduce_window(x, -jnp.inf, lax.max, window, window, "VALID")


def averaged(x: Any, size: int) -> Any:
    window = (1, size, size, 1)
    return lax.reduce_window(x, 0.0, lax.add, window, window, "VALID") / size**2


def update(x: Any, rows: int) -> Any:
    numbers = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    return lax.scatter_add(x, jnp.zeros((rows, 1), int), jnp.ones((rows, 5)), numbers)


def recurrence(earlier: Any, later: Any) -> Any:
    return earlier[0] * later[0], earlier[1] * later[0] + later[1]


PROGRAMS = {
    "linear recurrence": Program(lambda a, b: lax.associative_scan(recurrence, (a, b)), (X, X), "add-interleaved"),
    "true so far": Program(lambda x: lax.associative_scan(jnp.logical_and, x, axis=1), (B,), "or-interleaved"),
    "pivots, which LAPACK counts from 1": Program(
        lambda x: jax.scipy.linalg.lu_factor(x @ x.T)[1], (W,), "subtract-constant-from-sum"
    ),
    "inverses of many matrices": Program(
        jax.vmap(jnp.linalg.inv), (np.arange(45, dtype=np.float32).reshape(5, 3, 3) ** 2,), "transpose-of-gather"
    ),
    # networks
    "softmax": Program(jax.nn.softmax, (X,), "maximum-with-lowest merge-reshapes broadcast-nothing"),
    "cross entropy": Program(
        jax.grad(cross_entropy),
        (W, X, N),
        "scatter-of-one-per-row reshape-of-broadcast splat-constant merge-broadcasts transpose-of-dot",
    ),
    "attention": Program(attention, (X, X, X), "add-zero select-itself convert-to-same"),
    "gradient of attention": Program(
        jax.grad(lambda x: attention(x, x, x).sum()),
        (X,),
        "add-negated dot-with-ones-left transpose-of-broadcast reshape-around-elementwise",
    ),
    "gelu": Program(jax.nn.gelu, (X,), "one-and-tanh"),
    "step": Program(lambda x: jnp.where(x > 0, 1.0, 0.0), (X,), "select-one-or-zero"),
    "probabilities": Program(jax.scipy.stats.norm.cdf, (X,), "normal-distribution"),
    "a step of a pendulum": Program(swung, (jnp.ones(2), 0.1), "element-of-vector"),
    "quantiles": Program(lambda x: jax.scipy.special.ndtri(x / 5), (X,), "select-of-one-op"),
    "normalization": Program(jax.grad(lambda x: (normalized(x, 0) ** 3).sum()), (X,), "select-true multiply-one"),
    "mean squared error": Program(
        jax.grad(lambda b, x: jnp.mean((x + b - 1) ** 2)), (V, X), "add-zero-to-positive-zero"
    ),
    "gradient of a bias": Program(
        jax.grad(lambda b, x: jnp.mean(x + b)), (V, X), "elementwise-of-broadcasts sum-of-repeated reduce-of-one"
    ),
    "wide and deep": Program(
        lambda wide, deep, weights: jax.nn.sigmoid(jnp.concatenate([wide, jax.nn.relu(deep)], 1) @ weights),
        (np.ones((64, 96), np.float32), np.ones((64, 64), np.float32), np.ones((160, 1), np.float32)),
        "dot-of-joined-left",
    ),
    "quantized layer": Program(
        lambda x, w, scale: (x.astype(jnp.int32) @ w.astype(jnp.int32)) * scale,
        (np.ones((4, 32), np.int8), np.ones((32, 8), np.int8), np.float32(0.1)),
        "dot-of-widened-bytes",
    ),
    "quantized convolution": Program(
        lambda x, k: convolved(x.astype(jnp.int32), k.astype(jnp.int32)),
        (IMAGES.astype(np.int8), np.ones((3, 3, 3, 4), np.int8)),
        "convolution-of-widened-bytes",
    ),
    "checksums": Program(
        lambda x, y: x @ y,
        (np.ones((64, 32), np.uint32), np.ones(32, np.uint32)),
        "dot-of-other-integers",
    ),
    "convolution of bf16 to few features": Program(
        convolved, (IMAGES.astype(jnp.bfloat16), np.ones((3, 3, 3, 2), jnp.bfloat16)), "convolution-of-narrow-floats"
    ),
    "attention over a memory": Program(
        lambda scores, memory, values: jax.nn.softmax(scores) @ jnp.concatenate([memory, values]),
        (np.ones((1, 192), np.float32), np.ones((128, 64), np.float32), np.ones((64, 64), np.float32)),
        "dot-of-joined-right",
    ),
    "strided convolution": Program(
        jax.grad(lambda x, k: (convolved(x, k, 2) ** 2).sum()),
        (IMAGES.astype(jnp.bfloat16), np.ones((3, 3, 3, 4), jnp.bfloat16)),
        "reversed-kernel dilated-input-by-phases kernel-with-features-last merge-slices",
    ),
    "gradient of patches": Program(
        jax.grad(lambda x, k: (convolved(x, k, 4) ** 2).sum()),
        (IMAGES.astype(jnp.bfloat16), np.ones((4, 4, 3, 8), jnp.bfloat16)),
        "windows-that-meet-one-element",
    ),
    "similarities of pairs": Program(
        lambda x, y: jnp.einsum("bi,bi->b", x, y),
        (np.ones((64, 32), np.float32), np.ones((64, 32), np.float32)),
        "dot-without-free-dims",
    ),
    "brightest of each neighbourhood": Program(
        lambda image: lax.reduce_window(image, jnp.uint8(0), lax.max, (5, 5), (1, 1), "SAME"),
        (np.ones((32, 32), np.uint8),),
        "reduce-window-by-dims",
    ),
    "gradient of pairs": Program(
        jax.grad(lambda x: (x[::2] * x[1::2]).sum()),
        (X,),
        "add-interleaved",
    ),
    "gradient of running products": Program(
        jax.grad(lambda x: (jnp.cumprod(x, axis=1) ** 2).sum()),
        (np.linspace(0.5, 1.5, 26, dtype=np.float32).reshape(2, 13),),
        "add-stretched",
    ),
    "gradient of pairs and of all": Program(
        jax.grad(lambda x: (x[::2] * x[1::2]).sum() + (x**3).sum()),
        (X,),
        "add-stretched-first",
    ),
    "gradient of triples": Program(
        jax.grad(lambda x: (x[::3] * x[1::3] * x[2::3]).sum()),
        (np.ones((6, 4), np.float32),),
        "add-stretched",
    ),
    "shades of grey": Program(
        lambda image, weights: (image.astype(np.float32) @ weights).astype(np.uint8),
        (np.ones((16, 16, 3), np.uint8), np.ones(3, np.float32)),
        "dot-with-few-factors",
    ),
    "correlation of channels": Program(
        lambda x, y: jnp.einsum("bchw,bdhw->cd", x, y),
        (np.ones((2, 3, 8, 8), np.float32), np.ones((2, 4, 8, 8), np.float32)),
        "dot-of-depth-in-parts",
    ),
    "pointwise convolution": Program(convolved, (IMAGES, np.ones((1, 1, 3, 4), np.float32)), "convolution-as-dot"),
    "gradient of a grouped convolution": Program(
        jax.grad(lambda x, k: (convolved(x, k, groups=2) ** 2).sum()),
        (np.ones((2, 8, 8, 8), np.float32), np.ones((3, 3, 4, 16), np.float32)),
        "merge-transposes-around-reshape reverse-of-reshaped-transpose reverse-of-transpose",
    ),
    "features first": Program(
        lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME"),
        (np.ones((8, 16, 32, 32), np.float32), np.ones((32, 16, 3, 3), np.float32)),
        "features-last",
    ),
    "two features": Program(
        convolved,
        (np.ones((4, 64, 64, 16), np.float32), np.ones((3, 3, 16, 2), np.float32)),
        "places-beside-few-features",
    ),
    "global pooling": Program(lambda x: pooled(x, 8), (IMAGES,), "reduce-window-of-all"),
    "sums over more than there is": Program(
        lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 16), (1, 1), "SAME"), (X,), "reduce-window-beside-elements"
    ),
    "gradient of pooling": Program(jax.grad(lambda x: pooled(x, 2).sum()), (IMAGES,), "pad-nothing"),
    "gradient of means": Program(
        jax.grad(lambda x: jnp.sin(averaged(x, 2)).sum()), (IMAGES,), "reduce-window-of-one-each"
    ),
    "pooling of single pixels": Program(
        jax.grad(lambda x: (pooled(x, 1) ** 2).sum()), (IMAGES,), "reduce-window-of-one select-and-scatter-of-one"
    ),
    "positions": Program(
        lambda x: x + jnp.sin(jnp.arange(6)[:, None] / 10000 ** (jnp.arange(5) / 5)),
        (X,),
        "broadcast-of-iota reshape-of-iota convert-of-iota",
    ),
    "random numbers": Program(
        lambda seed: jax.random.uniform(jax.random.key(seed), (4,)),
        (np.uint32(3),),
        "slice-of-concatenate slice-of-broadcast subtract-zero and-ones",
    ),
    # arithmetic
    "powers": Program(
        lambda x: [jnp.power(x, float(n)) for n in (0, 1, 2, 3, 0.5, 1.5)],
        (X,),
        "power-zero power-one power-two power-of-small-integer power-one-half power-three-halves",
    ),
    "signs": Program(
        lambda x: (
            jnp.negative(-x),
            x - (-x),
            (-x) * (-x),
            -jnp.sin(x) * jnp.sin(x),
            -(x * 3.0),
            abs(-x),
            abs(abs(x)),
            abs(x * x),
            abs(jnp.exp(x)),
        ),
        (X,),
        "negate-twice subtract-negated product-of-negated negated-times-itself negated-times-number abs-of-negated "
        "abs-of-abs abs-of-square abs-of-positive",
    ),
    "constants": Program(
        lambda x: (x + -0.0, x + 0.0, x * -1.0, x / 1.0, x / 2.0, x / 3.0, (x * 3.0) * 5.0, x * 0.0, x - x),
        (X,),
        "add-negative-zero add-positive-zero multiply-minus-one divide-by-one divide-by-power-of-two "
        "divide-by-constant merge-float-constants multiply-float-zero subtract-float-self",
    ),
    "functions": Program(
        lambda x: (
            *(jnp.log(jnp.exp(x)), jnp.exp(x) * jnp.exp(-x), x / jnp.exp(x)),
            *(x / jnp.sqrt(x), jnp.sqrt(x) * jnp.sqrt(x), jnp.exp(jnp.zeros(5)), jnp.floor(jnp.floor(x))),
        ),
        (X,),
        "log-of-exponential product-of-exponentials divide-by-exponential divide-by-root square-of-root "
        "function-at-known-place round-twice",
    ),
    "integers": Program(
        lambda n: (-(n - 1), n - n, n * 0, (n + 1) + 2, (n * 3) * 5, n * 3 + n * 5, n % 1),
        (N,),
        "negate-difference subtract-self multiply-zero add-constants multiply-constants factor-out remainder-of-one",
    ),
    "bounds": Program(
        lambda x, n: (
            jnp.minimum(x, jnp.inf) + jnp.maximum(x, x),
            lax.clamp(0.0, lax.clamp(0.0, x, 1.0), 1.0),
            lax.clamp(jnp.int32(-(2**31)), n, jnp.int32(2**31 - 1)),
        ),
        (X, N),
        "minimum-with-highest extremum-of-same clamp-twice clamp-to-everything",
    ),
    "complex numbers": Program(
        lambda x, z: (lax.complex(x, x).real, lax.complex(x, x).imag, lax.complex(z.real, z.imag)),
        (X, Z),
        "real-of-complex imag-of-complex complex-of-parts",
    ),
    "bits": Program(
        lambda u: (
            u & u,
            u ^ u,
            u << 0,
            u & 0,
            ~~u,
            u | (u & 7),
            (u ^ U) ^ U,
            (u & 12) & 10,
            u | np.uint32(2**32 - 1),
            u | 0,
        ),
        (U,),
        "idempotent xor-self shift-by-zero and-zero not-twice absorb xor-twice merge-masks or-ones or-zero",
    ),
    "truth": Program(
        lambda b, n, x, u: (b & ~b, n <= n, x < x, ~(n < 3), (n > 0) == True, (n > 0) == False, u >= 0),  # noqa: E712
        (B, N, X, U),
        "and-with-own-negation compare-self float-below-itself not-of-comparison compare-pred-with-false "
        "compare-pred-negated unsigned-below-zero",
    ),
    "choices": Program(
        lambda b, x, u: (
            *(jnp.where(b, x, x), jnp.where(~b, x, 0.0), jnp.where(b, jnp.where(b, x, 1.0), 2.0)),
            *(jnp.where(b, x, jnp.where(b, 1.0, x + 1)), jnp.where(b, False, True), b.astype(np.int32).astype(bool)),
            jnp.where(u < 0, u + 1, u),
        ),
        (B, X, U),
        "select-same select-not select-of-taken select-of-refused select-negation compare-of-converted-pred "
        "select-false",
    ),
    "slopes": Program(
        jax.value_and_grad(lambda x: jax.nn.relu(jnp.sin(x)).sum()),
        (X,),
        "compare-what-is-limited",
    ),
    "narrow floats": Program(
        lambda h: (h.astype(np.float32).T.astype(h.dtype), h.astype(np.float32).astype(h.dtype), jax.nn.silu(h)),
        (HALF,),
        "movement-between-conversions convert-through-wider logistic-of-narrow",
    ),
    # shapes
    "moves": Program(
        lambda x: (x.T.T, jnp.tanh(x.T).T, jnp.flip(jnp.flip(x)) + x, jnp.flip(x[:1], 0), x[1:5][1:3], x[0:6]),
        (X,),
        "transpose-nothing merge-transposes transpose-around-elementwise reverse-twice reverse-nothing",
    ),
    "repetitions": Program(
        lambda v, i: (
            jnp.flip(jnp.broadcast_to(v, (6, 5))),
            lax.dynamic_slice(jnp.broadcast_to(v, (6, 5)), (i, 0), (1, 3)),
        ),
        (V, np.int32(1)),
        "reverse-of-broadcast dynamic-slice-of-broadcast",
    ),
    "joins": Program(
        lambda x: (
            *(jnp.concatenate(jnp.split(x, 3)), jnp.concatenate([x, jnp.concatenate([x, x + 1])]), jnp.roll(x, 0, 0)),
            *(jnp.concatenate([x, x[:0]]), jnp.concatenate([jnp.zeros((3, 5)), jnp.zeros((3, 5))]) + x),
        ),
        (X,),
        "concatenate-of-neighbours concatenate-nested concatenate-one concatenate-empty concatenate-of-same-number "
        "slice-everything",
    ),
    "padding": Program(
        lambda x: (
            *(jnp.pad(x, 2)[3:5, 3:5], jnp.pad(x, 1)[:, :1], jnp.pad(jnp.pad(x, 1), 2)),
            *(x + jnp.pad(jnp.zeros((4, 3)), 1), jnp.pad(x, ((0, 0), (1, 2))).sum(1)),
        ),
        (X,),
        "slice-of-pad slice-of-padding merge-pads pad-of-same-number reduce-of-padded",
    ),
    "gradient of padding": Program(jax.grad(lambda x: (jnp.pad(x, 1)[:3] ** 2).sum()), (X,), "pad-inward"),
    "counting": Program(
        lambda x: (
            *(x + jnp.arange(10.0)[:5], x + lax.broadcasted_iota(np.float32, (5, 6), 0).T),
            *(x + jnp.arange(1.0), x[jnp.arange(3)]),
        ),
        (X,),
        "slice-of-iota transpose-of-iota iota-of-one iota-below-zero gather-of-range",
    ),
    # folds, products, indices
    "folds": Program(
        lambda x: (
            *(x.T.sum(0), x[:, None].sum((1, 2)), x[:0].sum(0), jnp.broadcast_to(x, (7, 6, 5)).max(0)),
            *(x.max(0).max(), x.sum(0).sum(0), x.reshape(2, 3, 5).sum((0, 1)), jnp.vdot(x, jnp.sin(x))),
        ),
        (X,),
        "reduce-of-transpose reduce-of-expanded reduce-empty reduce-of-repeated reduce-of-reduce sum-of-sums "
        "reduce-of-reshape reduce-of-elementwise-of-reshapes",
    ),
    "products": Program(
        lambda x, v, n: (
            *(x.T @ x, x @ x.T, v[:, None] @ v[None], jnp.einsum("bij,bjk->bik", x[None], x.T[None])),
            *(x @ jnp.ones((5, 3)), n.reshape(2, 3) @ jnp.zeros((3, 2), np.int32)),
        ),
        (X, V, N),
        "dot-of-transposed-left dot-of-transposed-right dot-over-one dot-of-single-batch dot-with-ones-right "
        "dot-with-zeros",
    ),
    "rows": Program(
        lambda x, i: (
            *(x.at[0].set(1.0), jax.grad(lambda y: (y.at[0].add(y[1]) ** 2).sum())(x), jnp.median(x, 1), update(x, 0)),
            lax.dynamic_slice(lax.dynamic_update_slice(x, x[:2], (i, 0)), (i, 0), (2, 5)),
            lax.dynamic_update_slice(lax.dynamic_update_slice(x, x[:2], (i, 0)), x[1:3], (i, 0)),
            *(lax.dynamic_slice(x, (i, 0), (6, 5)), lax.dynamic_update_slice(x, x + 1, (i, 0))),
            lax.dynamic_slice(x, (1, 0), (2, 5)),
        ),
        (X, np.int32(1)),
        "scatter-of-one-window gather-of-one-slice scatter-nothing dynamic-slice-of-update dynamic-update-twice "
        "dynamic-slice-everything dynamic-update-everything dynamic-slice-at-constants",
    ),
    "sort by two keys": Program(
        lambda x: jnp.lexsort((x[0], jnp.round(x[1]))), (np.ones((2, 300), np.float32),), "sort-by-several-keys"
    ),
    "sorts": Program(
        lambda x: (jnp.sort(jnp.sort(x)), jnp.sort(x[:, :1]), x + jnp.sort(jnp.zeros(5))),
        (X,),
        "sort-twice sort-of-one sort-of-same-number",
    ),
    "pooling by a reshape": Program(
        lambda x: x.reshape(2, 4, 2, 4, 2, 16).max((2, 4)), (jnp.ones((2, 8, 8, 16)),), "reduce-of-cut"
    ),
    "rolling sums of counts": Program(
        lambda x: lax.reduce_window(x, 0, lax.add, (32,), (1,), "VALID"),
        (jnp.ones(200, jnp.int32),),
        "reduce-window-in-steps",
    ),
    "lengths of points": Program(lambda x: (x * x).sum(-1), (jnp.ones((100, 3)),), "reduce-of-few"),
    "bytes of a transposed matrix": Program(
        lambda x, w: x @ w.T.astype(jnp.float32), (V, np.ones((4, 5), np.int8)), "dot-of-transposes-inside"
    ),
    "parts of a function": Program(
        lambda x: jnp.piecewise(x, [x < 0, x >= 1], [lambda x: -x, lambda x: x**2, lambda x: x]),
        (jnp.ones(100),),
        "reduce-of-joined",
    ),
    "a transposed convolution to few features": Program(
        lambda x, k: lax.conv_transpose(x, k, (2, 2), "SAME"),
        (jnp.ones((1, 16, 16, 32)), jnp.ones((4, 4, 32, 4))),
        "dilated-input-by-features",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_laws_fire_where_they_are_said_to(name: str) -> None:
    program = PROGRAMS[name]
    text = xlapy.jax.stablehlo(program.function, *program.arguments)
    assert sorted({*program.laws.split()} - fired(xlapy.stablehlo.parse(text))) == []


OTHERS = {
    "tokens that a converter strings together": (
        """func.func @main(%a: !stablehlo.token, %b: !stablehlo.token) -> !stablehlo.token {
          %0 = stablehlo.after_all %a, %b : !stablehlo.token
          %1 = stablehlo.after_all %0 : !stablehlo.token
          %2 = stablehlo.after_all %1, %a, %a : !stablehlo.token
          return %2 : !stablehlo.token
        }""",
        "after-one after-nested after-the-same",
    ),
    "numbers of f64 that JAX writes in x64 mode: x * jnp.where(x < 1, 1.1, 0.5)": (
        """func.func @main(%x: tensor<f32>) -> tensor<f32> {
          %one = stablehlo.constant dense<1.0> : tensor<f32>
          %a = stablehlo.constant dense<1.1> : tensor<f64>
          %b = stablehlo.constant dense<0.5> : tensor<f64>
          %0 = stablehlo.compare LT, %x, %one : (tensor<f32>, tensor<f32>) -> tensor<i1>
          %1 = stablehlo.select %0, %a, %b : tensor<i1>, tensor<f64>
          %2 = stablehlo.convert %1 : (tensor<f64>) -> tensor<f32>
          %3 = stablehlo.multiply %x, %2 : tensor<f32>
          return %3 : tensor<f32>
        }""",
        "convert-of-chosen-numbers",
    ),
    "code that does not know its types": (
        """func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>) {
          %0 = stablehlo.real %x : tensor<4xf32>
          %1 = stablehlo.imag %x : tensor<4xf32>
          %2 = stablehlo.reshape %x : (tensor<4xf32>) -> tensor<4xf32>
          %3 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<4xf32>) -> tensor<i32>
          return %0, %1, %2, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>
        }""",
        "real-of-real imag-of-real reshape-to-same size-of-static-dimension",
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_laws_of_other_front_ends(name: str) -> None:
    text, laws = OTHERS[name]
    assert sorted({*laws.split()} - fired(xlapy.stablehlo.parse(text))) == []


def test_a_copy_of_the_builder() -> None:
    assert fired(xlapy.hlo.parse("ENTRY e { x = f32[4] parameter(0)  ROOT c = f32[4] copy(x) }")) == {"copy"}


def test_every_law_is_cited() -> None:
    cited = {law for program in PROGRAMS.values() for law in program.laws.split()}
    cited |= {law for _, laws in OTHERS.values() for law in laws.split()} | {"copy"}
    assert sorted({law.name for law in LAWS} - cited) == []
    assert sorted(cited - {law.name for law in LAWS}) == []


def fired(module: HloModule) -> set[str]:
    """The laws that fire on the way through the pipeline, approximate ones too."""
    plain = module.clone()
    counts = cpu_pipeline().run(plain).counts
    return {*counts, *cpu_pipeline(PipelineOptions(fast_math=True)).run(module).counts}
