"""Programs that are wrong: each gets an error with line, column and a caret, and never one of Python's own."""

from __future__ import annotations

import re
import time

import pytest

from xlapy import stablehlo
from xlapy.support.errors import ParseError, ShapeError, UnsupportedError, XlaError

PROGRAM = """
#loc = loc("f.py":1:2)
module @m attributes {mhlo.num_replicas = 2 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<4x8xf32> {x = "y"}, %arg1: tensor<i1> loc("z")) -> (tensor<4xf32> {j.info = ""}) {
    %cst = stablehlo.constant dense<[1.0, -2.5e+00, 0x7F800000, 3]> : tensor<4xf32>
    %0:2 = stablehlo.while(%i = %arg0, %j = %cst) : tensor<4x8xf32>, tensor<4xf32>
     cond {
      stablehlo.return %arg1 : tensor<i1>
    } do {
      %4 = stablehlo.slice %i [0:4, 1:8:2] : (tensor<4x8xf32>) -> tensor<4x4xf32>
      %5 = stablehlo.reduce(%4 init: %c) applies stablehlo.add across dimensions = [1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
      stablehlo.return %i, %5 : tensor<4x8xf32>, tensor<4xf32>
    } loc(#loc)
    %1 = "stablehlo.if"(%arg1) ({
      stablehlo.return %0#1 : tensor<4xf32>
    }, {
      %6 = func.call @f(%0#1) : (tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%6) : (tensor<4xf32>) -> ()
    }) {a = [1, 2.0, @f, array<i64: 1>]} : (tensor<i1>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
  func.func private @f(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.compare LT, %arg0, %arg0, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %1 = stablehlo.select %0, %arg0, %arg0 : tensor<4xi1>, tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}
""".replace("    %0:2 =", "    %c = stablehlo.constant dense<0.0> : tensor<f32>\n    %0:2 =")  # noqa: E501


def located(text: str) -> XlaError:
    """The error of a wrong program, which must say where it is."""
    with pytest.raises(XlaError) as caught:
        stablehlo.parse(text)
    assert re.search(r"line \d+, column \d+:\n.*\n\s*\^", str(caught.value), re.DOTALL), str(caught.value)
    return caught.value


def test_the_program_itself_is_right() -> None:
    assert str(stablehlo.parse(PROGRAM).signature) == "(f32[4,8], pred[]) -> f32[4]"


def test_every_truncation_is_an_error() -> None:
    ends = [match.end() for match in re.finditer(r"[\w.%#@]+|\S", PROGRAM)]
    for end in ends[ends.index(PROGRAM.index("module") + 6) : -1]:
        assert isinstance(located(PROGRAM[:end]), ParseError)


def test_every_missing_token_is_an_error_or_another_program() -> None:
    for match in re.finditer(r"[\w.%#@]+|\S", PROGRAM):
        try:
            stablehlo.parse(PROGRAM[: match.start()] + PROGRAM[match.end() :])
        except XlaError as error:
            assert "^" in str(error)


