"""What each op does to run-time sizes, and where padding must be kept away from it.

An op without a rule that meets a bounded dimension is an UnsupportedError. Element-wise ops, which compute padding
along and ignore it, share one rule that is chosen by trait.
"""

from __future__ import annotations

import math

from xlapy.hlo.attributes import ComparisonDirection, PaddingDimension
from xlapy.hlo.element_types import S32
from xlapy.hlo.graph import Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.shape import Dims, Shape
from xlapy.passes.dynamic.padding import RULES, Padding, Path, Sizes
from xlapy.support.errors import UnsupportedError


def elementwise(padding: Padding, instruction: Instruction) -> None:
    """The sizes are those of the first operand that has one for the dimension: they are equal in a right program."""
    sizes: Sizes = {}
    for operand in instruction.operands:
        for place, size in padding.sizes(operand).items():
            sizes.setdefault(place, size)
    padding.enter(instruction, padding.same(instruction), sizes)


@RULES.register("set-dimension-size")
def set_dimension_size(padding: Padding, instruction: Instruction) -> None:
    """The array stays; the size is remembered. Where the result is static, zeros replace what was padding."""
    operand, size = instruction.operands
    dim = instruction.attributes["dimension"]
    bound = operand.shape.dims[dim]
    sizes = dict(padding.sizes(operand))
    if not instruction.shape.is_dynamic_dim(dim):
        whole, before = padding.copy(operand), sizes.pop(((), dim), None)
        if before is not None:
            whole = padding.masked(whole, {dim: before}, padding.zero(whole))
        padding.enter(instruction, whole, sizes)
        return
    sizes[(), dim] = padding.bounded(padding.copy(size), 0, bound)
    padding.enter(instruction, padding.copy(operand), sizes)


@RULES.register("get-dimension-size")
def get_dimension_size(padding: Padding, instruction: Instruction) -> None:
    operand, dim = instruction.operands[0], instruction.attributes["dimension"]
    padding.enter(instruction, padding.size(operand, dim) or padding.number(operand.shape.dims[dim]))


@RULES.register("tuple")
def tuple_(padding: Padding, instruction: Instruction) -> None:
    sizes = {
        ((index, *path), dim): size
        for index, operand in enumerate(instruction.operands)
        for (path, dim), size in padding.sizes(operand).items()
    }
    padding.enter(instruction, padding.same(instruction), sizes)


@RULES.register("get-tuple-element")
def get_tuple_element(padding: Padding, instruction: Instruction) -> None:
    index = instruction.attributes["index"]
    sizes = {
        (path[1:], dim): size
        for (path, dim), size in padding.sizes(instruction.operands[0]).items()
        if path[0] == index
    }
    padding.enter(instruction, padding.same(instruction), sizes)


@RULES.register("opt-barrier")
def opt_barrier(padding: Padding, instruction: Instruction) -> None:
    padding.enter(instruction, padding.same(instruction), padding.sizes(instruction.operands[0]))


@RULES.register("broadcast")
def broadcast(padding: Padding, instruction: Instruction) -> None:
    """A new dimension is as large as its bound: what it meets later says how much of it counts."""
    operand, targets = instruction.operands[0], instruction.attributes["dimensions"]
    sizes = {targets[dim]: size for dim, size in padding.array_sizes(operand).items()}
    padding.enter_array(instruction, padding.same(instruction), sizes)


@RULES.register("transpose")
def transpose(padding: Padding, instruction: Instruction) -> None:
    operand, permutation = instruction.operands[0], instruction.attributes["permutation"]
    sizes = {place: padding.size(operand, dim) for place, dim in enumerate(permutation)}
    padding.enter_array(instruction, padding.same(instruction), sizes)


