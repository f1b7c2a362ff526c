"""The part of the call wrapper that gives results their memory: see `xlapy_runtime.result_blocks`."""

from __future__ import annotations

from xlapy.codegen.call_wrapper_text import NEXT, each, load, place, store
from xlapy_runtime.alignment import LINE_BYTES
from xlapy_runtime.images import PAGE_BYTES
from xlapy_runtime.result_blocks import HANDLER_SYMBOLS, PAGED_BYTES, POOL_SYMBOL, TRIM_SYMBOL

_MALLOC, _CALLOC, _REALLOC, _FREE = HANDLER_SYMBOLS
_POOL = f"@{POOL_SYMBOL}"
_MOST_BYTES = 1 << 62
"""Sums of such sizes with those of lines do not wrap."""

_PARTS = f"""
{_POOL} = external global %BlockPool

declare ptr @PyMem_RawMalloc(i64)
declare void @PyMem_RawFree(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare {{ i64, i1 }} @llvm.umul.with.overflow.i64(i64, i64)

define private ptr @data_of_block(ptr %block) nounwind alwaysinline {{
  %data = getelementptr i8, ptr %block, i64 {LINE_BYTES}
  ret ptr %data
}}

define private ptr @block_of_data(ptr %data) nounwind alwaysinline {{
  %block = getelementptr i8, ptr %data, i64 {-LINE_BYTES}
  ret ptr %block
}}

define private void @count(ptr %number, i64 %more) nounwind alwaysinline {{
  %before = load i64, ptr %number
  %after = add i64 %before, %more
  store i64 %after, ptr %number
  ret void
}}

; So many blocks more wait, of so many bytes; or fewer.
define private void @count_idle(i64 %blocks, i64 %bytes) nounwind alwaysinline {{
  {place("blocks", "BlockPool", "idle_blocks", _POOL)}
  call void @count(ptr %blocks_field, i64 %blocks)
  {place("bytes", "BlockPool", "idle_bytes", _POOL)}
  call void @count(ptr %bytes_field, i64 %bytes)
  ret void
}}
"""

_MAKING = f"""
; A block for so many bytes, of a class or of none, at the beginning of a line or page; null if there is no memory.
define private ptr @new_block(i64 %capacity, ptr %home) nounwind noinline {{
  %is_absurd = icmp ugt i64 %capacity, {_MOST_BYTES}
  br i1 %is_absurd, label %none, label %ask
ask:
  %is_large = icmp uge i64 %capacity, {PAGED_BYTES}
  %alignment = select i1 %is_large, i64 {PAGE_BYTES}, i64 {LINE_BYTES}
  %around = add i64 %alignment, {LINE_BYTES}
  %size = add i64 %capacity, %around
  %raw = call ptr @PyMem_RawMalloc(i64 %size)
  %has_failed = icmp eq ptr %raw, null
  br i1 %has_failed, label %none, label %made
none:
  ret ptr null
made:
  %address = ptrtoint ptr %raw to i64
  %behind_header = add i64 %address, {LINE_BYTES}
  %from_data = sub i64 0, %behind_header
  %within = sub i64 %alignment, 1
  %skipped = and i64 %from_data, %within
  %block = getelementptr i8, ptr %raw, i64 %skipped
  {store("%home", "Block", "home", "%block")}
  {store("%capacity", "Block", "capacity", "%block")}
  {store("%raw", "Block", "raw", "%block")}
  {place("fresh", "BlockPool", "fresh", _POOL)}
  call void @count(ptr %fresh_field, i64 1)
  ret ptr %block
}}

; An idle block of a class, or a new one; null if there is no memory.
define private ptr @take_block(ptr %home) nounwind alwaysinline {{
  {load("block", "BlockClass", "idle", "%home")}
  {load("size", "BlockClass", "block_bytes", "%home")}
  %is_empty = icmp eq ptr %block, null
  br i1 %is_empty, label %make, label %take
make:
  %new = call ptr @new_block(i64 %size, ptr %home)
  ret ptr %new
take:
  {load("next", "Block", "next", "%block")}
  store ptr %next, ptr %block_field
  %fewer = sub i64 0, %size
  call void @count_idle(i64 -1, i64 %fewer)
  {place("recycled", "BlockPool", "recycled", _POOL)}
  call void @count(ptr %recycled_field, i64 1)
  ret ptr %block
}}

; Lets a block wait for its next use, if it has a class, or gives it back to the system. Where too much waits already,
; all of that goes: it is what nobody has wanted for a while, unless everything is wanted and too much.
define private void @leave_block(ptr %block) nounwind alwaysinline {{
  {load("home", "Block", "home", "%block")}
  %is_single = icmp eq ptr %home, null
  br i1 %is_single, label %release, label %look
release:
  call void @release_block(ptr %block)
  ret void
look:
  {load("size", "BlockClass", "block_bytes", "%home")}
  {load("idle", "BlockPool", "idle_bytes", _POOL)}
  {load("limit", "BlockPool", "limit_bytes", _POOL)}
  %sum = add i64 %idle, %size
  %has_room = icmp sle i64 %sum, %limit
  br i1 %has_room, label %keep, label %make_room
make_room:
  call void @{TRIM_SYMBOL}()
  br label %keep
keep:
  {load("first", "BlockClass", "idle", "%home")}
  {store("%first", "Block", "next", "%block")}
  store ptr %block, ptr %first_field
  call void @count_idle(i64 1, i64 %size)
  ret void
}}

define private void @release_block(ptr %block) nounwind noinline {{
  {load("raw", "Block", "raw", "%block")}
  call void @PyMem_RawFree(ptr %raw)
  ret void
}}

; Gives all blocks that wait back to the system.
define void @{TRIM_SYMBOL}() nounwind noinline {{
  {load("classes", "BlockPool", "classes", _POOL)}
  {load("count", "BlockPool", "class_count", _POOL)}
  {each("%count", body="look", latch="empty", done="done")}
  {load("first", "BlockClass", "idle", "%classes", "%index")}
  store ptr null, ptr %first_field
  {load("size", "BlockClass", "block_bytes", "%classes", "%index")}
  %fewer = sub i64 0, %size
  br label %more
more:
  %block = phi ptr [ %first, %look ], [ %following, %drop ]
  %is_last = icmp eq ptr %block, null
  br i1 %is_last, label %empty, label %drop
drop:
  {load("following", "Block", "next", "%block")}
  call void @release_block(ptr %block)
  call void @count_idle(i64 -1, i64 %fewer)
  br label %more
empty:
  {NEXT}
done:
  ret void
}}
"""