MALFORMED = [
    ("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %y : tensor<2xf32> }", "no value %y is defined"),
    ("func.func @main(%x: tensor<2xf33>) { return }", "no element type 'f33'"),
    ("func.func @main(%x: tensor<*xf32>) { return }", "not a tensor type of known rank"),
    ("func.func @main(%x: tensor<2xf32) { return }", "not closed"),
    ("func.func @main(%x: tensor<99999999999999999999xf32>) { return }", "too large"),
    ("func.func @main(%x: tensor<?xf32, #stablehlo.bounds<2, 3>>) { return }", "2 bounds for 1 dimensions"),
    ("func.func @main(%x: tensor<?xf32, #stablehlo.bounds<-4>>) { return }", "a bound is a number or `?`"),
    ("func.func @main(%x: i32) { return }", "expected the type of a value"),
    ("func.func @main(%x: tensor<f32>, %x: tensor<f32>) { return }", "one name"),
    ("func.func @main() { return", "expected an operation or `}`, found the end of the text"),
    ("func.func @main() { return } }", "expected an operation, found '}'"),
    ("func.func @main() { }", "does not end with a return: it is empty"),
    ("func.func @main() { retrun : () -> () }", "does not end with a return, but with retrun"),
    ("func.func @main(%x: tensor<f32>) { %x = stablehlo.tanh %x : tensor<f32> return }", "name of an earlier value"),
    (
        "func.func @main(%x: tensor<f32>) { %0 = stablehlo.tanh %x : tensor<f32> %0 = stablehlo.abs %x : tensor<f32> "
        "return }",
        "%0 is the name of an earlier value, too",
    ),
    (
        "func.func @main(%x: tensor<2xf32>) { %0 = stablehlo.dot_general %x, %x, contracting_dim = [0] x [0] "
        ": (tensor<2xf32>, tensor<2xf32>) -> tensor<f32> return }",
        "stablehlo.dot_general has no clause 'contracting_dim'; did you mean 'contracting_dims'?",
    ),
    (
        "func.func @main(%x: tensor<f32>) { %0 = stablehlo.broadcast_in_dim %x, dins = [] : "
        "(tensor<f32>) -> tensor<2xf32> return }",
        "stablehlo.broadcast_in_dim has no clause 'dins'; did you mean 'dims'?",
    ),
    ("func.func @main()", "has no body"),
    ("func.func @f() { return } func.func @g() { return }", "expected a function @main"),
    ("func.func @main() { return } func.func @main() { return }", "a second function is named @main"),
    ("func.func @main() { call @mian() : () -> () return }", "there is no function @mian; did you mean 'main'"),
    ("func.func @main() { call @main() : () -> () return }", "calls itself"),
    ("func.func @main(%x: tensor<f32>) -> tensor<f64> { return %x : tensor<f32> }", "stated as"),
    ("func.func @main(%x: tensor<f32>) -> tensor<f64> { return %x : tensor<f64> }", "but the value is tensor<f32>"),
    ('func.func @main() { "stablehlo.constant"() {value = "abc} : () -> () return }', "does not end on its line"),
    ("func.func @main(%x: tensor<2xf32>) { %0 = stablehlo.iota %x, dim : tensor<2xf32> return }", "found 'dim'"),
    ("func.func @main() { %0, %1 = stablehlo.iota dim = 0 : tensor<2xf32> return }", "has 1 results, but 2 are named"),
    (
        "func.func @main() { %0 = stablehlo.iota : tensor<2xf32> return }",
        "`iota_dimension`, an integer, which is missing",
    ),
    ("func.func @main() { %0 = stablehlo.constant dense<1> return }", "expected `:`"),
    ("func.func @main() { %0 = stablehlo.constant dense<2> : tensor<2xi1> return }", "2 does not fit"),
    (
        'func.func @main() { %0 = "stablehlo.iota"() {iota_dimension = 0 : i64, iota_dimension = 1 : i64} '
        ": () -> tensor<2x2xf32> return }",
        "the attribute 'iota_dimension' is given twice",
    ),
    ("func.func @main() { return ^bb1: return }", "second block"),
    (
        "func.func @main(%x: tensor<2xf32>, %z: tensor<f32>) { %0 = stablehlo.reduce(%x init: %z) "
        "applies stablehlo.add across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> !stablehlo.token return }",
        "folds arrays",
    ),
    (
        "func.func @main(%x: tensor<2xf32>, %z: tensor<f32>) { stablehlo.reduce(%x init: %z) "
        "applies stablehlo.add across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> () return }",
        "folds arrays",
    ),
    (
        "func.func @main(%x: tensor<2xi64>) { "
        "%0 = shape.num_elements %x, %x : tensor<2xi64>, tensor<2xi64> -> index return }",
        "shape.num_elements takes 1 operand, but has 2",
    ),
    (
        "func.func @main(%x: tensor<f32>) -> tensor<?xf32> { %n = stablehlo.constant dense<0x7FC00000> : tensor<1xf32> "
        "%0 = stablehlo.dynamic_broadcast_in_dim %x, %n, dims = [] : (tensor<f32>, tensor<1xf32>) -> tensor<?xf32> "
        "return %0 : tensor<?xf32> }",
        "stands where sizes are expected, which are integers",
    ),
    (
        "func.func @main(%x: tensor<1x4x1xf32>, %k: tensor<3x1x1xf32>) { %0 = stablehlo.convolution(%x, %k) "
        "dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[0, 99999999999999999999]]} "
        "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} "
        ": (tensor<1x4x1xf32>, tensor<3x1x1xf32>) -> tensor<1x2x1xf32> return }",
        "`padding` to be a table of integers",
    ),
    (
        'func.func @main(%x: tensor<1xf32>, %z: tensor<f32>) { %0 = "stablehlo.pad"(%x, %z) {edge_padding_low = '
        "array<i64: 0>, edge_padding_high = array<i64: 15>, interior_padding = array<i64: 18446744073709551615>} "
        ": (tensor<1xf32>, tensor<f32>) -> tensor<16xf32> return }",
        "stablehlo.pad: `interior_padding` has 18446744073709551615, which does not fit in 64 bits",
    ),
    (
        "func.func @main(%x: tensor<2xf32>) { %0 = stablehlo.slice %x [0:1:9223372036854775808] "
        ": (tensor<2xf32>) -> tensor<1xf32> return }",
        "stablehlo.slice: `strides` has 9223372036854775808, which does not fit in 64 bits",
    ),
    (
        "func.func @main() { %0 = stablehlo.iota dim = -9223372036854775809 : tensor<2xf32> return }",
        "stablehlo.iota: `iota_dimension` has -9223372036854775809, which does not fit in 64 bits",
    ),
]


