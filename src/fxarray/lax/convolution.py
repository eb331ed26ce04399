"""Convolutions of any layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fxarray.core import dims
from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError, ShapeError
from fxarray.core.types import Shape
from fxarray.lax.contract import PrecisionLike, as_precision, as_result_dtype
from fxarray.lax.operands import ArrayLike, as_operand, as_operands
from fxarray.lax.shapes import as_sizes, reject_sharding
from fxarray.lax.windows import padtype_to_pads
from fxarray.primitives.conv import Convolution
from fxarray.primitives.convert import convert
from fxarray.primitives.movement import broadcast_in_dim, reshape, rev, transpose


class ConvDimensionNumbers(NamedTuple):
    """Which dimensions are what.

    Args:
      lhs_spec: of the array: batch, feature, then those of space.
      rhs_spec: of the kernel: out feature, in feature, then those of space.
      out_spec: of the result: batch, feature, then those of space.
    """

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]


DimensionNumbers: TypeAlias = "ConvDimensionNumbers | tuple[str, str, str] | None"
Padding: TypeAlias = "str | Sequence[tuple[int, int]]"


def conv_dimension_numbers(
    lhs_shape: Shape, rhs_shape: Shape, dimension_numbers: Any
) -> ConvDimensionNumbers:
    """Dimension numbers from what users give.

    Args:
      lhs_shape: the array's shape.
      rhs_shape: the kernel's shape.
      dimension_numbers: None for "NC...", "OI..." and "NC..."; a triple of strings such as ("NHWC",
        "HWIO", "NHWC"), where N is the batch, C a feature, O the out feature, I the in feature, and
        any other letter a dimension of space; or `ConvDimensionNumbers`.

    Raises:
      ArgumentError: they do not fit the shapes, or one another.

    >>> from fxarray import lax
    >>> lax.conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 4), ("NHWC", "HWIO", "NHWC"))
    ConvDimensionNumbers(lhs_spec=(0, 3, 1, 2), rhs_spec=(3, 2, 0, 1), out_spec=(0, 3, 1, 2))
    """
    rank = len(lhs_shape)
    if rank < 2 or len(rhs_shape) != rank:
        raise ShapeError(
            f"a convolution takes an array and a kernel of equal rank, at least 2, got shapes "
            f"{lhs_shape} and {rhs_shape}"
        )
    if dimension_numbers is None:
        plain = tuple(range(rank))
        return ConvDimensionNumbers(plain, plain, plain)
    if len(dimension_numbers) != 3:
        raise ArgumentError(
            f"dimension_numbers must be those of array, kernel and result, got "
            f"{dimension_numbers!r}"
        )
    if all(isinstance(spec, str) for spec in dimension_numbers):
        found = _from_letters(dimension_numbers)
    else:
        found = [tuple(int(i) for i in spec) for spec in dimension_numbers]
    if any(sorted(spec) != list(range(rank)) for spec in found):
        raise ArgumentError(
            f"dimension_numbers={dimension_numbers!r} must name each of {rank} dimensions once"
        )
    return ConvDimensionNumbers(*found)


def _from_letters(specs: Sequence[str]) -> list[tuple[int, ...]]:
    space = [letter for letter in specs[1] if letter not in "OI"]
    found: list[tuple[int, ...]] = []
    for spec, roles in zip(specs, ("NC", "OI", "NC"), strict=True):
        if sorted(spec) != sorted([*roles, *space]) or len(set(spec)) != len(spec):
            raise ArgumentError(
                f"dimension_numbers: {spec!r} must have the letters {roles[0]}, {roles[1]} and, as "
                f"the kernel's {specs[1]!r} has, {', '.join(space) or 'no others'}, each once"
            )
        found.append(tuple(spec.index(letter) for letter in (*roles, *space)))
    return found


def conv_general_dilated(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: DimensionNumbers = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Slide a kernel over an array, and sum the products; the kernel is not reversed.

    Args:
      lhs: the array, of rank n + 2 for n dimensions of space.
      rhs: the kernel, of the same rank.
      window_strides: n integers, the distance from one window to the next.
      padding: "SAME", "SAME_LOWER" or "VALID" (see `padtype_to_pads`), or for each dimension of
        space how many zeros to add before and after.
      lhs_dilation: n integers, the distance between elements of the array.
      rhs_dilation: n integers, the distance between elements of the kernel.
      dimension_numbers: the layouts; see `conv_dimension_numbers`.
      feature_group_count: into how many groups features fall: only those of one group meet. The
        kernel has as many in features as a group.
      batch_group_count: into how many groups the batch falls, each of which meets its own part of
        the out features; the groups' results stand side by side there.
      precision: how exactly to multiply, where a device offers a choice.
      preferred_element_type: the dtype of sum and result.
      out_sharding: not supported.

    Raises:
      ShapeError: sizes do not fit.
      ArgumentError: dimension numbers or padding make no sense.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> layout = ("NHWC", "HWIO", "NHWC")
    >>> x, kernel = fnp.ones((1, 8, 8, 3)), fnp.ones((3, 3, 3, 4))
    >>> lax.conv_general_dilated(x, kernel, (2, 2), "SAME", dimension_numbers=layout).shape
    (1, 4, 4, 4)
    """
    function = "conv_general_dilated"
    reject_sharding(function, out_sharding)
    x, kernel = as_operands(function, lhs, rhs)
    numbers = conv_dimension_numbers(x.shape, kernel.shape, dimension_numbers)
    x, kernel = transpose(x, tuple(numbers.lhs_spec)), transpose(kernel, tuple(numbers.rhs_spec))
    count = x.ndim - 2
    strides = _entries(function, "window_strides", window_strides, count)
    ones = (1,) * count
    array_dilation = _entries(
        function, "lhs_dilation", ones if lhs_dilation is None else lhs_dilation, count
    )
    kernel_dilation = _entries(
        function, "rhs_dilation", ones if rhs_dilation is None else rhs_dilation, count
    )
    extents = [
        (size - 1) * step + 1 for size, step in zip(kernel.shape[2:], kernel_dilation, strict=True)
    ]
    if isinstance(padding, str):
        if any(step != 1 for step in array_dilation):
            raise ArgumentError(
                f"lax.{function}: padding={padding!r} cannot be given with lhs_dilation, since it "
                f"is not clear of which array; give how much to add, or use conv_transpose"
            )
        pads = padtype_to_pads(x.shape[2:], extents, strides, padding)
    else:
        pads = [as_sizes(function, pair) for pair in padding]
        if len(pads) != count or any(len(pair) != 2 for pair in pads):
            raise ShapeError(
                f"lax.{function}: padding={padding!r} must be a pair for each of {count} "
                f"dimensions of space"
            )
    op = Convolution(
        strides,
        tuple([tuple(pair) for pair in pads]),  # type: ignore[misc]
        array_dilation,
        kernel_dilation,
        as_result_dtype(f"lax.{function}", preferred_element_type),
        as_precision(f"lax.{function}", precision),
    )
    result = _in_groups(op, x, kernel, feature_group_count, batch_group_count)
    back = sorted(range(result.ndim), key=tuple(numbers.out_spec).__getitem__)
    return transpose(result, back)


