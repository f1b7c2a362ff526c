"""Laws that do before a broadcast what is now done behind it, on fewer elements."""

from __future__ import annotations

from xlapy.hlo.attributes import SliceDimension
from xlapy.hlo.graph import Instruction
from xlapy.hlo.ops import OPS, Trait
from xlapy.hlo.patterns import OpPattern, P, number_of, variables
from xlapy.hlo.shape import Dims
from xlapy.passes import new
from xlapy.passes.algebra.groups import common_groups, split_by
from xlapy.passes.new import Value
from xlapy.passes.rewrite import LAWS

x, d, p, s, sizes, xs = variables("x d p s sizes xs")

ELEMENTWISE = tuple(
    OpPattern(spec, (), {}) for spec in OPS.values() if Trait.ELEMENTWISE in spec.traits and not spec.regions
)


def _reads_broadcast(root: Instruction) -> bool:
    return any(operand.opcode == "broadcast" for operand in root.operands)


@LAWS.law(*ELEMENTWISE, when=_reads_broadcast)
def elementwise_of_broadcasts(root: Instruction) -> Value | None:
    """f(broadcast(x), broadcast(y), number) -> broadcast(f(x, y, number))"""
    model = next((operand for operand in root.operands if _is_spread(operand)), None)
    if model is None or model.shape.dims != root.shape.dims or root.shape.is_scalar:
        return None
    operands = [_before(operand, model) for operand in root.operands]
    known = [operand for operand in operands if operand is not None]
    if len(known) < len(operands):
        return None
    dims = model.operands[0].shape.dims
    inner = new.op(
        root.opcode,
        known,
        shape=root.shape.with_dims(dims) if root.spec.takes_result else None,
        **root.attributes,
    )
    return new.broadcast(inner, shape=root.shape, dimensions=model.attributes["dimensions"])


def _is_spread(value: Instruction) -> bool:
    return value.opcode == "broadcast" and number_of(value) is None and value.shape.size > value.operands[0].shape.size


def _before(value: Instruction, model: Instruction) -> Value | None:
    """The value that broadcasts, like `model` does its own, to `value`."""
    source = model.operands[0]
    if value.shape.is_scalar:
        return value
    number = number_of(value)
    if number is not None:
        return new.filled(number, value.shape.with_dims(source.shape.dims))
    if value.opcode != "broadcast" or value.attributes["dimensions"] != model.attributes["dimensions"]:
        return None
    return value.operands[0] if value.operands[0].shape.dims == source.shape.dims else None


@LAWS.law(P.reshape(P.broadcast(x, dimensions=d)))
def reshape_of_broadcast(root: Instruction, x: Instruction, d: Dims) -> Value | None:
    """reshape(broadcast(x)) -> broadcast(reshape(x)), where no dimension of x is mixed with a new one"""
    if not d:
        return new.broadcast(x, shape=root.shape, dimensions=())
    groups = common_groups(root.operands[0].shape, root.shape)
    if groups is None or list(d) != sorted(d):
        return None
    parts = split_by(groups, d)
    if parts is None:
        return None
    places = tuple(dim for group in parts[0] for dim in group.after)
    source = new.reshaped(x, [root.shape.dims[dim] for dim in places])
    return new.broadcast(source, shape=root.shape, dimensions=places)


@LAWS.law(P.slice(P.broadcast(x, dimensions=d), dimensions=s))
def slice_of_broadcast(root: Instruction, x: Instruction, d: Dims, s: tuple[SliceDimension, ...]) -> Value:
    """slice(broadcast(x)) -> broadcast(slice(x))"""
    return new.broadcast(new.slice(x, dimensions=tuple(s[dim] for dim in d)), shape=root.shape, dimensions=d)


@LAWS.law(P.dynamic_slice(P.broadcast(x, dimensions=d), xs.rest, slice_sizes=sizes))
def dynamic_slice_of_broadcast(
    root: Instruction, x: Instruction, d: Dims, xs: tuple[Instruction, ...], sizes: Dims
) -> Value:
    """dynamic-slice(broadcast(x)) -> broadcast(dynamic-slice(x))"""
    inner = new.dynamic_slice(x, *(xs[dim] for dim in d), slice_sizes=tuple(sizes[dim] for dim in d))
    return new.broadcast(inner, shape=root.shape, dimensions=d)


@LAWS.law(P.reverse(P.broadcast(x, dimensions=d), dimensions=p))
def reverse_of_broadcast(root: Instruction, x: Instruction, d: Dims, p: Dims) -> Value:
    """reverse(broadcast(x)) -> broadcast(reverse(x))"""
    inner = new.reverse(x, dimensions=tuple(place for place, dim in enumerate(d) if dim in p))
    return new.broadcast(inner, shape=root.shape, dimensions=d)
