"""Operations on quantized tensors, as arithmetic on the integers that these are stored as.

`hlo/uniform_quantization.py` has the two formulas of StableHLO's specification. `TREATMENTS` says of each operation
which way it takes: on the storage as it is; through floats (dequantize, operate, quantize); or one of its own. All ways
end in the converter that the operation has anyway: it gets the operation as it would be on plain arrays. What the types
must satisfy, which the storage no longer shows, `quantized_rules.py` checks first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xlapy.hlo import uniform_quantization
from xlapy.hlo.attributes import ComparisonDirection
from xlapy.hlo.graph import Instruction
from xlapy.hlo.shape import UNBOUNDED, Shape
from xlapy.stablehlo.convert.base import Body, Converter, Elements, converts
from xlapy.stablehlo.convert.labels import result_count_label, result_label
from xlapy.stablehlo.convert.quantized_rules import (
    EVERYWHERE,
    KERNEL,
    NOWHERE,
    Rule,
    around_indices,
    branches_alike,
    broadcast_axis,
    check_places,
    contraction,
    convolution_axes,
    dot_axis,
    dot_zero_points,
    element_of_tuple,
    first_and_result,
    first_quantized,
    folds,
    gives_elements,
    halves,
    loop_rules,
    operand_types,
    pairs,
    picked,
    reshape_axis,
    results,
    returned,
    same_baseline,
    same_but_for_axis,
    same_elements,
    same_types,
    takes_elements,
    transpose_axis,
    tuple_of_operands,
)
from xlapy.stablehlo.convert.windows import on_wider_elements
from xlapy.stablehlo.quantization import (
    QuantizedShape,
    QuantizedType,
    element_of,
    expressed_shape,
    is_quantized,
    storage_shape,
)
from xlapy.stablehlo.tree import Operation, Value
from xlapy.stablehlo.types import type_text
from xlapy.support.errors import ShapeError, UnsupportedError
from xlapy.support.records import Record
from xlapy.support.registry import Registry


def dequantized(body: Body, stored: Instruction, type: QuantizedType) -> Instruction:
    return uniform_quantization.dequantized(body.add, stored, type)


def quantized(body: Body, floats: Instruction, type: QuantizedType) -> Instruction:
    return uniform_quantization.quantized(body.add, floats, type)


def _destination(body: Body, stored: Instruction, type: Shape, destination: Shape) -> Instruction:
    """A stored tensor in another quantized type: requantized, unless it has that type already."""
    if not (isinstance(type, QuantizedShape) and isinstance(destination, QuantizedShape)):
        return stored
    if type.quantized == destination.quantized:
        return stored
    return quantized(body, dequantized(body, stored, type.quantized), destination.quantized)


# -- the ways that operations take -------------------------------------------------------------------------------------

Way = Callable[[Body, Operation, Converter], "Instruction | Elements"]


def _plain(body: Body, operation: Operation, operands: Sequence[Instruction], results: Sequence[Shape]) -> Operation:
    """The operation as it would be on the plain arrays `operands`, which replace those that are quantized."""
    plain = Operation(operation.name, operation.place)
    plain.attributes, plain.regions, plain.captures = operation.attributes, operation.regions, operation.captures
    plain.location, plain.result_types = operation.location, tuple(results)
    for value, instruction in zip(operation.operands, operands, strict=True):
        if is_quantized(value.type):
            value = Value("", instruction.shape, value.region, None, 0)
            body.set_value(value, instruction)
        plain.operands.append(value)
    return plain


def _stored(body: Body, operation: Operation, operands: Sequence[Instruction]) -> Operation:
    return _plain(body, operation, operands, [storage_shape(type) for type in operation.result_types])


def on_storage(body: Body, operation: Operation, convert: Converter) -> Instruction | Elements:
    """The operation moves elements, or passes them on: the integers as it would the floats that they stand for."""
    return convert(body, _stored(body, operation, body.operands(operation)))


def through_floats(body: Body, operation: Operation, convert: Converter) -> Instruction | Elements:
    """Dequantizes the operands, operates, quantizes the results; what is not quantized stays as it is."""
    floats = [
        dequantized(body, body.value(value), value.type.quantized)
        if isinstance(value.type, QuantizedShape)
        else body.value(value)
        for value in operation.operands
    ]
    stated = [expressed_shape(type) for type in operation.result_types]
    converted = convert(body, _plain(body, operation, floats, stated))
    assert isinstance(converted, Instruction), f"{operation.name} has results of its own"
    if len(stated) == 1:
        return _quantized_result(body, operation, converted, 0)
    if not converted.shape.is_tuple or len(converted.shape.parts) != len(stated):
        return converted  # the caller says what is wrong with it
    parts = [body.add("get-tuple-element", converted, index=index) for index in range(len(stated))]
    return body.tuple([_quantized_result(body, operation, part, index) for index, part in enumerate(parts)])


def _quantized_result(body: Body, operation: Operation, floats: Instruction, index: int) -> Instruction:
    type = operation.result_types[index]
    if not isinstance(type, QuantizedShape):
        return floats
    if floats.shape.element_type is not type.quantized.expressed_type or not _same_dims(floats.shape, type):
        message = f"the result is {type_text(floats.shape)}, but it is stated as {type_text(type)}"
        label = result_label(operation.mnemonic, index, floats.shape, type)
        raise ShapeError(label, message)
    return quantized(body, floats, type.quantized)


def folding(body: Body, operation: Operation, convert: Converter) -> Instruction | Elements:
    """On storage, with a region that folds elements: what it folds are values of its own parameters' types."""
    arguments = [argument.type for argument in operation.regions[-1].arguments]
    return _folding(body, operation, convert, arguments)


