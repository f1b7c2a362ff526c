"""Native code of the platform: programs that run without Python, and the rest of the API that must not need it.

A run holds its arguments, takes a context of the program, gives each result a buffer (in the memory of an argument that
is donated to it, if nobody else has that one), and calls the program's entry point. Python is asked for another context
when all are in use, and for the error when the entry point returns a status.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from xlapy.codegen.context import CONTEXT_CALL_NUMBER
from xlapy.codegen.ir import I8, I32, I64, PTR, KernelBuilder, Module, Value
from xlapy.codegen.native_fields import get, is_null, is_zero, not_zero, place, put, word
from xlapy.pjrt.abi import FUNCTIONS, ErrorCode, ExecuteOptions
from xlapy.pjrt.native_api import ApiFunction, python_function
from xlapy.pjrt.native_buffers import HOLD_SYMBOL, NEW_RECORD_SYMBOL, UNHOLD_SYMBOL, put_block
from xlapy.pjrt.native_memory import data_of, locked, platform
from xlapy.pjrt.records import (
    BufferRecord,
    BufferState,
    ErrorRecord,
    ExecutableRecord,
    ExecuteContextRecord,
    MemoryRecord,
    PlatformRecord,
    ResultRecord,
)
from xlapy_runtime.calling import WrapperWord

NEW_ERROR_SYMBOL = "xlapy_pjrt_new_error"
DEAD_EXECUTABLES_SYMBOL = "xlapy_pjrt_dead_executables"
IS_ENDING_SYMBOL = "xlapy_pjrt_is_ending"
"""CPython's function that says whether the interpreter is being finalized."""


def emit_runs(module: Module) -> None:
    """All functions, in the order in which they build on each other."""
    _errors(module)
    _executables(module)
    _contexts(module)
    _arguments(module)
    _results(module)
    _execute(module)
    _simple_functions(module)


# -- errors ------------------------------------------------------------------------------------------------------------


def _errors(module: Module) -> None:
    parameters = [("code", I64), ("message", PTR), ("size", I64)]
    with KernelBuilder(module, NEW_ERROR_SYMBOL, parameters, PTR) as k:
        code, message, size = k.parameters.values()
        error = k.call_value("malloc", [k.add(size, ctypes.sizeof(ErrorRecord))], PTR)
        own = k.gep(error, ctypes.sizeof(ErrorRecord))
        k.memcpy(own, message, size)
        for name, value in (("code", code), ("message", own), ("message_size", size)):
            put(k, error, ErrorRecord, name, value)
        k.ret(error)
    with ApiFunction(module, "PJRT_Error_Destroy") as f:
        f.call("free", [f.argument("error")])
    with ApiFunction(module, "PJRT_Error_GetCode") as f:
        f.give("code", get(f, f.argument("error"), ErrorRecord, "code"))
    with ApiFunction(module, "PJRT_Error_Message") as f:
        for name in ("message", "message_size"):
            f.give(name, get(f, f.argument("error"), ErrorRecord, name))
    with ApiFunction(module, "PJRT_Error_ForEachPayload"):
        pass  # errors have none

    with KernelBuilder(module, _NO_MEMORY, [], PTR, "internal") as k:
        k.ret(_error(k, ErrorCode.RESOURCE_EXHAUSTED, "no memory for the results"))


def _error(k: KernelBuilder, code: int, message: str) -> Value:
    """A new error."""
    data = message.encode()
    return k.call_value(NEW_ERROR_SYMBOL, [k.const(I64, code), k.table(I8, data), k.const(I64, len(data))], PTR)


def emit_python_slots(module: Module, names: Sequence[str]) -> None:
    """A function for each of the API's that Python does: not any more once the interpreter is about to end, when a
    thread that asks for its lock would wait for ever, or be ended."""
    for name in names:
        with KernelBuilder(module, name, [("arguments", PTR)], PTR) as k:
            with k.if_(k.compare("ne", k.call_value(IS_ENDING_SYMBOL, [], I32), 0)):
                k.ret(_error(k, ErrorCode.CANCELLED, "the interpreter is shutting down"))
            functions = get(k, platform(k), PlatformRecord, "python")
            function = word(k, functions, FUNCTIONS.index(name), PTR)
            k.ret(_interrupting(k, k.call_value(function, [k.parameters["arguments"]], PTR)))


