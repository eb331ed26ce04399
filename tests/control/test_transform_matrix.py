"""Every kind of control flow under every transform, in many nestings, against JAX."""

import numpy as np
import pytest


def recurrence(m):
    """A scan that uses weights, slices and carries in its derivative."""

    def function(w, c, xs):
        def step(c, x):
            c = m.np.sin(c * w + x) * m.np.cos(w)
            return c, c * x

        c, ys = m.scan(step, c, xs)
        return m.np.sum(ys) + m.np.sum(c * c)

    return function


def growth(m, max_steps=20):
    """A while loop whose number of steps depends on its arguments."""

    def function(x, w):
        def step(state):
            a, b = state
            return a + b * b * 0.1 + w * 0.3, b * 1.1 + m.np.sin(a) * w

        a, b = m.while_loop(lambda state: state[0] < 3.0, step, (x, x * 2.0), max_steps)
        return a * b

    return function


def branch(m):
    """A cond with different residuals in its branches; p chooses."""

    def function(p, x, w):
        a, b = m.cond(
            p > 0,
            lambda x: (m.np.sin(x) * w, x),
            lambda x: (x * x, m.np.sqrt(x) * w),
            x,
        )
        return m.np.sum(a * b)

    return function


def nest(m):
    """A scan of a cond of a fori_loop and a bounded while_loop."""

    def function(w, xs):
        def step(c, x):
            c = m.cond(
                m.np.sum(x) > 0,
                lambda c: m.fori_loop(0, 3, lambda i, c: c * m.np.sin(c) + x * w * i, c),
                lambda c: m.while_loop(
                    lambda c: m.np.sum(c * c) > 1.0, lambda c: c * 0.5 * m.np.cos(w), c, 10
                ),
                c,
            )
            return c, m.np.sum(c)

        c, ys = m.scan(step, w * 2.0 + 0.1, xs)
        return m.np.sum(ys * ys) + m.np.sum(c)

    return function


RNG = np.random.default_rng(0)
W, C = RNG.normal(size=3), RNG.normal(size=3)
XS = RNG.normal(size=(5, 3))
ROWS = RNG.normal(size=(4, 3)) ** 2
SIGNS = np.array([1.0, -1.0, 1.0, -2.0])
STARTS, RATES = np.array([0.3, 0.1, 5.0, 1.0]), np.array([0.5, 0.9, 0.1, 0.3])

PROGRAMS = {
    "scan": (recurrence, (W, C, XS)),
    "while_loop": (growth, (np.float64(0.3), np.float64(0.5))),
    "bound_reached": (lambda m: growth(m, 3), (np.float64(0.3), np.float64(0.5))),
    "first_branch": (branch, (np.float64(1.0), C**2, W)),
    "second_branch": (branch, (np.float64(-1.0), C**2, W)),
    "nest": (nest, (W, XS)),
}


