"""What users pass as operands, as handles.

A numpy array or scalar becomes a constant of its own dtype. A Python scalar is weak: it becomes a constant of the
element type of the operand beside it, and must be representable there (a float may round a fraction or a large integer,
but nothing may turn into infinity). With nothing beside it, bool is pred, int is s32, float is f32 and complex is c64.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from xlapy.builder.arguments import as_list, described
from xlapy.builder.builder import XlaBuilder
from xlapy.builder.op import XlaOp
from xlapy.hlo.element_types import C64, C128, F32, F64, PRED, S32, S64, U64, ElementType, element_type_of
from xlapy.hlo.literal import Literal
from xlapy.support.errors import ArgumentError, ShapeError
from xlapy.support.given import array_of, is_python_scalar, represented


class ArrayLike(Protocol):
    """An array or a scalar of numpy, of ml_dtypes, of another framework."""

    @property
    def dtype(self) -> Any: ...
    @property
    def shape(self) -> Any: ...


Operand: TypeAlias = XlaOp | bool | int | float | complex | ArrayLike
"""What stands for a value: a handle, a Python scalar, an array."""

Operands: TypeAlias = Operand | Sequence[Operand]
"""One operand, or several in a list."""


# -- operands ------------------------------------------------------------------------------------------------------


def is_weak(value: Any) -> bool:
    """A Python scalar: its type is that of the operand beside it. (np.float64 is a float too, but knows its dtype.)"""
    return is_python_scalar(value)


def as_handle(operand: Any) -> XlaOp:
    """`operand`, where only a handle makes sense: it says which builder records."""
    if not isinstance(operand, XlaOp):
        hint = "; ops.Constant(builder, value) makes one of it" if is_weak(operand) or hasattr(operand, "dtype") else ""
        raise ArgumentError(f"the operand must be an XlaOp, not {described(operand)}{hint}")
    return operand


def builder_of(*values: Any) -> XlaBuilder:
    """The builder of the first handle among `values` (or in lists among them)."""
    for value in values:
        for element in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(element, XlaOp):
                return element.builder
    given = ", ".join(described(value) for value in values)
    raise ArgumentError(f"got {given}: at least one operand must be an XlaOp, such as ops.Constant(builder, value)")


def as_op(builder: XlaBuilder, value: Operand, like: ElementType | None = None) -> XlaOp:
    """The operand as a handle of `builder`; a Python scalar takes the element type `like`."""
    if isinstance(value, XlaOp):
        return value if value.builder is builder else builder.own(value)
    if is_weak(value):
        element_type = like if like is not None else weak_type([value])
        return builder.record("constant", literal=Literal(weak_value(value, element_type)))
    return record_literal(builder, value)


def as_ops(builder: XlaBuilder, values: Sequence[Operand]) -> list[XlaOp]:
    """The operands as handles of one builder, Python scalars in the element type of the first that has one."""
    given = as_list(values, "the operands")
    like = common_type(given)
    return [as_op(builder, value, like) for value in given]


def listed(operands: Operands) -> Sequence[Operand]:
    """The operands as a list, where one may stand for itself."""
    given: Any = operands
    return given if isinstance(given, (list, tuple)) else [given]


def common_type(values: Iterable[Operand]) -> ElementType | None:
    """The element type of the first operand that is not weak; that of the widest Python scalar if all are."""
    weak = []
    for value in values:
        if isinstance(value, XlaOp):
            if value.shape.is_array:
                return value.shape.type
        elif is_weak(value):
            weak.append(value)
        elif hasattr(value, "dtype"):
            return element_type_of(value.dtype)
    return weak_type(weak) if weak else None


def record_literal(builder: XlaBuilder, value: Any) -> XlaOp:
    """A constant of a numpy array, scalar or Literal; a tuple of constants for a tuple.

    An array whose elements are all the same bits is a broadcast scalar."""
    if isinstance(value, tuple):
        return builder.record("tuple", [as_op(builder, element) for element in value])
    literal = value if isinstance(value, Literal) else _literal_of(value)
    if literal.elements is not None:
        return builder.record("tuple", [record_literal(builder, element) for element in literal.elements])
    if literal.array.size > 1 and literal.is_splat:
        scalar = builder.record("constant", literal=Literal(literal.scalar()))
        return builder.record("broadcast", [scalar], shape=literal.shape, dimensions=())
    return builder.record("constant", literal=literal)


def _literal_of(value: Any) -> Literal:
    if not hasattr(value, "dtype") or not hasattr(value, "shape"):
        hint = "; make an array of it with np.array(...)" if isinstance(value, (list, range)) else ""
        raise ArgumentError(f"{described(value)} is not an XlaOp, a Python scalar or a numpy array{hint}")
    array = array_of(value, "a constant")
    element_type_of(array.dtype)
    if not array.flags.writeable and array.base is not None:
        array = array.copy()  # a read-only view may see its base change
    return Literal(array)


# -- weak scalars --------------------------------------------------------------------------------------------------


def weak_type(values: Sequence[Any]) -> ElementType:
    """The element type that Python scalars take among themselves."""
    if any(isinstance(value, complex) for value in values):
        return C64
    if any(isinstance(value, float) for value in values):
        return F32
    return PRED if all(isinstance(value, bool) for value in values) else S32


def weak_value(value: Any, element_type: ElementType) -> np.ndarray[Any, Any]:
    """The Python scalar in `element_type`; raises ShapeError if that cannot represent it."""
    representable = represented(value, element_type.dtype) if _is_of_kind(value, element_type) else None
    if representable is None:
        raise ShapeError(
            "weak-scalar",
            f"{element_type.name} cannot represent the Python scalar {described(value)}{_hint_for(value)}",
        )
    return representable


def _hint_for(value: Any) -> str:
    """The first of the usual types that has the value: a constant of it can be computed with, or converted."""
    integers = (S32, S64, U64) if isinstance(value, int) else ()
    for element_type in (*integers, F32, F64, C64, C128):
        if _is_of_kind(value, element_type) and represented(value, element_type.dtype) is not None:
            return f"; give it a type of its own, such as np.{element_type.dtype.name}(...), and convert"
    return ""


def _is_of_kind(value: Any, element_type: ElementType) -> bool:
    """Whether a Python scalar may become an element at all: whole numbers may be written as floats."""
    if element_type is PRED:
        return isinstance(value, bool)
    if isinstance(value, complex):
        return element_type.is_complex
    return not (element_type.is_integer and isinstance(value, float)) or value.is_integer()
