"""Sums of products: dot_general, and the older dot."""

from __future__ import annotations

from typing import Any

from xlapy.hlo.attributes import DotDimensionNumbers, Precision
from xlapy.hlo.graph import Instruction
from xlapy.stablehlo.convert.base import Body, attribute, converts, fields, integers
from xlapy.stablehlo.dot_algorithms import algorithm_name
from xlapy.stablehlo.tree import Operation
from xlapy.support.errors import ParseError, UnsupportedError

PRECISIONS = {precision.name: precision for precision in Precision}

_FIELDS = {
    "lhs_batch": "lhs_batching_dimensions",
    "rhs_batch": "rhs_batching_dimensions",
    "lhs_contracting": "lhs_contracting_dimensions",
    "rhs_contracting": "rhs_contracting_dimensions",
}
"""Fields of `DotDimensionNumbers` by their names in the text."""


@converts("stablehlo.dot_general")
def dot_general(body: Body, operation: Operation) -> Instruction:
    written = fields(operation, "dot_dimension_numbers")
    numbers = DotDimensionNumbers(**{ours: integers(written, name, ()) for ours, name in _FIELDS.items()})
    return _dot(body, operation, numbers)


@converts("stablehlo.dot")
def dot(body: Body, operation: Operation) -> Instruction:
    """The last dimension of the left side with the first of the right."""
    return _dot(body, operation, DotDimensionNumbers((operation.operands[0].type.rank - 1,), (0,)))


def _dot(body: Body, operation: Operation, numbers: DotDimensionNumbers) -> Instruction:
    return body.add(
        "dot",
        *body.operands(operation),
        shape=operation.result_types[0],
        dimension_numbers=numbers,
        operand_precision=precisions(operation),
        algorithm=_algorithm(operation),
    )


def _algorithm(operation: Operation) -> str:
    """HLO's name of the algorithm; empty where none is asked for."""
    if not operation.attributes.get("algorithm"):
        return ""
    name = algorithm_name(attribute(operation, "algorithm", dict))
    if name is None:
        raise UnsupportedError(f"{operation.name} asks for an algorithm that has no name in HLO")
    return name


def precisions(operation: Operation) -> tuple[Precision, ...]:
    """The precision of each operand; none where all have the default. One too many is for the op's rule to refuse."""
    words: Any = operation.attributes.get("precision_config", ())
    if not isinstance(words, tuple) or any(word not in PRECISIONS for word in words):
        raise ParseError(f"{operation.name}: precision_config lists any of {', '.join(PRECISIONS)}")
    found = tuple(PRECISIONS[word] for word in words)
    return () if len(found) <= 2 and all(precision is Precision.DEFAULT for precision in found) else found
