"""The worker pool, as LLVM text: threads that wait in generated code and take parts of a job.

A job is a function and a number of parts. Parts are claimed by one atomic addition, by the caller
too; the caller waits for parts to be done, never for threads, so a worker that the system does not
schedule costs nothing. Who finds the pool busy (another thread's job, or a part that itself calls
`run`) does all its parts alone.

The runtime block, by byte offset; what different threads write lies on different cache lines:

      0  address of `run`; threads; spins before sleeping; whether the workers are started; the
         allocator's state, `allocate`, `release`
     64  owner: 1 while a job runs
    128  claims: parts << 32 | the next part
    192  done: parts that are done (i32); whether the caller sleeps on it (i32)
    256  epoch: counts jobs (i32); workers that sleep on it (i32)
    320  function, arguments of the job
    384  whatever the system's way of sleeping needs (two places of 128 bytes)
    640  stack attributes for new threads
   1024  for each worker: the block's address, its number

Why no wake-up is lost: a worker counts itself among the sleepers and then sleeps only if the epoch
is still the one it knows, which the system checks under its own lock; the caller advances the epoch
and then reads the number of sleepers. Both are sequentially consistent, so either the caller sees
the sleeper or the sleeper sees the new epoch. The same holds for the caller's sleep on `done`.

Why no claim is stale: function and arguments are written before `claims`, and read after a claim
that succeeded; `run` returns only when all parts are done, so no successful claim outlives its job.
"""

from __future__ import annotations

import signal
import sys
from dataclasses import dataclass

RUN, THREADS, SPINS, STARTED, ALLOCATOR = 0, 8, 16, 24, 32
OWNER, CLAIMS, DONE, EPOCH, JOB = 64, 128, 192, 256, 320
SLEEP, ATTRIBUTES, WORKERS = 384, 640, 1024


@dataclass(frozen=True)
class Waiting:
    """How threads sleep on a word and are woken.

    Args:
      text: definitions of `void @sleep(ptr %block, ptr %word, i32 %known)`, which returns at some
        time after `word` differs from `known`, and `void @wake(ptr %block, ptr %word, i32 %count)`.
    """

    text: str


def futex(number: int) -> Waiting:
    """Linux: the system call of that number; 128 and 129 are private wait and wake."""
    return Waiting(f"""
declare i64 @syscall(i64, ...)
define internal void @sleep(ptr %block, ptr %word, i32 %known) noinline {{
  call i64 (i64, ...) @syscall(i64 {number}, ptr %word, i64 128, i32 %known, ptr null)
  ret void
}}
define internal void @wake(ptr %block, ptr %word, i32 %count) noinline {{
  call i64 (i64, ...) @syscall(i64 {number}, ptr %word, i64 129, i32 %count)
  ret void
}}
""")


# Elsewhere: a mutex (128 bytes) and a condition (128 bytes) for all words; a wake-up wakes all.
CONDITION = Waiting(f"""
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
define internal void @sleep(ptr %block, ptr %word, i32 %known) noinline {{
  %mutex = getelementptr i8, ptr %block, i64 {SLEEP}
  %condition = getelementptr i8, ptr %block, i64 {SLEEP + 128}
  call i32 @pthread_mutex_lock(ptr %mutex)
  %now = load atomic i32, ptr %word seq_cst, align 4
  %same = icmp eq i32 %now, %known
  br i1 %same, label %wait, label %end
wait:
  call i32 @pthread_cond_wait(ptr %condition, ptr %mutex)
  br label %end
end:
  call i32 @pthread_mutex_unlock(ptr %mutex)
  ret void
}}
define internal void @wake(ptr %block, ptr %word, i32 %count) noinline {{
  %mutex = getelementptr i8, ptr %block, i64 {SLEEP}
  %condition = getelementptr i8, ptr %block, i64 {SLEEP + 128}
  call i32 @pthread_mutex_lock(ptr %mutex)
  call i32 @pthread_cond_broadcast(ptr %condition)
  call i32 @pthread_mutex_unlock(ptr %mutex)
  ret void
}}
""")

_FUTEX_NUMBERS = {"x86_64": 202, "aarch64": 98}


def waiting(architecture: str) -> Waiting:
    """The system's way of sleeping."""
    if sys.platform == "linux" and architecture in _FUTEX_NUMBERS:
        return futex(_FUTEX_NUMBERS[architecture])
    return CONDITION


