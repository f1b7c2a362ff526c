"""The worked examples of the specification for the builder, with data: what to record, the arguments, the result.

Here they are recorded and their shapes compared; whoever can run programs runs the same rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from xlapy import ops
from xlapy.builder import XlaBuilder, XlaComputation, XlaOp
from xlapy.hlo.attributes import GatherDimensionNumbers, ScatterDimensionNumbers
from xlapy.hlo.shape import Shape


@dataclass(frozen=True, slots=True)
class Example:
    """`build` records the example for parameters of the shapes of `arguments` and returns the root."""

    label: str
    build: Callable[..., Any]
    arguments: tuple[Any, ...]
    expected: Any

    def computation(self) -> XlaComputation:
        builder = XlaBuilder(self.label)
        parameters = [builder.parameter(number, Shape.of(value)) for number, value in enumerate(self.arguments)]
        root = self.build(*parameters) if parameters else self.build(builder)
        return builder.build(root)


def f32(value: Any) -> np.ndarray[Any, Any]:
    return np.array(value, np.float32)


def s32(value: Any) -> np.ndarray[Any, Any]:
    return np.array(value, np.int32)


MATRIX = f32([[1, 2, 3], [4, 5, 6]])
VECTOR = f32([7, 8, 9])
COLLAPSED = f32([[[i + j for j in (0, 1, 2)], [i + j for j in (5, 6, 7)]] for i in (10, 20, 30, 40)])
REDUCED = np.broadcast_to(MATRIX, (4, 2, 3)).copy()
TABLE = f32([[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]])
LINE = f32([0, 1, 2, 3, 4])
TEN = np.arange(1, 11, dtype=np.float32)

BROADCASTING = [
    Example("BC.E1", lambda m, v: ops.Add(m, v, (1,)), (MATRIX, VECTOR), f32([[8, 10, 12], [11, 13, 15]])),
    Example("BC.E2", lambda m: ops.Add(m, 7), (MATRIX,), f32([[8, 9, 10], [11, 12, 13]])),
    Example("BC.E3", lambda v: ops.BroadcastInDim(v, (2, 3), (1,)), (VECTOR,), f32([[7, 8, 9]] * 2)),
    Example("BC.E4", lambda v: ops.BroadcastInDim(v, (3, 3), (1,)), (VECTOR,), f32([[7, 8, 9]] * 3)),
    Example("BC.E5", lambda v: ops.BroadcastInDim(v, (3, 3), (0,)), (VECTOR,), f32([[7] * 3, [8] * 3, [9] * 3])),
    Example("BC.E12", ops.Add, (f32([[10], [20]]), f32([[1, 2, 3]])), f32([[11, 12, 13], [21, 22, 23]])),
    Example(
        "BC.E13",
        lambda v, m: ops.Add(v, m, (0,)),
        (f32([1, 2, 3, 4]), f32([[5, 6]])),
        f32([[6, 7], [7, 8], [8, 9], [9, 10]]),
    ),
    Example(
        "BC.E14",
        lambda m, c: ops.Add(m, c, (1, 2)),
        (f32([[100, 200]]), np.arange(12, dtype=np.float32).reshape(4, 3, 1)),
        f32([[[100 * (k + 1) + 3 * i + j for k in range(2)] for j in range(3)] for i in range(4)]),
    ),
    Example(
        "R9: the operands keep their order", lambda v, m: ops.Sub(v, m, (1,)), (VECTOR, MATRIX), f32([[6] * 3, [3] * 3])
    ),
]

SHAPES = [
    Example("Broadcast.E1", lambda b: ops.Broadcast(b.constant(2.0), (2, 3)), (), np.full((2, 3), 2, np.float32)),
    Example("Collapse.E1", lambda v: ops.Collapse(v, (0, 1, 2)), (COLLAPSED,), COLLAPSED.reshape(24)),
    Example("Collapse.E2", lambda v: ops.Collapse(v, (0, 1)), (COLLAPSED,), COLLAPSED.reshape(8, 3)),
    Example("Collapse.E3", lambda v: ops.Collapse(v, (1, 2)), (COLLAPSED,), COLLAPSED.reshape(4, 6)),
    Example(
        "Concatenate.E1",
        lambda *parts: ops.Concat(parts, 0),
        (f32([2, 3]), f32([4, 5]), f32([6, 7])),
        f32([2, 3, 4, 5, 6, 7]),
    ),
    Example(
        "Concatenate.E2",
        lambda *parts: ops.Concatenate(parts, dimension=0),
        (f32([[1, 2], [3, 4], [5, 6]]), f32([[7, 8]])),
        f32([[1, 2], [3, 4], [5, 6], [7, 8]]),
    ),
    Example("Reshape.E1", lambda v: ops.Reshape(v, (0, 1, 2), (24,)), (COLLAPSED,), COLLAPSED.reshape(24)),
    Example("Reshape.E2", lambda v: ops.Reshape(v, (0, 1, 2), (8, 3)), (COLLAPSED,), COLLAPSED.reshape(8, 3)),
    Example(
        "Reshape.E3",
        lambda v: ops.Reshape(v, (1, 2, 0), (24,)),
        (COLLAPSED,),
        f32([10 * i + j for j in (0, 1, 2, 5, 6, 7) for i in (1, 2, 3, 4)]),
    ),
    Example(
        "Reshape.E4",
        lambda v: ops.Reshape(v, (1, 2, 0), (8, 3)),
        (COLLAPSED,),
        f32(
            [
                [10, 20, 30],
                [40, 11, 21],
                [31, 41, 12],
                [22, 32, 42],
                [15, 25, 35],
                [45, 16, 26],
                [36, 46, 17],
                [27, 37, 47],
            ]
        ),
    ),
    Example(
        "Reshape.E5",
        lambda v: ops.Reshape(v, (1, 2, 0), (2, 6, 2)),
        (COLLAPSED,),
        f32(
            [
                [[10, 20], [30, 40], [11, 21], [31, 41], [12, 22], [32, 42]],
                [[15, 25], [35, 45], [16, 26], [36, 46], [17, 27], [37, 47]],
            ]
        ),
    ),
    Example("Reshape.E6, to a scalar", lambda x: ops.Reshape(x, (0, 1), ()), (f32([[5]]),), f32(5)),
    Example("Reshape.E6, from a scalar", lambda x: ops.Reshape(x, (), (1, 1)), (f32(5),), f32([[5]])),
    Example("Slice.E1", lambda x: ops.Slice(x, (2,), (4,)), (LINE,), f32([2, 3])),
    Example("Slice.E2", lambda x: ops.Slice(x, (2, 1), (4, 3)), (TABLE,), f32([[7, 8], [10, 11]])),
]

INDEXING = [
    Example("DynamicSlice.E1, vector", lambda x, s: ops.DynamicSlice(x, s, (2,)), (LINE, s32([2])), f32([2, 3])),
    Example("DynamicSlice.E1, scalars", lambda x, s: ops.DynamicSlice(x, [s], (2,)), (LINE, s32(2)), f32([2, 3])),
    Example(
        "DynamicSlice.E2",
        lambda x, s: ops.DynamicSlice(x, s, (2, 2)),
        (TABLE, s32([2, 1])),
        f32([[7, 8], [10, 11]]),
    ),
    Example(
        "DynamicSlice, moved inward",
        lambda x, i, j: ops.DynamicSlice(x, [i, j], (2, 2)),
        (TABLE, s32(-5), s32(9)),
        f32([[1, 2], [4, 5]]),
    ),
    Example(
        "DynamicUpdateSlice.E1",
        ops.DynamicUpdateSlice,
        (LINE, f32([5, 6]), s32([2])),
        f32([0, 1, 5, 6, 4]),
    ),
    Example(
        "DynamicUpdateSlice.E2",
        ops.DynamicUpdateSlice,
        (TABLE, f32([[12, 13], [14, 15], [16, 17]]), s32([1, 1])),
        f32([[0, 1, 2], [3, 12, 13], [6, 14, 15], [9, 16, 17]]),
    ),
]

SQUARES = s32(np.arange(24).reshape(3, 4, 2) + 1)
WINDOWS = s32([[[0, 0], [1, 0], [2, 1]], [[0, 1], [1, 1], [0, 2]]])


def rows(offset_dims: tuple[int, ...], index_vector_dim: int) -> GatherDimensionNumbers:
    return GatherDimensionNumbers(offset_dims, (0,), (0,), index_vector_dim)


GATHER_AND_SCATTER = [
    Example(
        "Gather.E2",
        lambda x, i: ops.Gather(x, i, GatherDimensionNumbers((1, 2), (), (0, 1), 1), (8, 6)),
        (s32(np.arange(176).reshape(16, 11)), np.array([[0, 0], [8, 5], [3, 2], [-1, 99], [99, 1]], np.int64)),
        s32([np.arange(176).reshape(16, 11)[x:][:8, y:][:, :6] for x, y in [(0, 0), (8, 5), (3, 2), (0, 5), (8, 1)]]),
    ),
    Example(
        "Gather.E4",
        lambda x, i: ops.Gather(x, i, rows((2,), 2), (1, 2)),
        (s32([[1, 2], [3, 4], [5, 6]]), s32([[[0], [2]], [[1], [1]]])),
        s32([[[1, 2], [5, 6]], [[3, 4], [3, 4]]]),
    ),
    Example(
        "Gather.B3, an implicit dimension",
        lambda x, i: ops.Gather(x, i, rows((1,), 1), (1, 2)),
        (s32([[1, 2], [3, 4], [5, 6]]), s32([2, 0])),
        s32([[5, 6], [1, 2]]),
    ),
    Example(
        "gather.E1",
        lambda x, i: ops.Gather(x, i, GatherDimensionNumbers((2, 3), (0,), (1, 0), 2), (1, 2, 2)),
        (SQUARES, WINDOWS),
        s32(
            [
                [[[1, 2], [3, 4]], [[3, 4], [5, 6]], [[13, 14], [15, 16]]],
                [[[9, 10], [11, 12]], [[11, 12], [13, 14]], [[17, 18], [19, 20]]],
            ]
        ),
    ),
    Example(
        "Scatter.E2",
        lambda x, i, u: ops.Scatter(x, i, u, ops.Add, ScatterDimensionNumbers((2, 3), (0,), (1, 0), 2)),
        (
            SQUARES,
            s32([[[0, 2], [1, 0], [2, 1]], [[0, 1], [1, 0], [0, 9]]]),
            s32(np.ones((2, 3, 2, 2))),
        ),
        s32(
            [
                [[1, 2], [5, 6], [7, 8], [7, 8]],
                [[10, 11], [12, 13], [14, 15], [16, 17]],
                [[18, 19], [20, 21], [21, 22], [23, 24]],
            ]
        ),
    ),
]

ORDERING = [
    Example(
        "Sort.E1",
        lambda x, y, z: ops.Sort(x.builder, [x, y, z], lambda a, b, *rest: a < b, 0),
        (s32([3, 1]), s32([42, 50]), f32([-3.0, 1.1])),
        (s32([1, 3]), s32([50, 42]), f32([1.1, -3.0])),
    ),
    Example("Sort.E2", ops.Sort, (s32([3, 1]), s32([42, 50])), (s32([1, 3]), s32([50, 42]))),
    Example("Sort, 2017", ops.Sort, (f32([2, np.inf, -1, 0]),), f32([-1, 0, 2, np.inf])),
    Example(
        "sort.E1",
        lambda x, y: ops.Sort(x.builder, [x, y], lambda a, b, c, d: a > b, 0, True),
        (s32([[1, 2, 3], [3, 2, 1]]), s32([[3, 2, 1], [1, 2, 3]])),
        (s32([[3, 2, 3], [1, 2, 1]]), s32([[1, 2, 1], [3, 2, 3]])),
    ),
    Example("SortKeyVal", ops.SortKeyVal, (s32([3, 1, 2]), f32([3, 1, 2])), (s32([1, 2, 3]), f32([1, 2, 3]))),
    Example(
        "ApproxTopK",
        lambda x: ops.ApproxTopK(
            x.builder, [x, ops.Iota(x.builder, np.int32, 4)], [0.0, 0], 2, 0, lambda a, b, *_: a > b
        ),
        (f32([3, 1, 4, 2]),),
        (f32([4, 3]), s32([2, 0])),
    ),
    Example(
        "ApproxTopK, not aggregated",
        lambda x: ops.ApproxTopKFallback(x.builder, [x], [0.0], 2, 0, lambda a, b: a > b, 0.9, False),
        (f32([3, 1, 4, 2]),),
        (f32([4, 3, 2, 1]),),
    ),
    Example(
        "TopK",
        lambda x: ops.TopK(x, 2),
        (f32([[1, 3, 3], [2, 0, 1]]),),
        (f32([[3, 3], [2, 1]]), s32([[1, 2], [0, 2]])),
    ),
]

ELEMENTWISE = [
    Example("Clamp.E1", lambda x: ops.Clamp(0, x, 6), (s32([-1, 5, 9]),), s32([0, 5, 6])),
    Example("ConvertElementType.E1", lambda x: ops.ConvertElementType(x, "f32"), (s32([0, 1, 2]),), f32([0, 1, 2])),
    Example("Rem.E1", ops.Rem, (s32([17, -17, 17, -17]), s32([3, 3, -3, -3])), s32([2, -2, 2, -2])),
    Example("%", lambda x, y: x % y, (s32([17, -17, 17, -17]), s32([3, 3, -3, -3])), s32([2, 1, -1, -2])),
    Example("//", lambda x, y: x // y, (s32([17, -17, 17, -17]), s32([3, 3, -3, -3])), s32([5, -6, -6, 5])),
    Example("% of floats", lambda x: x % 3.0, (f32([5.5, -5.5]),), f32([2.5, 0.5])),
    Example("// of floats", lambda x: x // 2.0, (f32([5.5, -5.5]),), f32([2, -3])),
    Example("/ of integers", lambda x: x / 2, (s32([7, -7]),), s32([3, -3])),
    Example(">> of signed", lambda x: x >> 1, (s32([7, -7]),), s32([3, -4])),
    Example(">> of unsigned", lambda x: x >> 31, (np.array([2**32 - 1], np.uint32),), np.array([1], np.uint32)),
    Example(
        "Select.E1",
        ops.Select,
        (np.array([True, False, False, True]), s32([1, 2, 3, 4]), s32([100, 200, 300, 400])),
        s32([1, 200, 300, 4]),
    ),
    Example("Select.E2", ops.Select, (np.array(True), s32([1, 2, 3, 4]), s32([100, 200, 300, 400])), s32([1, 2, 3, 4])),
    Example(
        "Select.B3",
        lambda p, a, b: ops.Select(p, ops.Tuple(p.builder, [a, b]), ops.Tuple(p.builder, [b, a])),
        (np.array(False), s32([1, 2]), s32([3, 4])),
        (s32([3, 4]), s32([1, 2])),
    ),
    Example("Reciprocal", ops.Reciprocal, (f32([2, 4]),), f32([0.5, 0.25])),
    Example("Square", ops.Square, (f32([2, -4]),), f32([4, 16])),
    Example("Conj", ops.Conj, (np.array([1 + 2j], np.complex64),), np.array([1 - 2j], np.complex64)),
    Example(
        "the total order of floats",
        ops.LtTotalOrder,
        (f32([-0.0, 0.0, np.nan, np.inf, -np.nan]), f32([0.0, -0.0, np.nan, np.nan, -np.inf])),
        np.array([True, False, False, True, True]),
    ),
    Example(
        "comparison of floats",
        lambda x, y: (x < y) | (x != y),
        (f32([-0.0, 1.0, np.nan]), f32([0.0, 2.0, np.nan])),
        np.array([False, True, True]),
    ),
]


def _argmax(best: XlaOp, best_index: XlaOp, value: XlaOp, index: XlaOp) -> tuple[XlaOp, XlaOp]:
    later = value >= best
    return ops.Select(later, value, best), ops.Select(later, index, best_index)


REDUCTIONS = [
    Example("Reduce.E2", lambda a: ops.Reduce(a, 0, ops.Add, (0,)), (REDUCED,), f32([[4, 8, 12], [16, 20, 24]])),
    Example("Reduce.E3", lambda a: a.reduce(0, ops.Add, (2,)), (REDUCED,), f32([[6, 15]] * 4)),
    Example("Reduce.E4", lambda a: a.reduce(0, ops.Add, (0, 1)), (REDUCED,), f32([20, 28, 36])),
    Example("Reduce.E5", lambda a: ops.ReduceAll(a, 0, ops.Add), (REDUCED,), f32(84)),
    Example("Reduce.E6, over rows", lambda a: a.reduce(0, ops.Add, (0,)), (MATRIX,), f32([5, 7, 9])),
    Example("Reduce.E6, over columns", lambda a: a.reduce(0, ops.Add, (1,)), (MATRIX,), f32([6, 15])),
    Example(
        "Reduce.E7",
        lambda v: ops.Reduce(v.builder, [v, ops.Iota(v.builder, "s32", 5)], [-np.inf, 0], _argmax, (0,)),
        (f32([3, 9, 1, 9, 2]),),
        (f32(9), s32(3)),
    ),
    Example("Reduce of nothing", lambda a: a.reduce(7, ops.Add, (1,)), (np.zeros((2, 0), np.float32),), f32([7, 7])),
    Example(
        "Map.E1",
        lambda x, y, z, p: ops.Map(x.builder, [x, y, z], lambda a, b, c, s: a * b + c * s, static_operands=[p]),
        (LINE, LINE, LINE, f32(3)),
        LINE * LINE + 3 * LINE,
    ),
    Example("Map", lambda x, y: ops.Map(x.builder, [x, y], lambda a, b: a * b + 1), (LINE, LINE), LINE * LINE + 1),
]

CONTRACTIONS = [
    Example("Dot, vectors", ops.Dot, (f32([1, 2, 3]), f32([4, 5, 6])), f32(32)),
    Example("Dot, matrix and vector", ops.Dot, (MATRIX, VECTOR), f32([50, 122])),
    Example("Dot, matrices", lambda a, b: a @ b, (MATRIX, MATRIX.T.copy()), f32([[14, 32], [32, 77]])),
    Example("Dot, vector and matrix", ops.Dot, (f32([1, 1]), MATRIX), f32([5, 7, 9])),
    Example(
        "DotGeneral.E1",
        lambda a, b: ops.DotGeneral(a, b, (((1,), (1,)), ((), ()))),
        (MATRIX, f32([[1, 1, 1], [2, 2, 2]])),
        f32([[6, 12], [15, 30]]),
    ),
    Example(
        "DotGeneral.E2",
        lambda a, b: ops.DotGeneral(a, b, (((2,), (1,)), ((0,), (0,)))),
        (f32([[[1, 2], [3, 4]], [[5, 6], [7, 8]]]), f32([np.eye(2), np.eye(2)])),
        f32([[[1, 2], [3, 4]], [[5, 6], [7, 8]]]),
    ),
    Example(
        "@ of stacks",
        lambda a, b: a @ b,
        (f32([[[1, 2], [3, 4]], [[5, 6], [7, 8]]]), f32([np.eye(2), np.eye(2)])),
        f32([[[1, 2], [3, 4]], [[5, 6], [7, 8]]]),
    ),
]

POOLED = f32([10000, 1000, 100, 10, 1])
PLANE = f32([[7, 2, 5, 3, 8], [3, 8, 9, 3, 4], [1, 5, 7, 5, 6], [0, 6, 2, 10, 2]])
IMAGE = s32([[1, 2, 5, 6], [3, 4, 7, 8], [10, 11, 14, 15], [12, 13, 16, 17]]).reshape(1, 4, 4, 1)
CELLS = np.array([[[1, 2], [3, 4]], [[3, 4], [1, 2]]], np.float64)
ONES, MEANS = np.ones(2), np.array([2.0, 3.0])
SCORES = np.array([[[0, 0], [2, 2]], [[2, 2], [0, 0]]], np.float64)


WINDOWS = [
    Example("ReduceWindow.E1", lambda x: ops.ReduceWindow(x, np.inf, ops.Min, [3], [2]), (POOLED,), f32([100, 1])),
    Example(
        "ReduceWindow.E2",
        lambda x: ops.ReduceWindow(x, np.inf, ops.Min, [3], [2], ops.Padding.kSame),
        (POOLED,),
        f32([1000, 10, 1]),
    ),
    Example(
        "ReduceWindow.E3",
        lambda x: ops.ReduceWindow(x, -np.inf, ops.Max, [2, 3], [2, 3], "kValid"),
        (np.arange(24, dtype=np.float32).reshape(4, 6),),
        f32([[8, 11], [20, 23]]),
    ),
    Example(
        "ReduceWindow, SAME, of even length: one more element of padding behind",
        lambda x: ops.ReduceWindow(x, 0, ops.Add, [3], [2], "same"),
        (f32([1, 2, 3, 4, 5, 6]),),
        f32([6, 12, 11]),
    ),
    Example(
        "ReduceWindow of several",
        lambda x: ops.ReduceWindowWithGeneralPadding(
            [x, ops.Iota(x.builder, "s32", 5)], [-np.inf, -1], _argmax, [2], [2], [1], [3], [(1, 0)]
        ),
        (f32([3, 9, 1, 9, 2]),),
        (f32([1, 9]), s32([2, 1])),
    ),
    Example("ReduceWindow of a scalar", lambda x: ops.ReduceWindow(x, 1, ops.Add, []), (f32(2),), f32(3)),
    Example(
        "ReduceWindow, cumulative",
        lambda x: ops.ReduceWindow(x, 0, ops.Add, [5], [1], [(4, 0)]),
        (f32([1, 2, 3, 4, 5]),),
        f32([1, 3, 6, 10, 15]),
    ),
    Example(
        "SelectAndScatter.E1",
        lambda x, y: ops.SelectAndScatter(x, ops.Ge, [2, 3], [2, 2], "VALID", y, 0, ops.Add),
        (PLANE, f32([[2, 6], [3, 1]])),
        f32([[0, 0, 0, 0, 0], [0, 0, 8, 0, 0], [0, 0, 3, 0, 0], [0, 0, 0, 1, 0]]),
    ),
    Example(
        "SelectAndScatter.E2",
        lambda x, y: ops.SelectAndScatterWithGeneralPadding(x, ops.Ge, [3, 1], [2, 1], [(0, 1), (0, 0)], y, 0, ops.Add),
        (s32([[1, 5], [2, 5], [3, 6], [4, 4]]), s32([[5, 6], [7, 8]])),
        s32([[0, 0], [0, 0], [5, 14], [7, 0]]),
    ),
    Example(
        "ConvWithGeneralPadding.E1",
        lambda x, k: ops.ConvGeneralDilated(x, k, [4, 4], [(0, 0), (0, 0)], [2, 2], [1, 1], ("NHWC", "HWIO", "NHWC")),
        (IMAGE, np.ones((3, 3, 1, 1), np.int32)),
        s32([[10, 26], [46, 62]]).reshape(1, 2, 2, 1),
    ),
    Example(
        "Conv, SAME",
        lambda x, k: ops.Conv(x, k, [1], "SAME"),
        (f32([[[1, 2, 3, 4]]]), f32([[[1, 10, 100]]])),
        f32([[[210, 321, 432, 43]]]),
    ),
    Example(
        "Conv, VALID, with dilations",
        lambda x, k: ops.Conv(x, k, [1], "VALID", [2], [2]),
        (f32([[[1, 2, 3, 4]]]), f32([[[1, 10]]])),
        f32([[[21, 0, 32, 0, 43]]]),
    ),
    Example(
        "ConvWithGeneralPadding, negative",
        lambda x, k: ops.ConvWithGeneralPadding(x, k, [1], [(-1, 1)]),
        (f32([[[1, 2, 3, 4]]]), f32([[[1, 10]]])),
        f32([[[32, 43, 4]]]),
    ),
    Example(
        "ConvGeneral, in two groups",
        lambda x, k: ops.ConvGeneral(x, k, [1], "VALID", ("NWC", "WIO", "NWC"), feature_group_count=2),
        (f32([[[1, 2], [3, 4]]]), f32([[[10, 100]]])),
        f32([[[10, 200], [30, 400]]]),
    ),
    Example(
        "ConvGeneralDilated, reversed",
        lambda x, k: ops.ConvGeneralDilated(x, k, [1], [(0, 0)], window_reversal=[True]),
        (f32([[[1, 2, 3, 4]]]), f32([[[1, 10]]])),
        f32([[[12, 23, 34]]]),
    ),
    Example(
        "BatchNormGrad.E1",
        lambda x, g, m, v, dy: ops.BatchNormGrad(x, g, m, v, dy, 0.0, 2),
        (CELLS, ONES, MEANS, ONES, np.full((2, 2, 2), 0.1)),
        (np.zeros((2, 2, 2)), np.zeros(2), np.full(2, 0.4)),
    ),
    Example(
        "BatchNormInference.E1",
        lambda x, g, b, m, v: ops.BatchNormInference(x, g, b, m, v, 0.0, 2),
        (CELLS, ONES, ONES, MEANS, ONES),
        SCORES,
    ),
    Example(
        "BatchNormTraining.E1",
        lambda x, g, b: ops.BatchNormTraining(x, g, b, 0.0, 2),
        (CELLS, ONES, ONES),
        (SCORES, MEANS, ONES),
    ),
]

STRUCTURE = [
    Example(
        "GetTupleElement.E1",
        lambda v: ops.GetTupleElement(ops.Tuple(v.builder, [v, 5]), 1),
        (np.arange(10, dtype=np.float32),),
        s32(5),
    ),
    Example("Tuple.E1", lambda v: ops.Tuple(v.builder, [v, 5]), (LINE,), (LINE, s32(5))),
    Example("Iota.E1", lambda b: ops.Iota(b, Shape.array("s32", (4, 8)), 0), (), s32([[i] * 8 for i in range(4)])),
    Example("Iota.E2", lambda b: ops.Iota(b, Shape.array("s32", (4, 8)), 1), (), s32([list(range(8))] * 4)),
    Example("Iota, 1-d", lambda b: ops.Iota(b, np.int32, 5), (), s32([0, 1, 2, 3, 4])),
    Example("a splat constant", lambda b: b.constant(np.full((2, 2), 3, np.int32)), (), s32([[3, 3], [3, 3]])),
    Example(
        "SetDimensionSize.E1",
        lambda v: ops.ReduceAll(ops.SetDimensionSize(v, 5, 0), 0, ops.Add),
        (TEN,),
        f32(15),
    ),
    Example(
        "SetDimensionSize.E2",
        lambda v: ops.ReduceAll(ops.SetDimensionSize(v, 5, 0), 1, ops.Mul),
        (TEN,),
        f32(120),
    ),
    Example(
        "SetDimensionSize.E3",
        lambda v, n: ops.ReduceAll(ops.SetDimensionSize(v, n, 0), 0, ops.Add),
        (TEN, s32(6)),
        f32(21),
    ),
    Example(
        "RemoveDynamicDimension",
        lambda v: ops.RemoveDynamicDimension(ops.SetDimensionSize(v, 5, 0), 0),
        (TEN,),
        f32([1, 2, 3, 4, 5, 0, 0, 0, 0, 0]),
    ),
    Example("RemoveDynamicDimension of a static one", lambda v: ops.RemoveDynamicDimension(v, 0), (TEN,), TEN),
    Example(
        "DynamicReshape",
        lambda v: ops.RemoveDynamicDimension(ops.DynamicReshape(v, [3, 2], [5, 2], [True, False]), 0),
        (TEN,),
        f32([[1, 2], [3, 4], [5, 6], [0, 0], [0, 0]]),
    ),
    Example(
        "DynamicReshape of a dynamic array",
        lambda m: ops.GetDimensionSize(ops.DynamicReshape(ops.SetDimensionSize(m, 1, 0), [3], [6], [True]), 0),
        (MATRIX,),
        s32(3),
    ),
    Example("GetDimensionSize", lambda v: ops.GetDimensionSize(v, 0), (TEN,), s32(10)),
    Example("x[...]", lambda x: x[1, ::-1], (TABLE,), f32([5, 4, 3])),
    Example("x[...], with a step", lambda x: x[None, ::2, -1], (TABLE,), f32([[2, 8]])),
]

CONTROL_FLOW = [
    Example(
        "While.E1",
        lambda c: ops.While(
            lambda i, total, step: i < 1000,
            lambda i, total, step: (i + 1, total + step, step),
            (0, np.zeros(10, np.float32), c),
        ),
        (np.arange(10, dtype=np.float32),),
        (s32(1000), np.arange(10, dtype=np.float32) * 1000, np.arange(10, dtype=np.float32)),
    ),
    Example(
        "While that does not run",
        lambda x: ops.While(lambda x: x < 0, lambda x: x + 1, x),
        (s32(3),),
        s32(3),
    ),
    Example(
        "While in a While",
        lambda n: ops.While(
            lambda i, total: i < 3,
            lambda i, total: (i + 1, ops.While(lambda j, t: j < 4, lambda j, t: (j + 1, t + 1), (0, total))[1]),
            (0, n),
        )[1],
        (s32(0),),
        s32(12),
    ),
    Example(
        "Conditional, true",
        lambda p, x: ops.Conditional(p, x, lambda v: v + 1, x, lambda v: v * 2),
        (np.array(True), f32(5)),
        f32(6),
    ),
    Example(
        "Conditional, false, with operands of two types",
        lambda p, x, y: ops.Conditional(p, x, lambda v: v + 1, y, lambda v: ops.ConvertElementType(v, np.float32)),
        (np.array(False), f32(5), s32(7)),
        f32(7),
    ),
    *[
        Example(
            f"Conditional, branch {index}",
            lambda i, x: ops.Conditional(i, [lambda v: v, lambda v: v * 2, lambda v: v * 3], [x, x, x]),
            (s32(index), f32(1)),
            f32(result),
        )
        for index, result in [(0, 1), (1, 2), (2, 3), (3, 3), (-1, 3)]
    ],
    Example("Call", lambda x, y: ops.Call(x.builder, lambda a, b: a - b, [x, y]), (f32(5), f32(3)), f32(2)),
    Example("Call without arguments", lambda b: ops.Call(b, lambda: np.float32(4)), (), f32(4)),
    Example("OptimizationBarrier", ops.OptimizationBarrier, (LINE,), LINE),
]

POSITIVE = f32([[1, 2, 3], [2, 20, 26], [3, 26, 70]])
FACTOR = f32([[1, 0, 0], [2, 4, 0], [3, 5, 6]])
IMPULSE = np.array([1, 0, 0, 0], np.complex64)

LINALG = [
    Example("Cholesky.E1", ops.Cholesky, (POSITIVE,), FACTOR),
    Example("Cholesky, upper", lambda a: ops.Cholesky(a, lower=False), (POSITIVE,), FACTOR.T.copy()),
    Example("Cholesky, large", ops.Cholesky, (np.eye(70, dtype=np.float32) * 4,), np.eye(70, dtype=np.float32) * 2),
    Example("Eigh", ops.Eigh, (f32([[3, 0], [0, 1]]),), (f32([[0, 1], [1, 0]]), f32([1, 3]))),
    Example("QrDecomposition", ops.QrDecomposition, (f32([[3], [4]]),), (f32([[-5], [0.5]]), f32([1.6]))),
    Example(
        "ProductOfElementaryHouseholderReflectors",
        ops.ProductOfElementaryHouseholderReflectors,
        (f32([[-5], [0.5]]), f32([1.6])),
        f32([[-0.6], [-0.8]]),
    ),
    Example("SVD", ops.SVD, (f32([[0, 2], [0, 0]]),), (f32([[1, 0], [0, 1]]), f32([2, 0]), f32([[0, 1], [1, 0]]))),
    Example(
        "LU",
        ops.LU,
        (f32([[1, 2], [4, 4]]),),
        (f32([[4, 4], [0.25, 1]]), s32([1, 1]), s32([1, 0])),
    ),
    Example(
        "LU, one in each lane",
        ops.LU,
        (np.broadcast_to(f32([[1, 2], [4, 4]]), (40, 2, 2)),),
        tuple(
            np.broadcast_to(part, (40, *part.shape)) for part in (f32([[4, 4], [0.25, 1]]), s32([1, 1]), s32([1, 0]))
        ),
    ),
    Example(
        "TriangularSolve.E1",
        lambda a, b: ops.TriangularSolve(a, b, True, True, False, "NO_TRANSPOSE"),
        (FACTOR, f32([[2, 0, 0], [4, 8, 0], [6, 10, 12]])),
        f32([[2, 0, 0], [0, 2, 0], [0, 0, 2]]),
    ),
    Example("Fft.E1", lambda x: ops.Fft(x, "FFT", (4,)), (IMPULSE,), np.ones(4, np.complex64)),
    Example(
        "Fft, real", lambda x: ops.Fft(x, "RFFT", (2, 2)), (f32([[1, 2], [3, 4]]),), np.array([[10, -2], [-4, 0]], "c8")
    ),
]

EXAMPLES = [
    *BROADCASTING,
    *SHAPES,
    *INDEXING,
    *GATHER_AND_SCATTER,
    *ORDERING,
    *ELEMENTWISE,
    *REDUCTIONS,
    *CONTRACTIONS,
    *LINALG,
    *WINDOWS,
    *STRUCTURE,
    *CONTROL_FLOW,
]
