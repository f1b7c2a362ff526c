"""The native call wrapper: one CPython function, in LLVM IR, that calls any compiled program.

`xlapy_call` is a METH_FASTCALL function. Its `self` is an array whose data is a `%Table` (built by
`xlapy_runtime.calling`, which also says what each field means), so that one piece of code, compiled once per machine,
serves every program. It may assume only what `calling.load_wrapper` has checked: the fields of `%Array`, and the C
functions declared below. Arguments are not touched before their exact type is known.

It owns what it creates and nothing else: on every way out, a context that was taken is idle again, and the results are
either in the caller's hands or released.
"""

from __future__ import annotations

from xlapy.codegen.call_wrapper_arguments import ARGUMENTS, DONATIONS
from xlapy.codegen.call_wrapper_blocks import BLOCKS
from xlapy.codegen.call_wrapper_text import NEXT, STRUCTURES, each, each_result, item, load, store
from xlapy.codegen.jit import emit_object
from xlapy.codegen.object_cache import ObjectCache
from xlapy.codegen.stored_code import StoredCode, find_code, keep_code, wrapper_name
from xlapy.codegen.target import Target
from xlapy_runtime.calling import (
    ARRAY_TYPE_SYMBOL,
    BLOCK_BYTES_SYMBOL,
    CALL_NUMBER_SYMBOL,
    CALL_SYMBOL,
    NEW_ARRAY_SYMBOL,
    WRAPPER_SYMBOLS,
    ContextWord,
    WrapperWord,
)
from xlapy_runtime.object_layouts import ArrayFlags, is_layout_known
from xlapy_runtime.prelinking import prelinked
from xlapy_runtime.result_blocks import POOL_SYMBOL


def call_wrapper_object(target: Target, cache: ObjectCache) -> bytes:
    """The wrapper's object code for `calling.load_wrapper`, compiled if the cache does not have it.

    What a call passes through is inlined as the text says. LLVM's full pipeline takes twice as long, and calls are no
    faster."""
    name = wrapper_name()
    found = find_code(name, target, cache)
    if found is None:
        made = [emit_object(call_wrapper_ir(), target, optimization="light")]
        found = StoredCode(prelinked(made), WRAPPER_SYMBOLS)
        if is_layout_known():
            keep_code(name, target, cache, found)
    (code,) = found.objects
    return bytes(code)


def call_wrapper_ir() -> str:
    """The module's text."""
    return "\n".join((_DECLARATIONS, _CONTEXTS, ARGUMENTS, DONATIONS, BLOCKS, _RESULTS, _EXECUTION, _ENTRY_POINTS))


_DECLARATIONS = f"""
{STRUCTURES}

@{ARRAY_TYPE_SYMBOL} = external global i8
@{BLOCK_BYTES_SYMBOL} = external global i8

declare ptr @{NEW_ARRAY_SYMBOL}(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyEval_SaveThread()
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare void @Py_DecRef(ptr)
declare void @Py_IncRef(ptr)
"""

_CONTEXTS = f"""
; An idle context, or a new one; null after an error. Holding the GIL is what makes taking and returning atomic.
define private ptr @take_context(ptr %table) nounwind alwaysinline {{
  {load("idle", "Table", "idle_contexts", "%table")}
  %is_empty = icmp eq ptr %idle, null
  br i1 %is_empty, label %make, label %pop
pop:
  %next_field = getelementptr i64, ptr %idle, i64 {WrapperWord.NEXT_IDLE}
  %next = load ptr, ptr %next_field
  store ptr %next, ptr %idle_field
  ret ptr %idle
make:
  {load("maker", "Table", "new_context", "%table")}
  %number = call ptr @PyObject_Vectorcall(ptr %maker, ptr null, i64 0, ptr null)
  %has_failed = icmp eq ptr %number, null
  br i1 %has_failed, label %failed, label %made
made:
  %context = call ptr @PyLong_AsVoidPtr(ptr %number)
  call void @Py_DecRef(ptr %number)
  ret ptr %context
failed:
  ret ptr null
}}

define private void @return_context(ptr %table, ptr %context) nounwind alwaysinline {{
  {load("idle", "Table", "idle_contexts", "%table")}
  %next_field = getelementptr i64, ptr %context, i64 {WrapperWord.NEXT_IDLE}
  store ptr %idle, ptr %next_field
  store ptr %context, ptr %idle_field
  ret void
}}

define private ptr @wrapper_word(ptr %context, i64 %index) nounwind alwaysinline {{
  %field = getelementptr i64, ptr %context, i64 %index
  %word = load ptr, ptr %field
  ret ptr %word
}}

; Stores where the data of an array is.
define private void @note_data(ptr %pointers, i64 %index, ptr %array) nounwind alwaysinline {{
  {load("data", "Array", "data", "%array")}
  %pointer_field = getelementptr ptr, ptr %pointers, i64 %index
  store ptr %data, ptr %pointer_field
  ret void
}}
"""

