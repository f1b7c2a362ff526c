"""Random numbers: from an explicit state, or from one that the running program keeps."""

from __future__ import annotations

from xlapy.hlo.attributes import RandomAlgorithm, RandomDistribution
from xlapy.hlo.element_types import BOOLEAN, FLOAT, INTEGER, U64
from xlapy.hlo.ops.elementwise import require_type
from xlapy.hlo.ops.spec import PURE, ResultShape, op
from xlapy.hlo.shape import Shape
from xlapy.support.errors import ShapeError

BITS = INTEGER | FLOAT

STATE_SIZES = {
    RandomAlgorithm.DEFAULT: (2, 3),
    RandomAlgorithm.THREE_FRY: (2,),
    RandomAlgorithm.PHILOX: (2, 3),
}
"""How many u64 words the state of each algorithm has. The default is Philox."""


@op("rng", title="RngUniform")
def rng(a: Shape, b: Shape, *, distribution: RandomDistribution, result: ResultShape) -> Shape:
    """Random numbers: uniform in [a, b), or normal with mean `a` and standard deviation `b`.

    Every execution of an instruction gives other numbers. They depend on the seed of the run, how often the executable
    has been called, and how many rng instructions ran before in this call: on nothing else, so a call can be repeated,
    with any number of threads, and all processes of a run draw the same. Uniform pred is `a` or `b`. Where b <= a,
    uniform numbers are all `a`.

    scalar-bounds [B1]: `a` and `b` are scalars.
    same-type [B1 C1]: `a`, `b` and the result have the same element type.
    element-type [B2]: the elements are numbers that can be ordered, or pred.
    normal-type [B1 C2]: normally distributed numbers are floating-point.
    """
    for bound in (a, b):
        if not bound.is_scalar:
            raise ShapeError("scalar-bounds", f"{bound} is not a scalar")
    if not result.is_array or not a.element_type is b.element_type is result.element_type:
        raise ShapeError("same-type", f"{a}, {b} and {result} have different element types")
    require_type("rng", result, INTEGER | FLOAT | BOOLEAN)
    if distribution is RandomDistribution.NORMAL and not result.type.is_float:
        raise ShapeError("normal-type", f"{result.type} is no floating-point type, so it has no normal distribution")
    return result.without_layout()


@op("rng-bit-generator", traits=PURE)
def rng_bit_generator(state: Shape, *, algorithm: RandomAlgorithm, result: ResultShape) -> Shape:
    """Random bits: a pair of the state to go on with, and an array whose bits are all equally likely.

    The bits are those of XLA:CPU for the same state. Threefry: 2x32, 20 rounds; the words of the state are the key and
    a 64-bit counter. Philox: 4x32, 10 rounds; the words are the key and the low and high half of a 128-bit counter
    (two words: the key is the high half of the counter too, and the counter wraps at 2^64).

    state [C2]: the state is u64[2], for Philox u64[2] or u64[3].
    result-pair: the result is a pair of a state and an array.
    same-state [C1]: the new state has the shape of the old one.
    element-type: the random array has integer or floating-point elements.
    """
    sizes = STATE_SIZES[algorithm]
    if not state.is_array or state.element_type is not U64 or state.dims not in [(size,) for size in sizes]:
        allowed = " or ".join(f"u64[{size}]" for size in sizes)
        raise ShapeError("state", f"the state of {algorithm} is {allowed}, not {state}")
    if not result.is_tuple or len(result.parts) != 2:
        raise ShapeError("result-pair", f"{result} is not a pair of a state and an array")
    following, bits = result.parts
    if not following.matches(state):
        raise ShapeError("same-state", f"the state {state} becomes {following}")
    if not bits.is_array or bits.element_type not in BITS:
        raise ShapeError("element-type", f"{bits} is not an array of integers or floats")
    return Shape.tuple([state.without_layout(), bits.without_layout()])


@op("rng-get-and-update-state")
def rng_get_and_update_state(*, delta: int) -> Shape:
    """The state of the running program: a key and a counter that no other execution of this op gets, as u64[2].

    Each execution gets a fresh counter, whatever `delta` says: 2^64 numbers can be made from it.

    delta: `delta` is positive.
    """
    if delta < 1:
        raise ShapeError("delta", f"a state cannot move on by {delta}")
    return Shape.array(U64, (2,))
