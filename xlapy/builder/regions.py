"""Sub-computations: a built one, or a Python function that is recorded once, with a builder of its own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from xlapy.builder.arguments import described
from xlapy.builder.builder import ComputationLike, XlaBuilder, XlaComputation
from xlapy.builder.op import XlaOp
from xlapy.builder.operands import as_op
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Computation
from xlapy.hlo.shape import Shape, shape_of_results
from xlapy.support.errors import ArgumentError
from xlapy.support.wording import counted

Structure = Any
"""A handle, or a list or tuple of structures; scalars and numpy arrays may stand for handles."""


def computation_of(
    builder: XlaBuilder,
    function: ComputationLike,
    parameters: Sequence[Shape],
    role: str,
    like: Shape | None = None,
) -> Computation:
    """The computation to call; a Python function is recorded with one handle for each of `parameters`.

    `like` is the result type that Python scalars in the function's result take."""
    if isinstance(function, XlaComputation):
        return function.computation
    _check_function(function, role)
    _check_arity(function, len(parameters), role)
    inner = XlaBuilder(_name_of(function, role), parent=builder)
    arguments = [inner.parameter(number, shape) for number, shape in enumerate(parameters)]
    return _finished(inner, function(*arguments), like, role)


def fold_computation_of(
    builder: XlaBuilder, function: ComputationLike, element_types: Sequence[ElementType], role: str
) -> Computation:
    """As `computation_of`, of what combines two elements of each of some arrays: (T.., T..) -> T.. of their types."""
    scalars = [Shape.scalar(element_type) for element_type in element_types]
    return computation_of(builder, function, [*scalars, *scalars], role, shape_of_results(scalars))


def state_computation_of(
    builder: XlaBuilder, function: ComputationLike, state: XlaOp, template: Structure, role: str, like: Shape | None
) -> Computation:
    """As `computation_of`, for a function of one value that the caller gave as a structure.

    A function of one parameter gets the structure whole, one of several parameters its elements."""
    if isinstance(function, XlaComputation):
        return function.computation
    _check_function(function, role)
    inner = XlaBuilder(_name_of(function, role), parent=builder)
    value = unpack(inner.parameter(0, state.shape), template)
    spread = isinstance(template, (list, tuple)) and not _takes(function, 1)
    arguments = list(value) if spread else [value]
    if len(arguments) == 1 and state.shape.is_tuple and not _takes(function, 1) and _takes(function, len(value)):
        raise ArgumentError(
            f"the {role} function {_signature_of(function)} is called with one argument, the tuple {state.shape}: take "
            "it apart inside (a, b = state), or give the state as a Python list or tuple"
        )
    _check_arity(function, len(arguments), role)
    return _finished(inner, function(*arguments), like, role)


def pack(builder: XlaBuilder, value: Structure, like: Shape | None = None) -> XlaOp:
    """The structure as one handle, lists and tuples as tuples; Python scalars take the element types of `like`."""
    if isinstance(value, (list, tuple)):
        parts = like.parts if like is not None and like.is_tuple and len(like.parts) == len(value) else None
        elements = [pack(builder, element, parts[i] if parts else None) for i, element in enumerate(value)]
        return builder.record("tuple", elements)
    return as_op(builder, value, like.element_type if like is not None else None)


def unpack(op: XlaOp, template: Structure) -> Structure:
    """The tuple `op` in the lists and tuples of `template`."""
    if not isinstance(template, (list, tuple)):
        return op
    elements = [unpack(op[index], part) for index, part in enumerate(template)]
    return elements if isinstance(template, list) else tuple(elements)


def _finished(inner: XlaBuilder, result: Structure, like: Shape | None, role: str) -> Computation:
    if result is None:
        raise ArgumentError(f"the {role} function {inner.name!r} returned None; it must return its result")
    return inner.build(pack(inner, result, like)).computation


def _check_function(function: Any, role: str) -> None:
    if isinstance(function, XlaBuilder):
        raise ArgumentError(f"the {role} is a builder; call {function.name}.build() first")
    if not callable(function) or isinstance(function, XlaOp):
        raise ArgumentError(f"the {role} must be an XlaComputation or a Python function, not {described(function)}")


def _check_arity(function: Callable[..., Any], count: int, role: str) -> None:
    if not _takes(function, count):
        given = counted(count, "argument")
        raise ArgumentError(f"the {role} function {_signature_of(function)} does not take {given}")


def _signature_of(function: Callable[..., Any]) -> str:
    return f"{getattr(function, '__name__', repr(function))}{inspect.signature(function)}"


def _takes(function: Callable[..., Any], count: int) -> bool:
    """It can be called with so many positional arguments (True also where Python cannot tell)."""
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def _name_of(function: Callable[..., Any], role: str) -> str:
    name = getattr(function, "__name__", "")
    return name if name.isidentifier() else role
