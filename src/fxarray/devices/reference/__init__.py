"""The reference device: NumPy runs every operation, by the rules that define it."""

from fxarray.devices.reference import eager, executor

__all__ = ["eager", "executor"]
