"""Kernels that people write: each rendered, run and compared with the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fxarray.core.dims import ShapeVar
from fxarray.devices.cpu.native.compiler import compile_assembly
from fxarray.devices.cpu.native.memory import empty
from fxarray.devices.cpu.native.runtime import Runtime
from fxarray.devices.cpu.native.target import OTHERS, host
from fxarray.devices.cpu.render.routine import render
from fxarray.devices.cpu.render.stages import plan
from fxarray.kernel import sizes
from fxarray.kernel.build import Builder
from fxarray.kernel.interpret import interpret
from fxarray.kernel.ir import Affine, Kernel
from fxarray.kernel.sizes import Size, kernel_size

Make = Callable[..., Kernel]


def elementwise(n: Size, m: Size) -> Kernel:
    b = Builder("elementwise", {"i": n, "j": m})
    x, y, o = b.input("x", (n, m), "f32"), b.input("y", (m,), "f32"), b.output("o", (n, m), "f32")
    value = b.op("tanh", b.op("mul", b.load(x, ("i", "j")), b.load(y, ("j",))))
    b.store(o, ("i", "j"), value)
    return b.build()


def softmax(n: Size, m: Size, axis: str = "j", dtype: str = "f32") -> Kernel:
    b = Builder("softmax", {"i": n, "j": m})
    x, o = b.input("x", (n, m), dtype), b.output("o", (n, m), dtype)
    value = b.load(x, ("i", "j"))
    exponential = b.op("exp", b.op("sub", value, b.reduce("max", (axis,), value)[0]))
    b.store(o, ("i", "j"), b.op("div", exponential, b.reduce("sum", (axis,), exponential)[0]))
    return b.build()


def softmax_columns(n: Size, m: Size) -> Kernel:
    return softmax(n, m, "i")


def normalisation_gradient(n: Size, m: Size) -> Kernel:
    """Reductions over rows and over columns in one kernel."""
    b = Builder("normalisation_gradient", {"i": n, "j": m})
    x, dy = b.input("x", (n, m), "f32"), b.input("dy", (n, m), "f32")
    gain = b.input("gain", (m,), "f32")
    dx, dgain = b.output("dx", (n, m), "f32"), b.output("dgain", (m,), "f32")
    value, slope = b.load(x, ("i", "j")), b.load(dy, ("i", "j"))
    centred = b.op("sub", value, b.reduce("max", ("j",), value)[0])
    scale = b.reduce("sum", ("j",), b.op("mul", centred, centred))[0]
    scale = b.op("rsqrt", b.op("add", scale, b.constant(1.0, "f32")))
    unit = b.op("mul", centred, scale)
    scaled = b.op("mul", slope, b.load(gain, ("j",)))
    mean = b.reduce("sum", ("j",), b.op("mul", scaled, unit))[0]
    b.store(dx, ("i", "j"), b.op("mul", b.op("sub", scaled, b.op("mul", unit, mean)), scale))
    b.store(dgain, ("j",), b.reduce("sum", ("i",), b.op("mul", slope, unit))[0])
    return b.build()


def transposed(n: Size, m: Size) -> Kernel:
    b = Builder("transposed", {"i": n, "j": m})
    x, y, o = b.input("x", (m, n), "f32"), b.input("y", (n, m), "f32"), b.output("o", (n, m), "f32")
    b.store(o, ("i", "j"), b.op("add", b.load(x, ("j", "i")), b.load(y, ("i", "j"))))
    return b.build()


def views(n: Size, m: Size) -> Kernel:
    """A padded operand plus a turned slice plus a row."""
    b = Builder("views", {"i": n, "j": m})
    inner = (sizes.subtract(n, 2), sizes.subtract(m, 3))
    x, row = b.input("x", inner, "f32"), b.input("row", (m,), "f32")
    y, o = b.input("y", (sizes.add(n, 3), m), "f32"), b.output("o", (n, m), "f32")
    place = (Affine.of("i") - 1, Affine.of("j") - 2)
    with b.guarded((place[0], 0, inner[0]), (place[1], 0, inner[1])):
        padded = b.load(x, place, fill=2.5)
    turned = b.load(y, (Affine.of("i") + 3, Affine(((("j"), -1),), sizes.subtract(m, 1))))
    b.store(o, ("i", "j"), b.op("add", b.op("mul", padded, turned), b.load(row, ("j",))))
    return b.build()


def losses(n: Size, m: Size) -> Kernel:
    """Gradients per row and one sum of all, of what is reduced over rows."""
    b = Builder("losses", {"i": n, "j": m})
    x, g, loss = b.input("x", (n, m), "f32"), b.output("g", (n, m), "f32"), b.output("l", (), "f32")
    value = b.load(x, ("i", "j"))
    exponential = b.op("exp", b.op("sub", value, b.reduce("max", ("j",), value)[0]))
    total = b.reduce("sum", ("j",), exponential)[0]
    b.store(g, ("i", "j"), b.op("div", exponential, total))
    b.store(loss, (), b.reduce("sum", ("i",), b.op("log", total))[0])
    return b.build()


def centred(n: Size, m: Size) -> Kernel:
    """What is reduced over everything is used everywhere."""
    b = Builder("centred", {"i": n, "j": m})
    x, o = b.input("x", (n, m), "f32"), b.output("o", (n, m), "f32")
    value = b.load(x, ("i", "j"))
    b.store(o, ("i", "j"), b.op("sub", value, b.reduce("max", ("i", "j"), value)[0]))
    return b.build()


def both_ways(n: Size, m: Size) -> Kernel:
    """Scans along both axes, one from the end, and a reduction of one of them."""
    b = Builder("both_ways", {"i": n, "j": m})
    x, o, most = (
        b.input("x", (n, m), "f32"),
        b.output("o", (n, m), "f32"),
        b.output("m", (n,), "f32"),
    )
    value = b.load(x, ("i", "j"))
    down = b.scan("sum", "i", value)[0]
    b.store(o, ("i", "j"), b.scan("max", "j", down, reverse=True, exclusive=True)[0])
    b.store(most, ("i",), b.reduce("max", ("j",), down)[0])
    return b.build()


def recurrence(n: Size, m: Size) -> Kernel:
    """A combination that depends on the order, scanned and reduced."""
    b = Builder("recurrence", {"i": n, "j": m})
    x, o, last = (
        b.input("x", (n, m), "f32"),
        b.output("o", (n, m), "f32"),
        b.output("l", (n,), "f32"),
    )
    value = b.load(x, ("i", "j"))
    factor = b.op("mul", value, b.constant(0.25, "f32"))
    b.store(o, ("i", "j"), b.scan("linear", "j", factor, value)[1])
    b.store(last, ("i",), b.reduce("linear", ("j",), factor, value)[1])
    return b.build()


def apart(n: Size, m: Size) -> Kernel:
    """Stores over axes that have nothing to do with each other."""
    b = Builder("apart", {"i": n, "j": m, "k": m})
    x, y = b.input("x", (n, m), "f32"), b.input("y", (m,), "f32")
    o, p, q = b.output("o", (n, m), "f32"), b.output("p", (m,), "f32"), b.output("q", (m, n), "f32")
    b.store(o, ("i", "j"), b.op("neg", b.load(x, ("i", "j"))))
    b.store(p, ("k",), b.op("abs", b.load(y, ("k",))))
    b.store(q, ("j", "i"), b.load(x, ("i", "j")))
    return b.build()


def positions(n: Size, m: Size) -> Kernel:
    b = Builder("positions", {"i": n, "j": m})
    x, o, p = b.input("x", (n, m), "f32"), b.output("o", (n,), "i32"), b.output("p", (m,), "i32")
    value = b.load(x, ("i", "j"))
    b.store(o, ("i",), b.reduce("argmax", ("j",), value, b.iota("j"))[1])
    b.store(p, ("j",), b.reduce("argmin", ("i",), value, b.iota("i"))[1])
    return b.build()


MAKERS: tuple[Make, ...] = (
    elementwise, softmax, softmax_columns, normalisation_gradient, transposed, views, losses,
    centred, both_ways, recurrence, apart, positions,
)  # fmt: skip


def arrays_for(kernel: Kernel, rng: np.random.Generator, **known: int) -> list[Any]:
    result: list[Any] = []
    for buffer in kernel.inputs:
        shape = tuple([sizes.evaluate(size, known) for size in buffer.shape])
        result.append(rng.standard_normal(shape).astype({"f64": "f8"}.get(buffer.dtype, "f4")))
    return result


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("shape", [(37, 100), (5, 16), (3, 4), (260, 257)])
def test_kernels_equal_the_interpreter(
    make: Make, shape: tuple[int, int], check: Any, rng: Any
) -> None:
    kernel = make(*shape)
    check(kernel, *arrays_for(kernel, rng), roundings=256)


@pytest.mark.parametrize("make", [m for m in MAKERS if m is not views])
@pytest.mark.parametrize("shape", [(1, 7), (5, 1), (1, 1), (0, 4), (4, 0)])
def test_axes_may_be_empty_or_have_one_element(
    make: Make, shape: tuple[int, int], check: Any, rng: Any
) -> None:
    kernel = make(*shape)
    check(kernel, *arrays_for(kernel, rng), roundings=256)


@pytest.mark.parametrize("make", MAKERS)
def test_one_routine_serves_all_sizes(make: Make, check: Any, rng: Any) -> None:
    rows, columns = kernel_size(ShapeVar("rows", min=3)), kernel_size(ShapeVar("columns", min=4))
    kernel = make(rows, columns)
    for n, m in ((37, 100), (3, 4), (300, 129)):
        arrays = arrays_for(kernel, rng, rows=n, columns=m)
        check(kernel, *arrays, sizes={"rows": n, "columns": m}, roundings=256)


def test_sizes_may_be_expressions_of_variables(check: Any, rng: Any) -> None:
    n = kernel_size(ShapeVar("n", min=2))
    half = kernel_size(ShapeVar("n", min=2) // 2)
    rest = kernel_size(ShapeVar("n", min=2) % 3 + 1)
    b = Builder("halves", {"i": half, "j": rest})
    x = b.input("x", (n, rest), "f32")
    o = b.output("o", (half, rest), "f32")
    b.store(o, ("i", "j"), b.load(x, (Affine((("i", 2),)), "j")))
    kernel = b.build()
    for count in (2, 7, 64, 133):
        x = rng.standard_normal((count, count % 3 + 1)).astype(np.float32)
        check(kernel, x, sizes={"n": count})


# --- stores that combine, and memory that is shared -----------------------------------------------


@pytest.mark.parametrize("mode", ["add", "mul", "min", "max"])
@pytest.mark.parametrize("count", [40, 1500])
def test_updates_meet_in_the_order_of_the_axes(mode: str, count: int, check: Any, rng: Any) -> None:
    b = Builder("scatter", {"i": count, "j": 20})
    x, ids = b.input("x", (count, 20), "f32"), b.input("ids", (count,), "i32")
    b.input("z", (50, 20), "f32")
    o = b.output("o", (50, 20), "f32", alias="z")
    row = Affine(((b.load(ids, ("i",)), 1),))
    b.store(o, (row, "j"), b.load(x, ("i", "j")), bounds=((row, 2, 45),), mode=mode)
    kernel = b.build()
    updates = rng.standard_normal((count, 20)).astype(np.float32)
    places = rng.integers(0, 50, count).astype(np.int32)
    check(kernel, updates, places, rng.standard_normal((50, 20)).astype(np.float32), roundings=0)


def test_rows_are_gathered_and_scattered(check: Any, rng: Any) -> None:
    b = Builder("permuted", {"i": 60, "j": 33})
    x, ids, o = b.input("x", (80, 33), "f32"), b.input("ids", (60,), "i32"), None
    order = b.input("order", (60,), "i32")
    o = b.output("o", (60, 33), "f32")
    source = Affine(((b.load(ids, ("i",)), 1),))
    target = Affine(((b.load(order, ("i",)), 1),))
    b.store(o, (target, "j"), b.load(x, (source, "j")))
    kernel = b.build()
    ids_, order_ = rng.integers(0, 80, 60).astype(np.int32), rng.permutation(60).astype(np.int32)
    check(kernel, rng.standard_normal((80, 33)).astype(np.float32), ids_, order_)


@pytest.mark.parametrize("in_place", [True, False])
def test_an_output_in_the_memory_of_an_input_keeps_what_is_not_written(
    in_place: bool, check: Any, rng: Any
) -> None:
    b = Builder("update", {"i": 5, "j": 30})
    x, start = b.input("x", (5, 30), "f32"), b.input("start", (), "i32")
    b.input("z", (20, 40), "f32")
    o = b.output("o", (20, 40), "f32", alias="z")
    row = Affine(((b.load(start, ()), 1), ("i", 1)))
    b.store(o, (row, Affine.of("j") + 3), b.load(x, ("i", "j")))
    kernel = b.build()
    x, z = (rng.standard_normal(shape).astype(np.float32) for shape in ((5, 30), (20, 40)))
    check(kernel, x, np.array(7, np.int32), z, in_place=in_place)


def test_what_is_stored_later_to_a_buffer_stays(check: Any, rng: Any) -> None:
    b = Builder("filled", {"i": 30, "j": 10})
    x, o = b.input("x", (10,), "f32"), b.output("o", (30,), "f32")
    b.store(o, ("i",), b.constant(1.5, "f32"))
    b.store(o, (Affine.of("j") + 4,), b.load(x, ("j",)), mode="add")
    check(b.build(), rng.standard_normal(10).astype(np.float32))


# --- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("combiner", ["argmax", "argmin"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0.0])
def test_the_first_extremum_is_found_among_equal_ones(
    combiner: str, value: float, check: Any
) -> None:
    for n in (3, 16, 100, 4097):
        b = Builder("first", {"i": n})
        x, o, m = b.input("x", (n,), "f32"), b.output("o", (), "i32"), b.output("m", (), "f32")
        states = b.reduce(combiner, ("i",), b.load(x, ("i",)), b.iota("i"))
        b.store(o, (), states[1])
        b.store(m, (), states[0])
        kernel = b.build()
        check(kernel, np.full(n, value, np.float32))
        mixed = np.linspace(-1, 1, n, dtype=np.float32)
        mixed[n // 2 :] = value
        check(kernel, mixed)


def total(n: int, dtype: str = "f32") -> Kernel:
    b = Builder("total", {"i": n})
    x, o = b.input("x", (n,), dtype), b.output("o", (), dtype)
    b.store(o, (), b.reduce("sum", ("i",), b.load(x, ("i",)))[0])
    return b.build()


@pytest.mark.parametrize("n", [1000, 100_003, 1 << 21])
def test_sums_are_as_accurate_as_pairwise_ones(n: int, run: Any, rng: Any) -> None:
    errors, pairwise = [], []
    for _ in range(8):
        x = rng.random(n).astype(np.float32)
        exact = np.sum(x, dtype=np.float64)
        errors.append(abs(float(run(total(n), x)[0]) - exact) / exact)
        pairwise.append(abs(float(np.sum(x)) - exact) / exact)
    assert np.sqrt(np.mean(np.square(errors))) <= 1.5 * np.sqrt(np.mean(np.square(pairwise))) + 3e-8


def test_results_do_not_depend_on_the_number_of_threads(run: Any, rng: Any) -> None:
    for kernel in (total(300_001), normalisation_gradient(500, 200), softmax_columns(3000, 70)):
        assert any(stage.schedule.parts > 1 for stage in plan(kernel, host()).stages)
        arrays = arrays_for(kernel, rng)
        one, three = (run(kernel, *arrays, runtime=Runtime(threads)) for threads in (1, 3))
        for a, b in zip(one, three, strict=True):
            np.testing.assert_array_equal(a, b)


# --- large and small ------------------------------------------------------------------------------


def test_large_outputs_may_start_anywhere(target: Any, rng: Any) -> None:
    n = 1 << 22
    b = Builder("large", {"i": n})
    x, o = b.input("x", (n,), "f32"), b.output("o", (n,), "f32", alias="x")
    b.store(o, ("i",), b.op("neg", b.load(x, ("i",))))
    kernel = b.build()
    assert plan(kernel, target).stages[0].schedule.nontemporal
    raw = empty((n + 1,), np.float32)
    values = raw[1:]
    values[...] = rng.random(n, dtype=np.float32)
    expected = -values
    call(render(kernel, target).text, [values.ctypes.data, values.ctypes.data])
    np.testing.assert_array_equal(values, expected)


def call(text: str, words: list[int]) -> None:
    import ctypes

    from fxarray.devices.cpu.native.jit import addresses
    from fxarray.devices.cpu.native.runtime import runtime

    given = np.array(words, np.uint64)
    entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(addresses([text])[0])
    entry(runtime(), given.ctypes.data)


@pytest.mark.parametrize("make", [elementwise, softmax])
def test_small_kernels_have_no_loops(make: Make, target: Any) -> None:
    text = render(make(2, 8), target).text
    assert "br i1" not in text
    assert "define" in text


@pytest.mark.parametrize("name", sorted(OTHERS))
@pytest.mark.parametrize("make", MAKERS)
def test_code_is_generated_for_every_processor(make: Make, name: str) -> None:
    text = render(make(260, 257), OTHERS[name]).text
    assembly = compile_assembly(text, OTHERS[name])
    for function in ("expf", "tanhf", "logf", "fmaf", "ldexpf", "memset"):
        assert f"\tcall\t{function}" not in assembly
        assert f"\tbl\t{function}" not in assembly


def test_the_interpreter_agrees_with_numpy_on_these_kernels(rng: Any) -> None:
    x = rng.standard_normal((6, 9)).astype(np.float32)
    (ours,) = interpret(softmax(6, 9), x)
    exponential = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(ours, exponential / exponential.sum(1, keepdims=True), rtol=1e-6)


@pytest.mark.parametrize("columns", [1, 2, 3, 8, 17])
def test_rows_of_a_block_that_stay_are_reduced_apart(columns: int, check: Any, rng: Any) -> None:
    b = Builder("spread", {"i": 5, "j": columns, "k": 4})
    x, o = b.input("x", (5, columns, 4), "f32"), b.output("o", (), "f32")
    (row,) = b.reduce("sum", ("k",), b.load(x, ("i", "j", "k")))
    (most,) = b.reduce("max", ("i",), row)
    b.store(o, (), b.reduce("sum", ("i", "j"), b.op("sub", row, most))[0])
    check(b.build(), rng.standard_normal((5, columns, 4)).astype(np.float32))
