"""Check of `lower`: the kernel of one operation, interpreted, computes its reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fxarray.compile.one_operation import build_operation
from fxarray.core.array import DeviceArray
from fxarray.core.errors import FxArrayError
from fxarray.core.primitive import Sample
from fxarray.core.types import ArrayType
from fxarray.kernel.build import NotAffine
from fxarray.kernel.check import check_kernel
from fxarray.kernel.interpret import interpret
from fxarray.testing.rules.operands import buffers_of, device_arrays, types_of
from fxarray.testing.rules.values import compare_values, symbolic_types


def check_lower(sample: Sample) -> None:
    """The kernel of the operation is legal, and computes what `reference` does.

    So does the one kernel for all sizes, where the operation takes variables for sizes.
    """
    op = sample.op
    if "lower" in op.EXCUSED:
        return
    arrays = device_arrays(sample)
    types = types_of(arrays)
    _check_kernel(sample, arrays, types, {})
    symbolic, values = symbolic_types(types)
    if values:
        try:
            op.infer(*symbolic)
        except FxArrayError:
            return  # parameters that hold sizes do not go with variables
        _check_kernel(sample, arrays, symbolic, values)


def _check_kernel(
    sample: Sample,
    arrays: Sequence[DeviceArray],
    types: Sequence[ArrayType],
    sizes: Mapping[str, int],
) -> None:
    try:
        kernel = build_operation(sample.op, types)
    except NotAffine:
        return  # a device runs such an operation whole
    check_kernel(kernel)
    buffers = buffers_of(arrays)
    inputs = [buffers[int(buffer.name.removeprefix("x"))] for buffer in kernel.inputs]
    results = interpret(kernel, *inputs, sizes=sizes)
    compare_values(sample, results, sample.op.reference(*buffers), arrays, f"lower\n{kernel}")