@RULES.register("reshape")
def reshape(padding: Padding, instruction: Instruction) -> None:
    """A size survives where its dimension is the outermost of the dimensions that are merged or split."""
    operand = instruction.operands[0]
    sizes: dict[int, Instruction | None] = {}
    for before, after in _groups(operand.shape.dims, instruction.shape.dims):
        bounded = [dim for dim in before if padding.size(operand, dim) is not None]
        if not bounded:
            continue
        target = next((dim for dim in after if instruction.shape.dims[dim] != 1), None)
        outermost = next(dim for dim in before if operand.shape.dims[dim] != 1 or dim in bounded)
        if bounded != [outermost] or target is None:
            raise UnsupportedError(f"reshape {instruction.name} merges dynamic dimension {bounded[-1]} into another")
        size = padding.size(operand, outermost)
        assert size is not None
        inner = math.prod(operand.shape.dims[dim] for dim in before if dim > outermost)
        inner_after = math.prod(instruction.shape.dims[dim] for dim in after if dim > target)
        sizes[target] = _scaled(padding, size, inner, inner_after)
    padding.enter_array(instruction, padding.same(instruction), sizes)


def _scaled(padding: Padding, size: Instruction, factor: int, divisor: int) -> Instruction:
    if factor != divisor:
        size = padding.add("multiply", [size, padding.number(factor)])
        size = padding.add("divide", [size, padding.number(divisor)])
    return size


def _groups(before: Dims, after: Dims) -> list[tuple[list[int], list[int]]]:
    """The smallest runs of dimensions on either side with equally many elements. No size is 0."""
    groups: list[tuple[list[int], list[int]]] = []
    left, right = list(range(len(before))), list(range(len(after)))
    while left or right:
        taken: tuple[list[int], list[int]] = ([], [])
        count = count_after = 1
        while not (taken[0] or taken[1]) or count != count_after:
            if left and (count <= count_after or not right):
                count *= before[left[0]]
                taken[0].append(left.pop(0))
            else:
                count_after *= after[right[0]]
                taken[1].append(right.pop(0))
        groups.append(taken)
    return groups


@RULES.register("slice")
def slice_(padding: Padding, instruction: Instruction) -> None:
    """A dimension that is taken whole keeps its size; of one that is cut, the program says that the part exists."""
    operand = instruction.operands[0]
    whole = instruction.shape.dims
    sizes = {dim: size for dim, size in padding.array_sizes(operand).items() if whole[dim] == operand.shape.dims[dim]}
    padding.enter_array(instruction, padding.same(instruction), sizes)


@RULES.register("reverse")
def reverse(padding: Padding, instruction: Instruction) -> None:
    """The padding comes to lie in front, so what follows it is moved to the beginning."""
    operand = instruction.operands[0]
    result = padding.same(instruction)
    zero = padding.zero(result)
    for dim, size in padding.array_sizes(operand).items():
        if dim in instruction.attributes["dimensions"] and size is not None:
            result = _shifted(padding, result, dim, size, zero)
    padding.enter(instruction, result, padding.sizes(operand))


def _shifted(padding: Padding, array: Instruction, dim: int, size: Instruction, zero: Instruction) -> Instruction:
    """The last `size` entries along `dim` first."""
    bound, rank = array.shape.dims[dim], array.shape.rank
    behind = tuple(PaddingDimension(0, bound if place == dim else 0, 0) for place in range(rank))
    extended = padding.add("pad", [array, zero], dimensions=behind)
    start = padding.add("subtract", [padding.number(bound), size])
    starts = [start if place == dim else padding.number(0) for place in range(rank)]
    return padding.add("dynamic-slice", [extended, *starts], slice_sizes=array.shape.dims)


@RULES.register("pad")
def pad(padding: Padding, instruction: Instruction) -> None:
    """What lies beyond the size becomes padding value first, so that the high edge begins right behind the array."""
    operand, value = instruction.operands
    sizes = padding.array_sizes(operand)
    filler = padding.copy(value)
    array = padding.masked(padding.copy(operand), sizes, filler)
    results: dict[int, Instruction | None] = {}
    for dim, size in sizes.items():
        if size is not None:
            results[dim] = _padded_size(padding, size, instruction, dim)
    padding.enter_array(instruction, padding.same(instruction, [array, filler]), results)


