"""The op functions: all of the table has one, all have the old signatures, all are methods, all are exported."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import get_overloads

import numpy as np
import pytest

from xlapy import ops
from xlapy.builder import XlaBuilder, XlaOp
from xlapy.builder.methods import methods
from xlapy.builder.other_names import KEYWORDS_ELSEWHERE
from xlapy.builder.registry import FUNCTIONS, NOT_RECORDED, RECORDED_BY
from xlapy.hlo.attributes import DotDimensionNumbers, Precision, ScatterDimensionNumbers
from xlapy.hlo.shape import Shape
from xlapy.support.errors import ArgumentError


def test_every_op_of_the_table_can_be_recorded() -> None:
    assert set(RECORDED_BY.missing()) == set(NOT_RECORDED)


def test_xlapy_ops_exports_every_function() -> None:
    exported = {
        name for name in ops.__all__ if callable(getattr(ops, name)) and not inspect.isclass(getattr(ops, name))
    }
    assert exported == set(FUNCTIONS)
    assert all(getattr(ops, name) is FUNCTIONS[name] for name in exported)


def test_functions_are_documented() -> None:
    assert [name for name in FUNCTIONS if not FUNCTIONS[name].__doc__] == []


def test_documentation_says_that_operands_are_broadcast() -> None:
    """HLO's own operations want equal dimensions; functions of the builder do not."""
    for name in ("Add", "Max", "Atan2"):
        documentation = FUNCTIONS[name].__doc__ or ""
        assert "`broadcast_dimensions[i]`" in documentation and "same dimensions" not in documentation


BINARY = (
    *("Eq", "Ne", "Ge", "Gt", "Lt", "Le", "Add", "Sub", "Mul", "Div", "Rem", "Max", "Min", "And", "Or", "Xor"),
    *("ShiftLeft", "ShiftRightArithmetic", "ShiftRightLogical", "Atan2", "Pow", "Complex", "LogicalAnd", "LogicalOr"),
    *("EqTotalOrder", "NeTotalOrder", "GeTotalOrder", "GtTotalOrder", "LeTotalOrder", "LtTotalOrder"),
)

SIGNATURES = {
    "AfterAll": "builder tokens",
    "AllReduce": "operand computation replica_groups channel_id shape_with_layout use_global_device_ids",
    "BitcastConvertType": "operand new_element_type",
    "Broadcast": "operand sizes",
    "BroadcastInDim": "operand shape broadcast_dimensions",
    "Call": "builder computation operands",
    "Cholesky": "a lower",
    "Clamp": "min operand max",
    "Collapse": "operand dimensions",
    "ConcatInDim": "builder operands dimension",
    "Constant": "builder literal",
    "ConstantLiteral": "builder literal",
    "ConvertElementType": "operand new_element_type",
    "CreateToken": "builder",
    "CrossReplicaSum": "operand replica_groups",
    "CustomCall": "builder call_target_name operands shape opaque has_side_effect schedule api_version",
    "CustomCallWithLayout": "builder call_target_name operands shape_with_layout operand_shapes_with_layout opaque "
    "has_side_effect schedule api_version",
    "CustomCallWithAliasing": "builder call_target_name operands shape_with_layout operand_shapes_with_layout opaque "
    "has_side_effect output_operand_aliasing literal schedule api_version",
    "CustomCallWithComputation": "builder call_target_name operands computation shape opaque has_side_effect "
    "output_operand_aliasing literal schedule api_version",
    "Dot": "lhs rhs precision_config preferred_element_type",
    "DotGeneral": "lhs rhs dimension_numbers precision_config preferred_element_type",
    "DynamicSlice": "operand start_indices slice_sizes",
    "DynamicUpdateSlice": "operand update start_indices",
    "Eigh": "a lower max_iter epsilon sort_eigenvalues",
    "Fft": "operand fft_type fft_length",
    "Gather": "a start_indices dimension_numbers slice_sizes indices_are_sorted unique_indices",
    "GetDimensionSize": "operand dimension",
    "GetTupleElement": "tuple_data index",
    "InfeedWithToken": "token shape config",
    "LU": "operand",
    "Map": "builder operands computation dimensions static_operands",
    "OutfeedWithToken": "operand token shape_with_layout outfeed_config",
    "Pad": "operand padding_value padding_config",
    "Parameter": "builder parameter_number shape name replicated_at_leaf_buffers",
    "ProductOfElementaryHouseholderReflectors": "a taus",
    "QR": "operand full_matrices",
    "QrDecomposition": "operand",
    "RecvFromHost": "token shape handle",
    "Reduce": "builder operands init_values computation dimensions_to_reduce",
    "ReplicaId": "builder",
    "Rev": "operand dimensions",
    "SVD": "a max_iter epsilon",
    "Scatter": "input scatter_indices updates update_computation dimension_numbers indices_are_sorted unique_indices",
    "Select": "pred on_true on_false",
    "SendToHost": "operand token shape_with_layout handle",
    "SetDimensionSize": "operand val dimension",
    "Slice": "operand start_indices limit_indices strides",
    "SliceInDim": "operand start_index limit_index stride dimno",
    "Sort": "builder operands comparator dimension is_stable",
    "TopK": "input k largest",
    "Transpose": "operand permutation",
    "TriangularSolve": "a b left_side lower unit_diagonal transpose_a",
    "Tuple": "builder elements",
    "While": "condition body init",
    **dict.fromkeys(BINARY, "lhs rhs broadcast_dimensions"),
}
"""The names and the order of parameters in the interface that scripts were written for."""


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(name: str) -> None:
    assert " ".join(inspect.signature(FUNCTIONS[name]).parameters) == SIGNATURES[name]


