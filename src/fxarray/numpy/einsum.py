"""Sums of products by Einstein's notation."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import opt_einsum

from fxarray.core import dims
from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError, ShapeError
from fxarray.lax.contract import as_result_dtype
from fxarray.numpy.contraction import contract
from fxarray.numpy.conversion import cast_to, place
from fxarray.numpy.linear_algebra import diagonal
from fxarray.numpy.promotion import DTypeLike, promote_dtypes, reject_out
from fxarray.primitives.movement import transpose
from fxarray.primitives.reduce import reduce_sum

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _interleaved(arguments: Sequence[Any]) -> tuple[str, list[Any]]:
    """The form `einsum(x, [0, 1], y, [1, 2], [0, 2])` as subscripts and operands."""
    arguments = list(arguments)
    output = arguments.pop() if len(arguments) % 2 else None
    operands, lists = arguments[::2], arguments[1::2]

    def written(labels: Any) -> str:
        return "".join("..." if label is Ellipsis else _LETTERS[label] for label in labels)

    text = ",".join(map(written, lists))
    return (text if output is None else f"{text}->{written(output)}"), operands


@functools.lru_cache(maxsize=1024)
def parse(
    subscripts: str, ranks: tuple[int, ...]
) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    """The labels of every operand's dimensions, and of the result's.

    Dimensions under an ellipsis get labels of their own, counted from the last.

    Raises:
      ArgumentError: the subscripts do not fit the operands.
    """
    text = subscripts.replace(" ", "")
    inputs, arrow, output = text.partition("->")
    parts = inputs.split(",")
    if len(parts) != len(ranks):
        raise ArgumentError(
            f"einsum: {subscripts!r} names {len(parts)} operands, but there are {len(ranks)}"
        )
    listed: list[list[str]] = []
    longest = 0
    for position, (part, rank) in enumerate(zip(parts, ranks, strict=True)):
        before, dots, after = part.partition("...")
        if not all(c.isalpha() for c in before + after):
            raise ArgumentError(
                f"einsum: {part!r} in {subscripts!r} has characters other than letters"
            )
        hidden = rank - len(before) - len(after)
        if hidden < 0 or (hidden and not dots):
            raise ArgumentError(
                f"einsum: {part!r} names {len(before) + len(after)} dimensions of operand "
                f"{position}, "
                f"which has {rank}"
            )
        longest = max(longest, hidden)
        listed.append([*before, *[f"...{i}" for i in range(hidden, 0, -1)], *after])
    ellipsis = [f"...{i}" for i in range(longest, 0, -1)]
    everything = [label for labels in listed for label in labels]
    if arrow:
        before, dots, after = output.partition("...")
        result = [*before, *(ellipsis if dots else []), *after]
        if not dots and ellipsis:
            raise ArgumentError(f"einsum: the result of {subscripts!r} must have the ellipsis too")
    else:
        once = sorted(
            {label for label in everything if everything.count(label) == 1} - set(ellipsis)
        )
        result = [*ellipsis, *[label for label in once if not label.startswith("...")]]
    for label in result:
        if result.count(label) > 1:
            raise ArgumentError(f"einsum: {label!r} stands twice in the result of {subscripts!r}")
        if label not in everything:
            raise ArgumentError(
                f"einsum: {label!r} in the result of {subscripts!r} is in no operand"
            )
    return tuple(map(tuple, listed)), tuple(result)


def _diagonals(x: Array, labels: list[str]) -> tuple[Array, list[str]]:
    """`x` with every label once: where one stands twice, the diagonal is taken."""
    while len(set(labels)) < len(labels):
        label = next(each for each in labels if labels.count(each) > 1)
        first = labels.index(label)
        second = labels.index(label, first + 1)
        if not dims.same(x.shape[first], x.shape[second]):
            raise ShapeError(
                f"einsum: label {label!r} stands for sizes {x.shape[first]} and {x.shape[second]} "
                "of "
                f"one operand, {x.type}"
            )
        x = diagonal(x, 0, first, second)
        labels = [each for i, each in enumerate(labels) if i not in (first, second)] + [label]
    return x, labels


def _order(
    listed: list[list[str]], operands: Sequence[Array], result: list[str], optimize: Any
) -> list[tuple[int, ...]]:
    """Which operands to contract, step by step; results go to the end of the list."""
    if isinstance(optimize, list | tuple):
        path = [tuple(step) for step in optimize if not isinstance(step, str)]
        return [step for step in path if isinstance(step, tuple)]
    count = len(operands)
    if count <= 2 or optimize is False:
        # From left to right: the running result is always the last in the list.
        return [(0, 1), *[(0, left) for left in range(count - 2, 0, -1)]] if count > 1 else []
    names: dict[str, str] = {}
    for label in (label for labels in listed for label in labels):
        names.setdefault(label, opt_einsum.get_symbol(len(names)))
    text = ",".join("".join(names[label] for label in labels) for labels in listed)
    text += "->" + "".join(names[label] for label in result)
    # Symbolic sizes are taken to be large.
    shapes = [tuple([s if type(s) is int else 1024 for s in x.shape]) for x in operands]
    kind = "auto" if optimize in (True, "auto") else optimize
    path, _ = opt_einsum.contract_path(text, *shapes, shapes=True, optimize=kind)
    return list(path)  # type: ignore[arg-type]


def _alone(x: Array, labels: list[str], result: list[str]) -> Array:
    """One operand summed over what the result lacks, in the result's order."""
    gone = [i for i, label in enumerate(labels) if label not in result]
    x = reduce_sum(x, gone)
    kept = [label for label in labels if label in result]
    return transpose(x, [kept.index(label) for label in result])


