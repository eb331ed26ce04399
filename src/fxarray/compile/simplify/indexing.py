"""Rules for gathers and scatters whose indices follow the array.

`x[arange(n), labels]` reads one element of each row. Its indices are pairs (row, column) in which
the row is just counted, so the rows can be batch dimensions, along which nothing is looked up. A
scatter of one element into each row of a constant array is then a comparison of column numbers,
which fuses with everything around it, where a scatter would not. Other scatters themselves count
negative indices from the end, as NumPy's indices do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from fxarray.compile.simplify.rewriting import Rewriter
from fxarray.core import dims, dtypes
from fxarray.core.ir import Atom, Equation, Literal
from fxarray.primitives.arithmetic import add
from fxarray.primitives.arithmetic import max as maximum
from fxarray.primitives.arithmetic import min as minimum
from fxarray.primitives.comparison import SelectN, eq
from fxarray.primitives.convert import ConvertElementType
from fxarray.primitives.create import Iota
from fxarray.primitives.create import scalar as scalar_array
from fxarray.primitives.gather import Gather
from fxarray.primitives.joining import Concatenate
from fxarray.primitives.movement import BroadcastInDim, Reshape
from fxarray.primitives.windows import GatherDimensionNumbers, GatherScatterMode, as_scatter


class _Batched(NamedTuple):
    """Dimension numbers in which counted components are batch dimensions, and indices without."""

    numbers: GatherDimensionNumbers
    indices: Atom


def counted_dimension(rewriter: Rewriter, atom: Atom) -> int | None:
    """The dimension along which an array of integers counts from 0; None if it is not so."""
    path: list[Equation] = []
    while True:
        known = rewriter.definition(atom)
        if known is None:
            return None
        if known.op.name == "iota":
            dimension: int | None = known.op.parameters()["dimension"]
            break
        if known.op.name not in ("reshape", "broadcast_in_dim", "convert_element_type"):
            return None
        path.append(known)
        atom = known.inputs[0]
    for equation in reversed(path):
        if dimension is None:
            return None
        dimension = _carried(equation, dimension)
    return dimension


def _carried(equation: Equation, dimension: int) -> int | None:
    """Where a dimension of an operation's operand is in its result."""
    before, after = equation.inputs[0].type.shape, equation.outputs[0].type.shape
    match equation.op.name:
        case "broadcast_in_dim":
            place = equation.op.parameters()["dimensions"][dimension]
            return place if dims.same(before[dimension], after[place]) else None
        case "reshape":
            old = [d for d, size in enumerate(before) if not dims.same(size, 1)]
            new = [d for d, size in enumerate(after) if not dims.same(size, 1)]
            if len(old) != len(new) or dimension not in old:
                return None
            kept = zip(old, new, strict=True)
            same = all(dims.same(before[a], after[b]) for a, b in kept)
            return new[old.index(dimension)] if same else None
        case _:
            source, target = equation.inputs[0].type.dtype, equation.outputs[0].type.dtype
            wide = dtypes.is_integer(target) and dtypes.bit_width(target) >= 32
            return dimension if wide and dtypes.is_integer(source) else None


def _batched(
    rewriter: Rewriter, equation: Equation, numbers: GatherDimensionNumbers, inputs: Sequence[Atom]
) -> _Batched | None:
    operand, indices = inputs[0].type, inputs[1]
    known = rewriter.definition(indices)
    rank = len(indices.type.shape)
    if known is None or known.op.name != "concatenate" or numbers.operand_batching_dims:
        return None
    pieces = known.inputs
    if known.op.parameters()["axis"] != rank - 1 or len(pieces) != len(numbers.start_index_map):
        return None
    pairs: list[tuple[int, int]] = []
    rest: list[int] = []
    for component, piece in enumerate(pieces):
        target = numbers.start_index_map[component]
        lane = counted_dimension(rewriter, piece)
        taken = [batch for _, batch in pairs]
        counted = lane is not None and lane < rank - 1 and lane not in taken
        alone = target in numbers.collapsed_slice_dims
        if (
            counted and alone and dims.same(operand.shape[target], indices.type.shape[lane])  # type: ignore[index]
        ):
            pairs.append((target, lane))  # type: ignore[arg-type]
            continue
        rest.append(component)
    if not pairs or not rest:
        return None
    pairs.sort()
    gone = {target for target, _ in pairs}
    columns = [pieces[component] for component in rest]
    if len(columns) > 1:
        columns = [rewriter.add(Concatenate(rank - 1), columns, equation)[0]]
    return _Batched(
        GatherDimensionNumbers(
            numbers.offset_dims,
            tuple([d for d in numbers.collapsed_slice_dims if d not in gone]),
            tuple([numbers.start_index_map[component] for component in rest]),
            tuple([target for target, _ in pairs]),
            tuple([lane for _, lane in pairs]),
        ),
        columns[0],
    )


def _gather(rewriter: Rewriter, equation: Equation, inputs: Sequence[Atom]) -> Atom | None:
    op: Any = equation.op
    found = _batched(rewriter, equation, op.dimension_numbers, inputs)
    if found is None:
        return None
    new = Gather(found.numbers, op.slice_sizes, False, False, op.mode, op.fill_value)
    return rewriter.add(new, [inputs[0], found.indices], equation)[0]


