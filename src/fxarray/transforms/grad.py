"""grad and value_and_grad: derivatives of scalar functions.

The function runs once, with values; what is linear in the tangents is recorded and walked
backwards. Only the differentiated arrays become tracers; everything else passes through untouched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from operator import index
from typing import Any

from fxarray.core import dtypes
from fxarray.core.array import Array, DeviceArray
from fxarray.core.errors import ArgumentError, NonDifferentiableError, StaticArgumentError
from fxarray.core.tracebacks import boundary
from fxarray.interpreters.linearize import Linearization, backward, linearize_flat
from fxarray.primitives.create import scalar
from fxarray.transforms.arguments import (
    FlatArguments,
    FlatFunction,
    argument_name,
    flatten_arguments,
    flatten_tree,
    function_name,
    plain_structure,
)
from fxarray.transforms.tangents import dense_cotangents

Argnums = int | Sequence[int]


def check_argnums(argnums: Any, transform: str) -> int | tuple[int, ...]:
    """`argnums` as an int or a tuple of ints.

    Raises:
      ArgumentError: if it is neither.
    """
    try:
        return index(argnums)
    except TypeError:
        pass
    try:
        return tuple(map(index, argnums))
    except TypeError:
        raise ArgumentError(
            f"{transform}: argnums must be an int or a sequence of ints, not {argnums!r}; to "
            f"differentiate with respect to keyword arguments, pass them in a dict as a positional "
            f"argument."
        ) from None


class Selected:
    """A call in which some positional arguments vary and all others are fixed."""

    __slots__ = ("args", "function", "kwargs", "positions", "single", "transform")

    def __init__(
        self,
        function: Callable[..., Any],
        argnums: int | tuple[int, ...],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        transform: str,
    ) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.transform = transform
        self.single = isinstance(argnums, int)
        wanted = (argnums,) if isinstance(argnums, int) else argnums
        for number in wanted:
            if not -len(args) <= number < len(args):
                raise ArgumentError(
                    f"{transform}: differentiating {function_name(function)} with respect to "
                    f"argnums={argnums} needs at least {number + 1 if number >= 0 else -number} "
                    f"positional arguments, but it was called with {len(args)} (keyword arguments "
                    f"are not differentiated)."
                )
        self.positions = tuple([number % len(args) for number in wanted])
        if len(set(self.positions)) != len(self.positions):
            raise ArgumentError(f"{transform}: argnums={argnums} names an argument twice.")

    @property
    def __name__(self) -> str:
        return function_name(self.function)

    def __call__(self, *varying: Any) -> Any:
        args = list(self.args)
        for position, value in zip(self.positions, varying, strict=True):
            args[position] = value
        return self.function(*args, **self.kwargs)

    def flatten(self) -> FlatArguments:
        """The varying arguments, taken apart."""
        chosen = [self.args[position] for position in self.positions]
        if all(type(argument) is DeviceArray for argument in chosen):
            return FlatArguments(chosen, plain_structure(len(chosen)), None)
        try:
            arrays, structure = flatten_tree((tuple(chosen), {}), "")
        except StaticArgumentError:
            return flatten_arguments(self.args, None, self.function)  # raises, with names
        return FlatArguments(arrays, structure, None)

    def names(self, flat: FlatArguments) -> list[str]:
        """What to call each varying array in messages."""
        result: list[str] = []
        for path in flat.structure.paths():
            number, _, rest = path.removeprefix("[0][").partition("]")
            result.append(argument_name(self.function, self.positions[int(number)]) + rest)
        return result

    def give(self, per_argument: tuple[Any, ...]) -> Any:
        """Results per varying argument as the user expects them: bare for a single int."""
        return per_argument[0] if self.single else per_argument


def check_inputs(
    selected: Selected, flat: FlatArguments, holomorphic: bool, allow_int: bool = False
) -> list[bool]:
    """Check that derivatives exist with respect to the varying arrays, and say for which.

    Raises:
      NonDifferentiableError: for an integer array without `allow_int`, a real one with
        `holomorphic`, or a complex one without it in forward mode.
    """
    wanted: list[bool] = []
    for place, array in enumerate(flat.arrays):
        dtype = array.type.dtype
        if dtypes.is_float(dtype) and not holomorphic:
            wanted.append(True)
            continue
        # Forward mode would need two directions for each complex number.
        if dtypes.is_complex(dtype) and (holomorphic or selected.transform != "jacfwd"):
            wanted.append(True)
            continue
        if not dtypes.is_inexact(dtype) and allow_int and not holomorphic:
            wanted.append(False)
            continue
        transform, name = selected.transform, selected.names(flat)[place]
        what = f"{transform}: argument {name} of {function_name(selected.function)} has type "
        if holomorphic:
            raise NonDifferentiableError(
                f"{what}{array.type}, but holomorphic=True takes complex inputs. Cast it to a "
                f"complex dtype, or leave holomorphic out."
            )
        if dtypes.is_complex(dtype):
            raise NonDifferentiableError(
                f"{what}{array.type}. For the complex derivative of a holomorphic function use "
                f"{transform}(..., holomorphic=True). For others use jacrev, vjp or jvp, or "
                f"differentiate with respect to real and imaginary parts."
            )
        raise NonDifferentiableError(
            f"{what}{array.type}; derivatives exist with respect to float and complex inputs only. "
            f"Pass a float (such as 1.0 instead of 1), choose other argnums, or use "
            f"allow_int=True, which gives derivatives of dtype float0."
        )
    return wanted


def _check_loss(
    selected: Selected, flat: FlatFunction, outputs: Sequence[Array], holomorphic: bool
) -> None:
    called = function_name(selected.function)
    rule = f"{selected.transform} takes a function that returns one real scalar, but {called}"
    if flat.count != 1 or flat.output.treedef.num_nodes != 1:
        tree = flat.output.unflatten(list(outputs[: flat.count]))
        raise NonDifferentiableError(
            f"{rule} returned a {type(tree).__name__}: {_types_of(flat, outputs)}. If only the "
            f"first part is the loss, return (loss, rest) and use has_aux=True."
        )
    result = outputs[0].type
    if result.shape:
        raise NonDifferentiableError(
            f"{rule} returned an array of type {result}. Sum it or take its mean; for the "
            f"derivative of every element use jacrev or vjp."
        )
    if holomorphic:
        if not dtypes.is_complex(result.dtype):
            raise NonDifferentiableError(
                f"{selected.transform}(holomorphic=True) takes a function that returns a complex "
                f"scalar, but {called} returned {result}."
            )
    elif dtypes.is_complex(result.dtype):
        raise NonDifferentiableError(
            f"{rule} returned {result}. Take its real part or absolute value; for the complex "
            f"derivative of a holomorphic function use holomorphic=True."
        )
    elif not dtypes.is_inexact(result.dtype):
        raise NonDifferentiableError(
            f"{rule} returned {result}, which has no derivative. Cast it to a float dtype if it "
            f"depends smoothly on the argument."
        )


def _types_of(flat: FlatFunction, outputs: Sequence[Array]) -> str:
    shown = [
        f"{path or 'it'} has type {output.type}"
        for path, output in zip(flat.output.paths(), outputs, strict=False)
    ][:4]
    return ", ".join(shown) or "it holds no array"


def value_and_grad(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[..., tuple[Any, Any]]:
    """Make a function that evaluates `fun` and its gradient.

    Args:
      fun: a function that returns a real scalar. Its arguments may be trees.
      argnums: the position or positions of the arguments to differentiate with respect to.
      has_aux: whether `fun` returns a pair of the scalar and auxiliary data.
      holomorphic: whether `fun` is holomorphic: complex in, complex out.
      allow_int: whether integer arrays may be among the arguments; their gradients have dtype
        float0.
      reduce_axes: accepted for compatibility; it has no effect.

    Returns:
      A function of the same arguments that returns `(value, gradient)`, or
      `((value, aux), gradient)` with `has_aux`. A gradient is a tree like its argument; there is a
      tuple of them if `argnums` is a sequence. Leaves that are no arrays have gradient None.

    Raises:
      NonDifferentiableError: when called with integers, or if `fun` returns no real scalar.

    >>> import fxarray
    >>> fxarray.value_and_grad(lambda x: x * x)(3.0)
    (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    return _value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes, True)


