"""The dynamic operations of StableHLO, and JAX's custom calls for dynamic shapes, once sizes are known."""

from __future__ import annotations

import re
from collections.abc import Sequence

from xlapy.hlo.attributes import PaddingDimension, SliceDimension, Window, WindowDimension
from xlapy.hlo.graph import Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.shape import Shape
from xlapy.stablehlo.convert.base import attribute, enumerator, integers
from xlapy.stablehlo.convert.bounded import (
    bounded_broadcast,
    bounded_iota,
    bounded_reshape,
    bounded_slice,
    element,
    has_bounds,
)
from xlapy.stablehlo.convert.deferred import Use, deferred, integers_of
from xlapy.stablehlo.convert.indexing import gathered
from xlapy.stablehlo.convert.random import ALGORITHMS, DISTRIBUTIONS
from xlapy.stablehlo.convert.reductions import promoted
from xlapy.stablehlo.convert.shapes import stretched
from xlapy.stablehlo.convert.windows import convolved
from xlapy.support.errors import ParseError, ShapeError, UnsupportedError


def _operands(use: Use, count: int) -> Sequence[Instruction]:
    if len(use.operands) != count:
        raise ParseError(f"{use.operation.name} takes {count} operands, and has {len(use.operands)}")
    return use.operands


def _sized(use: Use, position: int) -> Shape:
    """The stated type with the sizes that an operand gives, as far as the type leaves them open."""
    sizes = use.sizes(position)
    stated = use.result
    if len(sizes) != stated.rank:
        raise ShapeError(f"{use.operation.mnemonic}.C1", f"{len(sizes)} sizes are given for {stated}")
    shape = stated.with_dims(sizes)
    if not shape.agrees(stated.static()):
        raise ShapeError(f"{use.operation.mnemonic}.C1", f"the sizes {list(sizes)} are not those of {stated}")
    return shape


def _check_count(use: Use, sizes: Instruction) -> None:
    """Raises unless there is a size for each dimension of the result."""
    if sizes.shape.dims != (use.result.rank,):
        message = f"the sizes {sizes.shape} are not one for each dimension of {use.result}"
        raise ShapeError(f"{use.operation.mnemonic}.C1", message)


@deferred("stablehlo.dynamic_reshape")
def dynamic_reshape(use: Use) -> Instruction:
    operand, sizes = _operands(use, 2)
    if has_bounds(use.result):
        _check_count(use, sizes)
        return bounded_reshape(use)
    return use.body.add("reshape", operand, shape=_sized(use, 1))


@deferred("stablehlo.dynamic_broadcast_in_dim")
def dynamic_broadcast_in_dim(use: Use) -> Instruction:
    operand, sizes = _operands(use, 2)
    if has_bounds(use.result):
        _check_count(use, sizes)
        return bounded_broadcast(use)
    return stretched(use.body, operand, _sized(use, 1), integers(use.operation, "broadcast_dimensions"))


@deferred("stablehlo.dynamic_iota")
def dynamic_iota(use: Use) -> Instruction:
    (sizes,) = _operands(use, 1)
    dimension = attribute(use.operation, "iota_dimension", int)
    if has_bounds(use.result):
        _check_count(use, sizes)
        return bounded_iota(use, dimension)
    return use.body.add("iota", shape=_sized(use, 0), dimension=dimension)


@deferred("stablehlo.dynamic_pad")
def dynamic_pad(use: Use) -> Instruction:
    operand, value, *_ = _operands(use, 5)
    low, high, interior = (use.sizes(position) for position in (2, 3, 4))
    if not len(low) == len(high) == len(interior):
        raise ShapeError("dynamic_pad.C2", "low, high and interior padding differ in length")
    dimensions = tuple(PaddingDimension(*part) for part in zip(low, high, interior, strict=True))
    return use.body.add("pad", operand, value, dimensions=dimensions)


@deferred("stablehlo.real_dynamic_slice")
def real_dynamic_slice(use: Use) -> Instruction:
    """A slice; or, where only the distance from start to limit is known, a dynamic slice of that size."""
    operand, start, limit, _ = _operands(use, 4)
    strides = use.sizes(3)
    if has_bounds(use.result):
        for vector in (start, limit):
            _check_count(use, vector)
        return bounded_slice(use)
    if use.known(start) is None and set(strides) <= {1}:
        return _moving_slice(use, operand, start, _distance(use, start, limit))
    starts, limits = use.sizes(1), use.sizes(2)
    if not len(starts) == len(limits) == len(strides):
        raise ShapeError("real_dynamic_slice.C2", "start indices, limit indices and strides differ in length")
    ranges = tuple(SliceDimension(*part) for part in zip(starts, limits, strides, strict=True))
    return use.body.add("slice", operand, dimensions=ranges)


