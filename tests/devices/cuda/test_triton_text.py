"""Kernels as Triton text, run by Triton's interpreter on NumPy memory, against the definition."""

import linecache
import os

import numpy as np
import pytest

import fxarray  # noqa: F401, importing it fills the registry
from fxarray.compile.one_operation import build_operation
from fxarray.core.dims import ShapeVar
from fxarray.core.primitive import REGISTRY
from fxarray.core.types import ArrayType
from fxarray.devices.cuda.tiles import Role, Unsupported, as_sums, default_roles
from fxarray.devices.cuda.triton_text import triton_text
from fxarray.kernel.build import Builder
from fxarray.kernel.check import check_kernel
from fxarray.kernel.interpret import interpret
from fxarray.kernel.ir import Affine, Contract
from fxarray.kernel.sizes import kernel_size
from fxarray.primitives.windows import GatherDimensionNumbers

# Triton reads it when a function is decorated.
os.environ.setdefault("TRITON_INTERPRET", "1")
triton = pytest.importorskip("triton", reason="Triton is not installed (it exists for Linux only)")


class Storage:
    """Memory, as Triton's interpreter asks a tensor for it."""

    def __init__(self, array):
        self.array = array

    def data_ptr(self):
        return self.array.__array_interface__["data"][0]

    def cpu(self):
        return self

    def copy_(self, other):
        pass


class Memory:
    """A NumPy array with what Triton's interpreter asks of a tensor."""

    def __init__(self, array):
        self.array = array
        self.dtype = array.dtype.name
        self.shape = array.shape
        self.ndim = array.ndim

    def data_ptr(self):
        return self.array.__array_interface__["data"][0]

    def untyped_storage(self):
        return Storage(self.array)

    def new_empty(self, *_, **__):
        return Memory(self.array)

    def set_(self, *_):
        return self

    def storage_offset(self):
        return 0

    def size(self):
        return self.shape

    def stride(self, dimension=None):
        steps = tuple(step // self.array.itemsize for step in self.array.strides)
        return steps if dimension is None else steps[dimension]

    def element_size(self):
        return self.array.itemsize


def compiled(text):
    """The function of a text; Triton reads its source again, from `linecache`."""
    filename = f"<kernel {text.name} {hash(text.text)}>"
    linecache.cache[filename] = (len(text.text), None, text.text.splitlines(True), filename)
    space = {"triton": triton, "tl": triton.language, "__name__": "kernels"}
    exec(compile(text.text, filename, "exec"), space)
    return space[text.name]


def run(kernel, arrays, roles=None, sizes=None):
    """What the text of a kernel computes."""
    text = triton_text(kernel, roles)
    sizes = sizes or {}
    outputs = interpret(kernel, *arrays, sizes=sizes)
    memory = [np.ascontiguousarray(a) for a in arrays]
    results = [np.full_like(output, 77) for output in outputs]
    arguments = [Memory(a) for a in (*memory, *results)]
    numbers = [sizes[name] for name in text.sizes]
    with np.errstate(all="ignore"):  # what hangs over the end of an axis is computed too
        compiled(text)[(text.programs(sizes),)](*arguments, *numbers)
    return results, outputs


def check(kernel, arrays, roles=None, sizes=None, rtol=1e-5):
    check_kernel(kernel)
    results, outputs = run(kernel, arrays, roles, sizes)
    for result, output in zip(results, outputs, strict=True):
        np.testing.assert_allclose(
            result.astype(np.float64), output.astype(np.float64), rtol=rtol, atol=rtol
        )


def draw(*shape, seed=0, dtype="float32"):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def array(*shape, dtype="float32"):
    return ArrayType(shape, np.dtype(dtype))


class Rows:
    """A kernel over rows, written with the rules of primitives."""

    def __init__(self, rows, columns, dtype="f32"):
        self.builder = Builder("rows", {"i": rows, "j": columns})
        self.shape, self.dtype = (rows, columns), dtype
        self.inputs = 0

    def input(self, *shape):
        self.inputs += 1
        buffer = self.builder.input(f"x{self.inputs}", shape or self.shape, self.dtype)
        return self.builder.of_buffer(buffer)

    def number(self, value):
        return self.builder.number(value, self.dtype)

    def __call__(self, name, *operands, **parameters):
        (result,) = REGISTRY[name](**parameters).lower(self.builder, *operands)
        return result

    def over_rows(self, x):
        return self.builder.lowered(self.shape, x.dtype, lambda index: x.element(index[:1]))

    def output(self, result):
        name = f"y{len(self.builder.outputs)}"
        buffer = self.builder.output(name, result.shape, result.dtype)
        axes = ("i", "j")[: len(result.shape)]
        self.builder.store(buffer, axes, result.at(*axes))

    def softmax(self, x):
        top = self.over_rows(self("reduce_max", x, axes=(1,)))
        power = self("exp", self("sub", x, top))
        return self("div", power, self.over_rows(self("reduce_sum", power, axes=(1,))))

    def layernorm(self, x, count):
        mean = self("div", self("reduce_sum", x, axes=(1,)), self.number(count))
        centred = self("sub", x, self.over_rows(mean))
        total = self("reduce_sum", self("square", centred), axes=(1,))
        variance = self("div", total, self.number(count))
        spread = self("rsqrt", self("add", variance, self.number(1e-5)))
        return self("mul", centred, self.over_rows(spread))


# --- elementwise ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["exp", "log", "sqrt", "rsqrt", "sin", "tanh", "logistic", "erf", "abs", "floor", "neg"]
)
def test_functions_of_one_operand(name):
    x = np.abs(draw(1000)) + 0.1
    kernel = build_operation(REGISTRY[name](), [array(1000)])
    check(kernel, [x.astype(np.float32)], rtol=2e-6)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", ["add", "mul", "div", "max", "sub"])
