"""The rewrite engine: laws, and the pass that applies them until none fires.

A law is a named function behind a pattern; its docstring is the law. It returns what replaces the matched
instruction, an instruction that exists or a tree of new ones, or None when it does not hold here after all.

    @LAWS.law(P.subtract(x, x), when=is_integral)
    def subtract_self(root):
        \"\"\"x - x -> 0, for integers only: inf - inf is NaN\"\"\"
        return new.number(0, like=root)

Its parameters are the variables of its pattern that it wants; `root` is the matched instruction. Laws see static
shapes and no layouts: layouts are assigned later, and bounded sizes are gone by then.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.patterns import Bindings, Leaves, OpPattern, asks_for_number, kind_of, leaves_of, match, may_match
from xlapy.passes.base import ComputationPass, pinned
from xlapy.passes.new import Value, materialize
from xlapy.support.errors import ArgumentError, InternalError
from xlapy.support.records import Record

Condition = Callable[[Instruction], bool]
Rewrite = Callable[..., "Value | None"]

REWRITES_PER_INSTRUCTION = 32  # beyond this, laws undo each other
STEPS_BACK = 4  # how far from the instruction that they replace laws look, but for a few


class Exactness(enum.Enum):
    """What a law may change of the numbers; the value says it in words."""

    EXACT = "the same bits"
    FREE = "another result that the operation leaves open: the order of a sum, the last bits of a function"
    APPROXIMATE = "last bits, or what NaN, infinities and signs of zero do: under fast_math only"


class Law(Record):
    """A rewrite, and how exact it is."""

    name: str
    family: str
    pattern: OpPattern
    condition: Condition | None
    rewrite: Rewrite
    wanted: tuple[str, ...]
    exactness: Exactness
    leaves: Leaves | None  # all that the pattern asks for, if that is not much

    @property
    def needs_fast_math(self) -> bool:
        return self.exactness is Exactness.APPROXIMATE

    @property
    def doc(self) -> str:
        return inspect.getdoc(self.rewrite) or ""

    @property
    def statement(self) -> str:
        """The law in one line."""
        return self.doc.strip().partition("\n")[0]

    def apply(self, root: Instruction) -> Value | None:
        """What replaces `root`, or None."""
        if self.condition is not None and not self.condition(root):
            return None
        bindings = match(self.pattern, root) if self.leaves is None else self.leaves.match(root)
        if bindings is None:
            return None
        bindings["root"] = root
        return self._rewritten(bindings)

    def _rewritten(self, bindings: Bindings) -> Value | None:
        """What the law makes of what was matched; its own errors get a note of its name."""
        try:
            return self.rewrite(*[bindings[name] for name in self.wanted])
        except Exception as error:
            unknown = [name for name in self.wanted if name not in bindings]
            if unknown:
                raise ArgumentError(
                    f"the function of law {self.name!r} takes {unknown[0]!r}; its pattern has {', '.join(bindings)}"
                ) from None
            error.add_note(f"law {self.name} raised this, of {bindings['root']!r}")
            raise


_OPERANDS_LOOKED_AT = 3
"""Operands whose ops decide which laws are tried."""


class LawBook:
    """Laws by name, and by the op at the root of their pattern."""

    def __init__(self) -> None:
        self._laws: dict[str, Law] = {}
        self._by_opcode: dict[str, list[Law]] = {}
        self._asking_for_numbers: set[str] = set()
        self._candidates: dict[tuple[object, ...], tuple[Law, ...]] = {}

    def law(
        self, *patterns: OpPattern, when: Condition | None = None, exactness: Exactness = Exactness.EXACT
    ) -> Callable[[Rewrite], Rewrite]:
        """Decorator: enters a law. Several patterns are alternatives with the same variables."""

        def enter(rewrite: Rewrite) -> Rewrite:
            name = rewrite.__name__.replace("_", "-")
            self._refuse_taken(name, rewrite)
            if not inspect.getdoc(rewrite):
                raise ArgumentError(f"law {name!r} does not say what it states: its docstring is the law")
            wanted = tuple(inspect.signature(rewrite).parameters)
            family = rewrite.__module__.rpartition(".")[2]
            for pattern in patterns:
                law = Law(name, family, pattern, when, rewrite, wanted, exactness, leaves_of(pattern))
                self._laws[name] = law
                self._by_opcode.setdefault(pattern.spec.name, []).append(law)
                if any(map(asks_for_number, pattern.operands)):
                    self._asking_for_numbers.add(pattern.spec.name)
            self._candidates.clear()
            return rewrite

        return enter

    def include(self, other: LawBook) -> None:
        """Enters all laws of another book, behind those that are there. Raises ArgumentError where a name is taken."""
        for name, law in other._laws.items():
            self._refuse_taken(name, law.rewrite)
            self._laws[name] = law
        for opcode, laws in other._by_opcode.items():
            self._by_opcode.setdefault(opcode, []).extend(laws)
        self._asking_for_numbers |= other._asking_for_numbers
        self._candidates.clear()

    def _refuse_taken(self, name: str, rewrite: Rewrite) -> None:
        """Names are how laws are counted, cited and switched off: each is that of one law."""
        if name in self._laws:
            taken = self._laws[name].rewrite.__module__
            raise ArgumentError(
                f"there are two laws named {name!r}: {taken} has one already, so rename that of {rewrite.__module__}"
            )

    def candidates(self, instruction: Instruction) -> tuple[Law, ...]:
        """The laws whose patterns ask for nothing else than the ops of the instruction and of its first operands, which
        numbers these are, and whether two operands are one.

        Nearly every instruction has none; what ops go together is remembered, as there are few such combinations."""
        opcode = instruction.opcode
        laws = self._by_opcode.get(opcode)
        if laws is None:
            return ()
        first = instruction.operands[:_OPERANDS_LOOKED_AT]
        if opcode in self._asking_for_numbers:
            operands = [kind_of(operand) for operand in first]
        else:
            operands = [operand.opcode for operand in first]
        are_same = len(first) == 2 and first[0] is first[1]
        key = (are_same, opcode, *operands)
        found = self._candidates.get(key)
        if found is None:
            found = self._candidates[key] = tuple(law for law in laws if may_match(law.pattern, operands, are_same))
        return found

    def __iter__(self) -> Iterator[Law]:
        return iter(self._laws.values())

    def __getitem__(self, name: str) -> Law:
        return self._laws[name]


LAWS = LawBook()
"""The laws of `passes/algebra`; importing that package fills it."""


class Rest(NamedTuple):
    """The clocks of a computation, and of those that it calls, when no law was left to apply."""

    clock: int
    called: Mapping[Computation, int]


@dataclass
class AlgebraicSimplification(ComputationPass):
    """Applies the laws of `laws` but for the `disabled` ones; `counts` says how often each fired."""

    name: ClassVar[str] = "algebra"
    comes_to_rest: ClassVar[bool] = True

    fast_math: bool = False
    disabled: frozenset[str] = frozenset()
    laws: LawBook = LAWS

    def run_on(self, computation: Computation) -> bool:
        changed = _Rewriter(self, computation).run()
        clocks = {called: called.clock for called in computation.called_computations()}
        computation.notes[self._rest] = Rest(computation.clock, clocks)
        return changed

    def rest_of(self, computation: Computation) -> Rest | None:
        """How the same laws left a computation, if they have been there."""
        return computation.notes.get(self._rest)

    @property
    def _rest(self) -> Hashable:
        return "rest", self.laws, self.fast_math, self.disabled

    def is_enabled(self, law: Law) -> bool:
        return (self.fast_math or not law.needs_fast_math) and law.name not in self.disabled


class _Rewriter:
    """A worklist over one computation. What dies is cut off at once, so that `sole_user` sees only living users."""

    def __init__(self, settings: AlgebraicSimplification, computation: Computation) -> None:
        self.settings = settings
        self.computation = computation
        self.pinned = pinned(computation)
        self.dead: dict[Instruction, None] = {}
        self.waiting = dict.fromkeys(reversed(self.unsettled()))
        self.budget = REWRITES_PER_INSTRUCTION * (len(computation) + 1)

    def run(self) -> bool:
        changed = False
        while self.waiting:
            instruction, _ = self.waiting.popitem()
            if instruction in self.dead or instruction in self.pinned:
                continue
            laws = self.settings.laws.candidates(instruction)
            if laws and _is_static(instruction):
                changed = self.rewrite(instruction, laws) or changed
        self.computation.remove(self.dead)
        return changed

    def unsettled(self) -> list[Instruction]:
        """What laws have not looked at yet as it is now, in order: all, or what has changed since they came to rest,
        and what is computed from that in so many steps as laws look back. Who else reads a constant or a parameter
        is nothing to them."""
        order = self.computation.post_order()
        rest = self.settings.rest_of(self.computation)
        if rest is None:
            return order
        newest = [
            instruction
            for instruction in order
            if instruction.changed_at > rest.clock
            or any(rest.called.get(called) != called.clock for called in instruction.called)
        ]
        found = dict.fromkeys(newest)
        newest = [instruction for instruction in newest if instruction.operands]
        for _ in range(STEPS_BACK):
            newest = [user for instruction in newest for user in instruction.users if user not in found]
            found.update(dict.fromkeys(newest))
        return [instruction for instruction in order if instruction in found]

    def rewrite(self, instruction: Instruction, laws: Sequence[Law]) -> bool:
        """Applies the first of the laws that holds; returns whether there was one."""
        for law in laws:
            if self.settings.is_enabled(law):
                replacement = law.apply(instruction)
                if replacement is not None and replacement is not instruction:
                    self.settings.counts[law.name] += 1
                    self.replace(instruction, replacement, law)
                    return True
        return False

    def replace(self, old: Instruction, replacement: Value, law: Law) -> None:
        if not replacement.shape.matches(old.shape):
            raise InternalError(f"law {law.name} turns {old} into {replacement.shape}")
        self.budget -= 1
        if self.budget < 0:
            raise InternalError(f"the laws do not come to rest in {self.computation.name}; the last one was {law.name}")
        new, added = materialize(replacement, self.computation, old)
        users = tuple(old.users)
        for user in users:
            self.computation.replace_operand(user, old, new)
        if old.is_root:
            self.computation.set_root(new)
        for instruction in (*reversed(users), new, *reversed(added)):
            self.wake(instruction)
        self.bury(old)

    def wake(self, instruction: Instruction) -> None:
        """Lets laws look at the instruction next, or when its turn comes: what has many operands waits for them all."""
        self.waiting.setdefault(instruction)

    def bury(self, instruction: Instruction) -> None:
        """Cuts off an instruction without users, and what only it used; wakes what lost a user."""
        stack = [instruction]
        while stack:
            dead = stack.pop()
            if dead.users or dead.is_root or dead in self.dead or dead in self.pinned:
                continue
            if dead.opcode == "parameter" or dead.has_effect:
                continue
            self.dead[dead] = None
            operands = dict.fromkeys(dead.operands)
            self.computation.set_operands(dead, ())
            for operand in operands:
                stack.append(operand)
                if len(operand.users) == 1:
                    self.wake(next(iter(operand.users)))


def _is_static(instruction: Instruction) -> bool:
    return instruction.shape.is_static and all(operand.shape.is_static for operand in instruction.operands)
