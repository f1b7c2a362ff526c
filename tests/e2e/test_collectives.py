"""Collectives on grids of processes, native code beside the evaluator and beside what the specification says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xlapy
from xlapy import ops
from xlapy.hlo.evaluate import evaluate_parallel
from xlapy.hlo.graph import HloModule
from xlapy.passes.scheduling import schedule

F32, S64 = np.float32, np.int64


def run_parallel(module: Any, arguments: Sequence[Sequence[Any]], replicas: int, partitions: int = 1) -> list[Any]:
    """The results of native code, after they were found to be the evaluator's to the bit."""
    module = module if isinstance(module, HloModule) else getattr(module, "module", module)
    executable = xlapy.compile(
        module, xlapy.CompileOptions(num_replicas=replicas, num_partitions=partitions, timeout=20.0, verify=True)
    )
    results = executable.run_parallel(arguments)
    expected = evaluate_parallel(module, arguments, num_replicas=replicas, num_partitions=partitions)
    assert_same(results, expected)
    return results


def assert_same(results: Any, expected: Any) -> None:
    if isinstance(expected, (tuple, list)):
        assert len(results) == len(expected)
        for result, wanted in zip(results, expected, strict=True):
            assert_same(result, wanted)
    else:
        assert result_bits(results) == result_bits(expected)


def result_bits(array: np.ndarray) -> tuple[Any, ...]:
    return array.dtype, array.shape, array.tobytes()


# -- the worked examples of the specification ----------------------------------------------------------------------


@dataclass(frozen=True)
class Example:
    operation: str
    grid: tuple[int, int]
    operands: list[Any]
    results: list[Any]

    @property
    def text(self) -> str:
        def type_of(value: Any) -> str:
            return f"tensor<{'x'.join(map(str, np.shape(value)))}xi64>"

        operand, result = type_of(self.operands[0]), type_of(self.results[0])
        return f"""
        func.func @main(%operand: {operand}) -> {result} {{
          %result = {self.operation} : ({operand}) -> {result}
          return %result : {result}
        }}"""


SUM = """({
  ^bb0(%arg0: tensor<i64>, %arg1: tensor<i64>):
    %0 = "stablehlo.add"(%arg0, %arg1) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    "stablehlo.return"(%0) : (tensor<i64>) -> ()
})"""

GROUP = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"
TWO_ROWS = [[[1, 2, 3, 4], [5, 6, 7, 8]], [[9, 10, 11, 12], [13, 14, 15, 16]]]

