"""The matrix unit of some x86 processors (AMX): whether there is one, and its micro-kernel.

A tile of 32 by 32 results stands in four registers of 16 rows of 64 bytes. A step multiplies 32
rows of 64 bytes of the first operand with as many of the second, which has 2 or 4 neighbours along
the sum in each place, as pairs and fours of vectors have.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache

from fxarray.devices.cpu.emit.function import FunctionText, Operand, module
from fxarray.devices.cpu.native.target import Target, host

_REQUEST_PERMISSION, _TILE_DATA = 0x1023, 18
_ARCH_PRCTL = 158
ROWS = 32


def usable(target: Target, feature: str) -> bool:
    """Whether code for a processor may use a feature of the unit."""
    if target.architecture != "x86_64" or not target.has(feature) or not target.has("amx-tile"):
        return False
    return target != host() or _permitted()


@lru_cache(maxsize=1)
def _permitted() -> bool:
    """Linux gives the unit's registers to processes that ask for them."""
    if "linux" not in host().triple:
        return False
    call = ctypes.CDLL(None).syscall
    return call(_ARCH_PRCTL, _REQUEST_PERMISSION, ctypes.c_long(_TILE_DATA)) == 0


_CONFIGURATION = ", ".join(
    [
        "i8 1, i8 0",  # palette, start row
        ", ".join(["i8 0"] * 14),
        ", ".join(["i8 64, i8 0"] * 8),  # bytes of a row
        ", ".join(["i8 0"] * 16),
        ", ".join(["i8 16"] * 8),  # rows
        ", ".join(["i8 0"] * 8),
    ]
)


@lru_cache(maxsize=16)
def micro_kernel(instruction: str, signature: str) -> str:
    """See `micro`; panels have 32 rows and columns, a step is a block of 64 bytes of each row."""
    f = FunctionText()
    a_cell, b_cell = f.alloca("ptr", "%a"), f.alloca("ptr", "%b")
    f.declare("declare void @llvm.x86.ldtilecfg(ptr)")
    f.declare("declare void @llvm.x86.tilerelease()")
    f.declare("declare void @llvm.x86.tilezero(i8)")
    for name in ("tileloadd64", "tilestored64"):
        f.declare(f"declare void @llvm.x86.{name}(i8, ptr, i64)")
    f.declare(f"declare void @llvm.x86.t{instruction}(i8, i8, i8)")
    f.do("call void @llvm.x86.ldtilecfg(ptr @configuration)")
    distance = f.multiply("%tile_row", 4)
    below = f.offset("%tile", f.multiply(distance, 16))
    corners = ["%tile", f.offset("%tile", 64), below, f.offset(below, 64)]

    def move(name: str, tile: int, pointer: Operand, stride: Operand | int) -> None:
        f.do(f"call void @llvm.x86.{name}(i8 {tile}, ptr {pointer}, i64 {stride})")

    def clear() -> None:
        for tile in range(4):
            f.do(f"call void @llvm.x86.tilezero(i8 {tile})")

    def resume() -> None:
        for tile, corner in enumerate(corners):
            move("tileloadd64", tile, corner, distance)

    f.branch("%first", clear, resume)

    def step(_: Operand) -> None:
        a, b = f.new(f"load ptr, ptr {a_cell}"), f.new(f"load ptr, ptr {b_cell}")
        move("tileloadd64", 4, a, 64)
        move("tileloadd64", 6, b, 128)
        move("tileloadd64", 5, f.offset(a, 1024), 64)
        move("tileloadd64", 7, f.offset(b, 64), 128)
        for tile, (left, right) in enumerate([(4, 6), (4, 7), (5, 6), (5, 7)]):
            f.do(f"call void @llvm.x86.t{instruction}(i8 {tile}, i8 {left}, i8 {right})")
        f.do(f"store ptr {f.offset(a, 2048)}, ptr {a_cell}")
        f.do(f"store ptr {f.offset(b, 2048)}, ptr {b_cell}")

    f.loop(0, "%steps", 1, step)
    for tile, corner in enumerate(corners):
        move("tilestored64", tile, corner, distance)
    f.do("call void @llvm.x86.tilerelease()")
    constant = f"@configuration = internal constant [64 x i8] [{_CONFIGURATION}], align 64"
    return module([(f, f.definition(signature))], constant)
