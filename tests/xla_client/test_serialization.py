"""Programs, options and executables as bytes."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import jaxlib._jax as jaxlib_extension
import numpy as np
import pytest

import xlapy
from tests.xla_client.running import f32
from xlapy import ParseError, UnsupportedError, XlaError, xla_client
from xlapy.stablehlo import bytecode
from xlapy.stablehlo.bytecode import portable_artifact, text_of_bytecode
from xlapy.xla_client import _xla, ops

ROOT = Path(__file__).resolve().parents[2]


def axpy() -> xla_client.XlaComputation:
    builder = xla_client.XlaBuilder("axpy")
    shape = xla_client.Shape("f32[4]")
    x, y = (ops.Parameter(builder, number, shape) for number in range(2))
    ops.Add(ops.Mul(x, ops.Constant(builder, f32([1, 2, 3, 4]))), y)
    return builder.build()


ARGUMENTS = (f32([1, 1, 1, 1]), f32([0, 1, 0, 1]))
RESULT = f32([1, 3, 3, 5])


def ran(executable: xla_client.LoadedExecutable) -> np.ndarray:
    return np.asarray(executable.execute(ARGUMENTS)[0])


# -- programs ------------------------------------------------------------------------------------------------------


def test_computations_come_back() -> None:
    original = axpy()
    again = xla_client.XlaComputation(original.as_serialized_hlo_module_proto())
    assert again.as_hlo_text(True) == original.as_hlo_text(True)
    assert (again.hash(), again.name()) == (original.hash(), original.name())
    assert repr(again.program_shape()) == repr(original.program_shape())
    np.testing.assert_array_equal(ran(xla_client.make_cpu_client().compile(again)), RESULT)


def test_modules_come_back() -> None:
    module = axpy().as_hlo_module()
    again = xla_client.HloModule.from_serialized_hlo_module_proto(module.as_serialized_hlo_module_proto())
    assert again.to_string() == module.to_string()


def test_xlapy_itself_takes_computations_and_bytes() -> None:
    computation = axpy()
    mlir = _xla.mlir.xla_computation_to_mlir_module(computation)
    sources = (
        computation,
        computation.as_hlo_module(),
        computation.as_serialized_hlo_module_proto(),
        computation.as_hlo_text(True).encode(),
        mlir.encode(),
    )
    for source in sources:
        np.testing.assert_array_equal(xlapy.compile(source)(*ARGUMENTS), RESULT)
        np.testing.assert_array_equal(xlapy.evaluate(source, *ARGUMENTS), RESULT)
        assert xlapy.load(source).entry.root.opcode == "add"


@pytest.mark.parametrize("source", [b"\xff\xfe", 3, object(), b"\x00\x01", b""])
def test_what_is_no_program_says_so(source: object) -> None:
    with pytest.raises(ParseError):
        xlapy.load(source)  # type: ignore[arg-type]


# -- MLIR ----------------------------------------------------------------------------------------------------------


def test_bytecode_is_compiled() -> None:
    jax = pytest.importorskip("jax")
    lowered = jax.jit(lambda x, y: x * f32([1, 2, 3, 4]) + y).lower(*ARGUMENTS)
    from xlapy.stablehlo.bytecode import bytecode_of_text

    bytecode = bytecode_of_text(lowered.as_text())
    np.testing.assert_array_equal(ran(xla_client.make_cpu_client().compile(bytecode)), RESULT)
    np.testing.assert_array_equal(xlapy.evaluate(bytecode, *ARGUMENTS), RESULT)
    computation = _xla.mlir.mlir_module_to_xla_computation(bytecode)
    assert len(computation.program_shape().parameter_shapes()) == 2


def test_portable_artifacts_go_both_ways() -> None:
    mlir = _xla.mlir.xla_computation_to_mlir_module(axpy())
    artifact = _xla.mlir.serialize_portable_artifact(mlir, "1.0.0")
    assert b"StableHLO_v1.0.0" in artifact
    text = _xla.mlir.deserialize_portable_artifact(artifact)
    assert "stablehlo.multiply" in text
    for source in (artifact, text):
        np.testing.assert_array_equal(ran(xla_client.make_cpu_client().compile(source)), RESULT)
    with pytest.raises(UnsupportedError, match=r"'999\.0\.0', of which jaxlib has"):
        _xla.mlir.serialize_portable_artifact(mlir, "999.0.0")
    with pytest.raises(ParseError, match="MLIR does not read"):
        _xla.mlir.serialize_portable_artifact("module {", "1.0.0")
    with pytest.raises(ParseError, match="no portable artifact"):
        _xla.mlir.deserialize_portable_artifact(b"text")
    with pytest.raises(ParseError, match="no module in MLIR's binary form"):
        _xla.mlir.deserialize_portable_artifact(artifact[:60])


def test_damaged_bytes_are_refused_though_what_is_said_of_them_is_no_text() -> None:
    """jaxlib alone would end the process where its message quotes a name that is not UTF-8."""
    mlir = _xla.mlir.xla_computation_to_mlir_module(axpy())
    original = _xla.mlir.serialize_portable_artifact(mlir, "1.0.0")
    for name in (b"multiply_v1", b"func_v1"):
        damaged = original.replace(name, b"\xff" * len(name))
        assert damaged != original
        for source in (damaged, damaged.replace(b"StableHLO_v1", b"AnotherOne_v1")):
            with pytest.raises(ParseError, match="no module in MLIR's binary form"):
                xlapy.load(source)


@pytest.mark.parametrize("data", [b"ML\xefR\rStableHLO_v1.0.0\0", b"ML\xefR\rMLIR22\0"], ids=["artifact", "bytecode"])
def test_what_jaxlib_does_not_survive_is_refused(data: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What damaged modules do to its memory differs; here an abort stands for that."""
    library = tmp_path / "jaxlib.py"
    monkeypatch.syspath_prepend(tmp_path)
    library.write_text("import os, sys; print('LLVM ERROR: oh', file=sys.stderr, flush=True); os.abort()")
    with pytest.raises(ParseError, match=r"jaxlib does not survive reading them \(LLVM ERROR: oh\)"):
        xlapy.load(data)
    library.write_text("raise ImportError")
    with pytest.raises(UnsupportedError, match=r"pip install 'xlapy\[jax\]'"):
        xlapy.load(data)


