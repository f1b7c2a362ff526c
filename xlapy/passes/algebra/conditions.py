"""When laws hold: conditions on the matched instruction, by the element type of its first operand (or its own)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xlapy.hlo.element_types import F8E8M0FNU, ElementType
from xlapy.hlo.graph import Instruction


def subject_type(root: Instruction) -> ElementType:
    """The element type that `root` computes with."""
    return root.operands[0].shape.type if root.operands else root.shape.type


def is_integral(root: Instruction) -> bool:
    """Integers and pred: arithmetic is exact and wraps."""
    return subject_type(root).is_integer or subject_type(root).kind == "pred"


def is_integer(root: Instruction) -> bool:
    return subject_type(root).is_integer


def is_float(root: Instruction) -> bool:
    return subject_type(root).is_float


def is_narrow_float(root: Instruction) -> bool:
    """Floats that are rounded after each operation, to which they are f32."""
    return subject_type(root).is_narrow_float


def is_wide_float(root: Instruction) -> bool:
    return subject_type(root).is_float and not subject_type(root).is_narrow_float


def is_real(root: Instruction) -> bool:
    """Everything but complex numbers, whose products mix their parts: inf * (1 + 0i) has a NaN."""
    return not subject_type(root).is_complex


def is_pred(root: Instruction) -> bool:
    return subject_type(root).kind == "pred"


def is_unsigned(root: Instruction) -> bool:
    return subject_type(root).kind == "unsigned"


def has_negatives(root: Instruction) -> bool:
    """-x is a number for every x, and -(-x) is x again: so of all types but that of powers of two alone, where -x is
    NaN. (Unsigned integers wrap.)"""
    return subject_type(root) is not F8E8M0FNU


def extremes(element_type: ElementType) -> tuple[Any, Any]:
    """The lowest and the highest value of a type, infinities included; NaN where it has none."""
    if element_type.is_integer:
        return element_type.integer_range
    infinite = element_type.is_float and bool(np.isinf(element_type.dtype.type(math.inf)))
    return (-math.inf, math.inf) if infinite else (math.nan, math.nan)
