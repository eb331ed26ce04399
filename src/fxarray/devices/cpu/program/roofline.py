"""What the machine can do: bytes copied and multiplications added per second, measured."""

from __future__ import annotations

import ctypes
import time
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from fxarray.devices.cpu.native.jit import addresses
from fxarray.devices.cpu.native.runtime import default_runtime
from fxarray.devices.cpu.native.target import host

_COPY_BYTES = 64 << 20
_CHAINS = 12  # independent sums, which hide the latency of one
_TURNS = 20_000


class Peaks(NamedTuple):
    """What is possible in a second.

    Args:
      flops: floating-point operations in f32.
      bytes: read and written.
    """

    flops: float
    bytes: float

    def share(self, flops: int, moved: int, seconds: float) -> float:
        """How near work came to what the machine can do: 1 is its limit."""
        return max(flops / self.flops, moved / self.bytes) / seconds


def _text(lanes: int) -> str:
    """A loop of multiply-adds in registers."""
    vector = f"<{lanes} x float>"
    names = range(_CHAINS)
    phis = "\n".join(
        f"  %a{i} = phi {vector} [splat (float {i + 1}.0), %start], [%b{i}, %loop]" for i in names
    )
    steps = "\n".join(
        f"  %b{i} = call {vector} @llvm.fma({vector} %a{i}, {vector} splat (float 0.5), "
        f"{vector} splat (float 1.0))".replace("@llvm.fma(", f"@llvm.fma.v{lanes}f32(")
        for i in names
    )
    stores = "\n".join(
        f"  %p{i} = getelementptr {vector}, ptr %result, i64 {i}\n"
        f"  store {vector} %b{i}, ptr %p{i}, align 4"
        for i in names
    )
    return f"""declare {vector} @llvm.fma.v{lanes}f32({vector}, {vector}, {vector})
define void @entry(ptr %result, i64 %turns) {{
start:
  br label %loop
loop:
  %n = phi i64 [0, %start], [%next, %loop]
{phis}
{steps}
  %next = add i64 %n, 1
  %more = icmp ult i64 %next, %turns
  br i1 %more, label %loop, label %end
end:
{stores}
  ret void
}}
"""


@lru_cache(maxsize=1)
def measure_peaks() -> Peaks:
    """Measure, which takes about 30 ms."""
    lanes = host().vector_bytes // 4
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(addresses([_text(lanes)])[0])
    result = np.empty(_CHAINS * lanes, np.float32)
    best = min(_time(lambda: function(result.ctypes.data, _TURNS)) for _ in range(3))
    flops = 2 * _CHAINS * lanes * _TURNS / best * default_runtime().threads
    source = np.ones(_COPY_BYTES, np.uint8)
    target = np.empty_like(source)
    best = min(_time(lambda: np.copyto(target, source)) for _ in range(3))
    return Peaks(flops, 2 * _COPY_BYTES / best)


def _time(function: object) -> float:
    assert callable(function)
    start = time.perf_counter()
    function()
    return time.perf_counter() - start
