"""Every numbered constraint of the specification is broken by a call, at which the error names it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from xlapy import ops
from xlapy.builder import XlaBuilder, XlaComputation, XlaOp
from xlapy.hlo.attributes import GatherDimensionNumbers, ScatterDimensionNumbers
from xlapy.hlo.ops import OPS
from xlapy.hlo.shape import TOKEN, Shape
from xlapy_runtime.errors import ArgumentError, ShapeError


class Bench:
    """A builder with operands at hand."""

    def __init__(self) -> None:
        self.builder = XlaBuilder("bench")
        self._count = 0

    def of(self, shape: Shape) -> XlaOp:
        self._count += 1
        return self.builder.parameter(self._count - 1, shape)

    def f32(self, *dims: int) -> XlaOp:
        return self.of(Shape.array(np.float32, dims))

    def s32(self, *dims: int) -> XlaOp:
        return self.of(Shape.array(np.int32, dims))

    def pred(self, *dims: int) -> XlaOp:
        return self.of(Shape.array(np.bool_, dims))

    def c64(self, *dims: int) -> XlaOp:
        return self.of(Shape.array(np.complex64, dims))

    def tuple(self, *elements: XlaOp) -> XlaOp:
        return ops.Tuple(self.builder, elements)

    @property
    def token(self) -> XlaOp:
        return ops.CreateToken(self.builder)


def computation(function: Callable[..., Any], *parameters: Shape) -> XlaComputation:
    builder = XlaBuilder("computation")
    return builder.build(function(*[builder.parameter(number, shape) for number, shape in enumerate(parameters)]))


def aliased(b: Bench, aliases: list[Any], shape: Shape | None = None) -> XlaOp:
    """A custom call of a scalar f32, with aliases."""
    result = SCALAR if shape is None else shape
    return ops.CustomCallWithAliasing(
        b.builder, "f", [b.f32()], result, [SCALAR], output_operand_aliasing=aliases
    )  # fmt: skip


def gather(b: Bench, operand: XlaOp | None = None, sizes: tuple[int, ...] = (1, 3), **numbers: Any) -> XlaOp:
    """A gather of rows of f32[4,3] by s32[5,1], in which a case changes what it is about."""
    indices = numbers.pop("indices", None)
    fields = {
        "offset_dims": (1,), "collapsed_slice_dims": (0,), "start_index_map": (0,), "index_vector_dim": 1, **numbers
    }  # fmt: skip
    given = GatherDimensionNumbers(**fields)
    starts = b.s32(5, 1) if indices is None else indices
    return ops.Gather(b.f32(4, 3) if operand is None else operand, starts, given, sizes)


def scatter(b: Bench, updates: XlaOp | None = None, **numbers: Any) -> XlaOp:
    """A scatter of rows f32[5,3] into f32[4,3] by s32[5,1], in which a case changes what it is about."""
    indices = numbers.pop("indices", None)
    fields = {
        "update_window_dims": (1,), "inserted_window_dims": (0,), "scatter_dims_to_operand_dims": (0,),
        "index_vector_dim": 1, **numbers,
    }  # fmt: skip
    given = ScatterDimensionNumbers(**fields)
    starts = b.s32(5, 1) if indices is None else indices
    return ops.Scatter(b.f32(4, 3), starts, b.f32(5, 3) if updates is None else updates, ops.Add, given)


SCALAR = Shape.scalar(np.float32)
FROM_HOST = ops.ChannelHandle(1, ops.ChannelType.HOST_TO_DEVICE)
BETWEEN_DEVICES = ops.ChannelHandle(1, ops.ChannelType.DEVICE_TO_DEVICE)
INDEX = Shape.scalar(np.int32)


def convolution(b: Bench, kernel: tuple[int, ...] = (4, 6, 3, 3), **options: Any) -> XlaOp:
    return ops.ConvWithGeneralPadding(
        b.f32(2, 6, 8, 8), b.f32(*kernel), **{"window_strides": [1, 1], "padding": [(0, 0), (0, 0)], **options}
    )


def select_and_scatter(
    b: Bench,
    source: XlaOp,
    window: Any = (2,),
    strides: Any = (2,),
    init: Any = 0.0,
    select: Any = ops.Ge,
    scatter: Any = ops.Add,
) -> XlaOp:
    return ops.SelectAndScatter(b.f32(4), select, window, strides, "VALID", source, init, scatter)


def batch_norm(function: Any, vectors: int, has_gradient: bool = False) -> Callable[..., XlaOp]:
    def call(b: Bench, features: int = 4, feature_index: int = 1, gradient: tuple[int, ...] = (3, 4)) -> XlaOp:
        others = [b.f32(features) for _ in range(vectors)] + ([b.f32(*gradient)] if has_gradient else [])
        result: XlaOp = function(b.f32(3, 4), *others, 1e-3, feature_index)
        return result

    return call


BATCH_NORMS = {
    "BatchNormTraining": batch_norm(ops.BatchNormTraining, 2),
    "BatchNormInference": batch_norm(ops.BatchNormInference, 4),
    "BatchNormGrad": batch_norm(ops.BatchNormGrad, 3, has_gradient=True),
}


Broken = tuple[str, Callable[[Bench], Any]]

reflections = ops.ProductOfElementaryHouseholderReflectors

BROKEN: list[Broken] = [
    ("AfterAll.B1", lambda b: ops.AfterAll(b.builder, [b.token, b.f32()])),
    ("AfterAll.some-tokens", lambda b: ops.AfterAll(b.builder, [])),
    ("AllGather.B1", lambda b: ops.AllGather(b.f32(2), 1, 2)),
    ("AllGather.B2", lambda b: ops.AllGather(b.f32(2), 0, 2, [[0, 1], [1, 2]])),
    ("AllGather.B3", lambda b: ops.AllGather(b.f32(2), 0, 2, [[0, 1, 2]])),
    ("AllGather.B3", lambda b: ops.AllGather(b.f32(2), 0, 2, [[0, 1], [2]])),
    ("AllGather.B3", lambda b: ops.AllGather(b.f32(2), 0, 0)),
    ("AllReduce.B1", lambda b: ops.AllReduce(b.f32(2), ops.Add, [[0, 1], [1, 2]])),
    ("AllReduce.B3", lambda b: ops.AllReduce(b.tuple(), ops.Add)),
    ("AllReduce.B3", lambda b: ops.AllReduceStart(b.tuple(), ops.Add)),
    ("AllToAll.B1", lambda b: ops.AllToAll(b.f32(3), 0, 0, 2)),
    ("AllToAll.B1", lambda b: ops.AllToAllStart(b.f32(3), 0, [[0, 1]])),
    ("AllToAll.B2", lambda b: ops.AllToAll(b.tuple(b.f32(2)), 0, 0, 2)),
    ("AllToAll.B2", lambda b: ops.AllToAllTuple([b.tuple(b.f32(2))])),
    ("AllToAll.B3", lambda b: ops.AllToAll(b.f32(6), 0, 0, 2, [[0, 1, 2]])),
    *[
        (f"{title}.{label}", lambda b, call=call, change=change: call(b, **change))
        for title, call in BATCH_NORMS.items()
        for label, change in [
            ("B1", {"feature_index": 2}),
            ("B1", {"feature_index": -1}),
            ("B2", {"features": 5}),
            *([("B3", {"gradient": (3, 5)})] if title == "BatchNormGrad" else []),
        ]
    ],
    ("BitcastConvertType.B1", lambda b: ops.BitcastConvertType(b.of(Shape.array("f16", (10, 3))), np.float32)),
    ("BitcastConvertType.B1", lambda b: ops.BitcastConvertType(b.of(Shape.array("f16")), np.float32)),
    ("BitcastConvertType.B2", lambda b: ops.BitcastConvertType(b.tuple(b.f32()), np.int32)),
    ("Broadcast.B1", lambda b: ops.Broadcast(b.f32(2), (3, -1))),
    ("BroadcastInDim.B1", lambda b: ops.BroadcastInDim(b.f32(2), (3, 4), (1,))),
    ("BroadcastInDim.B1", lambda b: ops.BroadcastInDim(b.f32(), (-1,), ())),
    ("BroadcastInDim.B1", lambda b: ops.BroadcastInDim(b.f32(1), (-1,), (0,))),
    ("BroadcastInDim.B2", lambda b: ops.BroadcastInDim(b.f32(2), (2, 3), ())),
    ("BroadcastInDim.B2", lambda b: ops.BroadcastInDim(b.f32(2), (2, 3), (2,))),
    ("BroadcastInDim.B2", lambda b: ops.BroadcastInDim(b.f32(2, 2), (2, 2), (1, 0))),
    ("BroadcastInDim.B2", lambda b: ops.BroadcastInDim(b.f32(2, 2), (2, 2), (1, 1))),
    ("Call.B1", lambda b: ops.Call(b.builder, computation(ops.Neg, SCALAR), [])),
    ("Call.B1", lambda b: ops.Call(b.builder, computation(ops.Neg, SCALAR), [b.s32()])),
    ("Cholesky.B1", lambda b: ops.Cholesky(b.f32(2, 3))),
    ("Cholesky.B2", lambda b: ops.Cholesky(b.f32(3))),
    ("Cholesky.B3", lambda b: ops.Cholesky(b.s32(3, 3))),
    ("Clamp.B1", lambda b: ops.Clamp(b.s32(), b.f32(2), 1.0)),
    ("Clamp.B2", lambda b: ops.Clamp(b.f32(1), b.f32(2), 1.0)),
    ("Collapse.B1", lambda b: ops.Collapse(b.f32(2, 3, 4), (1, 0))),
    ("Collapse.B1", lambda b: ops.Collapse(b.f32(2, 3, 4), (0, 2))),
    ("Collapse.B2", lambda b: ops.Collapse(b.f32(2, 3), (1, 2))),
    ("CollectivePermute.B1", lambda b: ops.CollectivePermute(b.f32(2), [(0, 1), (0, 2)])),
    ("CollectivePermute.B1", lambda b: ops.CollectivePermute(b.f32(2), [(0, 1), (2, 1)])),
    ("Compare.B1", lambda b: ops.Eq(b.f32(2), b.s32(2))),
    ("Compare.B1", lambda b: ops.LtTotalOrder(b.f32(2), b.s32(2))),
    ("Concatenate.B1", lambda b: ops.ConcatInDim(b.builder, [], 0)),
    ("Concatenate.B1", lambda b: ops.Concat([], 0)),
    ("Concatenate.B2", lambda b: ops.ConcatInDim(b.builder, [b.f32(2), b.s32(2)], 0)),
    ("Concatenate.B2", lambda b: ops.ConcatInDim(b.builder, [b.f32(2), b.f32(2, 2)], 0)),
    ("Concatenate.B3", lambda b: ops.ConcatInDim(b.builder, [b.f32(2, 3), b.f32(2, 4)], 0)),
    ("Concatenate.B4", lambda b: ops.ConcatInDim(b.builder, [b.f32(), b.f32()], 0)),
    ("Conditional.B1", lambda b: ops.Conditional(b.s32(), [computation(ops.Neg, SCALAR)], [b.f32(), b.f32()])),
    ("Conditional.B1", lambda b: ops.Conditional(b.s32(), [computation(ops.Neg, SCALAR)], [b.s32()])),
    ("Conditional.B1", lambda b: ops.Conditional(b.s32(), [computation(ops.Add, SCALAR, SCALAR)], [b.f32()])),
    ("Conditional.B2", lambda b: ops.Conditional(b.s32(), [lambda x: x, lambda x: x > 0], [b.f32(), b.f32()])),
    ("Conditional.B3", lambda b: ops.Conditional(b.f32(), [ops.Neg], [b.f32()])),
    ("Conditional.B3", lambda b: ops.Conditional(b.pred(1), b.f32(), ops.Neg, b.f32(), ops.Abs)),
    ("Conditional.B4", lambda b: ops.Conditional(b.s32(), [], [])),
    ("ConvWithGeneralPadding.B1", lambda b: convolution(b, kernel=(4, 3, 3))),
    ("ConvWithGeneralPadding.B1", lambda b: ops.Conv(b.f32(2), b.f32(2), [])),
    ("ConvWithGeneralPadding.B1", lambda b: ops.Conv(b.f32(1, 1), b.s32(1, 1), [])),
    ("ConvWithGeneralPadding.B1", lambda b: ops.Conv(b.f32(1, 1), b.s32(1, 1), [], preferred_element_type="f32")),
    ("ConvWithGeneralPadding.B2", lambda b: convolution(b, window_strides=[1])),
    ("ConvWithGeneralPadding.B2", lambda b: convolution(b, window_strides=[0, 1])),
    ("ConvWithGeneralPadding.B2", lambda b: convolution(b, padding=[(0, 0)])),
    ("ConvWithGeneralPadding.B2", lambda b: convolution(b, padding=[(0,), (0,)])),
    ("ConvWithGeneralPadding.B2", lambda b: convolution(b, lhs_dilation=[1, 0])),
    ("ConvWithGeneralPadding.B2", lambda b: convolution(b, rhs_dilation=[1, -1])),
    ("ConvWithGeneralPadding.B2", lambda b: convolution(b, rhs_dilation=[1, 1, 1])),
    ("ConvWithGeneralPadding.B3", lambda b: convolution(b, kernel=(4, 5, 3, 3))),
    ("ConvWithGeneralPadding.B4", lambda b: convolution(b, feature_group_count=4)),
    ("ConvWithGeneralPadding.B4", lambda b: convolution(b, kernel=(4, 2, 3, 3), feature_group_count=3)),
    ("ConvWithGeneralPadding.B4", lambda b: convolution(b, feature_group_count=0)),
    ("ConvWithGeneralPadding.B5", lambda b: convolution(b, batch_group_count=4)),
    ("ConvWithGeneralPadding.B5", lambda b: convolution(b, kernel=(3, 6, 3, 3), batch_group_count=2)),
    ("ConvWithGeneralPadding.B5", lambda b: convolution(b, batch_group_count=-1)),
    ("ConvWithGeneralPadding.B6", lambda b: convolution(b, feature_group_count=2, batch_group_count=2)),
    ("ConvertElementType.B2", lambda b: ops.ConvertElementType(b.tuple(b.f32()), np.int32)),
    ("CrossReplicaSum.B2", lambda b: ops.CrossReplicaSum(b.f32(2), [0, 1, 2, 0])),
    ("Dot.B1", lambda b: ops.Dot(b.f32(2, 3), b.f32(2, 3))),
    ("Dot.B2", lambda b: ops.Dot(b.f32(3), b.s32(3))),
    ("Dot.B2", lambda b: ops.Dot(b.f32(2, 2, 2), b.f32(2, 2))),
    ("Dot.B2", lambda b: b.f32() @ b.f32(2)),
    ("DotGeneral.B1", lambda b: ops.DotGeneral(b.f32(2, 3), b.f32(4, 2), (((1,), (0,)), ((), ())))),
    ("DotGeneral.B1", lambda b: ops.DotGeneral(b.f32(2, 3), b.f32(3, 2), (((1,), ()), ((), ())))),
    ("DotGeneral.B2", lambda b: ops.DotGeneral(b.f32(2, 3), b.f32(4, 3), (((1,), (1,)), ((0,), (0,))))),
    ("DotGeneral.B2", lambda b: ops.DotGeneral(b.f32(2, 3), b.f32(2, 3), (((1,), (1,)), ((0,), ())))),
    ("DotGeneral.B3", lambda b: ops.DotGeneral(b.f32(2, 2), b.f32(2, 2), (((0,), (0,)), ((0,), (0,))))),
    ("DotGeneral.B3", lambda b: ops.DotGeneral(b.f32(2), b.f32(2), (((1,), (0,)), ((), ())))),
    ("dot.complex-result", lambda b: ops.Dot(b.c64(2), b.c64(2), preferred_element_type="f32")),
    ("convolution.complex-result", lambda b: ops.Conv(b.c64(1, 1), b.c64(1, 1), [], preferred_element_type="s32")),
    ("DynamicSlice.B1", lambda b: ops.DynamicSlice(b.f32(3, 4), [b.s32()], (1, 1))),
    ("DynamicSlice.B1", lambda b: ops.DynamicSlice(b.f32(3, 4), b.s32(3), (1, 1))),
    ("DynamicSlice.B1", lambda b: ops.DynamicSlice(b.f32(3, 4), b.s32(2), (1,))),
    ("DynamicSlice.B2", lambda b: ops.DynamicSlice(b.f32(3), [0], (4,))),
    ("DynamicSlice.B2", lambda b: ops.DynamicSlice(b.f32(3), [0], (-1,))),
    ("DynamicSlice.B3", lambda b: ops.DynamicSlice(b.f32(3), [b.f32()], (1,))),
    ("DynamicSlice.B3", lambda b: ops.DynamicSlice(b.f32(3, 3), [b.s32(), np.int64(0)], (1, 1))),
    ("DynamicUpdateSlice.B1", lambda b: ops.DynamicUpdateSlice(b.f32(3), b.s32(3), [0])),
    ("DynamicUpdateSlice.B1", lambda b: ops.DynamicUpdateSlice(b.f32(3), b.f32(1, 1), [0])),
    ("DynamicUpdateSlice.B2", lambda b: ops.DynamicUpdateSlice(b.f32(3), b.f32(4), [0])),
    ("Fft.B1", lambda b: ops.Fft(b.of(Shape.array("c64", (2, 2, 2, 2))), "FFT", (2, 2, 2, 2))),
    ("Fft.B1", lambda b: ops.Fft(b.of(Shape.array("c64", (2,))), "FFT", (2, 2))),
    ("Fft.B1", lambda b: ops.Fft(b.of(Shape.array("c64", (2,))), "FFT", ())),
    ("Fft.B2", lambda b: ops.Fft(b.f32(2), "FFT", (2,))),
    ("Fft.B2", lambda b: ops.Fft(b.of(Shape.array("f16", (2,))), "RFFT", (2,))),
    ("Fft.B2", lambda b: ops.Fft(b.of(Shape.array("c64", (2,))), "RFFT", (2,))),
    ("fft.real-lengths", lambda b: ops.Fft(b.f32(4), "RFFT", (3,))),
    ("fft.real-lengths", lambda b: ops.Fft(b.of(Shape.array("c64", (3, 3))), "IRFFT", (4, 4))),
    ("fft.complex-lengths", lambda b: ops.Fft(b.of(Shape.array("c64", (4,))), "IFFT", (3,))),
    ("fft.half-size", lambda b: ops.Fft(b.of(Shape.array("c64", (4,))), "IRFFT", (4,))),
    ("Gather.B1", lambda b: gather(b, offset_dims=(1, 2))),
    ("Gather.B1", lambda b: gather(b, collapsed_slice_dims=(0, 1))),
    ("Gather.B2", lambda b: gather(b, sizes=(1,))),
    ("Gather.B3", lambda b: gather(b, index_vector_dim=3)),
    ("Gather.B3", lambda b: gather(b, index_vector_dim=-1)),
    ("Gather.B4", lambda b: gather(b, sizes=(2, 3))),
    ("gather.one-dim-per-index", lambda b: gather(b, indices=b.s32(5, 2))),
    ("gather.index-type", lambda b: gather(b, indices=b.f32(5, 1))),
    ("gather.slice-sizes", lambda b: gather(b, sizes=(1, 4))),
    ("GetDimensionSize.B1", lambda b: ops.GetDimensionSize(b.tuple(), 0)),
    ("GetDimensionSize.B2", lambda b: ops.GetDimensionSize(b.f32(2), 1)),
    ("GetTupleElement.B1", lambda b: ops.GetTupleElement(b.tuple(b.f32()), 1)),
    ("Infeed.B1", lambda b: ops.Infeed(b.builder, Shape.tuple([Shape.tuple([SCALAR])]))),
    ("Iota.B1", lambda b: ops.Iota(b.builder, Shape.array(np.int32, (2,)), 1)),
    ("Map.B1", lambda b: ops.Map(b.builder, [b.f32(2), b.f32(3)], ops.Add)),
    ("Map.B2", lambda b: ops.Map(b.builder, [b.f32(2)], computation(ops.Neg, Shape.array(np.float32, (2,))))),
    ("Map.B2", lambda b: ops.Map(b.builder, [b.f32(2)], computation(lambda x: x.broadcast((2,)), SCALAR))),
    ("Map.B3", lambda b: ops.Map(b.builder, [b.f32(2, 3)], ops.Neg, [1, 0])),
    ("Pad.B1", lambda b: ops.Pad(b.f32(2, 3), 0.0, [(1, 1, 0)])),
    ("Pad.B1", lambda b: ops.Pad(b.f32(2), 0.0, [(1,)])),
    ("Pad.B2", lambda b: ops.Pad(b.f32(2), 0.0, [(1, 1, -1)])),
    ("Pad.B3", lambda b: ops.Pad(b.f32(2), b.s32(), [(1, 1, 0)])),
    ("Pad.B4", lambda b: ops.Pad(b.f32(2), 0.0, [(-2, -1, 0)])),
    ("Recv.B1", lambda b: ops.GetTupleElement(ops.Recv(b.builder, SCALAR, 1), 0)),
    ("Recv.B1", lambda b: ops.SendDone(ops.Recv(b.builder, SCALAR, 1))),
    ("Recv.B1", lambda b: b.builder.build(ops.Recv(b.builder, SCALAR, 1))),
    ("Reduce.B1", lambda b: ops.Reduce(b.builder, [], [], ops.Add, [0])),
    ("Reduce.B2", lambda b: ops.Reduce(b.builder, [b.f32(2), b.f32(3)], [0, 0], lambda a, c, x, y: (a, c), [0])),
    ("Reduce.B3", lambda b: ops.Reduce(b.builder, [b.f32(2)], [b.s32()], ops.Add, [0])),
    ("Reduce.B3", lambda b: ops.Reduce(b.builder, [b.f32(2)], [b.f32(1)], ops.Add, [0])),
    ("Reduce.B3", lambda b: ops.Reduce(b.builder, [b.f32(2)], [0.0, 0.0], ops.Add, [0])),
    ("Reduce.B4", lambda b: ops.Reduce(b.builder, [b.f32(2)], [0.0], ops.Add, [1])),
    ("Reduce.B4", lambda b: ops.Reduce(b.builder, [b.f32(2, 2)], [0.0], ops.Add, [0, 0])),
    ("reduce.computation-type", lambda b: b.f32(2).reduce(0.0, lambda x, y: x < y, [0])),
    ("ReducePrecision.B1", lambda b: ops.ReducePrecision(b.s32(2), exponent_bits=5, mantissa_bits=10)),
    ("ReducePrecision.B2", lambda b: ops.ReducePrecision(b.f32(2), exponent_bits=0, mantissa_bits=10)),
    ("ReducePrecision.B3", lambda b: ops.ReducePrecision(b.f32(2), exponent_bits=5, mantissa_bits=-1)),
    ("ReduceWindow.B1", lambda b: ops.ReduceWindow([], [], ops.Add, [])),
    ("ReduceWindow.B1", lambda b: ops.ReduceWindow([b.f32(2)], [0.0, 0.0], ops.Add, [1])),
    ("ReduceWindow.B1", lambda b: ops.ReduceWindow([b.f32(2), b.f32(3)], [0.0] * 2, lambda a, c, x, y: (a, c), [1])),
    ("ReduceWindow.B2", lambda b: ops.ReduceWindow(b.f32(4, 4), 0.0, ops.Add, [2])),
    ("ReduceWindow.B2", lambda b: ops.ReduceWindow(b.f32(4), 0.0, ops.Add, [0])),
    ("ReduceWindow.B2", lambda b: ops.ReduceWindow(b.f32(4), 0.0, ops.Add, [2], [0])),
    ("ReduceWindow.B2", lambda b: ops.ReduceWindow(b.f32(4), 0.0, ops.Add, [2], [1], "SAME", [0])),
    ("ReduceWindow.B2", lambda b: ops.ReduceWindow(b.f32(4), 0.0, ops.Add, [2], [1], "SAME", [1], [0])),
    ("ReduceWindow.B2", lambda b: ops.ReduceWindow(b.f32(4), 0.0, ops.Add, [2], [1], [(0, 0), (0, 0)])),
    ("reduce-window.init-types", lambda b: ops.ReduceWindow(b.f32(4), b.s32(), ops.Add, [2])),
    ("reduce-window.computation-type", lambda b: ops.ReduceWindow(b.f32(4), 0.0, ops.Lt, [2])),
    ("Reshape.B1", lambda b: ops.Reshape(b.f32(2, 3), (0, 0), (6,))),
    ("Reshape.B1", lambda b: ops.Reshape(b.f32(2, 3), (0,), (6,))),
    ("Reshape.B2", lambda b: ops.Reshape(b.f32(2, 3), (5,))),
    ("Reshape.B2", lambda b: ops.Reshape(b.f32(2, 3), (-1, 3))),
    ("Reshape.B2", lambda b: ops.Reshape(b.f32(2, 3), (0, 1), (-1,))),
    ("Rev.B1", lambda b: ops.Rev(b.f32(2, 3), (2,))),
    ("Rev.B1", lambda b: ops.Rev(b.f32(2, 3), (0, 0))),
    ("Scatter.B1", lambda b: ops.Scatter([], b.s32(5, 1), [], ops.Add, None)),
    ("Scatter.B1", lambda b: ops.Scatter([b.f32(4, 3)], b.s32(5, 1), [], ops.Add, None)),
    ("Scatter.B2", lambda b: scatter(b, b.f32(5, 3, 1))),
    ("Scatter.B3", lambda b: scatter(b, b.f32(5, 4))),
    ("Scatter.B4", lambda b: scatter(b, b.f32(6, 3))),
    ("Scatter.B5", lambda b: scatter(b, b.f32(5, 3), update_window_dims=(2,))),
    (
        "Scatter.B5",
        lambda b: scatter(
            b, b.f32(3, 3), indices=b.s32(1), update_window_dims=(1, 0), inserted_window_dims=(), index_vector_dim=0
        ),
    ),
    ("Scatter.B6", lambda b: scatter(b, inserted_window_dims=(2,))),
    ("Scatter.B6", lambda b: scatter(b, inserted_window_dims=(1, 0))),
    ("Scatter.B7", lambda b: scatter(b, inserted_window_dims=())),
    ("Scatter.B8", lambda b: scatter(b, scatter_dims_to_operand_dims=(0, 1))),
    ("Scatter.B8", lambda b: scatter(b, scatter_dims_to_operand_dims=(2,))),
    ("Scatter.B9", lambda b: scatter(b, index_vector_dim=3)),
    ("scatter.scatter-dims-unique", lambda b: scatter(b, indices=b.s32(5, 2), scatter_dims_to_operand_dims=(0, 0))),
    ("scatter.same-types", lambda b: scatter(b, b.s32(5, 3))),
    ("Select.B1", lambda b: ops.Select(b.pred(2), b.f32(2), b.s32(2))),
    ("Select.B1", lambda b: ops.Select(b.pred(), b.f32(2), b.f32(3))),
    ("Select.B2", lambda b: ops.Select(b.f32(2), b.f32(2), b.f32(2))),
    ("Select.B2", lambda b: ops.Select(b.pred(3), b.f32(2), b.f32(2))),
    ("Select.B3", lambda b: ops.Select(b.pred(2), b.tuple(b.f32(2)), b.tuple(b.f32(2)))),
    ("Select.B3", lambda b: ops.Select(b.s32(), b.tuple(b.f32(2)), b.tuple(b.f32(2)))),
    ("Select.B3", lambda b: ops.Select(b.s32(), b.tuple(), b.tuple())),
    ("Select.B3", lambda b: ops.Select(b.pred(), b.tuple(b.f32(2)), b.tuple(b.f32(3)))),
    ("SelectAndScatter.B1", lambda b: select_and_scatter(b, b.f32(3))),
    ("SelectAndScatter.B1", lambda b: select_and_scatter(b, b.f32(2, 1))),
    ("SelectAndScatter.window-rank", lambda b: select_and_scatter(b, b.f32(2), window=[2, 2])),
    ("select-and-scatter.same-type", lambda b: select_and_scatter(b, b.s32(2))),
    ("select-and-scatter.init-type", lambda b: select_and_scatter(b, b.f32(2), init=b.f32(1))),
    ("select-and-scatter.window-sizes-positive", lambda b: select_and_scatter(b, b.f32(2), window=[0])),
    ("select-and-scatter.strides-positive", lambda b: select_and_scatter(b, b.f32(2), strides=[0])),
    ("select-and-scatter.select-type", lambda b: select_and_scatter(b, b.f32(2), select=ops.Add)),
    ("select-and-scatter.scatter-type", lambda b: select_and_scatter(b, b.f32(2), scatter=ops.Lt)),
    ("Send.B1", lambda b: ops.Add(ops.GetTupleElement(ops.Send(b.f32(), 1), 0), 1.0)),
    ("Send.B1", lambda b: b.tuple(ops.Send(b.f32(), 1))),
    ("custom-call.alias-exists", lambda b: aliased(b, [((), (1, ()))])),
    ("custom-call.alias-exists", lambda b: aliased(b, [((0,), (0, ()))])),
    ("custom-call.alias-once", lambda b: aliased(b, [((), (0, ())), ((), (0, ()))])),
    ("custom-call.alias-type", lambda b: aliased(b, [((), (0, ()))], INDEX)),
    ("send.channel", lambda b: ops.SendWithToken(b.f32(), b.token, ops.ChannelHandle(0))),
    ("SetDimensionSize.B1", lambda b: ops.SetDimensionSize(b.tuple(), 1, 0)),
    ("SetDimensionSize.B2", lambda b: ops.SetDimensionSize(b.f32(2), 1, 1)),
    ("ReduceScatter.B1", lambda b: ops.ReduceScatter(b.f32(4), ops.Add, 0, 2, [[0, 1], [1, 2]])),
    ("ReduceScatter.B2", lambda b: ops.ReduceScatter(b.f32(4), ops.Add, 0, 2, [[0, 1], [2]])),
    ("ReduceScatter.B3", lambda b: ops.ReduceScatter(b.f32(4), ops.Add, 0, 2, [[0, 1, 2, 3]])),
    ("ReduceScatter.B4", lambda b: ops.ReduceScatter(b.f32(3), ops.Add, 0, 2)),
    ("RngBernoulli.B1", lambda b: ops.RngBernoulli(b.f32(1), Shape.array("u32", (2,)))),
    ("RngBernoulli.B1", lambda b: ops.RngBernoulli(b.s32(), Shape.array("u32", (2,)))),
    ("RngBernoulli.B2", lambda b: ops.RngBernoulli(b.f32(), Shape.array("s32", (2,)))),
    ("RngNormal.B1", lambda b: ops.RngNormal(b.s32(), b.s32(), Shape.array("s32", (2,)))),
    ("RngNormal.B1", lambda b: ops.RngNormal(b.f32(), b.f32(1), Shape.array("f32", (2,)))),
    ("RngUniform.B1", lambda b: ops.RngUniform(b.f32(), b.s32(), Shape.array("f32", (2,)))),
    ("RngUniform.B1", lambda b: ops.RngUniform(b.f32(), b.f32(2), Shape.array("f32", (2,)))),
    ("RngUniform.B2", lambda b: ops.RngUniform(b.of(Shape.scalar("c64")), 1j, Shape.array("c64", (2,)))),
    ("SetDimensionSize.B3", lambda b: ops.SetDimensionSize(b.f32(2), b.s32(1), 0)),
    ("SetDimensionSize.B3", lambda b: ops.SetDimensionSize(b.f32(2), np.int64(1), 0)),
    ("Slice.B1", lambda b: ops.Slice(b.f32(2, 3), (0,), (1,))),
    ("Slice.B1", lambda b: ops.Slice(b.f32(2), (0,), (1, 2))),
    ("Slice.B2", lambda b: ops.Slice(b.f32(2), (-1,), (1,))),
    ("Slice.B3", lambda b: ops.Slice(b.f32(2), (1,), (0,))),
    ("Slice.B3", lambda b: ops.Slice(b.f32(2), (0,), (3,))),
    ("Slice.B4", lambda b: ops.Slice(b.f32(2), (0,), (1,), (0,))),
    ("Sort.B1", lambda b: ops.Sort(b.builder, [])),
    ("Sort.B1", lambda b: ops.Sort(b.builder, [b.f32(2), b.f32(3)])),
    ("Sort.B2", lambda b: ops.Sort(b.builder, [b.f32(2)], computation(ops.Add, SCALAR, SCALAR))),
    ("Sort.B2", lambda b: ops.Sort(b.builder, [b.f32(2)], computation(ops.Lt, INDEX, INDEX))),
    ("sort.dimension-in-range", lambda b: ops.Sort(b.f32(2), dimension=1)),
    ("eigh.known-sizes", lambda b: ops.Eigh(ops.SetDimensionSize(b.f32(3, 3), b.s32(), 0))),
    ("svd.known-sizes", lambda b: ops.SVD(ops.SetDimensionSize(b.f32(3, 3), b.s32(), 0))),
    ("qr-decomposition.element-type", lambda b: ops.QrDecomposition(b.s32(2, 2))),
    ("qr-decomposition.rank", lambda b: ops.QrDecomposition(b.f32(2))),
    ("householder-product.element-type", lambda b: reflections(b.s32(2, 2), b.s32(2))),
    ("householder-product.same-type", lambda b: reflections(b.f32(2, 2), b.s32(2))),
    ("householder-product.rank", lambda b: reflections(b.f32(2, 2), b.f32(2, 2))),
    ("householder-product.rank", lambda b: reflections(b.f32(2), b.f32())),
    ("householder-product.batch-dims", lambda b: reflections(b.f32(3, 2, 2), b.f32(2, 2))),
    ("householder-product.sizes", lambda b: reflections(b.f32(2, 3), b.f32(2))),
    ("householder-product.sizes", lambda b: reflections(b.f32(3, 2), b.f32(3))),
    ("householder-product.known-sizes", lambda b: reflections(ops.SetDimensionSize(b.f32(3, 2), b.s32(), 0), b.f32(2))),
    ("householder-product.known-sizes", lambda b: reflections(b.f32(3, 2), ops.SetDimensionSize(b.f32(2), b.s32(), 0))),
    ("lu.element-type", lambda b: ops.LU(b.s32(2, 2))),
    ("lu.rank", lambda b: ops.LU(b.f32(2))),
    ("topk.k-in-range", lambda b: ops.TopK(b.f32(2), 3)),
    ("topk.array-operands", lambda b: ops.TopK(b.f32(), 0)),
    ("Transpose.B1", lambda b: ops.Transpose(b.f32(2, 3), (0,))),
    ("Transpose.B1", lambda b: ops.Transpose(b.f32(2, 3), (0, 0))),
    ("TriangularSolve.B1", lambda b: ops.TriangularSolve(b.f32(2, 3, 3), b.f32(4, 3, 1), True, True, False)),
    ("TriangularSolve.B2", lambda b: ops.TriangularSolve(b.f32(3, 2), b.f32(3, 1), True, True, False)),
    ("triangular-solve.rank", lambda b: ops.TriangularSolve(b.f32(3, 3), b.f32(3), True, True, False)),
    ("triangular-solve.same-type", lambda b: ops.TriangularSolve(b.f32(3, 3), b.s32(3, 1), True, True, False)),
    ("triangular-solve.sizes", lambda b: ops.TriangularSolve(b.f32(3, 3), b.f32(3, 1), False, True, False)),
    ("While.B1", lambda b: ops.While(lambda x: x, ops.Neg, b.f32())),
    ("While.B1", lambda b: ops.While(lambda x: x < 0, lambda x: x.broadcast((2,)), b.f32())),
    ("While.B1", lambda b: ops.While(computation(lambda x: x < 0, INDEX), ops.Neg, b.f32())),
    *[
        (f"{OPS[opcode].title}.B1", lambda b, function=function: function(b.f32(2), b.s32(2)))
        for opcode, function in {
            "add": ops.Add,
            "and": ops.And,
            "atan2": ops.Atan2,
            "complex": ops.Complex,
            "divide": ops.Div,
            "igamma": ops.Igamma,
            "igamma-grad-a": ops.IgammaGradA,
            "igammac": ops.Igammac,
            "maximum": ops.Max,
            "minimum": ops.Min,
            "multiply": ops.Mul,
            "next-after": ops.NextAfter,
            "or": ops.Or,
            "polygamma": ops.Polygamma,
            "power": ops.Pow,
            "random-gamma-grad": ops.RandomGammaGrad,
            "remainder": ops.Rem,
            "shift-left": ops.ShiftLeft,
            "shift-right-arithmetic": ops.ShiftRightArithmetic,
            "shift-right-logical": ops.ShiftRightLogical,
            "subtract": ops.Sub,
            "xor": ops.Xor,
            "zeta": ops.Zeta,
        }.items()
    ],
]

BROADCAST_BEFORE = {
    "same-dims": "the builder broadcasts, and its errors name the rules of broadcasting (test_broadcasting)",
    "dimensions-count": "BroadcastInDim checks this itself, under the same label",
    "dimensions-in-range": "BroadcastInDim checks this itself, under the same label",
    "dimensions-unique": "BroadcastInDim checks this itself, under the same label",
    "same-size": "BroadcastInDim checks this itself, under the same label",
}
"""Constraints of the op table that no call of the builder can break, with the reason."""


@pytest.mark.parametrize(("label", "call"), BROKEN, ids=[label for label, _ in BROKEN])
def test_a_broken_constraint_is_named(label: str, call: Callable[[Bench], Any]) -> None:
    with pytest.raises(ShapeError) as caught:
        call(Bench())
    assert caught.value.rule == label
    assert f"[{label}]" in str(caught.value)
    assert "test_constraints.py:" in caught.value.where


def test_every_builder_label_of_the_table_is_broken() -> None:
    broken = {label for label, _ in BROKEN}
    unbroken = [
        f"{spec.title}.{label} ({spec.name}.{constraint.slug})"
        for spec in OPS.values()
        for constraint in spec.constraints.values()
        for label in constraint.labels
        if label.startswith("B") and f"{spec.title}.{label}" not in broken and constraint.slug not in BROADCAST_BEFORE
    ]
    assert not unbroken


UNTYPED: list[tuple[str, Callable[[Bench], Any]]] = [
    ("abs of pred", lambda b: ops.Abs(b.pred(2))),
    ("not of floats", lambda b: ops.Not(b.f32(2))),
    ("neg of pred", lambda b: ops.Neg(b.pred(2))),
    ("neg of a token", lambda b: ops.Neg(b.token)),
    ("exp of integers", lambda b: ops.Exp(b.s32(2))),
    ("add of tuples", lambda b: ops.Add(b.tuple(b.f32()), b.tuple(b.f32()))),
    ("and of floats", lambda b: ops.And(b.f32(2), b.f32(2))),
    ("iota of pred", lambda b: ops.Iota(b.builder, np.bool_, 3)),
    ("iota of a scalar", lambda b: ops.Iota(b.builder, SCALAR, 0)),
    ("element of an array", lambda b: ops.GetTupleElement(b.f32(2), 0)),
    ("reshape of a tuple", lambda b: ops.Reshape(b.tuple(b.f32()), (1,))),
    ("reduce of a tuple", lambda b: ops.Reduce(b.builder, [b.tuple(b.f32())], [0.0], ops.Add, [])),
    ("slice of a token", lambda b: ops.Slice(b.token, (), ())),
    ("infeed after an array", lambda b: ops.InfeedWithToken(b.f32(), SCALAR)),
    ("outfeed after an array", lambda b: ops.OutfeedWithToken(b.f32(), b.f32())),
    ("send to the host, channel from it", lambda b: ops.SendToHost(b.f32(), b.token, None, FROM_HOST)),
    ("send to a device, channel from the host", lambda b: ops.SendWithToken(b.f32(), b.token, FROM_HOST)),
    ("recv from the host, channel between devices", lambda b: ops.RecvFromHost(b.token, SCALAR, BETWEEN_DEVICES)),
    ("outfeed of another shape", lambda b: ops.OutfeedWithToken(b.f32(), b.token, INDEX)),
    ("all-reduce of two types", lambda b: ops.AllReduceStart([b.f32(2), b.s32(2)], ops.Add)),
    ("rank 65", lambda b: ops.Broadcast(b.f32(), (1,) * 65)),
    ("too many elements", lambda b: ops.Broadcast(b.f32(), (1 << 25, 1 << 25))),
    ("negative size", lambda b: ops.Reshape(b.f32(2, 2), (-2, -2))),
    ("iota of negative size", lambda b: ops.Iota(b.builder, np.int32, -1)),
    ("negative bound", lambda b: ops.DynamicReshape(b.f32(6), [3, 2], [-1, 2], [True, False])),
    ("scalar of ten thousand digits", lambda b: ops.Add(b.f32(2), 10**10_000)),
    ("index beyond the end", lambda b: b.f32(3)[3]),
    ("too many indices", lambda b: b.f32(3)[0, 0]),
    ("custom call layouts", lambda b: ops.CustomCallWithLayout(b.builder, "f", [b.f32()], SCALAR, [])),
    ("a channel for global ids", lambda b: ops.AllReduce(b.f32(2), ops.Add, use_global_device_ids=True)),
]


@pytest.mark.parametrize(("what", "call"), UNTYPED, ids=[what for what, _ in UNTYPED])
def test_wrong_shapes_and_types(what: str, call: Callable[[Bench], Any]) -> None:
    with pytest.raises(ShapeError) as caught:
        call(Bench())
    assert caught.value.rule
    assert "test_constraints.py:" in str(caught.value)


def other_builder() -> XlaOp:
    return Bench().f32(2)


WRONG_KINDS: list[tuple[str, Callable[[Bench], Any]]] = [
    ("None", lambda b: ops.Add(b.f32(2), None)),
    ("None alone", lambda b: ops.Neg(None)),
    ("a list", lambda b: ops.Add(b.f32(2), [1.0, 2.0])),
    ("a string", lambda b: ops.Add(b.f32(2), "x")),
    ("an array of strings", lambda b: ops.Add(b.f32(2), np.array(["a", "b"]))),
    ("an array of objects", lambda b: ops.Constant(b.builder, np.array([None]))),
    ("a ragged list", lambda b: ops.Constant(b.builder, [[1], [2, 3]])),
    ("no handle at all", lambda b: ops.Add(1.0, 2.0)),
    ("a shape for an operand", lambda b: ops.Add(b.f32(2), SCALAR)),
    ("another builder's", lambda b: ops.Add(b.f32(2), other_builder())),
    ("another builder's in a list", lambda b: ops.ConcatInDim(b.builder, [b.f32(2), other_builder()], 0)),
    ("another builder's in a tuple", lambda b: ops.Tuple(b.builder, [other_builder()])),
    ("another builder's root", lambda b: b.builder.build(other_builder())),
    ("another builder's shape", lambda b: b.builder.get_shape(other_builder())),
    ("an operand for a list", lambda b: ops.ConcatInDim(b.builder, b.f32(2), 0)),
    ("a size that is a value", lambda b: ops.Reshape(b.f32(2), (b.s32(),))),
    ("a size that is a fraction", lambda b: ops.Broadcast(b.f32(2), (2.5,))),
    ("an index that is a value", lambda b: b.f32(2)[b.s32()]),
    ("no shape", lambda b: ops.Parameter(b.builder, 7, (2, 3))),
    ("no parameter number", lambda b: ops.Parameter(b.builder, "x", SCALAR)),
    ("no element type", lambda b: ops.ConvertElementType(b.f32(2), "nonsense")),
    ("an ambiguous element type", lambda b: ops.ConvertElementType(b.f32(2), "u8")),
    ("an unfinished computation", lambda b: ops.Call(b.builder, XlaBuilder("f"), [])),
    ("no computation", lambda b: ops.Call(b.builder, None, [])),
    ("an op for a computation", lambda b: ops.Call(b.builder, b.f32(), [])),
    ("a function of the wrong arity", lambda b: ops.Reduce(b.f32(2), 0, lambda x: x, [0])),
    ("a function without a result", lambda b: ops.Map(b.builder, [b.f32(2)], lambda x: None)),
    ("a body of the wrong arity", lambda b: ops.While(lambda x, y: x < y, lambda x, y, z: (x, y), (b.f32(), b.f32()))),
    ("no branches", lambda b: ops.Conditional(b.s32(), ops.Neg, b.f32())),
    ("too few branches", lambda b: ops.Conditional(b.pred(), b.f32(), ops.Neg)),
    ("positional bits", lambda b: ops.ReducePrecision(b.f32(2), 5, 10)),
    ("no direction", lambda b: ops.Compare(b.f32(2), 0, "LESS")),
    ("no dimension numbers", lambda b: ops.DotGeneral(b.f32(2), b.f32(2), ((0,), (0,)))),
    ("no precision", lambda b: ops.Dot(b.f32(2), b.f32(2), "best")),
    ("dimension numbers without a field", lambda b: ops.Gather(b.f32(2), b.s32(1), object(), (1,))),
    ("dimension numbers that are a list", lambda b: ops.Scatter(b.f32(2), b.s32(1), b.f32(1), ops.Add, [1])),
    ("operands of Sort that are no list", lambda b: ops.Sort(b.builder, 3)),
    ("no padding", lambda b: ops.Pad(b.f32(2), 0.0, 1)),
    ("an iota without dimension", lambda b: ops.Iota(b.builder, Shape.array(np.int32, (2,)))),
    ("an iota without size", lambda b: ops.Iota(b.builder, np.int32)),
    ("what no send returned", lambda b: ops.SendDone(b.f32())),
    ("no API version", lambda b: ops.CustomCall(b.builder, "f", [], SCALAR, api_version=9)),
]


@pytest.mark.parametrize(("what", "call"), WRONG_KINDS, ids=[what for what, _ in WRONG_KINDS])
def test_wrong_kinds_of_arguments(what: str, call: Callable[[Bench], Any]) -> None:
    with pytest.raises(ArgumentError) as caught:
        call(Bench())
    assert "test_constraints.py:" in str(caught.value)


def test_zero_sizes_are_legal() -> None:
    b = Bench()
    empty = b.f32(0, 3)
    assert (empty + 1).shape.dims == (0, 3)
    assert ops.Broadcast(empty, (0,)).shape.dims == (0, 0, 3)
    assert empty.reduce(0, ops.Add, (0,)).shape.dims == (3,)
    assert ops.Slice(b.f32(4), (4,), (4,)).shape.dims == (0,)
    assert ops.Pad(b.f32(0), 0.0, [(1, 1, 5)]).shape.dims == (2,)
    assert ops.DynamicSlice(b.f32(4), [0], (0,)).shape.dims == (0,)
    assert gather(b, b.f32(4, 0), (1, 0)).shape.dims == (5, 0)
    assert scatter(b, b.f32(0, 3), indices=b.s32(0, 1)).shape.dims == (4, 3)
    assert ops.Sort(b.f32(0, 3), dimension=0).shape.dims == (0, 3)
    assert ops.TopK(b.f32(2, 3), 0).shape.parts[0].dims == (2, 0)
    assert ops.ConcatInDim(b.builder, [b.f32(0), b.f32(2)], 0).shape.dims == (2,)
    assert (b.f32(2, 0) @ b.f32(0, 3)).shape.dims == (2, 3)
    assert b.builder.constant(np.zeros((0, 5))).shape == Shape.array(np.float64, (0, 5))


def test_tokens_are_values() -> None:
    b = Bench()
    joined = ops.AfterAll(b.builder, [b.token, b.token])
    assert joined.shape is TOKEN
    assert ops.AddDependency(b.f32(2), joined).shape == Shape.array(np.float32, (2,))
