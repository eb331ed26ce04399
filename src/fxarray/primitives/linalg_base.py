"""What the operations on stacks of matrices share: the last two dimensions are a matrix.

All leading dimensions are a stack, of equal sizes in all operands. Derivative rules are written in
matrix notation, with the helpers at the end of this module.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.dtypes import DType
from fxarray.core.errors import ShapeError
from fxarray.core.factors import Factors, letters
from fxarray.core.hooks import operators
from fxarray.core.primitive import Primitive
from fxarray.core.types import ArrayType, Shape, Size
from fxarray.primitives.create import Iota
from fxarray.primitives.elementwise import (
    abs,
    conjugate,
    convert,
    div,
    eq,
    ge,
    ne,
    select,
    stop_gradient,
)
from fxarray.primitives.elementwise_base import check_count, check_equal_dtypes, check_group
from fxarray.primitives.movement import broadcast_in_dim, transpose
from fxarray.primitives.reduce import reduce_sum
from fxarray.primitives.reductions import ReduceMax
from fxarray.primitives.support import INEXACT, Values, number_like

LIBRARY_CALL = {"lower": "it is a call of LAPACK, which a device makes as it is"}


class MatrixOperation(Primitive):
    """An operation on stacks of matrices, which says how its results' dimensions arise.

    `pattern` names the trailing dimensions of operands and results, one letter each, as in
    "mn->mk,kn". Equal letters are equal sizes, except that `k` is the lesser of `m` and `n`.
    """

    EXCUSED: ClassVar[dict[str, str]] = {
        **LIBRARY_CALL,
        "transpose": "it is not linear in any operand",
    }
    # Dimensions that a device may split, since the operation is one for each of their elements.
    independent: ClassVar[str] = ""

    @property
    def pattern(self) -> str:
        raise self.missing("pattern")

    def core_dimensions(self) -> tuple[list[str], list[str]]:
        """The letters of operands and results."""
        left, right = self.pattern.split("->")
        return left.split(","), right.split(",")

    def check_stack(self, types: Sequence[ArrayType]) -> tuple[Shape, dict[str, Size]]:
        """The shape of the stack, and the size of each letter.

        Raises:
          ShapeError: operands have too few dimensions, or sizes do not fit.
        """
        operands, _ = self.core_dimensions()
        check_count(self.name, types, len(operands))
        sizes: dict[str, Size] = {}
        stack: Shape | None = None
        for number, (given, core) in enumerate(zip(types, operands, strict=True)):
            if given.ndim < len(core):
                raise ShapeError(
                    f"{self.name}: operand {number} is {given}, but it must have at least "
                    f"{len(core)} dimensions"
                )
            lead = given.shape[: given.ndim - len(core)]
            if stack is None:
                stack = lead
            elif len(lead) != len(stack) or not all(map(dims.same, lead, stack)):
                raise ShapeError(
                    f"{self.name}: operand {number} is {given}, but operand 0 is {types[0]}; the "
                    f"dimensions before those of the matrix must be equal. Broadcast them."
                )
            for letter, size in zip(core, given.shape[len(lead) :], strict=True):
                known = sizes.setdefault(letter, size)
                if not dims.same(known, size):
                    raise ShapeError(
                        f"{self.name}: operand {number} is {given}, where sizes {known} and {size} "
                        f"must be equal"
                        + (" (a square matrix)" if len(set(core)) < len(core) else "")
                    )
        if "k" not in sizes and "m" in sizes and "n" in sizes:
            sizes["k"] = smaller(sizes["m"], sizes["n"])
        assert stack is not None
        return stack, sizes

    def check_dtypes(self, types: Sequence[ArrayType]) -> None:
        for number, given in enumerate(types):
            check_group(self.name, number, given, INEXACT)
        check_equal_dtypes(self.name, types)

    def result_types(self, types: Sequence[ArrayType], *dtype: DType) -> tuple[ArrayType, ...]:
        """The results' types; dtypes that are not given are those of the operands."""
        stack, sizes = self.check_stack(types)
        _, results = self.core_dimensions()
        given = [*dtype, *[types[0].dtype] * (len(results) - len(dtype))]
        return tuple(
            ArrayType((*stack, *[sizes[letter] for letter in core]), own)
            for core, own in zip(results, given, strict=True)
        )

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        self.check_dtypes(types)
        return self.result_types(types)

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        results = self.bind(*to_stack(size, operands, axes))
        return results, (0,) * len(results)

    def shard(self, *types: ArrayType) -> Factors:
        operands, results = self.core_dimensions()
        stack = letters(types[0].ndim - len(operands[0]), start=26)
        # A letter that stands twice in one operand is two dimensions.
        left = tuple([(*stack, *_distinct(core)) for core in operands])
        right = tuple([(*stack, *_distinct(core)) for core in results])
        names = {factor for record in (*left, *right) for factor in record}
        whole = {name for name in names if name not in stack and name[0] not in self.independent}
        in_results = {factor for record in right for factor in record}
        gone = {
            factor: "sum" if factor[0] in self.independent else "any"
            for record in left
            for factor in record
            if factor not in in_results
        }
        return Factors(left, right, gone, frozenset(whole), self.linear_operands)


