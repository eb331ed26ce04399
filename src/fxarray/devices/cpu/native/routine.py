"""A routine: machine code for one step of a graph, and what it is called with.

All native code has one signature, `void @entry(ptr %runtime, ptr %arguments)`. `arguments` points
to 8-byte words, which `Routine.words` describes. The first words of `runtime` are the address of
`run`, the number of threads, and the allocator: its state and the addresses of its functions:

    void run(ptr %runtime, ptr %function, ptr %arguments, i64 %parts)
    ptr allocate(ptr %pool, i64 %bytes)
    void release(ptr %pool, ptr %memory)

`run` calls `function(runtime, arguments, thread, part)` for every part below `parts`, on all
threads; it returns when all parts are done. How work is cut into parts depends on sizes alone, so
results do not depend on the number of threads; `thread` (below the number of threads) chooses
scratch memory.
`allocate` gives memory aligned to 64 bytes, null if there is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from fxarray.kernel.sizes import Size

RUN_WORD = 0
THREADS_WORD = 1
POOL_WORD = 4
ALLOCATE_WORD = 5
RELEASE_WORD = 6


@dataclass(frozen=True)
class InputPointer:
    """The address of an input of the step, or some bytes after it."""

    number: int
    offset: int = 0


@dataclass(frozen=True)
class OutputPointer:
    """The address of an output of the step."""

    number: int


@dataclass(frozen=True)
class ScratchPointer:
    """The address of `scratch + threads * thread_scratch` bytes, aligned to 64."""


@dataclass(frozen=True)
class SizeWord:
    """A size as i64, known when compiling or at run time."""

    size: Size


@dataclass(frozen=True)
class FunctionPointer:
    """The address of `entry` of another module, whatever its signature."""

    text: str


@dataclass(frozen=True)
class Address:
    """An address in this process, such as a LAPACK function's."""

    value: int


Word: TypeAlias = (
    InputPointer | OutputPointer | ScratchPointer | SizeWord | FunctionPointer | Address
)


@dataclass(frozen=True)
class Routine:
    """Machine code for one step.

    Args:
      text: an LLVM module that defines `@entry`.
      words: its arguments.
      scratch: bytes of scratch memory.
      thread_scratch: further bytes for each thread.
      flops: floating-point operations, for cost analysis.
      bytes_moved: bytes read and written, for cost analysis.
    """

    text: str
    words: tuple[Word, ...]
    scratch: Size = 0
    thread_scratch: Size = 0
    flops: Size = 0
    bytes_moved: Size = 0
