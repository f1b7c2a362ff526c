"""Text and bytes that are no program, or a monstrous one: a clear XlaError each time, or it simply works."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xlapy
from xlapy import ops
from xlapy.hlo.nesting import MOST_NESTED
from xlapy.hlo.verifier import verify

F32 = np.float32
DEPTH = 10_000


def nested_hlo_operands() -> str:
    return (
        "HloModule m\nENTRY main {\n  ROOT r = f32[] " + "negate(f32[] " * DEPTH + "constant(1)" + ")" * DEPTH + "\n}"
    )


def nested_tuple_shape() -> str:
    return "HloModule m\nENTRY main {\n  ROOT p = " + "(" * DEPTH + "f32[]" + ")" * DEPTH + " parameter(0)\n}"


def nested_literal() -> str:
    return "HloModule m\nENTRY main {\n  ROOT p = f32[1] constant(" + "{" * DEPTH + "1" + "}" * DEPTH + ")\n}"


def nested_calls() -> str:
    lines = ["HloModule m", "f0 { p = f32[] parameter(0) ROOT n = f32[] negate(p) }"]
    lines += [f"f{n} {{ p = f32[] parameter(0) ROOT c = f32[] call(p), to_apply=f{n - 1} }}" for n in range(1, DEPTH)]
    return "\n".join([*lines, f"ENTRY m {{ p = f32[] parameter(0) ROOT c = f32[] call(p), to_apply=f{DEPTH - 1} }}"])


def nested_attributes() -> str:
    return (
        "HloModule m\nENTRY main {\n  ROOT p = f32[] parameter(0), frontend_attributes="
        + "{" * DEPTH
        + "}" * DEPTH
        + "\n}"
    )


def nested_stablehlo_tuple() -> str:
    return f"func.func @main(%a: {'tuple<' * DEPTH}tensor<f32>{'>' * DEPTH}) {{ return }}"


def nested_stablehlo_regions() -> str:
    opened = "".join(f'%r{n} = "stablehlo.case"(%i) ({{\n' for n in range(DEPTH))
    closed = "stablehlo.return %x : tensor<f32>\n}) : (tensor<i32>) -> tensor<f32>\n" * DEPTH
    head = "func.func @main(%i: tensor<i32>, %x: tensor<f32>) -> tensor<f32> {\n"
    return f"{head}{opened}{closed}return %r0 : tensor<f32>\n}}"


def nested_stablehlo_attributes() -> str:
    return "module attributes {a = " + "[" * DEPTH + "]" * DEPTH + "} { func.func @main() { return } }"


def nested_conditionals(depth: int = 10_000) -> str:
    """Of the sine of x, inside so many branches."""
    branches = [
        f"c{number} {{ x = f32[] parameter(0)  n = f32[] constant({number})  p = pred[] compare(x, n), direction=NE "
        f"ROOT y = f32[] conditional(p, x, x), true_computation=c{number - 1}, false_computation=c0 }}"
        for number in range(1, depth + 1)
    ]
    innermost = "c0 { x = f32[] parameter(0)  ROOT y = f32[] sine(x) }"
    entry = f"ENTRY e {{ x = f32[] parameter(0)  ROOT y = f32[] call(x), to_apply=c{depth} }}"
    return "\n".join(["HloModule nested", innermost, *branches, entry])


def test_branches_nest_as_deep_as_the_bound() -> None:
    exe = xlapy.compile(nested_conditionals(MOST_NESTED))
    np.testing.assert_allclose(exe(np.float32(0.5)), np.sin(0.5), rtol=1e-6)


def repeated_calls(step: str, depth: int = 30) -> str:
    """Computations that call the one before them twice, in a `step` from x to c; s is a pred."""
    lines = ["HloModule repeated", "c0 { x = f32[8] parameter(0)  ROOT y = f32[8] sine(x) }"]
    for level in range(1, depth + 1):
        pick = f"part = f32[1] slice(x), slice={{[{level % 8}:{level % 8 + 1}]}}  scalar = f32[] reshape(part)"
        chosen = "zero = f32[] constant(0)  s = pred[] compare(scalar, zero), direction=GT"
        ends = step.replace("BEFORE", f"c{level - 1}")
        lines.append(f"c{level} {{ x = f32[8] parameter(0)  {pick}  {chosen}  {ends} }}")
    lines.append(f"ENTRY e {{ x = f32[8] parameter(0)  ROOT y = f32[8] call(x), to_apply=c{depth} }}")
    return "\n".join(lines)


@pytest.mark.parametrize("other", ["x", "n"])
def test_branches_that_are_one_computation_are_no_copies(other: str) -> None:
    step = f"n = f32[8] negate(x)  ROOT c = f32[8] conditional(s, x, {other}), branch_computations={{BEFORE, BEFORE}}"
    module = xlapy.hlo.parse(repeated_calls(step))
    x = np.arange(8, dtype=F32) - 3
    exe = xlapy.compile(module)
    np.testing.assert_allclose(exe(x), xlapy.evaluate(module, x), rtol=1e-6)
    assert exe.hlo_text().count("sine(") <= 2


@pytest.mark.parametrize(
    "step",
    [
        "b = f32[8] call(x), to_apply=BEFORE  ROOT c = f32[8] call(b), to_apply=BEFORE",
        """b = f32[8] conditional(s, x, x), branch_computations={BEFORE, c0}
           ROOT c = f32[8] conditional(s, b, b), branch_computations={c0, BEFORE}""",
    ],
    ids=["calls", "branches"],
)
def test_a_billion_copies_are_an_error(step: str) -> None:
    with pytest.raises(xlapy.UnsupportedError, match=r"copies of what it calls.* 1,048,576 instructions\n  c in c1\d"):
        xlapy.compile(repeated_calls(step))


def test_what_calls_one_computation_in_many_ways_is_recorded_quickly() -> None:
    """Whether it has effects is asked of each computation once, not on each of a billion ways."""
    before = xlapy.XlaBuilder("innermost")
    ops.Sin(ops.Parameter(before, 0, xlapy.Shape.scalar(F32)))
    computation = before.build()
    for level in range(30):
        builder = xlapy.XlaBuilder(f"level{level}")
        x = ops.Parameter(builder, 0, xlapy.Shape.scalar(F32))
        y = ops.Conditional(x > 0, x, computation, x, computation)
        ops.Conditional(x > 1, y, computation, y, computation)
        computation = builder.build()
    assert not computation.module.entry.has_effect
    assert computation.module.entry.is_pure


@pytest.mark.parametrize(
    "text",
    [
        nested_hlo_operands,
        nested_tuple_shape,
        nested_literal,
        nested_calls,
        nested_conditionals,
        nested_attributes,
        nested_stablehlo_tuple,
        nested_stablehlo_regions,
        nested_stablehlo_attributes,
    ],
    ids=lambda text: text.__name__,
)
def test_text_nested_ten_thousand_deep(text: Any) -> None:
    """It works, or it is an XlaError that says where; never a RecursionError."""
    try:
        exe = xlapy.compile(text())
    except xlapy.XlaError as error:
        assert error.where, f"the error has no place: {str(error)[:200]}"
        assert not isinstance(error, xlapy.InternalError)
    else:
        assert len(exe.hlo_text()) > 0


HLO = """HloModule m, entry_computation_layout={(f32[2,3]{1,0}, s32[])->(f32[2], f32[3,2])}
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
%body (s: (s32[], f32[2])) -> (s32[], f32[2]) {
  %s = (s32[], f32[2]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  ROOT %t = (s32[], f32[2]) tuple(s32[] add(%i, s32[] constant(1)), f32[2] get-tuple-element(%s), index=1)
}
cond {
  s = (s32[], f32[2]) parameter(0)
  ROOT c = pred[] compare(s32[] get-tuple-element(s), index=0, s32[] constant(3)), direction=LT
}
ENTRY main {
  x = f32[2,3]{1,0} parameter(0), metadata={op_name="x" source_file="a.py" source_line=3}
  n = s32[] parameter(1)
  c = f32[2,3] constant({{1, -2.5, nan}, {3e4, inf, 0.125}})
  p = f32[2,4] pad(c, f32[] constant(0)), padding=0_0x0_1
  y = f32[2] reduce(f32[2,3] add(x, c), f32[] constant(0)), dimensions={1}, to_apply=add
  w = (s32[], f32[2]) while((s32[], f32[2]) tuple(n, y)), condition=cond, body=body
  t = f32[3,2] transpose(x), dimensions={1,0}
  ROOT r = (f32[2], f32[3,2]) tuple(f32[2] get-tuple-element(w), index=1, t)
}
"""

STABLEHLO = """module @jit_f attributes {mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3xf32> {jax.arg = "x"}, %arg1: tensor<i32>) -> (tensor<2xf32>, tensor<i32>) {
    %cst = stablehlo.constant dense<[[1.0, -2.5, 0x7FC00000], [3.0e+04, 0.0, 1.0]]> : tensor<2x3xf32>
    %0 = stablehlo.add %arg0, %cst : tensor<2x3xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %2:2 = stablehlo.while(%i = %c, %v = %1) : tensor<i32>, tensor<2xf32>
     cond {
      %3 = stablehlo.compare LT, %i, %arg1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %3 : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %4 = stablehlo.add %i, %one : tensor<i32>
      %5 = "stablehlo.negate"(%v) : (tensor<2xf32>) -> tensor<2xf32>
      stablehlo.return %4, %5 : tensor<i32>, tensor<2xf32>
    }
    return %2#1, %2#0 : tensor<2xf32>, tensor<i32>
  }
}
"""


@pytest.mark.parametrize("text", [HLO, STABLEHLO], ids=["hlo", "stablehlo"])
def test_truncated_text(text: str) -> None:
    """Cut at every position: an XlaError each time, but for cuts that only lose space."""
    exe = xlapy.compile(text)
    assert exe is not None
    whole = len(text.rstrip())
    for length in range(whole):
        with pytest.raises(xlapy.XlaError) as caught:
            verify(xlapy.load(text[:length]))
        assert not isinstance(caught.value, xlapy.InternalError), text[:length][-40:]


@pytest.mark.parametrize("text", [HLO, STABLEHLO], ids=["hlo", "stablehlo"])
@pytest.mark.parametrize("kind", ["delete", "double", "replace", "swap"])
def test_damaged_text(text: str, kind: str) -> None:
    """One character wrong: the module may still be one, or it is an XlaError."""
    random = np.random.default_rng(0)
    signs = "(){}[]<>,=%:#@\"'0127 .xef-\n\0\u00e9"
    for _ in range(200):
        at = int(random.integers(len(text) - 1))
        sign = signs[int(random.integers(len(signs)))]
        damaged = {
            "delete": text[:at] + text[at + 1 :],
            "double": text[: at + 1] + text[at:],
            "replace": text[:at] + sign + text[at + 1 :],
            "swap": text[:at] + text[at + 1] + text[at] + text[at + 2 :],
        }[kind]
        try:
            verify(xlapy.load(damaged))
        except xlapy.XlaError as error:
            assert not isinstance(error, xlapy.InternalError), (at, sign, str(error))


@pytest.mark.parametrize(
    "text", ["", " ", "\0", "hello", "module", "HloModule", "func.func", "{", "\ufeff", "// nothing"]
)
def test_text_that_is_no_program(text: str) -> None:
    with pytest.raises(xlapy.XlaError):
        xlapy.compile(text)


@pytest.mark.parametrize("source", [None, 3, b"HloModule m", ["HloModule m"], np.zeros(3)], ids=str)
def test_what_is_no_program(source: Any) -> None:
    with pytest.raises(xlapy.XlaError):
        xlapy.compile(source)


@pytest.mark.parametrize("program", [None, b"ENTRY e { ROOT x = f32[] parameter(0) }", 3])
@pytest.mark.parametrize("parse", [xlapy.hlo.parse, xlapy.stablehlo.parse])
def test_only_text_is_parsed(parse: Any, program: Any) -> None:
    with pytest.raises(xlapy.ParseError, match="read from text, a str, not from"):
        parse(program)


# -- what doubles with every line --------------------------------------------------------------------------------------


def test_an_attribute_of_aliases_that_double() -> None:
    aliases = "".join(f"#a{n} = [#a{n - 1}, #a{n - 1}]\n" for n in range(1, 40))
    call = "stablehlo.custom_call @f(%x) {api_version = 4 : i32, backend_config = {a = #a39}}"
    body = f"%0 = {call} : (tensor<f32>) -> tensor<f32> return %0 : tensor<f32>"
    with pytest.raises(xlapy.ParseError, match=r"longer than .* when it is written out"):
        xlapy.stablehlo.parse(f"#a0 = [1]\n{aliases}func.func @main(%x: tensor<f32>) -> tensor<f32> {{ {body} }}")


def test_a_type_of_aliases_that_double() -> None:
    aliases = "".join(f"!a{n} = tuple<!a{n - 1}, !a{n - 1}>\n" for n in range(1, 40))
    text = f"!a0 = tuple<>\n{aliases}func.func @main(%x: !a39) -> !a39 {{ return %x : !a39 }}"
    with pytest.raises(xlapy.ShapeError, match=r"parts in all(?s:.*)line 22, column 1"):
        xlapy.stablehlo.parse(text)


def test_an_error_about_many_operands_can_be_read() -> None:
    many = "%x, " * 100_000
    text = f"func.func @main(%x: tensor<f32>) {{ %0 = stablehlo.add {many}%x : tensor<f32> return }}"
    with pytest.raises(xlapy.ShapeError, match=r"f32\[\], f \.\.\. ") as caught:
        xlapy.stablehlo.parse(text)
    assert len(str(caught.value)) < 10_000


# -- what stands for a program, nearly ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [Path("m.hlo"), io.StringIO("ENTRY e"), np.zeros(2)],
    ids=lambda source: type(source).__name__,
)
def test_what_would_give_a_program_is_named(source: Any) -> None:
    with pytest.raises(xlapy.ParseError, match=r"is not a program: .*; what its (read|read_bytes|tobytes)\(\) returns"):
        xlapy.load(source)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview], ids=lambda kind: kind.__name__)
def test_bytes_come_in_any_container(kind: Any) -> None:
    source = kind(b"ENTRY e { ROOT p = f32[2] parameter(0) }")
    assert xlapy.compile(source)(np.ones(2, np.float32)).tolist() == [1, 1]


@pytest.mark.parametrize("source", ["", " \n", b"", "\ufeff"], ids=repr)
def test_nothing_is_no_program(source: str | bytes) -> None:
    with pytest.raises(xlapy.ParseError, match="this program is empty"):
        xlapy.load(source)


def test_a_builder_is_not_built_yet() -> None:
    with pytest.raises(xlapy.ParseError, match=r"XlaBuilder is not a program: .*; what its build\(\) returns"):
        xlapy.compile(xlapy.XlaBuilder("m"))  # type: ignore[arg-type]


def test_an_operation_is_not_a_program() -> None:
    operation = xlapy.XlaBuilder("m").parameter(0, xlapy.Shape.array(np.float32, (2,)))
    with pytest.raises(xlapy.ParseError, match=r"XlaOp is not a program: .*; its builder makes one: builder\.build"):
        xlapy.compile(operation)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["some/model.mlir", "model.hlo", "/a folder/model", "my model.mlir"])
def test_the_name_of_a_file_is_not_what_is_in_it(name: str) -> None:
    with pytest.raises(xlapy.ParseError, match=rf"not the name of a file: Path\('{name}'\).read_bytes\(\)"):
        xlapy.compile(name)


@pytest.mark.parametrize("text", ["ENTRY e { ROOT x = f32[] parameter(0) }\r\n", STABLEHLO.replace("\n", "\r\n")])
def test_text_as_some_editors_write_it(text: str) -> None:
    marked = "\ufeff" + text
    assert str(xlapy.load(marked)) == str(xlapy.load(marked.encode())) == str(xlapy.load(text))
