"""Products of many small square matrices, one behind the other in memory, as geometry has them.

    small_product_TYPE_N      each (N, N) matrix by another one

A machine compiles the kernel that programs have for such (`kernels.dot`) once for each of the usual sizes, with sums
written out. How many matrices there are is all that it need not know.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

from xlapy.codegen.arrays import Array
from xlapy.codegen.ir import I64, PTR, KernelBuilder, Module
from xlapy.codegen.kernels.dot import emit_dot, plan_dot
from xlapy.codegen.libraries import Library, LibraryCall
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

_MANY = 1 << 20  # matrices in the plan of a library, in which their number has no part
_FIRST_ARRAY = 3  # in the table of a library call


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
        pointers = [k.load(k.gep(table, _FIRST_ARRAY + n, PTR.bytes), PTR, hoistable=True) for n in range(3)]
        lhs, rhs = (Array(pointer, shape, "operands") for pointer in pointers[:2])
        result = Array(pointers[2], shape, "result", read_only=False)
        emit_dot(k, plan, lhs, rhs, result, k.parameters["begin"], k.parameters["end"])
    return module


def _library(type: ElementType, side: int) -> Library:
    name = _name(type, side)
    return Library(name, (name,), partial(_emit, type, side))


SMALL_PRODUCT_LIBRARIES = {library.name: library for library in (_library(t, side) for t in TYPES for side in SIDES)}
"""By name."""
