"""From LLVM text to running code: compiling, linking, caching, threads and memory."""