@pytest.mark.parametrize(
    ("name", "theirs", "ours"),
    [(name, theirs, ours) for name, names in KEYWORDS_ELSEWHERE.items() for theirs, ours in names.items()],
)
def test_other_names_of_parameters_stand_for_parameters(name: str, theirs: str, ours: str) -> None:
    function = FUNCTIONS[name]
    forms = get_overloads(function) or [function]
    parameters = {parameter for form in forms for parameter in inspect.signature(form).parameters}
    assert ours in parameters
    assert theirs not in parameters


def test_functions_take_other_names_of_parameters() -> None:
    builder = XlaBuilder("names")
    x = builder.parameter(0, Shape.array(np.float32, (4,)))
    i = builder.constant(0)
    numbers = ScatterDimensionNumbers((), (0,), (0,), 0)
    add_both = lambda a, b, c, d: (a + c, b + d)  # noqa: E731
    window = {"window_dimensions": (2,), "window_strides": (1,), "base_dilations": (1,), "window_dilations": (1,)}
    window["padding"] = [(0, 0)]
    for made, shape in [
        (ops.Iota(builder, type=np.int32, size=3), "s32[3]"),
        (ops.OptimizationBarrier(arg=x), "f32[4]"),
        (ops.NextAfter(**{"from": x, "to": 0.0}), "f32[4]"),
        (
            ops.Scatter(
                inputs=[x, x], scatter_indices=i, updates=[1, 2], update_computation=add_both, dimension_numbers=numbers
            ),
            "(f32[4], f32[4])",
        ),
        (ops.ReduceWindowWithGeneralPadding(operand=x, init_value=0, computation=ops.Add, **window), "f32[3]"),
        (ops.Reduce(operand=x, init_value=0, computation=ops.Add, dimensions=[0]), "f32[]"),
        (x.reduce(init_value=0, computation=ops.Add, dimensions=[0]), "f32[]"),
        (ops.Sort(operand=x, dimension=0), "f32[4]"),
        (ops.Sort(keys=x, values=x), "(f32[4], f32[4])"),
        (ops.Broadcast(x, broadcast_sizes=(2,)), "f32[2,4]"),
        (ops.RngNormal(mean=0.0, sigma=builder.constant(1.0), shape=x.shape), "f32[4]"),
    ]:
        assert str(made.shape) == shape
    with pytest.raises(ArgumentError, match="Scatter: there are two values for 'input'"):
        ops.Scatter(input=x, inputs=x)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (ops.Add, r"Add: missing a required argument: 'rhs'; it takes \(lhs, rhs, broadcast_dimensions\)"),
        (lambda x: ops.Exp(x, 1), r"Exp: too many positional arguments; it takes \(operand\)"),
        (
            lambda x: x.sort(dimensions=0),
            r"Sort: there is no argument 'dimensions'; it takes \(keys, .*\); did you mean 'dimension'",
        ),
        (
            lambda x: x.builder.parameter(1),
            r"parameter: missing a required argument: 'shape'; it takes \(parameter_number, ",
        ),
    ],
)
def test_calls_with_other_arguments_are_refused_at_the_users_line(call: Callable[..., object], told: str) -> None:
    x = XlaBuilder("calls").parameter(0, Shape.array(np.float32, (4,)))
    with pytest.raises(ArgumentError, match=told) as caught:
        call(x)
    assert "test_functions.py" in caught.value.where


