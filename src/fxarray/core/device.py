"""Devices: where arrays live and Programs run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Device:
    """A place for arrays.

    Args:
      platform: the kind of device, such as "cpu".
      id: its number among those of its kind.
      process_index: the process that it belongs to.
    """

    platform: str
    id: int
    process_index: int = 0

    @property
    def device_kind(self) -> str:
        return self.platform

    def __repr__(self) -> str:
        return f"{self.platform.upper()}Device(id={self.id})"

    def __str__(self) -> str:
        return f"{self.platform}:{self.id}"


HOST = Device("cpu", 0)