def _interrupting(k: KernelBuilder, error: Value) -> Value:
    """What Python returned. If Ctrl-C has ended it, Python is to raise that when its main thread goes on."""
    flag = place(k, platform(k), PlatformRecord, "is_interrupted")
    with k.if_(not_zero(k, k.load(flag, I64))):
        k.store(flag, k.const(I64, 0))
        k.call("PyErr_SetInterrupt", [])
    return error


# -- executables -------------------------------------------------------------------------------------------------------


def _executables(module: Module) -> None:
    with ApiFunction(module, "PJRT_LoadedExecutable_GetExecutable") as f:
        executable = f.argument("loaded_executable")
        f.atomic_update("add", place(f, executable, ExecutableRecord, "holders"), f.const(I64, 1))
        f.give("executable", executable)
    for name in ("PJRT_LoadedExecutable_Destroy", "PJRT_Executable_Destroy"):
        with ApiFunction(module, name) as f:
            _leave_executable(f)
    for name, (given, field) in _GETTERS.items():
        with ApiFunction(module, name) as f:
            f.give(given, get(f, f.argument("executable"), ExecutableRecord, field))
    with ApiFunction(module, "PJRT_LoadedExecutable_Delete") as f:
        put(f, f.argument("executable"), ExecutableRecord, "is_deleted", 1)
    with KernelBuilder(module, DEAD_EXECUTABLES_SYMBOL, [], PTR) as k:
        dead = place(k, platform(k), PlatformRecord, "dead_executables")
        k.ret(k.atomic_update("xchg", dead, k.const(PTR, 0)))


_GETTERS = {
    "PJRT_Executable_NumReplicas": ("num_replicas", "replica_count"),
    "PJRT_Executable_NumPartitions": ("num_partitions", "partition_count"),
    "PJRT_Executable_NumOutputs": ("num_outputs", "result_count"),
    "PJRT_LoadedExecutable_IsDeleted": ("is_deleted", "is_deleted"),
}


def _leave_executable(f: ApiFunction) -> None:
    """One who knows the executable forgets it; the last one puts it among those that Python is to drop when it comes by
    again."""
    executable = f.argument("executable")
    before = f.atomic_update("sub", place(f, executable, ExecutableRecord, "holders"), f.const(I64, 1))
    with f.if_(f.compare("eq", before, 1)), locked(f):
        put(f, executable, ExecutableRecord, "next_dead", get(f, platform(f), PlatformRecord, "dead_executables"))
        put(f, platform(f), PlatformRecord, "dead_executables", executable)


# -- runs --------------------------------------------------------------------------------------------------------------


def _contexts(module: Module) -> None:
    """A context of the program that no other run has; null if there is none to be had."""
    with KernelBuilder(module, "take_context", [("executable", PTR)], PTR, "internal") as k:
        executable = k.parameters["executable"]
        with locked(k):
            context = get(k, executable, ExecutableRecord, "idle_contexts")
            with k.if_(k.not_(is_null(k, context))):
                put(k, executable, ExecutableRecord, "idle_contexts", word(k, context, WrapperWord.NEXT_IDLE, PTR))
        with k.if_(is_null(k, context)):
            k.ret(k.call_value(get(k, executable, ExecutableRecord, "new_context"), [executable], PTR))
        k.ret(context)
    with KernelBuilder(module, "leave_context", [("executable", PTR), ("context", PTR)], None, "internal") as k:
        executable, context = k.parameters.values()
        next_idle = k.gep(context, WrapperWord.NEXT_IDLE, I64.bytes)
        with locked(k):
            k.store(next_idle, get(k, executable, ExecutableRecord, "idle_contexts"))
            put(k, executable, ExecutableRecord, "idle_contexts", context)


def _arguments(module: Module) -> None:
    """Holds the buffers of a run and notes where their data is; how many could be held, all of them if none is
    deleted."""
    parameters = [("buffers", PTR), ("count", I64), ("data", PTR)]
    with KernelBuilder(module, "hold_all", parameters, I64, "internal") as k:
        buffers, count, data = k.parameters.values()

        def goes_on(values: list[Value]) -> Value:
            return k.and_(k.compare("lt", values[0], count), k.compare("eq", values[1], values[0]))

        def hold(values: list[Value]) -> list[Value]:
            number, held = values
            buffer = word(k, buffers, number, PTR)
            is_held = k.call_value(HOLD_SYMBOL, [buffer], I64)
            k.store(k.gep(data, number, I64.bytes), get(k, buffer, BufferRecord, "data"))
            return [k.add(number, 1), k.add(held, is_held)]

        _, held = k.while_loop(goes_on, hold, [k.const(I64, 0), k.const(I64, 0)])
        k.ret(held)
    with KernelBuilder(module, "unhold_all", [("buffers", PTR), ("count", I64)], None, "internal") as k:
        buffers, count = k.parameters.values()
        with k.loop(0, count) as each:
            k.call(UNHOLD_SYMBOL, [word(k, buffers, each.index, PTR)])


