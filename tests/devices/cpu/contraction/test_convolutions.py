"""Convolutions equal their definition: products with several axes and bounds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fxarray.kernel.build import Builder
from fxarray.kernel.ir import Affine, Kernel

Check = Callable[..., None]


def convolution(
    batch: int,
    channels: int,
    features: int,
    size: tuple[int, ...],
    window: tuple[int, ...],
    stride: int = 1,
    dilation: int = 1,
    padding: int = 0,
    groups: int = 1,
    last: bool = False,
    dtype: str = "f32",
) -> Kernel:
    """`last` puts channels last; in groups of channels each."""
    count = [
        (n + 2 * padding - (w - 1) * dilation - 1) // stride + 1
        for n, w in zip(size, window, strict=True)
    ]
    rank = len(size)
    places, taps = [f"p{i}" for i in range(rank)], [f"t{i}" for i in range(rank)]
    axes = {"g": groups, "n": batch, "f": features, "c": channels}
    axes |= dict(zip(places, count, strict=True)) | dict(zip(taps, window, strict=True))
    total = "f32" if dtype == "bf16" else dtype
    k = Builder("convolution", axes)
    spots = [
        Affine(((p, stride), (t, dilation)), -padding) for p, t in zip(places, taps, strict=True)
    ]
    bounds = [(s, 0, n) for s, n in zip(spots, size, strict=True)] if padding else []
    if last:
        x = k.input("x", (batch, *size, groups, channels), dtype)
        w = k.input("w", (*window, channels, groups, features), dtype)
        z = k.output("z", (batch, *count, groups, features), total)
        x_index, w_index = ("n", *spots, "g", "c"), (*taps, "c", "g", "f")
        z_index = ("n", *places, "g", "f")
    else:
        x = k.input("x", (batch, groups, channels, *size), dtype)
        w = k.input("w", (groups, features, channels, *window), dtype)
        z = k.output("z", (batch, groups, features, *count), total)
        x_index, w_index = ("n", "g", "c", *spots), ("g", "f", "c", *taps)
        z_index = ("n", "g", "f", *places)
    with k.guarded(*bounds):
        a = k.load(x, x_index)
    value = k.contract(a, k.load(w, w_index), ("c", *taps), total)
    k.store(z, z_index, value)
    return k.build()


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2), (3, 2)])
def test_convolutions_of_images(
    check: Check, last: bool, padding: int, stride: int, dilation: int
) -> None:
    kernel = convolution(2, 5, 18, (11, 13), (3, 2), stride, dilation, padding, last=last)
    check(kernel)


@pytest.mark.parametrize("last", [False, True])
def test_convolutions_of_other_ranks(check: Check, last: bool) -> None:
    check(convolution(3, 16, 20, (50,), (5,), padding=2, last=last))
    check(convolution(2, 4, 9, (5, 6, 7), (2, 3, 3), padding=1, last=last))


@pytest.mark.parametrize("last", [False, True])
def test_grouped_convolutions(check: Check, last: bool) -> None:
    check(convolution(2, 6, 8, (12, 12), (3, 3), padding=1, groups=3, last=last))
    check(convolution(2, 1, 2, (12, 12), (3, 3), padding=1, groups=7, last=last))


@pytest.mark.parametrize("dtype", ["f64", "bf16", "c64", "i32"])
def test_convolutions_of_other_dtypes(check: Check, dtype: str) -> None:
    for last in (False, True):
        check(convolution(2, 5, 18, (11, 13), (3, 3), padding=1, last=last, dtype=dtype))


def test_padding_is_zero_even_beside_infinities(check: Check) -> None:
    kernel = convolution(2, 4, 20, (9, 9), (3, 3), padding=1)
    rng = np.random.default_rng(0)
    x, w = [rng.standard_normal(b.shape).astype(np.float32) for b in kernel.inputs]
    x[0, 0, 0, 4, 4] = np.inf
    check(kernel, [x, w])


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "c64", "i32"])
@pytest.mark.parametrize(
    ("channels", "size", "window"),
    [(5, (8, 9), 3), (1, (20, 28), 3), (3, (17, 40), 5), (2, (6, 5), 6)],
)
def test_the_gradient_of_the_kernel_sums_over_batch_and_places(
    check: Check, channels: int, size: tuple[int, int], window: int, dtype: str
) -> None:
    (p, q), before = size, window // 2
    axes = {"o": 6, "c": channels, "u": window, "v": window, "n": 2, "p": p, "q": q}
    k = Builder("gradient", axes)
    x, dy = k.input("x", (2, channels, p, q), dtype), k.input("dy", (2, 6, p, q), dtype)
    total = "f32" if dtype == "bf16" else dtype
    dw = k.output("dw", (6, channels, window, window), total)
    row = Affine((("p", 1), ("u", 1)), -before)
    column = Affine((("q", 1), ("v", 1)), -before)
    with k.guarded((row, 0, p), (column, 0, q)):
        a = k.load(x, ("n", "c", row, column))
    value = k.contract(k.load(dy, ("n", "o", "p", "q")), a, ("n", "p", "q"), total)
    k.store(dw, ("o", "c", "u", "v"), value)
    check(k.build())
