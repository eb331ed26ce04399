"""What fxarray costs, measured beside JAX in one process: `python -m benchmarks --help`."""
