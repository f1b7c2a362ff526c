"""The verifier: each promise broken once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import xlapy
from xlapy.hlo.evaluate import Interpreter
from xlapy.hlo.graph import BufferDonor, Computation, HloModule, InputOutputAlias
from xlapy.hlo.ops import OPS
from xlapy.hlo.shape import Layout, Shape
from xlapy.hlo.text import parse
from xlapy.hlo.verifier import verify
from xlapy.support.errors import InternalError, ShapeError, XlaError

F32 = Shape.array("float32", (2,))

TEXT = """HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ENTRY e {
  x = f32[2] parameter(0)
  y = f32[2] parameter(1)
  n = f32[2] negate(x), metadata={op_name="f" source_file="model.py" source_line=7}
  ar = f32[2] all-reduce-start(n), to_apply=add
  done = f32[2] all-reduce-done(ar)
  ROOT r = f32[2] add(done, y)
}"""


def fresh() -> tuple[HloModule, dict]:
    module = parse(TEXT)
    return module, {instruction.name: instruction for instruction in module.entry}


def test_a_good_module_passes() -> None:
    verify(fresh()[0])
    verify(fresh()[0], after="some pass")


def _wrong_shape(module: HloModule, at: dict) -> None:
    at["n"].shape = Shape.array("float32", (3,))


def _wrong_layout(module: HloModule, at: dict) -> None:
    at["n"].shape = Shape(at["n"].shape.element_type, (2,), (), Layout((1,)))


def _missing_attribute(module: HloModule, at: dict) -> None:
    at["ar"].attributes = {}


def _missing_user(module: HloModule, at: dict) -> None:
    del at["x"].users[at["n"]]


def _false_user(module: HloModule, at: dict) -> None:
    at["x"].users[at["r"]] = None


def _foreign_operand(module: HloModule, at: dict) -> None:
    del at["y"].users[at["r"]]
    at["r"].operands = (at["done"], fresh()[1]["y"])


def _foreign_root(module: HloModule, at: dict) -> None:
    module.entry.set_root(fresh()[1]["r"])


def _cycle(module: HloModule, at: dict) -> None:
    module.entry.set_operands(at["n"], [at["r"]])


def _control_cycle(module: HloModule, at: dict) -> None:
    module.entry.add_control_edge(at["r"], at["n"])


def _foreign_predecessor(module: HloModule, at: dict) -> None:
    at["r"].control_predecessors = (fresh()[1]["x"],)


def _renumbered_parameter(module: HloModule, at: dict) -> None:
    at["y"].attributes = {"number": 5}


def _lost_parameter(module: HloModule, at: dict) -> None:
    module.entry.parameters.pop()


def _same_name(module: HloModule, at: dict) -> None:
    at["n"].name = "x"


def _done_without_start(module: HloModule, at: dict) -> None:
    module.entry.set_operands(at["done"], [at["n"]])
    module.entry.remove([at["ar"]])


def _start_used_twice(module: HloModule, at: dict) -> None:
    module.entry.set_operands(at["r"], [at["done"], at["ar"]])


def _recursive_call(module: HloModule, at: dict) -> None:
    at["ar"].called = (module.entry,)


def _wrong_alias(module: HloModule, at: dict) -> None:
    module.config.aliases = (InputOutputAlias((0,), 0, ()),)


def _two_aliases(module: HloModule, at: dict) -> None:
    module.config.aliases = (InputOutputAlias((), 0, ()), InputOutputAlias((), 1, ()))


def _wrong_donor(module: HloModule, at: dict) -> None:
    module.config.donors = (BufferDonor(7),)


def _wrong_entry_layout(module: HloModule, at: dict) -> None:
    module.config.entry_layout = fresh()[0].computations()[0].signature


def _no_processes(module: HloModule, at: dict) -> None:
    module.config.num_replicas = 0


FAULTS = [
    (_wrong_shape, "is stated, but the result is"),
    (_wrong_layout, "not a permutation"),
    (_missing_attribute, "attributes are not those of all-reduce-start"),
    (_missing_user, "does not know it as a user"),
    (_false_user, "does not use it"),
    (_foreign_operand, "operand y is not in e"),
    (_foreign_root, "the root of e"),
    (_cycle, "depends on itself"),
    (_control_cycle, "depends on itself"),
    (_foreign_predecessor, "control predecessor x"),
    (_renumbered_parameter, "parameter number 5"),
    (_lost_parameter, "parameters of e"),
    (_same_name, "are named x"),
    (_done_without_start, "is not all-reduce-start"),
    (_start_used_twice, "its only user must be one all-reduce-done"),
    (_recursive_call, "calls itself"),
    (_wrong_alias, "does not connect"),
    (_two_aliases, "is in two aliases"),
    (_wrong_donor, "is not in a parameter"),
    (_wrong_entry_layout, "but the entry has the type"),
    (_no_processes, "are no processes"),
]


@pytest.mark.parametrize(("damage", "message"), FAULTS, ids=[damage.__name__ for damage, _ in FAULTS])
def test_every_broken_promise_is_found(damage: Callable[[HloModule, dict], None], message: str) -> None:
    module, at = fresh()
    damage(module, at)
    with pytest.raises(XlaError, match=message) as caught:
        verify(module)
    assert not isinstance(caught.value, InternalError)
    with pytest.raises(InternalError, match=message):
        verify(module, after="the pass")


def test_a_fault_of_the_user_names_instruction_and_line() -> None:
    module, at = fresh()
    _wrong_shape(module, at)
    with pytest.raises(ShapeError) as caught:
        verify(module)
    assert str(caught.value) == (
        "negate(f32[2]): f32[3] is stated, but the result is f32[2]  [negate.result-shape]\n  n in e, from model.py:7"
    )


def test_a_fault_of_a_pass_shows_the_surroundings() -> None:
    module, at = fresh()
    _wrong_shape(module, at)
    with pytest.raises(InternalError) as caught:
        verify(module, after="dce")
    text = str(caught.value)
    assert "after dce: f32[3] is stated" in text
    assert " -> n = f32[3] negate(x)" in text
    assert "x = f32[2] parameter(0)" in text
    assert "ar = f32[2] all-reduce-start(n)" in text


def test_a_computation_without_root() -> None:
    with pytest.raises(XlaError, match="has no root"):
        verify(HloModule("m", Computation("empty")))


def test_a_broken_rule_keeps_its_label() -> None:
    computation = Computation("e")
    x = computation.add("parameter", shape=F32, number=0)
    computation.set_root(computation.add_unchecked(OPS["transpose"], F32, [x], {"permutation": (1,)}))
    with pytest.raises(ShapeError, match=r"transpose.permutation"):
        verify(HloModule("m", computation))


ENDS = {
    "recv-done": """ENTRY e { p = (f32[4], u32[], token[]) parameter(0)
      ROOT r = (f32[4], token[]) recv-done(p), channel_id=1 }""",
    "send-done": "ENTRY e { p = (f32[4], u32[], token[]) parameter(0)  ROOT r = token[] send-done(p), channel_id=1 }",
    "async-done": "ENTRY e { p = ((f32[4]), f32[4], u32[]) parameter(0)  ROOT r = f32[4] async-done(p) }",
    "all-reduce-done": "ENTRY e { p = f32[4] parameter(0)  ROOT r = f32[4] all-reduce-done(p) }",
}


@pytest.mark.parametrize("text", ENDS.values(), ids=ENDS)
def test_what_ends_without_a_beginning_is_refused(text: str) -> None:
    """By the compiler and the evaluator; it was a KeyError in one and an AttributeError in the other."""
    module = parse(text)
    (shape,) = module.signature.parameters
    with pytest.raises(XlaError, match=r"its operand p is not (send|recv|async-start|all-reduce-start)"):
        xlapy.compile(module)
    with pytest.raises(XlaError, match="its operand p is not"):
        Interpreter().run(module, shape)


def test_what_begins_may_go_through_tuples() -> None:
    text = """ENTRY e { p = f32[4] parameter(0)  t = token[] after-all()
      s = (f32[4], u32[], token[]) send(p, t), channel_id=1
      both = (f32[4], (f32[4], u32[], token[])) tuple(p, s)
      again = (f32[4], u32[], token[]) get-tuple-element(both), index=1
      ROOT d = token[] send-done(again), channel_id=1 }"""
    verify(parse(text))
