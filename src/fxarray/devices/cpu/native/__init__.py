"""From LLVM text to running code: compiling, linking, caching, threads and memory.

target      the host's processor, and others to check code for
compiler    LLVM text -> object code or assembly
cache       object code on disk
linker      object code -> addresses
ahead       compiling before it is asked for, while Python writes the next text
jit         LLVM text -> addresses: `addresses(texts)`, `prepare(text)`
routine     the signature of all native code
pool        the worker threads, as LLVM text;  runtime: the block that native code is given
allocator   memory, as LLVM text;  memory: NumPy arrays in it, `empty(shape, dtype)`
dispatch    calling native code with DeviceArrays: `prepare(Target(...))`
"""
