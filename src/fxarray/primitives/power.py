"""Powers and roots, exponentials and logarithms."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from fxarray.core import dtypes
from fxarray.core.errors import ArgumentError, DTypeError
from fxarray.core.primitive import Sample
from fxarray.core.types import ArrayType
from fxarray.kernel.build import Builder
from fxarray.primitives.arithmetic import add, div, mul, quotient, scale, sub
from fxarray.primitives.comparison import (
    eq,
    select,
)
from fxarray.primitives.convert import (
    convert,
)
from fxarray.primitives.elementwise_base import (
    Elementwise,
    check_count,
    check_equal_dtypes,
    check_group,
    elementwise_samples,
    row,
)
from fxarray.primitives.lowering import in_float32, is_kind, number_of, power, wide
from fxarray.primitives.support import (
    FLOAT,
    INEXACT,
    NUMBER,
    Values,
    number_like,
    quietly,
    random_operand,
    sample_dtypes,
)

# --- powers ---------------------------------------------------------------------------------------


# Each product of a power by squaring loses half a unit in the last place at most.
_FEW_PRODUCTS = 16


class IntegerPow(Elementwise, name="integer_pow"):
    """x to the power of an integer known while tracing."""

    exponent: int
    EXCUSED: ClassVar[dict[str, str]] = {"transpose": "it is not linear in any operand"}
    domains: ClassVar[tuple[tuple[float, float], ...]] = ((0.5, 2.0),)

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        result = super().infer(*types)
        if self.exponent < 0 and not dtypes.is_inexact(types[0].dtype):
            raise ArgumentError(
                f"integer_pow: integers have no negative powers, got {types[0]} to the power of "
                f"{self.exponent}; cast to a float first"
            )
        return result

    def compute(self, *arrays: Values) -> Any:
        (x,) = arrays
        if x.dtype.kind in "iu":
            return _wrapping_power(x, np.asarray(self.exponent))
        return _repeated_product(x, self.exponent)

    def scalar(self, builder: Builder, *values: int) -> int:
        (x,) = values
        exact = is_kind(builder, x, "integer")
        if exact or is_kind(builder, x, "complex") or abs(self.exponent) <= _FEW_PRODUCTS:
            return in_float32(lambda k, y: power(k, y, self.exponent))(builder, x)
        return in_float32(lambda k, y: k.op("pow", y, number_of(k, y, self.exponent)))(builder, x)

    def eager(self, *arrays: Values) -> tuple[Values, ...]:
        (x,) = arrays
        if self.exponent == 2 and x.dtype.kind in "fciu" and x.dtype.char != "e":
            return (np.asarray(quietly(np.multiply, (x, x))),)
        # Each product rounds once, so that a few lose no more than other functions do.
        if 0 < self.exponent <= 8 and x.dtype in (dtypes.float32, dtypes.float64):
            return (np.asarray(quietly(_repeated_product, (x, self.exponent))),)
        return self.reference(x)

    def derivative(self, position: int, tangent: Any, output: Any, primals: Sequence[Any]) -> Any:
        if self.exponent == 0:
            return None
        return mul(tangent, scale(integer_pow(primals[0], self.exponent - 1), self.exponent))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        for exponent in (0, 1, 2, 3, 7):
            yield from elementwise_samples(cls(exponent), rng)
        for dtype in sample_dtypes(INEXACT):
            for exponent in (-1, -3):
                yield Sample(cls(exponent), (random_operand(rng, (2, 3), dtype, (0.5, 2.0)),))
        yield Sample(cls(-1), (np.ones(3, np.int32),), error=ArgumentError)


def _repeated_product(x: Values, exponent: int) -> Values:
    """x ** exponent by squaring, as devices do it."""
    result: Any = None
    factor, remaining = x, exponent if exponent >= 0 else -exponent
    while remaining:
        if remaining & 1:
            result = factor if result is None else np.multiply(result, factor)
        remaining >>= 1
        if remaining:
            factor = np.multiply(factor, factor)
    if result is None:
        result = np.ones(x.shape, x.dtype)
    return result if exponent >= 0 else _reciprocal(result)


def _reciprocal(x: Values) -> Values:
    return quotient(np.ones((), x.dtype), x)


def _wrapping_power(x: Values, y: Values) -> Values:
    """x ** y of integers; negative powers are truncated towards zero, as in 1 / x ** -y."""
    magnitude = np.where(y < 0, np.zeros((), y.dtype), y).astype(np.uint64)
    x, magnitude = np.broadcast_arrays(x, magnitude)
    result = np.ones(x.shape, x.dtype)
    factor, remaining = x, magnitude
    while remaining.any():
        odd = (remaining & np.uint64(1)).astype(bool)
        result = np.where(odd, np.multiply(result, factor), result)
        factor = np.multiply(factor, factor)
        remaining = remaining >> np.uint64(1)
    minus_one = np.where(y % 2 == 0, np.ones((), np.int8), -np.ones((), np.int8)).astype(x.dtype)
    is_minus_one = (x == -1) if x.dtype.kind == "i" else np.zeros(x.shape, bool)
    inverse = np.where(is_minus_one, minus_one, (x == 1).astype(x.dtype))
    return np.where(y < 0, inverse, result)


def integer_pow(x: Any, exponent: int) -> Any:
    """`x` to the power of a Python integer."""
    return x if exponent == 1 else IntegerPow(exponent)(x)


class Pow(Elementwise, name="pow"):
    """x to the power of y, of one dtype; y may also be an integer where x is not."""

    EXCUSED: ClassVar[dict[str, str]] = {"transpose": "it is not linear in any operand"}
    arity: ClassVar[int] = 2
    domains: ClassVar[tuple[tuple[float, float], ...]] = ((0.4, 2.0), (-2.0, 2.0))

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        check_count(self.name, types, 2)
        x, y = types
        check_group(self.name, 0, x, NUMBER)
        check_group(self.name, 1, y, NUMBER)
        if not (dtypes.is_inexact(x.dtype) and dtypes.is_integer(y.dtype)):
            check_equal_dtypes(self.name, types)
        return (self.result_type(types if x.dtype == y.dtype else (x, y.replace(weak=True))),)

    def compute(self, *arrays: Values) -> Any:
        x, y = arrays
        if x.dtype.kind in "iu":
            return _wrapping_power(x, y)
        if x.dtype.kind == "c":
            return _complex_power(x, y.astype(np.complex128))
        return _real_power(x, y.astype(np.float64))

    def scalar(self, builder: Builder, *values: int) -> int:
        x, y = values
        base = wide(builder, x)
        exponent = builder.convert(y, builder.dtypes[base])
        return builder.convert(builder.op("pow", base, exponent), builder.dtypes[x])

    def eager(self, *arrays: Values) -> tuple[Values, ...]:
        x, y = arrays
        if x.dtype.kind != "f" or x.dtype.char == "e" or x.dtype != y.dtype:
            return self.reference(*arrays)
        return (np.asarray(quietly(_real_power, arrays)),)

    def derivative(self, position: int, tangent: Any, output: Any, primals: Sequence[Any]) -> Any:
        x, y = primals
        if position == 1:
            # 0 ** y is 0 on either side of any y > 0, so its slope is 0 and not log(0) * 0.
            at_zero = eq(x, number_like(x, 0))
            return mul(tangent, mul(log(select(at_zero, number_like(x, 1), x)), output))
        # x ** 0 is 1 everywhere, so its slope is 0 also where x ** -1 is infinite.
        constant = eq(y, number_like(y, 0))
        less = select(constant, number_like(y, 1), sub(y, number_like(y, 1)))
        slope = mul(convert(y, x.type.dtype, y.type.weak), pow(x, less))
        return mul(tangent, select(constant, number_like(x, 0), slope))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        yield from elementwise_samples(cls(), rng)
        for dtype in sample_dtypes(INEXACT):
            x = random_operand(rng, (2, 3), dtype, (0.5, 2.0))
            yield Sample(cls(), (x, rng.integers(-3, 4, size=(2, 3)).astype("int32")))
        whole = np.array([-1.5, 2.0, 0.0, 1.0]), np.array([2.0, -3.0, 2.0, 0.0])
        yield Sample(cls(), whole, differentiable=False)
        yield Sample(cls(), (np.ones(3, np.int32), np.ones(3)), error=DTypeError)


def _real_power(x: Values, y: Values) -> Any:
    """x ** y of real numbers, as in C."""
    power = np.power(x, y)
    # NumPy takes a square root where one exponent goes with many bases, and that has another value
    # at -inf and another sign at -0.
    root = y == 0.5
    if np.any(root):
        exact = np.where(x == -np.inf, np.inf, np.abs(power)).astype(power.dtype)
        power = np.where(root, exact, power)
    return power


def _complex_power(x: Values, y: Values) -> Values:
    # 0 ** y is 0 if y has a positive real part, and 1 for y = 0.
    power = np.power(x, y)
    power = np.where((x == 0) & (y.real > 0), 0.0, power)
    return np.where(y == 0, 1.0, power)


pow = Pow()

sqrt = row(
    "sqrt", np.sqrt, INEXACT, fast=np.sqrt,
    derivatives=[lambda t, z, x: div(scale(t, 0.5), z)], domain=(0.3, 3.0),
    lowering="sqrt",
    doc="The square root; NaN for negative reals. The derivative at 0 is infinite.",
)  # fmt: skip


def _reciprocal_root(x: Values) -> Values:
    return _reciprocal(np.sqrt(x))


rsqrt = row(
    "rsqrt", _reciprocal_root, INEXACT, fast=_reciprocal_root,
    derivatives=[lambda t, z, x: mul(t, scale(div(z, x), -0.5))], domain=(0.3, 3.0),
    lowering="rsqrt",
    doc="1 / sqrt(x).",
)  # fmt: skip
cbrt = row(
    "cbrt", np.cbrt, FLOAT, fast=np.cbrt,
    derivatives=[lambda t, z, x: mul(t, scale(integer_pow(z, -2), 1 / 3))], domain=(0.3, 3.0),
    lowering="cbrt",
    doc="The real cube root, also of negative numbers.",
)  # fmt: skip

# --- exponentials and logarithms ------------------------------------------------------------------

exp = row(
    "exp", np.exp, INEXACT, fast=np.exp, derivatives=[lambda t, z, x: mul(t, z)],
    lowering="exp",
    doc="e to the power of x.",
)  # fmt: skip


def _exp2(x: Values) -> Values:
    return np.exp(x * np.log(2.0).astype(x.real.dtype)) if x.dtype.kind == "c" else np.exp2(x)


exp2 = row(
    "exp2", _exp2, INEXACT, fast=_exp2,
    derivatives=[lambda t, z, x: mul(t, scale(z, math.log(2)))],
    lowering="exp2",
    doc="2 to the power of x.",
)  # fmt: skip
expm1 = row(
    "expm1", np.expm1, INEXACT, fast=np.expm1,
    derivatives=[lambda t, z, x: mul(t, add(z, number_like(z, 1)))],
    lowering="expm1",
    doc="exp(x) - 1, exact also for small x.",
)  # fmt: skip
log = row(
    "log", np.log, INEXACT, fast=np.log,
    derivatives=[lambda t, z, x: div(t, x)], domain=(0.3, 3.0),
    lowering="log",
    doc="The natural logarithm; NaN for negative reals.",
)  # fmt: skip
log1p = row(
    "log1p", np.log1p, INEXACT, fast=np.log1p,
    derivatives=[lambda t, z, x: div(t, add(x, number_like(x, 1)))], domain=(-0.7, 2.0),
    lowering="log1p",
    doc="log(1 + x), exact also for small x.",
)  # fmt: skip


def _logistic(x: Values) -> Values:
    # The exponential of a negative number does not overflow.
    small = np.exp(np.where(x.real > 0, -x, x))
    one = np.ones((), x.dtype)
    return np.where(x.real > 0, one, small) / (one + small)


logistic = row(
    "logistic", _logistic, INEXACT, fast=_logistic,
    derivatives=[lambda t, z, x: mul(t, mul(z, sub(number_like(z, 1), z)))],
    lowering="logistic",
    doc="1 / (1 + exp(-x)).",
)  # fmt: skip
