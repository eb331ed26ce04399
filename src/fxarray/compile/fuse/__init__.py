"""Fusing: from a Program to a graph of kernels, calls and control flow."""

from fxarray.compile.fuse.policy import DEFAULT_POLICY, Policy
from fxarray.compile.fuse.steps import fuse

__all__ = ["DEFAULT_POLICY", "Policy", "fuse"]
