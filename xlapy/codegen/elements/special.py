"""Special functions: vector math by name, and the neighbours of floats."""

from __future__ import annotations

from xlapy.codegen.elements.registry import Emission, element
from xlapy.codegen.ir import I32, Value
from xlapy.codegen.math import MATH
from xlapy.codegen.math.outlined import math_function
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
    """f32 and f64 step in their own bits, f16 and bf16 in the bits that they have in memory."""
    k = e.k
    if not e.result_type.is_narrow_float:
        return MATH["next_after"](k, x, y)
    raw = to_memory(k, x, e.result_type)
    wide = I32.with_lanes(raw.type.lanes)
    bits = k.zext(raw, wide)
    grows = k.compare("eq", k.compare("lt", x, y), k.compare("eq", k.and_(bits, 0x8000), 0))
    moved = k.add(bits, k.select(grows, k.const(wide, 1), -1))
    smallest = k.or_(k.and_(k.zext(to_memory(k, y, e.result_type), wide), 0x8000), 1)
    moved = k.select(k.compare("eq", x, 0.0), smallest, moved)
    stepped = from_memory(k, k.trunc(moved, raw.type), e.result_type)
    result = k.select(k.compare("eq", x, y), y, stepped)
    return k.select(k.unordered(x, y), float("nan"), result)
