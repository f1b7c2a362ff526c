"""The rewrite engine: what it accepts from laws, and what it refuses."""

from itertools import pairwise

import pytest

import xlapy.passes.algebra  # noqa: F401 (fills the book of laws)
from xlapy.hlo.graph import Instruction
from xlapy.hlo.patterns import P, leaves_of, match, number_of, variables
from xlapy.hlo.text import parse
from xlapy.passes import new
from xlapy.passes.new import Value
from xlapy.passes.rewrite import LAWS, STEPS_BACK, AlgebraicSimplification, LawBook
from xlapy.support.errors import ArgumentError, InternalError

x, y, z, c, p, xs = variables("x y z c p xs")

PROGRAM = """
ENTRY main {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  two = f32[] constant(2)
  b = f32[4] broadcast(two), dimensions={}
  s = f32[4] add(x, y)
  ROOT m = f32[4] multiply(b, s)
}
"""


def root_of(text: str) -> Instruction:
    return parse(text).entry.root


def test_commutative_ops_match_in_both_orders() -> None:
    root = root_of(PROGRAM)
    found = match(P.multiply(P.add(x, y), P.number(c)), root)
    assert found is not None
    assert found["c"] == 2
    assert found["x"].name == "x"


def test_what_comes_later_decides_between_orders() -> None:
    text = "ENTRY e {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n s = f32[] add(a, b)\n ROOT d = %s\n}"
    for last, other in ("ab", "ba"):
        found = match(P.subtract(P.add(x, y), y), root_of(text % f"f32[] subtract(s, {last})"))
        assert found is not None
        assert (found["x"].name, found["y"].name) == (other, last)
    assert match(P.subtract(P.add(x, y), y), root_of(text % "f32[] subtract(s, s)")) is None
    found = match(P.multiply(P.add(x, y), P.add(y, x)), root_of(text % "f32[] multiply(s, s)"))
    assert found is not None
    assert (found["x"].name, found["y"].name) == ("a", "b")


def test_a_variable_used_twice_is_one_instruction() -> None:
    root = root_of("ENTRY e {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = f32[] subtract(x, y)\n}")
    assert match(P.subtract(x, x), root) is None
    assert match(P.subtract(x, y), root) is not None


def test_attributes_are_compared_and_bound() -> None:
    root = root_of("ENTRY e {\n x = f32[2,3] parameter(0)\n ROOT t = f32[3,2] transpose(x), dimensions={1,0}\n}")
    assert match(P.transpose(x, permutation=(0, 1)), root) is None
    found = match(P.transpose(x, permutation=p), root)
    assert found is not None
    assert found["p"] == (1, 0)


def test_all_operands_of_a_variadic_op() -> None:
    root = root_of("ENTRY e {\n x = f32[2] parameter(0)\n ROOT t = f32[6] concatenate(x, x, x), dimensions={0}\n}")
    found = match(P.concatenate(x, xs.rest), root)
    assert found is not None
    assert len(found["xs"]) == 2
    found = match(P.concatenate(x, x, x, xs.rest), root)
    assert found is not None
    assert found["xs"] == ()
    for wrong in (P.concatenate(x), P.concatenate(x, x), P.concatenate(x, x, x, x), P.concatenate(x, y, z, c, xs.rest)):
        assert match(wrong, root) is None


def test_patterns_of_variables_alone_find_the_same_by_themselves() -> None:
    text = "ENTRY e {\n x = f32[2] parameter(0)\n y = f32[2] parameter(1)\n s = f32[2] add(y, x)\n ROOT r = %s\n}"
    root = root_of(text % "f32[4] concatenate(s, s), dimensions={0}")
    flat = (P.concatenate(), P.concatenate(dimension=c), P.concatenate(x, y, dimension=c), P.concatenate(x))
    for pattern, at in (*((pattern, root) for pattern in flat), (P.add(x, y), root.operands[0])):
        leaves = leaves_of(pattern)
        assert leaves is not None
        assert leaves.match(at) == match(pattern, at)
    others = (P.add(x, x), P.add(x, P.number(c)), P.concatenate(xs.rest), P.concatenate(x, y, dimension=0))
    assert all(leaves_of(pattern) is None for pattern in (*others, P.only(P.add(x, y))))


