"""The part of the call wrapper that looks at arguments: whether each is what the program asks for, and whether those
that are to become results may."""

from __future__ import annotations

from xlapy.codegen.call_wrapper_text import NEXT, each, each_result, item, load
from xlapy_runtime.calling import ARRAY_TYPE_SYMBOL, BLOCK_BYTES_SYMBOL, WrapperWord

OWNS_DATA_FLAG = 0x0004
LENDABLE_FLAGS = 0x0001 | 0x0100 | 0x0400
"""numpy's C_CONTIGUOUS, ALIGNED and WRITEABLE."""

ARGUMENTS = f"""
; Whether the argument is exactly the array that the parameter asks for.
define private i1 @argument_matches(ptr %parameter, ptr %argument) nounwind alwaysinline {{
  {load("type", "Array", "type", "%argument")}
  %is_array = icmp eq ptr %type, @{ARRAY_TYPE_SYMBOL}
  br i1 %is_array, label %array, label %no
array:
  {load("dtype", "Array", "descriptor", "%argument")}
  {load("wanted_dtype", "Parameter", "dtype", "%parameter")}
  %is_same_dtype = icmp eq ptr %dtype, %wanted_dtype
  br i1 %is_same_dtype, label %layout, label %other_dtype
other_dtype:
  {load("identity", "Dtype", "identity", "%dtype")}
  {load("wanted_identity", "Dtype", "identity", "%wanted_dtype")}
  %is_dtype = icmp eq i64 %identity, %wanted_identity
  br i1 %is_dtype, label %layout, label %no
layout:
  {load("flags", "Array", "flags", "%argument")}
  %contiguous = trunc i32 %flags to i1 ; NPY_ARRAY_C_CONTIGUOUS is the lowest bit
  {load("rank_i32", "Array", "rank", "%argument")}
  %rank = zext i32 %rank_i32 to i64
  {load("wanted_rank", "Parameter", "rank", "%parameter")}
  %is_rank = icmp eq i64 %rank, %wanted_rank
  %fits = and i1 %contiguous, %is_rank
  br i1 %fits, label %dims, label %no
dims:
  {load("actual", "Array", "dims", "%argument")}
  {load("wanted", "Parameter", "dims", "%parameter")}
  {each("%rank", body="compare", latch="compare", done="yes", before="dims")}
  {item("actual_dim", "i64", "%actual", "%index")}
  {item("wanted_dim", "i64", "%wanted", "%index")}
  %is_dim = icmp eq i64 %actual_dim, %wanted_dim
  %next_index = add nuw i64 %index, 1
  br i1 %is_dim, label %next, label %no
yes:
  ret i1 true
no:
  ret i1 false
}}

; Whether all arguments match; notes where their data is.
define private i1 @take_arguments(ptr %table, ptr %context, ptr %arguments) nounwind alwaysinline {{
  {load("count", "Table", "parameter_count", "%table")}
  {load("parameters", "Table", "parameters", "%table")}
  %pointers = call ptr @wrapper_word(ptr %context, i64 {WrapperWord.PARAMETERS})
  {each("%count", body="compare", latch="note", done="yes")}
  {item("argument", "ptr", "%arguments", "%index")}
  %parameter = getelementptr %Parameter, ptr %parameters, i64 %index
  %matches = call i1 @argument_matches(ptr %parameter, ptr %argument)
  br i1 %matches, label %note, label %no
note:
  call void @note_data(ptr %pointers, i64 %index, ptr %argument)
  {NEXT}
yes:
  ret i1 true
no:
  ret i1 false
}}
"""

DONATIONS = f"""
; Whether the memory of an argument touches that of another one.
define private i1 @is_shared(ptr %table, ptr %pointers, i64 %number) nounwind alwaysinline {{
  {load("count", "Table", "parameter_count", "%table")}
  {load("parameters", "Table", "parameters", "%table")}
  {item("own", "i64", "%pointers", "%number")}
  {load("own_bytes", "Parameter", "byte_count", "%parameters", "%number")}
  %own_end = add i64 %own, %own_bytes
  {each("%count", body="compare", latch="compared", done="apart")}
  {item("other", "i64", "%pointers", "%index")}
  {load("other_bytes", "Parameter", "byte_count", "%parameters", "%index")}
  %other_end = add i64 %other, %other_bytes
  %begins_before_end = icmp ult i64 %other, %own_end
  %ends_behind_begin = icmp ult i64 %own, %other_end
  %is_other = icmp ne i64 %index, %number
  %touches = and i1 %begins_before_end, %ends_behind_begin
  %other_touches = and i1 %touches, %is_other
  br i1 %other_touches, label %shared, label %compared
compared:
  {NEXT}
apart:
  ret i1 false
shared:
  ret i1 true
}}

; Whether an array owns its memory, or is a large result: its base is the bytes of its block.
define private i1 @owns_memory(ptr %array, i64 %byte_count) nounwind alwaysinline {{
  {load("flags", "Array", "flags", "%array")}
  %owns_bit = and i32 %flags, {OWNS_DATA_FLAG}
  %owns = icmp ne i32 %owns_bit, 0
  br i1 %owns, label %yes, label %look
look:
  {load("base", "Array", "base", "%array")}
  %has_no_base = icmp eq ptr %base, null
  br i1 %has_no_base, label %no, label %based
based:
  {load("base_type", "Array", "type", "%base")}
  %is_block = icmp eq ptr %base_type, @{BLOCK_BYTES_SYMBOL}
  br i1 %is_block, label %block, label %no
block:
  {load("dims", "Array", "dims", "%base")}
  %bytes_of_block = load i64, ptr %dims
  %is_all = icmp eq i64 %bytes_of_block, %byte_count
  ret i1 %is_all
yes:
  ret i1 true
no:
  ret i1 false
}}

; Whether every argument that is to become a result may: its flags say that it is contiguous, aligned and writeable, it
; owns its memory, and no other argument has a part of that. Where the data of all arguments is has been noted.
define private i1 @donations_fit(ptr %table, ptr %context, ptr %arguments) nounwind noinline {{
  %pointers = call ptr @wrapper_word(ptr %context, i64 {WrapperWord.PARAMETERS})
  {each_result(fresh="fits", latch="fits")}
  {load("flags", "Array", "flags", "%argument")}
  %found = and i32 %flags, {LENDABLE_FLAGS}
  %may_be_written = icmp eq i32 %found, {LENDABLE_FLAGS}
  br i1 %may_be_written, label %writeable, label %no
writeable:
  {load("parameters", "Table", "parameters", "%table")}
  {load("byte_count", "Parameter", "byte_count", "%parameters", "%donor")}
  %owns = call i1 @owns_memory(ptr %argument, i64 %byte_count)
  br i1 %owns, label %own, label %no
own:
  %shares = call i1 @is_shared(ptr %table, ptr %pointers, i64 %donor)
  br i1 %shares, label %no, label %fits
fits:
  {NEXT}
yes:
  ret i1 true
no:
  ret i1 false
}}
"""
