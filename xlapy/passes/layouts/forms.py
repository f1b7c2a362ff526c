"""In which orders of their dimensions ops can read their operands and write their results, where these need not agree.

Most ops follow: see `followers`. Others have *forms*: combinations of orders that they take. A form has a price, in
bytes moved, where its kernel is slower than in the best form.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

from xlapy.hlo.attributes import ConvolutionDimensionNumbers, DotDimensionNumbers
from xlapy.hlo.choices import LEAST_CHOSEN, choice_of
from xlapy.hlo.element_types import F32
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import LEAST_ROW, PICKED_BYTES, has_features_in_lanes
from xlapy.hlo.matrix_products import (
    LEAST_PRODUCT_FEATURES,
    is_near_vector_product,
    matrix_product,
    pointwise_product,
    product_kind,
)
from xlapy.hlo.reshape_groups import reshape_groups
from xlapy.hlo.shape import Dims, Shape
from xlapy.hlo.short_products import short_product
from xlapy.passes.layouts.orders import (
    Order,
    fastest,
    neighbours,
    row_major,
    wide,
    without,
)
from xlapy.support.records import Record, replaced
from xlapy.support.registry import Registry


class Form(Record):
    """The orders in which an op reads its arrays and writes its result, and what that costs."""

    operands: tuple[Order, ...]
    result: Order
    price: float = 0.0


Forms = Callable[[Instruction, Sequence[Order], Order], Iterator[Form]]
"""The forms of an instruction that deserve a thought where its arrays have these orders. One always does: its own."""

FORMS: Registry[Forms] = Registry("forms in other layouts")

# -- data movement -----------------------------------------------------------------------------------------------------


@FORMS.register("transpose")
def _transpose(instruction: Instruction, operands: Sequence[Order], result: Order) -> Iterator[Form]:
    """A transpose is nothing at all where its operand has the order that its result wants."""
    permutation: Dims = instruction.attributes["permutation"]
    yield Form((tuple(permutation[dim] for dim in result),), result)


@FORMS.register("reshape")
def _reshape(instruction: Instruction, operands: Sequence[Order], result: Order) -> Iterator[Form]:
    """No element moves where the dimensions that become others stay together, in their order."""
    before, after = instruction.operands[0].shape, instruction.shape
    yield Form((row_major(before.rank),), row_major(after.rank))
    for order in dict.fromkeys((*operands,)):
        there = regrouped(order, before, after)
        if there is not None:
            yield Form((order,), there)
    back = regrouped(result, after, before)
    if back is not None:
        yield Form((back,), result)


def regrouped(order: Order, before: Shape, after: Shape) -> Order | None:
    """The order of a reshape's result that has the elements where those of an operand in `order` are."""
    sequence = wide(order, before.dims)
    found: list[int] = []
    place = 0
    runs = {group.before[0]: group for group in _runs(before, after)}
    while place < len(sequence):
        run = runs.get(sequence[place])
        if run is None or sequence[place : place + len(run.before)] != run.before:
            return None
        place += len(run.before)
        found += run.after
    single = [dim for dim in range(after.rank) if dim not in found]
    for dim in single:  # in front of the dimension that follows it, as in a row-major array
        following = next((number for number, other in enumerate(found) if other == dim + 1), None)
        found.insert(following if following is not None else _behind(found, dim), dim)
    return tuple(found)


def _behind(found: Sequence[int], dim: int) -> int:
    """The place behind the dimension before `dim`, or the first."""
    return found.index(dim - 1) + 1 if dim - 1 in found else 0


class _Run(Record):
    before: Dims
    after: Dims


def _runs(before: Shape, after: Shape) -> list[_Run]:
    """The runs of a reshape without dimensions of one element."""
    groups = reshape_groups(before, after)
    return [_Run(wide(g.before, before.dims), wide(g.after, after.dims)) for g in groups if wide(g.before, before.dims)]


# -- reduce ------------------------------------------------------------------------------------------------------------

LANES = 8
"""Results side by side that fill a vector: a sum over slower dimensions with fewer of them leaves lanes idle."""


