"""Bad and extreme input: a clear XlaError each time, or it simply works. Never anything else."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xlapy
from tests.support.values import assert_same
from xlapy import ops
from xlapy.hlo.nesting import MOST_NESTED
from xlapy.hlo.verifier import verify

Array = np.ndarray[Any, Any]
F32 = np.float32


def exe_of(dims: tuple[int, ...] = (3, 4), dtype: Any = F32) -> xlapy.Executable:
    b = xlapy.XlaBuilder("sum")
    x, y = (ops.Parameter(b, number, xlapy.Shape.array(dtype, dims), name) for number, name in enumerate("xy"))
    return xlapy.compile(b.build(x - y))


# -- arguments at call time --------------------------------------------------------------------------------------------

GOOD = np.arange(12, dtype=F32).reshape(3, 4)


@pytest.mark.parametrize(
    ("title", "value"),
    [
        ("another shape", np.zeros((4, 3), F32)),
        ("another rank", np.zeros(12, F32)),
        ("a scalar", F32(3)),
        ("another type", np.zeros((3, 4), np.float64)),
        ("integers", np.zeros((3, 4), np.int32)),
        ("strings", np.full((3, 4), "1")),
        ("objects", np.full((3, 4), None)),
        ("a Python scalar", 3.0),
        ("a list", [[0.0] * 4] * 3),
        ("nothing", None),
        ("a string", "zeros"),
        ("empty", np.zeros((3, 0), F32)),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
@pytest.mark.parametrize("position", [0, 1])
def test_wrong_arguments(title: str, value: Any, position: int) -> None:
    exe = exe_of()
    arguments = [GOOD, GOOD]
    arguments[position] = value
    with pytest.raises(xlapy.ArgumentError, match=rf"parameter {position} \({'xy'[position]}\): expected f32\[3,4\]"):
        exe(*arguments)
    assert_same(exe(GOOD, GOOD), GOOD - GOOD)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_wrong_number_of_arguments(count: int) -> None:
    with pytest.raises(xlapy.ArgumentError, match="takes 2 arguments"):
        exe_of()(*[GOOD] * count)


def unaligned(value: Array) -> Array:
    raw = np.zeros(value.nbytes + 1, np.uint8)
    view = raw[1:].view(value.dtype).reshape(value.shape)
    view[...] = value
    return view


def read_only(value: Array) -> Array:
    copy = value.copy()
    copy.flags.writeable = False
    return copy


FORMS = {
    "Fortran order": np.asfortranarray,
    "every second element": lambda value: np.repeat(value, 2, axis=1)[:, ::2],
    "reversed": lambda value: value[::-1, ::-1].copy()[::-1, ::-1],
    "broadcast": lambda value: np.broadcast_to(value[:1], value.shape),
    "the other byte order": lambda value: value.astype(value.dtype.newbyteorder()),
    "read-only": read_only,
    "unaligned": unaligned,
    "a subclass": np.ma.masked_array,
    "a matrix of memoryview": lambda value: np.asarray(memoryview(value)),
}


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.replace(" ", "-"))
def test_every_form_of_an_array_is_taken(form: str) -> None:
    """Whatever its strides, byte order, alignment; and it is not changed."""
    value = FORMS[form](GOOD)
    before = np.array(value)
    result = exe_of()(value, GOOD)
    assert_same(result, np.array(value, F32) - GOOD)
    np.testing.assert_array_equal(np.array(value), before)
    assert result.flags.writeable and result.flags.owndata | (result.base is not None)


def test_a_parameter_that_is_the_result_is_copied() -> None:
    b = xlapy.XlaBuilder("same")
    x = ops.Parameter(b, 0, xlapy.Shape.array(F32, (4,)))
    exe = xlapy.compile(b.build(ops.Tuple(b, [x, x])))
    value = np.arange(4, dtype=F32)
    first, second = exe(value)
    first += 1
    assert_same(value, np.arange(4, dtype=F32))
    assert_same(second, value)


def test_one_array_for_both_parameters() -> None:
    assert_same(exe_of()(GOOD, GOOD), np.zeros_like(GOOD))


def test_tuple_parameters() -> None:
    b = xlapy.XlaBuilder("tuple")
    vector = xlapy.Shape.array(F32, (4,))
    p = ops.Parameter(b, 0, xlapy.Shape.tuple([vector, xlapy.Shape.tuple([vector])]))
    exe = xlapy.compile(b.build(p[0] + p[1][0]))
    value = np.arange(4, dtype=F32)
    assert_same(exe((value, (value,))), 2 * value)
    for wrong in [value, (value,), (value, value), (value, (value, value)), (value, (value[:3],))]:
        with pytest.raises(xlapy.ArgumentError, match="parameter 0"):
            exe(wrong)


# -- sizes -------------------------------------------------------------------------------------------------------------


def test_a_chain_of_ten_thousand_instructions() -> None:
    """Of one element-wise op behind the other, and of reverses, which cannot all be folded away."""
    b = xlapy.XlaBuilder("chain")
    x = ops.Parameter(b, 0, xlapy.Shape.array(F32, (8,)))
    y = x
    for step in range(5_000):
        y = ops.Rev(y, (0,)) if step % 100 == 99 else -y
        y = y + 1
    computation = b.build(y)
    exe = xlapy.compile(computation)
    value = np.arange(8, dtype=F32)
    assert_same(exe(value), xlapy.evaluate(computation, value))


def test_a_chain_of_ten_thousand_scalars() -> None:
    lines = ["HloModule chain", "ENTRY main {", "  v0 = s32[] parameter(0)"]
    lines += [f"  v{n + 1} = s32[] {('add', 'xor', 'multiply')[n % 3]}(v{n}, v{n // 2})" for n in range(10_000)]
    text = "\n".join([*lines[:-1], lines[-1].replace("  v", "  ROOT v", 1), "}"])
    exe = xlapy.compile(text)
    assert_same(exe(np.int32(3)), xlapy.evaluate(text, np.int32(3)))


def test_a_thousand_parameters_and_results() -> None:
    b = xlapy.XlaBuilder("wide")
    parameters = [ops.Parameter(b, n, xlapy.Shape.array(F32, (2,))) for n in range(1000)]
    exe = xlapy.compile(b.build(ops.Tuple(b, [p + 1 for p in parameters])))
    values = [np.full(2, n, F32) for n in range(1000)]
    assert_same(exe(*values), tuple(value + 1 for value in values))


def test_huge_constants() -> None:
    """They stay out of the IR; as text they survive, too."""
    value = np.random.default_rng(0).normal(size=(1024, 1024)).astype(F32)
    b = xlapy.XlaBuilder("constant")
    x = ops.Parameter(b, 0, xlapy.Shape.array(F32, (1024,)))
    exe = xlapy.compile(b.build(b.constant(value) + ops.BroadcastInDim(x, (1024, 1024), (1,))))
    assert len(exe.llvm_ir()) < 100_000
    assert_same(exe(np.ones(1024, F32)), value + 1)


def test_zero_sized_dimensions() -> None:
    b = xlapy.XlaBuilder("empty")
    x = ops.Parameter(b, 0, xlapy.Shape.array(F32, (3, 0, 2)))
    y = ops.Parameter(b, 1, xlapy.Shape.array(F32, (0, 4)))
    rows = [
        x + 1,
        ops.Transpose(x, (2, 0, 1)),
        ops.Reshape(x, (0, 7)),
        x.reduce(5, ops.Add, (1,)),
        ops.ConcatInDim(b, [x, x], 1),
        ops.Dot(ops.Reshape(x, (6, 0)), y),
        ops.Rev(x, (0, 1)),
        ops.Slice(x, (0, 0, 0), (2, 0, 1)),
    ]
    computation = b.build(ops.Tuple(b, rows))
    arguments = (np.zeros((3, 0, 2), F32), np.zeros((0, 4), F32))
    assert_same(xlapy.compile(computation)(*arguments), xlapy.evaluate(computation, *arguments))


# -- builders ----------------------------------------------------------------------------------------------------------


def test_a_computation_used_in_two_builders() -> None:
    inner = xlapy.XlaBuilder("inner")
    x, y = (ops.Parameter(inner, number, xlapy.Shape.scalar(F32)) for number in range(2))
    combine = inner.build(x + y * 2)
    value = np.arange(6, dtype=F32)
    for name in ("first", "second"):
        b = xlapy.XlaBuilder(name)
        v = ops.Parameter(b, 0, xlapy.Shape.array(F32, (6,)))
        mapped = ops.Map(b, [v, v], combine)
        exe = xlapy.compile(b.build(mapped + ops.Call(b, combine, [b.constant(F32(1)), b.constant(F32(2))])))
        assert_same(exe(value), value * 3 + 5)


def test_an_operand_of_another_builder() -> None:
    first, second = xlapy.XlaBuilder("first"), xlapy.XlaBuilder("second")
    x = ops.Parameter(first, 0, xlapy.Shape.array(F32, (4,)))
    y = ops.Parameter(second, 0, xlapy.Shape.array(F32, (4,)))
    with pytest.raises(xlapy.XlaError, match="second") as caught:
        ops.Add(x, y)
    assert "test_bad_input.py" in str(caught.value)
    with pytest.raises(xlapy.XlaError):
        first.build(y)


@pytest.mark.parametrize(
    "call",
    [
        lambda b, x: ops.Add(x, b.constant(np.zeros(3, F32))),
        lambda b, x: ops.Add(x, b.constant(np.zeros(4, np.int32))),
        lambda b, x: ops.Reshape(x, (5,)),
        lambda b, x: ops.Transpose(x, (1, 0)),
        lambda b, x: ops.Slice(x, (0,), (9,)),
        lambda b, x: ops.ConcatInDim(b, [x, b.constant(F32(1))], 0),
        lambda b, x: ops.Dot(x, b.constant(np.zeros((3, 3), F32))),
        lambda b, x: ops.While(lambda v: v, lambda v: v, x),
        lambda b, x: ops.Conditional(x, x, lambda v: v, x, lambda v: v),
        lambda b, x: x.reduce(0, lambda p, q: p < q, (0,)),
        lambda b, x: ops.DynamicSlice(x, [b.constant(F32(0))], (2,)),
        lambda b, x: ops.Select(x, x, x),
        lambda b, x: ops.GetTupleElement(x, 0),
        lambda b, x: x + "one",
        lambda b, x: x + 1j,
        lambda b, x: x & 1,
    ],
    ids=range(16),
)
def test_errors_come_at_the_faulty_call(call: Any) -> None:
    b = xlapy.XlaBuilder("wrong")
    x = ops.Parameter(b, 0, xlapy.Shape.array(F32, (4,)))
    with pytest.raises(xlapy.XlaError) as caught:
        call(b, x)
    assert "test_bad_input.py" in str(caught.value)
    assert xlapy.compile(b.build(x + 1)) is not None, "the builder is usable afterwards"


# -- text --------------------------------------------------------------------------------------------------------------

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
    for _ in range(400):
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


# -- what doubles with every line --------------------------------------------------------------------------------------


@pytest.mark.parametrize("program", [None, b"ENTRY e { ROOT x = f32[] parameter(0) }", 3])
@pytest.mark.parametrize("parse", [xlapy.hlo.parse, xlapy.stablehlo.parse])
def test_only_text_is_parsed(parse: Any, program: Any) -> None:
    with pytest.raises(xlapy.ParseError, match="read from text, a str, not from"):
        parse(program)


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


@pytest.mark.parametrize("count", [0, -3, "2", 2.5, None])
@pytest.mark.parametrize("name", ["num_replicas", "num_partitions"])
def test_a_number_of_processes_is_one_or_more(name: str, count: Any) -> None:
    with pytest.raises(xlapy.ArgumentError, match=f"{name} is a number of processes, 1 or more, not {count!r}"):
        xlapy.CompileOptions(**{name: count})


@pytest.mark.parametrize("body", ["negate(x)", "all-reduce(x), to_apply=sum"])
def test_more_processes_than_devices(body: str) -> None:
    region = "sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }"
    text = (
        f"HloModule m, replica_count=4294967296\n{region}\nENTRY e {{ x = f32[] parameter(0)  ROOT y = f32[] {body} }}"
    )
    with pytest.raises(xlapy.ArgumentError, match="4294967296 replicas of 1 partitions are more processes"):
        xlapy.compile(text)


def test_a_device_with_an_enormous_number() -> None:
    with pytest.raises(xlapy.ArgumentError, match="no 1099511627777 devices"):
        xlapy.compile("ENTRY e { ROOT x = f32[] parameter(0) }", xlapy.CompileOptions(device_assignment=[1 << 40]))


OPTIONS = [
    *(("num_threads", value) for value in ("x", 2.5)),
    *(("seed", value) for value in ("x", None, 1.5)),
    *(("device_assignment", value) for value in (3, ["a"], "0")),
    *(("disabled_passes", 3), ("disabled_laws", None), ("passes", 3), ("laws", 3), ("custom_calls", ["f"])),
    *(("disabled_passes", [3]), ("disabled_laws", b"f"), ("passes", "dce"), ("laws", [[3]]), ("fast_math", "off")),
    *((name, np.array([None])) for name in ("num_threads", "seed", "passes")),
]


@pytest.mark.parametrize(("name", "value"), OPTIONS)
def test_options_of_another_kind(name: str, value: Any) -> None:
    with pytest.raises(xlapy.ArgumentError, match=name):
        xlapy.CompileOptions(**{name: value})


@pytest.mark.parametrize("dims", [(2.5,), ("a",), 3, None, (np.float32(2),), ((2,),)])
def test_sizes_are_integers(dims: Any) -> None:
    with pytest.raises(xlapy.ShapeError, match="the sizes of an array are a list of integers"):
        xlapy.Shape.array(F32, dims)


@pytest.mark.parametrize(
    "dtype", [None, 3, "float31", np.array(1), object, [("x", "f4")], "U4", "M8[s]", (1, 2)], ids=str
)
def test_what_is_no_element_type(dtype: Any) -> None:
    with pytest.raises(xlapy.ArgumentError, match="element type"):
        xlapy.Shape.array(dtype, (2,))


@pytest.mark.parametrize("elements", [None, 3, "ab", [None], [xlapy.Shape.scalar(F32), (2, 3)]], ids=str)
def test_tuples_are_of_shapes(elements: Any) -> None:
    with pytest.raises(xlapy.ArgumentError, match="a tuple is made of"):
        xlapy.Shape.tuple(elements)


def test_flags_and_layouts_are_lists() -> None:
    for flags in (3, None, [np.zeros(2)]):
        with pytest.raises(xlapy.ShapeError, match="flags of dimensions are a list of bools"):
            xlapy.Shape.array(F32, (2,), flags)  # type: ignore[arg-type]
    for layout in (3, ["a", "b"], [0.0, 1.0]):
        with pytest.raises(xlapy.ShapeError, match="a layout is a list of dimensions"):
            xlapy.Shape.array(F32, (2, 3), (), layout)  # type: ignore[arg-type]
    assert str(xlapy.Shape.array(F32, (2, 3), np.array([False, True]))) == "f32[2,<=3]"  # type: ignore[arg-type]


def test_a_flag_for_each_dimension() -> None:
    with pytest.raises(xlapy.ShapeError, match="2 flags say which of 1 dimensions are dynamic"):
        xlapy.Shape.array(F32, (2,), (True, False))


def test_arguments_of_another_kind() -> None:
    exe = exe_of()
    for arguments in ({"seed": "x"}, {"device": 3}, {"device": 0}):
        with pytest.raises(xlapy.ArgumentError, match=next(iter(arguments))):
            exe.run(GOOD, GOOD, **arguments)
    for rows in (3, None, [3], [GOOD], GOOD):
        with pytest.raises(xlapy.ArgumentError, match="takes a list of arguments for each of 1 processes"):
            exe.run_parallel(rows)  # type: ignore[arg-type]
    for profile in (3, "page.html"):
        with pytest.raises(xlapy.ArgumentError, match=r"a profile is what Executable\.profile returns"):
            exe.html_report(None, profile)  # type: ignore[arg-type]
    with pytest.raises(xlapy.ArgumentError, match="options are CompileOptions"):
        xlapy.compile("ENTRY e { ROOT x = f32[] parameter(0) }", {"num_threads": 1})  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [0, -1, 1.0, 2.5, "2", [1], (1 << 16) + 1])
def test_numbers_of_devices(count: Any) -> None:
    with pytest.raises(xlapy.ArgumentError, match=r"no -?\d+ devices|is an integer"):
        xlapy.devices(count)
    assert len(xlapy.devices(np.int64(2))) == 2


@pytest.mark.parametrize("value", [3, "x", ["f"]])
def test_functions_that_are_given_something_else(value: Any) -> None:
    program = "ENTRY e { ROOT x = f32[] parameter(0) }"
    calls = [
        lambda: xlapy.evaluate(program, F32(1), custom_calls=value),
        lambda: xlapy.stablehlo.to_text(value),
        lambda: xlapy.register_custom_call_target(value, value),
        lambda: xlapy.hlo.parse(program) and xlapy.devices("x"),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(
            xlapy.ArgumentError,
            match=r"custom_calls|is written as text|custom call target|nor a function pointer|devices",
        ):
            call()


# -- names and texts that go along -------------------------------------------------------------------------------------

AWKWARD = ['a"b', "a\nb", "a\\b", "na\u00efve", "{", "}", "a b", "", "\0", "x" * 10_000, "//", "/*", "\t", '\u00e9"\\n']


class Metadata:
    def __init__(self, text: str) -> None:
        self.op_name = self.op_type = self.source_file = text
        self.source_line = 3


@pytest.mark.parametrize("text", AWKWARD, ids=range(len(AWKWARD)))
def test_any_text_is_carried_along(text: str) -> None:
    """As the name of a builder and a parameter, in metadata and frontend attributes: in all forms of the program."""
    b = xlapy.XlaBuilder(text)
    b.set_op_metadata(Metadata(text))
    b.set_frontend_attributes({"key": text})
    x = ops.Parameter(b, 0, xlapy.Shape.array(F32, (4,)), text)
    computation = b.build(x + 1)
    written = computation.module.to_text(long=True)
    again = xlapy.hlo.parse(written)
    assert again.to_text(long=True) == written
    assert again.entry.root.metadata.op_name == text
    value = np.ones(4, F32)
    for program in (computation, written, xlapy.stablehlo.to_text(again), xlapy.stablehlo.to_text(again, pretty=True)):
        assert_same(xlapy.compile(program)(value), value + 1)


def test_half_a_character_is_no_text() -> None:
    b = xlapy.XlaBuilder("half")
    shape = xlapy.Shape.scalar(F32)
    half = "\ud800"
    calls = [
        lambda: xlapy.XlaBuilder(half),
        lambda: b.parameter(0, shape, half),
        lambda: b.set_op_metadata(Metadata(half)),
        lambda: b.set_frontend_attributes({"key": half}),
        lambda: ops.CustomCall(b, half, [], shape),
    ]
    for call in calls:
        with pytest.raises(xlapy.ArgumentError, match="half a character"):
            call()


def test_a_program_with_half_a_character_in_a_comment() -> None:
    text = 'ENTRY e { x = f32[] parameter(0)  ROOT y = f32[] negate(x), metadata={op_name="\ud800"} } // \udfff'
    for program in (text, xlapy.hlo.parse(text)):
        assert_same(xlapy.compile(program)(F32(1)), F32(-1))


def test_a_source_file_whose_name_is_no_text() -> None:
    b = xlapy.XlaBuilder("named in Latin-1")
    made = compile("x = b.constant(np.ones(2, np.float32)) + 1", "/tmp/caf\udce9.py", "exec")
    scope = {"b": b, "np": np}
    exec(made, scope)
    computation = b.build()
    assert_same(xlapy.compile(computation)(), np.full(2, 2, F32))
    assert computation.module.entry.root.metadata.source_file == "/tmp/caf?.py"


@pytest.mark.parametrize(
    "attributes", [None, 3, "key", {"key": 3}, {3: "text"}, {"a key": "text"}, {"": ""}, {'"': ""}]
)
def test_what_are_no_frontend_attributes(attributes: Any) -> None:
    with pytest.raises(xlapy.ArgumentError, match=r"set_frontend_attributes(?s:.*)test_bad_input\.py"):
        xlapy.XlaBuilder("b").set_frontend_attributes(attributes)


@pytest.mark.parametrize("sharding", [None, "", "replicated", "{", "}{", "{replicated} {}", '{"}', "{a}, metadata={"])
def test_what_is_no_sharding(sharding: Any) -> None:
    with pytest.raises(xlapy.ArgumentError, match=r"a sharding is HLO's text in braces(?s:.*)test_bad_input\.py"):
        xlapy.XlaBuilder("b").set_sharding(sharding)


def test_aliases_and_donors_of_another_kind() -> None:
    b = xlapy.XlaBuilder("alias")
    calls = [
        lambda: xlapy.XlaBuilder(3),  # type: ignore[arg-type]
        lambda: b.setup_alias((), "x"),  # type: ignore[arg-type]
        lambda: b.setup_alias(("x",), 0),  # type: ignore[arg-type]
        lambda: b.add_buffer_donor(None),  # type: ignore[arg-type]
        lambda: b.add_buffer_donor(0, 1.5),  # type: ignore[arg-type]
        lambda: b.set_hidden_token(True),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(xlapy.ArgumentError):
            call()


# -- more memory than there is -----------------------------------------------------------------------------------------

ENDLESS = 1 << 44
ENDLESS_TYPE = f"f32[{ENDLESS}]"
LOOSE = f"x = f32[] parameter(0)  y = {ENDLESS_TYPE} broadcast(x), dimensions={{}}"
TOO_LARGE = {
    "the result": (
        f"ROOT z = {ENDLESS_TYPE} negate(y)",
        rf"a result of 70,368,744,177,664 bytes, float32\[{ENDLESS}\]",
    ),
    "a part of it": (f"ROOT z = (f32[], {ENDLESS_TYPE}) tuple(x, y)", "a result of 70,368,744,177,664 bytes"),
    "temporaries": (
        f"s = {ENDLESS_TYPE} sine(y)  t = {ENDLESS_TYPE} sort(s), dimensions={{0}}, to_apply=less  "
        "ROOT z = f32[1] slice(t), slice={[0:1]}",
        r"[\d,]{18,} bytes of temporaries",
    ),
}


@pytest.mark.parametrize("what", TOO_LARGE, ids=lambda what: what.replace(" ", "-"))
def test_what_no_memory_holds(what: str) -> None:
    """The error says what for, and how much."""
    less = "less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = pred[] compare(a, b), direction=LT }"
    body, message = TOO_LARGE[what]
    text = f"{less}  ENTRY e {{ {LOOSE}  {body} }}"
    exe = xlapy.compile(text)
    for call in (exe, exe.run):
        with pytest.raises(xlapy.OutOfMemoryError, match=f"no memory for {message}") as caught:
            call(F32(1))
        assert isinstance(caught.value, MemoryError)
    with pytest.raises(xlapy.OutOfMemoryError, match=r"no memory (to evaluate <|for a result: .*17592186044416)"):
        xlapy.evaluate(text, F32(1))


def test_an_argument_of_which_no_memory_holds_a_copy() -> None:
    exe = xlapy.compile(f"ENTRY e {{ x = {ENDLESS_TYPE} parameter(0)  ROOT y = f32[1] slice(x), slice={{[0:1]}} }}")
    with pytest.raises(xlapy.OutOfMemoryError, match=r"parameter 0 \(x\): no memory for a copy of 70,368,744,177,664"):
        exe(np.broadcast_to(F32(1), (ENDLESS,)))


# -- what stands for a program, nearly ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [Path("m.hlo"), io.StringIO("ENTRY e"), np.zeros(2), memoryview(b"ENTRY e")],
    ids=lambda source: type(source).__name__,
)
def test_what_would_give_a_program_is_named(source: Any) -> None:
    with pytest.raises(xlapy.ParseError, match=r"is not a program: .*; what its (read|read_bytes|tobytes)\(\) returns"):
        xlapy.load(source)


def test_a_builder_is_not_built_yet() -> None:
    with pytest.raises(xlapy.ParseError, match=r"XlaBuilder is not a program: .*; what its build\(\) returns"):
        xlapy.compile(xlapy.XlaBuilder("m"))  # type: ignore[arg-type]


def test_the_name_of_a_file_is_not_what_is_in_it() -> None:
    with pytest.raises(xlapy.ParseError, match=r"not the name of a file: Path\('some/model.mlir'\).read_bytes\(\)"):
        xlapy.compile("some/model.mlir")


def test_a_misspelt_option() -> None:
    with pytest.raises(TypeError, match=r"was given num_thread; did you mean num_threads\?"):
        xlapy.CompileOptions(num_thread=2)  # type: ignore[call-arg]


def test_a_misspelt_name_of_the_package() -> None:
    with pytest.raises(AttributeError) as caught:
        xlapy.complie  # noqa: B018
    assert caught.value.name == "complie" and caught.value.obj is xlapy


def test_how_to_make_the_argument_that_is_wanted() -> None:
    exe = xlapy.compile("ENTRY e { x = f32[2] parameter(0)  ROOT y = f32[2] negate(x) }")
    with pytest.raises(xlapy.ArgumentError, match=r"f32\[2\], got f64\[2\]; \.astype\('float32'\) converts it"):
        exe(np.zeros(2))
    with pytest.raises(xlapy.ArgumentError, match=r"f32\[2\], got f64\[3\]$"):
        exe(np.zeros(3))
    with pytest.raises(xlapy.ArgumentError, match=r"f32\[2\], got list; np\.asarray\(it, 'float32'\) makes an array"):
        exe([1.0, 2.0])


@pytest.mark.parametrize("text", ["ENTRY e { ROOT x = f32[] parameter(0) }\r\n", STABLEHLO.replace("\n", "\r\n")])
def test_text_as_some_editors_write_it(text: str) -> None:
    marked = "\ufeff" + text
    assert str(xlapy.load(marked)) == str(xlapy.load(marked.encode())) == str(xlapy.load(text))
