"""Kernels that read other parts of an array share their routine."""

from __future__ import annotations

from typing import Any

import numpy as np

import fxarray
import fxarray.numpy as xnp
from fxarray import lax
from fxarray.compile.fuse import fuse
from fxarray.compile.graph import KernelStep
from fxarray.compile.simplify import simplify
from fxarray.devices.cpu.native.target import host
from fxarray.devices.cpu.program.backend import routine_of
from fxarray.devices.cpu.program.sharing import shared


def kernels_of(function: Any, *arguments: Any) -> list[KernelStep]:
    program = fxarray.make_program(function)(*arguments)
    return [step for step in fuse(simplify(program)).steps if isinstance(step, KernelStep)]


def layers(x: Any, w: Any) -> Any:
    for number in range(w.shape[0]):
        x = xnp.tanh(x @ w[number, 2])
    return x


def layers_in_numpy(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    for number in range(w.shape[0]):
        x = np.tanh(x @ w[number, 2])
    return x


def weights() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((8, 32)).astype(np.float32)
    return x, (rng.standard_normal((5, 3, 32, 32)) * 0.2).astype(np.float32)


def test_layers_of_stacked_weights_are_one_kernel() -> None:
    steps = kernels_of(layers, *map(xnp.asarray, weights()))
    assert len(steps) == 5
    assert len({shared(step.kernel).kernel for step in steps}) == 1
    routines = [routine_of(step, host()) for step in steps]
    assert len({r.text for r in routines if r is not None}) == 1
    assert len({r.words for r in routines if r is not None}) == 5


def test_each_layer_reads_its_own_weights() -> None:
    x, w = weights()
    result = fxarray.jit(layers, backend="cpu")(xnp.asarray(x), xnp.asarray(w))
    np.testing.assert_allclose(np.asarray(result), layers_in_numpy(x, w), rtol=1e-4, atol=1e-5)


def test_constants_are_read_at_their_own_places() -> None:
    x, w = weights()
    run = fxarray.jit(lambda x: layers(x, xnp.asarray(w)), backend="cpu")
    expected = layers_in_numpy(x, w)
    np.testing.assert_allclose(np.asarray(run(xnp.asarray(x))), expected, rtol=1e-4, atol=1e-5)


def test_parts_of_slices_inside_loops_are_read_at_their_own_places() -> None:
    x, w = weights()
    rows = np.stack([w, w[::-1], 2 * w])

    def function(x: Any, rows: Any) -> Any:
        return lax.scan(lambda carry, row: (layers(carry, row), carry[1]), x, rows)

    result, stacked = fxarray.jit(function, backend="cpu")(xnp.asarray(x), xnp.asarray(rows))
    carries = [x]
    for row in rows:
        carries.append(layers_in_numpy(carries[-1], row))
    np.testing.assert_allclose(np.asarray(result), carries[-1], rtol=1e-3, atol=1e-4)
    firsts = [carry[1] for carry in carries[:-1]]
    np.testing.assert_allclose(np.asarray(stacked), firsts, rtol=1e-3, atol=1e-4)


def test_reads_at_several_places_begin_at_the_first() -> None:
    def function(x: Any) -> Any:
        return x[3] * x[5] + x[4]

    (step,) = kernels_of(function, xnp.arange(9.0))
    found = shared(step.kernel)
    assert found.offsets == (12,)
    assert found.kernel.inputs[0].shape == (3,)
    result = fxarray.jit(function, backend="cpu")(xnp.arange(9.0))
    assert float(result) == 19
