"""Matrix products equal their definition: shapes, layouts, dtypes, prologues and epilogues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fxarray.core.dims import ShapeVar
from fxarray.devices.cpu.contraction.render import render
from fxarray.devices.cpu.native.compiler import compile_assembly
from fxarray.devices.cpu.native.routine import FunctionPointer
from fxarray.devices.cpu.native.target import OTHERS, host
from fxarray.kernel.build import Builder
from fxarray.kernel.ir import Affine, Contract, Kernel
from fxarray.kernel.sizes import kernel_size

Check = Callable[..., None]


def product(
    batch: Any,
    rows: Any,
    columns: Any,
    depth: Any,
    transposed: str = "",
    dtype: str = "f32",
    accumulator: str = "",
    result: str = "",
) -> Kernel:
    """A stack of products (one without a stack for batch 0); `transposed` names operands."""
    total = accumulator or dtype
    k = Builder("product", {"m": rows, "n": columns, "k": depth})
    lead, index = ((batch,), ("b",)) if batch else ((), ())
    if batch:
        k.axes["b"] = batch
    a_shape, a_index = ((rows, depth), ("m", "k"))
    b_shape, b_index = ((depth, columns), ("k", "n"))
    if "a" in transposed:
        a_shape, a_index = a_shape[::-1], a_index[::-1]
    if "b" in transposed:
        b_shape, b_index = b_shape[::-1], b_index[::-1]
    z_shape, z_index = ((rows, columns), ("m", "n"))
    if "z" in transposed:
        z_shape, z_index = z_shape[::-1], z_index[::-1]
    x = k.input("x", (*lead, *a_shape), dtype)
    y = k.input("y", (*lead, *b_shape), dtype)
    z = k.output("z", (*lead, *z_shape), result or total)
    value = k.contract(k.load(x, (*index, *a_index)), k.load(y, (*index, *b_index)), ("k",), total)
    k.store(z, (*index, *z_index), k.convert(value, result or total))
    return k.build()


SHAPES = [
    (0, 1, 1, 1),
    (0, 5, 7, 3),
    (0, 14, 32, 16),
    (0, 33, 65, 17),
    (0, 16, 16, 40),
    (0, 40, 48, 9),
    (0, 30, 64, 1030),
    (0, 100, 90, 80),
    (0, 150, 200, 300),
    (0, 300, 70, 40),
    (0, 1, 100, 50),
    (0, 100, 1, 50),
    (0, 13, 300, 700),
    (0, 20, 20, 2500),
    (3, 9, 20, 31),
    (9, 40, 64, 48),
    (2, 120, 130, 140),
]


@pytest.mark.parametrize("shape", SHAPES)
def test_products_of_all_shapes_and_layouts(check: Check, shape: tuple[int, ...]) -> None:
    for transposed in ("", "a", "b", "ab", "z", "abz"):
        check(product(*shape, transposed))


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "i8", "c64", "i64"])
def test_products_with_shorter_vectors(check_avx2: Check, dtype: str) -> None:
    total = {"bf16": "f32", "i8": "i32"}.get(dtype, dtype)
    for shape in [
        (0, 5, 7, 3),
        (0, 33, 65, 17),
        (0, 100, 90, 600),
        (3, 40, 64, 48),
        (0, 1, 50, 40),
    ]:
        for transposed in ("", "a", "b", "z"):
            check_avx2(product(*shape, transposed, dtype, total))


@pytest.mark.parametrize("shape", [(0, 0, 4, 3), (0, 4, 0, 3), (0, 4, 3, 0), (2, 30, 70, 0)])
def test_empty_operands_give_zeros_or_nothing(check: Check, shape: tuple[int, ...]) -> None:
    check(product(*shape))


DTYPES = [
    *[
        ("f64", "f64", "f64"),
        ("f16", "f32", "f16"),
        ("bf16", "f32", "bf16"),
        ("bf16", "f32", "f32"),
    ],
    *[("f8_e4m3fn", "f32", "f32"), ("f32", "f64", "f64"), ("c64", "c64", "c64")],
    *[("c128", "c128", "c128"), ("i8", "i32", "i32"), ("u8", "i32", "i32"), ("i8", "i8", "i8")],
    *[("i16", "i16", "i16"), ("u32", "u32", "u32"), ("i32", "i32", "i32"), ("i64", "i64", "i64")],
    *[("u64", "u64", "u64"), ("i4", "i32", "i32"), ("i8", "i32", "f32")],
]


def test_products_in_blocks_of_a_matrix_unit_equal_those_of_vectors(check: Check) -> None:
    # Where the processor has such a unit these shapes go to it; elsewhere to vectors.
    for a, total in (("bf16", "f32"), ("i8", "i32"), ("u8", "i32")):
        for shape in [(0, 32, 32, 64), (0, 50, 70, 100), (2, 33, 40, 130), (0, 200, 100, 2500)]:
            for transposed in ("", "a", "b"):
                check(product(*shape, transposed, a, total))
    k = Builder("mixed", {"m": 40, "n": 50, "k": 70, "j": 3})
    x, y = k.input("x", (40, 3, 70), "u8"), k.input("y", (3, 50, 70), "i8")
    z = k.output("z", (40, 50), "i32")
    value = k.contract(k.load(x, "mjk"), k.load(y, "jnk"), ("j", "k"), "i32")
    k.store(z, "mn", value)
    check(k.build())


@pytest.mark.parametrize("rows", [1, 2, 3, 4])
def test_few_rows_with_columns_along_the_sum_are_dot_products(check: Check, rows: int) -> None:
    for dtype in ("f32", "f64", "i32"):
        for batch, columns, depth in [(0, 1, 16), (0, 100, 50), (3, 37, 33), (0, 530, 1000)]:
            check(product(batch, rows, columns, depth, "b", dtype))
            check(product(batch, columns, rows, depth, "bz", dtype))


@pytest.mark.parametrize(("dtype", "accumulator", "result"), DTYPES)
def test_products_of_all_dtypes(check: Check, dtype: str, accumulator: str, result: str) -> None:
    for shape in [(0, 5, 7, 3), (0, 33, 70, 35), (2, 17, 40, 70), (0, 150, 100, 65)]:
        for transposed in ("", "a", "b"):
            check(product(*shape, transposed, dtype, accumulator, result))


def test_products_of_bool_say_whether_any_pair_is_true(check: Check) -> None:
    k = Builder("any", {"m": 20, "n": 40, "k": 5})
    x, y = k.input("x", (20, 5), "bool"), k.input("y", (5, 40), "bool")
    z = k.output("z", (20, 40), "bool")
    value = k.contract(k.load(x, ("m", "k")), k.load(y, ("k", "n")), ("k",), "i32")
    k.store(z, ("m", "n"), k.op("ne", value, k.constant(0, "i32")))
    check(k.build())


def test_integers_wrap(check: Check) -> None:
    kernel = product(0, 20, 40, 50, dtype="i32")
    largest = np.full((20, 50), 2**31 - 1, np.int32)
    check(kernel, [largest, np.full((50, 40), 2**31 - 3, np.int32)])
    narrow = product(0, 20, 40, 700, dtype="i8", accumulator="i32")
    check(narrow, [np.full((20, 700), -128, np.int8), np.full((700, 40), -128, np.int8)])


def test_infinities_and_nan_stay_in_their_rows_and_columns(check: Check) -> None:
    for shape in [(0, 15, 35, 20), (0, 150, 130, 90)]:
        kernel = product(*shape)
        rng = np.random.default_rng(0)
        x = rng.standard_normal(kernel.inputs[0].shape).astype(np.float32)
        y = rng.standard_normal(kernel.inputs[1].shape).astype(np.float32)
        x[3, 4], y[2, 7] = np.nan, np.inf
        check(kernel, [x, y])


def test_an_epilogue_with_bias_activation_residual_and_two_outputs(check: Check) -> None:
    for rows, columns, depth in [(37, 70, 20), (200, 90, 110), (64, 64, 64)]:
        k = Builder("epilogue", {"m": rows, "n": columns, "k": depth})
        x, y = k.input("x", (rows, depth), "f32"), k.input("y", (depth, columns), "f32")
        bias, residual = k.input("bias", (columns,), "f32"), k.input("r", (rows, columns), "f32")
        scale = k.input("scale", (rows,), "f32")
        first, second = k.output("z", (rows, columns), "f32"), k.output("w", (columns, rows), "f16")
        total = k.contract(k.load(x, ("m", "k")), k.load(y, ("k", "n")), ("k",), "f32")
        total = k.op("add", total, k.load(bias, ("n",)))
        k.store(first, ("m", "n"), k.op("tanh", total))
        other = k.op("mul", k.op("add", total, k.load(residual, ("m", "n"))), k.load(scale, ("m",)))
        k.store(second, ("n", "m"), k.convert(other, "f16"))
        check(k.build())


def test_prologues_are_computed_while_packing(check: Check) -> None:
    for rows, columns, depth in [(37, 70, 20), (200, 90, 110)]:
        k = Builder("prologue", {"m": rows, "n": columns, "k": depth})
        x, y = k.input("x", (depth, rows), "f16"), k.input("y", (columns, depth), "i8")
        scale, z = k.input("scale", (depth,), "f32"), k.output("z", (rows, columns), "f32")
        a = k.op("exp", k.convert(k.load(x, ("k", "m")), "f32"))
        a = k.op("mul", a, k.load(scale, ("k",)))
        b = k.convert(k.load(y, ("n", "k")), "f32")
        k.store(z, ("m", "n"), k.contract(a, b, ("k",), "f32"))
        check(k.build())


def test_several_axes_in_every_role(check: Check) -> None:
    # "a b c d, c e d f -> e a b f" with a batch axis g that lies elsewhere in each operand.
    sizes = {"a": 5, "b": 7, "c": 3, "d": 6, "e": 2, "f": 9, "g": 4}
    for dtype in ("f32", "bf16", "c64"):
        total = "f32" if dtype == "bf16" else dtype
        k = Builder("several", sizes)
        x = k.input("x", tuple(sizes[i] for i in "abgcd"), dtype)
        y = k.input("y", tuple(sizes[i] for i in "gcedf"), dtype)
        z = k.output("z", tuple(sizes[i] for i in "egabf"), total)
        value = k.contract(k.load(x, "abgcd"), k.load(y, "gcedf"), ("c", "d"), total)
        k.store(z, "egabf", value)
        check(k.build())


def test_operands_are_views(check: Check) -> None:
    # A flipped, strided first operand and a second one read through an index.
    k = Builder("views", {"m": 20, "n": 40, "k": 15})
    x, y = k.input("x", (41, 30), "f32"), k.input("y", (50, 40), "f32")
    index, z = k.input("index", (15,), "i32"), k.output("z", (20, 40), "f32")
    a = k.load(x, (Affine((("m", -2),), 40), Affine((("k", 2),), 1)))
    row = k.op("add", k.op("abs", k.load(index, ("k",))), k.constant(1, "i32"))
    b = k.load(y, (Affine(((row, 1),)), "n"))
    k.store(z, ("m", "n"), k.contract(a, b, ("k",), "f32"))
    check(k.build())


def test_an_axis_that_one_operand_does_not_have_is_summed_over_the_other(check: Check) -> None:
    k = Builder("broadcast", {"m": 20, "n": 40, "k": 15, "j": 3})
    x, y = k.input("x", (20, 15), "f32"), k.input("y", (15, 3, 40), "f32")
    z = k.output("z", (20, 40), "f32")
    a, b = k.load(x, ("m", "k")), k.load(y, ("k", "j", "n"))
    k.store(z, ("m", "n"), k.add(Contract(a, b, ("k", "j"), "f32")))
    check(k.build())


def test_outer_products_have_no_axis_to_sum(check: Check) -> None:
    for dtype in ("f32", "bf16", "i8"):
        total = {"f32": "f32", "bf16": "f32", "i8": "i32"}[dtype]
        k = Builder("outer", {"m": 20, "n": 40})
        x, y = k.input("x", (20,), dtype), k.input("y", (40,), dtype)
        z = k.output("z", (20, 40), total)
        a, b = k.load(x, ("m",)), k.load(y, ("n",))
        k.store(z, ("m", "n"), k.add(Contract(a, b, (), total)))
        check(k.build())


def test_sizes_at_run_time(check: Check) -> None:
    names = ("rows", "columns", "depth")
    rows, columns, depth = [kernel_size(ShapeVar(name, max=4096)) for name in names]
    batch = kernel_size(ShapeVar("batch", max=64))
    for dtype, total in (("f32", "f32"), ("bf16", "f32"), ("c64", "c64")):
        kernel = product(batch, rows, columns, depth, "", dtype, total)
        for b, m, n, k in [(1, 1, 1, 1), (3, 20, 50, 7), (2, 100, 33, 130), (1, 0, 3, 2)]:
            check(kernel, batch=b, rows=m, columns=n, depth=k)
    for transposed in ("a", "b", "z"):
        check(product(0, rows, 100, 64, transposed), rows=77)
        check(product(0, 100, columns, 64, transposed), columns=77)


def test_plain_products_of_new_shapes_compile_nothing_new() -> None:
    def texts(kernel: Kernel) -> set[str]:
        routine = render(kernel, host())
        assert routine is not None
        pointers = [w.text for w in routine.words if isinstance(w, FunctionPointer)]
        return {routine.text, *pointers}

    assert texts(product(0, 800, 900, 700)) == texts(product(0, 640, 1200, 550))


def test_how_work_is_cut_does_not_depend_on_the_number_of_threads() -> None:
    kernel = product(0, 200, 300, 400)
    assert render(kernel, host()) == render(kernel, host())


@pytest.mark.parametrize("name", sorted(OTHERS))
@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "i8", "c64", "i64"])
def test_all_texts_assemble_for_other_processors(name: str, dtype: str) -> None:
    total = {"bf16": "f32", "i8": "i32"}.get(dtype, dtype)
    for shape in [(0, 200, 300, 400), (0, 30, 32, 20)]:
        routine = render(product(*shape, "b", dtype, total), OTHERS[name])
        assert routine is not None
        for word in routine.words:
            if isinstance(word, FunctionPointer):
                assert compile_assembly(word.text, OTHERS[name])
