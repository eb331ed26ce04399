"""Points 32 to 35: vmap of every family, axes, collectives, per-example gradients."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import fxarray as fx
import fxarray.numpy as fnp
from fxarray import lax, random
from fxarray.extend import REGISTRY

NOISE = np.random.default_rng(0).normal(size=(3, 4, 4)).astype(np.float32)
POSITIVE = (NOISE @ NOISE.transpose(0, 2, 1) + 4 * np.eye(4)).astype(np.float32)
PLACES = np.asarray([[0, 3, 1], [2, 2, 0], [1, 5, -1]], np.int32)


# --- point 32: a rule for every operation -------------------------------------------------------


def test_every_operation_has_a_batch_rule_or_a_reason():
    """Point 32: no operation lacks a rule for vmap without saying why."""
    missing = [
        name
        for name, cls in REGISTRY.items()
        if "batch" not in cls.EXCUSED
        and cls.batch is fx.extend.Primitive.batch
        and "fxarray." in cls.__module__
    ]
    assert missing == []


@pytest.mark.parametrize(
    ("function", "operands"),
    [
        (fnp.sort, (NOISE,)),
        (fnp.argsort, (NOISE,)),
        (lambda x: lax.top_k(x, 2), (NOISE,)),
        (lambda x: fnp.cumsum(x, axis=0), (NOISE,)),
        (operator.matmul, (NOISE, NOISE)),
        (lambda x, i: x[i], (NOISE, PLACES)),
        (lambda x, i: x.at[i].add(1.0), (NOISE, PLACES)),
        (lambda x, i: x.at[i, 0].set(x[i, 1]), (NOISE, PLACES % 4)),
        (lambda x, i: lax.dynamic_slice(x, (i[0], i[1]), (2, 3)), (NOISE, PLACES)),
        (lambda x, i: lax.dynamic_update_slice(x, x[:2, :2], (i[0], i[1])), (NOISE, PLACES)),
        (lambda x, i: fnp.take(x, i, axis=1), (NOISE, PLACES)),
        (lambda x, i: fnp.take_along_axis(x, i[None] % 4, axis=1), (NOISE, PLACES)),
        (lambda x: fnp.einsum("ij,kj->ik", x, x), (NOISE,)),
        (fnp.linalg.cholesky, (POSITIVE,)),
        (fnp.linalg.inv, (POSITIVE,)),
        (fnp.linalg.det, (NOISE,)),
        (lambda a, b: fnp.linalg.solve(a, b[0]), (POSITIVE, NOISE)),
        (fnp.linalg.eigvalsh, (POSITIVE,)),
        (lambda x: fnp.linalg.svd(x, compute_uv=False), (NOISE,)),
        (lambda x: fnp.abs(fnp.linalg.qr(x)[1]), (NOISE,)),
        (fnp.fft.fft, (NOISE,)),
        (lambda x: fnp.fft.irfft(fnp.fft.rfft(x)), (NOISE,)),
        (lambda x: lax.reduce_window(x, -np.inf, lax.max, (2, 2), (1, 1), "VALID"), (NOISE,)),
        (lambda x: fnp.convolve(x[0], x[1]), (NOISE,)),
        (lambda x: fnp.median(x), (NOISE,)),
        (lambda x: fnp.where(x > 0, x, 0.0), (NOISE,)),
    ],
)
def test_vmap_equals_a_loop(function, operands):
    """Point 32: sort, top_k, gather, scatter, slices at batched starts, linalg, fft, windows."""
    rows = [function(*[fnp.asarray(x[i]) for x in operands]) for i in range(3)]
    expected = fx.tree.map(lambda *leaves: np.stack([np.asarray(v) for v in leaves]), *rows)
    for mapped in (fx.vmap(function), fx.jit(fx.vmap(function))):
        fx.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5),
            mapped(*operands),
            expected,
        )
    last = [np.moveaxis(x, 0, -1) for x in operands]
    fx.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5),
        fx.vmap(function, in_axes=-1)(*last),
        expected,
    )


# --- point 33: axes -----------------------------------------------------------------------------


def test_in_axes_and_out_axes_are_prefixes():
    """Point 33: trees of axes, None, negative axes; keyword arguments map along axis 0."""
    tree = {"a": fnp.ones((2, 3)), "b": (fnp.zeros(3), fnp.asarray(5.0))}
    f = lambda t, s, *, k: {"y": t["a"] + t["b"][0] + t["b"][1] + k, "s": s}  # noqa: E731
    got = fx.vmap(f, in_axes=({"a": 1, "b": (0, None)}, None), out_axes={"y": -1, "s": None})(
        tree, 7.0, k=fnp.arange(3.0)
    )
    np.testing.assert_array_equal(got["y"], [[6, 7, 8], [6, 7, 8]])
    assert float(got["s"]) == 7.0
    np.testing.assert_array_equal(fx.vmap(lambda x: x, -1, -1)(tree["a"]), tree["a"])


def test_mistakes_in_axes_are_explained():
    """Point 33: sizes are listed per argument; out_axes=None needs a result without lanes."""
    with pytest.raises(ValueError, match=r"(?s)\bx\b.*3.*\by\b.*4"):
        fx.vmap(lambda x, y: x[0] + y[0])(fnp.ones((3, 1)), fnp.ones((4, 1)))
    with pytest.raises(ValueError, match="None|mapped"):
        fx.vmap(lambda x: x, out_axes=None)(fnp.ones(3))
    with pytest.raises(ValueError, match="axis"):
        fx.vmap(lambda x: x, in_axes=1)(fnp.ones(3))
    with pytest.raises((ValueError, TypeError), match="in_axes"):
        fx.vmap(lambda x, y: x, in_axes=(0, 0, 0))(fnp.ones(3), fnp.ones(3))
    with pytest.raises((ValueError, TypeError), match="in_axes|axis"):
        fx.vmap(lambda x: x, in_axes=None)(fnp.ones(3))
    with pytest.raises(ValueError, match=r"(?s)axis_size.*5|5.*3"):
        fx.vmap(lambda x: x, axis_size=5)(fnp.ones(3))


def test_axis_size_and_axis_names():
    """Point 33: axis_size without mapped arguments; psum, all_gather and axis_index inside."""
    np.testing.assert_array_equal(
        fx.vmap(lambda: lax.axis_index("i"), axis_name="i", axis_size=3)(), [0, 1, 2]
    )
    x = fnp.asarray([1.0, 2.0, 4.0])
    f = lambda x: (x / lax.psum(x, "i"), lax.all_gather(x, "i"), lax.pmax(x, "i"))  # noqa: E731
    share, gathered, largest = fx.vmap(f, axis_name="i")(x)
    np.testing.assert_allclose(share, np.asarray(x) / 7)
    np.testing.assert_array_equal(gathered, np.tile(x, (3, 1)))
    np.testing.assert_array_equal(largest, [4, 4, 4])
    assert fx.vmap(lambda: fnp.ones(2), axis_size=0)().shape == (0, 2)


# --- point 34: collectives ----------------------------------------------------------------------


def test_psum_of_a_constant_is_the_size_of_the_axis():
    """Point 34: psum(1, axis) is a Python int, also of nested axes, so it can be a shape."""
    sizes = []

    def f(x):
        sizes.append((lax.psum(1, "i"), lax.psum(1, ("i", "j")), lax.psum(2.5, "j")))
        return x + fnp.zeros(lax.psum(1, "i")).sum()

    fx.vmap(fx.vmap(f, axis_name="j"), axis_name="i")(fnp.ones((2, 3)))
    assert sizes == [(2, 6, 7.5)]
    assert type(sizes[0][0]) is int


def test_collectives_have_the_gradients_of_a_sum():
    """Point 34: psum and its transpose are paired, so no gradient grows with the axis."""
    x = fnp.asarray([1.0, 2.0, 3.0])
    inside = fx.vmap(fx.grad(lambda x: lax.psum(x, "i") * 1.0), axis_name="i")(x)
    outside = fx.grad(lambda x: fx.vmap(lambda v: lax.psum(v * v, "i"), axis_name="i")(x)[0])(x)
    np.testing.assert_array_equal(outside, [2, 4, 6])
    mean = fx.grad(lambda x: fnp.sum(fx.vmap(lambda v: lax.pmean(v, "i"), axis_name="i")(x)))(x)
    np.testing.assert_allclose(mean, [1, 1, 1], rtol=1e-6)
    import jax

    theirs = jax.vmap(jax.grad(lambda x: jax.lax.psum(x, "i") * 1.0), axis_name="i")(np.asarray(x))
    np.testing.assert_array_equal(inside, theirs)


def test_a_name_without_an_axis_is_an_error():
    """Point 34: an unbound axis name is a NameError that says which there are."""
    with pytest.raises(NameError, match="'k'"):
        fx.vmap(lambda x: lax.psum(x, "k"), axis_name="i")(fnp.ones(3))
    with pytest.raises(NameError):
        lax.psum(fnp.ones(3), "i")


# --- point 35: per-example gradients ------------------------------------------------------------


def test_per_example_gradients_are_batched_products():
    """Point 35: vmap of grad makes one product with a batch axis, and no loop."""

    def loss(w, x, y):
        return fnp.sum((fnp.tanh(x @ w) - y) ** 2)

    w, x, y = fnp.asarray(NOISE[0]), fnp.asarray(NOISE[1]), fnp.asarray(NOISE[2])
    per_example = fx.vmap(fx.grad(loss), in_axes=(None, 0, 0))
    rows = np.stack([fx.grad(loss)(w, x[i], y[i]) for i in range(4)])
    np.testing.assert_allclose(per_example(w, x, y), rows, rtol=1e-5, atol=1e-6)
    names = [e.op.name for e in fx.make_program(per_example)(w, x, y).equations]
    assert not {"scan", "while"} & set(names)
    assert len(names) < 40


def test_random_draws_in_lanes():
    """Points 32 and 36: mapped keys give a loop's draws; one key gives every lane the same."""
    keys = random.split(random.key(0), 3)
    rows = np.stack([random.normal(k, (4,)) for k in keys])
    np.testing.assert_array_equal(fx.vmap(lambda k: random.normal(k, (4,)))(keys), rows)
    same = fx.vmap(lambda _: random.normal(random.key(1), (2,)))(fnp.arange(3))
    np.testing.assert_array_equal(same, np.tile(random.normal(random.key(1), (2,)), (3, 1)))
