"""checkpoint: trade memory for a second computation in the backward pass."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from fxarray.core.array import Array
from fxarray.core.dtypes import is_inexact
from fxarray.core.errors import ArgumentError
from fxarray.core.hooks import operators
from fxarray.core.ir import Atom, Program, Var
from fxarray.core.tracebacks import boundary
from fxarray.core.types import ArrayType
from fxarray.interpreters.linearize import linearize_program
from fxarray.primitives.control.inline import inline_calls
from fxarray.primitives.control.remat import CheckpointName, Policy, Remat
from fxarray.transforms.arguments import flatten_arguments, function_name, mark_static
from fxarray.transforms.shapes import abstract_arguments
from fxarray.transforms.trace_cache import remembered_trace, trace_function, traces_of
from fxarray.tree.operations import map as tree_map


def checkpoint(
    fun: Callable[..., Any] | None = None,
    *,
    prevent_cse: bool = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
    concrete: bool = False,
) -> Any:
    """Make a function store little for its backward pass, and compute the rest again there.

    Args:
      fun: the function. Without it, returns a decorator.
      prevent_cse: keep the compiler from merging the second computation with the first; may be
        False in the body of a `scan`, where it cannot.
      policy: which intermediate values to store all the same; see `checkpoint_policies`. None
        stores only the function's arguments.
      static_argnums: positions of arguments that are Python values.
      concrete: accepted for compatibility; must be False.

    Returns:
      A function with the same results and derivatives.

    References:
      Griewank and Walther, "Evaluating Derivatives", 2nd ed., SIAM 2008, chapter 12.

    >>> import fxarray, fxarray.numpy as fnp
    >>> f = fxarray.checkpoint(lambda x: fnp.sin(fnp.sin(x)))
    >>> bool(fnp.allclose(fxarray.grad(f)(1.0), fnp.cos(fnp.sin(1.0)) * fnp.cos(1.0)))
    True
    """
    if fun is None:
        return lambda function: checkpoint(  # type: ignore[return-value]
            function,
            prevent_cse=prevent_cse,
            policy=policy,
            static_argnums=static_argnums,
            concrete=concrete,
        )
    if not callable(fun):
        raise ArgumentError(f"checkpoint takes a function, got {fun!r}")
    if concrete:
        raise NotImplementedError(
            "checkpoint(concrete=True) is not supported; mark the arguments that Python code "
            "depends on with static_argnums"
        )
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    known = traces_of(fun)

    @boundary
    @wraps(fun)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = mark_static(args, kwargs, numbers, (), fun)
        flat = flatten_arguments(args, kwargs, fun)
        types = [array.type for array in flat.arrays]
        trace, _ = remembered_trace(known, fun, flat.structure, types)
        op = Remat(trace.program, policy, prevent_cse)
        return trace.output.unflatten(op.bind(*trace.captured, *flat.arrays))

    return checkpointed


def checkpoint_name(x: Any, name: str) -> Any:
    """Name a value (or all arrays of a tree), so that a checkpoint policy can ask to store it.

    >>> import fxarray, fxarray.numpy as fnp
    >>> from fxarray import checkpoint_policies, checkpoint_name
    >>> f = lambda x: fnp.sum(fnp.cos(checkpoint_name(fnp.sin(x), "sine")))
    >>> g = fxarray.checkpoint(f, policy=checkpoint_policies.save_only_these_names("sine"))
    >>> bool(fnp.allclose(fxarray.grad(g)(fnp.ones(2)), fxarray.grad(f)(fnp.ones(2))))
    True
    """
    op = CheckpointName(name)
    return tree_map(
        lambda leaf: op(leaf if isinstance(leaf, Array) else operators.asarray(leaf)), x
    )


class Residual:
    """A value that the backward pass of a function needs.

    Args:
      type: its type.
      reason: where it comes from.
    """

    __slots__ = ("reason", "type")

    def __init__(self, type: ArrayType, reason: str) -> None:
        self.type = type
        self.reason = reason

    def __repr__(self) -> str:
        return f"{self.type} {self.reason}"


def saved_residuals(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> list[Residual]:
    """The values that `grad` of a function stores between its two passes.

    Args:
      fun: the function.
      *args: its arguments, or `ShapeDtypeStruct`s.
      **kwargs: its keyword arguments.
    """
    types, structure, names = abstract_arguments(args, kwargs, fun)
    trace = trace_function(fun, structure, types)
    program = inline_calls(trace.program)
    nonzeros = tuple([is_inexact(type.dtype) for type in program.input_types])
    linearized = linearize_program(program, nonzeros)
    known = inline_calls(linearized.known)
    offset = len(trace.captured)
    labels = [f"from a constant of {function_name(fun)}"] * offset
    labels += [f"from the argument {name}" for name in names]
    return _described(known, linearized.pick_residuals(known.inputs, known.outputs), labels)


def _described(known: Program, residuals: Sequence[Atom], labels: Sequence[str]) -> list[Residual]:
    origins: dict[Any, str] = dict(zip(known.inputs, labels, strict=True))
    for equation in known.equations:
        where = f" at {equation.source}" if equation.source is not None else ""
        for variable in equation.outputs:
            origins[variable] = f"output of {equation.op.name}{where}"
    found: list[Residual] = []
    seen: set[Any] = set()
    for atom in residuals:
        if type(atom) is Var and atom not in seen:
            seen.add(atom)
            found.append(Residual(atom.type, origins[atom]))
    return found


def print_saved_residuals(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Print what `saved_residuals` finds, one line each."""
    for residual in saved_residuals(fun, *args, **kwargs):
        sys.stdout.write(f"{residual}\n")
