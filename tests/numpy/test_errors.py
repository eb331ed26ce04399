"""Mistakes are found at the call; messages name the function, the operand and the remedy."""

import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray.core.dims import ShapeVar
from fxarray.errors import ArgumentError, AxisError, DTypeError, ShapeError, SymbolicSizeError

_X = np.ones((2, 3), "float32")


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: fnp.sum([1, 2]), TypeError, "sum takes arrays.*list.*asarray"),
        (lambda x: fnp.sin((1.0,)), TypeError, "sin.*tuple"),
        (lambda x: fnp.concatenate([[1], [2]]), TypeError, "concatenate"),
        (lambda x: fnp.add(x, None), TypeError, "add.*argument 1.*NoneType"),
        (lambda x: fnp.concatenate([]), ArgumentError, "at least one"),
        (lambda x: fnp.concatenate(iter([x])), ArgumentError, "iterator"),
        (lambda x: fnp.concatenate([1.0, 2.0]), ShapeError, "stack"),
        (lambda x: fnp.concatenate([x, x[0]]), ShapeError, "concatenate"),
        (lambda x: fnp.stack([x, x[0]]), ShapeError, "array 1"),
        (lambda x: fnp.sum(x, axis=2), AxisError, "sum: axis 2.*2 dimensions"),
        (lambda x: fnp.sum(x, axis=(0, -2)), AxisError, "twice"),
        (lambda x: fnp.sum(x, axis="rows"), ArgumentError, "integer"),
        (lambda x: fnp.sum(x, out=x), ArgumentError, "immutable"),
        (lambda x: fnp.max(fnp.zeros((0, 3)), axis=0), ValueError, "axis 0.*empty.*initial"),
        (lambda x: fnp.argmax(fnp.zeros(0)), ValueError, "argmax"),
        (lambda x: fnp.max(x, where=x > 0), ArgumentError, "initial"),
        (lambda x: fnp.sum(x, initial=x), ShapeError, "initial"),
        (lambda x: fnp.var(x, ddof=1, correction=1), ArgumentError, "both"),
        (lambda x: fnp.var(x, dtype=int), DTypeError, "integer"),
        (lambda x: fnp.reshape(x, 4), ShapeError, "6 elements"),
        (lambda x: fnp.reshape(x, (4, -1)), ShapeError, "multiple of 4"),
        (lambda x: fnp.reshape(x, (-1, -1)), ShapeError, "only one"),
        (lambda x: fnp.reshape(x, (2.0, 3)), ShapeError, "integers"),
        (lambda x: fnp.reshape(x, 6, order="Z"), ArgumentError, "order"),
        (lambda x: fnp.squeeze(x, 0), ShapeError, "size 2"),
        (lambda x: fnp.expand_dims(x, 5), AxisError, "expand_dims"),
        (lambda x: fnp.transpose(x, (0,)), ShapeError, "each dimension"),
        (lambda x: fnp.moveaxis(x, (0, 1), 0), ArgumentError, "equally many"),
        (lambda x: fnp.broadcast_to(x, (3, 2)), ShapeError, "broadcast"),
        (lambda x: fnp.split(x, 2, axis=1), ShapeError, "array_split"),
        (lambda x: fnp.zeros(-1), ShapeError, "negative"),
        (lambda x: fnp.zeros(3, dtype="text"), DTypeError, "text"),
        (lambda x: fnp.zeros(3, dtype=object), DTypeError, "object"),
        (lambda x: fnp.arange(0, 5, 0), ArgumentError, "zero"),
        (lambda x: fnp.linspace(0, 1, -1), ArgumentError, "negative"),
        (lambda x: fnp.tril(x[0]), ShapeError, "2 dimensions"),
        (lambda x: fnp.matmul(x, x), ShapeError, r"f32\[2,3\].*f32\[2,3\]"),
        (lambda x: fnp.matmul(x, 2.0), ShapeError, "multiply scalars"),
        (lambda x: fnp.dot(x, x), ShapeError, "tensordot: axis 1"),
        (lambda x: fnp.tensordot(x, x, ((0, 1), (0,))), ArgumentError, "as many"),
        (lambda x: fnp.einsum("ij,jk", x, x), ShapeError, "'j' has size 3 in operand 0"),
        (lambda x: fnp.einsum("ij", x, x), ArgumentError, "names 1 operands"),
        (lambda x: fnp.einsum("ijk->i", x), ArgumentError, "3 dimensions"),
        (lambda x: fnp.einsum("ij->k", x), ArgumentError, "'k'"),
        (lambda x: fnp.einsum("ij->ii", x), ArgumentError, "twice"),
        (lambda x: fnp.cross(x[:, :1], x), ShapeError, "2 or 3"),
        (lambda x: fnp.where(x > 0, x), ArgumentError, "both x and y"),
        (lambda x: fnp.select([x > 0], [x, x]), ArgumentError, "1 conditions and 2"),
        (lambda x: fnp.choose(fnp.array([3]), [x, x]), ArgumentError, "between 0 and 1"),
        (lambda x: fnp.take(x, 0.5), DTypeError, "integers"),
        (lambda x: fnp.take(x, 0, mode="raise"), ArgumentError, "clip"),
        (lambda x: fnp.take(x, 0, mode="none"), ArgumentError, "none"),
        (lambda x: fnp.take_along_axis(x, fnp.array([0]), 0), ShapeError, "as many dimensions"),
        (lambda x: fnp.put_along_axis(x, x.astype(int), 1.0, 0), ArgumentError, "inplace=False"),
        (lambda x: fnp.fill_diagonal(x, 1.0), ArgumentError, "inplace=False"),
        (lambda x: fnp.delete(x, 7, axis=0), IndexError, "axis 0"),
        (lambda x: fnp.sort(x, kind="quicksort"), ArgumentError, "stable"),
        (lambda x: fnp.partition(x, 7), ArgumentError, "kth=7"),
        (lambda x: fnp.searchsorted(x, 1.0), ShapeError, "vector"),
        (lambda x: fnp.bincount(x), DTypeError, "integers"),
        (lambda x: fnp.quantile(x, 0.5, method="best"), ArgumentError, "linear"),
        (lambda x: fnp.quantile(x, 0.5, weights=x), ArgumentError, "inverted_cdf"),
        (lambda x: fnp.pad(x, 1, mode="best"), ArgumentError, "best"),
        (lambda x: fnp.pad(x, 1, stat_length=2), ArgumentError, "stat_length"),
        (lambda x: fnp.pad(x, (1, 2, 3)), ArgumentError, "pair"),
        (lambda x: fnp.pad(x, -1), ArgumentError, "negative"),
        (lambda x: fnp.convolve(x, x), ShapeError, "vectors"),
        (lambda x: fnp.interp(x, x, x), ShapeError, "vectors"),
        (lambda x: fnp.floor(1j), DTypeError, "floor"),
        (lambda x: fnp.clip(x, 1j), DTypeError, "real"),
        (lambda x: fnp.bitwise_and(x, 1.0), DTypeError, "and"),
        (lambda x: fnp.ldexp(x, 1.5), DTypeError, "integer"),
        (lambda x: fnp.gcd(x, 2), DTypeError, "gcd"),
        (lambda x: fnp.asarray(x, device="moon"), ArgumentError, "moon"),
        (lambda x: fnp.vectorize(fnp.dot, signature="nonsense")(x, x), ArgumentError, "signature"),
        (lambda x: fnp.vectorize(fnp.dot, signature="(n),(n)->(n)")(x, x), ShapeError, "core"),
        (lambda x: fnp.frombuffer(b"123", dtype="float32"), ValueError, "buffer"),
        (lambda x: fnp.from_dlpack(np.ones(2), copy=False), ArgumentError, "copy"),
    ],
)
def test_a_mistake_is_named(call, error, text):
    with pytest.raises(error, match=text):
        call(fnp.asarray(_X))