def folding_one(body: Body, operation: Operation, convert: Converter) -> Instruction | Elements:
    """As `folding`, where one region folds each operand for itself."""
    (argument, *_) = operation.regions[-1].arguments
    return _folding(body, operation, convert, [argument.type] * len(operation.operands))


def scattering(body: Body, operation: Operation, convert: Converter) -> Instruction | Elements:
    """As `folding`; between inputs and updates stand the indices."""
    arguments = [argument.type for argument in operation.regions[0].arguments]
    half = len(arguments) // 2
    indices = operation.operands[len(operation.operands) // 2].type
    return _folding(body, operation, convert, [*arguments[:half], indices, *arguments[half:]])


def _folding(
    body: Body, operation: Operation, convert: Converter, destinations: Sequence[Shape]
) -> Instruction | Elements:
    if len(destinations) != len(operation.operands):
        message = f"{len(operation.operands)} operands are given, but the region folds {len(destinations)}"
        raise ShapeError(result_count_label(operation.mnemonic), message)
    operands = [
        _destination(body, body.value(value), value.type, destination)
        for value, destination in zip(operation.operands, destinations, strict=True)
    ]
    return convert(body, _stored(body, operation, operands))


def select_and_scatter(body: Body, operation: Operation, convert: Converter) -> Instruction | Elements:
    """What is scattered has the type that `scatter` folds. The operand is only compared, and keeps its integers."""
    operand, *scattered = operation.operands
    destination = operation.regions[1].arguments[0].type
    stored = body.value(operand)
    moved = [_destination(body, body.value(value), value.type, destination) for value in scattered]
    if stored.shape.type is not destination.type:
        stored = body.add("convert", stored, shape=stored.shape.with_type(destination.type))
        select, scatter = body.called
        body.called = [on_wider_elements(select, stored.shape), scatter]
    return convert(body, _stored(body, operation, [stored, *moved]))


def zeros_at_zero_point(body: Body, operation: Operation, convert: Converter) -> Instruction | Elements:
    """A process that nobody sends to gets zeros, which quantize to the zero point: that is what is sent around it.

    Subtracting the zero point before and adding it behind may wrap, and then wraps back."""
    (value,) = operation.operands
    stored = body.value(value)
    zero_point = value.type.quantized.zero_points[0] if isinstance(value.type, QuantizedShape) else 0
    if not zero_point:
        return on_storage(body, operation, convert)
    zeros = body.full(zero_point, stored.shape)
    moved = convert(body, _stored(body, operation, [body.add("subtract", stored, zeros)]))
    assert isinstance(moved, Instruction)
    return body.add("add", moved, zeros)


def always_true(body: Body, operation: Operation, convert: Converter) -> Instruction | Elements:
    """Whatever a stored integer stands for is finite."""
    (stored,) = body.operands(operation)
    return body.add("compare", stored, stored, direction=ComparisonDirection.EQ)


# -- quantize and dequantize themselves --------------------------------------------------------------------------------


@converts("stablehlo.uniform_quantize")
def uniform_quantize(body: Body, operation: Operation) -> Instruction:
    """Floats, or another quantized type, to a quantized type."""
    (value,), (result,) = operation.operands, operation.result_types
    if not isinstance(result, QuantizedShape):
        raise ShapeError("uniform_quantize.result", f"{type_text(result)} is not quantized")
    type = value.type
    expressed = type.quantized.expressed_type if isinstance(type, QuantizedShape) else type.element_type
    if expressed is None or not expressed.is_float:
        raise ShapeError("uniform_quantize.I1", f"{type_text(type)} is neither of floats nor quantized")
    if expressed is not result.quantized.expressed_type:
        raise ShapeError("uniform_quantize.C2", f"{type_text(type)} and {type_text(result)} express different floats")
    _check_same_dims(operation, type, result)
    floats = body.value(value)
    if isinstance(type, QuantizedShape):
        floats = dequantized(body, floats, type.quantized)
    return quantized(body, floats, result.quantized)


@converts("stablehlo.uniform_dequantize")
def uniform_dequantize(body: Body, operation: Operation) -> Instruction:
    """What a quantized tensor stands for."""
    (value,), (result,) = operation.operands, operation.result_types
    type = value.type
    if not isinstance(type, QuantizedShape):
        raise ShapeError("uniform_dequantize.I1", f"{type_text(type)} is not quantized")
    if element_of(result) is not type.quantized.expressed_type:
        raise ShapeError("uniform_dequantize.C2", f"{type_text(result)} is not what {type_text(type)} expresses")
    _check_same_dims(operation, type, result)
    return dequantized(body, body.value(value), type.quantized)


def _check_same_dims(operation: Operation, operand: Shape, result: Shape) -> None:
    if not _same_dims(operand, result):
        raise ShapeError(f"{operation.mnemonic}.C1", f"{type_text(operand)} and {type_text(result)} differ in shape")


def _same_dims(shape: Shape, other: Shape) -> bool:
    """Equal sizes, as far as they are known."""
    return shape.rank == other.rank and all(
        size == given or UNBOUNDED in (size, given) for size, given in zip(shape.dims, other.dims, strict=True)
    )


def as_written(body: Body, operation: Operation, convert: Converter) -> Instruction | Elements:
    """The converter knows quantized types itself."""
    return convert(body, operation)


# -- the table ---------------------------------------------------------------------------------------------------------


class Treatment(Record):
    """The way an operation takes, which places may be quantized per axis, and what the types must satisfy."""

    way: Way
    rules: tuple[Rule, ...]
    per_axis: frozenset[int]


TREATMENTS: Registry[Treatment] = Registry("treatment of quantized tensors")
"""By name of the operation. What stands nowhere here takes no quantized tensors."""


def _row(names: str, way: Way, *rules: Rule, per_axis: frozenset[int] = NOWHERE, dialect: str = "stablehlo") -> None:
    for name in names.split():
        TREATMENTS.add(f"{dialect}.{name}", Treatment(way, rules, per_axis))


# element-wise, by the formula of the specification
_row("abs", through_floats, same_baseline("C2"))
_row("add", through_floats, same_baseline("C1"), per_axis=EVERYWHERE)  # per axis is beyond the specification
_row(
    "atan2 cbrt ceil cosine divide exponential exponential_minus_one floor log log_plus_one logistic maximum minimum"
    " multiply negate power reduce_precision remainder round_nearest_afz round_nearest_even rsqrt sign sine sqrt"
    " subtract tan tanh",
    through_floats,
    same_baseline("C1"),
)
_row("clamp", through_floats, same_baseline("C3", operand_types), same_baseline("C4"))
_row("compare", through_floats, same_baseline("C1", operand_types))
_row("select", through_floats, same_baseline("C2", picked(1, 2, result=True)))
_row("is_finite", always_true)
_row("iota dynamic_iota", through_floats)

# linear algebra and sums of products
_row("cholesky", through_floats, same_baseline("C1"))
_row(
    "triangular_solve", through_floats, same_baseline("C1", operand_types), same_baseline("C4", picked(1, result=True))
)
_row("batch_norm_grad", through_floats, same_baseline("C2"))
_row("batch_norm_inference", through_floats, same_baseline("C2", operand_types), same_baseline("C7", first_and_result))
_row(
    "batch_norm_training",
    through_floats,
    same_baseline("C2", operand_types),
    same_baseline("C7", first_and_result),
    same_baseline("C2"),
)
_row("dot_general dot", through_floats, contraction("C14", "C15", "C16"), dot_zero_points, dot_axis, per_axis=KERNEL)
_row("convolution dynamic_conv", through_floats, contraction("C28", "C29", "C30"), convolution_axes, per_axis=KERNEL)

# data movement
_row("bitcast_convert", on_storage, per_axis=EVERYWHERE)
_row("broadcast", on_storage, same_elements("C1"))
_row("broadcast_in_dim", on_storage, same_but_for_axis("C1", parameters_too=True), broadcast_axis, per_axis=EVERYWHERE)
_row("concatenate", on_storage, same_elements("C1", operand_types), same_elements("C5"))
_row("dynamic_slice slice reverse set_dimension_size", on_storage, same_elements("C1", first_and_result))
_row("dynamic_update_slice", on_storage, same_elements("C1", first_and_result), same_elements("C2", picked(0, 1)))
_row("gather dynamic_gather", on_storage, same_elements("C14", first_and_result))
_row("get_dimension_size", on_storage, per_axis=EVERYWHERE)
_row("pad", on_storage, same_elements("C1"))
_row("dynamic_reshape dynamic_broadcast_in_dim real_dynamic_slice", on_storage, same_elements("C1", first_and_result))
_row("dynamic_pad", on_storage, same_elements("C1", picked(0, 1, result=True)))
_row("reshape", on_storage, same_but_for_axis("C1", parameters_too=False), reshape_axis, per_axis=EVERYWHERE)
_row("transpose", on_storage, same_but_for_axis("C1", parameters_too=False), transpose_axis, per_axis=EVERYWHERE)

# operations with regions
_row("map", on_storage, takes_elements("C4", 0, 1), gives_elements("C4"))
_row("reduce", folding, pairs("C2", halves), folds("C6"), gives_elements("C8"))
_row("reduce_window", folding, pairs("C3", halves), folds("C13"), gives_elements("C16"))
_row("scatter", scattering, pairs("C6", around_indices), folds("C15"), gives_elements("C17"))
_row(
    "select_and_scatter",
    select_and_scatter,
    same_elements("C1", picked(0, 1)),
    same_elements("C3", picked(0, 2)),
    takes_elements("C9", 0, 2, 1),
    folds("C10"),
    gives_elements("C12"),
)
_row("sort", on_storage, same_types("C2", operand_types, results), takes_elements("C5", 0, 2))

# control flow, and what only hands values on
_row("while", on_storage, *loop_rules("C1", "C2", "C3"), per_axis=EVERYWHERE)
_row("if", on_storage, branches_alike("C2"), same_types("C3", results, returned), per_axis=EVERYWHERE)
_row("case", on_storage, branches_alike("C3"), same_types("C4", results, returned), per_axis=EVERYWHERE)
_row("optimization_barrier", on_storage, same_types("C1", operand_types, results), per_axis=EVERYWHERE)
_row("tuple", on_storage, tuple_of_operands, per_axis=EVERYWHERE)
_row("get_tuple_element", on_storage, element_of_tuple, per_axis=EVERYWHERE)
_row("composite custom_call infeed outfeed recv send", on_storage, per_axis=EVERYWHERE)
_row("call", on_storage, per_axis=EVERYWHERE, dialect="func")
_row("sharding_constraint", on_storage, same_types("C1", operand_types, results), per_axis=EVERYWHERE, dialect="sdy")

# between processes
_row("all_gather", on_storage, same_elements("C6"))
_row("all_to_all", on_storage, same_elements("C9"))
_row("all_reduce", folding_one, folds("C5"), gives_elements("C7"))
_row("reduce_scatter", folding_one, folds("C7"), gives_elements("C9"))
_row("collective_broadcast", zeros_at_zero_point, same_elements("C3"))
_row("collective_permute", zeros_at_zero_point, same_elements("C5"))

_row("uniform_quantize uniform_dequantize", as_written, per_axis=EVERYWHERE)


def involves_quantized(operation: Operation) -> bool:
    """An operand, a result, or an argument of a region is quantized."""
    arguments = (argument for region in operation.regions for argument in region.arguments)
    return (
        any(is_quantized(value.type) for value in operation.operands)
        or any(map(is_quantized, operation.result_types))
        or any(is_quantized(argument.type) for argument in arguments)
    )


def convert_quantized(body: Body, operation: Operation, convert: Converter) -> Instruction | Elements:
    """What the converter of an operation makes of quantized tensors. Raises ShapeError where it takes none."""
    treatment = TREATMENTS.get(operation.name)
    if treatment is None:
        if not operation.name.startswith("stablehlo."):
            raise UnsupportedError(f"{operation.name} of quantized tensors is not supported")
        message = "takes no quantized tensors: uniform_dequantize gives floats"
        raise ShapeError(f"{operation.mnemonic}.{first_quantized(operation)}", f"{operation.name} {message}")
    check_places(operation, treatment.per_axis)
    for rule in treatment.rules:
        rule(operation)
    return treatment.way(body, operation, convert)
