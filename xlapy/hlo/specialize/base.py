"""What is known of a program before it runs, and a computation while it is copied."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import NoReturn, TypeAlias

from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.shape import Shape
from xlapy.support.errors import UnsupportedError
from xlapy.support.records import Record
from xlapy.support.registry import Registry

Known: TypeAlias = "Literal | tuple[Known, ...] | None"
"""What is known of a value before the program runs: all of it, something of a tuple, or nothing."""

MAX_KNOWN = 4096
"""Elements of a value that is worth knowing: sizes are few."""


class Request(Record):
    """A copy of `computation` for parameters of these shapes, of which so much is known."""

    computation: Computation
    shapes: tuple[Shape, ...]
    known: tuple[Known, ...]


class Specialized(Record):
    """A copy, and what is known of its result."""

    computation: Computation
    known: Known


class DynamicCall(Record):
    """A custom call for an operation that takes sizes as operands: what replaces it goes into `computation`."""

    computation: Computation
    instruction: Instruction
    operands: Sequence[Instruction]
    known: Callable[[Instruction], Known]
    called: Sequence[Computation]


DYNAMIC: Registry[Callable[[DynamicCall], Instruction]] = Registry("operations with sizes as operands")
"""By target of the custom call. Filled by the packages that read such operations, which stand above this one."""

Steps: TypeAlias = Generator[Request, Specialized, Instruction]


def is_dynamic_call(instruction: Instruction) -> bool:
    return instruction.opcode == "custom-call" and instruction.attributes["target"] in DYNAMIC


class Copy:
    """A computation as it is copied."""

    def __init__(self, request: Request, name: str) -> None:
        self.request = request
        self.computation = Computation(name)
        self.copies: dict[Instruction, Instruction] = {}
        self.known: dict[Instruction, Known] = {}

    def knowledge(self, instruction: Instruction) -> Known:
        return self.known.get(instruction)

    def add(
        self, instruction: Instruction, *, called: Sequence[Computation] = (), shape: Shape | None = None
    ) -> Instruction:
        """Adds an instruction like one of the original: its shape is inferred, or the given one."""
        operands = [self.copies[operand] for operand in instruction.operands]
        return self.computation.add_like(instruction, operands, called, shape)

    def constant(self, instruction: Instruction, literal: Literal) -> Instruction:
        copy = self.computation.add("constant", name=instruction.name, metadata=instruction.metadata, literal=literal)
        self.known[copy] = literal
        return copy


def refuse_undetermined(instruction: Instruction) -> NoReturn:
    raise UnsupportedError(f"{instruction.opcode}: nothing tells the sizes that {instruction.shape} leaves open")
