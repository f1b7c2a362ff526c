"""Laws of reduce-window and select-and-scatter with windows that are one element, have one, or everything, and of those
that are folded in steps."""

from __future__ import annotations

import math
from dataclasses import replace

from xlapy.hlo.attributes import NO_WINDOW_DIMENSION, PaddingDimension, Window, WindowDimension
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import sole_operation
from xlapy.hlo.patterns import P, variables
from xlapy.passes import new
from xlapy.passes.algebra.reductions import IDEMPOTENT, changes_nothing
from xlapy.passes.new import Value
from xlapy.passes.rewrite import LAWS, Exactness

x, y, z, window, p = variables("x y z window p")


@LAWS.law(P.reduce_window(x, y, window=window))
def reduce_window_of_one(root: Instruction, x: Instruction, y: Instruction, window: Window) -> Value | None:
    """reduce-window(x) of single elements -> f(initial value, x)"""
    operation = sole_operation(root.called[0])
    if operation is None or not all(map(_is_one_element, window.dimensions)) or root.shape.is_scalar:
        return None
    return new.op(operation.opcode, [new.broadcast(y, shape=root.shape, dimensions=()), x])


def _is_one_element(part: WindowDimension) -> bool:
    return part.size == part.stride == part.base_dilation == 1 and part.padding_low == part.padding_high == 0


@LAWS.law(P.reduce_window(x, y, window=window))
def reduce_window_beside_elements(root: Instruction, x: Instruction, y: Instruction, window: Window) -> Value | None:
    """reduce-window(x, y) -> that of the places of the window that see an element of x at some position

    At the others y is folded, which changes nothing."""
    parts = tuple(
        part.cut_to(part.places_on_elements(size)) for part, size in zip(window.dimensions, x.shape.dims, strict=True)
    )
    operation = sole_operation(root.called[0])
    folded_once = operation is not None and operation.opcode in IDEMPOTENT
    if parts == window.dimensions or not (folded_once or changes_nothing(y, root.called[0], y)):
        return None
    return new.like(root, [x, y], window=Window(parts))


@LAWS.law(P.reduce_window(P.pad(x, z, dimensions=p), y, window=window))
def reduce_window_of_one_each(
    root: Instruction,
    x: Instruction,
    y: Instruction,
    z: Instruction,
    p: tuple[PaddingDimension, ...],
    window: Window,
) -> Value | None:
    """reduce-window(pad(x, identity)) -> f(initial value, x), repeated, where each window has one element of x"""
    operation = sole_operation(root.called[0])
    have_one = all(_has_one_element(*pair) for pair in zip(window.dimensions, p, strict=True))
    if operation is None or not have_one or not changes_nothing(z, root.called[0], y):
        return None
    folded = new.op(operation.opcode, [new.broadcast(y, shape=x.shape, dimensions=()), x])
    sizes: list[int] = []
    places = []
    for size, part in zip(x.shape.dims, window.dimensions, strict=True):
        places.append(len(sizes))
        sizes += [size, part.size] if part.size > 1 else [size]
    apart = new.broadcast(folded, shape=x.shape.with_dims(tuple(sizes)), dimensions=tuple(places))
    return new.reshaped(apart, root.shape.dims)


def _has_one_element(part: WindowDimension, padding: PaddingDimension) -> bool:
    beside = part.size - 1
    return _is_one_element(replace(part, size=1)) and padding == PaddingDimension(beside, beside, beside)


@LAWS.law(P.reduce_window(x, y, window=window), exactness=Exactness.FREE)
def reduce_window_of_all(root: Instruction, x: Instruction, y: Instruction, window: Window) -> Value | None:
    """reduce-window(x) -> reshape(reduce(x)), where the window is as large as x in the dimensions that it folds"""
    folded = tuple(dim for dim, part in enumerate(window.dimensions) if not _is_one_element(part))
    whole = all(_is_whole(window.dimensions[dim], x.shape.dims[dim]) for dim in folded)
    if not whole or not folded or not x.shape.size:
        return None
    return new.reshaped(new.op("reduce", [x, y], called=root.called, dimensions=folded), root.shape.dims)


