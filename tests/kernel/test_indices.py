"""Index expressions are taken apart without division."""

import pytest

from fxarray.core.dims import ShapeVar
from fxarray.kernel.indices import (
    NotAffine,
    SplitAxis,
    always,
    digits,
    exact_quotient,
    greatest,
    groups,
    least,
    reshaped,
)
from fxarray.kernel.ir import Affine
from fxarray.kernel.sizes import add, kernel_size, multiply, subtract

N = kernel_size(ShapeVar("n", min=1))
AXES = {"i": 3, "j": 4, "k": 12, "n": N, "nk": multiply(N, 12)}


def index(text):
    """An expression such as "4*i + j - 1"."""
    total = Affine()
    for piece in text.replace("- ", "+ -").split(" + "):
        *factors, name = piece.split("*")
        sign = -1 if name.startswith("-") else 1
        name = name.removeprefix("-")
        step = int(factors[0]) if factors else sign
        total = total + (Affine.of(name) * step if name in AXES else sign * int(name))
    return total


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [("4*i + j", 0, 11), ("-1*i + 2", 0, 2), ("i - 1", -1, 1), ("2*k", 0, 22), ("5", 5, 5)],
)
def test_ranges(text, low, high):
    assert (least(index(text), AXES), greatest(index(text), AXES)) == (low, high)


def test_ranges_of_sizes_and_values():
    assert greatest(index("n"), AXES) == subtract(N, 1)
    gathered = Affine(((7, 2),), 1)
    assert greatest(gathered, AXES) is None
    assert greatest(gathered, AXES, {7: (0, N)}) == add(multiply(N, 2), 1)


def test_bounds_that_always_hold_are_known():
    assert always((index("4*i + j"), 0, 12), AXES)
    assert not always((index("i - 1"), 0, 3), AXES)
    assert always((index("n"), 0, N), AXES)
    assert not always((index("n"), 0, 5), AXES)


@pytest.mark.parametrize(
    ("text", "shape", "expected"),
    [
        ("4*i + j", (3, 4), ["i", "j"]),
        ("4*i + j + 12", (9, 4), ["i + 3", "j"]),
        ("-4*i + -1*j + 11", (3, 4), ["-1*i + 2", "-1*j + 3"]),
        ("2*j + 1", (4, 2), ["j", "1"]),
        ("12*n + 4*i + j", (N, 3, 4), ["n", "i", "j"]),
        ("4*i + j", (3, 2, 1, 2), None),
        ("k", (3, 4), None),
    ],
)
def test_digits(text, shape, expected):
    if expected is None:
        with pytest.raises(SplitAxis):
            digits(index(text), shape, AXES)
    else:
        assert digits(index(text), shape, AXES) == tuple(map(index, expected))


@pytest.mark.parametrize(
    ("axis", "shape", "sizes"),
    [
        ("k", (3, 4), (3, 4)),
        ("k", (2, 3, 2), (2, 3, 2)),
        ("nk", (N, 3, 4), (N, 3, 4)),
        ("nk", (12, N), (12, N)),
    ],
)
def test_an_axis_that_runs_across_dimensions_must_be_split(axis, shape, sizes):
    with pytest.raises(SplitAxis) as caught:
        digits(Affine.of(axis), shape, AXES)
    assert (caught.value.axis, caught.value.sizes) == (axis, sizes)


@pytest.mark.parametrize(
    ("text", "shape"),
    [("k", (1, 5, 4)), ("4*i + j", (2, 6)), ("2*k", (4, 6)), ("k + 1", (5, 3)), ("i", (2, 2))],
)
def test_what_falls_into_no_rows_is_not_affine(text, shape):
    with pytest.raises(NotAffine) as caught:
        digits(index(text), shape, {**AXES, "k": 11})
    assert not isinstance(caught.value, SplitAxis)


def test_values_divide_only_as_multiples():
    gathered = Affine(((7, 4),)) + Affine.of("j")
    assert digits(gathered, (5, 4), AXES) == (Affine(((7, 1),)), Affine.of("j"))
    with pytest.raises(NotAffine):
        digits(Affine(((7, 1),)), (5, 4), AXES)


def test_reshapes_keep_what_does_not_change():
    gathered = Affine(((7, 1),))
    before, after = (5, 3, 4, 1), (5, 12)
    where = (gathered, index("4*i + j"))
    assert reshaped(where, after, before, AXES) == (gathered, *map(index, ["i", "j"]), Affine())
    assert groups((2, 3, 4), (6, 4)) == [([0, 1], [0]), ([2], [1])]
    assert groups((N, 1, 4), (1, N, 2, 2)) == [([0], [1]), ([2], [2, 3])]


def test_quotients_are_exact():
    assert exact_quotient(12, 4) == 3
    assert exact_quotient(12, 5) is None
    assert exact_quotient(multiply(N, 12), 4) == multiply(N, 3)
    assert exact_quotient(multiply(N, 12), N) == 12
    assert exact_quotient(add(N, 12), N) is None
