"""Fills the table through which the methods of Array find their functions."""

from __future__ import annotations

import sys
from typing import Any

from fxarray.core import dtypes
from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError, ShapeError
from fxarray.core.hooks import operators
from fxarray.devices.placement import device_put
from fxarray.numpy import (
    arithmetic,
    averages,
    conversion,
    cumulative,
    elementary,
    joining,
    linear_algebra,
    reductions,
    rounding,
    selection,
    shapes,
    sorting,
    taking,
)
from fxarray.numpy.promotion import DTypeLike
from fxarray.primitives import convert
from fxarray.primitives.movement import reshape


def _view(x: Array, dtype: DTypeLike = None) -> Array:
    """The same bits as another dtype; where widths differ, the last axis grows or shrinks."""
    target = dtypes.float32 if dtype is None else dtypes.canonical(dtype)
    own = x.type.dtype
    if target == own:
        return x
    if dtypes.is_bool(own):
        return _view(convert.convert(x, dtypes.uint8), target)
    if dtypes.is_bool(target):
        bits = _view(x, dtypes.uint8)
        return convert.convert(bits, dtypes.bool_)
    old, new = dtypes.bit_width(own), dtypes.bit_width(target)
    if old == new:
        return convert.BitcastConvertType(target)(x)
    if not x.ndim:
        raise ShapeError(f"view: a scalar, {x.type}, cannot be read as {dtypes.name(target)}")
    if old > new:
        parts = convert.BitcastConvertType(target)(x)
        return reshape(parts, (*x.shape[:-1], x.shape[-1] * (old // new)))
    factor = new // old
    if x.shape[-1] % factor:
        raise ShapeError(
            f"view: the last axis of {x.type} must be a multiple of {factor} to be read as "
            f"{dtypes.name(target)}"
        )
    grouped = reshape(x, (*x.shape[:-1], x.shape[-1] // factor, factor))
    return convert.BitcastConvertType(target)(grouped)


_STANDARDS = ("2021.12", "2022.12", "2023.12", "2024.12")


def _array_namespace(_: Array, api_version: str | None) -> Any:
    if api_version not in (None, *_STANDARDS):
        raise ArgumentError(
            f"__array_namespace__: version {api_version!r} of the array API standard is not "
            f"supported; those that are: {', '.join(_STANDARDS)}"
        )
    return sys.modules["fxarray.numpy"]


def _to_device(x: Array, device: Any, *, stream: Any = None) -> Array:
    if stream is not None:
        raise ArgumentError("to_device: streams are not supported")
    return device_put(x, device)


operators.fill(
    methods={
        "argpartition": sorting.argpartition,
        "argsort": sorting.argsort,
        "sort": sorting.sort,
        "searchsorted": sorting.searchsorted,
        "nonzero": selection.nonzero,
        "choose": selection.choose,
        "compress": selection.compress,
        **{
            name: getattr(reductions, name)
            for name in (*("all", "any", "sum", "prod", "max", "min", "ptp", "argmax", "argmin"),)
        },
        "mean": averages.mean,
        "var": averages.var,
        "std": averages.std,
        "cumsum": cumulative.cumsum,
        "cumprod": cumulative.cumprod,
        "reshape": shapes.reshape,
        "ravel": shapes.ravel,
        "squeeze": shapes.squeeze,
        "transpose": shapes.transpose,
        "swapaxes": shapes.swapaxes,
        "matrix_transpose": linear_algebra.matrix_transpose,
        "repeat": joining.repeat,
        "take": taking.take,
        "diagonal": linear_algebra.diagonal,
        "trace": linear_algebra.trace,
        "dot": linear_algebra.dot,
        "clip": arithmetic.clip,
        "round": rounding.round,
        "astype": shapes.astype,
        "view": _view,
        "copy": conversion.copy,
        "to_device": _to_device,
        "array_namespace": _array_namespace,
        "conjugate": elementary.conjugate,
        "real": elementary.real,
        "imag": elementary.imag,
    },
)
