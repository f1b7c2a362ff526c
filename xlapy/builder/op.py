"""`XlaOp`: the user's handle on a recorded value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from xlapy.builder.other_names import hint_for_value
from xlapy.builder.places import user_line
from xlapy.builder.registry import FUNCTIONS, OPERATORS
from xlapy.hlo.graph import Instruction
from xlapy.hlo.shape import Shape
from xlapy.support.errors import ArgumentError

if TYPE_CHECKING:
    from xlapy.builder.builder import XlaBuilder
    from xlapy.builder.method_types import OpMethods
    from xlapy.builder.operands import Operand
else:
    OpMethods = object  # those of `methods.attach_methods`, which only checkers and editors read


class XlaOp(OpMethods):
    """A value of the computation that a builder records: an array, a tuple or a token.

    Operators record operations; the other operand may be a Python scalar, which takes this one's element type, or a
    numpy array. `/` is ops.Div (integers truncate), `//` and `%` round down as in Python, `>>` keeps the sign of
    signed integers, `@` multiplies matrices. Comparisons, `==` included, are operations too, so handles are compared
    with `is`. Arrays are indexed with constants (`x[0, 1:3, ::-1]`), tuples with a number, and `a, b = t` unpacks a
    tuple. The functions of `xlapy.ops` whose first operand is a value are also methods: `x.reshape((2, 3))`.
    """

    __slots__ = ("builder", "instruction")

    def __init__(self, builder: XlaBuilder, instruction: Instruction) -> None:
        self.builder = builder
        self.instruction = instruction

    @property
    def shape(self) -> Shape:
        """The shape of the value, known as soon as it is recorded."""
        return self.instruction.shape

    def __repr__(self) -> str:
        operands = ", ".join(operand.name for operand in self.instruction.operands)
        return f"<XlaOp {self.instruction.name}: {self.shape} = {self.instruction.opcode}({operands})>"

    # -- arithmetic ------------------------------------------------------------------------------------------------

    def __add__(self, other: Operand) -> XlaOp:
        return _operate("add", self, other)

    def __radd__(self, other: Operand) -> XlaOp:
        return _operate("add", other, self)

    def __sub__(self, other: Operand) -> XlaOp:
        return _operate("sub", self, other)

    def __rsub__(self, other: Operand) -> XlaOp:
        return _operate("sub", other, self)

    def __mul__(self, other: Operand) -> XlaOp:
        return _operate("mul", self, other)

    def __rmul__(self, other: Operand) -> XlaOp:
        return _operate("mul", other, self)

    def __truediv__(self, other: Operand) -> XlaOp:
        return _operate("truediv", self, other)

    def __rtruediv__(self, other: Operand) -> XlaOp:
        return _operate("truediv", other, self)

    def __floordiv__(self, other: Operand) -> XlaOp:
        return _operate("floordiv", self, other)

    def __rfloordiv__(self, other: Operand) -> XlaOp:
        return _operate("floordiv", other, self)

    def __mod__(self, other: Operand) -> XlaOp:
        return _operate("mod", self, other)

    def __rmod__(self, other: Operand) -> XlaOp:
        return _operate("mod", other, self)

    def __pow__(self, other: Operand) -> XlaOp:
        return _operate("pow", self, other)

    def __rpow__(self, other: Operand) -> XlaOp:
        return _operate("pow", other, self)

    def __matmul__(self, other: Operand) -> XlaOp:
        return _operate("matmul", self, other)

    def __rmatmul__(self, other: Operand) -> XlaOp:
        return _operate("matmul", other, self)

    def __neg__(self) -> XlaOp:
        return _operate("neg", self)

    def __pos__(self) -> XlaOp:
        return self

    def __abs__(self) -> XlaOp:
        return _operate("abs", self)

    # -- bits ------------------------------------------------------------------------------------------------------

    def __invert__(self) -> XlaOp:
        return _operate("invert", self)

    def __and__(self, other: Operand) -> XlaOp:
        return _operate("and", self, other)

    def __rand__(self, other: Operand) -> XlaOp:
        return _operate("and", other, self)

    def __or__(self, other: Operand) -> XlaOp:
        return _operate("or", self, other)

    def __ror__(self, other: Operand) -> XlaOp:
        return _operate("or", other, self)

    def __xor__(self, other: Operand) -> XlaOp:
        return _operate("xor", self, other)

    def __rxor__(self, other: Operand) -> XlaOp:
        return _operate("xor", other, self)

    def __lshift__(self, other: Operand) -> XlaOp:
        return _operate("lshift", self, other)

    def __rlshift__(self, other: Operand) -> XlaOp:
        return _operate("lshift", other, self)

    def __rshift__(self, other: Operand) -> XlaOp:
        return _operate("rshift", self, other)

    def __rrshift__(self, other: Operand) -> XlaOp:
        return _operate("rshift", other, self)

    # -- comparison ------------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> XlaOp:  # type: ignore[override]
        return _operate("eq", self, other)

    def __ne__(self, other: object) -> XlaOp:  # type: ignore[override]
        return _operate("ne", self, other)

    def __lt__(self, other: Operand) -> XlaOp:
        return _operate("lt", self, other)

    def __le__(self, other: Operand) -> XlaOp:
        return _operate("le", self, other)

    def __gt__(self, other: Operand) -> XlaOp:
        return _operate("gt", self, other)

    def __ge__(self, other: Operand) -> XlaOp:
        return _operate("ge", self, other)

    __hash__ = object.__hash__

    def clamp(self, min: Operand, max: Operand) -> XlaOp:
        """`ops.Clamp(min, self, max)`; a bound is a scalar or has the dimensions of this value."""
        return _operate("clamp", self, min, max)

    # -- parts -----------------------------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> XlaOp:
        return _operate("getitem", self, index)

    def __iter__(self) -> Iterator[XlaOp]:
        if not self.shape.is_tuple:
            raise self._refusal(
                "an array in the graph cannot be iterated over; index it, or record a loop with ops.While"
            )
        return iter([self[index] for index in range(len(self.shape.parts))])

    def __len__(self) -> int:
        if not self.shape.is_tuple:
            raise self._refusal("len() is for tuples; the sizes of an array are in op.shape.dims")
        return len(self.shape.parts)

    # -- what a recorded value is not ------------------------------------------------------------------------------

    def __bool__(self) -> bool:
        raise self._refusal(
            "has no truth value while the graph is recorded: `if`, `while`, `and`, `or` and `not` need one. Choose "
            "between values with ops.Select, between computations with ops.Conditional, loop with ops.While, and "
            "combine conditions with & | ~"
        )

    def __int__(self) -> int:
        raise self._refusal(_NO_NUMBER)

    def __float__(self) -> float:
        raise self._refusal(_NO_NUMBER)

    def __index__(self) -> int:
        raise self._refusal(_NO_NUMBER)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise self._refusal(f"{_NO_NUMBER}. numpy computes at once: what is recorded are operators and xlapy.ops")

    def __format__(self, spec: str) -> str:
        if spec:
            raise self._refusal(_NO_NUMBER)
        return str(self)

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> XlaOp:
        """`array + op`, which numpy calls `np.add(array, op)`; its other functions compute at once, as arrays do."""
        name = function.__name__
        if method == "__call__" and not kwargs and name in _NUMPY_OPERATORS:
            return _operate(_NUMPY_OPERATORS[name], *inputs)
        if method == "reduce":
            raise self._refusal(f"numpy.{name}.reduce cannot be recorded: {_HOW_TO_REDUCE}")
        hint = f": that is x.{name}()" if hasattr(XlaOp, name) else hint_for_value(name)
        raise self._refusal(f"numpy.{name} cannot be recorded{hint}")

    def __setitem__(self, index: Any, value: Any) -> None:
        raise self._refusal(
            "is a value that does not change: ops.DynamicUpdateSlice(x, update, starts) makes another one"
        )

    def _refusal(self, why: str) -> ArgumentError:
        return ArgumentError(why, where=user_line()).add_context(subject=repr(self))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """What is no method: those that `methods.attach_methods` makes from the op functions are found before."""
            raise AttributeError(f"an XlaOp has no {name!r}{hint_for_value(name, FUNCTIONS)}", name=name, obj=self)


_NUMPY_OPERATORS = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "truediv",
    "floor_divide": "floordiv",
    "remainder": "mod",
    "power": "pow",
    "matmul": "matmul",
    "bitwise_and": "and",
    "bitwise_or": "or",
    "bitwise_xor": "xor",
    "left_shift": "lshift",
    "right_shift": "rshift",
    "equal": "eq",
    "not_equal": "ne",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
}
"""What numpy calls the operators of two operands, and the names that they have here."""

_NO_NUMBER = "has no value while the graph is recorded; build the computation, compile it, and run it"


_HOW_TO_REDUCE = "ops.Reduce(x, init_value, computation, dimensions) folds dimensions"


def _operate(name: str, *operands: Any) -> XlaOp:
    result: XlaOp = OPERATORS[name](*operands)
    return result
