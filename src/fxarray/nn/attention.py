"""Scaled dot-product attention (Vaswani et al. 2017, arXiv:1706.03762)."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxarray import numpy as fnp
from fxarray.core import dims, dtypes
from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError, DTypeError, ShapeError
from fxarray.nn.functions import logsumexp, softmax
from fxarray.numpy.promotion import ArrayLike, as_operand, promote_dtypes

# What a masked score becomes: so low that its weight is 0 beside any other, yet finite, so that a
# row with nothing but masked scores has a mean instead of NaN.
_LOWEST = -0.7 * float(np.finfo(np.float32).max)


def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Any:
    """softmax(query key^T * scale + bias) value, for each head.

    B is the batch, T and S are the lengths of queries and of keys and values, N and K their numbers
    of heads (K divides N; each head of keys serves N / K heads of queries), H is the head's size.
    Scores and softmax are computed in float32 at least.

    Args:
      query: shape (B, T, N, H) or (T, N, H).
      key: shape (B, S, K, H) or (S, K, H).
      value: shape of `key`.
      bias: added to the scores; broadcasts to (B, N, T, S).
      mask: bools, whether a query may attend to a key; broadcasts to (B, N, T, S).
      scale: factor of the scores; default 1 / sqrt(H).
      is_causal: whether query t attends to keys 0 to t only.
      query_seq_lengths: shape (B,); queries from there on give zeros.
      key_value_seq_lengths: shape (B,); keys from there on are not attended to.
      local_window_size: how many keys before and behind its own place a query attends to.
      implementation: accepted for compatibility: None or "xla".
      return_residual: whether to return the logarithm of the softmax's denominator too.

    Returns:
      An array of the shape of `query`; with `return_residual` also one of shape (B, T, N).

    Raises:
      ShapeError: shapes do not fit.
      DTypeError: the mask is not bool.

    >>> from fxarray import nn
    >>> import fxarray.numpy as fnp
    >>> x = fnp.ones((1, 4, 2, 8))
    >>> nn.dot_product_attention(x, x, x, is_causal=True).shape
    (1, 4, 2, 8)
    """
    if implementation not in (None, "xla"):
        raise ArgumentError(
            f"dot_product_attention: implementation={implementation!r} is not available; there is "
            "one "
            f"implementation, and the compiler recognises it"
        )
    q, k, v = promote_dtypes("dot_product_attention", query, key, value, inexact=True)
    unbatched = q.ndim == 3
    if unbatched:
        q, k, v = q[None], k[None] if k.ndim == 3 else k, v[None] if v.ndim == 3 else v
    _check_shapes(q, k, v)
    batch, queries, heads, size = q.shape
    keys, groups = k.shape[1], k.shape[2]
    dtype = q.type.dtype
    wide = dtypes.promote([dtype, dtypes.float32], [False, False])[0]
    factor = float(size.__index__()) ** -0.5 if scale is None else scale
    # Heads of queries that share a head of keys are a dimension of their own.
    grouped = fnp.reshape(q, (batch, queries, groups, heads // groups, size))
    scores = fnp.einsum("btkgh,bskh->bkgts", grouped, k, preferred_element_type=wide)
    scores = fnp.reshape(scores, (batch, heads, queries, keys)) * fnp.asarray(factor, dtype=wide)
    if bias is not None:
        scores = scores + as_operand("dot_product_attention", bias, 3).astype(wide)
    allowed = _allowed(
        (queries, keys),
        mask,
        is_causal,
        query_seq_lengths,
        key_value_seq_lengths,
        local_window_size,
    )
    if allowed is not None:
        scores = fnp.where(allowed, scores, fnp.asarray(_LOWEST, dtype=wide))
    weights = softmax(scores, axis=-1).astype(dtype)
    weights = fnp.reshape(weights, (batch, groups, heads // groups, queries, keys))
    result = fnp.einsum("bkgts,bskh->btkgh", weights, v)
    result = fnp.reshape(result, (batch, queries, heads, v.shape[-1]))
    if query_seq_lengths is not None:
        lengths = fnp.reshape(fnp.asarray(query_seq_lengths), (-1, 1, 1, 1))
        present = fnp.reshape(fnp.arange(queries), (1, queries, 1, 1)) < lengths
        result = fnp.where(present, result, fnp.asarray(0, dtype=dtype))
    if unbatched:
        result = result[0]
    if not return_residual:
        return result
    residual = fnp.swapaxes(logsumexp(scores, axis=-1), 1, 2).astype(dtype)
    return result, residual[0] if unbatched else residual


def _check_shapes(q: Array, k: Array, v: Array) -> None:
    if q.ndim != 4 or k.ndim != 4 or v.ndim != 4:
        raise ShapeError(
            "dot_product_attention: query, key and value must have 3 or 4 dimensions, got "
            f"{q.type}, "
            f"{k.type} and {v.type}"
        )
    fits = (
        all(map(dims.same, k.shape[:3], v.shape[:3]))
        and dims.same(q.shape[0], k.shape[0])
        and dims.same(q.shape[3], k.shape[3])
        and dims.same(q.shape[2] % k.shape[2], 0)
    )
    if not fits:
        raise ShapeError(
            "dot_product_attention: query (B, T, N, H), key and value (B, S, K, H) do not fit, "
            "where K "
            f"must divide N: {q.type}, {k.type}, {v.type}"
        )


def _allowed(
    lengths: tuple[Any, Any],
    mask: Any,
    is_causal: bool,
    query_lengths: Any,
    key_lengths: Any,
    window: int | tuple[int, int] | None,
) -> Array | None:
    """Which query may attend to which key, in a shape that broadcasts to (B, N, T, S)."""
    queries, keys = lengths
    parts: list[Array] = []
    if mask is not None:
        given = as_operand("dot_product_attention", mask, 4)
        if not dtypes.is_bool(given.type.dtype):
            raise DTypeError(
                f"dot_product_attention: the mask must be bool, got {given.type}; pass numbers to "
                "be "
                f"added as bias"
            )
        parts.append(given)
    row = fnp.reshape(fnp.arange(queries), (1, 1, queries, 1))
    column = fnp.reshape(fnp.arange(keys), (1, 1, 1, keys))
    if is_causal:
        parts.append(row >= column)
    if window is not None:
        before, behind = (window, window) if isinstance(window, int) else window
        parts.append((column >= row - before) & (column <= row + behind))
    for counted, places in ((query_lengths, row), (key_lengths, column)):
        if counted is not None:
            limit = fnp.reshape(fnp.asarray(counted), (-1, 1, 1, 1))
            parts.append(places < limit)
    result: Array | None = None
    for part in parts:
        result = part if result is None else fnp.logical_and(result, part)
    return result
