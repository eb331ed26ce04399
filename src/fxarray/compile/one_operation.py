"""The kernel of one operation: its `lower` rule on operands in memory."""

from __future__ import annotations

from collections.abc import Sequence

from fxarray.core.primitive import Primitive
from fxarray.core.types import ArrayType
from fxarray.kernel import sizes
from fxarray.kernel.build import Builder, Index, SplitAxis, kernel_dtype
from fxarray.kernel.ir import Affine, Kernel
from fxarray.kernel.sizes import Size


def build_operation(op: Primitive, types: Sequence[ArrayType]) -> Kernel:
    """The kernel that computes all results of an operation.

    Args:
      op: the operation.
      types: of its operands, which become inputs "x0", "x1", ...; results are "y0", "y1", ...

    Raises:
      MissingRuleError: the operation has no `lower` rule.
      NoKernel, NotAffine: it has none for these operands.
    """
    splits: dict[str, tuple[Size, ...]] = {}
    while True:
        try:
            return _build(op, types, splits)
        except SplitAxis as split:
            if split.axis in splits or not split.axis.startswith("i"):
                raise
            splits[split.axis] = split.sizes


def _build(
    op: Primitive, types: Sequence[ArrayType], splits: dict[str, tuple[Size, ...]]
) -> Kernel:
    builder = Builder(op.name)
    operands = [
        builder.of_buffer(
            builder.input(f"x{number}", sizes.kernel_shape(type.shape), kernel_dtype(type.dtype))
        )
        for number, type in enumerate(types)
    ]
    results = op.lower(builder, *operands)
    indices: dict[tuple[Size, ...], Index] = {}
    for number, (result, type) in enumerate(zip(results, op.types(*types), strict=True)):
        shape = sizes.kernel_shape(type.shape)
        index = indices.get(shape)
        if index is None:
            prefix = f"i{len(indices)}_" if indices else "i"
            index = indices[shape] = tuple(
                [
                    add_axis(builder, f"{prefix}{dimension}", size, splits)
                    for dimension, size in enumerate(shape)
                ]
            )
        output = builder.output(f"y{number}", shape, kernel_dtype(type.dtype))
        builder.store(output, index, result.element(index))
    return builder.build()


def add_axis(
    builder: Builder, name: str, size: Size, splits: dict[str, tuple[Size, ...]]
) -> Affine:
    """An axis as an index expression: itself, 0 if it has one element, or a sum of its parts.

    Args:
      builder: the kernel's.
      name: the axis.
      size: its size.
      splits: the sizes of the parts of those axes that are written as several.
    """
    if size == 1:
        return Affine()
    parts = splits.get(name)
    if parts is None:
        builder.axes[name] = size
        whole = Affine.of(name)
    else:
        whole = Affine()
        for number, part in enumerate(parts):
            whole = whole * part + add_axis(builder, f"{name}_{number}", part, splits)
    builder.add_span(whole, size)
    return whole