def test_unknown_ops_and_attributes_are_errors() -> None:
    with pytest.raises(AttributeError, match="no op"):
        P.tranpose(x)
    with pytest.raises(AttributeError, match="no attribute"):
        P.transpose(x, dims=p)
    with pytest.raises(AttributeError, match="no op"):
        new.tranpose(x)


def test_signs_of_zero_are_told_apart() -> None:
    zero = root_of("ENTRY e {\n ROOT z = f32[] constant(-0)\n}")
    assert match(P.number(0), zero) is None
    assert match(P.number(-0.0), zero) is not None
    assert number_of(zero) == 0


ASKED = {"0": 0, "-0": -0.0, "1": 1, "-1": -1, "0.5": 0.5}


@pytest.mark.parametrize(("number", "likely"), [*((number, number) for number in ASKED), ("7", "0.5")])
def test_laws_that_ask_for_a_number_are_tried_for_that_one(number: str, likely: str) -> None:
    """All that are not usual may be any of these, and complex ones any at all."""
    book = LawBook()
    for name, asked in ASKED.items():

        def rewrite(x: Instruction) -> Value:
            """x * number -> x"""
            return x

        rewrite.__name__ = name
        book.law(P.multiply(x, P.number(asked)))(rewrite)

    @book.law(P.multiply(x, P.number(c)))
    def any_number(x: Instruction, c: float) -> None:
        """x * number -> what it is"""

    @book.law(P.multiply(x, y))
    def anything(x: Instruction, y: Instruction) -> None:
        """x * y -> nothing"""

    def tried(program: str) -> list[str]:
        return [law.name for law in book.candidates(root_of(program))]

    assert tried(PROGRAM.replace("constant(2)", f"constant({number})")) == [likely, "any-number", "anything"]
    assert tried(PROGRAM.replace("constant(2)", "parameter(2)")) == ["anything"]
    assert tried(PROGRAM.replace("f32", "c64").replace("constant(2)", "constant((1,0))"))[: len(ASKED)] == [*ASKED]


def test_laws_that_undo_each_other_are_named() -> None:
    book = LawBook()

    @book.law(P.add(x, y))
    def swap_operands(x: Instruction, y: Instruction) -> Value:
        """x + y -> y + x"""
        return new.add(y, x)

    with pytest.raises(InternalError, match="swap-operands"):
        AlgebraicSimplification(laws=book).run(parse(PROGRAM))


def test_a_law_that_changes_the_shape_is_named() -> None:
    book = LawBook()

    @book.law(P.add(x, y))
    def lose_a_dimension(x: Instruction) -> Value:
        """x + y -> x[0:1]"""
        return new.reshape(x, shape=x.shape.with_dims((2, 2)))

    with pytest.raises(InternalError, match="lose-a-dimension"):
        AlgebraicSimplification(laws=book).run(parse(PROGRAM))


def test_a_law_must_say_what_it_states_and_has_a_name_of_its_own() -> None:
    book = LawBook()

    def silent(x: Instruction) -> Value:
        return x

    with pytest.raises(ArgumentError, match="does not say"):
        book.law(P.abs(x))(silent)
    silent.__doc__ = "|x| -> x"
    book.law(P.abs(x))(silent)
    with pytest.raises(ArgumentError, match=r"two laws named 'silent'.*rename"):
        book.law(P.negate(x))(silent)


