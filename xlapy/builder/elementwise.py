"""Element-wise functions: one row each, broadcasting for those of two operands, and a few small compositions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from xlapy.builder.arguments import as_int, as_ints, described
from xlapy.builder.broadcasting import broadcast_operands, expand
from xlapy.builder.builder import XlaBuilder
from xlapy.builder.op import XlaOp
from xlapy.builder.operands import Operand, as_handle, as_op, as_ops, builder_of, common_type, is_weak
from xlapy.builder.registry import op_function
from xlapy.hlo.attributes import ComparisonDirection, ComparisonType
from xlapy.hlo.element_types import PRED, ElementType, element_type_of
from xlapy.hlo.ops import OPS
from xlapy.hlo.shape import Shape
from xlapy.support.errors import ArgumentError, ShapeError

Kind = TypeVar("Kind", ComparisonDirection, ComparisonType)


class Unary(Protocol):
    def __call__(self, operand: XlaOp) -> XlaOp: ...


class Binary(Protocol):
    def __call__(self, lhs: Operand, rhs: Operand, broadcast_dimensions: Sequence[int] | None = ()) -> XlaOp: ...


def unary_function(name: str, opcode: str, *aliases: str) -> Unary:
    def function(operand: XlaOp) -> XlaOp:
        return as_handle(operand).builder.record(opcode, [operand])

    function.__name__ = function.__qualname__ = name
    function.__doc__ = OPS[opcode].doc
    return op_function(opcode, aliases=aliases)(function)


def _binary(name: str, opcode: str, *aliases: str) -> Binary:
    def function(lhs: Operand, rhs: Operand, broadcast_dimensions: Sequence[int] | None = ()) -> XlaOp:
        builder, left, right = _paired(lhs, rhs, broadcast_dimensions)
        return builder.record(opcode, (left, right))

    function.__name__ = function.__qualname__ = name
    rules = [line for line in OPS[opcode].doc.split("\n") if not line.startswith("same-dims")]  # it broadcasts
    rules[1:1] = ["", _BROADCASTING]
    function.__doc__ = "\n".join(rules)
    return op_function(opcode, aliases=aliases)(function)


_BROADCASTING = """A Python scalar takes the element type of the other operand. Scalars and dimensions of size 1 are
repeated as often as the other operand wants. Of an operand of lower rank, dimension i is dimension
`broadcast_dimensions[i]` of the other."""


def _paired(lhs: Operand, rhs: Operand, dimensions: Sequence[int] | None) -> tuple[XlaBuilder, XlaOp, XlaOp]:
    """Both operands as handles, broadcast to the dimensions of their combination."""
    builder = builder_of(lhs, rhs)
    left, right = as_ops(builder, (lhs, rhs))
    if left.shape.is_array and right.shape.is_array:
        left, right = broadcast_operands(left, right, as_ints(dimensions, "broadcast_dimensions"))
    return builder, left, right


# fmt: off
Abs              = unary_function("Abs", "abs")
Acos             = unary_function("Acos", "acos")
Acosh            = unary_function("Acosh", "acosh")
Asin             = unary_function("Asin", "asin")
Asinh            = unary_function("Asinh", "asinh")
Atan             = unary_function("Atan", "atan")
Atanh            = unary_function("Atanh", "atanh")
Cbrt             = unary_function("Cbrt", "cbrt")
Ceil             = unary_function("Ceil", "ceil")
Clz              = unary_function("Clz", "count-leading-zeros")
Copy             = unary_function("Copy", "copy")
Cos              = unary_function("Cos", "cosine")
Cosh             = unary_function("Cosh", "cosh")
Erf              = unary_function("Erf", "erf")
Exp              = unary_function("Exp", "exponential")
Expm1            = unary_function("Expm1", "exponential-minus-one")
Floor            = unary_function("Floor", "floor")
Imag             = unary_function("Imag", "imag")
IsFinite         = unary_function("IsFinite", "is-finite")
Log              = unary_function("Log", "log")
Log1p            = unary_function("Log1p", "log-plus-one")
Logistic         = unary_function("Logistic", "logistic")
Neg              = unary_function("Neg", "negate")
Not              = unary_function("Not", "not", "LogicalNot")
PopulationCount  = unary_function("PopulationCount", "popcnt")
Real             = unary_function("Real", "real")
Round            = unary_function("Round", "round-nearest-afz")
RoundNearestEven = unary_function("RoundNearestEven", "round-nearest-even")
Rsqrt            = unary_function("Rsqrt", "rsqrt")
Sign             = unary_function("Sign", "sign")
Sin              = unary_function("Sin", "sine")
Sinh             = unary_function("Sinh", "sinh")
Sqrt             = unary_function("Sqrt", "sqrt")
Tan              = unary_function("Tan", "tan")
Tanh             = unary_function("Tanh", "tanh")
LogicalNot       = Not

Add                  = _binary("Add", "add")
And                  = _binary("And", "and", "LogicalAnd")
Atan2                = _binary("Atan2", "atan2")
Complex              = _binary("Complex", "complex")
Div                  = _binary("Div", "divide")
Max                  = _binary("Max", "maximum")
Min                  = _binary("Min", "minimum")
Mul                  = _binary("Mul", "multiply")
Or                   = _binary("Or", "or", "LogicalOr")
Pow                  = _binary("Pow", "power")
Rem                  = _binary("Rem", "remainder")
ShiftLeft            = _binary("ShiftLeft", "shift-left")
ShiftRightArithmetic = _binary("ShiftRightArithmetic", "shift-right-arithmetic")
ShiftRightLogical    = _binary("ShiftRightLogical", "shift-right-logical")
Sub                  = _binary("Sub", "subtract")
Xor                  = _binary("Xor", "xor")
LogicalAnd           = And
LogicalOr            = Or
# fmt: on


# -- comparison ----------------------------------------------------------------------------------------------------


@op_function("compare")
def Compare(
    lhs: Operand,
    rhs: Operand,
    direction: ComparisonDirection | str,
    compare_type: ComparisonType | str | None = None,
    broadcast_dimensions: Sequence[int] | None = (),
) -> XlaOp:
    """Compares element by element; the result is pred. Operands are broadcast as those of Add.

    `direction` is EQ, NE, GE, GT, LE or LT. `compare_type` is FLOAT or TOTALORDER for floats, SIGNED or UNSIGNED for
    integers; without one, it follows from the element type."""
    builder, left, right = _paired(lhs, rhs, broadcast_dimensions)
    chosen = _named(ComparisonDirection, direction)
    kind = _named(ComparisonType, compare_type) if compare_type is not None else None
    return builder.record("compare", (left, right), direction=chosen, type=kind)


def _named(kind: type[Kind], name: object) -> Kind:
    """An enumerator from itself or its name, in any case."""
    try:
        return kind(str(name).upper())
    except ValueError:
        raise ArgumentError(f"expected one of {', '.join(kind.__members__)}, got {described(name)}") from None


def _comparison(name: str, direction: ComparisonDirection, *, total: bool = False) -> Binary:
    def function(lhs: Operand, rhs: Operand, broadcast_dimensions: Sequence[int] | None = ()) -> XlaOp:
        builder, left, right = _paired(lhs, rhs, broadcast_dimensions)
        ordered = total and left.shape.is_array and left.shape.type.is_float
        kind = ComparisonType.TOTALORDER if ordered else None  # all orders of integers are total
        return builder.record("compare", (left, right), direction=direction, type=kind)

    function.__name__ = function.__qualname__ = name
    order = " in the total order of floats, -NaN < -inf < ... < -0 < +0 < ... < +NaN" if total else ""
    summary = f"Compares element by element for {direction}{order}; the result is pred."
    function.__doc__ = f"{summary} Operands are broadcast as those of Add."
    return op_function()(function)


Eq = _comparison("Eq", ComparisonDirection.EQ)
Ne = _comparison("Ne", ComparisonDirection.NE)
Ge = _comparison("Ge", ComparisonDirection.GE)
Gt = _comparison("Gt", ComparisonDirection.GT)
Le = _comparison("Le", ComparisonDirection.LE)
Lt = _comparison("Lt", ComparisonDirection.LT)
EqTotalOrder = _comparison("EqTotalOrder", ComparisonDirection.EQ, total=True)
NeTotalOrder = _comparison("NeTotalOrder", ComparisonDirection.NE, total=True)
GeTotalOrder = _comparison("GeTotalOrder", ComparisonDirection.GE, total=True)
GtTotalOrder = _comparison("GtTotalOrder", ComparisonDirection.GT, total=True)
LeTotalOrder = _comparison("LeTotalOrder", ComparisonDirection.LE, total=True)
LtTotalOrder = _comparison("LtTotalOrder", ComparisonDirection.LT, total=True)


# -- choice --------------------------------------------------------------------------------------------------------


@op_function("select")
def Select(pred: Operand, on_true: Operand, on_false: Operand) -> XlaOp:
    """`on_true` where `pred` holds, else `on_false`. A scalar `pred` chooses a whole side, which may be a tuple.

    Python scalars are splatted to the dimensions of the other side, or of `pred`; nothing else is broadcast."""
    builder = builder_of(pred, on_true, on_false)
    condition = as_op(builder, pred)
    sides = as_ops(builder, (on_true, on_false))
    if any(side.shape.is_tuple for side in sides):
        return _select_tuple(builder, condition, *sides)
    strong = [side.shape for side, given in zip(sides, (on_true, on_false), strict=True) if not is_weak(given)]
    wanted = strong[0] if strong else condition.shape
    chosen = [
        expand(side, wanted.dims, ()) if is_weak(given) and wanted.is_array else side
        for side, given in zip(sides, (on_true, on_false), strict=True)
    ]
    return builder.record("select", (condition, *chosen))


def _select_tuple(builder: XlaBuilder, pred: XlaOp, on_true: XlaOp, on_false: XlaOp) -> XlaOp:
    """Element by element: HLO has no select of tuples."""
    selects = pred.shape.is_scalar and pred.shape.element_type is PRED
    if not selects or not on_true.shape.matches(on_false.shape):
        raise ShapeError(
            "Select.B3",
            f"{pred.shape} cannot choose between {on_true.shape} and {on_false.shape}: tuples of one shape take pred[]",
        )
    elements = zip(on_true, on_false, strict=True)
    return builder.record("tuple", [Select(pred, if_true, if_false) for if_true, if_false in elements])


@op_function("clamp")
def Clamp(min: Operand, operand: Operand, max: Operand) -> XlaOp:
    """min(max(min, operand), max); a bound is a scalar or has the dimensions of the operand."""
    builder = builder_of(min, operand, max)
    like = common_type((operand, min, max))
    return builder.record("clamp", [as_op(builder, value, like) for value in (min, operand, max)])


# -- conversion ----------------------------------------------------------------------------------------------------


@op_function("convert")
def ConvertElementType(operand: XlaOp, new_element_type: Any) -> XlaOp:
    """The same values in another element type: floats truncate and saturate to integers, integers wrap."""
    builder = as_handle(operand).builder
    shape = _retyped(operand.shape, element_type_of(new_element_type))
    return builder.record("convert", [operand], shape=shape)


def _retyped(shape: Shape, element_type: ElementType) -> Shape:
    """What the result would be; of a tuple or token nothing sensible, which the shape rule will say."""
    return shape.with_type(element_type).with_layout(None) if shape.is_array else Shape.scalar(element_type)


@op_function("bitcast-convert")
def BitcastConvertType(operand: XlaOp, new_element_type: Any) -> XlaOp:
    """The bits of the elements read as another type; a narrower one adds a last dimension, a wider one consumes it."""
    builder = as_handle(operand).builder
    element_type = element_type_of(new_element_type)
    shape = _retyped(operand.shape, element_type)
    old_bits = operand.shape.type.bits if operand.shape.is_array else element_type.bits
    if old_bits > element_type.bits:
        flags = (*operand.shape.dynamic, False) if operand.shape.dynamic else ()
        shape = shape.with_dims((*operand.shape.dims, old_bits // element_type.bits), flags)
    elif old_bits < element_type.bits and operand.shape.rank:
        shape = shape.without(operand.shape.rank - 1)
    return builder.record("bitcast-convert", [operand], shape=shape)


@op_function("reduce-precision")
def ReducePrecision(
    operand: XlaOp, *positional: int, exponent_bits: int | None = None, mantissa_bits: int | None = None
) -> XlaOp:
    """Rounds to a float format of so many bits, and back. The bits are keyword-only: specifications differ in order."""
    if positional or exponent_bits is None or mantissa_bits is None:
        raise ArgumentError(
            "give the bits by name, as the order differs by source: exponent_bits=..., mantissa_bits=..."
        )
    return as_handle(operand).builder.record(
        "reduce-precision",
        [operand],
        exponent_bits=as_int(exponent_bits, "exponent_bits"),
        mantissa_bits=as_int(mantissa_bits, "mantissa_bits"),
    )


# -- compositions --------------------------------------------------------------------------------------------------


@op_function()
def Square(operand: XlaOp) -> XlaOp:
    """operand * operand."""
    return Mul(operand, operand)


@op_function()
def Reciprocal(operand: XlaOp) -> XlaOp:
    """1 / operand."""
    return Div(1, operand)


@op_function()
def Conj(operand: XlaOp) -> XlaOp:
    """The complex conjugate; a real number is its own."""
    builder = as_handle(operand).builder
    if operand.shape.is_array and not operand.shape.type.is_complex:
        return builder.own(operand)
    return Complex(Real(operand), Neg(Imag(operand)))
