"""The interpreter of the kernel IR: what each node means."""

import numpy as np
import pytest

from fxarray.core.dims import ShapeVar
from fxarray.core.errors import ArgumentError, OutOfBoundsError
from fxarray.kernel.build import Builder
from fxarray.kernel.check import check_kernel
from fxarray.kernel.combiners import COMBINERS
from fxarray.kernel.interpret import identity_value, interpret
from fxarray.kernel.ir import Affine, Load
from fxarray.kernel.scalars import evaluate
from fxarray.kernel.sizes import kernel_size


def run(builder, *arrays, **sizes):
    kernel = builder.build()
    check_kernel(kernel)
    return interpret(kernel, *arrays, sizes=sizes)


def test_transpose_flip_broadcast_and_pad_are_index_arithmetic():
    k = Builder("views", {"i": 4, "j": 3})
    x, z = k.input("x", (3, 2), "f32"), k.input("z", (), "f32")
    y = k.output("y", (4, 3), "f32")
    row = Affine.of("i") * -1 + 2
    with k.guarded((row, 0, 2)):
        value = k.load(x, ("j", row))
    k.store(y, ("i", "j"), k.op("add", value, k.load(z, ())))
    data = np.arange(6, dtype=np.float32).reshape(3, 2)
    (result,) = run(k, data, np.float32(10) + np.zeros((), np.float32))
    padded = np.zeros((4, 3), np.float32)
    padded[1:3] = data.T[::-1]
    np.testing.assert_array_equal(result, padded + 10)


def test_a_load_outside_its_buffer_is_an_error_unless_guarded():
    k = Builder("outside", {"i": 4})
    x, y = k.input("x", (3,), "f32"), k.output("y", (4,), "f32")
    k.store(y, ("i",), k.load(x, ("i",)))
    with pytest.raises(OutOfBoundsError, match="outside dimension 0 of size 3"):
        run(k, np.ones(3, np.float32))


def test_a_value_in_an_index_gathers():
    k = Builder("gather", {"i": 3, "j": 2})
    x, n = k.input("x", (4, 2), "f64"), k.input("n", (3,), "i32")
    y = k.output("y", (3, 2), "f64")
    where = k.load(n, ("i",))
    k.store(y, ("i", "j"), k.load(x, (Affine(((where, 1),)), "j")))
    data, index = np.random.default_rng(0).normal(size=(4, 2)), np.array([3, 0, 3], np.int32)
    np.testing.assert_array_equal(run(k, data, index)[0], data[index])


def test_softmax_uses_a_reduced_value_over_the_same_axis_again():
    k = Builder("softmax", {"i": 3, "j": 5})
    x, y = k.input("x", (3, 5), "f32"), k.output("y", (3, 5), "f32")
    value = k.load(x, ("i", "j"))
    (top,) = k.reduce("max", ("j",), value)
    power = k.op("exp", k.op("sub", value, top))
    (total,) = k.reduce("sum", ("j",), power)
    k.store(y, ("i", "j"), k.op("div", power, total))
    data = np.random.default_rng(1).normal(size=(3, 5)).astype(np.float32)
    exps = np.exp(data - data.max(1, keepdims=True))
    np.testing.assert_allclose(run(k, data)[0], exps / exps.sum(1, keepdims=True), rtol=1e-6)


@pytest.mark.parametrize("count", [0, 1, 2, 7])
@pytest.mark.parametrize("combiner", ["sum", "prod", "max", "min", "and", "or", "xor"])
def test_reductions_of_any_length_begin_with_the_identity(combiner, count):
    k = Builder("reduce", {"i": 2, "j": count})
    x, y = k.input("x", (2, count), "i32"), k.output("y", (2,), "i32")
    k.store(y, ("i",), k.reduce(combiner, ("j",), k.load(x, ("i", "j")))[0])
    data = np.random.default_rng(2).integers(-9, 9, size=(2, count)).astype(np.int32)
    names = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}
    function = getattr(np, names.get(combiner, f"bitwise_{combiner}"))
    start = identity_value(COMBINERS[combiner].identities[0], "i32")
    expected = function.reduce(data, axis=1, initial=start, dtype=np.int32)
    np.testing.assert_array_equal(run(k, data)[0], expected)


def test_argmax_finds_the_first_of_equals_and_the_first_nan():
    k = Builder("argmax", {"i": 3, "j": 5})
    x, y = k.input("x", (3, 5), "f32"), k.output("y", (3,), "i32")
    _, place = k.reduce("argmax", ("j",), k.load(x, ("i", "j")), k.iota("j"))
    k.store(y, ("i",), place)
    data = np.array([[1, 3, 3, 2, 0], [0, np.nan, 9, np.nan, 1], [-np.inf] * 5], np.float32)
    np.testing.assert_array_equal(run(k, data)[0], [1, 1, 0])


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
def test_a_scan_keeps_its_axis(reverse, exclusive):
    k = Builder("scan", {"i": 2, "j": 6})
    x, y = k.input("x", (2, 6), "i64"), k.output("y", (2, 6), "i64")
    (total,) = k.scan("sum", "j", k.load(x, ("i", "j")), reverse=reverse, exclusive=exclusive)
    k.store(y, ("i", "j"), total)
    data = np.arange(12).reshape(2, 6)
    flip = slice(None, None, -1 if reverse else 1)
    expected = np.cumsum(data[:, flip], 1) - (data[:, flip] if exclusive else 0)
    np.testing.assert_array_equal(run(k, data)[0], expected[:, flip])


