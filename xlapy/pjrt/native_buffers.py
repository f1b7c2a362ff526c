"""Native code of the platform: buffers, and events of host memory that buffers lie in.

    new_record(type, ...)         a buffer without memory
    new_buffer(type, ...)         a buffer in memory of its own; null if there is none
    hold(buffer)                  whether it may be used, and keeps its memory until `unhold` if so
    unhold(buffer)                ends that, and does what has been put off meanwhile
    leave_buffer(buffer, state)   deletes or destroys it, as soon as nobody holds it
    take_memory(buffer)           the block of a buffer that only the caller holds, which is deleted by that; else null

The functions of the API that are here touch no Python object, and may be called from anywhere.
"""

from __future__ import annotations

import ctypes

from xlapy.codegen.ir import I1, I32, I64, PTR, KernelBuilder, Module, Value
from xlapy.codegen.native_fields import get, increase, is_null, is_zero, not_zero, place, put, word
from xlapy.pjrt.abi import LayoutType, Semantics, TiledLayout
from xlapy.pjrt.native_api import ApiFunction, python_function
from xlapy.pjrt.native_memory import data_of, locked, platform
from xlapy.pjrt.records import (
    BufferRecord,
    BufferState,
    DeviceRecord,
    EventRecord,
    LayoutRecord,
    MemoryRecord,
    PlatformRecord,
    WaitingRecord,
)
from xlapy_runtime.alignment import LINE_BYTES

NEW_RECORD_SYMBOL = "xlapy_pjrt_new_record"
NEW_BUFFER_SYMBOL = "xlapy_pjrt_new_buffer"
HOLD_SYMBOL = "xlapy_pjrt_hold"
UNHOLD_SYMBOL = "xlapy_pjrt_unhold"
SYMBOLS = (NEW_RECORD_SYMBOL, NEW_BUFFER_SYMBOL, HOLD_SYMBOL, UNHOLD_SYMBOL)
"""What Python calls."""

LEAST_SHARED_BYTES = 16 * 1024
"""Host memory of fewer bytes is copied, which is faster than to remember whose it is."""


def emit_buffers(module: Module) -> None:
    """All functions, in the order in which they build on each other."""
    _events(module)
    _records(module)
    _holding(module)
    _api_of_buffers(module)
    _from_host(module)
    _to_host(module)


# -- events ------------------------------------------------------------------------------------------------------------


def _events(module: Module) -> None:
    _leave_event(module)
    _fire(module)
    with ApiFunction(module, "PJRT_Event_Destroy") as f:
        f.call("leave_event", [f.argument("event")])
    with ApiFunction(module, "PJRT_Event_IsReady") as f:
        f.give("is_ready", get(f, f.argument("event"), EventRecord, "is_ready"))
    with ApiFunction(module, "PJRT_Event_Error"):
        pass  # nothing fails that an event is about
    _on_ready(module)
    with ApiFunction(module, "PJRT_Event_Await") as f:
        ready = place(f, f.argument("event"), EventRecord, "is_ready")
        f.while_loop(
            lambda _: is_zero(f, f.atomic_load(ready, I64)),
            lambda _: f.call("usleep", [f.const(I32, _WAIT_MICROSECONDS)], I32) and None,
            [],
        )


_WAIT_MICROSECONDS = 50


def _leave_event(module: Module) -> None:
    """One who knows the event forgets it. There is one event that stays: that of all that is ready at once."""
    with KernelBuilder(module, "leave_event", [("event", PTR)], None, "internal") as k:
        event = k.parameters["event"]
        with k.if_(_are_same(k, event, get(k, platform(k), PlatformRecord, "ready_event"))):
            k.ret()
        holders = place(k, event, EventRecord, "holders")
        before = k.atomic_update("sub", holders, k.const(I64, 1))
        with k.if_(k.compare("eq", before, 1)):
            k.call("free", [event])


def _fire(module: Module) -> None:
    """Makes an event ready, calls who waits for it, and leaves it."""
    with KernelBuilder(module, "fire", [("event", PTR)], None, "internal") as k:
        event = k.parameters["event"]
        with locked(k):
            k.atomic_store(place(k, event, EventRecord, "is_ready"), k.const(I64, 1))
            first = get(k, event, EventRecord, "waiting")
            put(k, event, EventRecord, "waiting", k.const(PTR, 0))

        def call(values: list[Value]) -> Value:
            following = get(k, values[0], WaitingRecord, "next")
            arguments = [k.const(PTR, 0), get(k, values[0], WaitingRecord, "argument")]
            k.call(get(k, values[0], WaitingRecord, "callback"), arguments)
            k.call("free", [values[0]])
            return following

        k.while_loop(lambda values: k.not_(is_null(k, values[0])), call, [first])
        k.call("leave_event", [event])


