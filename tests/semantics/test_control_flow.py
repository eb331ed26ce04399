"""Points 24 to 31: loops, branches, recomputation."""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest

import fxarray as fx
import fxarray.numpy as fnp
from fxarray import lax, random
from fxarray.core.errors import ShapeError, TreeStructureError


def both_ways(function):
    """A function, and the same under jit."""
    return function, fx.jit(function)


def operations(program):
    """The names of all operations of a Program, those of Programs inside included."""
    names = []
    for equation in program.equations:
        names.append(equation.op.name)
        for value in vars(equation.op).values():
            for inner in value if isinstance(value, tuple) else (value,):
                if hasattr(inner, "equations"):
                    names.extend(operations(inner))
    return names


# --- point 24: scan -----------------------------------------------------------------------------


def test_scan_without_xs_needs_a_length():
    """Point 24: xs=None needs length; lengths that disagree are an error."""
    step = lambda c, x: (c + 1, c)  # noqa: E731
    with pytest.raises((ValueError, TypeError), match="length"):
        lax.scan(step, 0, None)
    with pytest.raises((ValueError, TypeError), match=r"length|3.*4|leading"):
        lax.scan(step, 0, (fnp.ones(3), fnp.ones(4)))
    with pytest.raises((ValueError, TypeError), match="length"):
        lax.scan(step, 0, fnp.ones(3), length=4)
    with pytest.raises((ValueError, TypeError)):
        lax.scan(step, 0, fnp.float32(1))
    total, ys = lax.scan(step, 0, None, length=3)
    assert int(total) == 3
    np.testing.assert_array_equal(ys, [0, 1, 2])


def test_scan_of_no_steps_keeps_the_carry_and_gives_empty_results():
    """Point 24: length zero."""
    for scan in both_ways(lambda xs: lax.scan(lambda c, x: (c + x, {"y": c * x}), 1.5, xs)):
        carry, ys = scan(fnp.zeros(0))
        assert float(carry) == 1.5
        assert ys["y"].shape == (0,)
        assert str(ys["y"].dtype) == "float32"


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [1, 3, 5, 100, True])
def test_unrolling_and_reversing_change_no_result(reverse, unroll):
    """Point 24: reverse order, and unroll that does not divide the length."""
    xs = fnp.arange(1.0, 8.0)

    def f(xs):
        carry, ys = lax.scan(lambda c, x: (c * 0.5 + x, c), 0.0, xs, reverse=reverse, unroll=unroll)
        return carry + fnp.sum(ys * fnp.arange(7.0)), ys

    carry, ys = 0.0, [0.0] * 7
    for i in reversed(range(7)) if reverse else range(7):
        ys[i] = carry
        carry = carry * 0.5 + (i + 1.0)
    for g in both_ways(f):
        np.testing.assert_allclose(g(xs)[1], ys)
    expected = fx.grad(lambda xs: lax.scan(lambda c, x: (c * 0.5 + x, c), 0.0, xs)[0])(xs)
    np.testing.assert_allclose(expected, 0.5 ** np.arange(6, -1, -1.0))


def test_a_carry_of_another_structure_is_explained():
    """Point 24: the error says how the trees differ, and which leaf changes its shape."""
    with pytest.raises(TreeStructureError, match=r"tuple.*list|list.*tuple"):
        lax.scan(lambda c, _: (list(c), None), (1.0, 2.0), None, length=2)
    with pytest.raises(TypeError, match=r"\['a'\]|\.a|'a'"):
        lax.scan(
            lambda c, _: ({"a": fnp.ones(3), "b": c["b"]}, None),
            {"a": fnp.ones(2), "b": 1.0},
            None,
            length=2,
        )


def test_values_that_no_step_changes_are_computed_once():
    """Point 24: residuals that do not vary are hoisted out of the loop and its residual stack."""

    def f(w, xs):
        return lax.scan(lambda c, x: (c * fnp.sin(w) + x, None), 0.0, xs)[0]

    program = fx.make_program(fx.grad(f))(0.5, fnp.ones(5))
    outside = [e.op.name for e in program.equations]
    assert outside.count("sin") == 1
    assert operations(program).count("cos") == 1
    assert "cos" in outside
    types = [v.type for e in program.equations if e.op.name == "scan" for v in e.outputs]
    assert sum(t.shape == (5,) for t in types) <= 2  # the carry at each step, and no copy of sin(w)


