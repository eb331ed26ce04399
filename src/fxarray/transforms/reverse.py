"""Reverse-mode derivatives: vjp, and the transpose of a linear function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fxarray.core.errors import ArgumentError
from fxarray.core.primitive import Linear
from fxarray.core.tracebacks import boundary
from fxarray.core.types import ArrayType
from fxarray.interpreters.linearize import Linearization, backward, linearize_flat
from fxarray.interpreters.staging import stage
from fxarray.interpreters.transpose import transpose_flat
from fxarray.transforms.arguments import FlatFunction, Structure, flatten_arguments, function_name
from fxarray.transforms.forward import positional_structure
from fxarray.transforms.records import take_apart
from fxarray.transforms.shapes import abstract_arguments
from fxarray.transforms.tangents import dense, dense_cotangents, is_differentiable, read_tangents
from fxarray.tree.registry import register_pytree_node


class VJPFunction:
    """What `vjp` returns: a function from the result's cotangent to those of the arguments."""

    def __init__(
        self,
        record: Linearization,
        structure: Structure,
        output: Structure,
        types: Sequence[ArrayType],
        name: str,
    ) -> None:
        self.record = record
        self.structure = structure
        self.output = output
        self.types = tuple(types)
        self.name = name

    def __repr__(self) -> str:
        return f"<the vjp of {self.name} at a point>"

    def __call__(self, *cotangents: Any) -> tuple[Any, ...]:
        """The cotangents of the arguments, as a tuple.

        Args:
          *cotangents: exactly one: the cotangent of the result, a tree like it.
        """
        if len(cotangents) != 1:
            raise ArgumentError(
                f"the function that vjp({self.name}, ...) returned takes one argument, the "
                f"cotangent of the result (a tuple if the result is a tuple), but was called with "
                f"{len(cotangents)}."
            )
        given = read_tangents(self.output, self.types, cotangents[0], "cotangent", "result")
        results = backward(self.record, given)
        return self.structure.unflatten_tangents(dense_cotangents(self.record.inputs, results))


def _flatten_vjp(pullback: VJPFunction) -> tuple[list[Any], Any]:
    residuals, skeleton = take_apart(pullback.record)
    rest = (pullback.structure, pullback.output, pullback.types, pullback.name)
    return residuals, (skeleton, *rest)


def _unflatten_vjp(data: Any, residuals: Sequence[Any]) -> VJPFunction:
    return VJPFunction(data[0].fill(residuals), *data[1:])


register_pytree_node(VJPFunction, _flatten_vjp, _unflatten_vjp)


@boundary
def vjp(
    fun: Callable[..., Any],
    *primals: Any,
    has_aux: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> tuple[Any, ...]:
    """Evaluate a function and get its reverse-mode derivative (vector-Jacobian product).

    Args:
      fun: the function to differentiate.
      *primals: its arguments.
      has_aux: whether `fun` returns a pair of a result and auxiliary data, which is passed on.
      reduce_axes: accepted for compatibility; it has no effect.

    Returns:
      The result, and a function from a cotangent of the result to a tuple of cotangents of the
      arguments; then the auxiliary data with `has_aux`. The function may be called many times, also
      under `jit` and `vmap`. Cotangents of integer arrays have dtype float0, those of static leaves
      are None.

    >>> import fxarray
    >>> y, f_vjp = fxarray.vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> f_vjp(1.0)
    (Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    del reduce_axes
    arrays, structure, _ = flatten_arguments(primals, None, fun)
    flat = FlatFunction(fun, structure, has_aux, "vjp")
    outputs, record = linearize_flat(flat, arrays, [is_differentiable(x) for x in arrays])
    count = flat.count
    record = Linearization(record.inputs, record.equations, record.outputs[:count])
    pullback = VJPFunction(
        record,
        positional_structure(structure),
        flat.output,
        [output.type for output in outputs[:count]],
        function_name(fun),
    )
    result = flat.output.unflatten(outputs[:count])
    if has_aux:
        return result, pullback, flat.aux.unflatten(outputs[count:])
    return result, pullback


@boundary
def linear_transpose(
    fun: Callable[..., Any], *primals: Any, reduce_axes: Sequence[Any] = ()
) -> Callable[[Any], tuple[Any, ...]]:
    """Transpose a function that is linear in all its arguments.

    Args:
      fun: a linear function.
      *primals: arguments, or `ShapeDtypeStruct`s; only their types are used.
      reduce_axes: accepted for compatibility; it has no effect.

    Returns:
      A function from a cotangent of the result to a tuple of cotangents of the arguments.

    Raises:
      MissingRuleError: if the function is not linear (a NotImplementedError).

    >>> import fxarray
    >>> f_transpose = fxarray.linear_transpose(lambda x: 3 * x, 0.0)
    >>> f_transpose(2.0)
    (Array(6., dtype=float32, weak_type=True),)
    """
    del reduce_axes
    types, structure, _ = abstract_arguments(primals, None, fun)
    flat = FlatFunction(fun, structure)
    program, captured = stage(flat, types, function_name(fun))
    output = flat.output
    inputs = positional_structure(structure)

    def transposed(cotangent: Any) -> tuple[Any, ...]:
        given = read_tangents(output, program.output_types, cotangent, "cotangent", "result")
        operands = [*captured, *map(Linear, types)]
        results = transpose_flat(program, operands, given)[len(captured) :]
        return inputs.unflatten_tangents([dense(result) for result in results])

    return transposed
