"""Greatest and least elements with their positions, where positions are met in ascending order.

Then a later element wins if it is better, and never by its index: half the comparisons of the
general combination.
"""

from __future__ import annotations

from collections.abc import Sequence

from fxarray.devices.cpu.emit.combine import identity
from fxarray.devices.cpu.emit.function import FunctionText
from fxarray.devices.cpu.emit.lanes import horizontal
from fxarray.devices.cpu.emit.scalars import apply, splat
from fxarray.devices.cpu.emit.types import Value, is_complex, is_float, is_signed, vector_type
from fxarray.kernel.ir import Iota, Kernel, Reduce


def counts_upwards(kernel: Kernel, node: Reduce) -> bool:
    """Whether a reduction is an extremum along one axis whose index is the position on it."""
    if node.combiner not in ("argmax", "argmin") or len(node.axes) != 1:
        return False
    if is_complex(kernel.dtypes[node.args[0]]):
        return False
    index = kernel.body[node.args[1]]
    if not isinstance(index, Iota) or len(index.index.terms) != 1:
        return False
    term, coefficient = index.index.terms[0]
    return term == node.axes[0] and isinstance(coefficient, int) and coefficient > 0


def later_extremum(
    f: FunctionText, combiner: str, old: Sequence[Value], new: Sequence[Value]
) -> list[Value]:
    """The states after later elements: NaN beats every number, and the first NaN stays."""
    a, b = old[0], new[0]
    type_, lanes = b.type, b.lanes
    truth = vector_type("i1", lanes)
    greater = combiner == "argmax"
    if is_float(b.dtype):
        # Unordered comparison: true where either is NaN.
        better = f.new(f"fcmp {'ugt' if greater else 'ult'} {type_} {b.operand}, {a.operand}")
        number = f.new(f"fcmp ord {type_} {a.operand}, {a.operand}")
        wins = f.new(f"and {truth} {better}, {number}")
    else:
        sign = "s" if is_signed(b.dtype) else "u"
        order = f"{sign}{'gt' if greater else 'lt'}"
        wins = f.new(f"icmp {order} {type_} {b.operand}, {a.operand}")
    return [
        Value(
            y.dtype,
            lanes,
            (f.new(f"select {truth} {wins}, {y.type} {y.operand}, {x.type} {x.operand}"),),
        )
        for x, y in zip(old, new, strict=True)
    ]


def extremum_across(
    f: FunctionText, combiner: str, vectors: Sequence[Sequence[Value]]
) -> list[Value]:
    """The extremum of all lanes of some vectors, and the least index at which it is."""
    name = "max" if combiner == "argmax" else "min"
    best = vectors[0][0]
    for value, _ in vectors[1:]:
        best = apply(f, name, [best, value], best.dtype)
    (extremum,) = horizontal(f, name, [best])
    wide = splat(f, extremum, best.lanes)
    # NaN, which beats all, is unequal to everything: then it is the places of NaN that count.
    missing = apply(f, "is_nan", [wide], "bool") if is_float(best.dtype) else None
    first: Value | None = None
    for value, index in vectors:
        here = apply(f, "eq", [value, wide], "bool")
        if missing is not None:
            nan = apply(f, "is_nan", [value], "bool")
            here = apply(f, "or", [here, apply(f, "and", [nan, missing], "bool")], "bool")
        last = identity(combiner, 1, index.dtype, index.lanes)
        place = apply(f, "select", [here, index, last], index.dtype)
        first = place if first is None else apply(f, "min", [first, place], index.dtype)
    assert first is not None
    return [extremum, *horizontal(f, "min", [first])]