def _pause(architecture: str) -> str:
    """What tells the processor that a loop waits."""
    if architecture == "x86_64":
        return "call void @llvm.x86.sse2.pause()"
    if architecture == "aarch64":
        return "call void @llvm.aarch64.isb(i32 15)"
    return "fence acquire"


def pool_text(architecture: str, way: Waiting) -> str:
    """The module: `run`, at which the first word of the block points, and `spin`, for timing."""
    pause = _pause(architecture)
    return f"""
declare void @llvm.x86.sse2.pause()
declare void @llvm.aarch64.isb(i32)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
{way.text}

define void @spin(i64 %count) {{
start:
  br label %loop
loop:
  %i = phi i64 [0, %start], [%next, %loop]
  {pause}
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %end
end:
  ret void
}}

; Parts of the job, for as long as there are any.
define internal void @work(ptr %block, i64 %thread) {{
start:
  %claims = getelementptr i8, ptr %block, i64 {CLAIMS}
  %done = getelementptr i8, ptr %block, i64 {DONE}
  %asleep = getelementptr i8, ptr %block, i64 {DONE + 4}
  %job = getelementptr i8, ptr %block, i64 {JOB}
  %arguments_at = getelementptr i8, ptr %block, i64 {JOB + 8}
  br label %claim
claim:
  %claimed = atomicrmw add ptr %claims, i64 1 seq_cst
  %part = and i64 %claimed, 4294967295
  %parts = lshr i64 %claimed, 32
  %some = icmp ult i64 %part, %parts
  br i1 %some, label %go, label %end
go:
  %function = load ptr, ptr %job
  %arguments = load ptr, ptr %arguments_at
  call void %function(ptr %block, ptr %arguments, i64 %thread, i64 %part)
  %before = atomicrmw add ptr %done, i32 1 seq_cst
  %after = add i32 %before, 1
  %wanted = trunc i64 %parts to i32
  %last = icmp eq i32 %after, %wanted
  br i1 %last, label %finish, label %claim
finish:
  %sleeps = load atomic i32, ptr %asleep seq_cst, align 4
  %must = icmp ne i32 %sleeps, 0
  br i1 %must, label %call, label %end
call:
  call void @wake(ptr %block, ptr %done, i32 1)
  br label %end
end:
  ret void
}}

; A worker's life: wait for a new epoch, awake for a while and then asleep; work.
define internal ptr @worker(ptr %self) {{
start:
  %block = load ptr, ptr %self
  %number_at = getelementptr i8, ptr %self, i64 8
  %thread = load i64, ptr %number_at
  %epoch = getelementptr i8, ptr %block, i64 {EPOCH}
  %sleepers = getelementptr i8, ptr %block, i64 {EPOCH + 4}
  %spins_at = getelementptr i8, ptr %block, i64 {SPINS}
  %spins = load i64, ptr %spins_at
  br label %top
top:
  %known = phi i32 [0, %start], [%now, %go]
  br label %spin
spin:
  %i = phi i64 [0, %top], [%next, %again], [0, %woken]
  %now = load atomic i32, ptr %epoch seq_cst, align 4
  %new = icmp ne i32 %now, %known
  br i1 %new, label %go, label %check
check:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %spins
  br i1 %more, label %again, label %tired
again:
  {pause}
  br label %spin
tired:
  %up = atomicrmw add ptr %sleepers, i32 1 seq_cst
  call void @sleep(ptr %block, ptr %epoch, i32 %known)
  %down = atomicrmw sub ptr %sleepers, i32 1 seq_cst
  br label %woken
woken:
  br label %spin
go:
  call void @work(ptr %block, i64 %thread)
  br label %top
}}

; Start the workers, with all signals left to the other threads.
define internal void @start(ptr %block) noinline {{
start:
  %all = alloca [128 x i8], align 16
  %old = alloca [128 x i8], align 16
  %thread = alloca i64, align 8
  call void @llvm.memset.p0.i64(ptr %all, i8 -1, i64 128, i1 false)
  call i32 @pthread_sigmask(i32 {int(signal.SIG_SETMASK)}, ptr %all, ptr %old)
  %threads_at = getelementptr i8, ptr %block, i64 {THREADS}
  %threads = load i64, ptr %threads_at
  %attributes = getelementptr i8, ptr %block, i64 {ATTRIBUTES}
  br label %loop
loop:
  %i = phi i64 [1, %start], [%next, %loop]
  %offset = mul i64 %i, 16
  %base = getelementptr i8, ptr %block, i64 {WORKERS}
  %self = getelementptr i8, ptr %base, i64 %offset
  store ptr %block, ptr %self
  %number_at = getelementptr i8, ptr %self, i64 8
  store i64 %i, ptr %number_at
  call i32 @pthread_create(ptr %thread, ptr %attributes, ptr @worker, ptr %self)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %threads
  br i1 %more, label %loop, label %end
end:
  call i32 @pthread_sigmask(i32 {int(signal.SIG_SETMASK)}, ptr %old, ptr null)
  ret void
}}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define void @entry(ptr %block, ptr %function, ptr %arguments, i64 %parts) {{
start:
  %threads_at = getelementptr i8, ptr %block, i64 {THREADS}
  %threads = load i64, ptr %threads_at
  %one = icmp ule i64 %threads, 1
  %single = icmp ule i64 %parts, 1
  %large = icmp ugt i64 %parts, 2147483647
  %either = or i1 %one, %single
  %any = or i1 %either, %large
  br i1 %any, label %alone, label %try
try:
  %owner = getelementptr i8, ptr %block, i64 {OWNER}
  %pair = cmpxchg ptr %owner, i32 0, i32 1 seq_cst seq_cst
  %got = extractvalue {{i32, i1}} %pair, 1
  br i1 %got, label %own, label %alone
own:
  %started_at = getelementptr i8, ptr %block, i64 {STARTED}
  %started = load i64, ptr %started_at
  %fresh = icmp eq i64 %started, 0
  br i1 %fresh, label %begin, label %publish
begin:
  store i64 1, ptr %started_at
  call void @start(ptr %block)
  br label %publish
publish:
  %job = getelementptr i8, ptr %block, i64 {JOB}
  %arguments_at = getelementptr i8, ptr %block, i64 {JOB + 8}
  store ptr %function, ptr %job
  store ptr %arguments, ptr %arguments_at
  %done = getelementptr i8, ptr %block, i64 {DONE}
  store atomic i32 0, ptr %done seq_cst, align 4
  %claims = getelementptr i8, ptr %block, i64 {CLAIMS}
  %offered = shl i64 %parts, 32
  store atomic i64 %offered, ptr %claims seq_cst, align 8
  %epoch = getelementptr i8, ptr %block, i64 {EPOCH}
  %last = atomicrmw add ptr %epoch, i32 1 seq_cst
  %sleepers_at = getelementptr i8, ptr %block, i64 {EPOCH + 4}
  %sleepers = load atomic i32, ptr %sleepers_at seq_cst, align 4
  %some = icmp ne i32 %sleepers, 0
  br i1 %some, label %rouse, label %share
rouse:
  %wanted = trunc i64 %parts to i32
  %others = sub i32 %wanted, 1
  call void @wake(ptr %block, ptr %epoch, i32 %others)
  br label %share
share:
  call void @work(ptr %block, i64 0)
  %goal = trunc i64 %parts to i32
  %spins_at = getelementptr i8, ptr %block, i64 {SPINS}
  %spins = load i64, ptr %spins_at
  br label %wait
wait:
  %i = phi i64 [0, %share], [%next, %again], [0, %woken]
  %now = load atomic i32, ptr %done seq_cst, align 4
  %ready = icmp eq i32 %now, %goal
  br i1 %ready, label %release, label %check
check:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %spins
  br i1 %more, label %again, label %tired
again:
  {pause}
  br label %wait
tired:
  %asleep = getelementptr i8, ptr %block, i64 {DONE + 4}
  store atomic i32 1, ptr %asleep seq_cst, align 4
  %seen = load atomic i32, ptr %done seq_cst, align 4
  %finished = icmp eq i32 %seen, %goal
  br i1 %finished, label %woken, label %rest
rest:
  call void @sleep(ptr %block, ptr %done, i32 %seen)
  br label %woken
woken:
  store atomic i32 0, ptr %asleep seq_cst, align 4
  br label %wait
release:
  store atomic i32 0, ptr %owner seq_cst, align 4
  ret void
alone:
  %none = icmp eq i64 %parts, 0
  br i1 %none, label %end, label %each
each:
  %part = phi i64 [0, %alone], [%following, %each]
  call void %function(ptr %block, ptr %arguments, i64 0, i64 %part)
  %following = add i64 %part, 1
  %left = icmp ult i64 %following, %parts
  br i1 %left, label %each, label %end
end:
  ret void
}}
"""
