"""Laws of folds over a few arrays side by side: each element is known by itself, and so is what is made of all.

    c = pred[3,100] concatenate(zeros, p, q), dimensions={0}
    n = s32[3,100] reduce-window(convert(c)), ...                    the sums of the first 1, 2 and 3
    ROOT r = (s32[100], s32[100]) reduce(n, iota), dimensions={0}    which of them is the largest

is how numbers of branches are found by what holds where; element by element it is made of a few comparisons.
"""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.hlo.attributes import WindowDimension
from xlapy.hlo.cost import arithmetic_cost
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import is_inlinable, sole_operation
from xlapy.hlo.ops import Trait
from xlapy.hlo.patterns import P, number_of, variables
from xlapy.hlo.shape import Dims
from xlapy.passes import new
from xlapy.passes.algebra.reductions import LEAST_FEW_FOLDS, changes_nothing
from xlapy.passes.new import Value
from xlapy.passes.rewrite import LAWS, Exactness

xs, d = variables("xs d")

MOST_JOINED = 8  # arrays side by side
MOST_BEFORE = 8  # instructions in a row that are computed for each of them


@LAWS.law(P.reduce(xs.rest, dimensions=d), exactness=Exactness.FREE)
def reduce_of_joined(root: Instruction, xs: tuple[Instruction, ...], d: Dims) -> Value | None:
    """reduce(concatenate(x, y)) -> f(f(initial value, x), y); also of several arrays, of sums of the first ones, and of
    what is computed from such"""
    arrays, inits = xs[: len(xs) // 2], xs[len(xs) // 2 :]
    dims, region = arrays[0].shape.dims, root.called[0]
    if len(d) != 1 or not 1 < dims[d[0]] <= MOST_JOINED or not any(_is_joined(array, d[0]) for array in arrays):
        return None
    if arrays[0].shape.size < LEAST_FEW_FOLDS * dims[d[0]] or any(array.shape.type.is_narrow_float for array in arrays):
        return None
    if not is_inlinable(region) or region.calling:
        return None
    columns = [_elements(array, d[0]) for array in arrays]
    known = [column for column in columns if column is not None]
    if len(known) < len(arrays):
        return None
    kept = (*dims[: d[0]], *dims[d[0] + 1 :])
    results: Sequence[Value] = [new.repeated(init, kept) for init in inits]
    for row in zip(*known, strict=True):
        results = _applied(region, [*results, *(new.reshaped(element, kept) for element in row)], kept)
    return results[0] if root.shape.is_array else new.op("tuple", results)


def _is_joined(value: Instruction, dim: int) -> bool:
    """It is made of arrays side by side, if only by element-wise operations and sums of the first ones."""
    for _ in range(MOST_BEFORE):
        if value.opcode == "concatenate":
            return bool(value.attributes["dimension"] == dim)
        if value.opcode != "reduce-window" and Trait.ELEMENTWISE not in value.spec.traits:
            return False
        value = value.operands[0]
    return False


def _elements(value: Instruction, dim: int, most: int = MOST_BEFORE) -> list[Value] | None:
    """What is at each place along a dimension, if that is known for each by itself, and computed for this alone."""
    count, single = value.shape.dims[dim], value.shape.with_dim(dim, 1)
    number = number_of(value)
    if number is not None:
        return [new.filled(number, single)] * count
    if value.opcode == "iota" and value.attributes["dimension"] == dim:
        return [new.filled(place, single) for place in range(count)]
    if value.sole_user is None or not most:
        return None
    if value.opcode == "concatenate" and value.attributes["dimension"] == dim:
        return _joined(value, dim)
    if value.opcode == "reduce-window" and _is_cumulative(value, dim):
        return _first_ones(value, _elements(value.operands[0], dim, most - 1))
    if Trait.ELEMENTWISE not in value.spec.traits or value.called or arithmetic_cost(value).transcendentals:
        return None
    columns = [_elements(operand, dim, most - 1) for operand in value.operands if not operand.shape.is_scalar]
    known = [column for column in columns if column is not None]
    if len(known) < len(value.operands):
        return None
    shape = single if value.spec.takes_result else None
    return [new.op(value.opcode, row, shape=shape, **value.attributes) for row in zip(*known, strict=True)]


def _joined(concatenate: Instruction, dim: int) -> list[Value] | None:
    elements: list[Value] = []
    for operand in concatenate.operands:
        number, single = number_of(operand), operand.shape.with_dim(dim, 1)
        if number is not None:
            elements += [new.filled(number, single)] * operand.shape.dims[dim]
        elif operand.shape.dims[dim] == 1:
            elements.append(operand)
        else:
            return None
    return elements


def _is_cumulative(window: Instruction, dim: int) -> bool:
    """At each place along a dimension, what is there and before it is folded, and each time the same."""
    if len(window.operands) != 2 or sole_operation(window.called[0]) is None:
        return False
    size, init = window.shape.dims[dim], window.operands[1]
    parts = [*window.attributes["window"].dimensions]
    along = parts.pop(dim)
    is_one = all(part == WindowDimension(1) for part in parts)
    is_whole = along == WindowDimension(size, padding_low=size - 1)
    return is_one and is_whole and changes_nothing(init, window.called[0], init)


def _first_ones(window: Instruction, elements: list[Value] | None) -> list[Value] | None:
    """The folds of the first elements."""
    operation = sole_operation(window.called[0])
    if elements is None or operation is None:
        return None
    total: Value = new.repeated(window.operands[1], elements[0].shape.dims)
    totals: list[Value] = []
    for element in elements:
        total = new.op(operation.opcode, [total, element])
        totals.append(total)
    return totals


def _applied(region: Computation, arguments: Sequence[Value], dims: Dims) -> list[Value]:
    """What a region computes of scalars, for arrays."""
    values: dict[Instruction, Value] = dict(zip(region.parameters, arguments, strict=True))
    for instruction in region.post_order():
        if instruction.opcode == "constant":
            values[instruction] = new.filled(
                instruction.attributes["literal"].scalar(), instruction.shape.with_dims(dims)
            )
        elif instruction not in values and instruction.opcode != "tuple":
            operands = [values[operand] for operand in instruction.operands]
            shape = instruction.shape.with_dims(dims) if instruction.spec.takes_result else None
            values[instruction] = new.op(instruction.opcode, operands, shape=shape, **instruction.attributes)
    root = region.root
    return [values[each] for each in (root.operands if root.opcode == "tuple" else [root])]