def _on_ready(module: Module) -> None:
    with ApiFunction(module, "PJRT_Event_OnReady") as f:
        event, callback, argument = (f.argument(name) for name in ("event", "callback", "user_arg"))
        waiting = f.call_value("malloc", [f.const(I64, ctypes.sizeof(WaitingRecord))], PTR)
        put(f, waiting, WaitingRecord, "callback", callback)
        put(f, waiting, WaitingRecord, "argument", argument)
        with locked(f):
            ready = f.atomic_load(place(f, event, EventRecord, "is_ready"), I64)
            with f.if_(is_zero(f, ready)):
                put(f, waiting, WaitingRecord, "next", get(f, event, EventRecord, "waiting"))
                put(f, event, EventRecord, "waiting", waiting)
        with f.if_(not_zero(f, ready)):
            f.call("free", [waiting])
            f.call(callback, [f.const(PTR, 0), argument])


def _new_event(k: KernelBuilder) -> Value:
    """An event that two know: JAX, and a buffer."""
    event = k.call_value("malloc", [k.const(I64, ctypes.sizeof(EventRecord))], PTR)
    put(k, event, EventRecord, "holders", 2)
    put(k, event, EventRecord, "is_ready", 0)
    put(k, event, EventRecord, "waiting", k.const(PTR, 0))
    return event


# -- records -----------------------------------------------------------------------------------------------------------


def _records(module: Module) -> None:
    _new_record(module)
    with KernelBuilder(module, NEW_BUFFER_SYMBOL, _KIND, PTR) as k:
        block = k.call_value("take_block", [k.call_value("home_of", [k.parameters["byte_count"]], PTR)], PTR)
        with k.if_(is_null(k, block)):
            k.ret(block)
        buffer = k.call_value(NEW_RECORD_SYMBOL, list(k.parameters.values()), PTR)
        put_block(k, buffer, block)
        k.ret(buffer)


_KIND = [("type", I64), ("rank", I64), ("dims", PTR), ("byte_count", I64), ("memory", PTR)]


def _new_record(module: Module) -> None:
    """A buffer without memory."""
    with KernelBuilder(module, NEW_RECORD_SYMBOL, _KIND, PTR) as k:
        type, rank, dims, byte_count, memory = k.parameters.values()
        room = k.add(k.mul(rank, I64.bytes), ctypes.sizeof(BufferRecord))
        buffer = k.call_value("malloc", [room], PTR)
        own_dims = k.gep(buffer, ctypes.sizeof(BufferRecord))
        with k.loop(0, rank) as each:
            k.store(k.gep(own_dims, each.index, I64.bytes), word(k, dims, each.index))
        given = {
            "type": type,
            "rank": rank,
            "dims": own_dims,
            "byte_count": byte_count,
            "memory": memory,
            "device": get(k, memory, MemoryRecord, "device"),
        }
        for name, kind in BufferRecord._fields_:
            zero = k.const(PTR if kind is ctypes.c_void_p else I64, 0)
            put(k, buffer, BufferRecord, name, given.get(name, zero))
        k.ret(buffer)


def put_block(k: KernelBuilder, buffer: Value, block: Value) -> None:
    """Puts a buffer without memory into a block."""
    put(k, buffer, BufferRecord, "block", block)
    put(k, buffer, BufferRecord, "data", data_of(k, block))
    _count_bytes(k, get(k, buffer, BufferRecord, "byte_count"))


def _count_bytes(k: KernelBuilder, more: Value) -> None:
    """So many bytes more are in use. The highest count of all may miss what other threads do meanwhile."""
    before = k.atomic_update("add", place(k, platform(k), PlatformRecord, "bytes_in_use"), more, "monotonic")
    now, peak = k.add(before, more), place(k, platform(k), PlatformRecord, "peak_bytes_in_use")
    with k.if_(k.compare("gt", now, k.load(peak, I64))):
        k.store(peak, now)


# -- holding -----------------------------------------------------------------------------------------------------------