def test_what_a_rewrite_leaves_without_users_is_removed() -> None:
    module = parse("ENTRY e {\n x = f32[] parameter(0)\n n = f32[] negate(x)\n ROOT m = f32[] negate(n)\n}")
    step = AlgebraicSimplification()
    assert step.run(module)
    assert [instruction.opcode for instruction in module.entry] == ["parameter"]
    assert step.counts == {"negate-twice": 1}


def test_what_a_control_edge_holds_is_left_alone() -> None:
    module = parse(
        """ENTRY e {
          x = f32[] parameter(0)
          n = f32[] negate(x)
          m = f32[] negate(n)
          ROOT r = f32[] exponential(x), control-predecessors={m}
        }"""
    )
    assert not AlgebraicSimplification().run(module)


def test_laws_know_their_family_and_text() -> None:
    law = LAWS["merge-transposes"]
    assert law.family == "shapes"
    assert law.doc.startswith("transpose(transpose(x")


def test_an_instruction_waits_for_all_its_operands() -> None:
    """What has many operands is looked at once they are done, not once for each of them."""
    count, looks = 50, []
    book = LawBook()

    @book.law(P.negate(P.negate(x)))
    def twice(x: Instruction) -> Value:
        """-(-x) -> x"""
        return x

    @book.law(P.concatenate(xs.rest))
    def look(root: Instruction) -> None:
        """concatenate(...) -> concatenate(...)"""
        looks.append(root)

    lines = [
        f"x{n} = f32[1] parameter({n})\na{n} = f32[1] negate(x{n})\nb{n} = f32[1] negate(a{n})" for n in range(count)
    ]
    parts = ", ".join(f"b{n}" for n in range(count))
    lines.append(f"ROOT r = f32[{count}] concatenate({parts}), dimensions={{0}}")
    module = parse("ENTRY e {\n" + "\n".join(lines) + "\n}")
    assert AlgebraicSimplification(laws=book).run(module)
    assert [operand.name for operand in module.entry.root.operands] == [f"x{n}" for n in range(count)]
    assert len(looks) <= 2


def test_laws_at_rest_look_only_at_what_is_new_around_them() -> None:
    """At what has changed since, and at what is computed from that: not at who else reads a parameter."""
    looks = []
    book = LawBook()

    @book.law(P.negate(x))
    def look(root: Instruction) -> None:
        """-x -> -x"""
        looks.append(root.name)

    names = [f"n{number}" for number in range(2 * STEPS_BACK)]
    lines = [f"{name} = f32[1] negate({before})" for before, name in pairwise(["x", *names])]
    lines += ["other = f32[1] negate(x)", f"ROOT t = (f32[1], f32[1]) tuple({names[-1]}, other)"]
    module = parse("ENTRY e {\nx = f32[1] parameter(0)\n" + "\n".join(lines) + "\n}")
    step, at = AlgebraicSimplification(laws=book), {instruction.name: instruction for instruction in module.entry}
    step.run(module)
    assert sorted(looks) == sorted([*names, "other"])
    looks.clear()
    step.run(module)
    assert looks == []
    module.entry.set_operands(at["n0"], [module.entry.add("abs", [at["x"]])])
    step.run(module)
    assert looks == names[: STEPS_BACK + 1]


def test_laws_look_again_at_what_calls_something_that_has_changed() -> None:
    looks = []
    book = LawBook()

    @book.law(P.reduce(x, y))
    def look(root: Instruction) -> None:
        """reduce(x) -> reduce(x)"""
        looks.append(root)

    module = parse(
        """
        sum {
          a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT s = f32[] add(a, b)
        }
        ENTRY e {
          x = f32[4] parameter(0)
          zero = f32[] constant(0)
          ROOT r = f32[] reduce(x, zero), dimensions={0}, to_apply=sum
        }"""
    )
    step, region = AlgebraicSimplification(laws=book), module.entry.root.called[0]
    for expected in (1, 1):
        step.run(module)
        assert len(looks) == expected
    region.set_root(region.add("multiply", region.root.operands))
    step.run(module)
    assert len(looks) == 2
