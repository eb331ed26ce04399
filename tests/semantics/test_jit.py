"""Points 38 to 47 and 51: caches, statics, donation, leaks, purity, arrays of NumPy, trees."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import gc
import warnings
import weakref

import numpy as np
import pytest

import fxarray as fx
import fxarray.numpy as fnp
from fxarray import errors, lax
from fxarray.compile import driver


def counted(function):
    """A function that counts its traces in `.traces`."""

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        wrapped.traces += 1
        return function(*args, **kwargs)

    wrapped.traces = 0
    return wrapped


# --- point 38: what a trace is known by ---------------------------------------------------------


def test_what_makes_a_new_trace():
    """Point 38: shape, dtype, weakness, tree and static values do; values and dict order do not."""
    f = counted(lambda x: fx.tree.map(lambda v: v, x))
    g = fx.jit(f)
    same = [fnp.ones(3), fnp.zeros(3), np.ones(3, np.float32)]
    for x in same:
        g(x)
    assert f.traces == 1
    for number, x in enumerate(
        [
            fnp.ones(4),
            fnp.ones(3, fnp.int32),
            fnp.asarray(1.0),
            fnp.float32(1),
            [same[0]],
            (same[0],),
        ]
    ):
        g(x), g(x)
        assert f.traces == number + 2
    before = f.traces
    g({"a": 1.0, "b": 2}), g({"b": 3, "a": 4.0})
    assert f.traces == before + 1


def test_both_ways_of_calling_share_a_trace():
    """Point 38, improved: positional and keyword calls are one trace; defaults count as given."""
    f = counted(lambda x, y=2.0: x - y)
    g = fx.jit(f)
    assert float(g(5.0, 3.0)) == float(g(x=5.0, y=3.0)) == float(g(y=3.0, x=5.0)) == 2.0
    assert f.traces == 1


def test_which_functions_share_traces():
    """Point 38: jit(f) twice shares; a fresh partial or lambda traces, but compiles nothing."""
    f = counted(lambda x, n: x * n + 123)
    x = fnp.ones(3)
    fx.jit(f)(x, x), fx.jit(f)(x, x)
    assert f.traces == 1
    compiled = driver.statistics().misses
    for _ in range(3):
        fx.jit(lambda x, n: f(x, n))(x, x)
    assert f.traces == 4
    assert driver.statistics().misses <= compiled + 1


def test_grad_without_jit_runs_python_each_time():
    """Point 38: grad(f) executes the function at each call."""
    f = counted(lambda x: x * x)
    fx.grad(f)(1.0), fx.grad(f)(2.0)
    assert f.traces == 2


def test_a_changed_setting_traces_again():
    """Point 38: a setting on which traces depend is part of the key."""
    f = counted(lambda x: x @ x)
    g = fx.jit(f)
    x = fnp.ones((2, 2))
    g(x)
    with fx.config.using(default_matmul_precision="highest"):
        g(x)
    g(x)
    assert f.traces == 2


def test_a_failed_trace_leaves_no_entry():
    """Bad input: after an error while tracing nothing is cached, and the next call traces anew."""
    attempts = []

    @fx.jit
    def f(x):
        attempts.append(1)
        if len(attempts) < 3:
            raise KeyError("not yet")
        return x

    for _ in range(2):
        with pytest.raises(KeyError):
            f(1.0)
        assert f.cache_info().size == 0
    assert float(f(1.0)) == 1.0
    assert len(attempts) == 3


def test_a_trace_depends_on_nothing_that_looks_alike():
    """Pain points 5 and 6: equal-but-different closures and statics give no stale number."""
    made = [fx.jit(lambda x, k=k: x * k) for k in (1, 1.0, True, 2)]
    assert [str(f(fnp.int32(3)).dtype) for f in made] == ["int32", "float32", "int32", "int32"]
    assert [float(f(fnp.int32(3))) for f in made] == [3, 3, 3, 6]
    seen = []
    g = fx.jit(lambda x, s: (seen.append(s), x * s)[1], static_argnums=1)
    assert [str(g(fnp.int32(3), s).dtype) for s in (1, 1.0, True)] == ["int32", "float32", "int32"]
    assert [type(s) for s in seen] == [int, float, bool]
    g(fnp.int32(3), 0.0), g(fnp.int32(3), -0.0)
    assert len(seen) == 5


# --- points 39 and 40: statics and captured values ----------------------------------------------


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclasses.dataclass(frozen=True)
class Options:
    scale: float
    name: str = "a"


@pytest.mark.parametrize(
    "pair",
    [
        (fnp.sin, fnp.cos),
        ("sin", "cos"),
        (Colour.RED, Colour.BLUE),
        (Options(1.0), Options(2.0)),
        (fnp.float32, fnp.int32),
        (np.dtype("float32"), np.dtype("int8")),
        (slice(0, 1), slice(1, 2)),
        (functools.partial(fnp.add, 1), functools.partial(fnp.add, 2)),
        (int, str),
        (np, fnp),
    ],
)
def test_what_is_no_array_is_static_by_itself_in_every_transform(pair):
    """Point 39, improved: statics pass through jit, grad, vmap, scan, cond, custom rules."""
    seen = []

    def f(x, static):
        seen.append(static)
        return x * (1.0 if static == pair[0] else 2.0)

    g = fx.jit(f)
    results = [float(g(3.0, s)) for s in (*pair, *pair)]
    assert results == [3, 6, 3, 6]
    assert len(seen) == 2
    for s, expected in zip(pair, (1.0, 2.0), strict=True):
        assert float(fx.grad(f)(3.0, s)) == expected
        np.testing.assert_array_equal(fx.vmap(f, (0, None))(fnp.ones(2), s), [expected] * 2)
        assert float(fx.checkpoint(f)(1.0, s)) == expected
        assert float(fx.jvp(lambda x, s=s: f(x, s), (1.0,), (1.0,))[1]) == expected
        assert float(lax.cond(True, f, f, 1.0, s)) == expected
        carry, _ = lax.scan(lambda c, _: ((f(c[0], c[1]), c[1]), None), (1.0, s), None, length=1)
        assert float(carry[0]) == expected
        assert carry[1] == s
        rule = fx.custom_vjp(f)
        rule.defvjp(lambda x, s: (f(x, s), s), lambda s, ct: (f(ct, s), None))
        assert float(fx.grad(rule)(1.0, s)) == expected


def test_objects_that_cannot_be_static_say_so():
    """Point 39: unhashable and mutable identity-hashed objects are ValueErrors with the remedy."""

    class Mutable:
        pass

    with pytest.raises(ValueError, match="Mutable.*__eq__|identity"):
        fx.jit(lambda x, m: x)(1.0, Mutable())
    with pytest.raises(ValueError, match="hash"):
        fx.jit(lambda x, m: x, static_argnums=1)(1.0, bytearray(b"x"))


def test_captured_numpy_arrays_are_values_of_the_time_of_tracing():
    """Point 40: a mutable array or global changed after the trace changes nothing."""
    constant = np.ones(3, np.float32)
    f = fx.jit(lambda x: x * constant)
    np.testing.assert_array_equal(f(fnp.ones(3)), [1, 1, 1])
    constant[:] = 5
    np.testing.assert_array_equal(f(fnp.ones(3)), [1, 1, 1])
    np.testing.assert_array_equal(f(fnp.ones(3, fnp.int32)), [5, 5, 5])


# --- point 41: donation -------------------------------------------------------------------------


def test_donation_deletes_what_is_used_and_warns_of_the_rest():
    """Point 41: later use is a RuntimeError; an array that fits no result is kept."""
    f = fx.jit(lambda x, y: x + y.sum(), donate_argnums=(0, 1))
    x, y = fnp.ones(3), fnp.ones(5)
    with pytest.warns(UserWarning, match=r"f32\[5\]"):
        z = f(x, y)
    np.testing.assert_array_equal(z, [6, 6, 6])
    assert x.is_deleted()
    with pytest.raises(RuntimeError, match="deleted|donated"):
        x + 1
    assert float(y.sum()) == 5.0


def test_donated_memory_that_others_hold_stays_theirs():
    """Point 41: a view by NumPy of a donated array keeps its values."""
    x = fnp.ones(4)
    view = np.asarray(x)
    sliced = x[1:]
    fx.jit(lambda x: x * 7, donate_argnums=0)(x)
    np.testing.assert_array_equal(view, [1, 1, 1, 1])
    np.testing.assert_array_equal(sliced, [1, 1, 1])


# --- points 42 and 43: misuse of tracers --------------------------------------------------------


@pytest.mark.parametrize(
    ("misuse", "error", "remedy"),
    [
        (lambda x: 1 if x[0] > 0 else 2, errors.TracerBoolConversionError, r"cond|where"),
        (lambda x: list(range(x[0].astype(int))), errors.TracerIntegerConversionError, "fori_loop|static"),  # noqa: E501
        (lambda x: np.asarray(x), errors.TracerArrayConversionError, r"fxarray\.numpy"),
        (lambda x: np.sin(x), errors.TracerArrayConversionError, r"fxarray\.numpy"),
        (lambda x: fnp.zeros(x[0].astype(int)), TypeError, "static|shape"),
        (lambda x: x.reshape(x[0].astype(int), 1), TypeError, "static|shape"),
        (lambda x: [1, 2, 3][x[0].astype(int)], errors.TracerIntegerConversionError, "static"),
        (lambda x: float(x[0]), errors.ConcretizationError, "float|static|traced"),
        (lambda x: x[0].item(), errors.ConcretizationError, "item|static|traced"),
        (lambda x: x[x > 0], errors.NonConcreteBooleanIndexError, "where"),
    ],
)  # fmt: skip
def test_each_misuse_of_a_traced_value_has_its_own_error(misuse, error, remedy):
    """Point 42 and pain point 9: the class, the argument's name, the user's line and the remedy."""

    def traced_function(vector):
        return misuse(vector)

    with pytest.raises(error, match=remedy) as caught:
        fx.jit(traced_function)(fnp.ones(3))
    assert "test_jit.py" in str(caught.value)


def test_a_traced_value_names_the_argument_that_it_comes_from():
    """Pain point 9: the message says which argument of which function the value is."""

    def decide(threshold):
        return threshold > 0 and threshold

    with pytest.raises(errors.TracerBoolConversionError) as caught:
        fx.jit(decide)(1.0)
    assert "decide" in str(caught.value)
    with pytest.raises(errors.ConcretizationError, match="argument threshold"):
        fx.jit(lambda threshold: int(threshold))(1.0)


def test_python_control_flow_on_values_works_outside_jit():
    """Point 42: tracers of grad, jvp and linearize have values; so has one lane's shape."""

    def f(x):
        y = x
        while y < 10:
            y = y * 2 if y > 3 else y + 1
        for _ in range(int(y) % 3):
            y = y * x
        return y

    assert float(fx.grad(f)(2.5)) == float(fx.jvp(f, (2.5,), (1.0,))[1])
    assert float(f(2.5)) == float(fx.value_and_grad(f)(2.5)[0])


