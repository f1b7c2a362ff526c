"""The operators of `XlaOp`: op functions, and the few compositions that make them behave as Python's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xlapy.builder import contractions, elementwise
from xlapy.builder.arguments import as_int
from xlapy.builder.op import XlaOp
from xlapy.builder.operands import Operand, as_ops, builder_of
from xlapy.builder.registry import OPERATORS, located
from xlapy.builder.shapes import require_array
from xlapy.builder.structure import GetTupleElement
from xlapy.hlo.attributes import DotDimensionNumbers, SliceDimension
from xlapy.hlo.reshape_groups import reshaped_flags
from xlapy.hlo.shape import UNBOUNDED, Shape
from xlapy.support.errors import ArgumentError, ShapeError

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": elementwise.Add,
    "sub": elementwise.Sub,
    "mul": elementwise.Mul,
    "truediv": elementwise.Div,
    "pow": elementwise.Pow,
    "neg": elementwise.Neg,
    "abs": elementwise.Abs,
    "invert": elementwise.Not,
    "and": elementwise.And,
    "or": elementwise.Or,
    "xor": elementwise.Xor,
    "lshift": elementwise.ShiftLeft,
    "eq": elementwise.Eq,
    "ne": elementwise.Ne,
    "lt": elementwise.Lt,
    "le": elementwise.Le,
    "gt": elementwise.Gt,
    "ge": elementwise.Ge,
}

for _name, _function in _FUNCTIONS.items():
    OPERATORS.add(_name, _function)


def _as_pair(lhs: Operand, rhs: Operand) -> tuple[XlaOp, XlaOp]:
    left, right = as_ops(builder_of(lhs, rhs), (lhs, rhs))
    return left, right


@OPERATORS.register("rshift")
@located
def shift_right(lhs: Operand, rhs: Operand) -> XlaOp:
    """Keeps the sign of signed integers."""
    left, right = _as_pair(lhs, rhs)
    signed = require_array(left).type.is_signed
    return elementwise.ShiftRightArithmetic(left, right) if signed else elementwise.ShiftRightLogical(left, right)


@OPERATORS.register("mod")
@located
def modulo(lhs: Operand, rhs: Operand) -> XlaOp:
    """The remainder with the sign of the divisor, as Python's; ops.Rem has that of the dividend."""
    left, right = _as_pair(lhs, rhs)
    remainder = elementwise.Rem(left, right)
    if remainder.shape.type.is_integer and not remainder.shape.type.is_signed:
        return remainder
    return elementwise.Select(_rounded_up(remainder, right), elementwise.Add(remainder, right), remainder)


@OPERATORS.register("floordiv")
@located
def floor_divide(lhs: Operand, rhs: Operand) -> XlaOp:
    """The quotient rounded down, as Python's; ops.Div of integers truncates.

    That of floats is rounded to a float first: 1.0 // 0.1 is 10, where Python's is 9."""
    left, right = _as_pair(lhs, rhs)
    quotient = elementwise.Div(left, right)
    if quotient.shape.type.is_float:
        return elementwise.Floor(quotient)
    if not quotient.shape.type.is_signed:
        return quotient
    return elementwise.Select(_rounded_up(elementwise.Rem(left, right), right), quotient - 1, quotient)


def _rounded_up(remainder: XlaOp, divisor: XlaOp) -> XlaOp:
    """Where truncation did not round down: there is a remainder, and its sign is not the divisor's."""
    return (remainder != 0) & ((remainder < 0) != (divisor < 0))


@OPERATORS.register("clamp")
@located
def clamped(operand: Operand, low: Operand, high: Operand) -> XlaOp:
    """Clamp, whose first argument is the lower bound, in the order of a method."""
    return elementwise.Clamp(low, operand, high)


@OPERATORS.register("matmul")
@located
def matrix_multiply(lhs: Operand, rhs: Operand) -> XlaOp:
    """Dot for vectors and matrices; arrays of one higher rank are stacks of matrices."""
    left, right = _as_pair(lhs, rhs)
    rank = require_array(left).rank
    if rank <= _MATRIX or require_array(right).rank != rank:
        return contractions.Dot(left, right)
    batch = tuple(range(rank - _MATRIX))
    numbers = DotDimensionNumbers((rank - 1,), (rank - 2,), batch, batch)
    return contractions.DotGeneral(left, right, numbers)


_MATRIX = 2  # the rank of a matrix


# -- indexing ------------------------------------------------------------------------------------------------------


