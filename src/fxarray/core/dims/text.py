"""Reading symbolic sizes and their comparisons from text, in the notation in which they print."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping

from fxarray.core.dims import build
from fxarray.core.dims.polynomial import Polynomial, Variable
from fxarray.core.errors import ArgumentError

COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_RELATIONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.LtE: "<=",
    ast.GtE: ">=",
    ast.Lt: "<",
    ast.Gt: ">",
}
_BINARY: dict[type[ast.operator], Callable[[Polynomial, Polynomial], Polynomial]] = {
    ast.Add: build.add,
    ast.Sub: build.subtract,
    ast.Mult: build.multiply,
    ast.FloorDiv: build.floordiv,
    ast.Mod: build.mod,
}


def unknown_variable(name: str) -> Variable:
    """The variable that stands for a name of which it is only known that it is a size."""
    return Variable(name, minimum=0)


def parse_polynomial(text: str, variables: Mapping[str, Variable]) -> Polynomial:
    """The size that `text` denotes; of names that are not in `variables` nothing is known.

    Raises:
      ArgumentError: the text is no such expression.
    """
    return _convert(_parsed(text), variables, text)


def parse_comparison(text: str) -> tuple[Polynomial, str, Polynomial]:
    """The two sides and the relation of a comparison such as `"batch % 2 == 0"`.

    Raises:
      ArgumentError: the text is no such comparison.
    """
    node = _parsed(text)
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        raise ArgumentError(
            f'{text!r} is not one comparison of sizes; write for instance "batch % 2 == 0" '
            'or "queries <= keys"'
        )
    relation = _RELATIONS.get(type(node.ops[0]))
    if relation is None:
        raise ArgumentError(f"{text!r} compares by something other than {', '.join(COMPARISONS)}")
    return (
        _convert(node.left, {}, text),
        relation,
        _convert(node.comparators[0], {}, text),
    )


def _parsed(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        raise ArgumentError(f"{text!r} is not an expression for a size") from None


def _convert(node: ast.expr, variables: Mapping[str, Variable], text: str) -> Polynomial:
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return Polynomial.constant(value)
        case ast.Name(id=name):
            return Polynomial.of(variables.get(name, unknown_variable(name)))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _convert(operand, variables, text).scale(-1)
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int(power))):
            base, result = _convert(left, variables, text), build.ONE
            for _ in range(power):
                result = build.multiply(result, base)
            return result
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            operands = (_convert(left, variables, text), _convert(right, variables, text))
            return _BINARY[type(op)](*operands)
        case ast.Call(
            func=ast.Name(id="floor"), args=[ast.BinOp(left=left, op=ast.Div(), right=right)]
        ):
            return build.floordiv(_convert(left, variables, text), _convert(right, variables, text))
        case ast.Call(func=ast.Name(id="mod"), args=[left, right]):
            return build.mod(_convert(left, variables, text), _convert(right, variables, text))
        case ast.Call(func=ast.Name(id="min" | "max" as kind), args=[_, *_] as operands):
            return build.apply(kind, tuple(_convert(each, variables, text) for each in operands))
        case _:
            raise ArgumentError(
                f"{ast.unparse(node)!r} in {text!r} is not part of a size; use names, integers, "
                "+ - * // % **, floor(a / b), mod, min and max"
            )