_KIND = ("type", "rank", "dims", "byte_count", "memory")


def _results(module: Module) -> None:
    """Gives each result a buffer; how many have got one, all of them unless there is no memory."""
    _block_of_result(module)
    parameters = [("executable", PTR), ("arguments", PTR), ("context", PTR)]
    with KernelBuilder(module, "make_results", parameters, I64, "internal") as k:
        executable, arguments, context = k.parameters.values()
        count, results = (get(k, executable, ExecutableRecord, name) for name in ("result_count", "results"))
        places, data, made = (
            word(k, context, number, PTR)
            for number in (WrapperWord.PARAMETERS, WrapperWord.RESULTS, WrapperWord.OBJECTS)
        )

        def goes_on(values: list[Value]) -> Value:
            return k.and_(k.compare("lt", values[0], count), k.compare("eq", values[1], values[0]))

        def make(values: list[Value]) -> list[Value]:
            number, done = values
            result = k.gep(results, number, ctypes.sizeof(ResultRecord))
            block = k.call_value("block_of_result", [result, arguments, places], PTR)
            is_there = k.not_(is_null(k, block))
            with k.if_(is_there):
                k.store(k.gep(data, number, I64.bytes), data_of(k, block))
                kind = [get(k, result, ResultRecord, name) for name in _KIND]
                buffer = k.call_value(NEW_RECORD_SYMBOL, kind, PTR)
                put_block(k, buffer, block)
                k.store(k.gep(made, number, I64.bytes), buffer)
            return [k.add(number, 1), k.add(done, k.zext(is_there, I64))]

        _, done = k.while_loop(goes_on, make, [k.const(I64, 0), k.const(I64, 0)])
        k.ret(done)
    with KernelBuilder(module, "drop_results", [("buffers", PTR), ("count", I64)], None, "internal") as k:
        state = k.const(I64, BufferState.DELETED | BufferState.DESTROYED)
        with k.loop(0, k.parameters["count"]) as each:
            k.call("leave_buffer", [word(k, k.parameters["buffers"], each.index, PTR), state])


def _block_of_result(module: Module) -> None:
    """The block that a result is made in. One that is made of an argument is in the argument's, or in another one that
    the argument is copied to, where the program then finds it."""
    parameters = [("result", PTR), ("arguments", PTR), ("places", PTR)]
    with KernelBuilder(module, "block_of_result", parameters, PTR, "internal") as k:
        result, arguments, places = k.parameters.values()
        home, donor = get(k, result, ResultRecord, "home"), get(k, result, ResultRecord, "donor")
        with k.if_(k.compare("lt", donor, 0)):
            k.ret(k.call_value("take_block", [home], PTR))
        argument = word(k, arguments, donor, PTR)
        taken = k.call_value("take_memory", [argument], PTR)
        with k.if_(k.not_(is_null(k, taken))):
            k.ret(taken)
        block = k.call_value("take_block", [home], PTR)
        with k.if_(k.not_(is_null(k, block))):
            data = data_of(k, block)
            k.memcpy(data, get(k, argument, BufferRecord, "data"), get(k, result, ResultRecord, "byte_count"))
            k.store(k.gep(places, donor, I64.bytes), data)
        k.ret(block)


