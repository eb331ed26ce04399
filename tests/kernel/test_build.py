"""Kernels made by `lower` rules: what they look like, and what the builder does for them."""

import pickle
import textwrap

import numpy as np
import pytest

import fxarray  # noqa: F401, importing it fills the registry
from fxarray.compile.one_operation import build_operation
from fxarray.core.dims import ShapeVar
from fxarray.core.errors import MissingRuleError
from fxarray.core.primitive import REGISTRY
from fxarray.core.types import ArrayType
from fxarray.kernel.build import Builder, NoKernel, NotAffine, SplitAxis
from fxarray.kernel.check import check_kernel
from fxarray.kernel.interpret import interpret
from fxarray.kernel.ir import Affine, Contract
from fxarray.kernel.sizes import kernel_size
from fxarray.primitives.windows import GatherDimensionNumbers


def array(*shape, dtype="float32"):
    return ArrayType(shape, np.dtype(dtype))


class Rows:
    """A kernel over rows, written with the rules of primitives."""

    def __init__(self, rows, columns):
        self.builder = Builder("rows", {"i": rows, "j": columns})
        self.shape = (rows, columns)
        self.inputs = 0

    def input(self, *shape):
        name = f"x{self.inputs}"
        self.inputs += 1
        return self.builder.of_buffer(self.builder.input(name, shape, "f32"))

    def __call__(self, name, *operands, **parameters):
        (result,) = REGISTRY[name](**parameters).lower(self.builder, *operands)
        return result

    def over_rows(self, x):
        (result,) = REGISTRY["broadcast_in_dim"]((7, 5), (0,)).lower(self.builder, x)
        return result

    def built(self, result):
        y = self.builder.output("y", result.shape, result.dtype)
        axes = ("i", "j")[: len(result.shape)]
        self.builder.store(y, axes, result.at(*axes))
        kernel = self.builder.build()
        check_kernel(kernel)
        return kernel


def lines(text):
    return textwrap.dedent(text).strip()


def softmax(k, x):
    top = k.over_rows(k("reduce_max", x, axes=(1,)))
    power = k("exp", k("sub", x, top))
    return k("div", power, k.over_rows(k("reduce_sum", power, axes=(1,))))


def test_softmax_is_one_kernel_over_two_axes():
    k = Rows(7, 5)
    kernel = k.built(softmax(k, k.input(7, 5)))
    assert str(kernel) == lines(
        """
        kernel rows(x0: f32[7, 5]) -> y: f32[7, 5] over i=7, j=5:
          v0: f32{i,j} = load x0[i, j]
          v1: f32{i} = reduce max over j of v0
          v2: f32{i,j} = sub v0, v1
          v3: f32{i,j} = exp v2
          v4: f32{i} = reduce sum over j of v3
          v5: f32{i,j} = div v3, v4
          y[i, j] = v5
        """
    )
    x = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)
    power = np.exp(x - x.max(1, keepdims=True))
    expected = power / power.sum(1, keepdims=True)
    np.testing.assert_allclose(interpret(kernel, x)[0], expected, rtol=1e-6)


def test_layernorm_reads_a_row_and_reduces_it_twice():
    k = Rows(7, 5)
    x, scale = k.input(7, 5), k.input(5)
    count = k.builder.number(5.0, "f32")
    mean = k("div", k("reduce_sum", x, axes=(1,)), count)
    centred = k("sub", x, k.over_rows(mean))
    variance = k("div", k("reduce_sum", k("square", centred), axes=(1,)), count)
    spread = k("rsqrt", k("add", variance, k.builder.number(1e-5, "f32")))
    scales = k("broadcast_in_dim", scale, shape=(7, 5), dimensions=(1,))
    kernel = k.built(k("mul", k("mul", centred, k.over_rows(spread)), scales))
    assert str(kernel) == lines(
        """
        kernel rows(x0: f32[7, 5], x1: f32[5]) -> y: f32[7, 5] over i=7, j=5:
          v0: f32{i,j} = load x0[i, j]
          v1: f32{i} = reduce sum over j of v0
          v2: f32{} = 5.0
          v3: f32{i} = div v1, v2
          v4: f32{i,j} = sub v0, v3
          v5: f32{i,j} = mul v4, v4
          v6: f32{i} = reduce sum over j of v5
          v7: f32{i} = div v6, v2
          v8: f32{} = 1e-05
          v9: f32{i} = add v7, v8
          v10: f32{i} = rsqrt v9
          v11: f32{i,j} = mul v4, v10
          v12: f32{j} = load x1[j]
          v13: f32{i,j} = mul v11, v12
          y[i, j] = v13
        """
    )