def test_functions_of_two_operands_in_every_float(name, dtype):
    x, y = draw(7, 50, dtype=dtype), draw(7, 50, seed=1, dtype=dtype)
    check(build_operation(REGISTRY[name](), [array(7, 50, dtype=dtype)] * 2), [x, y])


@pytest.mark.parametrize("name", ["add", "mul", "div", "rem", "max", "shift_left", "and", "xor"])
def test_functions_of_integers(name):
    rng = np.random.default_rng(2)
    x = rng.integers(-100, 100, size=300).astype(np.int32)
    y = rng.integers(-3, 40, size=300).astype(np.int32)
    check(build_operation(REGISTRY[name](), [array(300, dtype="int32")] * 2), [x, y])


def test_conversions_saturate_and_nan_becomes_zero():
    x = np.array([1.7, -1.7, np.nan, np.inf, -np.inf, 3e9, 255.5], np.float32)
    for target in ("int32", "int8", "uint8", "bool"):
        op = REGISTRY["convert_element_type"](np.dtype(target))
        results, outputs = run(build_operation(op, [array(7)]), [x])
        np.testing.assert_array_equal(results[0], outputs[0])


def test_maxima_propagate_nan_and_selections_choose():
    x = np.array([1, np.nan, 3, -np.inf], np.float32)
    y = np.array([2, 2, np.nan, 0], np.float32)
    results, outputs = run(build_operation(REGISTRY["max"](), [array(4)] * 2), [x, y])
    np.testing.assert_array_equal(results[0], outputs[0])
    which = np.array([True, False, True, False])
    kernel = build_operation(REGISTRY["select_n"](), [array(4, dtype="bool"), array(4), array(4)])
    results, outputs = run(kernel, [which, x, y])
    np.testing.assert_array_equal(results[0], outputs[0])


# --- views ----------------------------------------------------------------------------------------


def test_views_are_addresses():
    k = Rows(37, 100)
    turned = k("rev", k("transpose", k.input(100, 37), permutation=(1, 0)), dimensions=(1,))
    padded = k("pad", k.input(35, 90), k.number(2.5), padding_config=((1, 1, 0), (4, 6, 0)))
    row = k("broadcast_in_dim", k.input(100), shape=(37, 100), dimensions=(1,))
    k.output(k("mul", k("add", turned, padded), row))
    kernel = k.builder.build()
    check(kernel, [draw(100, 37), draw(35, 90, seed=1), draw(100, seed=2)])


