"""Kernels of rows: products whose results are reduced along their rows, used again, and multiplied
once more. Attention is one, and so is the part of its gradient that has this form:

    z = q k';  p = exp(z - max z);  y = (p / sum p) v

Rows belong to the first operand of the first products, and whole rows of a few positions stay in
the cache, so any expression may stand between the products, with any reductions along the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from fxarray.devices.cpu.contraction.recognise import Group, Run, collapse
from fxarray.devices.cpu.contraction.rows_bound import Bounds, bounds
from fxarray.kernel import sizes
from fxarray.kernel.combiners import COMBINERS
from fxarray.kernel.ir import (
    Contract,
    Kernel,
    Op,
    Part,
    Reduce,
    Scan,
    Store,
    arguments,
)
from fxarray.kernel.rewrite import needed

_Axes = frozenset[str]


@dataclass(frozen=True)
class First:
    """A product whose results are elements of rows.

    Args:
      number: of its Contract.
      a: the operand with the rows.
      b: the operand with the elements of a row.
      depth: the axes of its sum.
    """

    number: int
    a: int
    b: int
    depth: Group


@dataclass(frozen=True)
class Second:
    """A product of rows with a matrix.

    Args:
      number: of its Contract.
      row: the value that is multiplied, an element of a row.
      kept: what is multiplied instead, if `row` is that times or over a value of the whole row.
      matrix: the other operand.
    """

    number: int
    row: int
    kept: int | None
    matrix: int


@dataclass(frozen=True)
class Rows:
    """A kernel of rows.

    Args:
      kernel: the kernel.
      firsts: products along the rows.
      seconds: products of rows.
      batch: axes of both operands of the first products.
      rows: axes of the first operands alone.
      along: the axis along a row.
      columns: the axis of the results of the second products, or None.
      stages: the reductions, by what must be reduced before them.
      row_stores: stores of elements of rows.
      result_stores: stores of results of second products.
      single_stores: stores of one number for each row.
      bounds: which elements of a row count.
    """

    kernel: Kernel
    firsts: tuple[First, ...]
    seconds: tuple[Second, ...]
    batch: Group
    rows: Group
    along: str
    columns: str | None
    stages: tuple[tuple[int, ...], ...]
    row_stores: tuple[int, ...]
    result_stores: tuple[int, ...]
    single_stores: tuple[int, ...]
    bounds: Bounds


class _No(Exception):
    """The kernel is none of rows."""


def recognise_rows(kernel: Kernel) -> Rows | None:
    """The kernel as one of rows, or None."""
    try:
        return _Recognition(kernel).rows()
    except _No:
        return None


def _check(condition: bool) -> None:
    if not condition:
        raise _No


class _Recognition:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.body = kernel, kernel.body
        self.contracts = [i for i, n in enumerate(self.body) if isinstance(n, Contract)]
        self.reduces = [i for i, n in enumerate(self.body) if isinstance(n, Reduce)]
        self.below = {i: needed(kernel, [i]) - {i} for i in (*self.contracts, *self.reduces)}
        _check(not any(isinstance(n, Scan | Part) for n in self.body))

    def rows(self) -> Rows:
        kernel, body = self.kernel, self.body
        special = {*self.contracts, *self.reduces}
        firsts = [c for c in self.contracts if not self.below[c] & special]
        seconds = [c for c in self.contracts if c not in firsts]
        _check(bool(firsts) and bool(self.reduces or seconds))
        along = self._along(seconds)
        every = kernel.value_axes[firsts[0]]
        _check(along in every)
        found: list[First] = []
        batches: set[_Axes] = set()
        for c in firsts:
            node = body[c]
            assert isinstance(node, Contract)
            _check(kernel.value_axes[c] == every)
            a, b = node.a, node.b
            if along in kernel.value_axes[a]:
                a, b = b, a
            _check(along not in kernel.value_axes[a] and along in kernel.value_axes[b])
            batches.add((kernel.value_axes[a] & kernel.value_axes[b]) - set(node.axes))
            operands = needed(kernel, [a, b])
            depth = tuple([Run(x, kernel.sizes[x]) for x in sorted(node.axes)])
            found.append(First(c, a, b, collapse(kernel, depth, operands)))
            _check(kernel.value_axes[b] == frozenset({along, *node.axes}) | next(iter(batches)))
        _check(len(batches) == 1)
        (batch,) = batches
        row_axes = every - batch - {along}
        for r in self.reduces:
            node = body[r]
            assert isinstance(node, Reduce)
            _check(node.axes == (along,) and COMBINERS[node.combiner].states == 1)
            _check(kernel.value_axes[r] <= every - {along})
            _check(not self.below[r] & set(seconds))
        columns, others = self._seconds(seconds, batch, every, along)
        self._sizes(every, columns)
        stores = [i for i, n in enumerate(body) if isinstance(n, Store)]
        by_axes: dict[_Axes, list[int]] = {}
        for i in stores:
            store = body[i]
            assert isinstance(store, Store)
            _check(store.mode == "set")
            by_axes.setdefault(kernel.value_axes[i], []).append(i)
        result_axes = (every - {along}) | ({columns} if columns else set())
        single = every - {along}
        row_stores, results = by_axes.pop(every, []), by_axes.pop(result_axes, [])
        singles = by_axes.pop(single, []) if columns else results
        if not columns:
            results = []
        _check(not by_axes)
        for i in (*row_stores, *singles):
            _check(not needed(kernel, [i]) & set(seconds))
        levels = self._levels(set(firsts))
        stages: dict[int, list[int]] = {}
        for r in self.reduces:
            node = body[r]
            assert isinstance(node, Reduce)
            stages.setdefault(levels[node.args[0]], []).append(r)
        nodes = [i for i in range(len(body)) if i not in self._operand_nodes(found)]
        order = sorted(row_axes, key=self._stride)
        return Rows(
            kernel,
            tuple(found),
            others,
            self._group(sorted(batch, key=self._stride)),
            self._group(order),
            along,
            columns,
            tuple([tuple(stages[level]) for level in sorted(stages)]),
            tuple(row_stores),
            tuple(results),
            tuple(singles),
            bounds(kernel, set(firsts), nodes, along, row_axes),
        )

    def _group(self, axes: list[str]) -> Group:
        group = tuple([Run(x, self.kernel.sizes[x]) for x in axes])
        return collapse(self.kernel, group, range(len(self.body)))

    def _stride(self, axis: str) -> tuple[int, str]:
        """The outermost in the first store first."""
        store = next(n for n in self.body if isinstance(n, Store))
        coefficient = store.buffer.flat(store.index).coefficient(axis)
        return -abs(sizes.typical(coefficient)), axis

    def _along(self, seconds: list[int]) -> str:
        found: set[tuple[str, ...]] = set()
        for i in (*self.reduces, *seconds):
            node = self.body[i]
            assert isinstance(node, Reduce | Contract)
            found.add(node.axes)
        _check(len(found) == 1)
        (axes,) = found
        _check(len(axes) == 1)
        return axes[0]

    def _sizes(self, every: _Axes, columns: str | None) -> None:
        """All sizes but those of batches must be known."""
        named = [*every, *([columns] if columns else [])]
        _check(all(isinstance(self.kernel.sizes[x], int) and self.kernel.sizes[x] for x in named))

    def _seconds(
        self, seconds: list[int], batch: _Axes, every: _Axes, along: str
    ) -> tuple[str | None, tuple[Second, ...]]:
        kernel, body = self.kernel, self.body
        special = {*self.contracts, *self.reduces}
        found: list[Second] = []
        names: set[_Axes] = set()
        for c in seconds:
            node = body[c]
            assert isinstance(node, Contract)
            row, matrix = node.a, node.b
            if needed(kernel, [matrix]) & special:
                row, matrix = matrix, row
            _check(not needed(kernel, [matrix]) & special)
            _check(not needed(kernel, [row]) & set(seconds))
            _check(kernel.value_axes[row] <= every and along in kernel.value_axes[row])
            axes = kernel.value_axes[matrix]
            _check(along in axes and not axes & (every - batch - {along}))
            names.add(axes - batch - {along})
            found.append(Second(c, row, self._kept(row, along), matrix))
        if not seconds:
            return None, ()
        _check(len(names) == 1)
        (columns,) = names
        _check(len(columns) == 1)
        return next(iter(columns)), tuple(found)

    def _kept(self, row: int, along: str) -> int | None:
        """x, if the value is x times or over something that is one for the whole row."""
        node = self.body[row]
        if not isinstance(node, Op) or node.op not in ("mul", "div"):
            return None
        x, factor = node.args
        if node.op == "mul" and along not in self.kernel.value_axes[x]:
            x, factor = factor, x
        if along in self.kernel.value_axes[factor] or node.dtype not in ("f32", "f64"):
            return None
        return x

    def _levels(self, firsts: set[int]) -> dict[int, int]:
        """How many reductions one after the other each value needs."""
        levels: dict[int, int] = {}
        for i, node in enumerate(self.body):
            below = [levels[x] for x in arguments(node)]
            level = max(below, default=0)
            levels[i] = level + 1 if isinstance(node, Reduce) else level
            if i in firsts:
                levels[i] = 0
        return levels

    def _operand_nodes(self, firsts: list[First]) -> set[int]:
        return set().union(*[needed(self.kernel, [first.a, first.b]) for first in firsts])
