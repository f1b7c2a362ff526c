"""The neutral tree that both forms of StableHLO text are read into: operations with values, attributes and regions.

Names are resolved while reading, so an operand is the `Value` itself. An operation also knows which outer values its
regions capture. Attributes are named as in the generic form, whichever form was read.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from xlapy.hlo.shape import Shape
from xlapy.support.records import Record

CONSTANTS = frozenset({"stablehlo.constant", "chlo.constant", "arith.constant"})
"""Operations whose value is copied into each region that uses it, rather than captured."""


class Symbol(Record):
    """`@name`."""

    name: str


class Opaque(Record):
    """An attribute that we skip, as tokens."""

    tokens: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join(self.tokens)


Attributes: TypeAlias = dict[str, Any]
"""By name: bool, int, float, str (strings and enumerators), `Literal`, `Symbol`, `Opaque`, a type, or tuples and
dictionaries of these. Whoever asks for one checks its kind."""


class Value:
    """A result of an operation, or an argument of a region (`definition` is None then)."""

    __slots__ = ("definition", "index", "name", "region", "type")

    def __init__(self, name: str, type: Shape, region: Region, definition: Operation | None, index: int) -> None:
        self.name = name
        self.type = type
        self.region = region
        self.definition = definition
        self.index = index

    @property
    def is_constant(self) -> bool:
        return self.definition is not None and self.definition.name in CONSTANTS


class Region:
    """Arguments and operations; the last operation is the terminator."""

    __slots__ = ("arguments", "operations")

    def __init__(self) -> None:
        self.arguments: list[Value] = []
        self.operations: list[Operation] = []


class Template:
    """What operations have in common whose texts differ only in the names of values: all but values and place."""

    __slots__ = ("attributes", "name", "operand_types", "regions", "result_types")

    def __init__(self, operation: Operation) -> None:
        self.name = operation.name
        self.attributes = operation.attributes
        self.regions = operation.regions
        self.operand_types = [value.type for value in operation.operands]
        self.result_types = operation.result_types


class Operation:
    """One operation. `place` is the index of its first token, `location` the tokens of its `loc(...)`.

    Operations of one template share attributes and regions: nobody changes these."""

    __slots__ = (
        "attributes",
        "captures",
        "location",
        "name",
        "operands",
        "place",
        "regions",
        "result_types",
        "results",
        "template",
    )

    def __init__(self, name: str, place: int) -> None:
        self.name = name
        self.place = place
        self.operands: list[Value] = []
        self.attributes: Attributes = {}
        self.regions: list[Region] = []
        self.result_types: tuple[Shape, ...] = ()
        self.results: list[Value] = []
        self.captures: dict[Value, None] = {}
        self.location: tuple[str, ...] = ()
        self.template: Template | None = None

    @property
    def mnemonic(self) -> str:
        """The name without its dialect."""
        return self.name.partition(".")[2]


def dissolve(top: Operation) -> None:
    """Takes a tree apart that nobody needs any more: without cycles it is gone at once, and costs no collection."""
    stack = [top]
    while stack:
        operation = stack.pop()
        for region in operation.regions:
            stack += region.operations
            region.operations = []
        operation.results = []
