"""1 / sqrt(x), without its square root and division where that can be.

Both occupy AVX-512's divider for tens of cycles. It has an estimate of 14 bits in one instruction,
the same on all processors, which steps of Newton's method make exact to the last bit or nearly so.
(A division alone runs beside other arithmetic, and is not worth replacing.)
"""

from __future__ import annotations

from fxarray.devices.cpu.emit import features
from fxarray.devices.cpu.emit.number import Number, select
from fxarray.devices.cpu.emit.types import vector_type

_KIND = {"float": "ps", "double": "pd"}
_BITS = {"float": 32, "double": 64}


def reciprocal_root(x: Number) -> Number:
    """1 / sqrt(x) for every x."""
    if not features.estimates_reciprocals():
        return 1.0 / x.sqrt()
    first = value = _estimate("rsqrt14", x)
    for _ in range(1 if x.type == "float" else 2):
        # With e = 1 - x * value**2, the root is value * (1 + e / 2 + 3 / 8 * e**2 + ...).
        e = (-(x * value)).fma(value, 1.0)
        value = (value * e).fma(e.fma(0.375, 0.5), value)
    # The estimate alone is right at 0, infinity and NaN, where e is NaN.
    return select((x > 0.0) & (x < float("inf")), value, first)


def _estimate(name: str, x: Number) -> Number:
    """An instruction of AVX-512, on vectors of every length."""
    f, lanes, bits = x.f, x.lanes, _BITS[x.type]
    least, most = 128 // bits, 512 // bits
    if lanes > most:
        halves = [range(start, start + lanes // 2) for start in (0, lanes // 2)]
        low, high = (_estimate(name, _lanes(x, half)) for half in halves)
        indices = ", ".join([f"i32 {lane}" for lane in range(lanes)])
        operands = f"{low.whole_type} {low.operand}, {high.whole_type} {high.operand}"
        return x.new(f"shufflevector {operands}, <{lanes} x i32> <{indices}>")
    wide = x if lanes >= least else _widened(x, least)
    type_ = wide.whole_type
    mask = "i16" if wide.lanes == 16 else "i8"
    full = f"@llvm.x86.avx512.{name}.{_KIND[x.type]}.{wide.lanes * bits}"
    f.declare(f"declare {type_} {full}({type_}, {type_}, {mask})")
    result = wide.new(
        f"call {type_} {full}({type_} {wide.operand}, {type_} zeroinitializer, {mask} -1)"
    )
    return result if lanes >= least else _lanes(result, range(lanes))


def _lanes(x: Number, chosen: range) -> Number:
    """Some of the lanes; one as a scalar."""
    f, whole = x.f, x.whole_type
    if len(chosen) == 1:
        return Number(f, x.type, 1, f.new(f"extractelement {whole} {x.operand}, i64 {chosen[0]}"))
    indices = ", ".join([f"i32 {lane}" for lane in chosen])
    mask = f"<{len(chosen)} x i32> <{indices}>"
    taken = f.new(f"shufflevector {whole} {x.operand}, {whole} poison, {mask}")
    return Number(f, x.type, len(chosen), taken)


def _widened(x: Number, lanes: int) -> Number:
    """x with further lanes, which hold anything."""
    f, wide = x.f, vector_type(x.type, lanes)
    if x.lanes == 1:
        text = f"insertelement {wide} zeroinitializer, {x.type} {x.operand}, i64 0"
    else:
        indices = ", ".join([f"i32 {lane if lane < x.lanes else 0}" for lane in range(lanes)])
        mask = f"<{lanes} x i32> <{indices}>"
        text = f"shufflevector {x.whole_type} {x.operand}, {x.whole_type} poison, {mask}"
    return Number(f, x.type, lanes, f.new(text))