def test_what_becomes_nonzero_later_is_found():
    """Point 24: a carry whose tangent starts at zero gets one from another carry."""

    def f(x):
        return lax.scan(lambda c, _: ((c[1], c[2], c[2]), None), (0.0, 0.0, x), None, length=4)[0][
            0
        ]

    assert float(fx.grad(f)(3.0)) == 1.0
    assert float(fx.jvp(f, (3.0,), (1.0,))[1]) == 1.0


# --- point 25: while_loop and fori_loop ---------------------------------------------------------


def test_while_loop_is_forward_only_unless_bounded():
    """Point 25 and pain point 16: reverse mode is a ValueError that names max_steps, which cures
    it.
    """

    def power(x, **bound):
        return lax.while_loop(lambda c: c[1] < 3, lambda c: (c[0] * x, c[1] + 1), (x, 0), **bound)[
            0
        ]

    assert float(fx.jvp(power, (2.0,), (1.0,))[1]) == 32.0
    with pytest.raises(ValueError, match="max_steps"):
        fx.grad(power)(2.0)
    for g in both_ways(fx.grad(lambda x: power(x, max_steps=10))):
        assert float(g(2.0)) == 32.0
    squares = fx.vmap(fx.grad(lambda x: power(x, max_steps=10)))(fnp.asarray([1.0, 2.0]))
    np.testing.assert_array_equal(squares, [4, 32])


def test_a_while_loop_stops_at_its_bound_with_and_without_grad():
    """Pain point 16: max_steps=n stops after n steps in every mode."""
    f = lambda x: lax.while_loop(lambda c: c < 1e9, lambda c: 2.0 * c, x, max_steps=3)  # noqa: E731
    assert float(f(1.0)) == 8.0
    assert [float(v) for v in fx.value_and_grad(f)(1.0)] == [8.0, 8.0]
    assert [float(v) for v in fx.jvp(f, (1.0,), (1.0,))] == [8.0, 8.0]


def test_fori_loop_reverses_for_known_bounds_only():
    """Point 25: a static trip count makes a scan; traced bounds make a while_loop."""
    f = lambda x, n: lax.fori_loop(0, n, lambda i, c: c * x, 1.0)  # noqa: E731
    assert float(fx.grad(f)(2.0, 3)) == 12.0
    with pytest.raises(ValueError, match="max_steps|known|static"):
        fx.jit(fx.grad(f))(2.0, 3)
    assert float(fx.jit(f)(2.0, 3)) == 8.0
    assert float(lax.fori_loop(5, 3, lambda i, c: c + 1, 1.0)) == 1.0
    assert float(fx.jit(fx.grad(f), static_argnums=1)(2.0, 3)) == 12.0


def test_the_predicate_has_no_derivative():
    """Point 25: what decides when to stop carries no tangent into the result."""
    f = lambda x: lax.while_loop(lambda c: c < x, lambda c: c + 1.0, 0.0)  # noqa: E731
    assert float(f(2.5)) == 3.0
    assert float(fx.jvp(f, (2.5,), (1.0,))[1]) == 0.0


# --- points 26 to 29: loops and branches under vmap ---------------------------------------------


def test_a_mapped_while_loop_runs_until_no_lane_is_active():
    """Point 26: lanes that are done keep their values: 1, 4, 7 doubled until >= 8 are 8, 8, 14."""
    f = lambda x: lax.while_loop(lambda c: c < 8, lambda c: c * 2, x)  # noqa: E731
    for g in both_ways(fx.vmap(f)):
        np.testing.assert_array_equal(g(fnp.asarray([1, 4, 7, 9])), [8, 8, 14, 9])


