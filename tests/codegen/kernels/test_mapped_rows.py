"""Arrays whose rows are all made of rows of another one in the same way."""

from __future__ import annotations

import re

import numpy as np
import pytest

import xlapy
from tests.support.native import check_moves, together
from xlapy.codegen.kernels.mapped_rows import MOST_VECTOR, Cycle, Listed, MappedRowsPlan, Stretch, plan_mapped_rows
from xlapy.codegen.target import host_target
from xlapy.hlo.axis_maps import FILL
from xlapy.hlo.text import parse

PROGRAMS = {
    "a filled border": """x = u8[3,11,40,3] parameter(0) c = u8[] constant(7)
        ROOT p = u8[3,17,46,3] pad(x, c), padding=0_0x3_3x2_4x0_0""",
    "a border that a number fills": """x = u8[3,11,40,3] parameter(0) c = u8[] parameter(1)
        ROOT p = u8[3,13,42,3] pad(x, c), padding=0_0x1_1x1_1x0_0""",
    "filled in between": """x = u8[40,23] parameter(0) c = u8[] constant(1)
        ROOT p = u8[40,47] pad(x, c), padding=0_0x1_1_1""",
    "filled in between rows as well": """x = u8[40,123] parameter(0) c = u8[] constant(1)
        ROOT p = u8[80,246] pad(x, c), padding=0_1_1x0_1_1""",
    "filled in between and behind a border": """x = u8[3,20,100] parameter(0) c = u8[] parameter(1)
        ROOT p = u8[3,66,300] pad(x, c), padding=0_0x5_3_2x1_1_2""",
    "filled in between, of an odd size": """x = u8[40,123] parameter(0) c = u8[] constant(1)
        ROOT p = u8[81,247] pad(x, c), padding=1_1_1x1_1_1""",
    "wide edges of what is filled in between": """x = u8[30,121] parameter(0) c = u8[] parameter(1)
        ROOT p = u8[96,456] pad(x, c), padding=5_3_2x90_5_2""",
    "a narrow edge cut off what is filled in between": """x = u8[30,121] parameter(0) c = u8[] parameter(1)
        ROOT p = u8[57,236] pad(x, c), padding=-1_-1_1x-3_-2_1""",
    "filled in between planes and their rows": """x = u8[2,9,15,8] parameter(0) c = u8[] parameter(1)
        ROOT p = u8[2,20,32,8] pad(x, c), padding=0_0x2_1_1x1_2_1x0_0""",
    "cut and filled": """x = u8[40,80] parameter(0) c = u8[] constant(9)
        ROOT p = u8[41,75] pad(x, c), padding=-1_2x-7_2""",
    "edges": """x = u8[2,30,50,3] parameter(0) s = u8[2,1,50,3] slice(x), slice={[0:2], [0:1], [0:50], [0:3]}
        r = u8[2,50,3] reshape(s) b = u8[2,4,50,3] broadcast(r), dimensions={0,2,3}
        t = u8[2,1,50,3] slice(x), slice={[0:2], [29:30], [0:50], [0:3]} u = u8[2,50,3] reshape(t)
        v = u8[2,4,50,3] broadcast(u), dimensions={0,2,3} y = u8[2,38,50,3] concatenate(b, x, v), dimensions={1}
        a = u8[2,38,1,3] slice(y), slice={[0:2], [0:38], [49:50], [0:3]} d = u8[2,38,3] reshape(a)
        e = u8[2,38,5,3] broadcast(d), dimensions={0,1,3} ROOT z = u8[2,38,55,3] concatenate(y, e), dimensions={2}""",
    "mirrored borders of planes": """x = u8[2,3,32,32] parameter(0)
        s = u8[2,3,2,32] slice(x), slice={[0:2], [0:3], [1:3], [0:32]} r = u8[2,3,2,32] reverse(s), dimensions={2}
        y = u8[2,3,34,32] concatenate(r, x), dimensions={2}
        t = u8[2,3,34,4] slice(y), slice={[0:2], [0:3], [0:34], [28:32]} u = u8[2,3,34,4] reverse(t), dimensions={3}
        ROOT z = u8[2,3,34,36] concatenate(y, u), dimensions={3}""",
    "repeated once more": """x = u8[64,150] parameter(0) s = u8[64,40] slice(x), slice={[0:64], [0:40]}
        t = u8[64,30] slice(x), slice={[0:64], [120:150]} ROOT y = u8[64,220] concatenate(t, x, s), dimensions={1}""",
    "rows in another order": """x = u8[35,20,40] parameter(0) t = u8[20,35,40] transpose(x), dimensions={1,0,2}
        s = u8[20,2,40] slice(t), slice={[0:20], [33:35], [0:40]}
        ROOT y = u8[20,37,40] concatenate(t, s), dimensions={1}""",
    "short rows": """x = u8[90,8,3] parameter(0) s = u8[90,1,3] slice(x), slice={[0:90], [7:8], [0:3]}
        ROOT y = u8[90,9,3] concatenate(x, s), dimensions={1}""",
    "one row": """x = u8[2000] parameter(0) s = u8[20] slice(x), slice={[10:30]} r = u8[20] reverse(s), dimensions={0}
        ROOT y = u8[2020] concatenate(x, r), dimensions={0}""",
    "each pixel four times": """x = u8[24,40,3] parameter(0) b = u8[24,2,40,3] broadcast(x), dimensions={0,2,3}
        r = u8[48,40,3] reshape(b) ROOT c = u8[48,40,2,3] broadcast(r), dimensions={0,1,3}""",
    "each number three times, and rows five times": """x = u8[24,80] parameter(0)
        b = u8[24,5,80] broadcast(x), dimensions={0,2} r = u8[120,80] reshape(b)
        ROOT c = u8[120,80,3] broadcast(r), dimensions={0,1}""",
    "one more color": """x = u8[30,50,3] parameter(0) c = u8[] constant(5) b = u8[30,50,1] broadcast(c), dimensions={}
        ROOT j = u8[30,50,4] concatenate(x, b), dimensions={2}""",
    "long filled stretches": """x = u8[9,100] parameter(0) c = u8[] constant(3)
        ROOT p = u8[19,400] pad(x, c), padding=5_5x150_150""",
}