def test_errors_end_with_the_users_own_line():
    with pytest.raises(ShapeError) as caught:
        fnp.reshape(fnp.ones(3), 4)  # this very line
    assert "this very line" in str(caught.value)
    assert "test_errors.py" in str(caught.value)


def test_errors_are_the_same_while_tracing():
    with pytest.raises(ShapeError, match="do not broadcast"):
        fxarray.jit(lambda x, y: x + y)(fnp.ones(3), fnp.ones(4))
    with pytest.raises(AxisError, match="axis 3"):
        fxarray.eval_shape(lambda x: fnp.sum(x, axis=3), fnp.ones(3))


def test_arrays_are_immutable_and_have_no_hash():
    x = fnp.arange(3)
    with pytest.raises(TypeError, match=r"\.at\[index\]\.set"):
        x[0] = 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)


# --- precision ------------------------------------------------------------------------------------


def test_sums_of_narrow_floats_are_carried_in_float32():
    ones = fnp.ones(4096, "bfloat16")
    assert ones.sum().item() == 4096
    assert ones.sum().dtype == fnp.bfloat16
    large = fnp.full(100, 1000.0, "float16")
    assert large.mean().item() == 1000  # the sum alone overflows float16
    assert large.std().item() == 0
    assert fnp.cumsum(ones)[-1].item() == 4096


