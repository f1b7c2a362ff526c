"""Passes and laws of users: where they may stand, and which names are left for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

import xlapy
from xlapy.hlo.graph import HloModule, Instruction
from xlapy.hlo.patterns import P, variables
from xlapy.passes import new
from xlapy.passes.base import Pass
from xlapy.passes.new import Value
from xlapy.passes.pipelines import PipelineOptions, cpu_pipeline
from xlapy.passes.rewrite import LAWS, LawBook
from xlapy.passes.user import after, before, with_laws
from xlapy.support.errors import ArgumentError

PROGRAM = "ENTRY e { x = f32[8] parameter(0)  y = f32[8] negate(x)  ROOT z = f32[8] negate(y) }"
(x,) = variables("x")


@dataclass
class Idle(Pass):
    """Does nothing."""

    name: ClassVar[str] = "idle"

    def run(self, module: HloModule) -> bool:
        return False


def test_a_pass_stands_where_it_was_put() -> None:
    options = PipelineOptions(passes=(after("simplify", Idle()), before("fusion", Idle())))
    names = [step.name for step in cpu_pipeline(options).steps]
    places = [place for place, name in enumerate(names) if name == "idle"]
    assert names[places[0] - 1] == "simplify"
    assert names[places[1] + 1] == "fusion"


def test_inside_a_group_there_is_no_place_and_the_group_is_named() -> None:
    with pytest.raises(ArgumentError, match=r"algebra runs inside the group simplify.*use 'simplify'"):
        xlapy.compile(PROGRAM, xlapy.CompileOptions(passes=[after("algebra", Idle())]))


def test_a_place_that_does_not_exist_is_answered_with_those_that_do() -> None:
    with pytest.raises(ArgumentError, match=r"no pass 'simplfy' to run idle at; there are .*simplify, "):
        xlapy.compile(PROGRAM, xlapy.CompileOptions(passes=[after("simplfy", Idle())]))


def test_a_law_with_the_name_of_another_is_to_be_renamed() -> None:
    book = LawBook()

    @book.law(P.negate(P.negate(x)))
    def negate_twice(x: Instruction) -> Value:
        """-(-x) -> x"""
        return new.abs(x)

    message = r"two laws named 'negate-twice': xlapy.passes.algebra.arithmetic .* rename that of tests.passes.test_user"
    with pytest.raises(ArgumentError, match=message):
        xlapy.compile(PROGRAM, xlapy.CompileOptions(laws=[book]))


def test_without_books_the_laws_are_those_of_everybody() -> None:
    assert with_laws(()) is LAWS
    assert [law.name for law in with_laws((LawBook(),))] == [law.name for law in LAWS]


@pytest.mark.parametrize("option", ["disabled_passes", "disabled_laws"])
def test_names_are_a_set_not_letters(option: str) -> None:
    with pytest.raises(xlapy.ArgumentError, match=rf"{option} is a set of names: \{{'cse'\}} instead of 'cse'"):
        xlapy.CompileOptions(**{option: "cse"})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"disabled_passes": {"row-block"}}, "the pass 'row-block' .*: there is none .*; did you mean 'row-blocks'"),
        ({"disabled_passes": {"verify("}}, r"'verify\(' is no name of a pass: missing \)"),
        ({"disabled_passes": {"inline-calls", "layout-assignment"}}, "no program is finished without it"),
        (
            {"disabled_laws": {"negate-twise"}},
            "the law 'negate-twise' .*: there is none .*; did you mean 'negate-twice'",
        ),
    ],
)
def test_what_is_left_out_is_known(options: dict[str, set[str]], reason: str) -> None:
    with pytest.raises(xlapy.ArgumentError, match=reason):
        xlapy.compile(PROGRAM, xlapy.CompileOptions(**options))  # type: ignore[arg-type]


@pytest.mark.parametrize("step", [None, "dce", 3, object()], ids=lambda step: type(step).__name__)
@pytest.mark.parametrize("place", [after, before])
def test_only_a_pass_has_a_place(place: Any, step: Any) -> None:
    with pytest.raises(ArgumentError, match="is no pass: an instance of a dataclass"):
        place("simplify", step)


@dataclass
class Nameless(Pass):
    def run(self, module: HloModule) -> bool:
        return False


@dataclass
class Raising(Pass):
    name: ClassVar[str] = "raising"

    def run(self, module: HloModule) -> bool:
        raise KeyError("boom")


def test_a_pass_needs_a_name() -> None:
    with pytest.raises(ArgumentError, match="has no name: a pass says name = 'nameless' in its class"):
        after("simplify", Nameless())


def test_what_a_pass_raises_bears_its_name() -> None:
    with pytest.raises(KeyError, match="boom") as caught:
        xlapy.compile(PROGRAM, xlapy.CompileOptions(passes=[after("simplify", Raising())]))
    assert caught.value.__notes__ == ["pass raising raised this"]


def test_what_a_law_raises_bears_its_name() -> None:
    book = LawBook()

    @book.law(P.negate(x))
    def divide_by_nothing(x: Instruction) -> Value:
        """-x -> x, were it not for its mistake"""
        raise KeyError("nothing")

    with pytest.raises(KeyError) as caught:
        xlapy.compile(PROGRAM, xlapy.CompileOptions(laws=[book]))
    assert "law divide-by-nothing raised this, of" in caught.value.__notes__[0]


def test_a_law_takes_the_variables_of_its_pattern() -> None:
    book = LawBook()

    @book.law(P.negate(x))
    def misspelled(y: Instruction) -> Value:
        """-x -> x, were it not for its mistake"""
        return y

    with pytest.raises(ArgumentError, match="function of law 'misspelled' takes 'y'; its pattern has x"):
        xlapy.compile(PROGRAM, xlapy.CompileOptions(laws=[book]))


def test_a_pattern_is_made_of_patterns() -> None:
    with pytest.raises(ArgumentError, match=r'P.negate matches .*; of one variable.*\(x,\) = variables\("x"\)'):
        P.negate(variables("x"))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="there is no op 'negat'; did you mean 'negate'"):
        new.op("negat")
