"""What the types of operations on quantized tensors must satisfy: the constraints that storage alone does not show.

A rule is made with the label of its constraint in StableHLO's specification, and looks at the types of one operation.
Shapes are left to the rules of the ops, which see them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from xlapy.hlo.shape import Shape
from xlapy.stablehlo.convert.base import attribute, fields, integers
from xlapy.stablehlo.quantization import (
    QuantizedShape,
    QuantizedType,
    baseline_of,
    element_of,
    is_promotable,
    is_quantized,
    sizes_around,
    types_text,
)
from xlapy.stablehlo.tree import Operation
from xlapy.stablehlo.types import type_text
from xlapy.support.errors import ShapeError

Rule = Callable[[Operation], None]
Pick = Callable[[Operation], Sequence[Shape]]
"""Some types of an operation."""


def broken(operation: Operation, label: str, message: str) -> NoReturn:
    raise ShapeError(f"{operation.mnemonic}.{label}", message)


# -- which types -------------------------------------------------------------------------------------------------------


def operand_types(operation: Operation) -> Sequence[Shape]:
    return [value.type for value in operation.operands]


def every_type(operation: Operation) -> Sequence[Shape]:
    return [*operand_types(operation), *operation.result_types]


def picked(*places: int, result: bool = False) -> Pick:
    """The operands at `places`, and the first result."""

    def pick(operation: Operation) -> Sequence[Shape]:
        types = operand_types(operation)
        return [types[place] for place in places if place < len(types)] + [*operation.result_types[: int(result)]]

    return pick


first_and_result = picked(0, result=True)


def returned(operation: Operation, region: int = 0) -> Sequence[Shape]:
    """What a region of the operation returns."""
    if not operation.regions:
        return []
    return [value.type for value in operation.regions[region].operations[-1].operands]


def arguments(operation: Operation, region: int = 0) -> Sequence[Shape]:
    return [value.type for value in operation.regions[region].arguments]


# -- rules about element types -----------------------------------------------------------------------------------------


def same_elements(label: str, pick: Pick = every_type) -> Rule:
    """The element types are one."""

    def check(operation: Operation) -> None:
        _check_alike(operation, label, pick(operation), [element_of(type) for type in pick(operation)])

    return check


def same_baseline(label: str, pick: Pick = every_type) -> Rule:
    """The element types are one, but for scales and zero points."""

    def check(operation: Operation) -> None:
        _check_alike(operation, label, pick(operation), [baseline_of(type) for type in pick(operation)])

    return check


def _check_alike(operation: Operation, label: str, types: Sequence[Shape], parts: Sequence[object]) -> None:
    for type, part in zip(types, parts, strict=True):
        if part != parts[0]:
            broken(operation, label, f"{type_text(types[0])} and {type_text(type)} differ in element type")


def same_but_for_axis(label: str, *, parameters_too: bool) -> Rule:
    """Operand and result have one element type, in which the quantization dimension may differ, or also the scales."""

    def check(operation: Operation) -> None:
        types = first_and_result(operation)
        given, made = (element_of(type) for type in types)
        if isinstance(given, QuantizedType) and isinstance(made, QuantizedType) and given.is_per_axis:
            if parameters_too and made.is_per_axis:
                given, made = given.baseline(), made.baseline()
            made = made.along(given.dimension) if made.is_per_axis else made
        _check_alike(operation, label, types, [given, made])

    return check


# -- rules about regions -----------------------------------------------------------------------------------------------


def folds(label: str, region: int = -1) -> Rule:
    """The region takes two values of each element type and returns one; each operand may be promoted to its own."""

    def check(operation: Operation) -> None:
        taken, given = arguments(operation, region), returned(operation, region)
        count = len(given)
        if not count or len(taken) != 2 * count or [*taken[:count], *taken[count:]] != [*given, *given]:
            broken(operation, label, f"the region takes {_listed(taken)} and returns {_listed(given)}")
        for number, type in enumerate(operand_types(operation)[:count]):
            argument = taken[number] if count > 1 else taken[0]
            if not is_promotable(type, argument):
                message = f"{type_text(type)} is not promotable to {type_text(argument)}, which the region takes"
                broken(operation, label, message)

    return check


def takes_elements(label: str, region: int, repeat: int, count: int | None = None) -> Rule:
    """The region takes each element type of the (first) operands, `repeat` times in a row."""

    def check(operation: Operation) -> None:
        elements = [element_of(type) for type in operand_types(operation)[:count] for _ in range(repeat)]
        found = [element_of(type) for type in arguments(operation, region)]
        if elements != found:
            broken(
                operation, label, f"the region takes {types_text(found)}, but the operands have {types_text(elements)}"
            )

    return check


def gives_elements(label: str, region: int = -1) -> Rule:
    """The results have the element types that the region returns."""

    def check(operation: Operation) -> None:
        given = returned(operation, region)
        for result, type in zip(operation.result_types, given, strict=False):
            _check_alike(operation, label, [result, type], [element_of(result), element_of(type)])

    return check


def pairs(label: str, pick_half: Callable[[int], tuple[int, int]]) -> Rule:
    """Operands i of two halves have the same element types; `pick_half` gives the two beginnings for n operands."""

    def check(operation: Operation) -> None:
        types = operand_types(operation)
        first, second = pick_half(len(types))
        for one, other in zip(types[first:], types[second:], strict=False):
            _check_alike(operation, label, [one, other], [element_of(one), element_of(other)])

    return check


def halves(count: int) -> tuple[int, int]:
    """Inputs, then their initial values."""
    return 0, count // 2


def around_indices(count: int) -> tuple[int, int]:
    """Inputs, indices, updates."""
    return 0, count // 2 + 1


def same_types(label: str, one: Pick, other: Pick) -> Rule:
    """Two lists of types are the same."""

    def check(operation: Operation) -> None:
        if [*one(operation)] != [*other(operation)]:
            broken(operation, label, f"{_listed(one(operation))} must be {_listed(other(operation))}")

    return check


def results(operation: Operation) -> Sequence[Shape]:
    return operation.result_types


def branches_alike(label: str) -> Rule:
    """All regions return the same types."""

    def check(operation: Operation) -> None:
        for region in range(1, len(operation.regions)):
            if [*returned(operation, region)] != [*returned(operation)]:
                types = f"{_listed(returned(operation))} and {_listed(returned(operation, region))}"
                broken(operation, label, f"the branches return {types}")

    return check


def loop_rules(condition: str, body: str, result: str) -> Sequence[Rule]:
    """Condition and body take the state, the body returns it, and so does the loop."""

    def of(region: int, what: Callable[[Operation, int], Sequence[Shape]]) -> Pick:
        return lambda operation: what(operation, region)

    return (
        same_types(condition, of(0, arguments), operand_types),
        same_types(body, of(1, arguments), operand_types),
        same_types(body, of(1, returned), operand_types),
        same_types(result, results, operand_types),
    )


def tuple_of_operands(operation: Operation) -> None:
    """tuple.C1"""
    (result,) = operation.result_types
    if result != Shape.tuple(operand_types(operation)):
        broken(operation, "C1", f"{type_text(result)} is not the tuple of {_listed(operand_types(operation))}")


def element_of_tuple(operation: Operation) -> None:
    """get_tuple_element.C2"""
    (whole,), (result,) = operand_types(operation), operation.result_types
    index = attribute(operation, "index", int)
    if whole.is_tuple and 0 <= index < len(whole.parts) and whole.parts[index] != result:
        broken(operation, "C2", f"element {index} is {type_text(whole.parts[index])}, not {type_text(result)}")


def _listed(types: Sequence[Shape]) -> str:
    return "(" + ", ".join(map(type_text, types)) + ")"


# -- rules of single operations ----------------------------------------------------------------------------------------


def broadcast_axis(operation: Operation) -> None:
    """broadcast_in_dim.C6: the axis goes where its dimension goes; a stretched one repeats its only parameters."""
    operand, result = first_and_result(operation)
    if not (isinstance(operand, QuantizedShape) and isinstance(result, QuantizedShape)):
        return
    given, made = operand.quantized, result.quantized
    dimensions = integers(operation, "broadcast_dimensions")
    if given.dimension is None or made.dimension is None or given.dimension >= len(dimensions):
        return
    target = dimensions[given.dimension]
    if made.dimension != target:
        moved = f"dimension {given.dimension} goes to {target}"
        broken(operation, "C6", f"{moved}, but the quantization dimension of the result is {made.dimension}")
    stretched = operand.dims[given.dimension] == 1
    if stretched and ({*made.scales}, {*made.zero_points}) != ({*given.scales}, {*given.zero_points}):
        broken(operation, "C6", f"{type_text(result)} does not repeat the scale and zero point of {type_text(operand)}")


def reshape_axis(operation: Operation) -> None:
    """reshape.C3: as many elements before, at and behind the quantized dimension as there were."""
    operand, result = first_and_result(operation)
    if not (isinstance(operand, QuantizedShape) and isinstance(result, QuantizedShape)):
        return
    before, after = operand.quantized.dimension, result.quantized.dimension
    if before is None or after is None or operand.dynamic or result.dynamic:
        return
    if sizes_around(operand.dims, before) != sizes_around(result.dims, after):
        broken(
            operation, "C3", f"{type_text(operand)} to {type_text(result)} moves the slices that are quantized alike"
        )


def transpose_axis(operation: Operation) -> None:
    """transpose.C4: the quantization dimension goes where the permutation moves it."""
    operand, result = first_and_result(operation)
    if not (isinstance(operand, QuantizedShape) and isinstance(result, QuantizedShape)):
        return
    before, after = operand.quantized.dimension, result.quantized.dimension
    permutation = integers(operation, "permutation")
    if after is None or after >= len(permutation) or before == permutation[after]:
        return
    moved = f"quantization dimension {after} of the result was dimension {permutation[after]}"
    broken(operation, "C4", f"{moved}, but the operand is quantized along {before}")


def contraction(kinds: str, storage: str, expressed: str) -> Rule:
    """All are quantized alike; or, beyond the specification, only the right side is (a hybrid operation)."""

    def check(operation: Operation) -> None:
        lhs, rhs, *_ = operand_types(operation)
        (result,) = operation.result_types
        quantized = [isinstance(type, QuantizedShape) for type in (lhs, rhs, result)]
        if quantized not in ([True, True, True], [False, True, False]):
            broken(operation, kinds, "either all of lhs, rhs and result are quantized, or only rhs is")
        if quantized[0] and lhs.type is not rhs.type:
            broken(operation, storage, f"{type_text(lhs)} and {type_text(rhs)} differ in storage type")
        floats = [_floats_of(type) for type in (lhs, rhs, result)]
        if len({*floats}) != 1:
            types = ", ".join(map(type_text, (lhs, rhs, result)))
            broken(operation, expressed, f"{types} differ in expressed type")

    return check


def _floats_of(type: Shape) -> object:
    return type.quantized.expressed_type if isinstance(type, QuantizedShape) else type.element_type


def dot_zero_points(operation: Operation) -> None:
    """dot_general.C17"""
    rhs = operation.operands[1].type
    if isinstance(rhs, QuantizedShape) and any(rhs.quantized.zero_points):
        broken(operation, "C17", f"the zero points of {type_text(rhs)} are not zero")


def dot_axis(operation: Operation) -> None:
    """A right side may be quantized per axis, beyond the specification, but not along a dimension that is summed."""
    rhs = operation.operands[1].type
    if not isinstance(rhs, QuantizedShape) or "dot_dimension_numbers" not in operation.attributes:
        return
    contracted = integers(fields(operation, "dot_dimension_numbers"), "rhs_contracting_dimensions", ())
    if rhs.quantized.dimension in contracted:
        broken(operation, "I2", f"{type_text(rhs)} is quantized along a dimension that is contracted")


def convolution_axes(operation: Operation) -> None:
    """convolution.C31, C32 and C33"""
    rhs, (result,) = operation.operands[1].type, operation.result_types
    axis, result_axis = (
        type.quantized.dimension if isinstance(type, QuantizedShape) else None for type in (rhs, result)
    )
    if axis is None and result_axis is not None:
        broken(operation, "C31", "the kernel is quantized per tensor, but the result per axis")
    _, kernel, output = operation.attributes.get("dimension_numbers", ("", "", ""))
    if axis is not None and kernel[axis : axis + 1] != ("o",):
        message = f"the kernel is quantized along dimension {axis}, which is not that of output features"
        broken(operation, "C32", message)
    if result_axis is not None and output[result_axis : result_axis + 1] != ("f",):
        message = f"the result is quantized along dimension {result_axis}, which is not that of features"
        broken(operation, "C33", message)


def _is_per_axis(type: Shape) -> bool:
    return isinstance(type, QuantizedShape) and type.quantized.is_per_axis


# -- which places may be quantized -------------------------------------------------------------------------------------

RESULT = -1
"""The place of every result; operands have their numbers."""

EVERYWHERE = frozenset(range(RESULT, 16))
NOWHERE: frozenset[int] = frozenset()
KERNEL = frozenset({1, RESULT})
"""The right side of a product, and its result."""

_ONE_VARIADIC = frozenset({"concatenate", "map", "sort"})
_HALVES = frozenset({"reduce", "reduce_window"})


def check_places(operation: Operation, per_axis: frozenset[int]) -> None:
    """Raises at an input, or at a result, that is quantized per axis where only types per tensor are allowed."""
    for number, type in enumerate(operand_types(operation)):
        if number not in per_axis and _is_per_axis(type):
            broken(
                operation, input_label(operation, number), f"{type_text(type)} is quantized per axis, not per tensor"
            )
    for type in operation.result_types:
        if RESULT not in per_axis and _is_per_axis(type):
            broken(operation, "result", f"{type_text(type)} is quantized per axis, not per tensor")


def first_quantized(operation: Operation) -> str:
    """The label of the first place that is quantized."""
    for number, type in enumerate(operand_types(operation)):
        if is_quantized(type):
            return input_label(operation, number)
    return "result"


def input_label(operation: Operation, number: int) -> str:
    """The specification's label of an operand; a variadic input has one for all."""
    count = len(operation.operands)
    if operation.mnemonic in _ONE_VARIADIC:
        return "I1"
    if operation.mnemonic in _HALVES:
        return "I1" if number < count // 2 else "I2"
    if operation.mnemonic == "scatter":
        return "I1" if number < count // 2 else "I2" if number == count // 2 else "I3"
    return f"I{number + 1}"
