"""Eager operators by remembered plans give what the general way gives."""

from __future__ import annotations

import operator
import warnings
from typing import Any

import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray.core.array import Array
from fxarray.core.errors import DeletedArrayError, FxArrayError, ShapeError
from fxarray.devices.reference import fast

OPERATORS = {
    "__add__": operator.add,
    "__sub__": operator.sub,
    "__mul__": operator.mul,
    "__truediv__": operator.truediv,
    "__eq__": operator.eq,
    "__ne__": operator.ne,
    "__lt__": operator.lt,
    "__ge__": operator.ge,
}
DTYPES = ("float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32", "int64", "bool")
OTHERS: tuple[Any, ...] = (2, -3, 0, 2.5, float("nan"), float("inf"), 1e300, 300, 2**31 - 1, True)


def outcome(call: Any) -> Any:
    """The bytes and type of a result, or the class and message of the error."""
    try:
        result = call()
    except (FxArrayError, OverflowError) as error:
        return type(error), str(getattr(error, "message", error))
    return result.type, np.asarray(result).astype(np.float64).tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("shape", [(), (3,)], ids=str)
def test_operators_with_numbers_agree_with_the_general_way(
    name: str, dtype: str, shape: tuple[int, ...]
) -> None:
    x = fnp.full(shape, 1, dtype)
    general = getattr(Array, name)
    for other in OTHERS:
        expected = outcome(lambda other=other: general(x, other))
        for _ in range(3):  # learns, then remembers
            assert outcome(lambda other=other: OPERATORS[name](x, other)) == expected


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_with_arrays_agree_with_the_general_way(name: str) -> None:
    general = getattr(Array, name)
    operands = [fnp.full(s, 3, d) for s in ((), (2, 1), (2,)) for d in DTYPES]
    operands += [fnp.asarray(2.0), fnp.asarray(2)]  # weak
    for x in operands:
        for y in operands:
            expected = outcome(lambda x=x, y=y: general(x, y))
            for _ in range(2):
                assert outcome(lambda x=x, y=y: OPERATORS[name](x, y)) == expected


def test_reflected_operators_keep_the_order_of_operands() -> None:
    x = fnp.asarray([1.0, 4.0])
    for _ in range(2):
        assert np.asarray(10 - x).tolist() == [9, 6]
        assert np.asarray(8.0 / x).tolist() == [8, 2]


def test_settings_reach_operators_that_were_remembered() -> None:
    x, y = fnp.ones((2, 3)), fnp.ones(3)
    for _ in range(2):
        assert (x + y).shape == (2, 3)
    with fxarray.config.using(numpy_rank_promotion="raise"), pytest.raises(Exception, match="rank"):
        x + y
    assert (x + y).shape == (2, 3)


def test_operators_are_recorded_while_tracing() -> None:
    one = fnp.ones(2)
    one + one
    program = fxarray.make_program(lambda x: x * (one + one))(one)
    assert [equation.op.name for equation in program.equations] == ["add", "mul"]


def test_deleted_operands_are_named() -> None:
    x = fnp.ones(2)
    x + x
    x.delete()
    for call in (lambda: x + 1.0, lambda: 1.0 - x, lambda: -x, lambda: fnp.sin(x)):
        with pytest.raises(DeletedArrayError, match=r"f32\[2\]"):
            call()


def test_numpy_warns_of_nothing_and_its_state_is_as_before() -> None:
    zero = fnp.zeros(2)
    before = np.geterr()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            (zero / zero, zero + 1e300, -zero, fnp.log(zero), fnp.int32(2**31 - 1) + 1)
    assert np.geterr() == before
    for _ in range(2):
        with pytest.raises(ShapeError):
            zero + fnp.ones(3)
    assert np.geterr() == before


def test_tables_can_be_forgotten() -> None:
    x = fnp.ones(2)
    expected = np.asarray(x + x).tolist()
    fast.clear()
    assert np.asarray(x + x).tolist() == expected