def grad(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[..., Any]:
    """Make a function that computes the gradient of `fun`.

    The gradient of a real function of complex arguments is the conjugate of the direction of
    steepest ascent, as in JAX: for |z|^2 it is 2 conj(z).

    Args:
      fun: a function that returns a real scalar. Its arguments may be trees.
      argnums: the position or positions of the arguments to differentiate with respect to.
      has_aux: whether `fun` returns a pair of the scalar and auxiliary data.
      holomorphic: whether `fun` is holomorphic: complex in, complex out.
      allow_int: whether integer arrays may be among the arguments; their gradients have dtype
        float0.
      reduce_axes: accepted for compatibility; it has no effect.

    Returns:
      A function of the same arguments that returns the gradient, or `(gradient, aux)` with
      `has_aux`. A gradient is a tree like its argument; there is a tuple of them if `argnums` is a
      sequence. Leaves that are no arrays have gradient None.

    Raises:
      NonDifferentiableError: when called with integers, or if `fun` returns no real scalar.

    >>> import fxarray, fxarray.numpy as fnp
    >>> fxarray.grad(fnp.sin)(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return _value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes, False)


def _value_and_grad(
    fun: Callable[..., Any],
    argnums: Argnums,
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
    reduce_axes: Sequence[Any],
    with_value: bool,
) -> Callable[..., Any]:
    del reduce_axes
    transform = "value_and_grad" if with_value else "grad"
    if not callable(fun):
        raise ArgumentError(f"{transform} takes a function, not {fun!r}")
    checked = check_argnums(argnums, transform)

    @boundary
    @wraps(fun)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        selected = Selected(fun, checked, args, kwargs, transform)
        arguments = selected.flatten()
        wanted = check_inputs(selected, arguments, holomorphic, allow_int)
        structure = arguments.structure
        flat = FlatFunction(selected, structure, has_aux, transform)
        outputs, record = linearize_flat(flat, arguments.arrays, wanted)
        _check_loss(selected, flat, outputs, holomorphic)
        loss = outputs[0]
        one = scalar(1, loss.type.dtype, loss.type.weak)
        cotangents = backward(
            Linearization(record.inputs, record.equations, record.outputs[:1]), [one]
        )
        per_argument, _ = structure.unflatten_tangents(dense_cotangents(record.inputs, cotangents))
        gradient = selected.give(per_argument)
        aux = flat.aux.unflatten(outputs[1:]) if has_aux else None
        if with_value:
            return ((loss, aux) if has_aux else loss), gradient
        return (gradient, aux) if has_aux else gradient

    return differentiated
