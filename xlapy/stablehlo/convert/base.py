"""What the converters of operations share: the computation being filled, the registry, and access to attributes.

A converter gets the body and the operation, adds instructions, and returns what stands for the results: one instruction
for one result, a tuple-shaped one for several. Its errors need no place: the caller adds it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from xlapy.hlo.attributes import OpMetadata
from xlapy.hlo.graph import NO_METADATA, Computation, Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.shape import Shape
from xlapy.stablehlo.locations import Locations
from xlapy.stablehlo.quantization import QuantizedConstant, storage_shape
from xlapy.stablehlo.tree import Operation, Region, Symbol, Value
from xlapy.stablehlo.types import type_text
from xlapy.support.errors import InternalError, ParseError, ShapeError, UnsupportedError
from xlapy.support.records import Record
from xlapy.support.registry import Registry
from xlapy.support.wording import excerpt

Kind = TypeVar("Kind")


class Body:
    """A computation being filled from a region. Values of the text become instructions when they are used."""

    def __init__(
        self,
        name: str,
        functions: Mapping[str, Computation],
        locations: Locations,
        computation: Computation | None = None,
    ) -> None:
        self.computation = computation if computation is not None else Computation(name)
        self.functions = functions
        self.metadata: OpMetadata = NO_METADATA
        self._locations = locations
        self.called: Sequence[Computation] = ()
        self._instructions: dict[Value, Instruction] = {}
        self._elements: dict[Value, tuple[Instruction, int]] = {}

    def add(
        self,
        opcode: str,
        *operands: Instruction,
        called: Sequence[Computation] = (),
        shape: Shape | None = None,
        **attributes: Any,
    ) -> Instruction:
        """Adds an instruction, at the place in the user's program where the present operation is."""
        return self.computation.add(opcode, operands, called=called, shape=shape, metadata=self.metadata, **attributes)

    def add_like(
        self, example: Instruction, operands: Sequence[Instruction], called: Sequence[Computation]
    ) -> Instruction:
        """Adds what `example` is, on other operands of the same shapes, with others like its computations.

        The rules, which see only shapes and attributes, have passed it."""
        spec = example.spec
        attributes = dict(example.attributes)
        copy = self.computation.add_unchecked(spec, example.shape, operands, attributes, called, "", self.metadata)
        if example.extra:
            copy.extra = dict(example.extra)
        return copy

    def constant(self, value: Any, element_type: Any) -> Instruction:
        """A scalar constant."""
        return self.add("constant", literal=Literal(value, Shape.scalar(element_type)))

    def full(self, value: Any, like: Shape) -> Instruction:
        """A constant of the shape of `like` with one value everywhere."""
        scalar = self.constant(value, like.type)
        return scalar if like.is_scalar else self.add("broadcast", scalar, shape=like, dimensions=())

    def splat(self, scalar: Instruction, shape: Shape) -> Instruction:
        return self.add("broadcast", scalar, shape=shape, dimensions=())

    def tuple(self, instructions: Sequence[Instruction]) -> Instruction:
        return self.add("tuple", *instructions)

    def pack(self, instructions: Sequence[Instruction]) -> Instruction:
        """One instruction for any number: itself, or the tuple of them."""
        return instructions[0] if len(instructions) == 1 else self.tuple(instructions)

    def operands(self, operation: Operation) -> list[Instruction]:
        return [self.value(operand) for operand in operation.operands]

    def value(self, value: Value) -> Instruction:
        """The instruction for a value. Elements of tuples are taken, and outer constants copied, at their first use."""
        known = self._instructions.get(value)
        if known is not None:
            return known
        if value in self._elements:
            whole, index = self._elements[value]
            found = self.add("get-tuple-element", whole, index=index)
        elif value.is_constant and value.definition is not None:
            found = self._copied_constant(value.definition)
        else:
            raise InternalError(f"a value of type {value.type} was not captured")
        self._instructions[value] = found
        return found

    def _copied_constant(self, definition: Operation) -> Instruction:
        literal = constant_literal(definition)
        metadata = self._locations.metadata(definition.location)
        return self.computation.add("constant", metadata=metadata, literal=literal)

    def at(self, operation: Operation) -> None:
        """What is added from now on stands for `operation`."""
        self.metadata = self._locations.metadata(operation.location)

    def set_value(self, value: Value, instruction: Instruction) -> None:
        self._instructions[value] = instruction

    def set_elements(self, values: Sequence[Value], whole: Instruction) -> None:
        """The values are the elements of a tuple, from its first."""
        for index, value in enumerate(values):
            self._elements[value] = (whole, index)

    def set_parameters(self, arguments: Sequence[Value]) -> None:
        """One parameter for each argument."""
        for number, argument in enumerate(arguments):
            name = argument.name.strip("%") or f"arg{number}"
            shape = storage_shape(argument.type)
            self.set_value(argument, self.computation.add("parameter", number=number, shape=shape, name=name))

    def set_packed_parameter(self, values: Sequence[Value]) -> None:
        """One parameter, the tuple of all values."""
        shape = Shape.tuple([storage_shape(value.type) for value in values])
        self.set_elements(values, self.computation.add("parameter", number=0, shape=shape, name="state"))


