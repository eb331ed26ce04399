"""The elementary functions of f32 and f64, within 2 units in the last place, by name."""

from __future__ import annotations

from collections.abc import Callable

from fxarray.devices.cpu.emit import exponential
from fxarray.devices.cpu.emit.number import Number

RULES: dict[str, Callable[..., Number]] = {
    "exp": exponential.exp,
    "rsqrt": lambda x: 1.0 / x.sqrt(),
}
