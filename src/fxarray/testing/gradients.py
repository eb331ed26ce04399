"""Checking derivatives of functions against differences.

Names and arguments are those of `jax.test_util`. Differences are taken along one random direction,
in the arguments' own dtype: in float64 they tell derivatives apart that differ by a millionth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from fxarray import tree
from fxarray.core import dtypes
from fxarray.core.errors import ArgumentError
from fxarray.numpy import asarray
from fxarray.testing.comparison import wide_values
from fxarray.transforms.forward import jvp
from fxarray.transforms.reverse import vjp

MODES = ("fwd", "rev")
# Per dtype: the step of differences, and the error that they then have.
_STEPS: dict[Any, tuple[float, float]] = {
    dtypes.float64: (1e-4, 1e-6),
    dtypes.complex128: (1e-4, 1e-6),
    dtypes.float32: (2e-2, 1e-2),
    dtypes.complex64: (2e-2, 1e-2),
    dtypes.float16: (1e-1, 1e-1),
    dtypes.bfloat16: (2.5e-1, 2.5e-1),
}


def _is_inexact(leaf: Any) -> bool:
    return dtypes.is_inexact(asarray(leaf).dtype)


def _step_and_error(args: Any) -> tuple[float, float]:
    found = [
        _STEPS.get(asarray(x).dtype, (0.25, 0.25)) for x in tree.leaves(args) if _is_inexact(x)
    ]
    if not found:
        raise ArgumentError("check_grads: no argument is a float or complex array")
    return max(found)


def _random_like(rng: np.random.Generator, leaf: Any) -> Any:
    """A random direction; float0 for arrays without derivatives."""
    array = asarray(leaf)
    if not dtypes.is_inexact(array.dtype):
        return np.zeros(array.shape, dtypes.float0)
    values: Any = rng.normal(size=array.shape)
    if dtypes.is_complex(array.dtype):
        values = values + 1j * rng.normal(size=array.shape)
    return asarray(dtypes.cast(np.asarray(values), dtypes.physical(array.dtype)))


def _moved(args: Any, direction: Any, amount: float) -> Any:
    def move(leaf: Any, along: Any) -> Any:
        if not _is_inexact(leaf):
            return leaf
        dtype = dtypes.physical(asarray(leaf).dtype)
        values = np.asarray(wide_values(leaf) + amount * wide_values(along))
        return asarray(dtypes.cast(values, dtype))

    return tree.map(move, args, direction)


def numerical_jvp(f: Callable[..., Any], args: Any, tangents: Any, eps: float | None = None) -> Any:
    """The derivative of `f` along `tangents` by a central difference of fourth order.

    Args:
      f: the function.
      args: the tuple of its arguments.
      tangents: a tree like `args`.
      eps: the step; default: by the arguments' dtype.
    """
    step = _step_and_error(args)[0] if eps is None else eps
    values = [f(*_moved(args, tangents, multiple * step)) for multiple in (-2, -1, 1, 2)]

    def difference(a: Any, b: Any, c: Any, d: Any) -> Any:
        far, near = wide_values(d) - wide_values(a), wide_values(c) - wide_values(b)
        return (8 * near - far) / (12 * step)

    return tree.map(difference, *values)


def _assert_near(actual: Any, expected: Any, rtol: float, atol: float, what: str) -> None:
    for number, (got, wanted) in enumerate(
        zip(tree.leaves(actual), tree.leaves(expected), strict=True)
    ):
        if getattr(got, "dtype", None) == dtypes.float0:
            continue
        np.testing.assert_allclose(
            wide_values(got),
            wide_values(wanted),
            rtol=rtol,
            atol=atol,
            err_msg=f"{what}, result {number}",
        )


def _tolerances(args: Any, atol: float | None, rtol: float | None) -> tuple[float, float]:
    default = _step_and_error(args)[1]
    return default if atol is None else atol, default if rtol is None else rtol


def check_jvp(
    f: Callable[..., Any],
    f_jvp: Callable[..., Any],
    args: Any,
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Assert that `f_jvp(args, tangents)` gives the value and the derivative of `f`.

    Args:
      f: the function.
      f_jvp: returns `(value, tangent)`, as `partial(jvp, f)` does.
      args: the tuple of arguments.
      atol: absolute error; default: by dtype.
      rtol: relative error; default: by dtype.
      eps: the step of differences; default: by dtype.
      err_msg: put before the message.
    """
    atol, rtol = _tolerances(args, atol, rtol)
    rng = np.random.default_rng(0)
    tangents = tree.map(partial(_random_like, rng), args)
    value, tangent = f_jvp(args, tangents)
    prefix = f"{err_msg}: " if err_msg else ""
    _assert_near(value, f(*args), rtol, atol, f"{prefix}value of the jvp")
    _assert_near(
        tangent, numerical_jvp(f, args, tangents, eps), rtol, atol, f"{prefix}tangent of the jvp"
    )