def _scatter(rewriter: Rewriter, equation: Equation, inputs: Sequence[Atom]) -> Atom | None:
    op: Any = equation.op
    numbers: GatherDimensionNumbers = op.dimension_numbers.as_gather()
    x, indices, updates = inputs
    found = _batched(rewriter, equation, numbers, inputs)
    if found is not None:
        numbers, indices = found
    chosen = _by_comparison(rewriter, equation, numbers, [x, indices, updates])
    if chosen is not None:
        return chosen
    if found is None:
        return _scatter_from_end(rewriter, equation, inputs)
    new = type(op)(as_scatter(numbers), False, False, op.mode)
    return rewriter.add(new, [x, indices, updates], equation)[0]


def _scatter_from_end(
    rewriter: Rewriter, equation: Equation, inputs: Sequence[Atom]
) -> Atom | None:
    """A scatter that counts negative indices from the end itself.

    An array of such indices would be written and read again, for no more than one comparison each.
    """
    op: Any = equation.op
    taken = op.dimension_numbers.as_gather().start_index_map
    if len(taken) != 1 or op.counts_from_end:
        return None
    x, indices, updates = inputs
    given = _counted_from_end(rewriter, indices, x.type.shape[taken[0]])
    if given is None:
        return None
    given = rewriter.add(Reshape(indices.type.shape), [given], equation)[0]
    new = type(op)(**{**op.parameters(), "counts_from_end": True})
    return rewriter.add(new, [x, given, updates], equation)[0]


def _counted_from_end(rewriter: Rewriter, atom: Atom, size: Any) -> Atom | None:
    """What `select(i < 0, i + size, i)` is made of, in the order of its elements."""
    known = rewriter.definition(atom)
    while known is not None and known.op.name == "reshape":
        known = rewriter.definition(known.inputs[0])
    if known is None or known.op.name != "select_n" or len(known.inputs) != 3:
        return None
    negative, given, counted = known.inputs
    compared, added = rewriter.definition(negative), rewriter.definition(counted)
    if compared is None or compared.op.name != "lt" or added is None or added.op.name != "add":
        return None
    zero, whole = compared.inputs[1], added.inputs[1]
    same = compared.inputs[0] is given and added.inputs[0] is given
    if not same or not isinstance(zero, Literal) or zero.value.numpy_view().any():
        return None
    return given if _is_size(rewriter, whole, size) else None


def _is_size(rewriter: Rewriter, atom: Atom, size: Any) -> bool:
    """Whether an atom is a size as a number."""
    if isinstance(atom, Literal):
        view = atom.value.numpy_view()
        return type(size) is int and view.ndim == 0 and int(view) == size
    known = rewriter.definition(atom)
    if known is not None and known.op.name == "convert_element_type":
        if dtypes.bit_width(known.outputs[0].type.dtype) < 32:
            return False
        known = rewriter.definition(known.inputs[0])
    if known is None or known.op.name != "size_value":
        return False
    return dims.same(known.op.parameters()["size"], size)


def _by_comparison(
    rewriter: Rewriter, equation: Equation, numbers: GatherDimensionNumbers, inputs: Sequence[Atom]
) -> Atom | None:
    """A scatter of one element into each row of a constant array."""
    x, indices, updates = inputs
    known = rewriter.definition(x)
    if known is None or known.op.name != "broadcast_in_dim" or known.inputs[0].type.shape:
        return None
    shape, batch = x.type.shape, indices.type.shape[:-1]
    lanes, rows = numbers.start_indices_batching_dims, numbers.operand_batching_dims
    if numbers.offset_dims or len(numbers.start_index_map) != 1 or len(rows) != len(shape) - 1:
        return None
    if list(lanes) != sorted(lanes) or list(rows) != sorted(rows):
        return None
    if not all(dims.same(size, 1) for d, size in enumerate(batch) if d not in lanes):
        return None
    (column,) = numbers.start_index_map
    row_shape = tuple([shape[d] for d in rows])

    def spread(atom: Atom) -> Atom:
        """A value for each row as one for each element."""
        atom = rewriter.add(Reshape(row_shape), [atom], equation)[0]
        return rewriter.add(BroadcastInDim(shape, rows), [atom], equation)[0]

    where: Atom = indices
    if dtypes.bit_width(where.type.dtype) < 32:
        where = rewriter.add(ConvertElementType(dtypes.int32), [where], equation)[0]
    kind = where.type.dtype
    size = shape[column]
    if equation.op.parameters()["mode"] is GatherScatterMode.CLIP:
        if not isinstance(size, int):
            return None
        last, first = Literal(scalar_array(size - 1, kind)), Literal(scalar_array(0, kind))
        where = rewriter.add(minimum, [where, last], equation)[0]
        where = rewriter.add(maximum, [where, first], equation)[0]
    columns = rewriter.add(Iota(kind, shape, column), [], equation)[0]
    here = rewriter.add(eq, [columns, spread(where)], equation)[0]
    value = spread(updates)
    if equation.op.name == "scatter_add":
        value = rewriter.add(add, [x, value], equation)[0]
    return rewriter.add(SelectN(), [here, x, value], equation)[0]


def _lt(rewriter: Rewriter, equation: Equation, inputs: Sequence[Atom]) -> Atom | None:
    """What is counted from 0 is not negative."""
    x, bound = inputs
    zero = type(bound) is Literal and not bound.value.numpy_view().any()
    if not zero or counted_dimension(rewriter, x) is None:
        return None
    false = Literal(scalar_array(False, dtypes.bool_))
    return rewriter.add(BroadcastInDim(x.type.shape, ()), [false], equation)[0]


INDEX_RULES: dict[str, Any] = {
    "gather": _gather,
    "scatter_add": _scatter,
    "scatter": _scatter,
    "scatter_mul": _scatter_from_end,
    "scatter_min": _scatter_from_end,
    "scatter_max": _scatter_from_end,
    "lt": _lt,
}
