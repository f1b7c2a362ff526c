"""Programs with `?` dimensions, made into programs for the shapes of one call.

    x = f32[?,4] parameter(0)                                  x = f32[3,4] parameter(0)
    n = s32[] get-dimension-size(x), dimensions={0}            n = s32[] constant(3)
    ROOT y = f32[?] reshape(x)                   becomes       ROOT y = f32[12] reshape(x)

The module is copied, callees at their first use, and every shape is inferred again. Integers that follow from shapes
and constants alone are computed on the way, so that they are known where an operation takes a size as an operand: such
operations stand in a module as custom calls, whose targets `DYNAMIC` knows. Bounded dimensions stay bounded.
"""

from xlapy.hlo.specialize.base import DYNAMIC, DynamicCall, Known, is_dynamic_call
from xlapy.hlo.specialize.modules import has_open_parameters, is_dynamic, specialize, specialize_to

__all__ = [
    "DYNAMIC",
    "DynamicCall",
    "Known",
    "has_open_parameters",
    "is_dynamic",
    "is_dynamic_call",
    "specialize",
    "specialize_to",
]
