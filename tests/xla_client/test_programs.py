"""Scripts in the manner of those that were written for the old module."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from tests.xla_client.running import f32, run
from xlapy import ShapeError, xla_client
from xlapy.xla_client import _xla, ops

F32 = np.float32


def parameter(builder: xla_client.XlaBuilder, number: int, value: Any) -> Any:
    return ops.Parameter(builder, number, xla_client.shape_from_pyval(value))


def binary(name: str, function: Any, dtype: Any = F32) -> xla_client.XlaComputation:
    """A computation of two scalars."""
    builder = xla_client.XlaBuilder(name)
    scalar = xla_client.shape_from_pyval(np.array(0, dtype))
    function(ops.Parameter(builder, 0, scalar), ops.Parameter(builder, 1, scalar))
    return builder.build()


def test_constants_and_scalars() -> None:
    builder = xla_client.XlaBuilder("constants")
    ops.Add(ops.Constant(builder, f32([2.5, 3.3])), ops.Constant(builder, F32(1)))
    np.testing.assert_allclose(run(builder)[0], f32([3.5, 4.3]))


def test_a_tutorial_compiler() -> None:
    """A jit of the sort that tutorials write: parameters from abstract values, one translation rule per primitive."""
    builder = xla_client.XlaBuilder("xla_call")
    shape = xla_client.Shape.array_shape(xla_client.dtype_to_etype(np.dtype(F32)), (3,))
    x, y = (ops.Parameter(builder, number, shape) for number in range(2))
    total = ops.Neg(ops.Mul(ops.Sin(x), ops.Constant(builder, np.array(2, F32))))
    inner = xla_client.XlaBuilder("inner")
    argument = ops.Parameter(inner, 0, shape)
    callee = inner.build(ops.Tuple(inner, [ops.Cos(argument), ops.Gt(argument, ops.ConstantLiteral(inner, F32(0)))]))
    called = ops.Call(builder, callee, [y])
    assert [part.dimensions() for part in builder.get_shape(called).tuple_shapes()] == [(3,), (3,)]
    zero = ops.Constant(builder, np.array(0, F32))
    summed = ops.Reduce(builder, [total], [zero], binary("add", ops.Add), [0])
    spread = ops.BroadcastInDim(summed, (3, 2), ())
    out = ops.Tuple(builder, [spread, ops.GetTupleElement(called, 0), ops.GetTupleElement(called, 1)])

    backend = xla_client.get_local_backend("cpu")
    compiled = backend.compile(builder.build(out))
    values = [f32([1, 2, 3]), f32([-1, 0, 1])]
    results = compiled.execute([backend.buffer_from_pyval(value) for value in values])
    np.testing.assert_allclose(np.asarray(results[0]), np.full((3, 2), -(2 * np.sin(values[0])).sum(), F32), rtol=1e-6)
    np.testing.assert_allclose(np.asarray(results[1]), np.cos(values[1]), rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(results[2]), [False, False, True])


def test_dot_general() -> None:
    rng = np.random.default_rng(0)
    lhs, rhs = rng.standard_normal((4, 2, 3)).astype(F32), rng.standard_normal((4, 3, 5)).astype(F32)
    builder = xla_client.XlaBuilder("dot")
    numbers = xla_client.make_dot_dimension_numbers((([2], [1]), ([0], [0])))
    config = xla_client.PrecisionConfig()
    config.operand_precision.extend([config.Precision.HIGHEST] * 2)
    ops.DotGeneral(
        parameter(builder, 0, lhs),
        parameter(builder, 1, rhs),
        numbers,
        precision_config=config,
        preferred_element_type=xla_client.PrimitiveType.F64,
    )
    (result,) = run(builder, lhs, rhs)
    assert result.dtype == np.float64
    np.testing.assert_allclose(result, lhs @ rhs, rtol=1e-4)


def test_convolution() -> None:
    lhs = np.arange(1 * 1 * 3 * 4, dtype=F32).reshape(1, 1, 3, 4)
    rhs = np.arange(1 * 1 * 2 * 2, dtype=F32).reshape(1, 1, 2, 2) * 10
    builder = xla_client.XlaBuilder("conv")
    ops.ConvGeneralDilated(
        ops.Constant(builder, lhs),
        ops.Constant(builder, rhs),
        [1, 1],
        [(0, 0), (0, 0)],
        (1, 1),
        (1, 1),
        xla_client.make_convolution_dimension_numbers(("NCHW", "OIHW", "NCHW"), 2),
    )
    windows = np.lib.stride_tricks.sliding_window_view(lhs[0, 0], (2, 2))
    np.testing.assert_allclose(run(builder)[0][0, 0], (windows * rhs[0, 0]).sum((2, 3)))


def test_windows_and_iota() -> None:
    builder = xla_client.XlaBuilder("window")
    counted = ops.Iota(builder, xla_client.PrimitiveType.F32, 6)
    ops.ReduceWindowWithGeneralPadding(
        counted, ops.Constant(builder, F32(0)), binary("add", ops.Add), (3,), (1,), (), (), [(1, 1)]
    )
    np.testing.assert_array_equal(run(builder)[0], [1, 3, 6, 9, 12, 9])


def test_operands_by_their_old_names() -> None:
    builder = xla_client.XlaBuilder("named")
    counted = ops.Iota(builder, type=xla_client.PrimitiveType.F32, size=4)
    summed = ops.ReduceWindowWithGeneralPadding(
        operand=ops.OptimizationBarrier(arg=counted),
        init_value=ops.Constant(builder, F32(0)),
        computation=binary("add", ops.Add),
        window_dimensions=(2,),
        window_strides=(2,),
        base_dilations=[],
        window_dilations=[],
        padding=[(0, 0)],
    )
    ops.Reshape(summed, new_sizes=(1, 2))
    np.testing.assert_array_equal(run(builder)[0], [[1, 5]])


def test_pad_convert_and_reshape() -> None:
    value = np.arange(6, dtype=np.int32).reshape(2, 3)
    builder = xla_client.XlaBuilder("pad")
    padded = ops.Pad(
        ops.Constant(builder, value),
        ops.Constant(builder, np.int32(9)),
        xla_client.make_padding_config([(0, 1, 0), (1, 0, 0)]),
    )
    ops.ConvertElementType(ops.Reshape(padded, [1, 0], [12]), xla_client.PrimitiveType.F32)
    expected = np.pad(value, ((0, 1), (1, 0)), constant_values=9).T.reshape(12)
    (result,) = run(builder)
    assert result.dtype == F32
    np.testing.assert_array_equal(result, expected)


def test_gather() -> None:
    value = np.arange(9, dtype=np.int32).reshape(3, 3)
    numbers = xla_client.GatherDimensionNumbers()
    numbers.offset_dims.append(1)
    numbers.offset_dims.append(2)
    numbers.start_index_map.extend([0, 1])
    numbers.index_vector_dim = 1
    builder = xla_client.XlaBuilder("gather")
    starts = np.array([[0, 1], [1, 0]], np.int32)
    ops.Gather(ops.Constant(builder, value), ops.Constant(builder, starts), numbers, [1, 1])
    np.testing.assert_array_equal(run(builder)[0].ravel(), [1, 3])


def test_while_and_conditional() -> None:
    shape = xla_client.shape_from_pyval(np.int32(0))
    condition = xla_client.XlaBuilder("condition")
    ops.Lt(ops.Parameter(condition, 0, shape), ops.Constant(condition, np.int32(10)))
    body = xla_client.XlaBuilder("body")
    ops.Mul(ops.Parameter(body, 0, shape), ops.Constant(body, np.int32(2)))
    builder = xla_client.XlaBuilder("loop")
    end = ops.While(condition.build(), body.build(), ops.Constant(builder, np.int32(1)))
    ops.Conditional(
        ops.Gt(end, ops.Constant(builder, np.int32(15))), end, binary_unary(ops.Neg), end, binary_unary(ops.Abs)
    )
    assert run(builder)[0] == -16


def binary_unary(function: Any) -> xla_client.XlaComputation:
    """A computation of one s32 scalar."""
    builder = xla_client.XlaBuilder("branch")
    function(ops.Parameter(builder, 0, xla_client.Shape("s32[]")))
    return builder.build()


def test_map_and_sort() -> None:
    value = f32([3, 1, 2])
    builder = xla_client.XlaBuilder("sorted")
    mapped = ops.Map(builder, [ops.Constant(builder, value)] * 2, binary("mul", ops.Mul), [0])
    ops.Sort(builder, [mapped], dimension=0)
    np.testing.assert_array_equal(run(builder)[0], [1, 4, 9])


def test_custom_call() -> None:
    xla_client.register_custom_call_target(b"test_xla_client_subtract", lambda x, y: x - y, platform="cpu")
    assert "test_xla_client_subtract" in xla_client.custom_call_targets("cpu")
    scalar = xla_client.Shape.array_shape(np.dtype(F32), (), ())
    builder = xla_client.XlaBuilder("custom")
    ops.CustomCallWithLayout(
        builder,
        b"test_xla_client_subtract",
        operands=[ops.Constant(builder, F32(1.25)), ops.Constant(builder, F32(0.5))],
        shape_with_layout=scalar,
        operand_shapes_with_layout=[scalar, scalar],
        api_version=ops.CustomCallApiVersion.API_VERSION_ORIGINAL,
    )
    assert run(builder)[0] == F32(0.75)


def test_infeed_and_outfeed() -> None:
    value = (f32([1, 2]), np.int32(3))
    shape = xla_client.shape_from_pyval(value)
    builder = xla_client.XlaBuilder("feeds")
    fed = ops.InfeedWithToken(ops.CreateToken(builder), shape)
    data, token = ops.GetTupleElement(fed, 0), ops.GetTupleElement(fed, 1)
    ops.OutfeedWithToken(data, token, shape)
    backend = xla_client.make_cpu_client()
    executable = backend.compile(builder.build(ops.Tuple(builder, [])))
    device = backend.local_devices()[0]
    device.transfer_to_infeed(value)
    thread = threading.Thread(target=lambda: executable.execute([]))
    thread.start()
    first, second = device.transfer_from_outfeed(shape)
    thread.join()
    np.testing.assert_array_equal(first, value[0])
    assert second == 3


def test_sharded_over_replicas() -> None:
    builder = xla_client.XlaBuilder("all_reduce")
    x = parameter(builder, 0, f32([0, 0]))
    groups = xla_client.make_replica_groups([[0, 1]])
    total = ops.AllReduce(x, binary("add", ops.Add), groups)
    backend = xla_client.make_cpu_client(num_devices=2)
    options = xla_client.CompileOptions()
    options.num_replicas = 2
    options.device_assignment = xla_client.DeviceAssignment.create([[0], [1]])
    executable = backend.compile(builder.build(ops.Tuple(builder, [total, ops.Neg(x)])), options)
    shards = [
        backend.buffer_from_pyval(f32([number, 1]), device) for number, device in enumerate(executable.local_devices())
    ]
    sums, negated = executable.execute_sharded_on_local_devices([shards])
    for number in range(2):
        np.testing.assert_array_equal(np.asarray(sums[number]), [1, 2])
        np.testing.assert_array_equal(np.asarray(negated[number]), [-number, -1])
        assert sums[number].device() is backend.devices()[number]
    results = executable.execute_sharded([shards], with_tokens=True)
    results.consume_token().block_until_ready()
    assert len(results.disassemble_into_single_device_arrays()) == 2
    with pytest.raises(xla_client.XlaRuntimeError, match="parameter 0 is a list of buffers, one for each device"):
        executable.execute_sharded(shards)


def test_a_loop_of_collectives_that_reuses_its_memory() -> None:
    """As programs that measure communication do it: a while loop of all-reduces whose state is donated."""
    shape = xla_client.Shape("(s32[], f32[2])")
    condition = xla_client.XlaBuilder("condition")
    counter = ops.GetTupleElement(ops.Parameter(condition, 0, shape), 0)
    ops.Lt(counter, ops.Constant(condition, np.int32(3)))
    body = xla_client.XlaBuilder("body")
    state = ops.Parameter(body, 0, shape)
    channel = xla_client.get_local_backend().create_channel_handle()
    reduced = ops.AllReduce(
        ops.GetTupleElement(state, 1),
        binary("add", ops.Add),
        xla_client.make_replica_groups([[0, 1]]),
        channel,
        None,
        True,
    )
    step = ops.Add(ops.GetTupleElement(state, 0), ops.Constant(body, np.int32(1)))
    builder = xla_client.XlaBuilder("measure")
    sharding = xla_client.OpSharding()
    builder.set_sharding(sharding)
    count, value = parameter(builder, 0, np.int32(0)), parameter(builder, 1, f32([0, 0]))
    builder.clear_sharding()
    start = ops.Tuple(builder, [count, value])
    loop = ops.While(condition.build(), body.build(ops.Tuple(body, [step, reduced])), start)
    builder.setup_alias((1,), 1, ())
    computation = builder.build(loop)
    assert "sharding={replicated}" in computation.as_hlo_text()

    backend = xla_client.make_cpu_client(num_devices=2)
    options = xla_client.CompileOptions()
    options.num_partitions = 2
    options.executable_build_options.use_spmd_partitioning = True
    executable = backend.compile(computation, options)
    counts = [backend.buffer_from_pyval(np.int32(0), device) for device in backend.devices()]
    values = [backend.buffer_from_pyval(f32([1, number]), device) for number, device in enumerate(backend.devices())]
    _, results = executable.execute_sharded_on_local_devices([counts, values])
    for result in results:
        np.testing.assert_array_equal(np.asarray(result), [8, 4])


def test_tuple_parameters_take_leaves() -> None:
    value = (f32([1, 2]), np.array([3], np.int32))
    builder = xla_client.XlaBuilder("tuples")
    pair = parameter(builder, 0, value)
    ops.Tuple(builder, [ops.GetTupleElement(pair, 1), ops.GetTupleElement(pair, 0)])
    first, second = run(builder, value)
    np.testing.assert_array_equal(first, [3])
    np.testing.assert_array_equal(second, [1, 2])


def test_from_hlo_text_through_every_form() -> None:
    """Text to module to bytes to computation to MLIR to executable, as simulators do it."""
    text = "HloModule m\n\nENTRY e {\n  p = f32[2]{0} parameter(0)\n  ROOT n = f32[2]{0} negate(p)\n}\n"
    module = _xla.hlo_module_from_text(text)
    computation = xla_client.XlaComputation(module.as_serialized_hlo_module_proto())
    assert computation.name() == "m"
    mlir = _xla.mlir.xla_computation_to_mlir_module(computation)
    assert "stablehlo.negate" in mlir
    executable = xla_client.get_local_backend().compile(mlir)
    (result,) = executable.execute([f32([1, -2])])
    np.testing.assert_array_equal(np.asarray(result), [-1, 2])
    back = _xla.mlir.mlir_module_to_xla_computation(mlir.encode())
    assert repr(back.program_shape().result_shape()) == "f32[2]{0}"


def test_a_computation_prints_and_hashes() -> None:
    first, second = binary("add", ops.Add), binary("plus", ops.Add)
    assert "ENTRY" in first.as_hlo_text() and first.as_hlo_module().name == "add"
    assert first.hash() == second.hash() != binary("mul", ops.Mul).hash()
    assert "%" in first.as_hlo_module().to_string()
    short = first.as_hlo_module().to_string(_xla.HloPrintOptions.short_parsable())
    assert "%" not in short


def test_errors_name_the_line_of_the_script() -> None:
    builder = xla_client.XlaBuilder("wrong")
    with pytest.raises(xla_client.XlaRuntimeError) as caught:
        ops.Add(ops.Constant(builder, np.zeros(4, F32)), ops.Constant(builder, np.zeros(3, F32)))
    assert isinstance(caught.value, ShapeError)
    assert "test_programs.py" in str(caught.value)
    assert "ops.Add(" in str(caught.value)


def test_passes_on_modules() -> None:
    module = _xla.hlo_module_from_text(
        "HloModule m\n\nENTRY e {\n  p = f32[] parameter(0)\n  d = f32[] negate(p)\n  ROOT a = f32[] abs(p)\n}\n"
    )
    dce = _xla.HloDCE()
    assert dce.name == "dce"
    assert dce.run(module) and not dce.run(module)
    assert "negate" not in module.to_string()
    assert _xla.hlo_module_cost_analysis(xla_client.get_local_backend(), module)["flops"] >= 1


def test_the_builder_is_asked() -> None:
    builder = xla_client.XlaBuilder("asked")
    one = ops.Constant(builder, F32(1))
    x = parameter(builder, 0, F32(0))
    assert builder.is_constant(one) and not builder.is_constant(ops.Add(one, x))
    builder.set_op_metadata(xla_client.CurrentSourceInfoMetadata("kind", "name"))
    ops.Neg(x)
    builder.clear_op_metadata()
    assert 'op_name="name"' in builder.Build().as_hlo_module().to_string()
    assert builder.GetProgramShape().parameter_shapes() == [xla_client.Shape("f32[]")]
