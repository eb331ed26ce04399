"""Each pass on a Program before, and the Program expected after; values stay the same."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray import lax
from fxarray.compile.simplify import PASSES, simplify, stages
from fxarray.core.ir import Program
from fxarray.interpreters.evaluate import evaluate

ROW = np.linspace(-2, 2, 4, dtype=np.float32)
SQUARE = np.arange(12, dtype=np.float32).reshape(3, 4) - 5


def traced(function: Any, *args: Any) -> Program:
    return fxarray.make_program(function)(*args).open()[0]


def operations(program: Program) -> list[str]:
    return [equation.op.name for equation in program.equations]


def expect(function: Any, args: Any, wanted: str) -> None:
    program = traced(function, *args)
    result = simplify(program)
    body = "\n".join(str(result).splitlines()[1:])
    assert dedent(body).strip() == dedent(wanted).strip()
    assert result.output_types == program.output_types
    arrays = [fnp.asarray(a) for a in args]
    for got, value in zip(evaluate(result, arrays), evaluate(program, arrays), strict=True):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(value))


def test_calls_are_written_out_and_what_nothing_needs_is_dropped() -> None:
    @fxarray.jit
    def inner(x: Any) -> Any:
        fnp.cos(x)
        return fnp.sin(x)

    @fxarray.custom_jvp
    def own(x: Any) -> Any:
        return inner(x)

    own.defjvp(lambda primals, tangents: (own(*primals), tangents[0]))
    expect(lambda x: own(inner(x)), [ROW], "b: f32[4] = sin(a)\nc: f32[4] = sin(b)\nreturn c")


def test_equal_expressions_are_computed_once() -> None:
    expect(
        lambda x: fnp.sin(x) * fnp.sin(x),
        [ROW],
        "b: f32[4] = sin(a)\nc: f32[4] = mul(b, b)\nreturn c",
    )


def test_what_checkpoint_computes_again_is_not_shared() -> None:
    def f(x: Any) -> Any:
        return fnp.sum(fxarray.checkpoint(lambda y: fnp.sin(fnp.sin(y)))(x))

    after = simplify(traced(fxarray.grad(f), ROW))
    assert operations(after).count("checkpoint") >= 1
    assert len([name for name in operations(after) if name == "sin"]) == 0


def test_prints_are_neither_shared_nor_dropped() -> None:
    def f(x: Any) -> Any:
        fxarray.debug.print("{}", x)
        fxarray.debug.print("{}", x)
        return x

    assert operations(simplify(traced(f, ROW))).count("callback") == 2


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (lambda x: x * 1.0, "return a"),
        (lambda x: x - 0.0, "return a"),
        (lambda x: x + 0.0, "b: f32[4] = add(a, 0.0)\nreturn b"),
        (lambda x: x * -1.0, "b: f32[4] = neg(a)\nreturn b"),
        (lambda x: lax.neg(lax.neg(x)), "return a"),
        (lambda x: x / 4.0, "b: f32[4] = mul(a, 0.25)\nreturn b"),
        (lambda x: x / 3.0, "b: f32[4] = div(a, 3.0)\nreturn b"),
        (lambda x: x * (2.0 * fnp.float32(3)), "b: f32[4] = mul(a, 6.0)\nreturn b"),
        (lambda x: lax.pow(x, 1.0), "return a"),
        (lambda x: lax.pow(x, 2.0), "b: f32[4] = mul(a, a)\nreturn b"),
        (lambda x: lax.max(x, x), "return a"),
        (lambda x: x.astype("float64").astype("float32"), "return a"),
        (lambda x: fnp.where(True, x, 0 * x), "return a"),
    ],
)
def test_arithmetic_is_simplified_where_results_stay_equal(function: Any, wanted: str) -> None:
    expect(function, [ROW], wanted)


def test_a_conversion_that_loses_digits_stays() -> None:
    after = simplify(traced(lambda x: x.astype("float16").astype("float32"), ROW))
    assert operations(after) == ["convert_element_type"] * 2


def test_integer_zeros_are_left_out_of_sums() -> None:
    expect(lambda n: n + 0, [np.arange(3, dtype=np.int32)], "return a")


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (lambda x: x.T.T, "return a"),
        (lambda x: x.reshape(12).reshape(3, 4), "return a"),
        (lambda x: x[::-1][::-1], "return a"),
        (lambda x: x[0:3], "return a"),
        (
            lambda x: x.reshape(12).reshape(2, 6),
            "b: f32[2,6] = reshape[shape=(2, 6)](a)\nreturn b",
        ),
        (lambda x: fnp.concatenate([x, 2 * x], 1)[:, :4], "return a"),
        (
            lambda x: x[1:, ::2][:, 1:],
            """b: f32[2,1] = slice[start_indices=(1, 2), limit_indices=(3, 3), strides=(1, 2)](a)
