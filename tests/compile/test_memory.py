"""The memory plan: what shares memory, and that nothing alive is overwritten."""

import itertools

import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray import lax
from fxarray.compile import arena
from fxarray.compile.arena import Interval
from fxarray.compile.fuse import Policy, fuse
from fxarray.compile.graph import CopyStep, Graph, KernelStep, ScanStep, Slot
from fxarray.compile.memory import Plan, plan
from fxarray.compile.simplify import simplify
from fxarray.core.dims import ShapeVar
from fxarray.core.types import ArrayType
from fxarray.kernel.build import Builder
from fxarray.kernel.ir import Affine, Kernel
from fxarray.kernel.sizes import kernel_shape, subtract

F32 = np.dtype("float32")


def slot(*shape, constant=None, view_of=None):
    return Slot(ArrayType(shape, F32), kernel_shape(shape), "f32", constant, view_of)


def doubling(*shape) -> Kernel:
    """y = 2 x, element by element."""
    sizes = kernel_shape(shape)
    names = [f"i{n}" for n in range(len(shape))]
    builder = Builder("double", dict(zip(names, sizes, strict=True)))
    x, y = builder.input("x", sizes, "f32"), builder.output("y", sizes, "f32")
    two = builder.constant(2.0, "f32")
    builder.store(y, names, builder.op("mul", builder.load(x, names), two))
    return builder.build()


def reversing(size) -> Kernel:
    """y[i] = x[size - 1 - i], which cannot be done in place."""
    builder = Builder("reverse", {"i": size})
    x, y = builder.input("x", (size,), "f32"), builder.output("y", (size,), "f32")
    builder.store(y, ("i",), builder.load(x, (Affine((("i", -1),), subtract(size, 1)),)))
    return builder.build()


def chain(kernel, count, *shape):
    """A graph that applies a kernel several times."""
    slots = [slot(*shape) for _ in range(count + 1)]
    steps = [KernelStep(kernel, (a,), (b,)) for a, b in itertools.pairwise(slots)]
    return Graph((slots[0],), (slots[-1],), steps), slots


class TestSharing:
    def test_a_chain_of_elementwise_kernels_has_no_temporaries(self):
        graph, slots = chain(doubling(8), 4, 8)
        found = plan(graph)
        assert found.layout().arena == 0
        assert {found.top.block(s) for s in slots[1:]} == {found.outputs[0]}

    def test_an_input_is_never_overwritten(self):
        graph, slots = chain(doubling(8), 3, 8)
        found = plan(graph)
        assert found.top.block(slots[0]).kind == "input"
        assert found.top.block(slots[1]) is not found.top.block(slots[0])

    def test_steps_that_cannot_be_in_place_take_turns_with_two_buffers(self):
        graph, _ = chain(reversing(16), 9, 16)
        assert plan(graph).layout(checked=True).arena == 2 * 64

    def test_an_operand_that_is_read_later_is_not_overwritten(self):
        a, b, c, d = (slot(4) for _ in range(4))
        kernel = doubling(4)
        steps = [KernelStep(kernel, (x,), (y,)) for x, y in ((a, b), (b, c), (b, d))]
        found = plan(Graph((a,), (c, d), steps))
        blocks = [found.top.block(x) for x in (a, b, c, d)]
        assert len(set(blocks[:3])) == 3
        assert blocks[3] is blocks[1]  # b dies in the last step

    def test_views_are_the_memory_of_what_they_view(self):
        a, b = slot(4, 2), slot(4, 2)
        view = slot(8, view_of=b)
        found = plan(Graph((a,), (view,), [KernelStep(doubling(4, 2), (a,), (b,))]))
        assert found.outputs == (found.top.block(b),)
        assert found.outputs[0].kind == "output"

    def test_outputs_that_are_inputs_constants_or_repeated_are_not_made(self):
        a, b = slot(4), slot(4)
        value = slot(4, constant=np.ones(4, F32))
        graph = Graph((a,), (a, b, value, b), [KernelStep(doubling(4), (a,), (b,))])
        found = plan(graph)
        assert [block.kind for block in found.outputs] == ["input", "output", "constant", "output"]
        assert found.fresh == (1,)
        assert found.outputs[3] is found.outputs[1]

    def test_sizes_may_be_variables(self):
        batch = ShapeVar("batch")
        size = kernel_shape((batch,))[0]
        graph, _ = chain(reversing(size), 4, batch)
        found = plan(graph)
        assert found.layout({"batch": 100}, checked=True).arena == 2 * 448
        assert found.layout({"batch": 0}).arena == 0

    def test_a_copy_of_a_dying_slot_is_no_copy(self):
        a, b, c = slot(4), slot(4), slot(4)
        steps = [KernelStep(doubling(4), (a,), (b,)), CopyStep(b, c)]
        found = plan(Graph((a,), (c,), steps))
        assert found.top.block(b) is found.top.block(c)