class Elements(Record):
    """The results are the first elements of a tuple, of which there may be more, or only one."""

    whole: Instruction


Converter = Callable[[Body, Operation], Instruction | Elements]


class RegionKind(Record):
    """How the regions of an operation become computations: what their parameters are, and what they return."""

    parameters: Callable[[Operation, Region, Body], None]
    root: Callable[[Operation, Region, Body], Instruction]


class Conversion(Record):
    """How an operation becomes instructions: by its attributes and types alone, or `by_value` of operands too."""

    convert: Converter
    regions: RegionKind
    by_value: bool


def _flat_parameters(operation: Operation, region: Region, body: Body) -> None:
    """One for each argument of the region, which cannot capture anything."""
    if operation.captures:
        types = ", ".join(type_text(value.type) for value in operation.captures)
        raise UnsupportedError(f"a region of {operation.name} uses values from outside, of type {types}")
    body.set_parameters(region.arguments)


def packed_parameters(operation: Operation, region: Region, body: Body) -> None:
    """One tuple, of the arguments of the region and of all that the regions of the operation capture."""
    body.set_packed_parameter([*region.arguments, *operation.captures])


def packed_root(operation: Operation, region: Region, body: Body) -> Instruction:
    """The returned value, or the tuple of several."""
    return body.pack([body.value(value) for value in region.operations[-1].operands])


FLAT = RegionKind(_flat_parameters, packed_root)

CONVERSIONS: Registry[Conversion] = Registry("conversion from StableHLO")
"""By name of the operation in StableHLO."""


def converts(*names: str, regions: RegionKind = FLAT, by_value: bool = False) -> Callable[[Converter], Converter]:
    """Decorator: registers the converter of the operations `names`. `by_value` if it looks at what operands are."""

    def register(convert: Converter) -> Converter:
        for name in names:
            CONVERSIONS.add(name, Conversion(convert, regions, by_value))
        return convert

    return register


def composed(operation: Operation) -> Operation | None:
    """The operation of CHLO's that a composite stands for, of those that have a conversion; else None.

    Portable artifacts have no CHLO: its operations are in them as composites of their names, beside what they mean in
    other operations."""
    name = operation.attributes.get("name")
    if operation.name != "stablehlo.composite" or not isinstance(name, str) or not name.startswith("chlo."):
        return None
    conversion = CONVERSIONS.get(name)
    if conversion is None or conversion.by_value or conversion.regions is not FLAT:
        return None
    whole = Operation(name, operation.place)
    whole.operands, whole.results = operation.operands, operation.results
    whole.result_types, whole.location = operation.result_types, operation.location
    whole.attributes = attribute(operation, "composite_attributes", dict, {})
    return whole


