"""Clients, devices, buffers and executables."""

from __future__ import annotations

import gc
import gzip
from pathlib import Path

import numpy as np
import pytest

import xlapy
from tests.xla_client.running import f32
from xlapy import ParseError, UnsupportedError, xla_client
from xlapy.support.errors import ArgumentError
from xlapy.xla_client import _xla, ops, xla_bridge


def negation() -> xla_client.XlaComputation:
    builder = xla_client.XlaBuilder("negation")
    ops.Neg(ops.Parameter(builder, 0, xla_client.Shape("f32[2]")))
    return builder.build()


def test_buffers_live_until_deleted() -> None:
    client = xla_client.make_cpu_client()
    first = client.buffer_from_pyval(f32([1, 2]))
    second = client.buffer_from_pyval(f32([3]))
    assert set(client.live_buffers()) == {first, second}
    assert client.devices()[0].live_buffers() == client.live_buffers()
    first.delete()
    assert first.is_deleted() and client.live_buffers() == [second]
    with pytest.raises(ArgumentError, match="deleted"):
        first.block_until_ready()
    del second
    gc.collect()
    assert client.live_buffers() == []


def test_a_buffer_is_a_copy_that_numpy_reads() -> None:
    value = f32([[1, 2]])
    buffer = xla_client.make_cpu_client().buffer_from_pyval(value)
    value[:] = 0
    np.testing.assert_array_equal(buffer.to_py(), [[1, 2]])
    assert (buffer.shape, buffer.dtype, buffer.on_device_size_in_bytes()) == ((1, 2), np.float32, 8)
    assert buffer.xla_shape() == xla_client.Shape("f32[1,2]")
    assert buffer.unsafe_buffer_pointer() == np.asarray(buffer).ctypes.data
    np.testing.assert_array_equal(np.from_dlpack(buffer), [[1, 2]])
    assert not np.asarray(buffer).flags.writeable
    assert np.array(buffer, np.float64).dtype == np.float64


def test_tuples_become_buffers_of_their_parts() -> None:
    client = xla_client.make_cpu_client()
    first, (second,) = client.buffer_from_pyval((np.int32(1), (np.int32(2),)))
    assert (int(np.asarray(first)), int(np.asarray(second))) == (1, 2)


def test_an_executable_tells_of_itself() -> None:
    client = xla_client.make_cpu_client()
    executable = client.compile(negation())
    assert client.live_executables() == [executable]
    assert "negate" in executable.hlo_modules()[0].to_string()
    assert [layout.minor_to_major() for layout in executable.get_parameter_layouts()] == [(0,)]
    assert [layout.to_string() for layout in executable.get_output_layouts()] == ["{0}"]
    assert executable.cost_analysis()["flops"] == 2
    assert executable.size_of_generated_code_in_bytes() > 0
    outputs, token = executable.execute_with_token([f32([1, 2])])
    token.block_until_ready()
    np.testing.assert_array_equal(np.asarray(outputs[0]), [-1, -2])


def test_the_wrong_number_of_buffers_is_refused() -> None:
    executable = xla_client.make_cpu_client().compile(negation())
    with pytest.raises(ArgumentError, match="takes 1 buffer, got 2"):
        executable.execute([f32([1, 2])] * 2)
    with pytest.raises(ArgumentError, match="parameter 0 has 2 buffers"):
        executable.execute_sharded_on_local_devices([[f32([1, 2])] * 2])


def test_devices_are_chosen_by_the_assignment() -> None:
    client = xla_client.make_cpu_client(num_devices=2)
    options = xla_client.CompileOptions()
    options.device_assignment = xla_client.DeviceAssignment.create(np.array([[1]]))
    executable = client.compile(negation(), options)
    assert executable.local_devices() == [client.devices()[1]]
    (result,) = executable.execute([f32([1, 2])])
    assert result.device() is client.devices()[1]
    options.device_assignment = xla_client.DeviceAssignment.create(np.array([[5]]))
    with pytest.raises(ArgumentError, match="2 devices"):
        client.compile(negation(), options)


def test_default_device_assignments() -> None:
    client = xla_client.make_cpu_client(num_devices=4)
    first, second, third, fourth = client.devices()
    assert client.get_default_device_assignment(2) == [first, second]
    assert client.get_default_device_assignment(2, 2) == [[first, second], [third, fourth]]
    with pytest.raises(ArgumentError, match="5 devices"):
        client.get_default_device_assignment(5)


def test_programs_of_other_forms() -> None:
    client = xla_client.make_cpu_client()
    mlir = xla_client._xla.mlir.xla_computation_to_mlir_module(negation())
    for source in (mlir, mlir.encode(), negation().as_hlo_module()):
        (result,) = client.compile(source).execute([f32([1, 2])])
        np.testing.assert_array_equal(np.asarray(result), [-1, -2])


