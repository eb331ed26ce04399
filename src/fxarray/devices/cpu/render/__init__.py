"""Kernels without products become routines: schedules, evaluation of values on demand, loops."""
