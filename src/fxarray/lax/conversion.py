"""Conversion between dtypes, parts of complex numbers, and stop_gradient."""

from __future__ import annotations

import operator
from typing import Any, TypeAlias, TypeVar

import numpy as np

from fxarray.core import dtypes
from fxarray.core.array import Array
from fxarray.lax.operands import ArrayLike, as_operand, as_operands
from fxarray.primitives import elementwise as _ops
from fxarray.tree import map as tree_map

DTypeLike: TypeAlias = Any
Tree = TypeVar("Tree")


def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """Elements converted to another dtype.

    To an integer dtype, floats are truncated towards zero and saturate, and NaN becomes 0; integers
    wrap. To bool, it is whether the element differs from zero. Imaginary parts are dropped. The
    result is not weak.

    Args:
      operand: an array or a number.
      new_dtype: a dtype, its name, or a Python type.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.convert_element_type(fnp.array([300.7, -1.0, float("nan")]), "uint8")
    Array([255,   0,   0], dtype=uint8)
    """
    operand = as_operand("convert_element_type", operand)
    return _ops.convert(operand, dtypes.canonical(new_dtype))


def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """The same bits read as another dtype.

    To a narrower dtype, the result has one dimension more, which holds the parts of each element,
    lowest bits first; to a wider one, the last dimension must hold the parts, and vanishes.

    Args:
      operand: of an integer or float dtype.
      new_dtype: an integer or float dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.bitcast_convert_type(fnp.array([1.0]), "int32")
    Array([1065353216], dtype=int32)
    """
    operand = as_operand("bitcast_convert_type", operand)
    return _ops.BitcastConvertType(dtypes.canonical(new_dtype))(operand)


def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Values rounded to a format with fewer exponent and mantissa bits, dtype unchanged.

    Ties are rounded to even; what is too large becomes infinite, what is too small for a normal
    number of the format becomes zero.

    Args:
      operand: of a float dtype.
      exponent_bits: at least 1.
      mantissa_bits: at least 0, without the leading bit.

    >>> from fxarray import lax
    >>> lax.reduce_precision(1.2345, 5, 3)
    Array(1.25, dtype=float32, weak_type=True)
    """
    op = _ops.ReducePrecision(operator.index(exponent_bits), operator.index(mantissa_bits))
    return op(as_operand("reduce_precision", operand))


def complex(x: ArrayLike, y: ArrayLike) -> Array:
    """The complex number x + iy, elementwise.

    Args:
      x, y: of one dtype, float32 or float64, and of one shape or 0-dimensional.

    >>> from fxarray import lax
    >>> lax.complex(1.0, 2.0)
    Array(1.+2.j, dtype=complex64, weak_type=True)
    """
    return _ops.complex(*as_operands("complex", x, y))


def real(x: ArrayLike) -> Array:
    """The real part, elementwise.

    Args:
      x: of a complex dtype.

    >>> from fxarray import lax
    >>> lax.real(1 + 2j)
    Array(1., dtype=float32, weak_type=True)
    """
    return _ops.real(as_operand("real", x))


def imag(x: ArrayLike) -> Array:
    """The imaginary part, elementwise.

    Args:
      x: of a complex dtype.

    >>> from fxarray import lax
    >>> lax.imag(1 + 2j)
    Array(2., dtype=float32, weak_type=True)
    """
    return _ops.imag(as_operand("imag", x))


def conj(x: ArrayLike) -> Array:
    """The complex conjugate, elementwise.

    Args:
      x: of a complex, float32 or float64 dtype; a real `x` becomes complex.

    >>> from fxarray import lax
    >>> lax.conj(1 + 2j)
    Array(1.-2.j, dtype=complex64, weak_type=True)
    """
    x = as_operand("conj", x)
    return _ops.conj(x) if _ops.is_complex(x) else _ops.complex(x, _ops.number_like(x, 0))


def stop_gradient(x: Tree) -> Tree:
    """`x`, whose derivative is taken to be zero.

    Args:
      x: an array, or a tree of them; leaves that are not arrays are returned as they are.

    >>> from fxarray import grad, lax
    >>> grad(lambda x: x * lax.stop_gradient(x))(3.0)
    Array(3., dtype=float32, weak_type=True)
    """
    return tree_map(_stop, x)


def _stop(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray):
        leaf = as_operand("stop_gradient", leaf)
    return _ops.stop_gradient(leaf) if isinstance(leaf, Array) else leaf
