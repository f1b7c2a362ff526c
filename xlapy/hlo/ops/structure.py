"""Structure: parameters, constants, tuples, tokens, barriers; and `fusion`, the passes' own box around a kernel."""

from __future__ import annotations

from xlapy.hlo.attributes import FusionKind, OutputOperandAlias
from xlapy.hlo.element_types import NUMERIC, S32
from xlapy.hlo.literal import Literal
from xlapy.hlo.ops.checks import check_dimension, require_array
from xlapy.hlo.ops.spec import INDEX_MAP, PURE, ResultShape, StatedResult, Trait, Variadic, op
from xlapy.hlo.shape import TOKEN, Shape, Signature
from xlapy.support.errors import ShapeError

STRUCTURE = PURE | {Trait.STRUCTURE}


@op("parameter", traits=STRUCTURE, hlo_text={"number": "()"})
def parameter(*, number: int, result: ResultShape) -> Shape:
    """Input `number` of the computation.

    number: the number is not negative.
    """
    if number < 0:
        raise ShapeError("number", f"{number} is not a parameter number")
    return result


@op("constant", traits=STRUCTURE, hlo_text={"literal": "()"})
def constant(*, literal: Literal) -> Shape:
    """A literal value."""
    return literal.shape.without_layout()


@op("iota", traits=PURE, hlo_text={"dimension": "iota_dimension"})
def iota(*, dimension: int, result: ResultShape) -> Shape:
    """0, 1, 2 ... along `dimension`, constant along the others.

    array-result: the result is an array.
    dimension-in-range [B1 C1]: `dimension` is a dimension of the result.
    element-type: the elements are numbers.
    """
    if not result.is_array:
        raise ShapeError("array-result", f"{result} is not an array")
    check_dimension(result, dimension)
    if result.element_type not in NUMERIC:
        raise ShapeError("element-type", f"elements of type {result.type} cannot count")
    return result.without_layout()


@op("tuple", traits=STRUCTURE)
def tuple_(elements: Variadic) -> Shape:
    """A tuple of its operands."""
    return Shape.tuple([*elements])


@op("get-tuple-element", traits=STRUCTURE)
def get_tuple_element(operand: Shape, *, index: int) -> Shape:
    """Element `index` of a tuple.

    tuple-operand: the operand is a tuple.
    index-in-range [B1 C1]: `index` is an element of the tuple.
    """
    if not operand.is_tuple:
        raise ShapeError("tuple-operand", f"{operand} is not a tuple")
    if not 0 <= index < len(operand.parts):
        raise ShapeError("index-in-range", f"element {index} is outside {operand}, which has {len(operand.parts)}")
    return operand.parts[index]


@op("after-all", traits=STRUCTURE)
def after_all(tokens: Variadic) -> Shape:
    """A token that waits for all its operands; without operands, a fresh token.

    token-operands [B1]: every operand is a token.
    """
    for token in tokens:
        if not token.is_token:
            raise ShapeError("token-operands", f"{token} is not a token")
    return TOKEN


@op("add-dependency", traits=STRUCTURE)
def add_dependency(operand: Shape, token: Shape) -> Shape:
    """The operand, available only after `token`.

    token-operands: the second operand is a token.
    """
    if not token.is_token:
        raise ShapeError("token-operands", f"{token} is not a token")
    return operand


@op("opt-barrier", traits={Trait.STRUCTURE}, title="OptimizationBarrier")
def opt_barrier(operand: Shape) -> Shape:
    """The operand. No pass moves computation across it."""
    return operand


@op("fusion", traits=PURE, hlo_text={"computation": "calls"})
def fusion(
    operands: Variadic,
    *,
    computation: Signature,
    kind: FusionKind,
    output_to_operand_aliasing: tuple[OutputOperandAlias, ...] = (),
) -> Shape:
    """The operations of `computation` as one kernel.

    parameters: the operands have the shapes of the computation's parameters.
    """
    check_arguments("parameters", operands, computation)
    return computation.result.without_layout()