def _execute(module: Module) -> None:
    """Python does what is not simple, and says what is wrong where something is."""
    with ApiFunction(module, "PJRT_LoadedExecutable_Execute") as f:
        executable = f.argument("executable")
        with f.if_(f.not_(_is_simple(f, executable))):
            f.ret(_interrupting(f, python_function(f)))
        count = f.argument("num_args")
        (arguments,) = f.if_else(
            is_zero(f, count), lambda: f.const(PTR, 0), lambda: f.load(f.argument("argument_lists"), PTR)
        )
        context = f.call_value("take_context", [executable], PTR)
        with f.if_(is_null(f, context)):
            f.ret(_interrupting(f, python_function(f)))
        places, data, made = (
            word(f, context, number, PTR)
            for number in (WrapperWord.PARAMETERS, WrapperWord.RESULTS, WrapperWord.OBJECTS)
        )
        held = f.call_value("hold_all", [arguments, count, places], I64)
        with f.if_(f.compare("ne", held, count)):
            f.call("unhold_all", [arguments, held])
            f.call("leave_context", [executable, context])
            f.ret(_interrupting(f, python_function(f)))
        done = f.call_value("make_results", [executable, arguments, context], I64)
        result_count = get(f, executable, ExecutableRecord, "result_count")
        with f.if_(f.compare("ne", done, result_count)):
            f.call("drop_results", [made, done])
            f.call("unhold_all", [arguments, count])
            f.call("leave_context", [executable, context])
            f.ret(f.call_value(_NO_MEMORY, [], PTR))
        number = f.atomic_update(
            "add", place(f, executable, ExecutableRecord, "call_number"), f.const(I64, 1), "monotonic"
        )
        f.store(f.gep(context, CONTEXT_CALL_NUMBER, I64.bytes), number)
        status = f.call_value(get(f, executable, ExecutableRecord, "entry"), [context, places, data], I32)
        _delete_donated(f, executable, arguments)
        f.call("unhold_all", [arguments, count])
        with f.if_(not_zero(f, status)):
            f.call("drop_results", [made, result_count])
            failed = get(f, executable, ExecutableRecord, "failed")
            error = f.call_value(failed, [executable, context, status], PTR)
            f.call("leave_context", [executable, context])
            f.ret(_interrupting(f, error))
        with f.if_(not_zero(f, result_count)):
            f.memcpy(f.load(f.argument("output_lists"), PTR), made, f.mul(result_count, I64.bytes))
        f.call("leave_context", [executable, context])
        events = f.argument("device_complete_events")
        with f.if_(f.not_(is_null(f, events))):
            f.store(events, get(f, platform(f), PlatformRecord, "ready_event"))


_NO_MEMORY = "no_memory"


def _is_simple(f: ApiFunction, executable: Value) -> Value:
    """Whether native code runs the program: on one device, and may take all arguments that are donated."""
    entry = get(f, executable, ExecutableRecord, "entry")
    kept = f.load(f.gep(f.argument("options"), ExecuteOptions.num_non_donatable_input_indices.offset), I64)
    is_whole = f.compare("eq", f.argument("num_args"), get(f, executable, ExecutableRecord, "parameter_count"))
    is_single = f.compare("eq", f.argument("num_devices"), 1)
    return f.and_(f.and_(f.not_(is_null(f, entry)), is_zero(f, kept)), f.and_(is_whole, is_single))


def _delete_donated(f: ApiFunction, executable: Value, arguments: Value) -> None:
    numbers = get(f, executable, ExecutableRecord, "donated")
    with f.loop(0, get(f, executable, ExecutableRecord, "donated_count")) as each:
        argument = word(f, arguments, word(f, numbers, each.index), PTR)
        f.call("leave_buffer", [argument, f.const(I64, BufferState.DELETED)])


# -- functions that only store something -------------------------------------------------------------------------------


def _simple_functions(module: Module) -> None:
    with ApiFunction(module, "PJRT_Memory_Kind") as f:
        for name in ("kind", "kind_size"):
            f.give(name, get(f, f.argument("memory"), MemoryRecord, name))
    with ApiFunction(module, "PJRT_ExecuteContext_Create") as f:
        context = f.call_value("malloc", [f.const(I64, ctypes.sizeof(ExecuteContextRecord))], PTR)
        put(f, context, ExecuteContextRecord, "data", f.const(PTR, 0))
        f.give("context", context)
    with ApiFunction(module, "PJRT_ExecuteContext_Destroy") as f:
        f.call("free", [f.argument("context")])
    with ApiFunction(module, "PJRT_FFI_UserData_Add") as f:
        put(f, f.argument("context"), ExecuteContextRecord, "data", f.argument("data"))
    for name in (*LIVING_FOR_EVER, "PJRT_Plugin_Initialize"):
        with ApiFunction(module, name):
            pass


LIVING_FOR_EVER = ("PJRT_Client_Destroy", "PJRT_TopologyDescription_Destroy")
"""What is there once in a process."""
