"""Reductions by a function that the user wrote, over axes and over windows.

The function is a Program of 0-dimensional values, (captured..., accumulated..., next...) to
accumulated; it must be associative. `lax.reduce` and `lax.reduce_window` use these operations
only where no faster one does the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from fxarray.core import dims
from fxarray.core.errors import ArgumentError, AxisError, DTypeError, ProgramError, ShapeError
from fxarray.core.factors import Factors, letters
from fxarray.core.ir import Program
from fxarray.core.primitive import Primitive, Sample
from fxarray.core.types import ArrayType, Shape
from fxarray.interpreters.batch import batch_flat, batch_program
from fxarray.interpreters.evaluate import evaluate
from fxarray.interpreters.jvp import jvp_flat
from fxarray.interpreters.staging import stage_closed
from fxarray.primitives.comparison import broadcast_scalar, lt, select
from fxarray.primitives.control.numpy_runner import numpy_function
from fxarray.primitives.elementwise import mul
from fxarray.primitives.elementwise_base import Elementwise
from fxarray.primitives.joining import concatenate
from fxarray.primitives.movement import reshape, transpose
from fxarray.primitives.reduce import batched_axes, check_axes
from fxarray.primitives.slicing import Slice, pad
from fxarray.primitives.support import Values
from fxarray.primitives.window_places import Window, sample_windows, window_factors

_EXCUSED = {
    "lower": "the combination is a Program, which a device runs; kernels have those of a table",
    "transpose": "its derivative is made of simpler operations",
}


class Combining(Primitive):
    """What both share; operands are what the function captured, arrays, and initial values."""

    program: Program
    EXCUSED: ClassVar[dict[str, str]] = _EXCUSED
    memoise_infer: ClassVar[bool] = False

    @property
    def width(self) -> int:
        """How many arrays are reduced together."""
        return len(self.program.outputs)

    def parts(self, operands: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """The captured values, the arrays and the initial values among the operands."""
        start = len(operands) - 2 * self.width
        stop = start + self.width
        return list(operands[:start]), list(operands[start:stop]), list(operands[stop:])

    def check(self, types: Sequence[ArrayType]) -> ArrayType:
        """Raise unless the operands fit the Program and each other; returns the first array's."""
        if len(types) != len(self.program.inputs) or not self.width:
            raise ArgumentError(
                f"{self.name}: {self.program.name} takes {len(self.program.inputs)} values and "
                f"returns {self.width}, which does not fit {len(types)} operands"
            )
        captured, arrays, inits = self.parts(types)
        for number, (given, init) in enumerate(zip(arrays, inits, strict=True)):
            if given.ndim != arrays[0].ndim or not all(
                map(dims.same, given.shape, arrays[0].shape)
            ):
                raise ShapeError(
                    f"{self.name}: array {number} is {given}, but array 0 is {arrays[0]}; shapes "
                    f"must be equal"
                )
            if init.shape:
                raise ShapeError(f"{self.name}: initial value {number} must be scalar, got {init}")
            if init.dtype != given.dtype:
                raise DTypeError(
                    f"{self.name}: initial value {number} is {init}, but array {number} is "
                    f"{given}; dtypes must be equal"
                )
        wanted = [*captured, *[ArrayType((), given.dtype) for given in arrays * 2]]
        expected = [*self.program.input_types, *self.program.output_types]
        for given, inside in zip([*wanted, *wanted[len(captured) :]], expected, strict=False):
            if not given.same_array(inside):
                raise ProgramError(
                    f"{self.name}: {self.program.name} takes or returns {inside} where the arrays "
                    f"have {given}"
                )
        return arrays[0]

    def combine(self, captured: Sequence[Any], *sides: Sequence[Any]) -> list[Any]:
        """Apply the function to corresponding elements of arrays of one shape, or tracers."""
        shape = sides[0][0].type.shape
        values = [value for side in sides for value in side]
        if all(isinstance(equation.op, Elementwise) for equation in self.program.equations):
            results = evaluate(self.program, [*captured, *values])
            return [broadcast_scalar(result, shape) for result in results]
        size = dims.shape_product(shape)
        axes = (None,) * len(captured) + (0,) * len(values)
        flat = [reshape(value, (size,)) for value in values]
        program, _ = batch_program(self.program, size, None, axes, (True,) * self.width)
        results = evaluate(program, [*captured, *flat])
        return [reshape(result, shape) for result in results]

    def combine_numpy(self, rule: str, captured: Any, *sides: Sequence[Values]) -> list[Values]:
        """The same on NumPy arrays."""
        shape = sides[0][0].shape
        values = [value for side in sides for value in side]
        if all(isinstance(equation.op, Elementwise) for equation in self.program.equations):
            results = numpy_function(self.program, rule)(*captured, *values)
            return [np.broadcast_to(result, shape) for result in results]
        size = int(np.prod(shape, dtype=int))
        axes = (None,) * len(captured) + (0,) * len(values)
        program, _ = batch_program(self.program, size, None, axes, (True,) * self.width)
        flat = [value.reshape(size) for value in values]
        return [r.reshape(shape) for r in numpy_function(program, rule)(*captured, *flat)]

    def expanded(self, operands: Sequence[Any]) -> list[Any]:
        """The same by simpler operations, from which derivatives follow."""
        raise NotImplementedError

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return jvp_flat(lambda *operands: self.expanded(operands), primals, tangents)

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        captured, arrays, inits = self.parts(axes)
        mapped = {axis for axis in arrays if axis is not None}
        if len(mapped) == 1 and None not in arrays and {*captured, *inits} <= {None}:
            return self.with_axis(mapped.pop(), operands)
        return batch_flat(lambda *v: self.expanded(v), size, axis_name, operands, axes)

    def with_axis(
        self, axis: int, operands: Sequence[Any]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        """The rule for vmap if all arrays are mapped along `axis`, and nothing else is."""
        raise NotImplementedError


class Reduce(Combining, name="reduce"):
    """Combine all elements along `axes`, and the initial values, which must be the identity."""

    axes: tuple[int, ...]

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        first = self.check(types)
        check_axes(self.name, self.axes, first)
        shape = tuple([size for i, size in enumerate(first.shape) if i not in self.axes])
        return tuple([ArrayType(shape, given.dtype) for given in self.program.output_types])

    def _order(self, rank: int) -> tuple[int, ...]:
        return (*self.axes, *[i for i in range(rank) if i not in self.axes])

    def _flat(self, x: Values) -> Values:
        """The array with its reduced axes merged, first."""
        moved = x.transpose(self._order(x.ndim))
        rest = moved.shape[len(self.axes) :]
        return moved.reshape(int(np.prod(moved.shape[: len(self.axes)], dtype=int)), *rest)

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        captured, xs, inits = self.parts(arrays)
        flat = [self._flat(x) for x in xs]
        result = [np.broadcast_to(v, x.shape[1:]) for v, x in zip(inits, flat, strict=True)]
        with np.errstate(all="ignore"):
            for elements in zip(*flat, strict=True):
                result = self.combine_numpy("reference", captured, result, elements)
        return tuple(map(np.asarray, result))

    def eager(self, *arrays: Values) -> tuple[Values, ...]:
        # Neighbours are combined, until there is one element: a few operations on large arrays.
        captured, xs, inits = self.parts(arrays)
        flat = [self._flat(x) for x in xs]
        result = [np.broadcast_to(v, x.shape[1:]) for v, x in zip(inits, flat, strict=True)]
        with np.errstate(all="ignore"):
            while len(flat[0]):
                if len(flat[0]) == 1:
                    elements = [x[0] for x in flat]
                    result = self.combine_numpy("eager", captured, result, elements)
                    break
                even = len(flat[0]) // 2 * 2
                pairs = [x[:even:2] for x in flat], [x[1:even:2] for x in flat]
                halves = self.combine_numpy("eager", captured, *pairs)
                flat = [np.concatenate([h, x[even:]]) for h, x in zip(halves, flat, strict=True)]
        return tuple(map(np.asarray, result))

    def expanded(self, operands: Sequence[Any]) -> list[Any]:
        captured, xs, inits = self.parts(operands)
        shape = xs[0].type.shape
        kept: Shape = tuple([size for i, size in enumerate(shape) if i not in self.axes])
        count = dims.shape_product(tuple([shape[i] for i in self.axes]))
        if type(count) is not int:
            raise self.missing("jvp", f"the number of reduced elements, {count}, is symbolic")
        order = self._order(len(shape))
        flat = [reshape(transpose(x, order), (count, *kept)) for x in xs]
        result = [broadcast_scalar(init, kept) for init in inits]
        while count:
            if count == 1:
                return self.combine(captured, result, [reshape(x, kept) for x in flat])
            even = count // 2 * 2
            left = [_slice_first(x, 0, even, 2) for x in flat]
            right = [_slice_first(x, 1, even, 2) for x in flat]
            halves = self.combine(captured, left, right)
            if even != count:
                rest = [_slice_first(x, even, count, 1) for x in flat]
                halves = [concatenate([h, r], 0) for h, r in zip(halves, rest, strict=True)]
            flat, count = halves, count - count // 2
        return result

    def with_axis(
        self, axis: int, operands: Sequence[Any]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        moved, out_axis = batched_axes(self.axes, axis)
        return Reduce(self.program, moved).bind(*operands), (out_axis,) * self.width

    def shard(self, *types: ArrayType) -> Factors:
        captured, arrays, inits = self.parts(types)
        names = letters(arrays[0].ndim)
        gone = [names[i] for i in self.axes]
        kept = tuple(name for name in names if name not in gone)
        before = tuple(_unsplit(number, given) for number, given in enumerate(captured))
        inner = [name for operand in before for name in operand]
        return Factors(
            (*before, *[names] * len(arrays), *[()] * len(inits)),
            (kept,) * self.width,
            dict.fromkeys([*gone, *inner], "any"),
            frozenset((*gone, *inner)),
        )

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        zero, one = np.float32(0), np.float32(1)

        def draw(*shape: int) -> Values:
            return rng.uniform(0.5, 1.5, size=shape).astype("float32")

        product = _sample_product()
        yield Sample(cls(product, (0,)), (draw(0, 3), one))
        yield Sample(cls(product, (0,)), (draw(1), one))
        yield Sample(cls(product, ()), (draw(2, 3), one))
        yield Sample(cls(product, (0, 2)), (draw(2, 3, 4), one))
        scaled = _sample_scaled_product()
        yield Sample(cls(scaled, (1,)), (np.float32(0.5), draw(2, 7), np.float32(2)))
        best = _sample_arg_min()
        places = np.arange(6, dtype=np.int32).reshape(2, 3)
        top = (np.float32(np.inf), np.int32(-1))
        yield Sample(cls(best, (1,)), (draw(2, 3), places, *top), differentiable=False)
        yield Sample(cls(product, (2,)), (draw(2, 3), one), error=AxisError)
        yield Sample(cls(product, (0,)), (draw(2, 3), draw(2)), error=ShapeError)
        yield Sample(cls(product, (0,)), (draw(2, 3), np.int32(1)), error=DTypeError)
        yield Sample(cls(product, (0,)), (draw(2, 3).astype("float64"), 1.0), error=ProgramError)
        yield Sample(cls(product, (0,)), (draw(2, 3), zero, one), error=ArgumentError)


class ReduceWindow(Combining, name="reduce_window"):
    """Combine the elements of each window, in order, starting with the initial values.

    Padding, and what lies between elements that are spread apart, is the initial value too.
    """

    window: Window

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        first = self.check(types)
        self.window.check(self.name, first)
        shape = self.window.counts(first.shape)
        return tuple([ArrayType(shape, given.dtype) for given in self.program.output_types])

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        return self._run("reference", arrays)

    def eager(self, *arrays: Values) -> tuple[Values, ...]:
        return self._run("eager", arrays)

    def _run(self, rule: str, arrays: Sequence[Values]) -> tuple[Values, ...]:
        captured, xs, inits = self.parts(arrays)
        window = self.window
        counts: Any = window.counts(xs[0].shape)
        result = [np.broadcast_to(init, counts) for init in inits]
        if not result[0].size:
            return tuple(result)
        padded = [window.prepare(x, init) for x, init in zip(xs, inits, strict=True)]
        with np.errstate(all="ignore"):
            for offset in np.ndindex(*window.dimensions):
                box = tuple(map(window.place, range(len(counts)), offset, counts))
                result = self.combine_numpy(rule, captured, result, [x[box] for x in padded])
        return tuple(map(np.asarray, result))

    def expanded(self, operands: Sequence[Any]) -> list[Any]:
        captured, xs, inits = self.parts(operands)
        window = self.window
        counts = window.counts(xs[0].type.shape)
        config = [
            (low, high, step - 1)
            for (low, high), step in zip(window.padding, window.base_dilation, strict=True)
        ]
        result = [broadcast_scalar(init, counts) for init in inits]
        if any(dims.same(count, 0) for count in counts):
            return result
        padded = [pad(x, init, config) for x, init in zip(xs, inits, strict=True)]
        for offset in np.ndindex(*window.dimensions):
            starts = tuple([o * d for o, d in zip(offset, window.dilation, strict=True)])
            stops = tuple(
                [
                    start + (count - 1) * stride + 1
                    for start, count, stride in zip(starts, counts, window.strides, strict=True)
                ]
            )
            part = Slice(starts, stops, window.strides)
            result = self.combine(captured, result, [part(x) for x in padded])
        return result

    def with_axis(
        self, axis: int, operands: Sequence[Any]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        op = ReduceWindow(self.program, self.window.insert(axis))
        return op.bind(*operands), (axis,) * self.width

    def shard(self, *types: ArrayType) -> Factors:
        captured, arrays, inits = self.parts(types)
        found = window_factors(self.window, arrays[0].ndim, len(arrays), (), self.width)
        before = tuple(_unsplit(number, given) for number, given in enumerate(captured))
        inner = [name for operand in before for name in operand]
        return Factors(
            (*before, *found.operands, *[()] * len(inits)),
            found.results,
            {**found.vanished, **dict.fromkeys(inner, "any")},
            found.whole | frozenset(inner),
        )

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        product = _sample_product()
        for window, shape in sample_windows():
            x = rng.uniform(0.5, 1.5, size=shape).astype("float32")
            yield Sample(cls(product, window), (x, np.float32(0.75)))
        window = Window((3,), (2,), ((1, 1),), (1,), (1,))
        x = rng.uniform(0.5, 1.5, size=7).astype("float32")
        scaled = _sample_scaled_product()
        yield Sample(cls(scaled, window), (np.float32(0.5), x, np.float32(2)))
        yield Sample(cls(product, window), (np.ones((2, 3), "float32"), 1), error=DTypeError)
        yield Sample(
            cls(product, window), (np.ones((2, 3), "float32"), np.float32(1)), error=ShapeError
        )


def _slice_first(x: Any, start: int, stop: int, step: int) -> Any:
    shape = x.type.shape
    rest = len(shape) - 1
    op = Slice((start, *[0] * rest), (stop, *shape[1:]), (step, *[1] * rest))
    return op(x)


def _unsplit(number: int, given: ArrayType) -> tuple[str, ...]:
    return tuple(f"captured{number}_{i}" for i in range(given.ndim))


# --- functions of the samples ---------------------------------------------------------------------

_SCALAR = ArrayType((), np.dtype("float32"))


def _sample_product() -> Program:
    return stage_closed(lambda x, y: [mul(x, y)], [_SCALAR] * 2, "product")


def _sample_scaled_product() -> Program:
    return stage_closed(lambda c, x, y: [mul(mul(x, y), c)], [_SCALAR] * 3, "scaled_product")


def _sample_arg_min() -> Program:
    index = ArrayType((), np.dtype("int32"))

    def smaller(x: Any, i: Any, y: Any, j: Any) -> list[Any]:
        first = lt(x, y)
        return [select(first, x, y), select(first, i, j)]

    return stage_closed(smaller, [_SCALAR, index] * 2, "arg_min")
