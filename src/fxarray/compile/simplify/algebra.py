"""Algebra: operations that can be left out or written more cheaply, and constants computed now.

Results stay equal to the last bit, the signs of zeros and NaN included, but for powers by a small
integer, which become products. A rule sees an equation's inputs and may look at how these are
defined; it gives what the result is, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from fxarray.compile.simplify.indexing import INDEX_RULES
from fxarray.compile.simplify.moves import MOVE_RULES
from fxarray.compile.simplify.rewriting import Rewriter
from fxarray.core import dtypes
from fxarray.core.array import DeviceArray
from fxarray.core.ir import Atom, Equation, Literal, Program
from fxarray.core.types import ArrayType
from fxarray.primitives.convert import ConvertElementType
from fxarray.primitives.elementwise import mul, neg
from fxarray.primitives.numeric_checks import checks_wanted
from fxarray.primitives.power import IntegerPow

Rule: TypeAlias = Callable[[Rewriter, Equation, Sequence[Atom]], "Atom | None"]


def simplify_algebra(program: Program) -> Program:
    """Apply the rules to every equation, in order, so that one sees what others left."""
    rewriter = Rewriter(program)
    for equation in program.equations:
        inputs = rewriter.atoms(equation)
        if len(equation.outputs) == 1 and not equation.op.effects:
            result = _constant(equation, inputs)
            if result is None:
                rule = _RULES.get(equation.op.name)
                result = None if rule is None else rule(rewriter, equation, inputs)
            if result is not None and result.type.same_array(equation.outputs[0].type):
                rewriter.replace(equation.outputs, [result])
                continue
        rewriter.keep(equation, inputs)
    return rewriter.finish()


# --- constants ------------------------------------------------------------------------------------

# Operations that hold Programs or Python functions are not for here, nor are random bits.
_ON_LITERALS = """
add sub mul div rem max min neg abs sign floor ceil round sqrt rsqrt exp log pow integer_pow square
and or xor not eq ne lt le gt ge convert_element_type select_n clamp reshape shift_left
shift_right_logical shift_right_arithmetic is_finite sin cos tanh log1p expm1 stop_gradient copy
"""
_FOLDED = frozenset(_ON_LITERALS.split())


def _constant(equation: Equation, inputs: Sequence[Atom]) -> Literal | None:
    """The value of an operation on literals."""
    if equation.op.name not in _FOLDED or not all(type(a) is Literal for a in inputs):
        return None
    type_ = equation.op.types(*[a.type for a in inputs])[0]
    if type_.shape or dtypes.is_key(type_.dtype) or checks_wanted():
        return None
    values = [a.value.numpy_view() for a in inputs]  # type: ignore[union-attr]
    with np.errstate(all="ignore"):
        (result,) = equation.op.reference(*values)
    return Literal(DeviceArray(np.asarray(result), type_))


def literal_value(atom: Atom) -> Any:
    """The number of a literal, None for variables."""
    return atom.value.numpy_view().item() if type(atom) is Literal else None


def _number(value: Any, like: ArrayType) -> Literal:
    array = dtypes.scalar_array(value, like.dtype)
    return Literal(DeviceArray(array, ArrayType((), like.dtype, like.weak)))


def _is(value: Any, number: float) -> bool:
    """Whether a literal's value is this number, the sign of zero included."""
    if value is None or isinstance(value, complex):
        return False
    same_sign = not isinstance(value, float) or np.signbit(value) == np.signbit(number)
    return bool(value == number) and bool(same_sign)


def _same_shape(equation: Equation, atom: Atom) -> Atom | None:
    """An operand in place of the result, if it has its shape."""
    return atom if atom.type.same_array(equation.outputs[0].type) else None


# --- arithmetic -----------------------------------------------------------------------------------


def _add(rewriter: Rewriter, equation: Equation, inputs: Sequence[Atom]) -> Atom | None:
    floats = dtypes.is_inexact(inputs[0].type.dtype)
    for number in (0, 1):
        # x + 0.0 would turn -0.0 into 0.0; x + -0.0 is x.
        if _is(literal_value(inputs[number]), -0.0 if floats else 0):
            return _same_shape(equation, inputs[1 - number])
    return None


def _sub(rewriter: Rewriter, equation: Equation, inputs: Sequence[Atom]) -> Atom | None:
    if _is(literal_value(inputs[1]), 0.0):
        return _same_shape(equation, inputs[0])
    return None


def _mul(rewriter: Rewriter, equation: Equation, inputs: Sequence[Atom]) -> Atom | None:
    for number in (0, 1):
        other = inputs[1 - number]
        value = literal_value(inputs[number])
        if _is(value, 1) and value is not True:
            return _same_shape(equation, other)
        signed = dtypes.is_signed(other.type.dtype) or dtypes.is_float(other.type.dtype)
        if _is(value, -1) and signed and _same_shape(equation, other) is not None:
            return rewriter.add(neg, [other], equation)[0]
    return None


