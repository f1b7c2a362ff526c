"""Laws of sort, and of tokens."""

from __future__ import annotations

from xlapy.hlo.graph import Computation, Instruction, topological
from xlapy.hlo.patterns import P, number_of, variables
from xlapy.hlo.sort_plan import first_of_several
from xlapy.passes import new
from xlapy.passes.cse import content
from xlapy.passes.new import Value
from xlapy.passes.rewrite import LAWS

x, y, xs, d = variables("x y xs d")


@LAWS.law(P.sort(xs.rest, dimension=d))
def sort_of_one(xs: tuple[Instruction, ...], d: int) -> Value | None:
    """sort(x) along a dimension of size 1 -> x"""
    if xs[0].shape.dims[d] > 1:
        return None
    return xs[0] if len(xs) == 1 else new.tuple_(*xs)


@LAWS.law(P.sort(x, dimension=d))
def sort_of_same_number(x: Instruction) -> Value | None:
    """sort(broadcast(y)) -> broadcast(y), for a number y"""
    return x if number_of(x) is not None else None


@LAWS.law(P.sort(y.where(P.sort(x, dimension=d)), dimension=d))
def sort_twice(root: Instruction, y: Instruction) -> Value | None:
    """sort(sort(x)) -> sort(x), by the same comparator"""
    outer, inner = root.called[0], y.called[0]
    if any(instruction.called for region in (outer, inner) for instruction in region):
        return None
    return y if outer is inner or content(outer, {}) == content(inner, {}) else None


@LAWS.law(P.sort(xs.rest, dimension=d))
def sort_by_several_keys(root: Instruction, xs: tuple[Instruction, ...], d: int) -> Value | None:
    """sort(x, y) by x, then y -> sort(sort(x, y) by y) by x, which are stable: keys one by one need no comparisons"""
    parts = first_of_several(root.called[0].root)
    if parts is None:
        return None
    first, rest = (_with_root(root.called[0], part) for part in parts)
    inner = new.op("sort", xs, called=[rest], dimension=d, is_stable=root.attributes["is_stable"])
    count = len(xs)
    elements = [inner] if count == 1 else [new.op("get-tuple-element", [inner], index=n) for n in range(count)]
    return new.op("sort", elements, called=[first], dimension=d, is_stable=True)


def _with_root(region: Computation, root: Instruction) -> Computation:
    """A region of the same parameters that ends with `root`."""
    part = Computation(region.name)
    copies: dict[Instruction, Instruction] = {}
    for instruction in topological([*region.parameters, root]):
        copies[instruction] = part.add_copy(instruction, [copies[operand] for operand in instruction.operands])
    part.set_root(copies[root])
    return part


@LAWS.law(P.after_all(x))
def after_one(x: Instruction) -> Value:
    """after-all(token) -> token"""
    return x


@LAWS.law(P.after_all(xs.rest))
def after_the_same(xs: tuple[Instruction, ...]) -> Value | None:
    """after-all(t, u, t) -> after-all(t, u)"""
    different = [*dict.fromkeys(xs)]
    return new.op("after-all", different) if len(different) < len(xs) else None


@LAWS.law(P.after_all(xs.rest))
def after_nested(xs: tuple[Instruction, ...]) -> Value | None:
    """after-all(t, after-all(u, v)) -> after-all(t, u, v), where nothing else uses the inner one"""
    nested = [token for token in xs if token.opcode == "after-all" and token.operands and token.sole_user is not None]
    if not nested:
        return None
    tokens: list[Instruction] = []
    for token in xs:
        tokens.extend(token.operands if token in nested else [token])
    return new.op("after-all", [*dict.fromkeys(tokens)])