def _plan(text: str) -> MappedRowsPlan | None:
    found = plan_mapped_rows(parse(text).entry.root, lambda i: i.opcode == "parameter", host_target())
    return None if found is None else found.plan


def _of_type(program: str, kind: str) -> str:
    """The program for elements of another type, of which all may have these values."""
    text = f"ENTRY e {{ {program} }}".replace("u8", kind)
    if kind == "pred":
        return re.sub(r"constant\(\d\)", "constant(true)", text)
    return re.sub(r"constant\((\d)\)", r"constant((\1, 2))", text) if kind in ("c64", "c128") else text


@pytest.mark.parametrize("kind", ["u8", "s16", "f32", "f64", "c64", "c128", "bf16", "pred"])
def test_programs(kind: str) -> None:
    """In one program, of elements as wide as that."""
    texts = [_of_type(program, kind) for program in PROGRAMS.values()]
    planned = [name for name, text in zip(PROGRAMS, texts, strict=True) if _plan(text) is not None]
    assert kind not in ("u8", "s16", "f32") or planned == [*PROGRAMS]
    module = together(texts)
    check_moves(module.to_text(), xlapy.compile(module))


def test_more_is_cut_off_than_there_is() -> None:
    """And so is padding of the other end, of which all is left then."""
    text = """ENTRY e { x = u8[30,40,1] parameter(0) c = u8[] constant(3)
        ROOT p = u8[30,38,2] pad(x, c), padding=0_0x0_-2x-2_3 }"""
    np.testing.assert_array_equal(xlapy.compile(text)(np.ones((30, 40, 1), np.uint8)), np.full((30, 38, 2), 3))


def test_what_lies_beside_a_border_is_picked_from_one_vector() -> None:
    """And what lies farther inside is copied as it is, up to the vector at the other end."""
    if host_target().vector_bytes < MOST_VECTOR:
        pytest.skip("vectors are shorter here")
    plan = _plan("""ENTRY e { x = u8[64,100] parameter(0) s = u8[64,5] slice(x), slice={[0:64], [1:6]}
        r = u8[64,5] reverse(s), dimensions={1} ROOT y = u8[64,105] concatenate(r, x), dimensions={1} }""")
    assert plan is not None
    (window,) = plan.windows
    assert (window.place, window.loads) == (0, (0,))
    assert [lane for _, lane in window.picks] == [5, 4, 3, 2, 1, *range(27)]
    assert plan.stretches == (Stretch(32, 27, 73),)


