"""Points 38 to 47: what a trace is known by, purity, donation, leaks, effects, NumPy's memory."""

from __future__ import annotations

import functools
import gc
import weakref

import numpy as np
import pytest

import fxarray as fx
import fxarray.numpy as fnp
from fxarray import lax
from fxarray.core import config
from fxarray.core.errors import (
    CallbackError,
    DeletedArrayError,
    StaticArgumentError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
)


def counted(function):
    """The function and the list that grows by one each time that Python runs it."""
    runs = []

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        runs.append(None)
        return function(*args, **kwargs)

    return wrapped, runs


ARRAY = np.ones(3, np.float32)

# --- point 38: what a trace is known by ---------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "traces"),
    [
        (ARRAY, 2 * ARRAY, 1),
        (ARRAY, fnp.ones(3), 1),
        (ARRAY, np.ones(4, np.float32), 2),
        (ARRAY, np.ones(3, np.int32), 2),
        (ARRAY, np.ones((3, 1), np.float32), 2),
        (1.0, 2.0, 1),
        (1.0, np.float32(1), 2),
        (1, 1.0, 2),
        (1, True, 2),
        ({"a": ARRAY, "b": 1.0}, {"b": 1.0, "a": ARRAY}, 1),
        ([ARRAY, ARRAY], (ARRAY, ARRAY), 2),
        ([ARRAY], [ARRAY, ARRAY], 2),
        (ARRAY, None, 2),
    ],
    ids=[
        "values",
        "numpy and fxarray",
        "shape",
        "dtype",
        "rank",
        "scalars",
        "weak",
        "int and float",
        "int and bool",
        "order of a dict",
        "list and tuple",
        "length",
        "None",
    ],
)
def test_a_trace_is_known_by_structure_and_types(first, second, traces):
    """Point 38: tree structure, shape, dtype and weakness decide; values and dict order do not."""
    function, runs = counted(lambda tree: tree)
    jitted = fx.jit(function)
    for argument in (first, second, first, second):
        jitted(argument)
    assert len(runs) == traces


def test_calls_by_position_and_by_keyword_share_a_trace():
    """Point 38, improved: f(x, y), f(x, y=y) and f(y=y, x=x) trace once."""
    function, runs = counted(lambda x, y: x - y)
    jitted = fx.jit(function)
    assert [float(jitted(3.0, 1.0)), float(jitted(3.0, y=1.0)), float(jitted(y=1.0, x=3.0))] == [
        2.0,
        2.0,
        2.0,
    ]
    assert len(runs) == 1


def test_two_jits_of_one_function_share_a_trace():
    """Point 38: jit(f) made twice shares; a partial made anew is another function."""
    function, runs = counted(lambda x: x + 1)
    fx.jit(function)(ARRAY), fx.jit(function)(ARRAY)
    assert len(runs) == 1
    fx.jit(functools.partial(function))(ARRAY), fx.jit(functools.partial(function))(ARRAY)
    assert len(runs) == 3


def test_changed_statics_trace_again():
    """Point 38: static values are part of the key."""
    function, runs = counted(lambda x, n: x * n)
    jitted = fx.jit(function, static_argnums=1)
    assert [float(jitted(1.0, n)) for n in (2, 3, 2)] == [2.0, 3.0, 2.0]
    assert len(runs) == 2


def test_a_changed_default_argument_is_noticed():
    """Point 38: defaults are read at the call, so that a changed one is never stale."""

    def function(x, scale=2.0):
        return x * scale

    jitted = fx.jit(function)
    assert float(jitted(1.0)) == 2.0
    function.__defaults__ = (5.0,)
    assert float(fx.jit(function)(1.0)) == 5.0


def test_grad_without_jit_runs_python_each_time():
    """Point 38: grad(f) by itself executes f anew in each call; grad(jit(f)) traces once."""
    function, runs = counted(lambda x: x * x)
    gradient = fx.grad(function)
    gradient(1.0), gradient(1.0)
    assert len(runs) == 2
    function, runs = counted(lambda x: x * x)
    gradient = fx.grad(fx.jit(function))
    gradient(1.0), gradient(1.0)
    assert len(runs) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"default_matmul_precision": "highest"},
        {"numpy_rank_promotion": "raise"},
        {"debug_nans": True},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_setting_that_traces_depend_on_traces_again(change):
    """Point 38: changing such a setting traces again; changing it back finds the first trace."""
    function, runs = counted(lambda x: x + 1)
    jitted = fx.jit(function)
    jitted(ARRAY)
    with config.using(**change):
        jitted(ARRAY)
    jitted(ARRAY)
    assert len(runs) == 2


