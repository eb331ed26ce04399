"""What of a kernel of rows is worth keeping, and which elements of a row count for nothing."""

from __future__ import annotations

from math import inf

from fxarray.kernel import sizes
from fxarray.kernel.ir import Const, Contract, Iota, Kernel, Op, Reduce, Store, arguments

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


def bound(
    kernel: Kernel, firsts: set[int], nodes: list[int], along: str, rows: _Axes
) -> int | None:
    """The number d such that elements s > r + d of row r count for nothing.

    So it is if all that is made of the first products is `select(r + d >= s, z, -inf)`, if that is
    only reduced to its maximum and, less a value of the row, made into exp, and if exp in turn is
    only summed, or multiplied by values of the row and then by a matrix.
    """
    if len(rows) != 1:
        return None
    (row,) = rows
    users: dict[int, list[int]] = {}
    for i in nodes:
        for x in arguments(kernel.body[i]):
            users.setdefault(x, []).append(i)
    masked: set[int] = set()
    distance: int | None = None
    wanted = [(first, user) for first in sorted(firsts) for user in users.get(first, [])]
    while wanted:
        value, user = wanted.pop()
        node = kernel.body[user]
        if not isinstance(node, Op) or node.op not in ("mul", "add", "sub", "div", "select", "neg"):
            return None
        if node.op != "select":
            wanted.extend((user, after) for after in users.get(user, []))
            continue
        condition, yes, no = node.args
        other = kernel.body[no]
        this = _reach(kernel, condition, along, row)
        if yes != value or this is None or not isinstance(other, Const) or other.value != -inf:
            return None
        if distance is not None and distance != this:
            return None
        distance = this
        masked.add(user)
    for value in masked:
        if not all(_neutral(kernel, value, user, users, along) for user in users.get(value, [])):
            return None
    return distance


def _reach(kernel: Kernel, condition: int, along: str, row: str) -> int | None:
    """d >= 0, if a condition is r + d >= s for the axis r of rows and the elements s of a row."""
    node = kernel.body[condition]
    if not isinstance(node, Op) or node.op not in ("ge", "gt", "le", "lt"):
        return None
    left, right = [kernel.body[x] for x in node.args]
    if node.op in ("le", "lt"):
        left, right = right, left
    if not isinstance(left, Iota) or not isinstance(right, Iota):
        return None
    if right.index.terms != ((along, 1),) or left.index.terms != ((row, 1),):
        return None
    offset = sizes.subtract(left.index.constant, right.index.constant)
    if not isinstance(offset, int):
        return None
    distance = offset - (node.op in ("gt", "lt"))
    return distance if distance >= 0 else None


def _neutral(
    kernel: Kernel, value: int, user: int, users: dict[int, list[int]], along: str
) -> bool:
    """Whether -inf at an element changes nothing by way of a user of it."""
    node = kernel.body[user]
    if isinstance(node, Reduce):
        return node.combiner == "max"
    if not isinstance(node, Op) or node.op != "sub" or node.args[0] != value:
        return False
    if along in kernel.value_axes[node.args[1]]:
        return False
    exponentials = users.get(user, [])
    return all(
        isinstance(exp := kernel.body[e], Op)
        and exp.op == "exp"
        and all(_vanishes(kernel, e, after, users, along) for after in users.get(e, []))
        for e in exponentials
    )


def _vanishes(
    kernel: Kernel, value: int, user: int, users: dict[int, list[int]], along: str
) -> bool:
    """Whether zero at an element changes nothing by way of a user of it."""
    node = kernel.body[user]
    if isinstance(node, Reduce):
        return node.combiner == "sum"
    if isinstance(node, Contract | Store):
        return True
    if not isinstance(node, Op) or node.op not in ("mul", "div", "convert"):
        return False
    if node.op == "div" and node.args[1] == value:
        return False
    # What stands beside it is one for the row, or an element that is finite in any case is not
    # known to be: only values of the row.
    beside = [x for x in node.args if x != value]
    if any(along in kernel.value_axes[x] for x in beside):
        return False
    return all(_vanishes(kernel, user, after, users, along) for after in users.get(user, []))