def test_errors_of_what_users_hand_over_pass_through() -> None:
    x = XlaBuilder("calls").parameter(0, Shape.array(np.float32, (4,)))
    with pytest.raises(TypeError, match="exactly one argument") as caught:
        x.reduce(0, lambda a, b: len(), (0,))  # type: ignore[call-arg]
    assert not isinstance(caught.value, ArgumentError)


UNARY = (
    *("Not", "PopulationCount", "Clz", "Exp", "Expm1", "Floor", "Ceil", "Round", "RoundNearestEven", "Log", "Log1p"),
    *("Sign", "Cos", "Sin", "Tan", "Tanh", "IsFinite", "Neg", "Sqrt", "Rsqrt", "Cbrt", "Square", "Reciprocal", "Abs"),
    *("Erf", "Logistic", "Acos", "Asin", "Atan", "Acosh", "Asinh", "Atanh", "Cosh", "Sinh", "Real", "Imag", "Conj"),
)
OF_INTEGERS = ("Not", "PopulationCount", "Clz")


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_operand(name: str) -> None:
    builder = XlaBuilder("unary")
    x = builder.parameter(0, Shape.array(np.int32 if name in OF_INTEGERS else np.float32, (2, 3)))
    result = FUNCTIONS[name](x)
    assert result.shape.dims == (2, 3)
    assert result.shape.type.name == {"IsFinite": "pred"}.get(name, x.shape.type.name)


def test_complex_numbers_have_parts() -> None:
    builder = XlaBuilder("complex")
    x = builder.parameter(0, Shape.array(np.float32, (2,)))
    z = ops.Complex(x, x)
    assert z.shape.type.name == "c64"
    assert [op.shape.type.name for op in (ops.Real(z), ops.Imag(z), ops.Abs(z), ops.Conj(z))] == ["f32"] * 3 + ["c64"]


def test_functions_are_methods() -> None:
    builder = XlaBuilder("methods")
    x = builder.parameter(0, Shape.array(np.float32, (2, 3)))
    assert x.reshape((3, 2)).shape.dims == (3, 2)
    assert x.reshape((1, 0), (6,)).shape.dims == (6,)
    assert x.transpose().shape.dims == (3, 2)
    assert x.exp().log1p().instruction.opcode == "log-plus-one"
    assert x.convert_element_type("s32").shape == x.astype(np.int32).shape == x.cast("s32").shape
    assert x.broadcast_in_dim((2, 4, 3), (0, 2)).shape.dims == (2, 4, 3)
    assert x.slice_in_dim(0, 2, 1, dimno=1).shape.dims == (2, 2)
    assert x.max(0.0).eq_total_order(x).shape.type.name == "pred"
    assert x.clamp(0, 1.5).shape == x.shape
    assert [operand is x.instruction for operand in x.clamp(0, max=x).instruction.operands] == [False, True, True]
    assert (x > 0).logical_not().shape.type.name == "pred"
    assert builder.concatenate([x, x], dimension=1).shape.dims == (2, 6)
    assert builder.constant(np.float32(1)).shape == Shape.scalar(np.float32)
    assert builder.iota(Shape.array(np.int32, (3,)), 0).shape.dims == (3,)
    assert builder.make_tuple([x, x]).shape.is_tuple
    assert builder.reduce([x], [0.0], ops.Add, [0]).shape.dims == (3,)
    assert isinstance(builder.tuple([x]), XlaOp)