def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    out: None = None,
    optimize: Any = "auto",
    precision: Any = None,
    preferred_element_type: DTypeLike = None,
    out_sharding: Any = None,
) -> Array:
    """The sum of products that Einstein's notation describes.

    Every dimension has a letter; equal letters go together, and letters that the result lacks are
    summed over. `...` stands for any leading dimensions, which broadcast.

    Args:
      subscripts: such as "ij,jk->ik"; without an arrow, letters that stand once make the result, in
        alphabetical order. Or the first array of the form `einsum(x, [0, 1], y, [1, 2], [0, 2])`.
      operands: arrays.
      out: not supported.
      optimize: how to find the order of contractions: True, False, a name that opt_einsum knows, or
        a path.
      precision: how exactly to multiply, where a device offers a choice.
      preferred_element_type: the dtype of sums and result.
      out_sharding: how to split the result over a mesh.

    Raises:
      ArgumentError: the subscripts do not fit the operands.
      ShapeError: a letter stands for different sizes.

    >>> import fxarray.numpy as fnp
    >>> fnp.einsum("ij,j->i", fnp.array([[1, 2], [3, 4]]), fnp.array([1, 10]))
    Array([21, 43], dtype=int32)
    """
    reject_out("einsum", out)
    if isinstance(subscripts, str):
        given = list(operands)
    else:
        subscripts, given = _interleaved((subscripts, *operands))
    if not given:
        raise ArgumentError("einsum needs at least one operand")
    arrays = promote_dtypes("einsum", *given)
    labels_of_each, result_labels = parse(subscripts, tuple([x.ndim for x in arrays]))
    listed, result = [list(labels) for labels in labels_of_each], list(result_labels)
    for position, labels in enumerate(listed):
        arrays[position], listed[position] = _diagonals(arrays[position], labels)
    _check_sizes(subscripts, arrays, listed)
    preferred = as_result_dtype("einsum", preferred_element_type)
    for step in _order(listed, arrays, result, optimize):
        taken = [(arrays[i], listed[i]) for i in step]
        for i in sorted(step, reverse=True):
            del arrays[i], listed[i]
        (x, labels), *others = taken
        for other, other_labels in others:
            wanted = {*result, *[label for rest in listed for label in rest]}
            wanted |= {label for _, rest in others for label in rest} if len(others) > 1 else set()
            kept = [label for label in dict.fromkeys([*labels, *other_labels]) if label in wanted]
            if not arrays and len(others) == 1:
                kept = result
            x = contract("einsum", x, labels, other, other_labels, kept, precision, preferred)
            labels = kept
        arrays.append(x)
        listed.append(labels)
    answer = _alone(arrays[0], listed[0], result)
    if preferred is not None:
        answer = cast_to(answer, preferred)
    return place("einsum", answer, None, out_sharding)


def _check_sizes(subscripts: str, arrays: Sequence[Array], listed: Sequence[list[str]]) -> None:
    known: dict[str, tuple[Any, int]] = {}
    for position, (x, labels) in enumerate(zip(arrays, listed, strict=True)):
        for label, size in zip(labels, x.shape, strict=True):
            if dims.same(size, 1):
                continue
            before, owner = known.setdefault(label, (size, position))
            if not dims.same(before, size):
                raise ShapeError(
                    f"einsum: in {subscripts!r}, {label!r} has size {before} in operand {owner} "
                    f"({arrays[owner].type}), but {size} in operand {position} ({x.type})"
                )


def einsum_path(subscripts: Any, /, *operands: Any, optimize: Any = "auto") -> Any:
    """The order of contractions that `einsum` takes, and a text about its cost.

    Returns:
      A list of pairs of operand numbers, and opt_einsum's description.
    """
    if not isinstance(subscripts, str):
        subscripts, given = _interleaved((subscripts, *operands))
    else:
        given = list(operands)
    shapes = [getattr(x, "shape", ()) for x in given]
    kind = "auto" if optimize is True else optimize
    return opt_einsum.contract_path(subscripts, *shapes, shapes=True, optimize=kind)
