"""Elementwise arithmetic: one row per operation.

A derivative reads `lambda t, z, x, y: ...`: t is the operand's tangent, z the result, x and y the
operands. It must be linear in t, and made of operations that can be transposed. Complex numbers
follow JAX's convention: transposition does not conjugate.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from fxarray.core import dtypes
from fxarray.core.errors import ShapeError
from fxarray.core.primitive import Sample
from fxarray.core.types import ArrayType, shape_key
from fxarray.kernel.build import Builder
from fxarray.primitives.comparison import (
    bitwise_and,
    eq,
    gt,
    lt,
    select,
)
from fxarray.primitives.elementwise_base import (
    Elementwise,
    align_batch_axes,
    elementwise_samples,
    row,
)
from fxarray.primitives.lowering import extremum, in_float32, round_away, wide
from fxarray.primitives.movement import broadcast_axis
from fxarray.primitives.support import (
    COMPLEX,
    FLOAT,
    INEXACT,
    NUMBER,
    NUMERIC,
    ORDERED,
    REAL,
    SIGNED,
    Values,
    number_like,
    random_operand,
    sample_dtypes,
)

# --- parts of complex numbers ---------------------------------------------------------------------


def _complex(x: Values, y: Values) -> Values:
    result = np.empty(np.broadcast_shapes(x.shape, y.shape), np.result_type(x.dtype, np.complex64))
    result.real, result.imag = x, y  # x + 1j * y turns infinite parts into NaN
    return result


def _complex_of(builder: Builder, x: int, y: int) -> int:
    return builder.op("complex", wide(builder, x), wide(builder, y))


complex = row(
    "complex", _complex, FLOAT, arity=2, result=dtypes.to_complex, fast=_complex,
    derivatives=[
        lambda t, z, x, y: complex(t, number_like(t, 0)),
        lambda t, z, x, y: complex(number_like(t, 0), t),
    ],
    transposes=[lambda ct, x, y: real(ct), lambda ct, x, y: neg(imag(ct))],
    lowering=_complex_of,
    doc="The complex number x + iy of float32 or float64 parts.",
)  # fmt: skip
real = row(
    "real", np.real, COMPLEX, result=dtypes.to_real, fast=lambda x: x.real.copy(),
    derivatives=[lambda t, z, x: real(t)],
    transposes=[lambda ct, x: complex(ct, number_like(ct, 0))],
    lowering="real",
    doc="The real part of a complex number.",
)  # fmt: skip
imag = row(
    "imag", np.imag, COMPLEX, result=dtypes.to_real, fast=lambda x: x.imag.copy(),
    derivatives=[lambda t, z, x: imag(t)],
    transposes=[lambda ct, x: complex(number_like(ct, 0), neg(ct))],
    lowering="imag",
    doc="The imaginary part of a complex number.",
)  # fmt: skip
conj = row(
    "conj", np.conjugate, COMPLEX, fast=np.conjugate,
    derivatives=[lambda t, z, x: conj(t)], transposes=[lambda ct, x: conj(ct)],
    lowering="conj",
    doc="The complex conjugate.",
)  # fmt: skip


def is_complex(x: Any) -> bool:
    """Whether an array is complex."""
    return dtypes.is_complex(x.type.dtype)


def conjugate(x: Any) -> Any:
    """The complex conjugate; real arrays are returned as they are."""
    return conj(x) if is_complex(x) else x


# --- arithmetic ---------------------------------------------------------------------------------

neg = row(
    "neg", np.negative, NUMBER, fast=np.negative,
    derivatives=[lambda t, z, x: neg(t)], transposes=[lambda ct, x: neg(ct)],
    lowering="neg",
    doc="-x; unsigned integers wrap.",
)  # fmt: skip
add = row(
    "add", np.add, NUMBER, arity=2, fast=np.add,
    derivatives=[lambda t, z, x, y: t, lambda t, z, x, y: t],
    transposes=[lambda ct, x, y: ct, lambda ct, x, y: ct],
    lowering="add",
    doc="x + y; integers wrap.",
)  # fmt: skip
sub = row(
    "sub", np.subtract, NUMBER, arity=2, fast=np.subtract,
    derivatives=[lambda t, z, x, y: t, lambda t, z, x, y: neg(t)],
    transposes=[lambda ct, x, y: ct, lambda ct, x, y: neg(ct)],
    lowering="sub",
    doc="x - y; integers wrap.",
)  # fmt: skip
mul = row(
    "mul", np.multiply, NUMBER, arity=2, fast=np.multiply,
    derivatives=[lambda t, z, x, y: mul(t, y), lambda t, z, x, y: mul(x, t)],
    transposes=[lambda ct, x, y: mul(ct, y), lambda ct, x, y: mul(x, ct)],
    lowering="mul",
    doc="x * y; integers wrap.",
)  # fmt: skip

square = row(
    "square", np.square, NUMBER, fast=np.square,
    derivatives=[lambda t, z, x: mul(t, scale(x, 2))],
    lowering=lambda builder, x: builder.op("mul", x, x),
    doc="x * x.",
)  # fmt: skip


def scale(x: Any, factor: float) -> Any:
    """`x` times a Python number."""
    return mul(x, number_like(x, factor))


def quotient(x: Values, y: Values) -> Values:
    """x / y in NumPy, as `div` defines it."""
    if x.dtype.kind == "f":
        return np.divide(x, y)
    if x.dtype.kind == "c":
        return _complex_quotient(x, y)
    by_zero = y == 0
    safe = np.where(by_zero, np.ones((), y.dtype), y)
    quotient = np.floor_divide(np.subtract(x, np.fmod(x, safe)), safe)
    return np.where(by_zero, np.zeros((), x.dtype), quotient)


def _complex_quotient(x: Values, y: Values) -> Values:
    # NumPy's quotient is NaN where, by the C standard (annex G.5.1), it is infinite or zero.
    result: Values = np.divide(x, y)
    lost = np.isnan(result.real) & np.isnan(result.imag)
    if not np.any(lost):
        return result
    x, y = np.broadcast_arrays(x, y)
    a, b, c, d = x.real, x.imag, y.real, y.imag
    x_infinite, y_infinite = np.isinf(a) | np.isinf(b), np.isinf(c) | np.isinf(d)
    x_known, y_known = ~(np.isnan(a) | np.isnan(b)), ~(np.isnan(c) | np.isnan(d))
    infinity = np.copysign(np.inf, c)
    by_zero = lost & (y == 0) & ~(np.isnan(a) & np.isnan(b))
    result = np.where(by_zero, _complex(infinity * a, infinity * b), result)
    a1, b1 = (np.copysign(np.isinf(part).astype(part.dtype), part) for part in (a, b))
    c1, d1 = (np.copysign(np.isinf(part).astype(part.dtype), part) for part in (c, d))
    above = lost & ~by_zero & x_infinite & y_known & ~y_infinite
    huge = _complex(np.inf * (a1 * c + b1 * d), np.inf * (b1 * c - a1 * d))
    result = np.where(above, huge, result)
    below = lost & y_infinite & x_known & ~x_infinite
    tiny = _complex(0.0 * (a * c1 + b * d1), 0.0 * (b * c1 - a * d1))
    return np.where(below, tiny, result)


def _remainder(x: Values, y: Values) -> Values:
    if x.dtype.kind not in "iu":
        return np.fmod(x, y)
    by_zero = y == 0
    safe = np.where(by_zero, np.ones((), y.dtype), y)
    return np.where(by_zero, np.zeros((), x.dtype), np.fmod(x, safe))


div = row(
    "div", quotient, NUMBER, arity=2, fast=quotient,
    derivatives=[lambda t, z, x, y: div(t, y), lambda t, z, x, y: neg(mul(t, div(z, y)))],
    transposes=[lambda ct, x, y: div(ct, y), None],
    domain=((-2.0, 2.0), (0.5, 2.0)),
    lowering="div",
    doc="x / y. Integers are truncated towards zero, division by zero gives 0, and the least "
    "integer divided by -1 wraps to itself.",
)  # fmt: skip
# The integer part of x / y is constant between its jumps; (x - z) / y is that integer.
rem = row(
    "rem", _remainder, REAL, arity=2, fast=_remainder,
    derivatives=[lambda t, z, x, y: t, lambda t, z, x, y: neg(mul(t, div(sub(x, z), y)))],
    domain=((4.2, 4.8), (1.3, 1.35)),
    lowering="rem",
    doc="The remainder of x / y, with the sign of x. An integer's remainder by zero is 0.",
)  # fmt: skip

# --- magnitude and sign ---------------------------------------------------------------------------


def _magnitude_derivative(t: Any, x: Any) -> Any:
    # For complex x, d|x| = Re(conj(sign(x)) dx), which is 0 at 0 since sign(0) is.
    if is_complex(x):
        return real(mul(t, conj(sign(x))))
    return select(lt(x, number_like(x, 0)), neg(t), t)


abs = row(
    "abs", np.absolute, SIGNED | INEXACT, result=dtypes.to_real, fast=np.absolute,
    derivatives=[lambda t, z, x: _magnitude_derivative(t, x)],
    domain=(0.2, 2.0),
    lowering="abs",
    doc="The magnitude of x; the least integer wraps to itself. The derivative at 0 is 1, as if "
    "coming from above, and 0 at a complex 0.",
)  # fmt: skip


def _sign(x: Values) -> Values:
    if x.dtype.kind != "c":
        return np.sign(x) if x.dtype.kind != "f" else np.where(x == 0, x, np.sign(x))
    size = np.abs(x)
    return np.where(size == 0, np.zeros((), x.dtype), x / np.where(size == 0, 1.0, size))


def _sign_derivative(t: Any, z: Any, x: Any) -> Any:
    # Of x / |x|: what remains of t at right angles to x, over |x|. Real signs are constant.
    size = abs(x)
    at_zero = eq(size, number_like(size, 0))
    safe = select(at_zero, number_like(size, 1), size)
    zero = number_like(size, 0)
    inverse = complex(select(at_zero, zero, div(number_like(size, 1), safe)), zero)
    along = complex(real(mul(t, conj(z))), zero)
    return mul(sub(t, mul(along, z)), inverse)


sign = row(
    "sign", _sign, NUMBER,
    derivatives=[lambda t, z, x: _sign_derivative(t, z, x) if is_complex(x) else None],
    domain=(0.3, 2.0),
    lowering="sign",
    doc="-1, 0 or 1 by the sign of x; x / |x| for complex x. Keeps NaN and the sign of zero.",
)  # fmt: skip

# Complex numbers are ordered by real part, then by imaginary part.


def _share(x: Any, z: Any, y: Any) -> Any:
    """1 where z is x alone, 1/2 where x and y are equal, 0 elsewhere."""
    half, one, zero = (number_like(x, value) for value in (0.5, 1, 0))
    return select(eq(x, z), select(eq(y, z), half, one), zero)


max = row(
    "max", np.maximum, NUMERIC, arity=2, fast=np.maximum,
    derivatives=[
        lambda t, z, x, y: mul(t, _share(x, z, y)), lambda t, z, x, y: mul(t, _share(y, z, x)),
    ],
    lowering=extremum("max"),
    doc="The greater of x and y; NaN if either is. A tie halves the derivative.",
)  # fmt: skip
min = row(
    "min", np.minimum, NUMERIC, arity=2, fast=np.minimum,
    derivatives=[
        lambda t, z, x, y: mul(t, _share(x, z, y)), lambda t, z, x, y: mul(t, _share(y, z, x)),
    ],
    lowering=extremum("min"),
    doc="The smaller of x and y; NaN if either is. A tie halves the derivative.",
)  # fmt: skip


class Clamp(Elementwise, name="clamp"):
    """x limited to the range from `min` to `max`: operands (min, x, max).

    A bound is 0-dimensional or has the shape of x. Outside the range and on its ends the derivative
    with respect to x is 0.
    """

    EXCUSED: ClassVar[dict[str, str]] = {"transpose": "it is not linear in any operand"}
    arity: ClassVar[int] = 3
    accepts: ClassVar[int] = ORDERED
    domains: ClassVar[tuple[tuple[float, float], ...]] = ((-1.5, -0.5), (-2.0, 2.0), (0.5, 1.5))

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        result = super().infer(*types)
        low, x, high = types
        for name, bound in (("min", low), ("max", high)):
            if bound.shape and shape_key(bound.shape) != shape_key(x.shape):
                raise ShapeError(
                    f"clamp: {name} is {bound}, but x is {x}; a bound must be 0-dimensional or "
                    f"have the shape of x"
                )
        return result

    def compute(self, *arrays: Values) -> Any:
        low, x, high = arrays
        return np.minimum(np.maximum(low, x), high)

    def scalar(self, builder: Builder, *values: int) -> int:
        low, x, high = values
        return extremum("min")(builder, extremum("max")(builder, low, x), high)

    def eager(self, *arrays: Values) -> tuple[Values, ...]:
        if arrays[0].dtype.kind == "V":
            return self.reference(*arrays)
        return (np.asarray(self.compute(*arrays)),)

    def derivative(self, position: int, tangent: Any, output: Any, primals: Sequence[Any]) -> Any:
        low, x, high = primals
        wins = (
            lambda: bitwise_and(gt(low, x), lt(low, high)),
            lambda: bitwise_and(gt(x, low), lt(x, high)),
            lambda: lt(high, max(low, x)),
        )[position]()
        return select(wins, tangent, number_like(tangent, 0))

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        (low, x, high), axis = align_batch_axes(size, operands, axes)
        # A bound that differs between lanes does not go with an x that is one number for all.
        return self.bind(low, x if x.type.shape else broadcast_axis(x, size, 0), high), (axis,)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        for dtype in sample_dtypes(cls.accepts):
            operands = [random_operand(rng, (2, 3), dtype, cls.domain(i)) for i in range(3)]
            yield Sample(cls(), tuple(operands))
        low, x, high = np.float32(-0.5), rng.normal(size=4).astype("float32"), np.float32(0.7)
        yield Sample(cls(), (low, x, high))
        yield Sample(cls(), (low, x, np.full_like(x, high)))
        yield Sample(cls(), (low, x[0], high))
        yield Sample(cls(), (low, x[:0], high))
        yield Sample(cls(), (x, low, high), error=ShapeError)


clamp = Clamp()

# --- rounding -----------------------------------------------------------------------------------

floor = row(
    "floor", np.floor, FLOAT, fast=np.floor, lowering="floor",
    doc="The greatest integer not above x.",
)  # fmt: skip
ceil = row(
    "ceil", np.ceil, FLOAT, fast=np.ceil, lowering="ceil", doc="The least integer not below x."
)


class Round(Elementwise, name="round"):
    """The nearest integer; a tie goes away from zero, or to the even one if `to_even`."""

    to_even: bool = False
    EXCUSED: ClassVar[dict[str, str]] = {"transpose": "it is not linear in any operand"}
    accepts: ClassVar[int] = FLOAT
    differentiable: ClassVar[bool] = False

    def compute(self, *arrays: Values) -> Any:
        (x,) = arrays
        if self.to_even:
            return np.rint(x)
        whole = np.trunc(x)
        return np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole)

    def scalar(self, builder: Builder, *values: int) -> int:
        (x,) = values
        return builder.op("round", x) if self.to_even else in_float32(round_away)(builder, x)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        for to_even in (False, True):
            for sample in elementwise_samples(cls(to_even), rng):
                # Narrow dtypes hit ties, where there is no derivative, by chance.
                steps = sample.error is None and sample.operands[0].dtype.itemsize < 4
                yield replace(sample, differentiable=not steps)
            ties = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5])
            yield Sample(cls(to_even), (ties,), differentiable=False)
