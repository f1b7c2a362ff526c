"""What a module is but for names: a value that changes exactly when the canonical text does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.hlo.text.samples import EVERYTHING
from xlapy.hlo.attributes import ComparisonDirection, OpMetadata
from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.shape import Layout
from xlapy.hlo.structure import structure
from xlapy.hlo.text import canonical_text, complete_text, parse

PROGRAM = """
fold { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
other { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] multiply(a, b) }

ENTRY main {
  p = f32[2,3] parameter(0)
  q = f32[2,3] parameter(1)
  zero = f32[] constant(0)
  less = pred[2,3] compare(p, q), direction=LT
  chosen = f32[2,3] select(less, p, q)
  sums = f32[2] reduce(chosen, zero), dimensions={1}, to_apply=fold
  products = f32[2] reduce(chosen, zero), dimensions={1}, to_apply=other
  ROOT r = (f32[2], f32[2]) tuple(sums, products)
}
"""


def named(module: HloModule, name: str) -> Instruction:
    return next(instruction for instruction in module.entry if instruction.name == name)


def rename(module: HloModule) -> None:
    named(module, "chosen").name = "taken"
    module.entry.name, module.name = "program", "example"


def note_where_it_stood(module: HloModule) -> None:
    named(module, "chosen").metadata = OpMetadata(op_name="where")


def replace_by_an_equal_one(module: HloModule) -> None:
    zero = named(module, "zero")
    module.entry.set_attributes(zero, literal=Literal(np.float32(0)))


UNSEEN: list[Callable[[HloModule], None]] = [rename, note_where_it_stood, replace_by_an_equal_one]


def change_an_attribute(module: HloModule) -> None:
    module.entry.set_attributes(named(module, "less"), direction=ComparisonDirection.GT)


def change_an_attribute_where_it_lies(module: HloModule) -> None:
    named(module, "less").attributes["direction"] = ComparisonDirection.GT


def change_the_sign_of_zero(module: HloModule) -> None:
    module.entry.set_attributes(named(module, "zero"), literal=Literal(np.float32(-0.0)))


def exchange_operands(module: HloModule) -> None:
    module.entry.set_operands(named(module, "less"), named(module, "less").operands[::-1])


def call_another(module: HloModule) -> None:
    module.entry.set_called(named(module, "sums"), named(module, "products").called)


def change_what_is_called(module: HloModule) -> None:
    fold = named(module, "sums").called[0]
    fold.set_operands(fold.root, [fold.parameters[0]] * 2)


def change_the_root(module: HloModule) -> None:
    module.entry.set_root(named(module, "sums"))


def change_a_layout(module: HloModule) -> None:
    chosen = named(module, "chosen")
    module.entry.set_shape(chosen, chosen.shape.with_layout(Layout((0, 1))))


def add_an_edge(module: HloModule) -> None:
    module.entry.add_control_edge(named(module, "sums"), named(module, "products"))


def add_an_instruction(module: HloModule) -> None:
    module.entry.add("negate", [named(module, "p")])


def note_a_sharding(module: HloModule) -> None:
    named(module, "chosen").extra["sharding"] = "{replicated}"


def schedule(module: HloModule) -> None:
    module.config.is_scheduled = True


def note_what_text_carries(module: HloModule) -> None:
    module.config.extra["frontend_attributes"] = '{a="b"}'


SEEN: list[Callable[[HloModule], None]] = [
    change_an_attribute,
    change_an_attribute_where_it_lies,
    change_the_sign_of_zero,
    exchange_operands,
    call_another,
    change_what_is_called,
    change_the_root,
    change_a_layout,
    add_an_edge,
    add_an_instruction,
    note_a_sharding,
    schedule,
    note_what_text_carries,
]


@pytest.mark.parametrize("change", [*UNSEEN, *SEEN], ids=lambda change: change.__name__)
def test_it_changes_exactly_when_the_canonical_text_does(change: Callable[[HloModule], None]) -> None:
    module = parse(PROGRAM)
    before, text = structure(module), canonical_text(module)
    change(module)
    assert (structure(module) != before) is (canonical_text(module) != text) is (change in SEEN)


@pytest.mark.parametrize("change", [*UNSEEN, *SEEN], ids=lambda change: change.__name__)
def test_the_complete_text_changes_with_names_and_metadata_too(change: Callable[[HloModule], None]) -> None:
    module = parse(PROGRAM)
    text = complete_text(module)
    change(module)
    assert (complete_text(module) != text) is (change is not replace_by_an_equal_one)


@pytest.mark.parametrize("size", [2, 9, 1000])
@pytest.mark.parametrize("values", [(1.0, 2.0), (0.0, -0.0)])
def test_the_complete_text_knows_every_element(size: int, values: tuple[float, float]) -> None:
    texts = set()
    for value in values:
        array = np.zeros(size, np.float32)
        array[-1] = value
        computation = Computation("main")
        computation.set_root(computation.add("constant", literal=Literal(array)))
        texts.add(complete_text(HloModule("m", computation)))
    assert len(texts) == 2


@pytest.mark.parametrize("text", [PROGRAM, EVERYTHING], ids=["program", "everything"])
def test_copies_and_what_is_read_twice_are_equal(text: str) -> None:
    module = parse(text)
    assert structure(module) == structure(module.clone()) == structure(parse(text))