@LAWS.law(P.reduce_window(x, y, window=window))
def reduce_window_in_steps(root: Instruction, x: Instruction, y: Instruction, window: Window) -> Value | None:
    """reduce-window(x) of n * m integers -> reduce-window(reduce-window(x) of n) of m that are n apart

    Sums of floats would be others. One more array is written and read, for n + m places instead of n * m."""
    folded = [dim for dim, part in enumerate(window.dimensions) if not _is_one_element(part)]
    is_exact = x.shape.type.is_integer and sole_operation(root.called[0]) is not None
    if len(folded) != 1 or not is_exact or not changes_nothing(y, root.called[0], y):
        return None
    (dim,) = folded
    part = window.dimensions[dim]
    is_plain = part.stride == part.base_dilation == 1 and not part.reversal
    if not is_plain or not _LEAST_STEPPED <= part.size < x.shape.dims[dim]:
        return None
    near = next(size for size in range(math.isqrt(part.size), 0, -1) if part.size % size == 0)
    far = part.size // near
    if near + far > part.size // 2:
        return None
    first = replace(part, size=far)
    second = WindowDimension(near, window_dilation=part.window_dilation * far)
    parts = list(window.dimensions)
    parts[dim] = first
    inner = new.op("reduce-window", [x, y], called=root.called, window=Window(tuple(parts)))
    parts[dim] = second
    return new.op("reduce-window", [inner, y], called=root.called, window=Window(tuple(parts)))


_LEAST_STEPPED = 16
"""Places of a window that are folded in two steps."""


@LAWS.law(P.reduce_window(x, y, window=window), exactness=Exactness.FREE)
def reduce_window_by_dims(root: Instruction, x: Instruction, y: Instruction, window: Window) -> Value | None:
    """reduce-window(x) of n by m -> reduce-window(reduce-window(x) of 1 by m) of n by 1, where m are along the rows

    One more array is written and read, for n + m places instead of n * m."""
    parts = window.dimensions
    folded = [dim for dim, part in enumerate(parts) if not _is_one_element(part)]
    operation = sole_operation(root.called[0])
    if operation is None or len(folded) < 2 or folded[-1] != len(parts) - 1 or not root.shape.size:
        return None
    if operation.opcode not in IDEMPOTENT and not (_is_summed_in_its_type(x) and changes_nothing(y, root.called[0], y)):
        return None
    along, around = [NO_WINDOW_DIMENSION] * len(parts), list(parts)
    along[-1], around[-1] = parts[-1], NO_WINDOW_DIMENSION
    lines = math.prod(x.shape.dims[:-1]) * root.shape.dims[-1]
    others = math.prod(part.size for part in around)
    saved = root.shape.size * (others * (parts[-1].size - 1)) - lines * parts[-1].size
    is_slow = operation.opcode in ("maximum", "minimum") and x.shape.type.is_float
    if saved < root.shape.size * (_LEAST_SAVED_EXTREMA if is_slow else _LEAST_SAVED):
        return None
    inner = new.op("reduce-window", [x, y], called=root.called, window=Window(tuple(along)))
    return new.op("reduce-window", [inner, y], called=root.called, window=Window(tuple(around)))


_LEAST_SAVED, _LEAST_SAVED_EXTREMA = 8, 3
"""Places of a window that are worth another array: fewer where those who fold them look for NaNs."""


def _is_summed_in_its_type(x: Instruction) -> bool:
    """What the first step folds is not rounded before the second one."""
    return not x.shape.type.is_narrow_float


def _is_whole(part: WindowDimension, size: int) -> bool:
    return part == WindowDimension(size, stride=part.stride, reversal=part.reversal)


@LAWS.law(P.select_and_scatter(x, y, z, window=window))
def select_and_scatter_of_one(root: Instruction, y: Instruction, z: Instruction, window: Window) -> Value | None:
    """select-and-scatter(x, y) with windows of one element -> f(initial value, y)"""
    operation = sole_operation(root.called[1])
    if operation is None or not all(map(_is_one_element, window.dimensions)) or root.shape.is_scalar:
        return None
    return new.op(operation.opcode, [new.broadcast(z, shape=root.shape, dimensions=()), y])
