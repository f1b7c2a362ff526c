"""Patterns: shapes of a graph to look for, written as the graph itself.

    P.transpose(P.transpose(x, permutation=p), permutation=q)
    P.multiply(x, P.number(1))                  a constant whose elements are all 1, or a broadcast of a scalar 1
    P.not_(P.not_(x))                           the op named by a word of Python
    P.concatenate(xs.rest, dimension=d)         all operands of a variadic op
    P.add(y.where(P.negate(x)), z)              binds y to what the inner pattern matches
    P.reshape(P.only(P.transpose(x)))           the transpose has no other user

A variable stands for an instruction, or for the value of an attribute; used twice, it must match the same
instruction, or equal values. The operands of a commutative op match in either order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from xlapy.hlo.graph import Instruction
from xlapy.hlo.ops import OPS, OpSpec, Trait
from xlapy.support.errors import ArgumentError
from xlapy.support.records import Record

Bindings = dict[str, Any]
Ways: TypeAlias = Sequence[Bindings]
"""The ways in which something matches, the first one first: mostly there is one, or none."""


class Variable(Record):
    """Matches anything, and binds it to `name`."""

    name: str

    @property
    def rest(self) -> Rest:
        """Matches all remaining operands, as a tuple."""
        return Rest(self)

    def where(self, pattern: Pattern) -> Bound:
        """Matches what `pattern` matches."""
        return Bound(self, pattern)


class Rest(Record):
    variable: Variable


class Bound(Record):
    variable: Variable
    pattern: Pattern


class Number(Record):
    """A constant all of whose elements are one number: `value` with its sign, any for None, bound for a variable."""

    value: Any


class OpPattern(Record):
    """An instruction of one op. Without operand patterns, its operands do not matter."""

    spec: OpSpec
    operands: tuple[Pattern | Rest, ...]
    attributes: Mapping[str, Any]
    only: bool = False


Pattern: TypeAlias = "Variable | Bound | Number | OpPattern"


class Patterns:
    """`P.name(...)` for every op of the table, by its Python name."""

    def __getattr__(self, name: str) -> Callable[..., OpPattern]:
        spec = OPS.get(name.rstrip("_").replace("_", "-"))
        if spec is None:
            raise AttributeError(f"there is no op {name!r} to match")

        def pattern(*operands: Pattern | Rest, **attributes: Any) -> OpPattern:
            unknown = [key for key in attributes if key not in spec.attributes]
            if unknown:
                raise AttributeError(f"{spec.name} has no attribute {unknown[0]!r} to match")
            for operand in operands:
                if not isinstance(operand, _MATCHERS):
                    raise _no_pattern(name, operand)
            return OpPattern(spec, operands, attributes)

        return pattern

    def number(self, value: Any) -> Number:
        """Any constant whose elements all equal `value`; a variable is bound to the numpy scalar."""
        return Number(value)

    @property
    def any_number(self) -> Number:
        """Any constant whose elements are all the same."""
        return Number(None)

    def only(self, pattern: OpPattern) -> OpPattern:
        """What `pattern` matches, if nothing else uses it."""
        return replace(pattern, only=True)


P = Patterns()

_MATCHERS = (Variable, Rest, Bound, Number, OpPattern)


def _no_pattern(name: str, operand: object) -> ArgumentError:
    hint = '; of one variable, take it out: (x,) = variables("x")' if isinstance(operand, Iterator) else ""
    return ArgumentError(f"P.{name} matches variables and patterns of operands, not {operand!r}{hint}")


def variables(names: str) -> Iterator[Variable]:
    """One variable for each of the names: `x, y = variables("x y")`, and `(x,) = variables("x")`."""
    return map(Variable, names.split())


def match(pattern: Pattern, instruction: Instruction) -> Bindings | None:
    """The variables of the first way in which `pattern` matches, or None."""
    ways = _match(pattern, instruction, {})
    return ways[0] if ways else None


class Leaves(Record):
    """A pattern of one instruction whose operands and attributes do not matter: the variables for these, in order."""

    operands: tuple[str, ...] | None  # None if there may be any number of operands
    attributes: tuple[tuple[str, str], ...]  # of the instruction, and of the pattern

    def match(self, instruction: Instruction) -> Bindings | None:
        """What `match` finds, by itself."""
        names = self.operands
        if names is None:
            bindings: Bindings = {}
        elif len(names) != len(instruction.operands):
            return None
        else:
            bindings = dict(zip(names, instruction.operands, strict=True))
        for name, variable in self.attributes:
            bindings[variable] = instruction.attributes[name]
        return bindings


def leaves_of(pattern: OpPattern) -> Leaves | None:
    """The pattern as leaves, if it is no more than that: each variable is there once."""
    wanted = [*pattern.operands, *pattern.attributes.values()]
    names = [variable.name for variable in wanted if isinstance(variable, Variable)]
    if pattern.only or len(names) != len(wanted) or len(names) != len(set(names)):
        return None
    operands = tuple(names[: len(pattern.operands)]) or None
    return Leaves(operands, tuple(zip(pattern.attributes, names[len(pattern.operands) :], strict=True)))


def may_match(pattern: OpPattern, operands: Sequence[str], are_same: bool) -> bool:
    """Whether an instruction of the op of `pattern` can match whose first operands are of these kinds (see `kind_of`),
    and two operands that `are_same` or not."""
    if not are_same and len(operands) == 2 and _asks_for_same(pattern.operands):
        return False
    if all(map(_looks_like, pattern.operands, operands)):
        return True
    return Trait.COMMUTATIVE in pattern.spec.traits and all(map(_looks_like, pattern.operands, operands[::-1]))


def kind_of(operand: Instruction) -> str:
    """The op of an operand, and behind it, if that is a number, which of those it is that patterns ask for most."""
    if operand.opcode not in NUMBERS:
        return operand.opcode
    number = number_of(operand)
    return operand.opcode if number is None else f"{operand.opcode} {_spelled(number)}"


def asks_for_number(pattern: Pattern | Rest) -> bool:
    """Whether a pattern wants a number itself, whatever it asks of the operands of others."""
    return asks_for_number(pattern.pattern) if isinstance(pattern, Bound) else isinstance(pattern, Number)


def _spelled(number: Any) -> str:
    """A number in a word of its own, if it is usual."""
    return _COMPLEX if np.iscomplexobj(number) else _USUAL.get((float(number), _sign(number)), _UNUSUAL)


_COMPLEX, _UNUSUAL = "complex", "real"
_USUAL = {(0.0, 1.0): "0", (0.0, -1.0): "-0", (1.0, 1.0): "1", (-1.0, -1.0): "-1"}
"""By value and sign."""


def _asks_for_same(patterns: Sequence[Pattern | Rest]) -> bool:
    return len(patterns) == 2 and isinstance(patterns[0], Variable) and patterns[0] == patterns[1]


def _looks_like(pattern: Pattern | Rest, kind: str) -> bool:
    if isinstance(pattern, Bound):
        return _looks_like(pattern.pattern, kind)
    opcode, _, number = kind.partition(" ")
    if isinstance(pattern, OpPattern):
        return opcode == pattern.spec.name
    if not isinstance(pattern, Number):
        return True
    if not number or pattern.value is None or isinstance(pattern.value, Variable):
        return bool(number)
    return number in (_COMPLEX, _spelled(pattern.value))


def _match(pattern: Pattern, instruction: Instruction, bindings: Bindings) -> Ways:
    match pattern:
        case Variable():
            return _bind(pattern.name, instruction, bindings)
        case OpPattern():
            return _match_op(pattern, instruction, bindings)
        case Bound(variable, inner):
            found = _match(inner, instruction, bindings)
            return [way for outer in found for way in _bind(variable.name, instruction, outer)]
        case Number(value):
            return _match_number(value, instruction, bindings)


def _bind(name: str, value: Any, bindings: Bindings) -> Ways:
    if name not in bindings:
        return ({**bindings, name: value},)
    bound = bindings[name]
    agrees = bound is value or (not isinstance(value, Instruction) and bound == value)
    return (bindings,) if agrees else ()


def _match_op(pattern: OpPattern, instruction: Instruction, bindings: Bindings) -> Ways:
    if instruction.spec is not pattern.spec or (pattern.only and instruction.sole_user is None):
        return ()
    for name, wanted in pattern.attributes.items():
        value = instruction.attributes[name]
        if isinstance(wanted, Variable):
            bound = _bind(wanted.name, value, bindings)
            if not bound:
                return ()
            (bindings,) = bound
        elif wanted != value:
            return ()
    if not pattern.operands:
        return (bindings,)
    ways = _match_operands(pattern.operands, instruction.operands, bindings)
    if Trait.COMMUTATIVE in pattern.spec.traits:
        ways = (*ways, *_match_operands(pattern.operands, instruction.operands[::-1], bindings))
    return ways


def _match_operands(
    patterns: tuple[Pattern | Rest, ...], operands: tuple[Instruction, ...], bindings: Bindings
) -> Ways:
    """Operand by operand, each in all ways that go with those before it."""
    ways: Ways = (bindings,)
    for place, pattern in enumerate(patterns):
        if isinstance(pattern, Rest):
            return [way for before in ways for way in _bind(pattern.variable.name, operands[place:], before)]
        if place == len(operands):
            return ()
        operand = operands[place]
        if len(ways) == 1:  # as nearly always
            ways = _match(pattern, operand, ways[0])
        else:
            ways = [way for before in ways for way in _match(pattern, operand, before)]
        if not ways:
            return ()
    return ways if len(patterns) == len(operands) else ()


def _match_number(value: Any, instruction: Instruction, bindings: Bindings) -> Ways:
    number = number_of(instruction)
    if number is None:
        return ()
    if isinstance(value, Variable):
        return _bind(value.name, number, bindings)
    return (bindings,) if value is None or (number == value and _sign(number) == _sign(value)) else ()


def _sign(number: Any) -> float:
    """Tells -0.0 from 0.0. Complex numbers have no sign."""
    return 0.0 if np.iscomplexobj(number) else math.copysign(1.0, float(number))


NUMBERS = frozenset({"constant", "broadcast"})
"""Ops that can be a number."""


def number_of(instruction: Instruction) -> Any:
    """The number that all elements of a constant (or of a broadcast of one) are, as a numpy scalar; None if none."""
    while instruction.opcode == "broadcast":
        instruction = instruction.operands[0]
    if instruction.opcode != "constant" or not instruction.shape.is_array:
        return None
    literal = instruction.attributes["literal"]
    return literal.scalar() if literal.is_splat else None