_RESULTS = f"""
; A new array: from the result's own allocator for large ones, else one that owns a block.
define private ptr @new_array(ptr %result) nounwind alwaysinline {{
  {load("allocator", "Result", "allocator", "%result")}
  %is_small = icmp eq ptr %allocator, null
  br i1 %is_small, label %small, label %large
small:
  {load("home", "Result", "home", "%result")}
  %is_empty = icmp eq ptr %home, null
  br i1 %is_empty, label %without, label %take
take:
  %block = call ptr @take_block(ptr %home)
  %has_no_block = icmp eq ptr %block, null
  br i1 %has_no_block, label %without, label %with
with:
  %owner = call ptr @array_of_block(ptr %result, ptr %block)
  ret ptr %owner
without:
  %array = call ptr @array_of_data(ptr %result, ptr null, i32 0)
  ret ptr %array
large:
  %large_array = call ptr @PyObject_Vectorcall(ptr %allocator, ptr null, i64 0, ptr null)
  ret ptr %large_array
}}

; A new array that lies in a block and owns it; null, and the block waits, after an error.
define private ptr @array_of_block(ptr %result, ptr %block) nounwind alwaysinline {{
  %data = call ptr @data_of_block(ptr %block)
  %array = call ptr @array_of_data(ptr %result, ptr %data, i32 {ArrayFlags.CONTIGUOUS_AND_WRITEABLE})
  %has_failed = icmp eq ptr %array, null
  br i1 %has_failed, label %failed, label %made
failed:
  call void @leave_block(ptr %block)
  ret ptr null
made:
  {load("flags", "Array", "flags", "%array")}
  %own_flags = or i32 %flags, {ArrayFlags.OWNS_DATA}
  store i32 %own_flags, ptr %flags_field
  {load("handler", "BlockPool", "handler", f"@{POOL_SYMBOL}")}
  call void @Py_IncRef(ptr %handler)
  {store("%handler", "Array", "memory_handler", "%array")}
  ret ptr %array
}}

; A new array of numpy's, whose data is here or, if that is null, where numpy chooses; numpy takes over a reference to
; the dtype.
define private ptr @array_of_data(ptr %result, ptr %data, i32 %flags) nounwind alwaysinline {{
  {load("dtype", "Result", "dtype", "%result")}
  call void @Py_IncRef(ptr %dtype)
  {load("rank", "Result", "rank", "%result")}
  %rank_i32 = trunc i64 %rank to i32
  {load("dims", "Result", "dims", "%result")}
  %array = call ptr @{NEW_ARRAY_SYMBOL}(ptr @{ARRAY_TYPE_SYMBOL}, ptr %dtype, i32 %rank_i32, ptr %dims,
                                        ptr null, ptr %data, i32 %flags, ptr null)
  ret ptr %array
}}

; Makes all results, of donated arguments where there are some, notes the objects and where their data is. After an
; error none is left.
define private i1 @make_results(ptr %table, ptr %context, ptr %arguments) nounwind alwaysinline {{
  %pointers = call ptr @wrapper_word(ptr %context, i64 {WrapperWord.RESULTS})
  %objects = call ptr @wrapper_word(ptr %context, i64 {WrapperWord.OBJECTS})
  {each_result(fresh="fresh", latch="note")}
  call void @Py_IncRef(ptr %argument)
  br label %note
fresh:
  %new = call ptr @new_array(ptr %result)
  %has_failed = icmp eq ptr %new, null
  br i1 %has_failed, label %no, label %note
note:
  %array = phi ptr [ %argument, %donated ], [ %new, %fresh ]
  %object_field = getelementptr ptr, ptr %objects, i64 %index
  store ptr %array, ptr %object_field
  call void @note_data(ptr %pointers, i64 %index, ptr %array)
  {NEXT}
yes:
  ret i1 true
no:
  call void @drop_results(ptr %objects, i64 %index)
  ret i1 false
}}

define private void @drop_results(ptr %objects, i64 %count) nounwind alwaysinline {{
  {each("%count", body="drop", latch="drop", done="done")}
  {item("object", "ptr", "%objects", "%index")}
  call void @Py_DecRef(ptr %object)
  {NEXT}
done:
  ret void
}}

; A tuple that takes over the results; null, and none left, after an error.
define private ptr @pack_tuple(ptr %objects, i64 %count) nounwind alwaysinline {{
  %tuple = call ptr @PyTuple_New(i64 %count)
  %has_failed = icmp eq ptr %tuple, null
  br i1 %has_failed, label %failed, label %made
failed:
  call void @drop_results(ptr %objects, i64 %count)
  ret ptr null
made:
  {each("%count", body="move", latch="move", done="done", before="made")}
  {item("object", "ptr", "%objects", "%index")}
  %ignored = call i32 @PyTuple_SetItem(ptr %tuple, i64 %index, ptr %object)
  {NEXT}
done:
  ret ptr %tuple
}}

; What the call returns, made of the results, which it takes over.
define private ptr @hand_out(ptr %table, ptr %context) nounwind alwaysinline {{
  %objects = call ptr @wrapper_word(ptr %context, i64 {WrapperWord.OBJECTS})
  {load("gives_tuple", "Table", "gives_tuple", "%table")}
  %is_single = icmp eq i64 %gives_tuple, 0
  br i1 %is_single, label %single, label %pack
single:
  %object = load ptr, ptr %objects
  ret ptr %object
pack:
  {load("count", "Table", "result_count", "%table")}
  %tuple = call ptr @pack_tuple(ptr %objects, i64 %count)
  {load("restructure", "Table", "restructure", "%table")}
  %is_flat = icmp eq ptr %restructure, null
  %has_failed = icmp eq ptr %tuple, null
  %is_final = or i1 %is_flat, %has_failed
  br i1 %is_final, label %final, label %reshape
final:
  ret ptr %tuple
reshape:
  %nested = call ptr @call_with_one(ptr %restructure, ptr %tuple)
  ret ptr %nested
}}

; Calls a Python function with one argument, which it takes over.
define private ptr @call_with_one(ptr %function, ptr %argument) nounwind noinline {{
  %arguments = alloca ptr
  store ptr %argument, ptr %arguments
  %value = call ptr @PyObject_Vectorcall(ptr %function, ptr %arguments, i64 1, ptr null)
  call void @Py_DecRef(ptr %argument)
  ret ptr %value
}}
"""

