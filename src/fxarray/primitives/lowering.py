"""What the `lower` rules of several families share: elementary constructions in kernel IR."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxarray.core import dtypes
from fxarray.core.dtypes import DType
from fxarray.kernel import sizes
from fxarray.kernel.build import Builder, Index, Lowered, NoKernel, Value
from fxarray.kernel.ir import Affine, Bound, Const, Load
from fxarray.kernel.scalars import numpy_dtype
from fxarray.kernel.sizes import Size

# --- dtypes ---------------------------------------------------------------------------------------


def is_kind(builder: Builder, value: Value, kind: str) -> bool:
    """Whether a value is "bool", "complex", "narrow" (a float of 16 bits or fewer), "integer"."""
    dtype = numpy_dtype(builder.dtypes[value])
    tests: dict[str, Callable[[DType], bool]] = {
        "bool": dtypes.is_bool,
        "complex": dtypes.is_complex,
        "narrow": dtypes.is_narrow_float,
        "integer": dtypes.is_integer,
    }
    return tests[kind](dtype)


def wide(builder: Builder, value: Value) -> Value:
    """Floats narrower than float32 as float32, others as they are."""
    return builder.convert(value, "f32") if is_kind(builder, value, "narrow") else value


def in_float32(function: Callable[..., Value]) -> Callable[..., Value]:
    """A scalar function that computes with narrow floats in float32 and rounds once."""

    def computed(builder: Builder, *values: Value) -> Value:
        result = function(builder, *[wide(builder, value) for value in values])
        return builder.convert(result, builder.dtypes[values[0]])

    return computed


def accumulated_in(*names: str) -> str:
    """The dtype in which products of operands are summed, for operands and a result of dtypes.

    Sums of integers narrower than 32 bits wrap to what they would be in their own dtype.
    """
    wide_dtypes = [dtypes.accumulator(numpy_dtype(name)) for name in names]
    dtype = np.result_type(*map(dtypes.physical, wide_dtypes))
    if dtypes.is_bool(dtype) or (dtypes.is_integer(dtype) and dtypes.bit_width(dtype) < 32):
        return "u32" if dtypes.is_unsigned(dtype) else "i32"
    return dtypes.short_name(dtype)


def number_of(builder: Builder, like: Value, value: float) -> Value:
    """A number in the dtype of another value."""
    return builder.constant(value, builder.dtypes[like])


def not_nan(builder: Builder, value: Value) -> Value:
    """Whether a value is equal to itself."""
    return builder.op("eq", value, value)


# --- arrays of elements ---------------------------------------------------------------------------


def elementwise(
    builder: Builder, operands: Sequence[Lowered], dtype: str, scalar: Callable[..., Value]
) -> Lowered:
    """Corresponding elements combined; 0-dimensional operands go with any shape."""
    shape = next((x.shape for x in operands if x.shape), ())

    def element(index: Index) -> Value:
        return scalar(builder, *[x.element(index if x.shape else ()) for x in operands])

    return builder.lowered(shape, dtype, element)


def view(
    builder: Builder, x: Lowered, shape: Sequence[Size], place: Callable[[Index], Index]
) -> Lowered:
    """Elements of an array in other places: `place` says where a result's element comes from."""
    return builder.lowered(shape, x.dtype, lambda index: x.element(place(index)))


def without(items: Sequence[Any], places: Sequence[int]) -> tuple[Any, ...]:
    """The items but those at some places."""
    return tuple([item for place, item in enumerate(items) if place not in places])


def with_axes(index: Index, places: Sequence[int], spans: Index) -> Index:
    """An index with the entries of reduced dimensions put back."""
    rest = iter(index)
    inner = dict(zip(places, spans, strict=True))
    rank = len(index) + len(places)
    return tuple([inner[d] if d in inner else next(rest) for d in range(rank)])


# --- starts, boxes and windows --------------------------------------------------------------------


def index_number(builder: Builder, value: Value, limit: Size) -> Value:
    """An integer as a number that index arithmetic takes: i32, or i64 where that may be needed."""
    name = builder.dtypes[value]
    high = sizes.bounds(limit)[1]
    if name == "u64":
        # What is beyond i64 is beyond every array.
        value = builder.op("min", value, builder.constant(2**63 - 1, "u64"))
        return builder.convert(value, "i64")
    short = high is not None and high < 2**31 and name not in ("i64", "u32")
    return builder.convert(value, "i32" if short else "i64")


def clamped(builder: Builder, value: Value, limit: Size) -> Affine:
    """An integer moved into 0 ... limit."""
    if limit == 0:
        return Affine()
    value = index_number(builder, value, limit)
    dtype = builder.dtypes[value]
    value = builder.op("min", value, builder.size_value(limit, dtype))
    value = builder.op("max", value, builder.constant(0, dtype))
    builder.ranges[value] = (0, limit)
    return Affine(((value, 1),))