EXAMPLES = {
    "all_gather": Example(
        f'"stablehlo.all_gather"(%operand) {{all_gather_dim = 1 : i64, {GROUP}}}',
        (2, 1),
        [[[1, 2], [3, 4]], [[5, 6], [7, 8]]],
        [[[1, 2, 5, 6], [3, 4, 7, 8]]] * 2,
    ),
    "all_reduce": Example(
        f'"stablehlo.all_reduce"(%operand) {SUM} {{{GROUP}}}',
        (2, 1),
        [[1, 2, 3, 4], [5, 6, 7, 8]],
        [[6, 8, 10, 12]] * 2,
    ),
    "all_to_all": Example(
        '"stablehlo.all_to_all"(%operand) {split_dimension = 1 : i64, concat_dimension = 0 : i64, '
        f"split_count = 2 : i64, {GROUP}}}",
        (2, 1),
        TWO_ROWS,
        [[[1, 2], [5, 6], [9, 10], [13, 14]], [[3, 4], [7, 8], [11, 12], [15, 16]]],
    ),
    "collective_broadcast": Example(
        '"stablehlo.collective_broadcast"(%operand) {replica_groups = dense<[[2, 1]]> : tensor<1x2xi64>}',
        (4, 1),
        [[[1, 2]], [[3, 4]], [[5, 6]], [[7, 8]]],
        [[[0, 0]], [[5, 6]], [[5, 6]], [[0, 0]]],
    ),
    "collective_permute": Example(
        '"stablehlo.collective_permute"(%operand) {source_target_pairs = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>, '
        "channel_handle = #stablehlo.channel_handle<handle = 0, type = 0>}",
        (3, 1),
        [[[1, 2], [3, 4]], [[5, 6], [7, 8]], [[9, 10], [11, 12]]],
        [[[0, 0], [0, 0]], [[1, 2], [3, 4]], [[5, 6], [7, 8]]],
    ),
    "reduce_scatter": Example(
        f'"stablehlo.reduce_scatter"(%operand) {SUM} {{scatter_dimension = 1 : i64, {GROUP}}}',
        (2, 1),
        TWO_ROWS,
        [[[10, 12], [18, 20]], [[14, 16], [22, 24]]],
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_of_stablehlo(name: str) -> None:
    example = EXAMPLES[name]
    module = xlapy.stablehlo.parse(example.text)
    arguments = [[np.array(operand, S64)] for operand in example.operands]
    results = run_parallel(module, arguments, *example.grid)
    assert [result.tolist() for result in results] == example.results
    again = xlapy.stablehlo.parse(xlapy.stablehlo.to_text(module))
    assert_same(run_parallel(again, arguments, *example.grid), results)
    through_hlo = xlapy.hlo.parse(module.to_text())
    assert through_hlo.to_text() == module.to_text()
    assert_same(run_parallel(through_hlo, arguments, *example.grid), results)


def recorded(function: Callable[..., Any], *shapes: xlapy.Shape) -> HloModule:
    builder = xlapy.XlaBuilder("collective")
    return builder.build(function(*[builder.parameter(n, shape) for n, shape in enumerate(shapes)])).module


def f32(*dims: int) -> xlapy.Shape:
    return xlapy.Shape.array(F32, dims)


def test_examples_of_the_builder() -> None:
    pair = [[np.array([1.0, 2.5], F32)], [np.array([3.0, 5.25], F32)]]
    gathered = run_parallel(recorded(lambda x: ops.AllGather(x, 0, 2), f32(2)), pair, 2)
    assert [part.tolist() for part in gathered] == [[1.0, 2.5, 3.0, 5.25]] * 2
    pair[0][0][1] = 2.25
    scattered = run_parallel(recorded(lambda x: ops.ReduceScatter(x, ops.Add, 0, 2), f32(2)), pair, 2)
    assert [part.tolist() for part in scattered] == [[4.0], [7.5]]
    pair[0][0][1] = 2.5
    summed = run_parallel(recorded(ops.CrossReplicaSum, f32(2)), pair, 2)
    assert [part.tolist() for part in summed] == [[4.0, 7.75]] * 2
    moved = recorded(lambda x: ops.AllToAll(x, 1, 0, 4), f32(4, 16))
    assert moved.signature.result.dims == (16, 4)


def test_two_groups_have_their_own_order() -> None:
    values = [[np.array([number], S64)] for number in range(6)]
    shape = xlapy.Shape.array(S64, (1,))
    module = recorded(lambda x: ops.AllGather(x, 0, 3, [[1, 2, 3], [4, 5, 0]]), shape)
    results = run_parallel(module, values, 6)
    assert [part.tolist() for part in results] == [[4, 5, 0], [1, 2, 3], [1, 2, 3], [1, 2, 3], [4, 5, 0], [4, 5, 0]]
    by_group = recorded(lambda x: ops.CrossReplicaSum(x, [0, 1, 2, 0, 1, 2]), shape)
    assert [int(part[0]) for part in run_parallel(by_group, values, 6)] == [3, 5, 7, 3, 5, 7]


# -- every op, several sizes, types and strategies -----------------------------------------------------------------


def inputs(processes: int, shapes: Sequence[xlapy.Shape]) -> list[list[np.ndarray]]:
    random = np.random.default_rng(processes)
    return [
        [(random.normal(size=s.dims) * 4).astype(F32).astype(s.type.dtype) for s in shapes] for _ in range(processes)
    ]


def mixed(x: Any, y: Any, z: Any) -> Any:
    """Variadic collectives of several types, and compute around them."""
    builder = x.builder
    count = 2
    gathered = ops.AllGather([x + x, y], 0, count)
    scattered = ops.ReduceScatter([z, z], ops.Max, 1, count)
    swapped = ops.AllToAllTuple([x, ops.Neg(x)])
    sent = ops.MultiCollectivePermute([x, z], [(0, 1)])
    known = ops.CollectiveBroadcast([y, z], [[1, 0]])
    return builder.tuple([gathered, scattered, swapped, sent, known, ops.AllReduce([x, y], ops.Add)])


@pytest.mark.parametrize("types", [("f32", "f32", "f32"), ("f32", "f32", "s16"), ("f64", "f64", "bf16")], ids=str)
def test_variadic_collectives(types: tuple[str, str, str]) -> None:
    shapes = [xlapy.Shape.array(t, dims) for t, dims in zip(types, [(3, 5), (2,), (4, 6)], strict=True)]
    run_parallel(recorded(mixed, *shapes), inputs(2, shapes), 2)


def test_operands_of_several_types_gather_together() -> None:
    shapes = [xlapy.Shape.array(t, (2, 3)) for t in (np.float32, np.int8, ml_dtypes.bfloat16, np.complex128, np.bool_)]
    module = recorded(lambda *arrays: ops.AllGather(list(arrays), 1, 4), *shapes)
    assert module.signature.result.parts[1].dims == (2, 12)
    run_parallel(module, inputs(4, shapes), 4)


@pytest.mark.parametrize("size", [1, 7, 1000, 70_000])
@pytest.mark.parametrize("processes", [2, 4, 8])
def test_sizes(processes: int, size: int) -> None:
    def function(x: Any) -> Any:
        total = ops.AllReduce(x, ops.Add)
        everything = ops.AllGather(total, 0, processes)
        own = ops.ReduceScatter(everything, ops.Add, 0, processes)
        ring = [(number, (number + 1) % processes) for number in range(processes)]
        rows = ops.Reshape(everything, (processes, size))
        return x.builder.tuple([own, ops.CollectivePermute(x, ring), ops.AllToAll(rows, 0, 1, processes)])

    run_parallel(recorded(function, f32(size)), inputs(processes, [f32(size)]), processes)


STRATEGIES = {
    "cross replica": ({}, 2),
    "cross replica and partition": ({"channel_id": 1}, 4),
    "flattened ids": ({"channel_id": 2, "use_global_device_ids": True}, 4),
}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_strategies_of_reductions(strategy: str) -> None:
    attributes, members = STRATEGIES[strategy]

    def function(x: Any) -> Any:
        groups = [[3, 0, 2, 1]] if "use_global_device_ids" in attributes else [[1, 0]]
        gathered = ops.AllGather(x, 0, members, groups, **attributes)
        return x.builder.tuple([gathered, ops.ReduceScatter(x, ops.Add, 0, members, groups, **attributes)])

    run_parallel(recorded(function, f32(4, 3)), inputs(4, [f32(4, 3)]), 2, 2)


def test_channels_of_exchanges_name_partitions() -> None:
    def function(x: Any) -> Any:
        return x.builder.tuple(
            [
                ops.AllToAll(x, 0, 0, 2, [[1, 0]], channel_id=3),
                ops.CollectivePermute(x, [(0, 1)], channel_id=4),
                ops.CollectiveBroadcast(x, [[1, 0]], channel_id=5),
                ops.CollectivePermute(x, [(1, 0)]),
            ]
        )

    run_parallel(recorded(function, f32(2)), inputs(4, [f32(2)]), 2, 2)


def test_groups_may_leave_processes_out() -> None:
    values = [[np.array([number + 1.0], F32)] for number in range(4)]
    module = recorded(lambda x: ops.CollectiveBroadcast(x, [[3, 0]]), f32(1))
    assert [part.tolist() for part in run_parallel(module, values, 4)] == [[4.0], [0.0], [0.0], [4.0]]


# -- start and done ------------------------------------------------------------------------------------------------


def pairs(x: Any) -> Any:
    """Every start op before any done op, with compute between them that reuses memory."""
    started = [
        (ops.AllReduceDone, ops.AllReduceStart(x + 1, ops.Add)),
        (ops.AllGatherDone, ops.AllGatherStart(x * 2, 0, 2)),
        (ops.ReduceScatterDone, ops.ReduceScatterStart(x - 1, ops.Add, 0, 2)),
        (ops.AllToAllDone, ops.AllToAllStart(ops.Neg(x), 0, [[0, 1]])),
        (ops.CollectivePermuteDone, ops.CollectivePermuteStart(ops.Abs(x), [(0, 1), (1, 0)])),
        (ops.CollectiveBroadcastDone, ops.CollectiveBroadcastStart(x * x, [[1, 0]])),
    ]
    busy = x
    for _ in range(5):
        busy = ops.Tanh(ops.Dot(busy, busy))
    return x.builder.tuple([busy, *[done(start) for done, start in started]])


def test_starts_run_early_and_dones_late() -> None:
    module = recorded(lambda x: ops.AllReduceDone(ops.AllReduceStart(x, ops.Add)) + ops.Dot(x, x), f32(16, 16))
    order = [instruction.opcode for instruction in schedule(module)[module.entry]]
    assert order == ["parameter", "all-reduce-start", "dot", "all-reduce-done", "add"]


def test_pairs_overlap_with_compute() -> None:
    module = recorded(pairs, f32(16, 16))
    text = module.to_text()
    assert "(f32[16,16], f32[32,16]) all-gather-start(" in text
    assert "((f32[16,16]), f32[8,16]) reduce-scatter-start(" in text
    assert xlapy.hlo.parse(text).to_text() == text
    arguments = inputs(2, [f32(16, 16)])
    executable = xlapy.compile(module, xlapy.CompileOptions(num_replicas=2, timeout=20.0, verify=True))
    for _ in range(3):
        results = executable.run_parallel(arguments)
    for result, expected in zip(results, evaluate_parallel(module, arguments, num_replicas=2), strict=True):
        np.testing.assert_allclose(result[0], expected[0], rtol=1e-4, atol=1e-4)
        assert_same(result[1:], expected[1:])
    written = xlapy.stablehlo.parse(xlapy.stablehlo.to_text(module))
    synchronous = evaluate_parallel(written, arguments, num_replicas=2)
    assert_same([row[1:] for row in synchronous], [row[1:] for row in results])


XLA_TEXT = """
HloModule xla, replica_count=2

add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }

ENTRY main {
  p = f32[4]{0} parameter(0)
  q = f32[2]{0} parameter(1)
  start = (f32[4]{0}, f32[4]{0}, u32[], u32[]) collective-permute-start(p), source_target_pairs={{0,1},{1,0}}
  gather = ((f32[4]{0}, f32[2]{0}), (f32[8]{0}, f32[4]{0})) all-gather-start(p, q), dimensions={0}
  wait = f32[4]{0} collective-permute-done(start)
  gathered = (f32[8]{0}, f32[4]{0}) all-gather-done(gather)
  scattered = f32[2]{0} reduce-scatter(wait), replica_groups=[1,2]<=[2], dimensions={0}, to_apply=add
  many = (f32[2]{0}, f32[2]{0}) all-to-all(scattered, q), replica_groups={{1,0}}
  one = f32[4]{0} all-to-all(p), replica_groups={{0,1}}, dimensions={0}
  first = f32[2]{0} collective-broadcast(q), replica_groups={{1,0}}
  ROOT all = ((f32[8]{0}, f32[4]{0}), (f32[2]{0}, f32[2]{0}), f32[4]{0}, f32[2]{0}) tuple(gathered, many, one, first)
}
"""


def test_text_of_xla() -> None:
    module = xlapy.hlo.parse(XLA_TEXT)
    assert xlapy.hlo.parse(module.to_text()).to_text() == module.to_text()
    run_parallel(module, inputs(2, [f32(4), f32(2)]), 2)


def test_collectives_in_a_loop() -> None:
    """The n-th meeting of one process is the n-th of the other, whatever else they do."""

    def body(state: Any) -> Any:
        count, x = state
        return x.builder.tuple([count + 1, ops.CollectivePermute(x * 0.5 + 1.0, [(0, 1), (1, 2), (2, 0)])])

    def function(x: Any) -> Any:
        zero = x.builder.constant(np.int32(0))
        return ops.While(lambda state: state[0] < 20, body, x.builder.tuple([zero, x]))

    run_parallel(recorded(function, f32(5)), inputs(3, [f32(5)]), 3)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("all_to_all|split_count = 2 : i64|split_count = 0 : i64", "all_to_all.C4"),
        ("all_to_all|split_count = 2 : i64|split_count = 4 : i64", "all_to_all.C8"),
        ("all_to_all|concat_dimension = 0|concat_dimension = 2", "all_to_all.C3"),
        ("all_to_all|split_dimension = 1|split_dimension = 2", "all_to_all.C1"),
        ("all_gather|all_gather_dim = 1|all_gather_dim = 2", "all_gather.C1"),
        ("all_gather|[[0, 1]]|[[0, 0]]", "all_gather.C2"),
        ("all_gather|all_gather_dim = 1|all_gather_dim = 0", "all_gather.C6"),
        ("all_gather|all_gather_dim = 1 : i64|all_gather_dim = 1 : i64, use_global_device_ids", "all_gather.C5"),
        ("reduce_scatter|scatter_dimension = 1|scatter_dimension = -1", "reduce_scatter.C2"),
        ("reduce_scatter|[[0, 1]]|[[0, 0]]", "reduce_scatter.C3"),
        ("collective_broadcast|[[2, 1]]|[[2, 2]]", "collective_broadcast.C1"),
        ("collective_permute|[[0, 1], [1, 2]]|[[0, 1], [0, 2]]", "collective_permute.C2"),
        ("collective_permute|[[0, 1], [1, 2]]|[[0, 1], [2, 1]]", "collective_permute.C3"),
        ("collective_permute|[[0, 1], [1, 2]]|[[0, 1], [-2, 3]]", "collective_permute.C4"),
        ("collective_permute|dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>|dense<[[0]]> : tensor<1x1xi64>",
         "collective_permute.C1"),
    ],
)  # fmt: skip
def test_broken_constraints_are_named(text: str, label: str) -> None:
    name, old, new = text.split("|")
    original = EXAMPLES[name].text
    assert old in original
    with pytest.raises(xlapy.XlaError) as caught:
        xlapy.stablehlo.parse(original.replace(old, new))
    assert caught.value.rule == label