def test_what_cannot_be_says_so() -> None:
    client = xla_client.make_cpu_client()
    with pytest.raises(ParseError, match="no module in MLIR's binary form"):
        client.compile(b"ML\xefR\x01")
    with pytest.raises(ArgumentError, match="is a builder; what its build"):
        client.compile(xla_client.XlaBuilder("unbuilt"))
    with pytest.raises(ArgumentError, match="'NCHX' does not have each of N, C, H, W once"):
        xla_client.make_convolution_dimension_numbers(("NCHX", "OIHW", "NCHW"), 2)
    with pytest.raises(ParseError, match="no ModuleProto"):
        xla_client.XlaComputation(b"\x0a\x01m\xff")
    with pytest.raises(UnsupportedError, match="backend 'gpu'"):
        xla_client.get_local_backend("gpu")
    with pytest.raises(UnsupportedError, match="emit_stable_hlo"):
        xla_client._xla.mlir.xla_computation_to_mlir_module(negation(), emit_stable_hlo=False)
    with pytest.raises(UnsupportedError, match="plugin"):
        xla_client.load_pjrt_plugin_dynamically("other", "library")


def test_channels_are_numbered() -> None:
    client = xla_client.make_cpu_client()
    handles = [client.create_channel_handle(), client.create_device_to_host_channel_handle()]
    assert len({handle.handle for handle in handles}) == 2


def test_unknown_op_functions_are_named() -> None:
    with pytest.raises(AttributeError, match="Frobnicate"):
        ops.Frobnicate  # noqa: B018 - looking it up is the test
    with pytest.raises(AttributeError, match=r"no 'Sigmoid': that is ops.Logistic\(x\)"):
        ops.Sigmoid  # noqa: B018 - looking it up is the test


@pytest.mark.parametrize("opaque", [bytes(range(256)), b'{"a": 1}', "größe".encode()])
def test_opaque_bytes_reach_their_target(opaque: bytes) -> None:
    seen = []

    def target(x: np.ndarray, opaque: bytes) -> np.ndarray:
        seen.append(opaque)
        return x

    name = f"opaque {opaque.hex()}"
    xla_client.register_custom_call_target(name, target)
    builder = xla_client.XlaBuilder("opaque")
    x = ops.Parameter(builder, 0, xla_client.Shape("f32[2]"))
    version = ops.CustomCallApiVersion.API_VERSION_STATUS_RETURNING
    ops.CustomCall(builder, name.encode(), [x], xla_client.Shape("f32[2]"), opaque, api_version=version)
    computation = builder.build()
    again = xla_client.XlaComputation(computation.as_serialized_hlo_module_proto())
    mlir = xla_client._xla.mlir.xla_computation_to_mlir_module(computation)
    for source in (computation, again, mlir):
        xla_client.make_cpu_client().compile(source).execute([f32([1, 2])])
    assert seen == [opaque] * 3


# -- the names around them -----------------------------------------------------------------------------------------


def test_an_executable_tells_of_its_memory_and_shardings() -> None:
    client = xla_client.make_cpu_client()
    executable = client.compile(negation())
    stats = executable.get_compiled_memory_stats()
    assert (stats.argument_size_in_bytes, stats.output_size_in_bytes) == (8, 8)
    assert stats.generated_code_size_in_bytes > 0
    assert executable.get_parameter_shardings() is executable.get_output_shardings() is None
    assert executable.get_output_memory_kinds() == [["unpinned_host"]]
    assert executable.fingerprint == client.compile(negation()).fingerprint
    text = "ENTRY e { ROOT p = f32[2] parameter(0), sharding={devices=[2]<=[2]} }"
    (sharding,) = client.compile(xla_client._xla.hlo_module_from_text(text)).get_parameter_shardings() or ()
    assert str(sharding) == "{devices=[2]<=[2]}"


def test_several_devices_give_tokens_of_their_own() -> None:
    client = xla_client.make_cpu_client(num_devices=2)
    options = xla_client.CompileOptions()
    options.num_replicas = 2
    executable = client.compile(negation(), options)
    shards = [[f32([1, 2]), f32([3, 4])]]
    results = executable.execute_sharded(shards, with_tokens=True)
    results.consume_token().get_token(1).block_until_ready()
    assert len(results) == 1
    (handled,) = results.consume_with_handlers([lambda arrays: [np.asarray(array).tolist() for array in arrays]])
    assert handled == [[-1, -2], [-3, -4]]
    ((first, _),) = results.disassemble_prefix_into_single_device_arrays(1)
    assert first.device() is client.devices()[0] and len(results) == 0


def test_tracebacks_are_recorded_where_wanted() -> None:
    client = xla_client.make_cpu_client()
    assert client.compile(negation()).traceback is None
    with xla_client.tracebacks():
        traceback = client.compile(negation()).traceback
        buffer = client.buffer_from_pyval(f32([1]))
    assert traceback is not None and buffer.traceback is not None
    assert any(frame.file_name == __file__ for frame in traceback.frames)
    assert __file__ in str(traceback)
    assert xla_client.Traceback.get_traceback() is None
    profile = gzip.decompress(xla_client.heap_profile(client))
    assert __file__.encode() in profile and b"CpuDevice(id=0)" in profile


