"""Arrays that are put together from short runs of another one."""

from __future__ import annotations

import pytest

import xlapy
from tests.support.native import check_moves
from xlapy.codegen.kernels.short_runs import MOST_VECTORS, VECTOR_BYTES, ShortRunsPlan, plan_short_runs
from xlapy.codegen.target import host_target
from xlapy.hlo.text import parse

PROGRAMS = {
    "mirrored": "x = f32[3,11,23,3] parameter(0) ROOT r = f32[3,11,23,3] reverse(x), dimensions={2}",
    "turned upside down": "x = f32[7,29,3] parameter(0) ROOT r = f32[7,29,3] reverse(x), dimensions={0,1}",
    "colours in the other order": "x = f32[41,9,3] parameter(0) ROOT r = f32[41,9,3] reverse(x), dimensions={2}",
    "blocks of pixels": """x = f32[2,10,28,3] parameter(0) r = f32[2,5,2,14,2,3] reshape(x)
        t = f32[2,5,14,2,2,3] transpose(r), dimensions={0,1,3,2,4,5} ROOT s = f32[2,5,14,12] reshape(t)""",
    "pixels of blocks": """x = f32[2,5,14,12] parameter(0) r = f32[2,5,14,2,2,3] reshape(x)
        t = f32[2,5,2,14,2,3] transpose(r), dimensions={0,1,3,2,4,5} ROOT s = f32[2,10,28,3] reshape(t)""",
    "every second pixel": """x = f32[48,50,3] parameter(0)
        ROOT s = f32[24,25,3] slice(x), slice={[0:48:2], [1:50:2], [0:3]}""",
    "two columns": "x = f32[321,5] parameter(0) ROOT s = f32[321,2] slice(x), slice={[0:321], [3:5]}",
    "turned over": """x = f32[17,19,5] parameter(0) t = f32[19,17,5] transpose(x), dimensions={1,0,2}
        ROOT r = f32[19,17,5] reverse(t), dimensions={0}""",
    "turned over, many": "x = f32[131,37,5] parameter(0) ROOT t = f32[37,131,5] transpose(x), dimensions={1,0,2}",
    "few in a row": "x = f32[150,2,3] parameter(0) ROOT r = f32[150,2,3] reverse(x), dimensions={1}",
    "large": "x = f32[9,150,150,3] parameter(0) ROOT r = f32[9,150,150,3] reverse(x), dimensions={2}",
    "large, without rows": "x = f32[150000,3] parameter(0) ROOT r = f32[150000,3] reverse(x), dimensions={1}",
}


def _plan(text: str) -> ShortRunsPlan | None:
    found = plan_short_runs(parse(text).entry.root, lambda i: i.opcode == "parameter", host_target())
    return None if found is None else found[1]


@pytest.mark.parametrize("kind", ["f32", "u8", "s16", "f64", "c64", "c128"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, kind: str) -> None:
    text = f"ENTRY e {{ {PROGRAMS[name]} }}".replace("f32", kind)
    assert kind not in ("f32", "f64") or _plan(text) is not None
    compiled = xlapy.compile(text)
    check_moves(text, compiled)


@pytest.mark.parametrize(("name", "kind", "vectors"), [("mirrored", "u8", 3), ("every second pixel", "u8", 3)])
def test_neighbours_that_come_from_near_each_other_trade_lanes(name: str, kind: str, vectors: int) -> None:
    """16 pixels of three bytes are three vectors."""
    plan = _plan(f"ENTRY e {{ {PROGRAMS[name]} }}".replace("f32", kind))
    assert plan is not None
    assert plan.trade is not None
    assert plan.together == 16
    assert len(plan.trade.picks) == vectors
    assert len(plan.trade.places) <= MOST_VECTORS


def test_nothing_is_read_in_front_of_what_is_moved_or_behind_it() -> None:
    plan = _plan("ENTRY e { x = f32[40,12,3] parameter(0) ROOT r = f32[40,12,3] reverse(x), dimensions={1} }")
    assert plan is not None
    assert plan.trade is not None
    assert plan.start + min(plan.trade.places) == 96
    assert plan.start + max(plan.trade.places) + VECTOR_BYTES == 144


def test_of_few_elements_that_are_repeated_no_more_are_loaded() -> None:
    text = "ENTRY e { x = f32[290,2] parameter(0) ROOT b = f32[290,2,2] broadcast(x), dimensions={0,1} }"
    plan = _plan(text)
    assert plan is not None
    assert plan.trade is not None
    assert plan.start == 0
    assert plan.trade.places == (0,)
    assert plan.trade.type.bytes * plan.trade.type.lanes == 8
    check_moves(text, xlapy.compile(text))
    assert _plan(text.replace("f32", "f64")) is None  # one word is no vector


def test_what_lies_apart_is_copied_in_few_parts() -> None:
    """12 bytes are a word of 8 and one of 4."""
    text = """ENTRY e { x = f32[64,64,3] parameter(0)
        ROOT t = f32[64,64,3] transpose(x), dimensions={1,0,2} }"""
    code = xlapy.compile(text).llvm_ir()
    kernel = code[code.index("define void @kernel.0.transpose(") :]
    assert kernel.count("store i64") == kernel.count("store i32") == 4
    assert "smin" not in kernel


def test_runs_that_lie_close_together_are_read_together() -> None:
    """Of 32 bytes, eight of four lines, at each place of a row of the result; the last ones overlap those before."""
    plan = _plan("ENTRY e { x = f32[128,37,8] parameter(0) ROOT t = f32[37,128,8] transpose(x), dimensions={1,0,2} }")
    assert plan is not None
    assert [(each.level.count, each.size, each.count) for each in (*plan.outer, *plan.inner)] == [
        (37, 8, 5),
        (128, plan.together, 128 // plan.together),
        (8, 1, 8),
    ]


@pytest.mark.parametrize(
    "program",
    [
        "x = f32[64,16] parameter(0) ROOT r = f32[64,16] reverse(x), dimensions={0}",
        "x = f32[64,3] parameter(0) ROOT b = f32[64,64,3] broadcast(x), dimensions={0,2}",
        "x = f32[64,64] parameter(0) ROOT t = f32[64,64] transpose(x), dimensions={1,0}",
        "x = f32[4,4,3] parameter(0) ROOT r = f32[4,4,3] reverse(x), dimensions={1}",
    ],
    ids=["long runs", "repeated ones", "single elements", "few bytes"],
)
def test_others_have_other_kernels(program: str) -> None:
    assert _plan(f"ENTRY e {{ {program} }}") is None
