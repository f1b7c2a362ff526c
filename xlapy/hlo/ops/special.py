"""Special functions: element-wise ops of our own.

HLO has no names for them: its front ends write them as long formulas. One op each keeps programs short and errors small.
StableHLO text has most of them as operations of `chlo`; HLO text spells them as the others, which only xlapy reads.
"""

from __future__ import annotations

from xlapy.hlo.element_types import FLOAT
from xlapy.hlo.ops.checks import require_array
from xlapy.hlo.ops.elementwise import binary, common_dims, require_type, unary
from xlapy.hlo.ops.spec import ELEMENTWISE, op
from xlapy.hlo.shape import Shape
from xlapy.support.errors import ShapeError

OWN = "An op of xlapy: HLO as XLA reads it has no such op."

# fmt: off
#      name                 element types
unary("bessel-i0e",         FLOAT, family=__name__, title="BesselI0e",  doc="e^-|x| times the modified Bessel function of order 0", note=OWN)
unary("bessel-i1e",         FLOAT, family=__name__, title="BesselI1e",  doc="e^-|x| times the modified Bessel function of order 1", note=OWN)
unary("digamma",            FLOAT, family=__name__, doc="the derivative of lgamma", note=OWN)
unary("erf-inv",            FLOAT, family=__name__, doc="the inverse of the error function", note=OWN)
unary("erfc",               FLOAT, family=__name__, doc="1 - erf(x), exact for large x too", note=OWN)
unary("lgamma",             FLOAT, family=__name__, doc="the logarithm of the absolute value of the gamma function", note=OWN)

binary("igamma",            FLOAT, family=__name__, doc="P(a, x), the regularized lower incomplete gamma function", note=OWN)
binary("igamma-grad-a",     FLOAT, family=__name__, doc="the derivative of igamma(a, x) by a", note=OWN)
binary("igammac",           FLOAT, family=__name__, doc="Q(a, x) = 1 - P(a, x), the regularized upper incomplete gamma function", note=OWN)
binary("next-after",        FLOAT, family=__name__, doc="the next number from the first operand towards the second", note=OWN)
binary("polygamma",         FLOAT, family=__name__, doc="the derivative of digamma at the second operand, as often as the first says", note=OWN)
binary("random-gamma-grad", FLOAT, family=__name__, doc="the derivative by a of a sample x of the gamma distribution", note=OWN)
binary("zeta",              FLOAT, family=__name__, doc="the Hurwitz zeta function, the sum of (q + i)^-s over i = 0, 1, 2 ...", note=OWN)
# fmt: on


@op("regularized-incomplete-beta", traits=ELEMENTWISE)
def regularized_incomplete_beta(a: Shape, b: Shape, x: Shape) -> Shape:
    """I_x(a, b), the distribution function of the beta distribution, element by element.

    An op of xlapy: HLO as XLA reads it has no such op.

    array-operands: the operands are arrays.
    same-type: the operands have the same element type.
    element-type: the elements are floating-point.
    same-dims: the operands have the same dimensions.
    """
    require_array(a, b, x)
    for other in (b, x):
        if other.element_type is not a.element_type:
            raise ShapeError("same-type", f"{a} and {other} have different element types")
    require_type("regularized-incomplete-beta", a, FLOAT)
    return common_dims(a, b, x).with_layout(None)