def constant(body: str, type: str) -> str:
    return f"func.func @main() -> {type} {{ %0 = stablehlo.constant dense<{body}> : {type} return %0 : {type} }}"


MALFORMED += [
    (constant("[1, 2]", "tensor<3xi32>"), "size 3"),
    (constant("[[1, 2], [3]]", "tensor<2x2xi32>"), "size 2"),
    (constant("[1, 2", "tensor<2xi32>"), "brackets"),
    (constant("[1 2]", "tensor<2xi32>"), "size 2"),
    (constant("[1][2]", "tensor<2xi32>"), "comma"),
    (constant("[1, , 2]", "tensor<3xi32>"), "element of type s32"),
    (constant("[1.5, 2]", "tensor<2xi32>"), "element of type s32, found '1.5'"),
    (constant("true", "tensor<f32>"), "element of type f32"),
    (constant("300", "tensor<i8>"), "does not fit"),
    (constant("-1", "tensor<ui8>"), "does not fit"),
    (constant("(1.0, 2.0, 3.0)", "tensor<complex<f32>>"), "size 2"),
    (constant('"0x0000"', "tensor<2xf32>"), "2 bytes are given"),
    (constant('"0x000"', "tensor<2xf32>"), "even number"),
    (constant("0x1FFFFFFFF", "tensor<f32>"), "element of type f32"),
    (constant("[]", "tensor<1xf32>"), "element of type f32"),
    (constant("", "tensor<1xf32>"), "expected a list"),
    (constant("[1]", "tensor<0xf32>"), "have none"),
]


@pytest.mark.parametrize(("text", "message"), MALFORMED, ids=[message for _, message in MALFORMED])
def test_malformed_text(text: str, message: str) -> None:
    error = located(text)
    assert message in str(error)


def wrong(line: str, results: str = "tensor<2x3xf32>") -> str:
    return (
        "func.func @main(%x: tensor<2x3xf32>, %y: tensor<3x2xf32>, %i: tensor<2x3xi32>, %s: tensor<f32>,\n"
        f" %n: tensor<i32>, %p: tensor<i1>) {{\n  %r = {line} -> {results}\n  return\n}}"
    )


