"""Lower rules at special values: infinities, NaN, zeros of either sign, ends of integer ranges."""

import itertools

import numpy as np
import pytest

import fxarray  # noqa: F401, importing it fills the registry
from fxarray.compile.one_operation import build_operation
from fxarray.core import dtypes
from fxarray.core.primitive import REGISTRY
from fxarray.core.types import ArrayType
from fxarray.kernel.interpret import interpret
from fxarray.primitives.elementwise_base import Elementwise
from fxarray.primitives.support import group_of, sample_dtypes

FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -3.5, 1e-3, 1e4, np.inf, -np.inf, np.nan]
ROWS = sorted(
    name
    for name, cls in REGISTRY.items()
    if issubclass(cls, Elementwise)
    and cls.__module__.startswith("fxarray.")
    and "lower" not in cls.EXCUSED
    and name not in ("convert_element_type", "reduce_precision", "integer_pow", "select_n")
)


def special(dtype):
    """Special values of a dtype."""
    if dtypes.is_bool(dtype):
        return np.array([False, True])
    if dtypes.is_integer(dtype):
        info = dtypes.iinfo(dtype)
        low, high = int(info.min), int(info.max)
        numbers = {low, low + 1, 0, 1, 2, 3, 7, 31, high - 1, high, max(low, -1), max(low, -5)}
        return np.array(sorted(numbers), dtype)
    if dtypes.is_complex(dtype):
        # Infinite parts are defined by the functions of each library.
        parts = [0.0, 1.0, -2.0, 0.5]
        return np.array([complex(a, b) for a, b in itertools.product(parts, parts)], dtype)
    info = dtypes.finfo(dtype)
    extremes = [float(info.tiny), float(info.smallest_subnormal), float(info.max)]
    return np.array([*FLOATS, *extremes], np.float64).astype(dtype)


def products(values, count):
    """All tuples of values, as one array per place."""
    if count == 3:
        values = values[:: max(1, len(values) // 8)]
    grids = np.meshgrid(*[values] * count, indexing="ij")
    return [grid.ravel() for grid in grids]


def agree(op, arrays, ulps=8.0):
    types = [ArrayType(a.shape, a.dtype) for a in arrays]
    kernel = build_operation(op, types)
    inputs = [arrays[int(buffer.name.removeprefix("x"))] for buffer in kernel.inputs]
    (result,), (expected,) = interpret(kernel, *inputs), op.reference(*arrays)
    assert result.dtype == expected.dtype
    if not dtypes.is_inexact(expected.dtype):
        np.testing.assert_array_equal(result, expected)
        return
    wide = np.complex128 if dtypes.is_complex(expected.dtype) else np.float64
    info = dtypes.finfo(expected.dtype)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(
            result.astype(wide),
            expected.astype(wide),
            rtol=ulps * float(info.eps),
            atol=ulps * float(info.smallest_subnormal),
        )


@pytest.mark.parametrize("name", ROWS)
def test_rows_at_special_values(name):
    cls = REGISTRY[name]
    op = cls(True) if name == "round" else cls()
    wide = [np.dtype("int64"), np.dtype("uint64")]
    for dtype in (*sample_dtypes(cls.accepts), *wide):
        if group_of(dtype) & cls.accepts:
            agree(op, products(special(dtype), cls.arity))


def test_rounding_at_ties():
    ties = np.array([-2.5, -1.5, -0.5, -0.0, 0.5, 1.5, 2.5, 1e9, np.inf, np.nan], np.float32)
    for to_even in (False, True):
        agree(REGISTRY["round"](to_even), [ties])


@pytest.mark.parametrize("exponent", [-3, -1, 0, 1, 2, 5, 16, 17, 40])
@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64", "int32", "uint8"])
def test_powers(exponent, dtype):
    dtype = np.dtype(dtype)
    if exponent < 0 and dtypes.is_integer(dtype):
        return
    values = special(dtype)
    if dtypes.is_complex(dtype):
        values = values[values != 0]
    agree(REGISTRY["integer_pow"](exponent), [values], ulps=40.0)


@pytest.mark.parametrize("target", ["bool", "int8", "uint8", "int32", "uint64", "float16"])
@pytest.mark.parametrize("source", ["bool", "int8", "uint32", "int64", "float32", "complex64"])
def test_conversions(source, target):
    op = REGISTRY["convert_element_type"](np.dtype(target))
    agree(op, [special(np.dtype(source))])


@pytest.mark.parametrize("bits", [(5, 10), (8, 7), (8, 0), (11, 3), (4, 23), (2, 1)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_reduced_precision_of_every_size_of_number(bits, dtype):
    dtype = np.dtype(dtype)
    info = np.finfo(dtype)
    scales = np.exp2(np.linspace(info.minexp - info.nmant, info.maxexp - 1, 60))
    values = np.outer(scales, [1.0, 1.25, 1.5, 1.75, 1.9999, -1.3])
    with np.errstate(all="ignore"):
        x = np.concatenate([values.ravel().astype(dtype), special(dtype)])
    agree(REGISTRY["reduce_precision"](*bits), [x], ulps=0.0)


def test_maxima_of_complex_numbers_take_the_first_nan():
    nan = np.nan
    values = np.array([1 + 2j, 1 + 1j, complex(nan, 0), complex(0, nan), 2 - 1j], np.complex64)
    for name in ("max", "min"):
        op = REGISTRY[name]()
        kernel = build_operation(op, [ArrayType((25,), values.dtype)] * 2)
        pairs = products(values, 2)
        np.testing.assert_array_equal(interpret(kernel, *pairs)[0], op.reference(*pairs)[0])


def test_prefixes_of_logarithms_survive_infinities():
    for row in ([-np.inf] * 3, [-np.inf, 0.0, -np.inf], [np.inf, 1.0, np.inf], [0.0, np.nan, 1.0]):
        x = np.array(row, np.float32)
        op = REGISTRY["cumlogsumexp"](0)
        (result,) = interpret(build_operation(op, [ArrayType((3,), x.dtype)]), x)
        np.testing.assert_allclose(result, op.reference(x)[0], rtol=1e-6)


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("apart", [2, 3])
@pytest.mark.parametrize("dilation", [1, 2, 5])
@pytest.mark.parametrize("low", [-2, 0, 3])
def test_convolutions_of_spread_arrays(stride, apart, dilation, low):
    rng = np.random.default_rng(0)
    x, kernel = rng.normal(size=(1, 2, 3, 7)), rng.normal(size=(1, 4, 3, 3))
    reach = (7 - 1) * apart + 1 + low - 2 * dilation
    # A number of places that the distance divides, and one that it does not.
    for places in (6, 7):
        high = (places - 1) * stride + 1 - reach
        make = REGISTRY["conv_general_dilated"]
        op = make((stride,), ((low, high),), (apart,), (dilation,))
        types = [ArrayType(a.shape, a.dtype) for a in (x, kernel)]
        assert op.infer(*types)[0].shape == (1, 2, 4, places)
        built = build_operation(op, types)
        np.testing.assert_allclose(
            interpret(built, x, kernel)[0], op.reference(x, kernel)[0], rtol=1e-12, atol=1e-12
        )
