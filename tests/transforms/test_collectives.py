"""Collectives over named axes of vmap, against JAX and under other transforms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray import lax
from fxarray.core.effects import NamedAxis
from fxarray.core.errors import ArgumentError, AxisError, MissingRuleError, ShapeError

X = np.arange(1.0, 4.0, dtype=np.float32)
M = np.sin(np.arange(27, dtype=np.float32)).reshape(3, 3, 3)
MODULES = ((fxarray, fnp, lax), (jax, jnp, jax.lax))


def over_axis(f, *args, **kwargs):
    """`f(numpy, lax, ...)` mapped over the axis "i" by fxarray and by JAX."""
    return [
        m.vmap(lambda *a, n=n, lx=lx: f(n, lx, *a), axis_name="i", **kwargs)(*args)
        for m, n, lx in MODULES
    ]


CASES = {
    "psum": lambda n, lx, x: lx.psum(x, "i"),
    "psum of a tree": lambda n, lx, x: lx.psum({"a": x, "b": (x * 2, 1)}, "i"),
    "psum of what is not mapped": lambda n, lx, x: x + lx.psum(n.ones(3), "i"),
    "psum of bools": lambda n, lx, x: lx.psum(x > 0, "i"),
    "pmean": lambda n, lx, x: lx.pmean(x, "i"),
    "pmax": lambda n, lx, x: lx.pmax(x, "i"),
    "pmin": lambda n, lx, x: x - lx.pmin(x, "i"),
    "all_gather": lambda n, lx, x: lx.all_gather(x, "i"),
    "all_gather at the end": lambda n, lx, x: lx.all_gather(x, "i", axis=-1),
    "all_gather tiled": lambda n, lx, x: lx.all_gather(x, "i", axis=1, tiled=True),
    "psum_scatter": lambda n, lx, x: lx.psum_scatter(x, "i", scatter_dimension=1),
    "psum_scatter tiled": lambda n, lx, x: lx.psum_scatter(
        n.concatenate([x, x]), "i", scatter_dimension=0, tiled=True
    ),
    "all_to_all": lambda n, lx, x: lx.all_to_all(x, "i", 0, 1),
    "all_to_all back": lambda n, lx, x: lx.all_to_all(x, "i", 1, 0),
    "all_to_all in place": lambda n, lx, x: lx.all_to_all(x, "i", 1, 1),
    "all_to_all tiled": lambda n, lx, x: lx.all_to_all(x, "i", 0, 1, tiled=True),
    "all_to_all tiled in place": lambda n, lx, x: lx.all_to_all(x, "i", 1, 1, tiled=True),
    "ppermute": lambda n, lx, x: lx.ppermute(x, "i", [(0, 1), (1, 2), (2, 0)]),
    "pshuffle": lambda n, lx, x: lx.pshuffle(x, "i", [2, 0, 1]),
    "pswapaxes": lambda n, lx, x: lx.pswapaxes(x, "i", 1),
    "axis_index": lambda n, lx, x: x * lx.axis_index("i"),
    "axis_size": lambda n, lx, x: x * lx.axis_size("i"),
    "psum of one": lambda n, lx, x: x * lx.psum(1, "i"),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("in_axes", [0, 1, -1])
def test_collectives_agree_with_jax(case, in_axes, assert_same):
    assert_same(*over_axis(CASES[case], M, in_axes=in_axes))


@pytest.mark.parametrize("case", CASES)
def test_collectives_agree_with_jax_under_jit(case, assert_same):
    ours, theirs = [
        m.jit(m.vmap(m.jit(lambda x, n=n, lx=lx: CASES[case](n, lx, x)), axis_name="i"))(M)
        for m, n, lx in MODULES
    ]
    assert_same(ours, theirs)


DIFFERENTIABLE = sorted(set(CASES) - {"psum of a tree", "psum of bools", "pmax", "pmin"})
# JAX 0.10 raises in its own transpose of these.
BROKEN_IN_JAX = {"all_to_all", "all_to_all back"}


@pytest.mark.parametrize("case", sorted(set(DIFFERENTIABLE) - BROKEN_IN_JAX))
def test_gradients_inside_the_axis_agree_with_jax(case, assert_same):
    f = lambda n, lx, x: (CASES[case](n, lx, n.sin(x)) ** 2).sum()  # noqa: E731
    ours, theirs = [
        m.vmap(m.grad(lambda x, n=n, lx=lx: f(n, lx, x)), axis_name="i")(M) for m, n, lx in MODULES
    ]
    assert_same(ours, theirs, 1e-4)


@pytest.mark.parametrize("case", DIFFERENTIABLE)
def test_gradients_outside_the_axis_agree_with_jax(case, assert_same):
    f = lambda n, lx, x: (CASES[case](n, lx, n.sin(x)) ** 2).sum()  # noqa: E731
    ours, theirs = [
        m.grad(lambda x, m=m, n=n, lx=lx: m.vmap(lambda y: f(n, lx, y), axis_name="i")(x).sum())(M)
        for m, n, lx in MODULES
    ]
    assert_same(ours, theirs, 1e-4)


@pytest.mark.parametrize("case", [*DIFFERENTIABLE, "pmax", "pmin"])
def test_gradients_inside_the_axis_are_those_of_the_total_loss(case, assert_same):
    f = lambda x: (CASES[case](fnp, lax, fnp.sin(x)) ** 2).sum()  # noqa: E731
    inside = fxarray.vmap(fxarray.grad(f), axis_name="i")(M)
    outside = fxarray.grad(lambda x: fxarray.vmap(f, axis_name="i")(x).sum())(M)
    assert_same(inside, outside, 1e-4)


@pytest.mark.parametrize("case", ["psum", "pmean", "all_gather", "psum_scatter", "all_to_all"])
def test_tangents_of_collectives_agree_with_jax(case, assert_same):
    ours, theirs = [
        m.vmap(
            lambda x, t, m=m, n=n, lx=lx: m.jvp(lambda x: CASES[case](n, lx, n.sin(x)), (x,), (t,)),
            axis_name="i",
        )(M, M[::-1])
        for m, n, lx in MODULES
    ]
    assert_same(ours, theirs)


@pytest.mark.parametrize("case", CASES)
def test_collectives_pass_through_another_vmap(case, assert_same):
    stacked = np.stack([M, M + 1, M * 2, -M])
    # Once with the other axis inside the named one, once outside.
    for order in (0, 1):
        results = []
        for m, n, lx in MODULES:
            f = lambda x, n=n, lx=lx: CASES[case](n, lx, x)  # noqa: E731
            if order == 0:
                mapped = m.vmap(m.vmap(f), in_axes=1, axis_name="i")
            else:
                mapped = m.vmap(m.vmap(f, axis_name="i"))
            results.append(mapped(stacked))
        assert_same(*results)


def test_several_axes_at_once(assert_same):
    grid = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

    def f(n, lx, x):
        return (
            lx.psum(x, ("i", "j")),
            lx.pmean(x, ("j", "i")),
            lx.axis_index(("i", "j")),
            lx.axis_size(("i", "j")),
            lx.pmax(x, ("i", "j")),
            lx.all_gather(x, "j"),
        )

    results = [
        m.vmap(m.vmap(lambda x, n=n, lx=lx: f(n, lx, x), axis_name="j"), axis_name="i")(grid)
        for m, n, lx in MODULES
    ]
    assert_same(*results)


def test_gathering_over_two_axes_orders_places_by_axis_index():
    grid = np.arange(6, dtype=np.float32).reshape(2, 3)
    inner = fxarray.vmap(lambda x: lax.all_gather(x, ("i", "j")), axis_name="j")
    gathered = fxarray.vmap(inner, axis_name="i")(grid)
    np.testing.assert_array_equal(np.asarray(gathered)[1, 2], np.arange(6))


def test_scattering_undoes_gathering_over_two_axes():
    grid = np.arange(6, dtype=np.float32).reshape(2, 3)
    names = ("i", "j")

    def f(x):
        return lax.psum_scatter(lax.all_gather(x, names), names) / lax.axis_size(names)

    result = fxarray.vmap(fxarray.vmap(f, axis_name="j"), axis_name="i")(grid)
    np.testing.assert_allclose(np.asarray(result), grid)


def test_an_incomplete_permutation_leaves_zeros_and_has_a_transpose():
    shift = lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2)])  # noqa: E731
    result = fxarray.vmap(shift, axis_name="i")(X)
    np.testing.assert_array_equal(np.asarray(result), [0, 1, 2])
    gradient = fxarray.vmap(fxarray.grad(lambda x: shift(x) * x), axis_name="i")(X)
    # d/dx_j of the sum over i of x_i * x_(i-1)
    np.testing.assert_array_equal(np.asarray(gradient), [2, 1 + 3, 2])


def test_nan_does_not_pass_where_nothing_is_sent():
    result = fxarray.vmap(lambda x: lax.ppermute(x, "i", [(0, 1)]), axis_name="i")(
        np.array([1.0, np.nan], np.float32)
    )
    np.testing.assert_array_equal(np.asarray(result), [0, 1])


def test_pbroadcast_gives_one_place_to_all():
    values = np.array([np.nan, 7.0, 9.0], np.float32)
    result = fxarray.vmap(lambda x: lax.pbroadcast(x, "i", 1), axis_name="i")(values)
    np.testing.assert_array_equal(np.asarray(result), [7, 7, 7])


@pytest.mark.parametrize(("name", "best"), [("pmax", 2), ("pmin", 0)])
def test_extrema_have_derivatives_shared_at_ties(name, best):
    collective = getattr(lax, name)
    gradient = fxarray.vmap(fxarray.grad(lambda x: collective(x * x, "i")), axis_name="i")(X)
    expected = np.zeros(3)
    expected[best] = 2 * X[best] * 3  # three places each have the extremum as their loss
    np.testing.assert_allclose(np.asarray(gradient), expected)
    tied = fxarray.vmap(fxarray.grad(lambda x: collective(x, "i")), axis_name="i")(np.ones(2))
    np.testing.assert_allclose(np.asarray(tied), [1.0, 1.0])


def test_psum_of_python_numbers_is_a_python_number():
    seen = []

    def f(x):
        seen.extend([lax.psum(1, "i"), lax.psum(2.5, "i"), lax.axis_size("i")])
        return x

    fxarray.vmap(f, axis_name="i")(X)
    assert seen == [3, 7.5, 3]
    assert [type(value) for value in seen] == [int, float, int]


def test_results_that_are_the_same_everywhere_need_no_out_axis():
    result = fxarray.vmap(lambda x: lax.psum(x, "i"), axis_name="i", out_axes=None)(X)
    assert float(result) == 6.0


def test_pcast_changes_nothing_under_vmap():
    f = lambda x: lax.pcast(x, "i", to="varying") * x  # noqa: E731
    gradient = fxarray.vmap(fxarray.grad(f), axis_name="i")(X)
    np.testing.assert_allclose(np.asarray(gradient), 2 * X)
    with pytest.raises(ArgumentError, match="varying"):
        fxarray.vmap(lambda x: lax.pcast(x, "i", to="other"), axis_name="i")(X)


def test_the_axis_of_the_innermost_vmap_of_that_name_counts():
    inner = lambda x: fxarray.vmap(lambda y: lax.psum(y, "i"), axis_name="i")(x)  # noqa: E731
    result = fxarray.vmap(inner, axis_name="i")(M[0])
    np.testing.assert_allclose(
        np.asarray(result), np.repeat(M[0].sum(1, keepdims=True), 3, 1), rtol=1e-5
    )


def test_jitted_functions_are_traced_again_for_an_axis_of_another_size():
    f = fxarray.jit(lambda x: x / lax.psum(1.0, "i") + lax.psum(x, "i"))
    for size in (2, 3, 2):
        x = np.arange(size, dtype=np.float32)
        result = fxarray.vmap(f, axis_name="i")(x)
        np.testing.assert_allclose(np.asarray(result), x / size + x.sum(), rtol=1e-6)


def _scanned(n, lx, x):
    step = lambda c, y: (n.sin(c) + lx.psum(c * y, "i"), lx.pmean(c, "i") * y)  # noqa: E731
    return lx.scan(step, x.sum(), x)


LOOPS = {
    "scan": _scanned,
    "cond": lambda n, lx, x: lx.cond(
        lx.axis_size("i") > 2, lambda y: lx.psum(y, "i"), lambda y: y, x
    ),
    "fori_loop": lambda n, lx, x: lx.fori_loop(0, 3, lambda i, c: c + lx.pmax(c, "i"), x),
    "while_loop": lambda n, lx, x: lx.while_loop(
        lambda c: lx.pmax(c, "i").sum() < 5.0,
        lambda c: c * c + lx.axis_index("i") + 1.0,
        x,
    ),
}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("jitted", [False, True])
def test_collectives_work_in_bodies_of_control_flow(loop, jitted, assert_same):
    results = []
    for m, n, lx in MODULES:
        mapped = m.vmap(lambda x, n=n, lx=lx: LOOPS[loop](n, lx, x), axis_name="i")
        results.append((m.jit(mapped) if jitted else mapped)(M[0]))
    assert_same(*results)


@pytest.mark.parametrize("loop", ["scan", "cond"])
def test_gradients_of_collectives_in_control_flow_agree_with_jax(loop, assert_same):
    f = lambda n, lx, x: n.sum(LOOPS[loop](n, lx, x)[0])  # noqa: E731
    inside = [
        m.vmap(m.grad(lambda x, n=n, lx=lx: f(n, lx, x)), axis_name="i")(M[0])
        for m, n, lx in MODULES
    ]
    assert_same(*inside, 1e-4)


def test_collectives_carry_their_axis_as_an_effect():
    program = fxarray.make_program(lambda x: lax.psum(x, "i"), axis_env=[("i", 3)])(X)
    assert program.effects == {NamedAxis("i")}


# --- what is refused ------------------------------------------------------------------------------


def test_an_unbound_axis_is_a_name_error_that_lists_the_known_ones():
    with pytest.raises(NameError, match=r"unbound axis name 'j'.*known here are: 'i'"):
        fxarray.vmap(lambda x: lax.psum(x, "j"), axis_name="i")(X)
    with pytest.raises(NameError, match="none"):
        lax.axis_index("i")


def test_operands_that_do_not_fit_are_refused():
    def over(f):
        return fxarray.vmap(f, axis_name="i")(M)

    with pytest.raises(ShapeError, match="size of axis 'i', 3"):
        over(lambda x: lax.psum_scatter(x[:2], "i"))
    with pytest.raises(ShapeError, match="cut evenly into 3 parts"):
        over(lambda x: lax.psum_scatter(x[:2], "i", tiled=True))
    with pytest.raises(ShapeError, match="all_to_all: dimension 0"):
        over(lambda x: lax.all_to_all(x[:2], "i", 0, 1))
    with pytest.raises(AxisError, match="all_gather: dimension 5"):
        over(lambda x: lax.all_gather(x, "i", axis=5))
    with pytest.raises(ArgumentError, match="destinations must be distinct"):
        over(lambda x: lax.ppermute(x, "i", [(0, 1), (1, 1)]))
    with pytest.raises(ArgumentError, match="from 0 to 2"):
        over(lambda x: lax.ppermute(x, "i", [(0, 3)]))
    with pytest.raises(ArgumentError, match="not a permutation"):
        over(lambda x: lax.pshuffle(x, "i", [0, 0, 1]))
    with pytest.raises(ArgumentError, match="2 places, but axis 'i' has 3"):
        over(lambda x: lax.pshuffle(x, "i", [1, 0]))
    with pytest.raises(ArgumentError, match="one axis name"):
        over(lambda x: lax.all_to_all(x, ("i", "j"), 0, 1))
    with pytest.raises(MissingRuleError, match="axis_index_groups"):
        over(lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1, 2]]))
