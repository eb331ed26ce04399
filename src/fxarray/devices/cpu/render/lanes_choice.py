"""Which axis goes on vector lanes, and how wide vectors are."""

from __future__ import annotations

from fxarray.devices.cpu.emit.types import is_complex, itemsize, storage_type
from fxarray.devices.cpu.native.target import Target
from fxarray.kernel import sizes
from fxarray.kernel.analysis import elements, flat, uses, weight
from fxarray.kernel.ir import Kernel, Load, Op, Reduce, Scan, Store

# Elements next to each other are worth this much, elements far apart cost so much.
_STORE_WEIGHT, _FAR = 2.0, 0.75
# A lane of a gather or scatter costs about as much as an operation.
_SCATTERED = 1.25


def computed_bytes(dtype: str) -> int:
    """The bytes of one number as it is computed: narrow floats are float32."""
    if is_complex(dtype):
        return itemsize(dtype) // 2
    if storage_type(dtype) == "i8" and dtype[0] == "f":
        return 4
    return 4 if dtype in ("f16", "bf16") else itemsize(dtype)


def full_width(kernel: Kernel, target: Target) -> int:
    """The lanes of a vector register for the widest type that the kernel's data has."""
    widest = 1
    for number, node in enumerate(kernel.body):
        if isinstance(node, Load | Store | Reduce | Scan | Op):
            dtype = kernel.dtypes[number]
            # 64-bit integers that are not data are positions compared with bounds.
            if not isinstance(node, Op) or dtype not in ("i64", "bool"):
                widest = max(widest, computed_bytes(dtype))
    return max(target.vector_bytes // widest, 2)


def fitting_width(kernel: Kernel, axis: str, width: int) -> int:
    """No wider than the axis is long, if that is known."""
    size = kernel.sizes[axis]
    if isinstance(size, int):
        while width // 2 >= max(size, 1) and width > 2:
            width //= 2
    return width


def lane_axis(kernel: Kernel, width: int, allowed: frozenset[str]) -> str | None:
    """The axis along which most memory traffic is contiguous; None if there is no axis."""
    best: str | None = None
    best_score = float("-inf")
    scores = lane_scores(kernel, width)
    for axis, score in scores.items():
        # Of equal axes the last: it is the one that was written as innermost.
        if axis in allowed and score >= best_score:
            best, best_score = axis, score
    if best is None:
        return None
    size = kernel.sizes[best]
    if isinstance(size, int) and 2 * size < width:
        # Most lanes would idle. Other axes are worth a look, though their memory is scattered.
        costs = {axis: _cost(kernel, axis, width) for axis in scores if axis in allowed}
        # Of equal axes the innermost.
        cheapest = min(reversed(costs), key=lambda axis: costs[axis])
        if costs[cheapest] < 0.5 * costs[best]:
            return cheapest
    return best


def _cost(kernel: Kernel, axis: str, width: int) -> float:
    """What a kernel costs with an axis on lanes, in operations on vectors or scalars."""
    full = elements(kernel, [axis])
    vectors = max(-(-full // width), 1)
    total = 0.0
    for number, node in enumerate(kernel.body):
        axes = uses(kernel, number)
        count = float(elements(kernel, axes))
        if axis in axes:
            scattered = isinstance(node, Load | Store) and flat(node).coefficient(axis) not in (
                0,
                1,
                -1,
            )
            count *= _SCATTERED if scattered else vectors / max(full, 1)
        total += weight(node) * count
    # Results of a reduction over lanes are scalars, and cost its end for each.
    reduced = any(isinstance(node, Reduce) and axis in node.axes for node in kernel.body)
    return 1.25 * total if reduced else total


def lane_scores(kernel: Kernel, width: int) -> dict[str, float]:
    """For each axis, the elements that are contiguous along it, less those that are far apart."""
    scores = {name: 0.0 for name, _ in kernel.axes}
    for number, node in enumerate(kernel.body):
        if not isinstance(node, Load | Store):
            continue
        offset = flat(node)
        traffic = float(elements(kernel, uses(kernel, number)))
        traffic *= _STORE_WEIGHT if isinstance(node, Store) else 1.0
        for axis in scores:
            step = offset.coefficient(axis)
            if step in (1, -1):
                scores[axis] += traffic
            elif step != 0:
                scores[axis] -= traffic * _FAR
            if step != 0 and any(axis in kernel.value_axes[v] for v in offset.values):
                scores[axis] -= traffic * _FAR
    return {axis: score * _efficiency(kernel, axis, width, score) for axis, score in scores.items()}


def _efficiency(kernel: Kernel, axis: str, width: int, score: float) -> float:
    """The share of lanes that work, on an axis that does not fill its last vector."""
    if score <= 0:
        return 1.0
    size = sizes.typical(kernel.sizes[axis])
    if size == 0:
        return 1.0
    filled = -(-size // width) * width
    # Short vectors have fewer lanes, but their loops still cost an iteration.
    return size / filled if size >= width else 0.5 * size / width + 0.1