def test_memories_and_lists_of_devices() -> None:
    client = xla_client.make_cpu_client(num_devices=2)
    first, second = client.devices()
    assert first.memory("unpinned_host").kind == first.default_memory().kind == "unpinned_host"
    assert first.addressable_memories()[0].addressable_by_devices() == [first]
    with pytest.raises(ArgumentError, match="no memory of the kind 'device'"):
        first.memory("device")
    devices = xla_client.DeviceList([first, second])
    assert devices == xla_client.DeviceList(client.devices()) and len(devices) == 2
    assert (devices[1], devices.memory_kinds, hash(devices)) == (second, ("unpinned_host",), hash((first, second)))
    assert client.topology().platform == "cpu"
    assert client.device_from_local_hardware_id(1) is second


def test_modules_show_what_they_hold(tmp_path: Path) -> None:
    module = negation().as_hlo_module()
    (computation,) = module.computations()
    parameter, root = computation.instructions()
    assert (root.opcode, root.shape, root.operands(), parameter.users()) == (
        "negate",
        xla_client.Shape("f32[2]"),
        [parameter],
        [root],
    )
    assert "negate" in root.to_string() and "negate" in computation.to_string()
    root.set_frontend_attribute("key", "value")
    assert root.get_frontend_attribute("key") == "value" and root.get_frontend_attribute("other") is None
    assert 'frontend_attributes={key="value"}' in module.to_string()
    computation.render_html(str(tmp_path / "page.html"))
    assert "negate" in (tmp_path / "page.html").read_text()
    assert "digraph" in negation().as_hlo_dot_graph()
    assert xla_client._xla.hlo_module_to_dot_graph(module).startswith("digraph")
    assert [one.name for one in module.make_nonfusion_computations()] == [computation.name]


def test_a_module_may_change_behind_its_executable() -> None:
    """What was compiled is what is serialized, whatever passes do to the module later."""
    client = xla_client.make_cpu_client()
    module = negation().as_hlo_module()
    executable = client.compile(module)
    module.computations()[0].instructions()[1].set_frontend_attribute("later", "x")
    assert b"later" not in client.serialize_executable(executable)


def test_the_profiler_is_there_in_name() -> None:
    with xla_client.profiler.TraceMe("step", number=1) as trace:
        trace.set_metadata(size=2)
    assert trace.duration >= 0 and trace.metadata == {"number": 1, "size": 2}
    with pytest.raises(UnsupportedError, match="traces"):
        xla_client.profiler.ProfilerSession()
    with pytest.raises(UnsupportedError, match="profiler"):
        xla_client.profiler.start_server(1)


def test_programs_of_the_other_interface_are_compiled() -> None:
    builder = xlapy.XlaBuilder("twice")
    program = builder.build(2 * builder.parameter(0, xlapy.Shape.array(np.float32, (2,))))
    client = xla_client.make_cpu_client()
    for form in (program, program.module):
        (result,) = client.compile(form).execute([client.buffer_from_pyval(np.ones(2, np.float32))])
        assert np.asarray(result).tolist() == [2, 2]


def test_capsules_of_dlpack() -> None:
    backend = xla_client.make_cpu_client()
    device = backend.devices()[0]
    given = np.arange(4, dtype=np.float32)
    from_device = _xla.dlpack_managed_tensor_to_buffer(given.__dlpack__(), device)
    assert from_device.unsafe_buffer_pointer() == given.ctypes.data  # shared, not copied
    assert from_device.device() is device
    kept = backend.buffer_from_pyval(given)
    again = _xla.dlpack_managed_tensor_to_buffer(_xla.buffer_to_dlpack_managed_tensor(kept), backend, None)
    np.testing.assert_array_equal(np.asarray(again), given)
    assert not kept.is_deleted()
    _xla.buffer_to_dlpack_managed_tensor(kept, take_ownership=True)
    assert kept.is_deleted()


def test_the_old_bridge() -> None:
    backend = xla_bridge.get_backend("cpu")
    assert backend is xla_client.get_local_backend() and xla_bridge.get_backend(backend) is backend
    assert (xla_bridge.device_count(), xla_bridge.process_index(), xla_bridge.default_backend()) == (1, 0, "cpu")
    assert xla_bridge.devices() == xla_bridge.local_devices() == list(xla_bridge.backends()["cpu"].devices())
    with pytest.raises(UnsupportedError, match="no backend 'gpu'"):
        xla_bridge.get_backend("gpu")
    builder = xla_client.XlaBuilder("bridge")
    x = xla_bridge.parameter(builder, 0, xla_client.Shape.array_shape(xla_bridge.dtype_to_etype(np.float32), (2,)), "x")
    program = builder.build(xla_client.ops.AllGather(x + xla_bridge.constant(builder, np.float32(2)), 0, 2))
    client = xla_client.make_cpu_client(num_devices=2)
    options = xla_bridge.get_compile_options(num_replicas=2, num_partitions=1, device_assignment=[1, 0])
    executable = client.compile(program, options)
    assert [device.id for device in executable.local_devices()] == [1, 0]
    parts = [client.buffer_from_pyval(np.full(2, n, np.float32), client.devices()[1 - n]) for n in range(2)]
    ((first, second),) = executable.execute_sharded_on_local_devices([parts])
    for result in (first, second):
        assert np.asarray(result).tolist() == [2, 2, 3, 3]