def _distinct(core: str) -> list[str]:
    return [letter if letter not in core[:i] else letter + "'" for i, letter in enumerate(core)]


def to_stack(size: Any, operands: Sequence[Any], axes: Sequence[int | None]) -> list[Any]:
    """Operands with the mapped axis in front, repeated where there is none."""
    return [
        operators.broadcast_axis(x, size, 0) if axis is None else operators.move_axis(x, axis, 0)
        for x, axis in zip(operands, axes, strict=True)
    ]


def smaller(m: Size, n: Size) -> Size:
    """The lesser of two sizes."""
    return min(m, n) if type(m) is int and type(n) is int else dims.dim_min(m, n)


# --- calling NumPy and LAPACK ---------------------------------------------------------------------


def library_dtype(dtype: Any) -> np.dtype[Any]:
    """The dtype in which LAPACK computes for a float or complex dtype."""
    if dtypes.is_narrow_float(dtype):
        return np.dtype(np.float32)
    return np.dtype(dtype)


def to_library(*arrays: Values) -> list[Values]:
    """Operands in the dtype in which LAPACK computes."""
    return [x.astype(library_dtype(x.dtype), copy=False) for x in arrays]


def from_library(values: Sequence[Any], like: Sequence[DType]) -> tuple[Values, ...]:
    """Results in the dtypes of the operation."""
    return tuple(
        dtypes.cast(np.asarray(v), dtypes.physical(d)) for v, d in zip(values, like, strict=True)
    )


def for_each_matrix(
    function: Callable[..., Sequence[Any]],
    arrays: Sequence[Values],
    ranks: Sequence[int],
    results: Sequence[tuple[tuple[int, ...], np.dtype[Any]]],
) -> tuple[Values, ...]:
    """Apply a function of single matrices to all matrices of a stack.

    Args:
      function: from one matrix of each operand to one of each result; where it raises
        `numpy.linalg.LinAlgError`, the results are NaN.
      arrays: the operands.
      ranks: how many trailing dimensions are the matrix (or vector), per operand.
      results: shape (of one) and dtype of each result.
    """
    stack = arrays[0].shape[: arrays[0].ndim - ranks[0]]
    made = [np.empty((*stack, *shape), dtype) for shape, dtype in results]
    for position in np.ndindex(*stack):
        try:
            values = function(*[array[position] for array in arrays])
        except np.linalg.LinAlgError:
            values = [np.nan] * len(made)
        for whole, value in zip(made, values, strict=True):
            whole[position] = value
    return tuple(made)


def stacked_or_each(
    function: Callable[..., Any],
    arrays: Sequence[Values],
    results: Sequence[tuple[tuple[int, ...], np.dtype[Any]]],
) -> tuple[Values, ...]:
    """A function of NumPy on all matrices at once; if one of them fails, on one after the other."""
    with np.errstate(all="ignore"):
        try:
            values = function(*arrays)
        except np.linalg.LinAlgError:
            single = lambda *xs: _as_tuple(function(*xs))  # noqa: E731
            return for_each_matrix(single, arrays, [2] * len(arrays), results)
    return tuple(
        np.asarray(value).astype(dtype, copy=False)
        for value, (_, dtype) in zip(_as_tuple(values), results, strict=True)
    )


def _as_tuple(values: Any) -> tuple[Any, ...]:
    return tuple(values) if isinstance(values, tuple) else (values,)


# --- matrix notation in rule bodies ---------------------------------------------------------------