def test_a_gather_reads_by_value():
    op = REGISTRY["gather"](GatherDimensionNumbers((1,), (0,), (0,)), (1, 70))
    kernel = build_operation(op, [array(50, 70), array(20, 1, dtype="int32")])
    where = np.random.default_rng(3).integers(-5, 60, size=(20, 1)).astype(np.int32)
    check(kernel, [draw(50, 70), where])


# --- reductions -----------------------------------------------------------------------------------

ROLES = {
    "whole rows": {"i": Role("grid", 1), "j": Role("block", 128)},
    "several rows": {"i": Role("grid", 4), "j": Role("block", 128)},
    "a loop": {"i": Role("grid", 4), "j": Role("loop", 32)},
    "a loop for one row": {"i": Role("grid", 1), "j": Role("loop", 64)},
    "chosen": None,
}


@pytest.mark.parametrize("roles", ROLES)
def test_sums_of_rows(roles):
    k = Rows(9, 100)
    k.output(k("reduce_sum", k.input(), axes=(1,)))
    check(k.builder.build(), [draw(9, 100)], ROLES[roles])


@pytest.mark.parametrize("roles", ROLES)
def test_softmax(roles):
    k = Rows(9, 100)
    k.output(k.softmax(k.input()))
    check(k.builder.build(), [draw(9, 100)], ROLES[roles])


@pytest.mark.parametrize("roles", ROLES)
def test_layernorm_with_a_second_result(roles):
    k = Rows(9, 100)
    x = k.input()
    k.output(k.layernorm(x, 100.0))
    k.output(k("reduce_max", x, axes=(1,)))
    check(k.builder.build(), [draw(9, 100)], ROLES[roles], rtol=1e-4)


@pytest.mark.parametrize("roles", ["several rows", "a loop", "chosen"])
def test_argmax_takes_the_first_of_equals_and_the_first_nan(roles):
    x = np.round(draw(9, 40))
    x[3, 20] = x[3, 30] = np.nan
    k = Rows(9, 40)
    k.output(k("argmax", k.input(), axis=1, index_dtype=np.dtype("int32")))
    check(k.builder.build(), [x], ROLES[roles])


def test_sums_of_columns():
    op = REGISTRY["reduce_sum"]((0,))
    check(build_operation(op, [array(70, 100)]), [draw(70, 100)])


def test_long_rows_are_walked_in_a_loop():
    kernel = build_operation(REGISTRY["reduce_sum"]((1,)), [array(3, 5000)])
    assert "for r0_start in range(0, 5000, 1024):" in triton_text(kernel).text
    check(kernel, [draw(3, 5000)])


@pytest.mark.parametrize("roles", [None, {"i0": Role("loop", 256)}])
def test_cumulative_sums(roles):
    check(build_operation(REGISTRY["cumsum"](0), [array(1000)]), [draw(1000)], roles, rtol=1e-4)


def test_narrow_floats_are_summed_in_float32():
    kernel = build_operation(REGISTRY["reduce_sum"]((1,)), [array(5, 300, dtype="float16")])
    assert "tl.float32" in triton_text(kernel).text
    check(kernel, [draw(5, 300, dtype="float16")], rtol=1e-3)


# --- sizes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 5])
def test_one_text_serves_every_size(rows):
    count = kernel_size(ShapeVar("rows", min=1))
    k = Rows(count, 100)
    k.output(k.softmax(k.input()))
    kernel = k.builder.build()
    assert triton_text(kernel).sizes == ("rows",)
    check(kernel, [draw(rows, 100)], sizes={"rows": rows})


# --- products -------------------------------------------------------------------------------------


