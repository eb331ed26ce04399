"""Random kernels with one contraction equal their definition."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from fxarray.kernel.build import Builder, Value
from fxarray.kernel.ir import Affine, Bound, Contract, IndexLike, Kernel
from fxarray.kernel.sizes import Size

Check = Callable[..., None]
_SIZES = [1, 1, 2, 3, 5, 7, 8, 13, 14, 16, 17, 31, 32, 33, 47, 49, 63, 65, 90]
_DTYPES = [
    *[("f32", "f32")] * 4,
    *[("f64", "f64"), ("bf16", "f32"), ("f16", "f32"), ("i8", "i32"), ("u8", "i32")],
    *[("i32", "i32"), ("c64", "c64"), ("i64", "i64")],
]
_MOST_WORK = 300_000


class _Random:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.dtype, self.total = self.rng.choice(_DTYPES)
        self.k = Builder("random", self.axes())

    def axes(self) -> dict[str, Size]:
        """Some axes of each role, named by it."""
        while True:
            axes: dict[str, Size] = {}
            work = 1
            for role, counts in (("b", [0, 0, 1, 2]), ("m", [0, 1, 1, 2]), ("n", [0, 1, 1, 2])):
                work *= self.role(axes, role, self.rng.choice(counts))
            work *= self.role(axes, "k", self.rng.choice([1, 1, 2, 3]))
            if work <= _MOST_WORK:
                return axes

    def role(self, axes: dict[str, Size], role: str, count: int) -> int:
        whole = 1
        for number in range(count):
            size = self.rng.choice(_SIZES if count == 1 and role != "b" else _SIZES[:6])
            axes[f"{role}{number}"] = size
            whole *= size
        return whole

    def shuffled(self, roles: str) -> list[str]:
        names = [name for name in self.k.axes if name[0] in roles]
        self.rng.shuffle(names)
        return names

    def index(self, axis: str) -> tuple[int, IndexLike, list[Bound]]:
        """The size of a dimension, what reads it along an axis, and the bounds of that."""
        size = self.k.axes[axis]
        assert isinstance(size, int)
        kind = self.rng.random()
        if kind < 0.75:
            return size, axis, []
        if kind < 0.85:
            return 2 * size + 1, Affine(((axis, 2),), 1), []
        if kind < 0.9:
            return size, Affine(((axis, -1),), size - 1), []
        inside = max(1, size - 2)
        place = Affine(((axis, 1),), -1)
        return inside, place, [(place, 0, inside)]

    def operand(self, name: str, roles: str) -> Value:
        k = self.k
        found = [self.index(axis) for axis in self.shuffled(roles)]
        buffer = k.input(name, [size for size, _, _ in found], self.dtype)
        with k.guarded(*[bound for _, _, bounds in found for bound in bounds]):
            value = k.load(buffer, [index for _, index, _ in found])
        return k.op("mul", value, value) if self.rng.random() < 0.2 else value

    def kernel(self) -> Kernel:
        k, rng = self.k, self.rng
        a, b = self.operand("x", "bmk"), self.operand("y", "bnk")
        summed = tuple([name for name in k.axes if name[0] == "k"])
        value = k.add(Contract(a, b, summed, self.total))
        axes = self.shuffled("bmn")
        shape = [k.axes[axis] for axis in axes]
        result = k.output("z", shape, self.total)
        if rng.random() < 0.3:
            last = axes[-1:]
            bias = k.input("bias", [k.axes[axis] for axis in last], self.total)
            value = k.op("add", value, k.load(bias, last))
        if rng.random() < 0.3:
            k.store(k.output("w", shape, self.total), axes, k.op("mul", value, value))
        k.store(result, axes, value)
        return k.build()


@pytest.mark.parametrize("seed", range(50))
def test_random_products(check: Check, seed: int) -> None:
    check(_Random(seed).kernel())
