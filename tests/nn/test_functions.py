"""Activations, softmax and attention: values, derivatives and edge cases, against JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray import nn
from fxarray.errors import ArgumentError, DTypeError, ShapeError

_ACTIVATIONS = [
    *("relu", "relu6", "leaky_relu", "elu", "celu", "selu", "sigmoid", "log_sigmoid", "softplus"),
    *("silu", "swish", "gelu", "mish", "soft_sign", "squareplus", "sparse_plus", "sparse_sigmoid"),
    *("hard_tanh", "hard_sigmoid", "hard_silu", "hard_swish", "tanh", "identity", "softmax"),
    "log_softmax",
]
_FLOATS_ONLY_IN_JAX = ("sigmoid", "silu", "swish", "log_softmax")
_POINTS = np.array([-30.0, -3.5, -1.25, -0.3, 0.2, 0.9, 2.5, 4.5, 25.0], "float32")


@pytest.mark.parametrize("name", _ACTIVATIONS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_activation_has_the_values_and_dtype_of_jax(name, dtype):
    x = fnp.asarray(_POINTS).astype(dtype)
    actual = getattr(nn, name)(x)
    expected = getattr(jax.nn, name)(jnp.asarray(_POINTS).astype(dtype))
    assert actual.dtype == expected.dtype
    tolerance = {"float32": 2e-6, "float16": 2e-3, "bfloat16": 2e-2}[dtype]
    np.testing.assert_allclose(
        np.asarray(actual, "float32"),
        np.asarray(expected, "float32"),
        rtol=tolerance,
        atol=tolerance,
    )


@pytest.mark.parametrize("name", [n for n in _ACTIVATIONS if n not in _FLOATS_ONLY_IN_JAX])
def test_activation_of_integers_has_the_dtype_of_jax(name):
    actual = getattr(nn, name)(fnp.array([-2, 0, 7]))
    expected = getattr(jax.nn, name)(jnp.array([-2, 0, 7]))
    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", _FLOATS_ONLY_IN_JAX)
def test_activation_of_integers_is_that_of_floats(name):
    actual = getattr(nn, name)(fnp.array([-2, 0, 7]))
    np.testing.assert_array_equal(actual, getattr(nn, name)(fnp.array([-2.0, 0.0, 7.0])))


@pytest.mark.parametrize("name", _ACTIVATIONS)
def test_derivative_of_activation_is_that_of_jax(name):
    weights = np.linspace(1, 2, len(_POINTS)).astype("float32")

    def loss(function, x, xp):
        return xp.sum(function(x) * weights)

    actual = fxarray.grad(lambda x: loss(getattr(nn, name), x, fnp))(fnp.asarray(_POINTS))
    expected = jax.grad(lambda x: loss(getattr(jax.nn, name), x, jnp))(jnp.asarray(_POINTS))
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(
    ("name", "point", "slope"),
    [
        ("relu", 0.0, 0.0),
        ("relu6", 0.0, 0.0),
        ("relu6", 6.0, 0.0),
        ("leaky_relu", 0.0, 1.0),
        ("elu", 0.0, 1.0),
        ("softplus", 0.0, 0.5),
        ("soft_sign", 0.0, 1.0),
        ("hard_sigmoid", -3.0, 0.0),
    ],
)
def test_derivative_at_a_kink(name, point, slope):
    assert fxarray.grad(getattr(nn, name))(point).item() == pytest.approx(slope)


@pytest.mark.parametrize("name", [n for n in _ACTIVATIONS if n not in ("softmax", "log_softmax")])
def test_activations_keep_nan(name):
    assert np.isnan(np.asarray(getattr(nn, name)(fnp.nan))).all()


@pytest.mark.parametrize("name", ["softplus", "silu", "elu", "gelu", "log_sigmoid", "mish", "celu"])
def test_derivatives_are_finite_far_out(name):
    far = fnp.array([-1e4, 1e4])
    slopes = fxarray.grad(lambda x: getattr(nn, name)(x).sum())(far)
    assert np.isfinite(np.asarray(slopes)).all()


def test_second_derivative_of_softplus_at_zero():
    assert fxarray.grad(fxarray.grad(nn.softplus))(0.0).item() == pytest.approx(0.25)


def test_exact_gelu_is_x_times_the_normal_distribution_function():
    actual = nn.gelu(fnp.asarray(_POINTS), approximate=False)
    expected = jax.nn.gelu(jnp.asarray(_POINTS), approximate=False)
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=2e-6, atol=1e-7)


def test_glu_halves_an_axis():
    x = np.random.default_rng(0).normal(size=(3, 4)).astype("float32")
    np.testing.assert_allclose(nn.glu(x, axis=1), jax.nn.glu(x, axis=1), rtol=1e-6)
    with pytest.raises(ShapeError, match="even"):
        nn.glu(x, axis=0)


# --- along an axis --------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, -1, (0, 2), None])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_over_axes_with_and_without_a_mask(name, axis):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(2, 3, 4)).astype("float32") * 50
    where = rng.uniform(size=x.shape) > 0.3
    for mask in (None, where):
        actual = getattr(nn, name)(x, axis=axis, where=mask)
        expected = getattr(jax.nn, name)(x, axis=axis, where=mask)
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


def test_softmax_of_nothing_but_minus_infinity_is_zero_with_a_zero_derivative():
    x = fnp.full((3,), -fnp.inf)
    np.testing.assert_array_equal(nn.softmax(x), np.zeros(3))
    slopes = fxarray.grad(lambda v: nn.softmax(v)[0])(x)
    np.testing.assert_array_equal(slopes, np.zeros(3))


def test_derivative_of_softmax_is_finite_beside_minus_infinity():
    slopes = fxarray.grad(lambda v: nn.softmax(v)[0])(fnp.array([1.0, -fnp.inf, 2.0]))
    share = np.exp(1) / (np.exp(1) + np.exp(2))
    np.testing.assert_allclose(slopes, [share * (1 - share), 0, -share * (1 - share)], rtol=1e-5)


def test_logsumexp_with_factors_signs_and_masks():
    rng = np.random.default_rng(2)
    a = rng.normal(size=(3, 4)).astype("float32") * 30
    b = rng.normal(size=(3, 4)).astype("float32")
    where = rng.uniform(size=a.shape) > 0.4
    for arguments in (
        {"axis": 1},
        {"axis": None, "keepdims": True},
        {"axis": 0, "b": np.abs(b)},
        {"axis": 1, "b": b, "return_sign": True},
        {"axis": 0, "where": where},
    ):
        actual = nn.logsumexp(a, **arguments)
        expected = jax.nn.logsumexp(a, **arguments)
        for ours, theirs in zip(
            fxarray.tree.leaves(actual), jax.tree.leaves(expected), strict=True
        ):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("values", [[-np.inf, -np.inf], [-np.inf, 1.0], [1000.0, 1000.0]])
def test_derivative_of_logsumexp_is_finite(values):
    slopes = fxarray.grad(nn.logsumexp)(fnp.array(values))
    assert np.isfinite(np.asarray(slopes)).all()
    expected = [0, 0] if values[1] == -np.inf else [0, 1] if values[0] < 0 else [0.5, 0.5]
    np.testing.assert_allclose(slopes, expected, rtol=1e-6)


def test_logsumexp_of_nothing_is_minus_infinity():
    assert nn.logsumexp(fnp.zeros((0,))).item() == -np.inf


def test_logmeanexp_counts_what_the_mask_leaves():
    x = fnp.array([0.0, 0.0, 100.0])
    assert nn.logmeanexp(x, where=fnp.array([True, True, False])).item() == pytest.approx(0)


def test_log1mexp_is_exact_for_small_and_large_arguments():
    x = np.array([1e-30, 1e-3, 0.5, 1.0, 20.0], "float64")
    small, large = x[:3], x[3:]
    expected = np.concatenate([np.log(-np.expm1(-small)), np.log1p(-np.exp(-large))])
    np.testing.assert_allclose(nn.log1mexp(fnp.asarray(x)), expected, rtol=1e-12)


def test_standardize_gives_mean_zero_and_variance_one():
    x = np.random.default_rng(3).normal(size=(4, 6)) * 3 + 1e4
    y = np.asarray(nn.standardize(x, axis=(0, 1), epsilon=0.0))
    assert y.mean() == pytest.approx(0, abs=1e-9)
    assert y.std() == pytest.approx(1)
    given = nn.standardize(x, mean=1e4, variance=9.0)
    np.testing.assert_allclose(given, (x - 1e4) / np.sqrt(9 + 1e-5), rtol=1e-6)


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_one_hot_puts_ones_along_an_axis_and_zeros_for_labels_outside(axis):
    labels = np.array([[0, 2], [5, -1]])
    actual = nn.one_hot(labels, 4, axis=axis)
    expected = jax.nn.one_hot(labels, 4, axis=axis)
    assert actual.dtype == np.float32
    np.testing.assert_array_equal(actual, expected)


def test_one_hot_of_bytes_has_more_classes_than_bytes_can_count():
    assert nn.one_hot(fnp.array([7], "uint8"), 300).shape == (1, 300)
    assert nn.one_hot(fnp.array([7], "uint8"), 300).sum().item() == 1


# --- attention ------------------------------------------------------------------------------------

_RNG = np.random.default_rng(4)
_Q = _RNG.normal(size=(2, 5, 4, 8)).astype("float32")
_K = _RNG.normal(size=(2, 6, 2, 8)).astype("float32")
_V = _RNG.normal(size=(2, 6, 2, 8)).astype("float32")


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"is_causal": True},
        {"mask": _RNG.uniform(size=(2, 1, 5, 6)) > 0.3},
        {"bias": _RNG.normal(size=(1, 4, 5, 6)).astype("float32")},
        {"scale": 0.5},
        {"local_window_size": 1},
        {"local_window_size": (2, 0), "is_causal": True},
        {
            "query_seq_lengths": np.array([3, 5], "int32"),
            "key_value_seq_lengths": np.array([2, 6], "int32"),
        },
        {"return_residual": True},
    ],
    ids=lambda arguments: "-".join(arguments) or "plain",
)  # fmt: skip
def test_attention_has_the_values_and_derivatives_of_jax(arguments):
    def loss(attend, leaves, q, k, v, xp):
        parts = leaves(attend(q, k, v, **arguments))
        # JAX lets no derivative through the residual.
        return xp.sum(xp.sin(parts[0])), parts

    def ours(q, k, v):
        return loss(nn.dot_product_attention, fxarray.tree.leaves, q, k, v, fnp)

    def theirs(q, k, v):
        return loss(jax.nn.dot_product_attention, jax.tree.leaves, q, k, v, jnp)

    _, actual = ours(*map(fnp.asarray, (_Q, _K, _V)))
    _, expected = theirs(*map(jnp.asarray, (_Q, _K, _V)))
    for left, right in zip(actual, expected, strict=True):
        assert left.shape == right.shape
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6)
    slopes = fxarray.grad(lambda *a: ours(*a)[0], argnums=(0, 1, 2))(
        *map(fnp.asarray, (_Q, _K, _V))
    )
    wanted = jax.grad(lambda *a: theirs(*a)[0], argnums=(0, 1, 2))(*map(jnp.asarray, (_Q, _K, _V)))
    for left, right in zip(slopes, wanted, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-5)


def test_attention_without_a_batch_is_one_of_a_batch():
    alone = nn.dot_product_attention(_Q[1], _K[1], _V[1])
    np.testing.assert_allclose(alone, nn.dot_product_attention(_Q, _K, _V)[1], rtol=1e-6)


def test_attention_in_half_precision_computes_scores_in_float32():
    q, k, v = (fnp.asarray(x).astype("bfloat16") for x in (_Q, _K, _V))
    actual = nn.dot_product_attention(q, k, v)
    assert actual.dtype == fnp.bfloat16
    wide = nn.dot_product_attention(*(x.astype("float32") for x in (q, k, v)))
    np.testing.assert_allclose(np.asarray(actual, "float32"), wide, atol=2e-2)


def test_residual_of_attention_has_a_derivative():
    def residual(q):
        return nn.dot_product_attention(q, _K, _V, return_residual=True)[1].sum()

    slopes = fxarray.grad(residual)(fnp.asarray(_Q))
    step = 1e-2 * _RNG.normal(size=_Q.shape).astype("float32")
    change = residual(_Q + step) - residual(_Q - step)
    assert (2 * (np.asarray(slopes) * step).sum()) == pytest.approx(change.item(), rel=1e-2)


def test_attention_explains_arguments_that_do_not_fit():
    with pytest.raises(ShapeError, match="K must divide N"):
        nn.dot_product_attention(_Q, _K[:, :, :1].repeat(3, 2), _V[:, :, :1].repeat(3, 2))
    with pytest.raises(DTypeError, match="bias"):
        nn.dot_product_attention(_Q, _K, _V, mask=fnp.ones((5, 6)))
    with pytest.raises(ArgumentError, match="cudnn"):
        nn.dot_product_attention(_Q, _K, _V, implementation="cudnn")
