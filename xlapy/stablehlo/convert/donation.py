"""Donated arguments: what attributes of the arguments of @main say of their memory.

%x: tensor<4xf32> {tf.aliasing_output = 0 : i32}       result 0 may live in it
%y: tensor<4xf32> {jax.buffer_donor = true}            any result of that shape may
"""

from __future__ import annotations

from xlapy.hlo.graph import BufferDonor, InputOutputAlias
from xlapy.hlo.shape import Shape, Signature
from xlapy.stablehlo.attributes import ALIASING_OUTPUT, BUFFER_DONOR
from xlapy.stablehlo.tree import Operation
from xlapy.support.errors import ParseError


def donations(
    function: Operation, signature: Signature
) -> tuple[tuple[InputOutputAlias, ...], tuple[BufferDonor, ...]]:
    """The donations of a function whose converted form has this signature."""
    aliases, donors = [], []
    attributes = function.attributes.get("arg_attrs")
    for number, stated in enumerate(attributes if isinstance(attributes, tuple) else ()):
        if not isinstance(stated, dict):
            continue
        output = stated.get(ALIASING_OUTPUT)
        if output is not None:
            aliases.append(_alias(output, number, signature))
        elif stated.get(BUFFER_DONOR):
            donors.append(BufferDonor(number))
    return tuple(aliases), tuple(donors)


def _alias(output: object, number: int, signature: Signature) -> InputOutputAlias:
    """Several results are a tuple, one is not."""
    results = signature.result.parts if signature.result.is_tuple else (signature.result,)
    if not isinstance(output, int) or not 0 <= output < len(results):
        raise ParseError(f"{ALIASING_OUTPUT} of argument {number} is {output}, and there are {len(results)} results")
    if not _may_share(results[output], signature.parameters[number]):
        raise ParseError(
            f"result {output} is {results[output]} and cannot live in the memory of argument {number}, which is "
            f"{signature.parameters[number]}"
        )
    return InputOutputAlias((output,) if signature.result.is_tuple else (), number, ())


def _may_share(result: Shape, parameter: Shape) -> bool:
    return result.is_array and parameter.is_array and result.matches(parameter)
