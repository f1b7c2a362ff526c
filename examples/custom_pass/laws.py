"""A law of one's own: a softmax does not see what is added to a whole row of its scores."""

from __future__ import annotations

import numpy as np

from xlapy.hlo.graph import Instruction
from xlapy.hlo.patterns import P, variables
from xlapy.passes import new
from xlapy.passes.new import Value
from xlapy.passes.rewrite import Exactness, LawBook

x, c, p = variables("x c p")

SOFTMAX_LAWS = LawBook()


@SOFTMAX_LAWS.law(
    P.subtract(
        x.where(P.add(p, P.broadcast(c, dimensions=(0,)))),
        P.broadcast(P.reduce(x, P.number(-np.inf), dimensions=(1,)), dimensions=(0,)),
    ),
    exactness=Exactness.APPROXIMATE,
)
def shift_of_rows(root: Instruction, p: Instruction) -> Value | None:
    """(p + c) - max(p + c) -> p - max(p), for a number c of each row"""
    reduce = root.operands[1].operands[0]
    if reduce.called[0].root.opcode != "maximum":
        return None
    top = new.like(reduce, [p, reduce.operands[1]])
    return new.subtract(p, new.broadcast(top, shape=root.shape, dimensions=(0,)))
