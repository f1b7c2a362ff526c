"""Special functions. Scalars are repeated for the operands that are arrays."""

from __future__ import annotations

from xlapy.builder.broadcasting import expand
from xlapy.builder.elementwise import unary_function
from xlapy.builder.op import XlaOp
from xlapy.builder.operands import Operand, as_ops, builder_of
from xlapy.builder.registry import op_function

# fmt: off
BesselI0e = unary_function("BesselI0e", "bessel-i0e")
BesselI1e = unary_function("BesselI1e", "bessel-i1e")
Digamma   = unary_function("Digamma", "digamma")
Erfc      = unary_function("Erfc", "erfc")
ErfInv    = unary_function("ErfInv", "erf-inv")
Lgamma    = unary_function("Lgamma", "lgamma")
# fmt: on


@op_function("igamma")
def Igamma(a: Operand, x: Operand) -> XlaOp:
    """P(a, x), the regularized lower incomplete gamma function."""
    return _record("igamma", a, x)


@op_function("igammac")
def Igammac(a: Operand, x: Operand) -> XlaOp:
    """Q(a, x) = 1 - P(a, x), the regularized upper incomplete gamma function."""
    return _record("igammac", a, x)


@op_function("igamma-grad-a")
def IgammaGradA(a: Operand, x: Operand) -> XlaOp:
    """The derivative of Igamma(a, x) by a."""
    return _record("igamma-grad-a", a, x)


@op_function("random-gamma-grad")
def RandomGammaGrad(a: Operand, x: Operand) -> XlaOp:
    """The derivative by a of a sample x of the gamma distribution with shape a."""
    return _record("random-gamma-grad", a, x)


@op_function("zeta")
def Zeta(x: Operand, q: Operand) -> XlaOp:
    """The Hurwitz zeta function, the sum of (q + i)^-x over i = 0, 1, 2 ..."""
    return _record("zeta", x, q)


@op_function("polygamma")
def Polygamma(n: Operand, x: Operand) -> XlaOp:
    """The n-th derivative of Digamma at x."""
    return _record("polygamma", n, x)


@op_function("next-after")
def NextAfter(start: Operand, end: Operand) -> XlaOp:
    """The floating-point number next to `start` on the way to `end`."""
    return _record("next-after", start, end)


@op_function("regularized-incomplete-beta")
def RegularizedIncompleteBeta(a: Operand, b: Operand, x: Operand) -> XlaOp:
    """I_x(a, b), the distribution function of the beta distribution."""
    return _record("regularized-incomplete-beta", a, b, x)


def _record(opcode: str, *operands: Operand) -> XlaOp:
    builder = builder_of(*operands)
    values = as_ops(builder, operands)
    dims = next((value.shape.dims for value in values if value.shape.is_array and value.shape.rank), ())
    return builder.record(opcode, [expand(v, dims, ()) if v.shape.is_scalar and dims else v for v in values])