def product(m, n, k, transposed=(False, False), epilogue=False):
    builder = Builder("product", {"m": m, "k": k, "n": n})
    shapes = [(k, m) if transposed[0] else (m, k), (n, k) if transposed[1] else (k, n)]
    x, w = (builder.input(f"x{i}", shape, "f32") for i, shape in enumerate(shapes))
    a = builder.load(x, ("k", "m") if transposed[0] else ("m", "k"))
    b = builder.load(w, ("n", "k") if transposed[1] else ("k", "n"))
    total = builder.contract(builder.op("exp", a) if epilogue else a, b, ("k",), "f32")
    if epilogue:
        bias = builder.load(builder.input("bias", (n,), "f32"), ("n",))
        total = builder.op("logistic", builder.op("add", total, bias))
    y = builder.output("y", (m, n), "f32")
    builder.store(y, ("m", "n"), total)
    return builder.build(), shapes


@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
def test_products_with_operands_in_either_order(transposed):
    kernel, shapes = product(50, 70, 90, transposed)
    check(kernel, [draw(*shape, seed=i) for i, shape in enumerate(shapes)], rtol=1e-4)


def test_products_with_a_prologue_and_an_epilogue():
    kernel, shapes = product(50, 70, 90, epilogue=True)
    arrays = [draw(*shape, seed=i) / 8 for i, shape in enumerate(shapes)]
    check(kernel, [*arrays, draw(70, seed=2)], rtol=1e-4)


def test_batched_products():
    op = REGISTRY["dot_general"](((2,), (1,)), ((0,), (0,)))
    kernel = build_operation(op, [array(3, 40, 20), array(3, 20, 35)])
    check(kernel, [draw(3, 40, 20), draw(3, 20, 35, seed=1)], rtol=1e-4)


def test_products_that_are_no_matrices_become_sums():
    op = REGISTRY["dot_general"](((1,), (0,)), ((), ()))
    kernel = build_operation(op, [array(40, 20), array(20)])
    assert not any(isinstance(node, Contract) for node in as_sums(kernel).body)
    check(kernel, [draw(40, 20), draw(20, seed=1)], rtol=1e-4)
    whole = [array(4, 5, dtype="int32"), array(5, 6, dtype="int32")]
    numbers = np.random.default_rng(4).integers(-9, 9, size=(2, 30)).astype(np.int32)
    arrays = [numbers[0, :20].reshape(4, 5), numbers[1].reshape(5, 6)]
    check(build_operation(op, whole), arrays)


# --- what it looks like, and what it does not do --------------------------------------------------


def test_softmax_is_a_line_for_each_node():
    k = Rows(37, 100)
    k.output(k.softmax(k.input()))
    text = triton_text(k.builder.build()).text
    assert text.splitlines()[-9:] == [
        "    program = program // 37",
        "    j = tl.arange(0, 128)",
        "    v0 = tl.load(x1_ptr + i * 100 + j, mask=(j < 100), other=0)",
        (
            "    v1 = tl.reduce("
            "tl.where((j < 100), v0, float('-inf')).to(tl.float32), 0, combine_max_f32)"
        ),
        "    v2 = (v0 - v1)",
        "    v3 = tl.exp(v2)",
        "    v4 = tl.sum(tl.where((j < 100), v3, 0.0).to(tl.float32), 0).to(tl.float32)",
        "    v5 = (v3 / v4)",
        "    tl.store(y0_ptr + i * 100 + j, v5, mask=(j < 100))",
    ]


def test_what_has_no_text_yet_is_said():
    with pytest.raises(Unsupported, match="two axes need a loop"):
        default_roles(build_operation(REGISTRY["reduce_sum"]((0, 1)), [array(9000, 9000)]))
    with pytest.raises(Unsupported, match="the operation lgamma"):
        triton_text(build_operation(REGISTRY["lgamma"](), [array(4)]))
    with pytest.raises(Unsupported, match="values of c64"):
        triton_text(build_operation(REGISTRY["neg"](), [array(4, dtype="complex64")]))
    k = Builder("histogram", {"i": 5})
    n, _ = k.input("n", (5,), "i32"), k.input("old", (3,), "f32")
    y = k.output("y", (3,), "f32", alias="old")
    where = Affine(((k.load(n, ("i",)), 1),))
    k.store(y, (where,), k.iota("i", "f32"), mode="add")
    with pytest.raises(Unsupported, match="stores that combine"):
        triton_text(k.build())
