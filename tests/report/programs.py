"""Programs to report on."""

from __future__ import annotations

SOFTMAX = """HloModule softmax
max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT m = f32[] maximum(a, b) }
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT m = f32[] add(a, b) }
ENTRY main {
  x = f32[64,128] parameter(0)
  y = f32[64,128] parameter(1)
  p = f32[64,128] multiply(x, y), metadata={source_file="model.py" source_line=10}
  lowest = f32[] constant(-inf)
  m = f32[64] reduce(p, lowest), dimensions={1}, to_apply=max, metadata={source_file="model.py" source_line=11}
  mb = f32[64,128] broadcast(m), dimensions={0}
  s = f32[64,128] subtract(p, mb), metadata={source_file="model.py" source_line=12}
  e = f32[64,128] exponential(s), metadata={source_file="model.py" source_line=12}
  zero = f32[] constant(0)
  t = f32[64] reduce(e, zero), dimensions={1}, to_apply=sum, metadata={source_file="model.py" source_line=13}
  tb = f32[64,128] broadcast(t), dimensions={0}
  n = f32[64,128] negate(e)
  nn = f32[64,128] negate(n)
  r = f32[64,128] divide(nn, tb), metadata={source_file="model.py" source_line=14}
  w = f32[128,32] parameter(2)
  ROOT d = f32[64,32] dot(r, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""

LOOP = """HloModule counted
body {
  state = (s32[], f32[256]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  v = f32[256] get-tuple-element(state), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  t = f32[256] tanh(v)
  ROOT next = (s32[], f32[256]) tuple(j, t)
}
condition {
  state = (s32[], f32[256]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  n = s32[] constant(10)
  ROOT go = pred[] compare(i, n), direction=LT
}
ENTRY main {
  x = f32[256] parameter(0)
  zero = s32[] constant(0)
  start = (s32[], f32[256]) tuple(zero, x)
  loop = (s32[], f32[256]) while(start), condition=condition, body=body
  ROOT v = f32[256] get-tuple-element(loop), index=1
}
"""


def chain(length: int) -> str:
    """A program of so many instructions and about as many kernels: products of small matrices."""
    lines = ["HloModule chain", "ENTRY main {", "  v0 = f32[16,16] parameter(0)"]
    for number in range(1, length):
        root = "ROOT " if number == length - 1 else ""
        operands = f"v{number - 1}, v{max(0, number - 7)}"
        attributes = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
        lines.append(f"  {root}v{number} = f32[16,16] dot({operands}), {attributes}")
    return "\n".join([*lines, "}"])
