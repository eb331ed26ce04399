"""What random programs are made of.

A word is an operation with random parameters. It says which operands it takes, draws its
parameters, and applies itself with the modules of either library. Values are *exact* while both
libraries must agree on every bit of them: only those are compared, sorted, rounded or indexed with,
so that a last-bit difference cannot become a whole one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

Parameters = dict[str, Any]


class Libraries(NamedTuple):
    """The modules of one library."""

    top: Any
    numpy: Any
    lax: Any
    nn: Any


class Fact(NamedTuple):
    """What is known of a value."""

    shape: tuple[int, ...]
    dtype: str
    exact: bool

    @property
    def is_float(self) -> bool:
        return self.dtype in ("float32", "float64", "bfloat16", "float16")

    @property
    def is_integer(self) -> bool:
        return self.dtype.startswith(("int", "uint"))

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))


@dataclass(frozen=True)
class Word:
    """An operation of random programs.

    Args:
      name: unique.
      arity: the number of operands.
      fits: whether it takes operands of which these are the facts.
      draw: its parameters, JSON values only.
      apply: from libraries, operands and parameters to a value.
      exact: whether the result is exact if all operands are.
      smooth: whether it has derivatives.
    """

    name: str
    arity: int
    fits: Callable[[Sequence[Fact]], bool]
    draw: Callable[[np.random.Generator, Sequence[Fact]], Parameters]
    apply: Callable[[Libraries, Sequence[Any], Parameters], Any]
    exact: bool = True
    smooth: bool = True


WORDS: dict[str, Word] = {}


def word(
    name: str,
    arity: int,
    apply: Callable[[Libraries, Sequence[Any], Parameters], Any],
    fits: Callable[[Sequence[Fact]], bool] = lambda facts: True,
    draw: Callable[[np.random.Generator, Sequence[Fact]], Parameters] = lambda rng, facts: {},
    exact: bool = True,
    smooth: bool = True,
) -> None:
    """Enter a word."""
    WORDS[name] = Word(name, arity, fits, draw, apply, exact, smooth)


def floats(facts: Sequence[Fact]) -> bool:
    return all(fact.is_float for fact in facts)


def exact(facts: Sequence[Fact]) -> bool:
    return all(fact.exact for fact in facts)


def not_scalar(facts: Sequence[Fact]) -> bool:
    return all(fact.shape for fact in facts)


def numbers(facts: Sequence[Fact]) -> bool:
    return all(fact.is_float or fact.is_integer for fact in facts)


def like(facts: Sequence[Fact]) -> bool:
    """Numbers of one dtype whose shapes broadcast."""
    if not numbers(facts) or len({fact.dtype for fact in facts}) > 1:
        return False
    try:
        return int(np.prod(np.broadcast_shapes(*[fact.shape for fact in facts]))) <= 4096
    except ValueError:
        return False


def _axis(rng: np.random.Generator, facts: Sequence[Fact]) -> Parameters:
    return {"axis": int(rng.integers(len(facts[0].shape)))}


# --- elementwise ------------------------------------------------------------------------------

for _name in ("sin", "cos", "tanh", "arctan", "exp2"):
    word(_name, 1, lambda m, x, p, f=_name: getattr(m.numpy, f)(x[0] * 0.5), floats, exact=False)
word("exp", 1, lambda m, x, p: m.numpy.exp(-m.numpy.abs(x[0])), floats, exact=False, smooth=False)
word("log", 1, lambda m, x, p: m.numpy.log(x[0] * x[0] + 0.5), floats, exact=False)
word("sqrt", 1, lambda m, x, p: m.numpy.sqrt(x[0] * x[0] + 0.25), floats, exact=False)
word("rsqrt", 1, lambda m, x, p: m.lax.rsqrt(x[0] * x[0] + 1), floats, exact=False)
word("expm1", 1, lambda m, x, p: m.numpy.expm1(m.numpy.tanh(x[0])), floats, exact=False)
word("log1p", 1, lambda m, x, p: m.numpy.log1p(x[0] * x[0]), floats, exact=False)
word("logistic", 1, lambda m, x, p: m.nn.sigmoid(x[0]), floats, exact=False)
word("gelu", 1, lambda m, x, p: m.nn.gelu(x[0]), floats, exact=False)
word("erf", 1, lambda m, x, p: m.lax.erf(x[0]), floats, exact=False)
word("sinh", 1, lambda m, x, p: m.numpy.sinh(m.numpy.tanh(x[0])), floats, exact=False)
word("neg", 1, lambda m, x, p: -x[0], numbers)
word("abs", 1, lambda m, x, p: m.numpy.abs(x[0]), numbers, smooth=False)
word("sign", 1, lambda m, x, p: m.numpy.sign(x[0]), lambda f: numbers(f) and exact(f), smooth=False)
word(
    "floor", 1, lambda m, x, p: m.numpy.floor(x[0]), lambda f: floats(f) and exact(f), smooth=False
)
word(
    "round", 1, lambda m, x, p: m.numpy.round(x[0]), lambda f: floats(f) and exact(f), smooth=False
)
word("relu", 1, lambda m, x, p: m.numpy.maximum(x[0], 0), numbers, smooth=False)
word(
    "scale",
    1,
    lambda m, x, p: x[0] * p["by"],
    numbers,
    lambda rng, facts: {"by": int(rng.integers(-3, 4))},
)
word("square", 1, lambda m, x, p: m.numpy.tanh(x[0]) ** 2, floats, exact=False)
word("cube", 1, lambda m, x, p: m.numpy.sin(x[0]) ** 3, floats, exact=False)
word("add", 2, lambda m, x, p: x[0] + x[1], like, exact=False)
word("sub", 2, lambda m, x, p: x[0] - x[1], like, exact=False)
word("mul", 2, lambda m, x, p: x[0] * x[1], like, exact=False)
word(
    "div", 2, lambda m, x, p: x[0] / (x[1] * x[1] + 1), lambda f: like(f) and floats(f), exact=False
)
word("maximum", 2, lambda m, x, p: m.numpy.maximum(x[0], x[1]), like, smooth=False)
word("minimum", 2, lambda m, x, p: m.numpy.minimum(x[0], x[1]), like, smooth=False)
word(
    "where",
    2,
    lambda m, x, p: m.numpy.where(x[0] > x[1], x[0] * 2, x[1]),
    lambda f: like(f) and exact(f),
    smooth=False,
)
word(
    "floor_divide",
    2,
    lambda m, x, p: x[0] // (m.numpy.abs(x[1]) % 7 + 1),
    lambda f: like(f) and f[0].is_integer,
    smooth=False,
)
word(
    "bits",
    2,
    lambda m, x, p: (x[0] & x[1]) ^ (x[0] << 2) | (x[1] >> 1),
    lambda f: like(f) and f[0].is_integer,
    smooth=False,
)
word(
    "to_float",
    1,
    lambda m, x, p: x[0].astype(p["dtype"]) * 0.125,
    lambda f: f[0].is_integer and f[0].exact,
    lambda rng, facts: {"dtype": str(rng.choice(["float32", "float64", "bfloat16"]))},
    exact=False,
    smooth=False,
)
word(
    "to_integer",
    1,
    lambda m, x, p: m.numpy.clip(x[0] * 4, -100, 100).astype(p["dtype"]),
    lambda f: floats(f) and exact(f),
    lambda rng, facts: {"dtype": str(rng.choice(["int32", "int64", "int16", "int8"]))},
    smooth=False,
)


def _narrower(rng: np.random.Generator, facts: Sequence[Fact]) -> Parameters:
    # Never wider: the result would be compared more strictly than it was computed.
    order = ["float64", "float32", "bfloat16"]
    place = order.index(facts[0].dtype)
    return {"dtype": str(rng.choice(order[place:]))}


word(
    "recast",
    1,
    lambda m, x, p: x[0].astype(p["dtype"]),
    lambda f: floats(f) and f[0].dtype != "float16",
    _narrower,
    exact=False,
)

# --- views --------------------------------------------------------------------------------------

word(
    "transpose",
    1,
    lambda m, x, p: m.numpy.transpose(x[0], p["axes"]),
    not_scalar,
    lambda rng, facts: {"axes": [int(a) for a in rng.permutation(len(facts[0].shape))]},
)
word("flip", 1, lambda m, x, p: m.numpy.flip(x[0], p["axis"]), not_scalar, _axis)
word("flatten", 1, lambda m, x, p: x[0].reshape(-1))
word("add_axis", 1, lambda m, x, p: x[0][None], lambda f: len(f[0].shape) < 4)


def _split(rng: np.random.Generator, facts: Sequence[Fact]) -> Parameters:
    size = facts[0].size
    divisors = [d for d in range(1, size + 1) if size % d == 0] or [1]
    first = int(rng.choice(divisors))
    return {"shape": [first, size // first] if size else [0, 3]}


word("reshape", 1, lambda m, x, p: x[0].reshape(p["shape"]), draw=_split)


def _slices(rng: np.random.Generator, facts: Sequence[Fact]) -> Parameters:
    slices: list[list[int]] = []
    for size in facts[0].shape:
        start = int(rng.integers(0, max(size, 1)))
        stop = int(rng.integers(start, size + 1))
        slices.append([start, stop, int(rng.integers(1, 4))])
    return {"slices": slices}


word(
    "slice",
    1,
    lambda m, x, p: x[0][tuple(slice(*s) for s in p["slices"])],
    not_scalar,
    _slices,
)
word(
    "take_one",
    1,
    lambda m, x, p: x[0][p["index"]],
    lambda f: bool(f[0].shape) and f[0].shape[0] > 0,
    lambda rng, facts: {"index": int(rng.integers(-facts[0].shape[0], facts[0].shape[0]))},
)
word(
    "pad",
    1,
    lambda m, x, p: m.lax.pad(
        x[0], m.numpy.asarray(p["value"], x[0].dtype), [tuple(w) for w in p["widths"]]
    ),
    lambda f: numbers(f) and not_scalar(f) and f[0].size < 500,
    lambda rng, facts: {
        "value": int(rng.integers(0, 3)),
        "widths": [
            [int(rng.integers(0, 3)), int(rng.integers(0, 3)), int(rng.integers(0, 2))]
            for _ in facts[0].shape
        ],
    },
)
word(
    "broadcast",
    1,
    lambda m, x, p: m.numpy.broadcast_to(x[0], (p["size"], *x[0].shape)),
    lambda f: len(f[0].shape) < 4 and f[0].size < 500,
    lambda rng, facts: {"size": int(rng.integers(0, 5))},
)


def _joinable(facts: Sequence[Fact]) -> bool:
    a, b = facts
    return a.dtype == b.dtype and len(a.shape) == len(b.shape) > 0 and a.shape[1:] == b.shape[1:]


word("concatenate", 2, lambda m, x, p: m.numpy.concatenate([x[0], x[1], x[0]], 0), _joinable)
word(
    "stack",
    2,
    lambda m, x, p: m.numpy.stack([x[1], x[0]], -1),
    lambda f: f[0][:2] == f[1][:2] and len(f[0].shape) < 4,
)
word("tril", 1, lambda m, x, p: m.numpy.tril(x[0]), lambda f: len(f[0].shape) >= 2)
word(
    "roll",
    1,
    lambda m, x, p: m.numpy.roll(x[0], p["by"], p["axis"]),
    not_scalar,
    lambda rng, facts: {"by": int(rng.integers(-3, 4)), **_axis(rng, facts)},
)

# --- reductions, scans, order --------------------------------------------------------------------

for _name in ("sum", "mean", "var"):
    word(
        _name,
        1,
        lambda m, x, p, f=_name: getattr(m.numpy, f)(x[0], axis=p["axis"], keepdims=p["keep"]),
        lambda f: floats(f) and not_scalar(f) and min(f[0].shape) > 0,
        lambda rng, facts: {**_axis(rng, facts), "keep": bool(rng.integers(2))},
        exact=False,
    )
for _name in ("max", "min"):
    word(
        _name,
        1,
        lambda m, x, p, f=_name: getattr(m.numpy, f)(x[0], axis=p["axis"]),
        lambda f: numbers(f) and not_scalar(f) and min(f[0].shape) > 0,
        _axis,
        smooth=False,
    )
word(
    "total",
    1,
    lambda m, x, p: m.numpy.sum(x[0]),
    floats,
    exact=False,
)
word(
    "argmax",
    1,
    lambda m, x, p: m.numpy.argmax(x[0], axis=p["axis"]),
    lambda f: numbers(f) and exact(f) and not_scalar(f) and min(f[0].shape) > 0,
    _axis,
    smooth=False,
)
word(
    "cumsum",
    1,
    lambda m, x, p: m.numpy.cumsum(x[0], axis=p["axis"]),
    lambda f: floats(f) and not_scalar(f),
    _axis,
    exact=False,
)
word(
    "cummax",
    1,
    lambda m, x, p: m.lax.cummax(x[0], axis=p["axis"], reverse=p["reverse"]),
    lambda f: numbers(f) and not_scalar(f),
    lambda rng, facts: {**_axis(rng, facts), "reverse": bool(rng.integers(2))},
    smooth=False,
)
word(
    "sort",
    1,
    lambda m, x, p: m.numpy.sort(x[0], axis=p["axis"]),
    lambda f: numbers(f) and exact(f) and not_scalar(f),
    _axis,
    smooth=False,
)
word(
    "argsort",
    1,
    lambda m, x, p: m.numpy.argsort(x[0], axis=p["axis"]),
    lambda f: numbers(f) and exact(f) and not_scalar(f),
    _axis,
    smooth=False,
)
word(
    "softmax",
    1,
    lambda m, x, p: m.nn.softmax(x[0], axis=p["axis"]),
    lambda f: floats(f) and not_scalar(f) and min(f[0].shape) > 0,
    _axis,
    exact=False,
)
word(
    "logsumexp",
    1,
    lambda m, x, p: m.nn.logsumexp(x[0], axis=p["axis"]),
    lambda f: floats(f) and not_scalar(f) and min(f[0].shape) > 0,
    _axis,
    exact=False,
)
word(
    "layer_norm",
    1,
    lambda m, x, p: (
        (x[0] - x[0].mean(-1, keepdims=True)) * m.lax.rsqrt(x[0].var(-1, keepdims=True) + 0.1)
    ),
    lambda f: floats(f) and not_scalar(f) and min(f[0].shape) > 0,
    exact=False,
)
word(
    "reduce_window",
    1,
    lambda m, x, p: m.lax.reduce_window(
        x[0],
        m.numpy.asarray(-float("inf"), x[0].dtype),
        m.lax.max,
        (2,) * x[0].ndim,
        (1,) * x[0].ndim,
        "SAME",
    ),
    lambda f: floats(f) and not_scalar(f) and 0 < f[0].size < 500,
    smooth=False,
)

# --- contractions --------------------------------------------------------------------------------


def _matrices(facts: Sequence[Fact]) -> bool:
    a, b = facts
    return (
        a.dtype == b.dtype
        and numbers(facts)
        and len(a.shape) == len(b.shape) == 2
        and a.shape[1] == b.shape[0]
    )


word("matmul", 2, lambda m, x, p: x[0] @ x[1], _matrices, exact=False)
word(
    "gram",
    1,
    lambda m, x, p: m.numpy.einsum("...ij,...kj->...ik", x[0], x[0]) * 0.1,
    lambda f: floats(f) and len(f[0].shape) >= 2 and f[0].size < 600,
    exact=False,
)
word(
    "outer",
    2,
    lambda m, x, p: m.numpy.einsum("i,j->ij", x[0].reshape(-1), x[1].reshape(-1)),
    lambda f: floats(f) and f[0].dtype == f[1].dtype and f[0].size * f[1].size < 2000,
    exact=False,
)

# --- indexing -----------------------------------------------------------------------------------


def _indices(rng: np.random.Generator, facts: Sequence[Fact]) -> Parameters:
    size = facts[0].shape[0]
    count = int(rng.integers(0, 6))
    return {"indices": [int(i) for i in rng.integers(-size, size, count)]}


def _indexable(facts: Sequence[Fact]) -> bool:
    return bool(facts[0].shape) and facts[0].shape[0] > 0


word("take", 1, lambda m, x, p: x[0][np.array(p["indices"], int)], _indexable, _indices)
word(
    "take_traced",
    2,
    lambda m, x, p: m.numpy.take(x[0], m.numpy.abs(x[1].reshape(-1)[:7]) % x[0].shape[0], axis=0),
    lambda f: _indexable(f) and f[1].is_integer and f[1].exact and f[0].size < 500,
)
word(
    "set_at",
    1,
    lambda m, x, p: x[0].at[np.array(p["indices"], int)].set(m.numpy.asarray(1, x[0].dtype)),
    lambda f: _indexable(f) and numbers(f),
    _indices,
)
word(
    "add_at",
    1,
    lambda m, x, p: x[0].at[np.array(p["indices"], int)].add(m.numpy.asarray(2, x[0].dtype)),
    lambda f: _indexable(f) and numbers(f) and exact(f),
    _indices,
)
word(
    "dynamic_slice",
    2,
    lambda m, x, p: m.lax.dynamic_slice_in_dim(
        x[0], x[1].reshape(-1)[0], max(1, x[0].shape[0] // 2), 0
    ),
    lambda f: _indexable(f) and f[1].is_integer and f[1].exact and f[1].size > 0,
)
word(
    "dynamic_update",
    2,
    lambda m, x, p: m.lax.dynamic_update_slice_in_dim(x[0], x[0][:1] * 2, x[1].reshape(-1)[0], 0),
    lambda f: _indexable(f) and f[1].is_integer and f[1].exact and f[1].size > 0 and numbers(f),
)

# --- control flow -------------------------------------------------------------------------------

word(
    "scan",
    1,
    lambda m, x, p: m.lax.scan(
        lambda c, row: (m.numpy.tanh(c + row), c * row), m.numpy.zeros_like(x[0][0]), x[0]
    )[p["which"]],
    lambda f: floats(f) and _indexable(f),
    lambda rng, facts: {"which": int(rng.integers(2))},
    exact=False,
)
word(
    "fori",
    1,
    lambda m, x, p: m.lax.fori_loop(
        0, p["count"], lambda i, c: m.numpy.sin(c + m.numpy.asarray(i, c.dtype)), x[0]
    ),
    floats,
    lambda rng, facts: {"count": int(rng.integers(0, 5))},
    exact=False,
)
word(
    "while",
    1,
    lambda m, x, p: m.lax.while_loop(
        lambda c: c[0] < p["count"], lambda c: (c[0] + 1, c[1] * 0.5 + 1), (0, x[0])
    )[1],
    floats,
    lambda rng, facts: {"count": int(rng.integers(0, 5))},
    exact=False,
    smooth=False,
)
word(
    "cond",
    2,
    lambda m, x, p: m.lax.cond(
        m.numpy.sum(x[1].reshape(-1)[:1]) > 0, lambda v: m.numpy.sin(v), lambda v: v * 3, x[0]
    ),
    lambda f: floats(f[:1]) and numbers(f) and exact(f[1:]),
    exact=False,
)
word(
    "switch",
    2,
    lambda m, x, p: m.lax.switch(
        m.numpy.sum(x[1].reshape(-1)[:1]).astype("int32"),
        [lambda v: v + 1, lambda v: v * v, lambda v: m.numpy.cos(v)],
        x[0],
    ),
    lambda f: floats(f[:1]) and f[1].is_integer and exact(f[1:]),
    exact=False,
)
word(
    "vmapped",
    1,
    lambda m, x, p: m.top.vmap(
        lambda row: m.lax.cond(row.sum() > 1e9, lambda r: r * 2, lambda r: m.numpy.cos(r), row)
    )(x[0]),
    lambda f: floats(f) and not_scalar(f),
    exact=False,
)
word(
    "vmapped_loop",
    1,
    lambda m, x, p: m.top.vmap(
        lambda row, n: m.lax.while_loop(
            lambda c: c[0] < n, lambda c: (c[0] + 1, m.numpy.sin(c[1])), (0, row)
        )[1]
    )(x[0], m.numpy.arange(x[0].shape[0]) % 3),
    lambda f: floats(f) and _indexable(f),
    exact=False,
    smooth=False,
)
word(
    "checkpointed",
    1,
    lambda m, x, p: m.top.checkpoint(lambda v: m.numpy.sin(m.numpy.sin(v)) * v)(x[0]),
    floats,
    exact=False,
)
