"""Operations that real programs contain and the specification only mentions: each reads, and means what it says."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import xlapy
from xlapy import stablehlo
from xlapy.stablehlo.convert import CONVERSIONS
from xlapy.support.errors import UnsupportedError, XlaError

NAMES = {
    "stablehlo": "broadcast create_token cross-replica-sum dot einsum torch_index_select unary_einsum tan composite "
    "dynamic_broadcast_in_dim dynamic_conv dynamic_gather dynamic_iota dynamic_pad dynamic_reshape real_dynamic_slice "
    "get_dimension_size set_dimension_size",
    "chlo": "acos acosh asin asinh atan atanh bessel_i1e cosh sinh tan digamma lgamma polygamma zeta erf erfc erf_inv "
    "mulhi next_after top_k is_inf is_pos_inf is_neg_inf square conj constant constant_like broadcast_add "
    "broadcast_and broadcast_atan2 broadcast_compare broadcast_complex broadcast_divide broadcast_maximum "
    "broadcast_minimum broadcast_multiply broadcast_next_after broadcast_or broadcast_polygamma broadcast_power "
    "broadcast_remainder broadcast_select broadcast_shift_left broadcast_shift_right_arithmetic "
    "broadcast_shift_right_logical broadcast_subtract broadcast_xor broadcast_zeta",
    "arith": "constant addi subi muli divsi remsi maxsi minsi cmpi select index_cast extsi trunci",
    "tensor": "dim from_elements extract cast splat",
    "shape": "shape_of num_elements get_extent from_extents broadcast concat const_shape cstr_broadcastable cstr_eq "
    "cstr_require assuming assuming_all const_witness to_extent_tensor size_to_index index_to_size dim value_as_shape",
    "sdy": "sharding_constraint",
}


@pytest.mark.parametrize("name", [f"{dialect}.{name}" for dialect, names in NAMES.items() for name in names.split()])
def test_it_has_a_conversion(name: str) -> None:
    assert name in CONVERSIONS


RANDOM = np.random.default_rng(5)


def array(*dims: int) -> np.ndarray:
    return RANDOM.normal(size=dims).astype(np.float32)


def type_of(value: np.ndarray) -> str:
    kind = {"float32": "f32", "int32": "i32"}[value.dtype.name]
    return f"tensor<{''.join(f'{size}x' for size in value.shape)}{kind}>"


def run(line: str, expected: np.ndarray, *arguments: np.ndarray) -> None:
    types = [type_of(argument) for argument in arguments]
    parameters = ", ".join(f"%{number}: {type}" for number, type in enumerate(types))
    result = type_of(expected)
    text = (
        f"func.func @main({parameters}) -> {result} {{\n %r = {line} : ({', '.join(types)}) -> {result}\n"
        f" return %r : {result}\n}}"
    )
    for value in (xlapy.compile(text)(*arguments), xlapy.evaluate(text, *arguments)):
        np.testing.assert_allclose(value, expected, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
def test_upper_halves_of_products(name: str) -> None:
    """Against Python's integers, which are as long as they need to be."""
    info = np.iinfo(name)
    edges = [info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 3, info.max // 2, info.max // 3]
    numbers = [*edges, *RANDOM.integers(info.min, info.max, 20, name, endpoint=True).tolist()]
    a, b = (np.array(column, name) for column in zip(*itertools.product(numbers, repeat=2), strict=True))
    type = f"tensor<{a.size}x{name.replace('uint', 'ui').replace('int', 'i')}>"
    text = (
        f"func.func @main(%0: {type}, %1: {type}) -> {type} {{\n"
        f" %2 = chlo.mulhi %0, %1 : {type}, {type} -> {type}\n return %2 : {type}\n}}"
    )
    expected = [int(x) * int(y) >> info.bits for x, y in zip(a, b, strict=True)]
    assert xlapy.compile(text)(a, b).tolist() == expected
    assert xlapy.evaluate(text, a, b).tolist() == expected


@pytest.mark.parametrize(
    ("config", "dims"),
    [
        ("ij,jk->ik", ((2, 3), (3, 4))),
        ("ij,jk->ki", ((2, 3), (3, 4))),
        ("bij,bjk->bik", ((5, 2, 3), (5, 3, 4))),
        ("ijb,bjk->kbi", ((2, 3, 5), (5, 3, 4))),
        ("ij,kl->il", ((2, 3), (4, 5))),
        ("i,i->", ((7,), (7,))),
        ("i,j->ij", ((2,), (3,))),
        ("ijk,jk->i", ((2, 3, 4), (3, 4))),
    ],
)
def test_einsum(config: str, dims: tuple[tuple[int, ...], ...]) -> None:
    lhs, rhs = (array(*each) for each in dims)
    run(f'stablehlo.einsum %0, %1, config = "{config}"', np.einsum(config, lhs, rhs), lhs, rhs)


@pytest.mark.parametrize("config", ["ij->ji", "ij->i", "ij->", "ijk->kj"])
def test_unary_einsum(config: str) -> None:
    operand = array(*range(2, 2 + config.index("-")))
    run(f'"stablehlo.unary_einsum"(%0) {{einsum_config = "{config}"}}', np.einsum(config, operand), operand)


@pytest.mark.parametrize("config", ["ii->i", "i...->i", "ij", "ij->k", "i->i"])
def test_other_einsums_are_refused(config: str) -> None:
    with pytest.raises(XlaError, match="einsum"):
        run(f'"stablehlo.unary_einsum"(%0) {{einsum_config = "{config}"}}', array(3), array(3, 3))


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("index_dims", [(), (4,), (2, 3)])
def test_torch_index_select(dim: int, index_dims: tuple[int, ...]) -> None:
    operand, indices = array(5, 6, 7), RANDOM.integers(0, 5, index_dims).astype(np.int32)
    line = f'"stablehlo.torch_index_select"(%0, %1) {{dim = {dim} : i64, batch_dims = 0 : i64}}'
    run(line, np.take(operand, indices, axis=dim), operand, indices)


def test_torch_index_select_in_batches() -> None:
    operand, indices = array(3, 6, 7), RANDOM.integers(0, 6, (3, 4)).astype(np.int32)
    expected = np.stack([row[picked] for row, picked in zip(operand, indices, strict=True)])
    run('"stablehlo.torch_index_select"(%0, %1) {dim = 1 : i64, batch_dims = 1 : i64}', expected, operand, indices)


def test_cross_replica_sum() -> None:
    text = """
    module attributes {mhlo.num_replicas = 2 : i32} {
      func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
        %r = "stablehlo.cross-replica-sum"(%x) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}
          : (tensor<2xf32>) -> tensor<2xf32>
        return %r : tensor<2xf32>
      }
    }"""
    executable = xlapy.compile(text, xlapy.CompileOptions(num_replicas=2))
    first, second = array(2), array(2)
    for result in executable.run_parallel([[first], [second]]):
        np.testing.assert_allclose(result, first + second, rtol=1e-6)


def test_an_operation_without_meaning_is_named() -> None:
    with pytest.raises(UnsupportedError, match="compute_reshape_shape"):
        stablehlo.parse(
            "func.func @main(%x: tensor<2xi32>) -> tensor<2xi32> {\n"
            ' %r = "stablehlo.compute_reshape_shape"(%x) : (tensor<2xi32>) -> tensor<2xi32>\n'
            " return %r : tensor<2xi32>\n}"
        )
