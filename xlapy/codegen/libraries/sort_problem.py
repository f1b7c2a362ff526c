"""What the functions of the sort libraries are told: a table of pointers, the first of them to the numbers below."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from xlapy.codegen.ir import I8, I64, PTR, KernelBuilder, Module, Operand, Value
from xlapy.codegen.stopping import define_look
from xlapy.codegen.target import Target
from xlapy.hlo.sort_plan import ALIGNMENT, STACK_BYTES
from xlapy_runtime.records import Record

NUMBERS = (
    *("rows", "length", "stride", "kept"),
    *("groups_per_unit", "larger_units", "unit_bytes"),
    *("operands", "key", "candidates", "is_long", "top"),
    *("source_layout", "result_layout"),
    *("merges", "zeros", "nans", "low", "element", "sign", "magnitude", "flip", "upper"),
)
"""By name, in order; behind them, the bytes of an element of each operand.

The first `larger_units` units have one group of rows more than `groups_per_unit`, and each has `unit_bytes` of scratch
memory. `key` is the number of the operand that is compared. `is_long` rows are sorted by digits. `top` is where the
network begins. From `merges` on they are those of `sort_keys`."""

_POINTERS = ("numbers", "context", "scratch")
"""What the table begins with; operands and results follow."""

RANGE = [("table", PTR), ("begin", I64), ("end", I64)]


class Problem(Record):
    """The numbers and pointers of one call, loaded where they are asked for. Nothing writes to them."""

    k: KernelBuilder
    table: Value

    def __getitem__(self, name: str) -> Value:
        return self._number(NUMBERS.index(name))

    def element_bytes(self, operand: Value) -> Value:
        return self._number(self.k.add(operand, len(NUMBERS)))

    def _number(self, place: Operand) -> Value:
        return self.k.load(self.k.gep(self._pointer("numbers"), place, I64.bytes), I64, hoistable=True)

    def _pointer(self, name: str) -> Value:
        return self.k.load(self.k.gep(self.table, _POINTERS.index(name), PTR.bytes), PTR, hoistable=True)

    def operand(self, number: Value) -> Value:
        """The address of an operand."""
        return self.k.load(self.k.gep(self.table, self.k.add(number, len(_POINTERS)), PTR.bytes), PTR, hoistable=True)

    def result(self, number: Value) -> Value:
        return self.operand(self.k.add(self["operands"], number))

    @property
    def context(self) -> Value:
        """Null in a call that takes no time."""
        return self._pointer("context")

    def memory(self, unit: Value, stack: Value) -> Value:
        """Where a unit works: in its part of the scratch memory, or on the stack."""
        k, scratch = self.k, self._pointer("scratch")
        own = k.gep(scratch, k.mul(unit, self["unit_bytes"]))
        return k.select(k.compare("eq", scratch, k.const(PTR, 0)), stack, own)


GroupSort: TypeAlias = Callable[[Value, Value], None]
"""Sorts the group of rows of a number, in memory to work in."""


def sort_library(name: str, target: Target, sorter: Callable[[Problem], GroupSort]) -> Module:
    """A module with one function, of a range of units, which listens where it is given a context. `sorter` says of the
    problem that a call brings how a group is sorted."""
    module = Module.of(target)
    define_look(module, target)
    with KernelBuilder(module, name, RANGE, None, attributes=function_attributes(target)) as k:
        problem = Problem(k, k.parameters["table"])
        k.parameters["context"] = problem.context
        k.leave = k.ret
        _emit_groups(problem, sorter(problem))
    return module


def function_attributes(target: Target) -> str:
    return f"nounwind {target.function_attributes}".rstrip()


def _emit_groups(problem: Problem, sort: GroupSort) -> None:
    """Runs `sort` on the number of each group of rows in the units [begin, end), and on the memory to work in."""
    k = problem.k
    stack = k.alloca(I8, STACK_BYTES, align=ALIGNMENT)
    larger, per_unit = problem["larger_units"], problem["groups_per_unit"]
    with k.loop(k.parameters["begin"], k.parameters["end"]) as units:
        memory = problem.memory(units.index, stack)
        first, following = (
            k.add(k.mul(unit, per_unit), k.smin(unit, larger)) for unit in (units.index, k.add(units.index, 1))
        )
        with k.loop(first, following) as groups:
            sort(groups.index, memory)


def row_bases(problem: Problem, number: Value) -> tuple[Value, Value]:
    """The first elements, in operands and in results, of the row of that number, or of the row in each lane."""
    k, stride = problem.k, problem["stride"]
    (group,) = k.if_else(k.compare("eq", stride, 1), lambda: number, lambda: k.udiv(number, stride))
    inner = k.sub(number, k.mul(group, stride))
    base, kept_base = (k.add(k.mul(group, k.mul(stride, problem[length])), inner) for length in ("length", "kept"))
    return base, kept_base
