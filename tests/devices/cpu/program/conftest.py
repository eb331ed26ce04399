"""Programs compiled natively and by the reference backend, and their graphs run in ways between."""

import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray.compile.fuse import fuse
from fxarray.compile.simplify import simplify
from fxarray.devices.cpu.program.compiled import compile_graph
from fxarray.devices.cpu.program.executable import NativeExecutable
from fxarray.tree.operations import leaves as tree_leaves


def same(actual, expected, tolerance=2e-6):
    """Raise unless two trees of arrays have the same types and nearly the same values."""
    actual, expected = tree_leaves(actual), tree_leaves(expected)
    for a, b in zip(actual, expected, strict=True):
        assert a.type == b.type
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tolerance, atol=tolerance)


def on_host(function, *arguments):
    """The native program of a function all of whose kernels and calls are left to the host."""
    arrays = [fnp.asarray(x) for x in arguments]
    trace = fxarray.jit(function).trace(*arrays)._trace
    program = simplify(trace.program)
    compiled = compile_graph(fuse(program), program, lambda step, target: None)
    results = NativeExecutable(compiled)([*trace.captured, *arrays])
    return trace.output.unflatten(results)


@pytest.fixture
def agree(monkeypatch):
    """Check that a function gives the same natively, with all steps on the host, and by NumPy."""
    monkeypatch.setenv("FXARRAY_CHECK", "1")

    def check(function, *arguments, **options):
        arrays = [fnp.asarray(x) for x in arguments]
        expected = fxarray.jit(function, backend="reference")(*arrays)
        jitted = fxarray.jit(function, backend="cpu", **options)
        same(jitted(*arrays), expected)
        same(jitted(*arrays), expected)  # the short way
        same(on_host(function, *arrays), expected)
        return jitted

    return check
