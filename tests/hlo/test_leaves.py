"""Leaves of values, and which values are only names of others."""

from __future__ import annotations

from xlapy.hlo.leaves import bytes_leaving_with
from xlapy.hlo.text import parse


def diamonds(count: int) -> str:
    """A sum whose names part and meet again that many times, before both leave."""
    lines, first, second = [], "sum", "sum"
    for n in range(count):
        lines += [
            f"both{n} = (f32[10], f32[10]) tuple({first}, {second})",
            f"held{n} = (f32[10], f32[10]) opt-barrier(both{n})",
            f"first{n} = f32[10] get-tuple-element(held{n}), index=0",
            f"second{n} = f32[10] get-tuple-element(held{n}), index=1",
        ]
        first, second = f"first{n}", f"second{n}"
    body = "\n".join(lines)
    return f"""HloModule m
      ENTRY main {{
        p = f32[10] parameter(0)
        sum = f32[10] add(p, p)
        {body}
        ROOT r = (f32[10], f32[10]) tuple({first}, {second})
      }}"""


def test_paths_that_part_and_meet_are_followed_once() -> None:
    module = parse(diamonds(100))
    total = next(instruction for instruction in module.instructions() if instruction.opcode == "add")
    assert bytes_leaving_with(total) == 2 * 10 * 4


def test_what_somebody_reads_does_not_only_leave() -> None:
    module = parse("""HloModule m
      ENTRY main {
        p = f32[10] parameter(0)
        sum = f32[10] add(p, p)
        other = f32[10] negate(sum)
        ROOT r = (f32[10], f32[10]) tuple(sum, other)
      }""")
    total = next(instruction for instruction in module.instructions() if instruction.opcode == "add")
    assert bytes_leaving_with(total) == 0
