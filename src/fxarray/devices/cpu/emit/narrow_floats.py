"""Floats of at most 16 bits: rounding to them, and their bits.

Such numbers are held as float. A format has a sign bit, exponent and mantissa bits, and one of
these conventions for what is not a finite number:

- "ieee": the highest exponent holds infinities and NaN.
- "fn": no infinities; all bits set but the sign is NaN. What is too large becomes NaN.
- "fnuz": no infinities and no negative zero, whose code is NaN. What is too large becomes NaN.
- "finite": neither infinities nor NaN. What is too large becomes the greatest number.
"""

from __future__ import annotations

from dataclasses import dataclass

from fxarray.devices.cpu.emit import features
from fxarray.devices.cpu.emit.number import Number, select
from fxarray.devices.cpu.emit.types import vector_type


@dataclass(frozen=True)
class Format:
    """One format.

    Args:
      exponent: bits of the exponent.
      mantissa: bits of the mantissa.
      bias: of the exponent.
      kind: what is not finite.
      largest: the greatest finite number.
    """

    exponent: int
    mantissa: int
    bias: int
    kind: str
    largest: float

    @property
    def width(self) -> int:
        return 1 + self.exponent + self.mantissa

    @property
    def storage(self) -> str:
        return "i16" if self.width > 8 else "i8"

    @property
    def sign(self) -> int:
        """The bit of the sign."""
        return 1 << (self.exponent + self.mantissa)

    @property
    def not_a_number(self) -> int:
        """The code of NaN."""
        if self.kind == "fnuz":
            return self.sign
        if self.kind == "fn":
            return self.sign - 1
        return (((1 << self.exponent) - 1) << self.mantissa) | (1 << (self.mantissa - 1))


FORMATS = {
    "f16": Format(5, 10, 15, "ieee", 65504.0),
    "bf16": Format(8, 7, 127, "ieee", 3.3895313892515355e38),
    "f8_e3m4": Format(3, 4, 3, "ieee", 15.5),
    "f8_e4m3": Format(4, 3, 7, "ieee", 240.0),
    "f8_e5m2": Format(5, 2, 15, "ieee", 57344.0),
    "f8_e4m3fn": Format(4, 3, 7, "fn", 448.0),
    "f8_e4m3b11fnuz": Format(4, 3, 11, "fnuz", 30.0),
    "f8_e4m3fnuz": Format(4, 3, 8, "fnuz", 240.0),
    "f8_e5m2fnuz": Format(5, 2, 16, "fnuz", 57344.0),
    "f6_e2m3fn": Format(2, 3, 1, "finite", 7.5),
    "f6_e3m2fn": Format(3, 2, 3, "finite", 28.0),
    "f4_e2m1fn": Format(2, 1, 1, "finite", 6.0),
}
# Powers of two alone, from 2**-127 to 2**127, and NaN: no sign and no zero.
POWERS = "f8_e8m0fnu"


def round_to(x: Number, dtype: str) -> Number:
    """Floats rounded to a narrow format, ties to even."""
    if dtype == "bf16":
        return _round_bfloat(x)
    if dtype == POWERS:
        return _round_to_power(x)
    if dtype == "f16" and features.converts_half():
        half = x.cast("fptrunc", "half")
        return Number(x.f, "half", x.lanes, half.operand).cast("fpext", "float")
    return _round(x, FORMATS[dtype])


def _round_bfloat(x: Number) -> Number:
    bits = x.bits
    rounded = (bits + 0x7FFF + (bits.shift_in_zeros(16) & 1)) & ~0xFFFF
    # NaN is made quiet, so that its upper half is not infinity's.
    return select(x.is_nan(), bits | 0x400000, rounded).as_float("float")


