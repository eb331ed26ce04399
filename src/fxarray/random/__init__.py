"""Random numbers: counter-based, from explicit keys, equal on every device.

A draw is a function of its key: call it twice with one key and it gives the same numbers twice.

    >>> from fxarray import random
    >>> key = random.key(0)
    >>> first, second = random.split(key)
    >>> random.randint(first, (3,), 0, 100)
    Array([91, 61, 47], dtype=int32)

Keys, bits, uniform numbers, integers and permutations equal JAX's to the last bit; other
distributions agree within rounding.
"""

from fxarray.random.continuous import (
    cauchy,
    exponential,
    gumbel,
    laplace,
    logistic,
    normal,
    truncated_normal,
)
from fxarray.random.discrete import categorical, choice, permutation
from fxarray.random.gamma import beta, chisquare, dirichlet, gamma, loggamma, t
from fxarray.random.keys import (
    PRNGKey,
    clone,
    fold_in,
    key,
    key_data,
    key_dtype,
    key_impl,
    split,
    wrap_key_data,
)
from fxarray.random.uniform import bernoulli, bits, rademacher, randint, uniform

__all__ = [
    "PRNGKey",
    "bernoulli",
    "beta",
    "bits",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "clone",
    "dirichlet",
    "exponential",
    "fold_in",
    "gamma",
    "gumbel",
    "key",
    "key_data",
    "key_dtype",
    "key_impl",
    "laplace",
    "loggamma",
    "logistic",
    "normal",
    "permutation",
    "rademacher",
    "randint",
    "split",
    "t",
    "truncated_normal",
    "uniform",
    "wrap_key_data",
]
