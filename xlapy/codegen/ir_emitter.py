"""Where instructions go: scopes, sharing of equal operations, and hoisting out of loops.

LLVM runs few passes or none on our text, because its passes cost more than writing good code in the first place. So a
pure operation is written once per place that needs it, and in front of the outermost loop that does not change it:

    for i: for j: y[j] = f(c) * x[j]          writes f(c) in front of the loop over i

An operation never leaves the arm of a branch, because the arm may be there to avoid its cost.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from xlapy.codegen.ir_types import I64, IRType, Number, Operand, Range, Scope, Value, canonical, literal, vector_literal
from xlapy_runtime.errors import InternalError

if TYPE_CHECKING:
    from xlapy.codegen.ir import Module


HOISTED_CONSTANTS = 14
"""Vectors that are kept in registers, where there are 32 of them and half may be free."""


TABLE_ALIGNMENT = 64
"""Bytes: a line of a cache, and the longest vector in a register."""

USUAL = 2000
"""How often something usual happens for each time that it does not."""


class Emitter:
    """The text of one function while it is being written.

    If it `hoists_constants`, vectors of a float constant are made in front of all loops: for functions that LLVM does
    not optimize, which would make them again each time around. If it `is_quick`, it had better be compiled fast than
    run fast: masks and other vectors of an integer come from memory, as LLVM makes such vectors lane by lane (those
    of floats are parts of instructions otherwise, and faster so), and elementary functions are called. If it
    `calls_functions`, the long ones of these are, and if it `calls_scalars`, some of those of single numbers. If it
    `joins_offsets`, what is constant in a sum of integers is added last, so that addresses are a few sums, each with
    many displacements. If it `hoists_addresses` besides, a pointer is moved in front of a loop by what does not change
    in it."""

    def __init__(
        self,
        module: Module,
        *,
        hoists_constants: bool = False,
        is_quick: bool = False,
        calls_functions: bool = False,
        calls_scalars: bool = False,
        joins_offsets: bool = False,
        hoists_addresses: bool = False,
    ) -> None:
        self.module = module
        self.is_quick = is_quick
        self.calls_functions = calls_functions
        self.calls_scalars = calls_scalars
        self.runs_rarely = False
        self.joins_offsets = joins_offsets
        self.hoists_addresses = hoists_addresses
        self._hoisted_constants = 0 if hoists_constants else HOISTED_CONSTANTS
        self.rounded: set[tuple[str, str]] = set()  # values that are known to be of a narrower type, and which
        self.bits: dict[str, tuple[str, Value]] = {}  # values that are only moved: their narrower type, and its bits
        self.unmasked: dict[str, Value] = {}  # bits that are rounded values in their upper halves, by these values
        self.ranges: dict[str, Range] = {}  # what is known of values
        self.products: dict[str, tuple[Value, Value]] = {}  # what values are products of that sums may take in
        self._made: dict[tuple[str, ...], Value] = {}  # results of operations on integers, by these and their operands
        self._moves: dict[tuple[str, str, int, int], Value] = {}  # pointers that were moved, behind which barrier
        self._offsets: dict[str, tuple[Value, int]] = {}  # values that are another one and a constant
        self._terms: dict[str, tuple[str, Value, Value]] = {}  # of what sums and products are made
        self._parts: dict[str, tuple[Value, Value] | None] = {}  # what changes less often, and what changes in a loop
        self._whole: set[str] = set()  # values that are not taken apart
        self._first_lanes: dict[str, Value] = {}  # masks of the first lanes, and how many these are
        self._filled: dict[str, tuple[str, str]] = {}  # masked loads: their masks, and what is in the other lanes
        self.has_fma = module.has_fma
        self.has_f16c = module.has_f16c
        self.has_scalef = module.has_scalef
        self.has_estimates = module.has_estimates
        self.has_masks = module.has_masks
        self._read_constant_bytes = 0 if hoists_constants or is_quick else module.read_constant_bytes
        self._entry_lines: list[str] = []
        self._chunks: list[list[str]] = [self._entry_lines]
        self._last_chunks: list[list[str]] = []  # what is rarely run
        self._names = 0
        self._block = "entry"
        self._terminated = False
        self._constants: dict[tuple[str, Number | str], Value] = {}
        self._intrinsic_calls: dict[tuple[str, str], str] = {}
        self._scope = self._function_scope = Scope(0, 0, self._new_chunk())
        self._scopes = [self._scope]

    # Constants

    def const(self, type: IRType, number: Number) -> Value:
        """A constant of `type`, splatted over its lanes. Integers wrap, floats round once to the type."""
        key = (type.text, number if number else repr(number))
        found = self._constants.get(key)
        if found is None:
            exact, text = _spelled(type.kind, type.lanes, number, "" if number else repr(number))
            if type.is_float and type.lanes > 1 and number and self._hoisted_constants < HOISTED_CONSTANTS:
                self._hoisted_constants += 1
                text = self._hoisted(type, text)
            found = self._constants[key] = Value(type, text, exact, self._function_scope)
        return found

    def _hoisted(self, type: IRType, text: str) -> str:
        """The name of a constant that is made once. What is frozen is not known elsewhere to be a constant."""
        self._names += 1
        name = f"%v{self._names}"
        self._entry_lines.append(f"  {name} = freeze {type.text} {text}")
        return name

    def in_register(self, type: IRType, number: Number) -> Value:
        """A vector of a constant that is made in front of loops, in which LLVM does not see which it is: it has nothing
        to derive from it, and does not try."""
        constant = self.const(type, number)
        if self.is_quick or type.lanes == 1 or constant.constant is None:
            return constant
        return self._pure(type, f"freeze {type.text} {constant.text}")

    def _spelled_out(self, value: Value) -> Value:
        """A constant that LLVM sees, for operations that are less work beside what it knows."""
        if value.constant is None or value.type.lanes == 1:
            return value
        number = value.constant
        _, text = _spelled(value.type.kind, value.type.lanes, number, "" if number else repr(number))
        return Value(value.type, text, number, value.scope)

    def _operand(self, value: Value) -> Value:
        """The operand of an operation that is one instruction, whatever it is made from: a constant vector comes from
        memory, if this function loads such."""
        type = value.type
        if not self.is_quick or not value.constant or type.lanes == 1 or type.bits == 1:
            return value
        return self._pinned(type, self._read_from_table(value))

    def _beside(self, value: Value, *others: Value) -> Value:
        """The same operand, of an operation that has `others`: from memory, if it is a vector that repeats a float and
        that the operation can read there."""
        type = value.type
        if not value.constant or type.lanes == 1 or type.bytes * type.lanes > self._read_constant_bytes:
            return value
        return self._shared(type, self._read_from_table(value), self._scope.barrier, others)

    def _read_from_table(self, constant: Value) -> str:
        """The load of a constant vector. Its table is aligned like all of a module's."""
        type = constant.type
        size = type.bytes * type.lanes
        align = min(size & -size, TABLE_ALIGNMENT)  # what three registers take is no power of two
        return f"load {type.text}, ptr @{self.module.vector(type, constant.text)}, align {align}"

    def const_vector(self, type: IRType, numbers: Sequence[Number]) -> Value:
        """A constant with its own number in each lane."""
        if len(numbers) != type.lanes:
            raise InternalError(f"{len(numbers)} numbers for {type.text}")
        exact = [canonical(type, number) for number in numbers]
        if type.lanes == 1:
            return self.const(type, exact[0])
        return Value(type, vector_literal(type, exact), None, self._function_scope)

    def lane_numbers(self, type: IRType) -> Value:
        """0, 1, 2, ... across the lanes of `type`."""
        return self.const_vector(type, range(type.lanes))

    # Names

    def _named(self, type: IRType, scope: Scope) -> Value:
        """A value whose instruction, a phi, is written when its inputs are known."""
        self._names += 1
        return Value(type, f"%v{self._names}", None, scope)

    # Operands

    def _value(self, operand: Operand, type: IRType) -> Value:
        """`operand` as a value of `type`: a number becomes a constant, a scalar is splatted."""
        if not isinstance(operand, Value):
            return self.const(type, operand)
        if operand.type is type or operand.type == type:
            return operand
        if operand.type.lanes == 1 and operand.type.kind == type.kind:
            return self.splat(operand, type.lanes)
        raise InternalError(f"{operand.text} is {operand.type.text} where {type.text} is needed")

    def _pair(self, a: Operand, b: Operand) -> tuple[Value, Value]:
        """Both operands with one type, that of the one with more lanes."""
        if isinstance(a, Value):
            if isinstance(b, Value):
                if a.type is b.type:
                    return a, b
                return (a, self._value(b, a.type)) if a.type.lanes >= b.type.lanes else (self._value(a, b.type), b)
            return a, self.const(a.type, b)
        if isinstance(b, Value):
            return self.const(b.type, a), b
        raise InternalError(f"numbers {a} and {b} have no IR type; make one of them a constant")

    def splat(self, value: Value, lanes: int) -> Value:
        """`value` in each of `lanes` lanes."""
        if value.type.lanes == lanes:
            return value
        if value.type.lanes != 1:
            raise InternalError(f"{value.text} of type {value.type.text} is not a scalar to splat")
        type = value.type.with_lanes(lanes)
        if value.constant is not None:
            return self.const(type, value.constant)
        first = self.in_first_lane(value, lanes)
        return self._pure(
            type,
            f"shufflevector {type.text} {first.text}, {type.text} poison, <{lanes} x i32> zeroinitializer",
            first,
        )

    def in_first_lane(self, value: Value, lanes: int) -> Value:
        """The scalar `value` in the first of `lanes` lanes, and anything in others: the register that it is in."""
        type = value.type.with_lanes(lanes)
        if value.constant is not None:
            return self.const(type, value.constant)
        return self._pure(type, f"insertelement {type.text} poison, {value.type.text} {value.text}, i64 0", value)

    # Instructions

    def _pure(self, type: IRType, text: str, *operands: Value) -> Value:
        """The result of an operation without effects, written where `operands` are all available and at most once."""
        return self._shared(type, text, self._scope.barrier, operands)

    def _pinned(self, type: IRType, text: str, *operands: Value) -> Value:
        """Like `_pure` for an operation that must not run unless control gets here, such as a division."""
        return self._shared(type, text, self._scope.depth, operands)

    def _shared(self, type: IRType, text: str, target: int, operands: tuple[Value, ...]) -> Value:
        scopes = self._scopes
        available = 0
        for operand in operands:
            scope = operand.scope
            if scope.depth > available:
                available = scope.depth
                if available >= len(scopes) or scopes[available] is not scope:
                    raise InternalError(f"{operand.text} is used outside of the loop or branch that defines it: {text}")
        depth = highest = target if target > available else available  # `max` takes as long as all the rest
        while depth >= available:
            found = scopes[depth].shared.get(text)
            if found is not None:
                return found
            depth -= 1
        scope = scopes[highest]
        self._names += 1
        name = f"%v{self._names}"
        scope.lines.append(f"  {name} = {text}")
        value = scope.shared[text] = Value(type, name, None, scope)
        return value

    def _written_once(self, key: str, write: Callable[[], Value], *operands: Value) -> Value:
        """What `write` writes, in front of all loops in which it would be the same, and at most once for each key."""
        scope = self._scopes[max(self._scope.barrier, *(operand.scope.depth for operand in operands))]
        if key not in scope.shared:
            here, self._scope = self._scope, scope
            scope.shared[key] = write()
            self._scope = here
        return scope.shared[key]

    def _result(self, type: IRType, text: str) -> Value:
        """The result of an operation that stays where it is and is never shared, such as a load or a call."""
        self._names += 1
        name = f"%v{self._names}"
        self._scope.lines.append(f"  {name} = {text}")
        return Value(type, name, None, self._scope)

    def _shared_effect(self, text: str, operand: Value) -> None:
        """An operation that need not happen more than once for each value of `operand`."""
        scope = operand.scope
        if text not in scope.shared:
            scope.lines.append("  " + text)
            scope.shared[text] = operand

    def _effect(self, text: str) -> None:
        self._scope.lines.append("  " + text)

    def _intrinsic(self, name: str, type: IRType, *operands: Value) -> Value:
        """A pure intrinsic that is overloaded on its result type alone and declared on demand."""
        call = self._intrinsic_calls.get((name, type.text))
        if call is None:
            symbol = f"llvm.{name}.{type.suffix}"
            self.module.declare(symbol, type, [operand.type for operand in operands])
            call = self._intrinsic_calls[name, type.text] = f"call {type.text} @{symbol}"
        arguments = ", ".join([f"{operand.type.text} {operand.text}" for operand in operands])
        return self._shared(type, f"{call}({arguments})", self._scope.barrier, operands)

    # Blocks and scopes

    def _new_chunk(self) -> list[str]:
        chunk: list[str] = []
        self._chunks.append(chunk)
        return chunk

    def _new_label(self, stem: str) -> str:
        self._names += 1
        return f"{stem}{self._names}"

    def _start_block(self, label: str) -> None:
        """Goes on in a new block of the current scope."""
        chunk = self._scope.lines = self._new_chunk()
        chunk.append(f"{label}:")
        self._block = label
        self._terminated = False

    def _branch(self, label: str) -> None:
        if not self._terminated:
            self._effect(f"br label %{label}")
            self._terminated = True

    def _branch_if(self, condition: Value, then: str, otherwise: str, likely: bool | None = None) -> None:
        """Goes on in one of two blocks. If it is known how the condition mostly is, what is rare is kept apart."""
        branch = f"br i1 {condition.text}, label %{then}, label %{otherwise}"
        if likely is not None:
            odds = (USUAL, 1) if likely else (1, USUAL)
            weights = self.module.metadata(f'!{{!"branch_weights", i32 {odds[0]}, i32 {odds[1]}}}')
            branch += f", !prof !{weights}"
        self._effect(branch)
        self._terminated = True

    def _open_scope(self, *, loop: bool) -> Scope:
        """Enters a scope; from a loop, operations may move out, from an arm of a branch they may not."""
        depth = len(self._scopes)
        self._scope = Scope(depth, self._scope.barrier if loop else depth, self._scope.lines)
        self._scopes.append(self._scope)
        return self._scope

    def _close_scope(self) -> None:
        self._scopes.pop()
        self._scope = self._scopes[-1]

    def _is_open(self, scope: Scope) -> bool:
        """Whether control is in a scope, so that its values are there."""
        scopes, depth = self._scopes, scope.depth
        return depth < len(scopes) and scopes[depth] is scope

    def runs_of_loops(self, value: Value, other: Value) -> float:
        """How often something runs with another value for each time that something runs in front of all loops that do
        not change the first one: infinity for often, or nobody knows."""
        outside = max(self._scope.barrier, value.scope.depth)
        known = [scope.runs for scope in self._scopes[outside + 1 : other.scope.depth + 1]]
        return math.prod(math.inf if runs is None else runs for runs in known)

    def stays_here(self, *operands: Value) -> bool:
        """Whether what is made of these operands is written here, and not in front of a loop."""
        return max(self._scope.barrier, *(operand.scope.depth for operand in operands)) == self._scope.depth

    def _as_index(self, operand: Operand) -> Value:
        return operand if isinstance(operand, Value) else self.const(I64, operand)

    def _body_text(self) -> str:
        text = "\n".join(line for chunk in (*self._chunks, *self._last_chunks) for line in chunk)
        return self._without_unused_offsets(text) if self._offsets or self._terms else text

    def _without_unused_offsets(self, text: str) -> str:
        """Sums of which only the parts were used, as parts of addresses, are gone."""
        uses = Counter(_NAME.findall(text))
        lines: list[str] = []
        for line in reversed(text.split("\n")):
            name = line[2 : line.find(" ", 2)]
            if uses[name] == 1 and (name in self._offsets or name in self._terms):
                uses.subtract(_NAME.findall(line))
            else:
                lines.append(line)
        return "\n".join(reversed(lines))


_NAME = re.compile(r"%v\d+")


@lru_cache(maxsize=1 << 12)
def _spelled(kind: str, lanes: int, number: Number, zero: str) -> tuple[Number, str]:
    """A number as a type holds it, and LLVM's text for it. Zeros are equal: `zero` tells them apart.

    Kernels have the same constants, those of functions above all."""
    type = IRType(kind, lanes)
    exact = canonical(type, number)
    return exact, literal(type, exact)
