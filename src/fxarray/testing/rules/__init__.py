"""Generic checks of a primitive's rules: what any rule must satisfy, whatever the operation.

Each check takes a `Sample` and raises AssertionError with the operation, the operand and the
numbers. Authors of operations outside fxarray run them all on their own:

    >>> from fxarray.core.primitive import REGISTRY
    >>> from fxarray.testing.rules import check_primitive
    >>> check_primitive(REGISTRY["sin"])
"""

from __future__ import annotations

from collections.abc import Callable

from fxarray.core.primitive import Primitive, Sample
from fxarray.testing.rules.batching import check_batch, check_jvp_of_batch
from fxarray.testing.rules.derivatives import check_jvp, check_linearize, check_transpose
from fxarray.testing.rules.identity import (
    check_complete,
    check_excuses,
    check_identity,
    check_pickle,
    check_python_source,
)
from fxarray.testing.rules.lowering import check_lower
from fxarray.testing.rules.operands import samples_of
from fxarray.testing.rules.sharding import check_shard
from fxarray.testing.rules.values import (
    check_backend,
    check_bad_sample,
    check_eager,
    check_infer,
    check_sizes,
    check_symbolic,
)

CHECKS: dict[str, Callable[[Sample], None]] = {
    "infer": check_infer,
    "eager": check_eager,
    "backend": check_backend,
    "lower": check_lower,
    "jvp": check_jvp,
    "linearize": check_linearize,
    "transpose": check_transpose,
    "batch": check_batch,
    "jvp_of_batch": check_jvp_of_batch,
    "shard": check_shard,
    "symbolic": check_symbolic,
    "sizes": check_sizes,
    "identity": check_identity,
    "pickle": check_pickle,
    "python_source": check_python_source,
    "excuses": check_excuses,
}


def check_primitive(cls: type[Primitive]) -> None:
    """Run every check on every sample of a primitive.

    Args:
      cls: the primitive's class.

    Raises:
      AssertionError: if a rule is wrong or missing without an excuse.
    """
    check_complete(cls)
    if "samples" in cls.EXCUSED:
        return
    good, bad = samples_of(cls)
    for sample in good:
        for check in CHECKS.values():
            check(sample)
    for sample in bad:
        check_bad_sample(sample)


__all__ = [
    "CHECKS",
    "check_bad_sample",
    "check_complete",
    "check_primitive",
    "samples_of",
]