def test_a_linear_scan_composes_in_order():
    k = Builder("recurrence", {"i": 7})
    a, b = k.input("a", (7,), "f64"), k.input("b", (7,), "f64")
    y = k.output("y", (7,), "f64")
    _, state = k.scan("linear", "i", k.load(a, ("i",)), k.load(b, ("i",)))
    k.store(y, ("i",), state)
    factors, terms = np.random.default_rng(3).normal(size=(2, 7))
    held, expected = 0.0, []
    for factor, term in zip(factors, terms, strict=True):
        held = factor * held + term
        expected.append(held)
    np.testing.assert_allclose(run(k, factors, terms)[0], expected, rtol=1e-12)


def test_a_contract_sums_products_with_batch_axes_and_mixed_operands():
    k = Builder("product", {"b": 2, "m": 3, "n": 4, "k": 5})
    x, w = k.input("x", (2, 3, 5), "bf16"), k.input("w", (5, 4), "bf16")
    y = k.output("y", (2, 3, 4), "f32")
    left, right = k.load(x, ("b", "m", "k")), k.load(w, ("k", "n"))
    k.store(y, ("b", "m", "n"), k.contract(left, right, ("k",), "f32"))
    rng = np.random.default_rng(4)
    bf16 = evaluate("convert", [np.zeros(1)], "bf16").dtype
    a, b = rng.normal(size=(2, 3, 5)).astype(bf16), rng.normal(size=(5, 4)).astype(bf16)
    expected = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_allclose(run(k, a, b)[0], expected, rtol=1e-6)


def test_stores_that_combine_go_in_the_order_of_the_axes():
    k = Builder("histogram", {"i": 5})
    n, _ = k.input("n", (5,), "i32"), k.input("old", (3,), "f32")
    y = k.output("y", (3,), "f32", alias="old")
    where = Affine(((k.load(n, ("i",)), 1),))
    k.store(y, (where,), k.iota("i", "f32"), bounds=((where, 0, 3),), mode="add")
    start = np.array([10, 20, 30], np.float32)
    (result,) = run(k, np.array([2, 0, 7, 2, -1], np.int32), start)
    np.testing.assert_array_equal(result, [11, 20, 33])
    np.testing.assert_array_equal(start, [10, 20, 30])


def test_variable_sizes_come_from_shapes_or_are_given():
    rows = kernel_size(ShapeVar("rows"))
    k = Builder("rows", {"i": rows})
    x, y = k.input("x", (rows,), "f32"), k.output("y", (rows,), "f32")
    count = k.iota(Affine((), rows), "f32")
    k.store(y, ("i",), k.op("div", k.load(x, ("i",)), count))
    kernel = k.build()
    ones = np.ones(4, np.float32)
    np.testing.assert_array_equal(interpret(kernel, ones)[0], ones / 4)
    with pytest.raises(ArgumentError, match="x is f32"):
        interpret(kernel, ones, sizes={"rows": 3})


def test_narrow_floats_are_computed_in_float32_and_rounded_once():
    x = np.array([1.0009765625], np.float16)
    assert evaluate("mul", [x, x], "f16")[0] == np.float16(np.float32(x[0]) * np.float32(x[0]))
    assert evaluate("exp", [x], "f16").dtype == np.float16


@pytest.mark.parametrize(
    ("op", "args", "expected"),
    [
        ("div", ([7, -7, 5, -(2**31)], [2, 2, 0, -1]), [3, -3, 0, -(2**31)]),
        ("rem", ([7, -7, 5], [3, 3, 0]), [1, -1, 0]),
        ("pow", ([3, -1, 2, 0], [3, -3, -1, 0]), [27, -1, 0, 1]),
        ("shl", ([1, 1, 1], [4, 32, -1]), [16, 0, 0]),
        ("shr_arithmetic", ([-8, -8, 8], [1, 40, 40]), [-4, -1, 0]),
        ("shr_logical", ([-1, -1], [28, 32]), [15, 0]),
        ("clz", ([1, 0, -1],), [31, 32, 0]),
        ("ctz", ([8, 0, -1],), [3, 32, 0]),
        ("popcount", ([7, 0, -1],), [3, 0, 32]),
        ("mul", ([2**30], [4]), [0]),
    ],
)
def test_integers_wrap_and_never_trap(op, args, expected):
    arrays = [np.array(a, np.int32) for a in args]
    np.testing.assert_array_equal(evaluate(op, arrays, "i32"), expected)


def test_int4_wraps_at_four_bits():
    four = evaluate("convert", [np.array([7, -8])], "i4")
    total = evaluate("add", [four, four], "i4")
    assert total.astype(np.int32).tolist() == [-2, 0]


def test_bitcasts_keep_bits():
    x = np.array([1.0, -0.0, np.nan], np.float32)
    np.testing.assert_array_equal(evaluate("bitcast", [x], "u32"), x.view(np.uint32))
    back = evaluate("bitcast", [x.view(np.uint32)], "f32")
    np.testing.assert_array_equal(back.view(np.uint32), x.view(np.uint32))


def test_unwritten_elements_are_not_zero():
    k = Builder("half", {"i": 2})
    y = k.output("y", (4,), "i32")
    k.store(y, ("i",), k.constant(0, "i32"))
    result = run(k)[0]
    assert result[:2].tolist() == [0, 0]
    assert (result[2:] != 0).all()


def test_pruning_leaves_no_load_that_nothing_needs():
    k = Builder("pruned", {"i": 2})
    x, y = k.input("x", (2,), "f32"), k.output("y", (2,), "f32")
    k.load(x, ("i",))
    k.store(y, ("i",), k.constant(1.0, "f32"))
    assert not any(isinstance(node, Load) for node in k.build().body)
    assert k.build().inputs == ()
