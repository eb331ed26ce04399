"""Loops: `scan`, `map`, `fori_loop`, `while_loop`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fxarray.core import dims, dtypes
from fxarray.core.array import Array
from fxarray.core.context import context
from fxarray.core.errors import ArgumentError, ConcretizationError, DTypeError, ShapeError
from fxarray.core.hooks import operators
from fxarray.core.ir import Program, Var
from fxarray.core.tracebacks import boundary
from fxarray.core.types import ArrayType
from fxarray.interpreters.memo import memoised
from fxarray.interpreters.staging import stage_closed
from fxarray.lax.bodies import Carry, parts_of, trace_body
from fxarray.primitives.arithmetic import add
from fxarray.primitives.comparison import lt
from fxarray.primitives.control.scan import Scan
from fxarray.primitives.control.while_loop import While
from fxarray.primitives.convert import convert
from fxarray.primitives.create import Iota, scalar
from fxarray.primitives.joining import concatenate
from fxarray.primitives.movement import reshape
from fxarray.primitives.slicing import slice_in_axis
from fxarray.transforms.arguments import (
    Structure,
    flatten_arguments,
    flatten_tree,
    function_name,
)
from fxarray.transforms.trace_cache import Trace
from fxarray.transforms.vmap import vmap
from fxarray.tree import operations as tree


@boundary
def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Any, Any]:
    """Apply `f(carry, x) -> (carry, y)` to each slice of `xs` in turn, and stack the ys.

    Differentiable in both modes; what reverse mode needs of each step is stored.

    Args:
      f: is traced once; its carry keeps structure, shapes and dtypes (a weakly typed initial value
        takes the dtype that `f` returns).
      init: the initial carry, a pytree.
      xs: a pytree of arrays of equal first size, or None.
      length: the number of steps; needed if `xs` holds no array.
      reverse: whether to start with the last slice; ys stand where their x stood.
      unroll: how many steps a compiler may write out in a row; need not divide the length.
      _split_transpose: accepted as in JAX; has no effect.

    Returns:
      The final carry, and the stacked ys.

    Raises:
      CarryTypeError, TreeStructureError: if `f` changes the carry's type, naming the leaf.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> total, running = lax.scan(lambda c, x: (c + x, c + x), 0.0, fnp.arange(1.0, 5.0))
    >>> print(total, running)
    10.0 [ 1.  3.  6. 10.]
    """
    del _split_transpose
    if not callable(f):
        raise ArgumentError(f"scan: f is not a function but {f!r}")
    x_arrays, x_structure = flatten_tree(xs, "scan: xs")
    size = _scan_length("scan", x_arrays, x_structure, length)
    if context.disable_jit:
        return _scan_in_python(f, init, x_arrays, x_structure, size, reverse)
    carry = Carry("scan", init)
    structure = flatten_arguments((init, xs), {}, f).structure
    slices = [_slice_type(x.type) for x in x_arrays]
    trace = carry.settle(
        lambda: trace_body(f, structure, [*carry.types, *slices]),
        lambda trace: _carry_of_pair("scan", f, trace),
    )
    op = Scan(
        body=trace.program,
        const_count=len(trace.captured),
        carry_count=len(carry.arrays),
        length=size,
        reverse=bool(reverse),
        unroll=_steps_in_a_row("scan", unroll, size),
    )
    results = op.bind(*trace.captured, *carry.arrays, *x_arrays)
    _, y_structure = parts_of(trace.output)
    count = len(carry.arrays)
    return carry.structure.unflatten(results[:count]), y_structure.unflatten(results[count:])


def _slice_type(type: ArrayType) -> ArrayType:
    return type.replace(shape=type.shape[1:])


def _scan_length(name: str, arrays: Sequence[Any], structure: Structure, length: Any) -> Any:
    sizes: list[Any] = []
    for array, path in zip(arrays, structure.paths(), strict=True):
        if not array.type.shape:
            raise ShapeError(
                f"{name}: xs{path} is {array.type}, a scalar, which cannot be iterated over"
            )
        sizes.append(array.type.shape[0])
    if length is not None:
        length = length if isinstance(length, dims.Dim) else int(length)
        sizes.insert(0, length)
    if not sizes:
        raise ArgumentError(
            f"{name}: xs holds no array, so the number of steps is not known; give length="
        )
    if any(not dims.same(size, sizes[0]) for size in sizes):
        described = [
            f"xs{path} is {array.type}"
            for array, path in zip(arrays, structure.paths(), strict=True)
        ]
        if length is not None:
            described.insert(0, f"length is {length}")
        raise ShapeError(f"{name}: the first sizes differ: {', '.join(described)}")
    return sizes[0]


def _steps_in_a_row(name: str, unroll: Any, length: Any) -> int:
    if unroll is True:
        return length if type(length) is int else 1
    if unroll is False:
        return 1
    unroll = int(unroll)
    if unroll < 1:
        raise ArgumentError(f"{name}: unroll must be a positive number or a bool, got {unroll}")
    return unroll


def _carry_of_pair(
    name: str, f: Callable[..., Any], trace: Trace
) -> tuple[Structure, Sequence[ArrayType]]:
    treedef = trace.output.treedef
    if treedef.type not in (tuple, list) or treedef.num_children != 2:
        raise ArgumentError(
            f"{name}: {function_name(f)} must return a pair (carry, y), but it returned {treedef}"
        )
    structure = parts_of(trace.output)[0]
    return structure, trace.program.output_types[: structure.array_count]


def _scan_in_python(
    f: Callable[..., Any],
    carry: Any,
    arrays: Sequence[Any],
    structure: Structure,
    length: Any,
    reverse: bool,
) -> tuple[Any, Any]:
    ys: list[Any] = []
    for i in reversed(range(length)) if reverse else range(length):
        carry, y = f(carry, structure.unflatten([x[i] for x in arrays]))
        ys.append(y)
    if not ys:
        raise ArgumentError("scan of no steps needs jit: with it disabled, the ys have no type")
    if reverse:
        ys.reverse()

    def stack(*values: Any) -> Any:
        rows = [operators.broadcast_axis(operators.asarray(v), 1, 0) for v in values]
        dtype, weak = dtypes.promote([r.dtype for r in rows], [r.weak_type for r in rows])
        return concatenate([convert(row, dtype, weak) for row in rows], 0)

    return carry, tree.map(stack, *ys)


@boundary
def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """Apply a function to each slice of `xs`, one after another, and stack the results.

    `vmap` does the same at once; this needs the memory of one step only.

    Args:
      f: a function of one slice.
      xs: a pytree of arrays of equal first size.
      batch_size: vmap `f` over so many slices at a time.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> print(lax.map(lambda x: x * x, fnp.arange(4.0)))
    [0. 1. 4. 9.]
    """
    x_arrays, x_structure = flatten_tree(xs, "map: xs")
    size = _scan_length("map", x_arrays, x_structure, None)
    if batch_size is not None:
        if batch_size < 1:
            raise ArgumentError(f"map: batch_size must be positive, got {batch_size}")
        return _map_in_batches(f, x_arrays, x_structure, size, batch_size)
    if context.disable_jit:
        return scan(lambda _, x: (None, f(x)), None, xs)[1]
    structure = flatten_arguments((xs,), {}, f).structure
    trace = trace_body(f, structure, [_slice_type(x.type) for x in x_arrays])
    op = Scan(body=trace.program, const_count=len(trace.captured), carry_count=0, length=size)
    return trace.output.unflatten(op.bind(*trace.captured, *x_arrays))


def _map_in_batches(
    f: Callable[[Any], Any],
    arrays: Sequence[Any],
    structure: Structure,
    size: Any,
    batch_size: int,
) -> Any:
    batches, rest = divmod(size, batch_size)
    whole = size - rest
    batched = vmap(f)
    parts: list[Any] = []
    if batches:
        rows = [
            reshape(slice_in_axis(x, 0, whole, 0), (batches, batch_size, *x.type.shape[1:]))
            for x in arrays
        ]
        results = map(batched, structure.unflatten(rows))
        parts.append(tree.map(lambda y: reshape(y, (whole, *y.type.shape[2:])), results))
    if rest or not batches:
        parts.append(
            batched(structure.unflatten([slice_in_axis(x, whole, size, 0) for x in arrays]))
        )
    return parts[0] if len(parts) == 1 else tree.map(lambda *ys: concatenate(ys, 0), *parts)


# --- while --------------------------------------------------------------------------------------


@boundary
def while_loop(
    cond_fun: Callable[[Any], Any],
    body_fun: Callable[[Any], Any],
    init_val: Any,
    max_steps: int | None = None,
) -> Any:
    """Repeat `val = body_fun(val)` while `cond_fun(val)` is true.

    Forward mode differentiates it as it is. With `max_steps`, reverse mode does so too: it stores
    the values at the starts of about sqrt(max_steps) segments of the loop and computes the others
    again, so its memory grows like sqrt(max_steps), and its time like the steps that are taken.

    Args:
      cond_fun: gives one bool.
      body_fun: keeps structure, shapes and dtypes (a weakly typed initial value takes the dtype
        that `body_fun` returns).
      init_val: the initial value, a pytree.
      max_steps: stop after so many steps, whatever the condition; with the `debug` setting, raise
        an error if it still holds then.

    >>> from fxarray import lax
    >>> print(lax.while_loop(lambda x: x < 100.0, lambda x: x * 2.0, 1.0))
    128.0
    """
    if not (callable(cond_fun) and callable(body_fun)):
        raise ArgumentError("while_loop takes (cond_fun, body_fun, init_val): two functions")
    if max_steps is not None:
        max_steps = int(max_steps)
        if max_steps < 0:
            raise ArgumentError(f"while_loop: max_steps must not be negative, got {max_steps}")
    if context.disable_jit:
        return _while_in_python(cond_fun, body_fun, init_val, max_steps)
    carry = Carry("while_loop", init_val)
    structure = flatten_arguments((init_val,), {}, body_fun).structure
    body = carry.settle(
        lambda: trace_body(body_fun, structure, carry.types),
        lambda trace: (trace.output, trace.program.output_types),
    )
    condition = trace_body(cond_fun, structure, carry.types)
    types = condition.program.output_types
    if condition.output.treedef.num_nodes != 1 or len(types) != 1:
        raise ArgumentError(
            f"while_loop: {function_name(cond_fun)} must return one bool, but it returned "
            f"{condition.output.treedef}"
        )
    if types[0].shape or not dtypes.is_bool(types[0].dtype):
        raise DTypeError(
            f"while_loop: {function_name(cond_fun)} must return one bool, but it returned "
            f"{types[0]}{'; use .any() or .all()' if types[0].shape else ''}"
        )
    op = While(
        cond_program=condition.program,
        body_program=body.program,
        cond_count=len(condition.captured),
        body_count=len(body.captured),
        max_steps=max_steps,
    )
    return carry.structure.unflatten(op.bind(*condition.captured, *body.captured, *carry.arrays))


def _while_in_python(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], value: Any, limit: int | None
) -> Any:
    steps = 0
    while steps != limit and cond_fun(value):
        value = body_fun(value)
        steps += 1
    return value


@boundary
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Any], Any],
    init_val: Any,
    *,
    unroll: int | bool | None = None,
) -> Any:
    """Repeat `val = body_fun(i, val)` for i from `lower` to `upper - 1`.

    If both bounds are known while tracing, this is a `scan`, differentiable in both modes;
    otherwise it is a `while_loop`, differentiable in forward mode.

    Args:
      lower: an integer.
      upper: an integer.
      body_fun: keeps structure, shapes and dtypes of the value.
      init_val: the initial value, a pytree.
      unroll: how many steps a compiler may write out in a row; for known bounds only.

    >>> from fxarray import lax
    >>> print(lax.fori_loop(0, 5, lambda i, x: x + i, 0))
    10
    """
    if not callable(body_fun):
        raise ArgumentError("fori_loop takes (lower, upper, body_fun, init_val)")
    bounds = [_integer(bound, name) for bound, name in ((lower, "lower"), (upper, "upper"))]
    dtype, _ = dtypes.promote([b.dtype for b in bounds], [b.weak_type for b in bounds])
    known = _known_bounds(bounds)
    if context.disable_jit and known is not None:
        for i in range(*known):
            init_val = body_fun(operators.asarray(i, dtype), init_val)
        return init_val
    index_type = ArrayType((), dtype)
    carry = Carry("fori_loop", init_val)
    structure = flatten_arguments((0, init_val), {}, body_fun).structure
    trace = carry.settle(
        lambda: trace_body(body_fun, structure, [index_type, *carry.types]),
        lambda trace: (trace.output, trace.program.output_types),
    )
    consts = trace.captured
    if known is None:
        if unroll not in (None, False, 1):
            raise ArgumentError(
                "fori_loop: unroll needs bounds that are known while tracing; these are not"
            )
        condition, body = _counting_loop(trace.program, len(consts), index_type)
        loop = While(condition, body, 0, len(consts))
        first, last = [convert(bound, dtype) for bound in bounds]
        _, _, *results = loop.bind(*consts, first, last, *carry.arrays)
        return carry.structure.unflatten(results)
    length = max(known[1] - known[0], 0)
    indices = Iota(dtype, (length,), 0)()
    if known[0]:
        indices = add(indices, scalar(known[0], dtype))
    op = Scan(
        body=_index_last(trace.program, len(consts)),
        const_count=len(consts),
        carry_count=len(carry.arrays),
        length=length,
        unroll=_steps_in_a_row("fori_loop", 1 if unroll is None else unroll, length),
    )
    return carry.structure.unflatten(op.bind(*consts, *carry.arrays, indices))


def _integer(value: Any, name: str) -> Array:
    array = operators.asarray(value)
    if array.type.shape or not dtypes.is_integer(array.dtype):
        raise DTypeError(f"fori_loop: {name} must be an integer, got {array.type}")
    return array


def _known_bounds(bounds: Sequence[Array]) -> tuple[int, int] | None:
    try:
        return int(bounds[0]), int(bounds[1])  # type: ignore[call-overload]
    except ConcretizationError:
        return None


def _index_last(program: Program, const_count: int) -> Program:
    inputs = program.inputs
    index = inputs[const_count]
    return program.replace(inputs=[*inputs[:const_count], *inputs[const_count + 1 :], index])


@memoised
def _counting_loop(
    program: Program, const_count: int, index_type: ArrayType
) -> tuple[Program, Program]:
    """Condition and body of a while loop with carry (index, upper bound, *carry)."""
    carry_types = program.output_types
    condition = stage_closed(
        lambda i, upper, *_: [lt(i, upper)],
        [index_type, index_type, *program.input_types[const_count + 1 :]],
        "below_upper",
    )
    one = scalar(1, index_type.dtype)
    increment = stage_closed(lambda i: [add(i, one)], [index_type]).equations[0]
    consts, index, carry = (
        program.inputs[:const_count],
        program.inputs[const_count],
        program.inputs[const_count + 1 :],
    )
    upper = Var(index_type)
    step = increment.replace(inputs=[index, increment.inputs[1]])
    body = program.replace(
        inputs=[*consts, index, upper, *carry],
        equations=[*program.equations, step],
        outputs=[*step.outputs, upper, *program.outputs],
    )
    assert len(carry_types) == len(carry)
    return condition, body
