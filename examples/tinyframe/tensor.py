"""Tensors: values of a program that is being recorded, with numpy's broadcasting and operators.

A tensor knows what it was computed from and how a gradient flows back through that one step (its pullback). Pullbacks
are written in tensors themselves, so a gradient is recorded like everything else and can be differentiated again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from examples.tinyframe.backend.recorder import Array, Dims, DType, Handle, Recorder

Pullback: TypeAlias = "Callable[[Tensor], tuple[Tensor | None, ...]]"
Operand: TypeAlias = "Tensor | float | Array | np.generic"

_serial_numbers = itertools.count()


class Tensor:
    """One value. `pullback(g)` gives, for each of `inputs`, the gradient that reaches it when `g` reaches this tensor;
    None where none does. Tensors without a pullback are constants, arguments or not differentiable."""

    __slots__ = ("dims", "dtype", "handle", "inputs", "pullback", "recorder", "serial")

    def __init__(
        self, recorder: Recorder, handle: Handle, inputs: Sequence[Tensor] = (), pullback: Pullback | None = None
    ) -> None:
        self.recorder = recorder
        self.handle = handle
        self.dims: Dims = recorder.dims(handle)
        self.dtype: DType = recorder.dtype(handle)
        self.inputs = (*inputs,) if pullback else ()
        self.pullback = pullback
        self.serial = next(_serial_numbers)  # inputs have smaller ones: an order for walking backwards

    # numpy would otherwise take `array + tensor` apart, element by element
    __array_ufunc__ = None

    def __repr__(self) -> str:
        return f"Tensor({self.dtype}{list(self.dims)})"

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def size(self) -> int:
        return math.prod(self.dims)

    def __add__(self, other: Operand) -> Tensor:
        return _binary("add", self, other, lambda g, x, y, z: (g, g))

    def __sub__(self, other: Operand) -> Tensor:
        return _binary("sub", self, other, lambda g, x, y, z: (g, -g))

    def __mul__(self, other: Operand) -> Tensor:
        return _binary("mul", self, other, lambda g, x, y, z: (g * y, g * x))

    def __truediv__(self, other: Operand) -> Tensor:
        return _binary("div", self, other, lambda g, x, y, z: (g / y, -g * z / y))

    def __radd__(self, other: Operand) -> Tensor:
        return self._lift(other) + self

    def __rsub__(self, other: Operand) -> Tensor:
        return self._lift(other) - self

    def __rmul__(self, other: Operand) -> Tensor:
        return self._lift(other) * self

    def __rtruediv__(self, other: Operand) -> Tensor:
        return self._lift(other) / self

    def __neg__(self) -> Tensor:
        return _unary("neg", self, lambda g, x, y: -g)

    def __matmul__(self, other: Tensor) -> Tensor:
        """The product of two matrices, or of as many pairs of them as the dimensions before the last two say.

        A single matrix on the right is for all rows on the left, however many dimensions count them."""
        if other.rank == 2 < self.rank:
            rows = self.reshape(math.prod(self.dims[:-1]), self.dims[-1])
            return (rows @ other).reshape(*self.dims[:-1], other.dims[-1])
        same_batch = self.rank >= 2 and self.dims[:-2] == other.dims[:-2]
        if not same_batch or self.rank != other.rank or self.dims[-1] != other.dims[-2]:
            raise ValueError(f"cannot multiply matrices {self} and {other}")
        product = self.recorder.matmul(self.handle, other.handle)
        return Tensor(self.recorder, product, (self, other), lambda g: (g @ other.transposed, self.transposed @ g))

    def __gt__(self, other: Operand) -> Tensor:
        return _comparison("gt", self, other)

    def __ge__(self, other: Operand) -> Tensor:
        return _comparison("ge", self, other)

    def equals(self, other: Operand) -> Tensor:
        """Element-wise equality. (`==` keeps its usual meaning, so that tensors can be members of sets.)"""
        return _comparison("eq", self, other)

    @property
    def transposed(self) -> Tensor:
        """The matrices in the last two dimensions with their rows as columns."""
        return self.permute(*range(self.rank - 2), self.rank - 1, self.rank - 2)

    def permute(self, *order: int) -> Tensor:
        """The dimensions in another order."""
        handle = self.recorder.transpose(self.handle, order)
        back = tuple(order.index(d) for d in range(self.rank))
        return Tensor(self.recorder, handle, (self,), lambda g: (g.permute(*back),))

    def reshape(self, *dims: int) -> Tensor:
        handle = self.recorder.reshape(self.handle, dims)
        return Tensor(self.recorder, handle, (self,), lambda g: (g.reshape(*self.dims),))

    def as_type(self, dtype: Any) -> Tensor:
        """The values converted. Gradients pass between float types and end at others."""
        target = np.dtype(dtype)
        handle = self.recorder.convert(self.handle, target)
        if self.dtype.kind != "f" or target.kind != "f":
            return Tensor(self.recorder, handle)
        return Tensor(self.recorder, handle, (self,), lambda g: (g.as_type(self.dtype),))

    def broadcast_to(self, dims: Dims) -> Tensor:
        """Repeated to `dims` by numpy's rule: dimensions are aligned at the end, and those of size one stretch."""
        if self.dims == dims:
            return self
        offset = len(dims) - self.rank
        kept = [d for d, size in enumerate(self.dims) if size == dims[offset + d]] if offset >= 0 else []
        squeezed = tuple(self.dims[d] for d in kept)
        if offset < 0 or math.prod(squeezed) != self.size:
            raise ValueError(f"cannot broadcast {self} to {list(dims)}")
        source = self.handle if squeezed == self.dims else self.recorder.reshape(self.handle, squeezed)
        handle = self.recorder.broadcast(source, dims, [offset + d for d in kept])
        repeated = tuple(d for d in range(len(dims)) if d - offset not in kept)
        return Tensor(self.recorder, handle, (self,), lambda g: (g.sum(repeated).reshape(*self.dims),))

    def sum(self, dimensions: int | Sequence[int] | None = None, *, keep: bool = False) -> Tensor:
        """The sum over `dimensions` (all by default); with `keep` they stay, with size one."""
        reduced = self._dimensions(dimensions)
        handle = self.recorder.reduce_sum(self.handle, reduced)
        with_ones = self._with_ones(reduced)
        total = Tensor(self.recorder, handle, (self,), lambda g: (g.reshape(*with_ones).broadcast_to(self.dims),))
        return total.reshape(*with_ones) if keep else total

    def mean(self, dimensions: int | Sequence[int] | None = None, *, keep: bool = False) -> Tensor:
        count = math.prod(self.dims[d] for d in self._dimensions(dimensions))
        return self.sum(dimensions, keep=keep) / float(count)

    def max_without_gradient(self, dimensions: int | Sequence[int], *, keep: bool = False) -> Tensor:
        """The largest element along `dimensions`, as a constant: for shifts that cancel, as in a softmax."""
        reduced = self._dimensions(dimensions)
        largest = Tensor(self.recorder, self.recorder.reduce_max(self.handle, reduced))
        return largest.reshape(*self._with_ones(reduced)) if keep else largest

    def indices(self, dimension: int) -> Tensor:
        """A tensor of these dims whose every element is its own index along `dimension`, as int32."""
        return Tensor(self.recorder, self.recorder.iota(self.dims, np.dtype(np.int32), dimension % self.rank))

    def filled(self, value: float, dims: Dims | None = None) -> Tensor:
        """A tensor of this type whose every element is `value`, of `dims` or else of these dims."""
        return self._lift(value).broadcast_to(self.dims if dims is None else dims)

    def _lift(self, value: Operand) -> Tensor:
        """`value` as a tensor of the same recording; Python numbers take this tensor's type."""
        if isinstance(value, Tensor):
            return value
        array = np.asarray(value) if isinstance(value, (np.ndarray, np.generic)) else np.asarray(value, self.dtype)
        return Tensor(self.recorder, self.recorder.constant(array))

    def _dimensions(self, dimensions: int | Sequence[int] | None) -> tuple[int, ...]:
        if dimensions is None:
            return tuple(range(self.rank))
        listed = (dimensions,) if isinstance(dimensions, int) else dimensions
        return tuple(sorted(d % self.rank for d in listed))

    def _with_ones(self, dimensions: Sequence[int]) -> Dims:
        return tuple(1 if d in dimensions else size for d, size in enumerate(self.dims))


