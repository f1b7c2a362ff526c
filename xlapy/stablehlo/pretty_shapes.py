"""The pretty form of the dialects arith, tensor and shape: arithmetic on sizes, as dynamic programs have it."""

from __future__ import annotations

from xlapy.hlo.element_types import PRED, S64
from xlapy.hlo.shape import Shape
from xlapy.stablehlo.constants import scalar_literal
from xlapy.stablehlo.parser import Parser, PrettyForm, Steps
from xlapy.stablehlo.pretty import constant, return_, some_attributes, word
from xlapy.stablehlo.tree import Operation


def _constant(parser: Parser, operation: Operation) -> None:
    """`arith.constant 4 : index`, `arith.constant true`, or like that of StableHLO"""
    some_attributes(parser, operation)
    if parser.texts[parser.index].startswith("dense"):
        constant(parser, operation)
        return
    value = parser.attribute()
    shape = parser.value_type() if parser.accept(":") else Shape.scalar(PRED)
    if not isinstance(value, (bool, int, float)) or not shape.is_scalar:
        parser.fail("expected a number", operation.place)
    operation.attributes["value"] = parser.placed(scalar_literal, value, shape)
    operation.result_types = (shape,)


def _cast(parser: Parser, operation: Operation) -> None:
    """`index_cast %a : index to i32`"""
    operation.operands.append(parser.use())
    some_attributes(parser, operation)
    parser.expect(":")
    place = parser.index
    parser.check_operands(operation, (parser.value_type(),), place)
    parser.expect("to")
    operation.result_types = (parser.value_type(),)


def _arithmetic(parser: Parser, operation: Operation) -> None:
    """`addi %a, %b : index`; `cmpi slt, %a, %b : index`; `select %p, %a, %b : index`"""
    if operation.name == "arith.cmpi":
        operation.attributes["predicate"] = word(parser, "a predicate: eq, ne, slt, sle, sgt or sge")
        parser.expect(",")
    operation.operands.append(parser.use())
    while parser.accept(","):
        operation.operands.append(parser.use())
    some_attributes(parser, operation)
    parser.expect(":")
    place = parser.index
    type = parser.value_type()
    count = len(operation.operands)
    first = (Shape.scalar(PRED),) if operation.name == "arith.select" else (type,)
    parser.check_operands(operation, (*first, *(type,) * (count - 1)), place)
    operation.result_types = (type.with_type(PRED) if operation.name == "arith.cmpi" and type.is_array else type,)


def _dim(parser: Parser, operation: Operation) -> None:
    """`tensor.dim %a, %c0 : tensor<?xf32>`"""
    operation.operands.append(parser.use())
    parser.expect(",")
    operation.operands.append(parser.use())
    _first_type(parser, operation)
    operation.result_types = (Shape.scalar(S64),)


def _first_type(parser: Parser, operation: Operation) -> Shape:
    """The only type that is stated is that of the first operand."""
    parser.expect(":")
    place = parser.index
    type = parser.value_type()
    others = (operand.type for operand in operation.operands[1:])
    parser.check_operands(operation, (type, *others), place)
    return type


def _extract(parser: Parser, operation: Operation) -> None:
    """`tensor.extract %a[%i, %j] : tensor<?x?xi32>`"""
    operation.operands.append(parser.use())
    parser.expect("[")
    operation.operands += parser.listed(parser.use, "]")
    type = _first_type(parser, operation)
    if not type.is_array:
        parser.fail("expected the type of an array", parser.index - 1)
    operation.result_types = (Shape.scalar(type.type),)


def _from_elements(parser: Parser, operation: Operation) -> None:
    """`tensor.from_elements %a, %b : tensor<2xindex>`"""
    while parser.texts[parser.index][:1] == "%":
        operation.operands.append(parser.use())
        if not parser.accept(","):
            break
    parser.expect(":")
    operation.result_types = (parser.value_type(),)


def _const_shape(parser: Parser, operation: Operation) -> None:
    """`shape.const_shape [1, 2] : tensor<2xindex>`"""
    operation.attributes["shape"] = parser.integers()
    parser.expect(":")
    operation.result_types = (parser.value_type(),)


def _witness(parser: Parser, operation: Operation) -> None:
    """`shape.cstr_broadcastable %a, %b : tensor<?xindex>, tensor<?xindex>`; the types may be missing"""
    while parser.texts[parser.index][:1] in ("%", '"') or parser.texts[parser.index] in ("true", "false", ","):
        if parser.texts[parser.index][:1] == "%":
            operation.operands.append(parser.use())
        else:
            parser.index += 1
    if parser.accept(":"):
        parser.value_type()
        while parser.accept(","):
            parser.value_type()
    operation.result_types = (Shape.scalar(PRED),)


def _assuming(parser: Parser, operation: Operation) -> Steps:
    """`shape.assuming %w -> (types) { ... shape.assuming_yield %a : type }`"""
    operation.operands.append(parser.use())
    if parser.accept("->"):
        operation.result_types = parser.result_types()
    yield parser.open_region(operation)


_CASTS = ("arith.index_cast", "arith.extsi", "arith.trunci", "arith.sitofp", "arith.fptosi", "tensor.cast")
_ARITHMETIC = (
    *("addi", "subi", "muli", "divsi", "remsi", "maxsi", "minsi", "andi", "ori", "xori", "cmpi", "select"),
    *("addf", "subf", "mulf", "divf", "remf", "maximumf", "minimumf"),
)

SHAPE_FORMS: dict[str, PrettyForm] = {
    "arith.constant": _constant,
    **dict.fromkeys(_CASTS, _cast),
    **{f"arith.{name}": _arithmetic for name in _ARITHMETIC},
    "tensor.dim": _dim,
    "tensor.extract": _extract,
    "tensor.from_elements": _from_elements,
    "tensor.splat": _from_elements,
    "shape.const_shape": _const_shape,
    **dict.fromkeys(("shape.cstr_broadcastable", "shape.cstr_eq", "shape.cstr_require"), _witness),
    **dict.fromkeys(("shape.const_witness", "shape.assuming_all"), _witness),
    "shape.assuming": _assuming,
    "shape.assuming_yield": return_,
}
