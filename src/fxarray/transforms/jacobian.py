"""Jacobians and Hessians: jvp or vjp, mapped over a basis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from fxarray.core import dtypes
from fxarray.core.array import Array
from fxarray.core.dims import shape_product
from fxarray.core.errors import NonDifferentiableError
from fxarray.core.hooks import operators
from fxarray.core.primitive import Zero, instantiate
from fxarray.core.tracebacks import boundary
from fxarray.core.types import ArrayType
from fxarray.interpreters.batch import batch_flat, to_axis
from fxarray.interpreters.jvp import jvp_flat
from fxarray.interpreters.linearize import Linearization, backward, linearize_flat
from fxarray.primitives.comparison import eq
from fxarray.primitives.convert import convert
from fxarray.primitives.create import Iota
from fxarray.primitives.movement import broadcast_axis, reshape
from fxarray.transforms.arguments import FlatFunction, function_name
from fxarray.transforms.grad import Argnums, Selected, check_argnums, check_inputs
from fxarray.transforms.tangents import float0_zeros

_INDEX = np.dtype(np.int32)


def _basis(types: Sequence[ArrayType]) -> tuple[Any, list[Any]]:
    """The size of a basis of a product of array spaces, and the basis, along a first axis."""
    sizes = [shape_product(type.shape) for type in types]
    total: Any = sum(sizes)
    rows = Iota(_INDEX, (total,), 0)()
    result: list[Any] = []
    offset: Any = 0
    for type, size in zip(types, sizes, strict=True):
        columns = Iota(_INDEX, (size,), 0)() + offset
        same = eq(broadcast_axis(rows, size, 1), broadcast_axis(columns, total, 0))
        result.append(reshape(convert(same, type.dtype), (total, *type.shape)))
        offset = offset + size
    return total, result


def _split(array: Any, types: Sequence[ArrayType], axis: int) -> list[Any]:
    """Cut `array` along `axis` into one part per type, each with that type's shape in its place."""
    before, after = array.type.shape[:axis], array.type.shape[axis + 1 :]
    if len(types) == 1:
        return [reshape(array, (*before, *types[0].shape, *after))]
    parts: list[Any] = []
    start: Any = 0
    for type in types:
        stop = start + shape_product(type.shape)
        part = operators.getitem(array, (*[slice(None)] * axis, slice(start, stop)))
        parts.append(reshape(part, (*before, *type.shape, *after)))
        start = stop
    return parts