def test_functions_that_are_no_methods_begin_with_no_operand() -> None:
    bound = [*vars(XlaOp).values(), *vars(XlaBuilder).values()]
    assert {name for name in FUNCTIONS if FUNCTIONS[name] not in bound} == {
        *("Concat", "Concatenate"),  # a list
        *("While", "RngBitGenerator", "ApproxTopKReductionOutputSize"),  # a computation, a choice, a number
        *("Parameter", "Clamp"),  # the classes have methods of their own
    }


def test_functions_that_are_methods_begin_with_their_class() -> None:
    for owner, name, function in methods():
        first = next(iter(inspect.signature(function).parameters.values()))
        kinds = {XlaBuilder: ("XlaBuilder",), XlaOp: ("XlaOp", "Operand", "Operands", "Operand | None")}
        assert first.annotation in kinds[owner], name


def test_padding_in_its_spellings() -> None:
    builder = XlaBuilder("pad")
    x = builder.parameter(0, Shape.array(np.float32, (2, 3)))
    dimension = SimpleNamespace(edge_padding_low=1, edge_padding_high=2, interior_padding=1)
    proto = SimpleNamespace(dimensions=[dimension, dimension])
    for config in ([(1, 2, 1), (1, 2, 1)], proto):
        assert ops.Pad(x, 0.0, config).shape.dims == (6, 8)
    assert ops.Pad(x, 0, [(1, 2), (0, -1)]).shape.dims == (5, 2)


def test_dot_dimension_numbers_in_their_spellings() -> None:
    builder = XlaBuilder("dot")
    x = builder.parameter(0, Shape.array(np.float32, (5, 2, 3)))
    y = builder.parameter(1, Shape.array(np.float32, (5, 3, 4)))
    proto = SimpleNamespace(
        lhs_contracting_dimensions=[2],
        rhs_contracting_dimensions=[1],
        lhs_batch_dimensions=[0],
        rhs_batch_dimensions=[0],
    )
    for numbers in (proto, DotDimensionNumbers((2,), (1,), (0,), (0,)), (((2,), (1,)), ((0,), (0,)))):
        assert ops.DotGeneral(x, y, numbers).shape.dims == (5, 2, 4)


def test_dot_precision_and_result_type() -> None:
    builder = XlaBuilder("dot")
    x = builder.parameter(0, Shape.array("bf16", (2, 3)))
    y = builder.parameter(1, Shape.array("bf16", (3, 4)))
    config = SimpleNamespace(operand_precision=[Precision.HIGH, Precision.HIGHEST])
    dot = ops.Dot(x, y, config, np.float32)
    assert str(dot.shape) == "f32[2,4]"
    assert dot.instruction.attributes["operand_precision"] == (Precision.HIGH, Precision.HIGHEST)
    same = ops.Dot(x, y, "highest")
    assert str(same.shape) == "bf16[2,4]"
    assert same.instruction.attributes["operand_precision"] == (Precision.HIGHEST, Precision.HIGHEST)


@pytest.mark.parametrize(
    ("source", "target", "dims"),
    [("f32", "f16", (10, 2)), ("f16", "f32", ()), ("s32", "f32", (10,)), ("s32", "s8", (10, 4)), ("s4", "s8", ())],
)
def test_bitcast_convert_type(source: str, target: str, dims: tuple[int, ...]) -> None:
    """BitcastConvertType.E1 to E4."""
    given = {"f16": (2,), "s4": (2,)}.get(source, (10,))
    x = XlaBuilder("bits").parameter(0, Shape.array(source, given))
    assert ops.BitcastConvertType(x, target).shape == Shape.array(target, dims)