def exp(x: Tensor) -> Tensor:
    return _unary("exp", x, lambda g, x, y: g * y)


def log(x: Tensor) -> Tensor:
    return _unary("log", x, lambda g, x, y: g / x)


def sqrt(x: Tensor) -> Tensor:
    return _unary("sqrt", x, lambda g, x, y: g * 0.5 / y)


def tanh(x: Tensor) -> Tensor:
    return _unary("tanh", x, lambda g, x, y: g * (1 - y * y))


def sigmoid(x: Tensor) -> Tensor:
    return _unary("logistic", x, lambda g, x, y: g * y * (1 - y))


def maximum(x: Tensor, other: Operand) -> Tensor:
    """The larger of two; where they are equal, the whole gradient goes to `other`."""

    def pullback(g: Tensor, x: Tensor, y: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        first, zero = x > y, g.filled(0)
        return select(first, g, zero), select(first, zero, g)

    return _binary("max", x, other, pullback)


def minimum(x: Tensor, other: Operand) -> Tensor:
    """The smaller of two; where they are equal, the whole gradient goes to `other`."""

    def pullback(g: Tensor, x: Tensor, y: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        first, zero = y > x, g.filled(0)
        return select(first, g, zero), select(first, zero, g)

    return _binary("min", x, other, pullback)


def select(condition: Tensor, chosen: Tensor, otherwise: Tensor) -> Tensor:
    """`chosen` where `condition`, `otherwise` elsewhere; all three have the same dims."""
    handle = condition.recorder.select(condition.handle, chosen.handle, otherwise.handle)

    def pullback(g: Tensor) -> tuple[Tensor | None, ...]:
        zero = g.filled(0)
        return None, select(condition, g, zero), select(condition, zero, g)

    return Tensor(condition.recorder, handle, (condition, chosen, otherwise), pullback)


def differentiable_once(tensor: Tensor, inputs: Sequence[Tensor], what: str) -> Tensor:
    """`tensor`, a gradient that was computed from `inputs` in a way that has no derivatives here: to ask for one is an
    error, and not zero."""

    def refuse(g: Tensor) -> tuple[Tensor | None, ...]:
        raise ValueError(f"the gradient of {what} cannot be differentiated again")

    return Tensor(tensor.recorder, tensor.handle, inputs, refuse)


def _unary(name: str, x: Tensor, pullback: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Tensor:
    """Applies an operation; `pullback(g, x, y)` takes the gradient of y = name(x) back to x."""
    y = Tensor(x.recorder, x.recorder.unary(name, x.handle), (x,), lambda g: (pullback(g, x, y),))
    return y


def _binary(
    name: str,
    left: Tensor,
    right: Operand,
    pullback: Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]],
) -> Tensor:
    """Applies an operation to broadcast operands; `pullback(g, x, y, z)` takes the gradient of z = name(x, y) back."""
    x, y = _aligned(left, right)
    z = Tensor(x.recorder, x.recorder.binary(name, x.handle, y.handle), (x, y), lambda g: pullback(g, x, y, z))
    return z


def _comparison(name: str, left: Tensor, right: Operand) -> Tensor:
    x, y = _aligned(left, right)
    return Tensor(x.recorder, x.recorder.binary(name, x.handle, y.handle))


def _aligned(left: Tensor, right: Operand) -> tuple[Tensor, Tensor]:
    """Both operands, broadcast to their common dims."""
    lifted = left._lift(right)
    dims = np.broadcast_shapes(left.dims, lifted.dims)
    return left.broadcast_to(dims), lifted.broadcast_to(dims)
