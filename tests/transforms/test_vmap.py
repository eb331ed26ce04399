"""vmap: axes in and out, sizes, names, statics, and what it refuses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray.core.errors import (
    ArgumentError,
    AxisError,
    ShapeError,
    TreeStructureError,
    UnexpectedTracerError,
)

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("in_axis", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("out_axis", [0, 1, 2, -1, -2])
def test_axes_go_where_they_are_sent(in_axis, out_axis, assert_same):
    def apply(m):
        return m.vmap(lambda x: x * 2 + x.sum(), in_axes=in_axis, out_axes=out_axis)(X)

    assert_same(apply(fxarray), apply(jax))


IN_AXES = [
    (0, (0, 0)),
    (0, (None, 1)),
    ((0, None), ((0, 0), (None, None))),
    (({"a": 0, "b": None}, 1), None),
    ((None, -1), None),
    ([0, None], None),
]


@pytest.mark.parametrize("in_axes", [axes for axes, _ in IN_AXES], ids=repr)
def test_in_axes_are_prefixes_of_the_arguments(in_axes, assert_same):
    def f(p, q):
        return p["a"].sum() * q[0] + p["b"].sum() - q[1].sum()

    p = {"a": np.ones((2, 2), np.float32), "b": np.full((2, 2), 3.0, np.float32)}
    q = [np.ones((2, 2), np.float32), np.arange(4, dtype=np.float32).reshape(2, 2)]
    theirs = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    assert_same(
        fxarray.vmap(f, in_axes=in_axes)(p, q),
        jax.tree.map(np.asarray, jax.vmap(f, in_axes=theirs)(p, q)),
    )


def test_out_axes_are_prefixes_of_the_result(assert_same):
    def f(x):
        return {"a": (x, x * 2), "b": np.float32(1)}, x.sum()

    def apply(m):
        return m.vmap(f, in_axes=1, out_axes=({"a": -1, "b": None}, 0))(X)

    assert_same(apply(fxarray), apply(jax))


def test_keyword_arguments_are_mapped_along_their_first_axis(assert_same):
    f = lambda x, *, y: x * y  # noqa: E731
    y = np.arange(3, dtype=np.float32)
    for in_axes in (1, (1,)):
        assert_same(fxarray.vmap(f, in_axes=in_axes)(X, y=y), jax.vmap(f, in_axes=in_axes)(X, y=y))


def test_results_that_are_not_mapped_are_repeated_or_given_once():
    assert fxarray.vmap(lambda x: 3.0)(np.ones(4)).shape == (4,)
    assert fxarray.vmap(lambda x: 3.0, out_axes=None)(np.ones(4)).shape == ()
    assert fxarray.vmap(lambda x: np.ones((2, 5)), out_axes=1)(np.ones(4)).shape == (2, 4, 5)


def test_axis_size_is_enough_where_nothing_is_mapped():
    result = fxarray.vmap(lambda x: x * 2, in_axes=None, axis_size=3)(1.5)
    np.testing.assert_array_equal(np.asarray(result), np.full(3, 3.0))


def test_vmap_equals_a_loop(functions):
    rows = X.reshape(6, 4) / 10
    f = lambda x: functions.smooth(fnp, x)  # noqa: E731
    mapped = np.asarray(fxarray.vmap(f)(rows))
    for row, got in zip(rows, mapped, strict=True):
        np.testing.assert_allclose(got, np.asarray(f(fnp.asarray(row))), rtol=1e-5, atol=1e-6)


def test_nested_vmaps_make_outer_products(assert_same):
    x, y = X[0, 0], X[1, :, 0]
    outer = lambda m: m.vmap(m.vmap(lambda a, b: a * b, (None, 0)), (0, None))(x, y)  # noqa: E731
    assert_same(outer(fxarray), outer(jax))


def test_control_flow_on_values_that_are_not_mapped_works():
    def f(x, n):
        return x * 2 if n > 1 else x

    result = fxarray.vmap(f, in_axes=(0, None))(X[0, 0], 3)
    np.testing.assert_array_equal(np.asarray(result), X[0, 0] * 2)


def test_control_flow_on_mapped_values_is_refused_with_a_remedy():
    with pytest.raises(fxarray.core.errors.TracerBoolConversionError, match=r"vmap.*where"):
        fxarray.vmap(lambda x: x if x > 0 else -x)(X[0, 0])


def test_empty_axes_are_mapped():
    assert fxarray.vmap(lambda x: x.sum())(np.zeros((0, 3), np.float32)).shape == (0,)


# --- what is refused ------------------------------------------------------------------------------


def test_unequal_sizes_list_every_argument():
    def f(params, batch, *, mask):
        return params

    with pytest.raises(ShapeError) as error:
        fxarray.vmap(f, in_axes=(0, 1))({"w": X}, [X, X[:, 0]], mask=X[0])
    message = str(error.value)
    assert "params['w'] has type f32[2,3,4]: size 2 along axis 0" in message
    assert "batch[0] has type f32[2,3,4]: size 3 along axis 1" in message
    assert "batch[1] has type f32[2,4]: size 4 along axis 1" in message
    assert "mask has type f32[3,4]: size 3 along axis 0" in message
    assert isinstance(error.value, ValueError)


def test_axis_size_must_agree():
    with pytest.raises(ValueError, match="equal to axis_size=3"):
        fxarray.vmap(lambda x: x, axis_size=3)(X)


def test_an_axis_that_the_argument_lacks_is_refused():
    with pytest.raises(AxisError, match="of <lambda>: argument y is to be mapped along axis 0"):
        fxarray.vmap(lambda x, y: x)(X, 1.0)
    with pytest.raises(ValueError, match="axis -4"):
        fxarray.vmap(lambda x: x, in_axes=-4)(X)


def test_a_mapped_result_cannot_have_out_axes_none():
    with pytest.raises(ValueError, match=r"the result\['b'\] has out_axes=None"):
        fxarray.vmap(lambda x: {"a": 1, "b": x}, out_axes=None)(X)


def test_out_axes_out_of_range_are_refused():
    with pytest.raises(AxisError, match="out_axes=3"):
        fxarray.vmap(lambda x: x[0, 0], out_axes=3)(X)


@pytest.mark.parametrize("in_axes", [(0,), (0, 0, 0), ()])
def test_in_axes_need_one_entry_per_argument(in_axes):
    with pytest.raises(ArgumentError, match="called with 2 positional arguments"):
        fxarray.vmap(lambda x, y: x, in_axes=in_axes)(X, X)


def test_in_axes_and_out_axes_that_are_no_prefix_are_refused():
    with pytest.raises(TreeStructureError, match="no prefix of the arguments"):
        fxarray.vmap(lambda x: x, in_axes=({"b": 0},))({"a": X})
    with pytest.raises(TreeStructureError, match="no prefix of the result"):
        fxarray.vmap(lambda x: (x, x), out_axes=(0, 0, 0))(X)


@pytest.mark.parametrize("axes", ["a", 1.5, {"a": 0}])
def test_in_axes_of_the_wrong_kind_are_refused(axes):
    with pytest.raises(TypeError, match="in_axes"):
        fxarray.vmap(lambda x: x, in_axes=axes)
    with pytest.raises(TypeError, match="out_axes"):
        fxarray.vmap(lambda x: x, out_axes=("a",))


def test_nothing_mapped_and_no_size_is_refused():
    with pytest.raises(ValueError, match="axis_size"):
        fxarray.vmap(lambda x: x, in_axes=None)(X)
    with pytest.raises(ValueError, match="axis_size"):
        fxarray.vmap(lambda x: x)("static")


def test_jax_agrees_that_sizes_must_match():
    with pytest.raises(ValueError, match="inconsistent sizes"):
        jax.vmap(lambda x, y: x)(jnp.ones(3), jnp.ones(4))


def test_a_leaked_value_names_the_mapped_function_and_its_line():
    leaks = []

    def offender(x):
        leaks.append(x * 2)
        return x

    fxarray.vmap(offender)(np.ones((2, 3), np.float32))
    with pytest.raises(UnexpectedTracerError, match=r"function offender \(.*test_vmap\.py:\d+\)"):
        leaks[-1] + 1