# -- shapes and groups that do not fit -----------------------------------------------------------------------------

ADD_TEXT = "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }"

MISFITS = {
    "a gather of too few": ("f32[8] all-gather(p), dimensions={0}, replica_groups={}", (8, 1), "all-gather.result"),
    "a gather of too many": ("f32[8] all-gather(p), dimensions={0}, replica_groups={}", (2, 1), "all-gather.result"),
    "a gather of replicas with all their partitions": (
        "f32[4] all-gather(p), dimensions={0}, replica_groups={{0,1}}, channel_id=1", (2, 2), "all-gather.result"
    ),
    "a gather in short groups": (
        "f32[4] all-gather(p), dimensions={0}, replica_groups={{0,1},{2,-1}}", (3, 1), "all-gather.equal-groups"
    ),
    "a gather that is started": (
        "(f32[2], f32[8]) all-gather-start(p), dimensions={0}, replica_groups={}", (2, 1), "all-gather.result"
    ),
    "a part for each of more processes": (
        "f32[1] reduce-scatter(p), dimensions={0}, replica_groups={}, to_apply=add", (4, 1), "reduce-scatter.parts"
    ),
    "parts that are too large": (
        "f32[2] reduce-scatter(p), dimensions={0}, replica_groups={}, to_apply=add", (2, 1), "reduce-scatter.result"
    ),
    "an operand for each of fewer": ("(f32[2], f32[2]) all-to-all(p, p)", (3, 1), "all-to-all.split-count"),
    "an operand for each of more": ("(f32[2], f32[2]) all-to-all(p, p)", (1, 1), "all-to-all.split-count"),
    "parts for too many": ("f32[2] all-to-all(p), dimensions={0}", (4, 1), "all-to-all.split-count"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISFITS)
def test_what_is_exchanged_fits_the_grid(name: str) -> None:
    """Groups that are left out, or that partitions multiply, are as large as the grid makes them."""
    operation, (replicas, partitions), rule = MISFITS[name]
    done = "\n  ROOT d = f32[8] all-gather-done(x)" if "-start(" in operation else ""
    root = f"x = {operation}{done}" if done else f"ROOT x = {operation}"
    text = f"HloModule misfit\n{ADD_TEXT}\nENTRY main {{\n  p = f32[2] parameter(0)\n  {root}\n}}"
    arguments = [[np.zeros(2, F32)]] * (replicas * partitions)
    with pytest.raises(xlapy.ShapeError) as compiling:
        xlapy.compile(text, xlapy.CompileOptions(num_replicas=replicas, num_partitions=partitions))
    with pytest.raises(xlapy.ShapeError) as evaluating:
        evaluate_parallel(xlapy.hlo.parse(text), arguments, replicas, partitions)
    for caught in (compiling, evaluating):
        assert caught.value.rule == rule
        assert "x in main" in str(caught.value) or "line 5" in str(caught.value)


BRANCHES = """
HloModule branches
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
many {
  p = f32[100000] parameter(0)
  all = f32[100000] all-reduce(p), channel_id=1, replica_groups={{0,1}}, to_apply=add
  ROOT some = f32[4] slice(all), slice={[0:4]}
}
few {
  p = f32[100000] parameter(0)
  some = f32[4] slice(p), slice={[0:4]}
  ROOT sum = f32[4] all-reduce(some), channel_id=1, replica_groups={{0,1}}, to_apply=add
}
ENTRY main {
  which = pred[] parameter(0)
  p = f32[100000] parameter(1)
  ROOT c = f32[4] conditional(which, p, p), true_computation=many, false_computation=few
}
"""


def test_branches_that_share_a_channel_meet_only_in_the_same_shapes() -> None:
    module, ones = xlapy.hlo.parse(BRANCHES), np.ones(100_000, F32)
    for which in (True, False):
        results = run_parallel(module, [[np.bool_(which), ones]] * 2, 2)
        assert [part.tolist() for part in results] == [[2.0] * 4] * 2
    executable = xlapy.compile(module, xlapy.CompileOptions(num_replicas=2, timeout=20.0))
    apart = [[np.bool_(which), ones] for which in (True, False)]
    with pytest.raises(xlapy.ExecutionError, match=r"(all|sum) of the same channel"):
        executable.run_parallel(apart)
    with pytest.raises(xlapy.ExecutionError, match="waits for processes"):
        evaluate_parallel(module, apart, num_replicas=2)
