"""The scalar operations of the kernel IR.

Arguments and result have one dtype, except where a group says otherwise. Floating-point operations
of types narrower than float32 are computed in float32 and rounded once.
"""

from __future__ import annotations

_UNARY = """
neg abs sign floor ceil trunc round sqrt rsqrt cbrt exp exp2 expm1 log log2 log10 log1p
sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh logistic erf erfc erf_inv
lgamma digamma not popcount clz ctz conj
"""
_BINARY = """
add sub mul div rem pow min max atan2 and or xor shl shr_logical shr_arithmetic next_after copysign
"""
# One argument. Integer, float and, where they make sense, complex. `round` takes ties to even;
# `sign` keeps NaN and the sign of zero.
UNARY = frozenset(_UNARY.split())
# Two arguments. Integers wrap; `div` and `rem` of integers truncate, and give 0 for a divisor of 0.
# `min` and `max` give NaN where an argument is one. Shifts by the width or more, or by a negative
# number, give 0 (shr_arithmetic: copies of the highest bit, of unsigned integers too). `pow` of
# integers is repeated multiplication, 0 for negative exponents of |x| > 1.
BINARY = frozenset(_BINARY.split())
# Two arguments of one dtype; the result is "bool". Complex ones are equal or not.
COMPARISONS = frozenset(["eq", "ne", "lt", "le", "gt", "ge"])
# One argument; the result is "bool".
PREDICATES = frozenset(["is_nan", "is_finite", "is_inf", "sign_bit"])
# select(condition, if true, if false); fma(a, b, c) = a * b + c.
TERNARY = frozenset(["select", "fma"])
# The result dtype is the node's: value conversions, and reinterpretation of equal widths.
CONVERSIONS = frozenset(["convert", "bitcast"])
# complex(re, im) -> complex of that width; real and imag back.
COMPLEX = frozenset(["complex", "real", "imag"])

OPERATIONS = UNARY | BINARY | COMPARISONS | PREDICATES | TERNARY | CONVERSIONS | COMPLEX


def arity(op: str) -> int:
    """The number of arguments of an operation."""
    if op in BINARY or op in COMPARISONS or op == "complex":
        return 2
    return 3 if op in TERNARY else 1


def result_dtype(op: str, dtypes: tuple[str, ...]) -> str:
    """The dtype of the result; of a conversion the caller says it."""
    if op in COMPARISONS or op in PREDICATES:
        return "bool"
    if op == "complex":
        return {"f32": "c64", "f64": "c128"}[dtypes[0]]
    if op in ("real", "imag") or (op == "abs" and dtypes[0] in ("c64", "c128")):
        return {"c64": "f32", "c128": "f64"}.get(dtypes[0], dtypes[0])
    return dtypes[1] if op == "select" else dtypes[0]
