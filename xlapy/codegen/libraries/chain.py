"""Chains over the rows or columns of large arrays that are so usual that a library has them: softmaxes, normalizations.

What memory and exponentials take does not depend on whether code knows the sizes of its arrays, so where they are
large it is not compiled with each program. Other chains, and small arrays, have kernels of their own (`kernels.rows`,
`kernels.columns`), which do the same in the same order.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from xlapy.codegen.arrays import FETCHED_AHEAD
from xlapy.codegen.ir import I64, Module
from xlapy.codegen.kernels.columns import TASKS_PER_CORE, ColumnPlan
from xlapy.codegen.kernels.loop import is_streamed
from xlapy.codegen.kernels.wide_columns import WideColumnPlan
from xlapy.codegen.libraries import FIRST_ARRAY, NUMBERS_PLACE, SCRATCH_PLACE, Library, LibraryCall
from xlapy.codegen.libraries.chain_bodies import (
    BODIES,
    COLUMN_BODIES,
    FOLDED_BODIES,
    OVER_WIDE_STRIPS,
    WIDE_BODIES,
    is_over_columns,
    is_over_rows,
)
from xlapy.codegen.libraries.chain_body import NUMBER, ChainBody, FoundChain, find_chain, has_functions, read_body
from xlapy.codegen.libraries.chain_columns import (
    COLUMNS,
    columns_name,
    emit_columns_chain,
    wide_name,
    widths_of,
)
from xlapy.codegen.libraries.chain_columns import SIZES as COLUMN_SIZES
from xlapy.codegen.libraries.chain_rows import (
    LEAST_LENGTH,
    ROWS,
    WHOLE,
    emit_rows_chain,
    in_place_name,
    names_of_functions,
    rows_together,
    scratch_bytes,
    whole_name,
)
from xlapy.codegen.libraries.chain_rows import SIZES as ROW_SIZES
from xlapy.codegen.target import Target
from xlapy.hlo import element_types as et
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import fusion_roots, three_parts

LEAST_BYTES = 1 << 20  # of an array that takes some tens of microseconds to read
LEAST_WHOLE_BYTES = 1 << 16  # of one whose exponentials do

_NARROW = (et.BF16, et.F16)
_WIDE = (et.F32, et.F64)
_BODIES = {
    **{name: (text, _WIDE) for name, text in (BODIES | FOLDED_BODIES | COLUMN_BODIES).items()},
    **{name: (text, _NARROW) for name, text in WIDE_BODIES.items()},
}
"""Texts, and the types of elements for which there are libraries."""


@dataclass(frozen=True, slots=True)
class ChainCall:
    """How a library computes a chain over rows: by which function, in how many units, with how much memory for each
    task."""

    call: LibraryCall
    units: int
    own_bytes: int = 0

    def in_tasks(self, grain: int, task_bytes: int) -> LibraryCall:
        """The call for tasks of so many units, and with so much memory each."""
        sizes = dict(zip(ROW_SIZES, self.call.numbers, strict=False)) | {"grain": grain, "task_bytes": task_bytes}
        return replace(self.call, numbers=(*sizes.values(), *self.call.numbers[len(sizes) :]))


def call_over_rows(
    computation: Computation, target: Target, *, in_place: bool, part: int = 0, is_first_step: bool = False
) -> ChainCall | None:
    """How a library computes a fused computation over rows, if one does. `in_place`: the result overwrites an operand;
    `part`: rows for which it is called at a time, if not all. That of a first step lies in scratch memory."""
    chain = _large_chain(computation, LEAST_WHOLE_BYTES)
    body = None if chain is None else _body_of(chain, ROWS)
    if chain is None or body is None or chain.space.row_length < LEAST_LENGTH:
        return None
    own_bytes = scratch_bytes(chain.body, chain.type, chain.space.row_length, target)
    if own_bytes and (part or is_first_step or own_bytes > _most_scratch_bytes(chain, target)):
        return None  # the memory has other uses, or that is too much
    is_large = _largest(computation) >= LEAST_BYTES
    is_whole = not (is_large or own_bytes or chain.space.row_length % WHOLE) and has_functions(chain.body)
    if not (is_large or is_whole):
        return None
    space, together = chain.space, rows_together(chain.body)
    wanted = space.rows_at_once(in_place=in_place, part=part)
    block = -(-wanted // together) * together
    if part and block != wanted:
        return None
    if block > space.rows or (in_place and space.rows % block):
        return None
    name = library_name(ROWS, body, chain.type)
    whole = [root for root in fusion_roots(computation) if space.is_full(root)]
    streams = not (in_place or part) and bool(whole) and is_streamed(whole, target.lanes(chain.type.bits), target)
    sizes = (space.rows, space.row_length, block, streams, 1, 0)
    function = whole_name(name) if is_whole else in_place_name(name) if in_place else name
    call = _call(name, function, sizes, chain, computation, in_scratch=is_first_step)
    return ChainCall(call, -(-space.rows // block), own_bytes)


def _most_scratch_bytes(chain: FoundChain, target: Target) -> float:
    """That a task may have for what is kept of long rows: all of them less than the array has, and what a cache holds
    where others are far. Else functions are computed again as fast."""
    space = chain.space
    array_bytes = space.rows * space.row_length * chain.type.bytes
    most = array_bytes / (2 * min(space.rows, TASKS_PER_CORE * target.cores))
    return min(most, target.l2_bytes / 3) if target.has_far_last_cache else most


def call_over_columns(
    computation: Computation, plan: ColumnPlan, grain: int, task_bytes: int, target: Target
) -> LibraryCall | None:
    """How a library computes a fused computation over columns as planned, if one does: in tasks of `grain` units, with
    so much memory for each."""
    chain = _large_chain(computation, LEAST_WHOLE_BYTES)
    body = None if chain is None else _body_of(chain, COLUMNS)
    if chain is None or body is None or plan.vectors not in widths_of(body):
        return None
    is_far = _largest(computation) > target.l2_bytes and not plan.is_short
    if not (has_functions(chain.body) or is_far):
        return None
    row_bytes = plan.width * chain.type.bytes
    sizes = {
        "streams": plan.streaming,
        "rows_ahead": max(1, FETCHED_AHEAD // row_bytes),
        "grain": grain,
        "task_bytes": task_bytes,
    }
    function = columns_name(library_name(COLUMNS, body, chain.type), plan.vectors)
    return _columns_call(function, chain, body, plan, computation, sizes)


def call_over_wide_columns(computation: Computation, plan: WideColumnPlan) -> LibraryCall | None:
    """The same for wide strips."""
    chain = _large_chain(computation, LEAST_BYTES)
    body = None if chain is None else _body_of(chain, COLUMNS)
    if chain is None or body not in OVER_WIDE_STRIPS:
        return None
    function = wide_name(library_name(COLUMNS, body, chain.type))
    return _columns_call(function, chain, body, plan, computation, {})


def _columns_call(
    function: str,
    chain: FoundChain,
    body: str,
    plan: ColumnPlan | WideColumnPlan,
    computation: Computation,
    others: dict[str, int],
) -> LibraryCall | None:
    """The call of a function for strips as planned. `others` are more of its sizes."""
    space = chain.space
    parts, last = three_parts(space.dims, space.folded), space.dims[-1]
    if parts is None or (parts[-1] > last and last % plan.width):
        return None  # strips overlap others within the last dimension
    _, length, columns = parts
    strips = plan.strips * (columns // last)
    sizes = {"length": length, "columns": columns, "strips": strips, "vectors": plan.vectors, **others}
    numbers = (int(sizes.get(size, 0)) for size in COLUMN_SIZES)
    return _call(library_name(COLUMNS, body, chain.type), function, numbers, chain, computation)


def _large_chain(computation: Computation, least: int) -> FoundChain | None:
    return find_chain(computation) if _largest(computation) >= least else None


def _largest(computation: Computation) -> int:
    """The bytes of the largest operand."""
    return max((parameter.shape.bytes for parameter in computation.parameters), default=0)


def _body_of(chain: FoundChain, way: str) -> str | None:
    """The name of the body of a chain, if there is a library that has it."""
    for name, (text, types) in _BODIES.items():
        if not _IS_OVER[way](name):
            continue
        may_be = chain.type in types and text.count("=") + text.count(NUMBER) == len(chain.body.nodes)
        if may_be and _body(name) == chain.body:
            return name
    return None


@functools.cache
def _body(name: str) -> ChainBody:
    return read_body(_BODIES[name][0])


def _call(
    library: str,
    function: str,
    sizes: Iterable[int],
    chain: FoundChain,
    computation: Computation,
    *,
    in_scratch: bool = False,
) -> LibraryCall:
    """A call with its results, or the only one, in scratch memory, or behind the operands."""
    first = SCRATCH_PLACE if in_scratch else FIRST_ARRAY + len(computation.parameters)
    numbers = [*sizes, *(first + result for result in chain.results)]
    numbers += [_place(computation, array) for array in chain.arrays]
    for number in chain.numbers:
        if isinstance(number, np.ndarray):
            numbers += [NUMBERS_PLACE, (len(numbers) + 2) * I64.bytes, int.from_bytes(number.tobytes(), "little")]
        else:
            numbers += [_place(computation, number), 0, 0]
    return LibraryCall(library, function, tuple(numbers))


def _place(computation: Computation, array: Instruction) -> int:
    return FIRST_ARRAY + computation.parameters.index(array)


def library_name(way: str, body: str, type: ElementType) -> str:
    return f"chain_{way}_{body}_{type.name}"


def _emit_rows(body: str, type: ElementType, target: Target) -> Module:
    return emit_rows_chain(library_name(ROWS, body, type), _body(body), type, target)


def _emit_columns(body: str, type: ElementType, target: Target) -> Module:
    return emit_columns_chain(library_name(COLUMNS, body, type), widths_of(body), _body(body), type, target)


def _library(way: str, body: str, type: ElementType) -> Library:
    name = library_name(way, body, type)
    if way == ROWS:
        return Library(name, names_of_functions(name, _body(body)), partial(_emit_rows, body, type))
    narrow = [columns_name(name, vectors) for vectors in widths_of(body)]
    wide = [wide_name(name)] if body in OVER_WIDE_STRIPS else []
    return Library(name, (*narrow, *wide), partial(_emit_columns, body, type))


_IS_OVER = {ROWS: is_over_rows, COLUMNS: is_over_columns}

CHAIN_LIBRARIES = {
    library.name: library
    for body, (_, types) in _BODIES.items()
    for way, is_over in _IS_OVER.items()
    if is_over(body)
    for library in (_library(way, body, type) for type in types)
}
"""By name."""