return b""",
        ),
    ],
)
def test_moves_in_a_row_become_one(function: Any, wanted: str) -> None:
    expect(function, [SQUARE], wanted)


def test_an_empty_slice_of_a_slice_is_empty() -> None:
    after = simplify(traced(lambda x: x[:, 3::2][:, 1:1], SQUARE))
    assert after.output_types[0].shape == (3, 0)


def test_slices_look_through_updates_of_other_parts() -> None:
    def f(x: Any) -> Any:
        y = x.at[0].set(9.0).at[2].add(1.0)
        return y[1], y[2], y[0]

    after = simplify(traced(f, ROW))
    assert "dynamic_update_slice" not in operations(after)
    values = [float(np.asarray(v)) for v in evaluate(after, [fnp.asarray(ROW)])]
    assert values == [ROW[1], ROW[2] + 1, 9.0]


def test_slices_of_what_was_partly_replaced_stay() -> None:
    after = simplify(traced(lambda x: x.at[1].set(9.0)[:2], ROW))
    assert "dynamic_update_slice" in operations(after)


def test_reading_an_element_of_each_row_looks_up_columns_only() -> None:
    labels = np.array([3, 0, 1], np.int32)
    after = simplify(traced(lambda x, n: x[fnp.arange(3), n], SQUARE, labels))
    (gather,) = [e.op for e in after.equations if e.op.name == "gather"]
    assert gather.dimension_numbers.operand_batching_dims == (0,)
    assert "concatenate" not in operations(after)


def test_the_gradient_of_reading_an_element_of_each_row_scatters_nothing() -> None:
    labels = np.array([3, -1, 1], np.int32)

    def loss(x: Any, n: Any) -> Any:
        return fnp.sum(x[fnp.arange(3), n] ** 2)

    after = simplify(traced(fxarray.grad(loss), SQUARE, labels))
    assert "scatter_add" not in operations(after)
    (got,) = evaluate(after, [fnp.asarray(SQUARE), fnp.asarray(labels)])
    wanted = np.zeros((3, 4), np.float32)
    wanted[np.arange(3), labels] = 2 * SQUARE[np.arange(3), labels]
    np.testing.assert_array_equal(np.asarray(got), wanted)


def test_what_does_not_change_in_a_loop_is_computed_before_it() -> None:
    def f(x: Any, y: Any) -> Any:
        return lax.fori_loop(0, 9, lambda i, c: c + fnp.sin(y) * i, x)

    after = simplify(traced(f, ROW, ROW))
    assert "sin" in operations(after)
    (loop,) = [e for e in after.equations if e.op.name in ("scan", "while")]
    assert all("sin" not in operations(p) for p in loop.op.programs)


def test_repeated_numbers_are_not_moved_out_of_a_loop() -> None:
    def f(x: Any) -> Any:
        return lax.fori_loop(0, 9, lambda i, c: c + fnp.full((4,), 2.0), x)

    assert "broadcast_in_dim" not in operations(simplify(traced(f, ROW)))


def test_a_carry_that_stays_is_a_constant() -> None:
    def f(x: Any, y: Any) -> Any:
        return lax.while_loop(lambda c: c[0].sum() < 50, lambda c: (c[0] + c[1], c[1]), (x, y))

    after = simplify(traced(f, ROW, np.ones(4, np.float32)))
    (loop,) = [e.op for e in after.equations if e.op.name == "while"]
    assert len(loop.carry_types) == 1
    assert after.outputs[1] is after.inputs[1]


def test_a_scan_of_one_step_is_written_out() -> None:
    def f(x: Any) -> Any:
        return lax.scan(lambda c, v: (c + v, c * v), fnp.zeros(4), x[None])

    assert "scan" not in operations(simplify(traced(f, ROW)))
    long = simplify(traced(lambda x: lax.scan(lambda c, v: (c + v, c), 0.0, x), np.ones(50)))
    assert "scan" in operations(long)


def test_a_branch_that_is_known_is_written_out() -> None:
    expect(
        lambda x: lax.switch(1, [lambda y: y + 1, fnp.sin], x),
        [ROW],
        "b: f32[4] = sin(a)\nreturn b",
    )


def test_programs_inside_are_simplified() -> None:
    def f(x: Any) -> Any:
        return lax.cond(x[0] > 0, lambda y: lax.neg(lax.neg(y)) * 1.0, lambda y: y.T.T + 1, x)

    after = simplify(traced(f, ROW))
    (branch,) = [e.op for e in after.equations if e.op.name == "cond"]
    assert sorted(len(p.equations) for p in branch.branches) == [0, 1]


def test_stages_are_named_and_the_last_is_the_result() -> None:
    program = traced(lambda x: fnp.sin(x) * 1.0, ROW)
    found = stages(program)
    assert [name for name, _ in found] == list(PASSES)
    assert found[-1][1] == simplify(program)


def test_weak_results_stay_weak() -> None:
    program = traced(lambda x: (x * 1, x.astype("float32") * 1.0), 2.0)
    assert simplify(program).output_types == program.output_types


def test_long_programs_pass_in_linear_time_and_without_recursion() -> None:
    def f(x: Any) -> Any:
        for i in range(5000):
            x = fnp.sin(x) * 1.0 if i % 2 else lax.neg(lax.neg(x))
        return x

    assert operations(simplify(traced(f, ROW))) == ["sin"] * 2500


@pytest.mark.parametrize("method", ["set", "add", "multiply", "min", "max"])
@pytest.mark.parametrize("mode", ["drop", "clip"])
@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "uint32"])
def test_scatters_count_negative_indices_from_the_end(method: str, mode: str, dtype: str) -> None:
    where = np.array([3, -1, -3, 2, -4, 100, -100]).astype(dtype)
    updates = np.arange(28, dtype=np.float32).reshape(7, 4) - 9

    def f(x: Any, i: Any, u: Any) -> Any:
        return getattr(x.at[i], method)(u, mode=mode)

    program = simplify(traced(f, SQUARE, where, updates))
    (scatter,) = [e.op for e in program.equations if e.op.name.startswith("scatter")]
    unsigned = dtype[0] == "u"
    assert scatter.parameters()["counts_from_end"] is not unsigned
    assert "select_n" not in operations(program)
    arrays = [fnp.asarray(a) for a in (SQUARE, where, updates)]
    (got,) = evaluate(program, arrays)
    (wanted,) = evaluate(traced(f, SQUARE, where, updates), arrays)
    np.testing.assert_array_equal(np.asarray(got), np.asarray(wanted))
    native = fxarray.jit(f, backend="cpu")(*arrays)
    np.testing.assert_array_equal(np.asarray(native), np.asarray(wanted))


def test_what_only_resembles_counting_from_the_end_stays() -> None:
    def f(x: Any, i: Any, size: int) -> Any:
        i = fnp.where(i < 0, i + size, i)
        return x.at[i].set(7.0, wrap_negative_indices=False, mode="drop")

    for size in (2, 3):
        program = simplify(traced(lambda x, i, size=size: f(x, i, size), SQUARE, np.int32([-1, 1])))
        (scatter,) = [e.op for e in program.equations if e.op.name == "scatter"]
        assert scatter.parameters()["counts_from_end"] is (size == 3)