def box_start(
    builder: Builder, shape: Sequence[Size], box: Sequence[Size], starts: Sequence[Lowered]
) -> Index:
    """Where a box starts that is moved inside an array."""
    return tuple(
        [
            clamped(builder, start.at(), sizes.subtract(size, part))
            for size, part, start in zip(shape, box, starts, strict=True)
        ]
    )


def shifted(index: Index, axis: int, start: Size) -> Index:
    """An index further along one dimension."""
    return (*index[:axis], index[axis] + start, *index[axis + 1 :])


def between(
    builder: Builder, position: Affine, size: Size, step: int
) -> tuple[tuple[Bound, ...], Affine]:
    """Where elements that are `step` apart stand: the bounds of a position, and the element there.

    Args:
      builder: the kernel's.
      position: counted in steps of 1, from the first element.
      size: the number of elements.
      step: the distance between elements.
    """
    if step == 1:
        return ((position, 0, size),), position
    reach = sizes.add(sizes.multiply(sizes.subtract(size, 1), step), 1)
    dtype = builder.index_dtype(position, reach)
    number = builder.iota(position, dtype)
    divisor = builder.constant(step, dtype)
    place = builder.op("div", number, divisor)
    rest = builder.op("rem", number, divisor)
    builder.ranges[rest] = (1 - step, step - 1)
    bounds = ((position, 0, reach), (Affine(((rest, 1),)), 0, 1))
    return bounds, Affine(((place, 1),))


def inside_or(
    builder: Builder, bounds: Sequence[Bound], inside: Callable[[], Value], outside: Value
) -> Value:
    """A value where bounds hold, and another one elsewhere."""
    if all(builder.holds(bound) for bound in bounds):
        return inside()
    with builder.guarded(*bounds):
        value = inside()
        guards = builder.guards
    node, other = builder.body[value], builder.body[outside]
    if isinstance(node, Load) and node.bounds == guards and isinstance(other, Const):
        fill = other.value
        if repr(fill) != "-0.0":
            return builder.add(Load(node.buffer, node.index, guards, fill))
    return builder.op("select", builder.within(bounds), value, outside)


# --- combinations ---------------------------------------------------------------------------------


def combiner_for(builder: Builder, name: str, value: Value) -> str:
    """The combiner that does `name` for values of this dtype.

    Raises:
      NoKernel: there is none.
    """
    if is_kind(builder, value, "bool") and name in ("max", "min"):
        return "or" if name == "max" else "and"
    if is_kind(builder, value, "complex") and name in ("max", "min"):
        raise NoKernel("complex numbers are ordered by two parts")
    return name


def reduced(builder: Builder, x: Lowered, axes: Sequence[int], combiner: str) -> Lowered:
    """An array combined over dimensions; floats narrower than float32 in float32."""

    def element(index: Index) -> Value:
        names, value = builder.over(
            [x.shape[axis] for axis in axes],
            index,
            lambda spans: wide(builder, x.element(with_axes(index, axes, spans))),
        )
        (result,) = builder.reduce(combiner_for(builder, combiner, value), names, value)
        return builder.convert(result, x.dtype)

    return builder.lowered(without(x.shape, axes), x.dtype, element)


def scan_axis(builder: Builder, index: Index, place: int, size: Size) -> str | None:
    """The axis that an index runs along in one dimension, from the first element to the last.

    None where the dimension has one element.

    Raises:
      NoKernel: it runs in another way, so that prefixes would not be those of the array.
    """
    if size == 1:
        return None
    here = index[place]
    others = [affine for number, affine in enumerate(index) if number != place]
    others.extend(bound[0] for bound in builder.guards)
    if len(here.terms) == 1 and here == Affine.of(here.terms[0][0]):
        axis = here.terms[0][0]
        if isinstance(axis, str) and builder.axes[axis] == size:
            taken = {name for affine in others for name in affine.axes}
            for value in [v for affine in others for v in affine.values]:
                taken |= builder.value_axes[value]
            if axis not in taken:
                return axis
    raise NoKernel("prefixes need the whole of a dimension, in order")


def prefixes(
    builder: Builder,
    operands: Sequence[Lowered],
    place: int,
    combine: Callable[..., Value],
) -> Lowered:
    """An array of prefixes along a dimension; floats narrower than float32 in float32.

    Args:
      builder: the kernel's.
      operands: arrays of one shape.
      place: the dimension.
      combine: makes the prefix of the builder, the axis (None: there is one element) and elements.
    """
    first = operands[0]

    def element(index: Index) -> Value:
        axis = scan_axis(builder, index, place, first.shape[place])
        values = [wide(builder, x.element(index)) for x in operands]
        return builder.convert(combine(builder, axis, *values), first.dtype)

    return builder.lowered(first.shape, first.dtype, element)


