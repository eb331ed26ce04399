"""Whole Programs on the CPU: from a graph to one native call."""