# --- point 39: statics --------------------------------------------------------------------------


def test_a_static_without_a_hash_is_an_error_that_names_the_argument():
    """Point 39: an unhashable static argument is a ValueError."""
    jitted = fx.jit(lambda x, sizes: x, static_argnames="sizes")
    with pytest.raises(ValueError, match="sizes"):
        jitted(1.0, sizes=[1, 2])


def test_equal_statics_share_a_trace_by_value():
    """Point 39: statics are compared by __eq__ and __hash__, so equal ones share."""

    class Size:
        def __init__(self, n):
            self.n = n

        def __eq__(self, other):
            return isinstance(other, Size) and other.n == self.n

        def __hash__(self):
            return hash(self.n)

    function, runs = counted(lambda x, size: x * size.n)
    jitted = fx.jit(function, static_argnums=1)
    assert [float(jitted(1.0, Size(n))) for n in (2, 2, 3)] == [2.0, 2.0, 3.0]
    assert len(runs) == 2


def test_a_static_known_by_identity_that_can_change_is_refused():
    """Point 39, pain point 5: no stale result by an object that hashes by identity."""

    class Model:
        scale = 2.0

    with pytest.raises(StaticArgumentError, match="Model"):
        fx.jit(lambda x, model: x * model.scale)(1.0, Model())


# --- point 40: captured values ------------------------------------------------------------------


def test_globals_and_numpy_arrays_are_captured_when_traced():
    """Point 40: later changes of what a traced function closed over are not seen."""
    scale = np.asarray([2.0], np.float32)
    jitted = fx.jit(lambda x: x * scale)
    assert jitted(ARRAY).tolist() == [2, 2, 2]
    scale[0] = 7
    assert jitted(ARRAY).tolist() == [2, 2, 2]


def test_captured_arrays_are_hidden_arguments_and_not_part_of_the_code():
    """Point 40, pain point 8: the program has its captured arrays outside of its equations."""
    table = fnp.arange(1000.0)
    program = fx.make_program(lambda x: x + table)(fnp.ones(1000))
    assert any(constant is table for constant in program.constants)
    assert len(str(program)) < 500


def test_a_discarded_function_frees_what_it_captured():
    """Point 40, pain point 6: caches hold functions weakly, so nothing leaks."""

    class Marker:
        pass

    def make():
        marker = Marker()

        def function(x):
            assert marker is not None
            return x + 1

        fx.jit(function)(ARRAY)
        return weakref.ref(marker)

    reference = make()
    gc.collect()
    assert reference() is None


# --- point 41: donation -------------------------------------------------------------------------


def test_a_donated_array_is_deleted_and_its_use_is_a_runtime_error():
    """Point 41: using a donated array is a RuntimeError that says that it was deleted."""
    x = fnp.ones(4)
    result = fx.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert x.is_deleted()
    with pytest.raises(RuntimeError, match="deleted|donated"):
        np.asarray(x)
    with pytest.raises(DeletedArrayError):
        x * 2
    assert result.tolist() == [2, 2, 2, 2]


def test_donation_never_harms_another_array_with_the_same_memory():
    """Point 41: a buffer that something else still refers to keeps its values."""
    x = fnp.arange(4.0)
    view, outside = x.reshape(2, 2), np.asarray(x)
    fx.jit(lambda x: x * 100, donate_argnums=0)(x)
    assert view.tolist() == [[0, 1], [2, 3]]
    assert outside.tolist() == [0, 1, 2, 3]


