"""Convolution: a contraction over windows that slide over an array.

One form serves all. Both operands have a group dimension, and only equal groups meet; so grouped
features, grouped batches and mapping over kernels are groups, mapping over arrays or kernels alone
is more batch or more features, and both derivatives are convolutions again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.dtypes import DType
from fxarray.core.errors import DTypeError, ShapeError
from fxarray.core.factors import Factors, letters
from fxarray.core.hooks import operators
from fxarray.core.primitive import Linear, Primitive, Sample, Zero, add_tangents
from fxarray.core.types import ArrayType, Shape, Size
from fxarray.kernel.build import Builder, Index, Lowered, kernel_dtype
from fxarray.kernel.sizes import user_size
from fxarray.primitives.elementwise_base import check_count, check_group
from fxarray.primitives.lowering import accumulated_in, inside_or
from fxarray.primitives.movement import reshape, rev, transpose
from fxarray.primitives.support import NUMBER, Values
from fxarray.primitives.window_places import (
    Pads,
    Window,
    spread,
    window_counts,
    window_steps,
)


class Convolution(Primitive, name="conv_general_dilated"):
    """The sum over features and window of an array times a kernel (not reversed).

    Operands are an array (group, batch, feature, *space) and a kernel (group, out feature, feature,
    *window), the result is (group, batch, out feature, *places). The array is first spread and
    padded with zeros. Floats narrower than float32 are summed in float32.

    Args:
      strides: the distance from one window to the next, per dimension of space.
      padding: how many zeros to add before and after (negative: how many elements to remove).
      array_dilation: the distance between elements of the array.
      kernel_dilation: the distance between elements of a window.
      result_dtype: the dtype of the result, or None for that of the operands.
      precision: kept for devices that have several.
    """

    strides: tuple[int, ...]
    padding: Pads
    array_dilation: tuple[int, ...]
    kernel_dilation: tuple[int, ...]
    result_dtype: DType | None = None
    precision: str | None = None

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        check_count(self.name, types, 2)
        x, kernel = types
        for number, given in enumerate(types):
            check_group(self.name, number, given, NUMBER)
        if x.dtype != kernel.dtype and self.result_dtype is None:
            raise DTypeError(
                f"{self.name}: operand 1 is {kernel}, but operand 0 is {x}; dtypes must be equal "
                f"unless preferred_element_type says what the result is. Cast one with .astype()."
            )
        count = len(self.strides)
        if x.ndim != count + 3 or kernel.ndim != count + 3:
            raise ShapeError(
                f"{self.name}: an array and a kernel with {count} dimensions of space have rank "
                f"{count + 3} with those of groups, batch and features, got {x} and {kernel}"
            )
        for what, values in (
            ("strides", self.strides),
            ("array dilation", self.array_dilation),
            ("kernel dilation", self.kernel_dilation),
        ):
            if len(values) != count or not all(type(v) is int and v > 0 for v in values):
                raise ShapeError(
                    f"{self.name}: {what} {values} must be {count} integers of at least 1"
                )
        if len(self.padding) != count:
            raise ShapeError(f"{self.name}: padding {self.padding} must be {count} pairs")
        for axis, what in ((0, "groups"), (2, "features")):
            if not dims.same(x.shape[axis], kernel.shape[axis]):
                raise ShapeError(
                    f"{self.name}: the array has {x.shape[axis]} {what} and the kernel "
                    f"{kernel.shape[axis]}, which must be equal: (group, batch, feature, *space) = "
                    f"{x}, (group, out feature, feature, *window) = {kernel}"
                )
        places = self.window(kernel.shape).counts(self._space(x.shape))
        dtype = x.dtype if self.result_dtype is None else self.result_dtype
        weak = x.weak and kernel.weak and self.result_dtype is None
        return (ArrayType((*x.shape[:2], kernel.shape[1], *places), dtype, weak),)

    def _space(self, shape: Shape) -> Shape:
        return shape[3:]

    def window(self, kernel_shape: Shape) -> Window:
        """The windows, in the dimensions of space."""
        sizes: Any = kernel_shape[3:]
        return Window(sizes, self.strides, self.padding, self.array_dilation, self.kernel_dilation)

    def _wide(self, x: Values, kernel: Values) -> tuple[Values, Values, Any]:
        """Operands in the dtype of the sum, and the dtype of the result."""
        result: Any = x.dtype if self.result_dtype is None else self.result_dtype
        sums: list[Any] = [dtypes.accumulator(d) for d in (x.dtype, kernel.dtype, result)]
        wide = np.result_type(*sums)
        return x.astype(wide, copy=False), kernel.astype(wide, copy=False), result

    def _prepared(self, x: Values, kernel: Values) -> tuple[Values, Window, tuple[int, ...]]:
        """The array spread and padded, the windows in it, and how many there are."""
        window = self.window(kernel.shape)
        counts: Any = window.counts(x.shape[3:])
        whole = window
        for _ in range(3):
            whole = whole.insert(0)
        return whole.prepare(x, 0), window, counts

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        x, kernel, result = self._wide(*arrays)
        padded, window, counts = self._prepared(x, kernel)
        total = np.zeros((*x.shape[:2], kernel.shape[1], *counts), x.dtype)
        if total.size:
            with np.errstate(all="ignore"):
                for offset in np.ndindex(*window.dimensions):
                    box = [window.place(i, o, counts[i]) for i, o in enumerate(offset)]
                    part = padded[(..., *box)]
                    weights = kernel[(..., *offset)]
                    total += np.einsum("gnc...,goc->gno...", part, weights)
        return (dtypes.cast(total, dtypes.physical(result)),)

    def eager(self, *arrays: Values) -> tuple[Values, ...]:
        x, kernel, result = self._wide(*arrays)
        padded, window, counts = self._prepared(x, kernel)
        groups, batch, features = x.shape[:3]
        shape = (groups, batch, kernel.shape[1], *counts)
        if not np.prod(shape) or not kernel.size:
            return (np.zeros(shape, dtypes.physical(result)),)
        # All windows as rows of one matrix per group (a copy, unless a window is one element), so
        # that BLAS does the rest.
        steps = padded.strides[3:]
        view = np.lib.stride_tricks.as_strided(
            padded,
            (groups, batch, *counts, features, *window.dimensions),
            (
                *padded.strides[:2],
                *[step * s for step, s in zip(steps, window.strides, strict=True)],
                padded.strides[2],
                *[step * d for step, d in zip(steps, window.dilation, strict=True)],
            ),
            writeable=False,
        )
        rows = view.reshape(groups, batch * int(np.prod(counts, dtype=int)), -1)
        weights = kernel.reshape(groups, kernel.shape[1], -1).transpose(0, 2, 1)
        with np.errstate(all="ignore"):
            product = np.matmul(rows, weights).reshape(groups, batch, *counts, -1)
        value = np.moveaxis(product, -1, 2)
        return (dtypes.cast(value, dtypes.physical(result)),)

    def lower(self, builder: Builder, *operands: Lowered) -> tuple[Lowered, ...]:
        x, kernel = operands
        window = self.window(tuple(map(user_size, kernel.shape)))
        places = window_counts(window, x.shape[3:])
        result = x.dtype if self.result_dtype is None else kernel_dtype(self.result_dtype)
        total = accumulated_in(x.dtype, kernel.dtype, result)
        zeros = builder.constant(0, x.dtype), builder.constant(0, kernel.dtype)

        def element(index: Index) -> int:
            group, row, feature, *here = index
            space = x.shape[3:]
            steps = [window_steps(builder, window, d, p, space[d]) for d, p in enumerate(here)]

            def factors(summed: Index) -> tuple[int, int]:
                channel, *inner = summed
                stands = [step.place(offset) for step, offset in zip(steps, inner, strict=True)]
                spot = (group, row, channel, *[place for _, place in stands])
                inside = [bound for bounds, _ in stands for bound in bounds]
                taps = [step.tap(offset) for step, offset in zip(steps, inner, strict=True)]
                tap = (group, feature, channel, *taps)
                known = [(t, 0, n) for t, n in zip(taps, kernel.shape[3:], strict=True)]
                return (
                    inside_or(builder, inside, lambda: x.element(spot), zeros[0]),
                    inside_or(builder, known, lambda: kernel.element(tap), zeros[1]),
                )

            lengths = [x.shape[2], *[step.steps for step in steps]]
            names, (a, b) = builder.over(lengths, index, factors)
            return builder.convert(builder.contract(a, b, names, total), result)

        shape = (*x.shape[:2], kernel.shape[1], *places)
        return (builder.lowered(shape, result, element),)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        outputs = self.bind(*primals)
        (x, kernel), (dx, dkernel) = primals, tangents
        total: Any = Zero(outputs[0].type.tangent())
        if type(dx) is not Zero:
            total = self(dx, kernel)
        if type(dkernel) is not Zero:
            total = add_tangents(total, self(x, dkernel))
        return outputs, (total,)

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        (cotangent,), (x, kernel) = cotangents, operands
        if type(x) is Linear:
            return self._for_array(cotangent, x, kernel), None
        return None, self._for_kernel(cotangent, x, kernel)

    def _for_array(self, cotangent: Any, x: Linear, kernel: Any) -> Any:
        # Window y meets element x at offset k where y s + k d = x b + low. So an element sums the
        # cotangents, spread by s, times the kernel reversed; strides and dilation change places.
        if _is_empty(cotangent):
            return operators.zeros(ArrayType(x.shape, x.dtype))
        window = self.window(kernel.type.shape)
        padding: list[tuple[Size, Size]] = []
        for i, size in enumerate(x.shape[3:]):
            extent = window.extent(i)
            low = extent - 1 - self.padding[i][0]
            reach = (size - 1) * self.array_dilation[i] + extent
            have = spread(cotangent.type.shape[3 + i], self.strides[i])
            padding.append((low, reach - low - have))
        op = Convolution(
            self.array_dilation,
            tuple(padding),
            self.strides,
            self.kernel_dilation,
            x.dtype,
            self.precision,
        )
        reversed_kernel = rev(kernel, range(3, kernel.type.ndim))
        return op(cotangent, _exchange(reversed_kernel))

    def _for_kernel(self, cotangent: Any, x: Any, kernel: Linear) -> Any:
        # Offset k sums, over y, the array at y s + k d - low times the cotangent: the cotangent is
        # the kernel, the batch is summed as features are, and strides and dilation change places.
        if _is_empty(cotangent) or _is_empty(x):
            return operators.zeros(ArrayType(kernel.shape, kernel.dtype))
        padding: list[tuple[Size, Size]] = []
        for i, size in enumerate(kernel.shape[3:]):
            low = self.padding[i][0]
            reach = (size - 1) * self.kernel_dilation[i] + 1
            reach = reach + (cotangent.type.shape[3 + i] - 1) * self.strides[i]
            have = spread(x.type.shape[3 + i], self.array_dilation[i])
            padding.append((low, reach - low - have))
        op = Convolution(
            self.kernel_dilation,
            tuple(padding),
            self.array_dilation,
            self.strides,
            kernel.dtype,
            self.precision,
        )
        return _exchange(op(_exchange(x), _exchange(cotangent)))

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        x, kernel = operands
        if axes[0] is not None and axes[1] is not None:
            groups = _without(x, axes[0])[0]
            result = self(_merge(x, axes[0], 0), _merge(kernel, axes[1], 0))
            return (_unmerge(result, size, groups, 0),), (0,)
        if axes[0] is not None:
            count = _without(x, axes[0])[1]
            return (_unmerge(self(_merge(x, axes[0], 1), kernel), size, count, 1),), (1,)
        assert axes[1] is not None
        count = _without(kernel, axes[1])[1]
        return (_unmerge(self(x, _merge(kernel, axes[1], 1)), size, count, 2),), (2,)

    def shard(self, *types: ArrayType) -> Factors:
        count = len(self.strides)
        names = letters(4 + 3 * count)
        group, batch, feature, out = names[:4]
        space, window, places = (names[4 + i * count : 4 + (i + 1) * count] for i in range(3))
        vanished = {feature: "sum", **dict.fromkeys((*space, *window), "any")}
        return Factors(
            ((group, batch, feature, *space), (group, out, feature, *window)),
            ((group, batch, out, *places),),
            vanished,
            frozenset((*space, *window, *places)),
            (0, 1),
        )

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        def pair(x: Sequence[int], kernel: Sequence[int], dtype: str = "float64") -> Any:
            arrays = [rng.normal(size=shape) * 3 for shape in (x, kernel)]
            if np.dtype(dtype).kind == "c":
                arrays = [a + 1j * rng.normal(size=a.shape) for a in arrays]
            return tuple(a.astype(dtype) for a in arrays)

        plain = cls((1,), ((0, 0),), (1,), (1,))
        yield Sample(plain, pair((1, 0, 2, 5), (1, 3, 2, 2)))
        yield Sample(plain, pair((1, 2, 0, 5), (1, 3, 0, 2)))
        yield Sample(plain, pair((1, 2, 3, 1), (1, 4, 3, 2)))  # no window fits
        yield Sample(cls((), (), (), ()), pair((2, 3, 4), (2, 5, 4)))
        yield Sample(plain, pair((2, 3, 4, 7), (2, 5, 4, 3)))
        yield Sample(cls((2,), ((1, 2),), (1,), (1,)), pair((1, 2, 3, 8), (1, 4, 3, 3)))
        yield Sample(cls((2,), ((3, -1),), (3,), (2,)), pair((1, 2, 3, 4), (1, 5, 3, 2)))
        yield Sample(cls((3,), ((-1, -2),), (2,), (1,)), pair((1, 2, 3, 7), (1, 4, 3, 2)))
        two = cls((2, 1), ((1, 0), (0, 2)), (1, 2), (2, 1))
        yield Sample(two, pair((2, 3, 1, 6, 5), (2, 4, 1, 3, 5)))
        for dtype in ("float32", "complex128", "int32", "int8"):
            yield Sample(plain, pair((1, 2, 3, 6), (1, 4, 3, 2), dtype))
        half = pair((1, 2, 3, 6), (1, 4, 3, 2), "float16")
        yield Sample(plain, half)
        yield Sample(cls((1,), ((0, 0),), (1,), (1,), np.dtype("float32")), half)
        yield Sample(plain, pair((1, 2, 3, 6), (1, 4, 2, 2)), error=ShapeError)
        yield Sample(plain, pair((1, 2, 3, 6, 2), (1, 4, 3, 2)), error=ShapeError)
        mixed = pair((1, 2, 3, 6), (1, 4, 3, 2))
        yield Sample(plain, (mixed[0], mixed[1].astype("float32")), error=DTypeError)


def _is_empty(x: Any) -> bool:
    return any(dims.same(size, 0) for size in x.type.shape)


def _exchange(x: Any) -> Any:
    """Dimensions 1 and 2 exchanged."""
    return transpose(x, (0, 2, 1, *range(3, x.type.ndim)))


def _without(x: Any, axis: int) -> Shape:
    """The shape without the mapped axis."""
    shape = x.type.shape
    return (*shape[:axis], *shape[axis + 1 :])


def _merge(x: Any, axis: int, target: int) -> Any:
    """The mapped axis made part of dimension `target` (of the array without it)."""
    moved = operators.move_axis(x, axis, target)
    shape = moved.type.shape
    return reshape(
        moved, (*shape[:target], shape[target] * shape[target + 1], *shape[target + 2 :])
    )


def _unmerge(x: Any, size: Any, rest: Any, target: int) -> Any:
    """A mapped axis that was made part of dimension `target`, in front of it again."""
    shape = x.type.shape
    return reshape(x, (*shape[:target], size, rest, *shape[target + 1 :]))
