"""Convolutions against JAX: values, both gradients, mapping, layouts, groups, padding."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray import lax
from fxarray.core.errors import ArgumentError, DTypeError, ShapeError

RNG = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def normal(*shape):
    return RNG.normal(size=shape)


def assert_same(ours, theirs):
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)


def assert_agrees(name, x, kernel, *args, **kwargs):
    """Value and both gradients of a function of `lax` are JAX's."""
    f = lambda x, k: getattr(lax, name)(x, k, *args, **kwargs)  # noqa: E731
    g = lambda x, k: getattr(jax.lax, name)(x, k, *args, **kwargs)  # noqa: E731
    ours, pullback = fxarray.vjp(f, x, kernel)
    theirs, pullback_of_jax = jax.vjp(g, x, kernel)
    assert_same(ours, theirs)
    cotangent = normal(*theirs.shape)
    pairs = zip(pullback(fnp.asarray(cotangent)), pullback_of_jax(cotangent), strict=True)
    for mine, other in pairs:
        assert_same(mine, other)


LAYOUT = ("NHWC", "HWIO", "NHWC")
CASES = {
    "valid": ((2, 3, 8), (4, 3, 3), (1,), "VALID", {}),
    "same": ((2, 3, 8), (4, 3, 3), (1,), "SAME", {}),
    "same_lower": ((2, 3, 8), (4, 3, 2), (1,), "SAME_LOWER", {}),
    "strided_same": ((2, 3, 8), (4, 3, 3), (3,), "SAME", {}),
    "strided_leftover": ((2, 3, 9), (4, 3, 2), (3,), "VALID", {}),
    "explicit": ((2, 3, 8), (4, 3, 3), (2,), [(3, 1)], {}),
    "negative": ((2, 3, 8), (4, 3, 3), (1,), [(-2, -1)], {}),
    "lhs_dilation": ((2, 3, 5), (4, 3, 3), (2,), [(1, 2)], {"lhs_dilation": (3,)}),
    "rhs_dilation": ((2, 3, 9), (4, 3, 3), (1,), "SAME", {"rhs_dilation": (2,)}),
    "all_at_once": (
        (2, 3, 5, 6),
        (4, 3, 2, 3),
        (2, 3),
        [(-1, 4), (2, 3)],
        {"lhs_dilation": (2, 3), "rhs_dilation": (3, 1)},
    ),
    "layout": ((2, 8, 7, 3), (3, 2, 3, 4), (2, 1), "SAME", {"dimension_numbers": LAYOUT}),
    "odd_layout": (
        (7, 3, 2, 8),
        (2, 4, 3, 3),
        (1, 2),
        "VALID",
        {"dimension_numbers": ("WCNH", "HOIW", "HNWC")},
    ),
    "numbers": (
        (2, 8, 3),
        (3, 3, 4),
        (1,),
        "SAME",
        {"dimension_numbers": lax.ConvDimensionNumbers((0, 2, 1), (2, 1, 0), (0, 2, 1))},
    ),
    "feature_groups": ((2, 6, 8), (4, 3, 3), (1,), "SAME", {"feature_group_count": 2}),
    "depthwise": (
        (2, 8, 8, 3),
        (3, 3, 1, 6),
        (1, 1),
        "SAME",
        {"feature_group_count": 3, "dimension_numbers": LAYOUT},
    ),
    "batch_groups": ((6, 3, 8), (4, 3, 3), (2,), "SAME", {"batch_group_count": 2}),
    "no_space": ((2, 3), (4, 3), (), [], {}),
    "no_window_fits": ((2, 3, 2), (4, 3, 3), (1,), "VALID", {}),
    "three": ((1, 2, 4, 5, 6), (3, 2, 2, 3, 2), (1, 2, 1), "SAME", {}),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_agree_with_jax(name):
    x, kernel, strides, padding, others = CASES[name]
    if "dimension_numbers" in others and name == "numbers":
        ours = others["dimension_numbers"]
        theirs = jax.lax.ConvDimensionNumbers(*ours)
        x, kernel = normal(*x), normal(*kernel)
        result = lax.conv_general_dilated(x, kernel, strides, padding, dimension_numbers=ours)
        assert_same(
            result,
            jax.lax.conv_general_dilated(x, kernel, strides, padding, dimension_numbers=theirs),
        )
        return
    assert_agrees("conv_general_dilated", normal(*x), normal(*kernel), strides, padding, **others)


@pytest.mark.parametrize("axes", [(0, 0), (1, None), (None, 2), (3, 1)])
@pytest.mark.parametrize("groups", [{}, {"feature_group_count": 2}, {"batch_group_count": 2}])
def test_mapping_agrees_with_jax(axes, groups):
    x, kernel = [4, 6, 7], [4, 3 if "feature_group_count" in groups else 6, 2]
    for shape, axis in zip((x, kernel), axes, strict=True):
        if axis is not None:
            shape.insert(axis, 3)
    x, kernel = normal(*x), normal(*kernel)

    def gradients(package, module):
        def loss(x, k):
            y = module.conv_general_dilated(x, k, (2,), "SAME", **groups)
            return (y * y).sum()

        return package.vmap(package.grad(loss, (0, 1)), in_axes=axes)(x, kernel)

    for mine, other in zip(gradients(fxarray, lax), gradients(jax, jax.lax), strict=True):
        assert_same(mine, other)


@pytest.mark.parametrize("padding", ["SAME", "VALID", [(2, 1), (0, 3)]])
@pytest.mark.parametrize("strides", [(1, 1), (2, 3), (4, 1)])
@pytest.mark.parametrize(
    "others",
    [{}, {"transpose_kernel": True}, {"rhs_dilation": (2, 1)}],
    ids=["plain", "transposed", "dilated"],
)
def test_conv_transpose_agrees_with_jax(padding, strides, others):
    assert_agrees(
        "conv_transpose", normal(2, 4, 5, 3), normal(3, 2, 3, 3), strides, padding, **others
    )


def test_conv_transpose_may_take_the_padding_of_the_convolution():
    x, kernel, pads = normal(1, 5, 2), normal(3, 2, 2), [(1, 0)]
    assert_agrees("conv_transpose", x, kernel, (2,), pads, use_consistent_padding=True)


def test_conv_and_conv_with_general_padding_agree_with_jax():
    x, kernel = normal(2, 3, 8), normal(4, 3, 3)
    assert_agrees("conv", x, kernel, (2,), "SAME")
    assert_agrees("conv_with_general_padding", x, kernel, (2,), [(1, 2)], (2,), (3,))


def test_patches_agree_with_jax():
    x = normal(2, 3, 6, 5)
    for args in (
        ((2, 3), (1, 1), "VALID"),
        ((3, 2), (2, 1), "SAME"),
        ((2, 2), (1, 2), [(1, 0)] * 2),
    ):
        ours = lax.conv_general_dilated_patches(x, *args)
        assert_same(ours, jax.lax.conv_general_dilated_patches(x, *args))
    ours = lax.conv_general_dilated_patches(x, (2, 2), (1, 1), "VALID", dimension_numbers=LAYOUT)
    theirs = jax.lax.conv_general_dilated_patches(
        x, (2, 2), (1, 1), "VALID", dimension_numbers=LAYOUT
    )
    assert_same(ours, theirs)


def test_the_result_may_have_another_dtype():
    x, kernel = normal(1, 2, 6).astype("float16"), normal(3, 2, 2).astype("float16")
    ours = lax.conv_general_dilated(x, kernel, (1,), "VALID", preferred_element_type="float32")
    wide = [a.astype("float32") for a in (x, kernel)]
    exact = jax.lax.conv_general_dilated(*wide, (1,), "VALID")
    assert ours.dtype == np.float32
    np.testing.assert_allclose(np.asarray(ours), exact, rtol=1e-6)
    gradient = fxarray.grad(
        lambda x: lax.conv_general_dilated(
            x, kernel, (1,), "VALID", preferred_element_type="float32"
        ).sum()
    )(fnp.asarray(x))
    assert gradient.dtype == np.float16


def test_integers_wrap_as_in_jax():
    x = RNG.integers(-100, 100, (1, 3, 6)).astype("int8")
    kernel = RNG.integers(-100, 100, (2, 3, 2)).astype("int8")
    args = ((1,), "SAME")
    assert_same(
        lax.conv_general_dilated(x, kernel, *args), jax.lax.conv_general_dilated(x, kernel, *args)
    )


def test_a_jitted_hessian_product_agrees_with_jax():
    x, kernel = normal(1, 2, 6), normal(3, 2, 2)

    def product(package, module, np_):
        def loss(k):
            return np_.sin(module.conv_general_dilated(x, k, (2,), [(1, 1)])).sum()

        f = lambda k: package.jvp(package.grad(loss), (k,), (k,))[1]  # noqa: E731
        return package.jit(f)(kernel)

    assert_same(product(fxarray, lax, fnp), product(jax, jax.lax, jnp))


X, K = np.ones((2, 4, 6)), np.ones((4, 4, 3))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: lax.conv(X, np.ones((4, 3, 3)), (1,), "SAME"), ShapeError),
        (lambda: lax.conv(X, np.ones((4, 4)), (1,), "SAME"), ShapeError),
        (lambda: lax.conv(X, K, (1, 1), "SAME"), ShapeError),
        (lambda: lax.conv(X, K, (0,), "VALID"), ShapeError),
        (lambda: lax.conv(X, K, (1,), "FULL"), ArgumentError),
        (lambda: lax.conv(X, K.astype("float32"), (1,), "SAME"), DTypeError),
        (lambda: lax.conv_general_dilated(X, K, (1,), "SAME", (2,)), ArgumentError),
        (lambda: lax.conv_general_dilated(X, K, (1,), [(0, 0)] * 2), ShapeError),
        (
            lambda: lax.conv_general_dilated(X, K, (1,), "SAME", feature_group_count=3),
            ShapeError,
        ),
        (
            lambda: lax.conv_general_dilated(X, K, (1,), "SAME", batch_group_count=3),
            ShapeError,
        ),
        (
            lambda: lax.conv_general_dilated(
                X, K, (1,), "SAME", dimension_numbers=("NCX", "OIH", "NCH")
            ),
            ArgumentError,
        ),
    ],
)
def test_what_makes_no_sense_is_an_error(call, error):
    with pytest.raises(error):
        call()
