"""What goes wrong with control flow is said while tracing, naming the leaf and the remedy."""

import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray import lax
from fxarray.core.errors import (
    ArgumentError,
    AxisError,
    CarryTypeError,
    DTypeError,
    ShapeError,
    TreeStructureError,
)


def test_a_carry_that_changes_its_dtype_is_named():
    with pytest.raises(CarryTypeError, match=r"carry\['w'\]\[1\] is i32\[\] going in and f32\[\]"):
        lax.scan(
            lambda c, _: ({"w": (c["w"][0], c["w"][1] * 0.5)}, None),
            {"w": (1.0, fnp.asarray(1, "int32"))},
            length=3,
        )


def test_a_carry_that_changes_its_shape_is_named():
    with pytest.raises(CarryTypeError, match=r"carry\[0\] is f32\[2\] going in and f32\[3,2\]"):
        lax.while_loop(
            lambda c: c[1] < 3,
            lambda c: (c[0] + fnp.ones((3, 2)), c[1] + 1),
            (fnp.ones(2), 0),
        )
    with pytest.raises(CarryTypeError, match=r"fori_loop: .* changes the type of its carry"):
        lax.fori_loop(0, 3, lambda i, x: fnp.ones(3), fnp.ones(2))


def test_a_carry_that_changes_its_structure_is_explained():
    with pytest.raises(TreeStructureError, match="carry is a list of 2, expected a tuple of 2"):
        lax.scan(lambda c, _: ([*c], None), (1.0, 2.0), length=1)
    with pytest.raises(TreeStructureError, match="carry"):
        lax.while_loop(lambda c: True, lambda c: {"b": c["a"]}, {"a": 1.0})


def test_a_static_leaf_of_the_carry_must_stay():
    with pytest.raises(TreeStructureError, match="'left' and is now 'right'"):
        lax.scan(lambda c, _: (("right", c[1]), None), ("left", 1.0), length=1)


def test_errors_name_the_user_s_line():
    with pytest.raises(CarryTypeError, match=r"test_control_errors\.py"):
        lax.scan(lambda c, _: (fnp.ones(3), None), fnp.ones(2), length=1)


def test_branches_that_return_different_types_are_named():
    with pytest.raises(
        CarryTypeError, match=r"true_fun = .*result\['a'\] is f32\[\], there f32\[2\]"
    ):
        lax.cond(
            True,
            lambda: {"a": fnp.ones(())},
            lambda: {"a": fnp.ones(2)},
        )
    with pytest.raises(CarryTypeError, match="branch 2 = "):
        lax.switch(0, [lambda: 1, lambda: 2, lambda: 3.0])


def test_branches_that_return_different_structures_are_explained():
    with pytest.raises(TreeStructureError, match="result is a tuple of 2, expected a list of 2"):
        lax.cond(True, lambda: (1, 2), lambda: [1, 2])


@pytest.mark.parametrize(
    ("pred", "error"),
    [("yes", ArgumentError), (np.ones(3, bool), ShapeError), (None, ArgumentError)],
)
def test_a_predicate_must_be_a_scalar(pred, error):
    with pytest.raises(error, match="pred must be a scalar"):
        lax.cond(pred, lambda: 1, lambda: 2)


@pytest.mark.parametrize("index", [1.0, True, np.float32(1)])
def test_a_switch_index_must_be_an_integer(index):
    with pytest.raises(DTypeError, match="index must be an integer"):
        lax.switch(index, [lambda: 1, lambda: 2])


def test_switch_needs_branches():
    with pytest.raises(ArgumentError, match="no branches"):
        lax.switch(0, [])
    with pytest.raises(ArgumentError, match="branch 1 is not a function"):
        lax.switch(0, [lambda: 1, 2])


def test_conditions_must_give_one_bool():
    with pytest.raises(DTypeError, match="must return one bool, but it returned i32"):
        lax.while_loop(lambda x: x, lambda x: x, 1)
    with pytest.raises(DTypeError, match="any"):
        lax.while_loop(lambda x: x > 0, lambda x: x, fnp.ones(3))
    with pytest.raises(ArgumentError, match="must return one bool"):
        lax.while_loop(lambda x: (x > 0, x), lambda x: x, 1.0)


def test_lengths_of_scans_must_agree():
    with pytest.raises(ShapeError, match=r"xs\[0\] is f64\[3\], xs\[1\] is f64\[4,2\]"):
        lax.scan(lambda c, x: (c, x), 1.0, (np.ones(3), np.ones((4, 2))))
    with pytest.raises(ShapeError, match="length is 4"):
        lax.scan(lambda c, x: (c, x), 1.0, np.ones(3), length=4)
    with pytest.raises(ArgumentError, match="give length="):
        lax.scan(lambda c, x: (c, x), 1.0, None)
    with pytest.raises(ShapeError, match="scalar"):
        lax.scan(lambda c, x: (c, x), 1.0, 2.0)


def test_a_scan_body_returns_a_pair():
    with pytest.raises(ArgumentError, match="must return a pair"):
        lax.scan(lambda c, x: c, 1.0, np.ones(3))


def test_unroll_must_be_positive():
    with pytest.raises(ArgumentError, match="unroll"):
        lax.scan(lambda c, x: (c, x), 1.0, np.ones(3), unroll=0)


def test_fori_loop_bounds_must_be_integers():
    with pytest.raises(DTypeError, match="upper must be an integer"):
        lax.fori_loop(0, 3.5, lambda i, x: x, 1)
    with pytest.raises(ArgumentError, match="unroll needs bounds"):
        fxarray.jit(lambda n: lax.fori_loop(0, n, lambda i, x: x, 1, unroll=2))(3)


def test_associative_scan_checks_its_arguments():
    with pytest.raises(AxisError, match="axis 2"):
        lax.associative_scan(fnp.add, np.ones((2, 3)), axis=2)
    with pytest.raises(ShapeError, match="sizes along axis 0 differ"):
        lax.associative_scan(lambda a, b: a, (np.ones(2), np.ones(3)))
    with pytest.raises(CarryTypeError, match="keep shapes and dtypes"):
        lax.associative_scan(lambda a, b: (a + b) * 1j, np.ones(3))
    with pytest.raises(TreeStructureError, match="associative_scan"):
        lax.associative_scan(lambda a, b: (a, b), np.ones(3))


def test_nothing_runs_before_an_error_is_found():
    ran = []

    def first(x):
        ran.append(None)
        return x

    with pytest.raises(CarryTypeError):
        lax.cond(True, first, lambda x: fnp.ones(7), fnp.ones(3))
    assert len(ran) == 1  # traced, as its type had to be known
