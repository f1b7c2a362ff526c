"""What JAX tells about compiled programs, and programs that it keeps."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import serialize_executable
from jax.experimental.layout import Format, Layout
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import xlapy.pjrt
from xlapy.pjrt.abi import FUNCTIONS
from xlapy.pjrt.native import native
from xlapy.pjrt.table import Callback

xlapy.pjrt.register()


def test_compiled_programs_tell_what_they_are() -> None:
    compiled = jax.jit(lambda x: jnp.tanh(x @ x) + 1).lower(jnp.ones((8, 8))).compile()
    text = compiled.as_text()
    assert "ENTRY" in text and "fusion" in text and "f32[8,8]" in text
    costs = compiled.cost_analysis()
    assert costs["flops"] >= 2 * 8**3 and costs["bytes accessed"] >= 512
    memory = compiled.memory_analysis()
    assert (memory.argument_size_in_bytes, memory.output_size_in_bytes) == (256, 256)
    assert memory.generated_code_size_in_bytes > 0
    large = jax.jit(lambda x: x + np.arange(1000.0, dtype=np.float32)).lower(jnp.ones(1000)).compile()
    assert "add" in large.as_text()


def test_the_device_counts_its_memory() -> None:
    (device,) = jax.devices()
    before = device.memory_stats()["bytes_in_use"]
    kept = jax.jit(lambda: jnp.ones(1000))()
    stats = device.memory_stats()
    assert stats["bytes_in_use"] == before + kept.nbytes
    assert stats["peak_bytes_in_use"] >= stats["bytes_in_use"]


def test_layouts_are_those_of_numpy() -> None:
    array = jnp.ones((3, 4))
    compiled = jax.jit(lambda x: x.T).lower(array).compile()
    ((given,), _), made = compiled.input_formats, compiled.output_formats
    assert array.format.layout.major_to_minor == given.layout.major_to_minor == made.layout.major_to_minor == (0, 1)
    assert jax.device_put(array, Format(Layout((0, 1)), array.sharding)).tolist() == array.tolist()


def test_compiled_programs_are_kept(tmp_path: Path) -> None:
    compiled = jax.jit(lambda x: x * 2).lower(jnp.ones(3)).compile()
    again = serialize_executable.deserialize_and_load(*serialize_executable.serialize(compiled))
    assert again(jnp.ones(3)).tolist() == [2, 2, 2]
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    for _ in range(2):
        assert jax.jit(lambda x: x * 7)(2.0) == 14
        jax.clear_caches()
    assert [path for path in tmp_path.iterdir() if path.name.startswith("jit_")]


def test_meshes_of_one_device() -> None:
    mesh = jax.make_mesh((1,), ("x",), axis_types=(AxisType.Auto,))
    rows = NamedSharding(mesh, PartitionSpec("x"))
    doubled = jax.jit(lambda x: x * 2, in_shardings=rows, out_shardings=rows)(jnp.arange(4.0))
    assert doubled.sharding == rows and doubled.tolist() == [0, 2, 4, 6]
    total = jax.shard_map(lambda x: jax.lax.psum(x, "x"), mesh=mesh, in_specs=PartitionSpec("x"), out_specs=rows.spec)
    assert total(jnp.arange(4.0)).tolist() == [0, 1, 2, 3]
    assert jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")(jnp.ones((1, 3))).tolist() == [[1, 1, 1]]


def test_what_is_called_often_needs_no_python() -> None:
    """Functions of the API that Python does are in a table; here they note that they were called."""
    table = (ctypes.c_void_p * len(FUNCTIONS)).from_address(native().record.python)
    before, called = list(table), []

    def noting(name: str, address: int | None) -> Any:
        function = Callback(address)
        return Callback(lambda arguments: called.append(name) or function(arguments))

    x, given, key = jnp.ones(4), np.ones(4, np.float32), jax.random.key(0)
    step = jax.jit(lambda x, y: x + y)
    other = jax.jit(lambda x: x + 1, donate_argnums=0)

    def often() -> None:
        np.asarray(step(x, given))
        other(jnp.array(given) * 2)
        float(x[0])
        (x + 1).tolist()
        jax.device_get(jax.random.split(key))
        jax.device_put(given).delete()

    often()
    noted = [noting(name, address) for name, address in zip(FUNCTIONS, before, strict=True)]
    try:
        table[:] = [ctypes.cast(function, ctypes.c_void_p).value for function in noted]
        often()
        jax.device_put(np.ones((2, 3), np.float32).T)
    finally:
        table[:] = before
    assert called == ["PJRT_Client_BufferFromHostBuffer"]