def matrix_transpose(x: Any) -> Any:
    """x with rows and columns exchanged."""
    rank = x.type.ndim
    return transpose(x, (*range(rank - 2), rank - 1, rank - 2))


def adjoint(x: Any) -> Any:
    """The conjugate transpose."""
    return conjugate(matrix_transpose(x))


def _index(x: Any, dimension: int) -> Any:
    """The number of the row (0) or column (1) of each element of a matrix like `x`."""
    return Iota(dtypes.int32, x.type.shape[-2:], dimension)()


def choose(mask: Any, x: Any, other: Any) -> Any:
    """`x` where the mask of one matrix holds, else `other`, which may be 0-dimensional."""
    shape = x.type.shape
    if len(shape) > 2:
        mask = broadcast_in_dim(mask, shape, (len(shape) - 2, len(shape) - 1))
    return select(mask, x, other)


def on_diagonal(x: Any) -> Any:
    """The mask of the diagonal of one matrix."""
    return eq(_index(x, 0), _index(x, 1))


def lower_triangle(x: Any, offset: int = 0) -> Any:
    """x with zeros above the diagonal (`offset` of -1: on it, too)."""
    return choose(ge(_index(x, 0) + offset, _index(x, 1)), x, number_like(x, 0))


def upper_triangle(x: Any, offset: int = 0) -> Any:
    """x with zeros below the diagonal (`offset` of 1: on it, too)."""
    return choose(ge(_index(x, 1), _index(x, 0) + offset), x, number_like(x, 0))


def clear_diagonal(x: Any) -> Any:
    """x with zeros on the diagonal."""
    return choose(ne(_index(x, 0), _index(x, 1)), x, number_like(x, 0))


def only_diagonal(x: Any) -> Any:
    """x with zeros off the diagonal."""
    return choose(on_diagonal(x), x, number_like(x, 0))


def diagonal(x: Any) -> Any:
    """The diagonal of square matrices, as vectors."""
    return reduce_sum(only_diagonal(x), (x.type.ndim - 1,))


def trace(x: Any) -> Any:
    """The sum of the diagonal of square matrices."""
    rank = x.type.ndim
    return reduce_sum(only_diagonal(x), (rank - 2, rank - 1))


def diagonal_matrix(v: Any) -> Any:
    """Square matrices with the vectors v on the diagonal."""
    return only_diagonal(columns(v, v.type.shape[-1]))


def rows(v: Any, count: Size) -> Any:
    """The matrix whose `count` rows are all the vector v: element (i, j) is v[j]."""
    shape = v.type.shape
    rank = len(shape)
    return broadcast_in_dim(v, (*shape[:-1], count, shape[-1]), (*range(rank - 1), rank))


def columns(v: Any, count: Size) -> Any:
    """The matrix whose `count` columns are all the vector v: element (i, j) is v[i]."""
    shape = v.type.shape
    return broadcast_in_dim(v, (*shape, count), range(len(shape)))


def identity(like: Any, size: Size) -> Any:
    """Identity matrices of the stack and dtype of `like`."""
    shape: Shape = (*like.type.shape[:-2], size, size)
    mask = eq(Iota(dtypes.int32, (size, size), 0)(), Iota(dtypes.int32, (size, size), 1)())
    rank = len(shape)
    return broadcast_in_dim(convert(mask, like.type.dtype), shape, (rank - 2, rank - 1))


def reciprocal_or_zero(x: Any, tolerance: Any) -> Any:
    """1 / x, and 0 where |x| does not exceed the tolerance."""
    small = ge(tolerance, abs(x))
    safe = select(small, number_like(x, 1), x)
    return select(small, number_like(x, 0), div(number_like(x, 1), safe))


def spread_tolerance(values: Any) -> Any:
    """What differences of singular or eigenvalues must exceed to count: matrices of it.

    LAPACK's values are right to a few roundings of the largest one, so those that are closer are
    taken to be equal.
    """
    count = values.type.shape[-1]
    sizes = abs(stop_gradient(values))
    if dims.same(count, 0):
        return columns(sizes, count)
    largest = ReduceMax((values.type.ndim - 1,))(sizes)
    tolerance = largest * (32 * float(dtypes.finfo(values.type.dtype).eps))
    return broadcast_in_dim(tolerance, (*values.type.shape, count), range(values.type.ndim - 1))