def test_rows_that_go_on_as_they_begin_are_made_of_some_vectors() -> None:
    """Four of them, that come again: the last ones end with the row, and with what there is of the source."""
    if host_target().vector_bytes < MOST_VECTOR:
        pytest.skip("vectors are shorter here")
    plan = _plan("""ENTRY e { x = u8[9,300] parameter(0) b = u8[9,2,300] broadcast(x), dimensions={0,2}
        r = u8[18,300] reshape(b) ROOT c = u8[18,300,2] broadcast(r), dimensions={0,1} }""")
    assert plan is not None
    cycle = plan.cycle
    assert cycle is not None
    assert cycle == Cycle(128, 2, 1, 0, 600, cycle.windows)
    assert not plan.windows
    assert [window.place for window in cycle.windows] == [0, 32, 64, 96]
    last = (cycle.size - cycle.bytes) // cycle.part * cycle.source_part
    assert max(at for window in cycle.windows for at in window.loads) + last + MOST_VECTOR <= 300


def test_rows_go_on_so_between_their_ends() -> None:
    """Which are vectors of their own, or filled stretches."""
    if host_target().vector_bytes < MOST_VECTOR:
        pytest.skip("vectors are shorter here")
    plan = _plan("""ENTRY e { x = u8[9,200] parameter(0) c = u8[] constant(0)
        ROOT p = u8[9,703] pad(x, c), padding=0_0x100_5_2 }""")
    assert plan is not None
    cycle = plan.cycle
    assert cycle is not None
    assert (cycle.part, cycle.source_part, cycle.place, cycle.size) == (3, 1, 98, 600)
    assert [window.place for window in plan.windows] == [671]
    assert [(stretch.place, stretch.source) for stretch in plan.stretches] == [(0, None)]


def test_rows_that_are_repeated_lie_in_two_dimensions() -> None:
    plan = _plan("""ENTRY e { x = u8[40,64,3] parameter(0) b = u8[40,2,64,3] broadcast(x), dimensions={0,2,3}
        r = u8[80,64,3] reshape(b) ROOT c = u8[80,64,2,3] broadcast(r), dimensions={0,1,3} }""")
    assert plan is not None
    assert plan.counts == (40, 2)


def test_rows_that_are_spread_lie_in_two_dimensions() -> None:
    """In the outer one, what is filled in front and behind; in the inner one, what is in between."""
    plan = _plan("""ENTRY e { x = f32[20,64] parameter(0) c = f32[] constant(0)
        ROOT p = f32[48,64] pad(x, c), padding=3_6_1x0_0 }""")
    assert plan is not None
    outer, inner = plan.dims
    assert [(each.end, each.start is None) for each in outer] == [(1, True), (21, False), (24, True)]
    assert [(each.end, each.start is None) for each in inner] == [(1, True), (2, False)]


def test_rows_in_any_order_are_listed() -> None:
    """As those are that are spread over an odd number of rows."""
    plan = _plan("""ENTRY e { x = u8[3,128] parameter(0) c = u8[] constant(0)
        ROOT p = u8[9,128] pad(x, c), padding=2_2_1x0_0 }""")
    assert plan is not None
    assert plan.dims == (Listed((FILL, FILL, 0, FILL, 128, FILL, 256, FILL, FILL)),)


def test_nothing_is_read_in_front_of_the_array_or_behind_it() -> None:
    """What is picked last, in the last row, comes from a vector that ends with the array."""
    plan = _plan("""ENTRY e { x = u8[40,33] parameter(0) s = u8[40,3] slice(x), slice={[0:40], [30:33]}
        ROOT y = u8[40,36] concatenate(x, s), dimensions={1} }""")
    assert plan is not None
    assert all(0 <= at <= 33 - plan.vector_bytes for window in plan.windows for at in window.loads)


@pytest.mark.parametrize(
    "program",
    [
        "x = u8[64,64] parameter(0) ROOT r = u8[64,64] reverse(x), dimensions={1}",
        "x = u8[64,9] parameter(0) y = u8[64,9] parameter(1) ROOT r = u8[64,18] concatenate(x, y), dimensions={1}",
        "x = u8[64,9] parameter(0) n = u8[64,9] not(x) ROOT r = u8[64,18] concatenate(x, n), dimensions={1}",
        "x = u8[8,9] parameter(0) ROOT r = u8[8,18] concatenate(x, x), dimensions={1}",
        "x = u8[64,64] parameter(0) ROOT b = u8[64,64,2] broadcast(x), dimensions={0,1}",
        """x = u8[64,40] parameter(0) c = u8[] constant(1) d = u8[] constant(2)
        p = u8[64,41] pad(x, c), padding=0_0x1_0 ROOT q = u8[64,42] pad(p, d), padding=0_0x1_0""",
    ],
    ids=[
        "nothing joined",
        "two arrays",
        "something computed",
        "few bytes",
        "repeated elements",
        "two numbers that fill",
    ],
)
def test_others_have_other_kernels(program: str) -> None:
    assert _plan(f"ENTRY e {{ {program} }}") is None