SOLVE = "{left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}"
X, Y, XI = "tensor<2x3xf32>", "tensor<3x2xf32>", "tensor<2x3xi32>"
BROKEN = [
    (f"stablehlo.add %x, %y : ({X}, {Y})", "add.C1"),
    (f"stablehlo.add %x, %i : ({X}, {XI})", "add.C1"),
    (f"stablehlo.compare LT, %x, %y : ({X}, {Y})", "compare.C2"),
    (f"stablehlo.compare LT, %x, %x, SIGNED : ({X}, {X})", "compare.C3"),
    (f"stablehlo.clamp %y, %x, %s : ({Y}, {X}, tensor<f32>)", "clamp.C1"),
    (f"stablehlo.concatenate %x, %y, dim = 0 : ({X}, {Y})", "concatenate.C2"),
    (f"stablehlo.concatenate %x, %x, dim = 2 : ({X}, {X})", "concatenate.C4"),
    (f"stablehlo.concatenate %x, %x, dim = 0 : ({X}, {X})", "concatenate.C6"),
    (f"stablehlo.broadcast_in_dim %x, dims = [0] : ({X})", "broadcast_in_dim.C2"),
    (f"stablehlo.broadcast_in_dim %x, dims = [0, 2] : ({X})", "broadcast_in_dim.C3"),
    (f"stablehlo.broadcast_in_dim %x, dims = [1, 1] : ({X})", "broadcast_in_dim.C4"),
    (f"stablehlo.broadcast_in_dim %y, dims = [0, 1] : ({Y})", "broadcast_in_dim.C5"),
    (f"stablehlo.reshape %x : ({X})", "reshape.C2", "tensor<7xf32>"),
    (f"stablehlo.transpose %x, dims = [1, 1] : ({X})", "transpose.C2"),
    (f"stablehlo.transpose %x, dims = [1, 0] : ({X})", "transpose.C3"),
    (f"stablehlo.reverse %x, dims = [0, 0] : ({X})", "reverse.C2"),
    (f"stablehlo.reverse %x, dims = [2] : ({X})", "reverse.C3"),
    (f"stablehlo.slice %x [0:1] : ({X})", "slice.C2"),
    (f"stablehlo.slice %x [0:3, 0:3] : ({X})", "slice.C3"),
    (f"stablehlo.slice %x [0:2, 0:3:0] : ({X})", "slice.C4"),
    (f"stablehlo.slice %x [0:1, 0:3] : ({X})", "slice.C5"),
    (f"stablehlo.pad %x, %n, low = [0, 0], high = [0, 0], interior = [0, 0] : ({X}, tensor<i32>)", "pad.C1"),
    (f"stablehlo.pad %x, %s, low = [0], high = [0], interior = [0] : ({X}, tensor<f32>)", "pad.C2"),
    (f"stablehlo.pad %x, %s, low = [0, 0], high = [0, 0], interior = [-1, 0] : ({X}, tensor<f32>)", "pad.C3"),
    (f"stablehlo.pad %x, %s, low = [-3, 0], high = [0, 0], interior = [0, 0] : ({X}, tensor<f32>)", "pad.C4"),
    ("stablehlo.iota dim = 2 : ()", "iota.C1"),
    ("stablehlo.cholesky %s, lower = true : (tensor<f32>)", "cholesky.C2", "tensor<f32>"),
    (f"stablehlo.cholesky %x, lower = true : ({X})", "cholesky.C3"),
    (f"stablehlo.fft %x, type = RFFT, length = [2, 3, 3] : ({X})", "fft.C1"),
    (f"stablehlo.fft %x, type = FFT, length = [3] : ({X})", "fft.C2"),
    (f"stablehlo.fft %x, type = RFFT, length = [] : ({X})", "fft.C3"),
    (f"stablehlo.fft %x, type = RFFT, length = [2] : ({X})", "fft.C4", "tensor<2x2xcomplex<f32>>"),
    (f"stablehlo.fft %x, type = RFFT, length = [3] : ({X})", "fft.C5", "tensor<2x3xcomplex<f32>>"),
    (f'"stablehlo.triangular_solve"(%x, %i) {SOLVE} : ({X}, {XI})', "triangular_solve.C1", "tensor<2x3xi32>"),
    (f'"stablehlo.triangular_solve"(%s, %s) {SOLVE} : (tensor<f32>, tensor<f32>)', "triangular_solve.C2",
     "tensor<f32>"),
    (f'"stablehlo.triangular_solve"(%x, %x) {SOLVE} : ({X}, {X})', "triangular_solve.C3"),
    (f"stablehlo.select %p, %x, %y : (tensor<i1>, {X}, {Y})", "select.C2"),
    (f"stablehlo.reduce_precision %x, format = e0m3 : ({X})", "reduce_precision.C2"),
    (f"stablehlo.dot_general %x, %y, contracting_dims = [1] x [1] : ({X}, {Y})", "dot_general.C10"),
    (f"stablehlo.dot_general %x, %y, contracting_dims = [1] x [] : ({X}, {Y})", "dot_general.C2"),
    (f"stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : ({X}, {Y})", "dot_general.C12"),
    (f"stablehlo.dynamic_slice %x, %n, sizes = [1, 1] : ({X}, tensor<i32>)", "dynamic_slice.C2"),
    (f"stablehlo.dynamic_slice %x, %n, %s, sizes = [1, 1] : ({X}, tensor<i32>, tensor<f32>)", "dynamic_slice.C3"),
    (f"stablehlo.dynamic_slice %x, %n, %n, sizes = [3, 1] : ({X}, tensor<i32>, tensor<i32>)", "dynamic_slice.C4"),
    (f"stablehlo.dynamic_update_slice %x, %i, %n, %n : ({X}, {XI}, tensor<i32>, tensor<i32>)",
     "dynamic_update_slice.C2"),
    (f"stablehlo.dynamic_update_slice %x, %y, %n, %n : ({X}, {Y}, tensor<i32>, tensor<i32>)",
     "dynamic_update_slice.C6"),
    (f"stablehlo.reduce(%x init: %n) applies stablehlo.add across dimensions = [0] : ({X}, tensor<i32>)", "reduce.C2"),
    (f"stablehlo.reduce(%x init: %s) applies stablehlo.add across dimensions = [2] : ({X}, tensor<f32>)", "reduce.C4"),
    (f"stablehlo.reduce(%x init: %s) applies stablehlo.add across dimensions = [0, 0] : ({X}, tensor<f32>)",
     "reduce.C5"),
    (f"stablehlo.reduce(%x init: %s) applies stablehlo.add across dimensions = [0] : ({X}, tensor<f32>)", "reduce.C7"),
    (f"stablehlo.bitcast_convert %x : ({X})", "bitcast_convert.C1", "tensor<2x3xf64>"),
    (f"stablehlo.convert %x : ({X})", "convert.C1", "tensor<3x2xf64>"),
    (f"stablehlo.get_dimension_size %x, dim = 2 : ({X})", "get_dimension_size.C1", "tensor<i32>"),
    ('"stablehlo.if"(%p) ({ stablehlo.return %x : tensor<2x3xf32> }, { stablehlo.return %y : tensor<3x2xf32> }) :'
     " (tensor<i1>)", "if.C2"),
    ('"stablehlo.case"(%n) ({ stablehlo.return %x : tensor<2x3xf32> }, { stablehlo.return %y : tensor<3x2xf32> }) :'
     " (tensor<i32>)", "case.C3"),
    ('"stablehlo.while"(%x) ({ ^b(%a: tensor<2x3xf32>): stablehlo.return %n : tensor<i32> }, '
     "{ ^b(%a: tensor<2x3xf32>): stablehlo.return %a : tensor<2x3xf32> }) : (tensor<2x3xf32>)", "while.C1"),
    ('"stablehlo.while"(%x) ({ ^b(%a: tensor<2x3xf32>): stablehlo.return %p : tensor<i1> }, '
     "{ ^b(%a: tensor<2x3xf32>): stablehlo.return %y : tensor<3x2xf32> }) : (tensor<2x3xf32>)", "while.C2"),
    (f'"stablehlo.map"(%x) ({{ ^b(%a: tensor<f32>): stablehlo.return %a : tensor<f32> }}) {{dimensions = [0]}} : ({X})',
     "map.C3"),
    (f'"stablehlo.map"(%x) ({{ ^b(%a: tensor<i32>): stablehlo.return %a : tensor<i32> }}) {{dimensions = [0, 1]}} :'
     f" ({X})", "map.C4"),
]  # fmt: skip


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case[1])
def test_broken_constraint(case: tuple[str, ...]) -> None:
    line, label, *results = case
    error = located(wrong(line, *results))
    assert isinstance(error, ShapeError)
    assert f"[{label}]" in str(error)
    assert "line 3, column 3" in str(error)


