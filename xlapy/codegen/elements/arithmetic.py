"""Arithmetic: integers wrap and never trap, floats are strict, complex numbers go by parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xlapy.codegen.elements.ranges import is_byte, is_fraction, is_high, is_low
from xlapy.codegen.elements.registry import Emission, element
from xlapy.codegen.ir import F32, F64, KernelBuilder, Value
from xlapy.codegen.math import MATH
from xlapy.codegen.math.complex import COMPLEX_MATH, Complex
from xlapy.codegen.math.complex import absolute as absolute_of
from xlapy.codegen.math.complex_inverse import INVERSE
from xlapy.codegen.math.outlined import SHORT, math_function
from xlapy.codegen.math.quotient import brief_quotient, near_inverse, quotient_of_byte, root
from xlapy.codegen.math.quotient import quotient as quotient_of
from xlapy.codegen.registers import Element, Pair, wrap_narrow_integer
from xlapy.hlo.cost import TRANSCENDENTAL
from xlapy.hlo.element_types import BF16
from xlapy.hlo.element_types import F32 as F32_TYPE
from xlapy.hlo.graph import Instruction
from xlapy.hlo.ops import Trait


def _value(element: Element) -> Value:
    assert isinstance(element, Value)
    return element


@element("add")
def add(e: Emission, x: Element, y: Element) -> Element:
    if isinstance(x, Pair) and isinstance(y, Pair):
        return Pair(e.k.add(x.re, y.re), e.k.add(x.im, y.im))
    if e.result_type.kind == "pred":
        return e.k.or_(_value(x), _value(y))
    return _sum(e.k, _value(x), _value(y))


@element("subtract")
def subtract(e: Emission, x: Element, y: Element) -> Element:
    if isinstance(x, Pair) and isinstance(y, Pair):
        return Pair(e.k.sub(x.re, y.re), e.k.sub(x.im, y.im))
    return _difference(e.k, _value(x), _value(y))


@element("multiply")
def multiply(e: Emission, x: Element, y: Element) -> Element:
    k = e.k
    if isinstance(x, Pair) and isinstance(y, Pair):
        re = k.sub(k.mul(x.re, y.re), k.mul(x.im, y.im))
        return Pair(re, k.add(k.mul(x.re, y.im), k.mul(x.im, y.re)))
    if e.result_type.kind == "pred":
        return k.and_(_value(x), _value(y))
    return _product(k, _value(x), _value(y))


def _product(k: KernelBuilder, x: Value, y: Value) -> Value:
    product = k.mul(x, y)
    if k.module.contracts and product.type.is_float and product.constant is None:
        k.products[product.text] = (x, y)
    return product


def _sum(k: KernelBuilder, x: Value, y: Value) -> Value:
    """x + y, of which one is taken in as the product that it is, if that may be."""
    for one, other in ((x, y), (y, x)):
        if one.text in k.products:
            return k.fma(*k.products[one.text], other)
    return k.add(x, y)


def _difference(k: KernelBuilder, x: Value, y: Value) -> Value:
    if x.text in k.products:
        return k.fma(*k.products[x.text], k.neg(y))
    if y.text in k.products:
        a, b = k.products[y.text]
        return k.fma(k.neg(a), b, x)
    return k.sub(x, y)


@element("divide")
def divide(e: Emission, x: Element, y: Element) -> Element:
    if isinstance(x, Pair) and isinstance(y, Pair):
        return complex_function(e.k, "divide", x, y)
    if e.result_type.is_float:
        x, y = _value(x), _value(y)
        if y.constant is not None and e.result_type is F32_TYPE and is_byte(e.k, x):
            return quotient_of_byte(e.k, x, float(y.constant)) or e.k.div(x, y)
        if e.result_type is BF16 and not e.k.module.keeps_excess:
            return brief_quotient(e.k, x, y)
        others = _others(e.instruction)
        return quotient_of(e.k, x, y, _work(others), has_root=any(other.opcode == "sqrt" for other in others))
    return _guarded_division(e, _value(x), _value(y), quotient=True)


def _others(instruction: Instruction) -> Sequence[Instruction]:
    """Operations on as many elements as an instruction has, in its computation, itself included: what processors do
    while they divide."""
    size = instruction.shape.size
    return instruction.parent.remembered(
        ("others", size),
        lambda: [
            other
            for other in instruction.parent
            if Trait.ELEMENTWISE in other.spec.traits and other.shape.is_array and other.shape.size == size
        ],
    )


def _work(operations: Sequence[Instruction]) -> int:
    return sum(_WORK_OF_FUNCTION if operation.opcode in _FUNCTIONS else 1 for operation in operations)


_FUNCTIONS, _WORK_OF_FUNCTION = TRANSCENDENTAL - SHORT, 16


@element("remainder")
def remainder(e: Emission, x: Value, y: Value) -> Element:
    if e.result_type.is_float:
        return MATH["remainder"](e.k, x, y)
    return _guarded_division(e, x, y, quotient=False)


def _guarded_division(e: Emission, x: Value, y: Value, *, quotient: bool) -> Value:
    """x / 0 is all ones, x % 0 is x, and lowest / -1 wraps. The hardware never sees these: it would trap."""
    k, element_type = e.k, e.result_type
    zero = k.compare("eq", y, 0)
    unsafe = zero
    if element_type.is_signed:
        lowest = k.compare("eq", x, element_type.integer_range[0])
        unsafe = k.or_(zero, k.and_(lowest, k.compare("eq", y, -1)))
    safe = k.select(unsafe, 1, y)
    if _divides_as_floats(safe):
        whole = _quotient_of_floats(k, x, safe, signed=element_type.is_signed)
        result = whole if quotient else k.sub(x, k.mul(whole, safe))
    elif quotient:
        result = (k.sdiv if element_type.is_signed else k.udiv)(x, safe)
    else:
        result = (k.srem if element_type.is_signed else k.urem)(x, safe)
    return k.select(zero, -1 if quotient else x, result)


def _divides_as_floats(divisor: Value) -> bool:
    """Whether there is nothing better: hardware divides vectors of floats only, and LLVM multiplies instead of dividing
    by constants."""
    type = divisor.type
    return type.lanes > 1 and type.bits <= 32 and divisor.constant is None


def _quotient_of_floats(k: KernelBuilder, x: Value, y: Value, *, signed: bool) -> Value:
    """x / y towards zero: of 32 bits in f64, of fewer in f32.

    A quotient that is no integer is at least 1 / y away from one, and rounding moves it by less: by its size, which is
    at most 2^bits / y, times 2^-53 or 2^-24. Where there are estimates, 1/2 is added to the size of x, so that all
    quotients are half of 1 / y or more away from integers, and may be off by a share of 2^-(bits + 1)."""
    wide = F64 if x.type.bits == 32 else F32
    to_float, to_integer = (k.sitofp, k.fptosi) if signed else (k.uitofp, k.fptoui)
    above, below = to_float(x, wide), to_float(y, wide)
    if not k.has_estimates or x.type.bits == _DIVIDED_BITS:
        return to_integer(k.div(above, below), x.type)
    moved = k.add(above, k.copysign(k.const(above.type, 0.5), above) if signed else 0.5)
    return to_integer(k.mul(moved, near_inverse(k, below)), x.type)


_DIVIDED_BITS = 16
"""Of integers whose floats are divided in no more time than the estimate of an inverse and a step towards it."""


@element("negate", changes_sign=True)
def negate(e: Emission, x: Element) -> Element:
    if isinstance(x, Pair):
        return Pair(e.k.neg(x.re), e.k.neg(x.im))
    return wrap_narrow_integer(e.k, e.k.neg(x), e.result_type)


@element("abs", changes_sign=True)
def absolute(e: Emission, x: Element) -> Element:
    k = e.k
    if isinstance(x, Pair):
        return absolute_of(k, Complex(*x))
    if x.type.is_float:
        return k.fabs(x)
    return k.select(k.compare("lt", x, 0), k.neg(x), x)


@element("sign")
def sign(e: Emission, x: Element) -> Element:
    k = e.k
    if isinstance(x, Pair):
        return complex_function(k, "sign", x)
    if x.type.is_float:
        unit = k.copysign(k.const(x.type, 1.0), x)
        keeps = k.or_(k.compare("eq", x, 0.0), k.is_nan(x))
        return k.select(keeps, x, unit)
    positive = k.zext(k.compare("gt", x, 0), x.type)
    negative = k.zext(k.compare("lt", x, 0), x.type)
    return k.sub(positive, negative)


@element("maximum", exact=True)
def maximum(e: Emission, x: Element, y: Element) -> Element:
    return _extremum(e, x, y, larger=True)


@element("minimum", exact=True)
def minimum(e: Emission, x: Element, y: Element) -> Element:
    return _extremum(e, x, y, larger=False)


def _extremum(e: Emission, x: Element, y: Element, *, larger: bool) -> Element:
    k = e.k
    if isinstance(x, Pair) and isinstance(y, Pair):
        return _complex_extremum(k, x, y, larger=larger)
    a, b = _value(x), _value(y)
    if e.result_type.kind == "pred":
        return k.or_(a, b) if larger else k.and_(a, b)
    if e.result_type.is_float:
        return k.maximum(a, b) if larger else k.minimum(a, b)
    choose = {
        (True, True): k.smax,
        (True, False): k.umax,
        (False, True): k.smin,
        (False, False): k.umin,
    }[(larger, e.result_type.is_signed)]
    return choose(a, b)


def _complex_extremum(k: KernelBuilder, x: Pair, y: Pair, *, larger: bool) -> Pair:
    """Lexicographic: by real part, then by imaginary part; of equal numbers, zeros of both signs are told apart part by
    part. A number with a NaN in it wins, the first one of two."""
    order, choose = ("gt", k.maximum) if larger else ("lt", k.minimum)
    first = k.compare(order, x.re, y.re)
    same_re = k.compare("eq", x.re, y.re)
    tie = k.and_(same_re, k.compare(order, x.im, y.im))
    equal = k.and_(same_re, k.compare("eq", x.im, y.im))
    ordered = k.not_(k.or_(k.is_nan(y.re), k.is_nan(y.im)))
    chosen = k.or_(k.and_(k.or_(first, tie), ordered), k.or_(k.is_nan(x.re), k.is_nan(x.im)))
    re, im = ((choose(a, b), k.select(chosen, a, b)) for a, b in ((x.re, y.re), (x.im, y.im)))
    return Pair(k.select(equal, *re), k.select(equal, *im))


@element("clamp", exact=True)
def clamp(e: Emission, low: Element, x: Element, high: Element) -> Element:
    return _extremum(e, _extremum(e, low, x, larger=True), high, larger=False)


@element("power")
def power(e: Emission, x: Element, y: Element) -> Element:
    if e.result_type.is_integer:
        return _integer_power(e, _value(x), _value(y))
    if isinstance(x, Pair) and isinstance(y, Pair):
        return complex_function(e.k, "power", x, y)
    return math_function(e.k, "power", (_value(x), _value(y)))


def complex_function(k: KernelBuilder, name: str, *arguments: Pair) -> Pair:
    """A function of complex numbers by the name of the real one."""
    function = INVERSE.get(name) or COMPLEX_MATH[name]
    return Pair(*function(k, *(Complex(*argument) for argument in arguments)))


def _integer_power(e: Emission, x: Value, y: Value) -> Value:
    """Squares and multiplies. A negative exponent gives 1 / x^n truncated: 0, except for bases 1 and -1."""
    k, element_type = e.k, e.result_type
    result: Value = k.const(x.type, 1)
    square = x
    steps = max(8, element_type.bits)
    for bit in range(steps):
        chosen = k.compare("ne", k.and_(y, 1 << bit), 0)
        result = k.select(chosen, k.mul(result, square), result)
        if bit + 1 < steps:
            square = k.mul(square, square)
    if not element_type.is_signed:
        return result
    odd = k.compare("ne", k.and_(y, 1), 0)
    minus_one = k.select(odd, -1, k.const(x.type, 1))
    inverse = k.select(k.compare("eq", x, 1), 1, k.select(k.compare("eq", x, -1), minus_one, k.const(x.type, 0)))
    return k.select(k.compare("lt", y, 0), inverse, result)


@element("atan2")
def atan2(e: Emission, y: Element, x: Element) -> Element:
    if isinstance(x, Pair) and isinstance(y, Pair):
        return complex_function(e.k, "atan2", y, x)
    return math_function(e.k, "atan2", (_value(y), _value(x)))


_REAL_FUNCTIONS = {
    "acos": "acos",
    "acosh": "acosh",
    "asin": "asin",
    "asinh": "asinh",
    "atan": "atan",
    "atanh": "atanh",
    "cbrt": "cbrt",
    "cosh": "cosh",
    "cosine": "cos",
    "erf": "erf",
    "erfc": "erfc",
    "exponential-minus-one": "expm1",
    "log": "log",
    "logistic": "logistic",
    "rsqrt": "rsqrt",
    "sine": "sin",
    "sinh": "sinh",
    "tan": "tan",
    "tanh": "tanh",
}


@element("exponential", smooth=True)
def exponential(e: Emission, x: Element) -> Element:
    """Quicker where x is known to be 0 at most, as what is left of elements less the largest of them, or not to be so
    low that its power is subnormal."""
    if isinstance(x, Pair):
        return complex_function(e.k, "exp", x)
    name = "exp_of_low" if is_low(e.k, x) else "exp_of_high" if is_high(e.k, x) else "exp"
    return math_function(e.k, name, (x,), brief=e.result_type is BF16)


@element("log-plus-one", smooth=True)
def log_plus_one(e: Emission, x: Element) -> Element:
    """Quicker where x is known to be a fraction, as e^-|y| is in a softplus."""
    if isinstance(x, Pair):
        return complex_function(e.k, "log1p", x)
    is_short = x.type.kind == "f32" and is_fraction(e.k, x)
    return math_function(e.k, "log1p_of_fraction" if is_short else "log1p", (x,))


@element("sqrt", smooth=True)
def sqrt(e: Emission, x: Element) -> Element:
    if isinstance(x, Pair):
        return complex_function(e.k, "sqrt", x)
    others = _others(e.instruction)
    return root(e.k, x, _work(others), is_divided=any(other.opcode == "divide" for other in others))


def _function(name: str) -> Callable[[Emission, Element], Element]:
    def emit(e: Emission, x: Element) -> Element:
        if isinstance(x, Pair):
            return complex_function(e.k, name, x)
        return math_function(e.k, name, (x,), brief=e.result_type is BF16)

    emit.__doc__ = f"Vector math: {name}."
    return emit


for _opcode, _name in _REAL_FUNCTIONS.items():
    element(_opcode, smooth=True)(_function(_name))


@element("round-nearest-afz")
def round_nearest_afz(e: Emission, x: Value) -> Element:
    return MATH["round_nearest_afz"](e.k, x)


@element("ceil")
def ceil(e: Emission, x: Value) -> Element:
    return e.k.ceil(x)


@element("floor")
def floor(e: Emission, x: Value) -> Element:
    return e.k.floor(x)


@element("round-nearest-even")
def round_nearest_even(e: Emission, x: Value) -> Element:
    return e.k.roundeven(x)


@element("complex")
def make_complex(e: Emission, re: Value, im: Value) -> Element:
    return Pair(re, im)


@element("real", exact=True)
def real(e: Emission, x: Element) -> Element:
    return x.re if isinstance(x, Pair) else x


@element("imag", exact=True)
def imag(e: Emission, x: Element) -> Element:
    return x.im if isinstance(x, Pair) else e.k.const(x.type, 0.0)
