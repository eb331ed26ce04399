"""LLVM text: functions, scalar and vector operations, elementary functions, memory."""