# --- scalar functions -----------------------------------------------------------------------------


def power(builder: Builder, x: Value, exponent: int) -> Value:
    """x to a power known when the kernel is made, by squaring."""
    factor, remaining = x, abs(exponent)
    result: Value | None = None
    while remaining:
        if remaining & 1:
            result = factor if result is None else builder.op("mul", result, factor)
        remaining >>= 1
        if remaining:
            factor = builder.op("mul", factor, factor)
    if result is None:
        result = number_of(builder, x, 1)
    return result if exponent >= 0 else builder.op("div", number_of(builder, x, 1), result)


def round_away(builder: Builder, x: Value) -> Value:
    """The nearest whole number, ties away from zero."""
    whole = builder.op("trunc", x)
    distance = builder.op("abs", builder.op("sub", x, whole))
    far = builder.op("ge", distance, number_of(builder, x, 0.5))
    one = builder.op("copysign", number_of(builder, x, 1), x)
    return builder.op("select", far, builder.op("add", whole, one), whole)


def log_add_exp(builder: Builder, x: Value, y: Value) -> Value:
    """log(exp(x) + exp(y)); where both are the same infinity, that infinity."""
    top = builder.op("max", x, y)
    distance = builder.op("neg", builder.op("abs", builder.op("sub", x, y)))
    more = builder.op("add", top, builder.op("log1p", builder.op("exp", distance)))
    twice = builder.op("add", x, number_of(builder, x, math.log(2)))
    return builder.op("select", builder.op("eq", x, y), twice, more)


def extremum(name: str) -> Callable[..., Value]:
    """The greater or smaller; complex numbers by real part, then by imaginary part."""

    def scalar(builder: Builder, x: Value, y: Value) -> Value:
        if is_kind(builder, x, "bool"):
            return builder.op("or" if name == "max" else "and", x, y)
        if not is_kind(builder, x, "complex"):
            return builder.op(name, x, y)
        better = "gt" if name == "max" else "lt"
        re_x, re_y = builder.op("real", x), builder.op("real", y)
        im_x, im_y = builder.op("imag", x), builder.op("imag", y)
        tie = builder.op("and", builder.op("eq", re_x, re_y), builder.op(better, im_x, im_y))
        wins = builder.op("or", builder.op(better, re_x, re_y), tie)
        # NaN wins, and of two the first.
        x_known = builder.op("and", not_nan(builder, re_x), not_nan(builder, im_x))
        y_known = builder.op("and", not_nan(builder, re_y), not_nan(builder, im_y))
        wins = builder.op("or", builder.op("not", x_known), builder.op("and", y_known, wins))
        return builder.op("select", wins, x, y)

    return scalar


def high_product(builder: Builder, x: Value, y: Value) -> Value:
    """The upper half of a product of integers, which has twice their width."""
    dtype = builder.dtypes[x]
    width = dtypes.bit_width(numpy_dtype(dtype))
    if width < 64:
        long = "i64" if dtype[0] == "i" else "u64"
        product = builder.op("mul", builder.convert(x, long), builder.convert(y, long))
        high = builder.op("shr_arithmetic", product, builder.constant(width, long))
        return builder.convert(high, dtype)
    return _high_product_64(builder, x, y)


def _high_product_64(builder: Builder, x: Value, y: Value) -> Value:
    # By halves of 32 bits: x y = hh 2^64 + (hl + lh) 2^32 + ll, each term below 2^64.
    dtype = builder.dtypes[x]
    a, b = builder.convert(x, "u64"), builder.convert(y, "u64")
    half, mask = builder.constant(32, "u64"), builder.constant(2**32 - 1, "u64")

    def op(name: str, *args: Value) -> Value:
        return builder.op(name, *args)

    a_high, b_high = op("shr_logical", a, half), op("shr_logical", b, half)
    a_low, b_low = op("and", a, mask), op("and", b, mask)
    low = op("shr_logical", op("mul", a_low, b_low), half)
    middle = op("add", op("mul", a_high, b_low), low)
    rest = op("add", op("mul", a_low, b_high), op("and", middle, mask))
    high = op("mul", a_high, b_high)
    high = op("add", high, op("shr_logical", middle, half))
    high = op("add", high, op("shr_logical", rest, half))
    if dtype == "i64":
        # A negative number is 2^64 more when it is read as unsigned.
        zero = builder.constant(0, "u64")
        for sign, other in ((x, b), (y, a)):
            below = op("lt", sign, builder.constant(0, "i64"))
            high = op("sub", high, op("select", below, other, zero))
    return builder.convert(high, dtype)
