"""Special functions: vector math by name, and the neighbours of floats."""

from __future__ import annotations

from xlapy.codegen.elements.registry import Emission, element
from xlapy.codegen.ir import I32, Value
from xlapy.codegen.math import MATH
from xlapy.codegen.math.outlined import math_function
from xlapy.codegen.narrow_floats import has_negative_zero, sign_bit
from xlapy.codegen.registers import Element, from_memory, to_memory

for _opcode in (
    *("bessel-i0e", "bessel-i1e", "digamma", "erf-inv", "lgamma"),
    *("igamma", "igamma-grad-a", "igammac", "polygamma", "random-gamma-grad", "zeta"),
    "regularized-incomplete-beta",
):

    def _function(e: Emission, *operands: Value, name: str = _opcode.replace("-", "_")) -> Element:
        return math_function(e.k, name, operands)

    element(_opcode)(_function)


@element("next-after", exact=True)
def next_after(e: Emission, x: Value, y: Value) -> Element:
    """f32 and f64 step in their own bits, narrow floats in the bits that they have in memory."""
    k, kind = e.k, e.result_type
    if not kind.is_narrow_float:
        return MATH["next_after"](k, x, y)
    raw = to_memory(k, x, kind)
    wide = I32.with_lanes(raw.type.lanes)
    bits, sign = k.zext(raw, wide), sign_bit(kind.name)
    grows = k.compare("eq", k.compare("lt", x, y), k.compare("eq", k.and_(bits, sign), 0))
    moved = k.add(bits, k.select(grows, k.const(wide, 1), -1))
    if not has_negative_zero(kind.name):
        moved = k.select(k.compare("eq", moved, sign), 0, moved)
    smallest = k.or_(k.and_(k.zext(to_memory(k, y, kind), wide), sign), 1)
    moved = k.select(k.compare("eq", x, 0.0), smallest, moved)
    stepped = from_memory(k, k.trunc(moved, raw.type), kind)
    result = k.select(k.compare("eq", x, y), y, stepped)
    return k.select(k.unordered(x, y), float("nan"), result)
