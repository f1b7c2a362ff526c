"""Random numbers."""

from __future__ import annotations

from typing import Any

from xlapy.builder.arguments import as_int, as_shape, described
from xlapy.builder.builder import XlaBuilder
from xlapy.builder.elementwise import ConvertElementType, Lt
from xlapy.builder.op import XlaOp
from xlapy.builder.operands import Operand, as_handle, as_op, builder_of
from xlapy.builder.registry import op_function
from xlapy.hlo.attributes import RandomAlgorithm, RandomDistribution
from xlapy.hlo.element_types import F32, U32
from xlapy.hlo.shape import Shape
from xlapy.support.errors import ArgumentError, ShapeError
from xlapy.support.given import spelled


@op_function("rng")
def RngUniform(a: Operand, b: Operand, shape: Shape) -> XlaOp:
    """Numbers that are uniformly distributed in [a, b). Every run gives others, unless the seed is given again.

    Numbers of type pred are `a` or `b`."""
    return _rng(a, b, shape, RandomDistribution.UNIFORM)


@op_function()
def RngNormal(mu: Operand, sigma: Operand, shape: Shape) -> XlaOp:
    """Numbers that are normally distributed, with mean `mu` and standard deviation `sigma`."""
    try:
        return _rng(mu, sigma, shape, RandomDistribution.NORMAL)
    except ShapeError as error:
        error.add_context(rule=error.rule.replace("RngUniform.", "RngNormal."))
        raise


@op_function()
def RngBernoulli(mean: Operand, shape: Shape) -> XlaOp:
    """1 with probability `mean`, else 0, as u32. The mean is an f32."""
    builder = builder_of(mean)
    probability = as_op(builder, mean, F32)
    if not probability.shape.is_scalar or probability.shape.element_type is not F32:
        raise ShapeError("RngBernoulli.B1", f"the mean is {probability.shape}; it must be f32[]")
    wanted = as_shape(shape, "the shape of the result")
    if not wanted.is_array or wanted.element_type is not U32:
        raise ShapeError("RngBernoulli.B2", f"the result is {wanted}; its elements must be u32")
    uniform = RngUniform(
        builder.constant(F32.dtype.type(0)), builder.constant(F32.dtype.type(1)), wanted.with_type(F32)
    )
    return ConvertElementType(Lt(uniform, probability), U32)


def _rng(a: Operand, b: Operand, shape: Shape, distribution: RandomDistribution) -> XlaOp:
    wanted = as_shape(shape, "the shape of the result")
    builder = builder_of(a, b)
    like = wanted.type if wanted.is_array else None
    return builder.record(
        "rng", [as_op(builder, a, like), as_op(builder, b, like)], shape=wanted, distribution=distribution
    )


@op_function("rng-bit-generator")
def RngBitGenerator(algorithm: RandomAlgorithm | str | int, initial_state: XlaOp, shape: Shape) -> XlaOp:
    """Random bits from a state: a pair of the state to go on with and an array of `shape`.

    The algorithm is Threefry, with a state of u64[2], or Philox, with u64[2] or u64[3]; the default is Philox."""
    state = as_handle(initial_state)
    wanted = as_shape(shape, "the shape of the random bits")
    result = Shape.tuple([state.shape, wanted])
    return state.builder.record("rng-bit-generator", [state], shape=result, algorithm=as_algorithm(algorithm))


@op_function("rng-get-and-update-state")
def RngGetAndUpdateState(builder: XlaBuilder, delta: int = 1) -> XlaOp:
    """The key and the counter of the running program's own random numbers, as u64[2]; each execution gets others."""
    return builder.record("rng-get-and-update-state", delta=as_int(delta, "delta"))


def as_algorithm(given: Any) -> RandomAlgorithm:
    """From our enumeration, its spelling ("rng_philox"), or an enumeration or number of xla_client's."""
    if isinstance(given, RandomAlgorithm):
        return given
    algorithms = list(RandomAlgorithm)
    name = getattr(given, "name", given)
    text = (name if isinstance(name, str) else spelled(name)).lower().removeprefix("rng_").replace("_", "")
    for number, algorithm in enumerate(algorithms):
        if text in (algorithm.name.lower().replace("_", ""), str(number)):
            return algorithm
    raise ArgumentError(f"{described(given)} is not a random algorithm: {', '.join(map(str, algorithms))}")
