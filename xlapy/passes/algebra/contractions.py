"""Laws of dot."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from typing import TypeAlias

from xlapy.hlo.attributes import DotDimensionNumbers, SliceDimension
from xlapy.hlo.element_types import F32, S32, S64, U32, U64, ElementType
from xlapy.hlo.graph import Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.matrix_products import is_matrix_product, one_stride, product_kind
from xlapy.hlo.ops import Trait
from xlapy.hlo.patterns import P, variables
from xlapy.hlo.regions import binary_region
from xlapy.hlo.shape import Dims, Shape
from xlapy.hlo.short_products import short_product
from xlapy.passes import new
from xlapy.passes.algebra.conditions import is_integral, is_real
from xlapy.passes.algebra.conversion import is_lossless
from xlapy.passes.algebra.shapes import MOST_AROUND, untransposed
from xlapy.passes.new import Value
from xlapy.passes.rewrite import LAWS, Exactness
from xlapy.support.records import Record

x, y, z, xs, d, p, numbers = variables("x y z xs d p numbers")
Parts: TypeAlias = tuple[Instruction, ...]


def widens_bytes(root: Instruction, x: Instruction, y: Instruction) -> bool:
    """The product of two integers of one narrow type does what conversions of x and y to its own type do."""
    wide = root.shape.type
    is_wide = wide.is_integer and all(operand.shape.type is wide for operand in root.operands)
    return is_wide and x.shape.type.bits < wide.bits and product_kind(x.shape.type, y.shape.type, wide) is not None


def _is_summed_in_its_type(root: Instruction) -> bool:
    """Sums have the type of the result: two of them can be added like one."""
    return not root.shape.type.is_float or root.shape.type.bits >= 32


@LAWS.law(P.dot(P.transpose(x, permutation=p), y, dimension_numbers=numbers))
def dot_of_transposed_left(
    root: Instruction, x: Instruction, y: Instruction, p: Dims, numbers: DotDimensionNumbers
) -> Value | None:
    """dot(transpose(x), y) -> dot(x, y) over other dimensions, where the free ones keep their order"""
    free = [p[dim] for dim in numbers.lhs_free(len(p))]
    if free != sorted(free):
        return None
    batch, contracting = _through(p, numbers.lhs_batch), _through(p, numbers.lhs_contracting)
    return new.like(root, [x, y], dimension_numbers=replace(numbers, lhs_batch=batch, lhs_contracting=contracting))


@LAWS.law(P.dot(x, P.transpose(y, permutation=p), dimension_numbers=numbers))
def dot_of_transposed_right(
    root: Instruction, x: Instruction, y: Instruction, p: Dims, numbers: DotDimensionNumbers
) -> Value | None:
    """dot(x, transpose(y)) -> dot(x, y) over other dimensions, where the free ones keep their order"""
    free = [p[dim] for dim in numbers.rhs_free(len(p))]
    if free != sorted(free):
        return None
    batch, contracting = _through(p, numbers.rhs_batch), _through(p, numbers.rhs_contracting)
    return new.like(root, [x, y], dimension_numbers=replace(numbers, rhs_batch=batch, rhs_contracting=contracting))


@LAWS.law(P.dot(x, y, dimension_numbers=numbers))
def dot_of_transposes_inside(
    root: Instruction, x: Instruction, y: Instruction, numbers: DotDimensionNumbers
) -> Value | None:
    """dot(x, f(transpose(y))) -> dot(x, f(y)) over other dimensions, where the free ones keep their order; also of
    several f, and of f(transpose(x)) on the left"""
    left, right = _in_own_order(x, numbers.lhs_free(x.shape.rank)), _in_own_order(y, numbers.rhs_free(y.shape.rank))
    if x is y or (left is None and right is None):
        return None
    if left is not None:
        batch, contracting = _through(left.permutation, numbers.lhs_batch), numbers.lhs_contracting
        numbers = replace(numbers, lhs_batch=batch, lhs_contracting=_through(left.permutation, contracting))
    if right is not None:
        batch, contracting = _through(right.permutation, numbers.rhs_batch), numbers.rhs_contracting
        numbers = replace(numbers, rhs_batch=batch, rhs_contracting=_through(right.permutation, contracting))
    operands = [x if left is None else left.value, y if right is None else right.value]
    return new.like(root, operands, dimension_numbers=numbers)


class _Turned(Record):
    """What gives an operand if its dimensions are permuted."""

    value: Value
    permutation: Dims


def _in_own_order(value: Instruction, free: Dims) -> _Turned | None:
    """f(x) for f(transpose(x)), and the permutation."""
    if Trait.ELEMENTWISE not in value.spec.traits:
        return None
    p = _permutation_inside(value, MOST_AROUND)
    if p is None or any(p[one] > p[other] for one, other in pairwise(free)):
        return None
    found = untransposed(value, p)
    return None if found is None else _Turned(found, p)


def _permutation_inside(value: Instruction, most: int) -> Dims | None:
    """Of the first transpose that an element-wise instruction is computed from."""
    for operand in value.operands:
        if operand.opcode == "transpose":
            permutation: Dims = operand.attributes["permutation"]
            return permutation
        if most and Trait.ELEMENTWISE in operand.spec.traits:
            found = _permutation_inside(operand, most - 1)
            if found is not None:
                return found
    return None


@LAWS.law(P.dot(P.convert(x), P.convert(y)))
def dot_of_widened_bytes(root: Instruction, x: Instruction, y: Instruction) -> Value | None:
    """dot(convert(x), convert(y)) -> dot(x, y), where x and y are bytes, which matrix products widen themselves

    There are instructions for products of pairs of them. Narrow floats are as quick when they are widened before."""
    return new.like(root, [x, y]) if widens_bytes(root, x, y) else None


@LAWS.law(P.dot(x, y, dimension_numbers=numbers), when=is_integral)
def dot_of_other_integers(
    root: Instruction, x: Instruction, y: Instruction, numbers: DotDimensionNumbers
) -> Value | None:
    """dot(x, y) of bytes with sums of few bits -> convert(dot(x, y) with sums of 32), and of unsigned integers
    -> bitcast-convert(dot(bitcast-convert(x), bitcast-convert(y))) of signed ones, which a library multiplies

    Sums wrap in the same way: their low bits depend on nothing else. Small products are left to a loop nest, if that
    finds columns side by side."""
    if product_kind(x.shape.type, y.shape.type, root.shape.type) is not None or _is_small(x, y, numbers):
        return None
    sums = root.shape.with_type(S64 if root.shape.type.bits > S32.bits else S32)
    left, right = _as_signed(x, sums.type), _as_signed(y, sums.type)
    if not is_matrix_product(left.shape, right.shape, sums, numbers):
        return None
    product = new.dot(left, right, shape=sums, **root.attributes)
    if root.shape.type.bits == sums.type.bits:
        return new.bitcast_convert(product, shape=root.shape)
    return new.convert(product, shape=root.shape)


LEAST_STEPS, LEAST_MATRIX = 16, 32**3
"""Depth and multiplications of one product for which integers are brought to the types of a library."""


def _is_small(x: Instruction, y: Instruction, numbers: DotDimensionNumbers) -> bool:
    """Whether a loop nest is as quick as a library, which copies both sides first."""
    free = numbers.rhs_free(y.shape.rank)
    if not free or y.shape.dims[free[-1]] < LEAST_STEPS or one_stride(y.shape, free[-1:]) != 1:
        return False
    depth = math.prod(x.shape.dims[dim] for dim in numbers.lhs_contracting)
    rows, columns = (
        math.prod(side.shape.dims[dim] for dim in dims)
        for side, dims in ((x, numbers.lhs_free(x.shape.rank)), (y, free))
    )
    return depth < LEAST_STEPS or rows * columns * depth < LEAST_MATRIX


_SIGNED: dict[ElementType, ElementType] = {U32: S32, U64: S64}


def _as_signed(operand: Instruction, wide: ElementType) -> Value:
    """The same bits as the signed type that sums have, if they are as many."""
    if _SIGNED.get(operand.shape.type) is not wide:
        return operand
    return new.bitcast_convert(operand, shape=operand.shape.with_type(wide))


@LAWS.law(P.transpose(y.where(P.only(P.dot(x, z, dimension_numbers=numbers))), permutation=p))
def transpose_of_dot(
    x: Instruction, y: Instruction, z: Instruction, p: Dims, numbers: DotDimensionNumbers
) -> Value | None:
    """transpose(dot(x, z)) -> dot(z, x), where the free dimensions of the two sides change places"""
    batch = len(numbers.lhs_batch)
    left, right = numbers.lhs_free(x.shape.rank), numbers.rhs_free(z.shape.rank)
    first_right = batch + len(left)
    exchanged = (*range(batch), *range(first_right, first_right + len(right)), *range(batch, first_right))
    if p != exchanged:
        return None
    precision = y.attributes["operand_precision"][::-1]
    attributes = {**y.attributes, "dimension_numbers": numbers.exchanged(), "operand_precision": precision}
    return new.dot(z, x, shape=y.shape.select_dims(exchanged), **attributes)


def _through(permutation: Dims, dims: Dims) -> Dims:
    return tuple(permutation[dim] for dim in dims)


@LAWS.law(P.dot(x, y, dimension_numbers=numbers), when=is_real)
def dot_over_one(root: Instruction, x: Instruction, y: Instruction, numbers: DotDimensionNumbers) -> Value | None:
    """dot(x, y) over dimensions of size 1 -> x * y + 0, both broadcast: a sum of -0 alone is 0"""
    if any(x.shape.dims[dim] != 1 for dim in numbers.lhs_contracting) or not root.shape.size:
        return None
    if not (is_lossless(x.shape.type, root.shape.type) and is_lossless(y.shape.type, root.shape.type)):
        return None
    if not root.shape.type.holds(0, 0):  # a type of powers of two alone
        return None
    batch, left = numbers.lhs_batch, numbers.lhs_free(x.shape.rank)
    right = numbers.rhs_free(y.shape.rank)
    first = _spread_over(root, x, (*batch, *left), range(len(batch) + len(left)))
    behind = range(len(batch) + len(left), root.shape.rank)
    second = _spread_over(root, y, (*numbers.rhs_batch, *right), (*range(len(batch)), *behind))
    product = new.multiply(first, second)
    return new.add(product, new.number(0, like=root)) if root.shape.type.is_float else product


def _spread_over(root: Instruction, value: Instruction, dims: Dims, places: Iterable[int]) -> Value:
    """The operand as an array like `root`: each of its `dims` at its place there."""
    place_of = dict(zip(dims, places, strict=True))
    kept = sorted(place_of)
    converted = new.converted(new.reshaped(value, [value.shape.dims[dim] for dim in kept]), root.shape.type)
    if root.shape.is_scalar:
        return converted
    return new.broadcast(converted, shape=root.shape, dimensions=tuple(place_of[dim] for dim in kept))


MOST_TERMS = 4  # of a sum that is written out
MOST_TERMS_OF_ROWS = 8  # if they lie side by side, where a product with a vector would have to fold short rows
MOST_FEW = 4  # rows or columns of which the matrix of factors has no more
LEAST_SUMS = 64  # that are worth it


@LAWS.law(P.dot(x, y, dimension_numbers=numbers), when=is_real, exactness=Exactness.FREE)
def dot_with_few_factors(
    root: Instruction, x: Instruction, y: Instruction, numbers: DotDimensionNumbers
) -> Value | None:
    """dot(x, m) with a matrix of a few numbers -> x[..., 0] * m[0] + x[..., 1] * m[1] + ..., fused with what is around

    As colours become other colours, or points are turned: tiles of a matrix product would be idle for the most part."""
    if numbers.lhs_batch or len(numbers.lhs_contracting) != 1 or root.shape.size < LEAST_SUMS or _stands_alone(root):
        return None
    sides = ((x, numbers.lhs_contracting[0]), (y, numbers.rhs_contracting[0]))
    if not (_are_few_factors(*sides[1], *sides[0]) or _are_few_factors(*sides[0], *sides[1])):
        return None
    type = F32 if root.shape.type.is_narrow_float else root.shape.type
    if not type.holds(0, 0) or not all(is_lossless(side.shape.type, type) for side in (x, y)):
        return None
    first_right = x.shape.rank - 1
    places = range(first_right), range(first_right, root.shape.rank)
    total: Value | None = new.filled(0, root.shape.with_type(type)) if type.is_float else None
    for number in range(x.shape.dims[sides[0][1]]):
        factors = [_spread(_at(*side, number), root.shape, own) for side, own in zip(sides, places, strict=True)]
        product = new.multiply(*(new.converted(factor, type) for factor in factors))
        total = product if total is None else new.add(total, product)
    return new.converted(total, root.shape.type) if total is not None else None


def _stands_alone(root: Instruction) -> bool:
    """There is nothing around a product that would be fused with it, and a library that has it."""
    leaves = all(user.opcode == "tuple" and user.is_root for user in root.users)
    return leaves and root.operands[0].opcode == "parameter" and short_product(root) is not None


def _are_few_factors(factors: Instruction, dim: int, other: Instruction, of_other: int) -> bool:
    """Each element along `of_other` is multiplied by a few numbers, and few products make a sum."""
    terms = factors.shape.dims[dim]
    few = factors.shape.size // max(terms, 1)
    is_row = few == 1 and of_other == other.shape.rank - 1
    return 0 < few <= MOST_FEW and 0 < terms <= (MOST_TERMS_OF_ROWS if is_row else MOST_TERMS)


def _at(value: Instruction, dim: int, number: int) -> Value:
    """The elements with that number along a dimension, without it."""
    dims = value.shape.dims
    whole = [SliceDimension(0, size) for size in dims]
    part = (*whole[:dim], SliceDimension(number, number + 1), *whole[dim + 1 :])
    return new.reshaped(new.slice(value, dimensions=part), (*dims[:dim], *dims[dim + 1 :]))


def _spread(value: Value, shape: Shape, places: Sequence[int]) -> Value:
    """The value repeated in an array of such dimensions, its own at `places`."""
    wanted = shape.with_type(value.shape.type)
    return value if value.shape.dims == wanted.dims else new.broadcast(value, shape=wanted, dimensions=tuple(places))


@LAWS.law(P.dot(x, y, dimension_numbers=numbers), when=is_real, exactness=Exactness.FREE)
def dot_without_free_dims(
    root: Instruction, x: Instruction, y: Instruction, numbers: DotDimensionNumbers
) -> Value | None:
    """dot(x, y) with no free dimensions -> sum(x * y), which is fused with what is around it

    A product of two vectors has one row and one column: no tile of it has more than one sum at a time."""
    left_free, right_free = numbers.lhs_free(x.shape.rank), numbers.rhs_free(y.shape.rank)
    if not root.shape.size or math.prod(root.shape.dims[len(numbers.lhs_batch) :]) > 1:
        return None
    type = F32 if root.shape.type.is_narrow_float else root.shape.type
    if not all(is_lossless(side.shape.type, type) for side in (x, y)) or not type.holds(0, 0):
        return None
    left, lhs_batch, lhs_contracting = _without(x, left_free, numbers.lhs_batch, numbers.lhs_contracting)
    right, rhs_batch, rhs_contracting = _without(y, right_free, numbers.rhs_batch, numbers.rhs_contracting)
    place = dict(zip((*lhs_batch, *lhs_contracting), (*rhs_batch, *rhs_contracting), strict=True))
    permutation = tuple(place[dim] for dim in range(len(place)))
    other = right if permutation == tuple(sorted(permutation)) else new.transpose(right, permutation=permutation)
    product = new.multiply(new.converted(left, type), new.converted(other, type))
    zero = new.op("constant", literal=Literal(type.dtype.type(0)))
    folded = tuple(sorted(lhs_contracting))
    total = new.op("reduce", [product, zero], called=[binary_region("add", type)], dimensions=folded)
    order = tuple(sorted(lhs_batch).index(dim) for dim in lhs_batch)
    in_order = total if order == tuple(range(len(order))) else new.transpose(total, permutation=order)
    return new.reshaped(new.converted(in_order, root.shape.type), root.shape.dims)


@LAWS.law(P.dot(x, y, dimension_numbers=numbers))
def dot_of_single_batch(
    root: Instruction, x: Instruction, y: Instruction, numbers: DotDimensionNumbers
) -> Value | None:
    """dot(x, y) with batch or contracting dimensions of size 1 -> reshape(dot(x, y)) without them"""
    batch = [pair for pair in zip(numbers.lhs_batch, numbers.rhs_batch, strict=True) if x.shape.dims[pair[0]] == 1]
    summed = zip(numbers.lhs_contracting, numbers.rhs_contracting, strict=True)
    single = [pair for pair in summed if x.shape.dims[pair[0]] == 1]
    if not (batch or single) or len(single) == len(numbers.lhs_contracting) or not root.shape.size:
        return None
    left, lhs_batch, lhs_contracting = _without(
        x, [pair[0] for pair in (*batch, *single)], numbers.lhs_batch, numbers.lhs_contracting
    )
    right, rhs_batch, rhs_contracting = _without(
        y, [pair[1] for pair in (*batch, *single)], numbers.rhs_batch, numbers.rhs_contracting
    )
    fewer = DotDimensionNumbers(lhs_contracting, rhs_contracting, lhs_batch, rhs_batch)
    product = new.dot(
        left, right, shape=Shape.scalar(root.shape.type), **{**root.attributes, "dimension_numbers": fewer}
    )
    return new.reshaped(product, root.shape.dims)


def _without(value: Instruction, dropped: Sequence[int], batch: Dims, contracting: Dims) -> tuple[Value, Dims, Dims]:
    """The operand without some dimensions of size 1, and where its others are then."""
    kept = [dim for dim in range(value.shape.rank) if dim not in dropped]
    place = {dim: number for number, dim in enumerate(kept)}
    smaller = new.reshaped(value, [value.shape.dims[dim] for dim in kept])
    return smaller, tuple(place[d] for d in batch if d in place), tuple(place[d] for d in contracting if d in place)


@LAWS.law(
    P.dot(x.where(P.only(P.concatenate(xs.rest, dimension=d))), y, dimension_numbers=numbers),
    when=_is_summed_in_its_type,
    exactness=Exactness.FREE,
)
def dot_of_joined_left(
    root: Instruction, x: Instruction, y: Instruction, xs: Parts, d: int, numbers: DotDimensionNumbers
) -> Value | None:
    """dot(concatenate(a, b), y) -> dot(a, y[:k]) + dot(b, y[k:]), where joining a and b costs most"""
    if d not in numbers.lhs_contracting or not _is_joining_expensive(root, x, y, xs, d):
        return None
    place = numbers.rhs_contracting[numbers.lhs_contracting.index(d)]
    return _sum(new.like(root, [one, other]) for one, other in zip(xs, _cut(y, place, xs, d), strict=True))


@LAWS.law(
    P.dot(y, x.where(P.only(P.concatenate(xs.rest, dimension=d))), dimension_numbers=numbers),
    when=_is_summed_in_its_type,
    exactness=Exactness.FREE,
)
def dot_of_joined_right(
    root: Instruction, x: Instruction, y: Instruction, xs: Parts, d: int, numbers: DotDimensionNumbers
) -> Value | None:
    """dot(y, concatenate(a, b)) -> dot(y[:k], a) + dot(y[k:], b), where joining a and b costs most"""
    if d not in numbers.rhs_contracting or not _is_joining_expensive(root, x, y, xs, d):
        return None
    place = numbers.lhs_contracting[numbers.rhs_contracting.index(d)]
    return _sum(new.like(root, [other, one]) for one, other in zip(xs, _cut(y, place, xs, d), strict=True))


LEAST_SUMMED = 64  # elements to contract in a dot of its own: below, products do not pay for the loops around them
JOINING = 4  # how many times what is added and cut must be less than what is joined: measured gains begin at 3


def _is_joining_expensive(root: Instruction, joined: Instruction, other: Instruction, parts: Parts, dim: int) -> bool:
    """Writing the joined array moves much more than cutting the other operand and adding up the products."""
    extra = other.shape.bytes + (len(parts) - 1) * root.shape.bytes
    return joined.shape.bytes >= JOINING * extra and all(part.shape.dims[dim] >= LEAST_SUMMED for part in parts)


def _cut(value: Instruction, dim: int, parts: Parts, joined_dim: int) -> Iterator[Value]:
    """The slices of `value` along `dim` that meet each of `parts`."""
    whole = [SliceDimension(0, size) for size in value.shape.dims]
    start = 0
    for part in parts:
        stop = start + part.shape.dims[joined_dim]
        yield new.slice(value, dimensions=(*whole[:dim], SliceDimension(start, stop), *whole[dim + 1 :]))
        start = stop


def _sum(values: Iterable[Value]) -> Value:
    return reduce(new.add, values)


@LAWS.law(P.dot(x, y, dimension_numbers=numbers), when=_is_summed_in_its_type, exactness=Exactness.FREE)
def dot_of_depth_in_parts(
    root: Instruction, x: Instruction, y: Instruction, numbers: DotDimensionNumbers
) -> Value | None:
    """dot(x, y) -> sum over a batch of dots, where depth has no single stride, but parts of it do

    As in gradients of kernels: in images with features first, these lie between the batch and the places. Not where
    the parts of the sum would take more memory than what is multiplied."""
    is_product = product_kind(x.shape.type, y.shape.type, root.shape.type) is not None
    if numbers.lhs_batch or not root.shape.size or not is_product or not _have_single_strides(x, y, numbers):
        return None
    pairs = sorted(zip(numbers.lhs_contracting, numbers.rhs_contracting, strict=True))
    count = next(number for number in range(len(pairs) + 1) if _is_single_stride(x, y, pairs[number:]))
    parts = math.prod(x.shape.dims[dim] for dim, _ in pairs[:count])
    if not 0 < count < len(pairs) or parts * root.shape.size > x.shape.size + y.shape.size:
        return None
    batch, depth = (list(zip(*part, strict=True)) for part in (pairs[:count], pairs[count:]))
    products = new.dot(
        x,
        y,
        shape=Shape.scalar(root.shape.type),
        **{**root.attributes, "dimension_numbers": DotDimensionNumbers(*depth, *batch)},
    )
    zero = new.op("constant", literal=Literal(root.shape.type.dtype.type(0)))
    region = binary_region("add", root.shape.type)
    return new.op("reduce", [products, zero], called=[region], dimensions=tuple(range(count)))


def _have_single_strides(x: Instruction, y: Instruction, numbers: DotDimensionNumbers) -> bool:
    """There is one distance from row to row of x, and from column to column of y."""
    rows, columns = numbers.lhs_free(x.shape.rank), numbers.rhs_free(y.shape.rank)
    return one_stride(x.shape, rows) is not None and one_stride(y.shape, columns) is not None


def _is_single_stride(x: Instruction, y: Instruction, pairs: Sequence[tuple[int, int]]) -> bool:
    """There is one distance between neighbours along these dimensions, in x and in y."""
    left, right = zip(*pairs, strict=True) if pairs else ((), ())
    return one_stride(x.shape, left) is not None and one_stride(y.shape, right) is not None


@LAWS.law(P.dot(x, P.number(1), dimension_numbers=numbers), exactness=Exactness.FREE)
def dot_with_ones_right(root: Instruction, x: Instruction, numbers: DotDimensionNumbers) -> Value | None:
    """dot(x, 1 1 1 ...) -> broadcast(sum(x))"""
    return _sum_of_side(root, x, numbers.lhs_contracting, numbers.lhs_batch, first_free=len(numbers.lhs_batch))


@LAWS.law(P.dot(P.number(1), y, dimension_numbers=numbers), exactness=Exactness.FREE)
def dot_with_ones_left(root: Instruction, y: Instruction, numbers: DotDimensionNumbers) -> Value | None:
    """dot(1 1 1 ..., y) -> broadcast(sum(y))"""
    free = y.shape.rank - len(numbers.rhs_contracting) - len(numbers.rhs_batch)
    return _sum_of_side(root, y, numbers.rhs_contracting, numbers.rhs_batch, first_free=root.shape.rank - free)


def _sum_of_side(root: Instruction, side: Instruction, folded: Dims, batch: Dims, first_free: int) -> Value | None:
    """One operand of a dot summed and put at its places in the result; not for types that sums would round, or that
    have no 0 to begin with."""
    if not side.shape.size or not root.shape.size or root.shape.type.is_complex:
        return None
    if not is_lossless(side.shape.type, root.shape.type) or not root.shape.type.holds(0, 0):
        return None
    zero = new.op("constant", literal=Literal(root.shape.type.dtype.type(0)))
    terms, region = new.converted(side, root.shape.type), binary_region("add", root.shape.type)
    total = new.op("reduce", [terms, zero], called=[region], dimensions=folded)
    left = [dim for dim in range(side.shape.rank) if dim not in folded]
    free = [dim for dim in left if dim not in batch]
    place = {dim: batch.index(dim) if dim in batch else first_free + free.index(dim) for dim in left}
    if root.shape.is_scalar:
        return total
    return new.broadcast(total, shape=root.shape, dimensions=tuple(place[dim] for dim in left))


@LAWS.law(P.dot(x, P.number(0)), P.dot(P.number(0), x), when=is_integral)
def dot_with_zeros(root: Instruction) -> Value:
    """dot(x, 0 0 0 ...) -> 0, for integers"""
    return new.number(0, like=root)