def test_what_jaxlib_reads_for_ever_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(bytecode, "_PATIENCE", 0.2)
    (tmp_path / "jaxlib.py").write_text("import time; time.sleep(600)")
    with pytest.raises(ParseError, match="jaxlib was not done with them in 0 s"):
        xlapy.load(b"ML\xefR\rMLIR22\0")


def test_modules_are_read_where_python_is_part_of_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which cannot be started again."""
    monkeypatch.setattr(sys, "executable", "")
    text = "func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }"
    for data in (portable_artifact(text, "1.0.0"), bytecode.bytecode_of_text(text)):
        assert "@main" in text_of_bytecode(data)


def test_both_readers_know_the_same_dialects() -> None:
    """One of them without JAX, which would know what it needs."""
    known = [library()[2].dialects for library in (bytecode._library, bytecode._library_without_jax)]
    for name in ("arith", "builtin", "cf", "chlo", "func", "math", "mhlo", "mpmd", "sdy", "stablehlo", "vector"):
        assert [dialects[name].descriptor.namespace for dialects in known] == [name, name]


@pytest.mark.parametrize("error", [ImportError, AttributeError])
def test_a_jaxlib_with_other_dialects_is_asked_through_jax(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def other_version() -> None:
        raise error

    text = "func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }"
    data = bytecode.bytecode_of_text(text)
    monkeypatch.setattr(bytecode, "_library_without_jax", other_version)
    assert "@main" in bytecode._text(data, *bytecode._library_of_reader())


def test_without_jaxlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "")  # so that no other process looks for it
    monkeypatch.setitem(sys.modules, "jaxlib.mlir", None)
    monkeypatch.setitem(sys.modules, "jax.interpreters", None)
    with pytest.raises(UnsupportedError, match=r"pip install 'xlapy\[jax\]'"):
        xla_client.make_cpu_client().compile(b"ML\xefR\x00")


def test_arguments_and_results_in_tuples() -> None:
    mlir = _xla.mlir.xla_computation_to_mlir_module(axpy())
    computation = _xla.mlir.mlir_module_to_xla_computation(mlir, use_tuple_args=True, return_tuple=True)
    shape = computation.program_shape()
    assert [repr(parameter) for parameter in shape.parameter_shapes()] == ["(f32[4]{0}, f32[4]{0})"]
    assert repr(shape.result_shape()) == "(f32[4]{0})"
    np.testing.assert_array_equal(ran(xla_client.make_cpu_client().compile(computation)), RESULT)


def test_shapes_are_refined() -> None:
    mlir = _xla.mlir.xla_computation_to_mlir_module(axpy())
    assert "multiply" in _xla.mlir.refine_polymorphic_shapes(mlir.encode())


# -- options -------------------------------------------------------------------------------------------------------


def some_options() -> xla_client.CompileOptions:
    options = xla_client.CompileOptions()
    options.num_replicas = 2
    options.device_assignment = xla_client.DeviceAssignment.create(np.array([[3], [1]]))
    options.argument_layouts = [xla_client.Shape("f32[2,3]{0,1}")]
    options.tuple_arguments = True
    options.env_option_overrides = [("a", True), ("b", 7), ("c", "text"), ("d", 0.5)]
    nested = options.executable_build_options
    nested.debug_options.xla_cpu_enable_fast_math = True
    nested.debug_options.xla_disable_hlo_passes = "dce,cse"
    nested.allow_spmd_sharding_propagation_to_output = (True, False)
    nested.fdo_profile = b"\x00\xff"
    nested.result_layout = xla_client.Shape("f32[2]")
    return options


def test_options_come_back() -> None:
    options = some_options()
    again = xla_client.CompileOptions.ParseFromString(options.SerializeAsString())
    assert again == options
    assert again.xlapy_options() == options.xlapy_options()
    default = xla_client.CompileOptions()
    assert xla_client.CompileOptions.ParseFromString(default.SerializeAsString()) == default


def test_xla_reads_our_options_and_we_read_its() -> None:
    theirs = jaxlib_extension.CompileOptions.ParseFromString(some_options().SerializeAsString())
    assert (theirs.num_replicas, theirs.num_partitions) == (2, 1)
    assert theirs.parameter_is_tupled_arguments
    assert theirs.executable_build_options.debug_options.xla_cpu_enable_fast_math
    assert theirs.executable_build_options.fdo_profile == b"\x00\xff"
    assert dict(theirs.env_option_overrides) == {"a": True, "b": 7, "c": "text", "d": 0.5}
    written = jaxlib_extension.CompileOptions()
    written.num_replicas = 3
    written.executable_build_options.debug_options.xla_cpu_enable_fast_math = True
    written.executable_build_options.debug_options.xla_dump_hlo_pass_re = "fusion"
    mine = xla_client.CompileOptions.ParseFromString(written.SerializeAsString())
    assert mine.num_replicas == 3
    assert mine.executable_build_options.debug_options.xla_cpu_enable_fast_math
    assert mine.executable_build_options.debug_options.xla_dump_hlo_pass_re == "fusion"


@pytest.mark.parametrize("ids", [[[0]], [[0, 1], [2, 3], [5, 4]]])
def test_device_assignments_are_xlas(ids: object) -> None:
    array = np.array(ids)
    assignment = xla_client.DeviceAssignment.create(array)
    assert assignment.serialize() == jaxlib_extension.DeviceAssignment.create(array.astype(np.int32)).serialize()
    assert xla_client.DeviceAssignment.deserialize(assignment.serialize()) == assignment


def test_wrong_options_are_refused() -> None:
    with pytest.raises(ParseError, match="lists others"):
        xla_client.DeviceAssignment.deserialize(b"\x08\x02\x10\x01")
    with pytest.raises(ParseError, match="CompileOptionsProto"):
        xla_client.CompileOptions.ParseFromString(b"\x1a\x7f")


# -- executables ---------------------------------------------------------------------------------------------------


def test_executables_come_back() -> None:
    client = xla_client.make_cpu_client()
    executable = client.compile(axpy())
    serialized = client.serialize_executable(executable)
    again = client.deserialize_executable(serialized)
    np.testing.assert_array_equal(ran(again), RESULT)
    assert again.fingerprint == executable.fingerprint
    assert client.serialize_executable(again) == serialized


def test_executables_keep_their_options_unless_there_are_others() -> None:
    client = xla_client.make_cpu_client(num_devices=2)
    options = xla_client.CompileOptions()
    options.device_assignment = xla_client.DeviceAssignment.create([[1]])
    serialized = client.serialize_executable(client.compile(axpy(), options))
    assert client.deserialize_executable(serialized).local_devices() == [client.devices()[1]]
    other = client.deserialize_executable(serialized, xla_client.CompileOptions())
    assert other.local_devices() == [client.devices()[0]]


def test_the_grid_of_a_text_is_kept() -> None:
    client = xla_client.make_cpu_client(num_devices=2)
    text = "HloModule two, replica_count=2\nENTRY e { ROOT r = u32[] replica-id() }"
    options = xla_client.CompileOptions()
    options.num_replicas = 2
    again = client.deserialize_executable(client.serialize_executable(client.compile(text, options)))
    ((first, second),) = again.execute_sharded_on_local_devices([])
    assert (int(np.asarray(first)), int(np.asarray(second))) == (0, 1)


def test_another_process_reads_executables(tmp_path: Path) -> None:
    client = xla_client.make_cpu_client()
    file = tmp_path / "executable"
    file.write_bytes(client.serialize_executable(client.compile(axpy())))
    script = (
        "import sys, numpy as np; from xlapy import xla_client; client = xla_client.make_cpu_client(); "
        "executable = client.deserialize_executable(open(sys.argv[1], 'rb').read()); "
        "print(np.asarray(executable.execute([np.ones(4, np.float32)] * 2)[0]).tolist())"
    )
    path = {"PYTHONPATH": f"{ROOT}:{ROOT / 'runtime'}"}
    done = subprocess.run(
        [sys.executable, "-c", script, str(file)], env=path, capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == "[2.0, 3.0, 4.0, 5.0]"


def test_damaged_executables_are_refused() -> None:
    client = xla_client.make_cpu_client()
    serialized = client.serialize_executable(client.compile(axpy()))
    with pytest.raises(ParseError, match="not an executable"):
        client.deserialize_executable(b"something else")
    with pytest.raises(ParseError, match="checksum"):
        client.deserialize_executable(serialized[:-1] + bytes([serialized[-1] ^ 1]))
    generator = random.Random(0)
    for _ in range(50):
        data = bytearray(serialized)
        data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
        with pytest.raises(XlaError):
            client.deserialize_executable(bytes(data))