def _entries(function: str, what: str, values: Sequence[int], count: int) -> tuple[int, ...]:
    found = tuple([int(value) for value in values])
    if len(found) != count:
        raise ShapeError(
            f"lax.{function}: {what}={found} must have one entry for each of {count} dimensions of "
            f"space"
        )
    return found


def _in_groups(
    op: Convolution, x: Array, kernel: Array, feature_groups: int, batch_groups: int
) -> Array:
    """A convolution in (batch, feature, *space), (out, in, *window): the groups split off."""
    batch, features, *space = x.shape
    out, inside, *window = kernel.shape
    groups = feature_groups * batch_groups
    if feature_groups < 1 or batch_groups < 1 or (feature_groups > 1 and batch_groups > 1):
        raise ArgumentError(
            f"lax.conv_general_dilated: feature_group_count={feature_groups} and "
            f"batch_group_count={batch_groups} must be positive, and one of them 1"
        )
    if not dims.same(features, inside * feature_groups):
        raise ShapeError(
            f"lax.conv_general_dilated: the array has {features} features, which must be "
            f"feature_group_count={feature_groups} times the kernel's {inside} in features"
        )
    for what, size in (("out features of the kernel", out), ("batch", batch)):
        divisor = groups if what != "batch" else batch_groups
        if not dims.same(size % divisor, 0):
            raise ShapeError(
                f"lax.conv_general_dilated: {size}, the size of the {what}, must be a multiple of "
                f"the {divisor} groups"
            )
    grouped_kernel = reshape(kernel, (groups, out // groups, inside, *window))
    if batch_groups > 1:
        part = batch // batch_groups
        grouped = reshape(x, (groups, part, features, *space))
    else:
        part = batch
        grouped = reshape(x, (batch, groups, inside, *space))
        grouped = transpose(grouped, (1, 0, *range(2, grouped.ndim)))
    result: Array = op(grouped, grouped_kernel)
    result = transpose(result, (1, 0, *range(2, result.ndim)))
    return reshape(result, (part, out, *result.shape[3:]))


def conv(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
) -> Array:
    """`conv_general_dilated` of an array (N, C, ...) and a kernel (O, I, ...).

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.conv(fnp.ones((1, 1, 4)), fnp.ones((1, 1, 2)), (1,), "VALID")
    Array([[[2., 2., 2.]]], dtype=float32)
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_with_general_padding(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
) -> Array:
    """`conv_general_dilated` of an array (N, C, ...) and a kernel (O, I, ...), without groups."""
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


_TRANSPOSED_LAYOUTS = {
    2: ("NC", "IO", "NC"),
    3: ("NHC", "HIO", "NHC"),
    4: ("NHWC", "HWIO", "NHWC"),
    5: ("NHWDC", "HWDIO", "NHWDC"),
}


def conv_transpose(
    lhs: ArrayLike,
    rhs: ArrayLike,
    strides: Sequence[int],
    padding: Padding,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: DimensionNumbers = None,
    transpose_kernel: bool = False,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    use_consistent_padding: bool = False,
) -> Array:
    """A convolution that spreads its array by `strides`: the shape of a strided one's gradient.

    Args:
      lhs: the array.
      rhs: the kernel.
      strides: how far apart the elements of the array are put.
      padding: "SAME" (results are `strides` times as large as the array) or "VALID" (every overlap
        has a result), or how many zeros to add before and after each dimension of space.
      rhs_dilation: the distance between elements of the kernel.
      dimension_numbers: the layouts; see `conv_dimension_numbers`. Default: "NHWC", "HWIO", "NHWC",
        without W, or with D after it.
      transpose_kernel: whether to reverse the kernel in space and exchange its features, which
        gives the gradient of a convolution with it.
      precision: how exactly to multiply, where a device offers a choice.
      preferred_element_type: the dtype of sum and result.
      use_consistent_padding: whether numbers given for padding are those of the convolution that
        this one is the gradient of.

    Raises:
      ShapeError: sizes do not fit.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.conv_transpose(fnp.ones((1, 3, 1)), fnp.ones((2, 1, 1)), (2,), "SAME").shape
    (1, 6, 1)
    """
    x, kernel = as_operands("conv_transpose", lhs, rhs)
    if dimension_numbers is None:
        if x.ndim not in _TRANSPOSED_LAYOUTS:
            raise ArgumentError(
                f"lax.conv_transpose: dimension_numbers must be given for arrays of rank {x.ndim}"
            )
        dimension_numbers = _TRANSPOSED_LAYOUTS[x.ndim]
    numbers = conv_dimension_numbers(x.shape, kernel.shape, dimension_numbers)
    count = x.ndim - 2
    steps = _entries("conv_transpose", "strides", strides, count)
    dilation = _entries(
        "conv_transpose",
        "rhs_dilation",
        (1,) * count if rhs_dilation is None else rhs_dilation,
        count,
    )
    space = tuple(numbers.rhs_spec)[2:]
    pads: Sequence[tuple[Any, Any]]
    if isinstance(padding, str) or use_consistent_padding:
        pads = [
            _transposed_padding(
                (kernel.shape[axis] - 1) * dilation[i] + 1,
                steps[i],
                padding if isinstance(padding, str) else padding[i],
            )
            for i, axis in enumerate(space)
        ]
    else:
        pads = padding
    if transpose_kernel:
        kernel = rev(kernel, space)
        order = list(range(kernel.ndim))
        first, second = tuple(numbers.rhs_spec)[:2]
        order[first], order[second] = second, first
        kernel = transpose(kernel, order)
    return conv_general_dilated(
        x,
        kernel,
        (1,) * count,
        pads,
        steps,
        dilation,
        numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def _transposed_padding(extent: Any, stride: int, padding: Any) -> tuple[Any, Any]:
    """What to add around a spread array, given what a strided convolution adds around its own."""
    if not isinstance(padding, str):
        low, high = padding
        return extent - 1 - low, extent - 1 - high
    kind = padding.upper()
    if kind == "SAME":
        total = extent + stride - 2
        low = extent - 1 if stride > extent - 1 else (total + 1) // 2
    elif kind == "VALID":
        total = extent + stride - 2 + max(extent - stride, 0)
        low = extent - 1
    else:
        raise ArgumentError(f'lax.conv_transpose: padding={padding!r} must be "SAME" or "VALID"')
    return low, total - low


def conv_general_dilated_patches(
    lhs: ArrayLike,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: DimensionNumbers = None,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
) -> Array:
    """The windows that a convolution sees, as features.

    Args:
      lhs: the array.
      filter_shape: the size of a window in each dimension of space.
      window_strides: see `conv_general_dilated`, as all that follow.
      padding: see there.
      lhs_dilation: see there.
      rhs_dilation: see there.
      dimension_numbers: see there; the kernel's layout does not matter but for the order of space.
      precision: see there.
      preferred_element_type: see there.

    Returns:
      An array whose features are, for each feature of `lhs`, the elements of the window.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.conv_general_dilated_patches(fnp.arange(4.0).reshape(1, 1, 4), (2,), (1,), "VALID")
    Array([[[0., 1., 2.],
            [1., 2., 3.]]], dtype=float32)
    """
    x = as_operand("conv_general_dilated_patches", lhs)
    window = tuple([int(size) for size in filter_shape])
    rank = len(window) + 2
    numbers = conv_dimension_numbers(x.shape, (1,) * rank, dimension_numbers)
    features = x.shape[numbers.lhs_spec[1]]
    size = int(np.prod(window, dtype=int))
    # Each out feature takes one element of the window: a grouped convolution with unit kernels.
    units = as_operand("conv_general_dilated_patches", np.eye(size, dtype=np.float32))
    units = reshape(convert(units, x.type.dtype), (1, size, 1, *window))
    kernel = broadcast_in_dim(units, (features, size, 1, *window), range(rank + 1))
    kernel = reshape(kernel, (features * size, 1, *window))
    kernel = transpose(kernel, sorted(range(rank), key=tuple(numbers.rhs_spec).__getitem__))
    return conv_general_dilated(
        x,
        kernel,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        numbers,
        feature_group_count=features,  # type: ignore[arg-type]
        precision=precision,
        preferred_element_type=preferred_element_type,
    )
