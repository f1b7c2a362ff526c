"""Windows and dimension labels in HLO text, in XLA's spelling: what XLA reads of ours, and we of XLA's."""

# ruff: noqa: E501 (programs and tables are kept on their lines)

from __future__ import annotations

import pytest

from tests.hlo.text.test_xla_reads_our_text import through_xla
from xlapy.hlo.text import canonical_text, parse, to_text
from xlapy_runtime.errors import ParseError, ShapeError

REGIONS = """\
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ge {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = pred[] compare(a, b), direction=GE
}

both {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  s = f32[] add(a, b)
  t = s32[] add(i, j)
  ROOT p = (f32[], s32[]) tuple(s, t)
}
"""

LINES = [
    "f32[2,8,8,4] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
    "f32[2,3,10,4] convolution(x, k), window={size=3x3 stride=3x1 pad=1_0x2_2}, dim_labels=b01f_01io->b01f",
    "f32[2,15,4,4] convolution(x, k), window={size=3x3 pad=1_1x-1_-1 lhs_dilate=2x1}, dim_labels=b01f_01io->b01f",
    "f32[2,4,6,4] convolution(x, k), window={size=3x3 rhs_dilate=2x1}, dim_labels=b01f_01io->b01f",
    "f32[2,6,6,4] convolution(x, k), window={size=3x3 rhs_reversal=1x0}, dim_labels=b01f_01io->b01f",
    "f32[4,6,2,6] convolution(x, k), window={size=3x3}, dim_labels=b01f_01io->f0b1",
    "f32[2,6,6,6] convolution(x, g), window={size=3x3}, dim_labels=b01f_01io->b01f, feature_group_count=3",
    "f32[1,6,6,4] convolution(x, k), window={size=3x3}, dim_labels=b01f_01io->b01f, batch_group_count=2",
    "f32[2,6,6,4] convolution(x, k), window={size=3x3}, dim_labels=b01f_01io->b01f, operand_precision={highest,default}",
    "f32[3,4] convolution(m, n), dim_labels=bf_io->bf",
    "f32[2,4,4,3] reduce-window(x, z), window={size=1x2x2x1 stride=1x2x2x1}, to_apply=add",
    "f32[2,8,8,3] reduce-window(x, z), window={size=1x3x3x1 pad=0_0x1_1x2_0x0_0}, to_apply=add",
    "f32[2,11,7,3] reduce-window(x, z), window={size=1x3x2x1 pad=0_0x0_0x0_0x0_0 lhs_dilate=1x2x1x1 rhs_dilate=1x2x1x1},"
    " to_apply=add",
    "(f32[2,7,8,3], s32[2,7,8,3]) reduce-window(x, i, z, o), window={size=1x2x1x1}, to_apply=both",
    "f32[2,8,8,3] select-and-scatter(x, s, z), window={size=1x2x2x1 stride=1x2x2x1}, select=ge, scatter=add",
    "(f32[2,8,8,3], f32[3], f32[3]) batch-norm-training(x, v, v), epsilon=0.001, feature_index=3",
    "f32[2,8,8,3] batch-norm-inference(x, v, v, v, v), epsilon=0.25, feature_index=3",
    "(f32[2,8,8,3], f32[3], f32[3]) batch-norm-grad(x, v, v, v, x), epsilon=0.5, feature_index=3",
]


def program(line: str) -> str:
    return (
        f"HloModule windows\n\n{REGIONS}\nENTRY main {{\n"
        "  x = f32[2,8,8,3] parameter(0)\n  k = f32[3,3,3,4] parameter(1)\n  g = f32[3,3,1,6] parameter(2)\n"
        "  m = f32[3,5] parameter(3)\n  n = f32[5,4] parameter(4)\n  s = f32[2,4,4,3] parameter(5)\n"
        "  v = f32[3] parameter(6)\n  i = s32[2,8,8,3] parameter(7)\n"
        f"  z = f32[] constant(0)\n  o = s32[] constant(0)\n  ROOT r = {line}\n}}\n"
    )


@pytest.mark.parametrize("line", LINES, ids=[str(number) for number in range(len(LINES))])
def test_round_trip_with_and_without_xla(line: str) -> None:
    module = parse(program(line))
    text = to_text(module)
    assert to_text(parse(text)) == text
    by_xla = parse(through_xla(to_text(module, long=True)))
    assert by_xla.entry.root.attributes == module.entry.root.attributes
    assert by_xla.entry.root.shape.matches(module.entry.root.shape)
    assert canonical_text(parse(to_text(by_xla))) == canonical_text(by_xla)


WRONG = [
    (LINES[0].replace("size=3x3", "size=3"), ParseError, "1 sizes, but padding_low is given 2 times"),
    (LINES[0].replace("size=3x3", "sizes=3x3"), ParseError, "a window has no 'sizes'"),
    (LINES[0].replace("pad=1_1x1_1", "pad=1x1"), ParseError, "low_high"),
    (LINES[0].replace("b01f_01io", "b01f_01ii"), ParseError, "does not have each of"),
    (LINES[0].replace("size=3x3", "size=3x2"), ShapeError, "does not fit"),
    (LINES[10].replace("size=1x2x2x1", "size=1x2x2x1 rhs_reversal=0x1x0x0"), ShapeError, "reversed"),
    (LINES[14].replace("size=1x2x2x1", "size=1x2x2x1 rhs_dilate=1x2x1x1"), ShapeError, "dilated"),
]


@pytest.mark.parametrize(("line", "kind", "message"), WRONG, ids=[message for _, _, message in WRONG])
def test_wrong_windows(line: str, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        parse(program(line))