_EXECUTION = f"""
define i64 @{CALL_NUMBER_SYMBOL}(ptr %table) nounwind {{
  {load("number", "Table", "call_number", "%table")}
  %next = add i64 %number, 1
  store i64 %next, ptr %number_field
  ret i64 %number
}}

; Runs the program, without the GIL where the table says so. Its status.
define private i32 @execute(ptr %table, ptr %context) nounwind alwaysinline {{
  %number = call i64 @{CALL_NUMBER_SYMBOL}(ptr %table)
  %number_field = getelementptr i64, ptr %context, i64 {ContextWord.CALL_NUMBER}
  store i64 %number, ptr %number_field
  {load("entry", "Table", "entry", "%table")}
  %parameters = call ptr @wrapper_word(ptr %context, i64 {WrapperWord.PARAMETERS})
  %results = call ptr @wrapper_word(ptr %context, i64 {WrapperWord.RESULTS})
  {load("release", "Table", "release_gil", "%table")}
  %keep_gil = icmp eq i64 %release, 0
  br i1 %keep_gil, label %with_gil, label %without_gil
with_gil:
  %status = call i32 %entry(ptr %context, ptr %parameters, ptr %results)
  ret i32 %status
without_gil:
  %thread = call ptr @PyEval_SaveThread()
  %free_status = call i32 %entry(ptr %context, ptr %parameters, ptr %results)
  call void @PyEval_RestoreThread(ptr %thread)
  ret i32 %free_status
}}

; Lets Python raise for a status. The value, if it returns one after all.
define private ptr @report_failure(ptr %table, ptr %context, i32 %status) nounwind noinline {{
  %objects = call ptr @wrapper_word(ptr %context, i64 {WrapperWord.OBJECTS})
  {load("count", "Table", "result_count", "%table")}
  call void @drop_results(ptr %objects, i64 %count)
  %arguments = alloca [2 x ptr]
  %second = getelementptr ptr, ptr %arguments, i64 1
  %address = ptrtoint ptr %context to i64
  %address_object = call ptr @PyLong_FromLongLong(i64 %address)
  %has_no_address = icmp eq ptr %address_object, null
  br i1 %has_no_address, label %failed, label %number
number:
  %wide_status = sext i32 %status to i64
  %status_object = call ptr @PyLong_FromLongLong(i64 %wide_status)
  %has_no_status = icmp eq ptr %status_object, null
  br i1 %has_no_status, label %half_failed, label %report
half_failed:
  call void @Py_DecRef(ptr %address_object)
  br label %failed
failed:
  ret ptr null
report:
  store ptr %address_object, ptr %arguments
  store ptr %status_object, ptr %second
  {load("hook", "Table", "failed", "%table")}
  %value = call ptr @PyObject_Vectorcall(ptr %hook, ptr %arguments, i64 2, ptr null)
  call void @Py_DecRef(ptr %address_object)
  call void @Py_DecRef(ptr %status_object)
  ret ptr %value
}}
"""

