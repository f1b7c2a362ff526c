"""Ops that follow: all their arrays have the same dimensions, and any order does if it is the same for all.

Some have a price, in bytes moved, in orders in which their kernel is slower than in the best one.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from xlapy.hlo.attributes import WindowDimension
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import MOST_COLUMNS
from xlapy.hlo.ops import Trait
from xlapy.hlo.sort_plan import plan_sort
from xlapy.passes.layouts.orders import Order, fastest, is_movable, row_major

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


# -- prices ------------------------------------------------------------------------------------------------------------

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
    columns = [operand.shape.dims[dimension] for operand in concatenate.operands]
    if order[-1] == dimension and len(columns) <= MOST_COLUMNS and {*columns} == {1}:
        return 0.0
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
