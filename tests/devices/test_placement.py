"""Devices, and moving arrays to them and back."""

import numpy as np
import pytest

import fxarray as fx
import fxarray.numpy as fnp


def test_there_is_one_host_device_and_one_process():
    assert fx.devices() == fx.local_devices() == fx.devices("cpu")
    assert fx.device_count() == fx.local_device_count() == 1
    assert (fx.process_index(), fx.process_count()) == (0, 1)
    assert fx.default_backend() == fx.devices()[0].platform == "cpu"


def test_device_put_converts_trees_and_copies_numpy_memory():
    source = np.ones(3, np.float32)
    tree = fx.device_put({"a": source, "b": 2})
    source[:] = 7
    np.testing.assert_array_equal(tree["a"], [1, 1, 1])
    assert tree["b"].dtype == np.int32
    assert tree["a"].device == fx.devices()[0]
    assert tree["a"].devices() == set(fx.devices())
    x = fnp.ones(2)
    assert fx.device_put(x, fx.devices()[0]) is x


def test_device_get_gives_numpy_arrays():
    got = fx.device_get({"a": fnp.arange(2), "b": "label"})
    assert isinstance(got["a"], np.ndarray)
    assert got["b"] == "label"


def test_block_until_ready_returns_its_tree():
    tree = {"a": fnp.ones(2), "b": 3}
    assert fx.block_until_ready(tree) is tree
    deleted = fnp.ones(2)
    deleted.delete()
    with pytest.raises(fx.errors.DeletedArrayError):
        fx.block_until_ready([deleted])


def test_unknown_devices_are_refused():
    with pytest.raises(fx.errors.ArgumentError, match="gpu"):
        fx.devices("gpu")
    with pytest.raises(fx.errors.ArgumentError, match="device_put"):
        fx.device_put(1.0, "gpu:0")
    with pytest.raises(fx.errors.ArgumentError), fx.default_device("gpu:0"):
        pass


def test_default_device_is_a_context():
    with fx.default_device(fx.devices()[0]):
        assert fnp.ones(2).device == fx.devices()[0]


def test_device_put_passes_tracers_through():
    assert float(fx.jit(fx.grad(lambda x: fx.device_put(x) ** 2))(3.0)) == 6.0