def _div(rewriter: Rewriter, equation: Equation, inputs: Sequence[Atom]) -> Atom | None:
    value = literal_value(inputs[1])
    if value is None or isinstance(value, complex):
        return None
    if _is(value, 1):
        return _same_shape(equation, inputs[0])
    dtype = inputs[0].type.dtype
    if dtype in (dtypes.float32, dtypes.float64) and np.isfinite(value) and value != 0:
        # The reciprocal of a power of two is exact.
        mantissa, exponent = np.frexp(value)
        if abs(mantissa) == 0.5 and abs(exponent) < 100:
            return rewriter.add(mul, [inputs[0], _number(1 / value, inputs[1].type)], equation)[0]
    return None


def _neg(rewriter: Rewriter, equation: Equation, inputs: Sequence[Atom]) -> Atom | None:
    inner = rewriter.definition(inputs[0])
    return inner.inputs[0] if inner is not None and inner.op.name == "neg" else None


def _pow(rewriter: Rewriter, equation: Equation, inputs: Sequence[Atom]) -> Atom | None:
    value = literal_value(inputs[1])
    if value is None or isinstance(value, complex) or not dtypes.is_float(inputs[0].type.dtype):
        return None
    if value in (1, 2, 3, 4):
        return _power(rewriter, equation, inputs[0], int(value))
    return None


def _integer_pow(rewriter: Rewriter, equation: Equation, inputs: Sequence[Atom]) -> Atom | None:
    exponent = equation.op.parameters()["exponent"]
    if exponent == 1:
        return inputs[0]
    return _power(rewriter, equation, inputs[0], 2) if exponent == 2 else None


def _power(rewriter: Rewriter, equation: Equation, x: Atom, exponent: int) -> Atom | None:
    if _same_shape(equation, x) is None:
        return None
    if exponent == 1:
        return x
    if exponent == 2:
        return rewriter.add(mul, [x, x], equation)[0]
    return rewriter.add(IntegerPow(exponent), [x], equation)[0]


def _idempotent(rewriter: Rewriter, equation: Equation, inputs: Sequence[Atom]) -> Atom | None:
    return inputs[0] if inputs[0] is inputs[1] else None


# --- conversions and choices ----------------------------------------------------------------------


def _exactly_in(narrow: Any, wide: Any) -> bool:
    """Whether every number of one dtype is one of another."""
    for kind in (dtypes.is_float, dtypes.is_signed, dtypes.is_unsigned):
        if kind(narrow) and kind(wide):
            if not dtypes.is_float(narrow):
                return dtypes.bit_width(wide) >= dtypes.bit_width(narrow)
            few, many = dtypes.finfo(narrow), dtypes.finfo(wide)
            return bool(
                many.nmant >= few.nmant and many.maxexp >= few.maxexp and many.minexp <= few.minexp
            )
    return False


def _convert(rewriter: Rewriter, equation: Equation, inputs: Sequence[Atom]) -> Atom | None:
    (x,) = inputs
    target = equation.outputs[0].type.dtype
    if x.type.dtype == target:
        return x
    inner = rewriter.definition(x)
    if inner is None or inner.op.name != "convert_element_type":
        return None
    source = inner.inputs[0]
    if not _exactly_in(source.type.dtype, x.type.dtype):
        return None
    if source.type.dtype == target:
        return source
    op = ConvertElementType(target, equation.outputs[0].type.weak)
    return rewriter.add(op, [source], equation)[0]


def _select(rewriter: Rewriter, equation: Equation, inputs: Sequence[Atom]) -> Atom | None:
    which, *cases = inputs
    repeated = rewriter.definition(which)
    if repeated is not None and repeated.op.name == "broadcast_in_dim":
        which = repeated.inputs[0]  # one choice for all elements, if it is a literal
    value = literal_value(which)
    if value is not None:
        return _same_shape(equation, cases[min(max(int(value), 0), len(cases) - 1)])
    if all(case is cases[0] for case in cases):
        return _same_shape(equation, cases[0])
    return None


def _identity(rewriter: Rewriter, equation: Equation, inputs: Sequence[Atom]) -> Atom | None:
    return inputs[0]


_RULES: dict[str, Rule] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "neg": _neg,
    "pow": _pow,
    "integer_pow": _integer_pow,
    **dict.fromkeys(["max", "min", "and", "or"], _idempotent),
    "convert_element_type": _convert,
    "select_n": _select,
    **dict.fromkeys(["copy", "stop_gradient", "checkpoint_name"], _identity),
    **MOVE_RULES,
    **INDEX_RULES,
}