def _pairing(cotangents: Any, tangents: Any) -> float:
    """Re(sum(ct * t)) over the leaves that have derivatives."""
    total = 0.0
    for one, other in zip(tree.leaves(cotangents), tree.leaves(tangents), strict=True):
        if getattr(one, "dtype", None) != dtypes.float0:
            total += float(np.sum(wide_values(one) * wide_values(other)).real)
    return total


def check_vjp(
    f: Callable[..., Any],
    f_vjp: Callable[..., Any],
    args: Any,
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Assert that `f_vjp(*args)` gives the value of `f` and the transpose of its derivative.

    Args:
      f: the function.
      f_vjp: returns `(value, pullback)`, as `partial(vjp, f)` does.
      args: the tuple of arguments.
      atol: absolute error; default: by dtype.
      rtol: relative error; default: by dtype.
      eps: the step of differences; default: by dtype.
      err_msg: put before the message.
    """
    atol, rtol = _tolerances(args, atol, rtol)
    rng = np.random.default_rng(1)
    value, pullback = f_vjp(*args)
    prefix = f"{err_msg}: " if err_msg else ""
    _assert_near(value, f(*args), rtol, atol, f"{prefix}value of the vjp")
    tangents = tree.map(partial(_random_like, rng), args)
    cotangents = tree.map(partial(_random_like, rng), value)
    expected = _pairing(cotangents, numerical_jvp(f, args, tangents, eps))
    actual = _pairing(pullback(cotangents), tangents)
    np.testing.assert_allclose(
        actual, expected, rtol=rtol, atol=atol, err_msg=f"{prefix}cotangents of the vjp"
    )


def check_grads(
    f: Callable[..., Any],
    args: Any,
    order: int,
    modes: str | Sequence[str] = MODES,
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Assert that derivatives of `f`, up to an order, agree with differences.

    Args:
      f: the function, of arrays or trees of arrays.
      args: the tuple of its arguments.
      order: how many times to differentiate.
      modes: "fwd" for forward mode, "rev" for reverse mode, or both; higher orders mix them.
      atol: absolute error; default: by dtype.
      rtol: relative error; default: by dtype.
      eps: the step of differences; default: by dtype.

    Raises:
      AssertionError: saying by which chain of modes the derivative was taken.

    >>> import fxarray.numpy as fnp
    >>> from fxarray.testing import check_grads
    >>> check_grads(lambda x: fnp.sin(x) * x, (fnp.float64(0.5),), order=2)
    """
    args = tuple(args)
    chosen = (modes,) if isinstance(modes, str) else tuple(modes)
    if not chosen or not set(chosen) <= set(MODES):
        raise ArgumentError(f"check_grads: modes must be among {MODES}, got {modes!r}")

    def check(function: Callable[..., Any], arguments: Any, order: int, chain: str) -> None:
        if "fwd" in chosen:
            name = f"{chain}jvp"
            check_jvp(function, partial(jvp, function), arguments, atol, rtol, eps, name)
            if order > 1:
                rng = np.random.default_rng(order)
                tangents = tree.map(partial(_random_like, rng), arguments)
                check(
                    lambda *xs: jvp(function, xs, tangents)[1], arguments, order - 1, f"{name} of "
                )
        if "rev" in chosen:
            name = f"{chain}vjp"
            check_vjp(function, partial(vjp, function), arguments, atol, rtol, eps, name)
            if order > 1:
                value, _ = vjp(function, *arguments)
                rng = np.random.default_rng(order)
                cotangents = tree.map(partial(_random_like, rng), value)
                check(
                    lambda *xs: vjp(function, *xs)[1](cotangents),
                    arguments,
                    order - 1,
                    f"{name} of ",
                )

    check(f, args, order, "")