@op("bitcast", traits=INDEX_MAP)
def bitcast(operand: Shape, *, result: ResultShape) -> Shape:
    """The same bytes under another shape and layout.

    An element that is narrower than a byte is the low bits of one whose other bits are zero.

    array-operands: operand and result are arrays.
    same-bytes: operand and result take the same number of bytes.
    static: no dimension is bounded, as the place of a byte would hang on its run-time size.
    """
    if not operand.is_array or not result.is_array:
        raise ShapeError("array-operands", f"{operand} and {result} are not both arrays")
    if operand.bytes != result.bytes:
        raise ShapeError("same-bytes", f"{operand} has {operand.bytes} bytes, {result} has {result.bytes}")
    if not operand.is_static or not result.is_static:
        raise ShapeError("static", f"{operand} or {result} is bounded")
    return result


@op("bitcast-convert", traits=PURE, title="BitcastConvertType")
def bitcast_convert(operand: Shape, *, result: ResultShape) -> Shape:
    """The bits of the elements, read as another element type.

    A narrower type appends a dimension that counts the parts of one element; a wider one consumes the last dimension.

    array-operands [B2]: operand and result are arrays.
    same-bits [B1 C1]: the dimensions agree but for the last dimension's change by the ratio of the widths.
    complex-bits [C2]: a complex type converts only to itself.
    """
    if not operand.is_array or not result.is_array:
        raise ShapeError("array-operands", f"{operand} and {result} are not both arrays")
    if operand.type.is_complex != result.type.is_complex:
        raise ShapeError("complex-bits", f"{operand.type} and {result.type}: one is complex, the other is not")
    if operand.type.bits >= result.type.bits:
        ratio, rest = divmod(operand.type.bits, result.type.bits)
        expected = operand.dims if ratio == 1 else (*operand.dims, ratio)
        fits = not rest and result.dims == expected
    else:
        ratio, rest = divmod(result.type.bits, operand.type.bits)
        fits = not rest and operand.dims == (*result.dims, ratio)
    shared = range(min(operand.rank, result.rank))
    if not fits or any(operand.is_dynamic_dim(dim) != result.is_dynamic_dim(dim) for dim in shared):
        raise ShapeError("same-bits", f"the bits of {operand} do not make up {result}")
    return result.without_layout()


@op("get-dimension-size", traits=PURE, hlo_text={"dimension": "dimensions={}"})
def get_dimension_size(operand: Shape, *, dimension: int) -> Shape:
    """The (run-time) size of a dimension, as s32.

    array-operands [B1]: the operand is an array.
    dimension-in-range [B2 C1]: `dimension` is a dimension of the operand.
    """
    require_array(operand)
    check_dimension(operand, dimension)
    return Shape.scalar("int32")


@op("set-dimension-size", traits=PURE, hlo_text={"dimension": "dimensions={}"})
def set_dimension_size(operand: Shape, size: Shape, *, dimension: int, result: StatedResult = None) -> Shape:
    """The operand, of which only the first `size` entries along `dimension` exist at run time.

    A size beyond the bound is the bound, one below 0 is 0. Entries that did not exist before are zero. A result that is
    stated with the static size of the bound has all of them.

    array-operands [B1]: the operand is an array.
    size-type [B3]: the size is a scalar s32.
    dimension-in-range [B2]: `dimension` is a dimension of the operand.
    """
    require_array(operand)
    if not size.is_scalar or size.element_type is not S32:
        raise ShapeError("size-type", f"the size is {size}; it must be s32[]")
    check_dimension(operand, dimension)
    is_dynamic = (
        result is None or result.rank != operand.rank or result.is_dynamic_dim(dimension) or not result.is_array
    )
    return operand.with_dim(dimension, operand.dims[dimension], dynamic=is_dynamic).without_layout()


def check_arguments(slug: str, arguments: Variadic, computation: Signature) -> None:
    """Raises unless `arguments` have the shapes of the parameters of `computation`."""
    if len(arguments) != len(computation.parameters):
        raise ShapeError(slug, f"{len(arguments)} arguments for a computation of type {computation}")
    for number, (argument, parameter) in enumerate(zip(arguments, computation.parameters, strict=True)):
        if not argument.fits(parameter):
            raise ShapeError(slug, f"argument {number} is {argument}, but the computation has type {computation}")
