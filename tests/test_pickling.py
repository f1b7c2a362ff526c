"""Programs and what they are made of, copied and pickled: to other processes, into caches of users, by deepcopy."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xlapy
from tests.support.values import assert_same
from xlapy import ops, stablehlo
from xlapy.hlo.ops import OPS

X = np.arange(4, dtype=np.float32)
STABLEHLO = """func.func @main(%a: tensor<4xf32> {mhlo.sharding = "{replicated}"}) -> tensor<4xf32> {
  %r = stablehlo.abs %a : tensor<4xf32> loc("here"("file.py":3:4))
  return %r : tensor<4xf32>
}"""


def recorded(length: int = 3) -> xlapy.XlaComputation:
    b = xlapy.XlaBuilder("chain")
    value = ops.Parameter(b, 0, xlapy.Shape.array(np.float32, (4,)))
    for _ in range(length):
        value = -value * 3
    return b.build(value)


def through_pickle(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


COPIES: list[Callable[[Any], Any]] = [through_pickle, copy.copy, copy.deepcopy]
every_copy = pytest.mark.parametrize("copied", COPIES, ids=lambda function: function.__name__)
every_deep_copy = pytest.mark.parametrize("copied", [through_pickle, copy.deepcopy], ids=lambda copied: copied.__name__)


@every_copy
def test_executables(copied: Callable[[Any], Any]) -> None:
    options = xlapy.CompileOptions(num_threads=1)
    run = xlapy.compile(recorded(), options)
    again = copied(run)
    assert again.options == options
    assert_same(again(X), run(X))
    assert again.hlo_text() == run.hlo_text()


@every_copy
def test_executables_of_open_sizes(copied: Callable[[Any], Any]) -> None:
    run = xlapy.compile(
        "func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> {\n"
        "%r = stablehlo.negate %a : tensor<?xf32> return %r : tensor<?xf32> }"
    )
    assert_same(copied(run)(X), -X)


@every_copy
def test_modules(copied: Callable[[Any], Any]) -> None:
    for module in (stablehlo.parse(STABLEHLO), recorded().module):
        again = copied(module)
        assert again is not module and again.entry is not module.entry
        assert again.to_text(long=True) == module.to_text(long=True)
        assert stablehlo.to_text(again) == stablehlo.to_text(module)


@every_copy
@pytest.mark.parametrize(
    ("body", "effect", "pure"),
    [
        ("r = f32[] negate(x)", False, True),
        ('r = f32[] custom-call(x), custom_call_target="f"', False, False),
        ('r = f32[] custom-call(x), custom_call_target="f", custom_call_has_side_effect=true', True, False),
    ],
)
def test_what_is_known_of_what_is_called(copied: Callable[[Any], Any], body: str, effect: bool, pure: bool) -> None:
    module = copied(
        xlapy.load(f"""HloModule m
          f {{ x = f32[] parameter(0)  ROOT {body} }}
          g {{ x = f32[] parameter(0)  ROOT c = f32[] call(x), to_apply=f }}
          ENTRY e {{ x = f32[] parameter(0)  ROOT c = f32[] call(x), to_apply=g }}""")
    )
    assert module.entry.root.has_effect == effect
    assert module.entry.root.is_pure == pure
    inner = module.entry.root.called[0].root.called[0]
    inner.set_root(inner.add("sine", [inner.parameters[0]]))
    inner.remove([instruction for instruction in inner if instruction.name == "r"])
    assert module.entry.root.is_pure and not module.entry.root.has_effect


@every_copy
def test_long_chains(copied: Callable[[Any], Any]) -> None:
    """Longer than what Python's recursion would follow."""
    computation = recorded(length=sys.getrecursionlimit())
    assert copied(computation).module.to_text() == computation.module.to_text()


@every_copy
def test_what_is_being_recorded(copied: Callable[[Any], Any]) -> None:
    b = xlapy.XlaBuilder("open")
    x = copied(ops.Parameter(b, 0, xlapy.Shape.array(np.float32, (4,))))
    assert_same(xlapy.compile(x.builder.build(x + 1))(X), X + 1)
    assert x.instruction.spec is OPS["parameter"]


@every_deep_copy
def test_a_builder_of_many_instructions(copied: Callable[[Any], Any]) -> None:
    """Its graph is deeper than what Python's recursion would follow; it goes on as the original would."""
    b = xlapy.XlaBuilder("long")
    x = ops.Parameter(b, 0, xlapy.Shape.array(np.float32, (4,)))
    state = x
    for _ in range(sys.getrecursionlimit()):
        state = state + 1.0
    ops.Outfeed(state)
    again = copied(state)
    assert again.builder is not b and again.builder.get_shape(again) == state.shape
    pairs = [(op.builder, ops.Outfeed(op + x)) for op, x in ((state, 1.0), (again, 1.0))]
    texts = [builder.build(root).module.to_text() for builder, root in pairs]
    assert texts[0] == texts[1]


@every_deep_copy
def test_a_builder_with_computations_and_effects(copied: Callable[[Any], Any]) -> None:
    b = xlapy.XlaBuilder("effects")
    x = ops.Parameter(b, 0, xlapy.Shape.array(np.float32, (4,)))
    y = ops.While(lambda s: s.reduce(0.0, ops.Add, [0]) < 9, lambda s: s + 1.0, x)
    ops.Outfeed(y)
    b.setup_alias((), 0)
    again = copied(b)
    for builder in (b, again):
        ops.Outfeed(ops.Infeed(builder, xlapy.Shape.array(np.float32)))
    root = y.instruction.name
    found = next(i for i in again._computation if i.name == root)
    assert list(found.users) and all(user.parent is again._computation for user in found.users)
    texts = [
        builder.build(xlapy.XlaOp(builder, i)).module.to_text() for builder, i in ((b, y.instruction), (again, found))
    ]
    assert texts[0] == texts[1] and "control-predecessors" in texts[0]


def test_another_process_runs_it(tmp_path: Path) -> None:
    kept = tmp_path / "run.pickle"
    kept.write_bytes(pickle.dumps(xlapy.compile(recorded())))
    script = f"import pickle, numpy; print(pickle.load(open({str(kept)!r}, 'rb'))(numpy.ones(4, numpy.float32)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[-27.", "-27.", "-27.", "-27.]"]
