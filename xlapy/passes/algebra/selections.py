"""Laws that choose between what two results are made of, rather than between the results."""

from __future__ import annotations

from xlapy.hlo.graph import Instruction
from xlapy.hlo.ops import Trait
from xlapy.hlo.patterns import P, variables
from xlapy.passes import new
from xlapy.passes.fusion.cost import CHEAP, operation_cost
from xlapy.passes.new import Value
from xlapy.passes.rewrite import LAWS

x, y, p = variables("x y p")

MOST_COMPARED = 64
"""Instructions on one side: the polynomials of two parts of a function have some tens."""


@LAWS.law(P.select(p, x, y))
def select_of_one_op(p: Instruction, x: Instruction, y: Instruction) -> Value | None:
    """select(p, f(a, b), f(a, c)) -> f(a, select(p, b, c)), which computes f once; so are polynomials of one variable,
    as the parts of a function are, one with chosen coefficients"""
    if x is y or not _are_alike(x, y) or _gain(x, y) <= 0:
        return None
    operands = [
        one if one is other else new.select(p, one, other) for one, other in zip(x.operands, y.operands, strict=True)
    ]
    return new.like(x, operands)


def _gain(x: Instruction, y: Instruction) -> float:
    """What is computed once instead of twice, less what has to be chosen instead of the results."""
    gain, pending, compared = CHEAP, [(x, y)], 0
    while pending and compared < MOST_COMPARED:
        one, other = pending.pop()
        compared += 1
        if one is other:
            continue
        if _are_alike(one, other):
            gain += operation_cost(one)
            pending += zip(one.operands, other.operands, strict=True)
        else:
            gain -= CHEAP
    return gain - CHEAP * len(pending)


def _are_alike(x: Instruction, y: Instruction) -> bool:
    """The same op, element by element, each of which one user alone reads."""
    if x.opcode != y.opcode or x.attributes != y.attributes or x.sole_user is None or y.sole_user is None:
        return False
    if x.opcode == "convert" or x.called or Trait.ELEMENTWISE not in x.spec.traits:
        return False
    whole = x.shape.dims
    pairs = zip(x.operands, y.operands, strict=True)
    return all(a is b or (a.shape == b.shape and a.shape.dims == whole) for a, b in pairs)