def test_unknown_operation_names_its_neighbours() -> None:
    error = located(wrong("stablehlo.ad %x, %x : (tensor<2x3xf32>, tensor<2x3xf32>)"))
    assert isinstance(error, UnsupportedError)
    assert "stablehlo.ad;" in str(error) and "'stablehlo.add'" in str(error)
    assert "'stablehlo.add'" in str(located(wrong("add %x, %x : (tensor<2x3xf32>, tensor<2x3xf32>)")))


def test_a_misspelt_function_names_its_neighbours() -> None:
    with pytest.raises(ParseError, match=r"(?s)no operation 'func.fun'; did you mean 'func.func'.*line 1, column 10"):
        stablehlo.parse("module { func.fun @main() { return } }")


def nested_branches(depth: int) -> str:
    opened = "".join(f'%r{level} = "stablehlo.if"(%p) ({{\n' for level in range(depth))
    closed = "".join(
        f"}}, {{ stablehlo.return %x : tensor<f32> }}) : (tensor<i1>) -> tensor<f32>\n"
        f"{'stablehlo.return' if level else 'return'} %r{level} : tensor<f32>\n"
        for level in reversed(range(depth))
    )
    return (
        f"func.func @main(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {{\n{opened}"
        f"stablehlo.return %x : tensor<f32>\n{closed}}}"
    )


