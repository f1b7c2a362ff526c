"""Arrays that are put together from runs of others, to and from anywhere in memory."""

from __future__ import annotations

import pytest

import xlapy
from tests.support.native import check_moves
from xlapy.codegen.arrays import FETCHED_AHEAD
from xlapy.codegen.libraries.runs import LEAST_BYTES, LEAST_RUN_BYTES, MOST_AHEAD, PIECE, call_of_runs
from xlapy.codegen.target import host_target
from xlapy.hlo.moved_runs import Level, moved_runs
from xlapy.hlo.text import parse

PROGRAMS = {
    "every second row": """x = f32[9,16,31] parameter(0)
        ROOT s = f32[4,8,31] slice(x), slice={[1:9:2], [0:16:2], [0:31]}""",
    "a part of a row": "x = f32[24,64] parameter(0) ROOT s = f32[22,41] slice(x), slice={[1:23], [3:44]}",
    "joined rows": """x = f32[12,17] parameter(0) y = f32[12,40] parameter(1)
        ROOT c = f32[12,74] concatenate(x, y, x), dimensions={1}""",
    "other places": """x = f32[6,5,4,16] parameter(0) t = f32[5,4,6,16] transpose(x), dimensions={1,2,0,3}
        ROOT r = f32[5,4,6,16] reverse(t), dimensions={0,2}""",
    "repeated rows": """x = f32[7,24] parameter(0) b = f32[5,7,3,24] broadcast(x), dimensions={1,3}
        ROOT r = f32[35,3,24] reshape(b)""",
    "between each other": """x = f32[4,6,6,16] parameter(0) y = f32[4,6,6,16] parameter(1)
        z = f32[4,6,6,16] parameter(2)
        a = f32[4,6,6,1,16] reshape(x) b = f32[4,6,6,1,16] reshape(y)
        c = f32[4,6,6,2,16] concatenate(a, b), dimensions={3} d = f32[4,6,1,12,16] reshape(c)
        e = f32[4,6,6,1,16] reshape(z) f = f32[4,6,6,2,16] concatenate(b, e), dimensions={3}
        g = f32[4,6,1,12,16] reshape(f) h = f32[4,6,2,12,16] concatenate(d, g), dimensions={2}
        ROOT r = f32[4,12,12,16] reshape(h)""",
    "pieces of other heights": """x = f32[3,5,16] parameter(0) y = f32[3,9,16] parameter(1)
        s = f32[3,4,16] slice(y), slice={[0:3], [1:9:2], [0:16]} n = f32[3,0,16] slice(y), slice={[0:3], [4:4], [0:16]}
        ROOT c = f32[3,14,16] concatenate(x, s, n, x), dimensions={1}""",
    "turned rows": "x = f32[50,27,16] parameter(0) ROOT t = f32[27,50,16] transpose(x), dimensions={1,0,2}",
    "turned rows of many runs": """x = f32[400,7,16] parameter(0)
        ROOT t = f32[7,400,16] transpose(x), dimensions={1,0,2}""",
    "heads of several images, cut": """x = f32[3,250,5,16] parameter(0)
        ROOT t = f32[3,5,250,16] transpose(x), dimensions={0,2,1,3}""",
    "turned rows of so many runs that no number divides": """x = f32[257,9,16] parameter(0)
        ROOT t = f32[9,257,16] transpose(x), dimensions={1,0,2}""",
    "mirrored borders": """x = f32[3,20,30,3] parameter(0)
        a = f32[3,4,30,3] slice(x), slice={[0:3], [1:5], [0:30], [0:3]} b = f32[3,4,30,3] reverse(a), dimensions={1}
        c = f32[3,24,30,3] concatenate(b, x), dimensions={1}
        d = f32[3,24,2,3] slice(c), slice={[0:3], [0:24], [27:29], [0:3]} e = f32[3,24,2,3] reverse(d), dimensions={2}
        ROOT r = f32[3,24,32,3] concatenate(c, e), dimensions={2}""",
    "every third row of what is joined and turned round": """x = f32[7,40] parameter(0) y = f32[9,40] parameter(1)
        c = f32[16,40] concatenate(x, y), dimensions={0} r = f32[16,40] reverse(c), dimensions={0}
        s = f32[5,40] slice(r), slice={[1:15:3], [0:40]} t = f32[8,40] slice(r), slice={[0:15:2], [0:40]}
        ROOT z = f32[29,40] concatenate(s, t, c), dimensions={0}""",
    "long rows": """x = f32[3,20000] parameter(0) y = f32[3,20000] parameter(1)
        ROOT c = f32[3,40000] concatenate(x, y), dimensions={1}""",
}