def test_a_leaked_tracer_is_recognised_and_says_where_it_was_made():
    """Point 43: use after the end is an error with type, function and line."""
    scanned = lambda f: lambda xs: lax.scan(lambda c, x: (c + f(x), None), 0.0, xs)[0]  # noqa: E731
    for transform in (fx.jit, fx.grad, fx.vmap, scanned):
        leaked = []

        def leaking(x, leaked=leaked):
            leaked.append(fnp.sin(x))
            return x

        x = 1.0 if transform in (fx.grad, fx.jit) else fnp.ones(3)
        transform(leaking)(x)
        with pytest.raises(errors.UnexpectedTracerError, match=r"f32\[\]"):
            leaked[0] + 1
        with pytest.raises(errors.UnexpectedTracerError):
            fx.jit(lambda leaked=leaked: leaked[0] * 2)()
    holder = []
    fx.jit(lambda x: (holder.append(x * 2), x)[1])(1.0)
    with pytest.raises(errors.UnexpectedTracerError, match=r"test_jit\.py:\d+"):
        holder[0] + 1


# --- point 44: side effects ---------------------------------------------------------------------


def test_python_side_effects_happen_once_per_trace():
    """Point 44: print inside jit runs while tracing only."""
    seen = []
    f = fx.jit(lambda x: (seen.append("traced"), x)[1])
    f(1.0), f(2.0)
    assert seen == ["traced"]