def _round(x: Number, form: Format) -> Number:
    """
    Added to 1.5 * 2**k, a number loses its bits below 2**(k - 23). k is 23 - mantissa above the
    exponent of x, or above the least exponent of a normal number for what is subnormal.
    """
    least, greatest = 128 - form.bias, 127 + (1 << form.exponent) - form.bias
    exponent = x.bits & 0x7F800000
    exponent = exponent.intrinsic("smax", least << 23).intrinsic("smin", greatest << 23)
    anchor = (exponent + (((23 - form.mantissa) << 23) | 0x400000)).as_float("float")
    rounded = (x + anchor) - anchor
    if form.kind == "finite":
        limited = rounded.at_most(form.largest).at_least(-form.largest)
        # NaN has no place but zero; ml_dtypes gives that the other sign.
        return select(x.is_nan(), x.like(0.0).with_sign_of(-x), limited.with_sign_of(x))
    beyond = float("inf") if form.kind == "ieee" else float("nan")
    limited = select(abs(rounded) > form.largest, beyond, rounded)
    # Zero keeps its sign, except where there is one zero only.
    return limited + 0.0 if form.kind == "fnuz" else limited.with_sign_of(x)


def _round_to_power(x: Number) -> Number:
    """The nearest power of two; halfway up."""
    bits = x.bits
    rounded = (bits + 0x400000) & 0x7F800000
    least = bits.like(0x400000)
    # Subnormal numbers: what is above 2**-127 becomes 2**-126, as in ml_dtypes.
    tiny = select(bits <= 0x400000, least, bits.like(0x800000))
    chosen = select(bits < 0x800000, tiny, rounded)
    valid = (x > 0.0) & rounded.compare("ult", 0x7F800000)
    return select(valid, chosen.as_float("float"), float("nan"))


def encode(x: Number, dtype: str) -> Number:
    """The bits of numbers that are rounded already, as i8 or i16."""
    if dtype == "bf16":
        return x.bits.shift_in_zeros(16).cast("trunc", "i16")
    if dtype == "f16" and features.converts_half():
        half = x.cast("fptrunc", "half")
        return Number(x.f, "half", x.lanes, half.operand).cast("bitcast", "i16")
    if dtype == POWERS:
        code = x.bits.shift_in_zeros(23)
        return select(x.is_nan(), 255, code).cast("trunc", "i8")
    form = FORMATS[dtype]
    # With the exponents moved, the format's subnormal numbers are those of float.
    moved = (abs(x) * 2.0 ** (form.bias - 127)).bits
    code = moved.shift_in_zeros(23 - form.mantissa)
    if form.kind == "ieee":
        infinity = ((1 << form.exponent) - 1) << form.mantissa
        code = select(abs(x).equals(float("inf")), infinity, code)
    if form.kind != "finite":
        code = select(x.is_nan(), form.not_a_number & (form.sign - 1), code)
    sign = x.bits.shift_in_zeros(31) << (form.exponent + form.mantissa)
    if form.kind == "fnuz":
        sign = select(x.is_nan(), form.sign, sign)
    return (code | sign).cast("trunc", form.storage)


def decode(bits: Number, dtype: str) -> Number:
    """The numbers of a format, from their bits as i8 or i16."""
    wide = bits.cast("zext", "i32")
    if dtype == "bf16":
        return (wide << 16).as_float("float")
    if dtype == "f16" and features.converts_half():
        type_ = vector_type("half", bits.lanes)
        half = bits.f.new(f"bitcast {bits.whole_type} {bits.operand} to {type_}")
        return Number(bits.f, "half", bits.lanes, half).cast("fpext", "float")
    if dtype == POWERS:
        number = select(wide.equals(0), 0x400000, wide << 23)
        return select(wide.equals(255), 0x7FC00000, number).as_float("float")
    form = FORMATS[dtype]
    code = wide & (form.sign - 1)
    size = (code << (23 - form.mantissa)).as_float("float") * 2.0 ** (127 - form.bias)
    if form.kind == "ieee":
        infinity = ((1 << form.exponent) - 1) << form.mantissa
        beyond = select(code.equals(infinity), size.like(float("inf")), float("nan"))
        size = select(code >= infinity, beyond, size)
    elif form.kind == "fn":
        size = select(code.equals(form.not_a_number), float("nan"), size)
    sign = (wide & form.sign) << (31 - form.exponent - form.mantissa)
    signed = (size.bits | sign).as_float("float")
    if form.kind == "fnuz":
        return select(
            (wide & (2 * form.sign - 1)).equals(form.sign), -signed.like(float("nan")), signed
        )
    return signed