def _padded_size(padding: Padding, size: Instruction, instruction: Instruction, dim: int) -> Instruction:
    amount: PaddingDimension = instruction.attributes["dimensions"][dim]
    total = padding.add("add", [size, padding.number(amount.low + amount.high)])
    if amount.interior:
        gaps = padding.add("subtract", [size, padding.number(1)])
        gaps = padding.add("maximum", [gaps, padding.number(0)])
        total = padding.add("add", [total, padding.add("multiply", [gaps, padding.number(amount.interior)])])
    return padding.bounded(total, 0, instruction.shape.dims[dim])


@RULES.register("concatenate")
def concatenate(padding: Padding, instruction: Instruction) -> None:
    """Along a bounded dimension, each part is written where the one before it ends."""
    dim = instruction.attributes["dimension"]
    sizes: dict[int, Instruction | None] = {}
    for operand in instruction.operands:
        sizes.update({place: size for place, size in padding.array_sizes(operand).items() if place != dim})
    if all(padding.size(operand, dim) is None for operand in instruction.operands):
        padding.enter_array(instruction, padding.same(instruction), sizes)
        return
    shape = instruction.shape.static()
    zero = padding.add("broadcast", [padding.zero(padding.copy(instruction.operands[0]))], shape=shape, dimensions=())
    result, end = zero, padding.number(0)
    for operand in instruction.operands:
        starts = [end if place == dim else padding.number(0) for place in range(shape.rank)]
        result = padding.add("dynamic-update-slice", [result, padding.copy(operand), *starts])
        size = padding.size(operand, dim) or padding.number(operand.shape.dims[dim])
        end = padding.add("add", [end, size])
    padding.enter_array(instruction, result, {**sizes, dim: end})


@RULES.register("dynamic-slice")
def dynamic_slice(padding: Padding, instruction: Instruction) -> None:
    """The slice is moved inward until it fits what exists, not the bound."""
    operand, *starts = instruction.operands
    moved = [padding.copy(start) for start in starts]
    for dim, size in padding.array_sizes(operand).items():
        if size is not None:
            taken = instruction.attributes["slice_sizes"][dim]
            room = padding.add("subtract", [size, padding.number(taken)])
            room = padding.add("maximum", [room, padding.number(0)])
            index = moved[dim]
            if index.shape.type is not S32:
                room = padding.add("convert", [room], shape=index.shape)
            moved[dim] = padding.add("minimum", [index, room])
    padding.enter(instruction, padding.same(instruction, [padding.copy(operand), *moved]))


@RULES.register("dynamic-update-slice")
def dynamic_update_slice(padding: Padding, instruction: Instruction) -> None:
    operand, update = instruction.operands[:2]
    if padding.is_dynamic(update):
        raise UnsupportedError(f"{instruction.name} writes an array of dynamic size")
    padding.enter(instruction, padding.same(instruction), padding.sizes(operand))


@RULES.register("reduce")
def reduce(padding: Padding, instruction: Instruction) -> None:
    """Beyond the sizes the inputs become the initial value, which the specification demands to be neutral."""
    count = len(instruction.operands) // 2
    inputs, inits = instruction.operands[:count], instruction.operands[count:]
    folded = instruction.attributes["dimensions"]
    sizes: dict[int, Instruction | None] = {}
    for array in inputs:
        sizes = {**padding.array_sizes(array), **sizes}
    masks = {dim: size for dim, size in sizes.items() if dim in folded}
    arrays = [
        padding.masked(padding.copy(array), masks, padding.copy(init))
        for array, init in zip(inputs, inits, strict=True)
    ]
    result = padding.same(instruction, [*arrays, *(padding.copy(init) for init in inits)])
    left = [dim for dim in range(inputs[0].shape.rank) if dim not in folded]
    kept = {place: sizes[dim] for place, dim in enumerate(left) if dim in sizes}
    paths: list[Path] = [(index,) for index in range(count)] if count > 1 else [()]
    found = {(path, dim): size for path in paths for dim, size in kept.items() if size is not None}
    padding.enter(instruction, result, found)


