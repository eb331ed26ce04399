"""Code for processors that are not here: it assembles, and calls no function of C's library."""

from __future__ import annotations

import re

import pytest

from fxarray.devices.cpu.emit import elementary, features
from fxarray.devices.cpu.emit.types import itemsize
from fxarray.devices.cpu.native.compiler import compile_assembly
from fxarray.devices.cpu.native.target import OTHERS
from fxarray.kernel.operations import arity

COMPLEX = ("abs", "div", "exp", "log", "pow", "sqrt", "tanh", "acos")
INTEGER = ("div", "rem", "pow", "popcount", "clz", "shl", "convert")
FLOAT = ("add", "max", "rem", "round", "floor", "next_after", "fma", "convert")
CASES = [
    *[("f32", op) for op in (*sorted(elementary.RULES), *FLOAT)],
    *[("f64", op) for op in (*sorted(elementary.RULES), *FLOAT)],
    *[("c128", op) for op in COMPLEX],
    *[(dtype, op) for dtype in ("i8", "u16", "i32", "u64", "i4") for op in INTEGER],
    *[(dtype, op) for dtype in ("f16", "bf16", "f8_e4m3fn") for op in ("add", "exp", "convert")],
]


def calls(assembly: str) -> set[str]:
    """The functions that are called but not defined."""
    called = re.findall(r"\t(?:callq?|jmp|bl|b)\s+\*?\"?([A-Za-z_][\w.@]*)", assembly)
    defined = set(re.findall(r"^\"?([A-Za-z_.][\w.]*)\"?:", assembly, re.MULTILINE))
    return {
        name for name in called if name not in defined and name.removesuffix("@PLT") not in defined
    }


@pytest.mark.parametrize("processor", ["avx2", "neon"])
def test_no_operation_needs_a_library(text, processor):
    target = OTHERS[processor]
    found = {}
    with features.using(target):
        for dtype, op in CASES:
            result = "f64" if op == "abs" else "f16" if op == "convert" else dtype
            count = 1 if op == "convert" else arity(op)
            lanes = target.vector_bytes // itemsize(dtype)
            module = text(op, [dtype] * count, result, max(lanes, 1), 1024)
            outside = calls(compile_assembly(module, target))
            if outside:
                found[dtype, op] = outside
    assert not found