@FORMS.register("reduce")
def _reduce(instruction: Instruction, operands: Sequence[Order], result: Order) -> Iterator[Form]:
    """Whatever the order is in which the operands are read, the result has what is left of it."""
    dims = instruction.operands[0].shape.dims
    folded: Dims = instruction.attributes["dimensions"]
    rank = len(dims)
    for order in dict.fromkeys((*operands, row_major(rank))):
        yield Form((order,) * len(operands), without(order, folded), _price_of_reduce(instruction, order, dims, folded))


def _price_of_reduce(reduce: Instruction, order: Order, dims: Dims, folded: Dims) -> float:
    """A sweep more where rows were in one piece and are no longer; and lanes that are idle."""
    bytes = reduce.operands[0].shape.bytes
    price = 0.0
    if _has_rows(row_major(len(dims)), dims, folded) and not _has_rows(order, dims, folded):
        price += bytes
    inner = fastest(order, dims)
    if inner not in folded and dims[inner] < LANES < reduce.operands[0].shape.size:
        price += 2 * bytes
    if inner in folded and dims[inner] < _least_row_of(reduce):
        price += 2 * bytes
    return float(price)


def _least_row_of(reduce: Instruction) -> float:
    """The shortest rows that a reduce folds by vectors."""
    if len(reduce.operands) == 2:
        return LANES
    return LEAST_CHOSEN if choice_of(reduce) is not None else math.inf


def _has_rows(order: Order, dims: Dims, folded: Dims) -> bool:
    """What is folded lies in one piece."""
    sequence = wide(order, dims)
    count = sum(1 for dim in folded if dims[dim] != 1)
    last = sequence[len(sequence) - count :]
    return 0 < count < len(sequence) and set(last) <= {*folded} and dims[sequence[-1]] >= LEAST_ROW


# -- dots --------------------------------------------------------------------------------------------------------------

LEAST_DOT_WORK = 2048
"""Multiplications of one matrix product that make it a call of the library, which reads and writes any strides."""


@FORMS.register("dot")
def _dot(instruction: Instruction, operands: Sequence[Order], result: Order) -> Iterator[Form]:
    lhs, rhs = (operand.shape for operand in instruction.operands)
    own = row_major(lhs.rank), row_major(rhs.rank), row_major(instruction.shape.rank)
    dims = dot_dims(instruction)
    if _work(instruction, dims) < LEAST_DOT_WORK:
        yield Form(own[:2], own[2])
        return
    sides = [*itertools.product((operands[0], own[0]), (operands[1], own[1]))]
    if wants_matrices(instruction):
        yield Form(own[:2], own[2], float(NO_PRODUCT * instruction.shape.size * _depth(instruction)))
        sides += _matrices(instruction, dims, operands, result)
    elif wants_neighbours(instruction):
        yield Form(
            own[:2],
            own[2],
            float(GATHERED_FOR_PRODUCTS * sum(operand.shape.size for operand in _gathered(instruction))),
        )
        sides += _matrices(instruction, dims, operands, result)
    else:
        yield Form(own[:2], own[2])
    for left, right in dict.fromkeys(sides):
        if _reads_matrices(instruction, dims, left, right):
            for order in dict.fromkeys((result, own[2], *natural_orders(dims, left, right))):
                if (left, right, order) != own and _writes_matrices(instruction, dims, left, right, order):
                    yield Form((left, right), order)


NO_PRODUCT = 1
"""Bytes that could be moved while a loop nest multiplies once more slowly than the library."""


GATHERED_FOR_PRODUCTS = 16
"""Bytes that could be moved while the library gathers one more element of a narrow type (64 of 32 by 32 of bf16: 0.3 of
the time if they are put in the order of matrices before), or one that pushes its neighbours out of the nearest cache
(the same of f32: 0.4; 300 of 16 by 16, whose elements are 1200 bytes apart, 0.9, and 1000 of them 1.4)."""

BYTES_OF_FEW_SETS = 256
"""Elements that are a multiple of so many bytes apart meet in a quarter of the places of a nearest cache."""