@OPERATORS.register("getitem")
@located
def get_item(operand: XlaOp, index: Any) -> XlaOp:
    """An element of a tuple, or the part of an array that constant integers, slices, `...` and None select."""
    if operand.shape.is_tuple:
        return _tuple_item(operand, as_int(index, "the index of a tuple"))
    shape = require_array(operand)
    selectors = _complete(index if isinstance(index, tuple) else (index,), shape)
    ranges, reversed_dims, sizes = [], [], []
    dim = 0
    for selector in selectors:
        if selector is None:
            sizes.append(1)
            continue
        part, size, is_reversed = _selected(selector, dim, shape)
        ranges.append(part)
        reversed_dims += [dim] if is_reversed else []
        sizes += [] if size is None else [size]
        dim += 1
    return _cut(operand, tuple(ranges), tuple(reversed_dims), sizes)


def _tuple_item(operand: XlaOp, index: int) -> XlaOp:
    count = len(operand.shape.parts)
    return GetTupleElement(operand, index + count if -count <= index < 0 else index)


def _complete(selectors: tuple[Any, ...], shape: Shape) -> list[Any]:
    """One selector for each dimension, besides the None ones: `...` and the end stand for whole dimensions."""
    given = sum(selector is not None and selector is not Ellipsis for selector in selectors)
    if given > shape.rank:
        raise ShapeError("index", f"{given} indices are given for {shape}")
    if sum(selector is Ellipsis for selector in selectors) > 1:
        raise ShapeError("index", "there is more than one `...`")
    whole = [slice(None)] * (shape.rank - given)
    if not any(selector is Ellipsis for selector in selectors):
        return [*selectors, *whole]
    place = next(position for position, selector in enumerate(selectors) if selector is Ellipsis)
    return [*selectors[:place], *whole, *selectors[place + 1 :]]


def _by_run_time(selector: XlaOp) -> str:
    if selector.shape.is_scalar:
        return "use ops.DynamicSlice for such indices"
    if selector.shape.is_array and selector.shape.type.is_integer:
        return "use ops.Gather for arrays of indices"
    return "ops.Select chooses between elements; there are no results of as many elements as a condition is true for"


_OPEN = (
    "the size of dimension {dim} of {shape} is not known while recording: ops.Slice takes parts from limits that are"
)


def _selected(selector: Any, dim: int, shape: Shape) -> tuple[SliceDimension, int | None, bool]:
    """The range of the dimension, its size (None: the dimension disappears), and whether it is read backwards."""
    size = shape.dims[dim]
    if isinstance(selector, XlaOp):
        raise ArgumentError(f"{selector!r} is known only at run time: {_by_run_time(selector)}")
    if size == UNBOUNDED:
        if isinstance(selector, slice) and selector == slice(None):
            return SliceDimension(0, size), size, False
        raise ShapeError("index", _OPEN.format(dim=dim, shape=shape))
    if isinstance(selector, slice):
        picked = _picked(selector, size)
        if picked.step > 0:
            stop = max(picked.start, picked.stop)
            return SliceDimension(picked.start, stop, picked.step), len(picked), False
        if not picked:
            return SliceDimension(0, 0), 0, False
        return SliceDimension(picked[-1], picked[0] + 1, -picked.step), len(picked), True
    if isinstance(selector, (bool, np.bool_)):
        raise ArgumentError(f"{selector} is no index: numpy would take it for a mask")
    position = as_int(selector, "an index")
    if not -size <= position < size:
        raise ShapeError("index", f"index {position} is outside dimension {dim} of {shape}")
    position %= size
    return SliceDimension(position, position + 1), None, False


def _picked(selector: slice, size: int) -> range:
    """The indices that a slice of a dimension stands for."""
    try:
        return range(*selector.indices(size))
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{selector} selects nothing: {error}") from None


def _cut(operand: XlaOp, ranges: tuple[SliceDimension, ...], reversed_dims: tuple[int, ...], sizes: list[int]) -> XlaOp:
    builder, shape = operand.builder, operand.shape
    if ranges != tuple(SliceDimension(0, size) for size in shape.dims):
        if UNBOUNDED in shape.dims:
            raise ShapeError("index", _OPEN.format(dim=shape.dims.index(UNBOUNDED), shape=shape))
        operand = builder.record("slice", [operand], dimensions=ranges)
    if reversed_dims:
        operand = builder.record("reverse", [operand], dimensions=reversed_dims)
    if tuple(sizes) != operand.shape.dims:
        flags = reshaped_flags(operand.shape, sizes)
        operand = builder.record("reshape", [operand], shape=Shape.array(shape.type, sizes, flags))
    return operand
