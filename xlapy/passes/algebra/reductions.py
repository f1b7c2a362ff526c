"""Laws of reduce."""

from __future__ import annotations

from xlapy.hlo.graph import Instruction
from xlapy.hlo.patterns import P, variables
from xlapy.hlo.shape import Dims
from xlapy.passes import new
from xlapy.passes.new import Value
from xlapy.passes.rewrite import LAWS

x, y, d, p = variables("x y d p")


@LAWS.law(P.reduce(x, y, dimensions=d))
def reduce_empty(root: Instruction, x: Instruction, y: Instruction) -> Value | None:
    """reduce(x) without elements -> broadcast(initial value)"""
    return _spread(y, root) if not x.shape.size and root.shape.size else None


def _spread(scalar: Instruction, root: Instruction) -> Value:
    return scalar if root.shape.is_scalar else new.broadcast(scalar, shape=root.shape, dimensions=())


@LAWS.law(P.reduce(P.transpose(x, permutation=p), y, dimensions=d))
def reduce_of_transpose(root: Instruction, x: Instruction, y: Instruction, p: Dims, d: Dims) -> Value | None:
    """reduce(transpose(x)) -> reduce(x), where the dimensions that are left keep their order"""
    left = [p[dim] for dim in range(len(p)) if dim not in d]
    if left != sorted(left):
        return None
    return new.like(root, [x, y], dimensions=tuple(sorted(p[dim] for dim in d)))


@LAWS.law(P.reduce(P.reshape(x), y, dimensions=d))
def reduce_of_expanded(root: Instruction, x: Instruction, y: Instruction, d: Dims) -> Value | None:
    """reduce(reshape(x)) -> reshape(reduce(x)), where the reshape only adds or drops dimensions of size 1"""
    reshaped = root.operands[0].shape.dims
    large = [dim for dim, size in enumerate(x.shape.dims) if size != 1]
    large_after = [dim for dim, size in enumerate(reshaped) if size != 1]
    if [x.shape.dims[dim] for dim in large] != [reshaped[dim] for dim in large_after] or not x.shape.size:
        return None
    dims = tuple(large[place] for place, dim in enumerate(large_after) if dim in d)
    if not dims:
        return None
    return new.reshaped(new.like(root, [x, y], dimensions=dims), root.shape.dims)
