"""Whole programs: results, arguments of every kind, memory that results share or take."""

import gc
import threading
import weakref

import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray import lax
from fxarray.core.errors import DeletedArrayError, NonFiniteError

X = np.random.default_rng(0).normal(size=(6, 8)).astype(np.float32)


def native(function, **options):
    return fxarray.jit(function, backend="cpu", **options)


class TestResults:
    def test_steps_follow_each_other(self, agree):
        agree(lambda x: fnp.sort(fnp.tanh(x) @ fnp.cumsum(x, 0).T, 1).sum(0), X)

    def test_inputs_constants_and_repeated_values_are_results(self, agree):
        def f(x):
            y = x + 1
            return x, y, x, y, fnp.reshape(y, (8, 6)), fnp.ones(3), fnp.reshape(x, -1)

        agree(f, X)

    def test_a_result_that_is_an_argument_has_its_own_type(self):
        weak = native(lambda x: fnp.asarray(x, "float32"))(2.5)
        assert not weak.weak_type
        assert float(weak) == 2.5

    def test_arrays_without_elements(self, agree):
        agree(lambda x: (x[:, :0] * 2, fnp.sum(x[:0], 0)), X)

    def test_reductions_of_what_is_reduced_over_nothing(self, agree):
        nothing = np.zeros((8, 5, 0), np.float32)
        agree(lambda x: fnp.exp(fnp.sum(x, -1)).sum(0), nothing)
        agree(lambda x: fnp.exp(x[:, 0] @ x[:, 0].T).sum(0), nothing)

    def test_views_of_other_types(self, agree):
        agree(lambda x: lax.bitcast_convert_type(x * 2, np.int32), X)
        agree(lambda x: lax.bitcast_convert_type(x, np.int32), X)

    def test_random_keys_pass_through(self):
        key = fxarray.random.key(3)

        def f(key):
            first, second = fxarray.random.split(key)
            return first, fxarray.random.uniform(second, (5,))

        actual, expected = native(f)(key), fxarray.jit(f, backend="reference")(key)
        assert fxarray.random.key_data(actual[0]).tolist() == (
            fxarray.random.key_data(expected[0]).tolist()
        )
        assert np.array_equal(actual[1], expected[1])

    def test_a_function_without_arguments(self):
        assert native(lambda: fnp.arange(4) * 2)().tolist() == [0, 2, 4, 6]

    def test_a_function_without_results(self):
        assert native(lambda x: None)(X) is None


class TestArguments:
    def test_arrays_that_are_not_contiguous(self):
        transposed = fnp.asarray(X).T
        f = native(lambda x: x * 2 + 1)
        assert np.array_equal(f(transposed), np.asarray(transposed) * 2 + 1)
        assert np.array_equal(f(transposed), np.asarray(transposed) * 2 + 1)

    def test_numbers_and_numpy_arrays(self):
        f = native(lambda x, y: x * y)
        for _ in range(2):
            assert np.array_equal(f(X, 2.0), X * 2)
            assert np.array_equal(f(X[:, ::2], np.float32(3)), X[:, ::2] * 3)

    def test_a_deleted_array_is_refused(self):
        f = native(lambda x: x + 1)
        x = fnp.asarray(X)
        f(x)
        x.delete()
        with pytest.raises(DeletedArrayError):
            f(x)

    def test_arguments_are_never_written_to(self):
        x = fnp.asarray(X)
        native(lambda x: (fnp.tanh(x) * 2, fnp.sort(x)))(x)
        assert np.array_equal(x, X)

    def test_values_being_differentiated_reach_a_compiled_function(self):
        f = native(lambda x: fnp.sum(fnp.sin(x)))
        f(X)
        assert np.allclose(fxarray.grad(f)(X), np.cos(X), rtol=1e-6)


class TestMemory:
    def test_a_donated_argument_becomes_the_result(self):
        f = native(lambda x, y: x * 2 + y, donate_argnums=0)
        for _ in range(2):
            x = fnp.asarray(X) + 0
            address = x.numpy_view().ctypes.data
            result = f(x, fnp.asarray(X))
            assert np.allclose(result, X * 3)
            assert x.is_deleted()
            assert result.numpy_view().ctypes.data == address

    def test_memory_that_somebody_else_sees_is_left_alone(self):
        f = native(lambda x: x * 2, donate_argnums=0)
        f(fnp.asarray(X))
        x = fnp.asarray(X) + 0
        view = np.asarray(x)
        result = f(x)
        assert np.array_equal(view, X)
        assert np.array_equal(result, X * 2)
        assert not np.shares_memory(view, np.asarray(result))

    def test_one_array_donated_twice_is_left_alone(self):
        f = native(lambda x, y: (x * 2, y * 3), donate_argnums=(0, 1))
        x = fnp.asarray(X) + 0
        doubled, tripled = f(x, x)
        assert np.array_equal(doubled, X * 2)
        assert np.array_equal(tripled, X * 3)

    def test_the_argument_whose_memory_was_taken_is_the_one_deleted(self):
        f = native(lambda x, y: y * 2 + fnp.sum(x), donate_argnums=(0, 1))
        x, y = fnp.zeros((6, 8)), fnp.asarray(X) + 0
        with pytest.warns(UserWarning, match="not used"):
            result = f(x, y)
        survivor = y if x.is_deleted() else x
        before = np.zeros((6, 8)) if survivor is x else X
        assert np.array_equal(survivor, before)
        assert np.array_equal(result, X * 2)

    def test_results_are_freed_with_their_arrays(self):
        f = native(lambda x: x + 1)
        result = f(X)
        watched = weakref.ref(result)
        del result
        gc.collect()
        assert watched() is None

    def test_temporaries_are_counted_once_where_they_share_memory(self):
        def f(x):
            for _ in range(10):
                x = fnp.sort(x, 0)[::-1] * 2
            return x

        compiled = native(f).lower(fnp.zeros((64, 64))).compile()
        analysis = compiled.memory_analysis()
        assert analysis["argument_size_in_bytes"] == analysis["output_size_in_bytes"] == 64 * 64 * 4
        assert (
            0 < analysis["temp_size_in_bytes"] < 7 * 64 * 64 * 4
        )  # of 20 values, and room to sort in


class TestThreads:
    def test_several_threads_call_one_function_at_once(self):
        f = native(lambda x, y: fnp.sort(fnp.tanh(x @ y), 0) + fnp.sum(x))
        rng = np.random.default_rng(1)
        given = [rng.normal(size=(2, 40, 40)).astype(np.float32) for _ in range(4)]
        expected = [np.asarray(f(*pair)) for pair in given]
        wrong = []

        def work(number):
            good = [np.array_equal(f(*given[number]), expected[number]) for _ in range(50)]
            wrong.extend([number] * good.count(False))

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong


class TestChecks:
    def test_debug_nans_names_the_operation(self):
        f = native(lambda x: fnp.log(x) * 2)
        f(np.float32(1))
        with fxarray.debug_nans(True):
            for _ in range(2):
                with pytest.raises(NonFiniteError, match="log"):
                    f(np.float32(-1))