def wants_neighbours(dot: Instruction) -> bool:
    """Whether an instruction is a dot of matrices whose elements lie side by side with those of others, and which are
    better put in order than gathered."""
    return dot.opcode == "dot" and dot.shape.is_static and bool(_gathered(dot))


def _gathered(dot: Instruction) -> list[Instruction]:
    """The operands of which that is true."""
    dims = dot_dims(dot)
    if not dims.batch or not dot.shape.size or _work(dot, dims) < LEAST_DOT_WORK:
        return []
    batches = ([dim for _, dim, _ in dims.batch], [dim for _, _, dim in dims.batch])
    pairs = zip(dot.operands, batches, strict=True)
    return [operand for operand, batch in pairs if _is_slowly_gathered(operand.shape, batch)]


def _is_slowly_gathered(shape: Shape, batch: Sequence[int]) -> bool:
    side_by_side = fastest(row_major(shape.rank), shape.dims)
    if side_by_side not in batch:
        return False
    pitch = shape.dims[side_by_side] * shape.type.bytes
    return shape.type.bytes <= PICKED_BYTES or (shape.type is F32 and pitch % BYTES_OF_FEW_SETS == 0)


def wants_matrices(dot: Instruction) -> bool:
    """Whether an instruction is a dot that is a loop nest only for the order of its dimensions, and large."""
    if dot.opcode != "dot" or not dot.shape.is_static or not dot.shape.size:
        return False
    lhs, rhs = (operand.shape for operand in dot.operands)
    if _work(dot, dot_dims(dot)) < LEAST_WANTED_WORK or short_product(dot) is not None:
        return False
    if product_kind(lhs.type, rhs.type, dot.shape.type) is None or matrix_product(dot) is not None:
        return False
    return not is_near_vector_product(lhs, rhs, dot.shape, dot.attributes["dimension_numbers"])


LEAST_WANTED_WORK = 1 << 15
"""Multiplications of one matrix product for which operands are brought into other orders."""


def _matrices(
    dot: Instruction, dims: DotDims, operands: Sequence[Order], result: Order
) -> Iterator[tuple[Order, Order]]:
    """Orders of the operands in which rows, columns and depth have one stride each: one or both of them as they are, or
    put in order."""
    numbers: DotDimensionNumbers = dot.attributes["dimension_numbers"]
    pairs = [*zip(numbers.lhs_contracting, numbers.rhs_contracting, strict=True)]
    batches = tuple(dim for _, dim, _ in dims.batch), tuple(dim for _, _, dim in dims.batch)
    for given in (0, 1):
        depth = sorted(pairs, key=lambda pair: operands[given].index(pair[given]))
        found: list[list[Order]] = []
        for side, (batch, free) in enumerate(zip(batches, (dims.left, dims.right), strict=True)):
            steps = tuple(pair[side] for pair in depth)
            by_operand = tuple(dim for _, dim in in_order(free, operands[side]))
            by_result = tuple(dim for _, dim in sorted(free, key=lambda pair: result.index(pair[0])))
            orders = [(*batch, *part) for f in (by_operand, by_result) for part in ((*f, *steps), (*steps, *f))]
            found.append([operands[side], *orders])
        yield from itertools.product(*found)


class DotDims(Record):
    """The dimensions of a dot's result by where they come from, each with the dimension that it is in the operands."""

    batch: tuple[tuple[int, int, int], ...]  # result, left, right
    left: tuple[tuple[int, int], ...]  # result, left
    right: tuple[tuple[int, int], ...]  # result, right


def dot_dims(dot: Instruction) -> DotDims:
    numbers: DotDimensionNumbers = dot.attributes["dimension_numbers"]
    left, right = (operand.shape for operand in dot.operands)
    batch = tuple((place, *pair) for place, pair in enumerate(zip(numbers.lhs_batch, numbers.rhs_batch, strict=True)))
    first = len(batch)
    rows = tuple(enumerate(numbers.lhs_free(left.rank), start=first))
    columns = tuple(enumerate(numbers.rhs_free(right.rank), start=first + len(rows)))
    return DotDims(batch, rows, columns)