def test_donation_of_numpy_memory_leaves_the_callers_array():
    """Point 41: a NumPy array given in a donated place is not written to."""
    x = np.arange(4, dtype=np.float32)
    fx.jit(lambda x: x * 100, donate_argnums=0)(x)
    assert x.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "reduce", [fnp.sum, lambda x: x.astype(fnp.int8), lambda x: x[:2]], ids=["sum", "cast", "slice"]
)
def test_donation_that_fits_no_result_warns(reduce):
    """Point 41: a donated array that no result can take over warns and stays alive."""
    x = fnp.ones(4)
    with pytest.warns(UserWarning, match="donated"):
        fx.jit(lambda x: reduce(x), donate_argnums=0)(x)
    assert x.tolist() == [1, 1, 1, 1]


# --- point 42: conversions of tracers -----------------------------------------------------------


@pytest.mark.parametrize(
    ("use", "error"),
    [
        (lambda x: 1 if x[0] > 0 else 2, TracerBoolConversionError),
        (lambda x: x[0] > 0 and x[1] > 0, TracerBoolConversionError),
        (lambda x: range(x[0].astype(int)), TracerIntegerConversionError),
        (lambda x: [1, 2, 3][x[0].astype(int)], TracerIntegerConversionError),
        (lambda x: np.asarray(x), TracerArrayConversionError),
        (lambda x: np.sin(x), TracerArrayConversionError),
        (lambda x: fnp.ones(6).reshape(x[0].astype(int), 2), TypeError),
        (lambda x: fnp.zeros(x[0].astype(int)), TypeError),
        (lambda x: float(x[0]), TypeError),
        (lambda x: x[0].item(), TypeError),
        (lambda x: x.tolist(), TypeError),
    ],
    ids="if and range index asarray numpy reshape zeros float item tolist".split(),
)
def test_each_conversion_of_a_traced_value_has_an_error_of_its_kind(use, error):
    """Point 42: the error's class tells the conversion, and the message has the user's line."""
    with pytest.raises(error, match=r"test_jit\.py:\d+"):
        fx.jit(use)(ARRAY)


def test_differentiated_values_are_concrete_for_python():
    """Point 42: under grad and jvp, `if x > 0`, float(x) and range work on values."""

    def function(x):
        for _ in range(int(x)):
            x = x * 2 if x > 0 else -x
        return x

    assert float(fx.grad(function)(2.0)) == 4.0
    assert [float(v) for v in fx.jvp(function, (2.0,), (1.0,))] == [8.0, 4.0]


# --- point 43: leaks ----------------------------------------------------------------------------

TRANSFORMS = {
    "jit": lambda f: fx.jit(f)(fnp.ones((2, 3))),
    "vmap": lambda f: fx.vmap(f)(fnp.ones((2, 3))),
    "grad": lambda f: fx.grad(lambda x: fnp.sum(f(x)))(fnp.ones((2, 3))),
    "scan": lambda f: lax.scan(lambda c, x: (c, f(x)), 0.0, fnp.ones((2, 3))),
}


@pytest.mark.parametrize("transform", ["jit", "vmap", "scan"])
def test_a_leaked_tracer_says_its_type_where_it_was_made_and_in_which_function(transform):
    """Point 43: the error has shape and dtype, the line of creation and the function's name."""
    leaks = []

    def offender(x):
        leaks.append(x * 2)
        return x

    TRANSFORMS[transform](offender)
    with pytest.raises(UnexpectedTracerError) as caught:
        leaks[0] + 1
    message = str(caught.value)
    assert "f32[" in message
    assert "offender" in message
    assert "test_jit.py:" in message


# --- point 44: side effects ---------------------------------------------------------------------


def test_python_side_effects_happen_once_per_trace():
    """Point 44: Python's print runs while tracing, and not when the program runs."""
    function, runs = counted(lambda x: x + 1)
    jitted = fx.jit(function)
    for _ in range(3):
        jitted(1.0)
    assert len(runs) == 1


def test_debug_print_runs_in_each_call_and_in_order(capsys):
    """Point 44: debug.print(ordered=True) prints when the program runs, in the order written."""

    def step(carry, x):
        fx.debug.print("first {}", x, ordered=True)
        fx.debug.print("second {}", x, ordered=True)
        return carry, None

    jitted = fx.jit(lambda xs: lax.scan(step, 0, xs)[0])
    for _ in range(2):
        jitted(fnp.arange(2))
    fx.effects_barrier()
    once = ["first 0", "second 0", "first 1", "second 1"]
    assert capsys.readouterr().out.split("\n")[:-1] == once + once


