"""The pipeline: order, watching, bisection; and whole programs through it."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from tests.support.hlo_cases import assert_same, check_same_values
from tests.support.kernel_faults import check_fusion
from tests.support.random_programs import random_program
from tests.support.work import assert_linear
from xlapy.hlo.attributes import ComparisonDirection, DotDimensionNumbers, SliceDimension
from xlapy.hlo.evaluate import evaluate
from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.random_values import random_arguments
from xlapy.hlo.shape import Shape
from xlapy.hlo.structure import structure
from xlapy.hlo.text import parse, to_text
from xlapy.hlo.verifier import verify
from xlapy.passes.base import Pass
from xlapy.passes.cse import Cse
from xlapy.passes.dce import Dce
from xlapy.passes.fusion.fusion import LoopFusion
from xlapy.passes.pipeline import Checks, FixedPoint, Order, Pipeline, Watch
from xlapy.passes.pipelines import PipelineOptions, cpu_pipeline
from xlapy.passes.tuple_simplification import TupleSimplification
from xlapy.support.dump import DumpFolder
from xlapy.support.errors import ArgumentError, InternalError

CHECKED = Watch(Checks(verify, structure))

REDUNDANT = """
ENTRY main {
  p = f32[4] parameter(0)
  dead = f32[4] tanh(p)
  a = f32[4] exponential(p)
  b = f32[4] exponential(p)
  ROOT s = f32[4] subtract(a, b)
}
"""


@dataclass
class Liar(Pass):
    """Says the opposite of the truth."""

    name: ClassVar[str] = "liar"

    does: bool = False

    def run(self, module: HloModule) -> bool:
        if self.does:
            Dce().run(module)
        return not self.does


@dataclass
class Breaker(Pass):
    """Leaves a negate of another shape than its operand."""

    name: ClassVar[str] = "breaker"

    def run(self, module: HloModule) -> bool:
        module.entry.set_shape(module.entry.root, Shape.array(np.float32, (7,)))
        return True


@pytest.mark.parametrize("does", [False, True])
def test_a_pass_that_lies_is_named(does: bool) -> None:
    with pytest.raises(InternalError, match="liar"):
        Pipeline("test", (Liar(does),), watch=CHECKED).run(parse(REDUNDANT))


def test_a_pass_that_breaks_the_module_is_named() -> None:
    with pytest.raises(InternalError, match="breaker"):
        Pipeline("test", (Breaker(),), watch=CHECKED).run(parse(REDUNDANT))


@dataclass
class OfLoops(Liar):
    """Does something, or says so, in programs that have no loops, too."""

    name: ClassVar[str] = "of-loops"
    ops: ClassVar[frozenset[str]] = frozenset({"while"})


def test_a_pass_is_left_out_where_there_are_none_of_its_ops() -> None:
    report = Pipeline("test", (OfLoops(), Dce(), OfLoops())).run(parse(REDUNDANT))
    assert [(run.number, run.name, run.changed) for run in report.runs] == [
        (0, "of-loops", False),
        (1, "dce", True),
        (2, "of-loops", False),
    ]
    loop = """
    c { p = s32[] parameter(0)  n = s32[] constant(3)  ROOT r = pred[] compare(p, n), direction=LT }
    b { p = s32[] parameter(0)  n = s32[] constant(1)  ROOT r = s32[] add(p, n) }
    ENTRY e { p = s32[] parameter(0)  ROOT w = s32[] while(p), condition=c, body=b }"""
    assert Pipeline("test", (OfLoops(),)).run(parse(loop)).changes == 1


def test_a_pass_that_does_without_its_ops_is_named() -> None:
    with pytest.raises(InternalError, match="of-loops changed the module, which has none of its ops"):
        Pipeline("test", (OfLoops(),), watch=CHECKED).run(parse(REDUNDANT))


def test_a_wrong_order_is_refused_with_its_reason() -> None:
    order = [Order(Cse, Dce, "of a reason")]
    with pytest.raises(InternalError, match="cse must run before dce: of a reason"):
        Pipeline("test", (Dce(), Cse()), order)
    Pipeline("test", (Cse(), Dce()), order)


def test_a_group_runs_until_nothing_changes() -> None:
    """What comes to rest does not run again where nothing has changed since."""
    report = Pipeline("test", (FixedPoint("clean", (TupleSimplification(), Cse(), Dce())),)).run(parse(REDUNDANT))
    assert [(run.name, run.changed) for run in report.runs] == [
        ("simplify-tuples", False),
        ("cse", True),
        ("dce", True),
        ("simplify-tuples", False),
        ("cse", False),
    ]
    assert report.changes == 2
    assert not report.unfinished


def test_a_led_group_ends_where_its_first_pass_finds_nothing() -> None:
    group = FixedPoint("clean", (Cse(), TupleSimplification(), Dce()), led=True)
    report = Pipeline("test", (group, group)).run(parse(REDUNDANT))
    assert [(run.name, run.changed) for run in report.runs] == [
        ("cse", True),
        ("simplify-tuples", False),
        ("dce", True),
        ("cse", False),
        ("cse", False),
    ]


def test_a_group_that_does_not_finish_is_reported() -> None:
    report = Pipeline("test", (FixedPoint("endless", (Liar(),), bound=3),)).run(parse(REDUNDANT))
    assert report.unfinished == ["endless"]
    assert len(report.runs) == 3


def test_changes_can_be_counted_out() -> None:
    for count, expected in ((0, 0), (1, 1), (2, 2)):
        report = Pipeline("test", (Cse(), Dce()), watch=Watch(stop_after=count)).run(parse(REDUNDANT))
        assert report.changes == expected


def test_passes_can_be_left_out_but_required_ones_run() -> None:
    report = cpu_pipeline(watch=Watch(disabled=".*")).run(parse(REDUNDANT))
    assert {run.name for run in report.runs} == {
        "unwrap-async",
        "copy-insertion",
        "forget-layouts",
        "inline-calls",
        "flatten-call-graph",
        "dynamic-padder",
        "expand-random",
        "widen-matrices",
        "expand-batch-norm",
        "zero-sized",
        "layout-assignment",
    }


def test_dumps_show_every_change(tmp_path: Path) -> None:
    watch = Watch(dump=DumpFolder(tmp_path), to_text=to_text)
    Pipeline("test", (FixedPoint("clean", (Cse(), Dce())),), watch=watch).run(parse(REDUNDANT))
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["0000.clean.cse.hlo", "0001.clean.dce.hlo"]
    assert "tanh" not in (tmp_path / "0001.clean.dce.hlo").read_text()


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("in the way")
    for path in (occupied, occupied / "below"):
        with pytest.raises(ArgumentError, match="dumps cannot be written to"):
            DumpFolder(path).write(1, "dce", suffix="hlo", text="")


def test_dumps_can_be_chosen(tmp_path: Path) -> None:
    watch = Watch(dump=DumpFolder(tmp_path, wanted="dce"), to_text=to_text)
    Pipeline("test", (Cse(), Dce()), watch=watch).run(parse(REDUNDANT))
    assert [path.name for path in tmp_path.iterdir()] == ["0001.dce.hlo"]


def test_time_is_reported_by_pass() -> None:
    timings = cpu_pipeline().run(parse(REDUNDANT)).timings()
    assert "dce" in timings.table()
    assert timings.runs["dce"] >= 2


# -- whole programs ------------------------------------------------------------------------------------------------


def check_kernels(module: HloModule) -> None:
    for instruction in module.instructions():
        if instruction.opcode == "fusion":
            check_fusion(instruction)


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_keep_their_values(seed: int) -> None:
    before = random_program(seed)
    after = before.clone()
    cpu_pipeline(watch=CHECKED).run(after)
    check_kernels(after)
    check_same_values(before, after)


@pytest.mark.parametrize("seed", range(100, 110))
def test_random_programs_through_each_pass_alone(seed: int) -> None:
    before = random_program(seed)
    for step in cpu_pipeline().passes():
        after = before.clone()
        Pipeline("alone", (step,), watch=CHECKED).run(after)
        arguments = random_arguments(before.signature.parameters, seed)
        assert_same(evaluate(after, *arguments), evaluate(before, *arguments))


@pytest.mark.parametrize("seed", range(3))
def test_the_same_program_gives_the_same_text(seed: int) -> None:
    texts = []
    for _ in range(2):
        module = random_program(seed, 60)
        cpu_pipeline().run(module)
        texts.append(to_text(module))
    assert texts[0] == texts[1]


def test_a_program_of_scalars_has_layouts_to_forget_only() -> None:
    module = parse("ENTRY e {\n x = f32[] parameter(0)\n ROOT r = f32[] tanh(x)\n}")
    report = cpu_pipeline(watch=CHECKED).run(module)
    assert [run.name for run in report.runs if run.changed] == ["forget-layouts", "layout-assignment"]


def test_options_reach_the_passes() -> None:
    text = """
    ENTRY main {
      x = f32[64] parameter(0)
      a = f32[64] exponential(x)
      b = f32[64] sine(x)
      n = f32[64] negate(a)
      m = f32[64] negate(n)
      ROOT t = (f32[64], f32[64]) tuple(m, b)
    }"""
    module = parse(text)
    options = PipelineOptions(disabled_laws=frozenset({"negate-twice"}), multi_output_fusion=False)
    cpu_pipeline(options).run(module)
    opcodes = [instruction.opcode for instruction in module.instructions()]
    assert opcodes.count("negate") == 2
    assert opcodes.count("fusion") == 1


TWO_LOOPS = """
test { s = (s32[], f32[8,8], f32[8,8]) parameter(0)  i = s32[] get-tuple-element(s), index=0  n = s32[] constant(9)
  ROOT l = pred[] compare(i, n), direction=LT }
