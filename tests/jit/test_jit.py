"""jit: caching, statics, donation, nesting, stages, and what is said about them."""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass
from functools import partial, wraps

import numpy as np
import pytest

import fxarray as fx
import fxarray.numpy as fnp
from fxarray.compile import driver
from fxarray.core import config
from fxarray.core.array import DeviceArray
from fxarray.core.errors import (
    ArgumentError,
    DeletedArrayError,
    StaticArgumentError,
    TracerBoolConversionError,
    UnexpectedTracerError,
)


class Counter:
    """Counts how often a function is traced: its Python body runs once per trace."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, x):
        self.count += 1
        return x


def counted(function):
    counter = Counter()

    @wraps(function)
    def wrapped(*args, **kwargs):
        counter.count += 1
        return function(*args, **kwargs)

    return wrapped, counter


def test_result_equals_the_functions():
    x = fnp.arange(5.0)
    np.testing.assert_array_equal(fx.jit(lambda x: x * 2 + 1)(x), np.arange(5.0) * 2 + 1)


def test_one_trace_for_equal_types_and_another_for_each_new_one():
    f, traces = counted(lambda x: x + 1)
    g = fx.jit(f)
    g(fnp.ones(3)), g(fnp.zeros(3))
    assert traces.count == 1
    g(fnp.ones(4))
    assert traces.count == 2
    g(fnp.ones(3, fnp.int32))
    assert traces.count == 3


def test_python_scalars_are_traced_and_weak():
    f, traces = counted(lambda x: x * 2)
    g = fx.jit(f)
    assert float(g(1.5)) == 3.0
    assert float(g(2.5)) == 5.0
    assert traces.count == 1
    g(np.float32(1.5))
    assert traces.count == 2
    assert g(1).dtype == np.int32
    assert g(True).dtype == np.int32
    assert traces.count == 4


def test_numpy_and_device_arrays_share_a_trace():
    f, traces = counted(lambda x: x + 1)
    g = fx.jit(f)
    g(fnp.ones(3, fnp.float32))
    g(np.ones(3, np.float32))
    assert traces.count == 1


def test_positional_and_keyword_calls_share_a_trace():
    f, traces = counted(lambda x, y: x - y)
    g = fx.jit(f)
    one, two = fnp.ones(2), 2 * fnp.ones(2)
    np.testing.assert_array_equal(g(one, two), g(y=two, x=one))
    np.testing.assert_array_equal(g(one, y=two), [-1, -1])
    assert traces.count == 1


def test_dict_order_is_irrelevant_but_list_and_tuple_differ():
    f, traces = counted(lambda tree: fx.tree.map(lambda x: x + 1, tree))
    g = fx.jit(f)
    a, b = fnp.ones(1), fnp.ones(2)
    g({"a": a, "b": b}), g({"b": b, "a": a})
    assert traces.count == 1
    assert isinstance(g([a, b]), list)
    assert isinstance(g((a, b)), tuple)
    assert traces.count == 3


def test_jit_of_the_same_function_shares_traces_but_a_fresh_lambda_does_not():
    f, traces = counted(lambda x: x + 1)
    fx.jit(f)(fnp.ones(3)), fx.jit(f)(fnp.ones(3))
    assert traces.count == 1
    make = lambda: lambda x: traces(x) + 1  # noqa: E731
    fx.jit(make())(fnp.ones(3)), fx.jit(make())(fnp.ones(3))
    assert traces.count == 3


def test_a_fresh_lambda_with_the_same_program_compiles_nothing():
    def fresh(scale):
        return fx.jit(lambda x: x * scale + 17)

    scale = fnp.arange(3.0)
    fresh(scale)(fnp.ones(3))
    before = driver.statistics()
    for _ in range(3):
        fresh(scale + 1)(fnp.ones(3))
    assert driver.statistics().misses == before.misses


def test_closed_over_arrays_are_captured_when_traced():
    box = {"scale": fnp.ones(2)}
    f = fx.jit(lambda x: x * box["scale"])
    f(fnp.ones(2))
    box["scale"] = 5 * fnp.ones(2)
    np.testing.assert_array_equal(f(fnp.ones(2)), [1, 1])


def test_functions_are_not_kept_alive_by_their_traces():
    def f(x):
        return x + 1

    g = fx.jit(f)
    g(fnp.ones(2))
    reference = weakref.ref(f)
    del f, g
    gc.collect()
    assert reference() is None


@pytest.mark.parametrize("static", [1, 1.0, True])
def test_static_arguments_that_compare_equal_are_told_apart(static):
    seen = []
    f = fx.jit(lambda x, flag: (seen.append(flag), x)[1], static_argnums=1)
    for value in (1, 1.0, True):
        f(fnp.ones(2), value)
    assert [type(value) for value in seen] == [int, float, bool]
    f(fnp.ones(2), static)
    assert len(seen) == 3


def test_static_argnames_and_argnums_cover_both_ways_of_calling():
    f, traces = counted(lambda x, n: x * n if isinstance(n, int) else x)
    for g in (fx.jit(f, static_argnames="n"), fx.jit(f, static_argnums=(1,))):
        assert float(g(fnp.ones(()), 3)) == 3
        assert float(g(fnp.ones(()), n=3)) == 3
    assert traces.count == 1


def test_unhashable_static_argument_is_an_error_that_names_it():
    f = fx.jit(lambda x, table: x, static_argnums=1)

    class Unhashable:
        __hash__ = None

    with pytest.raises(StaticArgumentError, match="table"):
        f(fnp.ones(2), Unhashable())


def test_functions_and_strings_pass_as_static_leaves():
    f, traces = counted(lambda x, options: options["op"](x) if options["mode"] == "on" else x)
    g = fx.jit(f)
    np.testing.assert_allclose(
        g(fnp.ones(2), {"op": fnp.sin, "mode": "on"}), np.sin(np.ones(2)), rtol=1e-6
    )
    np.testing.assert_array_equal(g(fnp.ones(2), {"op": fnp.sin, "mode": "off"}), np.ones(2))
    g(fnp.ones(2), {"op": fnp.sin, "mode": "on"})
    assert traces.count == 2


def test_objects_that_hash_by_identity_and_can_change_are_refused():
    class Mutable:
        def __init__(self):
            self.value = 1

    with pytest.raises(StaticArgumentError, match="options"):
        fx.jit(lambda x, options: x * options.value)(fnp.ones(2), Mutable())


def test_frozen_dataclasses_pass_as_statics_by_value():
    @dataclass(frozen=True)
    class Options:
        scale: int

    f, traces = counted(lambda x, options: x * options.scale)
    g = fx.jit(f)
    assert float(g(fnp.ones(()), Options(3))) == 3
    assert float(g(fnp.ones(()), Options(3))) == 3
    assert float(g(fnp.ones(()), Options(4))) == 4
    assert traces.count == 2


def test_a_failed_trace_leaves_nothing_behind():
    attempts = []

    def f(x):
        attempts.append(x)
        return fnp.ones(3) + fnp.ones(4) if len(attempts) == 1 else x

    g = fx.jit(f)
    with pytest.raises(TypeError):
        g(fnp.ones(2))
    assert g.cache_info().size == 0
    np.testing.assert_array_equal(g(fnp.ones(2)), np.ones(2))


def test_python_branching_on_a_traced_value_is_explained():
    def absolute(x):
        return x if x > 0 else -x

    with pytest.raises(TracerBoolConversionError, match=r"test_jit\.py:\d+ \(absolute\)"):
        fx.jit(absolute)(1.0)


def test_a_leaked_tracer_names_where_it_was_made():
    leaks = []

    def f(x):
        leaks.append(x * 2)
        return x

    fx.jit(f)(fnp.ones(3))
    with pytest.raises(UnexpectedTracerError, match=r"test_jit\.py:\d+ \(f\)"):
        leaks[0] + 1
    with pytest.raises(UnexpectedTracerError):
        fx.jit(lambda x: x + leaks[0])(fnp.ones(3))


def test_nested_jit_and_inline():
    inner = fx.jit(lambda x: fnp.sin(x) * 2)
    outer = fx.jit(lambda x: inner(x) + inner(x + 1))
    x = np.linspace(0, 1, 4, dtype=np.float32)
    np.testing.assert_allclose(outer(x), 2 * np.sin(x) + 2 * np.sin(x + 1), rtol=1e-6)
    flat = fx.jit(lambda x: fnp.sin(x) * 2, inline=True)
    names = [e.op.name for e in fx.make_program(lambda x: flat(x))(x).equations]
    assert "jit" not in names
    names = [e.op.name for e in fx.make_program(lambda x: inner(x))(x).equations]
    assert names == ["jit"]


def test_grad_of_jit_traces_once():
    f, traces = counted(lambda x: fnp.sum(fnp.sin(x) * x))
    g = fx.grad(fx.jit(f))
    x = np.linspace(0, 1, 4, dtype=np.float32)
    np.testing.assert_allclose(g(x), np.cos(x) * x + np.sin(x), rtol=1e-5)
    g(x)
    assert traces.count == 1


def test_jit_of_grad_and_vmap_of_jit():
    x = np.linspace(0.1, 1, 6, dtype=np.float32).reshape(2, 3)
    f = lambda v: fnp.sum(v**3)  # noqa: E731
    np.testing.assert_allclose(fx.jit(fx.vmap(fx.grad(f)))(x), 3 * x**2, rtol=1e-5)
    np.testing.assert_allclose(fx.vmap(fx.jit(f))(x), np.sum(x**3, 1), rtol=1e-5)


def test_jit_closing_over_an_outer_tracer():
    def outer(scale):
        return fx.jit(lambda x: x * scale)(fnp.arange(3.0)).sum()

    assert float(fx.grad(outer)(2.0)) == 3.0
    assert float(fx.jit(outer)(2.0)) == 6.0
    np.testing.assert_array_equal(fx.vmap(outer)(fnp.arange(3.0)), [0, 3, 6])


def test_donated_arrays_are_deleted_and_later_use_says_so():
    f = fx.jit(lambda x, y: x + y, donate_argnums=0)
    for _ in range(3):  # the first call traces, later ones take the short way
        x, y = fnp.ones(4), fnp.ones(4)
        f(x, y)
        assert x.is_deleted()
        assert not y.is_deleted()
        with pytest.raises(DeletedArrayError, match="donated"):
            x + 1
        with pytest.raises(DeletedArrayError):
            f(x, y)


def test_donation_that_fits_no_result_warns_and_keeps_the_array():
    f = fx.jit(lambda x: fnp.sum(x), donate_argnames="x")
    x = fnp.ones(4)
    with pytest.warns(UserWarning, match="donated"):
        f(x)
    assert not x.is_deleted()


def test_lower_and_compile():
    f = fx.jit(lambda x, y: {"sum": x + y["a"]})
    x = fnp.ones(3)
    lowered = f.lower(x, {"a": x})
    assert "add" in lowered.as_text()
    assert "add" in lowered.as_text("traced")
    compiled = lowered.compile()
    np.testing.assert_array_equal(compiled(x, {"a": x})["sum"], [2, 2, 2])
    assert compiled.memory_analysis()["output_size_in_bytes"] == 12
    assert compiled.cost_analysis()["bytes accessed"] == 36
    with pytest.raises(ArgumentError, match=r"y\['a'\]"):
        compiled(x, {"a": fnp.ones(4)})
    with pytest.raises(ArgumentError, match="other arguments"):
        compiled(x, {"b": x})
    with pytest.raises(ArgumentError, match="stage"):
        compiled.as_text("nonsense")


def test_lower_takes_shapes_without_arrays():
    f, traces = counted(lambda x: x @ x)
    g = fx.jit(f)
    info = g.eval_shape(fx.ShapeDtypeStruct((3, 3), np.float32))
    assert info.shape == (3, 3)
    assert info.dtype == np.float32
    g(fnp.ones((3, 3)))
    assert traces.count == 1


def test_retracing_is_explained():
    f = fx.jit(lambda x, y: x)
    f(fnp.ones(3), 1.0)
    assert "first time" in f.explain_last_trace()
    f(fnp.ones(4), 1.0)
    assert "f32[4] instead of f32[3]" in f.explain_last_trace()
    f(fnp.ones(4), np.float32(1))
    assert "weak" in f.explain_last_trace()
    f([fnp.ones(4)], np.float32(1))
    assert "tree structure" in f.explain_last_trace()
    with (
        config.using(explain_retraces=True),
        pytest.warns(UserWarning, match=r"f32\[5\]") as caught,
    ):
        f(fnp.ones(5), 1.0)
    assert caught[0].filename == __file__


def test_traces_of_a_function_are_shared_after_caches_are_cleared_too():
    function, traces = counted(lambda x: x + 1)
    first = fx.jit(function)
    first(1.0)
    fx.clear_caches()
    first(1.0)
    fx.jit(function)(1.0)
    assert traces.count == 2


def test_cache_info_counts_hits_and_misses_and_clear_forgets():
    f = fx.jit(lambda x: x + 1)
    for _ in range(3):
        f(fnp.ones(2))
    assert f.cache_info() == (2, 1, 1)
    f.clear_cache()
    assert f.cache_info().size == 0
    f(fnp.ones(2))
    assert f.cache_info().misses == 2


def test_changing_a_traced_setting_retraces():
    f, traces = counted(lambda x: x + 1)
    g = fx.jit(f)
    g(fnp.ones(2))
    with config.using(default_matmul_precision="highest"):
        g(fnp.ones(2))
    g(fnp.ones(2))
    assert traces.count == 2


def test_methods_and_partials():
    class Model:
        def __init__(self, w):
            self.w = w

        @fx.jit
        def double(self, x):
            return 2 * x

        @partial(fx.jit, static_argnums=0)
        def scaled(self, x):
            return self.w * x

        __hash__ = object.__hash__

        def __eq__(self, other):
            return self is other

    model = Model(3.0)
    assert float(model.scaled(2.0)) == 6.0
    assert float(fx.jit(partial(lambda a, b: a - b, 5.0))(2.0)) == 3.0


def test_static_results_pass_through():
    out = fx.jit(lambda x: (x, "name", None))(fnp.ones(2))
    assert out[1] == "name"
    assert out[2] is None
    assert isinstance(out[0], DeviceArray)


def test_arguments_are_checked_when_jit_is_made():
    with pytest.raises(ArgumentError, match="static_argnums has 3"):
        fx.jit(lambda x: x, static_argnums=3)
    with pytest.raises(ArgumentError, match="'z'"):
        fx.jit(lambda x: x, static_argnames="z")
    with pytest.raises(ArgumentError, match="both static and donated"):
        fx.jit(lambda x: x, static_argnums=0, donate_argnums=0)
    with pytest.raises(ArgumentError, match="takes a function"):
        fx.jit(3)


def test_wrong_calls_raise_pythons_own_error():
    with pytest.raises(TypeError, match="y"):
        fx.jit(lambda x, y: x)(1.0, z=2)


def test_disable_jit_runs_python():
    seen = []
    f = fx.jit(lambda x: (seen.append(float(x)), x)[1])
    with fx.disable_jit():
        f(fnp.asarray(3.0))
    assert seen == [3.0]


def test_threads_may_call_one_jitted_function_at_once():
    from concurrent.futures import ThreadPoolExecutor

    f = fx.jit(lambda x: fnp.sum(x * 2))
    sizes = list(range(1, 20)) * 3
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda n: float(f(fnp.ones(n))), sizes))
    assert results == [2.0 * n for n in sizes]


def test_outputs_that_are_inputs_or_constants():
    x = fnp.arange(3.0)
    a, b, c = fx.jit(lambda x: (x, x, 3.5))(x)
    np.testing.assert_array_equal(a, b)
    assert float(c) == 3.5
