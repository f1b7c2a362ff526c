"""Queues, channels, collectives, custom calls, and what happens when they fail."""

# ruff: noqa: E501 (programs and tables are kept on their lines)

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import xlapy
from tests.support.work import lines_run
from xlapy.hlo.evaluate import Interpreter, evaluate, evaluate_parallel
from xlapy.hlo.text import parse
from xlapy.support.errors import ArgumentError, ExecutionError, XlaError

ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"


def test_infeed_and_outfeed_keep_the_order_of_tokens() -> None:
    module = parse("""ENTRY e {
      t = token[] after-all()
      i = ((f32[2], s32[]), token[]) infeed(t)
      d = (f32[2], s32[]) get-tuple-element(i), index=0
      x = f32[2] get-tuple-element(d), index=0
      t1 = token[] get-tuple-element(i), index=1
      o = token[] outfeed(x, t1), outfeed_shape=f32[2]
      i2 = (s32[], token[]) infeed(o)
      y = s32[] get-tuple-element(i2), index=0
      o2 = token[] outfeed(y, o)
      n = ((), token[]) infeed(o2)
      ROOT r = s32[] add(y, y)
    }""")
    interpreter = Interpreter()
    interpreter.infeed().extend([(np.float32([1, 2]), np.int32(3)), np.int32(4)])
    assert interpreter.run(module) == 8
    first, second = interpreter.outfeed()
    assert (first.tolist(), second.tolist()) == ([1, 2], 4)
    assert not interpreter.infeed()


@pytest.mark.parametrize(("shape", "value"), [("()", ()), ("(())", ((),)), ("((), (()))", ((), ((),)))])
def test_an_infeed_without_arrays_reads_nothing(shape: str, value: tuple) -> None:
    """As it does in compiled programs."""
    module = parse(f"ENTRY e {{ t = token[] after-all() ROOT i = ({shape}, token[]) infeed(t) }}")
    assert evaluate(module) == xlapy.compile(module)() == (value, None)


def test_an_infeed_without_data_or_of_another_shape_fails() -> None:
    module = parse("ENTRY e { t = token[] after-all() ROOT i = (f32[2], token[]) infeed(t) }")
    with pytest.raises(ExecutionError, match=r"process 0 waits for an item of shape f32\[2\] in the infeed"):
        evaluate(module)
    interpreter = Interpreter()
    interpreter.infeed().append(np.float64([1, 2]))
    with pytest.raises(ExecutionError, match="expected a value of shape"):
        interpreter.run(module)


SENDER = """ENTRY sender {
  x = f32[2] parameter(0)
  t = token[] after-all()
  s = (f32[2], u32[], token[]) send(x, t), channel_id=1
  d = token[] send-done(s), channel_id=1
  r = (f32[2], u32[], token[]) recv(d), channel_id=2
  rd = (f32[2], token[]) recv-done(r), channel_id=2
  ROOT y = f32[2] get-tuple-element(rd), index=0
}"""
RECEIVER = """ENTRY receiver {
  t = token[] after-all()
  r = (f32[2], u32[], token[]) recv(t), channel_id=1
  rd = (f32[2], token[]) recv-done(r), channel_id=1
  x = f32[2] get-tuple-element(rd), index=0
  y = f32[2] add(x, x)
  t2 = token[] get-tuple-element(rd), index=1
  s = (f32[2], u32[], token[]) send(y, t2), channel_id=2
  d = token[] send-done(s), channel_id=2
  ROOT u = (f32[2], token[]) tuple(y, d)
}"""


@pytest.mark.parametrize("swap", [False, True])
def test_two_programs_exchange_messages(swap: bool) -> None:
    programs = [(parse(SENDER), [np.float32([1, 2])]), (parse(RECEIVER), [])]
    results = Interpreter().run_together(programs[::-1] if swap else programs)
    answer, (doubled, token) = results[::-1] if swap else results
    assert (answer.tolist(), doubled.tolist(), token) == ([2, 4], [2, 4], None)


def test_a_message_that_never_comes_is_a_deadlock() -> None:
    with pytest.raises(ExecutionError, match="process 0 waits for a message on channel 1"):
        evaluate(parse(RECEIVER))


def test_the_host_sends_and_receives_on_channels() -> None:
    interpreter = Interpreter()
    interpreter.channel(2).append(np.float32([5, 6]))
    assert interpreter.run(parse(SENDER), np.float32([1, 2])).tolist() == [5, 6]
    assert interpreter.channel(1).popleft().tolist() == [1, 2]


