"""Clients, devices, buffers and executables."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from tests.xla_client.running import f32
from xlapy import ParseError, UnsupportedError, xla_client
from xlapy.support.errors import ArgumentError
from xlapy.xla_client import ops


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
    with pytest.raises(ArgumentError, match="takes 1 buffers, got 2"):
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