def test_deep_nesting_works_or_is_an_error() -> None:
    depth = 150
    text = nested_branches(depth)
    module = stablehlo.parse(text)
    assert len(module.computations()) == 2 * depth + 1
    assert len(stablehlo.to_text(module)) < 200 * len(text)
    assert isinstance(located(nested_branches(10_000)), ParseError)
    for opening, closing in ("[]", "{}", "()"):
        nested = opening * 10_000 + closing * 10_000
        assert isinstance(located(f"func.func @main() attributes {{a = {nested}}} {{ return }}"), ParseError)
    tuples = "tuple<" * 10_000 + "tensor<f32>" + ">" * 10_000
    assert isinstance(located(f"func.func @main(%x: {tuples}) {{ return }}"), ParseError)


def test_unclosed_strings_do_not_take_quadratic_time() -> None:
    located('func.func @main() attributes {a = "' + '\\"' * 200_000)
    located("func.func @main(%x: " + "tensor<" * 100_000)
    located("func.func @main() attributes {a = " + "dense<" * 100_000)


@pytest.mark.parametrize("where", ["{}", "{}x", "{}\n" + "//"])
def test_much_space_is_skipped_at_once(where: str) -> None:
    """Not a place in the text after the other, with all that a token may be tried at each."""
    began = time.perf_counter()
    with pytest.raises(ParseError):
        stablehlo.parse(where.format("\n" * 20_000_000))
    assert time.perf_counter() - began < 10


MANUAL = """%0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"i"}]>] out_shardings=[<@mesh, [{}]>]
  manual_axes={"i"} (%b: tensor<2xf32>) { sdy.return %b : tensor<2xf32> } : (tensor<8xf32>) -> tensor<2xf32>"""
GENERIC = """%0 = "sdy.manual_computation"(%a) <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{"i"}]>]>,
  manual_axes = #sdy<manual_axes{"i"}>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{}]>]>}> ({
  ^bb0(%b: tensor<2xf32>): "sdy.return"(%b) : (tensor<2xf32>) -> ()
  }) : (tensor<8xf32>) -> tensor<2xf32>"""


@pytest.mark.parametrize("computation", [MANUAL, GENERIC])
def test_programs_that_are_to_be_cut_up_say_how(computation: str) -> None:
    """What `jax.shard_map` is on several devices."""
    text = f"""sdy.mesh @mesh = <["i"=4]>
      func.func public @main(%a: tensor<8xf32>) -> tensor<2xf32> {{
        {computation}
        return %0 : tensor<2xf32>
      }}"""
    with pytest.raises(UnsupportedError, match=r"compile\(\)\.as_text\(\) is then the program of each device"):
        stablehlo.parse(text)