def all_reduce(attributes: str) -> str:
    return ADD + f"ENTRY e {{ x = f32[2] parameter(0) ROOT r = f32[2] all-reduce(x), to_apply=add{attributes} }}"


def values(count: int) -> list[list[np.ndarray]]:
    return [[np.float32([10**process, 0])] for process in range(count)]


GROUPS = [
    (4, 1, "", [1111] * 4),
    (4, 1, ", replica_groups={{0,2},{1,3}}", [101, 1010, 101, 1010]),
    (2, 2, "", [101, 1010, 101, 1010]),
    (2, 2, ", replica_groups={{0,1}}", [101, 1010, 101, 1010]),
    (2, 2, ", replica_groups={{0},{1}}, channel_id=1", [11, 11, 1100, 1100]),
    (2, 2, ", replica_groups={{0,3},{1,2}}, channel_id=1, use_global_device_ids=true", [1001, 110, 110, 1001]),
]


@pytest.mark.parametrize(("replicas", "partitions", "attributes", "expected"), GROUPS)
def test_all_reduce_within_groups(replicas: int, partitions: int, attributes: str, expected: list[int]) -> None:
    found = evaluate_parallel(parse(all_reduce(attributes)), values(replicas * partitions), replicas, partitions)
    assert [int(array[0]) for array in found] == expected


def test_variadic_all_reduce_in_two_parts_on_two_devices() -> None:
    module = parse(
        ADD
        + """ENTRY e {
      id = u32[] replica-id()
      x = f32[] convert(id)
      y = f32[2] parameter(0)
      s = (f32[], f32[2]) all-reduce-start(x, y), to_apply=add, replica_groups={}
      between = f32[2] negate(y)
      d = (f32[], f32[2]) all-reduce-done(s)
      ROOT t = tuple(d, between)
    }"""
    )
    (first, _), (second, negated) = evaluate_parallel(module, [[np.float32([1.0, 2.5])], [np.float32([3.0, 5.25])]], 2)
    assert (first[0], first[1].tolist(), second[1].tolist()) == (1, [4.0, 7.75], [4.0, 7.75])
    assert negated.tolist() == [-3.0, -5.25]


def test_collectives_in_loops_meet_in_turn() -> None:
    module = parse(
        ADD
        + """
    body { s = (s32[], f32[]) parameter(0)
      ROOT t = tuple(add(get-tuple-element(s), index=0, s32[] constant(1)), all-reduce(get-tuple-element(s), index=1), to_apply=add) }
    cond { s = (s32[], f32[]) parameter(0) ROOT c = compare(get-tuple-element(s), index=0, s32[] constant(5)), direction=LT }
    ENTRY e { x = f32[] parameter(0) w = while(tuple(s32[] constant(0), x)), condition=cond, body=body
      ROOT r = f32[] get-tuple-element(w), index=1 }"""
    )
    assert [float(v) for v in evaluate_parallel(module, [[1.0], [2.0]], 2)] == [48.0, 48.0]


def test_programs_of_their_own_do_not_meet() -> None:
    programs = [(parse(all_reduce("")), arguments) for arguments in values(2)]
    assert [int(array[0]) for array in Interpreter().run_together(programs)] == [1, 10]


def test_a_process_that_stays_away_is_named() -> None:
    module = parse(
        ADD
        + """
    meets { x = f32[] parameter(0) ROOT r = f32[] all-reduce(x), to_apply=add }
    stays { x = f32[] parameter(0) ROOT r = f32[] negate(x) }
    ENTRY e { p = pred[] parameter(0) x = f32[] constant(1)
      ROOT r = f32[] conditional(p, x, x), true_computation=meets, false_computation=stays }"""
    )
    with pytest.raises(ExecutionError, match=r"process 0 waits for processes \[1\]"):
        evaluate_parallel(module, [[True], [False]], 2)


def test_narrow_floats_are_reduced_over_processes_in_f32() -> None:
    text = all_reduce("").replace("f32", "bf16")
    arguments = [[np.asarray([256, 1], ml_dtypes.bfloat16)]] + [[np.asarray([1, 1], ml_dtypes.bfloat16)]] * 7
    found = evaluate_parallel(parse(text), arguments, 8)
    assert found[0].tolist() == [np.float32(ml_dtypes.bfloat16(263)), 8]


def test_partition_ids() -> None:
    module = parse("ENTRY e { r = u32[] replica-id() p = u32[] partition-id() ROOT t = (u32[], u32[]) tuple(r, p) }")
    assert [tuple(map(int, pair)) for pair in evaluate_parallel(module, [[]] * 4, 2, 2)] == [
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
    ]
    with pytest.raises(ArgumentError, match="need 4 lists"):
        evaluate_parallel(module, [[]], 2, 2)


