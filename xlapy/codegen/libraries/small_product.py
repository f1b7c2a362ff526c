"""Products of many small square matrices, one behind the other in memory, as geometry has them.

    small_product_TYPE_N      each (N, N) matrix by another one

A machine compiles the kernel that programs have for such (`kernels.dot`) once for each of the usual sizes, with sums
written out. How many matrices there are is all that it need not know.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from xlapy.codegen.arrays import Array
from xlapy.codegen.ir import I32, I64, PTR, IRType, KernelBuilder, Module, Value
from xlapy.codegen.kernels.dot import emit_dot, plan_dot
from xlapy.codegen.libraries import FIRST_ARRAY, Library, LibraryCall
from xlapy.codegen.register_transpose import picked
from xlapy.codegen.registers import register_type
from xlapy.codegen.target import Target
from xlapy.hlo import element_types as et
from xlapy.hlo.attributes import DotDimensionNumbers
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import is_row_major
from xlapy.hlo.shape import Shape

SIDES = (2, 3, 4, 8)
TYPES = (et.F32, et.F64)
LEAST_WORK = 1 << 15  # multiplications that take microseconds

_SHORT_ROW_BYTES = 16
"""Rows up to so long are computed in runs if vectors are four times as long (3 by 3 in f32 takes half as long so)."""

_MANY = 1 << 20  # matrices in the plan of a library, in which their number has no part


def call_of_small_product(dot: Instruction) -> LibraryCall | None:
    """How a library computes a dot, if one does."""
    type, dims = dot.shape.type, dot.shape.dims
    arrays = (dot, *dot.operands)
    if any(array.shape.type != type or array.shape.dims != dims or not is_row_major(array) for array in arrays):
        return None
    is_small_square = len(dims) > 2 and dims[-1] == dims[-2] and dims[-1] in SIDES and type in TYPES
    if not is_small_square or dot.attributes["dimension_numbers"] != _numbers(len(dims)):
        return None
    name = _name(type, dims[-1])
    return LibraryCall(name, name, (dims[-1],)) if math.prod(dims) * dims[-1] >= LEAST_WORK else None


def _numbers(rank: int) -> DotDimensionNumbers:
    """Of plain products of the matrices in the last two dimensions."""
    batch = tuple(range(rank - 2))
    return DotDimensionNumbers((rank - 1,), (rank - 2,), batch, batch)


def _name(type: ElementType, side: int) -> str:
    return f"small_product_{type.name}_{side}"


def _emit(type: ElementType, side: int, target: Target) -> Module:
    module, shape = Module.of(target), Shape.array(type, (_MANY, side, side))
    computation = Computation("product")
    operands = [computation.add("parameter", shape=shape, number=number) for number in range(2)]
    plan = plan_dot(computation.add("dot", operands, shape=shape, dimension_numbers=_numbers(3)), target)
    plan = replace(plan, unrolled=True)
    parameters = [("table", PTR), ("begin", I64), ("end", I64)]
    attributes = f"nounwind {target.function_attributes}".rstrip()
    with KernelBuilder(module, _name(type, side), parameters, None, attributes=attributes, joins_offsets=True) as k:
        table = k.parameters["table"]
        pointers = [k.load(k.gep(table, FIRST_ARRAY + n, PTR.bytes), PTR, hoistable=True) for n in range(3)]
        begin, end = k.parameters["begin"], k.parameters["end"]
        if target.is_avx512 and side * type.bytes <= _SHORT_ROW_BYTES:
            vector = register_type(type).with_lanes(target.lanes(register_type(type).bits))
            _RunEmitter(k, vector, side, pointers).emit(begin, end)
            return module
        lhs, rhs = (Array(pointer, shape, "operands") for pointer in pointers[:2])
        result = Array(pointers[2], shape, "result", read_only=False)
        emit_dot(k, plan, lhs, rhs, result, begin, end)
    return module


class _RunEmitter:
    """Matrices as they follow each other in memory: as many as fill whole vectors, and all elements of these at once.

    A vector of results is the sum over k of products of vectors that are picked: for each of its C[m, r, c] one holds
    A[m, r, k], the other B[m, k, c]. Neighbours in C have neighbours in A and B, so that one instruction picks a vector
    from two.
    """

    def __init__(self, k: KernelBuilder, type: IRType, side: int, arrays: Sequence[Value]) -> None:
        self._k = k
        self._type = type
        self._lanes = type.lanes
        self._side = side
        self._operands, self._result = arrays[:2], arrays[2]
        self._size = side * side
        self._vectors = self._size // math.gcd(self._size, type.lanes)
        self._matrices = self._vectors * type.lanes // self._size

    def emit(self, begin: Value, end: Value) -> None:
        """Matrices [begin, end); the last ones, which do not fill the vectors, by masks."""
        k = self._k
        whole = k.sub(end, k.srem(k.sub(end, begin), self._matrices))
        with k.loop(begin, whole, self._matrices) as matrix:
            self._multiply(matrix.index, None)
        with k.if_(k.compare("lt", whole, end)):
            self._multiply(whole, k.mul(k.sub(end, whole), self._size))

    def _multiply(self, matrix: Value, count: Value | None) -> None:
        """The products from number `matrix` on: whole vectors, or `count` elements."""
        k = self._k
        first = k.mul(matrix, self._size)
        masks = [self._mask(count, number) for number in range(self._vectors)]
        left, right = ([self._load(array, first, n, mask) for n, mask in enumerate(masks)] for array in self._operands)
        for number, mask in enumerate(masks):
            place, total = self._place(self._result, first, number), k.const(self._type, 0)
            for step in range(self._side):
                factors = [self._factors(at, step) for at in range(number * self._lanes, (number + 1) * self._lanes)]
                of_left, of_right = zip(*factors, strict=True)
                total = k.muladd(picked(k, left, of_left), picked(k, right, of_right), total)
            if mask is None:
                k.store(place, total)
            else:
                k.masked_store(place, total, mask)

    def _factors(self, place: int, step: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """In which vector and lane of A and of B the factors are of one product in the sum at `place`."""
        matrix, rest = divmod(place, self._size)
        row, column = divmod(rest, self._side)
        first = matrix * self._size
        left, right = first + row * self._side + step, first + step * self._side + column
        return divmod(left, self._lanes), divmod(right, self._lanes)

    def _mask(self, count: Value | None, number: int) -> Value | None:
        """The lanes of a vector that are among the first `count` elements."""
        if count is None:
            return None
        k, numbers = self._k, I32.with_lanes(self._lanes)
        rest = k.trunc(k.sub(count, number * self._lanes), I32)
        return k.compare("lt", k.lane_numbers(numbers), k.splat(rest, self._lanes))

    def _load(self, array: Value, first: Value, number: int, mask: Value | None) -> Value:
        place = self._place(array, first, number)
        return self._k.load(place, self._type) if mask is None else self._k.masked_load(place, self._type, mask)

    def _place(self, array: Value, first: Value, number: int) -> Value:
        """Where a vector is, counted from element `first` on."""
        k = self._k
        return k.gep(k.gep(array, first, self._type.bytes), number * self._lanes, self._type.bytes)


def _library(type: ElementType, side: int) -> Library:
    name = _name(type, side)
    return Library(name, (name,), partial(_emit, type, side))


SMALL_PRODUCT_LIBRARIES = {library.name: library for library in (_library(t, side) for t in TYPES for side in SIDES)}
"""By name."""
