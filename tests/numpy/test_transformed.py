"""Functions of fxarray.numpy give the same under jit and vmap as called directly."""

import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray.errors import ConcretizationError

# Functions of a matrix `x` of shape (3, 4), whose results have one shape for all values.
_CASES = """
x.sum(0)
x.mean()
fnp.var(x, axis=1, ddof=1)
fnp.std(x, where=x > 0)
x.max(1, keepdims=True)
x.argmin(0)
fnp.ptp(x)
fnp.nanmean(fnp.where(x > 1, fnp.nan, x), axis=0)
fnp.median(x, axis=1)
fnp.quantile(x, fnp.array([0.2, 0.6]), axis=0)
fnp.nanquantile(x, 0.4)
fnp.cumsum(x, 1)
fnp.cumprod(x)
fnp.diff(x, axis=0)
fnp.gradient(x, axis=1)
fnp.trapezoid(x)
fnp.sort(x, 0)
fnp.argsort(x, descending=True)
fnp.lexsort((x[0], x[1]))
fnp.searchsorted(fnp.sort(x[0]), x[1])
fnp.digitize(x, fnp.array([-1.0, 0.0, 1.0]))
fnp.unique(fnp.round(x), size=5)
fnp.unique(fnp.round(x), size=12, return_inverse=True, return_counts=True, return_index=True)
fnp.unique(fnp.round(x), axis=0, size=3)
fnp.nonzero(x > 0, size=6, fill_value=-1)
fnp.argwhere(x > 0, size=4)
fnp.flatnonzero(x > 0, size=4)
fnp.where(x > 0, size=3)
fnp.compress(x[0] > 0, x, axis=1, size=3)
fnp.extract(x > 0, x, size=20, fill_value=7)
fnp.isin(x, fnp.round(x))
fnp.union1d(fnp.round(x[0]), fnp.round(x[1]), size=6)
fnp.intersect1d(fnp.round(x[0]), fnp.round(x[1]), size=4, fill_value=-9)
fnp.setdiff1d(fnp.round(x[0]), fnp.round(x[1]), size=4)
fnp.setxor1d(fnp.round(x[0]), fnp.round(x[1]), size=8)
fnp.bincount(fnp.abs(x[0]).astype(int), length=4)
fnp.histogram(x, 4)
fnp.histogram2d(x[0], x[1], 2)
fnp.cov(x)
fnp.corrcoef(x)
fnp.take(x, fnp.argsort(x[0]), axis=1)
fnp.take_along_axis(x, fnp.argsort(x, 1), 1)
fnp.put_along_axis(x, fnp.argsort(x, 1)[:, :1], 9.0, 1, inplace=False)
fnp.place(x, x > 0, fnp.array([1.0, 2.0]), inplace=False)
fnp.put(x, fnp.array([0, 5]), 3.0, inplace=False)
fnp.choose((x > 0).astype(int), [x, -x], mode="clip")
fnp.select([x > 1, x < -1], [x, -x], 0)
fnp.piecewise(x, [x < 0, x > 1], [lambda v: -v, 5.0, lambda v: v * v])
fnp.clip(x, x.min(), 0.5)
fnp.roll(x, (x[0, 0] > 0).astype(int), 1)
fnp.repeat(x[0], (x[1] > 0).astype(int), total_repeat_length=5)
fnp.pad(x, 2, mode="reflect")
fnp.pad(x, 1, mode="mean")
fnp.pad(x, 1, mode="linear_ramp", end_values=x.max())
fnp.insert(x, 1, 5.0, axis=0)
fnp.insert(x, (x[0, 0] > 0).astype(int), 5.0, axis=1)
fnp.delete(x, (x[0, 0] > 0).astype(int), axis=1)
fnp.fill_diagonal(x, x[0], inplace=False)
fnp.kron(x, x[:2, :2])
fnp.cross(x[:, :3], x[:, 1:])
fnp.tensordot(x, x, ((0, 1), (0, 1)))
fnp.einsum("ij,kj,kl->il", x, x, x)
fnp.outer(x[0], x[1])
fnp.trace(x)
fnp.diag(x[0], 1)
fnp.tril(x, -1)
fnp.vander(x[0], 3)
fnp.convolve(x[0], x[1, :2])
fnp.polyval(x[0], x[1])
fnp.interp(x, fnp.sort(x[0]), x[1])
fnp.unwrap(x * 5)
fnp.frexp(x)
fnp.modf(x)
fnp.gcd((x * 10).astype(int), 4)
fnp.lcm((x * 10).astype(int), 4)
fnp.linspace(x[0], x[1], 5, axis=1)
fnp.eye(3, 4, k=(x[0, 0] > 0).astype(int)) * x
fnp.packbits(x > 0, axis=1)
fnp.unravel_index(fnp.argmax(x), (3, 4))
fnp.array_equal(x, x)
fnp.isclose(x, fnp.round(x, 1), atol=0.02)
fnp.vectorize(lambda a, b: a @ b, signature="(n),(n)->()")(x, x[0])
fnp.apply_along_axis(lambda v: v / v.sum(), 0, x)
fnp.block([[x, x], [x, x]])
fnp.nan_to_num(1 / fnp.floor(x))
fnp.logaddexp(x, 0)
fnp.heaviside(x, 0.5)
fnp.sinc(x)
fnp.polyfit(fnp.arange(4.0), x[0], 1)
"""
_EXPRESSIONS = [line for line in _CASES.splitlines() if line]
_X = np.random.default_rng(7).normal(size=(5, 3, 4))


