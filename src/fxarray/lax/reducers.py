"""Functions given to `reduce` and `reduce_window`: tracing them, and recognising known ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fxarray.core.array import Array, DeviceArray
from fxarray.core.dtypes import DType
from fxarray.core.errors import ArgumentError, DTypeError
from fxarray.core.ir import Program, Var
from fxarray.core.types import ArrayType
from fxarray.lax.bodies import check_structure, trace_body
from fxarray.lax.operands import as_operands
from fxarray.primitives import elementwise, reductions
from fxarray.primitives.reduce import reduce_sum
from fxarray.primitives.window import ReduceWindowMax, ReduceWindowMin, ReduceWindowSum
from fxarray.transforms.arguments import Structure, flatten_arguments, flatten_tree
from fxarray.tree.operations import flatten


class Monoid(NamedTuple):
    """An associative operation that has a reduction of its own.

    Args:
      combine: the operation on two arrays.
      reduce: the reduction, (array, axes) to array.
      identity: from a dtype, the number that changes nothing.
      windows: the reduction over windows, if there is one.
      idempotent: whether combining a value with itself gives the value.
    """

    combine: Callable[[Any, Any], Any]
    reduce: Callable[[Any, Sequence[int]], Any]
    identity: Callable[[DType], Any]
    windows: Any = None
    idempotent: bool = False

    def is_identity(self, init: Array) -> bool:
        """Whether an initial value is known to be the identity."""
        if not isinstance(init, DeviceArray):
            return False
        identity = np.asarray(self.identity(init.type.dtype)).astype(init.numpy_view().dtype)
        return bool(init.numpy_view() == identity)


_MONOIDS = {
    "add": Monoid(elementwise.add, reduce_sum, lambda _: 0, ReduceWindowSum),
    "mul": Monoid(elementwise.mul, reductions.reduce_prod, lambda _: 1),
    "max": Monoid(
        elementwise.max, reductions.reduce_max, reductions.least, ReduceWindowMax, idempotent=True
    ),
    "min": Monoid(
        elementwise.min,
        reductions.reduce_min,
        reductions.greatest,
        ReduceWindowMin,
        idempotent=True,
    ),
    "and": Monoid(
        elementwise.bitwise_and, reductions.reduce_and, reductions.all_bits, idempotent=True
    ),
    "or": Monoid(elementwise.bitwise_or, reductions.reduce_or, lambda _: 0, idempotent=True),
    "xor": Monoid(elementwise.bitwise_xor, reductions.reduce_xor, lambda _: 0),
}


class Reducer(NamedTuple):
    """What to reduce, and how.

    Args:
      arrays: the arrays, of one shape.
      inits: an initial value for each.
      captured: values that the function closed over.
      program: the function, from captured values, accumulated values and next values.
      structure: the tree of the arrays.
    """

    arrays: list[Array]
    inits: list[Array]
    captured: tuple[Any, ...]
    program: Program
    structure: Structure

    def monoid(self) -> Monoid | None:
        """The known operation that the function is, if it is one."""
        program = self.program
        if self.captured or len(program.equations) != 1 or len(program.inputs) != 2:
            return None
        (equation,) = program.equations
        inputs = [atom for atom in equation.inputs if type(atom) is Var]
        if set(inputs) != set(program.inputs) or program.outputs != equation.outputs:
            return None
        return _MONOIDS.get(equation.op.name)


def as_reducer(
    function: str, operands: Any, inits: Any, computation: Callable[[Any, Any], Any]
) -> Reducer:
    """Trace the function of a reduction.

    Args:
      function: the caller's name, for messages.
      operands: a tree of arrays.
      inits: a tree of scalars of the same structure.
      computation: the function, from two such trees of scalars to one.

    Raises:
      ArgumentError: there is no array.
      DTypeError: the function does not return the dtypes that it is given.
      TreeStructureError: structures differ.
    """
    found, structure = flatten_tree(operands, f"{function}: operands")
    init_structure = flatten_tree(inits, f"{function}: init_values").structure
    if not found:
        raise ArgumentError(f"{function}: there is no array to reduce")
    check_structure(
        f"{function}: init_values must be a tree of the structure of operands",
        "Give one scalar for each array.",
        structure,
        init_structure,
        "init_values",
    )
    # The numbers themselves, since a number that becomes an array while tracing is not known.
    numbers = init_structure.select(flatten(inits)[0])
    pairs = [as_operands(function, x, init) for x, init in zip(found, numbers, strict=True)]
    arrays, scalars = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    types = [ArrayType((), x.type.dtype) for x in arrays]
    both = flatten_arguments((operands, operands), {}, computation).structure
    trace = trace_body(computation, both, types * 2)
    check_structure(
        f"{function}: the function {trace.name} must return a tree of the structure of operands",
        "Return the same containers.",
        structure,
        trace.output,
        "its result",
    )
    for given, wanted in zip(trace.program.output_types, types, strict=True):
        if not given.same_array(wanted):
            raise DTypeError(
                f"{function}: the function {trace.name} takes {wanted} and must return it, but "
                f"returns {given}"
            )
    return Reducer(arrays, scalars, trace.captured, trace.program, structure)
