"""Steps of random programs that call targets: with arrays in tuples or not, in layouts that the target demands or not,
in the memory of an operand or not, for Python and for C.

What a target returns hangs on every bit that it is given, so that no wrong operand stays unseen.
"""

from __future__ import annotations

import ctypes
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from tests.e2e.random_programs import Generator, Program, Scope, random_program, random_shape
from tests.e2e.random_structures import STEPS, lay_out, random_layout
from tests.support.values import random_array
from xlapy.hlo.attributes import OutputOperandAlias
from xlapy.hlo.evaluate.numerics import to_bits
from xlapy.hlo.graph import Instruction
from xlapy.hlo.shape import Layout, Shape
from xlapy_runtime.custom_calls import Borrowing, Filling

Array = np.ndarray[Any, Any]
Pointers = ctypes.POINTER(ctypes.c_void_p)
CTarget = ctypes.CFUNCTYPE(None, ctypes.c_void_p, Pointers)
MOST_OPERANDS = 3


# -- targets -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a call: `operands` are its arrays, in the layouts that it demands."""

    call: Instruction
    operands: Sequence[Shape]

    @property
    def name(self) -> str:
        return str(self.call.attributes["target"])

    @property
    def results(self) -> Sequence[Shape]:
        """The arrays of the result, in layouts that may be chosen after the program was written."""
        return self.call.shape.leaves()

    def answer(self, *operands: Array) -> Any:
        """Arrays in the tuples of the result."""
        answers = iter(self.arrays(operands))
        return _nested(self.call.shape, lambda: next(answers))

    def fill(self, operands: Sequence[Array], results: Sequence[Array]) -> None:
        for place, array in zip(results, self.arrays(operands), strict=True):
            place[...] = array

    def arrays(self, operands: Sequence[Array]) -> list[Array]:
        """Numbers that depend on the name of the target and all operands; one NaN is as good as another."""
        assert [(a.shape, a.dtype) for a in operands] == [(s.dims, s.type.dtype) for s in self.operands], self.name
        known = zlib.crc32(self.name.encode())
        for array in operands:
            numbers = (array.real, array.imag) if array.dtype.kind == "c" else (array,)
            for part in numbers:
                known = zlib.crc32(np.where(part != part, 1, to_bits(part)).tobytes(), known)
        random = np.random.default_rng(known)
        return [random_array(random, shape.type, shape.dims) for shape in self.results]

    def in_c(self) -> Any:
        """What C calls: `void target(void* out, void** in)`, where `out` is a table if the result is a tuple."""

        def call(out: int, operands: Any) -> None:
            table = ctypes.cast(out, Pointers) if self.call.shape.is_tuple else [out]
            values = [_in_memory(operands[i], shape) for i, shape in enumerate(self.operands)]
            answers = self.arrays([value.copy() for value in values])
            for i, (shape, answer) in enumerate(zip(self.results, answers, strict=True)):
                _in_memory(table[i], shape)[...] = answer

        return CTarget(call)


def _nested(shape: Shape, take: Callable[[], Any]) -> Any:
    return tuple(_nested(part, take) for part in shape.parts) if shape.is_tuple else take()


def _in_memory(address: int | None, shape: Shape) -> Array:
    """The array of a shape, whose layout says how it lies there."""
    if not shape.size:
        return np.empty(shape.dims, shape.type.dtype)
    assert address
    major_to_minor = (shape.layout or Layout.row_major(shape.rank)).minor_to_major[::-1]
    memory = (ctypes.c_char * shape.bytes).from_address(address)
    stored = np.frombuffer(memory, shape.type.dtype).reshape([shape.dims[dim] for dim in major_to_minor])
    return stored.transpose([major_to_minor.index(dim) for dim in range(shape.rank)])


# -- steps -------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Targets:
    """The targets of a program: as Python functions for the evaluator, and as what native code calls."""

    evaluated: dict[str, Any] = field(default_factory=dict)
    called: dict[str, Any] = field(default_factory=dict)

    def add(self, target: Target, kind: int) -> None:
        self.evaluated[target.name] = target.answer
        kinds = (target.answer, Borrowing(target.answer), Filling(target.fill), target.in_c())
        self.called[target.name] = kinds[kind]


def custom_call(targets: Targets, g: Generator) -> Instruction | None:
    if g.scalars_only:
        return None
    operands = [_operand(g) for _ in range(g.number(0, MOST_OPERANDS))]
    places = [(number, *found) for number, operand in enumerate(operands) for found in _arrays(operand.shape, ())]
    result, aliases = _result(g, places)
    demands = g.chance(0.4)
    constraints = tuple(_demanded(g, operand.shape) for operand in operands) if demands else None
    if demands:
        result = _demanded(g, result)
    name = f"target_{len(targets.called)}"
    arrays = [
        leaf
        for shape in constraints or [operand.shape.without_layout() for operand in operands]
        for leaf in shape.leaves()
    ]
    called = g.add(
        "custom-call",
        *operands,
        target=name,
        has_side_effect=g.chance(0.3),
        operand_layout_constraints=constraints,
        output_to_operand_aliasing=aliases,
        shape=result,
    )
    targets.add(Target(called, arrays), g.number(0, 3))
    return _unpacked(g, called)


def _operand(g: Generator, depth: int = 0) -> Instruction:
    if depth < 2 and g.chance(0.2):
        return g.add("tuple", *(_operand(g, depth + 1) for _ in range(g.number(0, 3))))
    return g.value()


def _arrays(shape: Shape, path: tuple[int, ...]) -> list[tuple[tuple[int, ...], Shape]]:
    if shape.is_tuple:
        return [found for number, part in enumerate(shape.parts) for found in _arrays(part, (*path, number))]
    return [(path, shape)]


def _result(g: Generator, places: list[Any]) -> tuple[Shape, tuple[OutputOperandAlias, ...]]:
    """The shape of a result, and which of its arrays live in operands."""
    aliases: dict[int, OutputOperandAlias] = {}
    parts: list[Shape] = []
    is_tuple = g.chance(0.5)
    for number in range(g.number(0, 3) if is_tuple else 1):
        if places and g.chance(0.4):
            operand, path, shape = places.pop(g.number(0, len(places) - 1))
            aliases[number] = OutputOperandAlias((number,) if is_tuple else (), operand, path)
            parts.append(shape.without_layout())
        else:
            parts.append(random_shape(g))
    return Shape.tuple(parts) if is_tuple else parts[0], tuple(aliases.values())


def _demanded(g: Generator, shape: Shape) -> Shape:
    if shape.is_tuple:
        return Shape.tuple([_demanded(g, part) for part in shape.parts])
    return random_layout(g, shape)


def _unpacked(g: Generator, value: Instruction) -> Instruction | None:
    if not value.shape.is_tuple:
        return value
    for number in range(len(value.shape.parts)):
        g.values.append(g.add("get-tuple-element", value, index=number))
    return None


def random_calls(seed: int, steps: int) -> tuple[Program, Targets]:
    """A program of steps of all kinds, calls among them."""
    targets = Targets()
    step = partial(custom_call, targets)
    program = random_program(seed, steps, Scope(steps=(*STEPS, *[step] * 12)))
    lay_out(program.module, np.random.default_rng(seed + 1))
    return program, targets
