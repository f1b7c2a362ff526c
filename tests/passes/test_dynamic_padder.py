"""The dynamic padder beyond its cases: random sizes against the evaluator, and what it refuses."""

import pytest

from tests.support.hlo_cases import check_same_values
from xlapy.hlo.graph import DynamicSize
from xlapy.hlo.text import parse
from xlapy.hlo.verifier import verify
from xlapy.passes.dynamic.padder import DynamicPadder
from xlapy.passes.pipelines import PipelineOptions, cpu_pipeline
from xlapy.support.errors import UnsupportedError

PROGRAMS = {
    "row maxima": """
      max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT m = f32[] maximum(a, b) }
      ENTRY e {
        p = f32[<=4,<=3] parameter(0)
        low = f32[] constant(-inf)
        r = f32[<=4] reduce(p, low), dimensions={1}, to_apply=max
        b = f32[<=4,<=3] broadcast(r), dimensions={0}
        ROOT d = f32[<=4,<=3] subtract(p, b)
      }""",
    "a slice of what exists": """
      ENTRY e {
        p = s32[<=9] parameter(0)
        q = s32[2] constant({1, 2})
        c = s32[<=11] concatenate(q, p), dimensions={0}
        i = s32[] parameter(1)
        ROOT d = s32[2] dynamic-slice(c, i), dynamic_slice_sizes={2}
      }""",
    "tuples": """
      ENTRY e {
        p = (f32[<=4,2], (s32[<=3])) parameter(0)
        a = f32[<=4,2] get-tuple-element(p), index=0
        t = f32[2,<=4] transpose(a), dimensions={1,0}
        ROOT r = ((f32[<=4,2], (s32[<=3])), f32[2,<=4]) tuple(p, t)
      }""",
    "factors and systems": """
      ENTRY e {
        p = f32[4,4] parameter(0)
        b = f32[4,2] parameter(1)
        given = s32[] parameter(2)
        least = s32[] constant(0)
        most = s32[] constant(4)
        n = s32[] clamp(least, given, most)
        rows = f32[<=4,4] set-dimension-size(p, n), dimensions={0}
        a = f32[<=4,<=4] set-dimension-size(rows, n), dimensions={1}
        sides = f32[<=4,2] set-dimension-size(b, n), dimensions={0}
        l = f32[<=4,<=4] cholesky(a), lower=true
        ROOT x = f32[<=4,2] triangular-solve(l, sides), left_side=true, lower=true, transpose_a=TRANSPOSE
      }""",
    "a batch of spectra": """
      ENTRY e {
        p = f32[<=3,5] parameter(0)
        ROOT r = c64[<=3,3] fft(p), fft_type=RFFT, fft_length={5}
      }""",
    "a batched product": """
      ENTRY e {
        p = s32[<=3,2,<=4] parameter(0)
        r = s32[<=3,2,2] dot(p, p),
          lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
        ROOT n = s32[<=3,4] reshape(r)
      }""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_keep_their_values(name: str) -> None:
    before = parse(PROGRAMS[name])
    after = before.clone()
    assert DynamicPadder().run(after)
    verify(after)
    assert all(instruction.shape.is_static for instruction in after.instructions())
    check_same_values(before, after)
    cpu_pipeline().run(after)
    check_same_values(before, after)


def test_sizes_travel_beside_parameters_and_results() -> None:
    module = parse(PROGRAMS["tuples"])
    cpu_pipeline(PipelineOptions(keep_entry_layouts=True)).run(module)
    assert module.config.size_parameters == (DynamicSize(0, 0), DynamicSize(1, 0))
    assert module.config.size_results == (DynamicSize(0, 0), DynamicSize(1, 0), DynamicSize(2, 1))
    assert module.config.entry_layout is not None
    assert module.config.entry_layout.matches(module.signature)


REFUSED = {
    "merges dynamic": "p = f32[2,<=4] parameter(0)\n ROOT r = f32[<=8] reshape(p)",
    "writes an array of dynamic size": """p = f32[8] parameter(0)
        u = f32[<=4] parameter(1)
        i = s32[] constant(0)
        ROOT r = f32[8] dynamic-update-slice(p, u, i)""",
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_not_supported_says_so(message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        DynamicPadder().run(parse("ENTRY e {\n " + REFUSED[message] + "\n}"))


def test_sizes_are_not_carried_by_loops() -> None:
    text = """
    c { s = f32[<=4] parameter(0)  ROOT t = pred[] constant(false) }
    b { s = f32[<=4] parameter(0)  ROOT n = f32[<=4] negate(s) }
    ENTRY e { p = f32[<=4] parameter(0)  ROOT w = f32[<=4] while(p), condition=c, body=b }
    """
    with pytest.raises(UnsupportedError, match="control flow"):
        DynamicPadder().run(parse(text))
