"""The element that changes nothing when a reduction folds it."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np

from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.ops import Trait
from xlapy.hlo.shape import Shape


def identity_literal(region: Computation) -> Literal | None:
    """The element that changes nothing under a region of one commutative, associative op; None for other regions."""
    root = region.root
    if Trait.COMMUTATIVE not in root.spec.traits or not root.shape.is_scalar:
        return None
    if len(region.parameters) != 2 or set(root.operands) != set(region.parameters):
        return None
    return identity_of(root)


def identity_of(op: Instruction) -> Literal | None:
    """The same of such an op on its own."""
    if op.spec.identity is None or op.shape.type.is_complex:
        return None
    return _literal(op.spec.identity, op.shape.type)


@lru_cache(maxsize=1 << 8)
def _literal(identity: Any, element_type: ElementType) -> Literal | None:
    """Made once of each op and type: passes ask again and again, and 40 us went to what numpy says about a type."""
    number = _identity(identity, element_type)
    return None if number is None else Literal(number, Shape.scalar(element_type))


def _identity(identity: Any, element_type: ElementType) -> Any:
    if element_type.is_float:
        return _float_identity(identity, element_type)
    if element_type.kind == "pred":
        return {0: False, 1: True, "ones": True, "lowest": False, "highest": True}[identity]
    lowest, highest = element_type.integer_range
    number = {0: 0, 1: 1, "ones": -1 if element_type.is_signed else highest, "lowest": lowest, "highest": highest}
    return np.array(number[identity]).astype(element_type.dtype)


def _float_identity(identity: Any, element_type: ElementType) -> float | None:
    """-0 does not even change the sign of a zero. A type without it, or without infinities, uses what it has."""
    numbers = ml_dtypes.finfo(element_type.dtype)  # type: ignore[no-untyped-call]
    choices = {
        0: (-0.0, 0.0),
        1: (1.0,),
        "lowest": (-math.inf, float(numbers.min)),
        "highest": (math.inf, float(numbers.max)),
    }
    return next((number for number in choices[identity] if _is_exact(number, element_type)), None)


def _is_exact(number: float, element_type: ElementType) -> bool:
    rounded = float(np.asarray(number, np.float64).astype(element_type.dtype))
    return rounded == number and math.copysign(1, rounded) == math.copysign(1, number)
