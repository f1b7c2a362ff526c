"""Laws of iota: what numbers its elements are is known, wherever they are moved."""

from __future__ import annotations

from xlapy.hlo.attributes import ComparisonDirection, SliceDimension
from xlapy.hlo.element_types import PRED
from xlapy.hlo.graph import Instruction
from xlapy.hlo.patterns import P, variables
from xlapy.hlo.shape import Dims
from xlapy.passes import new
from xlapy.passes.algebra.conditions import is_integer
from xlapy.passes.algebra.groups import common_groups
from xlapy.passes.new import Value
from xlapy.passes.rewrite import LAWS

x, y, d, p, s = variables("x y d p s")
LT, GE = ComparisonDirection.LT, ComparisonDirection.GE


@LAWS.law(P.iota(dimension=d))
def iota_of_one(root: Instruction, d: int) -> Value | None:
    """iota along a dimension of size 1 -> 0"""
    return new.number(0, like=root) if root.shape.dims[d] == 1 else None


@LAWS.law(P.broadcast(P.iota(dimension=p), dimensions=d))
def broadcast_of_iota(root: Instruction, p: int, d: Dims) -> Value:
    """broadcast(iota) -> iota"""
    return new.iota(shape=root.shape, dimension=d[p])


@LAWS.law(P.transpose(P.iota(dimension=d), permutation=p))
def transpose_of_iota(root: Instruction, p: Dims, d: int) -> Value:
    """transpose(iota) -> iota along another dimension"""
    return new.iota(shape=root.shape, dimension=p.index(d))


@LAWS.law(P.slice(P.iota(dimension=d), dimensions=s))
def slice_of_iota(root: Instruction, d: int, s: tuple[SliceDimension, ...]) -> Value | None:
    """slice(iota) -> iota, where the slice begins at 0 and leaves nothing out"""
    counts = root.shape.size and not s[d].start and s[d].stride == 1
    return new.iota(shape=root.shape, dimension=d) if counts else None


@LAWS.law(P.reshape(P.iota(dimension=d)))
def reshape_of_iota(root: Instruction, d: int) -> Value | None:
    """reshape(iota) -> iota, where the dimension that counts stays one"""
    groups = common_groups(root.operands[0].shape, root.shape) or []
    group = next((group for group in groups if d in group.before), None)
    return (
        new.iota(shape=root.shape, dimension=group.after[0])
        if group and len(group.before) == len(group.after) == 1
        else None
    )


@LAWS.law(P.convert(y.where(P.iota(dimension=d))))
def convert_of_iota(root: Instruction, y: Instruction, d: int) -> Value | None:
    """convert(iota) -> iota, where both types hold all its numbers"""
    last = root.shape.dims[d] - 1
    holds_all = y.shape.type.holds(0, last) and root.shape.type.holds(0, last)
    return new.iota(shape=root.shape, dimension=d) if holds_all and root.shape.type is not PRED else None


@LAWS.law(
    P.compare(y.where(P.iota(dimension=d)), P.number(0), direction=LT),
    P.compare(y.where(P.iota(dimension=d)), P.number(0), direction=GE),
    when=is_integer,
)
def iota_below_zero(root: Instruction, y: Instruction, d: int) -> Value | None:
    """iota < 0 -> false; iota >= 0 -> true, where its numbers do not wrap"""
    if not y.shape.type.holds(0, y.shape.dims[d] - 1):
        return None
    return new.number(root.attributes["direction"] is GE, like=root)
