"""Python's operators on arrays, and their short cuts."""

import operator

import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray.errors import ArgumentError, DTypeError, ShapeError, TypePromotionError

_ARITHMETIC = [
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod),
    *(operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge),
]
_BITS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]
_DTYPES = ["int8", "int32", "uint16", "float16", "float32", "float64", "bfloat16"]


def _general(operation, x, y):
    """What the operator means, by the function of the same name."""
    names = {
        "truediv": "true_divide", "floordiv": "floor_divide", "sub": "subtract", "mul": "multiply",
        "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
        "ge": "greater_equal",
    }  # fmt: skip
    return getattr(fnp, names.get(operation.__name__, operation.__name__))(x, y)


@pytest.mark.parametrize("dtype", _DTYPES)
@pytest.mark.parametrize("operation", _ARITHMETIC)
@pytest.mark.parametrize("other", [2, 2.5, True, np.float32(3), np.int8(3), np.arange(1, 4)])
def test_operators_are_the_functions_of_the_same_meaning(operation, dtype, other):
    x = fnp.array([1, 2, 5]).astype(dtype)
    for left, right in ((x, other), (other, x), (x, x)):
        actual, expected = operation(left, right), _general(operation, left, right)
        assert actual.dtype == expected.dtype
        assert actual.weak_type == expected.weak_type
        np.testing.assert_array_equal(np.asarray(actual), np.asarray(expected))


@pytest.mark.parametrize("operation", _ARITHMETIC)
def test_operators_are_numpys_on_float64(operation):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 3)), rng.normal(size=3)
    np.testing.assert_allclose(operation(fnp.asarray(x), fnp.asarray(y)), operation(x, y))


@pytest.mark.parametrize("operation", _BITS)
def test_operators_on_bits_are_numpys(operation):
    x, y = np.array([1, 6, -7], "int32"), np.array([3, 2, 1], "int32")
    np.testing.assert_array_equal(operation(fnp.asarray(x), fnp.asarray(y)), operation(x, y))
    np.testing.assert_array_equal(operation(fnp.asarray(x), 2), operation(x, 2))


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8"])
def test_shifts_by_the_width_or_more_give_zero_or_the_sign(dtype):
    x = fnp.array([1, 5, 100], dtype)
    np.testing.assert_array_equal(x << 40, [0, 0, 0])
    np.testing.assert_array_equal(x >> 40, [0, 0, 0])
    if dtype != "uint8":
        np.testing.assert_array_equal(-x >> 40, [-1, -1, -1])


@pytest.mark.parametrize("value", [0.0, -0.0, float("nan"), float("inf"), 1, True, 1.0, 2])
def test_equal_looking_numbers_are_not_confused(value):
    # Numbers in the source are remembered: 0.0 and -0.0, 1 and True and 1.0 must stay apart.
    for other in (0.0, -0.0, 1, True, 1.0, value):
        result = fnp.ones(1) / (fnp.array([-0.0]) + other)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(result, np.float32(1) / np.float32([other]))
        assert (fnp.zeros(1, "int32") + other).dtype == fnp.result_type(
            fnp.zeros(1, "int32"), other
        )


def test_numbers_written_in_the_source_survive_deletion_of_results():
    x = fnp.positive(3.25)
    x.delete()
    assert (fnp.ones(1) * 3.25)[0].item() == 3.25


def test_comparison_with_none_and_text_is_false():
    x = fnp.arange(2)
    assert (x == None) is False  # noqa: E711
    assert (x != None) is True  # noqa: E711
    assert (x == "text") is False


@pytest.mark.parametrize("other", [[0, 1], (0, 1), {1}, {0: 1}])
@pytest.mark.parametrize("operation", [operator.add, operator.mul, operator.eq, operator.matmul])
def test_containers_are_refused_with_a_remedy(operation, other):
    with pytest.raises(TypeError, match="asarray"):
        operation(fnp.arange(2), other)
    with pytest.raises(TypeError, match="asarray"):
        operation(other, fnp.arange(2))


def test_classes_that_know_arrays_get_their_turn():
    class Knows:
        def __radd__(self, other):
            return "knows"

    assert fnp.arange(2) + Knows() == "knows"
    with pytest.raises(TypeError, match="unsupported operand"):
        fnp.arange(2) + object()


def test_numpy_arrays_on_the_left_leave_the_operator_to_us():
    result = np.ones(2, "float32") * fnp.arange(2)
    assert isinstance(result, fxarray.Array)
    assert isinstance(np.float32(2) - fnp.arange(2), fxarray.Array)


def test_errors_name_the_function_and_the_operands():
    with pytest.raises(
        ShapeError, match=r"add: shapes \(3\), \(4\) do not broadcast.*\n.*test_oper"
    ):
        fnp.ones(3) + fnp.ones(4)
    with pytest.raises(TypePromotionError, match="float8"):
        fnp.ones(2, "float8_e5m2") + fnp.ones(2, "float8_e4m3fn")
    with pytest.raises(TypeError, match="random"):
        fxarray.random.key(0) + 1
    with pytest.raises(DTypeError, match="sub"):
        fnp.array([True]) - fnp.array([False])
    with pytest.raises(DTypeError, match="not"):
        ~fnp.ones(2)
    with pytest.raises(DTypeError, match="left_shift"):
        fnp.ones(2) << 1


def test_powers_of_integers_are_exact_and_negative_ones_refused():
    np.testing.assert_array_equal(fnp.array([-2, 3]) ** 3, [-8, 27])
    np.testing.assert_array_equal(
        fnp.array([-2.0, 3.0]) ** fnp.array([3, -1]), [-8, fnp.float32(1 / 3)]
    )
    with pytest.raises(ArgumentError, match="astype"):
        fnp.array([2, 3]) ** -1


def test_divmod_and_round():
    quotient, remainder = divmod(fnp.array([7.5, -7.5]), 2)
    np.testing.assert_array_equal(quotient, [3, -4])
    np.testing.assert_array_equal(remainder, [1.5, 0.5])
    quotient, remainder = divmod(7, fnp.array([2, -2]))
    np.testing.assert_array_equal(quotient, [3, -4])
    np.testing.assert_array_equal(remainder, [1, -1])
    np.testing.assert_array_equal(round(fnp.array([1.25, 2.5]), 1), np.float32([1.2, 2.5]))


def test_the_least_integer_divided_by_minus_one_is_itself():
    for dtype in ("int8", "int32", "int64"):
        least = fnp.array([fnp.iinfo(dtype).min], dtype)
        assert (least // -1)[0].item() == fnp.iinfo(dtype).min
        assert (least % -1)[0].item() == 0


def test_operators_work_on_tracers_of_every_kind():
    def function(x):
        return (2 * x + 1) / x - x**2 // 3 + (x > 1) * x

    x = fnp.array([1.0, 2.0, 4.0])
    expected = function(x)
    np.testing.assert_allclose(fxarray.jit(function)(x), expected, rtol=1e-6)
    np.testing.assert_allclose(fxarray.vmap(function)(x), expected, rtol=1e-6)
    np.testing.assert_allclose(fxarray.jvp(function, (x,), (x,))[0], expected, rtol=1e-6)


def test_a_program_has_numbers_as_literals_of_the_operands_dtype():
    program = fxarray.make_program(lambda x: x * 2 + 1.5)(fnp.ones(3, "float16"))
    assert [equation.op.name for equation in program.equations] == ["mul", "add"]
    assert program.output_types[0].dtype == np.float16
