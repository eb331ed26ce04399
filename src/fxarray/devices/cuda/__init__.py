"""The CUDA device: kernels as Triton text."""