NAME { s = (s32[], f32[8,8], f32[8,8]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  x = f32[8,8] get-tuple-element(s), index=1  w = f32[8,8] get-tuple-element(s), index=2  one = s32[] constant(1)
  j = s32[] add(i, one)  t = f32[8,8] tanh(w)
  d = f32[8,8] dot(x, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  y = f32[8,8] NAME(d)  ROOT n = (s32[], f32[8,8], f32[8,8]) tuple(j, y, w) }
ENTRY main {
  x = f32[8,8] parameter(0)  w = f32[8,8] parameter(1)  z = s32[] constant(0)  t = f32[8,8] tanh(w)
  s = (s32[], f32[8,8], f32[8,8]) tuple(z, x, w)
  a = (s32[], f32[8,8], f32[8,8]) while(s), condition=test, body=sine
  b = (s32[], f32[8,8], f32[8,8]) while(s), condition=test, body=cosine
  y = f32[8,8] get-tuple-element(a), index=1  v = f32[8,8] get-tuple-element(b), index=1
  ROOT r = (f32[8,8], f32[8,8], f32[8,8]) tuple(y, v, t) }
"""


def test_what_loops_and_their_surroundings_compute_alike_is_computed_once() -> None:
    head, body, entry = re.split(r"^(?=NAME|ENTRY)", TWO_LOOPS, flags=re.MULTILINE)
    module = parse(head + body.replace("NAME", "sine") + body.replace("NAME", "cosine") + entry)
    after = module.clone()
    cpu_pipeline(watch=CHECKED).run(after)
    assert [instruction.opcode for instruction in after.instructions()].count("tanh") == 1
    check_same_values(module, after)


# -- size ----------------------------------------------------------------------------------------------------------


def chain(length: int) -> HloModule:
    computation = Computation("main")
    shape = Shape.array(np.float32, (256,))
    x = computation.add("parameter", shape=shape, number=0)
    y = computation.add("parameter", shape=shape, number=1)
    value = x
    for place in range(length):
        value = computation.add(("add", "multiply", "subtract")[place % 3], [value, (x, y)[place % 2]])
    computation.set_root(value)
    return HloModule("chain", computation)


def wide(count: int) -> HloModule:
    """Thousands of readers of one value, and a root of thousands of elements."""
    computation = Computation("main")
    x = computation.add("parameter", shape=Shape.array(np.float32, (16,)), number=0)
    shared = computation.add("exponential", [x])
    values = []
    for place in range(count):
        flipped = computation.add("reverse", [shared], dimensions=(0,)) if place % 3 else shared
        values.append(computation.add(("add", "divide")[place % 2], [flipped, values[place // 2] if values else x]))
    computation.set_root(computation.add("tuple", values))
    return HloModule("wide", computation)


def calls(count: int) -> HloModule:
    """One small function called again and again."""
    shape = Shape.array(np.float32, (16,))
    callee = Computation("f")
    x = callee.add("parameter", shape=shape, number=0)
    callee.set_root(callee.add("tanh", [callee.add("negate", [x])]))
    computation = Computation("main")
    value = computation.add("parameter", shape=shape, number=0)
    for _ in range(count):
        value = computation.add("call", [value], called=[callee])
    computation.set_root(value)
    return HloModule("calls", computation)


def nested(depth: int) -> HloModule:
    """Functions that call each other, one inside the other."""
    shape = Shape.array(np.float32, (16,))
    callee = None
    for _ in range(depth):
        computation = Computation("f")
        value = computation.add("sine", [computation.add("parameter", shape=shape, number=0)])
        computation.set_root(value if callee is None else computation.add("call", [value], called=[callee]))
        callee = computation
    assert callee is not None
    return HloModule("nested", callee)


def steps(count: int) -> HloModule:
    """The same for each part of an array."""
    computation = Computation("main")
    x = computation.add("parameter", shape=Shape.array(np.float32, (count, 16)), number=0)
    zero = computation.add("constant", literal=Literal(np.float32(0)))
    region = Computation("sum")
    operands = [region.add("parameter", shape=zero.shape, number=number) for number in range(2)]
    region.set_root(region.add("add", operands))
    values = []
    for place in range(count):
        row = SliceDimension(place, place + 1), SliceDimension(0, 16)
        made = computation.add("tanh", [computation.add("slice", [x], dimensions=row)])
        values.append(computation.add("reduce", [made, zero], called=[region], dimensions=(0, 1)))
    computation.set_root(computation.add("tuple", values))
    return HloModule("steps", computation)


def choices(count: int) -> HloModule:
    """One conditional after another, whose branches have much in common."""
    array = Shape.array(np.float32, (4, 4))
    numbers = DotDimensionNumbers((1,), (0,))
    computation = Computation("main")
    selector = computation.add("parameter", shape=Shape.array(np.int32, ()), number=0)
    x = computation.add("parameter", shape=array, number=1)
    values = [x]
    for _ in range(count):
        called = []
        for function in ("sine", "cosine", "tanh"):
            branch = Computation(function)
            state = branch.add("parameter", shape=Shape.tuple([array] * 3), number=0)
            y, z, _ = (branch.add("get-tuple-element", [state], index=index) for index in range(3))
            product = branch.add("dot", [y, z], shape=array, dimension_numbers=numbers)
            branch.set_root(branch.add("tuple", [branch.add("negate", [branch.add(function, [product])]), z, product]))
            called.append(branch)
        state = computation.add("tuple", [x, values[-1], x])
        chosen = computation.add("conditional", [selector, state, state, state], called=called)
        parts = [computation.add("get-tuple-element", [chosen], index=index) for index in range(2)]
        values.append(computation.add("add", parts))
    computation.set_root(computation.add("tuple", values))
    return HloModule("choices", computation)


def carries(count: int) -> HloModule:
    """A loop over many arrays that start alike, each two of which stay so, with work that never changes."""
    array, number = Shape.array(np.float32, (4,)), Shape.array(np.int32, ())
    shape = Shape.tuple([number, *[array] * count])
    test, body, computation = Computation("test"), Computation("body"), Computation("main")

    def elements(region: Computation) -> list[Instruction]:
        state = region.add("parameter", shape=shape, number=0)
        return [region.add("get-tuple-element", [state], index=index) for index in range(1 + count)]

    def constant(region: Computation, value: int) -> Instruction:
        return region.add("constant", literal=Literal(np.int32(value)))

    test.set_root(test.add("compare", [elements(test)[0], constant(test, 9)], direction=ComparisonDirection.LT))
    counter, *values = elements(body)
    same = [body.add("tanh", [value]) for value in values[: count // 2]]
    following = [
        values[n] if n < count // 2 else body.add("add", [value, same[n // 4]]) for n, value in enumerate(values)
    ]
    body.set_root(body.add("tuple", [body.add("add", [counter, constant(body, 1)]), *following]))
    x = computation.add("parameter", shape=array, number=0)
    init = computation.add("tuple", [constant(computation, 0), *[x] * count])
    computation.set_root(computation.add("while", [init], called=[test, body]))
    return HloModule("carries", computation)


@pytest.mark.parametrize(
    ("program", "size"),
    [(chain, 10_000), (wide, 3_000), (calls, 4_000), (nested, 4_000), (steps, 500), (choices, 200), (carries, 300)],
)
def test_large_programs_become_kernels(program: Callable[[int], HloModule], size: int) -> None:
    module = program(size)
    cpu_pipeline().run(module)
    check_kernels(module)


@pytest.mark.parametrize(
    ("program", "size"),
    [(chain, 300), (wide, 300), (calls, 200), (nested, 200), (steps, 60), (choices, 25), (carries, 100)],
)
def test_the_work_of_the_pipeline_grows_with_the_program(program: Callable[[int], HloModule], size: int) -> None:
    def pipeline(size: int) -> Callable[[], Any]:
        module = program(size)
        return lambda: cpu_pipeline().run(module)

    pipeline(10)()  # what is made once, is made
    assert_linear(pipeline, size)


def test_a_long_chain_becomes_kernels_of_bounded_size() -> None:
    module = chain(2_000)
    fusion = LoopFusion()
    fusion.run(module)
    sizes = [len(i.called[0]) for i in module.entry if i.opcode == "fusion"]
    assert sum(sizes) >= 2_000
    assert max(sizes) <= fusion.limits.instructions + fusion.limits.operands
    assert all(record.reason for record in fusion.records)
    assert {record.made for record in fusion.records} == {True, False}


# -- what reports ask for ----------------------------------------------------------------------------------------------


def test_an_observer_sees_the_module_after_every_change() -> None:
    seen: list[tuple[str, int]] = []
    watch = Watch(observe=lambda run, module: seen.append((run.name, module.instruction_count)))
    module = parse(REDUNDANT)
    report = Pipeline("both", (Cse(), Dce(), Dce()), watch=watch).run(module)
    assert [run.name for run in report.runs if run.changed] == [name for name, _ in seen] == ["cse", "dce"]
    assert seen[-1][1] == module.instruction_count == 3


def test_the_report_counts_laws_for_one_run_each() -> None:
    module = parse("ENTRY e { x = f32[4] parameter(0)  n = f32[4] negate(x)  ROOT m = f32[4] negate(n) }")
    pipeline = cpu_pipeline()
    for _ in range(2):
        assert pipeline.run(module.clone()).counts == {"negate-twice": 1}


def test_records_say_where_and_from_which_line() -> None:
    module = parse(
        """ENTRY main {
          p = f32[64] parameter(0)
          a = f32[64] exponential(p), metadata={source_file="a.py" source_line=1}
          b = f32[64] negate(a), metadata={source_file="a.py" source_line=2}
          s = f32[64] sort(b), dimensions={0}, to_apply=less
          ROOT r = f32[64] multiply(s, b)
        }
        less { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT l = pred[] compare(x, y), direction=LT }"""
    )
    report = cpu_pipeline().run(module)
    records = {record.subject: record for record in report.records["fusion"]}
    assert records["b.fusion"].made and "256 bytes need not be stored" in records["b.fusion"].reason
    assert not records["b"].made and records["b"].reason == "s (sort) reads it from memory"
    assert records["b"].computation == "main" and records["b"].metadata.location() == "a.py:2"
