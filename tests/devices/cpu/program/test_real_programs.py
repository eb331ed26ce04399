"""Programs as users write them, against the reference."""

import numpy as np

import fxarray
import fxarray.numpy as fnp
from fxarray import lax


class TestSolvers:
    def test_newton_steps_in_a_loop_whose_result_is_returned(self, agree):
        def equations(x):
            return fnp.stack([x[0] ** 2 + x[1] ** 2 - 4, fnp.exp(x[0]) + x[1] - 1])

        def step(_, x):
            return x - fnp.linalg.solve(fxarray.jacfwd(equations)(x), equations(x))

        agree(lambda x: lax.fori_loop(0, 5, step, x), np.array([1.0, -1.7], np.float32))


class TestSearches:
    def test_beams_that_are_chosen_and_extended(self, agree):
        beams, words = 4, 20
        scores = np.random.default_rng(0).normal(size=(words, words)).astype(np.float32)

        def extend(state, position):
            so_far, texts = state
            following = so_far[:, None] + fnp.asarray(scores)[texts[:, position]]
            best, place = lax.top_k(following.reshape(-1), beams)
            texts = texts[place // words].at[:, position + 1].set(place % words)
            return (best, texts), best

        def search(first):
            so_far = fnp.where(fnp.arange(beams) == 0, 0.0, -fnp.inf)
            texts = fnp.zeros((beams, 9), fnp.int32).at[:, 0].set(first)
            return lax.scan(extend, (so_far, texts), fnp.arange(8))

        agree(search, np.int32(3))


class TestTraining:
    def test_a_gradient_of_a_strided_convolution_that_several_kernels_read(self, agree):
        random = np.random.default_rng(0)
        x = random.normal(size=(2, 16, 16, 8)).astype(np.float32)
        kernel = random.normal(size=(3, 3, 8, 16)).astype(np.float32) * 0.1

        def loss(x):
            hidden = fxarray.nn.relu(x - x.mean((0, 1, 2))) + x
            form = ("NHWC", "HWIO", "NHWC")
            y = lax.conv_general_dilated(hidden, kernel, (2, 2), "SAME", dimension_numbers=form)
            return fnp.sum(fxarray.nn.silu(y).mean((1, 2)) ** 2)

        agree(fxarray.grad(loss), x)