def test_a_predicate_that_is_not_mapped_stays_one_value():
    """Point 26: then there is no selection between lanes; carries that do not vary stay single."""

    def f(x):
        return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x), (0, x))

    program = fx.make_program(fx.vmap(f, out_axes=(None, 0)))(fnp.ones(4))
    assert "select_n" not in operations(program)
    (loop,) = [e for e in program.equations if e.op.name == "while"]
    shapes = sorted(v.type.shape for v in loop.outputs)
    assert shapes == [(), (4,)]


def test_a_mapped_predicate_chooses_lane_by_lane_without_nan_from_the_other_branch():
    """Point 27: the branch that a lane does not take cannot put NaN into its gradient."""
    f = lambda x: lax.cond(x > 0, lambda x: fnp.sqrt(x), lambda x: 0.0 * x, x)  # noqa: E731
    values = fnp.asarray([4.0, 0.0, -1.0])
    for g in both_ways(fx.vmap(fx.grad(f))):
        np.testing.assert_array_equal(g(values), [0.25, 0, 0])
    summed = fx.grad(lambda v: fnp.sum(fx.vmap(f)(v)))(values)
    np.testing.assert_array_equal(summed, [0.25, 0, 0])


def test_vmap_of_cond_keeps_one_operation():
    """Pain point 15: mapped or not, the branches stay branches of one operation."""
    f = lambda p, x: lax.cond(p, fnp.sin, fnp.cos, x)  # noqa: E731
    program = fx.make_program(fx.vmap(f, (None, 0)))(True, fnp.ones(3))
    assert [e.op.name for e in program.equations].count("cond") == 1
    mapped = fx.make_program(fx.vmap(f))(fnp.asarray([True, False, True]), fnp.ones(3))
    assert not {"sin", "cos"} & {e.op.name for e in mapped.equations}


def test_switch_clamps_its_index():
    """Point 28: indices below 0 and beyond the last take the first and last branch."""
    branches = [lambda x: x, lambda x: x * 10, lambda x: x * 100]
    f = lambda i: lax.switch(i, branches, 1.0)  # noqa: E731
    for g in both_ways(f):
        assert [float(g(i)) for i in (-5, 0, 1, 2, 7)] == [1, 1, 10, 100, 100]
    np.testing.assert_array_equal(fx.vmap(f)(fnp.asarray([-1, 1, 9])), [1, 10, 100])


def test_branches_have_different_residuals_closures_and_effects():
    """Point 28: residuals are a union over branches; each closes over its own; effects are kept."""
    seen = []

    def f(i, x, y):
        def printing(v):
            fx.debug.callback(lambda v: seen.append(float(v)), v)
            return v * y

        return lax.switch(i, [lambda v: fnp.sin(v) * x, fnp.exp, printing], x)

    for g in both_ways(fx.grad(f, argnums=(1, 2))):
        x, y = 0.5, 2.0
        expected = [
            (np.cos(x) * x + np.sin(x), 0.0),
            (np.exp(x), 0.0),
            (y, x),
        ]
        for i, pair in enumerate(expected):
            np.testing.assert_allclose([float(v) for v in g(i, x, y)], pair, rtol=1e-6)
    fx.effects_barrier()
    assert seen == [0.5, 0.5]


def test_a_loop_in_a_branch_ends_in_lanes_that_do_not_take_it():
    """Point 29: vmap of cond of while terminates, though a lane that skips it could not."""

    def f(x):
        loop = lambda x: lax.while_loop(lambda c: c != 0, lambda c: c - 1, x)  # noqa: E731
        return lax.cond(x >= 0, loop, lambda x: x, x)

    for g in both_ways(fx.vmap(f)):
        np.testing.assert_array_equal(g(fnp.asarray([3, -1, 0])), [0, -1, 0])


# --- point 30: associative_scan -----------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 2, 5, 7, 8])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan_of_any_size_axis_and_direction(size, axis, reverse):
    """Point 30: any axis, reversed, sizes that are no powers of two, trees."""
    shape = (size, 3) if axis == 0 else (3, size)
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    tree = {"sum": fnp.asarray(x), "max": fnp.asarray(-x)}
    combine = lambda a, b: {  # noqa: E731
        "sum": a["sum"] + b["sum"],
        "max": fnp.maximum(a["max"], b["max"]),
    }
    got = lax.associative_scan(combine, tree, reverse=reverse, axis=axis)
    flip = (lambda v: np.flip(v, axis)) if reverse else (lambda v: v)
    np.testing.assert_allclose(got["sum"], flip(np.cumsum(flip(x), axis)))
    np.testing.assert_allclose(got["max"], flip(np.maximum.accumulate(flip(-x), axis)))