def _holding(module: Module) -> None:
    _release(module)
    with KernelBuilder(module, HOLD_SYMBOL, [("buffer", PTR)], I64) as k:
        buffer = k.parameters["buffer"]
        with locked(k):
            is_usable = is_zero(k, get(k, buffer, BufferRecord, "states"))
            with k.if_(is_usable):
                increase(k, buffer, BufferRecord, "holds")
        k.ret(k.zext(is_usable, I64))
    _unhold(module)
    _leave_buffer(module)
    _take_memory(module)


def _unhold(module: Module) -> None:
    with KernelBuilder(module, UNHOLD_SYMBOL, [("buffer", PTR)], None) as k:
        buffer = k.parameters["buffer"]
        with locked(k):
            left = increase(k, buffer, BufferRecord, "holds", -1)
            states = get(k, buffer, BufferRecord, "states")
            is_over = k.and_(is_zero(k, left), not_zero(k, states))
            owners = _taken_owners(k, buffer, is_over)
        with k.if_(is_over):
            k.call("release", [buffer, states, *owners])


def _leave_buffer(module: Module) -> None:
    with KernelBuilder(module, "leave_buffer", [("buffer", PTR), ("state", I64)], None, "internal") as k:
        buffer = k.parameters["buffer"]
        with locked(k):
            states = k.or_(get(k, buffer, BufferRecord, "states"), k.parameters["state"])
            put(k, buffer, BufferRecord, "states", states)
            is_over = is_zero(k, get(k, buffer, BufferRecord, "holds"))
            owners = _taken_owners(k, buffer, is_over)
        with k.if_(is_over):
            k.call("release", [buffer, states, *owners])


_OWNERS = ("data", "block", "event", "on_delete", "on_delete_argument")


def _taken_owners(k: KernelBuilder, buffer: Value, is_over: Value) -> list[Value]:
    """What the memory of a buffer belongs to; the buffer has none any more, if `is_over`: who was told so gives it
    back, without the lock and without looking at the buffer, which may be gone by then."""
    owners = [get(k, buffer, BufferRecord, name) for name in _OWNERS]
    with k.if_(is_over):
        for name in _OWNERS[1:]:
            put(k, buffer, BufferRecord, name, k.const(PTR, 0))
    return owners


def _release(module: Module) -> None:
    """Gives back the memory that a buffer had, and its record if it is destroyed."""
    parameters = [("buffer", PTR), ("states", I64), *((name, PTR) for name in _OWNERS)]
    with KernelBuilder(module, "release", parameters, None, "internal") as k:
        buffer, states, data, block, event, on_delete, argument = k.parameters.values()
        is_destroyed = not_zero(k, k.and_(states, BufferState.DESTROYED))
        with k.if_(k.not_(is_null(k, block))):
            _count_bytes(k, k.sub(0, get(k, buffer, BufferRecord, "byte_count")))
            k.call("leave_block", [block])
        with k.if_(k.not_(is_null(k, event))):
            k.call("fire", [event])
        with k.if_(k.not_(is_null(k, on_delete))):
            k.call(on_delete, [data, argument])
        with k.if_(is_destroyed):
            k.call("free", [buffer])


def _take_memory(module: Module) -> None:
    with KernelBuilder(module, "take_memory", [("buffer", PTR)], PTR, "internal") as k:
        buffer, nothing = k.parameters["buffer"], k.const(PTR, 0)
        with locked(k):
            block = get(k, buffer, BufferRecord, "block")
            is_sole = k.compare("eq", get(k, buffer, BufferRecord, "holds"), 1)
            is_usable = is_zero(k, get(k, buffer, BufferRecord, "states"))
            is_taken = k.and_(k.and_(is_sole, is_usable), k.not_(is_null(k, block)))
            with k.if_(is_taken):
                put(k, buffer, BufferRecord, "states", BufferState.DELETED)
                put(k, buffer, BufferRecord, "block", nothing)
        with k.if_(k.not_(is_taken)):
            k.ret(nothing)
        _count_bytes(k, k.sub(0, get(k, buffer, BufferRecord, "byte_count")))
        k.ret(block)


# -- the API -----------------------------------------------------------------------------------------------------------


