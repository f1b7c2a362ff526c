"""Whose memory arrays lie in, and for how long."""

from __future__ import annotations

import gc
import os
import resource
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xlapy
import xlapy.pjrt
from xlapy.pjrt.native import native

xlapy.pjrt.register()

PAGE_BYTES = resource.getpagesize()


def aligned(count: int) -> np.ndarray:
    """An array that begins on a cache line, as those do that may be shared."""
    memory = np.empty(count + 16, np.float32)
    skipped = -memory.ctypes.data % 64 // 4
    return memory[skipped : skipped + count]


def resident_bytes() -> int:
    with open(f"/proc/{os.getpid()}/statm") as status:
        return int(status.read().split()[1]) * PAGE_BYTES


@pytest.mark.parametrize("size", [4, 100_000])
def test_a_donated_array_becomes_the_result(size: int) -> None:
    step = jax.jit(lambda x, y: x + y, donate_argnums=0)
    x = jnp.ones(size)
    place = x.unsafe_buffer_pointer()
    result = step(x, jnp.ones(size))
    assert x.is_deleted()
    assert result.unsafe_buffer_pointer() == place
    assert (np.asarray(result) == 2).all()
    with pytest.raises(RuntimeError, match="deleted"):
        x + 1


def test_what_others_look_at_is_not_written_over() -> None:
    step = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = jnp.ones(100)
    seen = np.asarray(x)
    result = step(x)
    assert x.is_deleted()
    assert (seen == 1).all() and (np.asarray(result) == 2).all()


def test_an_array_of_numpy_is_not_donated() -> None:
    given = aligned(100_000)
    given[:] = 1
    result = jax.jit(lambda x: x + 1, donate_argnums=0)(given)
    assert (given == 1).all() and (np.asarray(result) == 2).all()


def test_a_chain_of_donations_needs_no_memory() -> None:
    step = jax.jit(lambda x: x * 0.5 + 1, donate_argnums=0)
    x = jnp.zeros(1000)
    place = x.unsafe_buffer_pointer()
    for _ in range(100):
        x = step(x)
    assert x.unsafe_buffer_pointer() == place
    np.testing.assert_allclose(x, 2, rtol=1e-6)


def test_copies_do_not_change_with_their_source() -> None:
    for size in (4, 10_000, 1_000_000):
        given = aligned(size)
        given[:] = 1
        copy, function = jnp.array(given), jax.jit(lambda x: x * 2)
        doubled = function(given)
        given[:] = 5
        assert (np.asarray(copy) == 1).all() and (np.asarray(doubled) == 2).all()
        assert (np.asarray(function(given)) == 10).all()


def test_results_reach_numpy_without_a_copy() -> None:
    result = jax.jit(lambda x: x + 1)(jnp.zeros(1000))
    place = result.unsafe_buffer_pointer()
    array = np.asarray(result)
    assert array.ctypes.data == place and not array.flags.writeable
    del result
    gc.collect()
    others = [jnp.full(1000, 7.0) for _ in range(10)]
    assert (array == 1).all() and len(others) == 10


def test_arrays_outlive_their_deletion_where_numpy_has_them() -> None:
    result = jnp.full(1000, 3.0)
    array = np.asarray(result)
    result.delete()
    others = [jnp.full(1000, 7.0) for _ in range(10)]
    assert (array == 3).all() and len(others) == 10


def test_arrays_are_exchanged_with_other_libraries() -> None:
    array = jnp.arange(5.0)
    assert np.from_dlpack(array).tolist() == [0, 1, 2, 3, 4]
    given = np.arange(5, dtype=np.float32)
    taken = jnp.from_dlpack(given)
    assert taken.tolist() == [0, 1, 2, 3, 4]
    del given
    gc.collect()
    assert (taken + 1).tolist() == [1, 2, 3, 4, 5]


def test_memory_comes_back() -> None:
    """Ten thousand results of 100 KB would be a gigabyte."""
    function = jax.jit(lambda x: x + 1)
    x = np.zeros(25_000, np.float32)
    kept = function(x)
    before = resident_bytes()
    for _ in range(10_000):
        kept = function(kept)
    for _ in range(300):
        function(x)
    assert (np.asarray(kept) == 10_001).all()
    assert resident_bytes() - before < 100 << 20


def test_large_results_are_given_back() -> None:
    function = jax.jit(lambda x: jnp.broadcast_to(x, (64, 1 << 18)) + 1)
    gc.collect()
    record = native().record
    before = record.bytes_in_use
    results = [function(float(number)) for number in range(3)]
    assert [float(result[3, 5]) for result in results] == [1, 2, 3]
    assert record.bytes_in_use - before == sum(result.nbytes for result in results)
    del results
    gc.collect()
    assert record.bytes_in_use == before
    assert 0 < record.idle_bytes <= record.limit_bytes
    xlapy.trim()
    assert record.idle_bytes == 0


def test_many_threads_run_and_drop_the_same_arrays() -> None:
    function = jax.jit(lambda x, y: (x + y, x.sum()))
    shared = jnp.arange(1000.0)
    totals: list[float] = []

    def work(start: int) -> None:
        x = shared
        for _ in range(200):
            x, total = function(x, shared * 0 + start)
        totals.append(float(total) + float(x[0]))

    threads = [threading.Thread(target=work, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(totals) == [499_500 + 1000 * 199 * start + 200 * start for start in range(4)]


def test_other_kinds_of_memory() -> None:
    (device,) = jax.devices()
    assert {memory.kind for memory in device.addressable_memories()} == {"device", "pinned_host", "unpinned_host"}
    place = jax.sharding.SingleDeviceSharding(device, memory_kind="pinned_host")
    array = jax.device_put(jnp.ones(3), place)
    assert array.sharding.memory_kind == "pinned_host"
    assert array.tolist() == [1, 1, 1]


def test_arrays_are_counted() -> None:
    array = jnp.ones(3)
    assert any(live is array for live in jax.live_arrays())
    assert array.block_until_ready() is array
    jax.block_until_ready({"a": array})
    assert array.is_ready()


def test_programs_are_dropped_with_their_functions() -> None:
    for number in range(5):
        assert jax.jit(lambda x, number=number: x * number)(2.0) == 2 * number
    jax.clear_caches()
    assert jax.jit(lambda x: x * 3)(2.0) == 6


def test_results_in_other_kinds_of_memory() -> None:
    (device,) = jax.devices()
    place = jax.sharding.SingleDeviceSharding(device, memory_kind="pinned_host")
    moved = jax.jit(lambda x: (x * 2, x + 1), out_shardings=(place, None))(3.0)
    assert [array.sharding.memory_kind for array in moved] == ["pinned_host", "device"]
    back = jax.jit(lambda x: jax.device_put(x, jax.memory.Space.Device) + 1)(moved[0])
    assert back == 7 and back.sharding.memory_kind == "device"


def test_too_much_memory_is_refused() -> None:
    """Of results, and of copies of the host's arrays."""
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"RESOURCE_EXHAUSTED.*no memory"):
        jnp.zeros(1 << 46, jnp.uint8)
    endless = np.broadcast_to(np.uint8(1), (1 << 23, 1 << 23))
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"RESOURCE_EXHAUSTED.*no memory"):
        jax.device_put(endless)
    assert (np.asarray(jnp.ones(10)) == 1).all()
