"""Which devices there are, and moving arrays to them and back."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any

import numpy as np

from fxarray.core.array import Array, DeviceArray
from fxarray.core.context import setting
from fxarray.core.device import HOST, Device
from fxarray.core.errors import ArgumentError
from fxarray.core.hooks import operators
from fxarray.tree.operations import leaves as tree_leaves
from fxarray.tree.operations import map as tree_map


def devices(backend: str | None = None) -> list[Device]:
    """All devices of a kind.

    Args:
      backend: the kind; None is the default one.

    Raises:
      ArgumentError: if there is none of that kind.

    >>> import fxarray
    >>> fxarray.devices()
    [CPUDevice(id=0)]
    """
    if backend not in (None, HOST.platform):
        raise ArgumentError(f"there are no devices of kind {backend!r}; there are: {HOST.platform}")
    return [HOST]


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Device]:
    """The devices of this process."""
    if process_index not in (None, 0) or host_id not in (None, 0):
        raise ArgumentError(f"there is one process, number 0, but {process_index} is asked for")
    return devices(backend)


def device_count(backend: str | None = None) -> int:
    """The number of devices of a kind, over all processes."""
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """The number of devices of a kind in this process."""
    return len(devices(backend))


def process_index(backend: str | None = None) -> int:
    """The number of this process."""
    return devices(backend)[0].process_index


def process_count(backend: str | None = None) -> int:
    """The number of processes."""
    return 1 + max(device.process_index for device in devices(backend))


def default_backend() -> str:
    """The kind of device that is used when none is asked for."""
    return HOST.platform


def _check_device(device: Any, what: str) -> None:
    if device is not None and device != HOST:
        raise ArgumentError(f"{what}: {device!r} is no device of this process; see devices()")


def device_put(
    x: Any,
    device: Any = None,
    *,
    src: Any = None,
    donate: Any = False,
    may_alias: Any = None,
) -> Any:
    """Bring a tree of arrays, NumPy arrays and numbers to a device.

    Args:
      x: the tree.
      device: where to; None is the default device.
      src: accepted for compatibility.
      donate: accepted for compatibility; arrays on the device are not copied.
      may_alias: accepted for compatibility.

    Raises:
      ArgumentError: if there is no such device.

    >>> import fxarray, numpy as np
    >>> fxarray.device_put({"w": np.ones(2, np.float32)})
    {'w': Array([1., 1.], dtype=float32)}
    """
    del src, donate, may_alias
    _check_device(device, "device_put")
    return tree_map(lambda leaf: leaf if isinstance(leaf, Array) else operators.asarray(leaf), x)


def device_get(x: Any) -> Any:
    """Bring a tree of arrays to the host, as NumPy arrays; other leaves stay as they are.

    >>> import fxarray, fxarray.numpy as fnp
    >>> fxarray.device_get(fnp.arange(3))
    array([0, 1, 2], dtype=int32)
    """
    return tree_map(lambda leaf: np.asarray(leaf) if isinstance(leaf, Array) else leaf, x)


def block_until_ready(x: Any) -> Any:
    """Wait until all arrays of a tree have their values, and return the tree.

    Raises:
      DeletedArrayError: if an array has been deleted.
    """
    if type(x) is DeviceArray:
        return x.block_until_ready()
    _wait((x,))
    return x


def _wait(nodes: Iterable[Any]) -> None:
    # Calls are timed with this in between, so the common containers are walked here.
    for node in nodes:
        kind: type[Any] = type(node)
        if kind is DeviceArray:
            if not hasattr(node, "_np"):
                node.numpy_view()  # says that it is deleted
        elif kind is dict:
            _wait(node.values())
        elif kind is tuple or kind is list:
            _wait(node)
        else:
            for leaf in tree_leaves(node):
                if isinstance(leaf, DeviceArray):
                    leaf.block_until_ready()


@contextmanager
def default_device(device: Device | None) -> Generator[None]:
    """Make new arrays on a device in the `with` block."""
    _check_device(device, "default_device")
    with setting(default_device=device):
        yield
