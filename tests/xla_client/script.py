"""One script for two modules: `python script.py MODULE FOLDER` builds and runs the same programs through either.

It writes into the folder, per program, its results, its shape, and its serialized computation; or why it failed.
"""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

xc: Any = importlib.import_module(sys.argv[1])
ops: Any = xc.ops

F32, S32, U32, C64, PRED = (np.dtype(name) for name in ("float32", "int32", "uint32", "complex64", "bool"))
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {}


def program(name: str, *arguments: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers `function(builder, *parameters)` with arguments to run it on."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[name] = (function, arguments)
        return function

    return register


def computation(name: str, function: Callable[..., Any], *dtypes: Any) -> Any:
    """A computation of scalars."""
    builder = xc.XlaBuilder(name)
    parameters = [ops.Parameter(builder, n, xc.Shape.array_shape(dtype, ())) for n, dtype in enumerate(dtypes)]
    return builder.build(function(builder, *parameters))


def addition(dtype: Any = F32) -> Any:
    return computation("add", lambda b, x, y: ops.Add(x, y), dtype, dtype)


def constant(builder: Any, value: Any, dtype: Any = F32) -> Any:
    return ops.Constant(builder, np.array(value, dtype))


RANDOM = np.random.default_rng(0)
X = RANDOM.uniform(-0.9, 0.9, (2, 3)).astype(F32)
Y = RANDOM.uniform(0.5, 2, (2, 3)).astype(F32)
IMAGE = RANDOM.standard_normal((1, 2, 5, 6)).astype(F32)
KERNEL = RANDOM.standard_normal((3, 2, 2, 3)).astype(F32)
SQUARE = RANDOM.standard_normal((3, 3)).astype(F32)
POSITIVE = (SQUARE @ SQUARE.T + 3 * np.eye(3)).astype(F32)
COMPLEX = (X + 1j * Y).astype(C64)
INTEGERS = np.array([[5, -7, 12], [1, 0, -3]], S32)
BITS = np.array([[1, 2, 255], [7, 0, 1 << 31]], U32)


# -- elementwise ---------------------------------------------------------------------------------------------------

for name in (
    *("Exp", "Expm1", "Floor", "Ceil", "Round", "Sign", "Cos", "Sin", "Tan", "Tanh", "IsFinite", "Neg", "Cbrt"),
    *("Square", "Reciprocal", "Abs", "Erf", "Erfc", "ErfInv", "Acos", "Asin", "Atan", "Asinh", "Atanh", "Cosh"),
    *("Sinh", "BesselI0e", "BesselI1e"),
):
    program(name, X)(lambda b, x, name=name: getattr(ops, name)(x))
for name in ("Log", "Log1p", "Sqrt", "Rsqrt", "Lgamma", "Digamma"):
    program(name, Y)(lambda b, x, name=name: getattr(ops, name)(x))
program("Acosh", Y + 1)(lambda b, x: ops.Acosh(x))
for name in ("Real", "Imag", "Conj", "Exp", "Tanh", "Sqrt"):
    program(f"{name} of complex", COMPLEX)(lambda b, x, name=name: getattr(ops, name)(x))
for name in ("Not", "PopulationCount", "Clz"):
    program(name, BITS)(lambda b, x, name=name: getattr(ops, name)(x))
for name in ("Eq", "Ne", "Ge", "Gt", "Lt", "Le", "Add", "Sub", "Mul", "Div", "Rem", "Max", "Min", "Atan2", "Complex"):
    program(name, X, Y)(lambda b, x, y, name=name: getattr(ops, name)(x, y))
program("Pow", Y, X)(lambda b, x, y: ops.Pow(x, y))
for name in ("And", "Or", "Xor", "ShiftLeft", "ShiftRightArithmetic", "ShiftRightLogical", "Div", "Rem"):
    program(f"{name} of integers", INTEGERS, np.array([[1, 2, 3], [4, 40, 5]], S32))(
        lambda b, x, y, name=name: getattr(ops, name)(x, y)
    )
for name in ("NextAfter", "Igamma", "Igammac", "IgammaGradA", "RandomGammaGrad"):
    program(name, Y, Y[::-1].copy())(lambda b, x, y, name=name: getattr(ops, name)(x, y))
program("Zeta", Y + 1.5, Y)(lambda b, x, q: ops.Zeta(x, q))
program("RegularizedIncompleteBeta", Y, Y[::-1].copy(), np.abs(X))(
    lambda b, x, y, z: ops.RegularizedIncompleteBeta(x, y, z)
)
program("Add of a row", X, X[0])(lambda b, x, y: ops.Add(x, y, [1]))
program("Add of a scalar", X)(lambda b, x: ops.Add(x, constant(b, 2)))
program("Select", X > 0, X, Y)(lambda b, p, x, y: ops.Select(p, x, y))
program("Clamp", X)(lambda b, x: ops.Clamp(constant(b, -0.5), x, constant(b, 0.5)))
program("ConvertElementType", X)(lambda b, x: ops.ConvertElementType(x, xc.PrimitiveType.BF16))
program("BitcastConvertType", X)(lambda b, x: ops.BitcastConvertType(x, xc.dtype_to_etype(S32)))
program("ReducePrecision", X)(lambda b, x: ops.ReducePrecision(x, 5, 4))


# -- shapes --------------------------------------------------------------------------------------------------------

program("Broadcast", X)(lambda b, x: ops.Broadcast(x, (4,)))
program("BroadcastInDim", X)(lambda b, x: ops.BroadcastInDim(x, (2, 4, 3), (0, 2)))
program("Reshape", X)(lambda b, x: ops.Reshape(x, (3, 2)))
program("Reshape in an order", X)(lambda b, x: ops.Reshape(x, (1, 0), (6,)))
program("Collapse", X)(lambda b, x: ops.Collapse(x, (0, 1)))
program("Transpose", X)(lambda b, x: ops.Transpose(x, (1, 0)))
program("Rev", X)(lambda b, x: ops.Rev(x, (1,)))
program("ConcatInDim", X, Y)(lambda b, x, y: ops.ConcatInDim(b, (x, y), 0))
program("Slice", X)(lambda b, x: ops.Slice(x, (0, 1), (2, 3), (1, 2)))
program("SliceInDim", X)(lambda b, x: ops.SliceInDim(x, 0, 3, 2, 1))
program("DynamicSlice", X, np.array(1, S32), np.array(5, S32))(lambda b, x, i, j: ops.DynamicSlice(x, (i, j), (1, 2)))
program("DynamicUpdateSlice", X, Y[:1, :2].copy(), np.array(1, S32), np.array(0, S32))(
    lambda b, x, u, i, j: ops.DynamicUpdateSlice(x, u, (i, j))
)
program("Pad", X)(lambda b, x: ops.Pad(x, constant(b, 9), xc.make_padding_config([(1, -1, 2), (0, 1, 0)])))
program("Iota")(lambda b: ops.Iota(b, xc.Shape.array_shape(S32, (2, 3)), 1))
program("Iota of a size")(lambda b: ops.Iota(b, xc.dtype_to_etype(F32), 4))
program("Constant")(lambda b: ops.Constant(b, np.arange(6, dtype=F32).reshape(2, 3)))
program("a splat Constant")(lambda b: ops.ConstantLiteral(b, np.full((2, 3), 7, S32)))
program("Tuple", X, Y)(lambda b, x, y: ops.Tuple(b, [x, y]))
program("GetTupleElement", X, Y)(lambda b, x, y: ops.GetTupleElement(ops.Tuple(b, [x, y]), 1))
program("OptimizationBarrier", X)(lambda b, x: ops.OptimizationBarrier(x))


@program("Gather", X, np.array([[1], [0], [7]], S32))
def gather(builder: Any, x: Any, indices: Any) -> Any:
    numbers = xc.GatherDimensionNumbers()
    numbers.offset_dims.append(1)
    numbers.collapsed_slice_dims.append(0)
    numbers.start_index_map.append(0)
    numbers.index_vector_dim = 1
    return ops.Gather(x, indices, numbers, slice_sizes=[1, 3])


@program("Scatter", X, np.array([1, 0, 1], S32), np.ones((3, 3), F32))
def scatter(builder: Any, x: Any, indices: Any, updates: Any) -> Any:
    numbers = xc.ScatterDimensionNumbers()
    numbers.update_window_dims.append(1)
    numbers.inserted_window_dims.append(0)
    numbers.scatter_dims_to_operand_dims.append(0)
    numbers.index_vector_dim = 1
    return ops.Scatter(x, indices, updates, addition(), numbers)


# -- contractions, reductions, windows, order ----------------------------------------------------------------------

program("Dot", X, Y.T.copy())(lambda b, x, y: ops.Dot(x, y))
program("DotGeneral", np.stack([X, Y]), np.stack([Y, X]))(
    lambda b, x, y: ops.DotGeneral(x, y, xc.make_dot_dimension_numbers((([2], [2]), ([0], [0]))))
)
program("Reduce", X)(lambda b, x: ops.Reduce(b, [x], [constant(b, 0)], addition(), [1]))
program("ReduceWindow", X)(
    lambda b, x: ops.ReduceWindowWithGeneralPadding(
        x, constant(b, 0), addition(), (2, 2), (1, 1), (1, 1), (1, 2), ((1, 0), (1, 1))
    )
)
program("SelectAndScatter", X, np.ones((1, 2), F32))(
    lambda b, x, s: ops.SelectAndScatterWithGeneralPadding(
        x,
        computation("ge", lambda c, p, q: ops.Ge(p, q), F32, F32),
        (2, 2),
        (1, 1),
        ((0, 0), (0, 0)),
        s,
        constant(b, 0),
        addition(),
    )
)
program("Conv", IMAGE, KERNEL)(
    lambda b, x, k: ops.ConvGeneralDilated(
        x,
        k,
        (1, 2),
        xc.window_padding_type_to_pad_values(xc.PaddingType.SAME, (5, 6), (2, 3), (1, 2)),
        (1, 1),
        (2, 1),
        xc.make_convolution_dimension_numbers(None, 2),
    )
)
program("Conv by labels", IMAGE.transpose(0, 2, 3, 1).copy(), KERNEL.transpose(2, 3, 1, 0).copy())(
    lambda b, x, k: ops.ConvGeneralDilated(
        x,
        k,
        (1, 1),
        ((0, 0), (1, 1)),
        (2, 1),
        (1, 1),
        xc.make_convolution_dimension_numbers(("NHWC", "HWIO", "NHWC"), 2),
    )
)
program("Sort", X)(lambda b, x: ops.Sort(b, [x], dimension=1))
program("Sort of pairs", X, INTEGERS)(
    lambda b, x, i: ops.Sort(
        b, [x, i], computation("gt", lambda c, p, q, r, s: ops.Gt(p, q), F32, F32, S32, S32), 1, True
    )
)
program("TopK", X)(lambda b, x: ops.TopK(x, 2))
program("ApproxTopKFallback", X, INTEGERS)(
    lambda b, x, i: ops.ApproxTopKFallback(
        b,
        [x, i],
        [constant(b, -9), constant(b, 0, S32)],
        2,
        1,
        computation("gt", lambda c, p, q, r, s: ops.Gt(p, q), F32, F32, S32, S32),
    )
)


# -- control flow --------------------------------------------------------------------------------------------------


@program("While", X)
def loop(builder: Any, x: Any) -> Any:
    shape = xc.Shape.tuple_shape([xc.Shape.array_shape(S32, ()), xc.Shape.array_shape(F32, (2, 3))])
    condition = xc.XlaBuilder("condition")
    state = ops.Parameter(condition, 0, shape)
    smaller = condition.build(ops.Lt(ops.GetTupleElement(state, 0), constant(condition, 3, S32)))
    body = xc.XlaBuilder("body")
    state = ops.Parameter(body, 0, shape)
    count = ops.Add(ops.GetTupleElement(state, 0), constant(body, 1, S32))
    step = body.build(ops.Tuple(body, [count, ops.Sin(ops.GetTupleElement(state, 1))]))
    return ops.While(smaller, step, ops.Tuple(builder, [constant(builder, 0, S32), x]))


def array_computation(name: str, function: Callable[[Any], Any]) -> Any:
    builder = xc.XlaBuilder(name)
    return builder.build(function(ops.Parameter(builder, 0, xc.Shape.array_shape(F32, (2, 3)))))


program("Conditional", np.array(True), X)(
    lambda b, p, x: ops.Conditional(p, x, array_computation("t", ops.Sin), x, array_computation("f", ops.Cos))
)
program("Conditional of branches", np.array(2, S32), X)(
    lambda b, i, x: ops.Conditional(i, [array_computation(f.__name__, f) for f in (ops.Sin, ops.Cos, ops.Neg)], [x] * 3)
)
program("Call", X)(lambda b, x: ops.Call(b, array_computation("called", ops.Exp), [x]))
program("Map", X, Y)(lambda b, x, y: ops.Map(b, [x, y], addition(), [0, 1]))


# -- linear algebra, transforms, random numbers, dynamic sizes -----------------------------------------------------

program("Cholesky", POSITIVE)(lambda b, a: ops.Cholesky(a))
program("TriangularSolve", np.tril(POSITIVE), SQUARE)(
    lambda b, a, y: ops.TriangularSolve(a, y, True, True, False, ops.TriangularSolveOptions_Transpose.NO_TRANSPOSE)
)
program("Fft", COMPLEX)(lambda b, x: ops.Fft(x, xc.FftType.FFT, [3]))
program("Rfft", X)(lambda b, x: ops.Fft(x, xc.FftType.RFFT, [3]))
for name in ("RNG_THREE_FRY", "RNG_PHILOX"):
    state = [1, 2] if name == "RNG_THREE_FRY" else [1, 2, 3]
    program(name, np.array(state, np.uint64))(
        lambda b, s, name=name: ops.RngBitGenerator(
            getattr(ops.RandomAlgorithm, name), s, xc.Shape.array_shape(U32, (5,))
        )
    )
program("GetDimensionSize", X)(lambda b, x: ops.GetDimensionSize(ops.SetDimensionSize(x, constant(b, 2, S32), 1), 1))
program("ReplicaId")(ops.ReplicaId)
program("CrossReplicaSum", X)(lambda b, x: ops.CrossReplicaSum(x, xc.make_replica_groups([[0]])))


def main(folder: Path) -> None:
    client = xc.make_cpu_client()
    reports = {}
    for number, (name, (function, arguments)) in enumerate(PROGRAMS.items()):
        report: dict[str, Any] = {"number": number}
        reports[name] = report
        try:
            builder = xc.XlaBuilder(f"program {number}")
            shapes = [xc.shape_from_pyval(argument) for argument in arguments]
            parameters = [ops.Parameter(builder, index, shape) for index, shape in enumerate(shapes)]
            root = function(builder, *parameters)
            report["shape"] = repr(builder.get_shape(root))
            built = builder.build(root)
            (folder / f"{number}.pb").write_bytes(built.as_serialized_hlo_module_proto())
            executable = client.compile(xc._xla.mlir.xla_computation_to_mlir_module(built))
            np.savez(folder / f"{number}.arguments.npz", *arguments)
            buffers = [client.buffer_from_pyval(argument) for argument in arguments]
            results = [np.asarray(result) for result in executable.execute(buffers)]
            np.savez(folder / f"{number}.npz", *(r.astype(F32) if r.dtype.kind == "V" else r for r in results))
        except Exception as error:  # noqa: BLE001 - whatever it is, the report says it
            report["error"] = "".join(traceback.format_exception_only(error)).strip()
    (folder / "report.json").write_text(json.dumps(reports))


if __name__ == "__main__":
    main(Path(sys.argv[2]))