TRANSFORMS = {
    "value": lambda m, f, n: f,
    "jit": lambda m, f, n: m.jit(f),
    "grad": lambda m, f, n: m.grad(f, n),
    "jit_grad": lambda m, f, n: m.jit(m.grad(f, n)),
    "grad_jit": lambda m, f, n: m.grad(m.jit(f), n),
    "jvp": lambda m, f, n: lambda *a: m.jvp(f, a, tuple(x + 1.0 for x in a)),
    "jit_jvp": lambda m, f, n: m.jit(lambda *a: m.jvp(f, a, tuple(x + 1.0 for x in a))),
    "jvp_jit": lambda m, f, n: lambda *a: m.jvp(m.jit(f), a, tuple(x + 1.0 for x in a)),
    "linearize": lambda m, f, n: lambda *a: m.linearize(f, *a)[1](*(x + 1.0 for x in a)),
    "jvp_grad": lambda m, f, n: lambda *a: m.jvp(m.grad(f, n), a, tuple(x + 1.0 for x in a)),
    "grad_jvp": lambda m, f, n: m.grad(
        lambda *a: m.jvp(f, a, tuple(x * 0.0 + 1.0 for x in a))[1], n
    ),
    "grad_grad": lambda m, f, n: m.grad(
        lambda *a: sum(m.np.sum(g * g) for g in m.grad(f, n)(*a)), n
    ),
    "grad_jit_grad": lambda m, f, n: m.grad(
        lambda *a: sum(m.np.sum(g * g) for g in m.jit(m.grad(f, n))(*a)), n
    ),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_control_flow_agrees_with_jax_under(program, transform, agree):
    make, arguments = PROGRAMS[program]
    numbers = tuple(range(len(arguments)))
    plain = transform.replace("jit_", "").replace("_jit", "")
    plain = "value" if plain == "jit" else plain
    agree(
        lambda m: TRANSFORMS[transform](m, make(m), numbers),
        *arguments,
        key=(program, plain),
        same=lambda m: TRANSFORMS[plain](m, make(m), numbers),
    )


MAPPED = {
    "scan": (recurrence, (None, 0, None), (W, ROWS, XS)),
    "scan_weights": (recurrence, (0, None, 1), (ROWS, C, RNG.normal(size=(5, 4, 3)))),
    "while_loop": (growth, (0, 0), (STARTS, RATES)),
    "while_loop_start": (growth, (0, None), (STARTS, np.float64(0.5))),
    "while_loop_rate": (growth, (None, 0), (np.float64(0.3), RATES)),
    "cond": (branch, (0, 0, None), (SIGNS, ROWS, W)),
    "cond_only_predicate": (branch, (0, None, None), (SIGNS, ROWS[0], W)),
    "cond_only_operand": (branch, (None, 0, None), (np.float64(1.0), ROWS, W)),
    "nest_weights": (nest, (0, None), (ROWS, XS)),
    "nest": (nest, (0, 0), (ROWS, np.stack([XS, -XS, XS * 2, XS * 0.1]))),
}
VMAPS = {
    "vmap": lambda m, f, n, axes: m.vmap(f, axes),
    "jit_vmap": lambda m, f, n, axes: m.jit(m.vmap(f, axes)),
    "vmap_jit": lambda m, f, n, axes: m.vmap(m.jit(f), axes),
    "vmap_grad": lambda m, f, n, axes: m.vmap(m.grad(f, n), axes),
    "jit_vmap_grad": lambda m, f, n, axes: m.jit(m.vmap(m.grad(f, n), axes)),
    "vmap_grad_jit": lambda m, f, n, axes: m.vmap(m.grad(m.jit(f), n), axes),
    "grad_vmap": lambda m, f, n, axes: m.grad(lambda *a: m.np.sum(m.vmap(f, axes)(*a)), n),
    "grad_vmap_jit": lambda m, f, n, axes: m.grad(
        lambda *a: m.np.sum(m.vmap(m.jit(f), axes)(*a)), n
    ),
    "jvp_vmap": lambda m, f, n, axes: (
        lambda *a: m.jvp(m.vmap(f, axes), a, tuple(x + 1.0 for x in a))
    ),
    "vmap_jvp_grad": lambda m, f, n, axes: m.vmap(
        lambda *a: m.jvp(m.grad(f, n), a, tuple(x + 1.0 for x in a)), axes
    ),
    "vmap_linearize": lambda m, f, n, axes: m.vmap(
        lambda *a: m.linearize(f, *a)[1](*(x + 1.0 for x in a)), axes
    ),
}


@pytest.mark.parametrize("transform", VMAPS)
@pytest.mark.parametrize("program", MAPPED)
def test_mapped_control_flow_agrees_with_jax_under(program, transform, agree):
    make, axes, arguments = MAPPED[program]
    numbers = tuple(range(len(arguments)))
    plain = transform.replace("jit_", "").replace("_jit", "")
    agree(
        lambda m: VMAPS[transform](m, make(m), numbers, axes),
        *arguments,
        key=(program, plain),
        same=lambda m: VMAPS[plain](m, make(m), numbers, axes),
    )


@pytest.mark.parametrize("outer", [(0, 0, None), (None, 0, None), (0, None, 0)])
def test_cond_under_two_vmaps(outer, agree):
    predicates = np.stack([SIGNS, -SIGNS, SIGNS]) if outer[0] == 0 else SIGNS
    x = ROWS[:3] if outer[1] == 0 else ROWS[0]
    w = ROWS[:3] if outer[2] == 0 else W

    def make(m):
        return m.vmap(m.vmap(branch(m), (0, None, None)), outer)

    agree(make, predicates, x, w)
    agree(lambda m: m.grad(lambda *a: m.np.sum(make(m)(*a)), (1, 2)), predicates, x, w)


@pytest.mark.parametrize("inner", [(0, None), (None, 0), (0, 0)])
@pytest.mark.parametrize("outer", [(0, 0), (None, 0), (0, None)])
def test_while_loop_under_two_vmaps(outer, inner, agree):
    def shape(position):
        return (2,) * (outer[position] == 0) + (3,) * (inner[position] == 0)

    x, w = RNG.uniform(0, 2, shape(0)), RNG.uniform(0.2, 1, shape(1))

    def make(m):
        return m.vmap(m.vmap(growth(m), inner), outer)

    agree(make, x, w)
    agree(lambda m: m.vmap(m.vmap(m.grad(growth(m), (0, 1)), inner), outer), x, w)
    agree(lambda m: m.grad(lambda *a: m.np.sum(make(m)(*a)), (0, 1)), x, w)


def test_hessian_of_a_scan(agree):
    agree(lambda m: m.hessian(lambda w: recurrence(m)(w, C, XS)), W)


def test_jacobians_of_a_scan_s_outputs(agree):
    def make(m):
        return lambda c: m.scan(lambda c, x: (m.np.sin(c) * x, c * c), c, XS)

    agree(lambda m: m.jacfwd(make(m)), C)
    agree(lambda m: m.jacrev(make(m)), C)
