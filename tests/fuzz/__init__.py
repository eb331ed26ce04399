"""A differential fuzzer: random programs, run by the compiler, by the reference and by JAX."""
