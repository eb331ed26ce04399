"""Check of `lower`: the kernel of one operation, interpreted, computes its reference."""

from __future__ import annotations

from fxarray.compile.one_operation import build_operation
from fxarray.core.primitive import Sample
from fxarray.kernel.build import NotAffine
from fxarray.kernel.check import check_kernel
from fxarray.kernel.interpret import interpret
from fxarray.testing.rules.operands import buffers_of, device_arrays, types_of
from fxarray.testing.rules.values import compare_values


def check_lower(sample: Sample) -> None:
    """The kernel of the operation is legal, and computes what `reference` does."""
    op = sample.op
    if "lower" in op.EXCUSED:
        return
    arrays = device_arrays(sample)
    try:
        kernel = build_operation(op, types_of(arrays))
    except NotAffine:
        # A device runs such an operation whole.
        return
    check_kernel(kernel)
    buffers = buffers_of(arrays)
    inputs = [buffers[int(buffer.name.removeprefix("x"))] for buffer in kernel.inputs]
    results = interpret(kernel, *inputs)
    compare_values(sample, results, op.reference(*buffers), arrays, "lower")
