"""The evaluator against XLA:CPU, on programs that XLA itself printed. One compilation covers them all."""

# ruff: noqa: E501 (programs and tables are kept on their lines)

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from xlapy.hlo.evaluate import evaluate
from xlapy.hlo.text import parse

GENERATOR = np.random.default_rng(7)
X = GENERATOR.normal(size=(5, 7)).astype(np.float32)
Y = (GENERATOR.normal(size=(5, 7)) * 3).astype(np.float32)
POSITIVE = np.abs(X) + np.float32(0.1)
UNIT = np.tanh(X)
INTEGERS = GENERATOR.integers(-(2**31), 2**31, (5, 7), dtype=np.int64).astype(np.int32)
J = GENERATOR.integers(-4, 40, (5, 7)).astype(np.int32)
U = GENERATOR.integers(0, 256, (5, 7)).astype(np.uint8)
Z = (X + 1j * Y).astype(np.complex64)
SPECIAL = np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan], np.float32) * np.ones((5, 1), np.float32)

UNARY_FLOAT = "abs ceil cos erf exp expm1 floor imag is_finite log1p logistic neg real round sign sin tan tanh sinh cosh asinh atan cbrt"
BINARY_FLOAT = "add sub mul div max min pow rem atan2 eq ne lt le gt ge"
BINARY_INTEGER = "add sub mul div max min rem bitwise_and bitwise_or bitwise_xor shift_left shift_right_logical shift_right_arithmetic eq lt ge"
UNARY_COMPLEX = "exp log sqrt rsqrt tanh sin cos neg abs real imag sign"


def program(x, y, positive, unit, i, j, u, z, special) -> dict[str, object]:
    """Every case by its name: together they are one program."""
    out = {}
    for name in UNARY_FLOAT.split():
        if name not in ("imag", "real"):
            out[f"{name} f32"] = getattr(lax, name)(x)
        if name not in ("imag", "real", "tan", "sin", "cos", "cbrt"):
            out[f"{name} special"] = getattr(lax, name)(special) if name != "round" else lax.round(special)
    for name in ("log", "sqrt", "rsqrt", "acosh"):
        out[f"{name} f32"] = getattr(lax, name)(positive + 1)
    for name in ("asin", "acos", "atanh"):
        out[f"{name} f32"] = getattr(lax, name)(unit)
    out["round to even"] = lax.round(special, lax.RoundingMethod.TO_NEAREST_EVEN)
    for name in BINARY_FLOAT.split():
        out[f"{name} f32 f32"] = getattr(lax, name)(positive if name == "pow" else x, y)
    for name in ("max", "min", "eq", "ne", "lt", "ge"):
        out[f"{name} special"] = getattr(lax, name)(special, lax.rev(special, (1,)))
    for name in BINARY_INTEGER.split():
        out[f"{name} s32"] = getattr(lax, name)(i, j)
        if not name.startswith("shift"):
            out[f"{name} u8"] = getattr(lax, name)(u, lax.rev(u, (1,)))
    for name in UNARY_COMPLEX.split():
        out[f"{name} c64"] = getattr(lax, name)(z)
    for name in ("add", "sub", "mul", "div", "eq"):
        out[f"{name} c64 c64"] = getattr(lax, name)(z, lax.rev(z, (0,)))
    out["clz"] = lax.clz(i)
    out["popcnt"] = lax.population_count(u)
    out["not"] = ~i
    for target in (jnp.int32, jnp.uint8, jnp.bool_, jnp.bfloat16, jnp.float16):
        out[f"convert to {target.__name__}"] = lax.convert_element_type(y, target)
        out[f"convert s32 to {target.__name__}"] = lax.convert_element_type(i, target)
    out["bitcast"] = lax.bitcast_convert_type(x, jnp.uint8)
    out["reduce precision"] = lax.reduce_precision(y, 5, 4)
    out["bf16 chain"] = (x.astype(jnp.bfloat16) * y.astype(jnp.bfloat16)).sum(1)
    out["sums"] = x.sum(0), x.sum(), y.max(1), y.min(0), i.sum(1), (u > 3).any(1), j.prod(0)
    out["argmax"] = jnp.argmax(y, 1), jnp.argmin(y, 0)
    out["dots"] = x @ y.T, jnp.einsum("ij,ik->jk", x, y), i @ j.T, (z @ z.T)
    out["batched dot"] = jnp.einsum("bij,bjk->bik", x.reshape(5, 7, 1), y.reshape(5, 1, 7))
    out["bf16 dot"] = lax.dot(x.astype(jnp.bfloat16), y.T.astype(jnp.bfloat16), preferred_element_type=jnp.float32)
    out["moves"] = (
        jnp.pad(x, ((1, 0), (2, 3)), constant_values=7),
        lax.pad(x, jnp.float32(1), ((-1, 2, 1), (3, -2, 2))),
        x[1:4, ::2],
        lax.rev(x, (0, 1)),
        jnp.concatenate([x, y], 1),
        x.T,
        x.reshape(7, 5),
        jnp.broadcast_to(x[:, None], (5, 2, 7)),
    )
    out["dynamic"] = (
        lax.dynamic_slice(x, (j[0, 0], j[0, 1]), (2, 3)),
        lax.dynamic_update_slice(x, y[:2, :3], (j[0, 2], 5)),
    )
    out["select"] = jnp.where(x > 0, x, y), lax.clamp(jnp.float32(-1), y, jnp.float32(1))
    out["while"] = lax.while_loop(lambda s: s[0] < 20, lambda s: (s[0] + 1, s[1] * 1.5 - x), (jnp.int32(0), y))
    out["switch"] = lax.switch(j[0, 0], [lambda v: v + 1, lambda v: v * 2, lambda v: -v], x)
    out["total order sort key"] = lax.lt_to_p.bind(special, lax.rev(special, (1,)))
    return out


def looseness(name: str) -> float:
    if "bf16" in name or "bfloat16" in name:
        return 1e-2
    return 2e-5 if "c64" in name or name.partition(" ")[0] in ("dots", "while", "tan", "rem") else 4e-6


@pytest.fixture(scope="module")
def results() -> tuple[dict, dict]:
    arguments = (X, Y, POSITIVE, UNIT, INTEGERS, J, U, Z, SPECIAL)
    lowered = jax.jit(program).lower(*arguments)
    module = parse(lowered.compiler_ir("hlo").as_hlo_text(True))
    theirs = lowered.compile()(*arguments)
    leaves, structure = jax.tree.flatten(theirs)
    ours = evaluate(module, *arguments)
    assert len(leaves) == len(ours)
    return jax.tree.unflatten(structure, list(ours)), jax.tree.unflatten(structure, [np.asarray(v) for v in leaves])


def test_every_result_agrees_with_xla(results) -> None:
    ours, theirs = results
    wrong = []
    for name in theirs:
        for mine, other in zip(jax.tree.leaves(ours[name]), jax.tree.leaves(theirs[name]), strict=True):
            try:
                assert mine.dtype == other.dtype
                if mine.dtype.kind in "biu":
                    np.testing.assert_array_equal(mine, other)
                else:
                    wide = np.complex128 if mine.dtype.kind == "c" else np.float64
                    tolerance = looseness(name)
                    np.testing.assert_allclose(mine.astype(wide), other.astype(wide), rtol=tolerance, atol=tolerance)
            except AssertionError as error:
                wrong.append(f"{name}: {error}")
    assert not wrong, "\n".join(wrong)