def _api_of_buffers(module: Module) -> None:
    for name, fields in _GETTERS.items():
        with ApiFunction(module, name) as f:
            for given, field in fields.items():
                f.give(given, get(f, f.argument("buffer"), BufferRecord, field))
    for name, state in (("Delete", BufferState.DELETED), ("Destroy", BufferState.DELETED | BufferState.DESTROYED)):
        with ApiFunction(module, f"PJRT_Buffer_{name}") as f:
            f.call("leave_buffer", [f.argument("buffer"), f.const(I64, state)])
    with ApiFunction(module, "PJRT_Buffer_IsDeleted") as f:
        f.give("is_deleted", f.and_(get(f, f.argument("buffer"), BufferRecord, "states"), BufferState.DELETED))
    with ApiFunction(module, "PJRT_Buffer_IsOnCpu") as f:
        f.give("is_on_cpu", f.const(I64, 1))
    with ApiFunction(module, "PJRT_Buffer_ReadyEvent") as f:
        f.give("event", get(f, platform(f), PlatformRecord, "ready_event"))
    with ApiFunction(module, "PJRT_Buffer_DynamicDimensionIndices") as f:
        f.give("dynamic_dim_indices", f.const(PTR, 0))
        f.give("num_dynamic_dims", f.const(I64, 0))
    with ApiFunction(module, "PJRT_Buffer_IncreaseExternalReferenceCount") as f:
        is_held = f.call_value(HOLD_SYMBOL, [f.argument("buffer")], I64)
        with f.if_(is_zero(f, is_held)):
            f.ret(python_function(f))
    with ApiFunction(module, "PJRT_Buffer_DecreaseExternalReferenceCount") as f:
        f.call(UNHOLD_SYMBOL, [f.argument("buffer")])

    _layouts(module)


MOST_RANK = 64
"""Of arrays of numpy's, which all come from and go to."""


def _layouts(module: Module) -> None:
    """JAX asks for them before it hands an array to numpy."""
    with ApiFunction(module, "PJRT_Layouts_PJRT_Buffer_MemoryLayout") as f:
        rank = f.smin(get(f, f.argument("buffer"), BufferRecord, "rank"), MOST_RANK)
        table = get(f, platform(f), PlatformRecord, "layouts")
        f.give("layout", f.gep(table, rank, ctypes.sizeof(LayoutRecord)))
    with ApiFunction(module, "PJRT_Layouts_MemoryLayout_Destroy"):
        pass  # there is one for each rank
    with ApiFunction(module, "PJRT_Layouts_MemoryLayout_Serialize") as f:
        f.give("serialized_bytes", get(f, f.argument("layout"), LayoutRecord, "text"))
        f.give("serialized_bytes_size", get(f, f.argument("layout"), LayoutRecord, "size"))
        f.give("serialized_layout", f.const(PTR, 0))
        f.give("serialized_layout_deleter", f.function_pointer("PJRT_Layouts_MemoryLayout_Destroy"))


_GETTERS = {
    "PJRT_Buffer_Device": {"device": "device"},
    "PJRT_Buffer_Memory": {"memory": "memory"},
    "PJRT_Buffer_ElementType": {"type": "type"},
    "PJRT_Buffer_Dimensions": {"dims": "dims", "num_dims": "rank"},
    "PJRT_Buffer_UnpaddedDimensions": {"unpadded_dims": "dims", "num_dims": "rank"},
    "PJRT_Buffer_OnDeviceSizeInBytes": {"on_device_size_in_bytes": "byte_count"},
    "PJRT_Buffer_UnsafePointer": {"buffer_pointer": "data"},
    "PJRT_Buffer_OpaqueDeviceMemoryDataPointer": {"device_memory_ptr": "data"},
}


def _from_host(module: Module) -> None:
    """Arrays whose elements lie side by side in their order; all others are Python's."""
    with ApiFunction(module, "PJRT_Client_BufferFromHostBuffer") as f:
        type, rank, dims = f.sext(f.argument("type"), I64), f.argument("num_dims"), f.argument("dims")
        element_bytes = word(f, get(f, platform(f), PlatformRecord, "element_bytes"), type)
        size = _byte_count(f, dims, rank, element_bytes)
        is_plain = f.and_(is_null(f, f.argument("device_layout")), f.compare("ge", size, 0))
        with f.if_(f.not_(f.and_(is_plain, _is_dense(f, dims, rank, element_bytes)))):
            f.ret(python_function(f))
        memory = _memory_given(f)
        data, kind = f.argument("data"), [type, rank, dims, size, memory]
        stays = f.compare("ge", f.argument("host_buffer_semantics"), Semantics.IMMUTABLE_ZERO_COPY)
        is_aligned = is_zero(f, f.and_(f.address(data), LINE_BYTES - 1))
        with f.if_(f.and_(f.and_(stays, is_aligned), f.compare("ge", size, LEAST_SHARED_BYTES))):
            shared, event = f.call_value(NEW_RECORD_SYMBOL, kind, PTR), _new_event(f)
            put(f, shared, BufferRecord, "data", data)
            put(f, shared, BufferRecord, "event", event)
            f.give("buffer", shared)
            f.give("done_with_host_buffer", event)
            f.ret(f.const(PTR, 0))
        buffer = f.call_value(NEW_BUFFER_SYMBOL, kind, PTR)
        with f.if_(is_null(f, buffer)):
            f.ret(python_function(f))
        f.memcpy(get(f, buffer, BufferRecord, "data"), data, size)
        f.give("buffer", buffer)
        f.give("done_with_host_buffer", get(f, platform(f), PlatformRecord, "ready_event"))


