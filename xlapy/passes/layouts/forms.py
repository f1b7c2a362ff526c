"""In which orders of their dimensions ops can read their operands and write their results.

Most ops *follow*: all their arrays have the same dimensions, and any order does if it is the same for all. Others have
*forms*: combinations of orders that they take. A form has a price, in bytes moved, where its kernel is slower than in
the best form.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

from xlapy.hlo.attributes import ConvolutionDimensionNumbers, DotDimensionNumbers, WindowDimension
from xlapy.hlo.choices import LEAST_CHOSEN, choice_of
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import BLOCKED_TRANSPOSE_BYTES, LEAST_ROW
from xlapy.hlo.matrix_products import LEAST_PRODUCT_FEATURES
from xlapy.hlo.ops import Trait
from xlapy.hlo.reshape_groups import reshape_groups
from xlapy.hlo.shape import Dims, Shape
from xlapy.hlo.sort_plan import plan_sort
from xlapy.passes.layouts.orders import (
    Order,
    fastest,
    neighbours,
    row_major,
    same_memory,
    wide,
    without,
)
from xlapy.support.records import Record
from xlapy.support.registry import Registry


class Form(Record):
    """The orders in which an op reads its arrays and writes its result, and what that costs."""

    operands: tuple[Order, ...]
    result: Order
    price: float = 0.0


Forms = Callable[[Instruction, Sequence[Order], Order], Iterator[Form]]
"""The forms of an instruction that deserve a thought where its arrays have these orders. One always does: its own."""

FORMS: Registry[Forms] = Registry("forms in other layouts")

# -- followers ---------------------------------------------------------------------------------------------------------

FOLLOWING = {
    "slice": (0,),
    "pad": (0,),
    "reverse": (0,),
    "dynamic-slice": (0,),
    "dynamic-update-slice": (0, 1),
    "reduce-window": (0,),
    "select-and-scatter": (0, 1),
}
"""Ops whose result has the dimensions of some operands, and those operands."""


SOURCES = frozenset({"broadcast", "iota", "constant"})
"""Ops that make their result in any order for the same price: each user gets one in the order that it wants."""


def is_movable(shape: Shape) -> bool:
    """An array whose dimensions can be in several orders."""
    return shape.is_array and shape.rank > 1 and shape.is_static and shape.size > 0


def following(instruction: Instruction) -> tuple[int, ...] | None:
    """The operands that have their dimensions in the order of the result; None if the op does not follow."""
    if not is_movable(instruction.shape):
        return _following_of_tuple(instruction)
    if instruction.opcode in ("concatenate", "sort"):
        return tuple(range(len(instruction.operands)))
    if Trait.ELEMENTWISE in instruction.spec.traits and not instruction.called:
        return tuple(place for place, operand in enumerate(instruction.operands) if operand.shape.rank)
    return FOLLOWING.get(instruction.opcode)


def _following_of_tuple(instruction: Instruction) -> tuple[int, ...] | None:
    """A sort of several arrays, whose results are read one by one."""
    is_plain = (
        instruction.opcode == "sort"
        and len(instruction.operands) > 1
        and is_movable(instruction.operands[0].shape)
        and not instruction.is_root
        and all(user.opcode == "get-tuple-element" for user in instruction.users)
    )
    return tuple(range(len(instruction.operands))) if is_plain else None


# -- prices of followers -----------------------------------------------------------------------------------------------

STRIDED_SORT = 4
"""Times the bytes: sorting along another dimension than the fastest one, which is gathered and put back."""

FAR_STRIDED_SORT = 16
"""The same where each step of a row leads to another line, and lines are gone from the caches when their turn comes."""

CACHED_BYTES = 1 << 20

WINDOW_ALONG_LANES = 1
"""Windows move along the fastest dimension: neighbours share a vector with others of their own window."""

SHORT_RUN = 16
SCATTERED = 4
"""Slices at run-time places with fewer neighbours than `SHORT_RUN` are read and written element by element."""

CHOSEN_BY_LANE = 6
"""So are arrays joined in pieces that short: each lane chooses among all of them."""


def price_of_following(instruction: Instruction, order: Order) -> float:
    """What a priced follower costs in an order, beyond what it costs in the best one; inf where it would have another
    result."""
    return _PRICES[instruction.opcode](instruction, order)


def _price_of_sort(sort: Instruction, order: Order) -> float:
    shape = sort.operands[0].shape
    if fastest(order, shape.dims) == sort.attributes["dimension"] or shape.dims[sort.attributes["dimension"]] == 1:
        return 0.0
    return float((FAR_STRIDED_SORT if _reaches_far(sort) else STRIDED_SORT) * _sorted_bytes(sort))


def _sorted_bytes(sort: Instruction) -> int:
    return sum(operand.shape.bytes for operand in sort.operands)


def _reaches_far(sort: Instruction) -> bool:
    """More than a cache holds is sorted row by row, or moved to where the keys go."""
    return _sorted_bytes(sort) > CACHED_BYTES and (len(sort.operands) > 1 or plan_sort(sort).lanes == 1)


def wants_rows(instruction: Instruction) -> bool:
    """A sort across memory that is worth two copies."""
    return (
        instruction.opcode == "sort"
        and is_movable(instruction.operands[0].shape)
        and _reaches_far(instruction)
        and _price_of_sort(instruction, row_major(instruction.operands[0].shape.rank)) > 0
    )


def order_of_rows(sort: Instruction) -> Order:
    """The order of dimensions in which the rows of a sort lie in one piece."""
    rank, dimension = sort.operands[0].shape.rank, sort.attributes["dimension"]
    return (*(dim for dim in range(rank) if dim != dimension), dimension)


def _price_of_window(instruction: Instruction, order: Order) -> float:
    shape = instruction.operands[0].shape
    part: WindowDimension = instruction.attributes["window"].dimensions[fastest(order, shape.dims)]
    return float(WINDOW_ALONG_LANES * shape.bytes) if part.size > 1 else 0.0


def _price_of_selection(instruction: Instruction, order: Order) -> float:
    """Of equal elements in a window the first one is selected: its places must stay in their order."""
    window = instruction.attributes["window"].dimensions
    moving = [dim for dim in order if window[dim].size > 1]
    return _price_of_window(instruction, order) if moving == sorted(moving) else math.inf


def _price_of_slice(instruction: Instruction, order: Order) -> float:
    whole = instruction.operands[0].shape.dims
    piece = instruction.shape if instruction.opcode == "dynamic-slice" else instruction.operands[1].shape
    run = 1
    for dim in reversed(order):
        run *= piece.dims[dim]
        if piece.dims[dim] != whole[dim]:
            break
    return float(SCATTERED * piece.bytes) if run < min(SHORT_RUN, piece.size) else 0.0


def _price_of_concatenate(concatenate: Instruction, order: Order) -> float:
    dimension = concatenate.attributes["dimension"]
    run = min(operand.shape.dims[dimension] for operand in concatenate.operands)
    for dim in order[order.index(dimension) + 1 :]:
        run *= concatenate.shape.dims[dim]
    return float(CHOSEN_BY_LANE * concatenate.shape.bytes) if run < SHORT_RUN else 0.0


_PRICES: dict[str, Callable[[Instruction, Order], float]] = {
    "sort": _price_of_sort,
    "reduce-window": _price_of_window,
    "select-and-scatter": _price_of_selection,
    "dynamic-slice": _price_of_slice,
    "dynamic-update-slice": _price_of_slice,
    "concatenate": _price_of_concatenate,
}

PRICED_FOLLOWERS = frozenset(_PRICES)

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
    yield Form(own[:2], own[2])
    dims = dot_dims(instruction)
    if _work(instruction, dims) < LEAST_DOT_WORK:
        return
    for left, right in dict.fromkeys(itertools.product((operands[0], own[0]), (operands[1], own[1]))):
        if _reads_matrices(instruction, dims, left, right):
            for order in dict.fromkeys((result, own[2], *natural_orders(dims, left, right))):
                if (left, right, order) != own and _writes_matrices(instruction, dims, left, right, order):
                    yield Form((left, right), order)


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
    numbers: DotDimensionNumbers = dot.attributes["dimension_numbers"]
    lhs = dot.operands[0].shape.dims
    free = (dot.shape.dims[place] for place, _ in (*dims.left, *dims.right))
    return math.prod(lhs[dim] for dim in numbers.lhs_contracting) * math.prod(free)


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
        yield Form(own[:2], own[2])
        return
    regular = regular_orders(instruction)
    irregular = float(IRREGULAR * lhs.bytes)
    slow = 0.0 if own == regular[:3] else irregular
    if not _has_neighbours(instruction, *own):
        slow = float(LOOP_NEST * (lhs.bytes + rhs.bytes + instruction.shape.bytes))
    yield Form(own[:2], own[2], slow)
    sides = dict.fromkeys((operands[0], regular[0])), dict.fromkeys((operands[1], regular[1]))
    for left, right in itertools.product(*sides):
        for order in dict.fromkeys((result, *regular[2:])):
            orders = left, right, order
            if orders != own and _has_neighbours(instruction, *orders):
                yield Form((left, right), order, 0.0 if orders == regular[:3] else irregular)


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


def relayout_bytes(shape: Shape, one: Order, other: Order) -> float:
    """What it costs to bring an array from one order into another: bytes read and written.

    Half as much where the fastest dimension stays, as copies of whole runs find a place in other kernels."""
    if same_memory(one, other, shape.dims):
        return 0.0
    factor = 1 if fastest(one, shape.dims) == fastest(other, shape.dims) else 2
    start = RELAYOUT_START if shape.bytes > BLOCKED_TRANSPOSE_BYTES else 0
    return float(factor * shape.bytes + start)


RELAYOUT_START = 32 * 1024
"""One more kernel, in bytes: it is compiled, and started each time. Small copies are made where they are used."""
