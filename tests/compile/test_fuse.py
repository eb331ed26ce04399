"""Which operations become one kernel, and that graphs compute what their Programs say."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import numpy as np
import pytest

import fxarray
import fxarray.nn
import fxarray.numpy as fnp
from fxarray import lax
from fxarray.compile.fuse import Policy, fuse
from fxarray.compile.graph import (
    BranchStep,
    CallStep,
    Graph,
    KernelStep,
    ScanStep,
    WhileStep,
)
from fxarray.compile.graph_check import check_graph
from fxarray.compile.interpret import run_graph
from fxarray.compile.simplify import simplify
from fxarray.core.dims import ShapeVar
from fxarray.core.errors import ProgramError

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(6, 8)).astype(np.float32)
LABELS = np.array([3, 0, 7, 1, 1, 5], np.int32)
WEIGHTS = RNG.normal(size=(8, 8)).astype(np.float32)
BIAS = RNG.normal(size=8).astype(np.float32)
# In small tests memory traffic must count, as it does for large arrays.
SMALL = Policy(large=16)


def graph_of(function: Any, *args: Any, policy: Policy = SMALL) -> Graph:
    """The graph of a function, after it gave the right results."""
    program, constants = fxarray.make_program(function)(*args).open()
    graph = fuse(simplify(program), policy)
    check_graph(graph)
    values = [*constants, *map(fnp.asarray, fxarray.tree.leaves(args))]
    arrays = [value.numpy_view() for value in values]
    results = run_graph(graph, arrays)
    wanted = fxarray.tree.leaves(fxarray.jit(function, backend="reference")(*args))
    for got, value in zip(results, wanted, strict=True):
        assert got.shape == value.shape
        assert got.dtype == value.dtype
        np.testing.assert_allclose(got, np.asarray(value), rtol=1e-4, atol=1e-5)
    return graph


def kinds(graph: Graph) -> list[str]:
    return [
        step.op.name if isinstance(step, CallStep) else type(step).__name__ for step in graph.steps
    ]


def kernels(graph: Graph) -> list[Any]:
    return [step.kernel for step in graph.steps if isinstance(step, KernelStep)]


def softmax(x: Any) -> Any:
    e = fnp.exp(x - fnp.max(x, -1, keepdims=True))
    return e / fnp.sum(e, -1, keepdims=True)


def layer_norm(x: Any, scale: Any, bias: Any) -> Any:
    centred = x - fnp.mean(x, -1, keepdims=True)
    return centred * lax.rsqrt(fnp.mean(centred**2, -1, keepdims=True) + 1e-5) * scale + bias


def test_softmax_is_one_kernel() -> None:
    graph = graph_of(softmax, ROWS)
    (kernel,) = kernels(graph)
    expected = """
        kernel reduce_sum_reshape_broadcast_div(x0: f32[6, 8]) -> y0: f32[6, 8] over i0=6, i1=8:
          v0: f32{i0,i1} = load x0[i0, i1]
          v1: f32{i0} = reduce max over i1 of v0
          v2: f32{i0,i1} = sub v0, v1
          v3: f32{i0,i1} = exp v2
          v4: f32{i0} = reduce sum over i1 of v3
          v5: f32{i0,i1} = div v3, v4
          y0[i0, i1] = v5
    """
    assert str(kernel).strip() == dedent(expected).strip()


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (lambda x: fxarray.nn.gelu(x * 2 + 1), (ROWS,)),
        (layer_norm, (ROWS, BIAS, BIAS)),
        (
            fxarray.grad(lambda *a: fnp.sum(fnp.sin(layer_norm(*a))), argnums=(0, 1, 2)),
            (ROWS, BIAS, BIAS),
        ),
        (lambda x: fxarray.nn.logsumexp(x, axis=1), (ROWS,)),
        (
            fxarray.value_and_grad(
                lambda x, n: -fnp.mean(fxarray.nn.log_softmax(x)[fnp.arange(6), n])
            ),
            (ROWS, LABELS),
        ),
        (lambda x, w, b: fxarray.nn.gelu(x @ w + b), (ROWS, WEIGHTS, BIAS)),
        (lambda x: (x.sum(), (x * x).sum(0), x.max(1)), (ROWS,)),
        (lambda x: x.T + x.reshape(8, 6), (ROWS,)),
        (lambda x: x[:, 1:] - x[:, :-1], (ROWS,)),
        (lambda x, n: x[n] * 2, (ROWS, LABELS % 6)),
        (lambda x: fnp.cumsum(x * 2, 1) + 1, (ROWS,)),
        (lambda p, g: (p - 0.1 * (0.9 * g + p), 0.9 * g + p), (ROWS, ROWS + 1)),
    ],
)
def test_it_is_one_kernel(function: Any, args: Any) -> None:
    assert kinds(graph_of(function, *args)) == ["KernelStep"]


def test_attention_is_one_kernel_with_masks_and_any_scores() -> None:
    q, k, v = (RNG.normal(size=(2, 3, 16, 4)).astype(np.float32) for _ in range(3))

    def attention(q: Any, k: Any, v: Any) -> Any:
        scores = fnp.tanh(fnp.einsum("bhqd,bhkd->bhqk", q, k) / 2) * 5
        scores = fnp.where(fnp.tril(fnp.ones((16, 16), bool)), scores, -fnp.inf)
        return fnp.einsum("bhqk,bhkd->bqhd", fxarray.nn.softmax(scores), v)

    (kernel,) = kernels(graph_of(attention, q, k, v))
    contractions = [node for node in kernel.body if type(node).__name__ == "Contract"]
    assert len(contractions) == 2
    stored = {axis for p in kernel.body[-1].index for axis in p.axes}
    assert stored.isdisjoint(contractions[0].axes)


def test_a_product_that_the_device_cannot_render_with_its_surroundings_is_cut_out() -> None:
    args = (RNG.normal(size=(64, 32)).astype(np.float32), np.ones((32, 16), np.float32))

    def plain_only(kernel: Any) -> bool:
        return len(kernel.body) == 4

    graph = graph_of(lambda x, w: fnp.tanh(x @ w), *args, policy=Policy(can_render=plain_only))
    assert kinds(graph) == ["KernelStep", "KernelStep"]
    nothing = Policy(can_render=lambda kernel: False)
    graph = graph_of(lambda x, w: fnp.tanh(x @ w), *args, policy=nothing)
    assert kinds(graph) == ["dot_general", "KernelStep"]


def test_attention_falls_apart_into_kernels_where_it_cannot_be_one() -> None:
    q = RNG.normal(size=(64, 16)).astype(np.float32)

    def one_product(kernel: Any) -> bool:
        return sum(type(node).__name__ == "Contract" for node in kernel.body) == 1 and not any(
            type(node).__name__ == "Reduce" for node in kernel.body
        )

    def attention(q: Any) -> Any:
        return softmax(q @ q.T) @ q

    graph = graph_of(attention, q, policy=Policy(can_render=one_product))
    assert kinds(graph) == ["KernelStep"] * 3


def test_small_products_are_sums_that_fuse() -> None:
    graph = graph_of(lambda x: fnp.sin(x @ x + 1).sum(), np.ones((3, 3), np.float32))
    (kernel,) = kernels(graph)
    assert not any(type(node).__name__ == "Contract" for node in kernel.body)


def test_a_gradient_step_is_part_of_the_product_that_gives_the_gradient() -> None:
    def step(w: Any, x: Any) -> Any:
        return w - 0.1 * fxarray.grad(lambda w: fnp.sum((x @ w) ** 2))(w)

    x, w = RNG.normal(size=(64, 32)).astype(np.float32), np.ones((32, 16), np.float32)
    assert kinds(graph_of(step, w, x)) == ["KernelStep", "KernelStep"]


def test_reductions_over_long_rows_are_not_kept_waiting_in_one_kernel() -> None:
    policy = Policy(large=16, row_elements=16)
    assert len(kernels(graph_of(lambda x: x - x.mean(), ROWS, policy=policy))) == 2
    assert len(kernels(graph_of(lambda x: x - x.mean(1, keepdims=True), ROWS, policy=policy))) == 1


def test_centring_rows_and_columns_takes_two_kernels() -> None:
    def centre(x: Any) -> Any:
        return x - x.mean(0, keepdims=True) * x.mean(1, keepdims=True)

    assert len(kernels(graph_of(centre, ROWS))) == 2


def test_what_is_cheap_to_derive_is_not_stored_twice() -> None:
    def f(x: Any, w: Any) -> Any:
        return fnp.sum(fxarray.nn.gelu(x @ w) @ w)

    x, w = RNG.normal(size=(64, 32)).astype(np.float32), np.eye(32, dtype=np.float32)
    graph = graph_of(fxarray.value_and_grad(f), x, w)
    # The argument of gelu and gelu itself, but nothing that its derivative needs besides.
    stored = [len(step.outputs) for step in graph.steps if isinstance(step, KernelStep)]
    assert max(stored) == 2


def test_checkpoint_computes_again_in_a_kernel_of_its_own() -> None:
    def f(x: Any) -> Any:
        inner = fxarray.checkpoint(lambda y: fnp.sin(fnp.sin(y) * 2))
        return fnp.sum(inner(x))

    body = kernels(graph_of(fxarray.value_and_grad(f), ROWS))
    sines = sum(getattr(node, "op", "") == "sin" for kernel in body for node in kernel.body)
    assert sines >= 3


def test_long_chains_are_cut_into_kernels_of_bounded_size() -> None:
    def chain(x: Any) -> Any:
        for _ in range(500):
            x = fnp.sin(x) * 1.5
        return x

    graph = graph_of(chain, BIAS)
    assert 2 <= len(kernels(graph)) <= 20
    assert max(len(kernel.body) for kernel in kernels(graph)) < 200


def test_doubling_chains_do_not_blow_up() -> None:
    def fibonacci(x: Any) -> Any:
        a = b = x
        for _ in range(60):
            a, b = a + b * 0.5, a
        return a[1:-1] + a[2:] + a[:-2]

    graph = graph_of(fibonacci, ROWS[0])
    assert sum(len(kernel.body) for kernel in kernels(graph)) < 600


def test_kernels_with_more_nodes_than_thought_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> Any:
        for _ in range(20):
            x = fnp.sin(x) * 2 + x
        return softmax(x), x.sum(0)

    whole = graph_of(f, ROWS)
    monkeypatch.setattr("fxarray.compile.fuse.kernels.MOST_NODES", 20)
    fxarray.clear_caches()
    assert len(kernels(graph_of(f, ROWS))) > len(kernels(whole))


def test_equal_layers_share_their_kernels() -> None:
    def layers(x: Any, weights: Any) -> Any:
        for w in weights:
            x = softmax(fnp.tanh(x @ w) + x)
        return x

    weights = [RNG.normal(size=(32, 32)).astype(np.float32) for _ in range(12)]
    graph = graph_of(layers, RNG.normal(size=(48, 32)).astype(np.float32), weights)
    assert len(kernels(graph)) == 24
    assert len(set(kernels(graph))) == 2


def test_reshapes_of_what_is_in_memory_are_views() -> None:
    graph = graph_of(lambda x: (x.reshape(2, 24), x.reshape(2, 24) @ fnp.ones((24, 2))), ROWS)
    assert graph.outputs[0].root is graph.inputs[0]


def test_reshapes_within_a_kernel_split_its_axes() -> None:
    graph = graph_of(lambda x: fnp.sin(x).reshape(48) * 2, ROWS)
    (kernel,) = kernels(graph)
    assert sorted(size for _, size in kernel.axes) == [6, 8]


def test_reshapes_that_no_index_can_express_go_through_memory() -> None:
    graph = graph_of(lambda x: fnp.sin(x).reshape(4, 12) * 2, ROWS)
    assert len(kernels(graph)) == 2


def test_operations_without_a_rule_are_called_whole() -> None:
    graph = graph_of(lambda x: fnp.sort(x * 2, 1) + 1, ROWS)
    assert kinds(graph) == ["KernelStep", "sort", "KernelStep"]


def test_parts_of_large_arrays_are_replaced_in_place_and_of_small_ones_in_a_kernel() -> None:
    large = np.zeros((64, 64), np.float32)
    assert "dynamic_update_slice" in kinds(graph_of(lambda x: x.at[3].set(1.0), large))
    assert kinds(graph_of(lambda x: x.at[3].set(1.0) * 2, ROWS)) == ["KernelStep"]


def test_inputs_constants_and_repeated_results_may_be_results() -> None:
    def f(x: Any, y: Any) -> Any:
        z = x + y
        return x, z, z, fnp.float32(3), fnp.zeros((0, 2)), fnp.zeros((0, 2)) + 1

    graph = graph_of(f, ROWS, ROWS)
    assert graph.outputs[0] is graph.inputs[0]
    assert graph.outputs[1] is graph.outputs[2]
    assert len(kernels(graph)) == 1


def test_empty_reductions_give_their_identity() -> None:
    graph_of(lambda x: (x.sum(0), x.sum(1)), np.zeros((0, 3), np.float32))


def test_loops_and_branches_hold_graphs() -> None:
    def f(x: Any, n: Any) -> Any:
        x = lax.while_loop(lambda c: c.sum() < 90, lambda c: c + 1, x)
        x, ys = lax.scan(lambda c, v: (c + v, c * n), x[0], x)
        return lax.cond(n > 2, lambda y: y * 2, fnp.sin, x), ys

    graph = graph_of(f, ROWS, np.float32(3))
    found = {type(step) for step in graph.steps}
    assert found >= {WhileStep, ScanStep, BranchStep}
    (loop,) = [step for step in graph.steps if isinstance(step, WhileStep)]
    assert len(loop.body.outputs) == len(loop.initial) == 1
    assert kinds(loop.body) == ["KernelStep"]


@pytest.mark.parametrize("reverse", [False, True])
def test_reversed_loops_with_a_bound(reverse: bool) -> None:
    def f(x: Any) -> Any:
        def total(y: Any) -> Any:
            return lax.while_loop(
                lambda c: c[0] < 3, lambda c: (c[0] + 1, fnp.sin(c[1])), (0, y), max_steps=5
            )[1].sum()

        return fxarray.grad(total)(x) if reverse else total(x)

    graph_of(f, ROWS)


def test_lanes_with_cheap_branches_select() -> None:
    def f(x: Any) -> Any:
        return fxarray.vmap(lambda r: lax.cond(r[0] > 0, fnp.sin, lambda y: y * 2, r))(x)

    assert kinds(graph_of(f, ROWS)) == ["KernelStep"]


def test_lanes_whose_branches_may_not_end_are_taken_one_by_one() -> None:
    def f(x: Any) -> Any:
        def forever(y: Any) -> Any:
            return lax.while_loop(lambda c: c[0] != 99, lambda c: c * 1.5, y)

        return fxarray.vmap(lambda r: lax.cond(r[0] > 99, forever, lambda y: y * 2, r))(x)

    assert "ScanStep" in kinds(graph_of(f, ROWS))


@pytest.mark.parametrize("nested", [False, True])
def test_lanes_of_loops(nested: bool) -> None:
    def count(y: Any) -> Any:
        return lax.while_loop(lambda c: c < 3, lambda c: c + 0.75, y)

    def count_twice(y: Any) -> Any:
        return lax.while_loop(lambda c: c < 9, lambda c: count(c) * 2, y)

    f = count_twice if nested else count
    graph = graph_of(lambda x: fxarray.vmap(fxarray.vmap(f))(x), np.abs(ROWS))
    assert ("ScanStep" if nested else "WhileStep") in kinds(graph)


def test_what_is_printed_keeps_its_order() -> None:
    def f(x: Any) -> Any:
        fxarray.debug.print("{}", x.sum(), ordered=True)
        y = fnp.sin(x)
        fxarray.debug.print("{}", y.sum(), ordered=True)
        return y

    program = fxarray.make_program(f)(ROWS)
    graph = fuse(simplify(program), SMALL)
    first, second = (step for step in graph.steps if isinstance(step, CallStep))
    wanted = [step for step in program.equations if step.op.name == "callback"]
    assert [first.op, second.op] == [equation.op for equation in wanted]


def test_sizes_may_be_variables() -> None:
    batch = ShapeVar("batch", min=1, max=64)
    kind = fxarray.ShapeDtypeStruct((batch, 8), "float32")

    def f(x: Any) -> Any:
        y = fnp.concatenate([softmax(x), fnp.sin(x)], 0)
        return y.reshape(-1) * 2, y.mean(0), lax.scan(lambda c, v: (c + v, c), x[0] * 0, x)

    graph = fuse(simplify(fxarray.make_program(f)(kind)), SMALL)
    check_graph(graph)
    results = run_graph(graph, [ROWS], {"batch": 6})
    wanted = fxarray.tree.leaves(f(fnp.asarray(ROWS)))
    for got, value in zip(results, wanted, strict=True):
        np.testing.assert_allclose(got, np.asarray(value), rtol=1e-5, atol=1e-6)


def test_random_keys_are_64_bit_integers_in_kernels() -> None:
    key = fxarray.random.key(3)
    graph_of(lambda k: fxarray.random.uniform(k, (4, 3)), key)


def test_a_graph_that_reads_before_it_writes_is_refused() -> None:
    graph = graph_of(lambda x: fnp.sort(x * 2, 1) + 1, ROWS)
    graph.steps.reverse()
    with pytest.raises(ProgramError, match="before it is written"):
        check_graph(graph)


def test_many_operations_pass_in_linear_time() -> None:
    def f(x: Any) -> Any:
        results: list[Any] = []
        for i in range(1500):
            x = fnp.sin(x) + i if i % 3 else x - x.max(1, keepdims=True)
            if i % 50 == 0:
                results.append(x)
        return results

    graph = fuse(simplify(fxarray.make_program(f)(ROWS)))
    check_graph(graph)
    assert len(graph.steps) < 400
