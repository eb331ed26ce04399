"""Arithmetic, comparison and rounding of real floating-point numbers.

Sums and products may be contracted to one `fma` by LLVM. Nothing else about them may change.
"""

from __future__ import annotations

from collections.abc import Callable

from fxarray.devices.cpu.emit.number import Number, is_constant, select
from fxarray.devices.cpu.emit.outline import outlined


def _contractible(name: str) -> Callable[[Number, Number], Number]:
    def rule(a: Number, b: Number) -> Number:
        return a.new(f"{name} contract {a.whole_type} {a.operand}, {b.operand}")

    return rule


def maximum(a: Number, b: Number) -> Number:
    """The greater; NaN if either is."""
    if is_constant(b.operand):
        a, b = b, a
    greater = select(a > b, a, b)  # b where either is NaN: one instruction on x86
    return greater if is_constant(a.operand) else select(a.is_nan(), a, greater)


def minimum(a: Number, b: Number) -> Number:
    """The smaller; NaN if either is."""
    if is_constant(b.operand):
        a, b = b, a
    smaller = select(a < b, a, b)
    return smaller if is_constant(a.operand) else select(a.is_nan(), a, smaller)


def sign(x: Number) -> Number:
    """-1, 0 or 1; NaN and the sign of zero stay."""
    return select(x.compare("one", 0.0), x.like(1.0).with_sign_of(x), x)


def is_finite(x: Number) -> Number:
    return abs(x) < float("inf")


def sign_bit(x: Number) -> Number:
    return x.bits < 0


def next_after(x: Number, y: Number) -> Number:
    """The neighbour of x towards y; y itself if they are equal."""
    bits = x.bits
    # Magnitudes are ordered as their bits are.
    away = ~((y > x) ^ (x > 0.0))
    stepped = bits + select(away, bits.like(1), bits.like(-1))
    smallest = bits.like(1).as_float(x.type).with_sign_of(y)
    moved = select(x.equals(0.0), smallest, stepped.as_float(x.type))
    moved = select(x.equals(y), y, moved)
    return select(x.compare("uno", y), x + y, moved)


def _fma(a: Number, b: Number, c: Number) -> Number:
    return a.fma(b, c)


def remainder(x: Number, y: Number) -> Number:
    """The remainder of x / y with the sign of x, exact."""
    (result,) = outlined("remainder", lambda a, b: (_remainder(a, b),), x, y, widest="double")
    return result


def _remainder(x: Number, y: Number) -> Number:
    """
    Every step replaces s by s - round(s / d) * d for d = |y|. That is a number of the format, so
    that one fma gives it without error, and it is at most |s| over two to the number of mantissa
    bits. Once the quotient is below that power, truncation and one correction of the sign end it.
    Where the quotient would overflow, d times a power of two serves as d, which leaves the
    remainder by d as it is. float32 is computed in float64, whose range makes that needless.
    """
    if x.type == "float":
        return _remainder(x.to_double(), y.to_double()).to_float()
    f, type_ = x.f, x.whole_type
    divisor = abs(y)
    usable = (abs(x) < float("inf")) & (divisor > 0.0)
    state = f.alloca(type_, select(usable, abs(x), 0.0).operand)
    limit = divisor * 2.0**52

    def current() -> Number:
        return Number(f, x.type, x.lanes, f.new(f"load {type_}, ptr {state}"))

    def step() -> None:
        now, by = current(), divisor
        for _ in range(2):
            larger = by * 2.0**700
            by = select(larger < abs(now), larger, by)
        reduced = (-(now / by).round()).fma(by, now)
        kept = select(abs(now) > limit, reduced, now)
        f.do(f"store {type_} {kept.operand}, ptr {state}")

    def unfinished() -> str:
        return (abs(current()) > limit).any()

    f.loop_while(unfinished, step)
    now = current()
    rest = (-(now / divisor).trunc()).fma(divisor, now)
    rest = select(rest < 0.0, rest + divisor, rest)
    rest = select(divisor < float("inf"), rest, now)
    return select(usable, abs(rest).with_sign_of(x), float("nan"))


def _comparison(predicate: str) -> Callable[[Number, Number], Number]:
    return lambda a, b: a.compare(predicate, b)


# Operations whose results need no rounding in formats with signed zeros, infinities and NaN whose
# large numbers are whole.
EXACT = frozenset(
    ["neg", "abs", "sign", "floor", "ceil", "trunc", "round", "rem", "max", "min", "copysign"]
)

RULES: dict[str, Callable[..., Number]] = {
    "neg": lambda x: -x,
    "abs": lambda x: x.intrinsic("fabs"),
    "sign": sign,
    "floor": Number.floor,
    "ceil": Number.ceil,
    "trunc": Number.trunc,
    "round": Number.round,
    "sqrt": Number.sqrt,
    "add": _contractible("fadd"),
    "sub": _contractible("fsub"),
    "mul": _contractible("fmul"),
    "div": lambda a, b: a / b,
    "rem": remainder,
    "max": maximum,
    "min": minimum,
    "copysign": lambda a, b: a.with_sign_of(b),
    "next_after": next_after,
    "fma": _fma,
    "eq": _comparison("oeq"),
    "ne": _comparison("une"),
    "lt": _comparison("olt"),
    "le": _comparison("ole"),
    "gt": _comparison("ogt"),
    "ge": _comparison("oge"),
    "is_nan": Number.is_nan,
    "is_finite": is_finite,
    "is_inf": lambda x: abs(x).equals(float("inf")),
    "sign_bit": sign_bit,
}
