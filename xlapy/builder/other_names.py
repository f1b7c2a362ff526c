"""Names that things have elsewhere: of functions and values, with what to write here, and of parameters, which are
taken as they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

FUNCTIONS_ELSEWHERE: Mapping[str, str] = {
    "Arange": "ops.Iota(builder, dtype, size)",
    "Argmax": "ops.Reduce over the values and an Iota, or ops.TopK(x, 1)",
    "Astype": "ops.ConvertElementType(x, dtype)",
    "Cast": "ops.ConvertElementType(x, dtype)",
    "Clip": "ops.Clamp(low, x, high)",
    "Cond": "ops.Conditional",
    "Conv2d": "ops.Conv, or ops.ConvGeneralDilated for dimensions in another order",
    "Convert": "ops.ConvertElementType(x, dtype)",
    "Convolution": "ops.ConvGeneralDilated",
    "Cosine": "ops.Cos(x)",
    "Cumsum": "ops.ReduceWindow with a window of all elements and as many in front as padding, less one",
    "Divide": "ops.Div(x, y)",
    "Einsum": "ops.DotGeneral(x, y, dimension_numbers)",
    "Expanddims": "ops.Reshape(x, sizes)",
    "Exponential": "ops.Exp(x)",
    "Flip": "ops.Rev(x, dimensions)",
    "Foriloop": "ops.While",
    "Full": "ops.Broadcast(ops.Constant(builder, value), sizes)",
    "Matmul": "ops.Dot(x, y), x @ y, or with batches ops.DotGeneral",
    "Maximum": "ops.Max(x, y)",
    "Mean": "ops.Reduce(x, 0, ops.Add, dimensions), divided by the number of elements",
    "Minimum": "ops.Min(x, y)",
    "Multiply": "ops.Mul(x, y)",
    "Negate": "ops.Neg(x)",
    "Negative": "ops.Neg(x)",
    "Ones": "ops.Broadcast(ops.Constant(builder, np.float32(1)), sizes)",
    "Oneslike": "ops.Broadcast(ops.Constant(builder, value), x.shape.dims)",
    "Power": "ops.Pow(x, y)",
    "Prod": "ops.Reduce(x, 1, ops.Mul, dimensions)",
    "Reducemax": "ops.Reduce(x, -np.inf, ops.Max, dimensions)",
    "Reducemin": "ops.Reduce(x, np.inf, ops.Min, dimensions)",
    "Reducesum": "ops.Reduce(x, 0, ops.Add, dimensions)",
    "Relu": "ops.Max(x, 0)",
    "Remainder": "ops.Rem(x, y)",
    "Scan": "ops.While",
    "Sigmoid": "ops.Logistic(x)",
    "Sine": "ops.Sin(x)",
    "Softmax": "exponentials and two reductions, as in docs/report.md; they become one kernel",
    "Squeeze": "ops.Reshape(x, sizes)",
    "Stack": "ops.ConcatInDim(builder, operands, dimension) of operands with a dimension of size 1",
    "Subtract": "ops.Sub(x, y)",
    "Sum": "ops.Reduce(x, 0, ops.Add, dimensions)",
    "Take": "ops.Gather(x, indices, dimension_numbers, slice_sizes)",
    "Where": "ops.Select(condition, x, y)",
    "Whileloop": "ops.While",
    "Zeros": "ops.Broadcast(ops.Constant(builder, np.float32(0)), sizes)",
    "Zeroslike": "ops.Broadcast(ops.Constant(builder, value), x.shape.dims)",
}

KEYWORDS_ELSEWHERE: Mapping[str, Mapping[str, str]] = {
    "AfterAll": {"operands": "tokens"},
    "AllGather": {"all_gather_dim": "all_gather_dimension", "replica_group_ids": "replica_groups"},
    "AllReduce": {"replica_group_ids": "replica_groups"},
    "Broadcast": {"broadcast_sizes": "sizes"},
    "BroadcastInDim": {"out_dim_size": "shape"},
    "Call": {"args": "operands"},
    "Conditional": {"branch_index": "selector", "pred": "selector", "predicate": "selector"},
    "CrossReplicaSum": {"replica_group_ids": "replica_groups"},
    "CustomCall": {"args": "operands", "target_name": "call_target_name"},
    "DynamicSlice": {"size_indices": "slice_sizes"},
    "Gather": {"operand": "a"},
    "GetTupleElement": {"tuple": "tuple_data"},
    "Iota": {"type": "shape"},
    "NextAfter": {"from": "start", "to": "end"},
    "OptimizationBarrier": {"arg": "operand"},
    "Reduce": {"dimensions": "dimensions_to_reduce"},
    "ReduceScatter": {"replica_group_ids": "replica_groups", "scatter_dim": "scatter_dimension"},
    "ReduceWindow": {"init_value": "init_values", "operand": "operands"},
    "ReduceWindowWithGeneralPadding": {"init_value": "init_values", "operand": "operands"},
    "RngBitGenerator": {"key": "initial_state"},
    "RngNormal": {"mean": "mu"},
    "Scatter": {"inputs": "input", "operand": "input", "operands": "input"},
    "SetDimensionSize": {"size": "val"},
    "Sort": {"key": "keys", "operand": "keys", "value": "values"},
    "TopK": {"operand": "input"},
}
"""Parameters of op functions by the names that jaxlib's functions and XLA's documents have for them, and by ours."""

_NO_VALUE = "what the program returns when it runs: xlapy.compile(builder.build(x))(*arrays)"

_VALUES_ELSEWHERE: Mapping[str, str] = {
    "T": "x.transpose()",
    "dims": "x.shape.dims",
    "at": "ops.DynamicUpdateSlice(x, update, starts), or ops.Scatter",
    "block_until_ready": _NO_VALUE,
    "dtype": "x.shape.type.dtype",
    "eval": _NO_VALUE,
    "flatten": "x.reshape((n,))",
    "item": _NO_VALUE,
    "ndim": "x.shape.rank",
    "numpy": _NO_VALUE,
    "size": "x.shape.size",
    "tolist": _NO_VALUE,
    "value": _NO_VALUE,
}


def hint_for_function(name: str, known: Iterable[str] = ()) -> str:
    """`: that is ops.Dot(x, y)` for a name that a function has elsewhere, in any case; or for one of the `known` names
    that is spelled otherwise; or the empty string."""
    plain = _plain(name)
    found = FUNCTIONS_ELSEWHERE.get(plain.capitalize())
    found = found or next((f"ops.{each}" for each in known if _plain(each) == plain), "")
    return f": that is {found}" if found else ""


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def hint_for_value(name: str, known: Iterable[str] = ()) -> str:
    """The same for a name that an array has elsewhere, or that a function has which is no method."""
    found = _VALUES_ELSEWHERE.get(name)
    return f": that is {found}" if found else hint_for_function(name, known)
