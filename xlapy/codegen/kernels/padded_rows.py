"""Rows of arrays that a pad has made larger.

Where each lane is asked whether an element lies there, copying takes several times as long. So the rows with elements
are told from those without, and the part of a row that has elements from its ends: only these are asked.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from xlapy.codegen.element_graph import between
from xlapy.codegen.indexing import Coordinate, Index, Indexing
from xlapy.codegen.ir import I1, I64, KernelBuilder, Value
from xlapy.codegen.kernels.row_order import inner_dim, inner_size, outer_positions, place_in_row
from xlapy.codegen.kernels.strip import strip
from xlapy.hlo.graph import Instruction
from xlapy.hlo.shape import Shape

LEAST_BYTES = 64 * 1024  # of a result: less is not worth code for rows and parts of several kinds

Interior = Mapping[int, range]
"""Where in each padded dimension there are elements of what is padded."""

Step = Callable[[Indexing, Index], None]


def interior_of(roots: Sequence[Instruction], is_input: Callable[[Instruction], bool], lanes: int) -> Interior:
    """Where all that is padded has elements; nothing if that is nowhere, or no vector fits in."""
    shape = roots[0].shape
    interior: dict[int, range] = {}
    if shape.bytes < LEAST_BYTES:
        return interior
    for pad in between(roots, is_input):
        if is_input(pad) or pad.opcode != "pad" or pad.shape.dims != shape.dims:
            continue
        for dim, padding in enumerate(pad.attributes["dimensions"]):
            if not padding.interior and (padding.low > 0 or padding.high > 0):
                known = interior.get(dim, range(shape.dims[dim]))
                end = padding.low + pad.operands[0].shape.dims[dim]
                interior[dim] = range(max(known.start, padding.low), min(known.stop, end))
    along = interior.get(inner_dim(shape), range(lanes))
    return interior if all(interior.values()) and len(along) >= lanes else {}


def emit_padded_row(k: KernelBuilder, shape: Shape, row: Value, lanes: int, step: Step, interior: Interior) -> None:
    """The inner loop over one row. The last vector of a part overlaps the one before it, or another part."""
    outer = outer_positions(k, shape, row)
    inner, size = inner_dim(shape), inner_size(shape)
    inside = [_is_within(k, outer[dim], positions) for dim, positions in interior.items() if dim != inner]
    bounded = {dim: replace(at, bounds=interior.get(dim)) for dim, at in outer.items()}

    def part(outer: Mapping[int, Coordinate], begin: int, end: int, bounds: range | None = None) -> None:
        def inner_step(ix: Indexing, position: Value) -> None:
            along = replace(ix.along_lanes(position), bounds=bounds)
            step(ix, place_in_row(shape, outer, along))

        if begin < end:
            strip(k, k.const(I64, begin), k.const(I64, end), lanes, inner_step, overlapping=True)

    def with_elements() -> list[Value]:
        along = interior.get(inner, range(size))
        part(bounded, 0, max(along.start, lanes) if along.start else 0)
        part(bounded, along.start, along.stop, along)
        part(bounded, min(along.stop, size - lanes) if along.stop < size else size, size)
        return []

    def any_row() -> list[Value]:
        part(outer, 0, size)
        return []

    k.if_else(functools.reduce(k.and_, inside, k.const(I1, 1)), with_elements, any_row)


def _is_within(k: KernelBuilder, at: Coordinate, positions: range) -> Value:
    return k.compare("lt", k.sub(at.start, positions.start), len(positions), signed=False)
