"""Tables of Fourier transforms, and how lengths are taken apart."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from fxarray.devices.cpu.library.butterflies import radices

# Rows that are at least so long are cut in two; longer transforms than the second are not made in
# lanes.
CUT, LONGEST = 100, 1 << 14


def _roots(numbers: Any, n: int) -> Any:
    """exp(-2 pi i k / n) for integers k, exact where it can be."""
    k = np.asarray(numbers, np.int64) % n
    # By symmetry angles are at most 1/8 of a turn, where sine and cosine are most exact.
    eighth = (8 * k) // n
    turns = (eighth + 1) // 2
    angle = 2 * np.pi * (k - turns * (n / 4)) / n
    cosine, sine = np.cos(angle), np.sin(angle)
    odd = turns % 2 == 1
    result = np.empty(k.shape, np.complex128)
    # exp(-i (angle + turns pi / 2)), whose parts are exchanged for odd numbers of turns.
    result.real = np.where(odd, -sine, cosine) * np.where(turns % 4 >= 2, -1.0, 1.0)
    result.imag = np.where(odd, -cosine, -sine) * np.where(turns % 4 >= 2, -1.0, 1.0)
    return result


def _powers(rows: int, columns: int) -> Any:
    """exp(-2 pi i j k / (rows * columns)) for j < rows and k < columns.

    As products of two roots each, of which far fewer are computed.
    """
    n, step = rows * columns, 32
    j = np.arange(rows)[:, None]
    coarse = _roots(j * (step * np.arange(-(-columns // step))), n)
    fine = _roots(j * np.arange(step), n)
    products = coarse[:, :, None] * fine[:, None, :]
    return products.reshape(rows, -1)[:, :columns]


@cache
def table(kind: str, n: int, other: int, dtype: str) -> Any:
    """A table of complex numbers, kept for as long as the process lives, since code points to it.

    Args:
      kind: "roots" of a transform of length n; "cut", those that multiply columns, `other` to a
        row; "chirp" and "spectrum", of a convolution of length `other`.
      n: the length.
      other: another length.
      dtype: of the numbers.
    """
    if kind == "roots":
        table = _roots(np.arange(n), n)
    elif kind == "cut":
        table = _powers(n // other, other)
    else:
        squares = np.arange(n, dtype=np.int64) ** 2 % (2 * n)
        chirp = _roots(squares, 2 * n)
        table = chirp
        if kind == "spectrum":
            line = np.zeros(other, np.complex128)
            line[:n] = chirp.conj()
            line[other - n + 1 :] = chirp[1:][::-1].conj()
            # With the factor of the inverse transform.
            table = np.fft.fft(line) / other
    return np.ascontiguousarray(table.astype({"c64": np.complex64, "c128": np.complex128}[dtype]))


def cut(n: int) -> tuple[int, int] | None:
    """Two factors of n, as equal as possible, whose transforms have passes; None if none are."""
    if n < CUT:
        return None
    for a in range(math.isqrt(n), 7, -1):
        if n % a == 0 and radices(a) and radices(n // a):
            return (a, n // a) if n // a <= LONGEST else None
    return None


def padded(n: int) -> int:
    """The length of the convolution that makes a transform of length n."""
    return 1 << (2 * n - 2).bit_length()


def makes(n: int, last: bool) -> bool:
    """Whether transforms of a length are made here."""
    if last and cut(n):
        return True
    return n <= LONGEST and (radices(n) is not None or padded(n) <= LONGEST)
