"""Operations of old programs that name what they do: einsum, torch_index_select, cross-replica-sum."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from xlapy.hlo.attributes import DotDimensionNumbers, GatherDimensionNumbers
from xlapy.hlo.graph import Instruction
from xlapy.hlo.regions import binary_region
from xlapy.hlo.shape import Shape
from xlapy.stablehlo.convert.base import Body, attribute, converts
from xlapy.stablehlo.convert.collectives import reducing_group
from xlapy.stablehlo.convert.contractions import precisions
from xlapy.stablehlo.tree import Operation
from xlapy.support.errors import ParseError, ShapeError, UnsupportedError

_CONFIG = re.compile(r"([a-zA-Z,]*)->([a-zA-Z]*)")


def _labels(operation: Operation, shapes: Sequence[Shape]) -> tuple[list[str], str]:
    """The letters of each operand's dimensions, and of the result's."""
    config = attribute(operation, "einsum_config", str)
    match = _CONFIG.fullmatch(config.replace(" ", ""))
    if match is None:
        raise UnsupportedError(f"{operation.name}: {config!r} is not of the form ij,jk->ik")
    operands, result = match[1].split(","), match[2]
    if len(operands) != len(shapes) or any(len(one) != s.rank for one, s in zip(operands, shapes, strict=True)):
        raise ParseError(f"{operation.name}: {config!r} does not name the dimensions of {', '.join(map(str, shapes))}")
    if set(result) - set("".join(operands)):
        raise ParseError(f"{operation.name}: {config!r} has a dimension in the result that no operand has")
    if any(len(set(letters)) != len(letters) for letters in (*operands, result)):
        raise UnsupportedError(f"{operation.name}: {config!r} takes a diagonal")
    return operands, result


@converts("stablehlo.unary_einsum")
def unary_einsum(body: Body, operation: Operation) -> Instruction:
    (operand,) = body.operands(operation)
    (letters,), result = _labels(operation, [operand.shape])
    summed, letters = _summed(body, operand, letters, result)
    return _ordered(body, summed, letters, result)


@converts("stablehlo.einsum")
def einsum(body: Body, operation: Operation) -> Instruction:
    """What only one side has is summed first; what both have is multiplied, and summed unless the result has it."""
    lhs, rhs = body.operands(operation)
    (left, right), result = _labels(operation, [lhs.shape, rhs.shape])
    lhs, left = _summed(body, lhs, left, result + right)
    rhs, right = _summed(body, rhs, right, result + left)
    both = [letter for letter in left if letter in right]
    batch = [letter for letter in both if letter in result]
    contracted = [letter for letter in both if letter not in result]
    numbers = DotDimensionNumbers(
        lhs_batch=tuple(map(left.index, batch)),
        rhs_batch=tuple(map(right.index, batch)),
        lhs_contracting=tuple(map(left.index, contracted)),
        rhs_contracting=tuple(map(right.index, contracted)),
    )
    stated = operation.result_types[0]
    product = body.add(
        "dot", lhs, rhs, shape=stated, dimension_numbers=numbers, operand_precision=precisions(operation)
    )
    free = [letter for letter in left + right if letter not in both]
    return _ordered(body, product, "".join(batch + free), result)


def _summed(body: Body, operand: Instruction, letters: str, wanted: str) -> tuple[Instruction, str]:
    """The operand without the dimensions that nobody wants, and the letters of those that are left."""
    dimensions = tuple(dim for dim, letter in enumerate(letters) if letter not in wanted)
    if not dimensions:
        return operand, letters
    element_type = operand.shape.type
    zero = body.constant(0, element_type)
    total = body.add("reduce", operand, zero, called=[binary_region("add", element_type)], dimensions=dimensions)
    return total, "".join(letter for letter in letters if letter in wanted)


def _ordered(body: Body, array: Instruction, letters: str, wanted: str) -> Instruction:
    return array if letters == wanted else body.add("transpose", array, permutation=tuple(map(letters.index, wanted)))


@converts("stablehlo.torch_index_select")
def torch_index_select(body: Body, operation: Operation) -> Instruction:
    """The slices of the operand along `dim` at the given indices, for each index of `batch_dims` leading dimensions."""
    operand, indices = body.operands(operation)
    dim, batch = attribute(operation, "dim", int, 0), attribute(operation, "batch_dims", int, 0)
    if not 0 <= batch <= dim < operand.shape.rank or batch > indices.shape.rank:
        raise ShapeError("torch_index_select", f"dim {dim} and batch_dims {batch} do not fit {operand.shape}")
    inner = indices.shape.rank - batch
    rank = operand.shape.rank - 1 + inner
    batching = tuple(range(batch))
    numbers = GatherDimensionNumbers(
        offset_dims=(*range(batch, dim), *range(dim + inner, rank)),
        collapsed_slice_dims=(dim,),
        start_index_map=(dim,),
        operand_batching_dims=batching,
        start_indices_batching_dims=batching,
        index_vector_dim=indices.shape.rank,
    )
    sizes = np.array(operand.shape.dims)
    sizes[[*batching, dim]] = 1
    return body.add("gather", operand, indices, dimension_numbers=numbers, slice_sizes=tuple(map(int, sizes)))


@converts("stablehlo.cross-replica-sum")
def cross_replica_sum(body: Body, operation: Operation) -> Instruction:
    """An all_reduce that adds."""
    operands = body.operands(operation)
    called = [binary_region("add", operands[0].shape.type)] if operands else []
    return body.add("all-reduce", *operands, called=called, **reducing_group(operation))
