"""Movement, slicing, joining, gather, scatter: `lax` against JAX, and what no single rule says."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fxarray
import fxarray.numpy as fnp
from fxarray import lax, random
from fxarray.core.dims import ShapeVar, same
from fxarray.core.errors import ArgumentError, AxisError, DTypeError, OutOfBoundsError, ShapeError


def same_values(result, expected, message=""):
    result = np.asarray(result)
    assert result.shape == expected.shape, message
    assert result.dtype == expected.dtype, message
    tolerance = 1e-6 if expected.dtype.kind in "fc" else 0
    np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance, err_msg=message)


# --- lax against JAX ------------------------------------------------------------------------------

CUBE = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
ROW = np.arange(5, dtype=np.int32)
CALLS = {
    "broadcast": lambda m, x: m.broadcast(x(ROW), (2, 3)),
    "broadcast_in_dim": lambda m, x: m.broadcast_in_dim(x(ROW[:3]), (2, 3, 4), (1,)),
    "broadcast_in_dim of size 1": lambda m, x: m.broadcast_in_dim(
        x(CUBE[:, :1]), (2, 5, 4), (0, 1, 2)
    ),
    "reshape": lambda m, x: m.reshape(x(CUBE), (4, 6)),
    "reshape with dimensions": lambda m, x: m.reshape(x(CUBE), (24,), (2, 0, 1)),
    "transpose": lambda m, x: m.transpose(x(CUBE), (2, 0, 1)),
    "rev": lambda m, x: m.rev(x(CUBE), (0, 2)),
    "squeeze": lambda m, x: m.squeeze(x(CUBE[:1, :, :1]), (0, -1)),
    "expand_dims": lambda m, x: m.expand_dims(x(CUBE), (0, -1, 2)),
    "collapse": lambda m, x: m.collapse(x(CUBE), 1),
    "collapse to a stop": lambda m, x: m.collapse(x(CUBE), 0, 2),
    "collapse to a negative stop": lambda m, x: m.collapse(x(CUBE), 0, -1),
    "collapse nothing": lambda m, x: m.collapse(x(CUBE), 3),
    "concatenate": lambda m, x: m.concatenate([x(CUBE), x(CUBE[:, :1])], 1),
    "split 0": lambda m, x: m.split(x(CUBE), (1, 3), axis=2)[0],
    "split 1": lambda m, x: m.split(x(CUBE), (1, 3), axis=-1)[1],
    "pad": lambda m, x: m.pad(x(CUBE), 7.0, [(1, 0, 2), (-1, 2, 0), (0, -2, 1)]),
    "tile": lambda m, x: m.tile(x(CUBE), (2, 1, 3)),
    "slice": lambda m, x: m.slice(x(CUBE), (0, 1, 1), (1, 3, 4), (1, 1, 2)),
    "slice_in_dim": lambda m, x: m.slice_in_dim(x(CUBE), -2, None, axis=1),
    "slice_in_dim with a stride": lambda m, x: m.slice_in_dim(x(ROW), 0, -1, 2),
    "index_in_dim": lambda m, x: m.index_in_dim(x(CUBE), -1, 2),
    "index_in_dim, axis dropped": lambda m, x: m.index_in_dim(x(CUBE), 1, 1, keepdims=False),
    "dynamic_slice": lambda m, x: m.dynamic_slice(x(CUBE), (1, 9, -3), (1, 2, 2)),
    "dynamic_slice by a vector": lambda m, x: m.dynamic_slice(
        x(CUBE), x(np.array([0, -1, -9])), (1, 2, 2)
    ),
    "dynamic_slice without negatives": lambda m, x: m.dynamic_slice(
        x(CUBE), x(np.array([0, -1, -9])), (1, 2, 2), allow_negative_indices=False
    ),
    "dynamic_slice_in_dim": lambda m, x: m.dynamic_slice_in_dim(x(CUBE), 1, 2, axis=2),
    "dynamic_index_in_dim": lambda m, x: m.dynamic_index_in_dim(x(CUBE), -1, 1),
    "dynamic_index_in_dim, axis dropped": lambda m, x: m.dynamic_index_in_dim(x(CUBE), 7, 1, False),
    "dynamic_update_slice": lambda m, x: m.dynamic_update_slice(
        x(CUBE), x(-CUBE[:1, :2]), (1, 2, 0)
    ),
    "dynamic_update_slice_in_dim": lambda m, x: m.dynamic_update_slice_in_dim(
        x(ROW), x(ROW[:2]), -2, 0
    ),
    "dynamic_update_index_in_dim": lambda m, x: m.dynamic_update_index_in_dim(
        x(CUBE), x(-CUBE[0]), 1, 0
    ),
    "dynamic_update_index_in_dim of a number": lambda m, x: m.dynamic_update_index_in_dim(
        x(CUBE[0, 0]), 2.5, -1, 0
    ),
    "iota": lambda m, x: m.iota("float32", 3),
    "broadcasted_iota": lambda m, x: m.broadcasted_iota("int8", (2, 3), 0),
    "full": lambda m, x: m.full((2, 3), 7),
    "full with a dtype": lambda m, x: m.full((2,), 7.9, np.int32),
    "full_like": lambda m, x: m.full_like(x(CUBE), 2),
    "full_like with a shape": lambda m, x: m.full_like(x(CUBE), 2, np.int16, (3,)),
    "index_take": lambda m, x: m.index_take(
        x(CUBE), (x(np.array([0, 1])), x(np.array([3, 0]))), (0, 2)
    ),
}


@pytest.mark.parametrize("call", CALLS)
def test_lax_agrees_with_jax(call):
    expected = CALLS[call](jax.lax, jnp.asarray)
    result = CALLS[call](lax, fnp.asarray)
    assert result.weak_type == expected.weak_type
    same_values(result, np.asarray(expected))


@st.composite
def gathers(draw):
    """An operand, indices, dimension numbers, slice sizes."""
    rank = draw(st.integers(1, 3))
    shape = draw(st.tuples(*[st.integers(1, 4)] * rank))
    dimensions = draw(st.permutations(range(rank)))
    lane_count = draw(st.integers(0, min(1, rank - 1)))
    lanes = tuple(dimensions[:lane_count])
    others = dimensions[lane_count:]
    components = draw(st.integers(0, len(others)))
    indexed = tuple(others[:components])
    collapsed = tuple(sorted(d for d in others if draw(st.booleans())))
    sizes = tuple(
        1 if d in lanes + collapsed else draw(st.integers(1, shape[d])) for d in range(rank)
    )
    batch = draw(st.lists(st.integers(1, 3), min_size=0, max_size=2))
    lane_places = tuple(draw(st.permutations(range(len(batch) + lane_count)))[:lane_count])
    for place, lane in sorted(zip(lane_places, lanes, strict=True)):
        batch.insert(place, shape[lane])
    windows = rank - len(collapsed) - lane_count
    offset = tuple(sorted(draw(st.permutations(range(len(batch) + windows)))[:windows]))
    indices = np.array(
        draw(
            st.lists(
                st.integers(-2, 5),
                min_size=int(np.prod(batch)) * components,
                max_size=int(np.prod(batch)) * components,
            )
        ),
        np.int32,
    ).reshape(*batch, components)
    return shape, indices, (offset, collapsed, indexed, lanes, lane_places), sizes


def jax_numbers(numbers, kind):
    offset, collapsed, indexed, lanes, places = numbers
    if kind == "gather":
        return jax.lax.GatherDimensionNumbers(
            offset,
            collapsed,
            indexed,
            operand_batching_dims=lanes,
            start_indices_batching_dims=places,
        )
    return jax.lax.ScatterDimensionNumbers(
        offset,
        collapsed,
        indexed,
        operand_batching_dims=lanes,
        scatter_indices_batching_dims=places,
    )


def _sorted_lanes(numbers):
    """JAX wants batching dimensions of the operand in increasing order."""
    return list(numbers[3]) == sorted(numbers[3])


@settings(max_examples=40)
@given(st.data())
def test_gather_agrees_with_jax(data):
    shape, indices, numbers, sizes = data.draw(gathers())
    if not _sorted_lanes(numbers):
        return
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + 1
    for mode in ("clip", "fill"):
        expected = jax.lax.gather(x, indices, jax_numbers(numbers, "gather"), sizes, mode=mode)
        ours = lax.GatherDimensionNumbers(*numbers)
        result = lax.gather(x, indices, ours, sizes, mode=mode)
        same_values(result, np.asarray(expected), f"{numbers} {sizes} {mode}")


@settings(max_examples=15)  # XLA compiles each of twelve operations
@given(st.data())
def test_scatters_agree_with_jax(data):
    shape, indices, numbers, sizes = data.draw(gathers())
    if not _sorted_lanes(numbers) or not numbers[2]:
        return  # without components XLA applies one of the windows only
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + 1
    ours = lax.ScatterDimensionNumbers(*numbers)
    read = lax.gather(x, indices, lax.GatherDimensionNumbers(*numbers), sizes)
    updates = (np.arange(read.size, dtype=np.float32).reshape(read.shape) - 3) / 2
    for name in (
        "scatter",
        "scatter_add",
        "scatter_sub",
        "scatter_mul",
        "scatter_min",
        "scatter_max",
    ):
        for mode in ("clip", "drop"):
            expected = getattr(jax.lax, name)(
                x, indices, updates, jax_numbers(numbers, "scatter"), mode=mode
            )
            result = getattr(lax, name)(x, indices, updates, ours, mode=mode)
            np.testing.assert_allclose(
                result, expected, rtol=1e-5, err_msg=f"{name} {numbers} {mode}"
            )


def test_a_narrow_start_counts_from_the_end_of_a_long_dimension():
    x = np.arange(300, dtype=np.int32)
    for start in (np.int8(-3), fnp.asarray(np.int8(-3))):
        np.testing.assert_array_equal(lax.dynamic_slice(x, (start,), (2,)), [297, 298])
    np.testing.assert_array_equal(fnp.asarray(x)[fnp.asarray(np.int8([-3]))], [297])


def test_modes_that_nobody_asked_for():
    x = fnp.arange(3.0)
    rows = lax.GatherDimensionNumbers((), (0,), (0,))
    where = fnp.array([[7], [1]])
    assert lax.gather(x, where, rows, (1,)).tolist() == [2, 1]
    assert lax.gather(x, where, rows, (1,), fill_value=9).tolist() == [9, 1]
    with pytest.raises(ArgumentError, match="sideways"):
        lax.gather(x, where, rows, (1,), mode="sideways")


def test_scatter_apply_counts_windows():
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    where = np.array([[0], [0], [2], [9]])

    def triple(x):
        return lax.scatter_apply(x, where, lambda v: 3 * v, numbers, update_shape=(4,))

    x = np.ones(3, np.float32)
    assert triple(x).tolist() == [9, 1, 3]
    assert fxarray.jit(triple)(x).tolist() == [9, 1, 3]
    assert fxarray.grad(lambda x: triple(x).sum())(x).tolist() == [9, 1, 3]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: lax.index_in_dim(x, 9), OutOfBoundsError),
        (lambda x: lax.rev(x, (1,)), AxisError),
        (lambda x: lax.rev(x, (0, 0)), AxisError),
        (lambda x: lax.transpose(x, (0, 0)), AxisError),
        (lambda x: lax.reshape(x, (-1,)), ShapeError),
        (lambda x: lax.reshape(x, (4,)), ShapeError),
        (lambda x: lax.squeeze(x, (0,)), ShapeError),
        (lambda x: lax.concatenate([], 0), ArgumentError),
        (lambda x: lax.concatenate([x, np.arange(2)], 0), DTypeError),
        (lambda x: lax.concatenate([x, x[None]], 0), ShapeError),
        (lambda x: lax.split(x, (2, 4)), ShapeError),
        (lambda x: lax.pad(x, np.int32(0), [(1, 1, 0)]), DTypeError),
        (lambda x: lax.pad(x, 0.0, [(1, 1)]), ShapeError),
        (lambda x: lax.pad(x, 0.0, [(1, 1, 0)] * 2), ShapeError),
        (lambda x: lax.tile(x, (2, 2)), ShapeError),
        (lambda x: lax.iota(bool, 2), DTypeError),
        (lambda x: lax.full((2,), x), ShapeError),
        (lambda x: lax.full((-2,), 1), ShapeError),
        (lambda x: lax.dynamic_slice(x, (0,), (9,)), ShapeError),
        (lambda x: lax.dynamic_slice(x, (0, 0), (2,)), ShapeError),
        (lambda x: lax.dynamic_slice(x, (1.5,), (2,)), DTypeError),
        (lambda x: lax.dynamic_update_slice(x, x[None], (0,)), ShapeError),
        (lambda x: lax.broadcast_in_dim(x, (4,), (0,)), ShapeError),
    ],
)
def test_wrong_arguments(call, error):
    x = fnp.arange(5.0)
    with pytest.raises(error):
        call(x)
    with pytest.raises(error):
        fxarray.make_program(call)(x)


# --- what holds across operations -----------------------------------------------------------------


def test_random_keys_pass_through_every_movement():
    keys = random.split(random.key(0), 6)
    data = np.asarray(random.key_data(keys))
    zero = keys[0]

    def words(result):
        assert result.dtype == keys.dtype
        return np.asarray(random.key_data(result))

    same_values(words(lax.rev(keys, (0,))), data[::-1])
    same_values(words(lax.reshape(keys, (2, 3))), data.reshape(2, 3, 2))
    same_values(
        words(lax.transpose(lax.reshape(keys, (2, 3)), (1, 0))),
        data.reshape(2, 3, 2).swapaxes(0, 1),
    )
    same_values(words(lax.broadcast(keys, (2,))), np.stack([data, data]))
    same_values(words(lax.slice(keys, (1,), (4,))), data[1:4])
    same_values(words(lax.concatenate([keys, keys], 0)), np.concatenate([data, data]))
    same_values(words(lax.split(keys, (2, 4))[1]), data[2:])
    same_values(words(lax.pad(keys, zero, [(1, 0, 0)])), np.concatenate([data[:1], data]))
    same_values(words(lax.dynamic_slice(keys, (4,), (2,))), data[4:])
    updated = data.copy()
    updated[2] = data[0]
    same_values(words(lax.dynamic_update_slice(keys, keys[:1], (2,))), updated)
    same_values(words(keys[fnp.array([5, 0])]), data[[5, 0]])
    same_values(words(keys.at[fnp.array([2])].set(zero)), updated)
    same_values(
        words(fxarray.vmap(lambda k, i: k[i], in_axes=(None, 0))(keys, np.arange(2))), data[:2]
    )
    same_values(
        words(keys.at[fnp.array([9])].get(mode="fill"))[0], np.full(2, 2**32 - 1, np.uint32)
    )


@pytest.mark.parametrize(
    "dtype", ["bfloat16", "float8_e4m3fn", "int4", "uint2", "bool", "complex64"]
)
def test_every_dtype_moves(dtype):
    x = fnp.asarray(np.arange(6) % 2, dtype)
    expected = np.asarray(x)

    def same(a, b):
        return np.testing.assert_array_equal(
            np.asarray(a).astype("complex64"), b.astype("complex64")
        )

    same(lax.rev(x, (0,)), expected[::-1])
    same(lax.pad(x, x[1], [(0, 1, 0)]), np.append(expected, expected[1:2]))
    same(x[fnp.array([1, 1, 0])], expected[[1, 1, 0]])
    same(x.at[fnp.array([0, 5])].set(x[1]), np.asarray([1, 1, 0, 1, 0, 1]))


def test_narrow_sums_are_carried_in_float32():
    zero = fnp.zeros(1, "bfloat16")
    # In bfloat16, 256 + 1 is 256.
    total = zero.at[fnp.zeros(300, int)].add(fnp.ones(300, "bfloat16"))
    assert float(total[0]) == 300.0


def test_integers_wrap_in_scatters():
    x = fnp.array([120], "int8")
    assert x.at[fnp.array([0, 0])].add(fnp.array([100, 100], "int8")).tolist() == [64]
    assert x.at[fnp.array([0, 0])].multiply(fnp.array([2, 2], "int8")).tolist() == [-32]


def test_using_a_slice_again_makes_no_array_of_zeros():
    """The cotangent of a second use is added in place, not padded to full size first."""

    def gradient(x):
        return fxarray.grad(lambda x: (x[2:4] * 2 + x[5:7] * 3 + x[fnp.array([1])]).sum())(x)

    program = fxarray.make_program(gradient)(np.ones(1000, np.float32))
    big = [
        equation.op.name
        for equation in program.equations
        if any(v.type.shape == (1000,) for v in equation.outputs)
    ]
    assert "add" not in big
    assert sum(name in ("broadcast_in_dim", "pad") for name in big) == 1
    np.testing.assert_array_equal(gradient(np.ones(1000))[:8], [0, 2, 2, 2, 0, 3, 3, 0])


def test_reverse_mode_through_a_dynamic_slice_in_a_vmap():
    x = np.arange(12.0).reshape(3, 4)
    starts = np.array([0, 2, 9])

    def loss(x):
        return fxarray.vmap(lambda row, i: lax.dynamic_slice(row, (i,), (2,)) ** 2)(x, starts).sum()

    expected = np.zeros((3, 4))
    for row, start in enumerate([0, 2, 2]):
        expected[row, start : start + 2] = 2 * x[row, start : start + 2]
    np.testing.assert_allclose(fxarray.grad(loss)(x), expected)


def test_second_derivatives_pass_through_gathers_and_scatters():
    x = np.arange(1.0, 5.0)
    index = np.array([0, 2, 2])

    def loss(x):
        return (fnp.zeros(3).at[fnp.array([1, 1, 0])].add(x[index] ** 3) ** 2).sum()

    def reference(x):
        return (jnp.zeros(3).at[jnp.array([1, 1, 0])].add(x[index] ** 3) ** 2).sum()

    same_values(
        np.asarray(fxarray.hessian(loss)(x.astype("float32"))),
        np.asarray(jax.hessian(reference)(jnp.asarray(x, jnp.float32))),
    )


def test_symbolic_sizes_pass_through():
    n = ShapeVar("n", min=2)
    typed = fxarray.ShapeDtypeStruct((n, 4), "float32")
    cases = [
        (lambda x: lax.rev(x, (0,)), (n, 4)),
        (lambda x: lax.transpose(x, (1, 0)), (4, n)),
        (lambda x: lax.reshape(x, (4 * n,)), (4 * n,)),
        (lambda x: lax.concatenate([x, x, x[:1]], 0), (2 * n + 1, 4)),
        (lambda x: lax.pad(x, 0.0, [(1, 2, 0), (0, 0, 0)]), (n + 3, 4)),
        (lambda x: lax.pad(x, 0.0, [(0, 0, 1), (0, 0, 0)]), (2 * n - 1, 4)),
        (lambda x: lax.slice_in_dim(x, 1, None, axis=0), (n - 1, 4)),
        (lambda x: lax.split(x, (n - 1, 1))[0], (n - 1, 4)),
        (lambda x: lax.dynamic_slice_in_dim(x, 1, 2, axis=1), (n, 2)),
        (lambda x: lax.dynamic_update_index_in_dim(x, x[0], 1, axis=0), (n, 4)),
        (lambda x: fxarray.vmap(lambda row, i: row[i])(x, lax.iota("int32", n)), (n,)),
        (fxarray.grad(lambda x: (x[1:] * x[:-1]).sum()), (n, 4)),
        (fxarray.grad(lambda x: (x[1::1, ::2] ** 2).sum()), (n, 4)),
        (fxarray.grad(lambda x: x[fnp.array([1, 0])].sum()), (n, 4)),
    ]
    for function, shape in cases:
        result = fxarray.eval_shape(function, typed).shape
        assert len(result) == len(shape)
        assert all(same(a, b) for a, b in zip(result, shape, strict=True)), (result, shape)


def test_a_promise_does_not_change_the_result():
    x = fnp.zeros(5)
    index = fnp.array([0, 2, 3])
    plain = x.at[index].set(fnp.ones(3))
    promised = x.at[index].set(fnp.ones(3), unique_indices=True, indices_are_sorted=True)
    np.testing.assert_array_equal(plain, promised)
