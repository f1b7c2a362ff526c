"""Which large arrays are folded by columns in one kernel: too large for a case that is evaluated."""

from __future__ import annotations

from xlapy.hlo.text import parse
from xlapy.passes.fusion.rows import RowFusion

SUM = "sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }"
DIFFERENCES = """ENTRY main {
  x = f32[N] parameter(0)
  zero = f32[] constant(0)
  s = f32[C] reduce(x, zero), dimensions={0}, to_apply=sum
  bs = f32[N] broadcast(s), dimensions={1}
  RESULT
}"""
ARRAY = "ROOT r = f32[N] subtract(x, bs)"
STATISTICS = "d = f32[N] subtract(x, bs)  ROOT r = f32[C] reduce(d, zero), dimensions={0}, to_apply=sum"


def is_one_kernel(rows: int, columns: int, result: str = ARRAY) -> bool:
    text = SUM + DIFFERENCES.replace("RESULT", result).replace("[N]", f"[{rows},{columns}]")
    module = parse(text.replace("[C]", f"[{columns}]"))
    RowFusion().run(module)
    return "kind=kOutput" in module.to_text()


def test_columns_that_no_cache_holds_are_one_kernel() -> None:
    assert is_one_kernel(1024, 8192)
    assert not is_one_kernel(1024, 4096), "a cache may hold it"


def test_rows_that_are_no_whole_strips_cannot_be_stored_past_the_caches() -> None:
    assert not is_one_kernel(1024, 9000)


def test_strips_of_long_columns_are_too_long_for_a_cache() -> None:
    assert not is_one_kernel(8192, 2048)


def test_columns_that_are_only_read_stream_faster_twice() -> None:
    assert not is_one_kernel(1024, 8192, STATISTICS)


def test_short_columns_of_parts_are_read_twice_from_a_near_cache() -> None:
    text = """ENTRY main {
      x = f32[1024,256,64] parameter(0)
      zero = f32[] constant(0)
      s = f32[1024,64] reduce(x, zero), dimensions={1}, to_apply=sum
      bs = f32[1024,256,64] broadcast(s), dimensions={0,2}
      d = f32[1024,256,64] subtract(x, bs)
      ROOT r = f32[1024,64] reduce(d, zero), dimensions={1}, to_apply=sum
    }"""
    for wanted, columns in ((True, 64), (False, 128)):
        module = parse(SUM + text.replace("64]", f"{columns}]"))
        RowFusion().run(module)
        assert ("kind=kOutput" in module.to_text()) == wanted