CUSTOM = """ENTRY e { x = f32[2] constant({1,2}) y = f32[2,3] constant({{10,20,30},{40,50,60}})
  ROOT r = f32[3,3] custom-call(x, y), custom_call_target="myfunc" }"""


def test_custom_calls_run_python_and_name_what_fails() -> None:
    def myfunc(x, y):
        out = np.zeros((3, 3), np.float32)
        out[0, 0] = x[1] + y[1][0]
        return out

    assert evaluate(parse(CUSTOM), custom_calls={"myfunc": myfunc})[0, 0] == 42
    with pytest.raises(ExecutionError, match="no target 'myfunc'; did you mean 'my_func'"):
        evaluate(parse(CUSTOM), custom_calls={"my_func": myfunc})
    with pytest.raises(ExecutionError, match="'myfunc' failed: ZeroDivisionError"):
        evaluate(parse(CUSTOM), custom_calls={"myfunc": lambda x, y: 1 // 0})
    with pytest.raises(ExecutionError, match="expected a value of shape"):
        evaluate(parse(CUSTOM), custom_calls={"myfunc": lambda x, y: x})


ARGUMENTS = [
    ([], "takes 2 arguments"),
    ([np.zeros(3, np.float32), 1], r"argument 0 \(x\) must be f32\[2\]"),
    ([np.zeros(2, np.float64), 1], "float64"),
    ([np.zeros(2, np.float32), np.float32(1)], "must be s32"),
    ([np.zeros(2, np.float32), 2**40], "no s32"),
    ([(1, 2), "x"], "must be"),
]


@pytest.mark.parametrize(("arguments", "message"), ARGUMENTS)
def test_wrong_arguments(arguments: list, message: str) -> None:
    module = parse("ENTRY e { x = f32[2] parameter(0) n = s32[] parameter(1) ROOT t = tuple(x, n) }")
    with pytest.raises(XlaError, match=message):
        evaluate(module, *arguments)
    big_endian = np.array([1, 2], ">f4")[::1]
    assert evaluate(module, big_endian, 3)[0].tolist() == [1, 2]


def mapped(step: str, also: str = "") -> xlapy.HloModule:
    """A region that is no element-wise operation, applied to 64 elements: it calls `inner`, which takes this step."""
    return parse(f"""{also}
    inner {{ a = f32[] parameter(0)  low = f32[] constant(0)  high = f32[] constant(1)  {step} }}
    region {{ a = f32[] parameter(0)  ROOT c = f32[] call(a), to_apply=inner }}
    ENTRY e {{ x = f32[64] parameter(0)  ROOT m = f32[64] map(x), dimensions={{0}}, to_apply=region }}""")


def test_a_function_of_scalars_is_evaluated_once_for_the_same_ones() -> None:
    module = mapped("ROOT n = f32[] negate(a)")
    different = np.arange(64, dtype=np.float32)
    for x in (different, np.full(64, np.float32(2)), different % 2 * np.float32(-0.0)):
        np.testing.assert_array_equal(evaluate(module, x).view(np.int32), (-x).view(np.int32))
    few, many = (lines_run(lambda x=x: evaluate(module, x)) for x in (different % 2, different))
    assert 2 * few < many


@pytest.mark.parametrize(
    "also",
    [
        "",
        "draw { a = f32[] parameter(0)  low = f32[] constant(0)  high = f32[] constant(1) ROOT r = f32[] rng(low, high), distribution=rng_uniform }",
    ],
)
def test_what_draws_is_evaluated_each_time(also: str) -> None:
    """Itself, or in what an operation of it calls."""
    deep = "b = f32[1] broadcast(a), dimensions={}  m = f32[1] map(b), dimensions={0}, to_apply=draw  ROOT r = f32[] reshape(m)"
    module = mapped(deep if also else "ROOT r = f32[] rng(low, high), distribution=rng_uniform", also)
    assert len(set(evaluate(module, np.zeros(64, np.float32)).tolist())) > 60


def test_what_the_user_does_is_done_each_time() -> None:
    seen = []

    def target(a: np.ndarray) -> np.ndarray:
        seen.append(a)
        return a

    module = mapped('ROOT r = f32[] custom-call(a), custom_call_target="f"')
    evaluate(module, np.zeros(64, np.float32), custom_calls={"f": target})
    assert len(seen) == 64