def natural_orders(dims: DotDims, left: Order, right: Order) -> tuple[Order, Order]:
    """The orders of the result, rows first or columns first, that operands in these orders lead to."""
    batch = tuple(place for place, *_ in dims.batch)
    rows = tuple(place for place, _ in in_order(dims.left, left))
    columns = tuple(place for place, _ in in_order(dims.right, right))
    return (*batch, *rows, *columns), (*batch, *columns, *rows)


def in_order(free: Sequence[tuple[int, int]], order: Order) -> list[tuple[int, int]]:
    """The free dimensions of a side as they follow each other in memory."""
    return sorted(free, key=lambda pair: order.index(pair[1]))


def contracted(dot: Instruction, left: Order) -> tuple[Dims, Dims]:
    """The contracted dimensions of both sides, pairwise, in the order that the left side has them in memory."""
    numbers: DotDimensionNumbers = dot.attributes["dimension_numbers"]
    pairs = sorted(
        zip(numbers.lhs_contracting, numbers.rhs_contracting, strict=True), key=lambda pair: left.index(pair[0])
    )
    return tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)


def _work(dot: Instruction, dims: DotDims) -> int:
    """The multiplications of one matrix product of a batch."""
    return _depth(dot) * math.prod(dot.shape.dims[place] for place, _ in (*dims.left, *dims.right))


def _depth(dot: Instruction) -> int:
    numbers: DotDimensionNumbers = dot.attributes["dimension_numbers"]
    return math.prod(dot.operands[0].shape.dims[dim] for dim in numbers.lhs_contracting)


def _reads_matrices(dot: Instruction, dims: DotDims, left: Order, right: Order) -> bool:
    """Rows, columns and depth have one stride each in the operands, and something else than batches is fastest."""
    lhs, rhs = (operand.shape.dims for operand in dot.operands)
    depth = contracted(dot, left)
    return (
        fastest(left, lhs) not in [dim for _, dim, _ in dims.batch]
        and fastest(right, rhs) not in [dim for _, _, dim in dims.batch]
        and neighbours(depth[0], left, lhs)
        and neighbours(depth[1], right, rhs)
        and neighbours([dim for _, dim in in_order(dims.left, left)], left, lhs)
        and neighbours([dim for _, dim in in_order(dims.right, right)], right, rhs)
    )


def _writes_matrices(dot: Instruction, dims: DotDims, left: Order, right: Order, result: Order) -> bool:
    """Rows and columns have one stride each in the result, and vectors of it are stored, not scattered."""
    sizes = dot.shape.dims
    rows = [place for place, _ in in_order(dims.left, left)]
    columns = [place for place, _ in in_order(dims.right, right)]
    return (
        fastest(result, sizes) in (*rows, *columns)
        and neighbours(rows, result, sizes)
        and neighbours(columns, result, sizes)
    )


# -- convolutions ------------------------------------------------------------------------------------------------------

LEAST_NEIGHBOURS = 12
"""Elements side by side that are worth packing together."""

LEAST_CONVOLUTION_WORK = 1 << 20
"""Multiplications that make a convolution a call of the library."""


@FORMS.register("convolution")
def _convolution(instruction: Instruction, operands: Sequence[Order], result: Order) -> Iterator[Form]:
    """Any form is a product of matrices where features lie side by side; else its own is a loop nest."""
    lhs, rhs = (operand.shape for operand in instruction.operands)
    own = row_major(lhs.rank), row_major(rhs.rank), row_major(instruction.shape.rank)
    if not _could_be_product(instruction):
        yield from _forms_of_channels(instruction, Form(own[:2], own[2]))
        return
    regular = regular_orders(instruction)
    irregular = float(IRREGULAR * lhs.bytes)
    slow = 0.0 if own == regular[:3] else irregular
    if pointwise_product(instruction) is not None:
        slow = 0.0
    elif not _has_neighbours(instruction, *own):
        slow = float(LOOP_NEST * (lhs.bytes + rhs.bytes + instruction.shape.bytes))
    yield Form(own[:2], own[2], slow)
    sides = dict.fromkeys((operands[0], regular[0])), dict.fromkeys((operands[1], regular[1]))
    for left, right in itertools.product(*sides):
        for order in dict.fromkeys((result, *regular[2:])):
            orders = left, right, order
            if orders != own and _has_neighbours(instruction, *orders):
                yield Form((left, right), order, 0.0 if orders == regular[:3] else irregular)