_HANDLER = f"""
; What numpy calls to free and resize arrays that own a block. Blocks made here have no class.
define ptr @{_MALLOC}(ptr %context, i64 %size) nounwind {{
  %block = call ptr @new_block(i64 %size, ptr null)
  %has_failed = icmp eq ptr %block, null
  br i1 %has_failed, label %failed, label %made
failed:
  ret ptr null
made:
  %data = call ptr @data_of_block(ptr %block)
  ret ptr %data
}}

define ptr @{_CALLOC}(ptr %context, i64 %count, i64 %size) nounwind {{
  %product = call {{ i64, i1 }} @llvm.umul.with.overflow.i64(i64 %count, i64 %size)
  %bytes = extractvalue {{ i64, i1 }} %product, 0
  %wraps = extractvalue {{ i64, i1 }} %product, 1
  br i1 %wraps, label %failed, label %ask
failed:
  ret ptr null
ask:
  %data = call ptr @{_MALLOC}(ptr %context, i64 %bytes)
  %has_failed = icmp eq ptr %data, null
  br i1 %has_failed, label %failed, label %made
made:
  call void @llvm.memset.p0.i64(ptr %data, i8 0, i64 %bytes, i1 false)
  ret ptr %data
}}

define ptr @{_REALLOC}(ptr %context, ptr %data, i64 %size) nounwind {{
  %has_none = icmp eq ptr %data, null
  br i1 %has_none, label %make, label %look
make:
  %first = call ptr @{_MALLOC}(ptr %context, i64 %size)
  ret ptr %first
look:
  %block = call ptr @block_of_data(ptr %data)
  {load("capacity", "Block", "capacity", "%block")}
  %fits = icmp ule i64 %size, %capacity
  br i1 %fits, label %stay, label %move
stay:
  ret ptr %data
move:
  %larger = call ptr @{_MALLOC}(ptr %context, i64 %size)
  %has_failed = icmp eq ptr %larger, null
  br i1 %has_failed, label %failed, label %copy
failed:
  ret ptr null
copy:
  call void @llvm.memcpy.p0.p0.i64(ptr %larger, ptr %data, i64 %capacity, i1 false)
  call void @leave_block(ptr %block)
  ret ptr %larger
}}

define void @{_FREE}(ptr %context, ptr %data, i64 %size) nounwind {{
  %has_none = icmp eq ptr %data, null
  br i1 %has_none, label %done, label %leave
leave:
  %block = call ptr @block_of_data(ptr %data)
  call void @leave_block(ptr %block)
  br label %done
done:
  ret void
}}
"""

BLOCKS = _PARTS + _MAKING + _HANDLER
