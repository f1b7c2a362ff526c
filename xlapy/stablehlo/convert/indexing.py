"""Data movement with run-time indices: gather and scatter."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, TypeVar

from xlapy.hlo.attributes import GatherDimensionNumbers, ScatterDimensionNumbers
from xlapy.hlo.graph import Instruction
from xlapy.stablehlo.convert.base import Body, attribute, converts, fields, integers
from xlapy.stablehlo.convert.reductions import promoted
from xlapy.stablehlo.tree import Operation

Numbers = TypeVar("Numbers", GatherDimensionNumbers, ScatterDimensionNumbers)


@converts("stablehlo.gather")
def gather(body: Body, operation: Operation) -> Instruction:
    return gathered(body, operation, body.operands(operation), integers(operation, "slice_sizes"))


def gathered(
    body: Body, operation: Operation, operands: Sequence[Instruction], slice_sizes: tuple[int, ...]
) -> Instruction:
    """The gather that the attributes of an operation describe."""
    return body.add(
        "gather",
        *operands,
        dimension_numbers=_dimension_numbers(operation, "dimension_numbers", GatherDimensionNumbers),
        slice_sizes=slice_sizes,
        indices_are_sorted=attribute(operation, "indices_are_sorted", bool, False),
    )


@converts("stablehlo.scatter")
def scatter(body: Body, operation: Operation) -> Instruction:
    (computation,) = body.called
    operands = body.operands(operation)
    count = len(operands) // 2
    indices = operands.pop(count)
    operands = promoted(body, operands, computation)
    return body.add(
        "scatter",
        *operands[:count],
        indices,
        *operands[count:],
        called=[computation],
        dimension_numbers=_dimension_numbers(operation, "scatter_dimension_numbers", ScatterDimensionNumbers),
        indices_are_sorted=attribute(operation, "indices_are_sorted", bool, False),
        unique_indices=attribute(operation, "unique_indices", bool, False),
    )


def _dimension_numbers(operation: Operation, name: str, kind: type[Numbers]) -> Numbers:
    """The structured attribute, whose fields have the names of ours; absent lists are empty."""
    written = fields(operation, name)
    numbers: dict[str, Any] = {
        field.name: attribute(written, field.name, int, 0)
        if field.name == "index_vector_dim"
        else integers(written, field.name, ())
        for field in dataclasses.fields(kind)
    }
    return kind(**numbers)