def _forms_of_channels(convolution: Instruction, own: Form) -> Iterator[Form]:
    """Where each vector has features of several groups, as in a depthwise convolution and the gradient of its kernel,
    these are best side by side in all arrays: else each element by itself is loaded into its lane."""
    numbers: ConvolutionDimensionNumbers = convolution.attributes["dimension_numbers"]
    by_batch = convolution.attributes["batch_group_count"] > 1
    groups = convolution.attributes["feature_group_count"] * convolution.attributes["batch_group_count"]
    lhs, rhs = (operand.shape.dims for operand in convolution.operands)
    features = rhs[numbers.kernel_output_feature]
    products = convolution.shape.size * math.prod(rhs) // features
    are_apart = groups >= LANES and features < LANES * groups and has_features_in_lanes(convolution)
    if not are_apart or products < LEAST_CONVOLUTION_WORK:
        yield own
        return
    channel, other = numbers.input_batch, numbers.input_feature
    if not by_batch:
        channel, other = other, channel
    left = (other, *numbers.input_spatial, channel)
    right = (numbers.kernel_input_feature, *numbers.kernel_spatial, numbers.kernel_output_feature)
    is_gathered = fastest(own.operands[0], lhs) != channel
    yield replaced(own, price=float(GATHERED * products)) if is_gathered else own
    for order in regular_orders(convolution)[2:]:
        yield Form((left, right), order)


GATHERED = 4
"""Bytes that could be moved while one lane of a vector is loaded by itself."""

LOOP_NEST = 1
"""Times the bytes of operands and result: a convolution in an order in which it is no product of matrices."""


IRREGULAR = 0.25
"""Times the bytes that slide under the window: tiles find their places with more arithmetic."""


def regular_orders(convolution: Instruction) -> tuple[Order, Order, Order, Order]:
    """Features last: of the input, the kernel, and the result; and the result with batches next to last."""
    numbers: ConvolutionDimensionNumbers = convolution.attributes["dimension_numbers"]
    return (
        (numbers.input_batch, *numbers.input_spatial, numbers.input_feature),
        (*numbers.kernel_spatial, numbers.kernel_input_feature, numbers.kernel_output_feature),
        (numbers.output_batch, *numbers.output_spatial, numbers.output_feature),
        (*numbers.output_spatial, numbers.output_batch, numbers.output_feature),
    )


def _could_be_product(convolution: Instruction) -> bool:
    """The library computes the convolution in some order: there is enough to multiply, and enough features."""
    numbers: ConvolutionDimensionNumbers = convolution.attributes["dimension_numbers"]
    rhs = convolution.operands[1].shape
    outputs = rhs.dims[numbers.kernel_output_feature]
    return (
        convolution.shape.size * (rhs.size // outputs) >= LEAST_CONVOLUTION_WORK
        and outputs // convolution.attributes["feature_group_count"] >= LEAST_PRODUCT_FEATURES
        and convolution.attributes["batch_group_count"] == 1
        and convolution.shape.type.name in ("f32", "f64")
        and all(part.base_dilation == 1 for part in convolution.attributes["window"].dimensions)
    )


def _has_neighbours(convolution: Instruction, left: Order, right: Order, result: Order) -> bool:
    """Lanes are output features, and what is packed together lies together: input features, or batches."""
    numbers: ConvolutionDimensionNumbers = convolution.attributes["dimension_numbers"]
    if result[-1] != numbers.output_feature or right[-1] != numbers.kernel_output_feature:
        return False
    lhs, rhs = (operand.shape.dims for operand in convolution.operands)
    inner = fastest(left, lhs)
    if inner == numbers.input_feature:
        inputs = numbers.kernel_input_feature
        return right[-2] == inputs and rhs[inputs] >= LEAST_NEIGHBOURS
    return (
        inner == numbers.input_batch
        and result[-2] == numbers.output_batch
        and lhs[numbers.input_batch] >= LEAST_NEIGHBOURS
    )
