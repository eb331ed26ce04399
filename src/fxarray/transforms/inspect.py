"""Look at a function without running it: types of its results, or its whole Program."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import ExitStack
from functools import wraps
from typing import Any

from fxarray.core.context import named_axis
from fxarray.core.ir import Program
from fxarray.core.tracebacks import boundary
from fxarray.interpreters.staging import stage
from fxarray.transforms.arguments import FlatFunction, function_name, mark_static
from fxarray.transforms.shapes import ShapeDtypeStruct, abstract_arguments, typeof

__all__ = ["ShapeDtypeStruct", "eval_shape", "make_jaxpr", "make_program", "typeof"]


@boundary
def eval_shape(fun: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Find the shapes and dtypes of a function's results, without computing anything.

    Args:
      fun: the function.
      *args: its arguments: arrays, numbers, or `ShapeDtypeStruct`s, whose sizes may be symbolic.
      **kwargs: its keyword arguments.

    Returns:
      A tree like the result, of `ShapeDtypeStruct`s.

    >>> import fxarray, fxarray.numpy as fnp
    >>> fxarray.eval_shape(
    ...     fnp.matmul, fnp.ones((2, 3)), fxarray.ShapeDtypeStruct((3, 4), "float32")
    ... )
    ShapeDtypeStruct(shape=(2, 4), dtype=float32)
    """
    types, structure, names = abstract_arguments(args, kwargs, fun)
    flat = FlatFunction(fun, structure)
    program, _ = stage(flat, types, function_name(fun), names)
    return flat.output.unflatten([ShapeDtypeStruct.of(type) for type in program.output_types])


def make_program(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Hashable, int]] | None = None,
    return_shape: bool = False,
    abstracted_axes: Any = None,
) -> Callable[..., Any]:
    """Make a function that traces `fun` and returns its Program.

    Args:
      fun: the function to trace.
      static_argnums: positions of arguments that are not traced but known.
      axis_env: names and sizes of axes that collectives in `fun` may refer to.
      return_shape: whether to return the result's tree of `ShapeDtypeStruct`s too.
      abstracted_axes: not supported; pass `ShapeDtypeStruct`s with symbolic sizes instead.

    Returns:
      A function of `fun`'s arguments (arrays, numbers or `ShapeDtypeStruct`s) that returns the
      Program, or `(program, shapes)` with `return_shape`. Arrays that `fun` closes over are the
      Program's constants.

    >>> import fxarray
    >>> def f(x, y):
    ...     return x * y + 1
    >>> print(fxarray.make_program(f)(2.0, 3.0))
    def f(a: f32[]~, b: f32[]~) -> f32[]~:
        c: f32[]~ = mul(a, b)
        d: f32[]~ = add(c, 1.0)
        return d
    """
    if abstracted_axes is not None:
        raise NotImplementedError(
            "make_program: abstracted_axes is not supported; trace with "
            "ShapeDtypeStruct((size, 3), dtype), where `size` is symbolic, instead"
        )
    statics = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)

    @boundary
    @wraps(fun)
    def program_of(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = mark_static(args, kwargs, statics, (), fun)
        types, structure, names = abstract_arguments(args, kwargs, fun)
        flat = FlatFunction(fun, structure)
        with ExitStack() as axes:
            for name, size in axis_env or ():
                axes.enter_context(named_axis(name, size, None))
            program, captured = stage(flat, types, function_name(fun), names)
        count = len(captured)
        closed = Program(
            program.inputs[count:],
            program.equations,
            program.outputs,
            tuple(zip(program.inputs[:count], captured, strict=True)),
            program.name,
        )
        if not return_shape:
            return closed
        shapes = [ShapeDtypeStruct.of(type) for type in program.output_types]
        return closed, flat.output.unflatten(shapes)

    return program_of


make_jaxpr = make_program
