"""Memory that results share with parameters, as users state it: `setup_alias` and `add_buffer_donor`, checked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from xlapy.builder.arguments import as_int, as_ints
from xlapy.hlo.graph import BufferDonor, HloModule, InputOutputAlias
from xlapy.hlo.shape import Shape
from xlapy.support.errors import ShapeError


def leaf_of_parameter(number: Any, index: Any) -> tuple[int, tuple[int, ...]]:
    """A parameter, and where in its tuples an array is."""
    return as_int(number, "the number of a parameter"), as_ints(index, "an index into a parameter")


def checked_alias(module: HloModule, alias: InputOutputAlias, where: str) -> InputOutputAlias:
    """`alias`, if it names a leaf of the result and one of a parameter, of equal shapes."""
    parameters = dict(enumerate(module.signature.parameters))
    output = _leaf(module.signature.result, alias.output_index)
    parameter = parameters.get(alias.parameter)
    source = _leaf(parameter, alias.parameter_index) if parameter is not None else None
    if output is None or source is None or not output.matches(source):
        raise ShapeError(
            "setup_alias",
            f"output {list(alias.output_index)} ({output or 'missing'}) and {list(alias.parameter_index)} of parameter "
            f"{alias.parameter} ({source or 'missing'}) cannot share their memory in {module.signature}",
        ).add_context(where=where)
    return alias


def check_apart(aliases: Sequence[tuple[InputOutputAlias, str]]) -> None:
    """Raises unless each leaf of the result, and each of a parameter, is in one alias at most."""
    outputs: set[tuple[int, ...]] = set()
    sources: set[tuple[int, tuple[int, ...]]] = set()
    for alias, where in aliases:
        source = (alias.parameter, alias.parameter_index)
        if alias.output_index in outputs or source in sources:
            raise ShapeError(
                "setup_alias",
                f"output {list(alias.output_index)}, or {list(alias.parameter_index)} of parameter {alias.parameter}, "
                "shares its memory already",
            ).add_context(where=where)
        outputs.add(alias.output_index)
        sources.add(source)


def checked_donor(module: HloModule, donor: BufferDonor, where: str) -> BufferDonor:
    """`donor`, if it names a leaf of a parameter."""
    parameter = dict(enumerate(module.signature.parameters)).get(donor.parameter)
    if parameter is None or _leaf(parameter, donor.parameter_index) is None:
        raise ShapeError(
            "add_buffer_donor",
            f"there is no array {list(donor.parameter_index)} in parameter {donor.parameter} of {module.signature}",
        ).add_context(where=where)
    return donor


def _leaf(shape: Shape, index: Iterable[int]) -> Shape | None:
    for element in index:
        if not shape.is_tuple or not 0 <= element < len(shape.parts):
            return None
        shape = shape.parts[element]
    return shape if shape.is_array else None
