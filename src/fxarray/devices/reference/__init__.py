"""The reference device: NumPy runs every operation, by the rules that define it."""

from fxarray.devices.reference import eager, executor, fast

__all__ = ["eager", "executor", "fast"]
