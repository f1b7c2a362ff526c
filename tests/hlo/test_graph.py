"""The graph: what changes when instructions are replaced, removed and copied."""

import pickle

from xlapy.hlo import element_types as et
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.shape import Shape
from xlapy.hlo.text import parse
from xlapy.passes.base import pinned, supplant

PROGRAM = """
ENTRY e {
  x = f32[4] parameter(0)
  a = f32[4] negate(x)
  b = f32[4] abs(x)
  c = f32[4] sine(x), control-predecessors={a, b}
  s = f32[4] add(a, a)
  ROOT t = (f32[4], f32[4], f32[4], f32[4]) tuple(a, s, c, b)
}
"""


def program() -> tuple[Computation, dict[str, Instruction]]:
    entry = parse(PROGRAM).entry
    return entry, {instruction.name: instruction for instruction in entry}


def test_replacing_an_operand_leaves_the_others() -> None:
    entry, at = program()
    entry.replace_operand(at["s"], at["a"], at["b"])
    assert at["s"].operands == (at["b"], at["b"])
    assert at["s"] in at["b"].users
    assert [*at["a"].users] == [at["t"]]


def test_control_edges_lead_to_what_replaces_their_ends() -> None:
    entry, at = program()
    entry.replace(at["a"], at["b"])
    assert at["c"].control_predecessors == (at["b"],)
    assert not at["a"].users


def test_control_edges_of_what_is_removed_are_gone() -> None:
    entry, at = program()
    assert pinned(entry) == {at["a"], at["b"], at["c"]}
    entry.replace(at["c"], at["x"])
    entry.remove([at["c"]])
    assert not entry.held
    assert not pinned(entry)


def test_control_edges_to_what_is_removed_are_gone() -> None:
    entry, at = program()
    for old in ("a", "b"):
        for user in tuple(at[old].users):
            entry.replace_operand(user, at[old], at["x"])
    entry.remove([at["a"], at["b"]])
    assert at["c"].control_predecessors == ()
    assert not entry.held


def test_a_clone_has_the_control_edges() -> None:
    entry, _ = program()
    clone = entry.clone()
    (held,) = clone.held
    assert [predecessor.name for predecessor in held.control_predecessors] == ["a", "b"]
    assert all(instruction.parent is clone for instruction in pinned(clone))


def test_instructions_are_supplanted_with_their_control_edges() -> None:
    entry, at = program()
    assert supplant(entry, {at["a"]: at["x"], at["s"]: at["b"]})
    assert at["t"].operands == (at["x"], at["b"], at["c"], at["b"])
    assert at["c"].control_predecessors == (at["x"], at["b"])
    assert at["a"] not in entry
    assert at["s"] not in entry


CALLS = """
plus {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
times {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] multiply(a, b)
}
ENTRY e {
  x = f32[4,4] parameter(0)
  zero = f32[] constant(0)
  unused = f32[4] reduce(x, zero), dimensions={1}, to_apply=times
  y = f32[4] reduce(x, zero), dimensions={1}, to_apply=plus
  z = f32[4] reduce(x, zero), dimensions={0}, to_apply=times
  ROOT t = f32[4] add(y, z)
}
"""


def test_a_computation_knows_who_calls() -> None:
    module = parse(CALLS)
    entry = module.entry
    at = {instruction.name: instruction for instruction in entry}
    plus, times = at["y"].called[0], at["z"].called[0]
    assert [*entry.calling] == [at["unused"], at["y"], at["z"]]
    assert [*entry.called_computations()] == [times, plus]
    assert not [*plus.calling]
    entry.remove([at["unused"]])
    assert [*entry.called_computations()] == [plus, times]
    entry.set_called(at["z"], [plus])
    assert [*entry.calling] == [at["y"], at["z"]]
    assert [*entry.called_computations()] == [plus]
    assert module.computations() == [plus, entry]


def test_copies_know_who_calls() -> None:
    module = parse(CALLS)
    for copy in (module.clone(), pickle.loads(pickle.dumps(module))):
        assert [instruction.name for instruction in copy.entry.calling] == ["unused", "y", "z"]
        assert len(copy.computations()) == 3
        assert not {*copy.computations()} & {*module.computations()}
    assert [*module.entry.clone().called_computations()] == [*module.entry.called_computations()]


