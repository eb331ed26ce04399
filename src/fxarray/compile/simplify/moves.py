"""Rules for operations that move elements: two become one, and those that do nothing go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fxarray.compile.simplify.rewriting import Rewriter
from fxarray.core import dims
from fxarray.core.ir import Atom, Equation, Literal
from fxarray.core.types import Shape, shape_key
from fxarray.primitives.movement import BroadcastInDim, Reshape, Transpose
from fxarray.primitives.slicing import Slice

# How many updates of an array a slice of it is looked for before.
_MANY = 64


def _inner(rewriter: Rewriter, atom: Atom, name: str) -> tuple[Any, Atom] | None:
    """The operation of a name that gives an atom, and its first operand."""
    known = rewriter.definition(atom)
    if known is None or known.op.name != name:
        return None
    return known.op, known.inputs[0]


def same_shape(first: Shape, second: Shape) -> bool:
    """Whether two shapes are known to be equal."""
    return shape_key(first) == shape_key(second)


def _transpose(rewriter: Rewriter, equation: Equation, inputs: Sequence[Atom]) -> Atom | None:
    (x,) = inputs
    permutation: tuple[int, ...] = equation.op.parameters()["permutation"]
    inner = _inner(rewriter, x, "transpose")
    if inner is not None:
        op, x = inner
        permutation = tuple([op.permutation[p] for p in permutation])
    if list(permutation) == list(range(len(permutation))):
        return x
    return rewriter.add(Transpose(permutation), [x], equation)[0] if inner is not None else None


def _reshape(rewriter: Rewriter, equation: Equation, inputs: Sequence[Atom]) -> Atom | None:
    (x,) = inputs
    shape: Shape = equation.op.parameters()["shape"]
    if same_shape(x.type.shape, shape):
        return x
    inner = _inner(rewriter, x, "reshape")
    if inner is not None:
        source = inner[1]
        if same_shape(source.type.shape, shape):
            return source
        return rewriter.add(Reshape(shape), [source], equation)[0]
    if type(x) is Literal or not x.type.shape:
        return rewriter.add(BroadcastInDim(shape, ()), [x], equation)[0]
    repeated = _inner(rewriter, x, "broadcast_in_dim")
    if repeated is not None and not repeated[1].type.shape:
        return rewriter.add(BroadcastInDim(shape, ()), [repeated[1]], equation)[0]
    return None


def _broadcast(rewriter: Rewriter, equation: Equation, inputs: Sequence[Atom]) -> Atom | None:
    (x,) = inputs
    shape: Shape = equation.op.parameters()["shape"]
    dimensions: tuple[int, ...] = equation.op.parameters()["dimensions"]
    if same_shape(x.type.shape, shape):
        return x
    inner = _inner(rewriter, x, "broadcast_in_dim")
    if inner is not None:
        op, source = inner
        placed = tuple([dimensions[d] for d in op.dimensions])
        return rewriter.add(BroadcastInDim(shape, placed), [source], equation)[0]
    return None


def _rev(rewriter: Rewriter, equation: Equation, inputs: Sequence[Atom]) -> Atom | None:
    (x,) = inputs
    dimensions = equation.op.parameters()["dimensions"]
    inner = _inner(rewriter, x, "rev")
    if not dimensions:
        return x
    if inner is not None and sorted(inner[0].dimensions) == sorted(dimensions):
        return inner[1]
    return None


def _slice(rewriter: Rewriter, equation: Equation, inputs: Sequence[Atom]) -> Atom | None:
    (x,) = inputs
    op: Any = equation.op
    if same_shape(x.type.shape, equation.outputs[0].type.shape):
        return x
    known = rewriter.definition(x)
    if known is None:
        return None
    if known.op.name == "concatenate":
        return _slice_of_piece(rewriter, equation, known)
    if known.op.name == "dynamic_update_slice":
        return _slice_of_update(rewriter, equation, x)
    if known.op.name == "broadcast_in_dim" and not known.inputs[0].type.shape:
        shape = equation.outputs[0].type.shape
        return rewriter.add(BroadcastInDim(shape, ()), [known.inputs[0]], equation)[0]
    if known.op.name == "slice":
        fused = _slice_of_slice(op, known.op)
        return None if fused is None else rewriter.add(fused, [known.inputs[0]], equation)[0]
    return None


def _slice_of_slice(op: Any, inner: Any) -> Slice | None:
    """One slice for two, where all bounds are numbers."""
    starts: list[int] = []
    limits: list[int] = []
    strides: list[int] = []
    outer = zip(op.start_indices, op.limit_indices, op.strides, strict=True)
    for (start, limit, stride), first, step in zip(
        outer, inner.start_indices, inner.strides, strict=True
    ):
        if not (isinstance(start, int) and isinstance(limit, int) and isinstance(first, int)):
            return None
        count = len(range(start, limit, stride))
        begin = first + start * step
        starts.append(begin if count else 0)
        limits.append(begin + (count - 1) * stride * step + 1 if count else 0)
        strides.append(stride * step)
    return Slice(tuple(starts), tuple(limits), tuple(strides))


def _slice_of_piece(rewriter: Rewriter, equation: Equation, known: Equation) -> Atom | None:
    """A slice of a concatenation that lies within one piece."""
    op: Any = equation.op
    axis: int = known.op.parameters()["axis"]
    start, limit = op.start_indices[axis], op.limit_indices[axis]
    if not isinstance(start, int) or not isinstance(limit, int):
        return None
    begin = 0
    for piece in known.inputs:
        size = piece.type.shape[axis]
        if not isinstance(size, int):
            return None
        if begin <= start and limit <= begin + size:
            starts, limits = list(op.start_indices), list(op.limit_indices)
            starts[axis], limits[axis] = start - begin, limit - begin
            if same_shape(piece.type.shape, equation.outputs[0].type.shape):
                return piece
            part = Slice(tuple(starts), tuple(limits), op.strides)
            return rewriter.add(part, [piece], equation)[0]
        begin += size
    return None


def _slice_of_update(rewriter: Rewriter, equation: Equation, x: Atom) -> Atom | None:
    """A slice of an array of which parts were replaced, that takes none of them or is in one."""
    op: Any = equation.op
    box = list(zip(op.start_indices, op.limit_indices, strict=True))
    if not all(isinstance(end, int) for ends in box for end in ends):
        return None
    source = x
    for _ in range(_MANY):
        known = rewriter.definition(source)
        if known is None or known.op.name != "dynamic_update_slice":
            break
        operand, update, *starts = known.inputs
        part = _replaced(operand.type.shape, update.type.shape, starts)
        if part is None:
            break
        inside = all(s <= a and b <= e for (a, b), (s, e) in zip(box, part, strict=True))
        if inside:
            moved = [(a - s, b - s) for (a, b), (s, _) in zip(box, part, strict=True)]
            first, last = zip(*moved, strict=True) if moved else ((), ())
            if same_shape(update.type.shape, equation.outputs[0].type.shape):
                return update
            return rewriter.add(Slice(first, last, op.strides), [update], equation)[0]
        if not any(b <= s or e <= a for (a, b), (s, e) in zip(box, part, strict=True)):
            break
        source = operand
    return None if source is x else rewriter.add(op, [source], equation)[0]


def _replaced(shape: Shape, update: Shape, starts: Sequence[Atom]) -> list[tuple[int, int]] | None:
    """Where an update lies, if all of it is known."""
    part: list[tuple[int, int]] = []
    for whole, size, start in zip(shape, update, starts, strict=True):
        if not (isinstance(whole, int) and isinstance(size, int) and type(start) is Literal):
            return None
        first = min(max(int(start.value.numpy_view()), 0), whole - size)
        part.append((first, first + size))
    return part


def _concatenate(rewriter: Rewriter, equation: Equation, inputs: Sequence[Atom]) -> Atom | None:
    axis: int = equation.op.parameters()["axis"]
    pieces = [x for x in inputs if not dims.same(x.type.shape[axis], 0)]
    return pieces[0] if len(pieces) == 1 else None


def _reduce(rewriter: Rewriter, equation: Equation, inputs: Sequence[Atom]) -> Atom | None:
    return inputs[0] if not equation.op.parameters()["axes"] else None


_REDUCTIONS = ["reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_and", "reduce_or"]

MOVE_RULES: dict[str, Any] = {
    "transpose": _transpose,
    "reshape": _reshape,
    "broadcast_in_dim": _broadcast,
    "rev": _rev,
    "slice": _slice,
    "concatenate": _concatenate,
    **dict.fromkeys(_REDUCTIONS, _reduce),
}
