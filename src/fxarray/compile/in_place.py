"""Which outputs of a kernel may overwrite which of its inputs.

The fuser may say so (`Buffer.alias`). Else it is seen from the kernel: each element of the input is
read only to compute the element of the output that lies in the same place, and not through a
reduction, so that nothing reads it again after it is overwritten.
"""

from __future__ import annotations

from functools import lru_cache

from fxarray.core import dtypes
from fxarray.kernel.ir import Buffer, Contract, Kernel, Load, Reduce, Scan, Store, arguments


@lru_cache(maxsize=4096)
def kernel_pairs(kernel: Kernel) -> tuple[tuple[int, int], ...]:
    """Pairs of the number of an output and that of the input that it may overwrite."""
    names = [buffer.name for buffer in kernel.inputs]
    pairs: list[tuple[int, int]] = []
    for output, buffer in enumerate(kernel.outputs):
        if buffer.alias is not None:
            pairs.append((output, names.index(buffer.alias)))
        else:
            pairs.extend((output, number) for number in _overwritable(kernel, buffer))
    return tuple(pairs)


def _itemsize(buffer: Buffer) -> int:
    return dtypes.physical(dtypes.from_short_name(buffer.dtype)).itemsize


def _overwritable(kernel: Kernel, output: Buffer) -> list[int]:
    body = kernel.body
    stores = [
        i
        for i, node in enumerate(body)
        if isinstance(node, Store) and node.buffer.name == output.name
    ]
    if len(stores) != 1:
        return []
    store = body[stores[0]]
    assert isinstance(store, Store)
    place = output.flat(store.index)
    if store.mode != "set" or place.values:
        return []
    readers: dict[int, list[int]] = {}
    for position, node in enumerate(body):
        for value in arguments(node):
            readers.setdefault(value, []).append(position)
    found: list[int] = []
    for number, buffer in enumerate(kernel.inputs):
        loads = [
            i
            for i, node in enumerate(body)
            if isinstance(node, Load) and node.buffer.name == buffer.name
        ]
        if not loads or _itemsize(buffer) != _itemsize(output):
            continue
        same_place = all(
            isinstance(node := body[i], Load) and buffer.flat(node.index) == place for i in loads
        )
        if same_place and _flows_only_to(stores[0], loads, kernel, readers):
            found.append(number)
    return found


def _flows_only_to(
    store: int, loads: list[int], kernel: Kernel, readers: dict[int, list[int]]
) -> bool:
    waiting, seen = list(loads), set[int]()
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        node = kernel.body[value]
        if isinstance(node, Reduce | Scan | Contract):
            return False
        if isinstance(node, Store) and value != store:
            return False
        waiting.extend(readers.get(value, ()))
    return True
