"""Run-time sizes of matrices and spectra: dot, fft, and what factors and solves."""

from __future__ import annotations

from xlapy.hlo.attributes import ComparisonDirection
from xlapy.hlo.graph import Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.shape import Shape
from xlapy.passes.dynamic.padding import RULES, ArraySizes, Padding, Sizes


@RULES.register("dot")
def dot(padding: Padding, instruction: Instruction) -> None:
    """Along contracting dimensions both sides become zero: zero times padding could be NaN."""
    lhs, rhs = instruction.operands
    numbers = instruction.attributes["dimension_numbers"]
    left, right = padding.copy(lhs), padding.copy(rhs)
    for dim, other in zip(numbers.lhs_contracting, numbers.rhs_contracting, strict=True):
        size = padding.least(padding.size(lhs, dim), padding.size(rhs, other))
        left, right = padding.zeroed(left, {dim: size}), padding.zeroed(right, {other: size})
    batch = zip(numbers.lhs_batch, numbers.rhs_batch, strict=True)
    sizes = [padding.least(padding.size(lhs, dim), padding.size(rhs, other)) for dim, other in batch]
    sizes += [padding.size(lhs, dim) for dim in numbers.lhs_free(lhs.shape.rank)]
    sizes += [padding.size(rhs, dim) for dim in numbers.rhs_free(rhs.shape.rank)]
    padding.enter_array(instruction, padding.same(instruction, [left, right]), dict(enumerate(sizes)))


@RULES.register("cholesky")
def cholesky(padding: Padding, instruction: Instruction) -> None:
    """What pads the matrices is a unit matrix: it is positive definite, and a factor of its own."""
    (a,) = instruction.operands
    size, sizes = _matrix_size(padding, a), padding.array_sizes(a)
    result = padding.same(instruction, [_with_unit_padding(padding, padding.copy(a), size)])
    rank = a.shape.rank
    padding.enter_array(instruction, result, {**sizes, rank - 2: size, rank - 1: size})


@RULES.register("eigh", "svd")
def of_known_sizes(padding: Padding, instruction: Instruction) -> None:
    """Only the number of matrices may be one of run time, and each is by itself."""
    (a,) = instruction.operands
    result = padding.same(instruction, [padding.copy(a)])
    sizes = {dim: size for dim, size in padding.array_sizes(a).items() if size is not None}
    padding.enter(
        instruction,
        result,
        {((leaf,), dim): size for leaf in range(len(result.shape.parts)) for dim, size in sizes.items()},
    )


@RULES.register("lu", "qr-decomposition")
def factors_of_rectangles(padding: Padding, instruction: Instruction) -> None:
    """Rows and columns of zeros behind all others are neither chosen nor changed, and reflected by nothing."""
    (a,) = instruction.operands
    rows, columns = a.shape.rank - 2, a.shape.rank - 1
    sizes = padding.array_sizes(a)
    minor = {dim: sizes.get(dim) for dim in (rows, columns)}
    result = padding.same(instruction, [padding.zeroed(padding.copy(a), minor)])
    steps = padding.least(padding.existing(a, rows), padding.existing(a, columns)) if any(minor.values()) else None
    of_leaves = (sizes, {**sizes, rows: steps}, sizes)
    found: Sizes = {
        ((leaf,), dim): size
        for leaf, each in zip(range(len(result.shape.parts)), of_leaves, strict=False)
        for dim, size in each.items()
        if size is not None and dim < (columns if leaf else a.shape.rank)
    }
    padding.enter(instruction, result, found)


@RULES.register("householder-product")
def householder_product(padding: Padding, instruction: Instruction) -> None:
    """Only the number of matrices may be one of run time, and each is by itself."""
    a, taus = instruction.operands
    result = padding.same(instruction, [padding.copy(a), padding.copy(taus)])
    batch = range(a.shape.rank - 2)
    padding.enter_array(
        instruction, result, {dim: padding.least(padding.size(a, dim), padding.size(taus, dim)) for dim in batch}
    )


@RULES.register("triangular-solve")
def triangular_solve(padding: Padding, instruction: Instruction) -> None:
    """What pads the matrices is a unit matrix, and the unknowns that belong to it become zero."""
    a, b = instruction.operands
    rank = b.shape.rank
    side = rank - (2 if instruction.attributes["left_side"] else 1)
    size = padding.least(_matrix_size(padding, a), padding.size(b, side))
    right_sides = padding.zeroed(padding.copy(b), {side: size})
    result = padding.same(instruction, [_with_unit_padding(padding, padding.copy(a), size), right_sides])
    sizes = {dim: padding.least(padding.size(a, dim), padding.size(b, dim)) for dim in range(rank - 2)}
    free = 2 * rank - 3 - side
    padding.enter_array(instruction, result, {**sizes, free: padding.size(b, free), side: size})


def _matrix_size(padding: Padding, a: Instruction) -> Instruction | None:
    rank = a.shape.rank
    return padding.least(padding.size(a, rank - 2), padding.size(a, rank - 1))


def _with_unit_padding(padding: Padding, array: Instruction, size: Instruction | None) -> Instruction:
    """The matrices with ones on the diagonal and zeros elsewhere beyond their run-time size."""
    if size is None:
        return array
    rows, columns = array.shape.rank - 2, array.shape.rank - 1
    masked = padding.zeroed(array, {rows: size, columns: size})
    row, column = padding.counted(array, rows), padding.counted(array, columns)
    is_diagonal = padding.add("compare", [row, column], direction=ComparisonDirection.EQ)
    is_beyond = padding.add("not", [padding.inside(array, rows, size)])
    unit = padding.add("constant", literal=Literal(1, Shape.scalar(array.shape.type)))
    ones = padding.spread(unit, array)
    return padding.add("select", [padding.add("and", [is_diagonal, is_beyond]), ones, masked])


@RULES.register("fft")
def fft(padding: Padding, instruction: Instruction) -> None:
    """What a transform misses of its length is zero; how many transforms there are may be bounded."""
    (operand,) = instruction.operands
    first = operand.shape.rank - len(instruction.attributes["fft_length"])
    sizes = padding.array_sizes(operand)
    array = padding.zeroed(padding.copy(operand), {dim: size for dim, size in sizes.items() if dim >= first})
    kept: ArraySizes = {dim: size for dim, size in sizes.items() if dim < first}
    padding.enter_array(instruction, padding.same(instruction, [array]), kept)