def test_softmax_of_a_square_does_not_take_the_axis_of_the_rows():
    k = Builder("square", {"i": 4, "j": 4})
    x = k.of_buffer(k.input("x", (4, 4), "f32"))
    (total,) = REGISTRY["reduce_sum"]((1,)).lower(k, x)
    y = k.output("y", (4,), "f32")
    k.store(y, ("i",), total.at("i"))
    data = np.random.default_rng(1).normal(size=(4, 4)).astype(np.float32)
    np.testing.assert_allclose(interpret(k.build(), data)[0], data.sum(1), rtol=1e-6)


def test_a_padded_convolution_is_a_contract_of_two_loads():
    op = REGISTRY["conv_general_dilated"]((1, 1), ((1, 1), (0, 0)), (1, 1), (1, 1))
    kernel = build_operation(op, [array(1, 2, 3, 8, 9), array(1, 4, 3, 3, 1)])
    assert str(kernel) == lines(
        """
        kernel conv_general_dilated(x0: f32[1, 2, 3, 8, 9], x1: f32[1, 4, 3, 3, 1]) -> y0: f32[1, 2, 4, 8, 9] over i1=2, i2=4, i3=8, i4=9, r0=3, r1=3:
          v0: f32{i1,i3,i4,r0,r1} = load x0[0, i1, r0, i3 + r1 - 1, i4] where 0 <= i3 + r1 - 1 < 8 else 0
          v1: f32{i2,r0,r1} = load x1[0, i2, r0, r1, 0]
          v2: f32{i1,i2,i3,i4} = contract v0, v1 over r0,r1
          y0[0, i1, i2, i3, i4] = v2
        """  # noqa: E501
    )


def test_a_transposed_convolution_wastes_no_products():
    op = REGISTRY["conv_general_dilated"]((1,), ((2, 3),), (2,), (1,))
    kernel = build_operation(op, [array(1, 2, 3, 8), array(1, 4, 3, 5)])
    (contract,) = [node for node in kernel.body if isinstance(node, Contract)]
    products = np.prod([kernel.sizes[axis] for axis in contract.axes])
    # Of five taps, two or three meet an element.
    assert products == 3 * 3


def test_a_gather_that_fills_tests_the_index_where_it_loads():
    numbers = GatherDimensionNumbers((1,), (0,), (0,))
    op = REGISTRY["gather"](numbers, (1, 64), mode=_fill_mode())
    kernel = build_operation(op, [array(1000, 64), array(7, 1, dtype="int32")])
    assert str(kernel) == lines(
        """
        kernel gather(x0: f32[1000, 64], x1: i32[7, 1]) -> y0: f32[7, 64] over i0=7, i1=64:
          v0: i32{i0} = load x1[i0, 0]
          v1: f32{i0,i1} = load x0[v0, i1] where 0 <= v0 < 1000 else nan
          y0[i0, i1] = v1
        """
    )


def _fill_mode():
    return type(REGISTRY["gather"](GatherDimensionNumbers((), (), ()), ()).mode)("fill")


def test_a_reshape_of_a_variable_size_is_a_view():
    batch = ShapeVar("batch")
    kernel = build_operation(REGISTRY["reshape"]((batch, 12)), [array(batch, 3, 4)])
    assert str(kernel) == lines(
        """
        kernel reshape(x0: f32[batch, 3, 4]) -> y0: f32[batch, 12] over i0=batch, i1_0=3, i1_1=4:
          v0: f32{i0,i1_0,i1_1} = load x0[i0, i1_0, i1_1]
          y0[i0, 4*i1_0 + i1_1] = v0
        """
    )


def test_a_reduction_splits_its_own_axis_for_a_reshape():
    k = Builder("total")
    x = k.of_buffer(k.input("x", (3, 4), "f32"))
    (flat,) = REGISTRY["reshape"]((12,)).lower(k, x)
    (total,) = REGISTRY["reduce_sum"]((0,)).lower(k, flat)
    y = k.output("y", (), "f32")
    k.store(y, (), total.at())
    data = np.arange(12, dtype=np.float32).reshape(3, 4)
    kernel = k.build()
    assert interpret(kernel, data)[0] == 66
    assert sorted(size for _, size in kernel.axes) == [3, 4]


def test_an_axis_of_the_result_is_for_the_caller_to_split():
    k = Builder("view", {"i": 12})
    x = k.of_buffer(k.input("x", (3, 4), "f32"))
    (flat,) = REGISTRY["reshape"]((12,)).lower(k, x)
    with pytest.raises(SplitAxis):
        flat.at("i")


