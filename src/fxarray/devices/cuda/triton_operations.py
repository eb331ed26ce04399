"""Scalar operations of the kernel IR as Triton expressions."""

from __future__ import annotations

import math
from typing import Any

from fxarray.core import dtypes
from fxarray.devices.cuda.tiles import Unsupported
from fxarray.kernel.combiners import COMBINERS, Expression
from fxarray.kernel.scalars import numpy_dtype

DTYPES = {
    "bool": "tl.int1",
    "f16": "tl.float16",
    "bf16": "tl.bfloat16",
    "f32": "tl.float32",
    "f64": "tl.float64",
    **{
        f"{kind[0]}{bits}": f"tl.{kind}{bits}"
        for kind in ("int", "uint")
        for bits in (8, 16, 32, 64)
    },
}
_INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "and": "&",
    "or": "|",
    "xor": "^",
}
_CALLS = {
    "exp": "tl.exp({0})",
    "exp2": "tl.exp2({0})",
    "log": "tl.log({0})",
    "log2": "tl.log2({0})",
    "sqrt": "tl.sqrt({0})",
    "rsqrt": "(1 / tl.sqrt({0}))",
    "sin": "tl.sin({0})",
    "cos": "tl.cos({0})",
    "erf": "tl.erf({0})",
    "floor": "tl.floor({0})",
    "ceil": "tl.ceil({0})",
    "logistic": "tl.sigmoid({0})",
    "tanh": "(2 * tl.sigmoid(2 * {0}) - 1)",
    "abs": "tl.abs({0})",
    "neg": "(-{0})",
    "max": "tl.maximum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)",
    "min": "tl.minimum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)",
    "fma": "tl.fma({0}, {1}, {2})",
    "select": "tl.where({0}, {1}, {2})",
    "is_nan": "({0} != {0})",
    "is_inf": "(tl.abs({0}) == float('inf'))",
    "is_finite": "(tl.abs({0}) < float('inf'))",
}


def literal(value: Any) -> str:
    """A number as Triton reads it."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    return repr(value)


def is_integer(dtype: str) -> bool:
    """Whether a dtype is an integer's."""
    return dtypes.is_integer(numpy_dtype(dtype))


def operation(op: str, given: list[str], dtype: str, result: str) -> str:
    """An operation as an expression.

    Args:
      op: its name.
      given: its arguments.
      dtype: that of the arguments (of a select, the last ones).
      result: that of the result.

    Raises:
      Unsupported: Triton has no such operation.
    """
    if op == "convert":
        return converted(given[0], dtype, result)
    if op == "bitcast":
        return f"{given[0]}.to({DTYPES[result]}, bitcast=True)"
    narrow = dtypes.is_narrow_float(numpy_dtype(dtype))
    if narrow and op not in ("select", "neg"):
        wide = [f"{x}.to(tl.float32)" for x in given]
        text = operation(op, wide, "f32", "bool" if result == "bool" else "f32")
        return text if result == "bool" else f"({text}).to({DTYPES[result]})"
    if op in _INFIX:
        return f"({given[0]} {_INFIX[op]} {given[1]})"
    if is_integer(dtype) or dtype == "bool":
        return _integer_operation(op, given, dtype)
    if op == "div":
        return f"({given[0]} / {given[1]})"
    if op not in _CALLS:
        raise Unsupported(f"the operation {op} of {dtype}")
    return _CALLS[op].format(*given)


def _integer_operation(op: str, given: list[str], dtype: str) -> str:
    width = dtypes.bit_width(numpy_dtype(dtype))
    if op in ("div", "rem"):
        x, y = given
        safe = f"tl.where({y} == 0, 1, {y}).to({DTYPES[dtype]})"
        sign = "//" if op == "div" else "%"
        return f"tl.where({y} == 0, 0, {x} {sign} {safe}).to({DTYPES[dtype]})"
    if op in ("shl", "shr_logical", "shr_arithmetic"):
        x, y = given
        outside = f"({y} < 0) | ({y} >= {width})"
        unsigned = f"tl.uint{width}"
        amount = f"tl.where({outside}, 0, {y}).to({DTYPES[dtype]})"
        if op == "shl":
            shifted = f"({x} << {amount})"
        elif op == "shr_logical":
            shifted = f"({x}.to({unsigned}, bitcast=True) >> {amount}.to({unsigned}, bitcast=True))"
        else:
            raise Unsupported("arithmetic shifts")
        return f"tl.where({outside}, 0, {shifted}).to({DTYPES[dtype]}, bitcast=True)"
    if op == "not":
        return f"({given[0]} == 0)" if dtype == "bool" else f"(~{given[0]})"
    if op in ("max", "min"):
        return f"tl.{op}imum({given[0]}, {given[1]})"
    if op in ("select", "neg", "abs"):
        return _CALLS[op].format(*given)
    raise Unsupported(f"the operation {op} of {dtype}")


def converted(x: str, source: str, target: str) -> str:
    """A value in another dtype, as `core.casting.cast` defines it."""
    if source == target:
        return x
    floating = not is_integer(source) and source != "bool"
    if target == "bool":
        return f"({x} != 0)"
    if floating and is_integer(target):
        info = dtypes.iinfo(numpy_dtype(target))
        low, high = int(info.min), int(info.max)
        wide = f"{x}.to(tl.float32)" if dtypes.is_narrow_float(numpy_dtype(source)) else x
        above, below = f"({wide} >= {float(high + 1)!r})", f"({wide} < {float(low)!r})"
        inside = f"tl.where(({wide} != {wide}) | {above} | {below}, 0.0, {wide})"
        text = f"tl.where({above}, {high}, {inside}.to({DTYPES[target]}))"
        return f"tl.where({below}, {low}, {text}).to({DTYPES[target]})"
    if dtypes.is_narrow_float(numpy_dtype(target)) and source == "f64":
        x = f"{x}.to(tl.float32)"
    return f"{x}.to({DTYPES[target]})"


def helper_name(combiner: str, names: list[str]) -> str:
    """The name of the function that combines two states of these dtypes."""
    return f"combine_{combiner}_{'_'.join(names)}"


def helper(combiner: str, names: list[str]) -> str:
    """The function that combines two states of these dtypes."""
    body = COMBINERS[combiner].body
    known = {f"{side}{i}": dtype for side in "ab" for i, dtype in enumerate(names)}
    parameters = [f"{side}{i}" for side in "ab" for i in range(len(names))]
    results = ", ".join([_expression(part, known)[0] for part in body])
    head = f"def {helper_name(combiner, names)}({', '.join(parameters)}):"
    return f"@triton.jit\n{head}\n    return {results}\n"


def _expression(expression: Expression, known: dict[str, str]) -> tuple[str, str]:
    if isinstance(expression, str):
        return expression, known[expression]
    op, *operands = expression
    parts = [_expression(operand, known) for operand in operands]
    dtype = parts[-1][1]
    comparison = op in ("eq", "ne", "lt", "le", "gt", "ge")
    result = "bool" if comparison else dtype
    return operation(op, [text for text, _ in parts], dtype, result), result
