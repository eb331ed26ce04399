"""Binary search equals the reference."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fxarray.core import dtypes
from fxarray.core.types import ArrayType
from fxarray.devices.cpu.library import routine
from fxarray.devices.cpu.native.target import host
from fxarray.primitives.search import SearchSorted
from fxarray.primitives.support import random_operand

Check = Callable[..., None]


def test_samples(check: Check) -> None:
    for sample in SearchSorted.samples(np.random.default_rng(0)):
        if sample.error is None and np.asarray(sample.operands[0]).dtype.kind != "c":
            check(sample.op, *sample.operands)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint64", "bool"])
def test_tables_of_every_size(check: Check, side: str, dtype: str) -> None:
    rng = np.random.default_rng(1)
    for size in (0, 1, 2, 3, 7, 8, 9, 1000):
        for count in (1, 8, 700):
            table = np.sort(random_operand(rng, (size,), dtype, (-9.0, 9.0)))
            queries = random_operand(rng, (count,), dtype, (-11.0, 11.0))
            queries[: min(size, count)] = table[: min(size, count)]
            for index in (dtypes.int32, dtypes.int64, dtypes.uint16):
                check(SearchSorted(side, index), table, queries)
    tables = np.sort(random_operand(rng, (40, 5), dtype, (-9.0, 9.0)), axis=-1)
    check(SearchSorted(side, dtypes.int32, 1), tables, tables[:, ::2].copy())


def test_complex_numbers_are_left_to_the_host() -> None:
    given = ArrayType((3,), dtypes.complex64)
    op = SearchSorted("left", dtypes.int32)
    assert routine(op, [given, given], op.infer(given, given), host()) is None