@pytest.mark.parametrize("combiner", ["sum", "prod", "max", "min", "and", "or", "xor"])
def test_reducing_what_does_not_vary_counts_every_element(combiner):
    k = Builder("repeated", {"i": 2})
    x, y = k.input("x", (2,), "i32"), k.output("y", (2,), "i32")
    value = k.load(x, ("i",))
    k.store(y, ("i",), k.reduce(combiner, (k.new_axis(3),), value)[0])
    kernel = k.build()
    check_kernel(kernel)
    data = np.array([5, -3], np.int32)
    names = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}
    function = getattr(np, names.get(combiner, f"bitwise_{combiner}"))
    expected = function.reduce(np.stack([data] * 3))
    np.testing.assert_array_equal(interpret(kernel, data)[0], expected)


@pytest.mark.parametrize("varies", [(True, True), (True, False), (False, True), (False, False)])
def test_a_contract_of_what_does_not_vary_is_legal(varies):
    k = Builder("product", {"m": 2, "n": 3, "k": 4})
    x, w = k.input("x", (2, 4), "f32"), k.input("w", (4, 3), "f32")
    y = k.output("y", (2, 3), "f32")
    a = k.load(x, ("m", "k" if varies[0] else 0))
    b = k.load(w, ("k" if varies[1] else 0, "n"))
    k.store(y, ("m", "n"), k.contract(a, b, ("k",), "f32"))
    kernel = k.build()
    check_kernel(kernel)
    rng = np.random.default_rng(2)
    left, right = rng.normal(size=(2, 4)), rng.normal(size=(4, 3))
    left, right = left.astype(np.float32), right.astype(np.float32)
    wide_left = left if varies[0] else np.repeat(left[:, :1], 4, 1)
    wide_right = right if varies[1] else np.repeat(right[:1], 4, 0)
    result = interpret(kernel, left, right)[0]
    np.testing.assert_allclose(result, wide_left @ wide_right, rtol=1e-5)


def test_a_contracted_load_with_another_fill_than_zero_stays_legal():
    k = Builder("filled", {"i": 2})
    x, y = k.input("x", (3,), "f32"), k.output("y", (2,), "f32")
    axis = k.new_axis(4)
    with k.guarded((Affine.of(axis), 0, 3)):
        a = k.load(x, (axis,), fill=2.0)
        b = k.convert(k.iota(Affine.of(axis) + Affine.of("i")), "f32")
    k.store(y, ("i",), k.contract(a, b, (axis,), "f32"))
    kernel = k.build()
    check_kernel(kernel)
    data = np.array([1, 2, 3], np.float32)
    expected = [np.dot([1, 2, 3, 2], np.arange(4) + i) for i in range(2)]
    np.testing.assert_array_equal(interpret(kernel, data)[0], expected)


def test_prefixes_need_the_whole_dimension_in_order():
    k = Builder("reversed", {"i": 5})
    x = k.of_buffer(k.input("x", (5,), "f32"))
    (sums,) = REGISTRY["cumsum"](0).lower(k, x)
    with pytest.raises(NoKernel):
        sums.at(Affine.of("i") * -1 + 4)
    with k.guarded((Affine.of("i"), 0, 3)), pytest.raises(NoKernel):
        sums.at("i")


def test_what_a_kernel_cannot_do_is_said():
    with pytest.raises(NoKernel, match="ordered by two parts"):
        build_operation(REGISTRY["reduce_max"]((0,)), [array(3, dtype="complex64")])
    with pytest.raises(NotAffine):
        build_operation(REGISTRY["reshape"]((3, 4)), [array(2, 6)])
    with pytest.raises(MissingRuleError, match="routine of a device"):
        build_operation(REGISTRY["sort"](0), [array(3)])


def test_guards_that_always_hold_are_dropped():
    rows = kernel_size(ShapeVar("rows"))
    k = Builder("guards", {"i": rows, "j": 4})
    x = k.input("x", (rows, 4), "f32")
    with k.guarded((Affine.of("i"), 0, rows), (Affine.of("j"), 0, 4), (Affine.of("j"), 1, 4)):
        assert k.guards == ((Affine.of("j"), 1, 4),)
        assert k.body[k.load(x, ("i", Affine.of("j") - 1))].bounds == k.guards
        # What is there anyway needs no guard.
        assert k.body[k.load(x, ("i", "j"))].bounds == ()
    assert k.guards == ()


def test_kernels_are_pickled_without_what_one_process_knows_of_them():
    k = Rows(7, 5)
    kernel = k.built(softmax(k, k.input(7, 5)))
    hash(kernel)
    copy = pickle.loads(pickle.dumps(kernel))
    assert copy == kernel
    assert not [name for name in vars(copy) if name.startswith("_")]
    assert not [name for name in vars(copy.body[0].index[0]) if name.startswith("_")]
