"""The dynamic padder beyond its cases: random sizes against the evaluator, and what it refuses."""

import pytest

from tests.support.hlo_cases import check_same_values
from xlapy.hlo.graph import DynamicSize
from xlapy.hlo.limitations import limitations_of
from xlapy.hlo.ops import OPS, Trait
from xlapy.hlo.text import parse
from xlapy.hlo.verifier import verify
from xlapy.passes.dynamic.padder import DynamicPadder
from xlapy.passes.dynamic.padding import RULES
from xlapy.passes.pipelines import PipelineOptions, cpu_pipeline
from xlapy.support.errors import UnsupportedError, XlaError

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
    "outfeed": "t = token[] after-all()\n ROOT r = token[] outfeed(p, t)",
    "custom-call": 'ROOT r = f32[4] custom-call(p), custom_call_target="f"',
    "all-reduce": "ROOT r = f32[<=4] all-reduce(p), replica_groups={}, to_apply=add",
    "collective-permute": "ROOT r = f32[<=4] collective-permute(p), source_target_pairs={{0,1}}",
}


@pytest.mark.parametrize("opcode", REFUSED)
def test_what_leaves_the_program_has_a_known_size(opcode: str) -> None:
    region = "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }\n"
    text = region + "ENTRY e {\n p = f32[<=4] parameter(0)\n " + REFUSED[opcode] + "\n}"
    assert limitations_of(opcode)
    with pytest.raises(UnsupportedError, match=opcode):
        DynamicPadder().run(parse(text))


def test_every_other_op_has_a_rule() -> None:
    """Of those that have an array among operands or results, once layouts are forgotten and expansions done."""
    others = {
        spec.start_of or spec.done_of or name
        for name, spec in OPS.items()
        if name not in RULES and Trait.ELEMENTWISE not in spec.traits and name not in WITHOUT_BOUNDED_ARRAYS
    }
    assert {name for name in others if not any("dynamic size" in row.what for row in limitations_of(name))} == set()


WITHOUT_BOUNDED_ARRAYS = frozenset(
    {
        *("after-all", "constant", "parameter", "partition-id", "replica-id", "rng-get-and-update-state"),
        *("bitcast", "fusion", "send-done", "recv-done"),
        *("async-start", "async-update", "async-done"),
        *("batch-norm-training", "batch-norm-inference", "batch-norm-grad"),
    }
)
"""They have none, are gone before, or belong to one that is refused. Parameters are the pass's own affair."""

MISSHAPEN = {
    "broadcast.bounded-result": "p = f32[<=4] parameter(0)  ROOT r = f32[4,2] broadcast(p), dimensions={0}",
    "reshape.bounded-result": "p = f32[2,<=4] parameter(0)  ROOT r = f32[8] reshape(p)",
    "bitcast.static": "p = f32[2,<=4] parameter(0)  ROOT r = f32[8] bitcast(p)",
    "bitcast-convert.same-bits": "p = f32[<=4] parameter(0)  ROOT r = s32[4] bitcast-convert(p)",
}


@pytest.mark.parametrize("rule", MISSHAPEN)
def test_what_has_no_meaning_is_refused_at_once(rule: str) -> None:
    with pytest.raises(XlaError) as caught:
        verify(parse("ENTRY e {\n " + MISSHAPEN[rule] + "\n}"))
    assert rule in str(caught.value)


def test_calls_pass_sizes() -> None:
    text = """
    f { x = f32[<=4] parameter(0)  n = s32[] get-dimension-size(x), dimensions={0}  m = f32[<=4] negate(x)
      ROOT t = (f32[<=4], s32[]) tuple(m, n) }
    ENTRY e { p = f32[<=4] parameter(0)  a = (f32[<=4], s32[]) call(p), to_apply=f
      b = f32[<=4] get-tuple-element(a), index=0  ROOT c = (f32[<=4], s32[]) call(b), to_apply=f }
    """
    before = parse(text)
    after = before.clone()
    assert DynamicPadder().run(after)
    verify(after)
    assert [len(computation.parameters) for computation in after.computations()] == [1, 2]
    check_same_values(before, after)


def test_a_branch_has_a_copy_for_each_result_that_is_wanted() -> None:
    """Where the other branch is bounded, its result is so too; elsewhere it is not."""
    text = """
    whole { x = f32[4] parameter(0)  ROOT n = f32[4] negate(x) }
    part { x = f32[<=4] parameter(0)  ROOT n = f32[<=4] abs(x) }
    ENTRY e { p = f32[4] parameter(0)  q = f32[<=4] parameter(1)  c = pred[] parameter(2)
      a = f32[<=4] conditional(c, p, q), true_computation=whole, false_computation=part
      b = f32[4] conditional(c, p, p), true_computation=whole, false_computation=whole
      ROOT t = (f32[<=4], f32[4]) tuple(a, b) }
    """
    before = parse(text)
    after = before.clone()
    assert DynamicPadder().run(after)
    verify(after)
    assert sorted(
        str(computation.root.shape) for computation in after.computations() if computation is not after.entry
    ) == [
        "(f32[4], s32[])",
        "(f32[4], s32[])",
        "f32[4]",
    ]
    check_same_values(before, after)


def test_control_edges_hold_the_loop_itself() -> None:
    text = """
    c { s = f32[<=4] parameter(0)  ROOT t = pred[] constant(false) }
    b { s = f32[<=4] parameter(0)  ROOT n = f32[<=4] negate(s) }
    ENTRY e { p = f32[<=4] parameter(0)  f = f32[<=4] exponential(p)
      ROOT w = f32[<=4] while(p), condition=c, body=b, control-predecessors={f} }
    """
    module = parse(text)
    assert DynamicPadder().run(module)
    verify(module)
    loop = next(instruction for instruction in module.entry if instruction.opcode == "while")
    assert [before.opcode for before in loop.control_predecessors] == ["exponential"]