# --- point 31: checkpoint -----------------------------------------------------------------------


def noisy(x, key):
    return fnp.sum(fnp.sin(x * random.normal(key, x.shape)) ** 2)


@pytest.mark.parametrize("wrap", [lambda f: f, fx.jit])
def test_recomputation_gives_the_same_values(wrap):
    """Point 31: random numbers included; it composes with jit, vmap, scan and grad twice."""
    x, key = fnp.asarray([0.3, 0.7]), random.key(0)
    plain, again = wrap(noisy), wrap(fx.checkpoint(noisy))
    np.testing.assert_allclose(again(x, key), plain(x, key), rtol=1e-6)
    for transform in (fx.grad, lambda f: fx.jacfwd(f), lambda f: fx.hessian(f)):
        expected, got = transform(plain)(x, key), transform(again)(x, key)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
    keys = random.split(key, 3)
    xs = fnp.stack([x, 2 * x, 3 * x])
    np.testing.assert_allclose(
        fx.vmap(fx.grad(again))(xs, keys), fx.vmap(fx.grad(plain))(xs, keys), rtol=1e-5
    )

    def scanned(body):
        return lambda x: lax.scan(lambda c, k: (c + body(x, k), None), 0.0, keys)[0]

    np.testing.assert_allclose(
        fx.grad(scanned(again))(x), fx.grad(scanned(plain))(x), rtol=1e-5, atol=1e-6
    )


def test_policies_choose_what_is_saved():
    """Point 31: everything, nothing, products, and names; static arguments pass through."""

    def f(x, power):
        y = fx.checkpoint_name(fnp.sin(x @ x), "activation")
        return fnp.sum(fnp.exp(y) ** power)

    x = fnp.ones((3, 3)) * 0.1
    policies = fx.checkpoint_policies
    expected = fx.grad(f)(x, 2)
    counts = {}
    for name, policy in {
        "everything": policies.everything_saveable,
        "nothing": policies.nothing_saveable,
        "dots": policies.dots_saveable,
        "names": policies.save_only_these_names("activation"),
    }.items():
        g = fx.checkpoint(f, policy=policy, static_argnums=1)
        np.testing.assert_allclose(fx.grad(g)(x, 2), expected, rtol=1e-5)
        program = fx.make_program(lambda x, g=g: fx.grad(g)(x, 2))(x)
        names = operations(program)
        counts[name] = (names.count("dot_general"), names.count("sin"))
    assert counts["nothing"][0] == counts["everything"][0] + 1
    assert counts["dots"][0] == counts["everything"][0]
    assert counts["nothing"][1] == counts["everything"][1] + 1
    assert counts["names"][1] == counts["everything"][1]


def test_saved_residuals_are_listed_with_their_source():
    """Point 31: print_saved_residuals names the type and the line of each."""
    text = io.StringIO()
    f = fx.checkpoint(lambda x: fnp.sum(fnp.sin(fnp.sin(x))))
    with contextlib.redirect_stdout(text):
        fx.print_saved_residuals(f, fnp.ones(3))
        fx.print_saved_residuals(lambda x: fnp.sum(fnp.sin(fnp.sin(x))), fnp.ones(3))
    assert "f32[3]" in text.getvalue()
    assert "argument" in text.getvalue()
    assert "test_control_flow.py" in text.getvalue()


def test_errors_inside_a_loop_name_operation_shapes_and_line():
    """Pain point 10: a mistake in a loop's body is one message, with the user's own line."""
    with pytest.raises(ShapeError, match=r"(?s)\(2.*\(3.*test_control_flow\.py:\d+"):
        fx.jit(
            fx.vmap(
                fx.grad(lambda x: lax.scan(lambda c, _: (c + x + fnp.ones(3), None), x, None, 2)[0])
            )
        )(fnp.ones((4, 2)))