@pytest.mark.parametrize("kind", ["f32", "s16", "c64"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, kind: str) -> None:
    text = f"ENTRY e {{ {PROGRAMS[name]} }}".replace("f32", kind)
    compiled = xlapy.compile(text)
    check_moves(text, compiled)
    if kind == "f32":
        assert "copy_runs" in compiled.llvm_ir()
        assert "kernel.0" not in compiled.llvm_ir()


@pytest.mark.parametrize(
    ("columns", "rows", "is_called"), [(16, 64, True), (15, 64, False), (16, LEAST_BYTES // LEAST_RUN_BYTES - 1, False)]
)
def test_short_runs_and_small_arrays_have_kernels(columns: int, rows: int, is_called: bool) -> None:
    text = f"""ENTRY e {{ x = f32[{rows},64] parameter(0)
        ROOT s = f32[{rows},{columns}] slice(x), slice={{[0:{rows}], [0:{columns}]}} }}"""
    assert ("copy_runs" in xlapy.compile(text).llvm_ir()) == is_called


@pytest.mark.parametrize("lengths", [(1, 2, 3), (4, 5, 7), (8, 9, 15), (16, 17, 31), (32, 33, 63)], ids=str)
def test_some_runs_may_be_short(lengths: tuple[int, ...]) -> None:
    """Those of less than a line are copied by words of every length."""
    parts = ["x = u8[40,200] parameter(0)"]
    parts += [f"y{n} = u8[40,{n}] parameter({at})" for at, n in enumerate(lengths, start=1)]
    names = ", ".join(["x", *(f"y{n}" for n in lengths)])
    joined = f"ROOT c = u8[40,{200 + sum(lengths)}] concatenate({names}), dimensions={{1}}"
    text = f"ENTRY e {{ {' '.join([*parts, joined])} }}"
    compiled = xlapy.compile(text)
    assert "copy_runs_by_pieces" in compiled.llvm_ir()
    check_moves(text, compiled)


@pytest.mark.parametrize(
    "text",
    [
        """x = f32[64,200] parameter(0) a = f32[64,20] slice(x), slice={[0:64], [9:29]}
        b = f32[64,20] reverse(a), dimensions={1} ROOT c = f32[64,220] concatenate(b, x), dimensions={1}""",
        """x = f32[64,20] parameter(0) y = f32[64,15] parameter(1) z = f32[64,6] parameter(2)
        ROOT c = f32[64,41] concatenate(x, y, z), dimensions={1}""",
    ],
    ids=["lonely elements", "mostly short runs"],
)
def test_other_short_runs_have_kernels(text: str) -> None:
    text = f"ENTRY e {{ {text} }}"
    compiled = xlapy.compile(text)
    assert "copy_runs" not in compiled.llvm_ir()
    check_moves(text, compiled)


def test_what_comes_next_is_fetched_where_the_rows_between_are_left_out() -> None:
    """Two rows of which one is read are one step: so many steps ahead, that what is fetched is some kilobytes away."""
    text = "ENTRY e { x = f32[64,256] parameter(0) ROOT s = f32[32,256] slice(x), slice={[0:64:2], [0:256]} }"
    root = parse(text).entry.root
    called = call_of_runs(root, (root.operands[0],), lambda i: i.opcode == "parameter", host_target())
    assert called is not None
    piece = dict(zip(PIECE, called.call.numbers[2:], strict=True))
    assert piece["ahead"] == FETCHED_AHEAD // 1024 * 2048


def _piece_of(text: str) -> tuple[dict[str, int], int]:
    """The numbers of the only piece, and the units."""
    root = parse(text).entry.root
    called = call_of_runs(root, (root.operands[0],), lambda i: i.opcode == "parameter", host_target())
    assert called is not None
    return dict(zip(PIECE, called.call.numbers[2:], strict=True)), called.units


def test_nothing_is_fetched_from_behind_the_last_run_of_a_row() -> None:
    """What lies there is no part of the row, nor of what comes next; rows that are long enough fetch their own."""
    turn = "ENTRY e {{ x = f32[{0},512,32] parameter(0) ROOT t = f32[512,{0},32] transpose(x), dimensions={{1,0,2}} }}"
    short, _ = _piece_of(turn.format(MOST_AHEAD))
    long, _ = _piece_of(turn.format(64))
    assert (short["runs"], short["ahead"]) == (MOST_AHEAD, 0)
    assert (long["runs"], long["ahead"]) == (64, MOST_AHEAD * (512 * 128))


def test_rows_that_come_from_close_together_are_copied_side_by_side() -> None:
    """64 bytes of each of four rows are four neighbouring lines of the operand."""
    piece, units = _piece_of(
        "ENTRY e { x = f32[50,27,16] parameter(0) ROOT t = f32[27,50,16] transpose(x), dimensions={1,0,2} }"
    )
    assert (piece["run"], piece["runs"], piece["rows"], piece["last_row"]) == (64, 50, 4, 23)
    assert units == piece["count"] == 7
    piece, units = _piece_of(
        "ENTRY e { x = f32[50,27,64] parameter(0) ROOT t = f32[27,50,64] transpose(x), dimensions={1,0,2} }"
    )
    assert (piece["run"], piece["runs"], piece["rows"], units) == (256, 50, 1, 27)


@pytest.mark.parametrize(
    ("count", "runs", "units"), [(256, 256, 2), (400, 200, 4), (257, 257, 2), (5 << 10, 256, 40)], ids=str
)
def test_rows_of_many_runs_are_cut(count: int, runs: int, units: int) -> None:
    """A unit is never a single short run."""
    piece, found = _piece_of(
        f"""ENTRY e {{ x = f32[{count},8,16] parameter(0)
        ROOT t = f32[8,{count},16] transpose(x), dimensions={{1,0,2}} }}"""
    )
    assert (piece["runs"], piece["rows"], found) == (runs, 4, units)


def test_pieces() -> None:
    text = f"ENTRY e {{ {PROGRAMS['between each other']} }}"
    root = parse(text).entry.root
    pieces = moved_runs(root, lambda value: value.opcode == "parameter", 4)
    assert pieces is not None
    assert [piece.source.name for piece in pieces] == ["x", "y", "y", "z"]
    assert [piece.result_start for piece in pieces] == [0, 16, 192, 208]
    assert {piece.levels for piece in pieces} == {(Level(24, 96, 384), Level(6, 16, 32))}
    assert {piece.run for piece in pieces} == {16}
    assert moved_runs(root, lambda value: value.opcode == "parameter", 3) is None


def test_pieces_of_parts_of_what_is_joined() -> None:
    root = parse(f"ENTRY e {{ {PROGRAMS['every third row of what is joined and turned round']} }}").entry.root
    pieces = moved_runs(root, lambda value: value.opcode == "parameter", 8)
    assert pieces is not None
    rows = [piece.levels[0] if piece.levels else Level(1, 0, 0) for piece in pieces]
    starts = [(piece.source.name, piece.source_start // 40) for piece in pieces]
    assert starts == [("x", 5), ("y", 7), ("x", 5), ("y", 8), ("x", 0), ("y", 0)]
    assert rows[:4] == [Level(2, -120, 40), Level(3, -120, 40), Level(3, -80, 40), Level(5, -80, 40)]


def test_what_is_computed_is_not_moved() -> None:
    root = parse("ENTRY e { x = f32[64,64] parameter(0) ROOT n = f32[64,64] negate(x) }").entry.root
    assert moved_runs(root, lambda value: value.opcode == "parameter", 4) is None
