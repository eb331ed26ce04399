"""The methods of Array: `x.sum(axis)` is `fxarray.numpy.sum(x, axis)`, and so on.

Their meaning stands in `fxarray.numpy`, which fills the table in `core.hooks` that they use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fxarray.core import hooks

if TYPE_CHECKING:
    from fxarray.core.array import Array

_operators = hooks.operators


def _call(name: str, *args: Any, **kwargs: Any) -> Any:
    return _operators.methods[name](*args, **kwargs)  # type: ignore[index]


class ArrayMethods:
    """Methods that every array has, each defined by the function of that name."""

    __slots__ = ()

    # --- reductions -----------------------------------------------------------------------------

    def all(
        self, axis: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None
    ) -> Array:
        """Whether all elements along the axes are true."""
        return _call("all", self, axis, out, keepdims, where=where)

    def any(
        self, axis: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None
    ) -> Array:
        """Whether some element along the axes is true."""
        return _call("any", self, axis, out, keepdims, where=where)

    def sum(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
        promote_integers: bool = True,
    ) -> Array:
        """The sum along axes."""
        return _call("sum", self, axis, dtype, out, keepdims, initial, where, promote_integers)

    def prod(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
        promote_integers: bool = True,
    ) -> Array:
        """The product along axes."""
        return _call("prod", self, axis, dtype, out, keepdims, initial, where, promote_integers)

    def max(
        self,
        axis: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Array:
        """The greatest element along axes."""
        return _call("max", self, axis, out, keepdims, initial, where)

    def min(
        self,
        axis: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Array:
        """The smallest element along axes."""
        return _call("min", self, axis, out, keepdims, initial, where)

    def ptp(self, axis: Any = None, out: None = None, keepdims: bool = False) -> Array:
        """The difference of the greatest and the smallest element along axes."""
        return _call("ptp", self, axis, out, keepdims)

    def mean(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: Any = None,
    ) -> Array:
        """The mean along axes."""
        return _call("mean", self, axis, dtype, out, keepdims, where=where)

    def var(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        ddof: int = 0,
        keepdims: bool = False,
        *,
        where: Any = None,
        mean: Any = None,
        correction: Any = None,
    ) -> Array:
        """The variance along axes."""
        return _call(
            "var", self, axis, dtype, out, ddof, keepdims, where=where, mean=mean,
            correction=correction,
        )  # fmt: skip

    def std(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        ddof: int = 0,
        keepdims: bool = False,
        *,
        where: Any = None,
        mean: Any = None,
        correction: Any = None,
    ) -> Array:
        """The standard deviation along axes."""
        return _call(
            "std", self, axis, dtype, out, ddof, keepdims, where=where, mean=mean,
            correction=correction,
        )  # fmt: skip

    def argmax(
        self, axis: int | None = None, out: None = None, keepdims: bool | None = None
    ) -> Array:
        """The index of the greatest element."""
        return _call("argmax", self, axis, out, keepdims)

    def argmin(
        self, axis: int | None = None, out: None = None, keepdims: bool | None = None
    ) -> Array:
        """The index of the smallest element."""
        return _call("argmin", self, axis, out, keepdims)

    def cumsum(self, axis: int | None = None, dtype: Any = None, out: None = None) -> Array:
        """Running sums."""
        return _call("cumsum", self, axis, dtype, out)

    def cumprod(self, axis: int | None = None, dtype: Any = None, out: None = None) -> Array:
        """Running products."""
        return _call("cumprod", self, axis, dtype, out)

    # --- sorting and searching ------------------------------------------------------------------

    def sort(
        self,
        axis: int | None = -1,
        *,
        kind: None = None,
        order: None = None,
        stable: bool = True,
        descending: bool = False,
    ) -> Array:
        """The elements in order along an axis."""
        return _call(
            "sort", self, axis, kind=kind, order=order, stable=stable, descending=descending
        )

    def argsort(
        self,
        axis: int | None = -1,
        *,
        kind: None = None,
        order: None = None,
        stable: bool = True,
        descending: bool = False,
    ) -> Array:
        """The indices that put the elements in order along an axis."""
        return _call(
            "argsort", self, axis, kind=kind, order=order, stable=stable, descending=descending
        )

    def argpartition(self, kth: int, axis: int = -1) -> Array:
        """The indices that put the kth element in its place, smaller ones before it."""
        return _call("argpartition", self, kth, axis)

    def searchsorted(
        self, v: Any, side: str = "left", sorter: Any = None, *, method: str = "scan"
    ) -> Array:
        """Where elements of `v` would have to be put in to keep this vector sorted."""
        return _call("searchsorted", self, v, side, sorter, method=method)

    def nonzero(self, *, size: int | None = None, fill_value: Any = None) -> tuple[Array, ...]:
        """The indices of elements that are not zero."""
        return _call("nonzero", self, size=size, fill_value=fill_value)

    # --- shape ----------------------------------------------------------------------------------

    def reshape(
        self, *args: Any, order: str = "C", copy: bool | None = None, out_sharding: Any = None
    ) -> Array:
        """The elements in another shape, given as a tuple or as several sizes."""
        sizes = args[0] if len(args) == 1 else args
        return _call("reshape", self, sizes, order, copy=copy, out_sharding=out_sharding)

    def ravel(self, order: str = "C", *, out_sharding: Any = None) -> Array:
        """The elements in one dimension."""
        return _call("ravel", self, order, out_sharding=out_sharding)

    def flatten(self, order: str = "C", *, out_sharding: Any = None) -> Array:
        """The elements in one dimension."""
        return _call("ravel", self, order, out_sharding=out_sharding)

    def squeeze(self, axis: Any = None) -> Array:
        """The array without axes of size 1."""
        return _call("squeeze", self, axis)

    def transpose(self, *args: Any) -> Array:
        """The dimensions reversed, or in the order given as a tuple or as several ints."""
        if not args or (len(args) == 1 and args[0] is None):
            return _call("transpose", self)
        order: Sequence[int] = args[0] if len(args) == 1 and not _is_int(args[0]) else args
        return _call("transpose", self, order)

    def swapaxes(self, axis1: int, axis2: int) -> Array:
        """The array with two axes interchanged."""
        return _call("swapaxes", self, axis1, axis2)

    @property
    def T(self) -> Array:
        """The dimensions reversed."""
        return _call("transpose", self)

    @property
    def mT(self) -> Array:
        """The last two dimensions swapped."""
        return _call("matrix_transpose", self)

    def repeat(
        self,
        repeats: Any,
        axis: int | None = None,
        *,
        total_repeat_length: int | None = None,
        out_sharding: Any = None,
    ) -> Array:
        """Every element repeated in place."""
        return _call(
            "repeat", self, repeats, axis, total_repeat_length=total_repeat_length,
            out_sharding=out_sharding,
        )  # fmt: skip

    # --- elements -------------------------------------------------------------------------------

    def take(
        self,
        indices: Any,
        axis: int | None = None,
        out: None = None,
        mode: Any = None,
        unique_indices: bool = False,
        indices_are_sorted: bool = False,
        fill_value: Any = None,
    ) -> Array:
        """Elements along an axis."""
        return _call(
            "take", self, indices, axis, out, mode, unique_indices, indices_are_sorted, fill_value
        )

    def choose(self, choices: Any, out: None = None, mode: str = "raise") -> Array:
        """For each element, that element of the array among `choices` that it names."""
        return _call("choose", self, choices, out, mode)

    def compress(
        self,
        condition: Any,
        axis: int | None = None,
        *,
        size: int | None = None,
        fill_value: Any = 0,
        out: None = None,
    ) -> Array:
        """The slices along an axis where `condition` holds."""
        return _call("compress", condition, self, axis, size=size, fill_value=fill_value, out=out)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
        """The elements with equal indices along two axes."""
        return _call("diagonal", self, offset, axis1, axis2)

    def trace(
        self,
        offset: int = 0,
        axis1: int = 0,
        axis2: int = 1,
        dtype: Any = None,
        out: None = None,
    ) -> Array:
        """The sum of a diagonal."""
        return _call("trace", self, offset, axis1, axis2, dtype, out)

    def clip(self, min: Any = None, max: Any = None) -> Array:
        """The elements limited to an interval."""
        return _call("clip", self, min, max)

    def round(self, decimals: int = 0, out: None = None) -> Array:
        """The elements rounded, halves to even."""
        return _call("round", self, decimals, out)

    # --- types and parts ------------------------------------------------------------------------

    def astype(self, dtype: Any, copy: bool = False, device: Any = None) -> Array:
        """The elements converted to another dtype."""
        return _call("astype", self, dtype, copy=copy, device=device)

    def view(self, dtype: Any = None) -> Array:
        """The same bits read as another dtype, of another width too."""
        return _call("view", self, dtype)

    def copy(self) -> Array:
        """A copy in memory of its own."""
        return _call("copy", self)

    def conj(self) -> Array:
        """The complex conjugate."""
        return _call("conjugate", self)

    def conjugate(self) -> Array:
        """The complex conjugate."""
        return _call("conjugate", self)

    @property
    def real(self) -> Array:
        """The real part."""
        return _call("real", self)

    @property
    def imag(self) -> Array:
        """The imaginary part."""
        return _call("imag", self)

    # --- products -------------------------------------------------------------------------------

    def dot(
        self,
        b: Any,
        *,
        precision: Any = None,
        preferred_element_type: Any = None,
        out_sharding: Any = None,
    ) -> Array:
        """The product with another array; see `fxarray.numpy.dot`."""
        return _call(
            "dot", self, b, precision=precision, preferred_element_type=preferred_element_type,
            out_sharding=out_sharding,
        )  # fmt: skip

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The module that implements the Python array API standard for this array."""
        return _call("array_namespace", self, api_version)

    # --- placement ------------------------------------------------------------------------------

    def to_device(self, device: Any, *, stream: Any = None) -> Array:
        """The array on another device, or split as a sharding says."""
        return _call("to_device", self, device, stream=stream)


def _is_int(value: Any) -> bool:
    return hasattr(value, "__index__") and not hasattr(value, "__len__")
