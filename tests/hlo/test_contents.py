"""What computations have in common that do the same."""

from __future__ import annotations

from collections.abc import Hashable

from xlapy.hlo.contents import content
from xlapy.hlo.text import parse


def content_of(*lines: str) -> Hashable:
    text = "\n".join(["x = f32[4] parameter(0)", "y = f32[4] parameter(1)", *lines])
    return content(parse(f"ENTRY e {{\n{text}\n}}").entry, lambda instruction: (*instruction.attributes.items(),))


A, B = "a = f32[4] negate(x)", "b = f32[4] abs(y)"
ROOT = "ROOT s = f32[4] subtract(a, b)"


def test_the_order_in_which_instructions_were_added_does_not_matter() -> None:
    assert content_of(A, B, ROOT) == content_of(B, A, ROOT)


def test_names_do_not_matter() -> None:
    assert content_of(A, B, ROOT) == content_of("n = f32[4] negate(x)", B, "ROOT m = f32[4] subtract(n, b)")


def test_what_the_root_is_made_of_matters() -> None:
    assert content_of(A, B, ROOT) != content_of(A, B, "ROOT s = f32[4] subtract(b, a)")
    assert content_of(A, B, ROOT) != content_of("a = f32[4] negate(y)", "b = f32[4] abs(x)", ROOT)


def test_what_the_root_does_not_need_is_told_apart() -> None:
    assert content_of(A, B, "ROOT s = f32[4] add(x, y)") != content_of(A, "ROOT s = f32[4] add(x, y)")


def test_control_edges_are_told_apart() -> None:
    held = "b = f32[4] abs(y), control-predecessors={a}"
    assert content_of(A, B, ROOT) != content_of(A, held, ROOT)
