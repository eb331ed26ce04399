"""Contraction of two arrays by labelled dimensions: what matmul, tensordot and einsum come to."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from fxarray.core import dims
from fxarray.core.array import Array
from fxarray.core.errors import ShapeError
from fxarray.lax.contract import as_precision, as_result_dtype
from fxarray.primitives.contract import DotGeneral
from fxarray.primitives.movement import reshape, transpose
from fxarray.primitives.reduce import reduce_sum

Label = Hashable


def contract(
    function: str,
    x: Array,
    x_labels: Sequence[Label],
    y: Array,
    y_labels: Sequence[Label],
    out_labels: Sequence[Label],
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """The sum over all labels that are not in `out_labels` of the products of elements.

    Each label stands once in an operand. A dimension of size 1 goes with any size of its label.

    Args:
      function: the caller, for messages.
      x: the first operand.
      x_labels: a label for each of its dimensions.
      y: the second operand, of the same dtype.
      y_labels: a label for each of its dimensions.
      out_labels: the labels of the result's dimensions, each of which an operand has.
      precision: how exactly to multiply, where a device offers a choice.
      preferred_element_type: the dtype of sums and result.
    """
    x_sizes = dict(zip(x_labels, x.type.shape, strict=True))
    y_sizes = dict(zip(y_labels, y.type.shape, strict=True))
    x_dropped: list[Label] = []
    y_dropped: list[Label] = []
    for label in x_labels:
        if label not in y_sizes or dims.same(x_sizes[label], y_sizes[label]):
            continue
        if dims.same(x_sizes[label], 1):
            x_dropped.append(label)
        elif dims.same(y_sizes[label], 1):
            y_dropped.append(label)
        else:
            raise ShapeError(
                f"{function}: sizes {x_sizes[label]} and {y_sizes[label]} of dimension "
                f"{list(x_labels).index(label)} of operand 0 ({x.type}) and dimension "
                f"{list(y_labels).index(label)} of operand 1 ({y.type}) must be equal"
            )
    x, x_labels = _without(x, x_labels, x_dropped)
    y, y_labels = _without(y, y_labels, y_dropped)
    x, x_labels = _sum_lone(x, x_labels, y_labels, out_labels)
    y, y_labels = _sum_lone(y, y_labels, x_labels, out_labels)
    batch = [label for label in out_labels if label in x_labels and label in y_labels]
    summed = [label for label in x_labels if label in y_labels and label not in out_labels]
    op = DotGeneral(
        (_positions(summed, x_labels), _positions(summed, y_labels)),
        (_positions(batch, x_labels), _positions(batch, y_labels)),
        as_result_dtype(function, preferred_element_type),
        as_precision(function, precision),
    )
    made = [
        *batch,
        *[label for label in x_labels if label not in y_labels],
        *[label for label in y_labels if label not in x_labels],
    ]
    return transpose(op(x, y), _positions(out_labels, made))


def _positions(labels: Sequence[Label], among: Sequence[Label]) -> tuple[int, ...]:
    found = list(among)
    return tuple([found.index(label) for label in labels])


def _without(
    x: Array, labels: Sequence[Label], dropped: Sequence[Label]
) -> tuple[Array, Sequence[Label]]:
    """`x` without dimensions of size 1."""
    if not dropped:
        return x, labels
    kept = [i for i, label in enumerate(labels) if label not in dropped]
    return reshape(x, [x.type.shape[i] for i in kept]), [labels[i] for i in kept]


def _sum_lone(
    x: Array, labels: Sequence[Label], others: Sequence[Label], out: Sequence[Label]
) -> tuple[Array, Sequence[Label]]:
    """`x` summed over the labels that stand nowhere else."""
    lone = [i for i, label in enumerate(labels) if label not in others and label not in out]
    if not lone:
        return x, labels
    kept = [label for i, label in enumerate(labels) if i not in lone]
    return reduce_sum(x, lone), kept