def test_a_module_knows_what_it_reaches_after_every_change() -> None:
    module = parse(CALLS)
    entry = module.entry
    at = {instruction.name: instruction for instruction in entry}
    plus, times = at["y"].called[0], at["z"].called[0]
    assert module.computations() == module.computations() == [times, plus, entry]
    other = plus.clone("other")
    entry.set_called(at["y"], [other])
    assert module.computations() == [times, other, entry]
    entry.add("reduce", at["y"].operands, called=[plus], dimensions=(1,))
    assert module.computations() == [times, other, plus, entry]
    copy = pickle.loads(pickle.dumps(module))
    assert [each.name for each in copy.computations()] == [each.name for each in module.computations()]
    entry.remove([at["unused"]])
    assert module.computations() == [other, times, plus, entry]
    module.entry = plus
    assert module.computations() == [plus]


def test_reprs_count_as_people_do() -> None:
    one = parse("HloModule m  ENTRY e { ROOT x = f32[4] parameter(0) }")
    assert repr(one) == "<HloModule m (f32[4]) -> f32[4], 1 instruction>"
    assert repr(one.entry) == "<Computation e (f32[4]) -> f32[4], 1 instruction>"
    assert repr(program()[0]).endswith(", 6 instructions>")


def test_what_is_remembered_of_a_computation_is_found_again_when_that_changes() -> None:
    computation = Computation("c")
    x = computation.add("parameter", shape=Shape.array(et.F32, (4,)), number=0)
    computation.set_root(computation.add("negate", [x]))
    asked = []

    def opcodes() -> list[str]:
        asked.append(None)
        return [instruction.opcode for instruction in computation]

    assert computation.remembered("opcodes", opcodes) is computation.remembered("opcodes", opcodes)
    assert len(asked) == 1
    computation.add("exponential", [computation.root])
    computation.post_order()
    assert computation.remembered("opcodes", opcodes) == ["parameter", "negate", "exponential"]
    computation.set_shape(x, x.shape)
    computation.set_root(x)
    computation.remembered("opcodes", opcodes)
    assert len(asked) == 3


def test_a_shape_is_proven_until_something_changes_that_it_follows_from() -> None:
    computation = Computation("c")
    x, y = (computation.add("parameter", shape=Shape.array(et.F32, (4,)), number=number) for number in range(2))
    made = [computation.add("add", [x, y]) for _ in range(3)]
    unchecked = computation.add_unchecked(made[0].spec, made[0].shape, [x, y], {})
    assert all(instruction.is_proven for instruction in (x, y, *made)) and not unchecked.is_proven
    wide = computation.add("parameter", shape=Shape.array(et.F32, (8,)), number=2)
    computation.set_operands(made[0], [x, wide])
    computation.set_shape(made[1], wide.shape)
    assert [instruction.is_proven for instruction in made] == [False, False, True]
    computation.set_shape(y, wide.shape)
    assert not made[2].is_proven


def test_what_changes_is_noted() -> None:
    """With everything whose operands, attributes, users or place as the root are other ones."""
    entry, at = program()

    def changed(begin: int) -> set[str]:
        assert entry.clock > begin
        return {instruction.name for instruction in entry if instruction.changed_at > begin}

    begin = entry.clock
    entry.replace_operand(at["s"], at["a"], at["b"])
    assert changed(begin) == {"s", "a", "b"}
    begin = entry.clock
    entry.set_operands(at["s"], [at["b"], at["x"]])
    assert changed(begin) == {"s", "b", "x"}
    begin = entry.clock
    at["new"] = entry.add("negate", [at["s"]], name="new")
    assert changed(begin) == {"new", "s"}
    begin = entry.clock
    entry.set_root(at["new"])
    assert changed(begin) == {"t", "new"}
    begin = entry.clock
    entry.remove([at["t"]])
    assert changed(begin) == {"a", "s", "c", "b"}
    begin = entry.clock
    entry.add_control_edge(at["a"], at["new"])
    assert changed(begin) == {"a", "new"}
    begin = entry.clock
    entry.set_attributes(at["c"], **at["c"].attributes)
    assert changed(begin) == {"c"}
    begin = entry.clock
    entry.set_shape(at["b"], at["b"].shape)
    assert changed(begin) == {"b"}
    assert changed(-1) == {instruction.name for instruction in entry}
