"""closure_convert: make the arrays that a function closes over into arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fxarray.core import dtypes
from fxarray.core.tracer import Tracer
from fxarray.interpreters.evaluate import evaluate
from fxarray.transforms.arguments import flatten_arguments, function_name
from fxarray.transforms.custom_vjp import custom_vjp
from fxarray.transforms.shapes import abstract_arguments
from fxarray.transforms.trace_cache import trace_function
from fxarray.tree.difference import explain_difference


def closure_convert(
    fun: Callable[..., Any], *example_args: Any
) -> tuple[Callable[..., Any], list[Any]]:
    """Turn a closure into a function that takes what it closes over.

    Args:
      fun: a function that may close over values being differentiated.
      *example_args: arguments like those that it will be called with.

    Returns:
      `converted`, called as `converted(*args, *hidden)`, and the list `hidden` of values being
      traced that `fun` closes over. Arrays that are not traced stay inside.

    >>> import fxarray
    >>> def outer(scale):
    ...     converted, hidden = fxarray.closure_convert(lambda x: x * scale, 1.0)
    ...     return converted(2.0, *hidden)
    >>> float(fxarray.grad(outer)(5.0))
    2.0
    """
    types, structure, _ = abstract_arguments(example_args, {}, fun)
    trace = trace_function(fun, structure, types)
    hoisted = [
        isinstance(value, Tracer) and dtypes.is_inexact(value.type.dtype)
        for value in trace.captured
    ]
    hidden = [v for v, hoist in zip(trace.captured, hoisted, strict=True) if hoist]

    def converted(*args: Any) -> Any:
        count = len(args) - len(hidden)
        flat = flatten_arguments(args[:count], {}, fun)
        if flat.structure != structure:
            raise TypeError(
                f"{function_name(fun)} was converted for other arguments: "
                f"{explain_difference(structure.treedef, flat.structure.treedef)}"
            )
        given = iter(args[count:])
        captured = [
            next(given) if hoist else value
            for value, hoist in zip(trace.captured, hoisted, strict=True)
        ]
        return trace.output.unflatten(evaluate(trace.program, [*captured, *flat.arrays]))

    return converted, hidden


def custom_gradient(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Define a function together with its vjp: it returns `(output, vjp_function)`.

    Args:
      fun: takes arrays, returns the output and a function from its cotangent to the arguments'.

    >>> import fxarray
    >>> @fxarray.custom_gradient
    ... def f(x):
    ...     return x**2, lambda ct: (ct * 100.0,)
    >>> float(fxarray.grad(f)(3.0))
    100.0
    """
    from_rule = custom_vjp(lambda *args: fun(*args)[0])

    def forward(*args: Any) -> tuple[Any, Any]:
        return fun(*args)[0], args

    def backward(args: tuple[Any, ...], cotangent: Any) -> tuple[Any, ...]:
        result = fun(*args)[1](cotangent)
        return tuple(result) if isinstance(result, (tuple, list)) else (result,)

    from_rule.defvjp(forward, backward)
    return from_rule
