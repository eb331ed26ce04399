"""Illegal kernels are refused, with the node and the rule."""

import pytest

from fxarray.core.errors import ProgramError
from fxarray.kernel.build import Builder
from fxarray.kernel.check import check_kernel, is_injective
from fxarray.kernel.ir import Affine, Buffer, Const, Contract, Kernel, Load, Op, Part, Reduce, Store

X, Y = Buffer("x", (3, 4), "f32"), Buffer("y", (3, 4), "f32")
LOAD = Load(X, (Affine.of("i"), Affine.of("j")))
STORE_AT = (Affine.of("i"), Affine.of("j"))


def kernel(*body, axes=(("i", 3), ("j", 4)), outputs=(Y,)):
    return Kernel("bad", axes, (X,), outputs, body)


def test_a_legal_kernel_passes():
    check_kernel(kernel(LOAD, Store(Y, STORE_AT, 0)))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ((Op("neg", (0,), "f32"), Store(Y, STORE_AT, 0)), "not defined before"),
        ((LOAD, Op("negate", (0,), "f32"), Store(Y, STORE_AT, 1)), "no operation 'negate'"),
        ((LOAD, Op("add", (0,), "f32"), Store(Y, STORE_AT, 1)), "takes 2 arguments"),
        (
            (LOAD, Const(1, "i32"), Op("add", (0, 1), "f32"), Store(Y, STORE_AT, 2)),
            "different dtypes",
        ),
        ((LOAD, Op("lt", (0, 0), "f32"), Store(Y, STORE_AT, 1)), "does not give f32"),
        ((LOAD, Op("bitcast", (0,), "f64"), Store(Y, STORE_AT, 1)), "widths differ"),
        ((LOAD, Op("select", (0, 0, 0), "f32"), Store(Y, STORE_AT, 1)), "chooses by bool"),
        ((Load(X, (Affine.of("i"),)), Store(Y, STORE_AT, 0)), "1 indices for 2 dimensions"),
        ((Load(X, (Affine.of("q"), Affine.of("j"))), Store(Y, STORE_AT, 0)), "'q' is no axis"),
        (
            (LOAD, Load(X, (Affine(((0, 1),)), Affine.of("j"))), Store(Y, STORE_AT, 1)),
            "no integer to index with",
        ),
        ((Const(1.0, "f32"), Reduce("sum", (0,), ("j",)), Store(Y, STORE_AT, 1)), "distinct axes"),
        ((LOAD, Reduce("argmax", (0,), ("j",)), Store(Y, STORE_AT, 1)), "has 2 states"),
        ((LOAD, Reduce("mean", (0,), ("j",)), Store(Y, STORE_AT, 1)), "no combiner 'mean'"),
        ((LOAD, Part(0, 0), Store(Y, STORE_AT, 1)), "has 1 result and no part 0"),
        ((LOAD, Const(1.0, "f32"), Contract(0, 1, ("j",), "f32")), "not all axes of v1"),
        ((LOAD, Store(Y, (Affine.of("i"), Affine()), 0)), "axes j are not in the index"),
        ((LOAD, Store(Y, (Affine.of("i") + Affine.of("j"), Affine()), 0)), "may share an index"),
        ((LOAD, Store(Y, STORE_AT, 0, mode="add")), "which holds nothing"),
        ((LOAD, Store(Y, STORE_AT, 0, mode="sub")), "no mode 'sub'"),
        ((LOAD, Store(X, STORE_AT, 0)), "no output of the kernel"),
        ((LOAD,), "nothing is stored in ['y']"),
    ],
)
def test_each_rule_is_checked(body, message):
    with pytest.raises(ProgramError) as caught:
        check_kernel(kernel(*body))
    assert message in str(caught.value)


def test_contracted_loads_are_filled_with_zero():
    bounds = ((Affine.of("j"), 0, 2),)
    body = (LOAD, Load(X, LOAD.index, bounds, 1.0), Contract(0, 1, ("j",), "f32"))
    with pytest.raises(ProgramError, match="filled with 1.0"):
        check_kernel(kernel(*body, Store(Buffer("z", (3,), "f32"), (Affine.of("i"),), 2)))


def test_an_alias_has_the_shape_and_dtype_of_its_input():
    other = Buffer("y", (3, 4), "i32", alias="x")
    with pytest.raises(ProgramError, match="cannot be the memory of 'x'"):
        check_kernel(kernel(LOAD, outputs=(other,)))


@pytest.mark.parametrize(
    ("terms", "injective"),
    [
        ([((("i", 4), ("j", 1)), 0)], True),
        ([((("i", 3), ("j", 1)), 0)], False),
        ([((("i", -4), ("j", -1)), 11)], True),
        ([((("i", 1), ("j", 3)), 0)], True),
        ([((("i", 1), ("j", 1)), 0), ((("j", 1),), 0)], True),
        ([((("i", 1), ("j", 1)), 0), ((("i", 1), ("j", -1)), 0)], False),
    ],
)
def test_indices_are_told_apart(terms, injective):
    index = [Affine(pairs, constant) for pairs, constant in terms]
    assert is_injective(kernel(LOAD), index) is injective


def test_what_the_builder_makes_is_legal():
    k = Builder("row", {"i": 3, "j": 4})
    x, y = k.input("x", (3, 4), "f32"), k.output("y", (3, 4), "f32")
    value = k.load(x, ("i", "j"))
    k.store(y, ("i", "j"), k.op("sub", value, k.reduce("max", ("j",), value)[0]))
    check_kernel(k.build())
