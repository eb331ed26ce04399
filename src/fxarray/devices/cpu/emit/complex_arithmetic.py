"""Complex numbers as pairs of Numbers: products, quotients, magnitudes and square roots.

Everything but products is computed in float64: complex64 is widened, which spares it every
overflow, and complex128 is scaled by powers of two where that is needed. Infinities and NaN follow
the C standard (annex G); products are plain, as in NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass

from fxarray.devices.cpu.emit.number import Number, select

INFINITY = float("inf")
_EXPONENT = 0x7FF0000000000000


@dataclass(frozen=True, slots=True)
class Complex:
    """A complex number of two parts of one type."""

    real: Number
    imag: Number

    @property
    def parts(self) -> tuple[Number, Number]:
        return self.real, self.imag

    def __add__(self, other: Complex | float) -> Complex:
        if isinstance(other, Complex):
            return Complex(self.real + other.real, self.imag + other.imag)
        return Complex(self.real + other, self.imag)

    def __sub__(self, other: Complex) -> Complex:
        return Complex(self.real - other.real, self.imag - other.imag)

    def __neg__(self) -> Complex:
        return Complex(-self.real, -self.imag)

    def __mul__(self, other: Complex) -> Complex:
        # No fma: z * conj(z) must be real.
        a, b, c, d = *self.parts, *other.parts
        return Complex(a * c - b * d, a * d + b * c)

    def scaled(self, factor: Number | float) -> Complex:
        return Complex(self.real * factor, self.imag * factor)

    def times_i(self) -> Complex:
        return Complex(-self.imag, self.real)

    def over_i(self) -> Complex:
        return Complex(self.imag, -self.real)

    def equals(self, other: Complex) -> Number:
        return self.real.equals(other.real) & self.imag.equals(other.imag)

    def is_nan(self) -> Number:
        return self.real.compare("uno", self.imag)

    def is_infinite(self) -> Number:
        return abs(self.real).equals(INFINITY) | abs(self.imag).equals(INFINITY)

    def is_zero(self) -> Number:
        return self.real.equals(0.0) & self.imag.equals(0.0)


def choose(condition: Number, if_true: Complex, if_false: Complex) -> Complex:
    """One or the other by a truth value."""
    return Complex(
        select(condition, if_true.real, if_false.real),
        select(condition, if_true.imag, if_false.imag),
    )


def number(model: Number, real: float, imag: float = 0.0) -> Complex:
    """A constant."""
    return Complex(model.like(real), model.like(imag))


def power_of_two_below(x: Number) -> tuple[Number, Number]:
    """2**e of a positive float64 and 2**-e, within the range of normal exponents."""
    bits = (x.bits & _EXPONENT).intrinsic("smax", 2 << 52).intrinsic("smin", 2044 << 52)
    return bits.as_float("double"), ((2046 << 52) - bits).as_float("double")


def magnitude(z: Complex) -> Number:
    """|z|, in float64."""
    a, b = abs(z.real), abs(z.imag)
    large, small = select(a < b, b, a), select(a < b, a, b)
    power, inverse = power_of_two_below(large)
    u, v = large * inverse, small * inverse
    size = u.fma(u, v * v).sqrt() * power
    size = select(z.is_nan(), float("nan"), size)
    return select(z.is_infinite(), INFINITY, size)


def quotient(x: Complex, y: Complex) -> Complex:
    """x / y by Smith's method, in float64."""
    a, b, c, d = *x.parts, *y.parts
    steep = abs(c) < abs(d)
    large, small = select(steep, d, c), select(steep, c, d)
    first, second = select(steep, b, a), select(steep, a, b)
    ratio = small / large
    below = large + small * ratio
    imag = (second - first * ratio) / below
    plain = Complex((first + second * ratio) / below, select(steep, -imag, imag))
    nothing = abs(c)
    plain = choose(y.is_zero(), Complex(a / nothing, b / nothing), plain)
    return _recovered(plain, x, y)


def _recovered(plain: Complex, x: Complex, y: Complex) -> Complex:
    """A quotient that is NaN in both parts, but is infinite or zero by the standard."""
    a, b, c, d = *x.parts, *y.parts
    lost = plain.real.is_nan() & plain.imag.is_nan()
    x_known, y_known = ~x.is_nan(), ~y.is_nan()
    x_infinite, y_infinite = x.is_infinite(), y.is_infinite()
    a1, b1, c1, d1 = (_direction(part) for part in (a, b, c, d))
    huge = Complex((a1 * c + b1 * d) * INFINITY, (b1 * c - a1 * d) * INFINITY)
    result = choose(lost & x_infinite & y_known & ~y_infinite, huge, plain)
    tiny = Complex((a * c1 + b * d1) * 0.0, (b * c1 - a * d1) * 0.0)
    return choose(lost & y_infinite & x_known & ~x_infinite, tiny, result)


def _direction(part: Number) -> Number:
    """1 for infinity and 0 for the rest, with the sign."""
    infinite = abs(part).equals(INFINITY)
    return select(infinite, part.like(1.0), 0.0).with_sign_of(part)


def reciprocal(z: Complex) -> Complex:
    return quotient(number(z.real, 1.0), z)


def sign(z: Complex) -> Complex:
    """z / |z|, 0 for 0."""
    size = magnitude(z)
    scaled = quotient(z, Complex(size, size.like(0.0)))
    return choose(size.equals(0.0), number(size, 0.0), scaled)


def square_root(z: Complex) -> Complex:
    """The root in the right half plane."""
    x, y = z.parts
    a, b = abs(x), abs(y)
    largest = select(a < b, b, a)
    # Powers of four keep |z| + |x| in range, and normal.
    up, down = largest < 2.0**-900, largest > 2.0**1000
    factor = select(up, x.like(2.0**200), select(down, x.like(2.0**-200), 1.0))
    back = select(up, x.like(2.0**-100), select(down, x.like(2.0**100), 1.0))
    u, v = a * factor, b * factor
    root = ((magnitude(Complex(u, v)) + u) * 0.5).sqrt()
    other = select(root.equals(0.0), 0.0, v / (root * 2.0))
    root, other = root * back, other * back
    right = x.bits >= 0
    real, imag = select(right, root, other), select(right, other, root)
    imag = imag.with_sign_of(y)
    # Infinities: an infinite imaginary part wins, then an infinite real one.
    infinite = a.equals(INFINITY)
    flat = select(y.is_nan(), y, 0.0)
    real = select(infinite, select(right, x, flat), real)
    imag = select(infinite, select(right, flat, a).with_sign_of(y), imag)
    tall = b.equals(INFINITY)
    return Complex(select(tall, INFINITY, real), select(tall, y, imag))
