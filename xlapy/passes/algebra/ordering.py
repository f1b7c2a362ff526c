"""Laws of sort, and of tokens."""

from __future__ import annotations

from xlapy.hlo.graph import Instruction
from xlapy.hlo.patterns import P, number_of, variables
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
    """after-all(t, after-all(u, v)) -> after-all(t, u, v)"""
    if not any(token.opcode == "after-all" and token.operands for token in xs):
        return None
    tokens: list[Instruction] = []
    for token in xs:
        tokens.extend(token.operands if token.opcode == "after-all" and token.operands else [token])
    return new.op("after-all", [*dict.fromkeys(tokens)])