def test_sums_of_narrow_integers_are_widened_and_running_sums_are_not():
    x = fnp.full(300, 1, "int8")
    assert x.sum().item() == 300
    assert x.sum().dtype == np.int32
    assert fnp.cumsum(x).dtype == np.int8
    assert (x > 0).sum().dtype == np.int32
    assert x.astype("uint8").sum().dtype == np.uint32
    assert x.sum(dtype="int64").dtype == np.int64
    assert x.astype("int64").sum().dtype == np.int64
    assert x.mean().dtype == np.float32


def test_float64_is_kept_wherever_it_is_given():
    x = fnp.asarray(np.ones(3))
    for result in (
        x.sum(),
        x * 2,
        fnp.sin(x),
        x.mean(),
        fnp.linspace(x[0], 2, 3),
        fnp.std(x),
        x @ x,
    ):
        assert result.dtype == np.float64
    assert (fnp.arange(3, dtype="int64") / 2).dtype == np.float64
    assert (fnp.float32(1) * np.sqrt(64)).dtype == np.float32
    assert (fnp.float32(1) * np.ones(1)).dtype == np.float64


# --- symbolic sizes -------------------------------------------------------------------------------


def test_functions_that_need_a_known_size_say_so():
    length = ShapeVar("length")
    spec = fxarray.ShapeDtypeStruct((length,), np.float32)
    with pytest.raises(SymbolicSizeError, match="vander.*length"):
        fxarray.eval_shape(lambda x: fnp.vander(x), spec)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: fnp.mean(x, 0),
        lambda x: fnp.var(x, 0),
        lambda x: fnp.sort(x, 0)[0],
        lambda x: fnp.argmax(x, 0),
        lambda x: fnp.cumsum(x, 0)[-1],
        lambda x: fnp.concatenate([x, x]).sum(0),
        lambda x: fnp.reshape(x, (-1,)).max(),
        lambda x: fnp.flip(x, 0)[0],
        lambda x: fnp.einsum("ij,kj->ik", x, x).sum(),
        lambda x: fnp.where(x > 0, x, 0).sum(),
        lambda x: fnp.pad(x, 1).sum(),
        lambda x: fnp.diff(x, axis=0).sum(),
        lambda x: fnp.median(x, 0),
        lambda x: fnp.ptp(x),
    ],
)
def test_sizes_may_be_symbolic(function):
    spec = fxarray.ShapeDtypeStruct((ShapeVar("n", min=2), 3), np.float32)
    shape = fxarray.eval_shape(function, spec).shape
    assert shape == function(fnp.ones((5, 3))).shape