@RULES.register("dot")
def dot(padding: Padding, instruction: Instruction) -> None:
    """Along contracting dimensions both sides become zero: zero times padding could be NaN."""
    lhs, rhs = instruction.operands
    numbers = instruction.attributes["dimension_numbers"]
    masked = []
    for operand, others, dims in (
        (lhs, rhs, (numbers.lhs_contracting, numbers.rhs_contracting)),
        (rhs, lhs, (numbers.rhs_contracting, numbers.lhs_contracting)),
    ):
        sizes = {
            dim: padding.size(operand, dim) or padding.size(others, other) for dim, other in zip(*dims, strict=True)
        }
        array = padding.copy(operand)
        masked.append(padding.masked(array, sizes, padding.zero(array)))
    order = [(lhs, dim) for dim in (*numbers.lhs_batch, *numbers.lhs_free(lhs.shape.rank))]
    order += [(rhs, dim) for dim in numbers.rhs_free(rhs.shape.rank)]
    results = {place: padding.size(operand, dim) for place, (operand, dim) in enumerate(order)}
    padding.enter_array(instruction, padding.same(instruction, masked), results)


@RULES.register("cholesky")
def cholesky(padding: Padding, instruction: Instruction) -> None:
    """What pads the matrices is a unit matrix: it is positive definite, and a factor of its own."""
    (a,) = instruction.operands
    result = padding.same(instruction, [_with_unit_padding(padding, a)])
    padding.enter_array(instruction, result, padding.array_sizes(a))


@RULES.register("triangular-solve")
def triangular_solve(padding: Padding, instruction: Instruction) -> None:
    """What pads the matrices is a unit matrix, and the unknowns that belong to it become zero."""
    a, b = instruction.operands
    side = b.shape.rank - (2 if instruction.attributes["left_side"] else 1)
    array = padding.copy(b)
    size = _matrix_size(padding, a) or padding.size(b, side)
    right_sides = padding.masked(array, {side: size}, padding.zero(array))
    result = padding.same(instruction, [_with_unit_padding(padding, a), right_sides])
    sizes = {dim: size for dim, size in padding.array_sizes(a).items() if dim < a.shape.rank - 2}
    padding.enter_array(instruction, result, sizes | padding.array_sizes(b))


def _matrix_size(padding: Padding, a: Instruction) -> Instruction | None:
    rank = a.shape.rank
    return padding.size(a, rank - 2) or padding.size(a, rank - 1)


def _with_unit_padding(padding: Padding, a: Instruction) -> Instruction:
    """The matrices with ones on the diagonal and zeros elsewhere beyond their run-time size."""
    array, size = padding.copy(a), _matrix_size(padding, a)
    if size is None:
        return array
    rows, columns = array.shape.rank - 2, array.shape.rank - 1
    masked = padding.masked(array, {rows: size, columns: size}, padding.zero(array))
    numbers = array.shape.with_type(S32)
    row, column = (padding.add("iota", shape=numbers, dimension=dim) for dim in (rows, columns))
    is_diagonal = padding.add("compare", [row, column], direction=ComparisonDirection.EQ)
    is_beyond = padding.add("not", [padding.inside(array, rows, size)])
    unit = padding.add("constant", literal=Literal(1, Shape.scalar(array.shape.type)))
    ones = padding.spread(unit, array)
    return padding.add("select", [padding.add("and", [is_diagonal, is_beyond]), ones, masked])


@RULES.register("fft")
def fft(padding: Padding, instruction: Instruction) -> None:
    """Transforms of different sizes have nothing in common; how many there are may be bounded."""
    operand = instruction.operands[0]
    sizes = padding.array_sizes(operand)
    first = operand.shape.rank - len(instruction.attributes["fft_length"])
    if any(dim >= first for dim in sizes):
        raise UnsupportedError(f"fft {instruction.name} transforms a dynamic dimension of {operand.shape}")
    padding.enter_array(instruction, padding.same(instruction), sizes)
