"""Linear algebra and Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.workloads.registry import normal, workload


def positive(*shape: int) -> Any:
    """Symmetric positive definite matrices."""
    a = normal(*shape)
    return a @ np.swapaxes(a, -1, -2) + shape[-1] * np.eye(shape[-1], dtype=np.float32)


@workload("linalg", numpy=np.linalg.cholesky, torch=lambda t, a: t.linalg.cholesky(a))
def cholesky_200(m: Any) -> Any:
    return m.numpy.linalg.cholesky, (positive(200, 200),)


@workload("linalg", numpy=np.linalg.solve, torch=lambda t, a, b: t.linalg.solve(a, b))
def solve_many_small(m: Any) -> Any:
    return m.numpy.linalg.solve, (positive(5000, 6, 6), normal(5000, 6, 1))


@workload("linalg", numpy=np.linalg.eigh, torch=lambda t, a: t.linalg.eigh(a))
def eigen_100(m: Any) -> Any:
    def f(a: Any) -> Any:
        values, vectors = m.numpy.linalg.eigh(a)
        return values, m.numpy.abs(vectors)  # whose signs are free

    return f, (positive(100, 100),)


@workload("linalg", numpy=np.linalg.qr, torch=lambda t, a: t.linalg.qr(a))
def qr_tall(m: Any) -> Any:
    return (lambda a: tuple(map(m.numpy.abs, m.numpy.linalg.qr(a)))), (normal(600, 40),)


@workload("linalg")
def log_determinant_gradient(m: Any) -> Any:
    return m.grad(lambda a: m.numpy.linalg.slogdet(a)[1].sum()), (positive(100, 24, 24),)


@workload("linalg", numpy=np.fft.rfft, torch=lambda t, x: t.fft.rfft(x))
def real_fft_of_rows(m: Any) -> Any:
    return m.numpy.fft.rfft, (normal(200, 4096),)