def test_debug_print_happens_at_each_call_and_in_each_lane(capsys):
    """Point 44: ordered prints keep their order; under vmap there is one line per lane."""

    @fx.jit
    def f(x):
        fx.debug.print("first {}", x, ordered=True)
        fx.debug.print("second {y}", y=x + 1, ordered=True)
        return x

    f(1), f(5)
    fx.effects_barrier()
    assert capsys.readouterr().out.split("\n")[:4] == ["first 1", "second 2", "first 5", "second 6"]
    fx.vmap(lambda x: fx.debug.print("lane {}", x))(fnp.arange(3))
    fx.effects_barrier()
    assert sorted(capsys.readouterr().out.split()) == ["0", "1", "2", "lane", "lane", "lane"]


# --- points 45 and 46: waiting, shapes, unused arguments ----------------------------------------


def test_block_until_ready_gives_back_its_tree():
    """Point 45: arrays and trees can be waited for."""
    tree = {"a": fnp.ones(3), "b": [1.0, None]}
    assert fx.block_until_ready(tree)["a"].shape == (3,)
    assert fnp.ones(3).block_until_ready().shape == (3,)


def test_eval_shape_computes_nothing():
    """Point 46: shapes and dtypes come from tracing, for arrays that could not even exist."""
    ran = []

    def f(x, y):
        shape = fx.ShapeDtypeStruct((), fnp.float32)
        z = fx.pure_callback(lambda v: ran.append(1) or v, shape, 1.0)
        return {"out": x @ y + z}

    huge = fx.ShapeDtypeStruct((10**6, 10**6), fnp.float32)
    result = fx.eval_shape(f, huge, huge)
    assert (result["out"].shape, str(result["out"].dtype)) == ((10**6, 10**6), "float32")
    assert ran == []