_ENTRY_POINTS = f"""
define ptr @{CALL_SYMBOL}(ptr %self, ptr %arguments, i64 %argument_count) nounwind {{
  {load("table", "Array", "data", "%self")}
  {load("parameter_count", "Table", "parameter_count", "%table")}
  %count_fits = icmp eq i64 %argument_count, %parameter_count
  br i1 %count_fits, label %take, label %general
take:
  %context = call ptr @take_context(ptr %table)
  %has_no_context = icmp eq ptr %context, null
  br i1 %has_no_context, label %failed, label %check
check:
  %matches = call i1 @take_arguments(ptr %table, ptr %context, ptr %arguments)
  br i1 %matches, label %donate, label %mismatch
donate:
  {load("donation_count", "Table", "donation_count", "%table")}
  %has_donations = icmp ne i64 %donation_count, 0
  br i1 %has_donations, label %examine, label %allocate
examine:
  %fits = call i1 @donations_fit(ptr %table, ptr %context, ptr %arguments)
  br i1 %fits, label %allocate, label %mismatch
mismatch:
  call void @return_context(ptr %table, ptr %context)
  br label %general
allocate:
  %is_allocated = call i1 @make_results(ptr %table, ptr %context, ptr %arguments)
  br i1 %is_allocated, label %run, label %finish
run:
  %status = call i32 @execute(ptr %table, ptr %context)
  %is_good = icmp eq i32 %status, 0
  br i1 %is_good, label %good, label %bad
good:
  %result = call ptr @hand_out(ptr %table, ptr %context)
  br label %finish
bad:
  %instead = call ptr @report_failure(ptr %table, ptr %context, i32 %status)
  br label %finish
finish:
  %value = phi ptr [ null, %allocate ], [ %result, %good ], [ %instead, %bad ]
  call void @return_context(ptr %table, ptr %context)
  ret ptr %value
failed:
  ret ptr null
general:
  {load("general_function", "Table", "general", "%table")}
  %general_value = call ptr @PyObject_Vectorcall(ptr %general_function, ptr %arguments, i64 %argument_count, ptr null)
  ret ptr %general_value
}}
"""
