"""What the tests of indexing share: indices drawn by NumPy's rules."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import strategies as st

import fxarray.numpy as fnp

SHAPES = [(), (5,), (4, 3), (2, 5, 3), (3, 1, 4, 2), (0, 3), (2, 0)]


@st.composite
def slices(draw, size):
    bound = st.none() | st.integers(-size - 2, size + 2)
    step = draw(st.none() | st.integers(-3, 3).filter(bool))
    return slice(draw(bound), draw(bound), step)


@st.composite
def indices(draw, shape, arrays=True):
    """An index of an array, in NumPy's terms."""
    group = draw(st.sampled_from([(3,), (2, 1), (1, 3), (0,), ()])) if arrays else ()
    items = []
    dimension = 0
    count = draw(st.integers(0, len(shape)))
    ellipsis = draw(st.none() | st.integers(0, count))
    taken = 0
    while taken < count:
        if ellipsis is not None and taken == ellipsis:
            items.append(Ellipsis)
            dimension = len(shape) - (count - taken)
            ellipsis = None
        if draw(st.booleans()) and draw(st.booleans()):
            items.append(None)
        size = shape[dimension]
        kinds = ["slice"]
        if size:
            kinds.append("int")
            if arrays:
                kinds += ["array", "mask"]
        elif arrays:
            kinds.append("empty")
        kind = draw(st.sampled_from(kinds))
        if kind == "slice":
            items.append(draw(slices(size)))
        elif kind == "int":
            items.append(draw(st.integers(-size, size - 1)))
        elif kind == "empty":
            items.append(np.zeros((0,), np.int32))
            group = (0,)
        elif kind == "mask":
            mask = np.zeros(size, bool)
            # As many as the group broadcasts with.
            number = draw(st.sampled_from([n for n in (group[-1] if group else 1, 1) if n <= size]))
            mask[draw(st.permutations(range(size)))[:number]] = True
            items.append(mask)
        else:
            entries = st.integers(-size, size - 1)
            flat = draw(
                st.lists(entries, min_size=int(np.prod(group)), max_size=int(np.prod(group)))
            )
            items.append(
                np.array(flat, draw(st.sampled_from(["int32", "int64", "int8"]))).reshape(group)
            )
        dimension += 1
        taken += 1
    if ellipsis is not None:
        items.append(Ellipsis)
    if draw(st.booleans()) and draw(st.booleans()):
        items.append(None)
    return tuple(items)


def valid(x, index):
    """What NumPy gives, or None if it refuses."""
    try:
        return x[index]
    except IndexError:
        return None


def unknown(index):
    """The index with its arrays and integers as arrays of ours, whose values are not looked at."""
    return tuple(
        fnp.asarray(item)
        if isinstance(item, np.ndarray | int) and not isinstance(item, bool)
        else item
        for item in index
    )


def positions_of(index):
    """Split an index into the arrays of its integers and the function that puts them back."""
    arrays = [np.asarray(i) for i in index if isinstance(i, int) or _is_integers(i)]

    def rebuild(traced):
        given_arrays = iter(traced)
        return tuple(
            next(given_arrays) if isinstance(i, int) or _is_integers(i) else i for i in index
        )

    return arrays, rebuild


def _is_integers(item):
    return isinstance(item, np.ndarray) and item.dtype != bool


@pytest.fixture(scope="session")
def indexing():
    """The shapes and strategies above."""
    return SimpleNamespace(
        SHAPES=SHAPES,
        indices=indices,
        valid=valid,
        unknown=unknown,
        positions_of=positions_of,
    )
