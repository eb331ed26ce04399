"""Machine code for the host: LLVM through llvmlite."""