def _memory_given(f: ApiFunction) -> Value:
    """The memory that a buffer is to be in, or that of its device."""
    device, memory = f.argument("device"), f.argument("memory")
    (chosen,) = f.if_else(
        is_null(f, memory), lambda: get(f, device, DeviceRecord, "memory"), lambda: memory, likely=False
    )
    return chosen


def _byte_count(k: KernelBuilder, dims: Value, rank: Value, element_bytes: Value) -> Value:
    with k.loop(0, rank, carry=[element_bytes]) as each:
        each.next = [k.mul(each.values[0], word(k, dims, each.index))]
    return each.results[0]


def _is_dense(f: ApiFunction, dims: Value, rank: Value, element_bytes: Value) -> Value:
    """Whether strides are those of an array in the order of its elements, or are not given."""
    strides, count = f.argument("byte_strides"), f.argument("num_byte_strides")
    with f.loop(0, count, carry=[element_bytes, f.const(I64, 0)]) as each:
        place = f.sub(f.sub(rank, 1), each.index)
        size, stride, (wanted, others) = word(f, dims, place), word(f, strides, place), each.values
        is_other = f.and_(f.compare("ne", stride, wanted), f.compare("ne", size, 1))
        each.next = [f.mul(wanted, size), f.or_(others, f.zext(is_other, I64))]
    return is_zero(f, each.results[1])


def _to_host(module: Module) -> None:
    """Copies to memory in the same order of elements; all others are Python's."""
    with ApiFunction(module, "PJRT_Buffer_ToHostBuffer") as f:
        buffer, target, layout = f.argument("src"), f.argument("dst"), f.argument("host_layout")
        size = get(f, buffer, BufferRecord, "byte_count")
        with f.if_(is_null(f, target)):
            f.give("dst_size", size)
            f.ret(f.const(PTR, 0))
        (is_usual,) = f.if_else(
            is_null(f, layout), lambda: f.const(I1, 1), lambda: _is_usual_layout(f, layout), likely=True
        )
        has_room = f.compare("ge", f.argument("dst_size"), size)
        with f.if_(f.not_(f.and_(is_usual, has_room))):
            f.ret(python_function(f))
        with f.if_(is_zero(f, f.call_value(HOLD_SYMBOL, [buffer], I64))):
            f.ret(python_function(f))
        f.memcpy(target, get(f, buffer, BufferRecord, "data"), size)
        f.call(UNHOLD_SYMBOL, [buffer])
        f.give("event", get(f, platform(f), PlatformRecord, "ready_event"))


def _is_usual_layout(f: ApiFunction, layout: Value) -> Value:
    """Whether a layout is that of buffers: not tiled, the last dimension first."""
    type = f.load(f.gep(layout, TiledLayout.type.offset), I32)
    rank, tiles = (f.load(f.gep(layout, getattr(TiledLayout, n).offset), I64) for n in ("num_numbers", "num_tiles"))
    order = f.load(f.gep(layout, TiledLayout.numbers.offset), PTR)
    is_plain = f.and_(f.compare("eq", type, LayoutType.TILED), is_zero(f, tiles))
    with f.loop(0, f.select(is_plain, rank, f.const(I64, 0)), carry=[f.const(I64, 0)]) as each:
        is_other = f.compare("ne", word(f, order, each.index), f.sub(f.sub(rank, 1), each.index))
        each.next = [f.or_(each.values[0], f.zext(is_other, I64))]
    return f.and_(is_plain, is_zero(f, each.results[0]))


def _are_same(k: KernelBuilder, a: Value, b: Value) -> Value:
    return k.compare("eq", a, b)
