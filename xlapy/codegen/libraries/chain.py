"""Chains over the rows of large arrays that are so usual that a library has them: softmaxes, normalizations.

What memory and exponentials take does not depend on whether code knows the sizes of its arrays, so where they are
large it is not compiled with each program. Other chains, and small arrays, have kernels of their own (`kernels.rows`),
which do the same in the same order.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from xlapy.codegen.ir import Module
from xlapy.codegen.libraries import Library, LibraryCall
from xlapy.codegen.libraries.chain_bodies import BODIES, WIDE_BODIES
from xlapy.codegen.libraries.chain_body import NUMBER, ChainBody, FoundChain, find_chain, read_body
from xlapy.codegen.libraries.chain_rows import (
    FIRST_ARRAY,
    LEAST_LENGTH,
    MOST_LENGTH,
    emit_chain,
    in_place_name,
    rows_together,
)
from xlapy.codegen.target import Target
from xlapy.hlo import element_types as et
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Computation

LEAST_BYTES = 1 << 20  # of a result that takes some tens of microseconds to write

_NARROW = (et.BF16, et.F16)
_WIDE = (et.F32, et.F64)
_BODIES = {
    **{name: (text, _WIDE) for name, text in BODIES.items()},
    **{name: (text, _NARROW) for name, text in WIDE_BODIES.items()},
}
"""Texts, and the types of elements for which there are libraries."""


@dataclass(frozen=True, slots=True)
class ChainCall:
    """How a library computes a chain: by which function, in how many units."""

    call: LibraryCall
    units: int


def call_of_chain(computation: Computation, *, in_place: bool) -> ChainCall | None:
    """How a library computes a fused computation of row kind, if one does. `in_place`: the result overwrites an
    operand."""
    root = computation.root
    if root.opcode == "tuple" or root.shape.bytes < LEAST_BYTES:
        return None
    chain = find_chain(computation)
    if chain is None or chain.space.is_columns or not LEAST_LENGTH <= chain.space.row_length <= MOST_LENGTH:
        return None
    name = _name_of(chain)
    return None if name is None else _call(name, chain, computation, in_place=in_place)


def _name_of(chain: FoundChain) -> str | None:
    """The name of the library that has the body of a chain."""
    for name, (text, types) in _BODIES.items():
        may_be = chain.type in types and text.count("=") + text.count(NUMBER) == len(chain.body.nodes)
        if may_be and _body(name) == chain.body:
            return library_name(name, chain.type)
    return None


@functools.cache
def _body(name: str) -> ChainBody:
    return read_body(_BODIES[name][0])


def _call(name: str, chain: FoundChain, computation: Computation, *, in_place: bool) -> ChainCall | None:
    space, parameters, together = chain.space, computation.parameters, rows_together(chain.body)
    block = -(-space.rows_at_once(in_place=in_place) // together) * together
    if block > space.rows or (in_place and space.rows % block):
        return None
    sizes = (space.rows, space.row_length, block, FIRST_ARRAY + len(parameters))
    places = (FIRST_ARRAY + parameters.index(array) for array in chain.arrays)
    function = in_place_name(name) if in_place else name
    call = LibraryCall(name, function, (*sizes, *places, *map(_bits, chain.numbers)))
    return ChainCall(call, -(-space.rows // block))


def _bits(number: np.ndarray[tuple[()], np.dtype[np.generic]]) -> int:
    """A scalar as memory holds it, in the first bytes of a number."""
    return int.from_bytes(number.tobytes(), "little")


def library_name(body: str, type: ElementType) -> str:
    return f"chain_rows_{body}_{type.name}"


def _emit(body: str, type: ElementType, target: Target) -> Module:
    return emit_chain(library_name(body, type), _body(body), type, target)


def _library(body: str, type: ElementType) -> Library:
    name = library_name(body, type)
    return Library(name, (name, in_place_name(name)), partial(_emit, body, type))


def _libraries(names: Sequence[tuple[str, ElementType]]) -> dict[str, Library]:
    return {library_name(*name): _library(*name) for name in names}


CHAIN_LIBRARIES = _libraries([(body, type) for body, (_, types) in _BODIES.items() for type in types])
"""By name."""
