"""Numbers in registers, written as formulas: `Number` has Python's operators and emits LLVM text.

A `Number` is a scalar or vector of one LLVM type, float or integer; comparisons give `i1`. Python
numbers in formulas become constants of the type of what they meet. No operation here may be
rearranged or contracted by LLVM, so that compensated arithmetic keeps its meaning.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TypeAlias

from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.emit.types import vector_type

FLOATS = ("float", "double")
# Mantissa bits, exponent bias.
MANTISSA = {"float": 23, "double": 52}
BIAS = {"float": 127, "double": 1023}
BITS = {"float": "i32", "double": "i64"}
_SUFFIX = {"float": "f32", "double": "f64"}


@lru_cache(maxsize=4096)
def literal(value: float | bool, type_: str) -> str:
    """A number as the text of an LLVM constant of a scalar type."""
    if type_ == "i1":
        return "true" if value else "false"
    if type_ not in FLOATS:
        return str(int(value))
    if type_ == "float":
        value = _as_float32(float(value))
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def _as_float32(value: float) -> float:
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


@lru_cache(maxsize=4096)
def splat_literal(value: float | bool, type_: str, lanes: int, negative: bool = False) -> str:
    """A constant with the same number on every lane. (`negative` keeps -0.0 apart in the cache.)"""
    if negative:
        value = -abs(value)
    text = literal.__wrapped__(value, type_)
    return text if lanes == 1 else f"splat ({type_} {text})"


def is_constant(operand: Operand) -> bool:
    """Whether an operand is a constant."""
    return not operand.startswith("%")


class Number:
    """A scalar or vector operand with its element type."""

    __slots__ = ("f", "lanes", "operand", "type")

    def __init__(self, f: FunctionText, type_: str, lanes: int, operand: Operand) -> None:
        self.f = f
        self.type = type_
        self.lanes = lanes
        self.operand = operand

    # --- making others ----------------------------------------------------------------------------

    @property
    def whole_type(self) -> str:
        """`type` with its lanes."""
        return vector_type(self.type, self.lanes)

    @property
    def is_float(self) -> bool:
        return self.type in FLOATS

    def like(self, value: Like, type_: str | None = None) -> Number:
        """A constant of this type (or another) and these lanes; a Number as it is."""
        if isinstance(value, Number):
            return value
        type_ = type_ or self.type
        negative = type_ in FLOATS and str(value).startswith("-")
        text = splat_literal(value, type_, self.lanes, negative)
        return Number(self.f, type_, self.lanes, text)

    def new(self, text: str, type_: str | None = None) -> Number:
        """The result of an instruction."""
        return Number(self.f, type_ or self.type, self.lanes, self.f.new(text))

    def _two(self, name: str, other: Like, swap: bool = False) -> Number:
        a, b = self.operand, self.like(other).operand
        if swap:
            a, b = b, a
        return self.new(f"{name} {self.whole_type} {a}, {b}")

    def intrinsic(self, name: str, *others: Like) -> Number:
        """A call of an LLVM intrinsic all of whose arguments have this type."""
        operands = [self.operand, *[self.like(other).operand for other in others]]
        return self.new(call_intrinsic(self.f, name, self.type, self.lanes, operands))

    # --- arithmetic -------------------------------------------------------------------------------

    def __add__(self, other: Like) -> Number:
        return self._two("fadd" if self.is_float else "add", other)

    def __radd__(self, other: Like) -> Number:
        return self._two("fadd" if self.is_float else "add", other)

    def __sub__(self, other: Like) -> Number:
        return self._two("fsub" if self.is_float else "sub", other)

    def __rsub__(self, other: Like) -> Number:
        return self._two("fsub" if self.is_float else "sub", other, swap=True)

    def __mul__(self, other: Like) -> Number:
        return self._two("fmul" if self.is_float else "mul", other)

    def __rmul__(self, other: Like) -> Number:
        return self._two("fmul" if self.is_float else "mul", other)

    def __truediv__(self, other: Like) -> Number:
        return self._two("fdiv", other)

    def __rtruediv__(self, other: Like) -> Number:
        return self._two("fdiv", other, swap=True)

    def __neg__(self) -> Number:
        if self.is_float:
            return self.new(f"fneg {self.whole_type} {self.operand}")
        return 0 - self

    def __abs__(self) -> Number:
        return self.intrinsic("fabs")

    def fma(self, factor: Like, addend: Like) -> Number:
        """self * factor + addend, rounded once."""
        return self.intrinsic("fma", factor, addend)

    def sqrt(self) -> Number:
        return self.intrinsic("sqrt")

    def round(self) -> Number:
        """The nearest integer, ties to even."""
        return self.intrinsic("roundeven")

    def trunc(self) -> Number:
        return self.intrinsic("trunc")

    def floor(self) -> Number:
        return self.intrinsic("floor")

    def ceil(self) -> Number:
        return self.intrinsic("ceil")

    def with_sign_of(self, other: Like) -> Number:
        return self.intrinsic("copysign", other)

    # `select` and not llvm.maxnum: these are one instruction on x86, and pass NaN in self on.
    def at_least(self, bound: Like) -> Number:
        """The larger of self and a bound that is not NaN; NaN stays."""
        return select(self < bound, bound, self)

    def at_most(self, bound: Like) -> Number:
        """The smaller of self and a bound that is not NaN; NaN stays."""
        return select(self > bound, bound, self)

    # --- bits -------------------------------------------------------------------------------------

    def __and__(self, other: Like) -> Number:
        return self._two("and", other)

    def __or__(self, other: Like) -> Number:
        return self._two("or", other)

    def __xor__(self, other: Like) -> Number:
        return self._two("xor", other)

    def __invert__(self) -> Number:
        return self._two("xor", True if self.type == "i1" else -1)

    def __lshift__(self, other: Like) -> Number:
        return self._two("shl", other)

    def __rshift__(self, other: Like) -> Number:
        """Shifted right with the sign."""
        return self._two("ashr", other)

    def shift_in_zeros(self, other: Like) -> Number:
        """Shifted right with zeros."""
        return self._two("lshr", other)

    @property
    def bits(self) -> Number:
        """The bits of floats as integers."""
        return self.cast("bitcast", BITS[self.type])

    def as_float(self, type_: str) -> Number:
        """Integers taken as the bits of floats."""
        return self.cast("bitcast", type_)

    # --- conversions ------------------------------------------------------------------------------

    def cast(self, name: str, type_: str) -> Number:
        """An LLVM conversion: sitofp, fpext, trunc, ..."""
        if type_ == self.type:
            return self
        target = vector_type(type_, self.lanes)
        return self.new(f"{name} {self.whole_type} {self.operand} to {target}", type_)

    def to_double(self) -> Number:
        return self.cast("fpext", "double")

    def to_float(self) -> Number:
        return self.cast("fptrunc", "float")

    def to_integer(self) -> Number:
        """Floats that are integers, and small, as integers of the same width.

        NaN and what is too large give any value, the same at every use.
        """
        type_ = BITS[self.type]
        target = vector_type(type_, self.lanes)
        poison = self.new(f"fptosi {self.whole_type} {self.operand} to {target}", type_)
        return poison.new(f"freeze {target} {poison.operand}")

    # --- comparisons ------------------------------------------------------------------------------

    def compare(self, predicate: str, other: Like) -> Number:
        """fcmp or icmp, by type."""
        name = "fcmp" if self.is_float else "icmp"
        b = self.like(other).operand
        return self.new(f"{name} {predicate} {self.whole_type} {self.operand}, {b}", "i1")

    def __lt__(self, other: Like) -> Number:
        return self.compare("olt" if self.is_float else "slt", other)

    def __le__(self, other: Like) -> Number:
        return self.compare("ole" if self.is_float else "sle", other)

    def __gt__(self, other: Like) -> Number:
        return self.compare("ogt" if self.is_float else "sgt", other)

    def __ge__(self, other: Like) -> Number:
        return self.compare("oge" if self.is_float else "sge", other)

    def equals(self, other: Like) -> Number:
        return self.compare("oeq" if self.is_float else "eq", other)

    def differs(self, other: Like) -> Number:
        """Whether self is less or greater or, of floats, NaN."""
        return self.compare("une" if self.is_float else "ne", other)

    def is_nan(self) -> Number:
        return self.compare("uno", self)

    def any(self) -> Operand:
        """Whether a truth value is true on any lane, as a scalar i1."""
        if self.lanes == 1:
            return self.operand
        name = f"llvm.vector.reduce.or.v{self.lanes}i1"
        self.f.declare(f"declare i1 @{name}({self.whole_type})")
        return self.f.new(f"call i1 @{name}({self.whole_type} {self.operand})")


Like: TypeAlias = Number | float | int | bool


def call_intrinsic(
    f: FunctionText, name: str, type_: str, lanes: int, operands: list[Operand]
) -> str:
    """The text of a call of an intrinsic all of whose operands have one type."""
    whole = vector_type(type_, lanes)
    suffix = _SUFFIX.get(type_, type_)
    full = f"llvm.{name}.{suffix}" if lanes == 1 else f"llvm.{name}.v{lanes}{suffix}"
    f.declare(f"declare {whole} @{full}({', '.join([whole] * len(operands))})")
    arguments = ", ".join([f"{whole} {operand}" for operand in operands])
    return f"call {whole} @{full}({arguments})"


def select(condition: Number, if_true: Like, if_false: Like) -> Number:
    """One or the other by a truth value; at least one of the two is a Number."""
    model = if_true if isinstance(if_true, Number) else if_false
    assert isinstance(model, Number)
    a, b = model.like(if_true), model.like(if_false)
    truth = f"{condition.whole_type} {condition.operand}"
    return a.new(f"select {truth}, {a.whole_type} {a.operand}, {a.whole_type} {b.operand}")


def polynomial(x: Number, coefficients: tuple[float, ...]) -> Number:
    """`sum(c[k] * x**k)` by Horner's rule."""
    *rest, last = coefficients
    total: Like = last
    for coefficient in reversed(rest):
        total = x.fma(total, coefficient)
    assert isinstance(total, Number)
    return total


def literal_vector(numbers: tuple[float, ...], type_: str) -> Operand:
    """A constant vector of given numbers."""
    texts = [f"{type_} {literal(number, type_)}" for number in numbers]
    return f"<{', '.join(texts)}>"
