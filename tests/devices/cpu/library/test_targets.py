"""Routines are compiled for every kind of processor, and only what they name is called."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest

from fxarray.core import dtypes
from fxarray.core.primitive import Primitive
from fxarray.core.types import ArrayType
from fxarray.devices.cpu.library import routine
from fxarray.devices.cpu.native.compiler import compile_assembly
from fxarray.devices.cpu.native.routine import FunctionPointer
from fxarray.devices.cpu.native.target import OTHERS
from fxarray.primitives.bits import RandomBits
from fxarray.primitives.fft import FFT, Fft
from fxarray.primitives.gather import Gather, ScatterAdd
from fxarray.primitives.linalg_lu import Lu
from fxarray.primitives.linalg_triangular import Cholesky
from fxarray.primitives.search import SearchSorted
from fxarray.primitives.sort import Sort, TopK
from fxarray.primitives.windows import ScatterDimensionNumbers

ROWS = ScatterDimensionNumbers((1,), (0,), (0,))


def array(shape: Sequence[int], dtype: str = "float32") -> ArrayType:
    return ArrayType(tuple(shape), dtypes.canonical(dtype))


CASES: dict[str, tuple[Primitive, list[ArrayType]]] = {
    "sort": (Sort(0), [array([9])]),
    "sort long": (Sort(0), [array([1 << 17], "float64")]),
    "argsort": (Sort(0), [array([9], "int64"), array([9], "int32")]),
    "top_k": (TopK(2, 0), [array([9])]),
    "scatter": (ScatterAdd(ROWS), [array([9, 5]), array([7, 1], "int32"), array([7, 5])]),
    "gather": (Gather(ROWS.as_gather(), (1, 5)), [array([9, 5]), array([7, 1], "int32")]),
    "bits": (RandomBits((9,), 8), [ArrayType((), dtypes.key_dtype)]),
    "search": (SearchSorted("left", np.dtype("int32")), [array([9]), array([5])]),
    "cholesky": (Cholesky(), [array([50, 4, 4])]),
    "lu": (Lu(), [array([50, 50], "complex128")]),
    "fft": (Fft(FFT, (128,)), [array([3, 128], "complex64")]),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("case", CASES)
def test_code_for_every_processor(name: str, case: str) -> None:
    target = OTHERS[name]
    op, types = CASES[case]
    made = routine(op, types, op.infer(*types), target)
    assert made is not None
    texts = [made.text, *[word.text for word in made.words if isinstance(word, FunctionPointer)]]
    for text in texts:
        assembly = compile_assembly(text, target)
        calls = set(re.findall(r"(?m)^\s+(?:callq?|bl)[ \t]+_?([a-zA-Z]\w*)", assembly))
        ours = set(re.findall(r"@(\w+)\(", text))
        assert calls <= ours | {"memcpy", "memmove", "memset", "bzero"}
