"""Operations on integers and truth values.

Integers of 2 and 4 bits are held in 8, sign- or zero-extended, and wrapped after each operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fxarray.devices.cpu.emit.number import Number, is_constant, select
from fxarray.devices.cpu.emit.outline import outlined
from fxarray.devices.cpu.emit.types import bit_width, is_signed

_SIGNED_PREDICATES = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}
_UNSIGNED_PREDICATES = {
    **_SIGNED_PREDICATES,
    "lt": "ult",
    "le": "ule",
    "gt": "ugt",
    "ge": "uge",
}
# What arithmetic means for truth values, as in NumPy where NumPy defines it.
_ON_BOOL = {"add": "or", "sub": "xor", "mul": "and", "max": "or", "min": "and"}


def apply(op: str, arguments: Sequence[Number], dtype: str) -> Number:
    """An operation of integers or truth values of a dtype."""
    signed = is_signed(dtype)
    if op in _SIGNED_PREDICATES:
        return arguments[0].compare(
            (_SIGNED_PREDICATES if signed else _UNSIGNED_PREDICATES)[op], arguments[1]
        )
    if op in ("is_nan", "is_inf"):
        return arguments[0].like(False, "i1")
    if op == "is_finite":
        return arguments[0].like(True, "i1")
    if op == "sign_bit":
        return arguments[0] < 0 if signed else arguments[0].like(False, "i1")
    if dtype == "bool":
        op = _ON_BOOL.get(op, op)
        if op in ("abs", "sign", "neg"):
            return arguments[0]
    if op in ("floor", "ceil", "trunc", "round"):
        return arguments[0]
    rule = _RULES.get(op)
    if rule is None:
        raise NotImplementedError(f"{op} is not an operation of {dtype}")
    return wrap(rule(*arguments, dtype), dtype)


def wrap(x: Number, dtype: str) -> Number:
    """The low bits of a number held in more bits than its dtype has."""
    if dtype not in ("i2", "i4", "u2", "u4"):
        return x
    unused = 8 - bit_width(dtype)
    return (x << unused) >> unused if is_signed(dtype) else low_bits(x, dtype)


def low_bits(x: Number, dtype: str) -> Number:
    """The bits of a number, zero above them."""
    bits = bit_width(dtype)
    return x & ((1 << bits) - 1) if bits < 8 and dtype != "bool" else x


def _absolute(x: Number, dtype: str) -> Number:
    return select(x < 0, -x, x) if is_signed(dtype) else x


def _sign(x: Number, dtype: str) -> Number:
    if not is_signed(dtype):
        return x.differs(0).cast("zext", x.type)
    positive = (x > 0).cast("zext", x.type)
    return select(x < 0, -1, positive)


def _minimum(x: Number, y: Number, dtype: str) -> Number:
    return x.intrinsic("smin" if is_signed(dtype) else "umin", y)


def _maximum(x: Number, y: Number, dtype: str) -> Number:
    return x.intrinsic("smax" if is_signed(dtype) else "umax", y)


# --- division -------------------------------------------------------------------------------------


def _quotient(x: Number, y: Number, dtype: str) -> Number:
    """Truncated; 0 for a divisor of 0, and the least integer by -1 wraps."""
    signed = is_signed(dtype)
    if is_constant(y.operand):
        value = int(y.operand.rstrip(")").split()[-1])
        if value not in (0, -1):
            return x.new(f"{'sdiv' if signed else 'udiv'} {x.whole_type} {x.operand}, {y.operand}")
    by_zero = y.equals(0)
    if not signed:
        return select(by_zero, 0, _divide(x, select(by_zero, 1, y), dtype))
    # Division by -1 apart from the rest, since it can overflow.
    negated = y.equals(-1)
    quotient = _divide(x, select(by_zero | negated, 1, y), dtype)
    return select(by_zero, 0, select(negated, -x, quotient))


def _divide(x: Number, y: Number, dtype: str) -> Number:
    """Truncated division by what is neither 0 nor -1.

    No vector unit divides integers, but the quotient of floats, truncated, is right: a quotient
    a / b that is not whole is at least 1 / b from the next whole number, and a float of p bits is
    off by at most a / b * 2**-p, which is less where a < 2**p.
    """
    signed = is_signed(dtype)
    bits = int(x.type[1:])
    if x.lanes == 1 or bits == 64:
        return x.new(f"{'sdiv' if signed else 'udiv'} {x.whole_type} {x.operand}, {y.operand}")
    type_ = "double" if bits == 32 else "float"
    convert = "sitofp" if signed else "uitofp"
    extend = "sext" if signed else "zext"
    back = "fptosi" if signed else "fptoui"
    a, b = (n if bits == 32 else n.cast(extend, "i32") for n in (x, y))
    quotient = a.cast(convert, type_) / b.cast(convert, type_)
    return quotient.cast(back, "i32").cast("trunc", x.type)


def _remainder(x: Number, y: Number, dtype: str) -> Number:
    quotient = _quotient(x, y, dtype)
    return select(y.equals(0), 0, x - quotient * y)


# --- powers ---------------------------------------------------------------------------------------


def _power(x: Number, y: Number, dtype: str) -> Number:
    kind = "signed" if is_signed(dtype) else "unsigned"
    (result,) = outlined(f"power.{kind}", lambda a, b: (_power_loop(a, b, kind),), x, y)
    return result


def _power_loop(x: Number, y: Number, kind: str) -> Number:
    f, type_ = x.f, x.whole_type
    signed = kind == "signed"
    exponent = select(y < 0, 0, y) if signed else y
    states = [f.alloca(type_, start.operand) for start in (x.like(1), x, exponent)]

    def read(which: int) -> Number:
        return Number(f, x.type, x.lanes, f.new(f"load {type_}, ptr {states[which]}"))

    def step() -> None:
        result, factor, remaining = read(0), read(1), read(2)
        odd = (remaining & 1).differs(0)
        news = (select(odd, result * factor, result), factor * factor, remaining.shift_in_zeros(1))
        for state, new in zip(states, news, strict=True):
            f.do(f"store {type_} {new.operand}, ptr {state}")

    f.loop_while(lambda: read(2).differs(0).any(), step)
    if not signed:
        return read(0)
    sign = select((y & 1).differs(0), x.like(-1), x.like(1))
    inverse = select(x.equals(-1), sign, x.equals(1).cast("zext", x.type))
    return select(y < 0, inverse, read(0))


# --- bits -----------------------------------------------------------------------------------------


def _in_range(amount: Number, dtype: str) -> Number:
    """Whether a shift leaves bits: negative amounts count as too large."""
    return amount.compare("ult", bit_width(dtype))


def _shift_left(x: Number, y: Number, dtype: str) -> Number:
    if is_constant(y.operand):
        return _constant_shift(x, y, "shl", dtype)
    inside = _in_range(y, dtype)
    return select(inside, x << select(inside, y, 0), 0)


def _shift_right_logical(x: Number, y: Number, dtype: str) -> Number:
    x = low_bits(x, dtype)
    if is_constant(y.operand):
        return _constant_shift(x, y, "lshr", dtype)
    inside = _in_range(y, dtype)
    return select(inside, x.shift_in_zeros(select(inside, y, 0)), 0)


def _constant_shift(x: Number, y: Number, name: str, dtype: str) -> Number:
    amount = int(y.operand.rstrip(")").split()[-1])
    if not 0 <= amount < bit_width(dtype):
        return x.like(0)
    return x.new(f"{name} {x.whole_type} {x.operand}, {y.operand}")


def _shift_right_arithmetic(x: Number, y: Number, dtype: str) -> Number:
    """The highest bit of the dtype moves in, also if that is unsigned."""
    bits = bit_width(dtype)
    unused = int(x.type[1:]) - bits
    if unused and not is_signed(dtype):
        x = (x << unused) >> unused
    return x >> select(_in_range(y, dtype), y, bits - 1)


def _population_count(x: Number, dtype: str) -> Number:
    return low_bits(x, dtype).intrinsic("ctpop")


def _count_zeros(x: Number, name: str) -> Number:
    suffix = x.type if x.lanes == 1 else f"v{x.lanes}{x.type}"
    x.f.declare(f"declare {x.whole_type} @llvm.{name}.{suffix}({x.whole_type}, i1)")
    return x.new(f"call {x.whole_type} @llvm.{name}.{suffix}({x.whole_type} {x.operand}, i1 false)")


def _leading_zeros(x: Number, dtype: str) -> Number:
    unused = int(x.type[1:]) - bit_width(dtype)
    count = _count_zeros(low_bits(x, dtype), "ctlz")
    return count - unused if unused else count


def _trailing_zeros(x: Number, dtype: str) -> Number:
    bits = bit_width(dtype)
    return _count_zeros(x | (1 << bits) if bits < 8 else x, "cttz")


def saturating(x: Number, name: str, type_: str) -> Number:
    """Floats converted to integers: limited to the range, 0 for NaN (`name` fptosi or fptoui)."""
    source = {"float": "f32", "double": "f64"}[x.type]
    target = Number(x.f, type_, x.lanes, "").whole_type
    v = "" if x.lanes == 1 else f"v{x.lanes}"
    full = f"llvm.{name}.sat.{v}{type_}.{v}{source}"
    x.f.declare(f"declare {target} @{full}({x.whole_type})")
    return x.new(f"call {target} @{full}({x.whole_type} {x.operand})", type_)


_RULES: dict[str, Callable[..., Number]] = {
    "neg": lambda x, _: -x,
    "abs": _absolute,
    "sign": _sign,
    "add": lambda x, y, _: x + y,
    "sub": lambda x, y, _: x - y,
    "mul": lambda x, y, _: x * y,
    "fma": lambda x, y, z, _: x * y + z,
    "div": _quotient,
    "rem": _remainder,
    "pow": _power,
    "min": _minimum,
    "max": _maximum,
    "and": lambda x, y, _: x & y,
    "or": lambda x, y, _: x | y,
    "xor": lambda x, y, _: x ^ y,
    "not": lambda x, _: ~x,
    "shl": _shift_left,
    "shr_logical": _shift_right_logical,
    "shr_arithmetic": _shift_right_arithmetic,
    "popcount": _population_count,
    "clz": _leading_zeros,
    "ctz": _trailing_zeros,
}