def test_the_alternative_forms() -> None:
    builder = XlaBuilder("forms")
    x = builder.parameter(0, Shape.array(np.float32, (4,)))
    i = builder.constant(0)
    assert ops.Reduce(x, 0.0, ops.Add, [0]).shape.dims == ()
    assert ops.Iota(builder, np.int32, size=3).shape.dims == (3,)
    assert ops.Conditional(i, branch_computations=[ops.Neg], branch_operands=[x]).shape == x.shape
    two_way = ops.Conditional(
        i == 0, true_operand=x, true_computation=ops.Neg, false_operand=x, false_computation=ops.Abs
    )
    assert two_way.shape == x.shape
    branches = {"true_operand": x, "true_computation": ops.Neg, "false_operand": x, "false_computation": ops.Abs}
    assert ops.Conditional(predicate=i == 0, **branches).shape == x.shape
    assert ops.Conditional(branch_index=i, branch_computations=[ops.Neg], branch_operands=[x]).shape == x.shape
    assert ops.Reshape(operand=x, new_sizes=(2, 2)).shape.dims == (2, 2)
    assert ops.Compare(x, x, "lt", "totalorder").shape.type.name == "pred"


def test_lists_of_numbers_may_be_arrays() -> None:
    builder = XlaBuilder("arrays")
    x = builder.parameter(0, Shape.array(np.float32, (4, 6)))
    image = x.reshape(np.array([1, 1, 4, 6]))
    kernel = np.ones((1, 1, 2, 2), np.float32)
    padding = np.array([[1, 1], [0, 2]])
    assert x.pad(0, np.array([[1, 1, 0], [0, 0, 1]])).shape.dims == (6, 11)
    assert image.conv_with_general_padding(kernel, np.array([1, 1]), padding).shape.dims == (1, 1, 5, 7)
    assert x.reduce_window(0, ops.Add, np.array([2, 2]), padding=padding).shape.dims == (5, 7)
    assert x.dynamic_reshape([4, 6], np.array([4, 6]), np.array([True, False])).shape.dynamic == (True, False)
    groups = np.array([[0, 1], [2, 3]])
    made = x.all_reduce(ops.Add, groups), x.all_gather(0, 2, groups), x.all_to_all(0, 0, 2, groups)
    for value in (
        *made,
        x.cross_replica_sum(np.array([0, 0, 1, 1])),
        x.cross_replica_sum([np.int64(n // 2) for n in range(4)]),
    ):
        assert value.instruction.attributes["replica_groups"].groups == ((0, 1), (2, 3))
    permuted = x.collective_permute(np.array([[0, 1], [1, 0]]))
    assert permuted.instruction.attributes["source_target_pairs"].pairs == ((0, 1), (1, 0))


def test_choices_go_by_names_in_any_case() -> None:
    builder = XlaBuilder("choices")
    x = builder.parameter(0, Shape.array("F32", (4,)))
    state = builder.constant(np.array([1, 2], np.uint64))
    assert x.fft("rfft", (4,)).shape.dims == (3,)
    assert x.astype("BF16").shape == x.astype("bf16").shape
    for name in ("threefry", "three_fry", "RNG_THREE_FRY"):
        bits = ops.RngBitGenerator(name, state, Shape.array("U8", (3,)))
        assert str(bits.instruction.attributes["algorithm"]) == "rng_three_fry"


def test_what_the_alternative_forms_lack() -> None:
    x = XlaBuilder("forms").parameter(0, Shape.array(np.float32, (4,)))
    with pytest.raises(ArgumentError, match=r"Reshape: no sizes are given; Reshape\(x, \(\)\) makes a scalar"):
        ops.Reshape(x)
    with pytest.raises(ArgumentError, match=r"Iota: it takes a Shape, .*; tuple \(2, 3\) has no element type"):
        ops.Iota(x.builder, (2, 3), 0)
    with pytest.raises(ArgumentError, match="Call: the first argument is the builder, not function Neg"):
        ops.Call(ops.Neg, [x])  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="Conditional: nothing chooses a branch; it takes a predicate"):
        ops.Conditional(branch_computations=[ops.Neg], branch_operands=[x])


def test_methods_are_named_word_by_word() -> None:
    builder = XlaBuilder("names")
    assert hasattr(builder, "approx_top_k") and hasattr(builder, "approx_top_k_fallback")
    assert hasattr(XlaOp, "conv_general_dilated") and hasattr(XlaOp, "all_reduce")
