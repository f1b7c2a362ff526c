"""Custom calls of StableHLO: layouts, typed configurations, ops by another name, markers."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import xlapy
from tests.stablehlo.structure import opcodes, structure
from xlapy import stablehlo
from xlapy.hlo.attributes import CustomCallApiVersion
from xlapy.hlo.text.backend_config import config_bytes
from xlapy.support.errors import ParseError

MATRIX = np.array([[4, 1, 2], [1, 5, 3], [2, 3, 6]], np.float64)


def call(target: str, attributes: str, operands: str, results: str) -> str:
    """A program that is one custom call."""
    types = operands.split(", ")
    names = ", ".join(f"%a{number}" for number in range(len(types)))
    parameters = ", ".join(f"%a{number}: {type}" for number, type in enumerate(types))
    count = len(results.split(", ")) if results.startswith("(") else 1
    values = ", ".join(f"%0#{number}" for number in range(count)) if count > 1 else "%0"
    assigned = f"%0:{count}" if count > 1 else "%0"
    return f"""
    func.func @main({parameters}) -> {results} {{
      {assigned} = stablehlo.custom_call @{target}({names}) {{{attributes}}} : ({operands}) -> {results}
      return {values} : {results.strip("()")}
    }}"""


def run(text: str, *arguments: Any) -> Any:
    """Compiled and evaluated alike."""
    got, want = xlapy.compile(text)(*arguments), xlapy.evaluate(text, *arguments)
    for one, other in zip(got, want, strict=True) if isinstance(got, tuple) else [(got, want)]:
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
    return got


LAYOUTS = "operand_layouts = [dense<[0, 1]> : tensor<2xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]"


@pytest.mark.parametrize("config", ['{"scale":2,"axes":[0,1]}', "{scale = 2.0 : f32}", "{scale = 2 3}", '"a\\"b"'])
def test_every_configuration_of_a_typed_call_can_be_written_and_read(config: str) -> None:
    line = f'custom-call(x), custom_call_target="f", api_version=API_VERSION_TYPED_FFI, backend_config={config}'
    module = xlapy.hlo.parse(f"ENTRY e {{ x = f32[2] parameter(0)  ROOT y = f32[2] {line} }}")
    again = stablehlo.parse(stablehlo.to_text(module))
    before, after = (m.entry.root.extra["backend_config"] for m in (module, again))
    assert config_bytes(after) == config_bytes(before)


def test_layouts_and_typed_configurations_are_kept() -> None:
    config = 'backend_config = "", mhlo.backend_config = {mode = 7 : ui8, name = "x"}, ' + LAYOUTS
    module = stablehlo.parse(call("foo", config, "tensor<2x3xf64>", "tensor<2x3xf64>"))
    assert structure(stablehlo.parse(stablehlo.to_text(module))) == structure(module)
    root = module.entry.root
    assert root.attributes["api_version"] is CustomCallApiVersion.TYPED_FFI
    assert str(root.shape) == "f64[2,3]{0,1}"
    assert [str(shape) for shape in root.attributes["operand_layout_constraints"]] == ["f64[2,3]{0,1}"]

    seen = []

    def foo(x: Any, **entries: Any) -> Any:
        seen.append((x.shape, x.strides, entries))
        return x + 1

    x = np.arange(6.0).reshape(2, 3)
    for source in (module, module.to_text(), stablehlo.to_text(module)):
        executable = xlapy.compile(source, xlapy.CompileOptions(custom_calls={"foo": foo}))
        np.testing.assert_array_equal(executable(x), x + 1)
    assert seen == [((2, 3), (8, 16), {"mode": 7, "name": "x"})] * 3
    evaluated = xlapy.evaluate(module, x, custom_calls={"foo": lambda x, mode, name: x * mode})
    np.testing.assert_array_equal(evaluated, x * 7)


@pytest.mark.parametrize(
    "layouts",
    [
        "operand_layouts = [dense<[0, 0]> : tensor<2xindex>]",
        "operand_layouts = [dense<[0]> : tensor<1xindex>]",
        "operand_layouts = []",
        "operand_layouts = [1]",
        "result_layouts = [dense<[2, 1]> : tensor<2xindex>]",
    ],
)
def test_layouts_that_are_none(layouts: str) -> None:
    with pytest.raises(ParseError, match=r"_layouts` (lists 1 layouts|gives f64)"):
        stablehlo.parse(call("foo", layouts, "tensor<2x3xf64>", "tensor<2x3xf64>"))


@pytest.mark.parametrize("uplo", "LU")
def test_potrf_is_cholesky(uplo: str) -> None:
    config = f"mhlo.backend_config = {{uplo = {ord(uplo)} : ui8}}"
    text = call("lapack_dpotrf_ffi", config, "tensor<2x3x3xf64>", "(tensor<2x3x3xf64>, tensor<2xi32>)")
    assert "custom-call" not in opcodes(stablehlo.parse(text))
    factor, info = run(text, np.stack([MATRIX, -MATRIX]))
    lower = np.linalg.cholesky(MATRIX)
    np.testing.assert_allclose(factor[0], lower if uplo == "L" else lower.T)
    assert info.tolist() == [0, 1] and np.isnan(factor[1]).any()


@pytest.mark.parametrize("type", ["f32", "f64", "complex<f32>", "complex<f64>"])
@pytest.mark.parametrize(("batch", "size"), [(40, 3), (3, 20), (2, 100)])
def test_potrf_says_which_minor_is_not_positive(type: str, batch: int, size: int) -> None:
    """Natively, for each kind of kernel, and by the evaluator; numbered as LAPACK does."""
    shape = f"{batch}x{size}x{size}x{type}"
    config = "mhlo.backend_config = {uplo = 76 : ui8}"
    text = call("lapack_spotrf_ffi", config, f"tensor<{shape}>", f"(tensor<{shape}>, tensor<{batch}xi32>)")
    dtype = {"f32": "f4", "f64": "f8", "complex<f32>": "c8", "complex<f64>": "c16"}[type]
    a = np.broadcast_to(np.eye(size, dtype=dtype), (batch, size, size)).copy()
    wanted = np.arange(batch) % (size + 1)
    wanted[-1] = size
    for matrix, number in zip(a, wanted, strict=True):
        if number:
            matrix[number - 1 :, number - 1 :] = [[-1]]
    a[1, 0, 0] = np.nan if batch > 2 else 1
    assert scipy.linalg.lapack.dpotrf(a[-1].real.astype("f8"), lower=True)[1] == size
    module = stablehlo.parse(text)
    for factor, info in (xlapy.compile(module)(a), xlapy.evaluate(module, a)):
        assert info.tolist() == wanted.tolist()
        assert np.isnan(factor[wanted != 0, -1, 0]).all() and not np.isnan(factor[wanted == 0]).any()


@pytest.mark.parametrize("type", ["f32", "f64", "complex<f32>", "complex<f64>"])
@pytest.mark.parametrize("dims", [(40, 3, 3), (3, 20, 20), (9, 5, 8), (2, 30, 7)], ids=str)
def test_getrf_of_small_matrices_is_lu(dims: tuple[int, int, int], type: str) -> None:
    """Pivots are numbers from 1, and so is what info says of the first zero on the diagonal, as LAPACK has it."""
    batch, rows, columns = dims
    letter, dtype = {"f32": ("s", "f4"), "f64": ("d", "f8"), "complex<f32>": ("c", "c8"), "complex<f64>": ("z", "c16")}[
        type
    ]
    matrices = f"tensor<{batch}x{rows}x{columns}x{type}>"
    pivots, info = f"tensor<{batch}x{min(rows, columns)}xi32>", f"tensor<{batch}xi32>"
    module = stablehlo.parse(call(f"lapack_{letter}getrf_ffi", "", matrices, f"({matrices}, {pivots}, {info})"))
    assert "lu" in opcodes(module) and "custom-call" not in opcodes(module)
    generator = np.random.default_rng(2)
    a = generator.normal(size=dims) + (1j * generator.normal(size=dims) if dtype[0] == "c" else 0)
    a = a.astype(dtype)
    a[0, :, 1] = 0
    a[1, :, :] = 0
    routine = getattr(scipy.linalg.lapack, f"{letter}getrf")
    for found in (xlapy.compile(module)(a), xlapy.evaluate(module, a)):
        for matrix, factors, chosen, number in zip(a, *found, strict=True):
            expected = routine(matrix)
            assert np.abs(factors - expected[0]).max() <= 64 * np.finfo(dtype).eps
            assert (chosen - 1).tolist() == expected[1].tolist() and number == expected[2]
        assert found[2].tolist() == [2, 1, *[0] * (batch - 2)]


@pytest.mark.parametrize("dims", ["65x65", "3x65", "0x3"])
def test_getrf_of_other_matrices_stays_lapack_s(dims: str) -> None:
    matrices, size = f"tensor<{dims}xf32>", min(map(int, dims.split("x")))
    results = f"({matrices}, tensor<{size}xi32>, tensor<i32>)"
    assert "custom-call" in opcodes(stablehlo.parse(call("lapack_sgetrf_ffi", "", matrices, results)))


@pytest.mark.parametrize(("letter", "dtype"), [("s", "f4"), ("d", "f8")])
@pytest.mark.parametrize("lower", [True, False])
def test_syevd_of_many_small_matrices_is_eigh(letter: str, dtype: str, lower: bool) -> None:
    matrices = f"tensor<40x5x5xf{8 * int(dtype[1])}>"
    results = f"({matrices}, {matrices.replace('x5x5', 'x5')}, tensor<40xi32>)"
    config = f"mhlo.backend_config = {{mode = 86 : ui8, uplo = {ord('L' if lower else 'U')} : ui8}}"
    module = stablehlo.parse(call(f"lapack_{letter}syevd_ffi", config, matrices, results))
    assert "eigh" in opcodes(module) and "custom-call" not in opcodes(module)
    a = np.random.default_rng(2).normal(size=(40, 5, 5)).astype(dtype)
    triangle = np.tril(a) if lower else np.triu(a)
    whole = triangle + np.swapaxes(triangle, 1, 2) * (1 - np.eye(5))
    vectors, values, info = xlapy.compile(module)(a)
    most = 64 * np.finfo(dtype).eps
    assert not info.any() and abs(values - np.linalg.eigvalsh(whole)).max() <= most
    assert abs(whole @ vectors - vectors * values[:, None]).max() <= most


@pytest.mark.parametrize(("letter", "dtype"), [("s", "f4"), ("d", "f8")])
@pytest.mark.parametrize("mode", "ASN")
@pytest.mark.parametrize(("rows", "columns"), [(3, 3), (5, 2), (2, 5)])
def test_gesdd_of_many_small_matrices_is_svd(rows: int, columns: int, mode: str, letter: str, dtype: str) -> None:
    """Without vectors, their places are zero; nothing is said of what is left of the operand."""
    least, type = min(rows, columns), f"f{8 * int(dtype[1])}"
    outer, inner = (rows, columns) if mode == "A" else (least, least)
    dims = [(rows, columns), (least,), (rows, outer), (inner, columns)]
    parts = [f"tensor<40x{'x'.join(map(str, each))}x{type}>" for each in dims]
    config = f"mhlo.backend_config = {{mode = {ord(mode)} : ui8}}"
    module = stablehlo.parse(
        call(f"lapack_{letter}gesdd_ffi", config, parts[0], f"({', '.join(parts)}, tensor<40xi32>)")
    )
    assert ("svd" in opcodes(module)) and "custom-call" not in opcodes(module)
    a = np.random.default_rng(2).normal(size=(40, rows, columns)).astype(dtype)
    a[5] = 0
    _, values, u, vt, info = xlapy.compile(module)(a)
    most = 64 * np.finfo(dtype).eps
    assert not info.any() and abs(values - np.linalg.svd(a, compute_uv=False)).max() <= most
    if mode == "N":
        assert not u.any() and not vt.any()
        return
    product = (u[:, :, :least] * values[:, None]) @ vt[:, :least]
    assert abs(product - a).max() <= most
    for basis in (np.swapaxes(u, 1, 2), vt):
        unit = basis @ np.swapaxes(basis, 1, 2)
        assert abs(unit - np.eye(unit.shape[1])).max() <= most


@pytest.mark.parametrize("type", ["f32", "f64", "complex<f32>", "complex<f64>"])
@pytest.mark.parametrize("dims", [(40, 3, 3), (3, 20, 20), (2, 30, 7)], ids=str)
def test_reflections_of_small_matrices_are_ops(dims: tuple[int, int, int], type: str) -> None:
    """They are those of LAPACK, and so is their product."""
    letter, routine, dtype = {
        "f32": ("s", "or", "f4"), "f64": ("d", "or", "f8"), "complex<f32>": ("c", "un", "c8"),
        "complex<f64>": ("z", "un", "c16"),
    }[type]  # fmt: skip
    batch, rows, columns = dims
    matrices, taus = f"tensor<{batch}x{rows}x{columns}x{type}>", f"tensor<{batch}x{columns}x{type}>"
    text = f"""
    func.func @main(%a: {matrices}) -> ({matrices}, {taus}, {matrices}) {{
      %0:2 = stablehlo.custom_call @lapack_{letter}geqrf_ffi(%a) {{mhlo.backend_config = {{}}}} :
        ({matrices}) -> ({matrices}, {taus})
      %1 = stablehlo.custom_call @lapack_{letter}{routine}gqr_ffi(%0#0, %0#1) {{mhlo.backend_config = {{}}}} :
        ({matrices}, {taus}) -> {matrices}
      return %0#0, %0#1, %1 : {matrices}, {taus}, {matrices}
    }}"""
    module = stablehlo.parse(text)
    assert "qr-decomposition" in opcodes(module) and "custom-call" not in opcodes(module)
    generator = np.random.default_rng(2)
    a = generator.normal(size=dims) + (1j * generator.normal(size=dims) if dtype[0] == "c" else 0)
    for matrix, *found in zip(a.astype(dtype), *xlapy.compile(module)(a.astype(dtype)), strict=True):
        (packed, factors), _ = scipy.linalg.qr(matrix, mode="raw")
        for one, other in zip(found, (packed, factors, scipy.linalg.qr(matrix, mode="economic")[0]), strict=True):
            assert abs(one - other).max() <= 256 * np.finfo(dtype).eps


def test_reflections_of_large_matrices_stay_lapack_s() -> None:
    matrices = "tensor<65x3xf32>"
    assert "custom-call" in opcodes(
        stablehlo.parse(call("lapack_sgeqrf_ffi", "", matrices, f"({matrices}, tensor<3xf32>)"))
    )
    text = f"""
    func.func @main(%a: {matrices}, %t: tensor<3xf32>) -> {matrices} {{
      %1 = stablehlo.custom_call @lapack_sorgqr_ffi(%a, %t) {{mhlo.backend_config = {{}}}} :
        ({matrices}, tensor<3xf32>) -> {matrices}
      return %1 : {matrices}
    }}"""
    assert "custom-call" in opcodes(stablehlo.parse(text))


@pytest.mark.parametrize("dims", ["31x5x5", "40x17x17", "5x5"])
def test_syevd_of_others_stays_lapack_s(dims: str) -> None:
    matrices, batch = f"tensor<{dims}xf32>", dims.split("x")[:-2]
    results = f"({matrices}, tensor<{dims.rpartition('x')[0]}xf32>, tensor<{'x'.join([*batch, 'i32'])}>)"
    config = "mhlo.backend_config = {mode = 86 : ui8, uplo = 76 : ui8}"
    assert "custom-call" in opcodes(stablehlo.parse(call("lapack_ssyevd_ffi", config, matrices, results)))


def test_potrf_of_nothing() -> None:
    config = "mhlo.backend_config = {uplo = 76 : ui8}"
    text = call(
        "lapack_cpotrf_ffi", config, "tensor<2x0x0xcomplex<f32>>", "(tensor<2x0x0xcomplex<f32>>, tensor<2xi32>)"
    )
    assert run(text, np.zeros((2, 0, 0), np.complex64))[1].tolist() == [0, 0]


def trsm(side: str, uplo: str, transpose: str, diagonal: str, operands: str, result: str) -> str:
    letters = {"side": side, "uplo": uplo, "trans_x": transpose, "diag": diagonal}
    config = ", ".join(f"{name} = {ord(letter)} : ui8" for name, letter in letters.items())
    return call("lapack_dtrsm_ffi", f"mhlo.backend_config = {{{config}}}", operands, result)


@pytest.mark.parametrize("letters", ["LLNN", "LUTN", "RLNU", "RUCN"])
def test_trsm_is_triangular_solve(letters: str) -> None:
    text = trsm(*letters, "tensor<3x3xf64>, tensor<3x3xf64>", "tensor<3x3xf64>")
    assert opcodes(stablehlo.parse(text)) == ["parameter", "parameter", "triangular-solve"]
    b = np.arange(9.0).reshape(3, 3)
    triangle = np.tril(MATRIX) if letters[1] == "L" else np.triu(MATRIX)
    if letters[3] == "U":
        np.fill_diagonal(triangle, 1)
    if letters[2] != "N":
        triangle = triangle.T
    x = run(text, MATRIX, b)
    np.testing.assert_allclose(triangle @ x if letters[0] == "L" else x @ triangle, b, atol=1e-12)


def test_trsm_with_a_factor() -> None:
    text = trsm(*"LLNN", "tensor<3x3xf64>, tensor<3x2xf64>, tensor<f64>", "tensor<3x2xf64>")
    b = np.ones((3, 2))
    np.testing.assert_allclose(np.tril(MATRIX) @ run(text, MATRIX, b, np.float64(3)), 3 * b)


def test_letters_that_are_none() -> None:
    with pytest.raises(ParseError, match=r"`side` in the backend_config is 88, .* one of 76 \(L\), 82 \(R\)"):
        stablehlo.parse(trsm("X", *"LNN", "tensor<3x3xf64>, tensor<3x3xf64>", "tensor<3x3xf64>"))
    with pytest.raises(ParseError, match="`uplo` in the backend_config is None"):
        stablehlo.parse(call("lapack_dpotrf_ffi", "", "tensor<3x3xf64>", "(tensor<3x3xf64>, tensor<i32>)"))


def test_matrices_have_two_dimensions() -> None:
    for target in ("spotrf", "sgetrf", "sgeqrf", "ssyevd", "sgesdd"):
        for vector in ("tensor<3xf32>", "tensor<f32>"):
            with pytest.raises(ParseError, match=rf"lapack_{target}_ffi is for matrices, and is given f32\[3?\]"):
                stablehlo.parse(call(f"lapack_{target}_ffi", "", vector, f"({vector}, tensor<i32>)"))
    with pytest.raises(ParseError, match=r"lapack_dtrsm_ffi is for matrices, and is given f64\[3\]"):
        stablehlo.parse(trsm(*"LLNN", "tensor<3xf64>, tensor<3xf64>", "tensor<3xf64>"))


@pytest.mark.parametrize(
    "target", ["Sharding", "LayoutConstraint", "annotate_device_placement", "xla.sdy.FuncResultSharding"]
)
def test_markers_are_their_operand(target: str) -> None:
    attributes = 'mhlo.sharding = "{replicated}", ' + LAYOUTS
    module = stablehlo.parse(call(target, attributes, "tensor<2x3xf64>", "tensor<2x3xf64>"))
    assert opcodes(module) == ["parameter"]


def test_groups_of_shardings_say_nothing() -> None:
    module = stablehlo.parse("""
    func.func @main(%x: tensor<f64>) -> tensor<f64> {
      stablehlo.custom_call @xla.sdy.ShardingGroup(%x) {has_side_effect = true} : (tensor<f64>) -> ()
      return %x : tensor<f64>
    }""")
    assert "custom-call" not in opcodes(module)


def test_topk_before_it_was_an_op() -> None:
    attributes = "mhlo.attributes = {k = 2 : i64, largest = true}"
    text = call("mhlo.topk", attributes, "tensor<3x3xf64>", "(tensor<3x2xf64>, tensor<3x2xi32>)")
    values, positions = run(text, MATRIX)
    assert values.tolist() == [[4, 2], [5, 3], [6, 3]]
    assert positions.tolist() == [[0, 2], [1, 2], [2, 1]]


APPROXIMATE = """
func.func private @greater(%a: tensor<f64>, %b: tensor<f64>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {{
  %0 = stablehlo.compare GT, %a, %b : (tensor<f64>, tensor<f64>) -> tensor<i1>
  return %0 : tensor<i1>
}}
func.func @main(%x: tensor<3x3xf64>) -> (tensor<2x3xf64>, tensor<2x3xi32>) {{
  %i = stablehlo.iota dim = 0 : tensor<3x3xi32>
  %least = stablehlo.constant dense<0xFFF0000000000000> : tensor<f64>
  %none = stablehlo.constant dense<-1> : tensor<i32>
  %0:2 = stablehlo.custom_call @ApproxTopK(%x, %i, %least, %none) {{
    called_computations = [@greater], mhlo.backend_config = {{reduction_dim = {dimension} : i64, top_k = 2 : i64}}
  }} : (tensor<3x3xf64>, tensor<3x3xi32>, tensor<f64>, tensor<i32>) -> (tensor<2x3xf64>, tensor<2x3xi32>)
  return %0#0, %0#1 : tensor<2x3xf64>, tensor<2x3xi32>
}}"""


def test_approximate_topk_is_exact() -> None:
    values, positions = run(APPROXIMATE.format(dimension=0), MATRIX)
    assert values.tolist() == [[4, 5, 6], [2, 3, 3]]
    assert positions.tolist() == [[0, 1, 2], [2, 2, 1]]
    with pytest.raises(ParseError, match="`reduction_dim` is 5, for arrays of 2 dimensions"):
        stablehlo.parse(APPROXIMATE.format(dimension=5))


APPROXIMATE_LEAST = """
func.func private @first(%a: tensor<{type}>, %b: tensor<{type}>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {{
  %0 = stablehlo.compare {direction}, %a, %b, {kind} : (tensor<{type}>, tensor<{type}>) -> tensor<i1>
  return %0 : tensor<i1>
}}
func.func @main(%x: tensor<4x60x{type}>, %none: tensor<{type}>) -> (tensor<4x5x{type}>, tensor<4x5xi32>) {{
  %i = stablehlo.iota dim = {positions} : tensor<4x60xi32>
  %c = stablehlo.constant dense<-1> : tensor<i32>
  %0:2 = stablehlo.custom_call @ApproxTopK(%x, %i, %none, %c) {{
    called_computations = [@first], mhlo.backend_config = {{reduction_dim = -1 : i64, top_k = 5 : i64}}
  }} : (tensor<4x60x{type}>, tensor<4x60xi32>, tensor<{type}>, tensor<i32>) -> (tensor<4x5x{type}>, tensor<4x5xi32>)
  return %0#0, %0#1 : tensor<4x5x{type}>, tensor<4x5xi32>
}}"""


@pytest.mark.parametrize(
    ("type", "kind", "dtype"),
    [("f32", "FLOAT", np.float32), ("i16", "SIGNED", np.int16), ("ui8", "UNSIGNED", np.uint8)],
)
@pytest.mark.parametrize("direction", ["LT", "GT"])
def test_approximate_topk_puts_only_the_best_in_order(type: str, kind: str, dtype: type, direction: str) -> None:
    text = APPROXIMATE_LEAST.format(type=type, kind=kind, direction=direction, positions=1)
    assert "topk" in stablehlo.parse(text).to_text()
    x = np.random.default_rng(3).integers(0, 40, (4, 60)).astype(dtype)
    order = np.argsort(x if direction == "LT" else -x.astype(np.int32), axis=-1, kind="stable")[:, :5]
    values, positions = run(text, x, dtype(0))
    np.testing.assert_array_equal(positions, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, -1))


def test_what_topk_does_not_find_is_sorted() -> None:
    """Other numbers beside the elements than their positions, or another order."""
    formats = [("f32", "FLOAT", "GT", 0), ("f32", "FLOAT", "GE", 1)]
    for type, kind, direction, positions in formats:
        text = APPROXIMATE_LEAST.format(type=type, kind=kind, direction=direction, positions=positions)
        assert "topk" not in stablehlo.parse(text).to_text()


def test_lapack_takes_any_layout() -> None:
    """Without layouts, matrices lie row by row, and the result is the same."""
    text = call(
        "lapack_dgetrf_ffi",
        "mhlo.backend_config = {}",
        "tensor<2x3x3xf64>",
        "(tensor<2x3x3xf64>, tensor<2x3xi32>, tensor<2xi32>)",
    )
    factors, pivots, info = run(text, np.stack([MATRIX, MATRIX * 2]))
    lower, upper = np.tril(factors[0], -1) + np.eye(3), np.triu(factors[0])
    np.testing.assert_allclose(lower @ upper, MATRIX, atol=1e-12)
    assert pivots.tolist() == [[1, 2, 3]] * 2 and info.tolist() == [0, 0]


TRSM = "mhlo.backend_config = {side = 76 : ui8, uplo = 76 : ui8, diag = 78 : ui8, trans_x = 78 : ui8}"
POTRF = "mhlo.backend_config = {uplo = 76 : ui8}"
M = "tensor<3x3xf32>"
TOP = "(tensor<3x2xf32>, tensor<3x2xi32>)"


@pytest.mark.parametrize(
    ("target", "attributes", "operands", "results", "message"),
    [
        (
            "lapack_spotrf_ffi",
            POTRF,
            f"{M}, {M}",
            f"({M}, tensor<i32>)",
            "@lapack_spotrf_ffi has 2 operands; it takes 1",
        ),
        ("lapack_strsm_ffi", TRSM, M, M, "@lapack_strsm_ffi has 1 operands; it takes 2 or 3"),
        ("lapack_strsm_ffi", TRSM, f"{M}, {M}, {M}, {M}", M, "has 4 operands; it takes 2 or 3"),
        ("mhlo.topk", "mhlo.attributes = {largest = true}", M, TOP, "attribute `k`, an integer, which is missing"),
        ("mhlo.topk", 'mhlo.attributes = {k = "2"}', M, TOP, "attribute `k`, an integer, which is something else"),
        ("mhlo.topk", "mhlo.attributes = {k = 2, largest = 3}", M, TOP, "attribute `largest`, a boolean"),
        ("ApproxTopK", "", f"{M}, {M}, {M}", M, "@ApproxTopK has 3 operands; it takes pairs"),
        ("foo", "output_operand_aliases = 3 : i64", M, M, "output_operand_aliases lists aliases"),
        ("foo", "output_operand_aliases = [3]", M, M, "output_operand_aliases lists aliases"),
        ("foo", "output_operand_aliases = {}", M, M, "output_operand_aliases lists aliases"),
        ("foo", "output_operand_aliases = [{}]", M, M, "attribute `operand_index`, an integer, which is missing"),
        ("xlapy.transpose", "backend_config = {permutation = 3}", M, M, "`permutation` of transpose cannot be given"),
        ("xlapy.rng_get_and_update_state", 'backend_config = {delta = "1"}', M, M, "attribute `delta`, an integer"),
    ],
)
def test_what_a_target_cannot_take_is_refused_where_it_stands(
    target: str, attributes: str, operands: str, results: str, message: str
) -> None:
    with pytest.raises(ParseError, match=re.escape(message)) as caught:
        stablehlo.parse(call(target, attributes, operands, results))
    assert "line 3, column 7" in str(caught.value)
