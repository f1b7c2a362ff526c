"""Operations whose sizes are operands: custom calls, until `xlapy.hlo.specialize` knows the sizes.

The target is the name of the operation, `stablehlo.dynamic_reshape`, and its attributes are the backend_config, in the
syntax of StableHLO. Once all shapes are known, `deferred` functions say which instructions they stand for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xlapy.hlo.attributes import CustomCallApiVersion
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.shape import Shape, shape_of_results
from xlapy.hlo.specialize import DYNAMIC, DynamicCall, Known
from xlapy.stablehlo.attributes import attribute_text
from xlapy.stablehlo.convert.base import Body, Converter, converts
from xlapy.stablehlo.locations import Locations
from xlapy.stablehlo.reader import read_attribute
from xlapy.stablehlo.tree import Attributes, Operation
from xlapy.support.errors import ParseError, UnsupportedError
from xlapy.support.wording import excerpt


@dataclass(frozen=True, slots=True)
class Use:
    """One use of such an operation: its attributes, its operands, and what is known of them."""

    body: Body
    operation: Operation
    operands: Sequence[Instruction]
    known: Callable[[Instruction], Known]

    @property
    def result(self) -> Shape:
        """The stated type of the first result, sizes open."""
        return self.operation.result_types[0]

    def value(self, position: int) -> Literal:
        """An operand that must be known: sizes, or amounts of padding."""
        if not -len(self.operands) <= position < len(self.operands):
            raise ParseError(f"{self.operation.name} has no operand {position}")
        position %= len(self.operands)
        value = self.known(self.operands[position])
        if isinstance(value, Literal):
            return value
        raise UnsupportedError(
            f"{self.operation.name}: operand {position} gives sizes, and depends on the values of arguments; "
            "only sizes that follow from the shapes of arguments are supported, or those of results with bounds, like "
            "tensor<?xf32, #stablehlo.bounds<8>>"
        )

    def sizes(self, position: int) -> tuple[int, ...]:
        return integers_of(self.value(position))


Replacement = Callable[[Use], Instruction]

OPERATIONS: set[str] = set()
"""Those that are operations of StableHLO; the other targets in `DYNAMIC` are custom calls there too."""


def deferred(name: str, *, operation: bool = True) -> Callable[[Replacement], Replacement]:
    """Decorator: the function gives the instructions of `name` when sizes are known."""

    def register(replacement: Replacement) -> Replacement:
        DYNAMIC.add(name, lambda call: replacement(_use(call)))
        if operation:
            OPERATIONS.add(name)
            converts(name, by_value=True)(_converter(replacement))
        return replacement

    return register


def _use(call: DynamicCall) -> Use:
    instruction = call.instruction
    operation = Operation(instruction.attributes["target"], 0)
    operation.attributes = config_attributes(instruction)
    shape = instruction.shape
    operation.result_types = shape.parts if shape.is_tuple else (shape,)
    body = Body("", {}, Locations({}), call.computation)
    body.metadata = instruction.metadata
    body.called = call.called
    return Use(body, operation, call.operands, call.known)


def _converter(replacement: Replacement) -> Converter:
    """The instructions at once where the sizes are constants of the text, else a custom call."""

    def convert(body: Body, operation: Operation) -> Instruction:
        operands = body.operands(operation)
        try:
            return replacement(Use(body, operation, operands, _literal))
        except UnsupportedError:
            return defer(body, operation.name, operation, operation.attributes, operands, ())

    return convert


def _literal(instruction: Instruction) -> Literal | None:
    if instruction.opcode != "constant" or not instruction.shape.is_array:
        return None
    literal: Literal = instruction.attributes["literal"]
    return literal


def defer(
    body: Body,
    target: str,
    operation: Operation,
    attributes: Attributes,
    operands: Sequence[Instruction],
    called: Sequence[Computation],
) -> Instruction:
    """The custom call that waits for sizes."""
    results = operation.result_types
    call = body.add(
        "custom-call",
        *operands,
        called=called,
        shape=shape_of_results(results),
        target=target,
        has_side_effect=not results,
        api_version=CustomCallApiVersion.TYPED_FFI,
    )
    if attributes:
        call.extra["backend_config"] = attribute_text(attributes)
    return call


def config_attributes(instruction: Instruction) -> Attributes:
    """The attributes that `defer` wrote down."""
    config = instruction.extra.get("backend_config", "")
    if not config:
        return {}
    attributes = read_attribute(config)
    if not isinstance(attributes, dict):
        raise ParseError(f"the backend_config of {instruction.name} is not a set of attributes: {excerpt(config)}")
    return attributes


def integers_of(literal: Literal) -> tuple[int, ...]:
    """The elements of a literal, in order. Raises ParseError if they are no integers."""
    if not literal.shape.is_array or not literal.shape.type.is_integer:
        raise ParseError(f"{literal.shape} stands where sizes are expected, which are integers")
    return tuple(int(element) for element in literal.array.reshape(-1))
