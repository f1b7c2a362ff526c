"""Passes and laws that a user brings along: where they stand, that they are checked, what a cache must know of them.

    options = CompileOptions(
        passes=[after("simplify", StreamingAttention(block=64))],       also: before("fusion", ...)
        laws=[MY_LAWS],                                                 applied beside the others
    )

A place is the name of a pass, or of a group of passes that take turns, as `xlapy opt --list` prints them. A pass inside
a group is no place: the error says which group to name instead. Behind a pass that changed something, the module is
verified: an error names the pass.
"""

from __future__ import annotations

import hashlib
import inspect
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import is_dataclass, replace
from typing import Any

from xlapy.hlo.graph import HloModule
from xlapy.hlo.text import fingerprint
from xlapy.hlo.verifier import verify
from xlapy.passes.base import Pass
from xlapy.passes.pipeline import FixedPoint, Pipeline, Step
from xlapy.passes.rewrite import LAWS, LawBook
from xlapy.support.errors import ArgumentError, InternalError, XlaError
from xlapy.support.records import Record
from xlapy.support.source import suggestion


class Placement(Record):
    """A pass, and the place where it runs: `behind` the pass or group named `place`, or in front of it."""

    place: str
    step: Pass
    behind: bool


def after(place: str, step: Pass) -> Placement:
    """The pass runs behind the pass or group named `place`, the last one of that name."""
    return _placement(place, step, behind=True)


def before(place: str, step: Pass) -> Placement:
    """The pass runs in front of the pass or group named `place`, the first one of that name."""
    return _placement(place, step, behind=False)


def _placement(place: str, step: Any, *, behind: bool) -> Placement:
    if not isinstance(step, Pass) or not is_dataclass(step):
        raise ArgumentError(f"{step!r} is no pass: an instance of a dataclass that is a ModulePass or ComputationPass")
    if not isinstance(getattr(step, "name", None), str):
        raise ArgumentError(f"{step!r} has no name: a pass says name = {type(step).__name__.lower()!r} in its class")
    return Placement(place, step, behind)


def check_left_out(pipeline: Pipeline, passes: Iterable[str], others: Iterable[str] = ()) -> None:
    """Raises ArgumentError unless the names, which may be regular expressions, are of passes that a pipeline can do
    without, or of `others` that it does not have."""
    optional = {step.name for step in pipeline.passes() if not step.required} | {*others}
    for name in passes:
        try:
            is_known = any(re.fullmatch(name, known) for known in optional)
        except re.error as error:
            raise ArgumentError(f"{name!r} is no name of a pass: {error}") from None
        if not is_known:
            is_required = any(step.name == name for step in pipeline.passes())
            reason = "no program is finished without it" if is_required else "there is none of that name"
            raise ArgumentError(f"the pass {name!r} cannot be left out: {reason}{suggestion(name, optional)}")


def check_laws_left_out(book: LawBook, laws: Iterable[str]) -> None:
    """Raises ArgumentError unless these are names of laws."""
    known = {law.name for law in book}
    for name in laws:
        if name not in known:
            raise ArgumentError(
                f"the law {name!r} cannot be left out: there is none of that name{suggestion(name, known)}"
            )


def placed(steps: Sequence[Step], placements: Iterable[Placement]) -> tuple[Step, ...]:
    """The steps with those of users among them; of several at one place, the one named first runs first.

    Raises ArgumentError where a pipeline has no such place, and where that is inside a group."""
    found = [*steps]
    for placement in placements:
        places = [number for number, step in enumerate(found) if step.name == placement.place]
        if not places:
            raise _no_place(steps, placement)
        at = places[0]
        if placement.behind:
            at = places[-1] + 1
            while at < len(found) and isinstance(found[at], CheckedPass):
                at += 1
        found.insert(at, CheckedPass(placement.step))
    return tuple(found)


def _no_place(steps: Sequence[Step], placement: Placement) -> ArgumentError:
    """What is wrong with a place that is none."""
    place, name = placement.place, placement.step.name
    groups = [step.name for step in steps if isinstance(step, FixedPoint) and place in (p.name for p in step.passes)]
    if groups:
        group = groups[0]
        return ArgumentError(f"{place} runs inside the group {group}, where {name} has no place: use {group!r}")
    known = ", ".join(dict.fromkeys(step.name for step in steps))
    return ArgumentError(f"there is no pass {place!r} to run {name} at; there are {known}")


class CheckedPass(Pass):
    """A pass of a user, in a copy for one compilation, and a look at what it leaves."""

    def __init__(self, step: Pass) -> None:
        super().__init__()
        self.step = replace(step)

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.step.name

    def run(self, module: HloModule) -> bool:
        """Runs the pass. Raises InternalError, naming it, if it leaves an invalid module, or lies about a change.

        What the pass itself raises gets a note of its name."""
        print_before = fingerprint(module)
        try:
            claimed = self.step.run(module)
        except Exception as error:
            error.add_note(f"pass {self.name} raised this")
            raise
        self.records, self.counts = self.step.take_records(), self.step.take_counts()
        changed = fingerprint(module) != print_before
        if claimed != changed:
            raise InternalError(
                f"pass {self.name} says that it {'changed' if claimed else 'left'} the module; it did not"
            )
        if changed:
            try:
                verify(module)
            except XlaError as error:
                raise InternalError(f"pass {self.name} leaves an invalid module: {error}") from error
        return changed


def with_laws(books: Sequence[LawBook]) -> LawBook:
    """The laws of xlapy and those of `books`, in one book: without books, the one of xlapy itself."""
    if not books:
        return LAWS
    joined = LawBook()
    for book in (LAWS, *books):
        joined.include(book)
    return joined


def identity_of(placements: Iterable[Placement], books: Iterable[LawBook]) -> str:
    """Text that changes when what users bring along does: their options, and the source of the modules they are in.

    What those modules import is not part of it. Code whose source nobody knows is never the same twice."""
    lines = [f"{p.place} {p.behind} {p.step!r} {_source_of(type(p.step))}" for p in placements]
    lines += [f"{law.name} {_source_of(law.rewrite)}" for book in books for law in book]
    return "\n".join(lines)


def _source_of(thing: Any) -> str:
    module = inspect.getmodule(thing)
    try:
        source = inspect.getsource(module if module is not None else thing)
    except (OSError, TypeError):
        return f"{time.time_ns()}"
    return hashlib.sha256(source.encode()).hexdigest()
