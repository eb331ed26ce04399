"""Operations on complex numbers, whose parts are apart in registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fxarray.devices.cpu.emit import complex_arithmetic as arithmetic
from fxarray.devices.cpu.emit import complex_functions as functions
from fxarray.devices.cpu.emit.complex_arithmetic import Complex, choose
from fxarray.devices.cpu.emit.function import FunctionText
from fxarray.devices.cpu.emit.number import Number
from fxarray.devices.cpu.emit.outline import outlined
from fxarray.devices.cpu.emit.types import Value, compute_type


def apply(f: FunctionText, op: str, values: Sequence[Value], dtype: str) -> Value:
    """An operation of complex numbers, or of the parts of one ("complex")."""
    parts = [
        [Number(f, compute_type(value.dtype), value.lanes, part) for part in value.parts]
        for value in values
    ]
    if op == "complex":
        return _value(dtype, *[part for (part,) in parts])
    if op in ("real", "imag"):
        return _value(dtype, parts[0][0 if op == "real" else 1])
    arguments = [Complex(real, imag) for real, imag in parts]
    simple = _SIMPLE.get(op)
    if simple is not None:
        result = simple(*arguments)
        return _value(dtype, *(result.parts if isinstance(result, Complex) else (result,)))
    rule = _RULES.get(op)
    if rule is None:
        raise NotImplementedError(f"{op} is not an operation of {values[0].dtype}")
    return _value(dtype, *_in_double(op, rule, arguments))


def _value(dtype: str, *parts: Number) -> Value:
    return Value(dtype, parts[0].lanes, tuple([part.operand for part in parts]))


def _in_double(
    op: str, rule: Callable[..., Complex | Number], arguments: Sequence[Complex]
) -> list[Number]:
    """A rule in float64, as a function of its own."""
    type_ = arguments[0].real.type

    def formula(*parts: Number) -> tuple[Number, ...]:
        pairs = zip(parts[::2], parts[1::2], strict=True)
        result = rule(*[Complex(real, imag) for real, imag in pairs])
        return result.parts if isinstance(result, Complex) else (result,)

    wide = [part.cast("fpext", "double") for argument in arguments for part in argument.parts]
    results = outlined(f"complex.{op}", formula, *wide)
    return [part.cast("fptrunc", type_) for part in results]


# --- order ----------------------------------------------------------------------------------------


def _is_before(x: Complex, y: Complex) -> Number:
    """The order of NumPy: by real part, then by imaginary part."""
    return (x.real < y.real) | (x.real.equals(y.real) & (x.imag < y.imag))


def _maximum(x: Complex, y: Complex) -> Complex:
    """The later; what has a NaN if either has, the first before the second."""
    return choose(x.is_nan() | (_is_before(y, x) & ~y.is_nan()), x, y)


def _minimum(x: Complex, y: Complex) -> Complex:
    return choose(x.is_nan() | (_is_before(x, y) & ~y.is_nan()), x, y)


def _is_finite(z: Complex) -> Number:
    return (abs(z.real) < arithmetic.INFINITY) & (abs(z.imag) < arithmetic.INFINITY)


# What is written where it is used, in its own precision.
_SIMPLE: dict[str, Callable[..., Complex | Number]] = {
    "conj": lambda z: Complex(z.real, -z.imag),
    "neg": lambda z: -z,
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "fma": lambda x, y, z: x * y + z,
    "eq": lambda x, y: x.equals(y),
    "ne": lambda x, y: ~x.equals(y),
    "max": _maximum,
    "min": _minimum,
    "is_nan": lambda z: z.is_nan(),
    "is_inf": lambda z: z.is_infinite(),
    "is_finite": _is_finite,
}
# What is computed in float64.
_RULES: dict[str, Callable[..., Complex | Number]] = {
    "abs": arithmetic.magnitude,
    "div": arithmetic.quotient,
    "sign": arithmetic.sign,
    "sqrt": arithmetic.square_root,
    "rsqrt": functions.reciprocal_root,
    "exp": functions.exp,
    "exp2": functions.exp2,
    "expm1": functions.expm1,
    "log": functions.log,
    "log2": functions.log2,
    "log10": functions.log10,
    "log1p": functions.log1p,
    "logistic": functions.logistic,
    "sin": functions.sin,
    "cos": functions.cos,
    "tan": functions.tan,
    "asin": functions.asin,
    "acos": functions.acos,
    "atan": functions.atan,
    "atan2": functions.atan2,
    "sinh": functions.sinh,
    "cosh": functions.cosh,
    "tanh": functions.tanh,
    "asinh": functions.asinh,
    "acosh": functions.acosh,
    "atanh": functions.atanh,
    "pow": functions.power,
}