def _distance(use: Use, start: Instruction, limit: Instruction) -> tuple[int, ...]:
    """What is added to `start` to get `limit`, if that is known."""
    for one, other in (limit.operands, limit.operands[::-1]) if limit.opcode == "add" else ():
        if one is start:
            distance = use.known(other)
            if isinstance(distance, Literal):
                return integers_of(distance)
    return use.sizes(1)  # raises


def _moving_slice(use: Use, operand: Instruction, start: Instruction, sizes: tuple[int, ...]) -> Instruction:
    starts = [element(use.body, start, dim) for dim in range(len(sizes))]
    return use.body.add("dynamic-slice", operand, *starts, slice_sizes=sizes)


@deferred("stablehlo.dynamic_gather")
def dynamic_gather(use: Use) -> Instruction:
    operand, indices, _ = _operands(use, 3)
    return gathered(use.body, use.operation, [operand, indices], use.sizes(2))


@deferred("stablehlo.dynamic_conv")
def dynamic_conv(use: Use) -> Instruction:
    """A convolution whose padding is an operand."""
    lhs, rhs, _ = _operands(use, 3)
    use.operation.attributes = {**use.operation.attributes, "padding": use.value(2)}
    return convolved(use.body, use.operation, [lhs, rhs])


@deferred("stablehlo.rng")
def rng(use: Use) -> Instruction:
    """The third operand is the shape, which the type of the result says too, unless that leaves sizes open."""
    a, b, _ = _operands(use, 3)
    shape = use.result
    if shape.is_unbounded or isinstance(use.known(use.operands[2]), Literal):
        sizes = use.sizes(2)
        if len(sizes) != shape.rank or not shape.with_dims(sizes).agrees(shape.static()):
            raise ShapeError("rng.C3", f"the shape is given as {list(sizes)}, but the result is {shape}")
        shape = shape.with_dims(sizes)
    distribution = enumerator(use.operation, "rng_distribution", DISTRIBUTIONS)
    return use.body.add("rng", a, b, shape=shape, distribution=distribution)


# -- custom calls of JAX -----------------------------------------------------------------------------------------------


@deferred("stablehlo.dynamic_reduce_window", operation=False)
def dynamic_reduce_window(use: Use) -> Instruction:
    """Arrays, their initial values, then window sizes, strides, both dilations, and the padding as a table."""
    sizes, strides, base_dilations, dilations = (use.sizes(position) for position in (-5, -4, -3, -2))
    flat = use.sizes(-1)
    padding = list(zip(flat[::2], flat[1::2], strict=False))
    if not len(sizes) == len(strides) == len(base_dilations) == len(dilations) == len(padding):
        raise ShapeError("reduce_window.C4", "sizes, strides, dilations and padding differ in length")
    window = Window(
        tuple(
            WindowDimension(size, stride, low, high, base, dilation, False)
            for size, stride, (low, high), base, dilation in zip(
                sizes, strides, padding, base_dilations, dilations, strict=True
            )
        )
    )
    (computation,) = use.body.called
    operands = promoted(use.body, use.operands[:-5], computation)
    return use.body.add("reduce-window", *operands, called=[computation], window=window)


@deferred("stablehlo.dynamic_top_k", operation=False)
def dynamic_top_k(use: Use) -> Instruction:
    operand, _ = _operands(use, 2)
    (k,) = use.sizes(1)
    return use.body.add("topk", operand, k=k, largest=True)


@deferred("stablehlo.dynamic_rng_bit_generator", operation=False)
def dynamic_rng_bit_generator(use: Use) -> Instruction:
    state, _ = _operands(use, 2)
    bits = use.operation.result_types[-1].with_dims(use.sizes(1))
    algorithm = enumerator(use.operation, "rng_algorithm", ALGORITHMS)
    shape = Shape.tuple([state.shape.without_layout(), bits])
    return use.body.add("rng-bit-generator", state, shape=shape, algorithm=algorithm)


_FIELD = re.compile(r"\{(\d{1,6})\}")


@deferred("shape_assertion", operation=False)
def shape_assertion(use: Use) -> Instruction:
    """A condition on sizes, with the message for those that break it."""
    if not use.operands:
        raise ParseError("a shape_assertion takes a condition")
    condition, *values = map(use.known, use.operands)
    if not isinstance(condition, Literal):
        raise UnsupportedError("a shape_assertion depends on the values of arguments, not on shapes alone")
    if not condition.scalar():
        shown = [str(value.scalar()) if isinstance(value, Literal) else "?" for value in values]
        message = attribute(use.operation, "error_message", str, "an assertion about shapes does not hold")
        text = _FIELD.sub(lambda field: shown[int(field[1])] if int(field[1]) < len(shown) else field[0], message)
        raise ShapeError("shape_assertion", text)
    return use.body.tuple(())
