"""Copying the first operand to the first result, unless they share their memory."""

from __future__ import annotations

from fxarray.devices.cpu.emit.function import FunctionText
from fxarray.devices.cpu.library.text import (
    Layout,
    ModuleText,
    ceiling_divide,
    part_bounds,
    run_parts,
)
from fxarray.devices.cpu.native.routine import SizeWord
from fxarray.kernel.sizes import Size

PART_BYTES = 1 << 19


def copy_words(layout: Layout, size: Size) -> None:
    """Add what the copy needs: the bytes of the operand."""
    layout.append("bytes", SizeWord(size))


def define_copy(text: ModuleText, layout: Layout) -> None:
    """Define the copy of a part."""
    f = text.part("copy_part")
    low, high = part_bounds(f, layout.size(f, "bytes"), PART_BYTES)
    target = f.offset(layout.pointer(f, "out0"), low)
    source = f.offset(layout.pointer(f, "in0"), low)
    f.declare("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
    size = f.subtract(high, low)
    f.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)")


def start_copy(f: FunctionText, layout: Layout) -> None:
    """Copy, if the addresses differ."""
    differ = f.new(f"icmp ne ptr {layout.pointer(f, 'in0')}, {layout.pointer(f, 'out0')}")

    def copy() -> None:
        run_parts(f, "copy_part", ceiling_divide(f, layout.size(f, "bytes"), PART_BYTES))

    f.branch(differ, copy)
