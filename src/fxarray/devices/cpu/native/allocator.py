"""The allocator of arrays and scratch memory, as LLVM text.

Fresh memory costs more than most kernels take to fill it, since the system clears every page at its
first use. So freed blocks are kept, by size class, and given out again. Four classes per power of
two waste at most a quarter, and of that only what an earlier use of the block has touched.

A block has a header of 64 bytes and then its data, aligned to 64:

      0  size of the data     8  the next free block     16  the address that the system gave

State, by byte offset: 0 limit of what is kept, 64 bytes kept, 128 bytes in use, 136 their maximum,
1024 + 64 * class: a lock (i32) and at 8 the first free block. Locks are held for a few
instructions. A list changes by one store, so a fork finds lists whole whoever held a lock.
"""

from __future__ import annotations

LIMIT, KEPT, LIVE, PEAK, CLASSES = 0, 64, 128, 136, 1024
CLASS_COUNT = 192
STATE_BYTES = CLASSES + 64 * CLASS_COUNT
HEADER = 64
# Blocks from this size on are aligned to huge pages, which the system is asked to use for them.
_LARGE, _HUGE_PAGE = 4 << 20, 2 << 20
_LARGEST = 1 << 46


def allocator_text(linux: bool) -> str:
    """The module: `allocate`, `release`, `trim`, and NumPy's `calloc` and `realloc`."""
    advise = "call i32 @madvise(ptr %given, i64 %whole, i32 14)" if linux else ""
    return f"""
declare i32 @posix_memalign(ptr, i64, i64)
declare void @free(ptr)
declare i32 @madvise(ptr, i64, i32)
declare i32 @sched_yield()
declare i64 @llvm.ctlz.i64(i64, i1)
declare i64 @llvm.umin.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; The class of a size: 0 up to 64 bytes, then 4 per power of two.
define internal i64 @class_of(i64 %size, ptr %rounded_at) {{
  %tiny = icmp ule i64 %size, 64
  br i1 %tiny, label %first, label %other
first:
  store i64 64, ptr %rounded_at
  ret i64 0
other:
  %last = sub i64 %size, 1
  %zeros = call i64 @llvm.ctlz.i64(i64 %last, i1 true)
  %power = sub i64 63, %zeros
  %shift = sub i64 %power, 2
  %lead = lshr i64 %last, %shift
  %up = add i64 %lead, 1
  %rounded = shl i64 %up, %shift
  store i64 %rounded, ptr %rounded_at
  %octave = sub i64 %power, 6
  %four = shl i64 %octave, 2
  %quarter = sub i64 %lead, 3
  %class = add i64 %four, %quarter
  ret i64 %class
}}

define internal void @lock(ptr %word) {{
start:
  br label %try
try:
  %pair = cmpxchg ptr %word, i32 0, i32 1 acquire monotonic
  %got = extractvalue {{i32, i1}} %pair, 1
  br i1 %got, label %end, label %yield
yield:
  call i32 @sched_yield()
  br label %try
end:
  ret void
}}

define internal ptr @list_of(ptr %pool, i64 %class) {{
  %offset = shl i64 %class, 6
  %base = getelementptr i8, ptr %pool, i64 {CLASSES}
  %list = getelementptr i8, ptr %base, i64 %offset
  ret ptr %list
}}

define internal ptr @fresh(i64 %size) noinline {{
  %at = alloca ptr, align 8
  %large = icmp uge i64 %size, {_LARGE}
  %alignment = select i1 %large, i64 {_HUGE_PAGE}, i64 64
  %whole = add i64 %size, {HEADER}
  %status = call i32 @posix_memalign(ptr %at, i64 %alignment, i64 %whole)
  %good = icmp eq i32 %status, 0
  br i1 %good, label %made, label %none
made:
  %given = load ptr, ptr %at
  br i1 %large, label %huge, label %fill
huge:
  {advise}
  br label %fill
fill:
  store i64 %size, ptr %given
  %base_at = getelementptr i8, ptr %given, i64 16
  store ptr %given, ptr %base_at
  %data = getelementptr i8, ptr %given, i64 {HEADER}
  ret ptr %data
none:
  ret ptr null
}}

define ptr @allocate(ptr %pool, i64 %size) {{
  %rounded_at = alloca i64, align 8
  %absurd = icmp ugt i64 %size, {_LARGEST}
  br i1 %absurd, label %none, label %find
find:
  %class = call i64 @class_of(i64 %size, ptr %rounded_at)
  %rounded = load i64, ptr %rounded_at
  %list = call ptr @list_of(ptr %pool, i64 %class)
  %head_at = getelementptr i8, ptr %list, i64 8
  %hint = load atomic ptr, ptr %head_at monotonic, align 8
  %empty = icmp eq ptr %hint, null
  br i1 %empty, label %miss, label %take
take:
  call void @lock(ptr %list)
  %head = load ptr, ptr %head_at
  %gone = icmp eq ptr %head, null
  br i1 %gone, label %unlock_miss, label %pop
pop:
  %next_at = getelementptr i8, ptr %head, i64 8
  %next = load ptr, ptr %next_at
  store ptr %next, ptr %head_at
  store atomic i32 0, ptr %list release, align 4
  %kept_at = getelementptr i8, ptr %pool, i64 {KEPT}
  %kept = atomicrmw sub ptr %kept_at, i64 %rounded monotonic
  %reused = getelementptr i8, ptr %head, i64 {HEADER}
  br label %count
unlock_miss:
  store atomic i32 0, ptr %list release, align 4
  br label %miss
miss:
  %first = call ptr @fresh(i64 %rounded)
  %failed = icmp eq ptr %first, null
  br i1 %failed, label %again, label %count
again:
  call void @trim(ptr %pool)
  %second = call ptr @fresh(i64 %rounded)
  %lost = icmp eq ptr %second, null
  br i1 %lost, label %none, label %count
count:
  %data = phi ptr [%reused, %pop], [%first, %miss], [%second, %again]
  %live_at = getelementptr i8, ptr %pool, i64 {LIVE}
  %before = atomicrmw add ptr %live_at, i64 %rounded monotonic
  %live = add i64 %before, %rounded
  %peak_at = getelementptr i8, ptr %pool, i64 {PEAK}
  %peak = load atomic i64, ptr %peak_at monotonic, align 8
  %higher = icmp ugt i64 %live, %peak
  br i1 %higher, label %raise, label %end
raise:
  %old = atomicrmw umax ptr %peak_at, i64 %live monotonic
  br label %end
end:
  ret ptr %data
none:
  ret ptr null
}}

define void @release(ptr %pool, ptr %data) {{
  %rounded_at = alloca i64, align 8
  %nothing = icmp eq ptr %data, null
  br i1 %nothing, label %end, label %some
some:
  %block = getelementptr i8, ptr %data, i64 -{HEADER}
  %size = load i64, ptr %block
  %live_at = getelementptr i8, ptr %pool, i64 {LIVE}
  %before = atomicrmw sub ptr %live_at, i64 %size monotonic
  %kept_at = getelementptr i8, ptr %pool, i64 {KEPT}
  %old = atomicrmw add ptr %kept_at, i64 %size monotonic
  %kept = add i64 %old, %size
  %limit = load i64, ptr %pool
  %fits = icmp ule i64 %kept, %limit
  br i1 %fits, label %push, label %full
full:
  ; What is kept is not what is used now.
  call void @trim(ptr %pool)
  %possible = icmp ule i64 %size, %limit
  br i1 %possible, label %push, label %drop
drop:
  %gone = atomicrmw sub ptr %kept_at, i64 %size monotonic
  %base_at = getelementptr i8, ptr %block, i64 16
  %base = load ptr, ptr %base_at
  call void @free(ptr %base)
  br label %end
push:
  %class = call i64 @class_of(i64 %size, ptr %rounded_at)
  %list = call ptr @list_of(ptr %pool, i64 %class)
  %head_at = getelementptr i8, ptr %list, i64 8
  %next_at = getelementptr i8, ptr %block, i64 8
  call void @lock(ptr %list)
  %head = load ptr, ptr %head_at
  store ptr %head, ptr %next_at
  store ptr %block, ptr %head_at
  store atomic i32 0, ptr %list release, align 4
  br label %end
end:
  ret void
}}

; Give all kept blocks back to the system.
define void @trim(ptr %pool) noinline {{
start:
  %kept_at = getelementptr i8, ptr %pool, i64 {KEPT}
  br label %each
each:
  %class = phi i64 [0, %start], [%following, %done]
  %list = call ptr @list_of(ptr %pool, i64 %class)
  %head_at = getelementptr i8, ptr %list, i64 8
  call void @lock(ptr %list)
  %all = load ptr, ptr %head_at
  store ptr null, ptr %head_at
  store atomic i32 0, ptr %list release, align 4
  br label %walk
walk:
  %block = phi ptr [%all, %each], [%next, %free]
  %none = icmp eq ptr %block, null
  br i1 %none, label %done, label %free
free:
  %next_at = getelementptr i8, ptr %block, i64 8
  %next = load ptr, ptr %next_at
  %size = load i64, ptr %block
  %base_at = getelementptr i8, ptr %block, i64 16
  %base = load ptr, ptr %base_at
  call void @free(ptr %base)
  %kept = atomicrmw sub ptr %kept_at, i64 %size monotonic
  br label %walk
done:
  %following = add i64 %class, 1
  %more = icmp ult i64 %following, {CLASS_COUNT}
  br i1 %more, label %each, label %end
end:
  ret void
}}

; The functions of NumPy's memory handler; the last argument of `free` is a size.
define void @numpy_free(ptr %pool, ptr %data, i64 %size) {{
  call void @release(ptr %pool, ptr %data)
  ret void
}}

define ptr @numpy_calloc(ptr %pool, i64 %count, i64 %each) {{
  %pair = call {{i64, i1}} @llvm.umul.with.overflow.i64(i64 %count, i64 %each)
  %size = extractvalue {{i64, i1}} %pair, 0
  %over = extractvalue {{i64, i1}} %pair, 1
  br i1 %over, label %none, label %try
try:
  %data = call ptr @allocate(ptr %pool, i64 %size)
  %failed = icmp eq ptr %data, null
  br i1 %failed, label %none, label %clear
clear:
  call void @llvm.memset.p0.i64(ptr %data, i8 0, i64 %size, i1 false)
  ret ptr %data
none:
  ret ptr null
}}
declare {{i64, i1}} @llvm.umul.with.overflow.i64(i64, i64)

define ptr @numpy_realloc(ptr %pool, ptr %data, i64 %size) {{
  %new = call ptr @allocate(ptr %pool, i64 %size)
  %failed = icmp eq ptr %new, null
  %nothing = icmp eq ptr %data, null
  %either = or i1 %failed, %nothing
  br i1 %either, label %end, label %copy
copy:
  %block = getelementptr i8, ptr %data, i64 -{HEADER}
  %old = load i64, ptr %block
  %both = call i64 @llvm.umin.i64(i64 %old, i64 %size)
  call void @llvm.memcpy.p0.p0.i64(ptr %new, ptr %data, i64 %both, i1 false)
  call void @release(ptr %pool, ptr %data)
  br label %end
end:
  ret ptr %new
}}
"""
