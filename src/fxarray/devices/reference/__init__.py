"""The reference device: NumPy runs every operation, by the rules that define it."""