class TestDonation:
    def test_an_elementwise_result_takes_the_memory_of_its_donated_operand(self):
        graph, _ = chain(doubling(8), 1, 8)
        assert plan(graph, donated=[0]).reuse == {0: 0}
        assert plan(graph).reuse == {}

    def test_an_operand_read_in_another_order_gives_its_memory_only_when_it_is_dead(self):
        graph, _ = chain(reversing(8), 1, 8)
        assert plan(graph, donated=[0]).reuse == {}
        graph, _ = chain(reversing(8), 2, 8)
        assert plan(graph, donated=[0]).reuse == {0: 0}

    def test_memory_of_another_type_is_not_taken(self):
        a, b = slot(8), slot(4, 2)
        view = slot(4, 2, view_of=a)
        graph = Graph((a,), (b,), [KernelStep(doubling(4, 2), (view,), (b,))])
        assert plan(graph, donated=[0]).reuse == {}

    def test_an_input_that_is_a_result_is_not_taken(self):
        a, b = slot(8), slot(8)
        graph = Graph((a,), (a, b), [KernelStep(doubling(8), (a,), (b,))])
        assert plan(graph, donated=[0]).reuse == {}


def planned(function, *args, **options) -> tuple[Graph, Plan]:
    program = fxarray.make_program(function)(*args)
    graph = fuse(simplify(program), Policy())
    return graph, plan(graph, **options)


def moves(found: Plan, graph: Graph) -> int:
    """How many copies the loops of a graph need in each of their turns."""
    return sum(
        move.is_needed
        for position in range(len(graph.steps))
        for after in found.top.after.get(position, ())
        for move in after
    )


class TestLoops:
    x = np.arange(6, dtype=np.float32)

    def test_an_elementwise_carry_is_updated_in_place(self):
        def f(x):
            return lax.fori_loop(0, 100, lambda i, c: c * 2, x)

        graph, found = planned(f, self.x)
        assert moves(found, graph) == 0

    def test_stacked_results_are_written_where_they_belong(self):
        def f(x):
            return lax.scan(lambda c, a: (c + a, fnp.sin(a) + c), 0.0, x)

        graph, found = planned(f, self.x)
        position = next(n for n, step in enumerate(graph.steps) if n in found.top.parts)
        (part,) = found.top.parts[position]
        body = found.top.inner[position][0]
        assert part.find() in {body.block(s) for s in graph.steps[position].body.outputs}

    def test_values_that_go_round_are_put_aside(self):
        carries, inside = [slot(4), slot(4), slot(4)], [slot(4), slot(4), slot(4)]
        index = slot(1)
        body = Graph((*inside, index), (inside[1], inside[2], inside[0]), [])
        given = [slot(4), slot(4), slot(4), slot(5, 1)]
        step = ScanStep(body, (), tuple(given[:3]), (given[3],), tuple(carries), 5)
        graph = Graph(tuple(given), tuple(carries), [step])
        found = plan(graph)
        assert moves(found, graph) == 4
        (order,) = found.top.after[0]
        values = {found.top.block(carry): n for n, carry in enumerate(carries)}
        for move in order:
            values[move.target.find()] = values[move.source.find()]
        assert [values[found.top.block(carry)] for carry in carries] == [1, 2, 0]

    def test_the_last_use_of_a_carry_decides(self):
        def f(x):
            return lax.fori_loop(0, 100, lambda i, c: c[::-1] * 2, x)

        graph, found = planned(f, self.x)
        assert moves(found, graph) == 1

    def test_a_value_from_outside_lives_to_the_end_of_the_loop(self):
        given, constant, carry, result = (slot(16) for _ in range(4))
        inside, before, later, last = (slot(16) for _ in range(4))
        kernel = reversing(16)
        body = Graph(
            (inside, before),
            (last,),
            [KernelStep(kernel, (inside,), (later,)), KernelStep(kernel, (later,), (last,))],
        )
        loop = ScanStep(body, (constant,), (given,), (), (carry,), 5)
        steps = [
            KernelStep(kernel, (given,), (constant,)),
            loop,
            KernelStep(kernel, (carry,), (result,)),
        ]
        found = plan(Graph((given,), (result,), steps))
        assert found.top.block(constant).last > found.top.inner[1][0].block(later).last
        assert found.layout(checked=True).arena == 3 * 64


class TestArena:
    @pytest.mark.parametrize("seed", range(20))
    def test_memory_that_is_alive_at_one_time_lies_apart(self, seed):
        rng = np.random.default_rng(seed)
        intervals = []
        for _ in range(80):
            first = int(rng.integers(60))
            size = 64 * int(rng.choice([0, 1, 1, 2, 5, 30]))
            intervals.append(Interval(size, first, first + int(rng.integers(20))))
        offsets, size = arena.assign(intervals)
        arena.check(intervals, offsets, size)
        swept, swept_size = arena._sweep(intervals)
        arena.check(intervals, swept, swept_size)
        assert arena._lower_bound(intervals) <= size <= swept_size

    def test_an_overlap_is_noticed(self):
        intervals = [Interval(64, 0, 2), Interval(64, 2, 3)]
        with pytest.raises(AssertionError, match="alive at one time"):
            arena.check(intervals, [0, 0], 64)
        with pytest.raises(AssertionError, match="outside"):
            arena.check(intervals, [0, 64], 64)

    def test_many_intervals_take_linear_time(self):
        intervals = [Interval(64 * (n % 7 + 1), n, n + 3) for n in range(30_000)]
        offsets, size = arena.assign(intervals)
        arena.check(intervals, offsets, size)
        assert size < 64 * 100
