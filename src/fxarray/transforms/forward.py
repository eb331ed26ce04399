"""Forward-mode derivatives: jvp, and linearize."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from fxarray.core.errors import ArgumentError
from fxarray.core.tracebacks import boundary
from fxarray.core.types import ArrayType
from fxarray.interpreters.jvp import jvp_flat
from fxarray.interpreters.linearize import Linearization, apply_record, linearize_flat
from fxarray.transforms.arguments import FlatFunction, Structure, flatten_arguments, function_name
from fxarray.transforms.records import take_apart
from fxarray.transforms.tangents import dense, is_differentiable, read_tangents
from fxarray.tree.operations import treedef_children
from fxarray.tree.registry import register_pytree_node


def positional_structure(structure: Structure) -> Structure:
    """The structure of the positional arguments, of that of `(args, {})`."""
    return Structure(treedef_children(structure.treedef)[0], structure.static_leaves)


@boundary
def jvp(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """Evaluate a function and its derivative in a direction (a Jacobian-vector product).

    Values are carried along, so Python control flow on them works.

    Args:
      fun: the function to differentiate.
      primals: a tuple of its arguments.
      tangents: a tuple like `primals`: the direction. Tangents of integer arrays have dtype
        float0, those of static leaves are None.
      has_aux: whether `fun` returns a pair of a result and auxiliary data, which is passed on.

    Returns:
      The result and its tangent, and the auxiliary data with `has_aux`.

    Raises:
      TreeStructureError: if primals and tangents differ in structure.
      ShapeError: if they differ in shape.
      DTypeError: if they differ in dtype.

    >>> import fxarray, fxarray.numpy as fnp
    >>> fxarray.jvp(lambda x: x * x, (3.0,), (1.0,))
    (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    for name, value in (("primals", primals), ("tangents", tangents)):
        if not isinstance(cast("object", value), (tuple, list)):
            raise ArgumentError(
                f"jvp: {name} must be a tuple or list of arguments, but is a "
                f"{type(value).__name__}; write jvp(f, (x,), (t,))."
            )
    arrays, structure, _ = flatten_arguments(tuple(primals), None, fun)
    given = read_tangents(
        positional_structure(structure),
        [array.type for array in arrays],
        tuple(tangents),
        "tangent",
        "primal",
    )
    flat = FlatFunction(fun, structure, has_aux, "jvp")
    outputs, out_tangents = jvp_flat(flat, arrays, given)
    count = flat.count
    result = flat.output.unflatten(outputs[:count])
    tangent = flat.output.unflatten_tangents([dense(t) for t in out_tangents[:count]])
    if has_aux:
        return result, tangent, flat.aux.unflatten(outputs[count:])
    return result, tangent


class LinearMap:
    """The derivative of a function at a point: a linear function of tangents, cheap to apply."""

    def __init__(
        self,
        record: Linearization,
        structure: Structure,
        types: Sequence[ArrayType],
        output: Structure,
        name: str,
    ) -> None:
        self.record = record
        self.structure = structure
        self.types = tuple(types)
        self.output = output
        self.name = name

    def __repr__(self) -> str:
        return f"<the derivative of {self.name} at a point>"

    def __call__(self, *tangents: Any) -> Any:
        """The tangent of the result, for tangents of the arguments."""
        given = read_tangents(self.structure, self.types, tangents, "tangent", "primal")
        results = apply_record(self.record, given)
        return self.output.unflatten_tangents([dense(result) for result in results])


def _flatten_map(derivative: LinearMap) -> tuple[list[Any], Any]:
    residuals, skeleton = take_apart(derivative.record)
    rest = (derivative.structure, derivative.types, derivative.output, derivative.name)
    return residuals, (skeleton, *rest)


def _unflatten_map(data: Any, residuals: Sequence[Any]) -> LinearMap:
    return LinearMap(data[0].fill(residuals), *data[1:])


register_pytree_node(LinearMap, _flatten_map, _unflatten_map)


@boundary
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Evaluate a function and get its derivative at that point as a function.

    The function runs once; the derivative applies only what was recorded, as often as wanted, also
    under `jit` and `vmap`.

    Args:
      fun: the function to differentiate.
      *primals: its arguments.
      has_aux: whether `fun` returns a pair of a result and auxiliary data, which is passed on.

    Returns:
      The result, and a function from tangents of the arguments to the tangent of the result; then
      the auxiliary data with `has_aux`.

    >>> import fxarray
    >>> y, f_jvp = fxarray.linearize(lambda x: x * x, 3.0)
    >>> f_jvp(1.0), f_jvp(2.0)
    (Array(6., dtype=float32, weak_type=True), Array(12., dtype=float32, weak_type=True))
    """
    arrays, structure, _ = flatten_arguments(primals, None, fun)
    flat = FlatFunction(fun, structure, has_aux, "linearize")
    outputs, record = linearize_flat(flat, arrays, [is_differentiable(x) for x in arrays])
    count = flat.count
    record = Linearization(record.inputs, record.equations, record.outputs[:count])
    derivative = LinearMap(
        record,
        positional_structure(structure),
        [array.type for array in arrays],
        flat.output,
        function_name(fun),
    )
    result = flat.output.unflatten(outputs[:count])
    if has_aux:
        return result, derivative, flat.aux.unflatten(outputs[count:])
    return result, derivative
