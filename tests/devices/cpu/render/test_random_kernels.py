"""Random legal kernels: what is rendered does what the interpreter does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fxarray.core import dtypes
from fxarray.kernel.build import Builder
from fxarray.kernel.ir import Affine, Buffer, Kernel
from fxarray.kernel.scalars import numpy_dtype

_SIZES = (1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 24, 32, 33, 40, 64, 70, 129)
_FLOAT_OPS = ("add", "sub", "mul", "max", "min")
_INTEGER_OPS = ("add", "sub", "mul", "max", "min", "and", "or", "xor")
_DTYPES = ("f32", "f32", "f32", "f64", "i32", "i64", "u8", "i16", "bool", "c64", "bf16")


class Maker:
    """Makes one kernel, all choices from one seed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.dtype = self.pick(_DTYPES)
        rank = int(self.rng.integers(1, 5))
        extents: dict[str, Any] = {}
        for axis in "ijkl"[:rank]:
            room = 20000 // max(int(np.prod(list(extents.values()), dtype=int)), 1)
            extents[axis] = self.pick([size for size in _SIZES if size <= room] or [1])
        if self.rng.random() < 0.05:
            extents[self.pick(list(extents))] = 0
        self.extents = extents
        self.b = Builder(f"random{seed}", dict(extents))
        self.inputs = 0
        self.values = [self.load() for _ in range(int(self.rng.integers(1, 4)))]

    def pick(self, options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def buffer(self, shape: list[int], dtype: str) -> Buffer:
        self.inputs += 1
        return self.b.input(f"x{self.inputs}", shape, dtype)

    # --- nodes ------------------------------------------------------------------------------------

    def load(self) -> int:
        """A load with a random view: some axes, any order, flips, steps, padding, gathers."""
        axes = [axis for axis in self.extents if self.chance(0.8)]
        self.rng.shuffle(axes)
        index: list[Affine] = []
        shape: list[int] = []
        guards: list[Any] = []
        for axis in axes:
            size = self.extents[axis]
            kind = self.rng.random()
            if kind < 0.55:
                index.append(Affine.of(axis))
                shape.append(size)
            elif kind < 0.7:
                index.append(Affine(((axis, -1),), size - 1))
                shape.append(max(size, 1))
            elif kind < 0.8:
                index.append(Affine(((axis, 2),), 1))
                shape.append(2 * size + 1)
            elif kind < 0.92:
                inside = max(size - int(self.rng.integers(1, 4)), 1)
                place = Affine(((axis, 1),), -int(self.rng.integers(0, 3)))
                index.append(place)
                shape.append(inside)
                guards.append((place, 0, inside))
            else:
                positions = self.buffer([size], "i32")
                index.append(Affine(((self.b.load(positions, [axis]), 1),)))
                shape.append(9)
        if not shape:
            shape, index = [3], [Affine((), 1)]
        source = self.buffer(shape, self.dtype)
        if not guards:
            return self.b.load(source, index)
        with self.b.guarded(*guards):
            fill = self.pick([0, 1, 2]) if self.dtype != "bool" else self.chance(0.5)
            return self.b.load(source, index, fill=fill)

    def combine(self) -> None:
        a, b = self.pick(self.values), self.pick(self.values)
        operations = _INTEGER_OPS if self.dtype[0] in "iu" else _FLOAT_OPS
        if self.dtype == "bool":
            operations = ("and", "or", "xor")
        elif self.dtype[0] == "c":
            operations = ("add", "sub", "mul")
        value = self.b.op(self.pick(operations), a, b)
        if self.chance(0.2) and self.dtype[0] not in "cb":
            value = self.b.op("select", self.b.op("lt", a, b), value, a)
        if self.chance(0.15) and self.dtype in ("f32", "f64"):
            value = self.b.op("tanh", value)
        self.values.append(value)

    def combiner(self) -> str:
        if self.dtype == "bool":
            return self.pick(["and", "or", "xor"])
        if self.dtype[0] == "c":
            return "sum"
        return self.pick(["sum", "sum", "max", "min"])

    def reduce(self) -> None:
        value = self.pick(self.values)
        axes = [a for a in self.extents if a in self.b.value_axes[value]]
        if not axes:
            return
        self.rng.shuffle(axes)
        axes = axes[: int(self.rng.integers(1, len(axes) + 1))]
        if self.chance(0.2) and self.dtype[0] in "fiu":
            place = self.b.iota(axes[0])
            self.stored(self.b.reduce(self.pick(["argmax", "argmin"]), axes, value, place)[1])
            return
        self.values.append(self.b.reduce(self.combiner(), axes, value)[0])

    def scan(self) -> None:
        value = self.pick(self.values)
        axes = [a for a in self.extents if a in self.b.value_axes[value]]
        if not axes:
            return
        axis, reverse, exclusive = self.pick(axes), self.chance(0.3), self.chance(0.3)
        scanned = self.b.scan(self.combiner(), axis, value, reverse=reverse, exclusive=exclusive)
        self.values.append(scanned[0])

    def stored(self, value: int) -> None:
        """A store over the value's axes and perhaps others, in any order, some backwards."""
        axes = [a for a in self.extents if a in self.b.value_axes[value] or self.chance(0.15)]
        self.rng.shuffle(axes)
        index = [
            Affine(((a, -1),), self.extents[a] - 1) if self.chance(0.1) else Affine.of(a)
            for a in axes
        ]
        number = len(self.b.outputs)
        shape = [self.extents[a] for a in axes]
        target = self.b.output(f"o{number}", shape, self.b.dtypes[value])
        self.b.store(target, index, value)

    def kernel(self) -> Kernel:
        for _ in range(int(self.rng.integers(1, 7))):
            kind = self.rng.random()
            if kind < 0.5:
                self.combine()
            elif kind < 0.85:
                self.reduce()
            else:
                self.scan()
        for _ in range(int(self.rng.integers(1, 4))):
            self.stored(self.pick(self.values[-3:]))
        return self.b.build()

    def arrays(self, kernel: Kernel) -> list[Any]:
        result: list[Any] = []
        for buffer in kernel.inputs:
            shape: Any = buffer.shape
            if buffer.dtype[0] in "iu":
                values: Any = self.rng.integers(0, 9, shape)
            elif buffer.dtype == "bool":
                values = self.rng.integers(0, 2, shape)
            else:
                # Eighths: sums of them are exact, whatever their order.
                values = self.rng.integers(-8, 9, shape) / 8
                if self.chance(0.1) and buffer.dtype[0] != "c":
                    values = self.pick([-np.inf, np.inf, np.nan]) * np.ones(shape)
                if buffer.dtype[0] == "c":
                    values = values + 1j * self.rng.integers(-8, 9, shape) / 8
            result.append(dtypes.cast(np.asarray(values), numpy_dtype(buffer.dtype)))
        return result


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_random_kernels_equal_the_interpreter(first: int, check: Any) -> None:
    for seed in range(first, first + 20):
        maker = Maker(seed)
        kernel = maker.kernel()
        roundings = 64 if maker.dtype != "bf16" else 1000
        check(kernel, *maker.arrays(kernel), roundings=roundings)