def jacfwd(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """Make a function that computes the Jacobian of `fun` column by column, in forward mode.

    Args:
      fun: the function to differentiate.
      argnums: the position or positions of the arguments to differentiate with respect to.
      has_aux: whether `fun` returns a pair of a result and auxiliary data.
      holomorphic: whether `fun` is holomorphic: complex in, complex out.

    Returns:
      A function of the same arguments. Its result is a tree like `fun`'s result with, at each leaf,
      a tree like the argument, whose leaves have the shape of the output leaf followed by that of
      the input leaf; and `(jacobian, aux)` with `has_aux`.

    Raises:
      NonDifferentiableError: when called with integers, or complex numbers without `holomorphic`.

    >>> import fxarray, fxarray.numpy as fnp
    >>> fxarray.jacfwd(lambda x: x * x)(fnp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    checked = check_argnums(argnums, "jacfwd")

    @boundary
    @wraps(fun)
    def jacobian_of(*args: Any, **kwargs: Any) -> Any:
        selected = Selected(fun, checked, args, kwargs, "jacfwd")
        arguments = selected.flatten()
        check_inputs(selected, arguments, holomorphic)
        flat = FlatFunction(selected, arguments.structure, has_aux, "jacfwd")
        types = [array.type for array in arguments.arrays]
        size, basis = _basis(types)

        def push(*tangents: Any) -> list[Any]:
            outputs, out_tangents = jvp_flat(flat, arguments.arrays, tangents)
            return [*outputs, *[_inexact(t) for t in out_tangents[: flat.count]]]

        results, axes = batch_flat(push, size, None, basis, [0] * len(basis))
        count, total = flat.count, len(results) - flat.count
        outputs = results[:total]
        if holomorphic:
            _check_complex_outputs(selected, outputs[:count])
        columns: list[Any] = []
        for output, tangent, axis in zip(
            outputs[:count], results[total:], axes[total:], strict=True
        ):
            per_input = _split(
                to_axis(tangent, size, axis, output.type.ndim), types, output.type.ndim
            )
            columns.append(selected.give(arguments.structure.unflatten_tangents(per_input)[0]))
        jacobian = flat.output.unflatten_tangents(columns)
        return (jacobian, flat.aux.unflatten(outputs[count:])) if has_aux else jacobian

    return jacobian_of


def _inexact(tangent: Any) -> Any:
    if type(tangent) is Zero and tangent.type.dtype == dtypes.float0:
        return float0_zeros(tangent.type)
    return instantiate(tangent)


def _check_complex_outputs(selected: Selected, outputs: Sequence[Array]) -> None:
    for output in outputs:
        if not dtypes.is_complex(output.type.dtype):
            raise NonDifferentiableError(
                f"{selected.transform}(holomorphic=True) takes a function with complex results, "
                f"but {function_name(selected.function)} returned {output.type}."
            )


def jacrev(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """Make a function that computes the Jacobian of `fun` row by row, in reverse mode.

    Args:
      fun: the function to differentiate.
      argnums: the position or positions of the arguments to differentiate with respect to.
      has_aux: whether `fun` returns a pair of a result and auxiliary data.
      holomorphic: whether `fun` is holomorphic: complex in, complex out.
      allow_int: whether integer arrays may be among the arguments; their Jacobians have dtype
        float0.

    Returns:
      A function of the same arguments. Its result is a tree like `fun`'s result with, at each leaf,
      a tree like the argument, whose leaves have the shape of the output leaf followed by that of
      the input leaf; and `(jacobian, aux)` with `has_aux`.

    Raises:
      NonDifferentiableError: when called with integers, or if results are not real (complex with
        `holomorphic`).

    >>> import fxarray, fxarray.numpy as fnp
    >>> fxarray.jacrev(lambda x: x * x)(fnp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    checked = check_argnums(argnums, "jacrev")

    @boundary
    @wraps(fun)
    def jacobian_of(*args: Any, **kwargs: Any) -> Any:
        selected = Selected(fun, checked, args, kwargs, "jacrev")
        arguments = selected.flatten()
        wanted = check_inputs(selected, arguments, holomorphic, allow_int)
        flat = FlatFunction(selected, arguments.structure, has_aux, "jacrev")
        outputs, record = linearize_flat(flat, arguments.arrays, wanted)
        count = flat.count
        record = Linearization(record.inputs, record.equations, record.outputs[:count])
        if holomorphic:
            _check_complex_outputs(selected, outputs[:count])
        else:
            _check_real_outputs(selected, outputs[:count])
        types = [output.type for output in outputs[:count]]
        size, basis = _basis(types)

        def pull(*cotangents: Any) -> list[Any]:
            return [_inexact(ct) for ct in backward(record, cotangents)]

        results, axes = batch_flat(pull, size, None, basis, [0] * len(basis))
        # One row of parts per output, gathered from one column of parts per input.
        by_input = [
            _split(to_axis(result, size, axis, 0), types, 0)
            for result, axis in zip(results, axes, strict=True)
        ]
        rows: list[Any] = []
        for number in range(count):
            per_input = [parts[number] for parts in by_input]
            rows.append(selected.give(arguments.structure.unflatten_tangents(per_input)[0]))
        jacobian = flat.output.unflatten_tangents(rows)
        return (jacobian, flat.aux.unflatten(outputs[count:])) if has_aux else jacobian

    return jacobian_of


def _check_real_outputs(selected: Selected, outputs: Sequence[Array]) -> None:
    for output in outputs:
        if not dtypes.is_float(output.type.dtype):
            raise NonDifferentiableError(
                f"{selected.transform} takes a function with real results, but "
                f"{function_name(selected.function)} returned {output.type}. For a holomorphic "
                f"function use holomorphic=True; for integer results use jacfwd or vjp."
            )


jacobian = jacrev


def hessian(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """Make a function that computes the matrix of second derivatives of `fun`.

    It is `jacfwd(jacrev(fun))`: forward over reverse.

    Args:
      fun: the function to differentiate twice.
      argnums: the position or positions of the arguments to differentiate with respect to.
      has_aux: whether `fun` returns a pair of a result and auxiliary data.
      holomorphic: whether `fun` is holomorphic: complex in, complex out.

    Returns:
      A function of the same arguments. Its result is a tree like `fun`'s result with a tree like
      the argument at each leaf, and such a tree again at each of its leaves.

    >>> import fxarray, fxarray.numpy as fnp
    >>> fxarray.hessian(lambda x: (x * x * x).sum())(fnp.array([1.0, 2.0]))
    Array([[ 6.,  0.],
           [ 0., 12.]], dtype=float32)
    """
    return jacfwd(
        jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic),
        argnums,
        has_aux=has_aux,
        holomorphic=holomorphic,
    )
