"""Contractions on the CPU: packed and direct matrix products, convolutions, attention."""
