"""Gradients of attention that store no matrix of queries and keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fxarray
import fxarray.nn
import fxarray.numpy as fnp
from fxarray.compile.fuse import Policy, fuse
from fxarray.compile.graph import Graph, KernelStep
from fxarray.compile.graph_check import check_graph
from fxarray.compile.interpret import run_graph
from fxarray.compile.simplify import simplify
from fxarray.kernel import sizes
from fxarray.kernel.ir import Contract

RNG = np.random.default_rng(0)
LENGTH, WIDTH = 64, 4
HEADS = (2, LENGTH, WIDTH)
Q, K, V = (RNG.normal(size=HEADS).astype(np.float32) for _ in range(3))
# Here every matrix is large.
ALWAYS = Policy(recomputed_bytes=1)

Attention = Callable[..., Any]


def scores(q: Any, k: Any) -> Any:
    return fnp.einsum("hqd,hkd->hqk", q, k) / 2


def softmax(x: Any) -> Any:
    e = fnp.exp(x - fnp.max(x, -1, keepdims=True))
    return e / fnp.sum(e, -1, keepdims=True)


def plain(q: Any, k: Any, v: Any) -> Any:
    return softmax(scores(q, k)) @ v


def causal(q: Any, k: Any, v: Any) -> Any:
    places = fnp.arange(LENGTH)
    masked = fnp.where(places[:, None] >= places, scores(q, k), -fnp.inf)
    return fxarray.nn.softmax(masked) @ v


def with_bias(q: Any, k: Any, v: Any) -> Any:
    return softmax(scores(q, k) + fnp.sin(fnp.arange(LENGTH) * 1.0)) @ v


def with_dropout(q: Any, k: Any, v: Any) -> Any:
    kept = (fnp.arange(LENGTH)[:, None] * 7 + fnp.arange(LENGTH)) % 5 != 0
    return (softmax(scores(q, k)) * kept / 0.8) @ v


def capped(q: Any, k: Any, v: Any) -> Any:
    return softmax(fnp.tanh(scores(q, k)) * 5) @ v


def by_log_sum_exp(q: Any, k: Any, v: Any) -> Any:
    s = scores(q, k)
    return fnp.exp(s - fxarray.nn.logsumexp(s, -1, keepdims=True)) @ v


def of_the_greatest(q: Any, k: Any, v: Any) -> Any:
    # Other than softmax, this depends on what the maximum is, and so does its gradient.
    s = scores(q, k)
    return fnp.tanh(s - fnp.max(s, -1, keepdims=True)) @ v


def transposed(q: Any, k: Any, v: Any) -> Any:
    return fnp.swapaxes(softmax(scores(q, k)) @ v, 0, 1)


def gradient(attention: Attention) -> Attention:
    return fxarray.value_and_grad(
        lambda q, k, v: fnp.sum(attention(q, k, v) ** 2 * 0.5), argnums=(0, 1, 2)
    )


def graph_of(function: Any, *args: Any, policy: Policy = ALWAYS) -> Graph:
    """The graph of a function, after it gave the right results."""
    program, constants = fxarray.make_program(function)(*args).open()
    graph = fuse(simplify(program), policy)
    check_graph(graph)
    values: list[Any] = [*constants, *map(fnp.asarray, fxarray.tree.leaves(args))]
    arrays = [value.numpy_view() for value in values]
    wanted = fxarray.tree.leaves(fxarray.jit(function, backend="reference")(*args))
    for got, value in zip(run_graph(graph, arrays), wanted, strict=True):
        np.testing.assert_allclose(got, np.asarray(value), rtol=1e-4, atol=1e-5)
    return graph


def largest(graph: Graph) -> int:
    """Elements of the largest array that a step stores."""
    kernels = [step for step in graph.steps if isinstance(step, KernelStep)]
    assert len(kernels) == len(graph.steps)
    return max(sizes.typical(sizes.product(s.shape)) for step in kernels for s in step.outputs)


def products(graph: Graph) -> list[int]:
    """How many products each kernel has that has some."""
    kernels = [step.kernel for step in graph.steps if isinstance(step, KernelStep)]
    counts = [sum(isinstance(node, Contract) for node in kernel.body) for kernel in kernels]
    return [count for count in counts if count]


@pytest.mark.parametrize(
    "attention",
    [
        *(plain, causal, with_bias, with_dropout, capped, by_log_sum_exp, of_the_greatest),
        transposed,
    ],
)
def test_the_gradient_stores_no_matrix(attention: Attention) -> None:
    graph = graph_of(gradient(attention), Q, K, V)
    assert largest(graph) == Q.size
    # The result; what queries get; what keys and values get.
    assert products(graph) == [2, 3, 4]


def test_small_matrices_are_stored() -> None:
    graph = graph_of(gradient(causal), Q, K, V, policy=Policy())
    assert largest(graph) == 2 * LENGTH * LENGTH


def test_a_matrix_that_is_a_result_is_stored() -> None:
    def weights_too(q: Any, k: Any, v: Any) -> Any:
        weights = softmax(scores(q, k))
        return fnp.sum((weights @ v) ** 2), weights

    function = fxarray.value_and_grad(weights_too, argnums=(0, 1, 2), has_aux=True)
    assert largest(graph_of(function, Q, K, V)) == 2 * LENGTH * LENGTH


def test_a_given_mask_is_read_and_no_other_matrix_is_stored() -> None:
    mask = RNG.random((LENGTH, LENGTH)) < 0.7
    mask[:, 0] = True

    def loss(q: Any, k: Any, v: Any, mask: Any) -> Any:
        s = fnp.where(mask, scores(q, k), -1e9)
        return fnp.sum((softmax(s) @ v) ** 2)

    graph = graph_of(fxarray.grad(loss, argnums=(0, 1, 2)), Q, K, V, mask)
    assert largest(graph) == Q.size


def test_layers_follow_one_another() -> None:
    def loss(w: Any, x: Any) -> Any:
        for _ in range(2):
            x = x + fnp.tanh(causal(x @ w[0], x @ w[1], x @ w[2]))
        return fnp.sum(x * x)

    weights = RNG.normal(size=(3, WIDTH, WIDTH)).astype(np.float32)
    graph = graph_of(fxarray.grad(loss, argnums=(0, 1)), weights, Q)
    assert largest(graph) == Q.size


def test_no_kernel_waits_for_itself_where_results_are_chained() -> None:
    # What the first product of weights gives is needed before the second one.
    def chained(q: Any, k: Any, v: Any) -> Any:
        weights = softmax(scores(q, k))
        return fnp.sum((weights @ fnp.tanh(weights @ v)) ** 2)

    graph = graph_of(fxarray.grad(chained, argnums=(0, 1, 2)), Q, K, V)
    assert largest(graph) == Q.size


def test_products_that_the_device_cannot_render_are_left_as_they_were() -> None:
    def one_product(kernel: Any) -> bool:
        return sum(isinstance(node, Contract) for node in kernel.body) == 1 and not any(
            type(node).__name__ == "Reduce" for node in kernel.body
        )

    policy = Policy(recomputed_bytes=1, can_render=one_product)
    graph = graph_of(gradient(plain), Q, K, V, policy=policy)
    assert set(products(graph)) == {1}


def test_hidden_layers_are_stored() -> None:
    def loss(w: Any, x: Any) -> Any:
        return fnp.sum((fnp.tanh(x @ w[0]) @ w[1]) ** 2)

    w = RNG.normal(size=(4, 128)).astype(np.float32), RNG.normal(size=(128, 4)).astype(np.float32)
    x = RNG.normal(size=(128, 4)).astype(np.float32)
    assert largest(graph_of(fxarray.grad(loss), w, x)) >= 128 * 128
