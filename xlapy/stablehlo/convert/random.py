"""Random numbers."""

from __future__ import annotations

from xlapy.hlo.attributes import RandomAlgorithm, RandomDistribution
from xlapy.hlo.graph import Instruction
from xlapy.hlo.shape import Shape
from xlapy.stablehlo.convert.base import Body, converts, enumerator
from xlapy.stablehlo.tree import Operation

ALGORITHMS = {algorithm.name: algorithm for algorithm in RandomAlgorithm}
DISTRIBUTIONS = {distribution.name: distribution for distribution in RandomDistribution}


@converts("stablehlo.rng_bit_generator")
def rng_bit_generator(body: Body, operation: Operation) -> Instruction:
    algorithm = enumerator(operation, "rng_algorithm", ALGORITHMS)
    result = Shape.tuple(operation.result_types)
    return body.add("rng-bit-generator", *body.operands(operation), shape=result, algorithm=algorithm)
