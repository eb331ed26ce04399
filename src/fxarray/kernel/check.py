"""What a legal kernel is.

Everything that builds or changes kernels keeps these rules, and everything that renders them may
rely on them:

- A value is read after it is defined; a Store has no value, and a node of several results is read
  by Part alone.
- The operands of an operation have the dtypes that it asks for, and its result the one it gives.
- An index has one entry per dimension of its buffer; its axes are axes of the kernel, its values
  are integers.
- Reduced, scanned and contracted axes are axes of what is reduced, scanned, contracted.
- What is stored has no axis that the index of the Store lacks, and no two positions share an index,
  unless the mode combines.
- Names are unique; an output may be the memory of an input of the same shape and dtype.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from fxarray.core import dtypes
from fxarray.core.errors import ProgramError
from fxarray.kernel import sizes
from fxarray.kernel.combiners import COMBINERS
from fxarray.kernel.ir import (
    Affine,
    Bound,
    Const,
    Contract,
    Iota,
    Kernel,
    Load,
    Op,
    Part,
    Reduce,
    Scan,
    Store,
    arguments,
    direct_axes,
)
from fxarray.kernel.operations import (
    BINARY,
    COMPARISONS,
    CONVERSIONS,
    OPERATIONS,
    arity,
    result_dtype,
)
from fxarray.kernel.scalars import numpy_dtype
from fxarray.kernel.sizes import Size

MODES = frozenset(["set", "add", "mul", "min", "max"])


def checking() -> bool:
    """Whether every step of compiling is checked: FXARRAY_CHECK is set, and not to 0."""
    return os.environ.get("FXARRAY_CHECK", "") not in ("", "0")


def check_kernel(kernel: Kernel) -> None:
    """Raise unless a kernel is legal.

    Raises:
      ProgramError: with the node and the rule that it breaks.
    """
    _check_names(kernel)
    _check_order(kernel)
    stored: set[str] = set()
    for number, node in enumerate(kernel.body):
        try:
            for argument in arguments(node):
                _check_argument(kernel, argument, node)
            _check_node(kernel, node, stored)
        except ProgramError as error:
            raise ProgramError(
                f"kernel {kernel.name}, node {number} ({type(node).__name__}): {error.message}\n"
                f"{kernel}"
            ) from None
    missing = {buffer.name for buffer in kernel.outputs} - stored
    if missing:
        raise ProgramError(f"kernel {kernel.name}: nothing is stored in {sorted(missing)}")


def _check_names(kernel: Kernel) -> None:
    names = [name for name, _ in kernel.axes]
    if len(set(names)) != len(names):
        raise ProgramError(f"kernel {kernel.name}: axes {names} are not distinct")
    buffers = [buffer.name for buffer in (*kernel.inputs, *kernel.outputs)]
    if len(set(buffers)) != len(buffers):
        raise ProgramError(f"kernel {kernel.name}: buffers {buffers} are not distinct")
    inputs = {buffer.name: buffer for buffer in kernel.inputs}
    for buffer in kernel.outputs:
        if buffer.alias is not None:
            source = inputs.get(buffer.alias)
            if source is None or (source.shape, source.dtype) != (buffer.shape, buffer.dtype):
                raise ProgramError(
                    f"kernel {kernel.name}: {buffer.name} cannot be the memory of "
                    f"{buffer.alias!r}, which is no input of its shape and dtype"
                )


def _check_order(kernel: Kernel) -> None:
    # Apart from the other rules, since without this one a kernel has no axes and no text.
    for number, node in enumerate(kernel.body):
        for argument in arguments(node):
            if not 0 <= argument < number:
                raise ProgramError(
                    f"kernel {kernel.name}, node {number}, {node}: v{argument} is not defined "
                    f"before it"
                )
        if isinstance(node, Part):
            source = kernel.body[node.arg]
            results = len(source.args) if isinstance(source, Reduce | Scan) else 1
            if not 0 <= node.which < results or results == 1:
                raise ProgramError(
                    f"kernel {kernel.name}, node {number}, {node}: v{node.arg} has {results} "
                    f"result{'s' if results > 1 else ''} and no part {node.which}"
                )


def _check_argument(kernel: Kernel, argument: int, node: Any) -> None:
    source = kernel.body[argument]
    if isinstance(source, Store):
        raise ProgramError(f"v{argument} is a Store, which has no value")
    several = isinstance(source, Reduce | Scan) and len(source.args) > 1
    if several and not isinstance(node, Part):
        raise ProgramError(f"v{argument} has several results, which Part reads")


def _check_node(kernel: Kernel, node: Any, stored: set[str]) -> None:
    for axis in direct_axes(node):
        if axis not in kernel.sizes:
            raise ProgramError(f"{axis!r} is no axis of the kernel")
    match node:
        case Const() | Iota():
            numpy_dtype(node.dtype)
            if isinstance(node, Iota):
                _check_affine(kernel, node.index)
        case Load():
            if node.buffer not in kernel.inputs:
                raise ProgramError(f"{node.buffer.name} is no input of the kernel")
            _check_index(kernel, node.buffer.shape, node.index, node.bounds)
        case Op():
            _check_op(node, [kernel.dtypes[a] for a in node.args])
        case Reduce() | Scan():
            axes = node.axes if isinstance(node, Reduce) else (node.axis,)
            _check_combination(kernel, node, axes)
        case Part():
            pass
        case Contract():
            _check_contract(kernel, node)
        case Store():
            _check_store(kernel, node, stored)
            stored.add(node.buffer.name)
        case _:
            raise ProgramError(f"{node!r} is no node of the kernel IR")


def _check_affine(kernel: Kernel, index: Affine) -> None:
    for value in index.values:
        if not dtypes.is_integer(numpy_dtype(kernel.dtypes[value])):
            raise ProgramError(f"v{value} of {kernel.dtypes[value]} is no integer to index with")


def _check_index(
    kernel: Kernel, shape: Sequence[Size], index: Sequence[Affine], bounds: Sequence[Bound]
) -> None:
    if len(index) != len(shape):
        raise ProgramError(f"{len(index)} indices for {len(shape)} dimensions")
    for affine in (*index, *[bound[0] for bound in bounds]):
        _check_affine(kernel, affine)


def _check_op(node: Op, given: list[str]) -> None:
    if node.op not in OPERATIONS:
        raise ProgramError(f"there is no operation {node.op!r}")
    if len(given) != arity(node.op):
        raise ProgramError(f"{node.op} takes {arity(node.op)} arguments, got {len(given)}")
    same = given
    if node.op == "select":
        if given[0] != "bool":
            raise ProgramError(f"select chooses by bool, not by {given[0]}")
        same = given[1:]
    if len(set(same)) > 1:
        raise ProgramError(f"{node.op} of different dtypes: {', '.join(given)}")
    if node.op in BINARY | COMPARISONS and given[0] == "key":
        raise ProgramError(f"{node.op} of random keys")
    if node.op == "bitcast":
        widths = [dtypes.bit_width(numpy_dtype(name)) for name in (given[0], node.dtype)]
        if widths[0] != widths[1]:
            raise ProgramError(f"bitcast from {given[0]} to {node.dtype}, whose widths differ")
    elif node.op not in CONVERSIONS and node.dtype != result_dtype(node.op, tuple(given)):
        raise ProgramError(f"{node.op} of {', '.join(given)} does not give {node.dtype}")


def _check_combination(kernel: Kernel, node: Reduce | Scan, axes: Sequence[str]) -> None:
    combiner = COMBINERS.get(node.combiner)
    if combiner is None:
        raise ProgramError(f"there is no combiner {node.combiner!r}")
    if len(node.args) != combiner.states:
        raise ProgramError(
            f"{node.combiner} has {combiner.states} states, but {len(node.args)} are given"
        )
    have = frozenset[str]().union(*[kernel.value_axes[a] for a in node.args])
    if not axes or len(set(axes)) != len(axes) or not set(axes) <= have:
        raise ProgramError(
            f"axes {', '.join(axes)} are not distinct axes of what is combined, "
            f"which has {', '.join(sorted(have)) or 'none'}"
        )


def _check_contract(kernel: Kernel, node: Contract) -> None:
    numpy_dtype(node.dtype)
    for operand in (node.a, node.b):
        if not node.axes or not set(node.axes) <= kernel.value_axes[operand]:
            raise ProgramError(
                f"axes {', '.join(node.axes)} are not all axes of v{operand}, which has "
                f"{', '.join(sorted(kernel.value_axes[operand])) or 'none'}"
            )
        source = kernel.body[operand]
        if isinstance(source, Load) and source.bounds and source.fill != 0:
            raise ProgramError(f"v{operand} is filled with {source.fill}, not with zero")


def _check_store(kernel: Kernel, node: Store, stored: set[str]) -> None:
    if node.buffer not in kernel.outputs:
        raise ProgramError(f"{node.buffer.name} is no output of the kernel")
    if kernel.dtypes[node.value] != node.buffer.dtype:
        raise ProgramError(
            f"v{node.value} of {kernel.dtypes[node.value]} does not go into {node.buffer.dtype}"
        )
    if node.mode not in MODES:
        raise ProgramError(f"there is no mode {node.mode!r}")
    _check_index(kernel, node.buffer.shape, node.index, node.bounds)
    if node.mode != "set":
        if node.buffer.alias is None and node.buffer.name not in stored:
            raise ProgramError(f"{node.mode} into {node.buffer.name}, which holds nothing")
        return
    used = {axis for index in node.index for axis in index.axes}
    for value in (v for index in node.index for v in index.values):
        used |= kernel.value_axes[value]
    have = set(kernel.value_axes[node.value])
    for affine, _, _ in node.bounds:
        have |= set(affine.axes)
        have = have.union(*[kernel.value_axes[v] for v in affine.values])
    if not have <= used:
        raise ProgramError(f"axes {', '.join(sorted(have - used))} are not in the index")
    if not any(index.values for index in node.index) and not is_injective(kernel, node.index):
        raise ProgramError("two positions may share an index")


def is_injective(kernel: Kernel, index: Sequence[Affine]) -> bool:
    """Whether it is known that different positions on the axes have different indices.

    One dimension tells the positions on its axes apart if, from the axis of the least stride
    upwards, each stride is greater than what the axes below it reach; axes that another dimension
    has told apart do not matter.
    """
    known: set[str] = {
        axis for axis in kernel.sizes if sizes.bounds(kernel.sizes[axis])[1] in (0, 1)
    }
    waiting = list(index)
    progress = True
    while progress:
        progress = False
        for affine in list(waiting):
            terms = [(c, axis) for axis, c in affine.terms if axis not in known]
            if _tells_apart(kernel, terms):
                known.update(str(axis) for _, axis in terms)
                waiting.remove(affine)
                progress = True
    return not any(axis not in known for affine in waiting for axis in affine.axes)


def _tells_apart(kernel: Kernel, terms: list[tuple[Size, Any]]) -> bool:
    steps = [
        (sizes.multiply(c, -1) if (sizes.bounds(c)[1] or 0) < 0 else c, axis) for c, axis in terms
    ]
    steps.sort(key=lambda step: sizes.typical(step[0]))
    reach: Size = 0
    for step, axis in steps:
        if reach != 0:
            gap = sizes.bounds(sizes.subtract(step, reach))[0]
            if gap is None or gap < 1:
                return False
        extent = sizes.subtract(kernel.sizes[axis], 1)
        reach = sizes.add(reach, sizes.multiply(step, extent))
    return True
