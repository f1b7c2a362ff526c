"""What the graph tells of the range of values, for functions that are less work there."""

from __future__ import annotations

from xlapy.hlo.graph import Instruction

_FRACTIONS = frozenset({"logistic"})
_NEVER_NEGATIVE = frozenset({"abs", "exponential", "logistic"})
"""Of real numbers."""


def is_fraction(x: Instruction) -> bool:
    """Whether the real `x` lies between 0 and 1 wherever it is a number."""
    return x.opcode in _FRACTIONS or (x.opcode == "exponential" and _is_never_positive(x.operands[0]))


def _is_never_positive(x: Instruction) -> bool:
    return x.opcode == "negate" and not x.shape.type.is_complex and x.operands[0].opcode in _NEVER_NEGATIVE