# -- attributes --------------------------------------------------------------------------------------------------------


def attribute(operation: Operation, name: str, kind: type[Kind], default: Kind | None = None) -> Kind:
    """The attribute `name`, which must be of `kind`, or the default where it is absent and there is one."""
    value = operation.attributes.get(name, default)
    if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
        if isinstance(value, int):
            _check_bits(operation, name, value)
        return value
    what = _KINDS.get(kind, kind.__name__)
    problem = "is missing" if value is None else "is something else"
    raise ParseError(f"{operation.name} needs the attribute `{name}`, {what}, which {problem}")


_KINDS: dict[type, str] = {
    int: "an integer",
    bool: "a boolean",
    str: "a string or enumerator",
    dict: "a set of fields",
    Symbol: "a symbol",
    Literal: "a constant",
}


def constant_literal(operation: Operation) -> Literal:
    """The value of a constant: of a quantized one the integers in storage, which may be stated as just these."""
    value = operation.attributes.get("value")
    if isinstance(value, QuantizedConstant):
        literal = value.literal
        stated: Shape = value.shape
    else:
        literal = attribute(operation, "value", Literal)
        stated = literal.shape
    for result in operation.result_types:
        if stated not in (result, storage_shape(result)):
            message = f"the value is {type_text(stated)}, but the constant is {type_text(result)}"
            raise ShapeError("constant.C1", message)
    return literal


def integers(operation: Operation, name: str, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
    """A list of integers, in any of its spellings: `array<i64: 1>`, `[1]`, `dense<1> : tensor<1xi64>`."""
    value = operation.attributes.get(name, default)
    found = _integer_list(value)
    if found is None:
        problem = "is missing" if value is None else "is something else"
        raise ParseError(f"{operation.name} needs the attribute `{name}`, a list of integers, which {problem}")
    if found:
        _check_bits(operation, name, max(found, key=abs))
    return found


def _check_bits(operation: Operation, name: str, number: int) -> None:
    """Numbers of attributes have 64 bits. Unlike those of constants, they cannot be given by the bits of another."""
    if not -_BEYOND_64_BITS <= number < _BEYOND_64_BITS:
        raise ParseError(f"{operation.name}: `{name}` has {excerpt(str(number))}, which does not fit in 64 bits")


_BEYOND_64_BITS = 1 << 63


def _integer_list(value: Any) -> tuple[int, ...] | None:
    if isinstance(value, tuple) and all(isinstance(item, int) for item in value):
        return tuple(int(item) for item in value)
    if isinstance(value, Literal) and value.array.ndim == 1 and value.array.dtype.kind in "iub":
        return tuple(int(item) for item in value.array)
    return None


def fields(operation: Operation, name: str) -> Operation:
    """The fields of a structured attribute, to be asked for as if they were attributes of their own."""
    inner = Operation(f"{operation.name} ({name})", operation.place)
    inner.attributes = attribute(operation, name, dict)
    return inner


def integer_table(operation: Operation, name: str) -> tuple[tuple[int, ...], ...]:
    """A two-dimensional constant of integers; empty where it is absent."""
    literal = operation.attributes.get(name)
    if literal is None:
        return ()
    if not isinstance(literal, Literal) or literal.array.ndim != 2 or literal.array.dtype.kind not in "iu":
        raise ParseError(f"{operation.name} needs the attribute `{name}` to be a table of integers")
    return tuple(tuple(int(item) for item in row) for row in np.asarray(literal.array))


def enumerator(operation: Operation, name: str, values: Mapping[str, Kind], default: str | None = None) -> Kind:
    """The attribute `name`, one of the enumerators `values`."""
    word = attribute(operation, name, str, default)
    if word not in values:
        raise ParseError(f"{operation.name}: `{name}` is {word!r}, but it must be one of {', '.join(values)}")
    return values[word]
