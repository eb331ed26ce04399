"""What of a kernel of rows is worth keeping, and which elements of a row count for nothing."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from fxarray.kernel import sizes
from fxarray.kernel.ir import Const, Contract, Iota, Kernel, Node, Op, Reduce, Store, arguments

# Operations that are not computed again where they were kept.
_COSTLY = frozenset(
    [
        *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "tanh", "logistic", "erf"),
        *("erfc", "sin", "cos", "pow", "div", "sqrt", "rsqrt"),
    ]
)
_Axes = frozenset[str]


def costly(kernel: Kernel, value: int, given: set[int]) -> bool:
    """Whether a value is worth keeping, when some values are known."""
    wanted, seen = [value], set[int]()
    while wanted:
        number = wanted.pop()
        node = kernel.body[number]
        if number in given or number in seen or isinstance(node, Contract | Reduce):
            continue
        if isinstance(node, Op) and node.op in _COSTLY:
            return True
        seen.add(number)
        wanted.extend(arguments(node))
    return False


# What an element is where the mask hides it: of no known value, minus infinity, or zero.
_ANY, _LOW, _ZERO = range(3)


@dataclass(frozen=True)
class Bounds:
    """Which elements s of row r count for something: r - before <= s <= r + after.

    None stands for no bound.
    """

    before: int | None = None
    after: int | None = None


def bounds(kernel: Kernel, firsts: set[int], nodes: list[int], along: str, rows: _Axes) -> Bounds:
    """The elements of rows that count, by a mask that is a comparison of positions.

    Each value is looked at where the mask hides it. `select(mask, z, -inf)` is minus infinity
    there, less a value of a row or a column too, and exp of that is zero, as are products with it.
    If what is reduced to a maximum is minus infinity there, and what is summed, multiplied by a
    matrix or stored is zero, these elements need not be looked at. Zero times what another product
    gave, or a value of a row or a column, is zero here, also where that is not finite, as zero
    times an element of the matrix is.
    """
    if len(rows) != 1:
        return Bounds()
    (row,) = rows
    masks = {
        node.args[0]
        for i in nodes
        if isinstance(node := kernel.body[i], Op) and node.op == "select"
    }
    found = {reach for i in masks if (reach := _reach(kernel, i, along, row)) is not None}
    for one in sorted(found, key=lambda b: (b.before is None, b.before or 0, b.after or 0)):
        hidden = {i for i in masks if _reach(kernel, i, along, row) == one}
        if _hides(kernel, firsts, nodes, along, row, hidden):
            return one
    return Bounds()


def _hides(
    kernel: Kernel, firsts: set[int], nodes: list[int], along: str, row: str, hidden: set[int]
) -> bool:
    """Whether what some conditions exclude counts for nothing."""
    states: dict[int, int] = {}
    # Values of whole rows or whole columns.
    single = {i for i in nodes if not kernel.value_axes[i] >= {along, row}}
    # What zero is multiplied by without a thought of infinities.
    harmless: set[int] = {*firsts, *single}
    for i in sorted(nodes):
        node = kernel.body[i]
        states[i] = _state(node, hidden, states, single, harmless)
        if _is_harmless(kernel, i, states, single, harmless):
            harmless.add(i)
        match node:
            case Reduce(combiner, args, _):
                wanted = {"max": _LOW, "sum": _ZERO}.get(combiner, _ANY)
                if wanted == _ANY or any(states.get(x) != wanted for x in args):
                    return False
            case Contract(a, b, axes, _):
                if (
                    i not in firsts
                    and along in axes
                    and _ZERO not in (states.get(a), states.get(b))
                ):
                    return False
            case Store():
                if along in kernel.value_axes[i] and states.get(node.value) != _ZERO:
                    return False
            case _:
                pass
    return True


def _is_harmless(
    kernel: Kernel, value: int, states: dict[int, int], single: set[int], harmless: set[int]
) -> bool:
    """Whether zero times a value may be taken for zero."""
    node = kernel.body[value]
    if kernel.dtypes[value] == "bool":
        return True
    if not isinstance(node, Op):
        return False
    if node.op in ("add", "sub", "mul", "neg", "convert", "select"):
        return all(x in harmless or states.get(x) == _ZERO for x in node.args)
    return node.op == "div" and node.args[0] in harmless and node.args[1] in single


def _state(
    node: Node, hidden: set[int], states: dict[int, int], single: set[int], harmless: set[int]
) -> int:
    """What a value is where a mask hides it."""
    if isinstance(node, Const):
        return _ZERO if node.value == 0 else _LOW if node.value == -inf else _ANY
    if not isinstance(node, Op):
        return _ANY
    args = node.args
    known = [states.get(x, _ANY) for x in args]
    match node.op:
        case "and" if _ZERO in known:
            return _ZERO
        case "select" if args[0] in hidden or known[0] == _ZERO:
            return known[2]
        case "select":
            return known[1] if known[1] == known[2] else _ANY
        case "sub" if known[0] == _LOW and args[1] in single:
            return _LOW
        case "exp" if known[0] == _LOW:
            return _ZERO
        case "mul" if _ZERO in known:
            beside = args[1] if known[0] == _ZERO else args[0]
            return _ZERO if beside in harmless or _ZERO == known[0] == known[1] else _ANY
        case "div" if known[0] == _ZERO and args[1] in single:
            return _ZERO
        case "neg" | "convert" if known[0] == _ZERO:
            return _ZERO
        case "add" | "sub" if known == [_ZERO, _ZERO]:
            return _ZERO
        case _:
            return _ANY


def _reach(kernel: Kernel, condition: int, along: str, row: str) -> Bounds | None:
    """The bounds, if a condition compares the axis r of rows with the elements s of a row."""
    node = kernel.body[condition]
    if not isinstance(node, Op) or node.op not in ("ge", "gt", "le", "lt"):
        return None
    left, right = [kernel.body[x] for x in node.args]
    if node.op in ("le", "lt"):
        left, right = right, left
    if not isinstance(left, Iota) or not isinstance(right, Iota):
        return None
    offset = sizes.subtract(left.index.constant, right.index.constant)
    if not isinstance(offset, int):
        return None
    distance = offset - (node.op in ("gt", "lt"))
    if distance < 0:
        return None
    if left.index.terms == ((row, 1),) and right.index.terms == ((along, 1),):
        return Bounds(after=distance)
    if left.index.terms == ((along, 1),) and right.index.terms == ((row, 1),):
        return Bounds(before=distance)
    return None
