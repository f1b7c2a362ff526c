"""Regions that the compiler writes itself: scalar computations for ops to call."""

from __future__ import annotations

from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Computation
from xlapy.hlo.shape import Shape


def binary_region(opcode: str, element_type: ElementType) -> Computation:
    """(a, b) -> one operation on two scalars: what a reduce by `opcode` calls."""
    region = Computation(f"{opcode}.{element_type.name}")
    scalar = Shape.scalar(element_type)
    pair = [region.add("parameter", shape=scalar, name=name, number=number) for number, name in enumerate("ab")]
    region.set_root(region.add(opcode, pair))
    return region
