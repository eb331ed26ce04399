"""What users and authors of operations test with."""

from fxarray.testing.batching import check_batch as check_batch
from fxarray.testing.comparison import assert_close as assert_close
from fxarray.testing.gradients import check_grads as check_grads
from fxarray.testing.gradients import check_jvp as check_jvp
from fxarray.testing.gradients import check_vjp as check_vjp
from fxarray.testing.programs import check_program as check_program

__all__ = [
    "assert_close",
    "check_batch",
    "check_grads",
    "check_jvp",
    "check_program",
    "check_vjp",
]
