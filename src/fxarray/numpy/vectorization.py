"""Functions of single elements, or of small arrays, made to work on arrays of them."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from fxarray.core import dims
from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError, ShapeError
from fxarray.core.types import Shape
from fxarray.numpy.promotion import as_operand, common_shape
from fxarray.primitives.movement import reshape
from fxarray.transforms.vmap import vmap

_DIMENSIONS = r"\((?:\w+(?:,\w+)*)?\)"
_SIGNATURE = re.compile(rf"{_DIMENSIONS}(?:,{_DIMENSIONS})*->{_DIMENSIONS}(?:,{_DIMENSIONS})*")


def _parse(signature: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """The names of the core dimensions of each input and output of "(m,n),(n)->(m)"."""
    text = signature.replace(" ", "")
    if not _SIGNATURE.fullmatch(text):
        raise ArgumentError(f"vectorize: {signature!r} is not a signature such as '(m,n),(n)->(m)'")
    left, right = text.split("->")

    def names(part: str) -> list[tuple[str, ...]]:
        groups = re.findall(r"\(([^)]*)\)", part)
        return [tuple(group.split(",")) if group else () for group in groups]

    return names(left), names(right)


def vectorize(
    pyfunc: Callable[..., Any],
    *,
    excluded: Collection[int | str] = frozenset(),
    signature: str | None = None,
) -> Callable[..., Any]:
    """A function that applies `pyfunc` over all leading dimensions of its arguments.

    Args:
      pyfunc: works on single elements, or on arrays of the core dimensions in the signature.
      excluded: positions or names of arguments that are handed on as they are.
      signature: core dimensions of arguments and results, as in "(m,n),(n)->(m)".

    >>> import fxarray.numpy as fnp
    >>> product = fnp.vectorize(fnp.dot, signature="(n),(n)->()")
    >>> product(fnp.ones((4, 3)), fnp.ones(3)).shape
    (4,)
    """
    if any(not isinstance(each, str | int) for each in excluded):
        raise ArgumentError("vectorize: excluded takes positions and names of arguments")

    @functools.wraps(pyfunc)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        function, arguments = _without_excluded(pyfunc, args, kwargs, excluded)
        arrays = [as_operand("vectorize", a, i) for i, a in enumerate(arguments)]
        if signature is None:
            inputs: list[tuple[str, ...]] = [()] * len(arrays)
            outputs: list[tuple[str, ...]] | None = None
        else:
            inputs, outputs = _parse(signature)
            if len(inputs) != len(arrays):
                raise ArgumentError(
                    f"vectorize: signature {signature!r} has {len(inputs)} inputs, got "
                    f"{len(arrays)} "
                    f"arguments"
                )
        leads, sizes = _core_sizes(arrays, inputs)
        shape = common_shape("vectorize", leads)
        checked = _checked(function, sizes, outputs)
        return _mapped(checked, arrays, leads, shape)

    return wrapper


def _without_excluded(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    excluded: Collection[int | str],
) -> tuple[Callable[..., Any], list[Any]]:
    """The function of the arguments that are not excluded, and those arguments."""
    fixed = {i: a for i, a in enumerate(args) if i in excluded}
    names = [name for name in kwargs if name not in excluded]
    fixed_names = {name: value for name, value in kwargs.items() if name in excluded}
    count = len(args)

    def remaining(*given: Any) -> Any:
        values = iter(given)
        positional = [fixed[i] if i in fixed else next(values) for i in range(count)]
        return function(*positional, **dict(zip(names, values, strict=True)), **fixed_names)

    return remaining, [a for i, a in enumerate(args) if i not in fixed] + [kwargs[n] for n in names]


def _core_sizes(
    arrays: Sequence[Array], inputs: Sequence[tuple[str, ...]]
) -> tuple[list[Shape], dict[str, Any]]:
    sizes: dict[str, Any] = {}
    leads: list[Shape] = []
    for position, (x, names) in enumerate(zip(arrays, inputs, strict=True)):
        if x.ndim < len(names):
            raise ShapeError(
                f"vectorize: argument {position}, {x.type}, must have core dimensions {names}"
            )
        split = x.ndim - len(names)
        leads.append(x.shape[:split])
        for name, size in zip(names, x.shape[split:], strict=True):
            if not dims.same(sizes.setdefault(name, size), size):
                raise ShapeError(
                    f"vectorize: core dimension {name!r} has size {size} in argument {position}, "
                    "but "
                    f"{sizes[name]} before"
                )
    return leads, sizes


def _checked(
    function: Callable[..., Any], sizes: dict[str, Any], outputs: list[tuple[str, ...]] | None
) -> Callable[..., Any]:
    """The function, with the shapes of its results compared with the signature."""

    def checked(*args: Any) -> Any:
        result = function(*args)
        if outputs is None:
            return result
        results = result if isinstance(result, tuple) else (result,)
        if len(results) != len(outputs):
            raise ArgumentError(
                f"vectorize: the signature has {len(outputs)} results, the function gave "
                f"{len(results)}"
            )
        known = dict(sizes)
        for x, names in zip(results, outputs, strict=True):
            shape = as_operand("vectorize", x).shape
            if len(shape) != len(names) or not all(
                dims.same(known.setdefault(name, size), size)
                for name, size in zip(names, shape, strict=True)
            ):
                raise ShapeError(
                    f"vectorize: a result has shape {shape}, but core dimensions {names} were "
                    "expected"
                )
        return result

    return checked


def _mapped(
    function: Callable[..., Any],
    arrays: Sequence[Array],
    leads: Sequence[Shape],
    shape: Shape,
) -> Any:
    """The function mapped over leading dimensions; size-1 ones are not mapped but handed on."""
    rank = len(shape)
    squeezed: list[Array] = []
    axes_by_level: list[list[int | None]] = [[None] * len(arrays) for _ in range(rank)]
    for position, (x, lead) in enumerate(zip(arrays, leads, strict=True)):
        full = (1,) * (rank - len(lead)) + tuple(lead)
        mapped = [not dims.same(size, 1) or dims.same(shape[i], 1) for i, size in enumerate(full)]
        core = x.shape[len(lead) :]
        squeezed.append(
            reshape(x, [s for s, m in zip(full, mapped, strict=True) if m] + list(core))
        )
        for level in range(rank):
            axes_by_level[level][position] = 0 if mapped[level] else None
    for level in reversed(range(rank)):
        axes = axes_by_level[level]
        if all(axis is None for axis in axes):
            raise ShapeError("vectorize: no argument has the leading dimensions of the result")
        function = vmap(function, in_axes=tuple(axes))
    return function(*squeezed)
