"""fwd_and_bwd: the forward and the backward pass of a function, as two functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from fxarray.transforms.grad import Argnums, Selected, check_argnums
from fxarray.transforms.jit import jit
from fxarray.transforms.reverse import VJPFunction, vjp


def fwd_and_bwd(
    fun: Callable[..., Any], argnums: Argnums, has_aux: bool = False, jitted: bool = True
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Make a function for the forward pass of `fun` and one for its backward pass.

    Unlike what `vjp` returns, the backward function is the same for all calls, so it is compiled
    once.

    Args:
      fun: the function to differentiate.
      argnums: the position or positions of the arguments to differentiate with respect to.
      has_aux: whether `fun` returns a pair of a result and auxiliary data.
      jitted: whether to compile both.

    Returns:
      `forward(*args)`, which returns the result and residuals (then the auxiliary data with
      `has_aux`), and `backward(residuals, cotangent)`, which returns the cotangent of the argument,
      or a tuple of them if `argnums` is a sequence.

    >>> import fxarray
    >>> forward, backward = fxarray.fwd_and_bwd(lambda x, y: x * y, argnums=(0, 1), jitted=False)
    >>> product, residuals = forward(2.0, 3.0)
    >>> backward(residuals, 1.0)
    (Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    checked = check_argnums(argnums, "fwd_and_bwd")

    @wraps(fun)
    def forward(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        selected = Selected(fun, checked, args, kwargs, "fwd_and_bwd")
        chosen: Sequence[Any] = [args[position] for position in selected.positions]
        return vjp(selected, *chosen, has_aux=has_aux)

    def backward(residuals: VJPFunction, cotangent: Any) -> Any:
        per_argument = residuals(cotangent)
        return per_argument[0] if isinstance(checked, int) else per_argument

    if jitted:
        return jit(forward), jit(backward)
    return forward, backward