def test_debug_print_under_vmap_prints_each_lane(capsys):
    """Point 44: vmap prints once for each lane."""
    fx.vmap(lambda x: fx.debug.print("lane {}", x))(fnp.arange(3))
    fx.effects_barrier()
    assert capsys.readouterr().out == "lane 0\nlane 1\nlane 2\n"


def test_debug_print_of_an_untaken_branch_prints_nothing(capsys):
    """Point 44, pain point 12: under vmap, only the lanes that take a branch print in it."""

    def function(x):
        return lax.cond(
            x > 1, lambda x: (fx.debug.print("large {}", x), x)[1], lambda x: x, x
        )

    fx.vmap(function)(fnp.arange(4))
    fx.effects_barrier()
    assert capsys.readouterr().out == "large 2\nlarge 3\n"


# --- point 45: errors of the device -------------------------------------------------------------


def test_an_error_inside_a_callback_has_surfaced_by_block_until_ready():
    """Point 45: at the latest, block_until_ready raises what went wrong while computing."""

    def broken(x):
        raise KeyError("lost")

    with pytest.raises(CallbackError, match="lost"):
        fx.jit(lambda x: fx.pure_callback(broken, x, x))(ARRAY).block_until_ready()


def test_block_until_ready_takes_trees_and_returns_them():
    """Point 45: fxarray.block_until_ready waits for every array in a tree."""
    tree = {"a": fnp.ones(2), "b": [1, None]}
    assert fx.block_until_ready(tree)["a"] is tree["a"]
    assert tree["a"].block_until_ready() is tree["a"]


# --- point 46: eval_shape and unused arguments --------------------------------------------------


def test_eval_shape_computes_nothing():
    """Point 46: eval_shape gives shapes and dtypes of results that no memory could hold."""
    calls = []

    def function(x):
        fx.pure_callback(lambda x: calls.append(x) or x, x, x)
        return {"product": x @ x.T, "size": x.shape[0]}

    shapes = fx.eval_shape(function, fx.ShapeDtypeStruct((10**7, 10), fnp.float16))
    assert shapes["product"].shape == (10**7, 10**7)
    assert shapes["product"].dtype == fnp.float16
    assert calls == []


def test_unused_arguments_are_dropped_unless_kept():
    """Point 46: an argument that nothing uses is no input, and keep_unused keeps it."""
    text = [
        fx.jit(lambda x, y: x + 1, keep_unused=keep).lower(ARRAY, np.ones(7, np.float32)).as_text()
        for keep in (False, True)
    ]
    assert "f32[7]" not in text[0]
    assert "f32[7]" in text[1]


# --- point 47: NumPy's memory -------------------------------------------------------------------


@pytest.mark.parametrize(
    "convert",
    [fnp.asarray, fnp.array, fx.device_put, fx.jit(lambda x: x), fnp.asarray],
    ids=["asarray", "array", "device_put", "jit", "again"],
)
def test_writing_to_a_numpy_array_changes_no_array_made_from_it(convert):
    """Point 47: whatever memory is shared, an array never changes under its owner."""
    source = np.arange(4, dtype=np.float32)
    made = convert(source)
    source[0] = 100
    assert made.tolist() == [0, 1, 2, 3]


def test_numpy_sees_arrays_as_read_only():
    """Point 47: np.asarray of an array cannot be written to; np.array gives a copy that can."""
    x = fnp.arange(4.0)
    view = np.asarray(x)
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1
    copy = np.array(x)
    copy[0] = 50
    assert x.tolist() == [0, 1, 2, 3]


def test_tracers_are_arrays():
    """Point 47: isinstance(x, fxarray.Array) holds for arrays and for tracers of any kind."""
    seen = []
    look = lambda x: (seen.append(isinstance(x, fx.Array)), x)[1]  # noqa: E731
    look(fnp.ones(3))
    for transform in TRANSFORMS.values():
        transform(look)
    assert len(seen) >= 5
    assert all(seen)
    assert not isinstance(ARRAY, fx.Array)