def test_unused_arguments_do_not_reach_the_program_that_runs():
    """Point 46: arguments that are not used are dropped, whatever their number."""
    f = fx.jit(lambda x, y: x + 1)
    assert float(f(1.0, fnp.ones(10**3))) == 2.0
    kept = fx.jit(lambda x, y: x + 1, keep_unused=True)
    assert float(kept(1.0, fnp.ones(3))) == 2.0


# --- point 47: memory shared with NumPy ---------------------------------------------------------


def test_memory_is_never_shared_in_a_way_that_shows():
    """Point 47: arrays made from NumPy keep their values; NumPy's view of ours is read-only."""
    source = np.ones(3, np.float32)
    made = [
        fnp.asarray(source),
        fnp.array(source),
        fx.jit(lambda x: x)(source),
        source + fnp.zeros(3),
    ]
    source[:] = 9
    for x in made:
        np.testing.assert_array_equal(x, [1, 1, 1])
    view = np.asarray(made[0])
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 5
    copied = np.array(made[0])
    copied[0] = 5
    assert float(made[0][0]) == 1.0


def test_tracers_are_arrays():
    """Point 47: isinstance(tracer, Array) holds under every transform."""
    seen = []
    f = lambda x: (seen.append(isinstance(x, fx.Array)), 1.0 * x)[1]  # noqa: E731
    fx.jit(f)(1.0), fx.grad(f)(1.0), fx.vmap(f)(fnp.ones(2)), fx.jvp(f, (1.0,), (1.0,))
    fx.eval_shape(f, 1.0)
    assert seen == [True] * 5
    assert isinstance(fnp.ones(2), fx.Array)
    assert not isinstance(np.ones(2), fx.Array)


def test_functions_and_arrays_are_not_kept_alive():
    """Pain point 6: fresh lambdas in loops and jit leave nothing behind."""
    references = []
    for _ in range(3):
        big = fnp.ones(1000)
        f = lambda c, _, big=big: (c + big.sum(), None)  # noqa: E731
        lax.scan(f, 0.0, None, length=2)
        fx.jit(lambda x, big=big: x + big)(1.0)
        references.append(weakref.ref(f))
    del f, big
    gc.collect()
    assert [reference() for reference in references] == [None, None, None]


# --- point 51: trees ----------------------------------------------------------------------------


Point = collections.namedtuple("Point", "x y")


def test_trees_have_jax_s_rules():
    """Point 51: None is no leaf, keys are sorted, the usual containers are nodes."""
    assert fx.tree.leaves({"b": 1, "a": (2, None, [3])}) == [2, 3, 1]
    tree = [
        Point(1, 2),
        collections.OrderedDict(z=1, a=2),
        collections.defaultdict(list, k=3),
        {"n": None},
    ]
    leaves, structure = fx.tree.flatten(tree)
    assert leaves == [1, 2, 1, 2, 3]
    back = fx.tree.unflatten(structure, leaves)
    assert back == tree
    assert type(back[0]) is Point
    assert back[2].default_factory is list
    mixed = [fx.tree.leaves({1: 0, "a": 1}), fx.tree.leaves({"a": 1, 1: 0})]
    assert mixed[0] == mixed[1]  # JAX refuses keys that do not compare; here classes are sorted
    sentinels = fx.tree.unflatten(structure, [object()] * 5)
    assert fx.tree.structure(sentinels) == structure
    f = fx.jit(lambda t: fx.tree.map(lambda v: v * 2, t))
    assert int(f(tree)[0].y) == 4


def test_mismatched_trees_are_explained_by_path():
    """Point 51: the error names the place in the tree."""
    with pytest.raises(ValueError, match=r"\['a'\]|'a'"):
        fx.tree.map(lambda x, y: x, {"a": (1, 2)}, {"a": [1, 2]})
    with pytest.raises((ValueError, TypeError), match=r"w"):
        fx.vmap(lambda p: p["w"][0], in_axes=({"v": 0},))({"w": fnp.ones((3, 2))})


# --- pain point 4 -------------------------------------------------------------------------------


def test_a_retrace_is_explained_by_one_line():
    """Pain point 4: what differs, in which argument, from the nearest known trace."""
    f = fx.jit(lambda weights, scale: weights * scale)
    f(fnp.ones(3), 1.0)
    f(fnp.ones(4), 1.0)
    text = f.explain_last_trace()
    assert "weights" in text
    assert "3" in text
    assert "4" in text
    with fx.config.using(explain_retraces=True), pytest.warns(UserWarning, match="scale"):
        f(fnp.ones(4), 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(fnp.ones(4), 2.0)
