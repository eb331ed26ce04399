"""Comparison, bits, and choosing between arrays."""

from __future__ import annotations

from fxarray.core.array import Array
from fxarray.lax.operands import ArrayLike, as_operand, as_operands
from fxarray.primitives import elementwise as _ops


def eq(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x equals y, elementwise; NaN equals nothing.

    Args:
      x, y: of one dtype, random keys included, and of one shape or 0-dimensional.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.eq(fnp.array([1, 2]), 2)
    Array([False,  True], dtype=bool)
    """
    return _ops.eq(*as_operands("eq", x, y))


def ne(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x differs from y, elementwise.

    Args:
      x, y: of one dtype, random keys included, and of one shape or 0-dimensional.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.ne(fnp.array([1, 2]), 2)
    Array([ True, False], dtype=bool)
    """
    return _ops.ne(*as_operands("ne", x, y))


def lt(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x is less than y, elementwise.

    Args:
      x, y: of one bool, integer or float dtype, and of one shape or 0-dimensional.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.lt(fnp.array([1, 2, 3]), 2)
    Array([ True, False, False], dtype=bool)
    """
    return _ops.lt(*as_operands("lt", x, y))


def le(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x is less than or equal to y, elementwise.

    Args:
      x, y: of one bool, integer or float dtype, and of one shape or 0-dimensional.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.le(fnp.array([1, 2, 3]), 2)
    Array([ True,  True, False], dtype=bool)
    """
    return _ops.le(*as_operands("le", x, y))


def gt(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x is greater than y, elementwise.

    Args:
      x, y: of one bool, integer or float dtype, and of one shape or 0-dimensional.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.gt(fnp.array([1, 2, 3]), 2)
    Array([False, False,  True], dtype=bool)
    """
    return _ops.gt(*as_operands("gt", x, y))


def ge(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x is greater than or equal to y, elementwise.

    Args:
      x, y: of one bool, integer or float dtype, and of one shape or 0-dimensional.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.ge(fnp.array([1, 2, 3]), 2)
    Array([False,  True,  True], dtype=bool)
    """
    return _ops.ge(*as_operands("ge", x, y))


def is_finite(x: ArrayLike) -> Array:
    """Whether x is neither infinite nor NaN, elementwise.

    Args:
      x: of a float dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.is_finite(fnp.array([1.0, float("inf")]))
    Array([ True, False], dtype=bool)
    """
    return _ops.is_finite(as_operand("is_finite", x))


def bitwise_and(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits set in both x and y, elementwise; for bools, x and y.

    Args:
      x, y: of one bool or integer dtype, and of one shape or 0-dimensional.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.bitwise_and(fnp.array([1, 2]), 3)
    Array([1, 2], dtype=int32)
    """
    return _ops.bitwise_and(*as_operands("bitwise_and", x, y))


def bitwise_or(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits set in x or y, elementwise; for bools, x or y.

    Args:
      x, y: of one bool or integer dtype, and of one shape or 0-dimensional.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.bitwise_or(fnp.array([1, 2]), 3)
    Array([3, 3], dtype=int32)
    """
    return _ops.bitwise_or(*as_operands("bitwise_or", x, y))


def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits set in one of x and y, elementwise; for bools, x != y.

    Args:
      x, y: of one bool or integer dtype, and of one shape or 0-dimensional.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.bitwise_xor(fnp.array([1, 2]), 3)
    Array([2, 1], dtype=int32)
    """
    return _ops.bitwise_xor(*as_operands("bitwise_xor", x, y))


def bitwise_not(x: ArrayLike) -> Array:
    """All bits of x flipped, elementwise; for bools, not x.

    Args:
      x: of a bool or integer dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.bitwise_not(fnp.array([0, 5]))
    Array([-1, -6], dtype=int32)
    """
    return _ops.bitwise_not(as_operand("bitwise_not", x))


def shift_left(x: ArrayLike, y: ArrayLike) -> Array:
    """x shifted left by y bits, elementwise; 0 if y is negative or at least the width.

    Args:
      x, y: of one integer dtype, and of one shape or 0-dimensional.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.shift_left(fnp.array([1, 3]), 4)
    Array([16, 48], dtype=int32)
    """
    return _ops.shift_left(*as_operands("shift_left", x, y))


def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Array:
    """x shifted right by y bits, elementwise, zeros moving in.

    0 if y is negative or at least the width.

    Args:
      x, y: of one integer dtype, and of one shape or 0-dimensional.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.shift_right_logical(fnp.array([8, -1]), 1)
    Array([         4, 2147483647], dtype=int32)
    """
    return _ops.shift_right_logical(*as_operands("shift_right_logical", x, y))


def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Array:
    """x shifted right by y bits, elementwise, its highest bit moving in.

    Nothing but that bit if y is negative or at least the width.

    Args:
      x, y: of one integer dtype, and of one shape or 0-dimensional.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.shift_right_arithmetic(fnp.array([8, -8]), 1)
    Array([ 4, -4], dtype=int32)
    """
    return _ops.shift_right_arithmetic(*as_operands("shift_right_arithmetic", x, y))


def population_count(x: ArrayLike) -> Array:
    """The number of bits set in x, elementwise, in the dtype of x.

    Args:
      x: of a integer dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.population_count(fnp.array([7, -1]))
    Array([ 3, 32], dtype=int32)
    """
    return _ops.population_count(as_operand("population_count", x))


def clz(x: ArrayLike) -> Array:
    """The number of zero bits above the highest bit set, elementwise, in the dtype of x.

    Args:
      x: of a integer dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.clz(fnp.array([0, 1]))
    Array([32, 31], dtype=int32)
    """
    return _ops.clz(as_operand("clz", x))


def mulhi(x: ArrayLike, y: ArrayLike) -> Array:
    """The upper half of the product of x and y, which has twice their width, elementwise.

    Args:
      x, y: of one integer dtype, and of one shape or 0-dimensional.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.mulhi(fnp.array([2**30]), 8)
    Array([2], dtype=int32)
    """
    return _ops.mulhi(*as_operands("mulhi", x, y))


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """Each element from `on_true` where `pred` holds, and from `on_false` elsewhere.

    Args:
      pred: a bool array of the shape of the others, or 0-dimensional.
      on_true, on_false: of one dtype, and of one shape or 0-dimensional.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.select(fnp.array([True, False]), fnp.array([1, 2]), fnp.array([3, 4]))
    Array([1, 4], dtype=int32)
    """
    cases = as_operands("select", on_true, on_false)
    return _ops.select(as_operand("select", pred), *cases)


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """Each element from the case that `which` names.

    Args:
      which: a bool or int32 array of the shape of the cases, or 0-dimensional. False names the
        first case, True the second; numbers out of range name the nearest case.
      cases: of one dtype, and of one shape or 0-dimensional; at most two if `which` is bool.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.select_n(fnp.array([0, 2]), fnp.array([1, 2]), fnp.array([3, 4]), fnp.array([5, 6]))
    Array([1, 6], dtype=int32)
    """
    return _ops.select_n(as_operand("select_n", which), *as_operands("select_n", *cases))