def _function(text):
    return eval(f"lambda x: {text}", {"fnp": fnp, "fxarray": fxarray})


def _assert_equal_leaves(actual, expected):
    left, right = fxarray.tree.leaves(actual), fxarray.tree.leaves(expected)
    assert len(left) == len(right)
    for ours, theirs in zip(left, right, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("text", _EXPRESSIONS)
def test_jit_gives_what_a_direct_call_gives(text):
    function, x = _function(text), fnp.asarray(_X[0])
    _assert_equal_leaves(fxarray.jit(function)(x), function(x))


@pytest.mark.parametrize("text", _EXPRESSIONS)
def test_vmap_gives_what_a_loop_gives(text):
    function, xs = _function(text), fnp.asarray(_X)
    rows = [function(x) for x in xs]
    stacked = fxarray.tree.map(lambda *leaves: fnp.stack(leaves), *rows)
    _assert_equal_leaves(fxarray.vmap(function)(xs), stacked)


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("fnp.nonzero(x)", "size"),
        ("fnp.unique(x)", "size"),
        ("fnp.argwhere(x)", "size"),
        ("fnp.extract(x > 0, x)", "size"),
        ("fnp.bincount(x[0].astype(int))", "length"),
        ("fnp.repeat(x[0], (x[0] > 0).astype(int))", "total_repeat_length"),
        ("fnp.arange(x[0, 0])", "static"),
        ("fnp.linspace(0, 1, x[0, 0])", "static"),
        ("fnp.intersect1d(x[0], x[1])", "size"),
        ("fnp.trim_zeros(x[0])", "traced"),
    ],
)
def test_results_of_unknown_size_are_refused_under_jit_with_the_remedy(text, remedy):
    with pytest.raises(ConcretizationError, match=remedy):
        fxarray.jit(_function(text))(fnp.asarray(_X[0]))


@pytest.mark.parametrize("text", ["fnp.nonzero(x)", "fnp.unique(x)", "fnp.extract(x > 0, x)"])
def test_results_of_unknown_size_are_fine_under_grad(text):
    function = _function(text)

    def loss(x):
        fxarray.tree.leaves(function(x))
        return x.sum()

    np.testing.assert_array_equal(fxarray.grad(loss)(fnp.asarray(_X[0])), np.ones((3, 4)))
