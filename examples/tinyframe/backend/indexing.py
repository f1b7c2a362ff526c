"""Parts of arrays: at places known while recording, and at places that other arrays say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from examples.tinyframe.backend.recorder import Dims, Handle
from xlapy import ops
from xlapy.hlo.attributes import GatherDimensionNumbers, ScatterDimensionNumbers


def part(x: Handle, dimension: int, start: int, stop: int) -> Handle:
    """The elements from `start` to `stop` along `dimension`."""
    return ops.SliceInDim(x, start, stop, 1, dimension)


def concatenate(parts: Sequence[Handle], dimension: int) -> Handle:
    return ops.Concatenate(parts, dimension)


def pad_with_zeros(x: Handle, dimension: int, before: int, behind: int) -> Handle:
    zero = ops.Constant(x.builder, np.zeros((), x.shape.type.dtype))
    config = [(before, behind, 0) if d == dimension else (0, 0, 0) for d in range(x.shape.rank)]
    return ops.Pad(x, zero, config)


def take_rows(table: Handle, numbers: Handle) -> Handle:
    """The rows of a matrix that `numbers`, of any dims, say: these dims, and behind them the row's."""
    numbering = GatherDimensionNumbers(
        offset_dims=(numbers.shape.rank,),
        collapsed_slice_dims=(0,),
        start_index_map=(0,),
        index_vector_dim=numbers.shape.rank,
    )
    return ops.Gather(table, numbers, numbering, (1, table.shape.dims[1]))


def add_rows(numbers: Handle, rows: Handle, dims: Dims) -> Handle:
    """A matrix of `dims` that is zero but for `rows`, each added to the row of its number."""
    zeros = ops.BroadcastInDim(ops.Constant(rows.builder, np.zeros((), rows.shape.type.dtype)), dims)
    numbering = ScatterDimensionNumbers(
        update_window_dims=(numbers.shape.rank,),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
        index_vector_dim=numbers.shape.rank,
    )
    return ops.Scatter(zeros, numbers, rows, ops.Add, numbering)
