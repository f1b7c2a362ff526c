"""A broad sample of what JAX lowers: functions of jax.numpy, jax.lax, jax.nn, jax.scipy ..., a program for each family.

They are here for their texts: what neighbouring tests already lower is not repeated."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy.special as special
import numpy as np
from jax import lax

_RANDOM = np.random.default_rng(11)
X = _RANDOM.uniform(0.1, 0.9, size=(4, 8)).astype(np.float32)
S = (_RANDOM.normal(size=(4, 8)) * 3).astype(np.float32)  # of both signs
V = _RANDOM.normal(size=8).astype(np.float32)
A = (_RANDOM.normal(size=(4, 4)) + 5 * np.eye(4)).astype(np.float32)
I = _RANDOM.integers(-40, 40, size=(3, 6)).astype(np.int32)  # noqa: E741
U = _RANDOM.integers(0, 250, size=(3, 8)).astype(np.uint8)
IMAGE = _RANDOM.normal(size=(1, 6, 7, 4)).astype(np.float32)
KERNEL = _RANDOM.normal(size=(3, 3, 4, 8)).astype(np.float32)

ROWS = ("NHWC", "HWIO", "NHWC")


def _both(a, b):
    return a[0] + b[0], jnp.maximum(a[1], b[1])


def arithmetic(x, s):
    return (
        jnp.logaddexp(x, s), jnp.logaddexp2(x, s), jnp.hypot(x, s), jnp.exp2(s), jnp.log2(x), jnp.log10(x),
        jnp.sinc(s), jnp.i0(x), jnp.heaviside(s, x), jnp.copysign(x, s), jnp.nextafter(x, s),
        jnp.ldexp(x, jnp.int32(3)), jnp.frexp(s), jnp.modf(s), jnp.fmod(s, x), jnp.remainder(s, x),
        jnp.float_power(x, s), jnp.reciprocal(x), jnp.trunc(s), jnp.degrees(x), jnp.deg2rad(s), jnp.unwrap(s),
        jnp.nan_to_num(s / (x - x)), jnp.signbit(s), jnp.isposinf(s), jnp.isneginf(s), jnp.fmin(x, s), jnp.fmax(x, s),
        jnp.floor_divide(s, x), jnp.divmod(s, x), jnp.isclose(x, s),
        jnp.interp(x, jnp.arange(3.0), jnp.arange(3.0) ** 2), jnp.polyval(s[0], x),
    )  # fmt: skip


def special_functions(x, s):
    return (
        special.erfc(s), special.erfinv(x), special.gammaln(s), special.digamma(x), special.betainc(x, x + 1, x),
        special.gammainc(x, x), special.gammaincc(x, x), special.i0e(s), special.i1e(s), special.logit(x),
        special.expit(s), special.xlogy(x, x), special.xlog1py(x, x), special.entr(x), special.kl_div(x, x + 1),
        special.rel_entr(x, x + 1), special.polygamma(2, x), special.zeta(x + 1.5, x), special.ndtr(s),
        special.ndtri(x), special.log_ndtr(s), special.multigammaln(x + 3, 2), special.logsumexp(s, axis=1),
        special.factorial(x), lax.random_gamma_grad(x + 1, x),
    )  # fmt: skip


def integers(i, u):
    return (
        jnp.gcd(i, 12), jnp.lcm(abs(i), 4), jnp.left_shift(i, 3), jnp.right_shift(i, 2), jnp.invert(u),
        jnp.bitwise_count(u), jnp.packbits(u > 99), jnp.unpackbits(u), u + u, u // 7, u.astype(jnp.int4) + 1,
        i.astype(jnp.uint4), i**3, -u, lax.reduce_and(u, (0,)), lax.reduce_or(i, (1,)), lax.reduce_xor(i, (0,)),
        jnp.bincount(jnp.abs(i[0]), length=50), jnp.cumsum(u, axis=1), i % -5, jnp.clip(i, -3, 9), jnp.sign(i),
        lax.rem(i, jnp.int32(7)), i.astype(jnp.float8_e5m2).astype(jnp.float32), (i * 1.5).astype(jnp.bfloat16),
        i.astype(jnp.float16) / 4, jnp.prod(i, 0), jnp.max(u), u > 9,
    )  # fmt: skip


def folding(s, v):
    return (
        jnp.cumprod(v), lax.cummax(s, 1), lax.cummin(s, reverse=True), lax.cumlogsumexp(s, 1), jnp.nancumsum(s),
        jnp.diff(s, 2), jnp.ediff1d(v), jnp.gradient(v), jnp.trapezoid(s), jnp.nansum(s, 0), jnp.nanmean(s),
        jnp.nanmax(s, 1), jnp.ptp(s, axis=1), jnp.std(s, axis=0), jnp.median(s, axis=1), jnp.percentile(s, 30),
        jnp.quantile(s, jnp.array([0.1, 0.5]), axis=1), jnp.average(s, axis=1, weights=jnp.abs(v)),
        jnp.count_nonzero(s > 0, axis=0), s.sum(where=s > 0), lax.reduce((s, s), (0.0, -jnp.inf), _both, (0, 1)),
        lax.associative_scan(jnp.multiply, s, axis=1), jnp.cov(s), jnp.corrcoef(s),
        lax.reduce_window(s, -jnp.inf, lax.max, (2, 3), (1, 2), ((1, 0), (0, 2))),
        lax.reduce_window(s, 0.0, lax.add, (2, 2), (1, 1), "VALID", (1, 2), (2, 1)), lax.reduce_precision(s, 8, 7),
        jnp.linalg.norm(s, axis=1), jnp.vdot(v, v),
    )  # fmt: skip


def ordering(s, v):
    return (
        jnp.argsort(s, axis=0), jnp.lexsort((v, -v)), jnp.searchsorted(v, s[0]),
        jnp.digitize(s, jnp.array([-1.0, 0.0, 2.0])), lax.top_k(s, 3), jnp.partition(s, 2),
        jnp.nonzero(s > 0, size=9), jnp.argmax(s), jnp.select([s > 1, s < -1], [s, -s], 0.0), jnp.where(s > v, s, v),
        jnp.piecewise(v, [v < 0, v >= 0], [lambda a: -a, lambda a: a * 2]), jnp.sort(s, None),
        lax.sort((s, -s, s * 2), dimension=1, num_keys=2), jnp.sort(s, descending=True),
        jnp.unique(jnp.round(s), size=5, fill_value=0.0), jnp.histogram(s, 5), jnp.flatnonzero(v > 0, size=4),
        jnp.argwhere(s > 1, size=3), lax.argmin(s, 1, "int32"), lax.approx_max_k(v, 2, recall_target=0.9),
        jnp.isin(jnp.round(s), jnp.arange(3.0)),
    )  # fmt: skip


def movement(s, v):
    return (
        jnp.roll(s, 3, 1), jnp.rot90(s), jnp.swapaxes(s, 0, 1), jnp.moveaxis(s.reshape(2, 2, 8), 0, 2),
        jnp.split(s, 2, 1), jnp.repeat(v, 3), jnp.array_split(v, 3), jnp.insert(v, 2, 7.0), jnp.delete(v, 1),
        jnp.append(s, v), jnp.vstack([s, v]), jnp.dstack([s, s]), jnp.column_stack([v, v]),
        jnp.expand_dims(v, (0, 2)), jnp.ravel(s), jnp.resize(v, (3, 5)), jnp.take(s, jnp.array([2, 0, -1]), 1),
        jnp.take_along_axis(s, jnp.argsort(s, 1), 1), jnp.diag(v), jnp.diagonal(s), jnp.tril(s), jnp.triu(s, 1),
        jnp.vander(v, 4), jnp.tri(3, 4), jnp.meshgrid(v, v), jnp.indices((2, 3)), jnp.block([[s, s], [s, s]]),
        jnp.pad(v, 3, "edge"), jnp.pad(s, 2, "reflect"), jnp.pad(s, 1, "wrap"), jnp.kron(v[:2], v[:3]),
        s[jnp.array([0, 3]), jnp.array([1, 7])], s[::2, ::-3], s.at[1, 2:5].set(0), s.at[:, 0].mul(2),
        s.at[jnp.array([0, 0, 2])].add(v), s.at[jnp.array([9])].min(v, mode="drop"),
        lax.dynamic_index_in_dim(s, jnp.argmax(v) % 4, 0), lax.pad(s, 1.0, ((1, 2, 1), (-1, 0, 0))),
        lax.bitcast_convert_type(v, jnp.uint8), jnp.choose(jnp.array([0, 1, 1]), [v[:3], v[3:6]], mode="clip"),
        jnp.fft.fftshift(v), jnp.trace(s),
        lax.rng_bit_generator(jnp.arange(4, dtype=jnp.uint32), (5,), jnp.uint32)[1].shape[0] + v,
    )  # fmt: skip


def products(a, s):
    return (
        jnp.tensordot(a, s, 1), jnp.inner(s, s), jnp.outer(s[0], s[1]), jnp.cross(s[:, :3], s[:, 3:6]),
        jnp.einsum("ij,kj,k->i", s, s, s[:, 0]), jnp.matmul(s.reshape(2, 2, 8), s.reshape(1, 8, 4)),
        jnp.linalg.matrix_power(a, 3), jnp.linalg.multi_dot([a, s, s.T]), jnp.linalg.cholesky(a @ a.T + jnp.eye(4)),
        jax.scipy.linalg.solve_triangular(a, s), jnp.convolve(s[0], s[1, :3]), jnp.correlate(s[0], s[1, :3], "same"),
        jnp.vecdot(s, s), jax.vmap(lambda r: r @ r)(s), lax.dot_general(s, s, (((1,), (1,)), ((0,), (0,)))),
        s.astype(jnp.int8).astype(jnp.int32) @ s.T.astype(jnp.int32), jnp.fft.rfftn(s), jnp.fft.hfft(s[0]),
        jnp.abs(jnp.fft.fft2(a)), jnp.linalg.norm(a), jax.hessian(lambda v: (a @ v) @ v)(s[:, 0]),
        jax.jacfwd(jnp.tanh)(s[0]), jax.jvp(jnp.linalg.cholesky, (a @ a.T + jnp.eye(4),), (a + a.T,))[1],
    )  # fmt: skip


def windows(i, k):
    return (
        lax.conv_general_dilated(i, k, (2, 1), "SAME", dimension_numbers=ROWS),
        lax.conv_general_dilated(i, k, (1, 1), ((1, 0), (2, 1)), (2, 1), (1, 2), dimension_numbers=ROWS),
        lax.conv_general_dilated(i, k[:, :, :1], (1, 1), "VALID", dimension_numbers=ROWS, feature_group_count=4),
        lax.conv_transpose(i, k, (2, 2), "SAME"),
        lax.conv(i.transpose(0, 3, 1, 2), k.transpose(3, 2, 0, 1), (1, 1), "SAME"),
        jax.grad(lambda w: lax.conv_general_dilated(i, w, (1, 1), "SAME", dimension_numbers=ROWS).sum())(k),
        jax.image.resize(i, (1, 9, 5, 4), "bilinear"), jax.image.resize(i, (1, 3, 9, 4), "nearest"),
        lax.conv_general_dilated_patches(i, (2, 2), (1, 1), "VALID", dimension_numbers=ROWS),
        jax.grad(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME").sum())(i),
    )  # fmt: skip


def networks(s, v):
    return (
        jax.nn.relu6(s), jax.nn.gelu(s, approximate=False), jax.nn.silu(s), jax.nn.softplus(s), jax.nn.elu(s),
        jax.nn.selu(s), jax.nn.celu(s), jax.nn.leaky_relu(s), jax.nn.log_sigmoid(s), jax.nn.hard_tanh(s),
        jax.nn.hard_swish(s), jax.nn.glu(s), jax.nn.standardize(s), jax.nn.squareplus(s), jax.nn.mish(s),
        jax.nn.one_hot(jnp.argmax(s, 1), 8), jax.nn.log_softmax(s, 0), jax.grad(lambda a: jax.nn.softmax(a)[0, 0])(s),
        lax.map(lambda r: r.sum() * r, s), lax.scan(lambda c, r: (c * r, c.sum()), v, s, unroll=2),
        lax.fori_loop(0, 4, lambda i, c: jax.checkpoint(jnp.sin)(c) + i, v), jax.remat(jnp.cos)(v),
        lax.cond(v[0] > 9, lambda: s, lambda: -s), lax.switch(jnp.int32(2), [jnp.sin, jnp.cos, jnp.tan], v),
        jax.random.uniform(jax.random.key(1), (4,)), jax.random.normal(jax.random.key(2), (5,)),
        jax.random.randint(jax.random.key(3), (4,), 0, 9), jax.random.categorical(jax.random.key(4), s),
        jax.random.truncated_normal(jax.random.key(5), -1, 1, (3,)), jax.random.choice(jax.random.key(6), v),
        jnp.apply_along_axis(jnp.sort, 1, s), jnp.vectorize(lambda a: a + 1)(s),
    )  # fmt: skip


def complex_numbers(s, v):
    return (
        jnp.sqrt(s + 1j * v), jnp.log(s + 1j), jnp.sin(v * 1j), jnp.angle(s + 1j * v), jnp.tanh(v + 0.5j),
        jnp.power(v + 2j, 3), jnp.matmul(s + 1j, s.T - 1j), jnp.isreal(s + 0j), jnp.prod(v + 1j),
        jnp.where(s > 0, s + 1j, 0), jnp.expm1(v * 1j), jnp.abs(jnp.fft.ifft2(s)), jnp.sort_complex(v + 1j),
        lax.complex(v, v).conj() * 2,
    )  # fmt: skip


PROGRAMS = [
    (arithmetic, (X, S)),
    (special_functions, (X, S)),
    (integers, (I, U)),
    (folding, (S, V)),
    (ordering, (S, V)),
    (movement, (S, V)),
    (products, (A, S)),
    (windows, (IMAGE, KERNEL)),
    (networks, (S, V)),
    (complex_numbers, (S, V)),
]
